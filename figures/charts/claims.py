"""Claims of a paper compared with measurements: agrees, disagrees, inconclusive, or not tested at this scale.

A claim compares means over seeds (`significance`). Holm's method corrects all comparisons of the claims about one
figure or table. A claim about the end of training is not tested at this scale if the network is smaller than the
paper's or if a compared curve still moves.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.inputs.output_files import Output, write_output
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.paper_gallery import series
from fedbounds.figures.charts.significance import (
    AnyTest,
    Corrected,
    Level,
    Part,
    TestFinding,
    decide,
    error_of_mean,
    holm,
    tests_in,
)
from fedbounds.figures.charts.verdicts import COLUMNS, NOT_TESTED

LAST_FIFTH = 0.2  # of a run, over which a curve must stay level

Found = Mapping[Any, Level]  # method or setting -> a level


@dataclass(frozen=True)
class FigureClaim:
    """A claim of a paper, its comparisons and its verdict.

    Attributes:
        source: the figure, table or statement; claims with the same source are one family of comparisons.
        text, paper: the claim that is tested, and the paper's wording if it differs.
        measured: the numbers in words.
        found: the comparisons, or whether the claim holds.
        limits: why this scale does not test the paper's claim; empty if it does.
        family: the comparisons that Holm's method corrects together (default: those of the claim).
    """

    source: str
    text: str
    measured: str
    found: Part
    paper: str = ""
    limits: str = ""
    family: tuple[AnyTest, ...] = ()

    @cached_property
    def _corrected(self) -> dict[tuple[object, ...], Corrected]:
        return holm(self.family or tests_in(self.found))

    @cached_property
    def here(self) -> TestFinding:
        """The finding of the comparisons at this scale."""
        return decide(self.found, self._corrected)

    @property
    def agrees(self) -> bool | None:
        """Whether the measurements agree; None if inconclusive or not tested."""
        return None if self.limits else self.here.agrees

    @property
    def verdict(self) -> str:
        """The verdict in words.

        Example:
            >>> [FigureClaim("", "", "", agrees).verdict for agrees in (True, False, None)]
            ['agrees', 'disagrees', 'inconclusive']
            >>> FigureClaim("", "", "", True, limits="a smaller network").verdict
            'not tested at this scale'
        """
        return NOT_TESTED if self.limits else self.at_this_scale

    @property
    def at_this_scale(self) -> str:
        """The verdict of the comparisons, without the limits of the scale."""
        return "inconclusive" if self.here.agrees is None else "agrees" if self.here.agrees else "disagrees"

    @property
    def note(self) -> str:
        """The number of seeds that would decide; if the claim is not tested, why, and the finding here.

        Example:
            >>> FigureClaim("", "", "", True, limits="a smaller network").note
            'a smaller network; here: agrees'
        """
        if not self.limits:
            return self.here.power
        return f"{self.limits}; here: {self.at_this_scale}{f', {self.here.power}' if self.here.power else ''}"

    @property
    def comparisons(self) -> str:
        """The deciding comparisons, with 95 % intervals and corrected p-values."""
        tests = list({test.key: test for test in tests_in(self.found, deciding=True)}.values())
        if not tests:
            return ""
        words = "; ".join(test.words(self._corrected[test.key].p) for test in tests)
        kinds = " and ".join(dict.fromkeys(test.kind for test in tests))
        many = len(self._corrected)
        return f"{words} ({kinds}; Holm, {many} comparison{'s' if many > 1 else ''})"

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a table with columns `COLUMNS`."""
        said = self.paper or self.text
        return self.source, said, self.text, self.measured, self.comparisons, self.verdict, self.note


def correct(claims: Iterable[FigureClaim]) -> list[FigureClaim]:
    """The claims, each with all comparisons of its source as the family that Holm's method corrects."""
    made = list(claims)
    families: dict[str, list[AnyTest]] = {}
    for claim in made:
        families.setdefault(claim.source, []).extend(tests_in(claim.found))
    return [replace(claim, family=tuple(families[claim.source])) for claim in made]


@dataclass(frozen=True)
class Limits:
    """Why a scale does not test claims on the end of training: a smaller network (or ""), settings that still move."""

    network: str = ""
    moving: frozenset[str] = frozenset()

    @staticmethod
    def of_network(network: str, own: Iterable[str]) -> Limits:
        """The limit of a network, unless it is one of `own`."""
        return Limits("" if network in own else network)

    def apply(self, claims: Iterable[FigureClaim]) -> list[FigureClaim]:
        """The claims with their limits: the network, and those moving settings that a claim compares."""
        return [replace(claim, limits=self._words(claim)) for claim in claims]

    def _words(self, claim: FigureClaim) -> str:
        compared = {name for test in tests_in(claim.found) for name in test.names}
        moving = [name for name in sorted(self.moving) if name in compared]
        reasons = [f"network {self.network} is smaller than the paper's"] if self.network else []
        return "; ".join(reasons + ([f"still moving: {', '.join(moving)}"] if moving else []))


def limits_of(
    network: str, own: Iterable[str], runs: Mapping[Any, Sequence[Trace]], window: int, metric: str
) -> Limits:
    """The limits of runs by setting, for means over the last `window`; `own` are networks as large as the paper's."""
    moving = frozenset(str(name) for name, traces in runs.items() if still_moves(*series(traces, metric), window))
    return replace(Limits.of_network(network, own), moving=moving)


def still_moves(rounds: np.ndarray, values: np.ndarray, window: int) -> bool:
    """Whether a mean over a window of rounds moved by more than its standard error over the last fifth of a run.

    Args:
        rounds: of the records, (points,).
        values: of the metric, (seeds, points); seeds that diverged are left out.
        window: the last rounds, over which a level is averaged.
    """
    begins = rounds[-1] - LAST_FIFTH * (rounds[-1] - rounds[0])
    finite = values[np.isfinite(values).all(axis=1)]
    if not len(finite):
        return False
    before, after = (finite[:, (rounds > end - window) & (rounds <= end)].mean(axis=1) for end in (begins, rounds[-1]))
    error = error_of_mean(after) if len(finite) > 1 else 0.0
    return bool(abs(after.mean() - before.mean()) > error)


def levels_by_name(found: Mapping[Any, np.ndarray], symbol: str = "") -> dict[Any, Level]:
    """Levels of one number for each seed, named by method, or by a symbol and its value."""
    return {
        key: Level.from_values(values, f"{symbol} = {key:g}" if symbol else str(key)) for key, values in found.items()
    }


def level(traces: Sequence[Trace], cycle: int, metric: str = "train_loss", name: str = "") -> Level:
    """A loss (or 1 - accuracy, 1 - F1), averaged over the last `cycle` rounds; infinite if a seed diverged."""
    rounds, values = series(traces, metric)
    last = values[:, rounds > rounds[-1] - cycle].mean(axis=1)
    ids = [int(seed) for trace in traces for seed in trace.arrays.get("seed", ())]
    return Level.from_values(1 - last if metric.endswith(("_accuracy", "_f1")) else last, name, ids)


def levels(runs: Mapping[str, Sequence[Trace]], cycle: int, metric: str = "train_loss") -> dict[str, Level]:
    """The final level of every setting."""
    return {label: level(traces, cycle, metric, label) for label, traces in runs.items()}


def describe_levels(found: Mapping[str, Level], against: str) -> str:
    """The levels, best first, with their distances from a reference in brackets.

    Example:
        >>> values = {"a": np.array([1.0, 2.0]), "b": np.array([1.1, 2.3])}
        >>> describe_levels(levels_by_name(values), "a")
        'a 1.5000 +- 0.5000; b 1.7000 +- 0.6000 (0.2000 +- 0.1000 above)'
    """
    base = found[against]

    def describe(value: Level) -> str:
        gap = value.minus(base)
        if value is base or not np.isfinite(gap.mean):
            return str(value)
        return f"{value} ({abs(gap.mean):.4f} +- {gap.error:.4f} {'above' if gap.mean > 0 else 'below'})"

    return "; ".join(
        f"{label} {describe(value)}" for label, value in sorted(found.items(), key=lambda item: item[1].mean)
    )


def claims_output(path: Path) -> Output:
    """The file of a table of claims."""
    return Output(path)


def write_claims(claims: Sequence[FigureClaim], path: Path, *, force: bool = False) -> Path:
    """Write the claims as CSV, corrected within each figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(claim.row for claim in correct(claims))
    write_output(claims_output(path), text.getvalue().encode(), force)
    return path


def describe_level(found: Level, form: str = ".2f") -> str:
    """A mean over seeds and its standard error.

    Example:
        >>> one = Level.from_values(np.array([1.0, 2.0]))
        >>> describe_level(one), describe_level(one, "+.1f")
        ('1.50 +- 0.50', '+1.5 +- 0.5')
    """
    return f"{found.mean:{form}} +- {found.error:{form.lstrip('+')}}"


def describe_means(found: Found) -> str:
    """Means with standard errors over seeds, best first."""
    return "; ".join(
        f"{label} {describe_level(one)}" for label, one in sorted(found.items(), key=lambda item: -item[1].mean)
    )
