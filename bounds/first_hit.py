"""The first (or last) value of one constant at which a bound reaches a target, found by excluding blocks of values.

Nothing is assumed monotone: a block is excluded only if interval arithmetic proves that the bound exceeds the target,
or that a condition fails, everywhere in it. What cannot be excluded is split, nearest block first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bounds.compilation import ROUNDING
from bounds.intervals import CannotEnclose, Interval, enclose
from bounds.partial import Partial

LARGEST_COUNT = 2**53  # whole numbers are exact in float64 up to here
SMALLEST, LARGEST = 1e-30, 1e30  # between which the search over reals is fine
PIECES = 8  # a block that survives is split into so many
AHEAD = 64  # how many blocks are split at once
MOST_BLOCKS = 2_000_000
FINEST = 1e-14  # relative width at which a block of reals counts as one value


@dataclass(frozen=True)
class Hit:
    """The value, or None; and whether it is proved that there is none nearer (or none at all)."""

    value: float | None
    proved: bool


def first_hit(
    partial: Partial,
    target: float,
    reaches: Callable[[float], bool],
    *,
    whole: bool,
    from_above: bool = False,
    most: float = np.inf,
) -> Hit:
    """The smallest (or, from above, largest) value of the one free constant at which the bound is at most the target.

    Args:
        partial: a form with one free constant.
        target: what the sum of the terms must not exceed.
        reaches: the final word on one value, conditions included.
        whole: whether the constant is a whole number, from 1; reals start at 0.
        from_above: search downwards; inf if every large value will do.
        most: the largest legal value.

    Raises:
        CannotEnclose: the free constant enters through something that is only known by value.
    """
    (name,) = partial.free
    low, high = _blocks(whole)
    low, high = low[low <= most], np.minimum(high[low <= most], most)
    low, high = _excluded_out(partial, name, low, high, target)
    if from_above:
        low, high = low[::-1], high[::-1]
    seen, proved = len(low), True
    while len(low):
        divisible = np.isfinite(high) & ((high > low) if whole else (high > np.maximum(low * (1 + FINEST), SMALLEST)))
        first = int(np.argmax(divisible)) if divisible.any() else len(low)
        for a, b in zip(low[:first].tolist(), high[:first].tolist(), strict=True):
            endless = b == np.inf
            for value in (a,) if endless else dict.fromkeys((b, a) if from_above else (a, b)):
                if reaches(value):
                    return Hit(np.inf if endless and from_above else value, proved)
            proved &= not endless
        low, high = low[first:], high[first:]
        front = np.flatnonzero(divisible[first:])[:AHEAD]
        until = int(front[-1]) + 1 if len(front) else 0
        near_low, near_high = _split(low[:until], high[:until], whole)
        seen += len(near_low)
        if seen > MOST_BLOCKS:
            return Hit(None, False)
        near_low, near_high = _excluded_out(partial, name, near_low, near_high, target)
        if from_above:
            near_low, near_high = near_low[::-1], near_high[::-1]
        low, high = np.append(near_low, low[until:]), np.append(near_high, high[until:])
    return Hit(None, proved)


def _blocks(whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Blocks that cover every value, in rising order."""
    if whole:
        edges = np.unique(np.round(np.geomspace(1, LARGEST_COUNT, 400)))
        return edges, np.append(edges[1:] - 1, np.inf)
    edges = np.geomspace(SMALLEST, LARGEST, 401)
    return np.append([0.0, 0.0], edges), np.concatenate([[0.0, SMALLEST], edges[1:], [np.inf]])


def _split(low: np.ndarray, high: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Every block in pieces, in rising order; single values and endless blocks stay as they are."""
    end = np.where(np.isfinite(high), high, low)
    edges = low[:, None] + (end - low)[:, None] * np.linspace(0, 1, PIECES + 1)
    edges[:, -1] = end
    edges = np.floor(edges) if whole else edges
    starts = edges[:, :-1].copy()
    starts[:, 1:] += whole
    ends = edges[:, 1:]
    kept = (ends > starts) | (whole & (ends == starts))
    kept[:, 0] |= (end == low) & np.isfinite(high)
    lows, highs = np.append(starts[kept], low[~np.isfinite(high)]), np.append(ends[kept], high[~np.isfinite(high)])
    order = np.lexsort((highs, lows))
    return lows[order], highs[order]


def _excluded_out(
    partial: Partial, name: str, low: np.ndarray, high: np.ndarray, target: float
) -> tuple[np.ndarray, np.ndarray]:
    """The blocks that may hold a value at which the bound reaches the target and the conditions hold."""
    if partial.opaque:
        raise CannotEnclose(", ".join(partial.opaque))
    ranges: dict[str, Interval] = {n: (v, v) for n, v in partial.values.items()}
    ranges[name] = (low, high)
    least = sum((enclose(e, ranges)[0] for e in partial.terms.values()), np.zeros(len(low)))
    possible = ~(least > target * (1 + ROUNDING))
    for c in partial.conditions:
        left, right = enclose(c.left, ranges), enclose(c.right, ranges)
        if c.op in ("<=", "<", "=="):
            possible &= ~(left[0] > right[1] + ROUNDING * np.abs(right[1]))
        if c.op in (">=", ">", "=="):
            possible &= ~(right[0] > left[1] + ROUNDING * np.abs(left[1]))
    return low[possible], high[possible]
