"""The first number of rounds that reaches a target where nothing can be excluded: tried on a grid, never proved."""

from __future__ import annotations

from collections.abc import Callable

from bounds.effort import Effort, Exhausted
from bounds.errors import FedboundsError
from bounds.first_hit import LARGEST_COUNT, Hit

DENSE, RATIO = 64, 1.02  # every number up to DENSE is tried, then in steps of this ratio


def first_in_steps(reaches: Callable[[float], bool], effort: Effort) -> Hit:
    """The first number of a grid that reaches, then the smallest one that bisection finds just below it.

    Args:
        reaches: whether a number of rounds does.
        effort: what it may cost.

    Example:
        >>> first_in_steps(lambda T: T >= 12345, Effort.of(1)).value
        12345.0
    """
    tried: dict[int, bool] = {}

    def does(count: int) -> bool:
        if count not in tried:
            effort.spend(1)
            tried[count] = reaches(float(count))
        return tried[count]

    grid = [*range(1, DENSE + 1)]
    while grid[-1] < LARGEST_COUNT:
        grid.append(min(LARGEST_COUNT, max(grid[-1] + 1, int(grid[-1] * RATIO))))
    try:
        far = _glance(does)
        for before, count in zip([0, *grid], grid, strict=False):
            if does(count):
                return Hit(float(bisected(does, before, count)), False)
            if far is not None and count >= far:
                break
        return Hit(None if far is None else float(bisected(does, before, far)), False)
    except Exhausted:
        reached = [count for count, reach in tried.items() if reach]
        return Hit(None, False, (), (0.0, float(min(reached)) if reached else float("inf")))


def _glance(does: Callable[[int], bool]) -> int | None:
    """The first power of two that reaches: an end, should the effort not suffice for more."""
    try:
        return next((2**k for k in range(54) if does(2**k)), None)
    except FedboundsError:
        return None  # the bound has no value for so many rounds


def bisected(reaches: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest whole number above low from which on `reaches` holds, given that it holds at high."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
