"""Claims of a paper against what we measured: agrees, disagrees or inconclusive, with the numbers and the power.

An ordering agrees if it is clear, that is, if the means differ by more than two standard errors over the seeds (of the
differences seed by seed, where the same seeds were run), and disagrees if the opposite one is clear. Two levels are
about equal if they clearly differ by at most 10 % of the smaller, and not if they clearly differ by more. A claim of
several parts disagrees if one of them does, and cannot be told if one of the others cannot. The power of what cannot be
told is the number of seeds at which means and deviations such as these would be clear.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.outputs import Output, write_output
from fedbounds.empirical.trace import Trace
from fedbounds.figures.paper_gallery import series

ALIKE = 0.10  # two losses within 10 % of the smaller one count as "about equal"
CLEAR = 2  # standard errors
TABLE = b"source,claim,measured,verdict,"  # how a table of claims begins
MANY = 10_000  # seeds that nobody runs

Found = Mapping[Any, np.ndarray]  # method or setting -> one number per seed


@dataclass(frozen=True)
class Finding:
    """Whether something agrees (None: it cannot be told), and the seeds that would tell: 0 where it is told."""

    agrees: bool | None
    seeds_needed: float = 0

    @staticmethod
    def of(gap: float, error: float, seeds: int) -> Finding:
        """Whether a mean of this many seeds is above 0 by more than two standard errors; False if clearly below.

        Example:
            >>> Finding.of(1.0, 0.1, 5).agrees, Finding.of(-1.0, 0.1, 5).agrees, Finding.of(0.1, 0.1, 5).power
            (True, False, 'about 21 seeds would tell')
        """
        if abs(gap) > CLEAR * error:
            return Finding(gap > 0)
        ratio = CLEAR * error / abs(gap) if gap else np.inf
        return Finding(None, int(seeds * ratio**2) + 1 if np.isfinite(ratio) else np.inf)

    @property
    def power(self) -> str:
        """How many seeds would tell, in words; nothing where it is told, or where there are none."""
        many = self.seeds_needed
        if self.agrees is not None or not many:
            return ""
        return f"about {many:.0f} seeds would tell" if many <= MANY else "no feasible number of seeds would tell"


Part = Finding | bool | None


def as_finding(part: Part) -> Finding:
    """What is exact, or read off a table, has no seeds that would tell."""
    return part if isinstance(part, Finding) else Finding(part)


def every(parts: Iterable[Part]) -> Finding:
    """Whether all parts of a claim agree: False if one disagrees, None if one cannot be told.

    Example:
        >>> every([True, True]).agrees, every([True, None]).agrees, every([None, False]).agrees
        (True, None, False)
        >>> every([Finding(None, 12), Finding(None, 40), True]).power
        'about 40 seeds would tell'
    """
    found = [as_finding(part) for part in parts]
    if any(one.agrees is False for one in found):
        return Finding(False)
    open_ = [one.seeds_needed for one in found if one.agrees is None]
    return Finding(None, max(open_)) if open_ else Finding(True)


@dataclass(frozen=True)
class Claim:
    """One claim: where it stands, what it says, what we measured, and what that says of it."""

    source: str
    text: str
    measured: str
    found: Part

    @property
    def agrees(self) -> bool | None:
        """Whether what we measured agrees; None: it cannot be told."""
        return as_finding(self.found).agrees

    @property
    def verdict(self) -> str:
        """In a word.

        Example:
            >>> [Claim("", "", "", agrees).verdict for agrees in (True, False, None)]
            ['agrees', 'disagrees', 'inconclusive']
        """
        return "inconclusive" if self.agrees is None else "agrees" if self.agrees else "disagrees"

    @property
    def power(self) -> str:
        """How many seeds would tell, where it cannot be told."""
        return as_finding(self.found).power

    @property
    def row(self) -> tuple[str, str, str, str, str]:
        """For tables."""
        return self.source, self.text, self.measured, self.verdict, self.power


@dataclass(frozen=True)
class Level:
    """A loss or an error rate at the end of a run: mean over the last rounds, then over seeds, with its standard error;
    smaller is better. Two levels that have `values`, one for each seed, are compared seed by seed."""

    mean: float
    error: float
    seeds: int = 1
    values: tuple[float, ...] = ()

    def below(self, other: Level) -> Finding:
        """Smaller, by more than two standard errors of the difference; False if it is clearly larger.

        Example:
            >>> low, high = Level(1.0, 0.1), Level(2.0, 0.1)
            >>> low.below(high).agrees, high.below(low).agrees, low.below(Level(1.2, 0.1)).agrees
            (True, False, None)
            >>> Level.of(np.array([1.0, 2.0])).below(Level.of(np.array([1.1, 2.11]))).agrees
            True
        """
        if self.mean == other.mean:
            return Finding(None, np.inf)
        return Finding.of(other.mean - self.mean, self.doubt(other), max(self.seeds, other.seeds))

    def alike(self, other: Level) -> Finding:
        """About equal: clearly within the tolerance; False if the difference is clearly above it.

        Example:
            >>> near, far = Level(1.0, 0.01), Level(1.0, 0.1)
            >>> near.alike(Level(1.05, 0.01)).agrees, near.alike(Level(1.2, 0.01)).agrees, far.alike(near).agrees
            (True, False, None)
        """
        if self.mean == other.mean and not self.doubt(other):
            return Finding(True)
        if not np.isfinite([self.mean, other.mean]).all():
            return Finding(self.mean == other.mean)
        spare = ALIKE * min(abs(self.mean), abs(other.mean)) - abs(self.mean - other.mean)
        return Finding.of(spare, self.doubt(other), max(self.seeds, other.seeds))

    def doubt(self, other: Level) -> float:
        """The standard error of the difference, seed by seed where both have values."""
        if self.values and len(self.values) == len(other.values):
            return Level.of(np.subtract(self.values, other.values)).error
        return float(np.hypot(self.error, other.error))

    @staticmethod
    def of(values: np.ndarray) -> Level:
        """Of one number for each seed; a diverged seed makes it infinite."""
        if not np.isfinite(values).all():
            return Level(float("inf"), 0.0, len(values))
        error = error_of_mean(values) if len(values) > 1 else np.inf
        return Level(float(values.mean()), error, len(values), tuple(values.tolist()))

    def __str__(self) -> str:
        return f"{self.mean:.4f} +- {self.error:.4f}"


def level(traces: Sequence[Trace], cycle: int, metric: str = "train_loss") -> Level:
    """A loss, or one less an accuracy or an F1 score, averaged over the last `cycle` rounds; a diverged seed makes it
    infinite."""
    rounds, values = series(traces, metric)
    last = values[:, rounds > rounds[-1] - cycle].mean(axis=1)
    return Level.of(1 - last if metric.endswith(("_accuracy", "_f1")) else last)


def levels(runs: Mapping[str, Sequence[Trace]], cycle: int, metric: str = "train_loss") -> dict[str, Level]:
    """The final level of every setting."""
    return {label: level(traces, cycle, metric) for label, traces in runs.items()}


def in_words(found: Mapping[str, Level], against: str) -> str:
    """The levels, best first, and in brackets how far each is from the one that it is held against.

    Example:
        >>> in_words({"a": Level.of(np.array([1.0, 2.0])), "b": Level.of(np.array([1.1, 2.3]))}, "a")
        'a 1.5000 +- 0.5000; b 1.7000 +- 0.6000 (0.2000 +- 0.1000 above)'
    """
    base = found[against]

    def held(value: Level) -> str:
        gap = value.mean - base.mean
        if value is base or not np.isfinite(gap):
            return str(value)
        return f"{value} ({abs(gap):.4f} +- {value.doubt(base):.4f} {'above' if gap > 0 else 'below'})"

    return "; ".join(f"{label} {held(value)}" for label, value in sorted(found.items(), key=lambda item: item[1].mean))


def claims_output(path: Path) -> Output:
    """The table of claims as a file."""
    return Output(path, TABLE)


def write_claims(claims: Sequence[Claim], path: Path, *, force: bool = False) -> Path:
    """The table of claims as CSV; see `fedbounds.bounds.outputs.write_output`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["source", "claim", "measured", "verdict", "power"])
    writer.writerows(claim.row for claim in claims)
    write_output(claims_output(path), text.getvalue().encode(), force)
    return path


def above(better: np.ndarray, worse: np.ndarray) -> Finding:
    """Larger: seed by seed, the mean difference is more than twice its standard error; False if clearly smaller.

    Example:
        >>> big, small = np.array([3.0, 5.0]), np.array([2.0, 4.2])
        >>> above(big, small).agrees, above(small, big).agrees, above(big, np.array([2.0, 5.5])).agrees
        (True, False, None)
    """
    return positive(better - worse)


def positive(values: np.ndarray) -> Finding:
    """Above 0 on average over seeds, by more than two standard errors; False if clearly below."""
    return Finding.of(float(values.mean()), error_of_mean(values), len(values))


def error_of_mean(values: np.ndarray) -> float:
    """The standard error of the mean of one number for each seed."""
    return float(values.std(ddof=1) / len(values) ** 0.5)


def mean_in_words(values: np.ndarray, form: str = ".2f") -> str:
    """The mean of one number for each seed, and its standard error, which has no sign.

    Example:
        >>> mean_in_words(np.array([1.0, 2.0])), mean_in_words(np.array([1.0, 2.0]), "+.1f")
        ('1.50 +- 0.50', '+1.5 +- 0.5')
    """
    return f"{values.mean():{form}} +- {error_of_mean(values):{form.lstrip('+')}}"


def means_in_words(found: Found) -> str:
    """Means with standard errors over seeds, best first."""
    ranked = sorted(found.items(), key=lambda item: -item[1].mean())
    return "; ".join(f"{label} {mean_in_words(values)}" for label, values in ranked)
