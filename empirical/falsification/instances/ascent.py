"""The ascent of one instance: quasi-Newton steps on log(left/bound), and random neighbors.

With prescribed instead of random numbers, `Population.mutate` is a function of coordinates, in which the gradient is
computed by differences. A ratio of maxima has ridges, where gradients are useless: every line search also tries random
neighbors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from fedbounds.empirical.falsification.instances.population import Population, PrescribedDraws

P = TypeVar("P", bound=Population)
DIFFERENCE = 1e-5  # of a coordinate, for a gradient
LENGTHS = 2.0 ** np.arange(-12, 4)  # of a step, as shares of the quasi-Newton step or in units of a coordinate
FARTHEST = 3.0  # in the coordinates: a factor of 20
CHANCES = 12  # random neighbors that every line search tries
MOST = 128  # coordinates of one gradient; of more, these are drawn anew each time
PATIENCE = 12  # line searches that gain less than `LEAST`, one after the other
LEAST = 1e-6
RANGE = 1e-8, 1e8  # of searched numbers: beyond, sides would be lost to rounding, or be limits of others
LARGEST = 1e10  # of a constant that is not an integer


class Climb(NamedTuple, Generic[P]):
    """The end of an ascent: the instance, its score, evaluated instances and line searches."""

    end: P
    height: float
    evaluations: int
    searches: int


def in_range(z: Population) -> np.ndarray:
    """Whether no number of an instance is tiny or huge, (B,)."""
    held = np.ones(len(z), dtype=bool)
    for array in z.arrays().values():
        if np.issubdtype(array.dtype, np.floating):
            size = np.abs(array.reshape(len(z), -1))
            held &= ((size == 0) | ((size >= RANGE[0]) & (size <= RANGE[1])) | np.isinf(size)).all(axis=1)
    return held


def moderate(values: np.ndarray) -> np.ndarray:
    """Whether no finite value of a constant is huge, (B, ...) to (B,)."""
    size = np.abs(values.reshape(len(values), -1))
    return np.asarray(((size <= LARGEST) | np.isinf(size)).all(axis=1))


def coordinates(z: Population) -> int:
    """How many coordinates the neighbors of an instance have."""
    counter = PrescribedDraws()
    z.mutate(counter)
    return counter.read


def neighbors(z: P, steps: np.ndarray) -> P:
    """The neighbors of one instance at these coordinates, (K, D)."""
    return z.repeat(len(steps)).mutate(PrescribedDraws(steps))


@dataclass(frozen=True)
class Newton:
    """The BFGS estimate of the inverse curvature."""

    inverse: np.ndarray  # of minus the Hessian, (D, D)
    step: np.ndarray | None = None  # step, slope: the last step and the gradient before it; None before the first
    slope: np.ndarray | None = None

    def updated(self, slope: np.ndarray) -> np.ndarray:
        """The inverse after the gradient at the end of the last step."""
        if self.step is None or self.slope is None:
            return self.inverse
        change = self.slope - slope
        along = float(self.step @ change)
        if along <= 1e-12 * np.linalg.norm(self.step) * np.linalg.norm(change):
            return self.inverse
        turn = np.eye(len(change)) - np.outer(self.step, change) / along
        return turn @ self.inverse @ turn.T + np.outer(self.step, self.step) / along


def line(direction: np.ndarray, length: float) -> np.ndarray:
    """Steps of all `LENGTHS` along a direction, in units of this length, (K, D)."""
    return np.outer(LENGTHS, direction * length / np.linalg.norm(direction))


def ascend(start: P, score: Callable[[P], np.ndarray], evaluations: int, rng: np.random.Generator) -> Climb[P]:
    """Climb from one instance."""
    used, searches, idle, D = 0, 0, 0, coordinates(start)

    def height(z: P) -> np.ndarray:
        nonlocal used
        used += len(z)
        with np.errstate(all="ignore"):
            found = np.log(np.maximum(score(z), 0.0))
        return np.where(in_range(z) & ~np.isnan(found), found, -np.inf)

    here, best, newton = start, float(height(start)[0]), Newton(np.eye(min(D, MOST)))
    while used < evaluations and idle < PATIENCE and np.isfinite(best):
        searches += 1
        axes = rng.permutation(D)[:MOST] if D > MOST else np.arange(D)
        at, *around = height(neighbors(here, DIFFERENCE * np.concatenate([np.zeros((1, D)), np.eye(D)[axes]])))
        slope = np.where(np.isfinite(around) & np.isfinite(at), (np.array(around) - at) / DIFFERENCE, 0.0)
        there, steps = here.repeat(CHANCES).mutate(rng), np.zeros((0, len(axes)))
        if slope.any():
            inverse = newton.updated(slope)
            quick = inverse @ slope
            steps = np.concatenate([line(quick, min(float(np.linalg.norm(quick)), FARTHEST)), line(slope, 1.0)])
            newton, whole = Newton(inverse), np.zeros((len(steps), D))
            whole[:, axes] = steps
            there = neighbors(here, whole).concatenate(there)
        heights = height(there)
        k = int(np.argmax(heights))
        gain = float(heights[k]) - best
        idle = 0 if gain >= LEAST else idle + 1
        if gain > 0:
            here, best = there.take(np.array([k])), float(heights[k])
        if gain > 0 and k < len(steps) and len(axes) == D:
            newton = Newton(newton.inverse, steps[k], slope)
        else:
            newton = Newton(np.eye(len(axes)))
    return Climb(here, float(np.exp(best)), used, searches)
