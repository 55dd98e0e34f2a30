"""Claims of a paper against what we measured: agrees or not, with the numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bounds.atomic import write_file
from empirical.trace import Trace
from figures.room import series

ALIKE = 0.10  # two losses within 10 % of the smaller one, or within two standard errors, count as "about equal"

Found = Mapping[Any, np.ndarray]  # method or setting -> one number per seed


@dataclass(frozen=True)
class Claim:
    """One claim: where it stands, what it says, what we measured, and whether that agrees."""

    source: str
    text: str
    measured: str
    agrees: bool

    @property
    def row(self) -> tuple[str, str, str, str]:
        """For tables."""
        return self.source, self.text, self.measured, "agrees" if self.agrees else "does not agree"


@dataclass(frozen=True)
class Level:
    """A loss or an error rate at the end of a run: mean over the last rounds, then over seeds, with its standard error;
    smaller is better."""

    mean: float
    error: float

    def below(self, other: Level) -> bool:
        """Clearly smaller: by more than two standard errors of the difference."""
        return self.mean < other.mean - 2 * np.hypot(self.error, other.error)

    def alike(self, other: Level) -> bool:
        """About equal."""
        gap = abs(self.mean - other.mean)
        return gap <= max(ALIKE * min(self.mean, other.mean), 2 * float(np.hypot(self.error, other.error)))

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


def above(better: np.ndarray, worse: np.ndarray) -> bool:
    """Clearly larger: seed by seed, the mean difference is more than twice its standard error.

    Example:
        >>> above(np.array([3.0, 5.0]), np.array([2.0, 4.2])), above(np.array([3.0, 5.0]), np.array([2.0, 5.5]))
        (True, False)
    """
    gain = better - worse
    return bool(gain.mean() > 2 * gain.std(ddof=1) / len(gain) ** 0.5)


def means_in_words(found: Found) -> str:
    """Means with standard errors over seeds, best first."""
    ranked = sorted(found.items(), key=lambda item: -item[1].mean())
    return "; ".join(f"{label} {v.mean():.2f} +- {v.std(ddof=1) / len(v) ** 0.5:.2f}" for label, v in ranked)
