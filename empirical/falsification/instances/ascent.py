"""The ascent of one instance: by gradients in the coordinates that its neighbors have, and by chance where these end.

`mutated` says what the neighbors of an instance are: scales move in logarithms, step sizes stay within their caps,
weights add up to one. Fed with prescribed numbers instead of random ones it makes coordinates of them, in which the
gradient of log(left/bound) is had by differences, all of them in one batch, and a quasi-Newton step is taken. A ratio
of maxima has ridges, where gradients end: so every line search also tries random neighbors, and the best is kept.
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
RANGE = 1e-8, 1e8  # beyond, a number is not looked at: sides would be lost to rounding, or be limits of others
LARGEST = 1e10  # of a letter that is no whole number


class Climb(NamedTuple, Generic[P]):
    """Where an ascent ends.

    Attributes:
        end: the instance, alone.
        height: its score.
        evaluations: of instances that it took.
        searches: line searches.
    """

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
    """Whether no value of a letter is huge, (B, ...) to (B,); infinite ones are meant."""
    size = np.abs(values.reshape(len(values), -1))
    return np.asarray(((size <= LARGEST) | np.isinf(size)).all(axis=1))


def coordinates(z: Population) -> int:
    """How many coordinates the neighbors of an instance have."""
    counter = PrescribedDraws()
    z.mutated(counter)
    return counter.read


def neighbors(z: P, steps: np.ndarray) -> P:
    """The neighbors of one instance at these coordinates, (K, D)."""
    return z.repeated(len(steps)).mutated(PrescribedDraws(steps))


@dataclass(frozen=True)
class Newton:
    """The inverse of the curvature, as the steps so far show it (Broyden, Fletcher, Goldfarb, Shanno).

    Attributes:
        inverse: of minus the Hessian, (D, D).
        step, slope: the last step and the gradient before it; None before the first.
    """

    inverse: np.ndarray
    step: np.ndarray | None = None
    slope: np.ndarray | None = None

    def seen(self, slope: np.ndarray) -> np.ndarray:
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
    """Steps of all lengths along a direction whose longest is so long, (K, D)."""
    return np.outer(LENGTHS, direction * length / np.linalg.norm(direction))


def ascend(start: P, score: Callable[[P], np.ndarray], evaluations: int, rng: np.random.Generator) -> Climb[P]:
    """One instance moved uphill."""
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
        there, steps = here.repeated(CHANCES).mutated(rng), np.zeros((0, len(axes)))
        if slope.any():
            inverse = newton.seen(slope)
            quick = inverse @ slope
            steps = np.concatenate([line(quick, min(float(np.linalg.norm(quick)), FARTHEST)), line(slope, 1.0)])
            newton, whole = Newton(inverse), np.zeros((len(steps), D))
            whole[:, axes] = steps
            there = neighbors(here, whole).followed_by(there)
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
