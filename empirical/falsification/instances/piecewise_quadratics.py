r"""Clients with piecewise quadratic functions and noise of two values, and every path that an algorithm takes on them.

Along each coordinate $F_n''$ is constant between knots, of either sign, and beyond the outermost knots at least 0 and
the same for all clients: $\nabla F_n$ is continuous, $\max|F_n''|$ is the least smoothness constant, and what gradients
differ by is piecewise linear and constant far away, so that its supremum is at a knot. Huber's function (curvature L
inside, 0 outside), its reverse and all that are in between are among them, those where first-order methods are at their
worst (Taylor, Hendrickx and Glineur 2017, Drori and Shamir 2020); noise of any law has the same second moments on
quadratics, here $\pm s$ carries a model over a knot or does not.

Coordinates share only the participation, so each has its own tree of paths, with two branches for each draw of noise.
If these are too many, paths are sampled, and the measurement has a confidence bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import WHOLE, Range, Ranges, always, nonnegative, reals

UNLIKELY = 1e-12  # that a confidence bound fails, on one instance: less than 1e-6 on a million of them

PILOT = 10  # one path in so many says at which size values are cut
CANCELED = 1e-14  # what is left of numbers that cancel, relative to them


class PiecewiseQuadratic(NamedTuple):
    """Functions of one variable, whatever axes come first, (...)."""

    knots: np.ndarray  # ascending, (..., m), at least one
    curvatures: np.ndarray  # of the pieces, (..., m+1)
    first: np.ndarray  # the slope at the first knot, (...)

    @property
    def at_knots(self) -> np.ndarray:
        """The slopes there, (..., m)."""
        rises = self.curvatures[..., 1:-1] * np.diff(self.knots, axis=-1)
        rises = np.concatenate([np.zeros((*rises.shape[:-1], 1)), rises], axis=-1)
        return self.first[..., None] + np.cumsum(rises, axis=-1)

    def _pieces(self, x: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of every piece the slope at its knot, its curvature, and how far each point, (..., X), goes into it."""
        slopes, last = self.at_knots[..., None], self.knots.shape[-1] - 1
        yield slopes[..., 0, :], self.curvatures[..., 0, None], np.minimum(x - self.knots[..., 0, None], 0)
        for k in range(last + 1):
            way = np.maximum(x - self.knots[..., k, None], 0)
            if k < last:
                way = np.minimum(way, (self.knots[..., k + 1] - self.knots[..., k])[..., None])
            yield slopes[..., k, :], self.curvatures[..., k + 1, None], way

    def slope(self, x: np.ndarray) -> np.ndarray:
        """At points (..., X)."""
        return self.first[..., None] + sum(curvature * way for _, curvature, way in self._pieces(x))

    def value(self, x: np.ndarray) -> np.ndarray:
        """At points (..., X), above that at the first knot."""
        return np.asarray(sum(slope * way + curvature / 2 * way**2 for slope, curvature, way in self._pieces(x)))

    def value_change(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        """From x to x + step, (..., X), without the cancellation of two nearly equal values."""
        found = step * self.slope(x) + self.curvatures[..., 0, None] * step**2 / 2
        for k in range(self.knots.shape[-1]):
            here = x - self.knots[..., k, None]
            there, bend = here + step, self.curvatures[..., k + 1] - self.curvatures[..., k]
            enters = np.where(here > 0, step**2 / 2, np.maximum(there, 0) ** 2 / 2)
            leaves = -(here**2) / 2 - step * here
            found = found + bend[..., None] * np.where((here > 0) & (there < 0), leaves, enters)
        return found

    def minimum(self) -> tuple[np.ndarray, np.ndarray]:
        """The least value above that at the first knot, minus infinity where there is none, and a point, (...)."""
        slopes, a = self.at_knots, self.curvatures
        knots = np.broadcast_to(self.knots, slopes.shape)
        starts = np.concatenate([knots[..., :1], knots], axis=-1)
        slopes = np.concatenate([slopes[..., :1], slopes], axis=-1)
        ways = -slopes / np.where(a > 0, a, np.inf)
        longest = np.concatenate([np.diff(knots, axis=-1), np.full((*knots.shape[:-1], 1), np.inf)], axis=-1)
        ways = np.concatenate([np.minimum(ways[..., :1], 0), np.clip(ways[..., 1:], 0, longest)], axis=-1)
        points = starts + ways
        values = self.value(np.concatenate([points, knots], axis=-1))
        best = values.argmin(axis=-1)[..., None]
        where = np.take_along_axis(np.concatenate([points, knots], axis=-1), best, axis=-1)[..., 0]
        least = np.take_along_axis(values, best, axis=-1)[..., 0]
        falls_left = (a[..., 0] < 0) | ((a[..., 0] == 0) & (slopes[..., 0] > 0))
        falls_right = (a[..., -1] < 0) | ((a[..., -1] == 0) & (slopes[..., -1] < 0))
        return np.where(falls_left | falls_right, -np.inf, least), where


@dataclass(frozen=True, eq=False)
class KinkedClients(Population):
    r"""B objectives $f=\frac1N\sum_nF_n$ with a start and noise."""

    ranges: ClassVar[Ranges] = {
        "knots": reals("d m"),
        "curvatures": reals("N d m+1"),
        "first": reals("N d"),
        "start": reals("d"),
        "noise": nonnegative("N d"),
        "seeds": Range(WHOLE),
        "samples": Range(WHOLE),
    }

    knots: np.ndarray  # of all clients, ascending, (B, d, m)
    # of every client between them, (B, N, d, m+1); the outer ones are at least 0 and those of all
    curvatures: np.ndarray
    first: np.ndarray  # $F_{n}'$ at the first knot, (B, N, d)
    start: np.ndarray  # $x_0$, (B, d)
    noise: np.ndarray  # s; every gradient is off by s or -s, each with chance 1/2, in every coordinate, (B, N, d)
    seeds: np.ndarray  # of the paths that are drawn, (B,)
    samples: int  # how many paths are drawn; 0 for all that there are

    def rules(self) -> dict[str, np.ndarray]:
        """Beyond the ranges."""
        return super().rules() | {
            "the knots ascend": (np.diff(self.knots, axis=2) >= 0).all(axis=(1, 2)),
            "the outer curvatures are at least 0 and those of all clients": self.same_far_away,
            "some curvature is not zero": self.smoothness > 0,
            "no paths are drawn, or enough for a confidence bound": always(
                self.samples == 0 or self.samples >= 2 * PILOT, self.start
            ),
        }

    @property
    def left_side(self) -> LeftSide:
        """Over every outcome, or on paths that are drawn."""
        return "sampled" if self.samples else "every outcome"

    def resample(self) -> Self:
        """The same on other paths."""
        return replace(self, seeds=self.seeds + 1)

    @property
    def clients(self) -> int:
        """N."""
        return self.first.shape[1]

    @property
    def each(self) -> PiecewiseQuadratic:
        """The clients' functions, (B, N, d)."""
        return PiecewiseQuadratic(self.knots[:, None], self.curvatures, self.first)

    def weighted(self, weights: np.ndarray) -> PiecewiseQuadratic:
        """sum_n w_n F_n for weights (B, N), (B, d)."""
        curvatures = np.einsum("bn,bndk->bdk", weights, self.curvatures)
        return PiecewiseQuadratic(self.knots, curvatures, np.einsum("bn,bnd->bd", weights, self.first))

    @cached_property
    def objective(self) -> PiecewiseQuadratic:
        """f, (B, d)."""
        return PiecewiseQuadratic(self.knots, self.curvatures.mean(axis=1), self.first.mean(axis=1))

    def above_infimum(self, function: PiecewiseQuadratic) -> np.ndarray:
        """A function at the start above its infimum, (B,)."""
        return (function.value(self.start[..., None])[..., 0] - function.minimum()[0]).sum(axis=1)

    @cached_property
    def smoothness(self) -> np.ndarray:
        """L, (B,)."""
        return np.abs(self.curvatures).max(axis=(1, 2, 3))

    @cached_property
    def sigma(self) -> np.ndarray:
        """The largest of the clients', (B,)."""
        return np.sqrt((self.noise**2).sum(axis=2).max(axis=1))

    @cached_property
    def slopes(self) -> np.ndarray:
        """The clients' at the knots, where suprema of what they differ by are attained, (B, N, d, m)."""
        return self.each.at_knots

    @cached_property
    def offsets(self) -> np.ndarray:
        r"""$F_n'-f'$ at the knots, zero where only rounding is left of it, (B, N, d, m)."""
        return remove_rounding(self.slopes - self.slopes.mean(axis=1, keepdims=True), self.slopes)

    @cached_property
    def divergences(self) -> np.ndarray:
        r"""$\sup_x\|\nabla F_n-\nabla f\|^2$, (B, N)."""
        return supremum(self.offsets)

    @cached_property
    def same_far_away(self) -> np.ndarray:
        """Whether no two clients differ by more and more, and none is curved downwards there, (B,)."""
        outer = self.curvatures[..., [0, -1]]
        return np.asarray((np.ptp(outer, axis=1) == 0).all(axis=(1, 2)) & (outer >= 0).all(axis=(1, 2, 3)))

    def move_clients(self, rng: np.random.Generator, least: np.ndarray | float = -np.inf) -> dict[str, np.ndarray]:
        """Neighbors of all that is said here; clients that agree go on to do so, and curvatures stay within L."""
        L = self.smoothness[:, None, None, None]
        extreme = (rng.random(self.curvatures.shape) < 0.2) & (rng.random((len(self), 1, 1, 1)) < 0.3)
        curvatures = np.where(extreme, L * rng.choice([-1, 0, 1], self.curvatures.shape), shake(self.curvatures, rng))
        least = np.maximum(np.reshape(least, (-1, 1, 1, 1)), -L)
        alike = np.ptp(self.curvatures, axis=1).max(axis=(1, 2)) + np.ptp(self.first, axis=1).max(axis=1) == 0
        curvatures = clip_curvatures(np.where(alike[:, None, None, None], curvatures[:, :1], curvatures), least, L)
        for outer in (0, -1):  # what is flat far away stays so
            curvatures[..., outer] *= self.curvatures[:, :1, :, outer] > 0
        curved = np.abs(curvatures).max(axis=(1, 2, 3), keepdims=True) > 0
        first, noise = shake(self.first, rng), perturb(self.noise, rng)
        one, equal = alike[:, None, None], (np.ptp(self.noise, axis=1) == 0)[:, None]
        return {
            "knots": np.sort(shake(self.knots, rng), axis=2),
            "curvatures": np.where(curved, curvatures, self.curvatures),
            "first": np.where(one, first[:, :1], first),
            "start": shake(self.start, rng),
            "noise": np.where(equal, noise[:, :1], noise),
            "seeds": rng.integers(2**62, size=len(self)),
        }


def remove_rounding(left: np.ndarray, of: np.ndarray) -> np.ndarray:
    """What is left of numbers of this size, zero where it is rounding; both (B, ...)."""
    size = np.abs(of).max(axis=tuple(range(1, of.ndim)))
    return np.where(np.abs(left) < CANCELED * size.reshape(-1, *[1] * (left.ndim - 1)), 0.0, left)


def supremum(slopes: np.ndarray) -> np.ndarray:
    """The largest squared length of a gradient from its values at the knots, (..., d, m) to (...)."""
    return (slopes**2).max(axis=-1).sum(axis=-1)


def clip_curvatures(curvatures: np.ndarray, least: np.ndarray | float, most: np.ndarray | float) -> np.ndarray:
    """Curvatures (B, N, d, m+1) within bounds, the outer ones at least 0 and the first client's."""
    found = np.clip(curvatures, least, most)
    for outer in (0, -1):
        found[..., outer] = np.maximum(found[:, :1, :, outer], 0)
    return found


def draw_clients(
    rng: np.random.Generator, B: int, shape: tuple[int, int, int], *, noisy: bool, convex: bool = False
) -> dict[str, np.ndarray]:
    """What `KinkedClients` have, of N clients, d coordinates and m knots; noise of the size of the slopes, or none.

    Half are Huber's functions or their reverse, half any; a third have one function for all clients.
    """
    N, d, m = shape
    L = 1.0
    kind, alike = np.arange(B) % 4, (np.arange(B) % 3 == 0)[:, None, None]
    curvatures = L * rng.choice([-1.0, 0.0, 1.0, 0.5, -0.3], size=(B, N, d, m + 1))
    curvatures[kind == 0] = L * (np.arange(m + 1) % 2)
    curvatures[kind == 1] = L * rng.choice([-1.0, 1.0], size=(1, 1, 1, m + 1))
    curvatures[..., -1] = np.where(rng.random((B, 1, 1)) < 0.5, 0, L)
    curvatures = np.where(alike[..., None], curvatures[:, :1], curvatures)
    if convex:
        curvatures = np.abs(curvatures) * 0.9 + 0.1
    width = 10 ** rng.uniform(-2, 1, (B, 1, 1))
    knots = np.sort(width * rng.normal(size=(B, d, m)), axis=2)
    curvatures = clip_curvatures(curvatures, -L, L)
    curvatures[np.abs(curvatures).max(axis=(1, 2, 3)) < L, :, :, 1] = L
    between = (curvatures[..., 1:-1] * np.diff(knots, axis=2)[:, None]).sum(axis=3)
    first = np.where(rng.random((B, 1, 1)) < 0.5, -between / 2, -rng.random((B, N, d)) * between)
    apart = width * rng.choice([0.0, 0.1, 1.0], size=(B, 1, 1)) * rng.normal(size=(B, N, d))
    first = first + np.where(alike, 0.0, apart - apart.mean(axis=1, keepdims=True))
    first = np.where(alike, first[:, :1], first)
    size = rng.choice([0.1, 1.0, 3.0], size=(B, 1, 1)) * width if noisy else 0.0
    return {
        "knots": knots,
        "curvatures": curvatures,
        "first": first,
        "start": width[..., 0] * rng.choice([0.1, 1.0, 10.0], size=(B, 1)) * rng.normal(size=(B, d)),
        "noise": size * np.ones((B, N, d)),
        "seeds": rng.integers(2**62, size=B),
    }
