"""Newton's method with a logarithmic barrier, for geometric programs in the logarithms of their variables.

Our own, as the exact exponents decide first whether the least value is attained: a general solver (cvxpy's DGP) says
"optimal" of an infimum that nothing attains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.search.geometric_program import GeometricProgram, Product, far_out, loosens_for_ever

Smooth = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]  # value, gradient (n,), Hessian (n, n)
GAP = 1e-11  # relative distance from the minimum at which the barrier stops
EARLY = 1e-4  # the distance at which the active constraints are first guessed
ACTIVE = (1e-4, 1e-7, 1e-10)  # walls with larger multipliers are guessed to be active, and the guess is verified
LONGEST_STEP = 8.0  # in logarithms
REACH = 60.0  # how far from its start phase one looks, in logarithms
FASTER = 30.0  # the barrier's weight falls by this factor


def log_sum(products: Sequence[Product]) -> Smooth:
    """The logarithm of a sum of products as a smooth function of the logarithms of the variables."""
    offsets = np.array([p.log_coefficient for p in products])
    slopes = np.array([[float(a) for a in p.exponents] for p in products])
    posynomials = list(dict.fromkeys(posynomial for p in products for posynomial, _ in (*p.factors, *p.gaps)))
    inner = [log_sum(posynomial) for posynomial in posynomials]
    powers, gap_powers = (np.zeros((len(products), len(inner))) for _ in range(2))
    for j, p in enumerate(products):
        for table, parts in ((powers, p.factors), (gap_powers, p.gaps)):
            for posynomial, weight in parts:
                table[j, posynomials.index(posynomial)] += float(weight)
    less = np.flatnonzero(gap_powers.any(axis=0)).tolist()
    powers = np.hstack([powers, gap_powers[:, less]])

    def function(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        values, gradients, curved = offsets + slopes @ y, slopes, ()
        if inner:
            plain = [part(y) for part in inner]
            if any(plain[which][0] >= 0 for which in less):
                return np.inf, np.zeros_like(y), np.zeros((len(y), len(y)))
            found = plain + [_gap(*plain[which]) for which in less]
            values = values + powers @ np.array([value for value, _, _ in found])
            gradients = gradients + powers @ np.array([gradient for _, gradient, _ in found])
            curved = [hessian for _, _, hessian in found]
        top = values.max()
        weights = np.exp(values - top)
        total = weights.sum()
        weights /= total
        gradient = weights @ gradients
        hessian = (gradients.T * weights) @ gradients - np.outer(gradient, gradient)
        for share, h in zip((weights @ powers).tolist(), curved, strict=False):
            hessian += share * h
        return float(top + np.log(total)), gradient, hessian

    return function


def _gap(value: float, gradient: np.ndarray, hessian: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """log(1 - e^value) with its derivatives, for a value below 0."""
    ratio = 1 / np.expm1(-value)
    hessian = -ratio * hessian - ratio * (1 + ratio) * np.outer(gradient, gradient)
    return float(np.log(-np.expm1(value))), -ratio * gradient, hessian


@dataclass(frozen=True)
class Walls:
    """Functions that must stay at most 0: the affine ones as slopes @ y + offsets, then the curved ones."""

    slopes: np.ndarray  # (k, n)
    offsets: np.ndarray  # (k,)
    curved: tuple[Smooth, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) + len(self.curved)

    def values(self, y: np.ndarray) -> np.ndarray:
        """All of them, shape (len(self),)."""
        return np.append(self.slopes @ y + self.offsets, [wall(y)[0] for wall in self.curved])

    def barrier(self, objective: Smooth, t: float) -> Smooth:
        """t objective - sum of log(-wall), infinite outside."""

        def function(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            value, gradient, hessian = objective(y)
            depth = -(self.slopes @ y + self.offsets)
            if depth.size and depth.min() <= 0:
                return np.inf, gradient, hessian
            steep = self.slopes / depth[:, None]
            value = t * value - float(np.log(depth).sum())
            gradient, hessian = t * gradient + steep.sum(0), t * hessian + steep.T @ steep
            for wall in self.curved:
                v, g, h = wall(y)
                if v >= 0:
                    return np.inf, gradient, hessian
                value -= np.log(-v)
                gradient, hessian = gradient - g / v, hessian + np.outer(g, g) / v**2 - h / v
            return value, gradient, hessian

        return function

    def with_tip(self, start: np.ndarray) -> Walls:
        """The walls less one more coordinate, which itself must be at least -1; and a box around the start."""
        n = self.slopes.shape[1]
        unit = np.eye(n + 1)
        slopes = np.vstack([np.column_stack([self.slopes, -np.ones(len(self.offsets))]), -unit[n], unit[:n], -unit[:n]])
        offsets = np.concatenate([self.offsets, [-1.0], -start - REACH, start - REACH])
        return Walls(slopes, offsets, tuple(_with_slack(wall) for wall in self.curved))

    def loosen(self, by: float) -> Walls:
        """The same walls further out."""
        return Walls(self.slopes, self.offsets - by, tuple(_shift(wall, by) for wall in self.curved))


def _with_slack(wall: Smooth) -> Smooth:
    def function(z: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, hessian = wall(z[:-1])
        return value - z[-1], np.append(gradient, -1.0), np.pad(hessian, ((0, 1), (0, 1)))

    return function


def _shift(wall: Smooth, by: float) -> Smooth:
    def function(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, hessian = wall(y)
        return value - by, gradient, hessian

    return function


def walls_of(program: GeometricProgram) -> Walls:
    """The constraints (in order, the monomial ones and the ends of the ranges first)."""
    n = len(program.low)
    kept = [sum_ for sum_ in program.constraints if sum_]
    monomials = [sum_[0] for sum_ in kept if _is_monomial(sum_)]
    up, down = np.isfinite(program.high), np.isfinite(program.low)
    slopes = [np.array([float(a) for a in p.exponents]) for p in monomials]
    slopes += [*np.eye(n)[up], *-np.eye(n)[down]]
    offsets = [p.log_coefficient for p in monomials] + [*-program.high[up], *program.low[down]]
    curved = tuple(log_sum(sum_) for sum_ in kept if not _is_monomial(sum_))
    return Walls(np.array(slopes).reshape(len(slopes), n), np.array(offsets, dtype=float), curved)


def _is_monomial(sum_: Sequence[Product]) -> bool:
    return len(sum_) == 1 and sum_[0].monomial


@dataclass(frozen=True)
class Solution:
    """The logarithms of the minimizer, shape (n,); None if there is none, with the constraints in the way."""

    y: np.ndarray | None
    conflicts: tuple[int, ...] = ()


def solve(program: GeometricProgram) -> Solution:
    """Minimize; the minimum must be attained (see `fedbounds.bounds.search.geometric_program.falls_for_ever`).

    Phase one finds a point inside, phase two follows the barrier, and a last Newton iteration on the active
    constraints takes both to rounding. Where the objective does not see a direction in which the constraints loosen,
    the answer is the first point in that direction that meets them.
    """
    reduced, back = program, []
    while (direction := loosens_for_ever(reduced)) is not None:
        back.append(np.array([float(v) for v in direction]))
        reduced = far_out(reduced, direction)
    with np.errstate(over="ignore"):
        solution = _solve_bounded(reduced, program)
        if solution.y is None or not back:
            return solution
        y, walls = solution.y, walls_of(program)
        for step in reversed(back):
            y = _return(walls, y, step)
    return Solution(y)


def _return(walls: Walls, y: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The first point from y in the direction of the step where no wall that the step leaves behind is broken."""
    leaving = walls.values(y + step) < walls.values(y) - 1e-12

    def outside(s: float) -> bool:
        return bool((walls.values(y + s * step)[leaving] > 0).any())

    far = 1.0
    while outside(far):
        far *= 2
    near = -1.0
    while not outside(near) and near > -1e3:
        near *= 2
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (middle, far) if outside(middle) else (near, middle)
    return y + far * step


def _solve_bounded(program: GeometricProgram, original: GeometricProgram) -> Solution:
    walls = walls_of(program)
    low = np.where(np.isfinite(program.low), program.low, np.minimum(program.high, 1.0) - 2)
    high = np.where(np.isfinite(program.high), program.high, low + 2)
    y, slack, multipliers = _inside(walls, (low + high) / 2)
    if slack > 1e-9:
        order = [i for i, sum_ in enumerate(program.constraints) if _is_monomial(sum_)]
        ends = int(np.isfinite(program.high).sum() + np.isfinite(program.low).sum())
        order += [-1] * ends + [i for i, sum_ in enumerate(program.constraints) if sum_ and not _is_monomial(sum_)]
        hard = multipliers > 1e-3 * multipliers.max()
        return Solution(None, tuple(i for i, is_hard in zip(order, hard, strict=True) if is_hard and i >= 0))
    if not program.objective:
        return Solution(y)
    objective = log_sum(program.objective)
    if slack > -1e-12:  # no interior: loosen by a hair, and let Newton's method put it back
        near = _follow(objective, walls.loosen(1e-8), y)
        exact = _polish(objective, walls, walls.values(near) > -1e-6, near, any_sign=True)
        return Solution(near if exact is None else exact)
    return Solution(_follow(objective, walls, y))


def _inside(walls: Walls, start: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """A point where every wall is negative; else the one whose largest wall is smallest, with the multipliers."""
    if not len(walls):
        return start, -np.inf, np.zeros(0)
    tip = np.append(np.zeros(len(start)), 1.0)
    flat = np.zeros((len(tip), len(tip)))
    raised = walls.with_tip(start)
    z = np.append(start, max(walls.values(start).max(), -0.5) + 1.0)
    t = 1.0
    while True:
        z = _descend(raised.barrier(lambda z: (float(z[-1]), tip, flat), t), z, 1e-3, lambda z: z[-1] < -0.5)
        values = walls.values(z[:-1])
        if values.max() < -1e-2 or len(raised) / t < 1e-12:
            return z[:-1], float(values.max()), 1 / (t * np.maximum(z[-1] - values, 1e-300))
        t *= FASTER


def _follow(objective: Smooth, walls: Walls, y: np.ndarray) -> np.ndarray:
    """The barrier's path to the minimum, then Newton's method on the active walls."""
    if not len(walls):
        return _descend(objective, y, 0.0)
    t = 1.0
    while len(walls) / t > GAP:
        y = _descend(walls.barrier(objective, t), y, 1e-3)
        if len(walls) / t < EARLY:
            multipliers = -1 / (t * walls.values(y))
            for least in ACTIVE:
                exact = _polish(objective, walls, multipliers > least, y)
                if exact is not None:
                    return exact
        t *= FASTER
    return y


def _descend(
    function: Smooth, y: np.ndarray, tolerance: float, enough: Callable[[np.ndarray], bool] = lambda y: False
) -> np.ndarray:
    """Damped Newton steps from a point inside until enough, or until they promise less than the tolerance."""
    value, gradient, hessian = function(y)
    for _ in range(200):
        damping = 1e-14 * max(np.trace(hessian), 1e-2)
        step = -np.linalg.solve(hessian + damping * np.eye(len(y)), gradient)
        decrement = -float(gradient @ step)
        if enough(y) or not decrement > max(tolerance, 1e-15 * abs(value)):
            break
        scale = min(1.0, LONGEST_STEP / np.abs(step).max())
        while scale > 1e-10:
            trial = function(y + scale * step)
            if trial[0] <= value - 0.1 * scale * decrement:
                break
            scale /= 2
        else:
            break
        y, (value, gradient, hessian) = y + scale * step, trial
    return y


def _polish(
    objective: Smooth, walls: Walls, active: np.ndarray, y: np.ndarray, any_sign: bool = False
) -> np.ndarray | None:
    """Newton's method on the optimality conditions with these walls at 0; None unless it ends in a minimum near y."""
    k = len(walls.offsets)
    straight = active[:k]
    curved = [wall for wall, on in zip(walls.curved, active[k:], strict=True) if on]
    point = y
    for _ in range(12):
        _, gradient, hessian = objective(point)
        held = [wall(point) for wall in curved]
        slopes = np.vstack([walls.slopes[straight], *(g for _, g, _ in held)])
        values = np.append((walls.slopes @ point + walls.offsets)[straight], [v for v, _, _ in held])
        multipliers = np.linalg.lstsq(slopes.T, -gradient, rcond=None)[0]
        rest = gradient + slopes.T @ multipliers
        if np.abs(point - y).max() > 0.1 or (not any_sign and (multipliers < -1e-8).any()):
            return None
        if np.abs(rest).max() <= 1e-13 and (np.abs(values) <= 1e-14).all():
            break
        for m, (_, _, h) in zip(multipliers[straight.sum() :], held, strict=True):
            hessian = hessian + m * h
        system = np.block([[hessian, slopes.T], [slopes, np.zeros((len(slopes), len(slopes)))]])
        point = point + np.linalg.lstsq(system, -np.append(rest, values), rcond=1e-13)[0][: len(y)]
    fits = bool((walls.values(point) <= 1e-13).all())
    return point if fits and np.abs(rest).max() <= 1e-9 and np.abs(point - y).max() <= 0.1 else None


def is_unique(program: GeometricProgram, y: np.ndarray) -> bool:
    """Whether no other point near the minimizer y is as good: the objective and the walls that hold it pin it down."""
    walls = walls_of(program)
    _, gradient, _ = log_sum(program.objective)(y)
    slopes = np.vstack([walls.slopes, *(wall(y)[1] for wall in walls.curved)])
    slopes = slopes[np.abs(walls.values(y)) < 1e-9]
    multipliers = np.linalg.lstsq(slopes.T, -gradient, rcond=None)[0]
    rows = [[float(a) for a in row] for p in program.objective for row in p.degrees]
    rows = np.array([*(np.array(rows) - rows[0]), *slopes[np.abs(multipliers) > 1e-7]])
    return bool(np.linalg.matrix_rank(rows) == len(y))
