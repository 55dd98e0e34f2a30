"""Bounds against each other over a varying constant."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.audit.status import Mark
from fedbounds.bounds.comparison.comparability import Named, contradictory_assumptions, with_all_clients
from fedbounds.bounds.display.plain_text import as_cell, number
from fedbounds.bounds.display.tables import Shown, Table, frame
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.compiled_form import CompiledForm, CompiledResult
from fedbounds.bounds.evaluation.evaluate import NO_VALUE, Evaluation, Value, evaluate_form
from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.evaluation.resolution import unknown_constants
from fedbounds.bounds.inputs.checks import as_real, quote
from fedbounds.bounds.inputs.value_grammar import parse_assignments
from fedbounds.bounds.search.effort import Watch
from fedbounds.bounds.theory.argument_checks import check_constants, check_ranges, names_of
from fedbounds.bounds.theory.measures import EXPECTED, Measure
from fedbounds.bounds.theory.names_by_meaning import unknown_constant
from fedbounds.bounds.theory.problem_class_terms import AXES
from fedbounds.bounds.theory.registry import load, results
from fedbounds.bounds.theory.symbols import Constant, dependencies

if TYPE_CHECKING:
    import pandas as pd

    from fedbounds.bounds.search.optimize import Functions, Ranges
    from fedbounds.bounds.theory.result import Result

_EMPTY = ("no problem", "no run has these")  # how the reasons begin that leave a bound nothing to be about
MOST_SETTINGS = 100_000


@dataclass(frozen=True)
class BoundRow:
    """One bound over the varying constant."""

    label: str  # the key with the form
    # the bound at every setting, shape (settings,); nan where no step size is admissible or the numbers overflow
    values: np.ndarray
    valid: np.ndarray  # whether all conditions hold there, and there is a value
    dominant: tuple[str, ...]  # the largest term there ("" where it is not known)
    # the optimized constants, name to (settings,); nan where the infimum is not attained
    at: Mapping[str, np.ndarray] = field(default_factory=dict)
    # why it is not to be relied on: "refuted" (it or what it rests on), "order only" (what its O(.) hides is taken as
    # 1), another verdict of the audit, or ""
    mark: Mark = ""
    source: str = ""  # paper and number of the result, in words
    measure: Measure | None = None  # its left-hand side
    violated: tuple[str, ...] = ()  # the conditions that some setting violates, or why no step size is admissible there

    @property
    def sure(self) -> bool:
        """Whether nothing is hidden in an O(.), its claim is proved and no erratum is against it."""
        return not self.mark

    @property
    def name(self) -> str:
        """The label with its mark."""
        return f"{self.label} ({self.mark})" if self.mark else self.label


@dataclass(frozen=True)
class BoundComparison(Shown):
    """Bounds on comparable left-hand sides over one varying constant."""

    name: str  # the constant that varies; `meaning` in words
    meaning: str
    settings: np.ndarray  # its values, shape (settings,)
    measure: Measure  # the left-hand side (the smallest, where they differ)
    rows: tuple[BoundRow, ...]  # one for each bound
    notes: tuple[str, ...] = ()  # what to keep in mind
    constants: Mapping[str, Constant] = field(default_factory=dict)  # what was given, by symbol, each with its source
    optimize: tuple[str, ...] = ()  # what is chosen anew at every setting, and `within`, from where
    within: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def best(self) -> tuple[str, ...]:
        """At every setting the label of the least valid bound among those that are sure ("" where there is none).

        If none is sure it is the least of those that are neither refuted nor hide constants.
        """
        rows = [row for row in self.rows if row.sure]
        rows = rows or [row for row in self.rows if row.mark not in ("refuted", "order only")]
        if not rows:
            return ("",) * len(self.settings)
        table = np.array([np.where(row.valid, row.values, np.nan) for row in rows])
        table = np.where(np.isnan(table), np.inf, table)
        winners = table.argmin(axis=0)
        return tuple(rows[w].label if np.isfinite(table[w, i]) else "" for i, w in enumerate(winners.tolist()))

    @property
    def headline(self) -> str:
        """What is compared, and what to keep in mind."""
        return "\n".join([f"{self.measure}, over {self.name}: {self.meaning}", *self.notes])

    def tables(self) -> tuple[Table, ...]:
        """At most a dozen settings: every bound, and the least valid one."""
        picked = sorted({round(i) for i in np.linspace(0, len(self.settings) - 1, min(12, len(self.settings)))})
        best = self.best
        rows = [
            (
                self.settings[i],
                *(
                    f"{number(float(row.values[i]))}{'' if row.valid[i] else ' (a condition fails)'}"
                    for row in self.rows
                ),
                best[i],
            )
            for i in picked
        ]
        least = "least that is sure" if any(row.sure for row in self.rows) else "least (none is sure)"
        return (Table("", (self.name, *(row.name for row in self.rows), least), rows),)

    def failures(self) -> dict[str, str]:
        """By label: which conditions are violated, or why there is no value, and at which settings."""
        found = {}
        for row in self.rows:
            lost = self.settings[~row.valid]
            if lost.size:
                low, high = float(lost.min()), float(lost.max())
                ends = f"{low:.4g}" if lost.size == 1 else f"{low:.4g} to {high:.4g}"
                all_lost = lost.size == np.count_nonzero((self.settings >= low) & (self.settings <= high))
                where = f"{self.name} = {ends}" if all_lost else f"{lost.size} settings of {self.name} = {ends}"
                why = f"{'; '.join(row.violated)} violated" if row.violated else "no value"
                found[row.label] = f"{why} at {where}"
        return found

    def to_dataframe(self) -> pd.DataFrame:
        """The whole table, as in `to_csv`."""
        return frame(self.to_csv())

    def to_csv(self) -> str:
        """The table: the setting, then for every bound its value, validity, dominant term and optimized constants."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        header = [self.name]
        for row in self.rows:
            header += [row.label, f"{row.label} valid", f"{row.label} dominant"]
            header += [f"{row.label} {name}" for name in row.at]
        writer.writerow(map(as_cell, header))
        for i, setting in enumerate(self.settings):
            cells: list[str] = [f"{setting:.12g}"]
            for row in self.rows:
                cells += [f"{row.values[i]:.12g}", "yes" if row.valid[i] else "no", row.dominant[i]]
                cells += [f"{values[i]:.12g}" for values in row.at.values()]
            writer.writerow(map(as_cell, cells))
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds compare --json` (without schema and version)."""
        return {
            "vary": self.name,
            "settings": self.settings,
            "measure": str(self.measure),
            "unit": str(self.measure.dimension),
            "optimize": list(self.optimize),
            "within": {name: list(ends) for name, ends in self.within.items()},
            "constants": {name: {"value": c.value, "source": c.source} for name, c in self.constants.items()},
            "bounds": [
                {
                    "label": row.label,
                    "values": row.values,
                    "valid": row.valid,
                    "dominant": list(row.dominant),
                    "at": dict(row.at),
                    "mark": row.mark,
                }
                for row in self.rows
            ],
            "best": list(self.best),
            "notes": list(self.notes),
        }


def compare(
    results: Sequence[Named],
    vary: tuple[str, Sequence[float] | np.ndarray],
    constants: Mapping[str, Value],
    *,
    optimize: str | Sequence[str] = (),
    within: Ranges | None = None,
    functions: Functions | None = None,
    watch: Watch | None = None,
    methods: bool = False,
) -> BoundComparison:
    r"""Evaluate (or optimize) several bounds over one varying constant.

    Args:
        results: each a result or its key, or one of these with the name or kind of a form.
        vary: a symbol or concept and its values; the same concept in every result.
        constants: symbol or concept to value; each result uses those it knows. "KEY.NAME" gives a constant to the
            result KEY alone, e.g. "fedau/theorem-2.K".
        optimize: constants to choose anew at every setting, where a form leaves them free.
        within, functions: as for `fedbounds.bounds.search.optimize.optimize`.
        watch: called with (settings done so far, all settings) as step sizes are chosen.
        methods: whether the bounds are of different methods, each about the output of its own run: the left-hand sides
            may then be over different iterates, but the oracles, and O(.) or numbers, must be the same.

    Raises:
        FedboundsError: left-hand sides that cannot be compared (saying why), a symbol that means different things in
            the results, a constant that none of them knows, or anything that `evaluate` refuses.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> known = dict(L=1, F=5, I=2, P=2, gamma=1/96, eta=2, rho=1, nu=2, beta=1, delta=0, sigma=1)
        >>> table = compare([(theorem, "explicit"), theorem], ("rounds", [10, 1000]), known)
        >>> [row.label for row in table.rows], [row.values.round(3).tolist() for row in table.rows]
        (['arbitrary-participation/theorem-3.1 [explicit]', 'arbitrary-participation/theorem-3.1 [sharp]'],
         [[96.564, 1.524], [25.57, 0.408]])
        >>> list(table.best) == [table.rows[1].label] * 2
        True
    """
    check_constants(constants)
    optimize, within = names_of("optimize", optimize), check_ranges(within)
    forms = [_form(one) for one in results]
    if not forms:
        raise FedboundsError("nothing to compare: name at least one result")
    _check_twice(forms)
    forms, notes = with_all_clients(forms, alone=methods)
    notes += list(_comparable_methods(forms) if methods else _comparable(forms))
    given = {**constants, vary[0]: 1.0}
    if vary[0] in constants:
        raise FedboundsError(f"{vary[0]} varies; leave it out of the constants")
    own = _own_constants(forms, constants, vary[0])
    _same_meaning(forms, [*(n for n in given if n not in own), *optimize, *within, *(functions or {})])
    _same_names(forms, given, own, optimize)
    settings = np.atleast_1d(as_real(vary[0], vary[1]))
    if settings.ndim != 1 or not 1 <= settings.size <= MOST_SETTINGS:
        raise FedboundsError(f"{vary[0]} varies over {settings.size} values; at least 1, at most {MOST_SETTINGS}")
    for name in within:
        if not any(_is_free(f, name) and f.resolve(name) in map(f.resolve, optimize) for f in forms):
            raise FedboundsError(f"a range for {name}, which is not optimized over; optimized: {', '.join(optimize)}")
    quantity = next(q for form in forms if (q := form.resolve(vary[0])) is not None)
    rows = []
    for form in forms:
        label = form.title
        known = _known_constants(form, constants, own)
        notes += [f"{label}: {note}" for note in _replaced_defaults(form, known)]
        if form.resolve(vary[0]) is not None:
            known[vary[0]] = settings
        free = [name for name in optimize if _is_free(form, name)]
        if optimize and not free:
            notes.append(f"{label} prescribes its step sizes: {', '.join(optimize)} not optimized in it")
        if free:
            chosen = [form.resolve(n) for n in free]
            ranges = {n: ends for n, ends in within.items() if form.resolve(n) in chosen}
            rules = {n: f for n, f in (functions or {}).items() if _is_free(form, n)}
            before, total = len(rows) * len(settings), len(forms) * len(settings)
            done = None if watch is None else partial(_counted, watch, before, total)
            row, said = _optimized(form, known, vary[0], settings, free, ranges, rules, done)
            rows.append(row)
            notes += [f"{label}: {said}"] if said else []
        else:
            evaluation = evaluate_form(form, known, strict=False)
            notes += [f"{label}: {said}" for said in evaluation.why_not if said.startswith((NO_VALUE, *_EMPTY))]
            rows.append(_row(label, evaluation, len(settings)))
    for form in forms:
        label, standing = form.title, form.standing()
        notes += [f"{label} hides constants in an O(.); they are taken as 1"] if form.order_only else []
        notes += [f"{label} {said}"] if (said := standing.shadow) else []
        notes += [f"{label} holds {form.implicit}"] if form.implicit else []
        notes += [f"{label} is conditional on {trusted}"] if (trusted := standing.untried) else []
    rows = [
        replace(row, mark=form.mark, source=form.result.source.partition(", eq.")[0], measure=form.measure)
        for row, form in zip(rows, forms, strict=True)
    ]
    for a, b in () if methods else combinations(forms, 2):  # methods have a run each
        if said := contradictory_assumptions(a, b):
            notes.append(f"{a.title} and {b.title} are never about the same run: {said}")
    measures = [form.measure for form in forms]
    least = next((m for m in measures if all(m.is_at_most(other) for other in measures)), measures[0])
    used, idle = _given_constants(forms, constants, own)
    notes += [f"not used by any of these forms: {', '.join(idle)}"] if idle else []
    return BoundComparison(
        quantity.name,
        quantity.meaning,
        settings,
        least,
        tuple(rows),
        tuple(notes),
        used,
        tuple(optimize),
        within,
    )


def _check_twice(forms: Sequence[CompiledForm]) -> None:
    """Refuse a form that is named twice, or two files with one key."""
    for a, b in combinations(forms, 2):
        if a.title == b.title:
            files = [form.result.whole().file for form in (a, b)]
            if files[0] != files[1]:
                raise FedboundsError(f"{' and '.join(files)} have the same key {a.result.key}; change one of them")
            raise FedboundsError(f"{a.title} is named twice")


def _own_constants(
    forms: Sequence[CompiledForm], constants: Mapping[str, Value], varying: str
) -> dict[str, tuple[str, str]]:
    """The constants that are given to one result alone, "KEY.NAME": each with its key and its symbol."""
    found = {}
    for name in constants:
        key, _, symbol = name.rpartition(".")
        if not key:
            continue
        form = next((form for form in forms if form.result.key == key), None)
        if form is None:
            raise unknown_name(f"result in {name}", key, {form.result.key for form in forms})
        quantity = form.resolve(symbol)
        if quantity is None:
            raise unknown_constant(f"constant of {key}", symbol, form.result.notation)
        if quantity == form.resolve(varying):
            raise FedboundsError(f"{varying} varies; leave {name} out of the constants")
        found[name] = (key, quantity.name)
    return found


def _known_constants(
    form: CompiledForm, constants: Mapping[str, Value], own: Mapping[str, tuple[str, str]]
) -> dict[str, Value]:
    """The constants of one form: its own by symbol, and the shared ones that it knows by the name that was given."""
    mine = {symbol: constants[name] for name, (key, symbol) in own.items() if key == form.result.key}
    shared = {name: q.name for name in constants if name not in own and (q := form.resolve(name)) is not None}
    return {name: constants[name] for name, symbol in shared.items() if symbol not in mine} | mine


def _replaced_defaults(form: CompiledForm, known: Mapping[str, Value]) -> Iterable[str]:
    """A note on every given constant for which the form has a choice of its own."""
    given = {q.name: value for name, value in known.items() if (q := form.resolve(name)) is not None}
    for rule in form.derived:
        if rule.free is True and rule.name in given and rule.name in form.needs:
            yield (
                f"{rule.name} = {quote(given[rule.name])} as given; its own choice is {rule.why} "
                f"(give {rule.name} to the other results only: OTHER_KEY.{rule.name}=..., instead of {rule.name}=...)"
            )


def _given_constants(
    forms: Sequence[CompiledForm], constants: Mapping[str, Value], own: Mapping[str, tuple[str, str]]
) -> tuple[dict[str, Constant], list[str]]:
    """The given constants that some form uses, each with its source, and the names of the rest.

    A constant is named by its symbol, or by its concept where the symbol is not the same in all results.
    """
    used, idle = {}, []
    for given, value in constants.items():
        if given in own:
            key, symbol = own[given]
            known = [(form, form.result.notation[symbol]) for form in forms if form.result.key == key]
            name = given
        else:
            known = [(form, q) for form in forms if (q := form.resolve(given)) is not None]
            concept, symbol = known[0][1].concept, known[0][1].name
            meanings = {q.concept for form in forms if (q := form.resolve(symbol)) is not None}
            name = symbol if meanings == {concept} and {q.name for _, q in known} == {symbol} else concept
        if all(form.unused([q.name]) for form, q in known):
            idle.append(name)
        else:
            used[name] = value if isinstance(value, Constant) else Constant(np.asarray(value), "given")
    return used, idle


def _comparable(forms: Sequence[CompiledForm]) -> Iterable[str]:
    """Notes on the left-hand sides; raises where two of them cannot be compared."""
    for a, b in combinations(forms, 2):
        first, second = a.measure, b.measure
        if first.is_at_most(second) and second.is_at_most(first):
            continue
        if not first.is_at_most(second) and not second.is_at_most(first):
            raise _different_things(a, b)
        small, large = (a, b) if first.is_at_most(second) else (b, a)
        yield (
            f"{large.title} bounds more than {small.title} does "
            f"({first.difference(second)}), so a larger value does not mean that it is the weaker bound"
        )


def _different_things(a: CompiledForm, b: CompiledForm) -> FedboundsError:
    """That two left-hand sides cannot be compared: what differs, and what to name instead."""
    text = f"{a.title} and {b.title} bound different things: {a.measure.difference(b.measure)}"
    given = [form.title for form in (a, b) if form.measure.given == "participation"]
    if len(given) == 1:
        text += f"; {given[0]} holds for each record of the participation, the other one does not"
    keys = [key for one, other in ((a, b), (b, a)) if (key := _alike(one, other.measure))]
    instead = f"name {' or '.join(keys)} instead" if keys else "name results whose left-hand sides are comparable"
    return FedboundsError(f"{text}; {instead} (fedbounds compare --matrix lists which are)")


def _alike(form: CompiledForm, wanted: Measure) -> str:
    """The key of the same result in expectation over participation, if its left-hand side is comparable."""
    key = f"{form.result.key}{EXPECTED}"
    if form.measure.given != "participation" or all(key != result.key for result in results()):
        return ""
    measure = load(key).measure
    return key if measure.is_at_most(wanted) or wanted.is_at_most(measure) else ""


def _comparable_methods(forms: Sequence[CompiledForm]) -> Iterable[str]:
    """Notes on the outputs of the methods; raises where two bounds do not rank their methods."""
    for form in forms:
        if form.measure.lower:
            raise FedboundsError(
                f"{form.title} is a lower bound, which does not rank methods; name upper bounds only, "
                "or draw upper against lower bounds: fedbounds figure references/gap"
            )
        if form.asymptotic:
            yield f"{form.title} holds only in the limit {form.asymptotic}"
    for a, b in combinations(forms, 2):
        first, second = a.measure, b.measure
        inside = {*first.differing(second)} <= {"aggregate", "index set"}
        whole = not {first.aggregate, second.aggregate} & {"supremum", "single"}
        if not (inside and whole) and first.differing(second):
            raise _different_things(a, b)
        if (mine := _oracles(a)) != (yours := _oracles(b)):
            raise FedboundsError(
                f"{a.title} and {b.title} have different oracles: {mine} against {yours}; compare results of one oracle"
            )
        if a.order_only != b.order_only:
            known, hidden = (b, a) if a.order_only else (a, b)
            alike = [one.name for one in known.result.forms if known.result.form(one.name).order_only]
            cure = f"name {known.result.key}:{alike[0]}" if alike else f"leave one out ({known.result.key} has no O)"
            raise FedboundsError(
                f"{hidden.title} hides constants in an O(.) and {known.title} does not; one kind is expected: {cure}"
            )
        if first.differing(second):
            yield f"{a.title} and {b.title} bound different outputs ({first.difference(second)})"


def _oracles(form: CompiledForm) -> str:
    """The oracles that the setting of a form allows, in words."""
    boxes = (one for cover in form.covers() if cover is not None for one in (*cover.holds, *cover.perhaps))
    allowed = {kind for one in boxes for axis, kinds in one if axis == "oracle" for kind in kinds}
    return " or ".join(sorted(allowed)) or AXES["oracle"].usual


def _same_meaning(forms: Sequence[CompiledForm], names: Iterable[str]) -> None:
    """Every name must be known to some result, and mean the same in all that know it."""
    clashes = []
    for name in names:
        found = [(form.result, q) for form in forms if (q := form.resolve(name)) is not None]
        if not found:
            known = {n: q for form in forms for n, q in form.result.notation.items()}
            raise unknown_constant("constant of these results", name, known)
        meanings = {q.concept: result.key for result, q in reversed(found)}
        if len(meanings) > 1:
            meant = " and ".join(f"{concept} in {key}" for concept, key in reversed(meanings.items()))
            clashes.append(
                f"{name} is {meant}: give {' and '.join(f'{concept}=...' for concept in reversed(meanings))}"
            )
    if clashes:
        raise FedboundsError("; ".join(clashes))


def _same_names(
    forms: Sequence[CompiledForm], given: Iterable[str], own: Mapping[str, tuple[str, str]], optimize: Iterable[str]
) -> None:
    """Refuse a constant that only some results know by the name that was given, and others need."""
    shared, chosen = [name for name in given if name not in own], [*optimize]
    for form in forms:
        mine = {symbol for key, symbol in own.values() if key == form.result.key}
        known = mine | {q.name for name in (*shared, *chosen) if (q := form.resolve(name)) is not None}
        needed = {form.result.notation[name].concept: name for name in unknown_constants(form, known)}
        for name in shared:
            concept, key = next((q.concept, f.result.key) for f in forms if (q := f.resolve(name)) is not None)
            if concept in needed:
                raise FedboundsError(
                    f"{name} of {key} is {needed[concept]} in {form.result.key}: give {concept}=... instead of "
                    f"{name}=..., which all of these results know"
                )


def _form(named: Named) -> CompiledForm:
    one, form = named if isinstance(named, tuple) else (named, None)
    return as_compiled(one).form(form)


def _is_free(form: CompiledForm, name: str) -> bool:
    quantity = form.resolve(name)
    if quantity is None or quantity.name in form.prescribes:
        return False
    return quantity.name in dependencies(form.variables, form.derived)


def _row(label: str, evaluation: Evaluation, count: int) -> BoundRow:
    return BoundRow(
        label,
        np.array(np.broadcast_to(evaluation.value, count), dtype=float),
        np.array(np.broadcast_to(evaluation.valid, count), dtype=bool),
        tuple(np.broadcast_to(np.asarray(evaluation.dominant), count).tolist()),
        violated=tuple(check.text for check in evaluation.conditions if not np.all(check.holds)),
    )


def _counted(watch: Watch, before: int, total: int, done: int) -> None:
    watch(before + done, total)


def _optimized(
    form: CompiledForm,
    known: Mapping[str, Value],
    name: str,
    settings: np.ndarray,
    free: Sequence[str],
    within: Ranges,
    functions: Functions,
    done: Callable[[int], None] | None,
) -> tuple[BoundRow, str]:
    """The best at every setting, and why no problem or run has the constants at the first where none has."""
    from fedbounds.bounds.search.optimize import Infeasible, Minimum, Undecided, optimize  # sympy takes its time

    result, symbols = form.result.whole(), [q.name for n in free if (q := form.resolve(n)) is not None]
    values = np.full(len(settings), np.nan)
    at = {symbol: np.full(len(settings), np.nan) for symbol in symbols}
    dominant, empty, violated = [], "", dict[str, None]()
    for i, setting in enumerate(settings.tolist()):
        here = {**known, **({name: setting} if name in known else {})}
        answer = optimize(result, here, free, within=within, form=form.name, functions=functions)
        dominant.append("")
        if done is not None:
            done(i + 1)
        if isinstance(answer, Infeasible | Undecided):
            violated[answer.why.partition(" fails")[0]] = None
            continue
        if isinstance(answer, Minimum):
            values[i], dominant[i] = answer.value, str(answer.evaluation.dominant)
            empty = empty or next((why for why in answer.evaluation.why_not if why.startswith(_EMPTY)), "")
            for symbol in symbols:
                at[symbol][i] = answer.at[symbol]
        else:
            limits = answer.terms
            values[i], dominant[i] = answer.infimum, max(limits, key=lambda n: limits[n], default="")
    row = BoundRow(form.title, values, ~np.isnan(values), tuple(dominant), at, violated=tuple(violated))
    return row, empty


def parse_vary(text: str) -> tuple[str, np.ndarray]:
    """What `--vary` says: NAME=LOW:HIGH[:log|lin[:COUNT]] or NAME=V1,V2,..."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise FedboundsError(f"--vary {text!r} is not NAME=LOW:HIGH:log:COUNT or NAME=V1,V2,...")
    parts = [part.strip() for part in value.split(":")]
    if len(parts) == 1:
        return name, np.atleast_1d(np.asarray(parse_assignments({name: value})[name]))
    spacing = parts[2] if len(parts) > 2 else "log"
    count = _number(parts[3], name) if len(parts) > 3 else 50.0
    low, high = _number(parts[0], name), _number(parts[1], name)
    if len(parts) > 4 or spacing not in ("log", "lin"):
        raise FedboundsError(f"--vary {text!r}: it reads LOW:HIGH:log:COUNT or LOW:HIGH:lin:COUNT")
    if not low < high or not np.isfinite(high - low) or (spacing == "log" and low <= 0):
        needed = "LOW < HIGH, both finite" + (" and positive" if spacing == "log" else "")
        raise FedboundsError(f"--vary {text!r}: it needs {needed}")
    if not 2 <= count <= MOST_SETTINGS or count != int(count):
        raise FedboundsError(f"--vary {text!r}: COUNT = {count:g} must be a whole number from 2 to {MOST_SETTINGS}")
    space = np.geomspace if spacing == "log" else np.linspace
    return name, space(low, high, int(count))


def _number(text: str, where: str) -> float:
    value = parse_assignments({where: text})[where]
    if isinstance(value, np.ndarray):
        raise FedboundsError(f"--vary {where}: {quote(text)} is a list; an end of the range, or COUNT, is one number")
    return value


def whole_settings(results: Iterable[Result | CompiledResult], name: str, values: np.ndarray) -> np.ndarray:
    """The settings rounded to different whole numbers, where the constant counts something."""
    quantities = [q for result in results if (q := result.notation.resolve(name)) is not None]
    whole = any(q.domain.integer for q in quantities)
    return (
        np.array(sorted({*np.round(values).ravel().tolist()})) if whole else values
    )  # numpy.unique loads masked arrays
