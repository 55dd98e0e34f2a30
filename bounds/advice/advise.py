"""What to do in a setting: of every result that covers it, the best choice for a target, what it costs, and why not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from fedbounds.bounds.advice.coverage import Coverage, Covered, covers, stated_assumptions
from fedbounds.bounds.advice.request import Question, describe_missing
from fedbounds.bounds.advice.search import Choice, Costs, FormSearch
from fedbounds.bounds.display.tables import Shown, Table
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.evaluate import Evaluation, Value, evaluate
from fedbounds.bounds.theory.measures import EXPECTED, Measure
from fedbounds.bounds.theory.problem_class import YES
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.registry import paper as paper_of
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import workload_of
from fedbounds.bounds.theory.symbols import Constant

STEP = 1e-4  # of the logarithm; the error is of its square


def elasticities(result: Result, form: Form, constants: Mapping[str, Value], names: Iterable[str]) -> dict[str, float]:
    r"""By how many percent the bound grows if a constant grows by one, everything else held fixed, step sizes too.

    Central differences in the logarithm, one-sided where the other side is illegal; all entries of a vector grow
    together. Left out are whole numbers, weights with a sum, zeros, and what the bound does not depend on.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("tdcd/theorem-1")
        >>> known = dict(L=1, Lmax=1, Delta=5, S=1, Q=1, R=100, eta=0.1)
        >>> found = elasticities(theorem, theorem.form("repaired"), known, ["Delta", "S"])
        >>> round(found["Delta"] + found["S"], 6)
        1.0
    """
    found = {}
    for name in names:
        quantity, given = result.notation[name], constants[name]
        constant = given if isinstance(given, Constant) else Constant(given, "given")  # pyright: ignore[reportArgumentType]
        value = np.asarray(constant.value, dtype=float)
        if quantity.domain.integer or quantity.total is not None or value.ndim > len(quantity.shape):
            continue
        if not ((value > 0) & np.isfinite(value)).all():
            continue
        legal = [f for f in (-STEP, 0.0, STEP) if quantity.domain.contains(value * np.exp(f)).all()]
        low, high = legal[0], legal[-1]
        moved = np.stack([value * np.exp(low), value * np.exp(high)])
        try:
            there = {**constants, name: Constant(moved, constant.source)}
            values = evaluate(result, there, form=form.name, strict=False).value
        except FedboundsError:  # beside the others, this constant is what it is
            continue
        before, after = np.broadcast_to(values, (2,)).tolist()
        if 0 < before < np.inf and 0 < after < np.inf and before != after:
            found[name] = float((np.log(after) - np.log(before)) / (high - low))
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


Status = Literal["reached", "never", "undecided", "missing", "contradicted", "another measure", "no rounds"]
TIGHT = 1e-6  # relative difference of two sides that are called equal


class Watch(Protocol):
    """What is told how many results of how many are done, and which is under way."""

    def __call__(self, done: int, total: int, /, now: str | None = None) -> None: ...


@dataclass(frozen=True)
class Advised(Shown):
    """What one result says for the target.

    Attributes:
        coverage: whether it covers the setting, and which form is meant.
        status: "reached", or why there is no advice.
        why: the reason in a line.
        measure: what it bounds.
        choice: the best that was found; None where nothing was computed.
        evaluation: the bound there, with the reasons why it is no guarantee.
        at: everything that was chosen or is prescribed, by symbol: whole numbers and step sizes.
        active: what stops the choice from being better: conditions and ends of ranges that hold with equality.
        sensitivity: the elasticity of the bound in each constant.
        missing: symbol to meaning, of constants without which nothing can be said.
        best_case: where something is missing: the choice if it were zero.
        lacking: cost to what it cannot be decided without.
        curve: for each number of local steps that was tried, the best choice.
        note: "" or a remark on the search.
    """

    coverage: Coverage
    status: Status
    why: str
    measure: Measure
    choice: Choice | None = None
    evaluation: Evaluation | None = field(repr=False, default=None)
    at: Mapping[str, float] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    sensitivity: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    best_case: Choice | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    curve: tuple[Choice, ...] = field(repr=False, default=())
    note: str = ""

    @property
    def key(self) -> str:
        """Of the result."""
        return self.coverage.key

    @property
    def costs(self) -> Costs | None:
        """Of the target; None where it is not reached."""
        return None if self.choice is None else self.choice.costs

    @property
    def guarantee(self) -> bool:
        """Whether the bound there is a guarantee."""
        return self.evaluation is not None and self.evaluation.guarantee

    @property
    def why_not(self) -> tuple[str, ...]:
        """Why it is none."""
        return self.evaluation.why_not if self.evaluation is not None else (self.why,)

    @property
    def dominant(self) -> str:
        """The largest term there ("" for none)."""
        return "" if self.evaluation is None else str(self.evaluation.dominant)

    def tables(self) -> tuple[Table, ...]:
        """What to choose, what it costs, and what would change it."""
        costs = [] if self.costs is None else [(n, v) for n, v in vars(self.costs).items() if v is not None]
        return (
            Table(f"{self.key} [{self.coverage.form}]: {self.status}", ("choose", "value"), [*self.at.items()]),
            Table("cost", ("of", "value"), costs),
            Table("elasticity of the bound", ("constant", "value"), [*self.sensitivity.items()]),
            Table("not a guarantee, because", ("reason",), [(reason,) for reason in self.why_not]),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        evaluation, choice = self.evaluation, self.choice
        return {
            "key": self.key,
            "form": self.coverage.form,
            "covers": self.coverage.answer,
            "only_if": {name: list(kinds) for name, kinds in self.coverage.only_if.items()},
            "mark": self.coverage.mark,
            "measure": str(self.measure),
            "status": self.status,
            "why": self.why,
            "at": dict(self.at),
            "least": choice is not None and choice.least,
            "costs": None if self.costs is None else vars(self.costs),
            "lacking": dict(self.lacking),
            "value": None if evaluation is None else evaluation.value,
            "shares": {} if evaluation is None else dict(evaluation.shares),
            "dominant": self.dominant,
            "active": list(self.active),
            "sensitivity": dict(self.sensitivity),
            "missing": dict(self.missing),
            "best_case": None if self.best_case is None else _short(self.best_case),
            "guarantee": self.guarantee,
            "conditional_on": "" if evaluation is None else evaluation.conditional_on,
            "why_not": list(self.why_not),
            "assumptions": [] if evaluation is None else
            [{"name": name, "status": status} for name, status in evaluation.assumptions.items()],
            "constants": {} if evaluation is None else
            {n: {"value": c.value, "source": c.source, "note": c.note} for n, c in evaluation.constants.items()},
            "curve": [_short(one) for one in self.curve],
            "note": self.note,
        }  # fmt: skip


def _short(choice: Choice) -> dict[str, Any]:
    return {"whole": dict(choice.whole), "status": choice.status, "why": choice.why,
            "costs": None if choice.costs is None else vars(choice.costs)}  # fmt: skip


@dataclass(frozen=True)
class Advice(Shown):
    """What every result says.

    Attributes:
        question: what was asked.
        covered: which results cover the setting.
        results: one for each that does, or that may.
    """

    question: Question
    covered: Covered
    results: tuple[Advised, ...]

    def of(self, key: str) -> Advised:
        """What a result says."""
        for one in self.results:
            if one.key == key:
                return one
        excluded = ", ".join(a.name for row in self.excluded if row.key == key for a in row.excluded)
        if excluded:
            raise FedboundsError(f"{key} does not cover the setting: excluded by {excluded}")
        if key in self._versions:
            raise FedboundsError(f"{key} covers the setting and is not asked: {self._versions[key]}")
        raise unknown_name("result that covers the setting", key, [one.key for one in self.results])

    @property
    def excluded(self) -> tuple[Coverage, ...]:
        """The results about whole runs that do not cover the setting."""
        return tuple(row for row in self.covered.with_answer("not covered") if row.of_a_run)

    @property
    def _versions(self) -> Mapping[str, str]:
        """Of a result given the participation and that in expectation over it, the one that is not asked, and why."""
        asked = {one.key for one in self.results}
        rows = [row for row in self.covered.results if row.of_a_run and row.answer != "not covered"]
        found = {}
        for key in (row.key for row in rows if row.key not in asked):
            given = key.removesuffix(EXPECTED)
            needs = f"it needs a declared stationary process whose weights sum to one in every round; see {given}"
            random = f"it holds given the participation, and the declared one is random; see {given}{EXPECTED}"
            found[key] = random if key == given else needs
        return found

    @property
    def groups(self) -> tuple[tuple[Measure, tuple[Advised, ...]], ...]:
        """The results that reach the target, by what they bound, the best first; between groups nothing is ranked."""
        found: dict[str, list[Advised]] = {}
        for one in self.results:
            if one.status == "reached":
                found.setdefault(str(one.measure), []).append(one)
        return tuple((rows[0].measure, tuple(sorted(rows, key=_rank))) for rows in found.values())

    @property
    def relations(self) -> tuple[str, ...]:
        """For every two groups, which left-hand side is never the larger one, or what keeps them apart."""
        found = []
        for i, (first, rows) in enumerate(self.groups):
            for second, others in self.groups[i + 1 :]:
                names = rows[0].key, others[0].key
                if first.is_at_most(second) or second.is_at_most(first):
                    low, high = names if first.is_at_most(second) else names[::-1]
                    found.append(f"rounds that are enough for {high} are enough for what {low} bounds, not the reverse")
                else:
                    found.append(f"{names[0]} and {names[1]} are not comparable: {first.difference(second)}")
        return tuple(found)

    @property
    def headline(self) -> str:
        """The setting as it was understood, and the target."""
        asked = self.question
        goal = f"target {asked.target:g} for the {self.measured or 'measure'}; least {asked.minimize}"
        who = [f"participation: {asked.participation.text}"] if asked.participation else []
        unsaid = ["where a result assumes something of what was not said, its number is no guarantee"]
        return "\n".join([self.covered.headline, *(unsaid if asked.setting.unsaid else []), *who, goal])

    @property
    def measured(self) -> str:
        """What the target is for."""
        return self.question.measure

    def tables(self) -> tuple[Table, ...]:
        """One row for each result that reaches the target; then the others with the reason."""
        goals = ("rounds", "gradients", "bits", "seconds")
        rows = [
            (one.key, one.coverage.form + (f", {one.coverage.mark}" if one.coverage.mark else ""), str(measure),
             dict(one.at), *(vars(one.costs)[goal] for goal in goals), one.dominant, one.guarantee)
            for measure, ordered in self.groups for one in ordered if one.costs is not None
        ]  # fmt: skip
        others = [(one.key, one.status, one.why) for one in self.results if one.status != "reached"]
        others += [(key, "not asked", why) for key, why in self._versions.items()]
        others += [(row.key, "not covered", ", ".join(a.name for a in row.excluded)) for row in self.excluded]
        columns = ("result", "form", "bounds", "choose", *goals, "dominant", "guarantee")
        return (Table("reach the target", columns, rows), Table("do not", ("result", "status", "why"), others))

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds advise --json` (without schema and version)."""
        asked, setting = self.question, self.question.setting
        return {
            "said": {name: list(kinds) for name, kinds in setting.said.items()},
            "supposed": setting.supposed,
            "unsaid": list(setting.unsaid),
            "target": asked.target,
            "measure": self.measured,
            "minimize": asked.minimize,
            "participation": asked.participation.text if asked.participation else "",
            "results": [one.to_dict() for one in self.results],
            "groups": [{"measure": str(m), "results": [one.key for one in rows]} for m, rows in self.groups],
            "relations": list(self.relations),
            "not_covered": [row.to_dict() for row in self.excluded],
        }


def _rank(one: Advised) -> tuple[bool, bool, float]:
    """Numbers that the audit has proved before others, these before orders, then what was to be least."""
    mark = one.coverage.mark
    return mark != "", mark in ("order only", "refuted"), np.inf if one.choice is None else one.choice.goal


def advise(question: Question, *, paper: str | None = None, watch: Watch | None = None) -> Advice:
    """Ask every result that covers a setting how its target is reached best."""
    covered = covers(question.setting, paper=paper)
    question, measure = _measured(question, covered)
    keys = [row.key for row in covered.results if row.of_a_run and row.answer != "not covered"]
    keys = _stated(keys, question.participation is not None and question.participation.averaged)
    found = []
    for done, key in enumerate(keys):
        if watch is not None:
            watch(done, len(keys), now=key)
        found.append(_advise_result(question, load(key), covered, measure))
    return Advice(question, covered, tuple(found))


def _stated(keys: Sequence[str], averaged: bool) -> list[str]:
    """Of a result given the participation and that in expectation over it, the one for this participation."""
    expected = {key for key in keys if key.endswith(EXPECTED) and key.removesuffix(EXPECTED) in keys}
    others = {key.removesuffix(EXPECTED) for key in expected} if averaged else expected
    return [key for key in keys if key not in others]


def _measured(question: Question, covered: Covered) -> tuple[Question, str]:
    """The question with the target for what is bounded, and what that is."""
    rows = [row for row in covered.forms if row.of_a_run and row.answer != "not covered"]
    known = {row.measure.of: row.measure for row in rows}
    said = question.measure
    if not known:
        return question, said
    if said in known:
        return question, said
    for of, measure in known.items():
        if said and said == measure.unsquared:
            return replace(question, target=question.target**2, measure=of), of
    if said:
        raise unknown_name("measure of a result that covers the setting", said, known)
    legal = " or ".join(f"measure = {json.dumps(of)}" for of in known)
    raise FedboundsError(f"measure is missing: what is the target for? Add {legal}")


def _advise_result(question: Question, result: Result, covered: Covered, measure: str) -> Advised:
    """What one result says, by the best form that says something."""
    rows = [row for row in covered.forms if row.key == result.key and row.answer != "not covered"]
    rows.sort(key=lambda row: row.rank)
    fit = [row for row in rows if row.measure.of == measure]
    if not fit:
        return Advised(rows[0], "another measure", f"it bounds the {rows[0].measure.of}", rows[0].measure)
    found: list[Advised] = []
    for row in fit:
        if row.mark and any(not one.coverage.mark and one.status in ("never", "undecided") for one in found):
            break
        one = advice_for_form(question, result, row)
        found.append(one)
        if one.status == "reached":
            return one
    order = ("never", "undecided", "missing", "contradicted", "no rounds")
    best = min(found, key=lambda one: order.index(one.status))
    return _best_case(question, result, best) if best.status == "missing" else best


def _search(question: Question, result: Result, row: Coverage, zero: tuple[str, ...] = ()) -> FormSearch | None:
    form = result.form(row.form)
    workload = workload_of(result, form)
    return None if workload is None else FormSearch(question, result, form, workload, zero)


def advice_for_form(question: Question, result: Result, row: Coverage) -> Advised:
    """What one form says that covers the setting, as its row tells."""
    search = _search(question, result, row)
    if search is None:
        return Advised(row, "no rounds", "its paper does not say what a round is made of", row.measure)
    try:
        counter = search.counter
    except FedboundsError as error:
        return Advised(row, "no rounds", str(error), row.measure)
    try:
        missing = [name for name in search.missing if name != counter.name]
    except FedboundsError as error:
        return Advised(row, "contradicted", str(error), row.measure)
    if missing:
        words = describe_missing(missing, result, search.form)
        return Advised(row, "missing", f"needs {', '.join(missing)}", row.measure, missing=words)
    try:
        best = search.run()
    except FedboundsError as error:
        return Advised(row, "contradicted", str(error), row.measure)
    if best.costs is None:
        status: Status = "never" if best.status == "never" else "undecided"
        ends = search._ends(best.whole) if np.isfinite(best.floor) else ""
        return Advised(row, status, f"{best.why}, {ends}" if ends else best.why, row.measure, best)
    return _advice_of_form(search, row, best)


def _best_case(question: Question, result: Result, found: Advised) -> Advised:
    """What can be said without the constants that are missing: what would be, were they zero."""
    missing = tuple(found.missing)
    search = _search(question, result, found.coverage)
    if search is None or not search.harmless:
        return found
    search = _search(question, result, found.coverage, missing)
    assert search is not None
    try:
        return replace(found, best_case=search.run())
    except FedboundsError:
        return found


def _advice_of_form(search: FormSearch, row: Coverage, best: Choice) -> Advised:
    """The advice of one form, its guarantee and what would change it."""
    question, result, form = search.question, search.result, search.form
    assert best.evaluation is not None
    there = best.evaluation.constants
    known = search.constants(best.whole)
    chosen = {name: there[name] for name in (*search.steps, search.counter.name)}
    facts = search.presence(best.whole)
    names = {a.name for a in form.assumptions}
    evaluation = evaluate(
        result,
        {**known, **chosen},
        form=form.name,
        assume=_assumed_names(question, result, form, facts.implied),
        checked={name: holds for name, holds in facts.checked.items() if name in names},
        trust=[one for one in question.trust if one in (result.key, f"{result.key}[{form.name}]")],
        strict=False,
    )
    reasons = [f"it covers the setting only if {axis}: {' or '.join(kinds)}" for axis, kinds in row.only_if.items()]
    evaluation = evaluation.revoke(*reasons)
    at = {name: float(value) for name, value in best.whole.items()}
    at |= {name: float(np.ravel(chosen[name].value)[0]) for name in search.steps}
    at |= {name: float(np.ravel(value)[0]) for name, value in evaluation.prescribed.items()}
    return Advised(
        row,
        "reached",
        "",
        row.measure,
        best,
        evaluation,
        at,
        _active(search, best, evaluation) + tuple(_range_ends(search, evaluation).values()),
        elasticities(result, form, {n: there[n] for n in (*known, *chosen)}, [n for n in known if n not in at]),
        lacking=dict(search.lacking),
        curve=search.curve,
        note=_note(search, best, evaluation),
    )


def _note(search: FormSearch, best: Choice, evaluation: Evaluation) -> str:
    """What the search leaves open."""
    usual = [name for name in _range_ends(search, evaluation) if search.is_usual(name)]
    wider = [f"nothing but the usual range stops {name}: a wider one in [choose] may rank it higher" for name in usual]
    least = [] if best.least else ["fewer rounds were not excluded"]
    return "; ".join(least + wider)


def _assumed_names(question: Question, result: Result, form: Form, implied: frozenset[str]) -> list[str]:
    """The assumptions that the user takes for granted: by name, by what was said of the setting, or of who takes part;
    and those that the method sees to, which is to be run so."""
    if "all" in question.assume:
        return ["all"]
    said = {
        a.name
        for a in stated_assumptions(result, form, paper_of(result.paper).scope)
        if a.cover is not None and a.cover.level(question.setting) == YES
    }
    return [a.name for a in form.assumptions if a.name in said | implied | set(question.assume)]


def _range_ends(search: FormSearch, evaluation: Evaluation) -> dict[str, str]:
    """The step sizes that lie at an end of their range, with that end."""
    found = {}
    for name, ends in search.ranges(evaluation.constants).items():
        value = float(evaluation.constants[name].value)
        for sign, end in zip((">=", "<="), ends, strict=True):
            if abs(value - end) <= 1e-9 * end:
                found[name] = f"{name} {sign} {end:g}"
    return found


def _active(search: FormSearch, best: Choice, evaluation: Evaluation) -> tuple[str, ...]:
    free = {search.result.notation[name].symbol for name in (*search.steps, *best.whole)}
    found = []
    for c, condition in zip(evaluation.conditions, evaluation.form.conditions, strict=True):
        symbols = condition.left.free_symbols | condition.right.free_symbols
        left, right = float(c.left), float(c.right)
        if symbols & free and abs(left - right) <= TIGHT * max(abs(left), abs(right)):
            found.append(c.text)
    for name, rungs in search.ladders.items():
        if len(rungs) > 1 and best.whole[name] == rungs[-1] and not search.is_supplied(name):
            found.append(f"{name} <= {rungs[-1]}")
    return tuple(found)
