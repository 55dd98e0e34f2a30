r"""The adversary: search for the instance with the largest (left side)/(bound) of a form.

The search starts from the known extremal runs and from the worst of many random instances, and climbs by random
neighbors and by gradients. A ratio above one is a lead; if a computation with more digits confirms it, it refutes the
form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from inspect import isabstract
from math import isclose
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.comparison.worst_ratios import read_document
from fedbounds.bounds.display.json_values import json_value
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.numpy_code import arguments, compile_form
from fedbounds.bounds.evaluation.program import holds
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.bounds.theory.registry import as_result
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Quantity
from fedbounds.empirical.falsification.instances.ascent import ascend, in_range, moderate
from fedbounds.empirical.falsification.instances.climbing import climb, ratio
from fedbounds.empirical.falsification.instances.instance_checker import instance_test
from fedbounds.empirical.falsification.instances.population import Population
from fedbounds.empirical.falsification.instances.sides import ROUNDING, InstanceTest, Sides

SIZE = 40  # instances of one shape that climb at once
AGREE = 1e-6  # relative distance of two ratios that are the same but for rounding
TINY = 1e-12  # a constant that is zero but for rounding; none that is searched is below 1e-8
FROM_FAMILIES = 2_500  # evaluations of a climb from the extremal runs
MOST_STEPS = 10_000  # of an instance that is replayed: none that was found takes a tenth
KEPT = "ratio", "status", "why", "left_side", "left", "right", "place", "constants", "budget", "kind", "instance"
REPLAYED = "ratio", "status", "left_side", "left", "right", "terms", "constants"
SCHEMA = "fedbounds.adversary/1"
HEAD = "schema", "version", "claim"  # of a document beside the instance
Status = Literal["below", "attained", "lead", "refuted", "not covered"]


class AdversaryEffort(NamedTuple):
    """The effort of a search."""

    cells: int  # shapes of random instances, about 40 of each
    starts: int  # from how many of the worst a climb starts, of different shapes
    evaluations: int  # of instances, at most, in each climb
    longest: int  # the most steps of an instance from which a climb starts


EFFORTS: Mapping[str, AdversaryEffort] = {
    "light": AdversaryEffort(30, 4, 1_500, 60),
    "deep": AdversaryEffort(60, 8, 5_000, 120),
}


@dataclass(frozen=True)
class Hypothesis:
    """An assumption or a condition, checked on an instance."""

    text: str  # the assumption's statement, or the condition
    holds: bool  # whether the instance meets it
    name: str  # of the assumption, or what the condition is for
    left: float | None = None  # left, op, right: both sides of a condition; None of an assumption
    op: str | None = None
    right: float | None = None

    def __str__(self) -> str:
        word = "holds" if self.holds else "FAILS"
        if self.left is None or self.right is None:
            return f"{self.name}: {self.text}: {word}"
        return f"{self.text}: {self.left:.6g} {self.op} {self.right:.6g}, {word} ({self.name})"


@dataclass(frozen=True)
class WorstInstance:
    """The worst instance that was found, with both sides, its hypotheses and its numbers."""

    key: str  # key, form: the result and its form
    form: str
    ratio: float  # left over right, the left side less its rounding (or its confidence interval)
    left: float  # left, right: the two sides
    right: float
    terms: Mapping[str, float]  # the summands of the right side, by name
    place: int  # the client, round or window, if the claim is about each of them
    # `below` the bound; `attained` if both sides are equal to rounding; a `lead` above it; `refuted` if a computation
    # with more digits confirms it; or `not covered` if a hypothesis fails or a constant is outside its domain
    status: Status
    why: str  # of a status that is not `below`
    left_side: str  # how the left side is computed
    constants: Mapping[str, Any]  # of the form, on the instance
    assumptions: Sequence[Hypothesis]  # assumptions, conditions: checked on it
    conditions: Sequence[Hypothesis]
    # instances evaluated, those that met all hypotheses, line searches, runs of the known extremal families among the
    # instances, effort and seed
    budget: Mapping[str, Any]
    kind: str  # kind, instance: its class and all its numbers
    instance: Mapping[str, Any]
    rounded: bool = False  # whether more digits give another ratio, so that this one is due to rounding
    recorded: str = ""  # of a replay, how it differs from what was recorded

    def as_document(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.key}[{self.form}]: largest found left/bound = {self.ratio:.6g} ({self.status})"]
        lines += [f"  {remark}" for remark in (self.recorded, self.why) if remark]
        lines += [f"  left side  {self.left:.9g}   ({self.left_side})", f"  bound      {self.right:.9g}"]
        lines += [f"    {name:<24} {value:.6g}" for name, value in self.terms.items()]
        lines += ["Hypotheses", *(f"  {h}" for h in (*self.assumptions, *self.conditions))]
        constants = ", ".join(f"{name} = {number(value)}" for name, value in self.constants.items())
        lines += [f"Constants: {constants}", f"Instance: {self.kind}"]
        lines += [f"Budget: {', '.join(f'{name} {value}' for name, value in self.budget.items())}"]
        return "\n".join(lines)


def adversary(
    result: Result | str,
    form: str | None = None,
    *,
    seed: int = 61,
    effort: str = "deep",
    progress: Callable[[int, int], None] | None = None,
) -> WorstInstance:
    """The largest left-hand side over the bound that a search finds, with its instance.

    Args:
        result: the result, or its key.
        form: one of its forms; the default one if not given.
        seed: of the search.
        effort: `light` or `deep`.
        progress: called with the number of evaluated instances and about how many there will be.

    Raises:
        FedboundsError: no such result, form or effort; or no left-hand side to compare with the bound, and why.

    Example:
        >>> worst = adversary("arbitrary-participation/lemma-c.1", "sharp", effort="light")
        >>> worst.status, worst.ratio > 0.7, all(h.holds for h in (*worst.assumptions, *worst.conditions))
        ('below', True, True)
    """
    loaded = as_result(result)
    claim = ResultForm(loaded, loaded.form(form)).claim()
    if effort not in EFFORTS:
        raise unknown_name("effort", str(effort), list(EFFORTS))
    found = search_form(claim, EFFORTS[effort], check_count("seed", seed, 0), effort, progress=progress)
    if isinstance(found, str):
        raise FedboundsError(f"{claim.id}: {found}")
    return found


def search_form(
    claim: Claim,
    effort: AdversaryEffort,
    seed: int,
    called: str = "",
    known: WorstInstance | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WorstInstance | str:
    """The worst instance of a claim about a form, or why there is none."""
    how = instance_test(claim)
    if how is None or order_only(claim):
        return why_no_number(claim)
    rng, evaluated, met, searches = np.random.default_rng(seed), 0, 0, 0
    sides_of = sides_for_search(claim, how)

    def score(z: Population) -> np.ndarray:
        return ratio(sides_of(z))

    def advance() -> None:
        if progress is not None:
            progress(evaluated, max(evaluated, effort.cells * SIZE + effort.starts * effort.evaluations))

    best, drawn, unmet = list[tuple[float, Population]](), list[tuple[float, Population]](), ""
    extremal: list[Population] = []
    families = 0
    if how.family is not None:
        first, families = how.family.best(claim)
        extremal.append(first)
    evaluated += families
    for z in (*extremal, *how.draw(claim, effort.cells)):
        sides = sides_of(z)
        ratios = ratio(sides)
        evaluated, met, unmet = evaluated + len(z), met + int((ratios > -np.inf).sum()), unmet or sides.unmet
        advance()
        if ratios.max() > -np.inf:
            drawn.append((float(ratios.max()), z))
            best.append((float(ratios.max()), z.take(np.array([ratios.argmax()]))))
    if not best:
        return f"no instance meets its hypotheses{f' ({unmet})' if unmet else ''}"
    able = [one for one in drawn if can_climb(one) and one[1].cost <= effort.longest]
    starts = sorted(able, key=height, reverse=True)[: effort.starts]
    chosen = [z for _, z in starts]
    starts += [one for one in able for z in extremal if one[1] is z and not any(z is other for other in chosen)]
    if known is not None and can_climb(before := (known.ratio, population(known).repeat(SIZE))):
        starts.insert(0, before)
    for _, z in starts:  # half of the evaluations for all together, by chance, half for the worst of them
        generations = effort.evaluations // (2 * len(z))
        end = climb(z, sides_of, generations, rng)
        ascent = ascend(end.take(np.array([score(end).argmax()])), score, effort.evaluations // 2, rng)
        evaluated, searches = evaluated + generations * len(z) + ascent.evaluations, searches + ascent.searches
        best.append((ascent.height, ascent.end))
        advance()
    budget = {"instances": evaluated, "covered of those drawn": met, "ascents": len(starts), "line searches": searches}
    budget |= {"families": families, "effort": called, "seed": seed}
    for _, z in sorted(best, key=height, reverse=True):
        found = describe_instance(claim, how, z, budget)
        if not found.rounded:
            return found
    return "rounding is all that is left of its left side"


def search_families(claim: Claim, seed: int, called: str) -> WorstInstance | None:
    """The worst of a claim's known extremal runs and of the climbs from them; None if it has no extremal runs."""
    how = instance_test(claim)
    if how is None or how.family is None:
        return None
    (z, families), sides_of, rng = how.family.best(claim), sides_for_search(claim, how), np.random.default_rng(seed)
    budget = {"instances": families, "covered of those drawn": 0, "ascents": 1, "line searches": 0}
    budget |= {"families": families, "effort": called, "seed": seed}
    for k, found in enumerate(ratio(sides_of(z))):
        if found == -np.inf:
            break
        start = z.take(np.array([k]))
        climbed = ascend(start, lambda y: ratio(sides_of(y)), FROM_FAMILIES, rng)
        for end in (climbed.end, start):
            used = {"instances": families + climbed.evaluations, "line searches": climbed.searches}
            if not (there := describe_instance(claim, how, end, budget | used)).rounded:
                return there
    return None


def sides_for_search(claim: Claim, how: InstanceTest) -> Callable[[Population], Sides]:
    """Both sides of a claim; instances with numbers outside the range of a search are not covered."""
    evaluate, known = evaluate_claim(claim, how), domains(claim)

    def sides_of(z: Population) -> Sides:
        sides = evaluate(z)
        able = in_range(z) & np.logical_and.reduce([np.ones(len(z), dtype=bool), *z.rules().values()])
        for name, quantity in known.items():
            if name in sides.values and not quantity.domain.integer:
                able = able & moderate(sides.values[name])
        return replace(sides, covered=sides.covered & able[:, None])

    return sides_of


def height(one: tuple[float, Population]) -> float:
    """The ratio of a pair of ratio and instance."""
    return one[0]


def can_climb(one: tuple[float, Population]) -> bool:
    """Whether a climb can start here: below the bound, from an instance with neighbors."""
    found, z = one
    return 0 < found < 1 - AGREE and type(z).mutate is not Population.mutate


def order_only(claim: Claim) -> bool:
    """Whether a form hides its constants."""
    return isinstance(claim.subject, ResultForm) and claim.subject.form.order_only


def why_no_number(claim: Claim) -> str:
    """Why no left-hand side can be compared with a form."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    result, form = subject.result, subject.form
    if form.order_only:
        return "order only: with its constants hidden there is no number to hold against"
    if form.asymptotic:
        return f"a limit, {form.asymptotic}: no number at any one setting"
    if form.refuted_by:
        return f"the erratum {form.refuted_by} refutes it, by an instance outside this search"
    others = [ResultForm(result, other).claim() for other in result.forms if not other.order_only]
    tried = [{a.name for a in other.assumptions} for other in others if instance_test(other)]
    if tried and (more := {a.name for a in form.assumptions} - set.union(*tried)):
        return f"no run here meets {', '.join(sorted(more))}"
    if tried:
        return f"of {result.key}, [{form.name}] is not tried"
    steps = any(id_.startswith(f"{result.key}/") for id_ in read_ledger(claim.paper))
    return f"no run here has its left side{'; the audit tries the steps of its proof' if steps else ''}"


def domains(claim: Claim) -> Mapping[str, Quantity]:
    """The symbols of a claim about a form, with their domains."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    known = subject.result.notation
    return {s.name: known[s.name] for s in symbols(subject.form) if s.name in known}


def evaluate_claim(claim: Claim, how: InstanceTest) -> Callable[[Population], Sides]:
    """Both sides of a claim on instances; those with a constant outside its domain are not covered."""
    known = domains(claim)

    def sides(z: Population) -> Sides:
        with np.errstate(all="ignore"):
            found = how.sides(claim, z)
        covered = np.broadcast_to(found.covered, found.left.shape)
        for name, quantity in known.items():
            if name in found.values:
                inside = quantity.domain.contains(found.values[name])
                covered = covered & (inside.all(axis=-1) if quantity.shape else inside)
        return replace(found, covered=covered)

    return sides


def outside(claim: Claim, constants: Mapping[str, Any]) -> str:
    """The first constant that is outside its domain, as a message; "" if there is none."""
    for name, quantity in domains(claim).items():
        if name in constants:
            try:
                quantity.check(np.asarray(constants[name], dtype=float))
            except FedboundsError as error:
                return str(error)
    return ""


def recompute_ratio(claim: Claim, how: InstanceTest, z: Population) -> float | None:
    """The ratio of one instance with more digits, or on other samples; None where that is impossible."""
    try:
        again = z.resample() if z.left_side == "sampled" else z.to_long_doubles()
        return float(evaluate_claim(claim, how)(again).ratios().max())
    except TypeError:  # of functions of doubles alone, as eigenvalues
        return None


def judge_ratio(z: Population, found: float, again: float | None) -> tuple[Status, str]:
    """The status of a ratio, and the reason."""
    if found == -np.inf:
        return "not covered", "it does not meet all hypotheses"
    if found <= 1 + ROUNDING:
        return ("below", "") if found < 1 - ROUNDING else ("attained", "both sides are equal to rounding")
    if again is None:
        return "lead", f"{type(z).__name__} cannot be computed with more digits"
    how = "other samples, less their confidence interval, " if z.left_side == "sampled" else "long doubles "
    if again <= 1 + ROUNDING:
        return "lead", f"{how}say {again:.9g}"
    return "refuted", f"{how}say {again:.9g} too"


def describe_instance(claim: Claim, how: InstanceTest, z: Population, budget: Mapping[str, Any]) -> WorstInstance:
    """One instance as a `WorstInstance`."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    result, form = subject.result, subject.form
    sides = evaluate_claim(claim, how)(z)
    with np.errstate(all="ignore"):
        ratios = sides.ratios()
        place = int(np.argmax(ratios[0]))
        again = recompute_ratio(claim, how, z)
        right = sides.total()
    found = float(ratios[0, place])
    status, why = judge_ratio(z, found, again)
    constants = {s.name: at_place(sides.values[s.name], place) for s in symbols(form) if s.name in sides.values}
    if status == "not covered" and (wrong := outside(claim, constants)):
        why = f"{wrong}: {why}"
    return WorstInstance(
        key=result.key,
        form=form.name,
        ratio=found,
        left=float(sides.left[0, place]),
        right=float(right[0, place]),
        terms={name: float(at_place(term, place)) for name, term in sides.terms.items()},
        place=place,
        status=status,
        why=why,
        left_side=z.left_side,
        constants=constants,
        assumptions=[
            Hypothesis(a.statement, bool(at_place(sides.met.get(a.name, False), 0)), a.name) for a in claim.assumptions
        ],
        conditions=[*conditions(result, form, sides.values, place)],
        budget=budget,
        kind=type(z).__name__,
        instance=z.describe(0),
        rounded=again is not None and z.left_side != "sampled" and abs(again - found) > AGREE * max(found, again),
    )


def symbols(form: Form) -> list[sp.Symbol]:
    """The symbols of a form's terms and conditions, in alphabetical order."""
    sides = [side for c in form.conditions for side in (c.left, c.right)]
    return list(arguments([*(t.expression for t in form.terms), *sides, *form.prescribes.values()]))


def at_place(value: Any, place: int) -> Any:
    """The entry of a place in an array of one instance, which has entries of all places or one for all."""
    array = np.asarray(value)
    for k in (0, place):
        if array.ndim:
            array = array[min(k, len(array) - 1)]
    return array.tolist()


def conditions(result: Result, form: Form, values: Mapping[str, np.ndarray], place: int) -> Iterator[Hypothesis]:
    """The conditions of a form with both sides, on one instance."""
    vectors = frozenset(name for name, value in values.items() if np.ndim(value) == 3)
    for (left, right, _), c in zip(compile_form(form, vectors).sides(values), form.conditions, strict=True):
        text = c.as_printed(result.notation).text
        here = (at_place(left, place), at_place(right, place))
        yield Hypothesis(text, bool(at_place(holds(left, c.op, right), place)), c.why, here[0], c.op, here[1])


# --- what was found before ---------------------------------------------------------------------------------------


def replay(found: Mapping[str, Any] | str | Path) -> WorstInstance:
    """An instance that was found before, computed again."""
    document = found if isinstance(found, Mapping) else read_document(Path(found))
    known = [*HEAD, *(field.name for field in fields(WorstInstance))]
    if strange := [name for name in document if name not in known]:
        raise unknown_name("entry of an instance", strange[0], known)
    if document.get("schema", SCHEMA) != SCHEMA:
        raise FedboundsError(f"its schema is {quote(document['schema'])}; must be {SCHEMA}")
    if missing := [name for name in ("key", "form", "kind", "instance") if name not in document]:
        raise FedboundsError(f"no instance to replay: it has no {missing[0]}")
    result = as_result(str(document["key"]))
    claim = ResultForm(result, result.form(str(document["form"]))).claim()
    how, kinds = instance_test(claim), loaded_kinds()
    if how is None:
        raise FedboundsError(f"{claim.id}: {why_no_number(claim)}")
    if document["kind"] not in kinds:
        raise unknown_name("kind of instance", str(document["kind"]), list(kinds))
    if not isinstance(document["instance"], Mapping):
        raise FedboundsError("no instance to replay: its numbers must be a table")
    try:
        z = kinds[document["kind"]].from_numbers(document["instance"])
        if z.cost > MOST_STEPS:
            raise FedboundsError(f"the instance takes more than {MOST_STEPS:,} steps to measure")
        found_now = describe_instance(claim, how, z, document.get("budget", {}))
        return replace(found_now, recorded=differences(document, found_now, claim.hash))
    except FedboundsError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        reason = f"it has no {error.name}" if isinstance(error, AttributeError) else reason
        raise FedboundsError(f"{claim.id} cannot be evaluated on this {document['kind']}: {reason}") from error


def differences(document: Mapping[str, Any], found: WorstInstance, claim: str) -> str:
    """How a document differs from what is found now; "" if it does not, entries that it lacks aside."""
    now = json_value(found.as_document())
    changed = [
        one
        for name in REPLAYED
        if name in document
        for one in differing_entries(name, json_value(document[name]), now[name])
    ]
    some = "; ".join(f"{name} = {quote(before)} (now {quote(here)})" for name, before, here in changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    remarks = [] if document.get("claim", claim) == claim else ["the form has changed since"]
    remarks += [f"it was recorded with {some}{more}, which is not what is found"] if changed else []
    return "; ".join(remarks)


def differing_entries(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The entries of two documents, by name, that are not the same but for rounding."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            yield from differing_entries(f"{name}.{key}", before.get(key), now.get(key))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for k, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differing_entries(f"{name}[{k}]", one, other)
    elif isinstance(before, int | float) and isinstance(now, int | float):
        if not isclose(before, now, rel_tol=AGREE, abs_tol=TINY):
            yield name, before, now
    elif before != now:
        yield name, before, now


def loaded_kinds() -> dict[str, type[Population]]:
    """All kinds of instances, by name, that are loaded."""
    return {kind.__name__: kind for kind in subclasses(Population) if not isabstract(kind)}


def population(found: WorstInstance) -> Population:
    """The instance that was found, alone."""
    return loaded_kinds()[found.kind].from_numbers(found.instance)


def subclasses(kind: type[Population]) -> Iterator[type[Population]]:
    """All kinds of instances that are loaded."""
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)
