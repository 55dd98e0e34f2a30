"""A run compared with a result: measure and bound at every horizon, and what crossings of the bound imply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten, wrap
from typing import Any

import numpy as np
from scipy.special import stdtr

from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.display.tables import Shown, Table
from fedbounds.bounds.evaluation.evaluate import Evaluation
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.comparison.user_constants import GivenCheck

CERTAIN = 1e-3  # chance above which a crossing by a sample implies nothing
ROUNDING = 1e-9  # relative excess over the bound that is a crossing


@dataclass(frozen=True, eq=False)
class RunComparison(Shown):
    """The measured left-hand side and the right-hand side of a result, for one or many numbers of rounds T.

    Attributes:
        result, form: of the bound.
        label: "exact", "exact given the record", or "mean of n seeds".
        measure: the left-hand side that was measured.
        rounds: the horizons T, (K,).
        measured: the measure at each T, (K,).
        standard_error: of the measure over seeds (of a minimum: where it is attained), (K,); None where nothing was
            sampled.
        bound: the right-hand side at each T, (K,).
        terms: name to its value at each T, (K,); they sum to the bound.
        valid: whether the conditions of the form hold at each T, (K,).
        whole: whether all rounds of the measure were recorded at each T, (K,); else it is not the bounded one.
        thinned: the relative change of the measure at each T without every other record, (K,); 0 where all were
            recorded, and for a minimum.
        evaluation: the form at the largest T, with its constants and their kinds, conditions and assumptions.
        notes: what else a reader must know.
        seeds: how many seeds the measure is a mean of; 0 where it is exact, as for moments and runs without noise.
        samples: the measure of each seed (of a minimum: where that of the mean is attained), (seeds, K), or None.
        given_check: doubts about given constants, and about whether the form is about the run.
    """

    result: Result
    form: Form
    label: str
    measure: Measure
    rounds: np.ndarray
    measured: np.ndarray
    standard_error: np.ndarray | None
    bound: np.ndarray
    terms: Mapping[str, np.ndarray]
    valid: np.ndarray
    whole: np.ndarray
    thinned: np.ndarray
    evaluation: Evaluation
    notes: tuple[str, ...] = ()
    seeds: int = 0
    samples: np.ndarray | None = None
    given_check: GivenCheck = field(default_factory=GivenCheck)

    def __repr__(self) -> str:
        """One line; `print` shows the whole summary."""
        promise = f"guarantee: {self.evaluation.guarantee_text}"
        return f"<RunComparison with {self.result.key} [{self.form.name}]: {self._last}, {promise}>"

    def __str__(self) -> str:
        """A summary of at most 30 lines of 100 columns; `tables()` and the attributes have all of it."""
        heads = [
            *wrap(f"{self.result.key} [{self.form.name}], {self.result.source}", _WIDTH, subsequent_indent="  "),
            *wrap(str(self.measure), _WIDTH),
            *_entry("run", f"{self.label}, {self._span}"),
            *_entry("verdict", self._verdict),
            *_entry("worst ratio", self._worst),
            *_entry("conditions", self._conditions),
            *self._constant_lines(),
        ]
        left = _HEIGHT - len(heads) - bool(self.why_not) - bool(self.notes)
        listed = _items(self.why_not, left - min(len(self.notes), 3), "why_not")
        told = _items(self.notes, left - len(listed), "notes")
        why = ["no guarantee, because:", *listed] if listed else []
        return "\n".join([*heads, *why, *(["notes:", *told] if told else [])])

    @property
    def _span(self) -> str:
        """The numbers of rounds."""
        first, last = int(self.rounds[0]), int(self.rounds[-1])
        return f"{self.symbol} = {last}" if first == last else f"{self.symbol} = {first} to {last}"

    @property
    def _verdict(self) -> str:
        """Whether the run crosses the bound, and whether the bound is a guarantee."""
        crossed = self.crossings
        if self.revoked:
            said = self.revoked
        elif crossed.size:
            said = f"above the bound at {len(crossed)} of {len(self.rounds)} {self.symbol}, where a condition fails"
        else:
            said = f"never above the bound{'' if self.valid.all() else f', but conditions fail at some {self.symbol}'}"
        return f"{said}; guarantee: {self.evaluation.guarantee_text}"

    @property
    def _worst(self) -> str:
        """The largest ratio of measure and bound, and that at the largest T."""
        ratio = self.ratio
        last = f"measured {number(float(self.measured[-1]))}"
        if self.standard_error is not None:
            last += f" +- {number(float(self.standard_error[-1]))}"
        last += f", bound {number(float(self.bound[-1]))}, ratio {ratio[-1]:.3g}"
        at = f"{self.symbol} = {int(self.rounds[-1])}: {last}"
        known = np.isfinite(ratio) & np.isfinite(self.bound)
        if not known.any():
            return f"none; {at}"
        k = int(np.argmax(np.where(known, ratio, -np.inf)))
        return f"{ratio[k]:.3g} at {self.symbol} = {int(self.rounds[k])}; {at}"

    @property
    def _conditions(self) -> str:
        """Where the conditions hold, and which fail at the largest T."""
        if self.valid.all():
            return "hold" if len(self.rounds) == 1 else f"hold at every {self.symbol}"
        failed = [check.text for check in self.evaluation.conditions if not np.all(check.holds)]
        at = f"fail at {int((~self.valid).sum())} of {len(self.rounds)} {self.symbol}"
        return f"{at}: {shorten('; '.join(failed), 2 * _WIDTH, placeholder=' ...')}" if failed else at

    def _constant_lines(self) -> list[str]:
        """The constants by their source."""
        by_source: dict[str, list[str]] = {}
        for name, constant in self.constants.items():
            if name not in self.evaluation.unused:
                by_source.setdefault(constant.source, []).append(f"{name} = {number(constant.value)}")
        return [line for source, some in by_source.items() for line in _entry(source, ", ".join(some), most=2)]

    @property
    def _last(self) -> str:
        """Measure and bound at the largest T."""
        holds = "conditions hold" if self.valid[-1] else "a condition fails"
        at = f"at {self.symbol} = {int(self.rounds[-1])}"
        return f"{at}: measured {number(float(self.measured[-1]))}, bound {number(float(self.bound[-1]))} ({holds})"

    @property
    def symbol(self) -> str:
        """The symbol of the number of rounds."""
        rounds = self.result.notation.resolve("rounds")
        return "T" if rounds is None else rounds.name

    @property
    def revoked(self) -> str:
        """What the crossings inside the conditions imply ("" if there are none)."""
        crossed, form, statuses = self.rounds[self._relevant_crossings], self.form, self.evaluation.assumptions
        if not crossed.size:
            return ""
        where = (
            f"crossed at {len(crossed)} of {len(self.rounds)} {self.symbol} inside its conditions, first at "
            f"{self.symbol} = {int(crossed[0])}"
        )
        violated = [name for name, status in statuses.items() if status == "violated"]
        estimated = [name for name, c in self.constants.items() if c.source == "estimated"]
        if violated:
            return f"{where}, where it does not hold: {', '.join(violated)}"
        if self.given_check.doubts:
            return f"{where}: {self.given_check.doubts[0]}"
        if form.refuted_by:
            return f"{where}, as erratum {form.refuted_by} says"
        if form.order_only or form.asymptotic:
            return f"{where}, which does not imply an error: {_reason_not_a_bound(form)}"
        if not self.whole[self._relevant_crossings].all():
            return f"{where}, which does not imply an error: {self.measure.over} were not recorded; record all"
        chance = self.chance
        if chance > CERTAIN:
            return f"{where}, by {_sample(self.seeds, chance)}: use exact moments or more seeds"
        listed = ", ".join(f"{name} ({status})" for name, status in statuses.items())
        causes = f"this theorem is false, or an assumption does not hold: {listed or 'none is listed'}"
        if self.given_check.unconfirmed or estimated:
            causes += f", or a constant is wrong: {', '.join([*self.given_check.unconfirmed, *estimated])}"
        return f"{where}: {causes}{f', or this is chance in {_sample(self.seeds, chance)}' if self.seeds else ''}"

    def judge(self) -> RunComparison:
        """The same with its guarantee revoked by the crossings, and with a note on an average of some rounds."""
        reason, spacing = self.revoked, self.spacing
        noted = replace(self, notes=(*self.notes, spacing)) if spacing else self
        return replace(noted, evaluation=noted.evaluation.revoke(reason)) if reason else noted

    @property
    def chance(self) -> float:
        r"""A bound of the probability that a sample exceeds the bound as far as this one by chance.

        It is $K\,P(t_{S-1}\ge z)$ for S seeds, K numbers of rounds and the largest excess z in standard errors; 0 for
        what is exact, 1 for one seed.
        """
        above = self._relevant_crossings
        if not self.seeds or not above.any():
            return 0.0 if not self.seeds else 1.0
        if self.standard_error is None or self.seeds == 1:
            return 1.0
        with np.errstate(all="ignore"):
            excess, error = (self.measured - self.bound)[above], self.standard_error[above]
            z = float(np.max(np.where(np.isfinite(excess), excess / error, np.inf)))
        return float(min(1.0, len(self.rounds) * stdtr(self.seeds - 1, -z)))

    @property
    def constants(self) -> Mapping[str, Constant]:
        """Every constant used at the largest T, with its kind."""
        return self.evaluation.constants

    @property
    def guarantee(self) -> bool:
        """Whether the bound at the largest T is a guarantee for this run."""
        return self.evaluation.guarantee

    @property
    def why_not(self) -> tuple[str, ...]:
        """The reasons why it is not."""
        return self.evaluation.why_not

    @property
    def crossings(self) -> np.ndarray:
        """Every T at which the measure exceeds the bound, whether or not the conditions hold there."""
        return self.rounds[self._above]

    @property
    def covered_crossings(self) -> np.ndarray:
        """The crossings at which the conditions hold: none, unless an assumption is violated or the result false."""
        return self.rounds[self._above & self.valid]

    @property
    def _above(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            return self.measured > self.bound + ROUNDING * np.abs(self.bound)

    @property
    def _relevant_crossings(self) -> np.ndarray:
        """The crossings inside the conditions: those where nothing was left out, if there are any."""
        covered = self._above & self.valid
        return covered & self.whole if (covered & self.whole).any() else covered

    @property
    def spacing(self) -> str:
        """The sensitivity of an average to the recorded rounds, as a note ("" if all were recorded)."""
        k = int(np.argmax(np.abs(self.thinned))) if self.form.prescribes else -1
        change = 100 * self.thinned[k]
        if not change:
            return ""
        size = f"{abs(change):.2g} % {'larger' if change > 0 else 'smaller'}"
        return f"from every other record alone the average at {self.symbol} = {int(self.rounds[k])} would be {size}"

    @property
    def headline(self) -> str:
        """What was compared with what, and whether it is a guarantee."""
        lines = [f"{self.label} against {self.result.key} [{self.form.name}]: {self.measure}", self.revoked]
        return "\n".join(
            filter(None, [*lines, f"guarantee: {self.evaluation.guarantee_text}", *self.why_not, *self.notes])
        )

    def tables(self) -> tuple[Table, ...]:
        """One line for each number of rounds, and the constants with their kinds."""
        error = np.full(len(self.rounds), np.nan) if self.standard_error is None else self.standard_error
        columns = (self.rounds, self.measured, error, self.bound, self.ratio, self.valid)
        rows = list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
        names = (self.symbol, "measured", "standard error", "bound", "measured / bound", "conditions hold")
        constants = [(name, c.value, c.source, c.note) for name, c in self.constants.items()]
        return Table("", names, rows), Table("constants", ("constant", "value", "source", "note"), constants)

    @property
    def ratio(self) -> np.ndarray:
        """Measured over bound at each T: how tight the bound is, (K,)."""
        with np.errstate(all="ignore"):
            return self.measured / self.bound


_WIDTH, _HEIGHT = 100, 30  # of the printed summary


def _entry(name: str, text: str, most: int = 3) -> list[str]:
    """A named entry of the summary, on at most so many lines."""
    text = shorten(text, most * (_WIDTH - 24), placeholder=" ...")
    return wrap(f"{name + ':':<13}{text}", _WIDTH, subsequent_indent=" " * 13)


def _items(texts: Sequence[str], most: int, where: str) -> list[str]:
    """Texts as items of a list on at most so many lines, and how many are left out."""
    lines: list[str] = []
    for place, text in enumerate(texts):
        item = wrap(shorten(text, 2 * (_WIDTH - 8), placeholder=" ..."), _WIDTH - 4)
        more = place < len(texts) - 1
        if len(lines) + len(item) + more > most:
            return [*lines, f"  ... and {len(texts) - place} more: .{where}"]
        lines += [f"  - {item[0]}", *(f"    {rest}" for rest in item[1:])]
    return lines


def join_comparisons(points: Sequence[RunComparison], note: str) -> RunComparison:
    """Comparisons of runs of increasing T as one."""
    last = points[-1]
    sampled = [point.samples for point in points if point.samples is not None]
    errors = [point.standard_error for point in points if point.standard_error is not None]
    along = ("rounds", "measured", "bound", "valid", "whole", "thinned")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(point, name) for point in points]) for name in along}
    return replace(
        last,
        **arrays,
        standard_error=np.concatenate(errors) if len(errors) == len(points) else None,
        terms={name: np.concatenate([point.terms[name] for point in points]) for name in last.terms},
        seeds=max(point.seeds for point in points),
        samples=np.concatenate(sampled, axis=1) if len(sampled) == len(points) else None,
        notes=(*last.notes, note),
    )


def _reason_not_a_bound(form: Form) -> str:
    """Why a run may cross a form that is not a bound."""
    if form.order_only:
        return "the form hides constants in an O(.), and every hidden constant is taken as 1"
    return f"the form holds only in the limit {form.asymptotic}"


def _sample(seeds: int, chance: float) -> str:
    """A sample of runs, and the chance of such a crossing."""
    if seeds == 1:
        return "one seed, which is no evidence about an expectation"
    return f"the mean of {seeds} seeds (chance alone does that in {100 * chance:.2g} % of samples at most)"
