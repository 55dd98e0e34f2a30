"""Rounds to a target with step sizes, or whole numbers, that are optimized for every number of rounds.

If every term falls with T and no condition tightens, bisection finds T. Where constants that follow from T by value
rise and fall, blocks of T are excluded (`round_blocks`). Otherwise T is the optimum of a geometric program, for each
value of one whole number S, or T is scanned. Minima are numerical: nothing here is called proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, Value, evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.program import ROUNDING, holds
from fedbounds.bounds.search.arb_enclosures import nowhere
from fedbounds.bounds.search.effort import EvaluationBudget, Exhausted
from fedbounds.bounds.search.geometric_program import NotGeometric, ProductReader
from fedbounds.bounds.search.infeasibility import box_of, find_infeasibility
from fedbounds.bounds.search.integers import MOST, divisibility_pair, refine_integer, single_numbers
from fedbounds.bounds.search.optimize import Answer, Functions, Infeasible, Minimum, NotAttained, Ranges, choose
from fedbounds.bounds.search.optimize_answers import Undecided
from fedbounds.bounds.search.partial_evaluation import Partial, leave_free, quantity_named
from fedbounds.bounds.search.round_blocks import INADMISSIBLE, BlockSearch, RelaxedBound, dependence_known
from fedbounds.bounds.search.round_lower_bounds import least_possible_rounds
from fedbounds.bounds.search.rounds_answers import (
    MANY,
    Between,
    Never,
    Reached,
    beyond,
    cost,
    not_one,
    rounds_between,
    unreachable_reason,
)
from fedbounds.bounds.search.step_sizes import Point, StepSizeProblem
from fedbounds.bounds.search.threshold import LARGEST_COUNT, first_in_steps, first_reached
from fedbounds.bounds.theory.expressions import parts, symbol_names
from fedbounds.bounds.theory.result import Condition, Form, Result, Term
from fedbounds.bounds.theory.symbols import Quantity

REMEMBERED = 3  # choices that reached the target before, and are tried first


@dataclass
class Target:
    """A bound to bring below epsilon by a choice of constants; what reached it at other rounds is tried again first.

    Attributes:
        counter: the symbol of the rounds.
        over: the symbols that are chosen.
        choices: those that reached it, symbol to value, the latest first.
    """

    result: Result
    form: Form
    counter: str
    epsilon: float
    constants: Mapping[str, Value]
    over: Sequence[str]
    within: Ranges
    functions: Functions
    effort: EvaluationBudget
    choices: list[Mapping[str, float]] = field(default_factory=list)

    def best(self, count: float, fixed: Mapping[str, float] | None = None) -> Answer:
        """The best choice for so many rounds, with some of them fixed."""
        fixed = fixed or {}
        if not self.over:
            known = {**self.constants, self.counter: count}
            there = evaluate(self.result, known, form=self.form.name, strict=False)
            if not there.valid:
                return Infeasible(f"{'; '.join(c.text for c in there.conditions if not c.holds)} fails")
            return Minimum(float(there.value), {}, (), there, "")
        return choose(
            self.result,
            {**self.constants, **fixed, self.counter: count},
            [name for name in self.over if name not in fixed],
            within={name: ends for name, ends in self.within.items() if name not in fixed},
            form=self.form.name,
            functions=self.functions,
            effort=self.effort,
        )

    def reaches(self, count: float) -> bool:
        """Whether some choice does."""
        return self.quickly(count) or self._noted(self.best(count))

    def roughly(self, count: float) -> bool:
        """Whether one search over all of them at once, with whole numbers rounded, finds a choice that does."""
        if self.quickly(count):
            return True
        quantities = [self.result.notation[name] for name in self.over]
        most = {q.name: (q.domain.low, min(q.domain.high, MOST)) for q in quantities if q.domain.integer}
        ranges = {**most, **self.within}
        known = {**self.constants, self.counter: count}
        reals = tuple(q for q in quantities if q.name not in most)
        problem = StepSizeProblem(self.result, self.form, known, ranges, {}, reals, self.effort)
        return self._noted(problem.search(known, {}, quantities))

    @property
    def mixed(self) -> bool:
        """Whether whole numbers and step sizes are chosen together, and everything else is a number."""
        whole = [self.result.notation[name].domain.integer for name in self.over]
        return any(whole) and not all(whole) and not self.functions

    def quickly(self, count: float) -> bool:
        """Whether one of the choices that did before does again, or one with the same whole numbers."""
        if self.functions:
            return False
        for choice in self.choices:
            self.effort.spend(1)
            if self._reached_with(choice, count) is not None:
                return True
        if not self.mixed:
            return False
        whole = [name for name in self.over if self.result.notation[name].domain.integer]
        settings = [{name: choice[name] for name in whole} for choice in self.choices]
        return any(self._noted(self.best(count, one)) for i, one in enumerate(settings) if one not in settings[:i])

    def _noted(self, answer: Answer) -> bool:
        """Whether this answer reaches it; then its choice is remembered."""
        if isinstance(answer, NotAttained):
            return answer.infimum < self.epsilon
        if not isinstance(answer, Minimum) or not holds(np.asarray(answer.value), "<=", np.asarray(self.epsilon)):
            return False
        if all(name in answer.evaluation.constants for name in self.over):
            choice = {name: float(answer.evaluation.constants[name].value) for name in self.over}
            self.choices[:] = [choice, *(c for c in self.choices if c != choice)][:REMEMBERED]
        return True

    def between(self, low: float, high: float, tried: float) -> Between:
        """How far the search came, with a choice that reaches the target at `high`."""
        answer = rounds_between(self.counter, self.epsilon, low, high, tried, self.effort)
        for choice in self.choices if np.isfinite(high) else ():
            if (there := self._reached_with(choice, high)) is not None:
                return replace(answer, at=choice, evaluation=there)
        return answer

    def _reached_with(self, choice: Mapping[str, float], count: float) -> Evaluation | None:
        """The bound with this choice, if it reaches the target."""
        known = {**self.constants, **choice, self.counter: count}
        there = evaluate(self.result, known, form=self.form.name, strict=False)
        return there if bool(there.valid) and bool(holds(there.value, "<=", np.asarray(self.epsilon))) else None

    def ratio(self, count: float) -> float:
        """Of the best bound to the target: at most 1 if it is reached; `UNKNOWN` if no choice was found."""
        self.effort.spend(1)
        answer = self.best(count)
        if self._noted(answer):
            return 1.0
        if isinstance(answer, Minimum | NotAttained):
            value = answer.value if isinstance(answer, Minimum) else answer.infimum
            return max(value / self.epsilon, 1 + ROUNDING)
        return INADMISSIBLE if isinstance(answer, Infeasible) else UNKNOWN


UNKNOWN = 1 + 1e-9  # where a search found no choice: this number does not reach, and no block is excluded by it
FAR = (1e-30, 1e30)  # between which step sizes are sought that may run off to 0


@dataclass
class _StoppedAt(Exception):
    """The evaluations were used up; this is the least number of rounds so far that reaches the target."""

    rounds: float


def rounds_optimized(
    result: Result,
    form: Form,
    counter: Quantity,
    epsilon: float,
    constants: Mapping[str, Value],
    over: Sequence[str],
    within: Ranges,
    functions: Functions,
    dimension: int | None,
    effort: EvaluationBudget,
) -> Reached | Never | Between:
    """See `fedbounds.bounds.search.rounds.rounds`."""
    names = [quantity_named(result, form, name).name for name in over]
    if counter.name in names:
        raise FedboundsError(f"{counter.name} is what is asked for; leave it out of what is optimized")
    given = [quantity_named(result, form, name).name for name in functions]
    ends = {quantity_named(result, form, n).name: (float(low), float(high)) for n, (low, high) in within.items()}

    target = Target(
        result, form, counter.name, epsilon, constants, names, _ranges_by_symbol(result, within), functions, effort
    )
    best, reaches = target.best, target.reaches

    partial = leave_free(compiled_form(result, form), constants, [*names, counter.name, *given], symbolic=True)
    whatever = f"whatever {', '.join((*names, counter.name))} are"
    if (broken := find_infeasibility(partial, ends, whatever)) is not None:
        return Never(epsilon, broken.why, float("nan"), {}, broken.proved)
    low, high, tried = 0, np.inf, 0.0  # what does not reach, what does, and how far it was tried
    try:
        falls = not partial.opaque and _falls_with(partial, counter.name, [*names, *given])
        blocks = not falls and not functions and dependence_known(form, partial.opaque, names)
        blocks = blocks and _falls_with(partial, counter.name, names)
        if not falls and not functions and not blocks:
            try:
                return _solve_program(target, counter, within, dimension)
            except NotGeometric:
                pass
            except _StoppedAt as stopped:
                high = stopped.rounds
                raise Exhausted from None
        if falls:
            if not reaches(float(LARGEST_COUNT)):
                return _never(target, LARGEST_COUNT + 1, nowhere(partial, epsilon, box_of(partial, ends)))
            high, step = float(LARGEST_COUNT), 1
            while not reaches(float(step)):  # the end of the search is where it began to double
                low, step = step, min(2 * step, LARGEST_COUNT)
            high = step
            while high - low > 1:
                middle = int(low + high) // 2
                low, high = (low, middle) if reaches(float(middle)) else (middle, high)
            count: float | None = high
            method = "bisection: with the step sizes free, every term falls with the rounds and no condition tightens"
        elif blocks:
            return _search_blocks(target, counter, partial, dimension)
        else:
            least = least_possible_rounds(partial, counter.name, epsilon, ends, effort)
            if least > LARGEST_COUNT:
                return _never(target, least, nowhere(partial, epsilon, box_of(partial, ends)))
            low = least - 1
            hit = first_in_steps(reaches, effort, least, target.quickly, target.roughly if target.mixed else None)
            if hit.left is not None:
                high, tried = hit.left[1], hit.tried or 0.0
                raise Exhausted
            count = hit.value
            method = "scanned: the best bound was not shown to fall with the rounds"
        if count is None:
            return _never(target, least, False)
        answer = best(count)
    except Exhausted:
        low = low or least_possible_rounds(partial, counter.name, epsilon, ends, effort) - 1
        return target.between(low + 1, high, tried)
    return _reached(target, counter, count, answer, method, dimension)


def _reached(
    target: Target, counter: Quantity, count: float, answer: Answer, method: str, dimension: int | None
) -> Reached:
    """The answer at this number of rounds, where the best choice is known."""
    at = answer.at if isinstance(answer, Minimum) else {}
    if isinstance(answer, NotAttained):
        method += f"; the infimum is not attained ({answer.direction})"
        method += f": {answer.advice}" if answer.advice else ""
    evaluation = answer.evaluation if isinstance(answer, Minimum) else None
    known = {**target.constants, **at, counter.name: count}
    spent = cost(target.result, known, int(count), dimension, counter.concept)
    return Reached(spent.rounds, target.epsilon, spent, evaluation, at, False, method)


def rounds_in_blocks(
    result: Result,
    form: Form,
    counter: Quantity,
    epsilon: float,
    constants: Mapping[str, Value],
    dimension: int | None,
    effort: EvaluationBudget,
) -> Reached | Never | Between | None:
    """The least rounds at given step sizes, where `round_blocks` applies; None where it does not."""
    partial = leave_free(compiled_form(result, form), constants, [counter.name], symbolic=True)
    if not dependence_known(form, partial.opaque, []) or not _falls_with(partial, counter.name, []):
        return None
    target = Target(result, form, counter.name, epsilon, constants, [], {}, {}, effort)
    return _search_blocks(target, counter, partial, dimension)


def _search_blocks(
    asked: Target, counter: Quantity, partial: Partial, dimension: int | None
) -> Reached | Never | Between:
    """The least rounds T where constants that follow from T by value enter: see `round_blocks`."""
    effort, opaque = asked.effort, partial.opaque
    relaxed = RelaxedBound(asked.result, asked.form, counter.name, asked.constants, opaque)
    lower = replace(asked, result=relaxed.result, form=relaxed.result.form(), choices=[])

    def excludes(first: int, last: int) -> bool:
        relaxed.hold(first, last)
        return lower.ratio(float(last)) > UNKNOWN

    search = BlockSearch(asked.ratio, excludes, 1, LARGEST_COUNT)
    try:
        if not search.run():
            return _never(asked, search.least, False, everywhere=True)
    except Exhausted:
        spare = replace(asked, effort=EvaluationBudget(effort.allowed))
        high = first_reached(spare.reaches, spare.effort, search.least)
        return spare.between(search.least, high or np.inf, float(LARGEST_COUNT))
    method = (
        f"every smaller {counter.name} excluded in blocks: with {', '.join(opaque)} at the least value in a block, the "
        f"best bound falls with {counter.name}"
    )
    count = float(search.least)
    return _reached(asked, counter, count, asked.best(count), method, dimension)


def _ranges_by_symbol(result: Result, ranges: Ranges) -> Ranges:
    found = {name: result.notation.resolve(name) for name in ranges}
    return {name if q is None else q.name: ranges[name] for name, q in found.items()}


def _solve_program(
    asked: Target, counter: Quantity, within: Ranges, dimension: int | None
) -> Reached | Never | Between:
    """The least rounds T, as a geometric program: for each value of one whole number S where one is optimized or must
    divide T.
    """
    result, form, constants, effort = asked.result, asked.form, asked.constants, asked.effort
    names, epsilon = asked.over, asked.epsilon
    quantities = [quantity_named(result, form, name) for name in names]
    whole, others = ([q for q in quantities if q.domain.integer is want] for want in (True, False))
    divisor = next((S for T, S in filter(None, map(divisibility_pair, form.conditions)) if counter.name == T), "")
    if len(whole) > 1 or not others:
        raise NotGeometric
    scanned = whole[0].name if whole else divisor
    given = single_numbers(result, constants)
    target = Condition(form.bound, "<=", sp.Float(epsilon), "the target")
    kept = tuple(c for c in form.conditions if divisibility_pair(c) is None)
    least = replace(form, terms=(Term("rounds", counter.symbol),), conditions=(*kept, target))
    inverse = replace(result, forms=(least,), default=form.name)
    ranges = {quantity_named(result, form, n).name: ends for n, ends in within.items()}
    rest = {n: v for n, v in constants.items() if not (q := result.notation.resolve(n)) or q.name != scanned}

    open_ended = {q.name: FAR for q in others if q.domain.low == 0 and not np.isfinite(q.domain.high)}

    def fewest(S: int) -> float:
        """The smallest real T that reaches epsilon; inf if there is none."""
        known = {**rest, scanned: S} if scanned else rest
        found = StepSizeProblem(inverse, least, known, open_ended | ranges, {}, tuple(others), effort).relax(counter)
        return max(1.0, found.at[counter.name]) if isinstance(found, Point) else np.inf

    def step(S: Any) -> Any:
        return S if divisor == scanned else int(given[divisor]) if divisor else 1

    def rounded(S: Any, T: Any) -> Any:
        return step(S) * np.ceil(T / step(S) * (1 - ROUNDING))

    if whole:
        low, high = ranges.pop(scanned, (1, LARGEST_COUNT))
        numbers = range(int(np.ceil(low)), int(high) + 1)
    else:
        numbers = range(int(given[scanned]), int(given[scanned]) + 1) if scanned else range(1, 2)
    found: dict[int, float] = {}
    try:
        S, count = refine_integer(numbers, lambda S: found.setdefault(S, fewest(S)), rounded)
    except Exhausted:
        raise _StoppedAt(min((float(rounded(S, T)) for S, T in found.items()), default=np.inf)) from None
    if not count < LARGEST_COUNT:
        return _never(asked, LARGEST_COUNT + 1, False, int(step(S)), everywhere=bool(np.isinf(count)))
    known = {**rest, **({scanned: S} if scanned else {}), counter.name: count}
    free = [q.name for q in others]
    answer = choose(result, known, free, within=ranges, form=form.name, functions=None, effort=effort)
    if isinstance(answer, Infeasible | Undecided):
        return Never(epsilon, f"{answer.why}, and no smaller {counter.name} reaches {epsilon:g}", float("nan"), {})
    at = {name: {scanned: float(S), **answer.at}[name] for name in names} if isinstance(answer, Minimum) else {}
    spent = cost(result, {**known, **at}, int(count), dimension, counter.concept)
    method = f"{scanned} scanned, refined around its best; for each " if whole else ""
    method += f"the least{' multiple of ' + divisor if divisor else ''}, by a geometric program"
    if isinstance(answer, NotAttained):
        method += f"; the infimum is not attained ({answer.direction})"
        return Reached(spent.rounds, epsilon, spent, None, {scanned: float(S)} if whole else {}, False, method)
    return Reached(spent.rounds, epsilon, spent, answer.evaluation, at, False, method)


def _never(target: Target, low: float, proved: bool, unit: int = 1, everywhere: bool = False) -> Never | Between:
    """Never, with what the best bound tends to; or only not within 2^53, where it may fall on from there."""
    name, epsilon = target.counter, target.epsilon
    last = target.best(float(LARGEST_COUNT // unit * unit))
    if isinstance(last, Infeasible | Undecided):
        return Never(epsilon, f"{last.why}, and no smaller {name} reaches {epsilon:g}", float("nan"), {}, proved)
    terms = _terms(last) or {"infimum": last.infimum if isinstance(last, NotAttained) else np.nan}
    far = [_terms(target.best(unit * count)) for count in MANY]
    value, nearer, limit = (sum(each.values()) if each else np.nan for each in (terms, *far))
    if epsilon < limit <= value * (1 + 1e-6) and nearer <= limit * (1 + 1e-6):
        return unreachable_reason(name, epsilon, far[1], proved)
    if proved or everywhere:
        return not_one(name, epsilon, terms, proved)
    return beyond(name, epsilon, low, terms, target.effort)


def _terms(answer: Answer) -> Mapping[str, float]:
    """What the best bound is made of; nothing where there is none, or an infimum was only searched for so far."""
    if isinstance(answer, NotAttained):
        return answer.terms
    return {n: float(v) for n, v in answer.evaluation.terms.items()} if isinstance(answer, Minimum) else {}


def _falls_with(partial: Partial, counter: str, over: Sequence[str]) -> bool:
    """Whether, everything else fixed, every term falls with the rounds and no condition tightens.

    Read off the exponents; floor(T/..) counts as one more variable that grows with T. Every term has to rise, and every
    condition to tighten, with the constants that are known by value only.
    """
    floors: dict[sp.Expr, sp.Symbol] = {}
    for e in (*partial.terms.values(), *(side for c in partial.conditions for side in (c.left, c.right))):
        for atom in e.atoms(sp.floor):
            if not {str(s) for s in atom.free_symbols} & {*over, *partial.opaque}:
                floors.setdefault(atom, sp.Symbol(f"floor_{len(floors)}", positive=True))
    variables = [*over, *partial.opaque, counter, *(s.name for s in floors.values())]
    rising = range(len(over), len(over) + len(partial.opaque))
    growing = range(rising.stop, len(variables))
    reader = ProductReader(variables, partial.values)
    try:
        for floor in floors:
            inner = ProductReader([counter], partial.values).sum(parts(floor)[0])
            if any(p.exponents[0] < 0 or not p.monomial for p in inner):
                return False
        sums = [reader.sum(_replace_floors(e, floors)) for e in partial.terms.values()]
        for c in partial.conditions:
            left, right = (c.left, c.right) if c.op in ("<=", "<") else (c.right, c.left)
            if symbol_names(left, right) & {counter, *partial.opaque}:
                if c.op == "==":
                    return False
                sums.append(reader.condition(_replace_floors(left, floors), _replace_floors(right, floors)))
    except NotGeometric:
        return False
    rows = [row for sum_ in sums for p in sum_ for row in p.degrees]
    gaps = [(w, m.exponents) for sum_ in sums for p in sum_ for q, w in p.gaps for m in q]
    return (
        all(row[i] <= 0 for row in rows for i in growing)
        and all(w <= 0 and row[i] <= 0 for w, row in gaps for i in growing)
        and all(row[i] >= 0 for row in rows for i in rising)
        and all(row[i] == 0 or (w <= 0 and row[i] > 0) for w, row in gaps for i in rising)
    )


def _replace_floors(e: sp.Expr, floors: Mapping[sp.Expr, sp.Symbol]) -> sp.Expr:
    return e.xreplace(dict(floors))
