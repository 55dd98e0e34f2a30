"""The best whole numbers of a form, each with the best positive reals that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from bounds.evaluation import evaluate
from bounds.geometric import NotGeometric
from bounds.optimum import Answer, Infeasible, Minimum, NotAttained
from bounds.step_sizes import Point, Problem, Ranges, range_advice
from bounds.symbols import Quantity

MOST = 10**6  # where the scan of a whole number stops that has no upper end
COMPLETE, COMPLETE_INNER = 100_000, 48  # how many are tried one by one, without and with an inner problem


def scan(problem: Problem, whole: Sequence[Quantity]) -> Answer:
    """Whole numbers: next to the real minimiser where one of them is all there is and the problem is convex; else all
    of them, or a geometric grid that is refined around its best point."""
    if len(whole) == 1 and not problem.rules:
        try:
            return _neighbours(problem, whole[0])
        except NotGeometric:
            pass
    budget = COMPLETE_INNER if problem.reals else COMPLETE
    ends = [_whole_ends(q, problem.ranges) for q in whole]
    grids = [_grid(low, high, max(4, round(budget ** (1 / len(whole))))) for low, high in ends]
    complete = all(len(grid) == high - low + 1 for grid, (low, high) in zip(grids, ends, strict=True))
    names = [q.name for q in whole]
    first = best = _best(problem, names, grids)
    while best is not None and not all(_gapless(grid) for grid in grids):
        around = []
        for name, grid in zip(names, grids, strict=True):
            place = grid.index(int(best[1][name]))
            low, high = grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)]
            around.append(_grid(low, high, 16, even=True))
        grids, closer = around, _best(problem, names, around)
        best = closer if closer is not None and closer[0] <= best[0] else best
        grids = [sorted({*grid, int(best[1][name])}) for name, grid in zip(names, grids, strict=True)]
    if first is None or best is None:
        return problem.minimise({name: float(grid[0]) for name, grid in zip(names, grids, strict=True)})
    answer = problem.minimise(best[1])
    for q, (_, high) in zip(whole, ends, strict=True):
        if best[1][q.name] == high == MOST and q.name not in problem.ranges:
            return NotAttained(best[0], f"{q.name} -> infinity (scanned up to {MOST})", {}, range_advice(q, 1))
    if isinstance(answer, Minimum):
        how = "all tried" if complete else "geometric grid, refined around its best"
        method = f"{', '.join(names)}: {how}" + (f"; {answer.method}" if problem.reals else "")
        at_ends = tuple(
            f"{q.name} {'>=' if value == low else '<='} {value:g}"
            for q, (low, high) in zip(whole, ends, strict=True)
            if (value := best[1][q.name]) in (low, high)
        )
        return Minimum(answer.value, answer.at, answer.active + at_ends, answer.evaluation, method, answer.note)
    return answer


def _neighbours(problem: Problem, whole: Quantity) -> Answer:
    """The better neighbour of the real minimiser: the best value is convex in the logarithm of the whole number."""
    relaxed = problem.relaxed(whole)
    if not isinstance(relaxed, Point):
        return relaxed
    near = relaxed.at[whole.name]
    around = sorted(
        {float(round(near))} if abs(near - round(near)) < 1e-9 else {float(np.floor(near)), float(np.ceil(near))}
    )
    answers = [problem.minimise({whole.name: count}) for count in around]
    found = [a for a in answers if isinstance(a, Minimum)]
    if not found:
        return answers[0]
    best = min(found, key=lambda a: a.value)
    ends = problem.ranges.get(whole.name, (whole.domain.low, whole.domain.high))
    at_ends = tuple(
        f"{whole.name} {op} {end:g}" for op, end in zip((">=", "<="), ends, strict=True) if best.at[whole.name] == end
    )
    method = f"convex in the logarithms; {whole.name} next to the real minimiser {near:.6g}"
    return replace(best, active=best.active + at_ends, method=method)


def _whole_ends(quantity: Quantity, ranges: Ranges) -> tuple[int, int]:
    low, high = ranges.get(quantity.name, (quantity.domain.low, quantity.domain.high))
    return int(np.ceil(low)), int(min(high, MOST if quantity.name not in ranges else 2**53))


def _grid(low: int, high: int, size: int, even: bool = False) -> list[int]:
    """All whole numbers from low to high if they are few, else a grid with both ends."""
    if high - low + 1 <= size:
        return list(range(low, high + 1))
    spaced = np.linspace(low, high, size) if even else low - 1 + np.geomspace(1, high - low + 1, size)
    return sorted({low, high, *np.round(spaced).astype(int).tolist()})


def _gapless(grid: Sequence[int]) -> bool:
    return grid[-1] - grid[0] + 1 == len(grid)


def _best(
    problem: Problem, names: Sequence[str], grids: Sequence[Sequence[int]]
) -> tuple[float, dict[str, float]] | None:
    """The least value over a grid of whole numbers, and where."""
    if not problem.reals:
        points = np.array(list(product(*grids)), dtype=float)
        settings = problem.known(dict(zip(names, points.T, strict=True)))
        evaluation = evaluate(problem.result, settings, form=problem.form.name)
        valid = np.broadcast_to(evaluation.valid, len(points))
        values = np.where(valid, np.broadcast_to(evaluation.value, len(points)), np.inf)
        at = int(np.argmin(values))
        return (
            (float(values[at]), dict(zip(names, points[at].tolist(), strict=True))) if np.isfinite(values[at]) else None
        )
    best: tuple[float, dict[str, float]] | None = None
    for point in product(*grids):
        counts = dict(zip(names, map(float, point), strict=True))
        answer = problem.minimise(counts)
        if not isinstance(answer, Infeasible):
            value = answer.value if isinstance(answer, Minimum) else answer.infimum
            best = (value, counts) if best is None or value < best[0] else best
    return best
