"""Comparisons of means over seeds: t-tests, Holm's correction, intervals and power.

Means over the same seeds are compared by a paired t-test, others by Welch's t-test, equality by two one-sided tests
(TOST). Holm's method corrects a family of comparisons at level 5 %. An undecided comparison reports how many seeds
would decide it with power 0.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, hypot, inf, isfinite, nan

import numpy as np
from scipy.special import bdtr, bdtrc, betaln, nctdtr, stdtr, stdtrit

LEVEL = 0.05  # of a family of comparisons: the probability of one wrong decision or more
POWER = 0.8  # with which a comparison is to be decided
MANY = 10_000  # seeds: more are infeasible
ALIKE = 0.10  # two levels within 10 % of the smaller one are "about equal"


@dataclass(frozen=True)
class Level:
    """A mean over seeds with its standard error.

    Attributes:
        mean, error: the mean, infinite if a seed diverged, and its standard error.
        seeds, values, ids: their number, one value for each (if known), and their ids (default: 0, 1, 2, ...).
        name: of the quantity, for words.
        degrees: degrees of freedom of the standard error (default: seeds - 1).
    """

    mean: float
    error: float
    seeds: int = 1
    values: tuple[float, ...] = ()
    ids: tuple[int, ...] = ()
    name: str = ""
    degrees: float | None = None

    @staticmethod
    def from_values(values: np.ndarray, name: str = "", ids: Iterable[int] = ()) -> Level:
        """The level of one number for each seed; infinite if a seed diverged."""
        seeds = len(values)
        if not np.isfinite(values).all():
            return Level(inf, 0.0, seeds, tuple(values.tolist()), tuple(int(i) for i in ids), name)
        error = error_of_mean(values) if seeds > 1 else inf
        return Level(float(values.mean()), error, seeds, tuple(values.tolist()), tuple(int(i) for i in ids), name)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the standard error."""
        return self.seeds - 1 if self.degrees is None else self.degrees

    def times(self, factor: float) -> Level:
        """A multiple."""
        scaled = tuple(factor * value for value in self.values)
        return replace(self, mean=factor * self.mean, error=abs(factor) * self.error, values=scaled)

    def is_paired_with(self, other: Level) -> bool:
        """Whether both have a value for each of the same seeds."""
        return bool(self.values) and len(self.values) == len(other.values) and self.ids == other.ids

    @property
    def is_constant(self) -> bool:
        """Whether it is a number without error or seeds, such as a border."""
        return not self.values and not self.error and self.degrees == inf

    def on_seeds_of(self, other: Level) -> Level:
        """A constant as the same value for each seed of another level."""
        return replace(self, values=(self.mean,) * len(other.values), ids=other.ids, degrees=None)

    @property
    def diverged(self) -> int:
        """The number of seeds that diverged."""
        return self.seeds - int(np.isfinite(self.values).sum()) if abs(self.mean) == inf else 0

    def minus(self, other: Level) -> Level:
        """The difference: paired if both are over the same seeds, else with Welch's degrees of freedom.

        Example:
            >>> one, other = Level.from_values(np.array([1.0, 3.0])), Level.from_values(np.array([0.9, 2.7]))
            >>> paired = one.minus(other)
            >>> unpaired = Level(one.mean, one.error, 2).minus(other)
            >>> [(round(d.mean, 3), round(d.error, 3), round(d.freedom, 2)) for d in (paired, unpaired)]
            [(0.2, 0.1, 1), (0.2, 1.345, 1.98)]
        """
        name = " - ".join(filter(None, (self.name, other.name)))
        if not isfinite(self.mean - other.mean):
            return Level(self.mean - other.mean, 0.0, max(self.seeds, other.seeds), name=name)
        if other.is_constant and self.values:
            return self.minus(other.on_seeds_of(self))
        if self.is_constant and other.values:
            return self.on_seeds_of(other).minus(other)
        if self.is_paired_with(other):
            return replace(Level.from_values(np.subtract(self.values, other.values), name), ids=self.ids)
        squares, freedoms = (self.error**2, other.error**2), (self.freedom, other.freedom)
        parts = [s**2 / f for s, f in zip(squares, freedoms, strict=True) if s and f]
        degrees = sum(squares) ** 2 / sum(parts) if parts and isfinite(sum(squares)) else min(freedoms)
        return Level(self.mean - other.mean, hypot(self.error, other.error), max(self.seeds, other.seeds), name=name,
                     degrees=degrees)  # fmt: skip

    def above(self, other: Level) -> Part:
        """Whether it is larger: a test, unless a seed diverged."""
        return divergence(self, other, self.mean > other.mean) or is_above_zero(self.minus(other))

    def below(self, other: Level) -> Part:
        """Whether it is smaller: a test, unless a seed diverged."""
        return other.above(self)

    def near(self, other: Level, distance: float) -> Part:
        """Whether the means differ by less than a distance (TOST); False if significantly by more."""
        gap, border = self.minus(other), Level(distance, 0.0, self.seeds, degrees=inf)
        if not isfinite(gap.mean) or not isfinite(gap.error):
            return divergence(self, other, False)
        return Test(gap, (border.minus(gap), border.minus(gap.times(-1))), f"within {distance:g}")

    def alike(self, other: Level) -> Part:
        """Whether neither of two positive means is more than 10 % above the other (TOST); False if one significantly
        is.
        """
        gap = self.minus(other)
        if not isfinite(gap.mean) or not isfinite(gap.error):
            return divergence(self, other, False)
        margins = (self.times(1 + ALIKE).minus(other), other.times(1 + ALIKE).minus(self))
        return Test(gap, margins, f"within {ALIKE:.0%}")

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The confidence interval of the mean, by default 95 %."""
        if not self.freedom > 0 or not isfinite(self.error):
            return -inf, inf
        half = float(stdtrit(self.freedom, 1 - level / 2)) * self.error
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        return f"{self.mean:.4f} +- {self.error:.4f}"


def error_of_mean(values: np.ndarray) -> float:
    """The standard error of the mean of one number for each seed."""
    return float(values.std(ddof=1) / len(values) ** 0.5)


@dataclass(frozen=True)
class Test:
    """A comparison of means: the difference `gap`, the `margins` that must be above zero (two for a tolerance)."""

    __test__ = False  # no case of pytest
    gap: Level
    margins: tuple[Level, ...]
    tolerance: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is the same for both directions of a comparison."""
        signed = len(self.margins) > 1
        numbers = sorted((m.mean if signed else abs(m.mean), m.error, m.freedom) for m in self.margins)
        return (*sorted(self.names), *numbers)

    @cached_property
    def _tails(self) -> tuple[float, float]:
        """The p-values for the claim and for its opposite."""
        tails = [upper_tail(m) for m in self.margins]
        if len(tails) == 1:  # a difference: both directions are looked at
            return min(1.0, 2 * tails[0]), min(1.0, 2 * upper_tail(self.margins[0].times(-1)))
        least, most = sorted(self.margins, key=lambda m: m.mean)
        return max(tails), min(1.0, upper_tail(least.times(-1)) + upper_tail(most))

    @property
    def p(self) -> float:
        """The p-value in the direction of the means."""
        return min(self._tails)

    @property
    def claimed(self) -> bool:
        """Whether the means agree with the claim."""
        return self._tails[0] <= self._tails[1]

    def seeds_needed(self, level: float) -> float:
        """The least number of seeds that would decide with power 0.8 at a level, for these means and deviations."""
        return least_number(lambda seeds: self._power(seeds, level), self.seeds)

    def is_powered(self, level: float) -> bool:
        """Whether these seeds decide for a difference like this one with power 0.8 at a level."""
        return self._power(self.seeds, level) >= POWER

    def _power(self, seeds: int, level: float) -> float:
        least = min(self.margins, key=lambda m: m.mean)
        margins = self.margins if self.claimed else (least.times(-1),)
        sides = 2 if len(self.margins) == 1 else 1
        return 1 - sum(1 - power_of(m, seeds, level / sides) for m in margins)

    def detectable(self, level: float) -> float:
        """The smallest difference that these seeds find with power 0.8 at a level; nan if there is no error.

        Example:
            >>> test = is_above_zero(Level.from_values(np.array([1.0, 2.0, 3.0, 4.0, 5.0])))
            >>> isinstance(test, Test) and round(test.detectable(0.05), 2)
            2.66
        """
        if not self.gap.error or not isfinite(self.gap.error) or not self.gap.freedom > 0:
            return nan
        low, high = 0.0, 1e6 * self.gap.error
        for _ in range(60):
            middle = (low + high) / 2
            found = power_of(replace(self.gap, mean=middle), self.seeds, level / 2) >= POWER
            low, high = (low, middle) if found else (middle, high)
        return high

    @property
    def seeds(self) -> int:
        """Their number."""
        return self.margins[0].seeds

    @property
    def unpaired(self) -> bool:
        """Whether means are compared without their seeds."""
        return self.gap.degrees is not None

    def words(self, p: float) -> str:
        """The difference with its 95 % interval, the p-value in the direction of the means and the corrected one.

        Example:
            >>> high, low = np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.1, 2.9])
            >>> Level.from_values(high, "a").above(Level.from_values(low, "b")).words(0.01)
            'a - b: +2 [+1.75, +2.25], 2 degrees of freedom, p 0.00083, corrected 0.01'
        """
        low, high = self.gap.interval()
        said = f"{self.gap.name or 'difference'}: {number(self.gap.mean, True)}"
        said += f" [{number(low, True)}, {number(high, True)}], {number(self.gap.freedom)} degrees of freedom"
        tolerance = f", {'' if self.claimed else 'not '}{self.tolerance}" if self.tolerance else ""
        return f"{said}{tolerance}, p {self.p:.2g}, corrected {p:.2g}"

    @property
    def kind(self) -> str:
        """The name of the test."""
        return "Welch's t, unpaired" if self.unpaired else "paired t"

    @property
    def names(self) -> frozenset[str]:
        """The names of the compared means."""
        return frozenset(self.gap.name.split(" - "))


@dataclass(frozen=True)
class SignTest:
    """Whether something holds in more than half of the seeds (`successes` of `seeds`), by the binomial test."""

    successes: int
    seeds: int
    name: str

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is the same for both directions of a comparison."""
        return self.name, self.seeds, max(self.successes, self.seeds - self.successes)

    @cached_property
    def p(self) -> float:
        """The two-sided p-value."""
        fewer = min(self.successes, self.seeds - self.successes)
        return min(1.0, 2 * float(bdtr(fewer, self.seeds, 0.5))) if self.seeds else 1.0

    @property
    def claimed(self) -> bool:
        """Whether it holds in more than half of the seeds."""
        return 2 * self.successes > self.seeds

    def seeds_needed(self, level: float) -> float:
        """The number of seeds that would decide with power 0.8 at the same share."""
        return least_number(lambda seeds: self._power(seeds, level), self.seeds)

    def is_powered(self, level: float) -> bool:
        """Whether so many seeds decide at a share like this one with power 0.8 at a level."""
        return self._power(self.seeds, level) >= POWER

    def _power(self, seeds: int, level: float) -> float:
        share = max(self.successes, self.seeds - self.successes) / self.seeds if self.seeds else 0.5
        at_most = np.arange(seeds)  # of the other side, for which the test decides
        decided = at_most[2 * bdtr(at_most, seeds, 0.5) <= level]
        return float(bdtrc(seeds - decided[-1] - 1, seeds, share)) if len(decided) else 0.0

    def detectable(self, level: float) -> float:
        """Not defined for shares: nan."""
        return nan

    def words(self, p: float) -> str:
        """The number of seeds, the p-value and the corrected one."""
        return f"{self.name}: in {self.successes} of {self.seeds} seeds, p {self.p:.2g}, corrected {p:.2g}"

    unpaired = False  # it counts seeds

    @property
    def kind(self) -> str:
        """The name of the test."""
        return "sign"

    @property
    def names(self) -> frozenset[str]:
        """The name of what is tested."""
        return frozenset({self.name})


@dataclass(frozen=True)
class DivergenceTest:
    """Whether one side, `name`, diverges more often than the other, which did in none of its seeds (Fisher).

    Attributes:
        name: of the side that diverged, or that never reached what is timed.
        diverged, seeds, others: its seeds that did, all of its seeds, and those of the other side.
        claimed: whether its divergence agrees with the claim.
    """

    name: str
    diverged: int
    seeds: int
    others: int
    claimed: bool

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is the same for both directions of a comparison."""
        return self.name, self.diverged, self.seeds, self.others

    @cached_property
    def p(self) -> float:
        """Twice the probability that all that diverged are on one side."""
        return float(self._p(np.array(self.diverged), self.seeds, self.others))

    @staticmethod
    def _p(diverged: np.ndarray, seeds: int, others: int) -> np.ndarray:
        def logarithms(n: int) -> np.ndarray:  # of the binomial coefficients n over `diverged`
            return -(np.log(n + 1) + betaln(n - diverged + 1, diverged + 1))

        return np.minimum(1.0, 2 * np.exp(logarithms(seeds) - logarithms(seeds + others)))

    def seeds_needed(self, level: float) -> float:
        """The least number of seeds on either side that would decide with power 0.8 at the same share."""
        return least_number(lambda seeds: self._power(seeds, seeds, level), self.seeds)

    def is_powered(self, level: float) -> bool:
        """Whether these seeds decide at a share like this one with power 0.8 at a level."""
        return self._power(self.seeds, self.others, level) >= POWER

    def _power(self, seeds: int, others: int, level: float) -> float:
        deciding = np.flatnonzero(self._p(np.arange(seeds + 1), seeds, others) <= level)
        return float(bdtrc(deciding[0] - 1, seeds, self.diverged / self.seeds)) if len(deciding) else 0.0

    def detectable(self, level: float) -> float:
        """Not defined for shares: nan."""
        return nan

    def words(self, p: float) -> str:
        """The numbers of seeds, the p-value and the corrected one."""
        return (
            f"{self.name}: not finite in {self.diverged} of {self.seeds} seeds, the other in 0 of {self.others}, "
            f"p {self.p:.2g}, corrected {p:.2g}"
        )

    unpaired = False  # it counts seeds

    @property
    def kind(self) -> str:
        """The name of the test."""
        return "Fisher"

    @property
    def names(self) -> frozenset[str]:
        """The name of this side: the verdict does not depend on the runs of the other."""
        return frozenset({self.name})


AnyTest = Test | SignTest | DivergenceTest


@dataclass(frozen=True)
class PartialFinding:
    """Several comparisons, of which a `share` must agree.

    `by_means` True: the means agree, so that only a significant opposite disagrees; False: they do not, so that only a
    significant opposite decides; None: the comparisons decide.
    """

    parts: tuple[Part, ...]
    share: float = 1
    by_means: bool | None = None


Part = AnyTest | PartialFinding | bool | None


def divergence(one: Level, other: Level, agrees: bool) -> DivergenceTest | None:
    """The test of a comparison if one of two levels is infinite; None if neither or both are."""
    gone, *rest = sorted((one, other), key=lambda level: abs(level.mean) != inf)
    if abs(gone.mean) != inf or abs(rest[0].mean) == inf:
        return None
    return DivergenceTest(gone.name, gone.diverged, gone.seeds, rest[0].seeds, agrees)


def is_above_zero(level: Level) -> Part:
    """Whether a mean is above zero: a test, unless it is infinite; None for a single seed."""
    if not isfinite(level.mean):
        return None if level.mean != level.mean else level.mean > 0
    if not isfinite(level.error):
        return None
    return Test(level, (level,))


def all_agree(parts: Iterable[Part]) -> PartialFinding:
    """All of them: disagrees if one part does, undecided if one of the others is, or without any."""
    return PartialFinding(tuple(parts) or (None,))


def any_agrees(parts: Iterable[Part]) -> PartialFinding:
    """At least one of them: disagrees if all parts do."""
    made = tuple(parts) or (None,)
    return PartialFinding(made, 1 / len(made))


def without(part: Part, unsettled: Callable[[AnyTest], bool]) -> Part:
    """A part in which comparisons that are `unsettled`, and what is no comparison, are undecided.

    Means no longer decide where one of them is unsettled.
    """
    if isinstance(part, PartialFinding):
        parts = tuple(without(one, unsettled) for one in part.parts)
        return replace(part, parts=parts, by_means=part.by_means and parts == part.parts)
    return part if isinstance(part, AnyTest) and not unsettled(part) else None


def tests_in(part: Part) -> list[AnyTest]:
    """The comparisons of a part."""
    if isinstance(part, PartialFinding):
        return [found for one in part.parts for found in tests_in(one)]
    return [part] if isinstance(part, AnyTest) else []


@dataclass(frozen=True)
class Corrected:
    """A p-value after Holm's correction, and the level at which the comparison itself is tested."""

    p: float
    level: float


def holm(tests: Iterable[AnyTest]) -> dict[tuple[object, ...], Corrected]:
    """Holm's correction of all different comparisons of a family, by key."""
    family = sorted({test.key: test for test in tests}.items(), key=lambda item: item[1].p)
    corrected, largest = {}, 0.0
    for rank, (key, test) in enumerate(family):
        left = len(family) - rank
        largest = max(largest, min(1.0, left * test.p))
        corrected[key] = Corrected(largest, LEVEL / left)
    return corrected


@dataclass(frozen=True)
class TestFinding:
    """Whether something agrees (None: undecided), the seeds that would decide it (0: none), the side of the means."""

    agrees: bool | None
    seeds_needed: float = 0
    towards: bool = True

    @property
    def power(self) -> str:
        """The number of seeds that would decide, in words; empty if decided or if none would."""
        many = self.seeds_needed
        if self.agrees is not None or not many:
            return ""
        return f"about {many:.0f} seeds would tell" if many <= MANY else "no feasible number of seeds would tell"


def decide(part: Part, corrected: Mapping[tuple[object, ...], Corrected] | None = None) -> TestFinding:
    """Whether a part agrees after Holm's correction of its family (default: its own tests).

    A test disagrees only if its seeds find a difference like the measured one with power 0.8.
    """
    known = holm(tests_in(part)) if corrected is None else corrected
    if isinstance(part, PartialFinding):
        return _decide_parts(part, [decide(one, known) for one in part.parts])
    if isinstance(part, AnyTest):
        found = known[part.key]
        if found.p <= LEVEL and (part.claimed or part.is_powered(found.level)):
            return TestFinding(part.claimed)
        return TestFinding(None, part.seeds_needed(found.level), part.claimed)
    return TestFinding(part)


def deciding(part: Part, corrected: Mapping[tuple[object, ...], Corrected]) -> list[AnyTest]:
    """The comparisons with the decision of the whole part, without those that means decide; all if it is undecided.

    Example:
        >>> low, middle, high = (Level.from_values(np.array([x, x + 0.1]), f"{x:g}") for x in (1.0, 2.0, 3.0))
        >>> part = all_agree(middle.above(other) for other in (low, high))
        >>> [sorted(one.names) for one in deciding(part, holm(tests_in(part)))]
        [['2', '3']]
    """
    if not isinstance(part, PartialFinding):
        return tests_in(part)
    if part.by_means:
        return []
    agrees = decide(part, corrected).agrees
    some_ = [one for one in part.parts if agrees is None or decide(one, corrected).agrees is agrees]
    return [found for one in some_ for found in deciding(one, corrected)]


def _decide_parts(part: PartialFinding, found: Sequence[TestFinding]) -> TestFinding:
    agreed, against = (sum(one.agrees is said for one in found) for said in (True, False))
    if part.by_means is not None:
        return TestFinding(part.by_means or (False if against else None))
    wanted = ceil(part.share * len(found) - 1e-9)
    spare = len(found) - wanted
    if agreed >= wanted:
        return TestFinding(True)
    if against > spare:
        return TestFinding(False)
    open_ = [one for one in found if one.agrees is None]
    towards, away = (sorted(one.seeds_needed for one in open_ if one.towards is said) for said in (True, False))
    likely = agreed + len(towards) >= wanted  # the decision of more seeds, if the means stay
    needed = towards[wanted - agreed - 1] if likely else away[spare - against]
    return TestFinding(None, 0 if any(not one.seeds_needed for one in open_) else needed, likely)


def upper_tail(mean: Level) -> float:
    """The probability of this t-statistic or a larger one if the mean is zero.

    Example:
        >>> round(upper_tail(Level(2.0, 1.0, 5)), 4)
        0.0581
    """
    if not mean.error:
        return 1.0 if mean.mean < 0 else 0.5 if not mean.mean else 0.0
    if not isfinite(mean.error) or not mean.freedom > 0:
        return 0.5
    return float(stdtr(mean.freedom, -mean.mean / mean.error))


def power_of(mean: Level, seeds: int, level: float) -> float:
    """The power of a one-sided t-test with so many seeds."""
    deviation = mean.error * mean.seeds**0.5
    degrees = mean.freedom * (seeds - 1) / (mean.seeds - 1) if mean.seeds > 1 else nan
    if not isfinite(deviation) or not degrees > 0:
        return 0.0
    if not deviation:
        return float(mean.mean > 0)
    degrees = min(degrees, 1e7)
    shift = mean.mean * seeds**0.5 / deviation
    critical = float(stdtrit(degrees, 1 - level))
    return 1 - float(nctdtr(degrees, shift, critical)) if abs(shift) < 30 else float(shift > critical)


def least_number(power: Callable[[int], float], at_least: int) -> float:
    """The least number of seeds with enough power, more than there are; infinite above `MANY`."""
    low, high = max(2, at_least), MANY
    if power(high) < POWER:
        return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


def number(value: float, signed: bool = False) -> str:
    """Three digits, with a sign for differences.

    Example:
        >>> number(0.00123456, True), number(-12.3456, True), number(1234567.0)
        ('+0.00123', '-12.3', '1.23e+06')
    """
    return f"{value:{'+' if signed else ''}.3g}"
