"""Which results cover a setting: every form of every result, by the assumptions that it declares.

A form covers a setting if all its assumptions, and those of its paper, hold there (`theory.problem_class.Cover`). It
covers the setting under a condition if some hold for a part of it only; otherwise the excluding assumptions are named.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedbounds.bounds.audit.ledger import mark
from fedbounds.bounds.display.plain_text import as_cell
from fedbounds.bounds.display.tables import Shown, Table, frame
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.assumptions import FULL_PARTICIPATION, Assumption
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.problem_class import ASKED, NO, NOWHERE, PERHAPS, ProblemClass, box, restrict_levels, where
from fedbounds.bounds.theory.problem_class_terms import AXES
from fedbounds.bounds.theory.registry import paper as load_paper
from fedbounds.bounds.theory.registry import papers
from fedbounds.bounds.theory.result import Form, Result

if TYPE_CHECKING:
    import pandas as pd

Answer = Literal["covered", "if", "not covered"]
RANK: Mapping[Answer, int] = {"covered": 0, "if": 1, "not covered": 2}
OBJECTIVE = (
    "gradient norm of f",
    "envelope of the",
    "function gap",
    "distance to the minimizer",
)  # in measures of the objective
PLAIN = ("", "fedavg", "generalized-fedavg", "minibatch-sgd")  # kinds of algorithms that every reader expects
KINDS = {"sharp": 0, "repaired": 1, "explicit": 2, "printed": 3}
ALL_CLIENTS = FULL_PARTICIPATION.with_label("participation is not specified, so full participation is assumed")
NO_SCOPE = Assumption(
    "scope", "your problem and algorithm are those that the paper is about", "not declared", cover=ASKED
)


def about_method(algorithm: str) -> str:
    """The kind of an algorithm in words where it is neither FedAvg nor SGD; "" elsewhere."""
    return "" if algorithm in PLAIN else f"about {algorithm}"


@dataclass(frozen=True)
class Coverage:
    """Whether one form covers a setting.

    Attributes:
        key, form: of the result, and which of its forms.
        kind: theorem, corollary, proposition, lemma or remark.
        measure: what is bounded.
        answer: "covered", "if" more of the setting is known, or "not covered".
        only_if: for "if", by axis the kinds that are covered, where the setting leaves others as well.
        you: the assumptions that hold or not whatever can be said here; who relies on the form answers for them.
        method: the assumptions that are met by running the algorithm so.
        excluded: the assumptions that exclude the setting; "refuted" with its erratum if the form is refuted.
        mark: "refuted", "unread", "order only", another verdict of the audit, or "" for a form that is proved.
        default: whether it is the form that is taken by default.
        uses: the given properties without which it does not cover the setting, and the share of kinds excluded then.
        algorithm: the kind of the algorithm that it is about, as its theorem file names it; "" if none does.
    """

    key: str
    form: str
    kind: str
    measure: Measure
    answer: Answer
    only_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    you: tuple[Assumption, ...] = ()
    method: tuple[Assumption, ...] = ()
    excluded: tuple[Assumption, ...] = ()
    mark: str = ""
    default: bool = False
    uses: Mapping[str, float] = field(default_factory=dict)
    algorithm: str = ""

    @property
    def rank(self) -> tuple[int, int, bool, int, int]:
        """Forms of one result from the best answer to the worst; proved ones first, then the default form."""
        unproved = self.mark != ""
        open_axes = len(self.only_if) + len(self.you)
        return RANK[self.answer], unproved, not self.default, open_axes, KINDS[self.form.partition(":")[0]]

    @property
    def about(self) -> str:
        """The algorithm in words where it is neither FedAvg nor SGD; "" elsewhere."""
        return about_method(self.algorithm)

    @property
    def of_a_run(self) -> bool:
        """Whether it bounds something of a whole run, and is no lemma."""
        return self.kind != "lemma" and self.measure.aggregate != "single"

    @property
    def open_axes(self) -> str:
        """What else must be known of the setting, in words; "" if nothing."""
        return "; ".join(f"{name}: {' or '.join(kinds)}" for name, kinds in self.only_if.items())

    @property
    def of_objective(self) -> bool:
        """Whether it bounds how far a whole run is from a minimizer or a stationary point of the objective."""
        return self.of_a_run and self.kind != "remark" and any(word in self.measure.of for word in OBJECTIVE)

    @property
    def place(self) -> tuple[int, bool, bool, float, bool]:
        """Results from the first to the last: answer, upper bounds of the objective, use of the setting, proof."""
        return RANK[self.answer], not self.of_objective, self.measure.lower, -sum(self.uses.values()), self.mark != ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "form": self.form,
            "kind": self.kind,
            "measure": str(self.measure),
            "of_a_run": self.of_a_run,
            "answer": self.answer,
            "only_if": {name: list(kinds) for name, kinds in self.only_if.items()},
            "you_answer_for": [a.name for a in self.you],
            "method": [a.name for a in self.method],
            "excluded_by": [{"name": a.name, "label": a.label, "statement": a.statement} for a in self.excluded],
            "mark": self.mark,
            "default": self.default,
            "uses": list(self.uses),
            "algorithm": self.algorithm,
        }


@dataclass(frozen=True)
class Covered(Shown):
    """Every form's answer to one setting.

    Attributes:
        setting: what was asked.
        forms: one row for each form, in the papers' order.
    """

    setting: ProblemClass
    forms: tuple[Coverage, ...]

    @property
    def results(self) -> tuple[Coverage, ...]:
        """One row for each result: the form with the best answer."""
        best: dict[str, Coverage] = {}
        for row in self.forms:
            if row.key not in best or row.rank < best[row.key].rank:
                best[row.key] = row
        return tuple(best.values())

    def with_answer(self, answer: Answer) -> tuple[Coverage, ...]:
        """The results with this answer."""
        return tuple(row for row in self.results if row.answer == answer)

    @property
    def nearest(self) -> tuple[Coverage, ...]:
        """Where nothing covers the setting: of each paper the first theorem that the fewest assumptions exclude."""
        if any(row.answer != "not covered" for row in self.results if row.of_a_run):
            return ()
        proved = [row for row in self.results if row.kind == "theorem" and row.of_a_run and not row.mark]
        fewest = min((len(row.excluded) for row in proved), default=0)
        first: dict[str, Coverage] = {}
        for row in proved:
            if len(row.excluded) == fewest:
                first.setdefault(row.key.partition("/")[0], row)
        return tuple(first.values())

    def of(self, key: str, form: str | None = None) -> Coverage:
        """The row of a result, or of one form."""
        rows = self.results if form is None else self.forms
        for row in rows:
            if row.key == key and form in (None, row.form):
                return row
        raise FedboundsError(f"{key}{f' [{form}]' if form else ''} was not asked")

    @property
    def headline(self) -> str:
        """The setting as it was understood."""
        usual = ", ".join(f"{name} {kind}" for name, kind in self.setting.supposed.items())
        unsaid = ", ".join(self.setting.unsaid)
        return f"said: {self.setting.text}\ntaken as usual: {usual or 'nothing'}\nnot said: {unsaid or 'nothing'}"

    def tables(self) -> tuple[Table, ...]:
        """The results about whole runs, those that cover the setting first."""
        rows = [
            (
                row.key,
                ", ".join(filter(None, [row.form, row.mark, row.about])),
                row.answer,
                row.open_axes,
                [a.name for a in row.you],
                [a.name for a in row.excluded],
            )
            for row in sorted(self.results, key=lambda row: row.place)
            if row.of_a_run
        ]
        return (Table("", ("result", "form", "answer", "only if", "you answer for", "excluded by"), rows),)

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each form, as in `to_csv`."""
        return frame(self.to_csv())

    def to_csv(self) -> str:
        """One line for each form."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            ["key", "form", "answer", "only if", "you answer for", "excluded by", "mark", "measure", "algorithm"]
        )
        for row in self.forms:
            named = ["; ".join(a.name for a in listed) for listed in (row.you, row.excluded)]
            cells = [row.key, row.form, row.answer, row.open_axes, *named, row.mark, str(row.measure), row.algorithm]
            writer.writerow(map(as_cell, cells))
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds covers --json` (without schema and version)."""
        return {
            "said": {name: list(kinds) for name, kinds in self.setting.said.items()},
            "supposed": self.setting.supposed,
            "unsaid": list(self.setting.unsaid),
            "nearest": [row.key for row in self.nearest],
            "results": [row.to_dict() for row in self.results],
            "forms": [row.to_dict() for row in self.forms],
        }


def covers(setting: ProblemClass | str, *, paper: str | None = None) -> Covered:
    r"""Ask every form of every result whether it covers a setting.

    Args:
        setting: phrases such as "non-convex, partial participation, unknown rates" (see `Setting.of`), or a setting.
        paper: only this one.

    Raises:
        FedboundsError: a phrase that is not known, or no such paper.

    Example:
        >>> found = covers("non-convex, unknown rates, bounded heterogeneity, bounded variance, local steps")
        >>> found.of("fedau/corollary-4").answer, found.of("fedau/corollary-4").only_if
        ('if', {'gradients': ('bounded',)})
        >>> [assumption.name for assumption in found.of("fed-norm-sgda/theorem-1").excluded]
        ['minimax', 'uniform-sampling', 'strongly-concave']
    """
    asked = setting if isinstance(setting, ProblemClass) else ProblemClass.of(setting)
    rows = [
        coverage(result, form, one.scope or (() if result.file else (NO_SCOPE,)), asked)
        for one in (papers(references=True) if paper is None else [load_paper(paper)])
        for result in one.results
        for form in result.forms
    ]
    return Covered(asked, tuple(rows))


def coverage(result: Result, form: Form, scope: Iterable[Assumption], setting: ProblemClass) -> Coverage:
    """Whether one form covers a setting."""
    assumed = stated_assumptions(result, form, scope)
    tables = [(a, restrict_levels((a.cover or ASKED).levels(), setting)) for a in assumed]
    excluded = [a for a, table in tables if table.max() == NO]
    joint = _together(table for _, table in tables)
    if not excluded and joint.max() == NO:  # each could hold, but not all at once
        excluded = _conflict(tables)
    if form.refuted_by:
        excluded.append(
            Assumption("refuted", f"the erratum {form.refuted_by} refutes it, or what it rests on", "audit")
        )
    if excluded:
        answer: Answer = "not covered"
    else:
        answer = "if" if joint.min() == NO else "covered"
    return Coverage(
        result.key,
        form.name,
        result.kind,
        form.measure or result.measure,
        answer,
        _only_if(joint, setting) if answer == "if" else {},
        tuple(a for a, table in tables if (table == PERHAPS).any()),
        tuple(a for a in assumed if a.cover is not None and a.cover.by == "method"),
        tuple(excluded),
        mark(result, form),
        form.name == result.default,
        {} if excluded else _used(assumed, setting),
        result.algorithm,
    )


def _together(tables: Iterable[np.ndarray]) -> np.ndarray:
    return functools.reduce(np.minimum, tables)


def _conflict(tables: list[tuple[Assumption, np.ndarray]]) -> list[Assumption]:
    """As few assumptions as still exclude one another."""
    kept = tables
    for one in tables:
        others = [pair for pair in kept if pair is not one]
        if _together(table for _, table in others).max() == NO:
            kept = others
    return [assumption for assumption, _ in kept]


def stated_assumptions(result: Result, form: Form, scope: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """All that a form assumes of a setting: its paper's scope, its own assumptions, and what its symbols say."""
    listed = {a.name: a for a in (*scope, *form.assumptions)}  # a form's own word is the later one
    if not any(a.participation or a.cover == NOWHERE for a in listed.values()):
        listed[ALL_CLIENTS.name] = ALL_CLIENTS
    return (*listed.values(), *_implied_assumptions(result, form))


def _implied_assumptions(result: Result, form: Form) -> Iterable[Assumption]:
    """What the symbols say without words: one number of local steps for all clients, or what equalities fix."""
    own, shared = (result.notation.resolve(name) for name in ("local_steps_by_client", "local_steps"))
    symbol = own or shared
    fixed = [(c.left, c.right) for c in form.conditions if c.op == "==" and not c.legal]
    if symbol is not None:
        known = {side for pair in fixed if 1 in pair for side in pair}
        alike = own is None or any(symbol.symbol in left.free_symbols for left, _ in fixed)
        kinds, said = (
            ("one", f"one local step between rounds: {symbol.name} = 1")
            if symbol.symbol in known
            else ("one alike", f"all clients take the same number of local steps in all rounds, {symbol.name}")
            if alike
            else ("one alike different", f"every client has its number of local steps, {symbol.name}, in all rounds")
        )
        yield Assumption("local-steps", said, "its symbols", cover=where(box(local_steps=kinds)))
    drawn, clients = (result.notation.resolve(name) for name in ("participating_clients", "clients"))
    if drawn is not None and clients is not None and (drawn.symbol, clients.symbol) in fixed:
        all_clients = where(box(participation="all"))
        yield Assumption("all-of-them", f"{drawn.name} = {clients.name}", "its condition", True, all_clients)


def _used(assumed: Iterable[Assumption], setting: ProblemClass) -> dict[str, float]:
    """What was said of the setting and is needed, with the share of the other kinds that some assumption excludes."""
    tables = [(a.cover or ASKED).levels() for a in assumed]
    found = {}
    for place, name in enumerate(AXES):
        if name in setting.said:
            wider = ProblemClass({**setting.said, name: tuple(AXES[name].kinds)})
            others = tuple(other for other in range(len(AXES)) if other != place)
            excluded = np.zeros(len(AXES[name].kinds), dtype=bool)
            for table in tables:
                if table.shape[place] > 1:
                    excluded |= restrict_levels(table, wider).max(axis=others) == NO
            if excluded.any():
                found[name] = float(excluded.mean())
    return found


def _only_if(joint: np.ndarray, setting: ProblemClass) -> dict[str, tuple[str, ...]]:
    """On every axis that matters, the kinds of which at least some settings are covered."""
    possible = joint > NO
    found = {}
    for at, name in enumerate(AXES):
        if (possible.any(axis=at) != possible.all(axis=at)).any():
            others = tuple(other for other in range(joint.ndim) if other != at)
            some = np.atleast_1d(possible.any(axis=others)).tolist()
            found[name] = tuple(kind for kind, left in zip(setting.kinds(name), some, strict=True) if left)
    return found
