"""Evaluation: constants in, value, terms, conditions and an honest word about the guarantee out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.errata import accused_by
from fedbounds.bounds.audit.ledger import committed_verdict, unheard, untried
from fedbounds.bounds.border import check_constants, check_settings, names_of
from fedbounds.bounds.checks import check_memory
from fedbounds.bounds.compilation import arguments, compile_expressions, compile_form
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.plain_text import describe
from fedbounds.bounds.registry import as_result
from fedbounds.bounds.result import AGREEMENT, Condition, Derived, Form, Result, unused
from fedbounds.bounds.symbols import Constant, NoConstant, Notation, Quantity, Source

SOFT: Mapping[Source, str] = {
    "trajectory": "known only along one run",
    "estimated": "only estimated",
}  # sources that never guarantee
NO_VALUE = "no value: the numbers overflow"

Value = float | int | np.ndarray | Iterable[float] | Constant


@dataclass(frozen=True)
class CheckedCondition:
    """One condition at the given constants: whether it holds, and, when asked for, what there is to show about it.

    Attributes:
        condition: the relation.
        holds: whether it holds, up to rounding.
        notation: the paper's letters.
        shown: both sides and the extreme admissible value, computed when first needed.
    """

    condition: Condition
    holds: np.ndarray
    notation: Notation = field(repr=False, compare=False)
    shown: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray | None]] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The relation in plain text, as the paper writes it."""
        return self.condition.as_printed(self.notation).text

    @property
    def latex(self) -> str:
        """The relation in LaTeX, as the paper writes it."""
        return self.condition.as_printed(self.notation).latex

    @property
    def why(self) -> str:
        """Where the proof uses it."""
        return self.condition.why

    @property
    def limits(self) -> str:
        """The constant that it caps or floors ("" for none)."""
        return "" if self.condition.limits is None else self.condition.limits.name

    @property
    def left(self) -> np.ndarray:
        """The left-hand side's value."""
        return self.shown()[0]

    @property
    def right(self) -> np.ndarray:
        """The right-hand side's value."""
        return self.shown()[1]

    @property
    def admissible(self) -> np.ndarray | None:
        """The extreme admissible value of the constant that it limits; None where there is no closed form."""
        return self.shown()[2]


@dataclass(frozen=True)
class Evaluation:
    """What a form promises at given constants.

    Attributes:
        value: the bound, shape of the broadcast settings.
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
    """

    result: Result
    form: Form
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

    @property
    def promise(self) -> str:
        """Whether it is a guarantee, in words: "yes", "no", or "yes, conditional on ..."."""
        if not self.guarantee:
            return "no"
        return f"yes, conditional on {self.conditional_on} ({self.verdict})" if self.conditional_on else "yes"

    def __str__(self) -> str:
        """The evaluation as `fedbounds eval` prints it; of many settings, what they have in common."""
        if not np.ndim(self.value):
            return describe(self)
        finite = self.value[np.isfinite(self.value)]
        between = f"from {finite.min():.6g} to {finite.max():.6g}" if finite.size else "no finite value"
        lines = [
            f"{self.result.key} [{self.form.name}]   {self.result.source}",
            str(self.form.measure or self.result.measure),
            f"  {self.value.size} settings: {between}     valid: {np.count_nonzero(self.valid)}     "
            f"guarantee: {self.promise}     verdict: {self.verdict}",
        ]
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.why_not)])

    def revoked(self, *reasons: str) -> Evaluation:
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
        return unused(self.result, self.form, self.constants)

    def to_dict(self) -> dict[str, Any]:
        """The document that `fedbounds eval --json` prints (without schema and version)."""
        return {
            "key": self.result.key,
            "form": self.form.name,
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
            "valid": self.valid,
            "guarantee": self.guarantee,
            "why_not": list(self.why_not),
            "conditional_on": self.conditional_on,
            "assumptions": [{"name": n, "status": s} for n, s in self.assumptions.items()],
            "constants": {n: {"value": c.value, "source": c.source} for n, c in self.constants.items()},
            "unused": list(self.unused),
            "prescribed": dict(self.prescribed),
            "dominant": self.dominant,
            "measure": str(self.form.measure or self.result.measure),
            "order_only": self.form.order_only,
            "reading": self.form.generous,
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
) -> Evaluation:
    r"""Evaluate one form of a result.

    Args:
        result: what to evaluate, or its key.
        constants: letter or concept to a number, an array (settings broadcast), a vector over clients, or a `Constant`.
        form: its name or kind; the strongest one that is not refuted by default.
        assume: names of assumptions taken for granted, or `"all"`.
        checked: assumption name to whether it was found to hold on the problem.
        trust: claims that the user answers for although the audit has not proved them, as "paper/theorem-1" or
            "paper/theorem-1[explicit]"; what rests on one is conditional on it, and says so.

    Returns:
        The value always, and whether it is valid and a guarantee. Where the conditions fail, a value may be infinite:
        a form that divides by what they keep positive says nothing there.

    Raises:
        FedboundsError: an unknown or missing constant, a value outside its domain, contradictory constants, constants
            that together mean nothing, as four of three clients (for arrays: at every point).

    Example:
        >>> from fedbounds.bounds.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> evaluation = evaluate(theorem, dict(L=1, F=1.5, I=1, P=3, T=30, gamma=1/36, eta=6, rho=1, sigma=0,
        ...                                     nu=0, beta=0, delta=0), form="explicit")
        >>> round(float(evaluation.value), 10), bool(evaluation.valid), evaluation.dominant
        (2.4, True, 'initial gap')
    """
    result = as_result(result)
    evaluation = evaluated(result, constants, form=form, assume=assume, checked=checked, trust=trust)
    for c in evaluation.conditions:
        if c.condition.legal and not np.any(c.holds):
            left, right = (f"{np.ravel(side)[0]:.9g}" for side in (c.left, c.right))
            without = [f.name for f in result.forms if c.condition.text not in (other.text for other in f.conditions)]
            hint = f"; these forms do without: {', '.join(without)}" if without else ""
            raise FedboundsError(f"{c.why}: {c.text} fails, {left} against {right}{hint}")
    return evaluation


@np.errstate(all="ignore")  # what is not finite is said by the value itself
def evaluated(
    result: Result,
    constants: Mapping[str, Value],
    *,
    form: str | None = None,
    assume: str | Iterable[str] = (),
    checked: Mapping[str, bool] | None = None,
    trust: str | Iterable[str] = (),
) -> Evaluation:
    """As `evaluate`, but where the constants together mean nothing it is a condition that fails, not an error."""
    chosen = result.form(form)
    assume, trust = names_of("assume", assume), names_of("trust", trust)
    known = resolve_constants(result, chosen, constants)
    vectors = frozenset(q.name for q in result.notation.values() if q.shape)
    compiled = compile_form(chosen, vectors)
    numbers = {name: np.asarray(c.value, dtype=float) for name, c in known.items()}
    parts = compiled.parts(numbers)
    terms, total = parts.terms, parts.total
    valid = np.all(np.broadcast_arrays(*parts.holds), axis=0) if parts.holds else np.asarray(True)
    lost = (np.isnan(total) | (total == -np.inf)) & valid
    valid = valid & ~lost
    below = (total < 0) & (not (chosen.measure or result.measure).signed)
    if np.any(vacuous := below & ~valid):
        # beyond its conditions a form divides by what is no longer positive: it then says nothing
        terms, total = [np.where(vacuous, np.inf, term) for term in terms], np.where(vacuous, np.inf, total)
    shown = cache(lambda: compiled.sides(numbers))
    checks = tuple(
        CheckedCondition(c, verdict, result.notation, lambda i=i: shown()[i])
        for i, (c, verdict) in enumerate(zip(chosen.conditions, parts.holds, strict=True))
    )
    statuses = _assumption_statuses(chosen, assume, checked or {})
    verdict = committed_verdict(result, chosen)
    trusted = _trusted(result, chosen, trust)
    unproved = "" if verdict == "proved" or (trusted and verdict != "refuted") else verdict
    prescribed = dict(zip(chosen.prescribes, parts.prescribed, strict=True))
    accused = accused_by(result.paper, chosen.refuted_by) if chosen.refuted_by else ""
    why_not = _reasons(result, chosen, accused, unproved, checks, known, statuses, prescribed)
    if np.any(lost):
        why_not = (f"{NO_VALUE}{f' at {lost.sum()} of {lost.size} settings' if lost.ndim else ''}", *why_not)
    if np.any(valid & (total == np.inf)):
        why_not = ("the value is infinite, which promises nothing", *why_not)
    if np.any(below & valid):
        why_not = ("the left-hand side is never negative, so no run has these constants", *why_not)
    return Evaluation(
        result=result,
        form=chosen,
        value=total,
        terms=dict(zip((t.name for t in chosen.terms), terms, strict=True)),
        conditions=checks,
        valid=valid,
        guarantee=not why_not,
        why_not=why_not,
        assumptions=statuses,
        constants=known,
        prescribed=prescribed,
        verdict=verdict,
        conditional_on=trusted if trusted and verdict not in ("proved", "refuted") else untried(result, chosen),
    )


def _trusted(result: Result, form: Form, trust: Iterable[str]) -> str:
    """The claim among those trusted that says this form ("" if none does).

    Raises:
        FedboundsError: a name that is neither this result nor a form of it.
    """
    forms = {f"{result.key}[{other.name}]": other for other in result.forms}
    for name in (names := tuple(trust)):
        if name != result.key and name not in forms:
            raise unknown_name("claim to trust", name, [result.key, *forms])
    here = f"{result.key}[{form.name}]"
    return here if {here, result.key} & set(names) else ""


def _reasons(
    result: Result,
    form: Form,
    accused: str,
    unproved: str,
    checks: tuple[CheckedCondition, ...],
    known: Mapping[str, Constant],
    statuses: Mapping[str, str],
    prescribed: Mapping[str, np.ndarray],
) -> tuple[str, ...]:
    """Every reason why this value is not a guarantee."""
    reasons = []
    if form.order_only:
        reasons.append("the form hides constants in an O(.); every hidden constant is taken as 1")
    if form.asymptotic:
        reasons.append(f"the form holds only in the limit {form.asymptotic}")
    if accused:
        reasons.append(f"the form, or a step it rests on, is refuted by erratum {accused}")
    elif unproved:
        because = unheard(result.paper)
        reasons.append(f"the audit has not proved it: its verdict is {unproved}{because and f'; {because}'}")
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


def check_assumed(form: Form, assume: Iterable[str]) -> set[str]:
    """The assumptions that are taken for granted, "all" for each: refused where the form makes none of that name."""
    names = [a.name for a in form.assumptions]
    taken = set(assume)
    for name in taken - {"all", *names}:
        raise unknown_name("assumption", name, [*names, "all"])
    return set(names) if "all" in taken else taken


def _assumption_statuses(form: Form, assume: Iterable[str], checked: Mapping[str, bool]) -> dict[str, str]:
    taken = check_assumed(form, assume)
    statuses = {}
    for assumption in form.assumptions:
        name = assumption.name
        if name in checked:
            statuses[name] = "checked" if checked[name] else "violated"
        else:
            statuses[name] = "assumed" if name in taken else "not checked"
    return statuses


def resolve_constants(
    result: Result, form: Form, constants: Mapping[str, Value], *, needed: frozenset[str] | None = None
) -> dict[str, Constant]:
    """The constants a form needs: given ones validated, derived ones computed, contradictions and gaps refused."""
    check_constants(constants)
    given: dict[str, Constant] = {}
    for name, value in constants.items():
        quantity = result.notation.resolve(name)
        if quantity is None:
            raise unknown_name(f"constant of {result.key}", name, [*result.notation])
        constant = as_constant(quantity, _for_all(result, quantity, value, constants))
        if quantity.name in given and not np.array_equal(given[quantity.name].value, constant.value):
            raise FedboundsError(f"{quantity.name} is given twice, unequal (by letter and by concept {name!r})")
        given[quantity.name] = constant
    _same_clients(result, given)
    check_settings(result.notation, given)
    if needed is None:
        expressions = [*form.symbols, *(s for e in form.prescribes.values() for s in e.free_symbols)]
        needed = frozenset(s.name for s in expressions)
    known = dict(given)
    missing: list[str] = []
    for name in sorted(needed):
        if not _derive(result, form, name, known, ()):
            missing.append(name)
    if missing:
        wanted = ", ".join(f"{n} ({result.notation[n].meaning})" for n in _roots(result, form, missing, known))
        raise FedboundsError(f"{result.key} [{form.name}] needs {wanted}")
    for rule in form.derived:
        if rule.name in given and rule.free is not True:
            _agree(result, form, rule, given)
    for rule in result.notation.floors:
        if rule.name in given and all(i in known and known[i].source not in SOFT for i in rule.inputs):
            _agree(result, form, rule, known)
    order = [n for n in result.notation if n in known and (n in needed or n in given or known[n].note == "default")]
    return {n: known[n] for n in order}


def _roots(result: Result, form: Form, missing: Sequence[str], known: Mapping[str, Constant]) -> list[str]:
    """The missing constants without those that would follow from the others."""
    left, given = set(missing), {*known, *(q.name for q in result.notation.values() if q.default is not None)}
    for name in missing:
        found = left - {name} | given
        while more := {r.name for r in form.derived if r.name not in found and found.issuperset(r.inputs)}:
            found |= more
        left -= {name} & found
    return sorted(left)


def _derive(result: Result, form: Form, name: str, known: dict[str, Constant], pending: tuple[str, ...]) -> bool:
    """Make `name` known by a derivation rule or its default, if it can be; whether it is known."""
    if name in known:
        return True
    for rule in form.derived:
        usable = rule.name == name and name not in pending
        if usable and all(_derive(result, form, i, known, (*pending, name)) for i in rule.inputs):
            value = np.asarray(_apply(result, rule, known), dtype=float)
            try:
                result.notation[name].check(value)
            except FedboundsError as error:
                values = [(i, np.asarray(known[i].value, dtype=float)) for i in rule.inputs]
                inputs = ", ".join(f"{i} = {v.item():.12g}" if v.size == 1 else i for i, v in values)
                raise FedboundsError(f"{error}; it follows from {inputs} ({rule.why})") from None
            sources: list[Source] = [known[i].source for i in rule.inputs if known[i].source in SOFT]
            known[name] = Constant(value, sources[0] if sources else "derived", rule.why)
            return True
    default = result.notation[name].default
    if default is not None:
        known[name] = Constant(np.asarray(default), "given", "default")
    return name in known


@lru_cache(maxsize=256)
def _compiled_rule(names: tuple[sp.Symbol, ...], rule: sp.Expr) -> Callable[..., list[np.ndarray]]:
    """A derivation rule as a numpy function, made once per process."""
    return compile_expressions(names, (rule,))


def _apply(result: Result, rule: Derived, known: Mapping[str, Constant]) -> np.ndarray | float:
    if not isinstance(rule.rule, sp.Expr):
        return rule.rule(*(np.asarray(known[i].value, dtype=float) for i in rule.inputs))
    names = arguments([rule.rule])
    vectors = {i for i in rule.inputs if result.notation[i].shape}
    values = [np.asarray(known[s.name].value, dtype=float) for s in names]
    if vectors:
        values = [v if s.name in vectors else v[..., None] for s, v in zip(names, values, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.asarray(_compiled_rule(names, rule.rule)(*values)[0], dtype=float)
    return out[..., 0] if vectors and not result.notation[rule.name].shape else out


def _agree(result: Result, form: Form, rule: Derived, given: Mapping[str, Constant]) -> None:
    """Refuse a given constant that contradicts what follows from the others.

    Raises:
        FedboundsError: both values, and what the derived one follows from.
    """
    others = {name: constant for name, constant in given.items() if name != rule.name}
    try:
        if not all(_derive(result, form, i, others, (rule.name,)) for i in rule.inputs):
            return
        derived = np.asarray(_apply(result, rule, others))
    except FedboundsError:
        return  # what cannot be computed, as a weight error over too many rounds, has to be given
    value, derived = np.broadcast_arrays(np.asarray(given[rule.name].value, dtype=float), derived)
    wrong = ~rule.admits(value, derived)
    if wrong.any():
        relation = {"upwards": "is below", "downwards": "is above"}.get(str(rule.free), "contradicts")
        rest = "" if relation == "contradicts" else " or a value beyond it"
        raise FedboundsError(
            f"{rule.name} = {value[wrong][0]:.12g} {relation} {derived[wrong][0]:.12g}, "
            f"which follows{' from ' if rule.inputs else ''}{', '.join(rule.inputs)} ({rule.why}); "
            f"give {'one or the other' if rule.inputs else 'none'}{rest}"
        )


def derived_constants(result: Result, form: Form, name: str, known: Mapping[str, Constant]) -> tuple[Constant, ...]:
    """What a constant must be, or be at least, by the rules of a form; none where other constants are missing.

    Args:
        result, form: whose rules.
        name: the letter.
        known: what is known, by letter.

    Example:
        >>> from fedbounds.bounds.registry import load
        >>> theorem = load("fed-norm-sgda/theorem-1")
        >>> steps = {"gammax": Constant(0.1, "given"), "taueff": Constant(5.0, "given")}
        >>> [float(c.value) for c in derived_constants(theorem, theorem.form("explicit"), "Gammax", steps)]
        [0.5]
    """
    found = ()
    for rule in form.derived:
        others = {letter: constant for letter, constant in known.items() if letter != name}
        if rule.name != name or rule.free not in (False, "upwards"):
            continue
        try:
            if all(_derive(result, form, i, others, (name,)) for i in rule.inputs):
                found += (Constant(np.asarray(_apply(result, rule, others)), "derived", rule.why),)
        except FedboundsError:
            continue  # what cannot be computed, as a weight error over too many rounds
    return found


def _for_all(result: Result, quantity: Quantity, value: Value, constants: Mapping[str, Value]) -> Value:
    """One number for a constant of every client, where the number of clients is given: all clients have it."""
    if not quantity.shape or isinstance(value, NoConstant):
        return value
    number = value.value if isinstance(value, Constant) else value
    clients = next((q for q in result.notation.values() if q.concept == "clients"), None)
    count = next((v for name, v in constants.items() if clients and result.notation.resolve(name) is clients), None)
    if np.ndim(number) or clients is None or count is None:  # pyright: ignore[reportArgumentType]
        return value
    how_many = as_constant(clients, count).value
    if np.ndim(how_many):
        return value
    check_memory(f"{quantity.name} for {clients.name} = {how_many:g} clients", 8 * int(how_many))
    every = np.full(int(how_many), number, dtype=float)
    return replace(value, value=every) if isinstance(value, Constant) else every


def as_constant(quantity: Quantity, value: Value) -> Constant:
    """A given value as a constant inside its domain.

    Raises:
        FedboundsError: no number, outside its domain, or no finite value.
    """
    if isinstance(value, NoConstant):
        raise FedboundsError(f"{quantity.name} ({quantity.meaning}) has no finite value: {value.why}")
    constant = value if isinstance(value, Constant) else Constant(value, "given")  # pyright: ignore[reportArgumentType]
    try:
        array = np.asarray(constant.value, dtype=float)
    except (TypeError, ValueError):
        raise FedboundsError(f"{quantity.name} = {constant.value!r} is not a number: {quantity.meaning}") from None
    if quantity.shape and array.ndim == 0:
        number = f"{float(array):.12g}"
        raise FedboundsError(
            f"{quantity.name} = {number} is one number; it needs one per client: {quantity.meaning} "
            f"(the same for all clients: give their number too; for a single client: {quantity.name}={number}, with "
            "the comma, or a list of one in Python)"
        )
    if array.size == 0:
        raise FedboundsError(f"{quantity.name} is empty: {quantity.meaning}")
    quantity.check(array)
    return Constant(array, constant.source, constant.note)


def _same_clients(result: Result, given: Mapping[str, Constant]) -> None:
    """Vectors over clients must agree on how many clients there are."""
    lengths = {n: np.asarray(c.value).shape[-1] for n, c in given.items() if result.notation[n].shape}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{n} has {k}" for n, k in lengths.items())
        raise FedboundsError(f"the vectors over clients differ in length: {listed}")
