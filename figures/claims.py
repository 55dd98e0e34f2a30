"""Claims of a paper against what we measured: agrees, disagrees or inconclusive, with the numbers.

An ordering agrees if it is clear, that is, if the means differ by more than two standard errors over the seeds, and
disagrees if the opposite one is clear. Two levels are about equal if they differ by at most 10 % of the smaller, and
not if they differ by clearly more. A claim of several parts disagrees if one of them does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.atomic import write_file
from fedbounds.empirical.trace import Trace
from fedbounds.figures.paper_gallery import series

ALIKE = 0.10  # two losses within 10 % of the smaller one count as "about equal"

Found = Mapping[Any, np.ndarray]  # method or setting -> one number per seed


@dataclass(frozen=True)
class Claim:
    """One claim: where it stands, what it says, what we measured, and whether that agrees (None: cannot be told)."""

    source: str
    text: str
    measured: str
    agrees: bool | None

    @property
    def verdict(self) -> str:
        """In a word.

        Example:
            >>> [Claim("", "", "", agrees).verdict for agrees in (True, False, None)]
            ['agrees', 'disagrees', 'inconclusive']
        """
        return "inconclusive" if self.agrees is None else "agrees" if self.agrees else "disagrees"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """For tables."""
        return self.source, self.text, self.measured, self.verdict


def every(parts: Iterable[bool | None]) -> bool | None:
    """Whether all parts of a claim agree: False if one disagrees, None if one cannot be told.

    Example:
        >>> every([True, True]), every([True, None]), every([None, False])
        (True, None, False)
    """
    found = list(parts)
    return False if False in found else None if None in found else True


@dataclass(frozen=True)
class Level:
    """A loss or an error rate at the end of a run: mean over the last rounds, then over seeds, with its standard error;
    smaller is better."""

    mean: float
    error: float

    def below(self, other: Level) -> bool | None:
        """Smaller, by more than two standard errors of the difference; False if it is clearly larger.

        Example:
            >>> low, high = Level(1.0, 0.1), Level(2.0, 0.1)
            >>> low.below(high), high.below(low), low.below(Level(1.2, 0.1))
            (True, False, None)
        """
        if self.mean == other.mean:
            return None
        gap, doubt = other.mean - self.mean, 2 * float(np.hypot(self.error, other.error))
        return None if abs(gap) <= doubt else bool(gap > 0)

    def alike(self, other: Level) -> bool | None:
        """About equal; False if the difference is clearly above the tolerance.

        Example:
            >>> Level(1.0, 0.1).alike(Level(1.05, 0.1)), Level(1.0, 0.1).alike(Level(1.2, 0.1))
            (True, None)
        """
        if self.mean == other.mean:
            return True
        beyond = abs(self.mean - other.mean) - ALIKE * min(self.mean, other.mean)
        if beyond <= 0:
            return True
        return None if beyond <= 2 * float(np.hypot(self.error, other.error)) else False

    def __str__(self) -> str:
        return f"{self.mean:.4f} +- {self.error:.4f}"


def level(traces: Sequence[Trace], cycle: int, metric: str = "train_loss") -> Level:
    """A loss, or the share of images got wrong, averaged over the last `cycle` rounds; a diverged seed makes it
    infinite."""
    rounds, values = series(traces, metric)
    last = values[:, rounds > rounds[-1] - cycle].mean(axis=1)
    last = 1 - last if metric.endswith("_accuracy") else last
    if not np.isfinite(last).all():
        return Level(float("inf"), 0.0)
    return Level(float(last.mean()), float(last.std(ddof=1) / np.sqrt(len(last))) if len(last) > 1 else 0.0)


def levels(runs: Mapping[str, Sequence[Trace]], cycle: int, metric: str = "train_loss") -> dict[str, Level]:
    """The final level of every setting."""
    return {label: level(traces, cycle, metric) for label, traces in runs.items()}


def in_words(found: Mapping[str, Level]) -> str:
    """The levels, best first."""
    return "; ".join(f"{label} {value}" for label, value in sorted(found.items(), key=lambda item: item[1].mean))


def write_claims(claims: Sequence[Claim], path: Path) -> Path:
    """The table of claims as CSV, atomically."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["source", "claim", "measured", "verdict"])
    writer.writerows(claim.row for claim in claims)
    write_file(path, text.getvalue().encode())
    return path


def above(better: np.ndarray, worse: np.ndarray) -> bool | None:
    """Larger: seed by seed, the mean difference is more than twice its standard error; False if clearly smaller.

    Example:
        >>> big, small = np.array([3.0, 5.0]), np.array([2.0, 4.2])
        >>> above(big, small), above(small, big), above(big, np.array([2.0, 5.5]))
        (True, False, None)
    """
    gain = better - worse
    doubt = 2 * gain.std(ddof=1) / len(gain) ** 0.5
    return None if abs(gain.mean()) <= doubt else bool(gain.mean() > 0)


def means_in_words(found: Found) -> str:
    """Means with standard errors over seeds, best first."""
    ranked = sorted(found.items(), key=lambda item: -item[1].mean())
    return "; ".join(f"{label} {v.mean():.2f} +- {v.std(ddof=1) / len(v) ** 0.5:.2f}" for label, v in ranked)
