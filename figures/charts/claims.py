"""Claims of a paper compared with measurements: reproduced, not reproduced, inconclusive, or not tested at this scale.

A claim compares means over seeds (`significance`). Holm's method corrects all comparisons of the claims about one
figure or table. A claim about runs is not tested at this scale unless every run of the comparisons that decide it, and
every difference found by them, has reached its plateau (`plateau`). It is not reproduced only if paired comparisons
show the opposite with power 0.8.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import Output, write_output
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.paper_gallery import SECONDS, series
from fedbounds.figures.charts.plateau import Plateau, describe_length, find_plateau, finite_seeds
from fedbounds.figures.charts.significance import (
    LEVEL,
    AnyTest,
    Corrected,
    Level,
    Part,
    Test,
    TestFinding,
    decide,
    deciding,
    holm,
    number,
    tests_in,
    without,
)
from fedbounds.figures.charts.verdicts import COLUMNS, INCONCLUSIVE, NOT_REPRODUCED, NOT_TESTED, REPRODUCED

Found = Mapping[Any, Level]  # method or setting -> a level
SHARES = ("_accuracy", "_f1")  # endings of metrics that are shares


@dataclass(frozen=True)
class Limits:
    """The scale of the runs behind a claim: how far they are from the paper's, and from a plateau.

    Attributes:
        network: of the runs, if smaller than the paper's; else empty.
        plateaus: setting, or difference of two of them, -> its plateau.
        seconds: setting -> the measured seconds of its runs on one core; settings without a measurement are missing.
        unit: of the lengths of runs, rounds or iterations.
        curves: setting -> rounds (points,) and judged values (seeds, points) of its runs.
        window: the last rounds, over which the judged values are averaged.
    """

    network: str = ""
    plateaus: Mapping[str, Plateau] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    unit: str = "rounds"
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False, compare=False)
    window: float = 0.0

    @staticmethod
    def of_network(network: str, own: Iterable[str], unit: str = "rounds") -> Limits:
        """The limit of a network, unless it is one of `own`."""
        return Limits("" if network in own else network, unit=unit)

    def apply(self, claims: Iterable[FigureClaim]) -> list[FigureClaim]:
        """The claims, each with the runs of the settings that it compares; with all if it names none of them."""
        return [replace(claim, limits=self.of(tests_in(claim.found))) for claim in claims]

    def of(self, tests: Sequence[AnyTest]) -> Limits:
        """The runs that some comparisons name, with their differences where both are level; all if they name none."""
        names = {name for one in tests for name in one.names} & {*self.plateaus}
        if not names:
            return self
        plateaus, seconds = ({k: v for k, v in of.items() if k in names} for of in (self.plateaus, self.seconds))
        pairs = {one.gap.name: self._difference(one) for one in tests if isinstance(one, Test)}
        differences = {name: found for name, found in pairs.items() if found is not None}
        return replace(self, plateaus=plateaus | differences, seconds=seconds)

    def _difference(self, test: Test) -> Plateau | None:
        """The plateau of a difference of two settings that is found by seed, at the rounds of the first.

        Levels of which seeds have very different values may move while their difference is precise.
        """
        pair = test.gap.name.split(" - ")
        if test.unpaired or test.p > LEVEL or len(pair) != 2 or not {*pair} <= {*self.curves}:
            return None
        (rounds, one), (others, other) = (self.curves[name] for name in pair)
        if {*pair} & {*self.moving} or len(one) != len(other):
            return None
        gaps = one - np.array([np.interp(rounds, others, row) for row in other])
        finite = finite_seeds(rounds, gaps, self.window)  # accuracies of seeds that diverged count as chance
        return find_plateau(rounds, finite, self.window, small=inf if test.tolerance else 1)

    def __or__(self, other: Limits) -> Limits:
        """The runs of both; of settings of the same name the plateau that needs more rounds."""
        plateaus, seconds = dict(self.plateaus), Counter(self.seconds)
        for name, one in other.plateaus.items():
            plateaus[name] = max(plateaus.get(name, one), one, key=lambda found: (found.needed, not found.reached))
        seconds.update(other.seconds)
        return replace(
            self,
            network=self.network or other.network,
            plateaus=plateaus,
            seconds=dict(seconds),
            curves={**self.curves, **other.curves},
            window=max(self.window, other.window),
        )

    @property
    def moving(self) -> dict[str, Plateau]:
        """The settings without a plateau."""
        return {name: one for name, one in self.plateaus.items() if not one.reached}

    @property
    def rounds(self) -> int:
        """The rounds of the shortest run; 0 without runs."""
        return min((one.rounds for one in self.plateaus.values()), default=0)

    @property
    def needed(self) -> float:
        """The rounds to the last plateau, at least."""
        return max((one.needed for one in self.plateaus.values()), default=0)

    @property
    def hours(self) -> float:
        """The core hours of all runs to their plateaus, at least; nan if seconds are not measured."""
        settings = {name for found in self.plateaus for name in found.split(" - ")}
        if not settings or not settings <= {*self.seconds}:
            return nan
        lengths = {
            name: max(one.needed / one.rounds for found, one in self.plateaus.items() if name in found.split(" - "))
            for name in settings
        }
        return sum(self.seconds[name] * length for name, length in lengths.items()) / 3600

    @property
    def words(self) -> str:
        """Why runs do not test a claim, and the cost of those that would; empty if all have reached their plateau.

        Example:
            >>> Limits("", {"a": Plateau(100, 0.2, 0.1, 450), "b": Plateau(100, 0, 0.1, 100)}, {"a": 80, "b": 80}).words
            'still moving after 100 rounds: a (a plateau needs at least about 450 rounds, 0.122 core hours in all)'
        """
        if not self.moving:
            return ""
        hours = f", {number(self.hours)} core hours in all" if isfinite(self.hours) else ""
        known = all(one.falls for one in self.moving.values())
        more = "" if known else "; only a lower limit, as the movement does not fall yet"
        return (
            f"still moving after {self.rounds:,} {self.unit}: {'; '.join(self.moving)} "
            f"(a plateau needs {describe_length(self.needed, self.unit)}{hours}{more})"
        )

    def caption(self, judged: str) -> str:
        """The same as a sentence for captions on what is judged, with a space before it; else empty."""
        return f" {NOT_TESTED.capitalize()}: {judged} {self.words}." if self.moving else ""


@dataclass(frozen=True)
class FigureClaim:
    """A claim of a paper, its comparisons and its verdict.

    Attributes:
        source: the figure, table or statement; claims with the same source are one family of comparisons.
        text, paper: the claim that is tested, and the paper's wording if it differs.
        measured: the numbers in words.
        found: the comparisons, or whether the claim holds.
        limits: the runs that are compared; None if there are none, as for exact results.
        family: the comparisons that Holm's method corrects together (default: those of the claim).
        left_out: the settings that still move, whose comparisons are not needed for the verdict.
    """

    source: str
    text: str
    measured: str
    found: Part
    paper: str = ""
    limits: Limits | None = None
    family: tuple[AnyTest, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def settled(self) -> FigureClaim:
        """The claim by its comparisons of runs at their plateau, if they decide it alone; else as it is.

        That a method is better than all others is not reproduced if it is worse than one of them, whether or not the
        rest still move.
        """
        if not (self.limits and self.limits.moving):
            return self
        limits, family = self.limits, self.family or tuple(tests_in(self.found))
        found = without(self.found, lambda one: bool(limits.of([one]).moving))
        rest = replace(
            self,
            found=found,
            limits=limits.of(deciding(found, self._corrected)),
            family=family,
            left_out=(*limits.moving,),
        )
        return self if rest.agrees is None else rest

    @cached_property
    def _corrected(self) -> dict[tuple[object, ...], Corrected]:
        return holm(self.family or tests_in(self.found))

    @cached_property
    def here(self) -> TestFinding:
        """The finding of the comparisons, whether or not the runs have reached their plateau."""
        return decide(self.found, self._corrected)

    @property
    def agrees(self) -> bool | None:
        """Whether the claim is reproduced; None if inconclusive or not tested."""
        return {REPRODUCED: True, NOT_REPRODUCED: False}.get(self.verdict)

    @property
    def verdict(self) -> str:
        """The verdict in words.

        Example:
            >>> [FigureClaim("", "", "", holds).verdict for holds in (True, False, None)]
            ['reproduced', 'not reproduced', 'inconclusive']
            >>> FigureClaim("", "", "", True, limits=Limits("", {"a": Plateau(100, 0.2, 0.1, 450)})).verdict
            'not tested at this scale'
        """
        if self.limits and self.limits.moving:
            return NOT_TESTED
        if self.here.agrees is None or self._unpaired:
            return INCONCLUSIVE
        return REPRODUCED if self.here.agrees else NOT_REPRODUCED

    @property
    def _unpaired(self) -> bool:
        """Whether comparisons of runs show the opposite, but not seed by seed."""
        against = self.limits is not None and self.here.agrees is False
        return against and any(test.unpaired for test in self._deciding)

    @property
    def note(self) -> str:
        """Why a claim is not tested, what diverged, how the scale differs, seeds that would decide, what still moves.

        Example:
            >>> FigureClaim("", "", "", True, limits=Limits("mlp")).note
            "network mlp is smaller than the paper's"
        """
        if self.limits is None:
            return self.here.power
        small = f"network {self.limits.network} is smaller than the paper's" if self.limits.network else ""
        power = "" if self.limits.moving else self.here.power
        unpaired = "the opposite is not shown seed by seed" if self._unpaired and not self.limits.moving else ""
        moving = f"not needed for the verdict, still moving: {'; '.join(self.left_out)}" if self.left_out else ""
        return "; ".join(filter(None, (self.limits.words, small, power, unpaired, moving)))

    @property
    def comparisons(self) -> str:
        """The comparisons that decide the verdict (all if none do), with 95 % intervals and corrected p-values."""
        tests = self._deciding
        if not tests:
            return ""
        words = "; ".join(test.words(self._corrected[test.key].p) for test in tests)
        kinds = " and ".join(dict.fromkeys(test.kind for test in tests))
        many = len(self._corrected)
        return f"{words} ({kinds}; Holm, {many} comparison{'s' if many > 1 else ''})"

    @cached_property
    def _deciding(self) -> list[AnyTest]:
        moving = self.limits is not None and self.limits.moving
        found = tests_in(self.found) if moving else deciding(self.found, self._corrected)
        return [*{one.key: one for one in found}.values()]

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a table with columns `COLUMNS`.

        `p` is the largest corrected p-value and `detectable` the largest of the smallest differences that are found
        with power 0.8, both of the deciding comparisons.
        """
        said, tests = self.paper or self.text, self._deciding
        p = max((self._corrected[test.key].p for test in tests), default=nan)
        detectable = max((test.detectable(self._corrected[test.key].level) for test in tests), default=nan)
        seeds = max((one.seeds for one in tests), default=0)
        return (
            self.source, said, self.text, self.measured, self.comparisons, self.verdict, self.note, *self._scale_cells,
            str(seeds or ""), *("" if value != value else f"{value:.2g}" for value in (p, detectable)), self._cost,
        )  # fmt: skip

    @property
    def _scale_cells(self) -> tuple[str, str, str]:
        if self.limits is None or not self.limits.plateaus:
            return "", "", ""
        moving, needed = self.limits.moving, self.limits.needed
        return (
            str(self.limits.rounds) if self.limits.unit == "rounds" else f"{self.limits.rounds} {self.limits.unit}",
            f"no: {'; '.join(moving)}" if moving else "yes",
            f"{needed:.0f}",
        )

    @property
    def _cost(self) -> str:
        seconds = sum(self.limits.seconds.values()) if self.limits else 0
        return f"{seconds:.0f}" if seconds else ""


def correct(claims: Iterable[FigureClaim]) -> list[FigureClaim]:
    """The claims, each with all comparisons of its source as the family that Holm's method corrects, and settled."""
    made = list(claims)
    families: dict[str, list[AnyTest]] = {}
    for claim in made:
        families.setdefault(claim.source, []).extend(tests_in(claim.found))
    return [replace(claim, family=tuple(families[claim.source])).settled for claim in made]


def limits_of(
    network: str,
    own: Iterable[str],
    runs: Mapping[Any, Sequence[Trace]],
    window: float,
    metric: str,
    steps: int = 0,
) -> Limits:
    """The limits of runs by setting, for means over the last `window`; `own` are networks as large as the paper's.

    The window may be shorter than the distance of two records: then it has the last record. With `steps`, the local
    steps of a round, lengths and the window are in iterations.
    """
    if wrong := [str(k) for k in runs if " - " in str(k)]:
        raise FedboundsError(f"{wrong[0]!r} has ' - ', which differences have: give the setting another name")
    curves = {str(k): series(of, metric) for k, of in runs.items()}
    curves = {name: (rounds * (steps or 1), values) for name, (rounds, values) in curves.items()}
    shares = metric.endswith(SHARES)
    plateaus = {name: find_plateau(*curve, window, shares=shares) for name, curve in curves.items()}
    seconds = {
        str(name): sum(float(trace.arrays[SECONDS].sum()) for trace in traces)
        for name, traces in runs.items() if all(SECONDS in trace.arrays for trace in traces)
    }  # fmt: skip
    limits = Limits.of_network(network, own, "iterations" if steps else "rounds")
    return replace(limits, plateaus=plateaus, seconds=seconds, curves=curves, window=window)


def movement_caption(runs: Mapping[Any, Sequence[Trace]], window: float, metrics: Iterable[str]) -> str:
    """A sentence for captions for each metric in which some runs have not reached their plateau, or nothing."""
    words = {metric: metric.replace("train_", "training ").replace("_", " ") for metric in metrics}
    return "".join(limits_of("", (), runs, window, metric).caption(of) for metric, of in words.items())


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
    return Level.from_values(1 - last if metric.endswith(SHARES) else last, name, ids)


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
