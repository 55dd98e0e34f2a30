"""Checks of a stated theorem that need no proof of it: units, constants, conditions, limits and monotonicity.

Every finding is `ok`, a `warning` (unusual, and to be explained) or an `error` (the statement cannot be right), with
the constants at which it shows. Constants are drawn at random over eight orders of magnitude; a condition that caps a
constant is met by drawing the constant below its cap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.contradiction import find_contradiction
from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.dimension_checker import Fault, faults, gauge_faults, repair
from fedbounds.bounds.audit.unit_claims import UnitPart, parts
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.theory.dimensions import DimensionMismatch, dimension_of
from fedbounds.bounds.theory.printing import plain
from fedbounds.bounds.theory.problem_class import NO, ProblemClass, restrict_levels
from fedbounds.bounds.theory.result import Condition, Form, Result
from fedbounds.bounds.theory.symbols import NONE, Dimension, Notation, Quantity
from fedbounds.bounds.theory.theorem_file import STEP_CONCEPTS

Level = Literal["ok", "warning", "error"]
DRAWS = 4096  # settings of constants
ROUNDING = 1e-9
LARGE = 1e4  # of a whole number
FEW = 3  # equal entries of a list that are all shown
VECTOR, MANY = 4, 64  # clients of a vector, and where so few do not meet the conditions
NEVER_FALLS = {  # concepts in which no bound may fall: more of them makes every problem class larger
    "initial_gap": "a larger initial gap",
    "initial_squared_distance": "a larger initial distance",
    "gradient_noise": "more gradient noise",
    "gradient_divergence_sup": "more divergent clients",
    "mean_gradient_divergence": "more divergent clients",
    "optimum_heterogeneity": "more divergent clients",
    "optimum_noise": "more gradient noise",
    "function_heterogeneity": "more divergent clients",
    "smoothness": "a larger smoothness constant",
    "gradient_bound": "larger gradients",
    "stochastic_gradient_bound": "larger gradients",
}
HETEROGENEITY = ("gradient_divergence_sup", "mean_gradient_divergence", "optimum_heterogeneity",
                 "function_heterogeneity", "heterogeneity_offset")  # fmt: skip
QUIET = ("divergence", "heterogeneity", "noise")  # in concepts that are zero without noise and with equal clients


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    level: Level
    check: str  # which check
    form: str
    text: str  # in one line
    place: tuple[str, ...] = ()  # the keys in the theorem file that it is about
    at: Mapping[str, Any] = field(default_factory=dict)  # constants at which it shows
    ratio: float | None = None  # of a search: the largest left-hand side over the bound

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "place": list(self.place)}

    @property
    def shown_at(self) -> str:
        """The constants in words; empty if there are none."""
        return ", ".join(f"{name}={_in_words(value)}" for name, value in self.at.items())


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > FEW and all(one == value[0] for one in value):
            return f"{len(value)} times {_in_words(value[0])}"
        return f"[{', '.join(map(_in_words, value))}]"
    return str(value).lower() if isinstance(value, bool) else number(value + 0.0)  # no -0


def check_result(result: Result) -> tuple[Finding, ...]:
    """The findings for every form."""
    found: list[Finding] = []
    for form in result.forms:
        at = () if len(result.forms) == 1 else ("forms", form.name)
        for finding in _check_form(result, form):
            found.append(replace(finding, form=form.name, place=(*at, *finding.place)))
    return tuple(found)


def _check_form(result: Result, form: Form) -> Iterator[Finding]:
    yield from _units(result, form)
    yield from _unused(result, form)
    draws, why = None, f"none of {DRAWS} random constants meets all conditions; whether any does is not decided"
    try:
        draws = draw_constants(result, form)
    except FedboundsError as error:
        why = f"random constants contradict each other: {error}"
    if draws is None:
        impossible = find_contradiction(result, form)
        text = f"no constants meet {impossible}" if impossible else why
        yield Finding("error" if impossible else "warning", "feasible", "", text, ("conditions",))
        return
    evaluation, constants = draws
    if form.conditions:
        first = int(np.flatnonzero(evaluation.valid)[0])
        yield Finding("ok", "feasible", "", "the conditions can hold together", (), constants_at(constants, first))
    free = _draw_all(result, form, np.random.default_rng(1))
    anywhere = evaluate(result, free, form.name, strict=False)
    yield from _idle_conditions(anywhere)
    yield from _signs(evaluation, constants)
    if not form.order_only:
        yield from _monotone(result, form, evaluation, constants)
    yield from _limits(result, form, evaluation, constants)
    yield from _prescribed(result, form, anywhere, free)


def _units(result: Result, form: Form) -> Iterator[Finding]:
    """Units by exponents and by two scaling gauges; inside an O a monomial in the form's constants may repair one."""
    subject = ResultForm(result, form)
    units = {part.where: part for part in parts(subject)}
    wrong = faults(subject)
    for fault in wrong:
        part, place = units.get(fault.where), _place_of(fault.where)
        if part is None or part.wanted is None:
            yield Finding("error", "units", "", str(fault), place)
        elif part.repairable:
            yield _hidden(part, fault, result, form, place)
        else:
            monomial = _repair(part.expression, part.wanted, result, form)
            hint = f"; a factor {monomial} would repair it" if monomial else ""
            yield Finding("error", "units", "", f"{fault}{hint}", place)
    if not wrong:
        for uneven in gauge_faults(subject):
            yield Finding("error", "units", "", f"{uneven.where}: {uneven.says}", _place_of(uneven.where))
            return
        yield Finding("ok", "units", "", "every term, condition and step size has its unit")


def _hidden(part: UnitPart, fault: Fault, result: Result, form: Form, place: tuple[str, ...]) -> Finding:
    """What an O hides in a term whose unit is wrong: a monomial for each of its summands."""
    assert part.wanted is not None
    summands = sp.Add.make_args(sp.expand(part.expression))
    found = {each: _repair(each, part.wanted, result, form) for each in summands}
    if not all(found.values()):
        text = f"{fault}: no monomial in the constants of the form repairs it"
        return Finding("error", "units", "", text, place)
    monomials = sorted({monomial for monomial in found.values() if monomial != "1"})
    named = " and ".join(monomials)
    said = all(re.search(rf"\b{symbol}\b", form.hides) for symbol in re.findall(r"[A-Za-z_]\w*", named))
    constants = "constants with units" if len(monomials) > 1 else "a constant with a unit"
    end = f" ({form.hides})" if said else f'; name what is hidden, e.g. hides = "{named}"'
    text = f"{part.where}: the O hides {constants}, such as {named}{end}"
    return Finding("ok" if said else "warning", "units", "", text, place)


def _repair(expression: sp.Expr, wanted: Dimension, result: Result, form: Form) -> str:
    """The shortest monomial in the constants of the form that gives an expression its unit; "" if there is none."""
    notation = result.notation
    try:
        unit = dimension_of(expression, notation)
    except DimensionMismatch:
        return ""
    if unit is None or unit == wanted:
        return "1"
    own = [q.symbol for q in notation.values() if q.name in form.needs and q.dimension != NONE and not q.shape]
    own = [symbol for symbol in own if not notation[symbol.name].concept.endswith("step_size")]
    found = []
    for few in (1, 2):
        for some in combinations(own, few):
            powers = repair(unit, wanted, some, notation)
            if powers and all(powers.values()):
                size = sum(abs(p.numerator) + p.denominator - 1 for p in powers.values())
                found.append((size, plain(sp.Mul(*(s ** sp.Rational(p) for s, p in powers.items())))))
    return min(found)[1] if found else ""


def _place_of(where: str) -> tuple[str, ...]:
    if where.startswith("term "):
        return ("terms", where.removeprefix("term ").strip("'"))
    return ("conditions",) if where.startswith("condition") else ("step_sizes",)


def _unused(result: Result, form: Form) -> Iterator[Finding]:
    terms = {str(s) for t in form.terms for s in t.expression.free_symbols}
    only = sorted({str(s) for c in form.conditions for s in (c.left.free_symbols | c.right.free_symbols)} - terms)
    needed = [name for name in only if any(word in result.notation[name].concept for word in QUIET)]
    if needed:
        yield Finding("warning", "constants", "", f"{', '.join(needed)} occurs in conditions, but not in the bound")


def draw_constants(result: Result, form: Form, seed: int = 0) -> tuple[Evaluation, dict[str, np.ndarray]] | None:
    """Random constants of which some meet all conditions, and the form there; None if none were found.

    Raises:
        FedboundsError: random constants contradict each other, as a mean and the values it is of.
    """
    for clients in (VECTOR, MANY):
        rng = np.random.default_rng(seed)
        constants = _draw_all(result, form, rng, clients)
        for smaller, larger in natural_order(result.notation, constants):
            constants[smaller] = np.minimum(constants[smaller], constants[larger])
        steps = [name for name in constants if result.notation[name].concept.endswith(STEP_CONCEPTS)]
        vectors = [name for name, values in constants.items() if values.ndim > 1]
        for attempt in range(3 if vectors else 2):
            for _ in range(3):  # caps may depend on constants that other caps change
                for condition in form.conditions:
                    meet(result, condition, constants, rng)
            evaluation = evaluate(result, constants, form.name, strict=False)
            if np.any(evaluation.valid):
                return evaluation, constants
            if not attempt:  # a condition that is not solved for a step size is met by a small one
                constants |= {name: constants[name] * 10 ** rng.uniform(-8, 0, DRAWS) for name in steps}
            constants |= {name: _alike(result.notation[name], constants[name]) for name in vectors if attempt}
        if not vectors:
            break
    return None


def _alike(quantity: Quantity, values: np.ndarray) -> np.ndarray:
    """Vectors with the first entry for all clients, or equal shares of their sum."""
    entry = values[:, :1] if quantity.total is None else quantity.total / values.shape[1]
    return np.broadcast_to(entry, values.shape).copy()


def natural_order(notation: Notation, names: Collection[str]) -> list[tuple[str, str]]:
    """Pairs of these constants of which the first is at most the second, whatever the problem."""
    found = []
    for smaller, larger in (("participating_clients", "clients"), ("strong_convexity", "smoothness")):
        low, high = notation.resolve(smaller), notation.resolve(larger)
        if low and high and low.name in names and high.name in names:
            found.append((low.name, high.name))
    return found


def _draw_all(result: Result, form: Form, rng: np.random.Generator, clients: int = VECTOR) -> dict[str, np.ndarray]:
    """Random legal values of the constants that a form needs, by name."""
    names = [name for name in result.notation if name in form.needs - form.prescribes.keys()]
    drawn = {name: draw_quantity(result.notation[name], rng, clients) for name in names}
    counted = result.notation.resolve("clients")
    if counted and counted.name in drawn and any(result.notation[name].shape for name in names):
        drawn[counted.name] = np.full(DRAWS, float(clients))  # as many as the vectors have
    return drawn


def draw_quantity(quantity: Quantity, rng: np.random.Generator, clients: int = VECTOR) -> np.ndarray:
    """Random legal values, log-uniform where the domain is unbounded, (DRAWS,) or (DRAWS, clients)."""
    shape = (DRAWS, clients) if quantity.shape else (DRAWS,)
    low, high = quantity.domain.low, quantity.domain.high
    if quantity.total is not None:
        return rng.dirichlet(np.ones(clients), DRAWS) * quantity.total
    if quantity.domain.integer:
        least, most = quantity.domain.whole_numbers
        first = max(least, 1) if least > LARGE else 1
        top = min(most, LARGE * first)
        drawn = np.round(10 ** rng.uniform(np.log10(first), np.log10(max(top, 2 * first)), shape))
        return np.clip(drawn, max(least, 1), top) if most >= 1 else np.clip(most + 1 - drawn, least, most)
    if np.isfinite(high):
        share = rng.uniform(0.01, 0.99, shape)
        return low + (high - low) * share if np.isfinite(low) else high - 10 ** (8 * share - 4)
    return max(low, 0.0) + 10 ** rng.uniform(-4, 4, shape) * (low if low > LARGE else 1)


def meet(result: Result, condition: Condition, constants: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Draw the constant that a condition limits again, where it fails, inside its limit."""
    if condition.limits is None or condition.extreme is None:
        return
    name = str(condition.limits)
    if name not in constants:
        return
    edge = _value(condition.extreme, constants)
    if edge is None:
        return
    quantity, now = result.notation[name], constants[name]
    if quantity.total is not None or (quantity.concept == "clients" and any(v.ndim > 1 for v in constants.values())):
        return  # its entries keep their sum, and the vectors their length
    factor = rng.uniform(0.05, 1, DRAWS) ** (1 if condition.caps else -1)
    edge, factor = (each.reshape(-1, *[1] * (now.ndim - 1)) for each in (edge, factor))
    fails = now > edge if condition.caps else now < edge
    moved = np.where(fails, edge * factor, now) if condition.op != "==" else np.broadcast_to(edge, now.shape)
    if quantity.domain.integer:
        moved = np.floor(moved) if condition.caps else np.ceil(moved)
    moved = np.clip(moved, quantity.domain.low, quantity.domain.high)
    constants[name] = np.where(quantity.domain.contains(moved), moved, now)


def _value(expression: Any, constants: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """An expression at every setting; None where it depends on something else."""
    from sympy import lambdify

    symbols = sorted(expression.free_symbols, key=str)
    if any(str(s) not in constants or constants[str(s)].ndim > 1 for s in symbols):
        return None
    with np.errstate(all="ignore"):
        value = lambdify(symbols, expression, "numpy")(*(constants[str(s)] for s in symbols))
    return np.broadcast_to(np.asarray(value, dtype=float), (DRAWS,))


def constants_at(constants: Mapping[str, np.ndarray], index: int) -> dict[str, float]:
    """The constants of one setting; of a vector its mean."""
    return {name: float(value[index].mean() if value.ndim > 1 else value[index]) for name, value in constants.items()}


def _idle_conditions(anywhere: Evaluation) -> Iterator[Finding]:
    """Conditions that hold at all of some random constants."""
    for check in anywhere.conditions:
        if np.all(check.holds):
            text = f"{check.text} holds in {DRAWS} random settings: it never binds"
            yield Finding("warning", "conditions", "", text, ("conditions",))


def _signs(evaluation: Evaluation, constants: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    """A left-hand side that is never negative needs a bound that is not."""
    if evaluation.view.measure.signed:
        return
    bad = np.flatnonzero(evaluation.valid & ~(np.asarray(evaluation.value) >= 0))
    if bad.size:
        text, at = "the bound is negative where all conditions hold", constants_at(constants, int(bad[0]))
        yield Finding("error", "sign", "", text, ("terms",), at)
        return
    for name, term in evaluation.terms.items():
        negative = np.flatnonzero(evaluation.valid & (np.broadcast_to(term, (DRAWS,)) < 0))
        if negative.size:
            text, at = f"the term {name!r} is negative", constants_at(constants, int(negative[0]))
            yield Finding("warning", "sign", "", text, ("terms", name), at)


def _changed(
    result: Result,
    form: Form,
    constants: Mapping[str, np.ndarray],
    name: str,
    change: Callable[[np.ndarray], np.ndarray],
) -> Evaluation:
    return _evaluate_inside(result, form, {name: change(constants[name])}, constants)


def _evaluate_inside(
    result: Result, form: Form, changed: Mapping[str, np.ndarray], constants: Mapping[str, np.ndarray]
) -> Evaluation:
    """The form at changed constants; where these leave their domains, they stay as they were and are not valid."""
    inside = np.ones(DRAWS, dtype=bool)
    for name, values in changed.items():
        inside &= result.notation[name].domain.contains(values).reshape(DRAWS, -1).all(axis=1)
    kept = {
        name: np.where(inside.reshape(-1, *[1] * (values.ndim - 1)), values, constants[name])
        for name, values in changed.items()
    }
    found = evaluate(result, {**constants, **kept}, form.name, strict=False)
    return replace(found, valid=found.valid & inside)


def _grows(first: Evaluation, second: Evaluation) -> tuple[int, str] | None:
    """A setting where the second bound is larger, both being valid, and the term that grows most; None if nowhere."""
    larger = np.asarray(second.value) > np.asarray(first.value) * (1 + ROUNDING)
    found = np.flatnonzero(first.valid & second.valid & larger)
    if not found.size:
        return None
    index = int(found[0])
    with np.errstate(invalid="ignore"):  # both may be infinite elsewhere
        growth = {n: np.broadcast_to(second.terms[n] - t, (DRAWS,))[index] for n, t in first.terms.items()}
    return index, max(growth, key=lambda n: growth[n])


def _monotone(
    result: Result, form: Form, evaluation: Evaluation, constants: Mapping[str, np.ndarray]
) -> Iterator[Finding]:
    """The bound at larger noise, divergence, gap or smoothness, where both settings are admissible."""
    for name in constants:
        quantity = result.notation[name]
        words = NEVER_FALLS.get(quantity.concept)
        if words is None or name in form.prescribes or (form.prescribes and quantity.concept == "smoothness"):
            continue
        more = _changed(result, form, constants, name, lambda values: 1.1 * values)
        if lower := _grows(more, evaluation):
            index, term = lower
            text = f"{words} makes the bound smaller: {name} times 1.1 lowers the term {term!r}"
            yield Finding("warning", "monotone", "", text, ("terms", term), constants_at(constants, index))
    yield from _more_clients(result, form, evaluation, constants)
    rounds = next((n for n in constants if result.notation[n].concept in ("rounds", "iterations")), None)
    if rounds and not form.prescribes:
        more = _changed(result, form, constants, rounds, lambda values: 2 * values)
        if evaluation.view.measure.aggregate == "minimum" and (higher := _grows(evaluation, more)):
            text = f"twice as many rounds raise the bound of a minimum over rounds ({rounds})"
            yield Finding("warning", "monotone", "", text, ("terms",), constants_at(constants, higher[0]))


def _more_clients(
    result: Result, form: Form, evaluation: Evaluation, constants: Mapping[str, np.ndarray]
) -> Iterator[Finding]:
    """The bound with one participant more, of as many clients; or with one client more, if all participate."""
    by_concept = {result.notation[name].concept: name for name in constants}
    whole, part = by_concept.get("clients"), by_concept.get("participating_clients")
    name = part or whole
    if name is None or form.prescribes or any(result.notation[n].shape for n in constants):
        return
    most = constants[whole] if part and whole else np.full(DRAWS, np.inf)
    more = _changed(result, form, constants, name, lambda values: np.minimum(values + 1, most))
    if higher := _grows(evaluation, more):
        index, term = higher
        text = f"more participants make the bound larger: {name} + 1 raises the term {term!r}"
        yield Finding("warning", "monotone", "", text, ("terms", term), constants_at(constants, index))


def _limits(
    result: Result, form: Form, evaluation: Evaluation, constants: Mapping[str, np.ndarray]
) -> Iterator[Finding]:
    """What is left without noise and divergence after many rounds, and what participation costs if all participate."""
    by_concept = {result.notation[name].concept: name for name in constants}
    rounds = by_concept.get("rounds") or by_concept.get("iterations")
    quiet = {n: np.zeros_like(constants[n]) for c, n in by_concept.items() if any(word in c for word in QUIET)}
    if rounds:
        late = {**quiet, rounds: np.full(DRAWS, 1e12)}
        end = _evaluate_inside(result, form, late, constants)
        left = {n: np.broadcast_to(v, (DRAWS,)) for n, v in end.terms.items()}
        start = np.asarray(evaluation.value)
        for name, value in left.items():
            stays = np.flatnonzero(end.valid & evaluation.valid & (value > 1e-3 * start) & (start > 0))
            if stays.size:
                text = f"without noise and divergence the term {name!r} stays after 1e12 rounds"
                text += _without_concept(result, form, name)
                at = constants_at({**constants, **late}, int(stays[0]))
                yield Finding("warning", "limits", "", text, ("terms", name), at)
    yield from _growing(result, form, evaluation, constants, rounds)
    whole, part = by_concept.get("clients"), by_concept.get("participating_clients")
    everyone = {part: constants[whole]} if whole and part else {}
    if whole and part:
        text = f"is not 0 if all clients participate ({part} = {whole})"
        yield from _staying(result, form, everyone, constants, lambda name: "particip" in name, text)
    if any("noise" in concept for concept in by_concept):
        text = "is not 0 without noise and divergence"
        for one in _staying(result, form, quiet, constants, lambda name: "noise" in name, text):
            yield replace(one, text=one.text + _without_concept(result, form, one.place[-1]))
    local = by_concept.get("local_steps")
    different = {n for c, n in by_concept.items() if c in HETEROGENEITY}
    if local and different and _all_participate(form, part):
        once = {**everyone, local: np.ones(DRAWS)}
        alike = _evaluate_inside(result, form, once | {n: np.zeros_like(constants[n]) for n in different}, constants)
        names = " and ".join(sorted(different))
        text = f"depends on {names} at {local} = 1 with all clients, where all steps are along grad f"
        yield from _staying(result, form, once, constants, lambda name: "particip" not in name, text, alike)


def _without_concept(result: Result, form: Form, term: str) -> str:
    """Which constants were not set to zero because nothing says what they are, and where values of others are from."""
    (inside,) = ({str(s) for s in t.expression.free_symbols} for t in form.terms if t.name == term)
    names = sorted(name for name in form.needs - form.prescribes.keys() if result.notation[name].concept == name)
    kept = [f"{name} has no concept, so it was kept" for name in names if name in inside]
    drawn = [f"{n} has none, so it was drawn from {result.notation[n].domain}" for n in names if n not in inside]
    return "; ".join(["", *kept, *drawn]) if kept else ""


ALL, CYCLIC = (ProblemClass({"participation": (kind,)}) for kind in ("all", "cyclic"))


def _all_participate(form: Form, part: str | None) -> bool:
    """Whether the form is evaluated at full participation, or is about nothing else."""
    covers = [a.cover.levels() for a in form.assumptions if a.participation and a.cover is not None]
    at_all = all(restrict_levels(levels, ALL).max() > NO for levels in covers)
    others = bool(covers) and all(restrict_levels(levels, CYCLIC).max() > NO for levels in covers)
    return part is not None or (at_all and not others)


def _staying(
    result: Result,
    form: Form,
    changed: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
    chosen: Callable[[str], bool],
    text: str,
    least: Evaluation | None = None,
) -> Iterator[Finding]:
    """Terms that are larger than elsewhere, or than zero, where they must not be."""
    found = _evaluate_inside(result, form, changed, constants)
    for name, value in found.terms.items():
        floor = 0.0 if least is None else np.abs(least.terms[name]) * (1 + ROUNDING)
        stays = np.flatnonzero(found.valid & np.broadcast_to(value > floor, (DRAWS,)))
        if chosen(name) and stays.size:
            at = constants_at({**constants, **changed}, int(stays[0]))
            yield Finding("warning", "limits", "", f"the term {name!r} {text}", ("terms", name), at)


def _growing(
    result: Result, form: Form, evaluation: Evaluation, constants: Mapping[str, np.ndarray], rounds: str | None
) -> Iterator[Finding]:
    """Terms that grow without bound with the number of rounds, where the bound should fall to a floor."""
    measure = evaluation.view.measure
    if rounds is None or measure.aggregate == "supremum":
        return
    early, late = ({rounds: np.full(DRAWS, many)} for many in (1e8, 1e12))
    before, after = (_evaluate_inside(result, form, at, constants) for at in (early, late))
    for name in before.terms:
        first, last = (np.broadcast_to(each.terms[name], (DRAWS,)) for each in (before, after))
        grows = np.flatnonzero(before.valid & after.valid & (last > 2 * first) & (first > 0))
        if grows.size:
            text = f"the term {name!r} grows with {rounds}: it more than doubles from 1e8 to 1e12"
            yield Finding(
                "warning", "limits", "", text, ("terms", name), constants_at({**constants, **early}, int(grows[0]))
            )


def _prescribed(result: Result, form: Form, anywhere: Evaluation, free: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    """Conditions that fail at the prescribed step sizes for some of these constants, though they limit a step size."""
    if not form.prescribes:
        return
    for condition, check in zip(form.conditions, anywhere.conditions, strict=True):
        fails = np.flatnonzero(~np.broadcast_to(check.holds, (DRAWS,)))
        about = None if condition.limits is None else result.notation[str(condition.limits)].concept
        if fails.size and (about is None or about.endswith(("step_size", "multiplier"))):
            steps = ", ".join(form.prescribes)
            text = f"at the prescribed {steps} the condition {check.text} restricts the other constants"
            yield Finding("warning", "step sizes", "", text, ("step_sizes",), constants_at(free, int(fails[0])))


def worst(findings: Sequence[Finding]) -> Level:
    """The most serious level."""
    levels = {finding.level for finding in findings}
    return "error" if "error" in levels else "warning" if "warning" in levels else "ok"


def summarize_checks(
    result: Result, findings: Sequence[Finding], left_out: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The checks that passed, in words, and those that were not made or do not apply, each with the reason.

    A check passes if it has no warning and no error of any form; `left_out` has the reasons of checks beside these.
    """
    forms = result.forms
    sizes = {
        "term": sum(len(form.terms) for form in forms),
        "condition": sum(len(form.conditions) for form in forms),
        "step size": sum(len(form.prescribes) for form in forms),
    }
    counted = [f"{count} {name}{'s' * (count > 1)}" for name, count in sizes.items() if count]
    words = {
        "units": f"dimensions of {' and '.join([', '.join(counted[:-1]), counted[-1]] if counted[1:] else counted)}",
        "constants": "noise and heterogeneity in the conditions occur in the bound",
        "feasible": "conditions can hold together",
        "conditions": "every condition binds",
        "sign": "signs",
        "monotone": "monotonicity",
        "limits": "limits",
        "step sizes": "conditions at the prescribed step sizes",
        "references": "reference theorems",
        "symbols": "constants are those of the setting",
        "search": "no run violates the bound",
        "worst case": "worst cases",
    }
    why = dict(left_out)
    if not sizes["condition"]:
        why |= dict.fromkeys(("constants", "feasible", "conditions"), "there is no condition")
    if not sizes["step size"]:
        why["step sizes"] = "none is prescribed"
    if all(form.order_only for form in forms):
        why["monotone"] = "constants are hidden in an O"
    wrong = {finding.check for finding in findings if finding.level != "ok"}
    if "feasible" in wrong:
        proved = all(finding.level != "warning" for finding in findings if finding.check == "feasible")
        why |= dict.fromkeys(
            ("conditions", "sign", "monotone", "limits", "step sizes"),
            "no constants are feasible" if proved else "no feasible constants were found",
        )
    passed = [text for check, text in words.items() if check not in wrong and check not in why]
    return tuple(passed), {check: why[check] for check in words if check in why and check not in wrong}
