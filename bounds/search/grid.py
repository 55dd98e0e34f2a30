"""Minimization by grids that close in around their best points, from several starts; no derivatives, no luck."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

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
