"""Random rounds of Fed-Norm-SGDA: strongly concave quadratics with ripples or kinks, and functions Lipschitz in x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple, Self

import numpy as np

from fedbounds.empirical.falsification.instances.piecewise_quadratics import PiecewiseQuadratic
from fedbounds.empirical.falsification.instances.population import perturb, shake
from fedbounds.empirical.papers.fed_norm_sgda.instances.problems import (
    REGIMES,
    RoundInstances,
    lift,
    log_cosh,
    one_point,
    one_point_slope,
    times,
)
from fedbounds.empirical.problems.minimax_bounded import LOG_COSH, ONE_POINT


def shared_maximizer(z: RoundInstances) -> Array:
    """Where all clients have one maximizer in y, (B,)."""
    return np.asarray(~z.slope_y.any(axis=(1, 2)))


def iterate(contraction: Callable[[Array], Array], start: Array) -> Array:
    """The fixed point of a map that halves distances at least."""
    here = start
    for _ in range(60):
        before, here = here, contraction(here)
        if (np.abs(here - before) <= 1e-15 * (np.abs(here) + np.abs(start))).all():
            break
    return here


@dataclass(frozen=True, eq=False)
class CoupledInstances(RoundInstances):
    r"""$f_0=\frac12x^\top Ax+\sum_j\frac\rho{\omega^2}\cos(\omega x_j)+x^\top By-\frac12y^\top My$, strongly concave"""

    curvature: Array  # A, symmetric, (B, d_x, d_x)
    ripple: Array  # ripple, frequency: $\rho$ and $\omega$, (B,)
    frequency: Array
    coupling: Array  # B, (B, d_x, d_y)
    down: Array  # the diagonal of M, positive, (B, d_y)

    def neighbor(self, rng: np.random.Generator) -> Self:
        """Another problem of the family close by."""
        A = shake(self.curvature, rng)
        return replace(
            super().neighbor(rng),
            slope_y=shake(self.slope_y, rng),
            curvature=(A + A.swapaxes(1, 2)) / 2,
            coupling=shake(self.coupling, rng),
            **{name: perturb(getattr(self, name), rng) for name in ("ripple", "frequency", "down")},
        )

    def common(self, x: Array, y: Array) -> tuple[Array, Array]:
        in_x = times(self.curvature, x) + self._bent(x) + times(self.coupling, y)
        return in_x, times(self.coupling.swapaxes(1, 2), x) - lift(self.down, y) * y

    def common_value(self, x: Array, y: Array) -> Array:
        in_x = (x * times(self.curvature, x)).sum(axis=-1) / 2 + self._bend(x).sum(axis=-1)
        return in_x + (x * times(self.coupling, y)).sum(axis=-1) - (lift(self.down, y) * y**2).sum(axis=-1) / 2

    def _bend(self, x: Array) -> Array:
        """What is no quadratic, by coordinate."""
        return self._lift(self.ripple / self.frequency**2, x) * np.cos(self._lift(self.frequency, x) * x)

    def _bent(self, x: Array) -> Array:
        """Its slope."""
        return -self._lift(self.ripple / self.frequency, x) * np.sin(self._lift(self.frequency, x) * x)

    @property
    def _bends(self) -> tuple[Array, Array]:
        """Its least and largest curvature, (B, d_x) or broadcasting to it."""
        return -self.ripple[:, None], self.ripple[:, None]

    def _lift(self, v: Array, x: Array) -> Array:
        return lift(v[:, None], x)

    def maximizer(self, x: Array) -> Array:
        pull = self.mean_slopes[1] / self.mean_scale[:, None]
        moved = times(self.coupling.swapaxes(1, 2), x)
        return (moved + lift(pull, moved)) / lift(self.down, moved)

    def _smooth(self) -> Array:
        """A + B M^{-1} B^T, (B, d_x, d_x)."""
        return self.curvature + (self.coupling / self.down[:, None]) @ self.coupling.swapaxes(1, 2)

    def proximal(self, x: Array) -> Array:
        """By iteration: the slope of what is no quadratic contracts by two at least."""
        s, L, d = self.mean_scale[:, None], self.smoothness[:, None], x.shape[-1]
        fixed = self.mean_slopes[0] + times(self.coupling, self.mean_slopes[1] / self.down)
        inverse = np.linalg.inv(s[:, None] * self._smooth() + 2 * L[:, None] * np.eye(d))
        target, size = 2 * lift(L, x) * x - lift(fixed, x), lift(s, x)
        return iterate(lambda u: times(inverse, target - size * self._bent(u)), times(inverse, target))

    def _largest(self, block: Array) -> Array:
        """The largest norm of a matrix whose first entries on the diagonal have any curvature of `_bends` on top."""
        low, high = (np.broadcast_to(v, self.x.shape) for v in self._bends)
        sides = product((False, True), repeat=self.x.shape[1])
        tops = (np.pad(np.where(side, high, low), ((0, 0), (0, block.shape[1] - len(side)))) for side in sides)
        norms = [np.linalg.norm(block + t[:, :, None] * np.eye(block.shape[1]), ord=2, axis=(1, 2)) for t in tops]
        return np.max(norms, axis=0)

    @cached_property
    def common_smoothness(self) -> Array:
        """The norm of the Hessian, which is convex in the ripple's curvatures."""
        rows = (
            [self.curvature, self.coupling],
            [self.coupling.swapaxes(1, 2), -self.down[:, :, None] * np.eye(self.down.shape[1])],
        )
        return self._largest(np.concatenate([np.concatenate(row, axis=2) for row in rows], axis=1))

    @cached_property
    def strong_concavity(self) -> Array:
        return self.mean_scale * self.down.min(axis=1)

    @cached_property
    def envelope_smoothness(self) -> Array:
        """The norm of the Hessian of Phi~, which is convex in the ripple's curvatures."""
        return self.mean_scale * self._largest(self._smooth())

    @cached_property
    def steepest(self) -> Array:
        return np.ones(len(self))

    def met(self) -> dict[str, Array]:
        """One-point concave at a maximizer that all clients share."""
        always = np.ones(len(self), dtype=bool)
        return {"strongly-concave": always, "concave": always, "one-point-concave": shared_maximizer(self)}


@dataclass(frozen=True, eq=False)
class KinkedGames(CoupledInstances):
    r"""The same with $\sum_jh_j(x_j)$ for the ripples, piecewise quadratic."""

    knots: Array  # ascending, (B, d_x, m)
    pieces: Array  # the curvatures between them, of either sign, (B, d_x, m+1)

    def neighbor(self, rng: np.random.Generator) -> Self:
        """Another problem of the family close by; some pieces take the curvature of others, or its opposite."""
        others = rng.permuted(self.pieces, axis=2) * rng.choice([-1, 1], self.pieces.shape)
        jump = (rng.random(self.pieces.shape) < 0.2) & (rng.random((len(self), 1, 1)) < 0.3)
        return replace(
            super().neighbor(rng),
            knots=np.sort(shake(self.knots, rng), axis=2),
            pieces=np.where(jump, others, shake(self.pieces, rng)),
        )

    @property
    def _function(self) -> PiecewiseQuadratic:
        return PiecewiseQuadratic(self.knots, self.pieces, np.zeros(self.x.shape))

    def _at(self, x: Array, function: Callable[[Array], Array]) -> Array:
        """A function of points (B, d, X) at points (B, ..., d)."""
        points = np.moveaxis(x, -1, 1)
        return np.moveaxis(function(points.reshape(*points.shape[:2], -1)).reshape(points.shape), 1, -1)

    def _bend(self, x: Array) -> Array:
        return self._at(x, self._function.value)

    def _bent(self, x: Array) -> Array:
        return self._at(x, self._function.slope)

    @property
    def _bends(self) -> tuple[Array, Array]:
        return self.pieces.min(axis=2), self.pieces.max(axis=2)


@dataclass(frozen=True, eq=False)
class BoundedInstances(RoundInstances):
    r"""$f_0=\sum_j\rho\cos x_j-q\,\psi(y_j-s\sin x_j)$ in equal dimensions: Lipschitz in x."""

    ripple: Array  # $\rho$, (B,)
    height: Array  # height, bend: q and s, (B,)
    bend: Array
    concave: Array  # $\psi(u)=\log\cosh u$ where it holds, else $|u|(1-e^{-|u|})$, (B,)

    def neighbor(self, rng: np.random.Generator) -> Self:
        """Another problem of the family close by; slopes in y stay as they are."""
        moved = replace(
            super().neighbor(rng),
            **{name: perturb(getattr(self, name), rng) for name in ("ripple", "height", "bend")},
        )
        room = 0.95 * moved.height * moved.mean_scale
        lean = np.maximum(np.abs(moved.mean_slopes[1]).max(axis=1), 1e-300)
        return replace(moved, slope_y=moved.slope_y * (np.minimum(lean, room) / lean)[:, None, None])

    def _pieces(self, x: Array, y: Array) -> tuple[Array, ...]:
        """rho, q, s, whether concave, and u, for points."""
        parts = tuple(lift(v[:, None], x) for v in (self.ripple, self.height, self.bend, self.concave))
        return *parts, y - parts[2] * np.sin(x)

    def common(self, x: Array, y: Array) -> tuple[Array, Array]:
        ripple, q, s, concave, u = self._pieces(x, y)
        slope = q * np.where(concave, np.tanh(u), one_point_slope(u))
        return -ripple * np.sin(x) + s * np.cos(x) * slope, -slope

    def common_value(self, x: Array, y: Array) -> Array:
        ripple, q, _, concave, u = self._pieces(x, y)
        hill = np.where(concave, log_cosh(u), one_point(u))
        return (ripple * np.cos(x) - q * hill).sum(axis=-1)

    @cached_property
    def _top(self) -> Array:
        """y - s sin x at the maximizer, (B, d)."""
        return np.arctanh(self.mean_slopes[1] / (self.mean_scale * self.height)[:, None])

    def maximizer(self, x: Array) -> Array:
        return lift(self.bend[:, None], x) * np.sin(x) + lift(self._top, x)

    def proximal(self, x: Array) -> Array:
        """By iteration: Phi~ is Lf-smooth, so that a step of 1/(2 Lf) contracts by two at least."""
        L = lift(self.smoothness[:, None], x)
        return iterate(lambda u: x - self.mean_gradients(u, self.maximizer(u))[0] / (2 * L), x)

    def _slopes(self) -> tuple[Array, Array]:
        """The largest slopes of psi, and of that slope, (B,)."""
        first, second = ((LOG_COSH.steepest, ONE_POINT.steepest), (LOG_COSH.sharpest, ONE_POINT.sharpest))
        return np.where(self.concave, *first), np.where(self.concave, *second)

    @cached_property
    def common_smoothness(self) -> Array:
        """A bound of the norm of the Hessian."""
        (first, second), q, s = self._slopes(), self.height, self.bend
        return np.hypot(self.ripple, q * s * first) + second * q * (1 + s**2)

    @cached_property
    def strong_concavity(self) -> Array:
        return np.zeros(len(self))

    @cached_property
    def envelope_smoothness(self) -> Array:
        return self.mean_scale * np.hypot(self.ripple, self.height * self.bend)

    @cached_property
    def steepest(self) -> Array:
        """A bound, attained in one dimension without slopes."""
        of_f0 = np.sqrt(self.x.shape[1]) * np.hypot(self.ripple, self.height * self.bend * self._slopes()[0])
        return (self.scale * of_f0[:, None] + np.linalg.norm(self.slope_x, axis=2)).max(axis=1)

    def met(self) -> dict[str, Array]:
        """One-point concave at a maximizer that all clients share."""
        always = np.ones(len(self), dtype=bool)
        return {"lipschitz-in-x": always, "concave": self.concave, "one-point-concave": shared_maximizer(self)}


Array = np.ndarray


class PopulationShape(NamedTuple):
    """What all instances of one population share."""

    clients: int  # n
    sampled: int  # P
    steps: int  # the most local steps of a client
    in_x: int  # in_x, in_y: dimensions
    in_y: int


def draw_coefficients(rng: np.random.Generator, tau: Array, steps: int) -> Array:
    """SGDA, momentum or variable step sizes, one kind for all clients of an instance, (B, n, steps + 1, steps)."""
    B = len(tau)
    k, j = np.arange(steps + 1)[:, None], np.arange(steps)
    momentum = rng.uniform(0, 0.95, (B, 1, 1))
    kinds = np.stack([
        np.ones((B, steps + 1, steps)),
        (1 - momentum ** np.maximum(k - j, 0)) / (1 - momentum),
        np.repeat(10.0 ** rng.uniform(-1.5, 1, (B, 1, steps)), steps + 1, axis=1),
    ])  # fmt: skip
    chosen = kinds[rng.choice(3, size=B, p=(0.5, 0.25, 0.25)), np.arange(B)]
    some = (j < k) & (k <= tau[:, :, None, None])
    return np.where(some, chosen[:, None], 0.0)


def unit(rng: np.random.Generator, *shape: int) -> Array:
    """Random unit vectors."""
    v = rng.normal(size=shape)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def draw_steps(rng: np.random.Generator, B: int, tau: Array) -> dict[str, Array]:
    """Caps of the step sizes, and the shares taken of them, half the time all."""
    regime = rng.choice(len(REGIMES), size=B)
    cap_steps = np.where(rng.random((B, 4)) < 0.5, 1.0, 10.0 ** rng.uniform(-2, 0, (B, 4)))
    without = 10.0 ** rng.uniform(-1.5, 0.7, (B, 4))
    nu = np.minimum(2.0, tau.max(axis=1))
    return {
        "regime": regime,
        "price": np.where(rng.random(B) < 0.5, nu, 1.0),
        "shares": np.where(regime[:, None] == 0, without, cap_steps),
    }


def draw_shared(
    rng: np.random.Generator, B: int, shape: PopulationShape, sizes: Array, even: Array
) -> dict[str, Array]:
    """What every family draws alike."""
    n, T, dx, dy = shape.clients, shape.steps, shape.in_x, shape.in_y

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    w = np.where(pick(0, 0, 1)[:, None] > 0, np.full((B, n), 1 / n), rng.dirichlet(np.full(n, 1.0), size=B))
    tau = np.where(pick(0, 1)[:, None] > 0, T, rng.integers(1, T + 1, (B, n)))
    less = np.where(pick(0, 1)[:, None] > 0, 1.0, rng.uniform(0, 1, (B, n)) * (rng.random((B, n)) < 0.7))
    less[np.arange(B), rng.integers(0, n, B)] = 1.0
    return {
        "scale": np.where(even[:, None], 1.0, rng.uniform(0.2, 2, (B, n))),
        "slope_x": sizes[:, None, None] * rng.normal(size=(B, n, dx)),
        "slope_y": sizes[:, None, None] * rng.normal(size=(B, n, dy)),
        "w": w, "p": rng.dirichlet(np.full(n, 1.0), size=B), "tau": tau, "coefficients": draw_coefficients(rng, tau, T),
        "sigma": pick(0.0, 0.1, 1.0, 10.0)[:, None] * less, "beta": pick(0.0, 0.0, 0.5, 2.0)[:, None] * less,
        "noise_x": unit(rng, B, n, dx), "noise_y": unit(rng, B, n, dy), "theta": pick(0.1, 1.0),
        **draw_steps(rng, B, tau),
    }  # fmt: skip


def draw_coupled(rng: np.random.Generator, B: int, shape: PopulationShape) -> CoupledInstances:
    """Quadratics, some with ripples, some without coupling; some start where the envelope has no gradient."""
    dx, dy = shape.in_x, shape.in_y

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    even = pick(0, 1) > 0
    shared = draw_shared(rng, B, shape, pick(0.0, 0.0, 0.1, 1.0), even)
    spread = rng.normal(size=(B, dx, dx))
    flat = pick(1, 1, -1)[:, None, None] * np.eye(dx)
    A = pick(0.1, 1.0, 3.0)[:, None, None] * np.where(
        pick(0, 1)[:, None, None] > 0, (spread + spread.swapaxes(1, 2)) / 2, flat
    )
    down = pick(0.1, 1.0, 3.0)[:, None] * np.where(pick(0, 1)[:, None] > 0, 1.0, rng.uniform(0.1, 1, (B, dy)))
    z = CoupledInstances(
        x=pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dx)),
        y=np.zeros((B, dy)),
        snapshot=np.zeros((B, dx)),
        **shared,
        sampled=shape.sampled,
        curvature=A,
        ripple=pick(0.0, 0.0, 1.0, 3.0),
        frequency=pick(1.0, 5.0, 20.0),
        coupling=pick(0.0, 0.1, 1.0, 3.0)[:, None, None] * rng.normal(size=(B, dx, dy)),
        down=down,
    )  # fmt: skip
    z = replace(
        z,
        y=z.maximizer(z.x) + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dy)),
        snapshot=z.x + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dx)),
    )
    flat_here = z.mean_gradients(z.x, z.maximizer(z.x))[0][:, None] * (even & (pick(0, 1) > 0))[:, None, None]
    return replace(z, slope_x=z.slope_x - flat_here)


def draw_kinked(rng: np.random.Generator, B: int, shape: PopulationShape) -> KinkedGames:
    """The same with kinks about the round's start instead of ripples, as far away as a step or ten go."""
    z = draw_coupled(rng, B, shape)
    near = 10.0 ** rng.uniform(-3, 0, (B, 1, 1)) * np.maximum(z.sigma.max(axis=1), 0.1)[:, None, None]
    knots = np.sort(z.x[:, :, None] + near * rng.normal(size=(B, shape.in_x, 2)), axis=2)
    pieces = rng.choice([0.3, 1.0, 3.0], size=(B, 1, 1)) * rng.choice([-1.0, 0.0, 1.0], size=(B, shape.in_x, 3))
    given = {f.name: getattr(z, f.name) for f in fields(z)} | {"ripple": 0 * z.ripple, "curvature": 0.1 * z.curvature}
    return KinkedGames(**given, knots=knots, pieces=pieces)


def draw_bounded(rng: np.random.Generator, B: int, shape: PopulationShape) -> BoundedInstances:
    """Functions that are Lipschitz in x, concave in y or only one-point concave."""
    d = shape.in_x

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    concave, even = pick(0, 1, 1) > 0, pick(0, 1) > 0
    shared = draw_shared(rng, B, shape, pick(0.0, 0.05, 0.3), even)
    height = pick(0.3, 1.0, 3.0)
    lean = np.abs((shared["w"][:, :, None] * shared["slope_y"]).sum(axis=1)).max(axis=1)
    room = 0.9 * height * (shared["w"] * shared["scale"]).sum(axis=1)
    fitted = shared["slope_y"] * np.minimum(1, room / np.maximum(lean, 1e-300))[:, None, None]
    shared["slope_y"] = fitted * (concave & (pick(0, 1) > 0))[:, None, None]
    z = BoundedInstances(
        x=rng.uniform(-3, 3, (B, d)),
        y=np.zeros((B, d)),
        snapshot=np.zeros((B, d)),
        **shared,
        sampled=shape.sampled,
        ripple=pick(0.0, 0.5, 1.0),
        height=height,
        bend=pick(0.0, 0.3, 1.0),
        concave=concave,
    )
    return replace(
        z,
        y=z.maximizer(z.x) + pick(0.0, 0.3, 2.0)[:, None] * rng.normal(size=(B, d)),
        snapshot=z.x + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, d)),
    )


def draw_far(rng: np.random.Generator, B: int, shape: PopulationShape) -> BoundedInstances:
    """One-point concave functions, from where they curve upwards: there ascent adds to the noise before it."""
    z = draw_bounded(rng, B, shape)
    z = replace(z, concave=np.zeros(B, dtype=bool), slope_y=0 * z.slope_y, sigma=np.maximum(z.sigma, 0.1))
    return replace(z, y=z.maximizer(z.x) + rng.uniform(2, 6, z.y.shape) * rng.choice([-1, 1], size=z.y.shape))
