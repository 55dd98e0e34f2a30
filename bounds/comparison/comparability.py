"""Which bounds may be compared: pair by pair what differs, and the matrix of all left-hand sides."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np

from fedbounds.bounds.display.tables import Shown, Table, frame
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledForm
from fedbounds.bounds.theory.measures import PARTICIPATION, Measure
from fedbounds.bounds.theory.problem_class import Cover
from fedbounds.bounds.theory.problem_class_terms import AXES
from fedbounds.bounds.theory.registry import as_result
from fedbounds.bounds.theory.registry import results as all_results

if TYPE_CHECKING:
    import pandas as pd

    from fedbounds.bounds.theory.result import Form, Result

Named = Union["Result", str, tuple[Union["Result", str], str | None]]
Relation = Literal["=", "<=", ">=", ""]
_Covering = tuple[str, Cover | None]  # an assumption's name, and where it holds
CODES = {"aggregate": "a", "index set": "i", "quantity": "q", "expectation": "e", "condition": "c", "side": "s"}


@dataclass(frozen=True)
class Difference:
    """What keeps two results from saying the same kind of thing."""

    first: str  # first, second: keys with forms
    second: str
    comparable: bool  # whether one left-hand side is never larger than the other
    measure: str  # what differs on the left-hand side ("" if nothing)
    # (only in the first, only in the second), those on participation apart
    assumptions: tuple[tuple[str, ...], tuple[str, ...]]
    participation: tuple[tuple[str, ...], tuple[str, ...]]  # the same for assumptions on participation
    kind: str  # what differs in kind: an O(.) against numbers, a limit, a refuted form ("" if nothing)
    never_together: str  # two assumptions that no setting meets together, in words ("" if there are none)


def comparability(results: Sequence[Named]) -> tuple[Difference, ...]:
    """For every pair what differs in measure, assumptions, participation and kind."""
    pairs = select_forms(results)
    return tuple(_difference(a, b) for a, b in combinations(pairs, 2))


def select_forms(results: Sequence[Named]) -> list[tuple[Result, Form]]:
    """Each result with its form; a result may be given by its key."""
    named = [one if isinstance(one, tuple) else (one, None) for one in results]
    found = [(as_result(one), form) for one, form in named]
    return [(result, result.form(form)) for result, form in found]


def _difference(a: tuple[Result, Form], b: tuple[Result, Form]) -> Difference:
    first, second = (form.measure or result.measure for result, form in (a, b))

    def only(participation: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        mine, yours = ([x.name for x in form.assumptions if x.participation == participation] for _, form in (a, b))
        return tuple(x for x in mine if x not in yours), tuple(x for x in yours if x not in mine)

    kinds = [
        ("an O(.) with hidden constants" if form.order_only else "numbers")
        + (f", only as {form.asymptotic}" if form.asymptotic else "")
        + (", refuted" if form.refuted_by else "")
        for _, form in (a, b)
    ]
    return Difference(
        f"{a[0].key} [{a[1].name}]",
        f"{b[0].key} [{b[1].name}]",
        first.is_at_most(second) or second.is_at_most(first),
        first.difference(second),
        only(False),
        only(True),
        f"{kinds[0]} against {kinds[1]}" if kinds[0] != kinds[1] else "",
        _contradiction(*([(x.name, x.cover) for x in form.assumptions] for _, form in (a, b))),
    )


def contradictory_assumptions(first: CompiledForm, second: CompiledForm) -> str:
    """Two assumptions that no setting meets together, in words ("" if there are none): no run has both bounds.

    Example:
        >>> from fedbounds.bounds.evaluation.form_cache import as_compiled
        >>> theorem = as_compiled("fedmrn/theorem-2")
        >>> contradictory_assumptions(theorem.form("sharp"), theorem.form("sharp:masks"))
        'relative-error against signed-masks'
    """
    return _contradiction(*(list(zip(form.assumptions, form.covers(), strict=True)) for form in (first, second)))


def _contradiction(first: Sequence[_Covering], second: Sequence[_Covering]) -> str:
    for a, here in first:
        for b, there in second:
            if here is None or there is None:
                continue
            mine, yours = here.levels(), there.levels()
            if mine.any() and yours.any() and not np.minimum(mine, yours).any():
                of_settings = a.startswith("setting") or b.startswith("setting")
                said = _differing_axis(mine, yours) if of_settings else ""
                return said or f"{a} against {b}"
    return ""


def _differing_axis(mine: np.ndarray, yours: np.ndarray) -> str:
    """The property of which two settings have no kind in common, in words; "" if there is none."""
    for place, axis in enumerate(AXES.values()):
        others = tuple(other for other in range(len(AXES)) if other != place)
        kept = [table.max(axis=others) > 0 for table in (mine, yours)]
        if not np.logical_and(*kept).any():
            kinds = (" or ".join(np.array([*axis.kinds])[one]) for one in kept)
            return f"{axis.name} {' against '.join(kinds)}"
    return ""


def with_all_clients(forms: list[CompiledForm], *, alone: bool) -> tuple[list[CompiledForm], list[str]]:
    """The forms with the expectations that they have where all clients participate; notes on it.

    If one is about all clients, an expectation over participation is left out of all of them. If each form has its own
    run (`alone`) only those about all clients change: over participation or not, their expectation is the same.
    """
    full = [form for form in forms if _everyone(form)]
    random = alone and any(form.measure.expectation.endswith(PARTICIPATION) for form in forms if form not in full)
    found = []
    for form in forms:
        measure = form.measure.of_all_clients()
        if random and measure.expectation:
            measure = replace(measure, expectation=measure.expectation + PARTICIPATION)
        found.append(replace(form, own_measure=measure) if form in full or (full and not alone) else form)
    if len({form.measure.expectation for form in forms}) == len({form.measure.expectation for form in found}):
        return forms, []
    return found, [f"{full[0].title} is about all clients, so that an expectation over participation changes nothing"]


def _everyone(form: CompiledForm) -> bool:
    """Whether an assumption of a form says that all clients participate."""
    for cover in filter(None, form.covers()):
        boxes = [dict(one) for one in (*cover.holds, *cover.perhaps)]
        if boxes and all(one.get("participation") == {"all"} for one in boxes):
            return True
    return False


# --- All left-hand sides --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matrix(Shown):
    """Every left-hand side against every other."""

    measures: tuple[Measure, ...]  # the left-hand sides that differ, each once
    forms: tuple[tuple[str, ...], ...]  # for each of them the forms that bound it, as "key [form]"

    def relation(self, first: int, second: int) -> Relation:
        """ "<=" if the first is never larger than the second on any run, "" if they are not comparable."""
        a, b = self.measures[first], self.measures[second]
        if a.is_at_most(b):
            return "=" if b.is_at_most(a) else "<="
        return ">=" if b.is_at_most(a) else ""

    def why(self, first: int, second: int) -> str:
        """What differs between two left-hand sides, in words."""
        return self.measures[first].difference(self.measures[second])

    def code(self, first: int, second: int) -> str:
        """The relation in a character, or the symbols of what differs.

        Example:
            >>> comparability_matrix(["fedau/theorem-2", "tdcd/remark-5", "fedau/theorem-1"]).code(0, 1)
            'ie'
        """
        relation = self.relation(first, second)
        parts = self.measures[first].differing(self.measures[second])
        return relation[:1] or "".join(CODES[part] for part in parts)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The two of every pair that may be compared, the smaller one first."""
        both = range(len(self.measures))
        return tuple((i, j) for i in both for j in both if self.relation(i, j) == "<=")

    def run_results(self) -> Matrix:
        """The left-hand sides that are about a whole run, of results that are no lemmas."""
        kept = [
            (measure, forms)
            for measure, forms in zip(self.measures, self.forms, strict=True)
            if measure.aggregate != "single" and not all("/lemma-" in form for form in forms)
        ]
        return Matrix(tuple(m for m, _ in kept), tuple(f for _, f in kept))

    def find(self, key: str, form: str | None = None) -> int:
        """The place of a result's left-hand side."""
        result = as_result(key)
        wanted = label(result, result.form(form))
        for place, forms in enumerate(self.forms):
            if wanted in forms:
                return place
        raise FedboundsError(f"{wanted} is not in this matrix")

    @property
    def headline(self) -> str:
        """How to read it."""
        symbols = "; ".join(f"{symbol} {part}" for part, symbol in CODES.items())
        return f"= the same; < (>) never larger (smaller) than that of the column; else what differs: {symbols}"

    def tables(self) -> tuple[Table, ...]:
        """Each left-hand side against each, and who bounds them."""
        places = range(len(self.measures))
        rows = [(i + 1, str(self.measures[i]), *(self.code(i, j) for j in places)) for i in places]
        return (Table("", ("", "left-hand side", *(str(j + 1) for j in places)), rows),)

    def to_dataframe(self) -> pd.DataFrame:
        """One row for every two left-hand sides, as in `to_csv`."""
        return frame(self.to_csv())

    def to_csv(self) -> str:
        """One line for every two left-hand sides: how they compare, and what differs."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["first", "second", "relation", "difference", "forms of the first", "forms of the second"])
        for i, j in combinations(range(len(self.measures)), 2):
            named = [str(self.measures[i]), str(self.measures[j]), self.relation(i, j), self.why(i, j)]
            writer.writerow([*named, "; ".join(self.forms[i]), "; ".join(self.forms[j])])
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds compare --matrix --json` (without schema and version)."""
        places = range(len(self.measures))
        return {
            "measures": [
                {"measure": str(m), "unit": str(m.dimension), "forms": list(f)}
                for m, f in zip(self.measures, self.forms, strict=True)
            ],
            "relations": [[self.relation(i, j) for j in places] for i in places],
            "differences": [[self.why(i, j) for j in places] for i in places],
        }


def label(result: Result, form: Form) -> str:
    """How a form is called beside others.

    Example:
        >>> theorem = as_result("fedau/theorem-2")
        >>> label(theorem, theorem.form("sharp"))
        'fedau/theorem-2 [sharp]'
    """
    return f"{result.key} [{form.name}]"


def comparability_matrix(results: Sequence[Result | str] | None = None) -> Matrix:
    """Every form of these results, by what stands on its left."""
    found: list[tuple[Measure, list[str]]] = []
    for result in all_results() if results is None else map(as_result, results):
        for form in result.forms:
            measure = form.measure or result.measure
            alike = next((forms for known, forms in found if not known.difference(measure)), None)
            if alike is None:
                found.append((measure, alike := []))
            alike.append(label(result, form))
    return Matrix(tuple(m for m, _ in found), tuple(tuple(forms) for _, forms in found))
