"""The first (or last) value of one constant at which a bound reaches a target, found by excluding blocks of values.

Nothing is assumed monotone: a block is excluded only if interval arithmetic proves that the bound exceeds the target,
or that a condition fails, everywhere in it. What cannot be excluded is split, nearest block first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.program import ROUNDING
from fedbounds.bounds.search.arb_enclosures import confirm
from fedbounds.bounds.search.effort import ENCLOSURE, EvaluationBudget, Exhausted
from fedbounds.bounds.search.infeasibility import fails_everywhere
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose, Interval, enclose
from fedbounds.bounds.search.partial_evaluation import Partial

LARGEST_COUNT = 2**53  # whole numbers are exact in float64 up to here
SMALLEST, LARGEST = 1e-30, 1e30  # between which the search over reals is fine
PIECES = 8  # a block that survives is split into so many
AHEAD = 64  # how many blocks are split at once
FINEST = 1e-14  # relative width at which a block of reals counts as one value
DENSE, RATIO = 64, 1.02  # so many rounds are tried one by one, then in steps of this ratio
Blocks = tuple[np.ndarray, np.ndarray]
Reaches = Callable[[int], bool]


@dataclass(frozen=True)
class Hit:
    """The value nearest to where the search began, or None.

    Attributes:
        covered: whether everything nearer (or everything, for None) was excluded.
        excluded: the blocks (low, high) that were, in rising order; also values that were tried and did not reach.
        left: the ends (low, high) between which the nearest value must lie; set where the effort was used up.
        tried: where values were only tried, the largest.
    """

    value: float | None
    covered: bool
    excluded: tuple[tuple[float, float], ...] = field(repr=False, default=())
    left: tuple[float, float] | None = None
    tried: float | None = None

    @property
    def least(self) -> float:
        """The smallest whole number that is not known to be excluded."""
        least = 1.0
        for low, high in self.excluded:
            if low > least:
                break
            least = max(least, high + 1)
        return least

    def proved(self, partial: Partial, target: float) -> bool:
        """Whether arithmetic with error bounds confirms all of it."""
        reached = None if self.value is None or np.isinf(self.value) else self.value
        return self.covered and self.left is None and confirm(partial, target, self.excluded, reached)


def first_hit(
    partial: Partial,
    target: float,
    reaches: Callable[[float], bool],
    effort: EvaluationBudget,
    *,
    whole: bool,
    from_above: bool = False,
    most: float = np.inf,
) -> Hit:
    """The smallest (from above: largest) value of the one free constant at which the bound is at most the target."""
    search = _Search(partial, target, effort, whole, from_above, most)
    low, high = _blocks(whole)
    low, high = low[low <= most], np.minimum(high[low <= most], most)
    try:
        low, high = search.nearest_first(*search.possible(low, high))
        while len(low):
            divisible = np.isfinite(high) & (
                (high > low) if whole else (high > np.maximum(low * (1 + FINEST), SMALLEST))
            )
            first = int(np.argmax(divisible)) if divisible.any() else len(low)
            for a, b in zip(low[:first].tolist(), high[:first].tolist(), strict=True):
                endless = b == np.inf
                for value in (a,) if endless else dict.fromkeys((b, a) if from_above else (a, b)):
                    effort.spend(1)
                    if reaches(value):
                        return search.hit(np.inf if endless and from_above else value)
                search.excluded.append((np.array([a]), np.array([a if endless else b])))
                low, high = low[1:], high[1:]
            if not len(low):
                break
            front = np.flatnonzero(divisible[first:])[:AHEAD]
            until = int(front[-1]) + 1
            near = search.nearest_first(*search.possible(*_split_blocks(low[:until], high[:until], whole)))
            low, high = np.append(near[0], low[until:]), np.append(near[1], high[until:])
    except Exhausted:
        return Hit(None, False, (), (float(low.min()), float(high.max())))
    return search.hit(None)


@dataclass
class _Search:
    """The question, and the blocks that were excluded so far."""

    partial: Partial
    target: float
    effort: EvaluationBudget
    whole: bool
    from_above: bool
    most: float
    excluded: list[Blocks] = field(default_factory=list)

    def nearest_first(self, low: np.ndarray, high: np.ndarray) -> Blocks:
        return (low[::-1], high[::-1]) if self.from_above else (low, high)

    def possible(self, low: np.ndarray, high: np.ndarray) -> Blocks:
        """The blocks that may hold a value at which the bound reaches the target and the conditions hold."""
        self.effort.spend(ENCLOSURE)
        possible = _possible(self.partial, low, high, self.target)
        self.excluded.append((low[~possible], high[~possible]))
        return low[possible], high[possible]

    def hit(self, value: float | None) -> Hit:
        """The answer, with everything nearer that was excluded."""
        low, high = (np.concatenate(ends) for ends in zip(*self.excluded, strict=True))
        if value is not None:
            nearer = low > value if self.from_above else high < value
            low, high = low[nearer], high[nearer]
        order = np.lexsort((high, low))
        low, high = low[order], high[order]
        next_to = high + 1 if self.whole else np.maximum(high * (1 + 2 * FINEST), SMALLEST)
        gaps = bool((low[1:] > next_to[:-1]).any())
        least, most = (1.0 if self.whole else 0.0), self.most
        if value is not None and self.from_above:
            least = value + 1 if self.whole else max(value * (1 + 2 * FINEST), SMALLEST)
        elif value is not None:
            most = value - 1 if self.whole else value * (1 - 2 * FINEST)
        covered = least > most or (len(low) > 0 and not gaps and bool(low[0] <= least) and bool(high[-1] >= most))
        return Hit(value, covered and value != np.inf, tuple(zip(low.tolist(), high.tolist(), strict=True)))


def _blocks(whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Blocks that cover every value, in rising order."""
    if whole:
        edges = np.round(np.geomspace(1, LARGEST_COUNT, 400))
        edges = edges[np.diff(edges, prepend=0) > 0]  # numpy.unique loads its masked arrays, a tenth of a cold answer
        return edges, np.append(edges[1:] - 1, np.inf)
    edges = np.geomspace(SMALLEST, LARGEST, 401)
    return np.append([0.0, 0.0], edges), np.concatenate([[0.0, SMALLEST], edges[1:], [np.inf]])


def _split_blocks(low: np.ndarray, high: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
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


def _possible(partial: Partial, low: np.ndarray, high: np.ndarray, target: float) -> np.ndarray:
    """Which blocks of the one free constant may hold a value at which the bound reaches the target."""
    (name,) = partial.free
    if partial.opaque:
        raise CannotEnclose(", ".join(partial.opaque))
    ranges: dict[str, Interval] = {n: (v, v) for n, v in partial.values.items()}
    return possible(partial, ranges | {name: (low, high)}, target, len(low))


def possible(partial: Partial, ranges: Mapping[str, Interval], target: float, boxes: int) -> np.ndarray:
    """Which of so many boxes may hold values at which the bound reaches the target and the conditions hold."""
    with np.errstate(all="ignore"):
        least = sum((enclose(e, ranges)[0] for e in partial.terms.values()), np.zeros(boxes))
    kept = ~(least > target * (1 + ROUNDING))
    for c in partial.conditions:
        kept &= ~fails_everywhere(c, enclose(c.left, ranges), enclose(c.right, ranges))
    return np.broadcast_to(kept, (boxes,))


# --- Where little can be excluded: the first number of rounds is found by trying, never proved -----------------------


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

    def memoize(test: Callable[[float], bool]) -> Reaches:
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
    does = memoize(reaches)
    bisects = does if quickly is None else memoize(quickly)
    grid = [*range(least, min(least + DENSE, LARGEST_COUNT + 1))]
    while grid[-1] < LARGEST_COUNT:
        grid.append(min(LARGEST_COUNT, max(grid[-1] + 1, int(grid[-1] * RATIO))))
    try:
        near, far = _glance(does if roughly is None else memoize(roughly), least)
        if far is not None:
            far = bisect(bisects, near, far)
            for closer in () if quickly is None else (does,) if roughly is None else (memoize(roughly), does):
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


def first_reached(reaches: Callable[[float], bool], effort: EvaluationBudget, least: int) -> int | None:
    """A number from `least` on that reaches, near to where it begins to, or None if none was found.

    Smaller ones may reach as well: nothing is assumed monotone.
    """
    found: int | None = None

    def does(count: int) -> bool:
        nonlocal found
        effort.spend(1)
        if yes := reaches(float(count)):
            found = count
        return yes

    with suppress(Exhausted):
        low, high = _glance(does, least)
        while high is not None and high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if does(middle) else (middle, high)
    return found


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
