"""The first number of rounds that reaches a target where little can be excluded: found by trying, never proved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.search.effort import EvaluationBudget, Exhausted
from fedbounds.bounds.search.threshold import LARGEST_COUNT, Hit

DENSE, RATIO = 64, 1.02  # so many numbers are tried one by one, then in steps of this ratio
Reaches = Callable[[int], bool]


def first_in_steps(
    reaches: Callable[[float], bool],
    effort: EvaluationBudget,
    least: int = 1,
    quickly: Callable[[float], bool] | None = None,
    roughly: Callable[[float], bool] | None = None,
) -> Hit:
    """The first number of a grid that reaches, then the smallest one that bisection finds just below it.

    Before that comes the first of `least` times a power of two, and the smallest that bisection finds below it: an end
    for the grid, and an answer should the effort not suffice for more.

    Example:
        >>> first_in_steps(lambda T: T >= 12345, EvaluationBudget.of(1)).value
        12345.0
        >>> first_in_steps(lambda T: T >= 12345, EvaluationBudget(30), least=9000).left
        (9000.0, 12345.0)
    """
    tried: dict[int, bool] = {}  # for good: what only a cheaper test denied is not in here

    def asked(test: Callable[[float], bool]) -> Reaches:
        def does(count: int) -> bool:
            if count not in tried:
                effort.spend(1)
                if (yes := test(float(count))) or test is reaches:
                    tried[count] = yes
                else:
                    looked.append(count)
            return tried.get(count, False)

        return does

    looked: list[int] = []
    does = asked(reaches)
    bisects = does if quickly is None else asked(quickly)
    grid = [*range(least, min(least + DENSE, LARGEST_COUNT + 1))]
    while grid[-1] < LARGEST_COUNT:
        grid.append(min(LARGEST_COUNT, max(grid[-1] + 1, int(grid[-1] * RATIO))))
    try:
        near, far = _glance(does if roughly is None else asked(roughly), least)
        if far is not None:
            far = bisect(bisects, near, far)
            for closer in () if quickly is None else (does,) if roughly is None else (asked(roughly), does):
                while far - 1 > near and closer(far - 1):
                    far = bisect(bisects, near, far - 1)
        for before, count in zip([least - 1, *grid], grid, strict=False):
            if far is not None and count >= far:
                break
            if does(count):
                return Hit(float(bisect(does, before, count)), False)
        return Hit(None if far is None else float(far), False)
    except Exhausted:
        reached = [count for count, reach in tried.items() if reach]
        most = float(max([*tried, *looked], default=0))
        return Hit(None, False, (), (float(least), float(min(reached, default=np.inf))), most)


def _glance(does: Reaches, least: int) -> tuple[int, int | None]:
    """The first of `least` times a power of two that reaches, and the one before it."""
    before, count = least - 1, least
    try:
        while not does(count):
            if count == LARGEST_COUNT:
                return before, None
            before, count = count, min(2 * count, LARGEST_COUNT)
    except FedboundsError:
        return before, None  # the bound has no value for so many rounds
    return before, count


def bisect(reaches: Reaches, low: int, high: int) -> int:
    """The smallest whole number above low from which on `reaches` holds, given that it holds at high."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
