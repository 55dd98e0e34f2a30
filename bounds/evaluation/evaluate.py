"""Evaluation: constants in, value, terms, conditions and an honest word about the guarantee out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.audit.status import NOT_COMPARED, UNREAD
from fedbounds.bounds.display.plain_text import both_sides, number
from fedbounds.bounds.display.tables import Shown, Table
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.checked_conditions import CheckedCondition, constants_together, why_impossible
from fedbounds.bounds.evaluation.compiled_form import CompiledForm
from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.evaluation.resolution import Value, resolve
from fedbounds.bounds.theory.argument_checks import names_of
from fedbounds.bounds.theory.symbols import AGREEMENT, SOFT, Constant

if TYPE_CHECKING:
    import pandas as pd

    from fedbounds.bounds.theory.result import Form, Result

NO_VALUE = "no value: the numbers overflow"


@dataclass(frozen=True)
class Evaluation(Shown):
    """A form at given constants: its value, its terms, its conditions, and whether it is a guarantee.

    Attributes:
        view: the form, as evaluation sees it.
        value: the bound, shape of the broadcast settings; a float for one.
        terms: name to value, in the form's order; they sum to `value`.
        conditions: each with both sides.
        valid: whether all conditions hold, and there is a value: numbers that overflow leave none (nan).
        guarantee: whether this is a guarantee (see `why_not`); it never is without `valid`.
        why_not: the reasons it is not, in words.
        conditional_on: the claim that the user trusts although the audit has not proved it, or what the proof trusts
            its author to have said rightly ("" if nothing); a guarantee is conditional on it.
        assumptions: name to "checked", "assumed", "not checked" or "violated".
        constants: every constant used, with its source.
        prescribed: step sizes the result itself sets.
        verdict: of the form: proved, survived, argued, refuted or unknown.
        feasible: relations of constants that can occur together (see `fedbounds.bounds.theory.feasible_set`); where
            they are only necessary, also the constants for which a problem is known.
    """

    view: CompiledForm
    value: np.ndarray
    terms: Mapping[str, np.ndarray]
    conditions: tuple[CheckedCondition, ...]
    valid: np.ndarray
    guarantee: bool
    why_not: tuple[str, ...]
    assumptions: Mapping[str, str]
    constants: Mapping[str, Constant]
    prescribed: Mapping[str, np.ndarray]
    verdict: str
    conditional_on: str = ""
    feasible: tuple[CheckedCondition, ...] = ()

    @property
    def result(self) -> Result:
        """The result, with its expressions."""
        return self.view.result.whole()

    @property
    def form(self) -> Form:
        """The form, with its expressions."""
        return self.view.whole()

    @property
    def guarantee_text(self) -> str:
        """Whether it is a guarantee, in words: "yes", "no", or "yes, conditional on ..."."""
        if not self.guarantee:
            return "no"
        return f"yes, conditional on {self.conditional_on} ({self.verdict})" if self.conditional_on else "yes"

    def __repr__(self) -> str:
        """One line; `print` shows it in full."""
        found = f"{self.value.size} settings" if np.ndim(self.value) else _bound(self)
        name = self.view.title
        return f"<Evaluation of {name}: {found}, guarantee: {self.guarantee_text}, verdict: {self.verdict}>"

    def __str__(self) -> str:
        """The evaluation as `fedbounds eval` prints it; of many settings, what they have in common."""
        if not np.ndim(self.value):
            return _described(self)
        finite = self.value[np.isfinite(self.value)]
        between = f"from {finite.min():.6g} to {finite.max():.6g}" if finite.size else "no finite value"
        lines = [
            f"{self.view.title}   {self.view.result.source}",
            str(self.view.measure),
            f"  {self.value.size} settings: {between}     valid: {np.count_nonzero(self.valid)}     "
            f"guarantee: {self.guarantee_text}     verdict: {self.verdict}",
        ]
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.why_not)])

    @property
    def headline(self) -> str:
        """The bound, its measure, and whether it is a guarantee."""
        several = f"one for each of {self.value.size} settings"
        value = several if np.ndim(self.value) else "no value" if np.isnan(self.value) else number(self.value)
        what = f"{self.view.title}: {self.view.measure}"
        valid = "valid" if np.all(self.valid) else "not valid everywhere" if np.any(self.valid) else "not valid"
        sign = "~" if self.view.order_only else self.view.measure.sign
        return f"{what}\n{sign} {value}; {valid}; guarantee: {self.guarantee_text}; verdict: {self.verdict}"

    def tables(self) -> tuple[Table, ...]:
        """Terms, conditions, constants, and why it is no guarantee."""
        shares = self.shares
        terms = [(name, value, shares[name]) for name, value in self.terms.items()]
        conditions = [(c.text, c.holds, c.left, c.right, c.limits, c.admissible) for c in self.conditions]
        constants = [(name, c.value, c.source, c.note) for name, c in self.constants.items()]
        steps = [(name, value, "prescribed", "") for name, value in self.prescribed.items()]
        sides = ("condition", "holds", "left", "right", "limits", "admissible")
        return (
            Table("terms", ("term", "value", "share"), terms),
            Table("conditions", sides, conditions),
            Table("constants", ("constant", "value", "source", "note"), [*constants, *steps]),
            Table("not a guarantee, because", ("reason",), [(reason,) for reason in self.why_not]),
        )

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each setting: the bound, whether it is valid there, every term, the largest, and the constants.

        A constant of every client, such as participation rates, has no column.
        """
        columns = {"value": self.value, "valid": self.valid, **self.terms, "dominant": self.dominant}
        vectors = {q.name for q in self.result.notation.values() if q.shape}
        numbers = {name: c.value for name, c in self.constants.items() if name not in vectors}
        columns |= {name: value for name, value in (numbers | dict(self.prescribed)).items() if name not in columns}
        arrays = np.broadcast_arrays(*(np.asarray(column) for column in columns.values()))
        rows = list(zip(*(array.ravel().tolist() for array in arrays), strict=True))
        return Table("", tuple(columns), rows).to_dataframe()

    def revoke(self, *reasons: str) -> Evaluation:
        """The same without a guarantee, for reasons that a run has shown; they lead."""
        return replace(self, guarantee=False, why_not=(*reasons, *self.why_not)) if reasons else self

    @property
    def dominant(self) -> str | np.ndarray:
        """The name of the largest term, at every setting where there are many; "" where none is: where all are zero,
        or where the form says nothing."""
        table = np.stack(np.broadcast_arrays(self.value, *self.terms.values())[1:])
        largest = np.where(np.isnan(table), -np.inf, table).argmax(axis=0)
        clear = (np.isfinite(table).all(axis=0) | (np.isinf(table).sum(axis=0) == 1)) & (table != 0).any(axis=0)
        names = np.where(clear, np.array([*self.terms], dtype=object)[largest], "")
        return names if names.ndim else str(names)

    @property
    def shares(self) -> Mapping[str, np.ndarray]:
        """Term to its share of the sum of all sizes (a negative term counts with its size); nan where there is none:
        where that sum is zero, or where the form says nothing."""
        sizes = np.abs(np.stack(np.broadcast_arrays(self.value, *self.terms.values())[1:]))
        endless = np.isinf(sizes)
        alone = endless.any(axis=0) & (endless.sum(axis=0) == 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = np.where(alone, endless * 1.0, sizes / sizes.sum(axis=0))
        return dict(zip(self.terms, parts, strict=True))

    @property
    def unused(self) -> tuple[str, ...]:
        """The given constants that nothing in the form depends on."""
        return self.view.unused(self.constants)

    def to_dict(self) -> dict[str, Any]:
        """The document that `fedbounds eval --json` prints (without schema and version)."""
        return {
            "key": self.view.result.key,
            "form": self.view.name,
            "value": self.value,
            "terms": dict(self.terms),
            "shares": dict(self.shares),
            "conditions": [
                {
                    "text": c.text,
                    "legal": c.condition.legal,
                    "holds": c.holds,
                    "left": c.left,
                    "right": c.right,
                    "admissible": c.admissible,
                    "limits": c.limits,
                    "why": c.why,
                }
                for c in self.conditions
            ],
            "feasible": None
            if self.view.feasible is None
            else [
                {
                    "text": c.text,
                    "holds": c.holds,
                    "left": c.left,
                    "right": c.right,
                    "why": c.why,
                    "necessary": i < len(self.view.feasible),
                }
                for i, c in enumerate(self.feasible)
            ],
            "valid": self.valid,
            "guarantee": self.guarantee,
            "why_not": list(self.why_not),
            "conditional_on": self.conditional_on,
            "assumptions": [{"name": n, "status": s} for n, s in self.assumptions.items()],
            "constants": {n: {"value": c.value, "source": c.source} for n, c in self.constants.items()},
            "unused": list(self.unused),
            "prescribed": dict(self.prescribed),
            "dominant": self.dominant,
            "measure": str(self.view.measure),
            "order_only": self.view.order_only,
            "reading": self.view.implicit,
            "verdict": self.verdict,
        }


def evaluate(
    result: Result | str,
    constants: Mapping[str, Value],
    form: str | None = None,
    *,
    assume: str | Iterable[str] = (),
    checked: Mapping[str, bool] | None = None,
    trust: str | Iterable[str] = (),
    strict: bool = True,
) -> Evaluation:
    r"""Evaluate one form of a result.

    Args:
        result: what to evaluate, or its key.
        constants: symbol or concept to a number, an array (settings broadcast), a vector over clients, or a `Constant`.
        form: its name or kind; the strongest one that is not refuted by default.
        assume: names of assumptions taken for granted, or `"all"`.
        checked: assumption name to whether it was found to hold on the problem.
        trust: claims that the user answers for although the audit has not proved them, as "paper/theorem-1" or
            "paper/theorem-1[explicit]"; what rests on one is conditional on it, and says so.
        strict: refuse constants that together mean nothing, as four of three clients (for arrays: at every point);
            else that is a condition that fails.

    Returns:
        The value always, and whether it is valid and a guarantee. Where the conditions fail, a value may be infinite:
        a form that divides by what they keep positive says nothing there.

    Raises:
        FedboundsError: an unknown or missing constant, a value outside its domain, contradictory constants, constants
            that together mean nothing, where it is strict.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> evaluation = evaluate(theorem, dict(L=1, F=1.5, I=1, P=3, T=30, gamma=1/36, eta=6, rho=1, sigma=0,
        ...                                     nu=0, beta=0, delta=0), form="explicit")
        >>> round(float(evaluation.value), 10), bool(evaluation.valid), evaluation.dominant
        (2.4, True, 'initial gap')
    """
    return evaluate_form(
        as_compiled(result).form(form), constants, assume=assume, checked=checked, trust=trust, strict=strict
    )


@np.errstate(all="ignore")  # what is not finite is said by the value itself
def evaluate_form(
    chosen: CompiledForm,
    constants: Mapping[str, Value],
    *,
    assume: str | Iterable[str] = (),
    checked: Mapping[str, bool] | None = None,
    trust: str | Iterable[str] = (),
    strict: bool = True,
) -> Evaluation:
    """As `evaluate`, of the view of a form."""
    assume, trust = names_of("assume", assume), names_of("trust", trust)
    known = resolve(chosen, constants)
    compiled, notation = chosen.compiled, chosen.result.notation
    numbers = {name: np.asarray(c.value, dtype=float) for name, c in known.items()}
    parts = compiled.parts(numbers)
    terms, total = parts.terms, parts.total
    shape = np.broadcast_shapes(*(v.shape[:-1] if notation[name].shape else v.shape for name, v in numbers.items()))
    if shape != np.shape(total):  # what the bound does not depend on may vary in a condition or a step size
        terms, total = [np.broadcast_to(term, shape) for term in terms], np.broadcast_to(total, shape)
    valid = reduce(np.logical_and, parts.holds, np.ones(np.shape(total), dtype=bool))[()]
    lost = below = infinite = np.asarray(False)
    if not (np.min(total) >= 0 and np.max(total) < np.inf):
        lost = (np.isnan(total) | (total == -np.inf)) & valid
        valid = valid & ~lost
        below, infinite = (total < 0) & (not chosen.measure.signed), valid & (total == np.inf)
        if np.any(vacuous := below & ~valid):
            # beyond its conditions a form divides by what is no longer positive: it then says nothing
            terms, total = [np.where(vacuous, np.inf, term) for term in terms], np.where(vacuous, np.inf, total)
    shown = cache(lambda: compiled.sides(numbers))
    checks = tuple(
        CheckedCondition(c, verdict, notation, lambda i=i: shown()[i])
        for i, (c, verdict) in enumerate(zip(chosen.conditions, parts.holds, strict=True))
    )
    statuses = _assumption_statuses(chosen, assume, checked or {})
    standing = chosen.standing()
    verdict = standing.verdict
    trusted = trusted_claim(chosen, trust)
    prescribed = dict(zip(chosen.prescribes, parts.prescribed, strict=True))
    together = constants_together(chosen, numbers)
    impossible = why_impossible(chosen, together, known) if chosen.feasible is not None or not trusted else ()
    why_not = (
        *status_reasons(chosen, trusted=bool(trusted)),
        *_reasons(checks, known, statuses, prescribed),
    )
    if np.any(lost):
        why_not = (f"{NO_VALUE}{f' at {lost.sum()} of {lost.size} settings' if lost.ndim else ''}", *why_not)
    if np.any(infinite):
        why_not = ("the value is infinite, which bounds nothing", *why_not)
    if np.any(below & valid):
        why_not = ("the left-hand side is never negative, so no run has these constants", *why_not)
    too_many = _too_many_participants(chosen, numbers, checks)
    why_not = (*((f"no run has these constants: {too_many}",) if too_many else ()), *impossible, *why_not)
    evaluation = Evaluation(
        view=chosen,
        value=total[()],  # a float for one setting
        terms={name: term[()] for name, term in zip(chosen.terms, terms, strict=True)},
        conditions=checks,
        valid=valid,
        guarantee=not why_not,
        why_not=why_not,
        assumptions=statuses,
        constants=known,
        prescribed=prescribed,
        verdict=verdict,
        conditional_on=trusted if trusted and verdict not in ("proved", "refuted") else standing.untried,
        feasible=together,
    )
    if strict:
        _refuse_the_meaningless(evaluation)
        if too_many and " settings" not in too_many:
            raise FedboundsError(f"{chosen.title}: {too_many}")
    return evaluation


def _too_many_participants(
    form: CompiledForm, numbers: Mapping[str, np.ndarray], checks: Sequence[CheckedCondition]
) -> str:
    """Why no run has as many participants, whether the form uses them or not; "" if one can, or a condition fails."""
    notation = form.result.notation
    for part, whole in notation.parts:
        if not {part, whole} <= {*numbers} or not all(np.all(c.holds) for c in checks):
            continue
        values, limits = np.broadcast_arrays(numbers[part], numbers[whole])
        if (wrong := values > limits).any():
            where = f" at {wrong.sum()} of {wrong.size} settings" if wrong.ndim and not wrong.all() else ""
            given = f"{part} = {values[wrong][0]:g} ({notation[part].meaning})"
            limit = f"{whole} = {limits[wrong][0]:g}{where} (number of clients)"
            return f"{given} exceeds {limit}; give {part} <= {whole}"
    return ""


def _refuse_the_meaningless(evaluation: Evaluation) -> None:
    """Constants that together mean nothing at any point are an error."""
    forms = evaluation.view.result.forms
    for c in evaluation.conditions:
        if c.condition.legal and not np.any(c.holds):
            sides = both_sides(float(np.ravel(c.left)[0]), float(np.ravel(c.right)[0]))
            here = c.condition.printed().exact
            without = [f.name for f in forms if here not in (other.printed().exact for other in f.conditions)]
            hint = f"; these forms do without: {', '.join(without)}" if without else ""
            raise FedboundsError(f"{c.why}: {c.text} fails, {sides}{hint}")


def trusted_claim(form: CompiledForm, trust: Iterable[str]) -> str:
    """The claim among those trusted that says this form ("" if none does)."""
    result = form.result
    forms = [f"{result.key}[{other.name}]" for other in result.forms]
    for name in (names := tuple(trust)):
        if name != result.key and name not in forms:
            raise unknown_name("claim to trust", name, [result.key, *forms])
    here = f"{result.key}[{form.name}]"
    return here if {here, result.key} & set(names) else ""


def status_reasons(form: CompiledForm, *, trusted: bool = False) -> tuple[str, ...]:
    """Why no value of a form is a guarantee, whatever the constants; none if it is proved as it stands.

    Example:
        >>> status_reasons(as_compiled("fed-norm-sgda/theorem-2").form())
        ('the audit has not proved it: its verdict is survived',)
    """
    standing, reasons = form.standing(), []
    verdict = standing.verdict
    if verdict == UNREAD:
        reasons.append(NOT_COMPARED)
    if form.measure.lower:
        reasons.append("it is a lower bound: some problem of the class is above it, and yours may be below")
    if form.order_only:
        reasons.append("the form hides constants in an O(.); every hidden constant is taken as 1")
    if form.asymptotic:
        reasons.append(f"the form holds only in the limit {form.asymptotic}")
    if form.refuted_by:
        reasons.append(f"the form, or a step it rests on, is refuted by erratum {standing.accused}")
    elif verdict == "refuted" or (verdict != "proved" and not trusted):
        because = standing.unheard
        reasons.append(f"the audit has not proved it: its verdict is {verdict}{because and f'; {because}'}")
    return tuple(reasons)


def _reasons(
    checks: tuple[CheckedCondition, ...],
    known: Mapping[str, Constant],
    statuses: Mapping[str, str],
    prescribed: Mapping[str, np.ndarray],
) -> tuple[str, ...]:
    """Every reason why this value, at these constants, is not a guarantee."""
    reasons = []
    if broken := "; ".join(c.text for c in checks if not np.all(c.holds)):
        reasons.append(f"a condition fails: {broken}")
    for name, step in prescribed.items():
        if name in known and known[name].source != "derived":
            value, wanted = np.broadcast_arrays(np.asarray(known[name].value, dtype=float), step)
            other = ~np.isclose(value, wanted, rtol=AGREEMENT, atol=0)
            if other.any():
                both = f"{name} = {value[other][0]:.12g} is given, and the result prescribes {wanted[other][0]:.12g}"
                reasons.append(f"{both}: it says nothing of other values")
    reasons += [f"{name} is {SOFT[c.source]}" for name, c in known.items() if c.source in SOFT]
    violated = [name for name, status in statuses.items() if status == "violated"]
    if violated:
        reasons.append(f"assumptions violated: {', '.join(violated)}")
    open_ones = [name for name, status in statuses.items() if status == "not checked"]
    if open_ones:
        reasons.append(f"assumptions neither checked nor assumed: {', '.join(open_ones)}")
    return tuple(reasons)


def check_assumed(names: Sequence[str], assume: Iterable[str]) -> set[str]:
    """The assumptions of a form that are taken for granted, "all" for each."""
    taken = set(assume)
    for name in taken - {"all", *names}:
        raise unknown_name("assumption", name, [*names, "all"])
    return set(names) if "all" in taken else taken


def _assumption_statuses(form: CompiledForm, assume: Iterable[str], checked: Mapping[str, bool]) -> dict[str, str]:
    taken = check_assumed(form.assumptions, assume)
    statuses = {}
    for name in form.assumptions:
        if name in checked:
            statuses[name] = "checked" if checked[name] else "violated"
        else:
            statuses[name] = "assumed" if name in taken else "not checked"
    return statuses


def _bound(evaluation: Evaluation) -> str:
    """The value at one setting, with the relation that it stands in."""
    value = float(evaluation.value)
    sign = "~" if evaluation.view.order_only else evaluation.view.measure.sign
    return "no value" if math.isnan(value) else f"{sign} {number(value)}"


def _described(evaluation: Evaluation) -> str:
    """The evaluation as text for people."""
    form = evaluation.view
    value = float(evaluation.value)
    outside = not math.isfinite(value) and not all(c.holds for c in evaluation.conditions)
    lines = [f"{form.title}   {form.result.source}", str(form.measure)]
    lines += [f"  violated: {said}" for said in _violations(evaluation)]
    lines += [
        f"  {'no bound outside these conditions' if outside else _bound(evaluation)}"
        f"     valid: {'yes' if evaluation.valid else 'no'}"
        f"     guarantee: {evaluation.guarantee_text}     verdict: {evaluation.verdict}"
    ]
    lines += [f"  {form.implicit}"] if form.implicit else []
    lines += [] if outside else ["", "terms"]
    width = max(len(name) for name in evaluation.terms)
    for name, term in ({} if outside else evaluation.terms).items():
        share = float(evaluation.shares[name])
        part = f"{share:>6.1%}  {'#' * round(24 * share)}" if share == share else f"{'-':>6}"
        lines.append(f"  {name:<{width}}  {number(float(term)):>12}  {part}".rstrip())
    if any(float(term) < 0 for term in evaluation.terms.values()):
        lines.append("  (shares of the sum of their sizes, as a term is negative)")
    legal = [c for c in evaluation.conditions if c.condition.legal]
    if own := [c for c in evaluation.conditions if not c.condition.legal]:
        lines += ["", "conditions"]
        for c in own:
            limit = f"   {c.limits} at its limit: {c.limit}" if c.limit else ""
            sides = both_sides(float(c.left), float(c.right))
            lines.append(f"  {'holds' if c.holds else 'FAILS'}  {c.text}   ({sides}){limit}")
    if any(not c.holds for c in evaluation.feasible):
        lines += ["", "constants that cannot occur together"]
        count = len(evaluation.view.feasible or ())
        violated = [c for c in evaluation.feasible[:count] if not c.holds]
        for c in violated or [c for c in evaluation.feasible if not c.holds]:
            sides = both_sides(float(c.left), float(c.right))
            known = f"open   a problem is known only for {c.why}   (that needs {c.condition.op}: {sides})"
            lines.append(f"  FAILS  {c.text} ({c.why})   ({sides})" if violated else f"  {known}")
    lines += ["", "legal constants"] if legal else []
    lines += [f"  {'holds' if c.holds else 'FAILS'}  {c.why}" for c in legal]
    lines += ["", "constants"]
    for name, constant in evaluation.constants.items():
        idle = ", not used by this form" if name in evaluation.unused else ""
        lines.append(f"  {name} = {number(constant.value)}   {constant.source}{_note(constant.note)}{idle}")
    for name, step in evaluation.prescribed.items():
        lines.append(f"  {name} = {number(float(step))}   prescribed by the result")
    if evaluation.why_not:
        lines += ["", "not a guarantee, because"]
        lines += [f"  - {reason}" for reason in evaluation.why_not]
        if any(status == "not checked" for status in evaluation.assumptions.values()):
            lines.append("  (--assume all takes the assumptions for granted; `fedbounds show` lists them)")
    return "\n".join(lines)


def _violations(evaluation: Evaluation) -> Iterable[str]:
    """Each constant that fails a condition with its admissible values, and the conditions that limit none."""
    tightest: dict[str, tuple[float, CheckedCondition]] = {}
    for c in evaluation.conditions:
        if c.holds:
            continue
        if c.admissible is None:
            yield f"{c.text}   ({both_sides(float(c.left), float(c.right))})"
            continue
        value, caps = float(c.admissible), c.condition.printed().caps
        known = tightest.setdefault(c.limits, (value, c))
        if (value < known[0]) == bool(caps):
            tightest[c.limits] = value, c
    for name, (_, c) in tightest.items():
        side = {True: "at most ", False: "at least ", None: ""}[c.condition.printed().caps]
        given = number(evaluation.constants[name].value) if name in evaluation.constants else "its value"
        yield f"{name} = {given}, needs {side}{c.limit}   ({c.text})"


def _note(text: str) -> str:
    """A remark in parentheses, or nothing."""
    return f" ({text})" if text else ""
