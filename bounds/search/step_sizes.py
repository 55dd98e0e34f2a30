"""The best positive constants of a form: convex in logarithms where it is a geometric program, else by search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.search.barrier_method import is_unique, log_sum, solve
from fedbounds.bounds.search.effort import SOLUTION, EvaluationBudget, passes
from fedbounds.bounds.search.geometric_program import (
    GeometricProgram,
    NotGeometric,
    Product,
    ProductReader,
    falls_for_ever,
    far_out,
    survivors,
)
from fedbounds.bounds.search.infeasibility import violated_condition
from fedbounds.bounds.search.optimize_answers import Answer, Infeasible, Minimum, NotAttained, Undecided
from fedbounds.bounds.search.partial_evaluation import Partial, leave_free
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Quantity

FAR = 12 * np.log(10.0)  # how far a logarithm is searched where its range has no end
FIRST = {1: 2001, 2: 101, 3: 23, 4: 11}  # points per axis of the first grid
LATER = {1: 41, 2: 17, 3: 9, 4: 5}
POINTS, FEWER = 15_000, 700  # of the first grid, and of a later one, on more axes
STARTS = 5
Merit = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # (points, n) -> values, violations of the conditions


@dataclass(frozen=True)
class GridResult:
    """What was found: the point, shape (n,); its value and violation (0 if admissible); the ends it ran into.

    Attributes:
        end: for each coordinate -1 or 1 if the point lies at that end of the searched box, else 0.
        tried: how many points.
        starts: from how many starts.
    """

    point: np.ndarray
    value: float
    violation: float
    end: tuple[int, ...]
    tried: int
    starts: int


def search(merit: Merit, low: np.ndarray, high: np.ndarray) -> GridResult:
    """The admissible point of least value, or the point that violates the conditions least."""
    n = len(low)
    low = np.where(np.isfinite(low), low, -FAR)
    high = np.where(np.isfinite(high), high, np.maximum(FAR, low + FAR))

    def order(points: np.ndarray) -> np.ndarray:
        """Best first: the least violation, up to rounding, then the least value."""
        values, violations = merit(points)
        return np.lexsort((np.where(np.isnan(values), np.inf, values), np.round(violations, 13)))

    def cube(size: int) -> np.ndarray:
        return np.array(list(product(np.linspace(-1, 1, size), repeat=n)))

    size, closer = FIRST.get(n, max(2, int(POINTS ** (1 / n)))), LATER.get(n, max(2, int(FEWER ** (1 / n))))
    first = (low + high) / 2 + cube(size) * (high - low) / 2
    cell = (high - low) / (size - 1)
    starts: list[np.ndarray] = []
    for index in order(first):
        if all(np.any(np.abs(first[index] - s) > 2.5 * cell) for s in starts):
            starts.append(first[index])
        if len(starts) == STARTS:
            break
    points, reach, around = np.array(starts), 2 * cell, np.vstack([np.zeros(n), cube(closer)])
    tried = len(first)
    while np.any(reach > 1e-14 * np.maximum(1, np.abs(points))):
        near = np.clip(points[:, None] + reach * around, low, high)  # (starts, points, n)
        ranks = np.empty(near.shape[:2])
        ranks.flat[order(near.reshape(-1, n))] = np.arange(ranks.size)
        points = near[np.arange(len(points)), ranks.argmin(1)]
        reach = reach * min(0.5, 8 / (closer - 1))
        tried += ranks.size
    winner = points[order(points)[0]]
    value, violation = (float(x[0]) for x in merit(winner[None, :]))
    close = 1e-9 * np.maximum(1, np.abs(winner))
    ends = tuple(int(up) - int(down) for up, down in zip(winner >= high - close, winner <= low + close, strict=True))
    return GridResult(winner, value, violation if violation > 1e-12 else 0.0, ends, tried, len(starts))


TIGHT = 1e-7  # relative difference of the two sides at which a condition is reported as active
Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Point:
    """A minimizer, symbol to value, and a remark."""

    at: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True)
class StepSizeProblem:
    """A form to be minimized over positive reals, when the whole numbers are fixed.

    Attributes:
        constants: everything that is given.
        ranges: closed ranges by symbol.
        rules: constants that are functions: symbol to (symbol of the argument, function).
        reals: the positive reals that are chosen.
        effort: the evaluations that are left.
    """

    result: Result
    form: Form
    constants: Mapping[str, Value]
    ranges: Ranges
    rules: Mapping[str, tuple[str, Callable[[float], float]]]
    reals: tuple[Quantity, ...]
    effort: EvaluationBudget

    def known(self, counts: Mapping[str, Any]) -> dict[str, Value]:
        """The constants with the whole numbers (or arrays of them) and what depends on them."""
        derived = {
            name: np.vectorize(rule, otypes=[float])(counts[master]) for name, (master, rule) in self.rules.items()
        }
        return {**self.constants, **counts, **derived}

    def leave_free(self, constants: Mapping[str, Value], names: Iterable[str]) -> Partial:
        """The form with these constants free and the others fixed, as sympy expressions."""
        return leave_free(compiled_form(self.result, self.form), constants, names, symbolic=True)

    def minimize(self, counts: Mapping[str, float]) -> Answer:
        """The best positive reals at these whole numbers."""
        constants = self.known(counts)
        fixed = {q.name: self.ranges[q.name][0] for q in self.reals if _single(self.ranges.get(q.name))}
        chosen = {**counts, **fixed}
        free = [q for q in self.reals if q.name not in fixed]
        if not free:
            return self.report(constants, chosen, {}, "fixed by its range")
        partial = self.leave_free({**constants, **fixed}, [q.name for q in free])
        for c in partial.conditions:
            if c.op == "==":
                names = ", ".join(partial.free)
                raise FedboundsError(f"{c.text} is an equation in {names}; solve it and give the value")
        try:
            found = self.convex(partial, free)
        except NotGeometric:
            return self.search(constants, chosen, free)
        if not isinstance(found, Point):
            return found
        return self.report(constants, chosen, self.snap(found.at), "convex in the logarithms", found.note)

    def relax(self, whole: Quantity) -> Point | NotAttained | Infeasible:
        """The best positive reals, with this whole number taken for a real."""
        free = [*self.reals, whole]
        partial = self.leave_free(self.constants, [q.name for q in free])
        return self.convex(partial, free)

    def convex(self, partial: Partial, free: Sequence[Quantity]) -> Point | NotAttained | Infeasible:
        """The geometric program: exact about attainment, then Newton."""
        self.effort.spend(SOLUTION)
        if (why := violated_condition(partial, "whatever is chosen")) is not None:
            return Infeasible(why)
        program, by_term = _program(partial, *_ends(free, self.ranges))
        reduced, directions = program, []
        while reduced.objective and (direction := falls_for_ever(reduced)) is not None:
            directions.append(direction)
            reduced = far_out(reduced, direction)
        solution = solve(reduced)
        if solution.y is None:
            return Infeasible(_conflict(partial, solution.conflicts, self.ranges))
        if directions:
            limits = {name: survivors(terms, directions) for name, terms in by_term.items()}
            values = {n: float(np.exp(log_sum(terms)(solution.y)[0])) for n, terms in limits.items() if terms}
            constant = not any(any(row) for terms in limits.values() for p in terms for row in p.degrees)
            words = _direction(partial.free, directions, None if constant else solution.y)
            stays = {
                n: float(np.exp(v))
                for n, v, m in zip(partial.free, solution.y, _moves(directions), strict=True)
                if not m
            }
            return NotAttained(sum(values.values()), words, values, _advice(free, directions), self.snap(stays))
        unique = not program.objective or is_unique(program, solution.y)
        note = "" if unique else "the minimizer is not unique; this is one of them"
        return Point(dict(zip(partial.free, np.exp(solution.y).tolist(), strict=True)), note)

    def geometric(self, counts: Mapping[str, float]) -> bool:
        """Whether it is a geometric program at these whole numbers."""
        free = [q for q in self.reals if not _single(self.ranges.get(q.name))]
        fixed = {q.name: self.ranges[q.name][0] for q in self.reals if q not in free}
        try:
            partial = self.leave_free({**self.known(counts), **fixed}, [q.name for q in free])
            _program(partial, *_ends(free, self.ranges))
        except NotGeometric:
            return False
        return True

    def search(
        self,
        constants: Mapping[str, Value],
        chosen: Mapping[str, float],
        free: Sequence[Quantity],
    ) -> Answer:
        """The numerical search, for forms that are not geometric programs; whole numbers among the free are rounded."""
        whole = np.array([q.domain.integer for q in free])

        def rounded(values: np.ndarray) -> np.ndarray:
            return np.where(whole, np.rint(values), values)

        def values_and_violations(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.effort.spend(passes(len(points)))
            settings = dict(zip([q.name for q in free], rounded(np.exp(points)).T, strict=True))
            evaluation = evaluate(self.result, {**constants, **chosen, **settings}, form=self.form.name, strict=False)
            worst = np.zeros(len(points))
            for c in evaluation.conditions:
                scale = np.maximum(np.maximum(np.abs(c.left), np.abs(c.right)), 1e-300)
                with np.errstate(invalid="ignore"):
                    excess = np.abs(c.left - c.right) / scale
                worst = np.maximum(worst, np.where(c.holds, 0.0, np.where(np.isnan(excess), np.inf, excess)))
            return np.broadcast_to(evaluation.value, worst.shape), worst

        open_ = np.array([q.domain.high_open and q.name not in self.ranges for q in free])
        low, high = _ends(free, self.ranges)
        found: GridResult = search(values_and_violations, low, np.where(open_, np.minimum(high, high - 1e-12), high))
        at = self.snap(dict(zip([q.name for q in free], rounded(np.exp(found.point)).tolist(), strict=True)))
        if found.violation > 0:
            return Undecided(f"no admissible choice among {found.tried} that were tried")
        moving = [(q, end) for q, end in zip(free, found.end, strict=True) if end and q.name not in self.ranges]
        if moving:
            words = [f"{q.name} -> {'0' if end < 0 else _infinity(q)}" for q, end in moving]
            stays = {n: v for n, v in {**chosen, **at}.items() if n not in {q.name for q, _ in moving}}
            endless = any(end < 0 or np.isinf(q.domain.high) for q, end in moving)
            direction = " and ".join(words) + (" (searched as far as 12 decades)" if endless else "")
            return NotAttained(found.value, direction, {}, range_advice(*moving[0]), stays)
        return self.report(constants, chosen, at, f"grids closing in from {found.starts} starts")

    def snap(self, at: Mapping[str, float]) -> dict[str, float]:
        """An end of a range is that end, not the exponential of its logarithm."""
        ends = {
            name: [e for e in self.ranges.get(name, ()) if abs(value - e) <= 1e-11 * e] for name, value in at.items()
        }
        return {name: ends[name][0] if ends[name] else value for name, value in at.items()}

    def report(
        self,
        constants: Mapping[str, Value],
        chosen: Mapping[str, float],
        at: Mapping[str, float],
        method: str,
        note: str = "",
    ) -> Answer:
        """The answer at this point, with what is active there."""
        every = {**chosen, **at}
        evaluation = evaluate(self.result, {**constants, **every}, form=self.form.name, strict=False)
        active: list[str] = []
        moving = self.leave_free(constants, at).conditions if at else ()
        texts = {(c.op, c.why) for c in moving}
        for c, checked in zip(self.form.conditions, evaluation.conditions, strict=True):
            left, right = float(checked.left), float(checked.right)
            tight = abs(left - right) <= TIGHT * max(abs(left), abs(right))
            if tight and (c.op, c.why) in texts:
                active.append(checked.text)
                if c.op in ("<", ">"):
                    return NotAttained(float(evaluation.value), f"towards {c.left} = {c.right}", at=every)
            if not checked.holds:
                return Infeasible(f"{checked.text} fails: {left:.6g} against {right:.6g} ({c.why})")
        for q in self.reals:
            low, high = self.ranges.get(q.name, (0.0, np.inf))
            value = every.get(q.name, np.nan)
            active += [f"{q.name} >= {low:g}"] if value == low else []
            active += [f"{q.name} <= {high:g}"] if value == high and high != low else []
            if q.name not in self.ranges and q.domain.high_open and value >= q.domain.high * (1 - TIGHT):
                stays = {n: v for n, v in every.items() if n != q.name}
                return NotAttained(float(evaluation.value), f"{q.name} -> {q.domain.high:g}", at=stays)
            if q.name not in self.ranges and not q.domain.high_open and value >= q.domain.high * (1 - TIGHT):
                active.append(f"{q.name} <= {q.domain.high:g}")
        order = [n for n in (*chosen, *at)]
        return Minimum(
            float(evaluation.value), {n: float(every[n]) for n in order}, tuple(active), evaluation, method, note
        )


def _infinity(quantity: Quantity) -> str:
    return "infinity" if np.isinf(quantity.domain.high) else f"{quantity.domain.high:g}"


def _single(ends: tuple[float, float] | None) -> bool:
    return ends is not None and ends[0] == ends[1]


def _ends(free: Sequence[Quantity], ranges: Ranges) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of the ends of each range, else of its domain."""
    with np.errstate(divide="ignore"):
        low = np.log([ranges.get(q.name, (q.domain.low, 0))[0] for q in free])
        high = np.log([ranges.get(q.name, (0, q.domain.high))[1] for q in free])
    return low, high


def _program(
    partial: Partial, low: np.ndarray, high: np.ndarray
) -> tuple[GeometricProgram, dict[str, tuple[Product, ...]]]:
    if partial.opaque or any(c.op == "==" for c in partial.conditions):
        raise NotGeometric
    reader = ProductReader(partial.free, partial.values)
    by_term = {name: reader.sum(e) for name, e in partial.terms.items()}
    objective = tuple(p for terms in by_term.values() for p in terms)
    if not all(p.convex for p in objective):
        raise NotGeometric
    constraints = []
    for c in partial.conditions:
        left, right = (c.left, c.right) if c.op in ("<=", "<") else (c.right, c.left)
        constraints.append(reader.condition(left, right))
    return GeometricProgram(objective, tuple(constraints), low, high), by_term


def _conflict(partial: Partial, conflicts: Sequence[int], ranges: Ranges) -> str:
    texts = [partial.conditions[i].words(partial.result.notation) for i in conflicts]
    texts += [f"{low:g} <= {name} <= {high:g}" for name, (low, high) in ranges.items() if name in partial.free]
    return f"no {', '.join(partial.free)} meets all of: {'; '.join(texts)}"


def _moves(directions: Sequence[Sequence[Any]]) -> list[Any]:
    """For each variable its first move that is not zero."""
    return [next((d[i] for d in directions if d[i]), 0) for i in range(len(directions[0]))]


def _direction(free: Sequence[str], directions: Sequence[Sequence[Any]], y: np.ndarray | None) -> str:
    moves = _moves(directions)
    words = [f"{name} -> {'infinity' if move > 0 else '0'}" for name, move in zip(free, moves, strict=True) if move]
    text = " and ".join(words)
    moving = [i for i, move in enumerate(moves) if move]
    if y is not None and len(directions) == 1 and len(moving) == 2:
        i, j = moving
        power = -moves[i] / moves[j]  # x_i * x_j^power stays
        held = f"{free[i]}*{free[j]}" if power == 1 else f"{free[i]}*{free[j]}**({power})"
        text += f" with {held} = {np.exp(y[i] + float(power) * y[j]):.6g}"
    elif len(directions) == 1 and len(moving) > 2:
        text += ", like " + ", ".join(f"{free[i]} = s**({moves[i]})" for i in moving) + " as s -> infinity"
    return text


def _advice(free: Sequence[Quantity], directions: Sequence[Sequence[Any]]) -> str:
    moves = [(q, move) for q, move in zip(free, _moves(directions), strict=True) if move]
    q, move = next(((q, move) for q, move in moves if move > 0), moves[0])
    return range_advice(q, move)


def range_advice(quantity: Quantity, end: float) -> str:
    """What to ask instead, where a constant runs off to one end of its domain."""
    legal = "1:1000" if quantity.domain.integer else "1:100" if end > 0 else "1e-6:1"
    if np.isfinite(quantity.domain.high):
        legal = f"{0.01 * quantity.domain.high:g}:{0.99 * quantity.domain.high:g}"
    return f"ask for a range, e.g. --within {quantity.name}={legal}"
