"""The best whole numbers of a form, each with the best positive reals that go with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.search.effort import EvaluationBudget, Exhausted, passes
from fedbounds.bounds.search.geometric_program import NotGeometric
from fedbounds.bounds.search.infeasibility import narrow_integers
from fedbounds.bounds.search.optimize_answers import Answer, Infeasible, Minimum, NotAttained
from fedbounds.bounds.search.partial_evaluation import Partial
from fedbounds.bounds.search.step_sizes import StepSizeProblem, range_advice
from fedbounds.bounds.theory.result import Condition, Result
from fedbounds.bounds.theory.symbols import Quantity

MOST = 10**6  # where the scan of a whole number stops that has no upper end
PROMISING, PASSES = 12, 6  # how many whole numbers are tried at once for what interpolation expects of them
LAST = 1000  # evaluations for the one answer that is reported when the search had to stop
COMPLETE, COMPLETE_INNER = 100_000, 48  # how many are tried one by one, where one is cheap and where it is not


def scan(problem: StepSizeProblem, whole: Sequence[Quantity], partial: Partial, incomplete: bool = False) -> Answer:
    """Whole numbers: next to the real minimizer where one of them is all there is and the problem is convex; else all
    of them, or a geometric grid that is refined around its best point.
    """
    able = [_candidates(q, problem, partial) for q in whole]
    names = [q.name for q in whole]
    for name, numbers in zip(names, able, strict=True):
        if not numbers:
            divisible = [T for T, S in filter(None, map(divisibility_pair, problem.form.conditions)) if name == S]
            given = single_numbers(problem.result, problem.constants)
            why = [f"no {name} in its range divides {T} = {given[T]:g}" for T in divisible]
            return Infeasible(why[0] if why else f"no {name} in its range meets the conditions")
    if len(whole) == 1 and not problem.rules and isinstance(able[0], range):
        try:
            return _neighbors(problem, whole[0])
        except NotGeometric:
            pass
    near = _together(problem, whole, able)
    nearby = able if near is None else near
    budget = COMPLETE_INNER if problem.reals or partial.opaque else COMPLETE
    grids = [_grid(numbers, max(4, round(budget ** (1 / len(whole))))) for numbers in nearby]
    complete = near is None and all(len(grid) == len(numbers) for grid, numbers in zip(grids, able, strict=True))
    best, enough = _best(problem, names, grids)
    first = best
    while enough and best and not all(_gapless(grid, numbers) for grid, numbers in zip(grids, nearby, strict=True)):
        around = []
        for name, grid, numbers in zip(names, grids, nearby, strict=True):
            place = grid.index(int(best[1][name]))
            low, high = grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)]
            around.append(_grid(numbers[numbers.index(low) : numbers.index(high) + 1], 16, even=True))
        closer, enough = _best(problem, names, around)
        if grids == around and (closer is None or closer[0] >= best[0]):
            break
        grids, best = around, closer if closer is not None and closer[0] <= best[0] else best
        grids = [sorted({*grid, int(best[1][name])}) for name, grid in zip(names, grids, strict=True)]
    if not enough and (best is None or not incomplete):
        raise Exhausted
    if not enough:
        problem = replace(problem, effort=EvaluationBudget(LAST))
    if first is None or best is None:
        return _staying(problem.minimize(start := {n: float(g[0]) for n, g in zip(names, grids, strict=True)}), start)
    answer = problem.minimize(best[1])
    note = "" if enough else "the evaluations were used up; this is the best that was found, more with --effort"
    others = {n: v for n, v in best[1].items() if n not in _open_ends(whole, able, best[1], problem)}
    for q in whole:
        if q.name not in others:
            at = {**others, **getattr(answer, "at", {})}
            at.pop(q.name, None)
            direction = f"{q.name} -> infinity (scanned up to {MOST})"
            direction += f" and {answer.direction}" if isinstance(answer, NotAttained) else ""
            return NotAttained(best[0], direction, {}, range_advice(q, 1), at)
    if isinstance(answer, Minimum):
        closer_in = "geometric grid, refined around its best" if near is None else "searched together with the others"
        how = ("all tried" if complete else closer_in) if enough else "searched in part"
        method = f"{', '.join(names)}: {how}" + (f"; {answer.method}" if problem.reals else "")
        at_ends = tuple(
            f"{q.name} {'>=' if value == numbers[0] else '<='} {value:g}"
            for q, numbers in zip(whole, able, strict=True)
            if (value := best[1][q.name]) in (numbers[0], numbers[-1])
        )
        notes = "; ".join(filter(None, (answer.note, note)))
        return Minimum(answer.value, answer.at, answer.active + at_ends, answer.evaluation, method, notes)
    return _staying(answer, best[1], note)


def _together(
    problem: StepSizeProblem, whole: Sequence[Quantity], able: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]] | None:
    """Where the inner problem is not convex: the whole numbers next to those that one search over everything finds, and
    the least ones, which such a search passes by where only a product with a positive real matters, or almost."""
    if not problem.reals or problem.rules or not all(isinstance(numbers, range) for numbers in able):
        return None
    if problem.geometric({q.name: float(numbers[0]) for q, numbers in zip(whole, able, strict=True)}):
        return None
    ends = {q.name: (float(numbers[0]), float(numbers[-1])) for q, numbers in zip(whole, able, strict=True)}
    ranges = {**problem.ranges, **ends}
    free = [q for q in (*problem.reals, *whole) if (r := ranges.get(q.name)) is None or r[0] < r[1]]
    single = {n: r[0] for n, r in ranges.items() if r[0] == r[1]}
    found = replace(problem, ranges=ranges).search({**problem.constants, **single}, {}, free)
    at = {**single, **getattr(found, "at", {})}
    if any(q.name not in at for q in whole):
        return None
    return [
        [*numbers[: min(1, max(0, place - 1))], *numbers[max(0, place - 1) : place + 2]]
        for q, numbers in zip(whole, able, strict=True)
        for place in [numbers.index(int(at[q.name]))]
    ]


def _open_ends(
    whole: Sequence[Quantity], able: Sequence[Sequence[int]], at: Mapping[str, float], problem: StepSizeProblem
) -> set[str]:
    """The whole numbers that are best where the scan stopped, and not where a range or a condition did."""
    return {
        q.name
        for q, numbers in zip(whole, able, strict=True)
        if at[q.name] == MOST and q.name not in problem.ranges and isinstance(numbers, range)
    }


def _staying(answer: Answer, counts: Mapping[str, float], note: str = "") -> Answer:
    """An infimum that is not attained, with the whole numbers that stay on the way to it."""
    if not isinstance(answer, NotAttained):
        return answer
    advice = "; ".join(filter(None, (answer.advice, note)))
    return replace(answer, at={**counts, **answer.at}, advice=advice)


def _neighbors(problem: StepSizeProblem, whole: Quantity) -> Answer:
    """The better neighbor of the real minimizer: the best value is convex in the logarithm of the whole number."""
    relaxed = problem.relax(whole)
    if isinstance(relaxed, Infeasible) or (isinstance(relaxed, NotAttained) and whole.name not in relaxed.at):
        return relaxed
    near = relaxed.at[whole.name]
    around = sorted(
        {float(round(near))} if abs(near - round(near)) < 1e-9 else {float(np.floor(near)), float(np.ceil(near))}
    )
    answers = {count: problem.minimize({whole.name: count}) for count in around}
    found = {count: a for count, a in answers.items() if isinstance(a, Minimum | NotAttained)}
    if not found:
        return answers[around[0]]
    count = min(found, key=lambda count: _level(found[count]))
    best = found[count]
    if isinstance(best, NotAttained):
        return _staying(best, {whole.name: count})
    ends = problem.ranges.get(whole.name, (whole.domain.low, whole.domain.high))
    at_ends = tuple(
        f"{whole.name} {op} {end:g}" for op, end in zip((">=", "<="), ends, strict=True) if best.at[whole.name] == end
    )
    method = f"convex in the logarithms; {whole.name} next to the real minimizer {near:.6g}"
    return replace(best, active=best.active + at_ends, method=method)


def _level(answer: Minimum | NotAttained) -> float:
    return answer.value if isinstance(answer, Minimum) else answer.infimum


def refine_integer(
    numbers: range, least: Callable[[int], float], rounded: Callable[[Any, Any], Any]
) -> tuple[int, float]:
    """The whole number S at which a smooth function of S, rounded up in steps that depend on S, is smallest.

    Returns:
        S, and what is smallest there. Between the points of the grid the smooth function is interpolated, and the most
        promising S are tried too.
    """
    from scipy.interpolate import PchipInterpolator  # takes its time

    grid, smooth = _grid(numbers, COMPLETE_INNER), dict[int, float]()

    def value(S: int) -> float:
        if S not in smooth:
            smooth[S] = least(S)
        return float(rounded(S, smooth[S]))

    while True:
        best, tried = min(grid, key=lambda S: (value(S), S)), len(smooth)
        place = grid.index(best)
        low, high = grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)]
        grid = sorted({*_grid(range(low, high + 1), 16, even=True), best})
        if all(S in smooth for S in grid) and len(smooth) == tried:
            break
    for _ in range(PASSES):
        points = sorted(S for S, T in smooth.items() if np.isfinite(T) and abs(S - best) < MOST)
        if len(points) < 3:
            break
        between = PchipInterpolator(np.log(points), np.log([smooth[S] for S in points]))
        every = np.arange(points[0], points[-1] + 1)
        expected = rounded(every, np.exp(between(np.log(every))))
        likely = [S for S in every[np.argsort(expected, kind="stable")[:PROMISING]].tolist() if S not in smooth]
        for S in likely:
            best = min(best, S, key=lambda S: (value(S), S))
        if not likely:
            break
    return best, value(best)


def divisibility_pair(condition: Condition) -> tuple[str, str] | None:
    """The symbols (T, S) of a condition T/S == floor(T/S): S divides T; None for another condition."""
    T, S = sp.fraction(condition.left)
    if not isinstance(T, sp.Symbol) or not isinstance(S, sp.Symbol) or condition.op != "==":
        return None
    return (T.name, S.name) if condition.right == sp.floor(condition.left) else None


def _candidates(quantity: Quantity, problem: StepSizeProblem, partial: Partial) -> Sequence[int]:
    """The whole numbers to scan: those in its range that the conditions may admit, or the divisors of a given number
    that it must divide."""
    low, high = problem.ranges.get(quantity.name, (quantity.domain.low, quantity.domain.high))
    given = {q.name: v for n, v in problem.constants.items() if (q := problem.result.notation.resolve(n)) is not None}
    for T, S in filter(None, map(divisibility_pair, problem.form.conditions)):
        if quantity.name == S and T in given:
            whole = int(np.asarray(getattr(given[T], "value", given[T])))
            return [d for d in sp.divisors(whole) if low <= d <= high]
    numbers = range(int(np.ceil(low)), int(min(high, MOST if quantity.name not in problem.ranges else 2**53)) + 1)
    return (
        narrow_integers(partial, quantity.name, numbers, problem.ranges) if numbers and not partial.opaque else numbers
    )


def single_numbers(result: Result, constants: Mapping[str, Value]) -> dict[str, float]:
    """The given constants that are one number each, by symbol."""
    given = {q.name: v for n, v in constants.items() if (q := result.notation.resolve(n)) is not None}
    arrays = {name: np.asarray(getattr(v, "value", v)) for name, v in given.items()}
    return {name: float(v) for name, v in arrays.items() if v.ndim == 0 and v.dtype.kind in "iuf"}


def _grid(numbers: Sequence[int], size: int, even: bool = False) -> list[int]:
    """All of these numbers if they are few, else a grid of them with both ends; divisors lie far apart already."""
    if len(numbers) <= size:
        return list(numbers)
    even = even or not isinstance(numbers, range)
    spaced = np.linspace(1, len(numbers), size) if even else np.geomspace(1, len(numbers), size)
    return [numbers[place] for place in sorted({0, len(numbers) - 1, *(np.round(spaced).astype(int) - 1).tolist()})]


def _gapless(grid: Sequence[int], numbers: Sequence[int]) -> bool:
    return numbers.index(grid[-1]) - numbers.index(grid[0]) + 1 == len(grid)


Best = tuple[float, dict[str, float]] | None


def _best(problem: StepSizeProblem, names: Sequence[str], grids: Sequence[Sequence[int]]) -> tuple[Best, bool]:
    """The least value over a grid of whole numbers, and where; and whether the evaluations sufficed for all of it."""
    best: Best = None
    try:
        if not problem.reals:
            points = np.array(list(product(*grids)), dtype=float)
            problem.effort.spend(passes(len(points)))
            settings = problem.known(dict(zip(names, points.T, strict=True)))
            evaluation = evaluate(problem.result, settings, form=problem.form.name, strict=False)
            valid = np.broadcast_to(evaluation.valid, len(points))
            values = np.where(valid, np.broadcast_to(evaluation.value, len(points)), np.inf)
            at = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
            found = (float(values[at]), dict(zip(names, points[at].tolist(), strict=True)))
            return (found if np.isfinite(values[at]) else None), True
        for point in product(*grids):
            counts = dict(zip(names, map(float, point), strict=True))
            answer = problem.minimize(counts)
            if isinstance(answer, Minimum | NotAttained):
                value = _level(answer)
                best = (value, counts) if best is None or value < best[0] else best
    except Exhausted:
        return best, False
    return best, True
