"""The best step sizes of a bound: the minimizer, or the fact that there is none.

Positive reals are optimized in logarithms: a geometric program is convex there, and whether its infimum is attained is
decided exactly; other forms are searched on grids. A whole number is rounded from a convex problem, or scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.search.effort import QUESTION, EvaluationBudget, Exhausted, Watch
from fedbounds.bounds.search.infeasibility import find_infeasibility
from fedbounds.bounds.search.integers import scan
from fedbounds.bounds.search.optimize_answers import Answer, Infeasible, Minimum, NotAttained, Undecided
from fedbounds.bounds.search.partial_evaluation import leave_free, quantity_named
from fedbounds.bounds.search.step_sizes import Ranges, StepSizeProblem
from fedbounds.bounds.theory.argument_checks import check_constants, check_ranges, names_of
from fedbounds.bounds.theory.registry import as_result
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Quantity

__all__ = ["Answer", "Functions", "Infeasible", "Minimum", "NotAttained", "Ranges", "Undecided", "optimize"]

# A constant that is a function of another one: optimizing the latter alone would compare different problems.
DEPENDS = {
    "interval": ("window_divergence", "window_mean_variance", "window_mean_weights"),
    "participating_clients": ("cohort_divergence", "participation_divergence", "window_divergence"),
}
Functions = Mapping[str, Callable[[float], float]]


def optimize(
    result: Result | str,
    constants: Mapping[str, Value],
    over: str | Sequence[str] = ("gamma", "eta"),
    *,
    within: Ranges | None = None,
    form: str | None = None,
    functions: Functions | None = None,
    effort: float = 1.0,
    watch: Watch | None = None,
) -> Answer:
    r"""Minimize a bound over some of its constants, under its conditions.

    Args:
        result: whose bound, or its key.
        constants: symbol or concept to value, for every constant that is not optimized.
        over: the constants to choose; whole numbers are scanned.
        within: closed ranges for some of them, e.g. `{"eta": (1, 100)}`.
        form: its name or kind; the strongest one that is not refuted by default.
        functions: constants that are functions of the one being optimized, e.g. the window divergence as a function of
            the interval: `{"delta": lambda P: 1 / P}`; without it P is refused.
        effort: how many evaluations the search may take, as a multiple of the usual number.
        watch: called with (evaluations so far, evaluations allowed) as the search goes on.

    Returns:
        `Minimum`, `NotAttained` (with the infimum, the direction in words, and the value of what stays), `Infeasible`,
        or `Undecided`. Where the evaluations did not suffice, the best that was found, with a note that says so.

    Raises:
        FedboundsError: an unknown, missing or doubly given constant, an illegal range, or a constant that cannot be
            chosen because others depend on it.

    Example:
        >>> theorem = "arbitrary-participation/theorem-3.1"
        >>> known = dict(L=1, F=5, I=2, P=2, T=800, rho=0.5**0.5, sigma=1, nu=2, beta=0.5, delta=0)
        >>> answer = optimize(theorem, known, form="explicit")
        >>> answer.direction
        'gamma -> 0 and eta -> infinity with gamma*eta = 0.111803'
        >>> answer = optimize(theorem, known, within={"eta": (1, 100)}, form="explicit")
        >>> answer.active, round(answer.at["eta"], 9), round(answer.at["gamma"] * 100, 4)
        (('eta <= 100',), 100.0, 0.1102)
    """
    result = as_result(result)
    check_constants(constants)
    over, within = names_of("over", over), check_ranges(within)
    allowed = EvaluationBudget.of(effort, watch, result.form(form).length)
    try:
        return choose(
            result, constants, over, within=within, form=form, functions=functions, effort=allowed, incomplete=True
        )
    except Exhausted:
        return Undecided(f"no admissible choice was found in {allowed.allowed} evaluations; more with --effort")


def choose(
    result: Result,
    constants: Mapping[str, Value],
    over: Sequence[str],
    *,
    within: Ranges | None,
    form: str | None,
    functions: Functions | None,
    effort: EvaluationBudget,
    incomplete: bool = False,
) -> Answer:
    """As `optimize`, with evaluations that are shared with other questions."""
    chosen = result.form(form)
    quantities = [quantity_named(result, chosen, name) for name in over]
    names = [q.name for q in quantities]
    if not names or len(set(names)) < len(names):
        raise FedboundsError("name at least one constant to optimize over, each once, e.g. gamma,eta")
    for name in constants:
        if (quantity := result.notation.resolve(name)) is not None and quantity.name in names:
            raise FedboundsError(f"{quantity.name} is given and also left free; leave it out of the constants")
    ranges = _ranges(result, quantities, within or {})
    rules = _functions(result, chosen, names, constants, functions or {})
    whole = [q for q in quantities if q.domain.integer]
    reals = tuple(q for q in quantities if q not in whole)
    problem = StepSizeProblem(result, chosen, dict(constants), ranges, rules, reals, effort)
    effort.spend(QUESTION)
    partial = leave_free(compiled_form(result, chosen), constants, [*names, *rules], symbolic=True)
    if (broken := find_infeasibility(partial, ranges)) is not None:
        return Infeasible(broken.why)
    if not whole:
        return problem.minimize({})
    answer = scan(problem, whole, partial, incomplete)
    if isinstance(answer, Minimum) and not rules:
        notes = [answer.note, *(_equal_neighbors(result, chosen, constants, answer, q, ranges) for q in whole)]
        answer = replace(answer, note="; ".join(filter(None, notes)))
    return answer


def _equal_neighbors(
    result: Result, form: Form, constants: Mapping[str, Value], answer: Minimum, quantity: Quantity, ranges: Ranges
) -> str:
    """That the next whole numbers do as well (up to rounding), all else unchanged, in words ("" if they do not)."""
    low, high = ranges.get(quantity.name, (-np.inf, np.inf))
    alike = []
    for value in (answer.at[quantity.name] - 1, answer.at[quantity.name] + 1):
        if low <= value <= high and bool(quantity.domain.contains(value)):
            there = evaluate(result, {**constants, **answer.at, quantity.name: value}, form=form.name, strict=False)
            if bool(there.valid) and np.isclose(float(there.value), answer.value, rtol=1e-13, atol=0):
                alike.append(f"{quantity.name} = {value:g}")
    return f"{' and '.join(alike)} {'do' if len(alike) > 1 else 'does'} as well" if alike else ""


def _ranges(result: Result, quantities: Sequence[Quantity], within: Ranges) -> dict[str, tuple[float, float]]:
    legal = {q.name: q for q in quantities}
    ranges: dict[str, tuple[float, float]] = {}
    for name, ends in within.items():
        quantity = result.notation.resolve(name)
        if quantity is None or quantity.name not in legal:
            raise FedboundsError(f"a range for {name}, which is not optimized over; optimized: {', '.join(legal)}")
        low, high = (float(end) for end in ends)
        if not low <= high:
            raise FedboundsError(f"the range {quantity.name} = {low:g}:{high:g} is empty; it reads low:high")
        quantity.check(np.array([low, high]) if np.isfinite(high) else np.array([low]))
        ranges[quantity.name] = (low, high)
    return ranges


def _functions(
    result: Result, form: Form, over: Sequence[str], constants: Mapping[str, Value], functions: Functions
) -> dict[str, tuple[str, Callable[[float], float]]]:
    """Function constants by symbol, each with the symbol of its argument; refuses what would compare two problems."""
    rules: dict[str, tuple[str, Callable[[float], float]]] = {}
    for name, function in functions.items():
        quantity = quantity_named(result, form, name)
        masters = [m for m in over if quantity.concept in DEPENDS.get(result.notation[m].concept, ())]
        if not masters:
            raise FedboundsError(f"{quantity.name} is given as a function, but of nothing that is optimized over")
        if any((q := result.notation.resolve(c)) and q.name == quantity.name for c in constants):
            raise FedboundsError(f"{quantity.name} is given both as a number and as a function of {masters[0]}")
        rules[quantity.name] = (masters[0], function)
    needed = {s.name for s in form.symbols}
    for master in over:
        concept = result.notation[master].concept
        loose = [n for n in needed if result.notation[n].concept in DEPENDS.get(concept, ()) and n not in rules]
        if loose:
            raise FedboundsError(
                f"{master} can be optimized only where {', '.join(sorted(loose))} is given as a function of {master}: "
                f"another {master} means another {result.notation[sorted(loose)[0]].meaning}; "
                f"e.g. {min(loose)}='sqrt(9/{master})'"
            )
    return rules
