r"""How many rounds until a bound is below epsilon, what they cost, and the inverse: what a number of rounds can bear.

With everything else fixed, the smallest number of rounds is found by excluding blocks of rounds with interval
arithmetic (`bounds.first_hit`), so nothing is assumed about monotonicity: step sizes may depend on T, and
$T/\lfloor T/P\rfloor$ may jump. Where the step sizes are optimised anew for every T, the best value falls with T if
every term does and no condition tightens; that is checked on the exponents, and then bisection is exact. Where one
whole number S is optimised too, or T must be a multiple of S, the smallest T is found for each S as a geometric
program, and S is scanned. Otherwise T is scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import sympy as sp

from bounds.checks import check_number
from bounds.compilation import ROUNDING, holds
from bounds.errors import FedboundsError
from bounds.evaluation import Evaluation, Value, evaluated
from bounds.expressions import parts, symbol_names
from bounds.first_hit import LARGEST_COUNT, first_hit
from bounds.geometric import NotGeometric, at_most, sum_of_products
from bounds.intervals import CannotEnclose, fixed_value
from bounds.optimise import Answer, Functions, Infeasible, Minimum, NotAttained, Ranges, optimise
from bounds.partial import Partial, leave_free, quantity_named
from bounds.result import Condition, Form, Result, Term
from bounds.step_sizes import Point, Problem
from bounds.symbols import Quantity
from bounds.whole_numbers import divided, refined, single_numbers

FAR = (1e-30, 1e30)  # between which step sizes are sought that may run off to 0
DENSE, RATIO = 64, 1.02  # where T must be scanned: every one up to DENSE, then in steps of this ratio


@dataclass(frozen=True)
class Cost:
    """What a number of rounds costs, as far as the constants say; None where they do not.

    Attributes:
        rounds: communication rounds T.
        iterations: local iterations I T of a client that takes part in every round.
        oracle_calls: stochastic gradients of all participants, S I T.
        oracle_calls_per_client: their average over all clients, S I T/N.
        floats: numbers sent and received by all participants, 2 S T d for a model of dimension d.
        bits: 32 for each of them.
    """

    rounds: int
    iterations: float | None = None
    oracle_calls: float | None = None
    oracle_calls_per_client: float | None = None
    floats: float | None = None
    bits: float | None = None


@dataclass(frozen=True)
class Reached:
    """The smallest number of rounds, its cost, and the bound there.

    Attributes:
        at: the optimised constants, if any.
        proved: whether it is proved that no smaller number does (else it was scanned for).
        method: how it was found.
    """

    rounds: int
    epsilon: float
    cost: Cost
    evaluation: Evaluation | None = field(repr=False)
    at: Mapping[str, float] = field(default_factory=dict)
    proved: bool = True
    method: str = ""
    status: ClassVar[str] = "reached"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --json` (without schema and version)."""
        costs = {k: v for k, v in vars(self.cost).items() if k != "rounds"}
        return {
            "status": self.status,
            "rounds": self.rounds,
            **costs,
            "epsilon": self.epsilon,
            "at": dict(self.at),
            "proved": self.proved,
            "method": self.method,
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class Never:
    """No number of rounds will do, because.

    Attributes:
        why: one line: the floor and the term that stays, or the condition.
        floor: what the bound tends to as the rounds grow.
        terms: the terms that stay, with their limits.
        proved: whether that is proved (else no number up to 2^53 was found).
    """

    epsilon: float
    why: str
    floor: float
    terms: Mapping[str, float] = field(default_factory=dict)
    proved: bool = True
    status: ClassVar[str] = "never"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --json` (without schema and version)."""
        return {
            "status": self.status,
            "epsilon": self.epsilon,
            "why": self.why,
            "floor": self.floor,
            "terms": dict(self.terms),
            "proved": self.proved,
        }


@dataclass(frozen=True)
class Largest:
    """The largest value of a constant at which the bound still reaches epsilon: inf for any, None for none.

    Attributes:
        name: the constant.
        value: see above.
        evaluation: the bound there (None where there is none, or any will do).
        why: "" or why there is none.
    """

    name: str
    epsilon: float
    value: float | None
    evaluation: Evaluation | None = field(repr=False, default=None)
    why: str = ""
    status: ClassVar[str] = "largest"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --solve --json` (without schema and version)."""
        return {
            "status": self.status,
            "name": self.name,
            "epsilon": self.epsilon,
            "value": self.value,
            "why": self.why,
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }


def rounds(
    result: Result,
    epsilon: float,
    constants: Mapping[str, Value],
    *,
    optimize_over: Sequence[str] = (),
    within: Ranges | None = None,
    form: str | None = None,
    functions: Functions | None = None,
    dimension: int | None = None,
    solve: str | None = None,
) -> Reached | Never | Largest:
    r"""The smallest number of rounds at which the bound is at most epsilon and its conditions hold.

    Args:
        result: whose bound; epsilon bounds its measure (a squared norm where the measure is one).
        epsilon: the target, positive.
        constants: letter or concept to value; all but the rounds (and what is optimised).
        optimize_over: step sizes to choose anew for every number of rounds (see `optimise`).
        within, functions: as for `optimise`.
        form: its name or kind.
        dimension: of the model, for the floats and bits sent.
        solve: the inverse question: the rounds are given, and the largest value of this constant is wanted.

    Returns:
        `Reached`, or `Never` with the floor; for `solve`, `Largest`.

    Raises:
        FedboundsError: bad constants, an epsilon that is not positive, or a form without rounds.

    Example:
        >>> from bounds.registry import load
        >>> corollary = load("arbitrary-participation/corollary-3.2")
        >>> known = dict(L=1, F=5, I=2, P=2, S=2, sigma=0.5**0.5, nu=2, beta=0.5, delta=0)
        >>> answer = rounds(corollary, 0.1, known, form="explicit")
        >>> answer.rounds, answer.cost.oracle_calls, answer.proved
        (12007, 48028, True)
        >>> rounds(corollary, 0.1, dict(known, delta=0.2), form="explicit").why
        'the bound stays above 0.24: the window divergence (0.24) does not fall with T'
    """
    check_number("epsilon", epsilon)
    if not epsilon > 0:
        raise FedboundsError(f"epsilon = {epsilon:g} must be positive")
    chosen = result.form(form)
    if solve is not None:
        if optimize_over:
            raise FedboundsError("--solve asks for one constant with the others fixed; leave out what is optimised")
        return _largest(result, chosen, epsilon, constants, solve)
    counter = _counter(result, chosen)
    if optimize_over:
        return _rounds_optimised(
            result, chosen, counter, epsilon, constants, optimize_over, within or {}, functions or {}, dimension
        )
    if within or functions:
        raise FedboundsError("ranges and functions belong to constants that are optimised over")
    partial = leave_free(result, chosen, constants, [counter.name])
    if (broken := _settled(partial)) is not None:
        return Never(epsilon, broken, float("nan"))

    def reaches(count: float) -> bool:
        evaluation = evaluated(result, {**constants, counter.name: count}, form=chosen.name)
        return bool(evaluation.valid) and bool(holds(evaluation.value, "<=", np.asarray(epsilon)))

    try:
        hit = first_hit(partial, epsilon, reaches, whole=True)
        count, proved, method = hit.value, hit.proved, "every smaller number excluded by interval arithmetic"
    except CannotEnclose:
        count, proved, method = _scan(reaches), False, "scanned: the bound holds functions that are only known by value"
    known = {**constants, counter.name: LARGEST_COUNT if count is None else count}
    evaluation = evaluated(result, known, form=chosen.name)
    if count is None:
        return _never(evaluation, counter.name, epsilon, proved)
    return Reached(int(count), epsilon, cost(result, known, int(count), dimension), evaluation, {}, proved, method)


def _counter(result: Result, form: Form) -> Quantity:
    """The constant that counts rounds (or iterations, where there are no rounds)."""
    for concept in ("rounds", "iterations"):
        quantity = next((q for q in result.notation.values() if q.concept == concept), None)
        if quantity is not None and quantity.symbol in form.symbols:
            return quantity
    raise FedboundsError(f"{result.key} [{form.name}] does not depend on a number of rounds")


def _settled(partial: Partial) -> str | None:
    """The first condition that fails whatever the free constants are."""
    for c in partial.settled:
        left, right = fixed_value(c.left, partial.values), fixed_value(c.right, partial.values)
        if not holds(np.asarray(left), c.op, np.asarray(right)):
            return f"{c.text} fails whatever T is: {left:.6g} against {right:.6g} ({c.why})"
    return None


def cost(result: Result, constants: Mapping[str, Value], count: int, dimension: int | None = None) -> Cost:
    """What this many rounds cost, as far as the constants give I, S and N (by letter or concept).

    Example:
        >>> from bounds.registry import load
        >>> cost(load("arbitrary-participation/theorem-3.1"), {"I": 5, "S": 10, "N": 250}, 100, dimension=1000)
        ... # doctest: +ELLIPSIS
        Cost(rounds=100, iterations=500, oracle_calls=5000, oracle_calls_per_client=20.0, floats=2000000, bits=64000000)
    """
    known: dict[str, int] = {}
    for name, value in constants.items():
        quantity = result.notation.resolve(name)
        if quantity is not None and not quantity.shape:
            number = np.asarray(getattr(value, "value", value), dtype=float)
            if number.ndim == 0 and number == np.floor(number):
                known[quantity.concept] = int(number)
    steps, cohort, clients = (known.get(c) for c in ("local_steps", "participating_clients", "clients"))
    iterations = None if steps is None else steps * count
    calls = None if iterations is None or cohort is None else cohort * iterations
    floats = None if dimension is None or cohort is None else 2 * cohort * count * dimension
    return Cost(
        count,
        iterations,
        calls,
        None if calls is None or clients is None else calls / clients,
        floats,
        None if floats is None else 32 * floats,
    )


def _never(last: Evaluation, name: str, epsilon: float, proved: bool) -> Never:
    """The floor, and what keeps the bound there (or the condition that no number of rounds meets)."""
    limits = {term: float(value) for term, value in last.terms.items()}
    broken = [c.text for c in last.conditions if not c.holds]
    if broken:
        why = f"{broken[0]} fails for every large {name}, and no smaller one reaches {epsilon:g}"
        return Never(epsilon, why, float(last.value), limits, proved)
    return _floor(name, epsilon, limits, proved)


def _floor(name: str, epsilon: float, limits: Mapping[str, float], proved: bool) -> Never:
    floor = sum(limits.values())
    stays = {n: v for n, v in limits.items() if v > 1e-4 * floor}
    listed = ", ".join(f"the {n} ({v:.6g})" for n, v in sorted(stays.items(), key=lambda item: -item[1]))
    verb = "does" if len(stays) == 1 else "do"
    if proved and floor > epsilon * (1 - 1e-9):
        why = f"the bound stays above {floor:.6g}: {listed} {verb} not fall with {name}"
    else:
        why = f"not within 2^53 = {LARGEST_COUNT} of {name}; there the bound is {floor:.6g}"
    return Never(epsilon, why, floor, stays, proved)


# --- Step sizes chosen anew for every T -------------------------------------------------------------------------


def _rounds_optimised(
    result: Result,
    form: Form,
    counter: Quantity,
    epsilon: float,
    constants: Mapping[str, Value],
    over: Sequence[str],
    within: Ranges,
    functions: Functions,
    dimension: int | None,
) -> Reached | Never:
    names = [quantity_named(result, form, name).name for name in over]
    if counter.name in names:
        raise FedboundsError(f"{counter.name} is what is asked for; leave it out of what is optimised")

    def best(count: float) -> Answer:
        known = {**constants, counter.name: count}
        return optimise(result, known, over, within=within, form=form.name, functions=functions)

    def reaches(count: float) -> bool:
        answer = best(count)
        if isinstance(answer, NotAttained):
            return answer.infimum < epsilon
        return isinstance(answer, Minimum) and bool(holds(np.asarray(answer.value), "<=", np.asarray(epsilon)))

    given = [quantity_named(result, form, name).name for name in functions]
    falls = _falls_with(result, form, counter, constants, [*names, *given])
    if not falls and not functions:
        try:
            return _rounds_by_whole_number(result, form, counter, epsilon, constants, names, within, best, dimension)
        except NotGeometric:
            pass
    last = best(float(LARGEST_COUNT))
    if falls:
        if not reaches(LARGEST_COUNT):
            return _never_optimised(counter, epsilon, last)
        count: float | None = _bisect(reaches)
        method = "bisection: with the step sizes free, every term falls with the rounds and no condition tightens"
    else:
        count = _scan(reaches)
        method = "scanned: the best bound was not shown to fall with the rounds"
    if count is None:
        return _never_optimised(counter, epsilon, last)
    answer = best(count)
    at = answer.at if isinstance(answer, Minimum) else {}
    known = {**constants, **at, counter.name: count}
    if isinstance(answer, NotAttained):
        method += f"; the infimum is not attained ({answer.direction})"
    evaluation = answer.evaluation if isinstance(answer, Minimum) else None
    return Reached(int(count), epsilon, cost(result, known, int(count), dimension), evaluation, at, falls, method)


def _rounds_by_whole_number(
    result: Result,
    form: Form,
    counter: Quantity,
    epsilon: float,
    constants: Mapping[str, Value],
    names: Sequence[str],
    within: Ranges,
    best: Callable[[float], Answer],
    dimension: int | None,
) -> Reached | Never:
    """The least rounds T for each value of one whole number S, as a geometric program; T a multiple of S if it must be.

    Raises:
        NotGeometric: it is none, or there are several whole numbers.
    """
    quantities = [quantity_named(result, form, name) for name in names]
    whole, others = ([q for q in quantities if q.domain.integer is want] for want in (True, False))
    divisor = next((S for T, S in filter(None, map(divided, form.conditions)) if counter.name == T), "")
    if len(whole) > 1 or not (whole or divisor) or not others:
        raise NotGeometric
    scanned = whole[0].name if whole else divisor
    given = single_numbers(result, constants)
    target = Condition(form.bound, "<=", sp.Float(epsilon), "the target")
    kept = tuple(c for c in form.conditions if divided(c) is None)
    least = replace(form, terms=(Term("rounds", counter.symbol),), conditions=(*kept, target))
    inverse = replace(result, forms=(least,), default=form.name)
    ranges = {quantity_named(result, form, n).name: ends for n, ends in within.items()}
    rest = {n: v for n, v in constants.items() if result.notation[scanned] is not result.notation.resolve(n)}

    open_ended = {q.name: FAR for q in others if q.domain.low == 0 and not np.isfinite(q.domain.high)}

    def fewest(S: int) -> float:
        """The smallest real T that reaches epsilon; inf if there is none."""
        found = Problem(inverse, least, {**rest, scanned: S}, open_ended | ranges, {}, tuple(others)).relaxed(counter)
        return max(1.0, found.at[counter.name]) if isinstance(found, Point) else np.inf

    def step(S: Any) -> Any:
        return S if divisor == scanned else int(given[divisor]) if divisor else 1

    def rounded(S: Any, T: Any) -> Any:
        return step(S) * np.ceil(T / step(S) * (1 - ROUNDING))

    if whole:
        low, high = ranges.pop(scanned, (1, LARGEST_COUNT))
        numbers = range(int(np.ceil(low)), int(high) + 1)
    else:
        numbers = range(int(given[scanned]), int(given[scanned]) + 1)
    S, count = refined(numbers, fewest, rounded)
    if not count < LARGEST_COUNT:
        return _never_optimised(counter, epsilon, best(float(LARGEST_COUNT // step(S) * step(S))))
    known = {**rest, scanned: S, counter.name: count}
    answer = optimise(result, known, [q.name for q in others], within=ranges, form=form.name)
    if isinstance(answer, Infeasible):
        return _never_optimised(counter, epsilon, answer)
    at = {name: {scanned: float(S), **answer.at}[name] for name in names} if isinstance(answer, Minimum) else {}
    spent = cost(result, {**known, **at}, int(count), dimension)
    method = f"{scanned} scanned, refined around its best; for each" if whole else "as"
    method += f" the least{' multiple of ' + divisor if divisor else ''}, a geometric program"
    if isinstance(answer, NotAttained):
        method += f"; the infimum is not attained ({answer.direction})"
        return Reached(int(count), epsilon, spent, None, {scanned: float(S)} if whole else {}, not whole, method)
    return Reached(int(count), epsilon, spent, answer.evaluation, at, not whole, method)


def _never_optimised(counter: Quantity, epsilon: float, last: Answer) -> Never:
    if isinstance(last, Infeasible):
        return Never(epsilon, f"{last.why}, and no smaller {counter.name} reaches {epsilon:g}", float("nan"), {}, False)
    if isinstance(last, NotAttained):
        return _floor(counter.name, epsilon, last.terms or {"infimum": last.infimum}, True)
    return _floor(counter.name, epsilon, {n: float(v) for n, v in last.evaluation.terms.items()}, True)


def _falls_with(
    result: Result, form: Form, counter: Quantity, constants: Mapping[str, Value], over: Sequence[str]
) -> bool:
    """Whether, everything else fixed, every term falls with the rounds and no condition tightens.

    Read off the exponents; floor(T/..) counts as one more variable that grows with T.
    """
    partial = leave_free(result, form, constants, [*over, counter.name])
    if partial.opaque:
        return False
    floors: dict[sp.Expr, sp.Symbol] = {}
    for e in (*partial.terms.values(), *(side for c in partial.conditions for side in (c.left, c.right))):
        for atom in e.atoms(sp.floor):
            if not {str(s) for s in atom.free_symbols} & set(over):
                floors.setdefault(atom, sp.Symbol(f"floor_{len(floors)}", positive=True))
    variables = [*over, counter.name, *(s.name for s in floors.values())]
    growing = range(len(over), len(variables))
    try:
        for floor in floors:
            inner = sum_of_products(parts(floor)[0], [counter.name], partial.values)
            if any(p.exponents[0] < 0 or not p.monomial for p in inner):
                return False
        sums = [sum_of_products(_replaced(e, floors), variables, partial.values) for e in partial.terms.values()]
        for c in partial.conditions:
            left, right = (c.left, c.right) if c.op in ("<=", "<") else (c.right, c.left)
            if counter.name in symbol_names(left, right):
                if c.op == "==":
                    return False
                sums.append(at_most(_replaced(left, floors), _replaced(right, floors), variables, partial.values))
    except NotGeometric:
        return False
    rows = [row for sum_ in sums for p in sum_ for row in p.degrees]
    gaps = [(w, m.exponents) for sum_ in sums for p in sum_ for q, w in p.gaps for m in q]
    return all(row[i] <= 0 for row in rows for i in growing) and all(
        w <= 0 and row[i] <= 0 for w, row in gaps for i in growing
    )


def _replaced(e: sp.Expr, floors: Mapping[sp.Expr, sp.Symbol]) -> sp.Expr:
    return cast("sp.Expr", e.xreplace(dict(floors)))


def _bisect(reaches: Any) -> int:
    """The smallest whole number from which on `reaches` holds, given that it holds at the largest."""
    low, high = 0, 1
    while not reaches(float(high)):
        low, high = high, min(2 * high, LARGEST_COUNT)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(float(middle)) else (middle, high)
    return high


def _scan(reaches: Any) -> float | None:
    """The first number of a grid that reaches, then the smallest one that bisection finds just below it."""
    grid = [*range(1, DENSE + 1)]
    while grid[-1] < LARGEST_COUNT:
        grid.append(min(LARGEST_COUNT, max(grid[-1] + 1, int(grid[-1] * RATIO))))
    for before, count in zip([0, *grid], grid, strict=False):
        if reaches(float(count)):
            low, high = before, count
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if reaches(float(middle)) else (middle, high)
            return float(high)
    return None


# --- The inverse question ---------------------------------------------------------------------------------------


def _largest(result: Result, form: Form, epsilon: float, constants: Mapping[str, Value], name: str) -> Largest:
    quantity = quantity_named(result, form, name)
    if quantity.domain.low < 0:
        raise FedboundsError(f"{quantity.name} may be negative; only constants that are not can be solved for")
    partial = leave_free(result, form, constants, [quantity.name])
    if (broken := _settled(partial)) is not None:
        return Largest(quantity.name, epsilon, None, None, broken.replace("whatever T is", "whatever it is"))

    def at(value: float) -> Evaluation:
        return evaluated(result, {**constants, quantity.name: value}, form=form.name)

    def reaches(value: float) -> bool:
        if not bool(quantity.domain.contains(value)):
            return False
        evaluation = at(value)
        return bool(evaluation.valid) and bool(holds(evaluation.value, "<=", np.asarray(epsilon)))

    try:
        hit = first_hit(
            partial, epsilon, reaches, whole=quantity.domain.integer, from_above=True, most=quantity.domain.high
        )
    except CannotEnclose as error:
        raise FedboundsError(
            f"{quantity.name} cannot be solved for in {result.key} [{form.name}]: it enters through {error}, "
            "which is only known by value"
        ) from None
    if hit.value is None:
        least = max(quantity.domain.low, 1.0 if quantity.domain.integer else 0.0)
        why = f"no {quantity.name} reaches {epsilon:g}"
        if bool(quantity.domain.contains(least)):
            evaluation = at(least)
            broken = "; ".join(c.text for c in evaluation.conditions if not c.holds)
            why += f": at {quantity.name} = {least:g} the bound is {float(evaluation.value):.6g}"
            why += f", and {broken} fails" if broken else ""
        return Largest(quantity.name, epsilon, None, None, why)
    return Largest(quantity.name, epsilon, hit.value, at(hit.value) if np.isfinite(hit.value) else None)
