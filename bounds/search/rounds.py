"""How many rounds until a bound is below epsilon, what they cost, and the largest constant for given rounds.

The smallest number of rounds is found by excluding blocks of rounds with interval arithmetic
(`fedbounds.bounds.search.threshold`), so the bound may rise and fall with T. `arb_enclosures` confirms what is called
proved. `rounds_with_tuning` chooses step sizes anew for every T.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledForm
from fedbounds.bounds.evaluation.evaluate import NO_VALUE, Evaluation, Value, check_assumed, evaluate_form
from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.evaluation.program import holds
from fedbounds.bounds.inputs.checks import check_count, check_number
from fedbounds.bounds.search.effort import EvaluationBudget, Watch
from fedbounds.bounds.search.infeasibility import find_infeasibility
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose
from fedbounds.bounds.search.partial_evaluation import leave_free, quantity_named
from fedbounds.bounds.search.rounds_answers import (
    MANY,
    Between,
    Cost,
    Largest,
    Never,
    Reached,
    beyond,
    cost,
    not_one,
    rounds_between,
    search_note,
    unreachable_reason,
)
from fedbounds.bounds.search.threshold import LARGEST_COUNT, Hit, first_hit, first_in_steps
from fedbounds.bounds.theory.argument_checks import check_constants, check_ranges, names_of
from fedbounds.bounds.theory.symbols import Quantity

if TYPE_CHECKING:
    from fedbounds.bounds.search.optimize import Functions, Ranges
    from fedbounds.bounds.theory.result import Result

__all__ = ["Between", "Cost", "Largest", "Never", "Reached", "cost", "rounds"]

EXCLUDED = "every smaller number excluded by interval arithmetic"


def rounds(
    result: Result | str,
    epsilon: float,
    constants: Mapping[str, Value],
    *,
    optimize: str | Sequence[str] = (),
    within: Ranges | None = None,
    form: str | None = None,
    functions: Functions | None = None,
    dimension: int | None = None,
    solve: str | None = None,
    effort: float = 1.0,
    watch: Watch | None = None,
    assume: str | Sequence[str] = (),
) -> Reached | Never | Largest | Between:
    r"""The smallest number of rounds at which the bound is at most epsilon and its conditions hold.

    Args:
        result: whose bound, or its key; epsilon bounds its measure (a squared norm where the measure is one).
        epsilon: the target, positive.
        constants: symbol or concept to value; all but the rounds (and what is optimized).
        optimize: step sizes to choose anew for every number of rounds (see `optimize`).
        within, functions: as for `optimize`.
        form: its name or kind.
        dimension: of the model, a whole number, for the floats and bits sent.
        solve: the inverse question: the rounds are given, and the largest value of this constant is wanted.
        effort: how many evaluations the search may take, as a multiple of the usual number.
        watch: called with (evaluations so far, evaluations allowed) as the search goes on.
        assume: names of assumptions that the evaluation there takes for granted, or "all".

    Returns:
        `Reached`, or `Never` with the floor; for `solve`, `Largest`. `Between` where the evaluations did not suffice.

    Raises:
        FedboundsError: bad constants, an epsilon that is not positive, a dimension that is not a whole number, a form
            without rounds, or an assumption that the form does not make.

    Example:
        >>> corollary = "arbitrary-participation/corollary-3.2"
        >>> known = dict(L=1, F=5, I=2, P=2, S=2, sigma=0.5**0.5, nu=2, beta=0.5, delta=0)
        >>> answer = rounds(corollary, 0.1, known, form="explicit")
        >>> answer.rounds, answer.cost.oracle_calls
        (12007, 48028)
        >>> rounds(corollary, 0.1, dict(known, delta=0.2), form="explicit").why
        'the bound stays above 0.24: the window divergence (0.24) does not fall with T'
    """
    seen = as_compiled(result)
    check_constants(constants)
    optimize, within = names_of("optimize", optimize), check_ranges(within)
    epsilon = check_number("epsilon", epsilon)
    if not epsilon > 0:
        raise FedboundsError(f"epsilon = {epsilon:g} must be positive")
    if dimension is not None:
        dimension = check_count("dimension", dimension)
    chosen = seen.form(form)
    allowed = EvaluationBudget.of(effort, watch, chosen.length)
    assumed = check_assumed(chosen.assumptions, names_of("assume", assume))
    if solve is not None:
        if optimize:
            raise FedboundsError("--solve asks for one constant with the others fixed; leave out what is optimized")
        answer = _largest(chosen, epsilon, constants, solve, allowed)
    elif optimize:
        from fedbounds.bounds.search.rounds_with_tuning import rounds_optimized  # sympy takes its time

        counter, given = _counter(chosen), functions or {}
        whole = seen.whole()
        answer = rounds_optimized(
            whole,
            whole.form(chosen.name),
            counter,
            epsilon,
            constants,
            optimize,
            within,
            given,
            dimension,
            allowed,
        )
    elif within or functions:
        raise FedboundsError("ranges and functions belong to constants that are optimized over")
    else:
        answer = _smallest(chosen, epsilon, constants, dimension, allowed)
    if assumed and isinstance(answer, Reached | Largest) and answer.evaluation is not None:
        there = evaluate_form(chosen, answer.evaluation.constants, assume=assumed, strict=False)
        return replace(answer, evaluation=there)
    return answer


def _smallest(
    chosen: CompiledForm,
    epsilon: float,
    constants: Mapping[str, Value],
    dimension: int | None,
    allowed: EvaluationBudget,
) -> Reached | Never | Between:
    counter = _counter(chosen)
    partial = leave_free(chosen, constants, [counter.name])
    if (broken := find_infeasibility(partial, {}, f"whatever {counter.name} is")) is not None:
        return Never(epsilon, broken.why, float("nan"), {}, broken.proved)
    reaches = _reaches(chosen, constants, counter, epsilon)

    def at(count: float) -> Evaluation:
        return evaluate_form(chosen, {**constants, counter.name: count}, strict=False)

    try:
        hit, method = first_hit(partial, epsilon, reaches, allowed, whole=True), EXCLUDED
        proved = hit.proved(partial, epsilon)
    except CannotEnclose:
        from fedbounds.bounds.search.round_lower_bounds import least_possible_rounds  # sympy takes its time
        from fedbounds.bounds.search.rounds_with_tuning import rounds_in_blocks

        whole = chosen.whole()
        found = rounds_in_blocks(chosen.result.whole(), whole, counter, epsilon, constants, dimension, allowed)
        if found is not None:
            return found
        least = least_possible_rounds(partial, counter.name, epsilon, {}, allowed)
        if least > LARGEST_COUNT:
            return _never(at, counter.name, epsilon, least, False, False, allowed)
        hit, proved = first_in_steps(reaches, allowed, least), False
        if hit.left is not None:
            return rounds_between(counter.name, epsilon, *hit.left, hit.tried or 0.0, allowed)
        method = "scanned: the bound holds functions that are only known by value"
    if hit.left is not None:
        between = _unresolved(counter.name, epsilon, hit, reaches, allowed)
        far = at(LARGEST_COUNT)
        said = [f"{reason} at {counter.name} = 2^53" for reason in far.why_not if reason.startswith(NO_VALUE)]
        return replace(between, why="; ".join([between.why, *said]))
    if hit.value is None:
        return _never(at, counter.name, epsilon, hit.least, hit.covered, proved, allowed)
    spent = cost(chosen.result, {**constants, counter.name: hit.value}, int(hit.value), dimension, counter.concept)
    return Reached(spent.rounds, epsilon, spent, at(hit.value), {}, proved, method + search_note(proved))


def _reaches(
    form: CompiledForm, constants: Mapping[str, Value], free: Quantity, epsilon: float
) -> Callable[[float], bool]:
    def reaches(value: float) -> bool:
        if not bool(free.domain.contains(value)):
            return False
        evaluation = evaluate_form(form, {**constants, free.name: value}, strict=False)
        return bool(evaluation.valid) and bool(holds(evaluation.value, "<=", np.asarray(epsilon)))

    return reaches


def _counter(form: CompiledForm) -> Quantity:
    """The constant that counts rounds (or iterations, where there are no rounds)."""
    for concept in ("rounds", "iterations"):
        quantity = next((q for q in form.result.notation.values() if q.concept == concept), None)
        if quantity is not None and quantity.name in form.variables:
            return quantity
    symbols = {q.concept: q.name for q in form.result.notation.values() if q.name in form.variables}
    if not symbols:
        raise FedboundsError(f"{form.title} does not depend on a number of rounds, nor on any other constant")
    one = symbols.get("time_budget", min(symbols.values()))
    raise FedboundsError(
        f"{form.title} does not depend on a number of rounds; the largest or smallest value of another "
        f"constant is found with --solve {one}, say, and the bound over one with `fedbounds compare --vary`"
    )


def _unresolved(
    name: str,
    epsilon: float,
    hit: Hit,
    reaches: Callable[[float], bool],
    allowed: EvaluationBudget,
    from_above: bool = False,
) -> Between:
    """Where the nearest value must lie; beyond where the search came one value in each factor of two is tried."""
    low, high = hit.left or (1.0, np.inf)
    covered = low if not from_above else high
    tried = max(covered, 1e-30) if np.isfinite(covered) else 2.0**53
    found = None
    for _ in range(60):
        if reaches(tried):
            found = tried
            break
        if tried == LARGEST_COUNT and not from_above:
            break
        tried = tried / 2 if from_above else min(2 * tried, LARGEST_COUNT)
    if from_above:
        why = f"every {name} above {covered:g} is excluded" + ("" if found is None else f", and {found:g} reaches it")
        return Between(name, epsilon, found, covered, why, allowed.allowed)
    return rounds_between(name, epsilon, covered, np.inf if found is None else found, tried, allowed)


def _never(
    at: Callable[[float], Evaluation],
    name: str,
    epsilon: float,
    low: float,
    covered: bool,
    proved: bool,
    effort: EvaluationBudget,
) -> Never | Between:
    """The floor, and what keeps the bound there, or the condition that no number of rounds meets."""
    last = at(LARGEST_COUNT)
    limits = {term: float(value) for term, value in last.terms.items()}
    broken = [c.text for c in last.conditions if not c.holds]
    if np.isnan(last.value) and not broken:
        return Never(epsilon, f"{NO_VALUE} for every large {name}, and no smaller one reaches {epsilon:g}", np.nan, {})
    if broken:
        why = f"{broken[0]} fails for every large {name}, and no smaller one reaches {epsilon:g}"
        return Never(epsilon, why, float(last.value), limits, proved)
    if not covered:
        return beyond(name, epsilon, low, limits, effort)
    far = at(MANY[1])
    if far.valid and epsilon * (1 - 1e-9) < float(far.value) <= float(last.value) * (1 + 1e-9):
        return unreachable_reason(name, epsilon, {term: float(value) for term, value in far.terms.items()}, proved)
    return not_one(name, epsilon, limits, proved)


# --- The inverse question ---------------------------------------------------------------------------------------


def _largest(
    form: CompiledForm, epsilon: float, constants: Mapping[str, Value], name: str, allowed: EvaluationBudget
) -> Largest | Between:
    quantity = quantity_named(form.result, form, name)
    if quantity.domain.low < 0:
        raise FedboundsError(f"{quantity.name} may be negative; only constants that are not can be solved for")
    partial = leave_free(form, constants, [quantity.name])
    if (broken := find_infeasibility(partial, {}, f"whatever {quantity.name} is")) is not None:
        return Largest(quantity.name, epsilon, None, None, broken.why, broken.proved)

    def at(value: float) -> Evaluation:
        return evaluate_form(form, {**constants, quantity.name: value}, strict=False)

    reaches = _reaches(form, constants, quantity, epsilon)
    try:
        hit = first_hit(
            partial,
            epsilon,
            reaches,
            allowed,
            whole=quantity.domain.integer,
            from_above=True,
            most=quantity.domain.high,
        )
    except CannotEnclose as error:
        raise FedboundsError(
            f"{quantity.name} cannot be solved for in {form.title}: it enters through {error}, "
            "which is only known by value"
        ) from None
    if hit.left is not None:
        return _unresolved(quantity.name, epsilon, hit, reaches, allowed, from_above=True)
    proved = hit.proved(partial, epsilon)
    if hit.value is None:
        least = max(quantity.domain.low, 1.0 if quantity.domain.integer else 0.0)
        why = f"no {quantity.name} reaches {epsilon:g}"
        if bool(quantity.domain.contains(least)):
            evaluation = at(least)
            broken = "; ".join(c.text for c in evaluation.conditions if not c.holds)
            why += f": at {quantity.name} = {least:g} the bound is {float(evaluation.value):.6g}"
            why += f", and {broken} fails" if broken else ""
        return Largest(quantity.name, epsilon, None, None, why, proved)
    if np.isfinite(hit.value):
        return Largest(quantity.name, epsilon, hit.value, at(hit.value), "", proved)
    first = first_hit(partial, epsilon, reaches, allowed, whole=quantity.domain.integer, most=quantity.domain.high)
    if first.value is None:  # the evaluations were used up
        return Largest(quantity.name, epsilon, hit.value, None, "", proved)
    proved &= first.proved(partial, epsilon)
    return Largest(quantity.name, epsilon, hit.value, at(first.value), "", proved, first.value)
