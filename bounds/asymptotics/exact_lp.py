"""Linear programs in exact fractions, for the handful of unknowns that exponents have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from operator import mul

from fedbounds.bounds.errors import FedboundsError

Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Optimum:
    """The largest value, a point where it is taken, and the multipliers of the rows that prove that none is larger."""

    value: Fraction
    point: Vector
    multipliers: Vector


def maximize(
    objective: Sequence[Fraction | int],
    rows: Sequence[Sequence[Fraction | int]],
    limits: Sequence[Fraction | int],
    nonnegative: int = 0,
) -> Optimum:
    r"""Maximize $c\cdot x$ over all $x$ with $A x\le b$, where $b\ge0$, so that $x=0$ is admissible.

    The simplex method with Bland's rule, which cannot cycle. The multipliers $\lambda\ge0$ satisfy $\lambda A=c$ and
    $\lambda\cdot b$ = the value (where all of x is free): a proof that anyone can check.

    Args:
        objective: c, shape (n,).
        rows: A, shape (m, n).
        limits: b, shape (m,), none negative.
        nonnegative: how many of the last coordinates must be at least 0; the others are free.

    Raises:
        FedboundsError: a negative limit, or no largest value.

    Example:
        >>> best = maximize([1, 1], [[1, 0], [1, 2]], [1, 3])
        >>> best.value, best.point, best.multipliers
        (Fraction(2, 1), (Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 2), Fraction(1, 2)))
    """
    n, m = len(objective), len(rows)
    if any(limit < 0 for limit in limits):
        raise FedboundsError("a linear program needs limits of at least 0, so that the origin is admissible")
    # columns: x, then the negative parts of its free coordinates, one slack per row, and the right-hand side
    free = n - nonnegative
    table = [
        [Fraction(a) for a in row]
        + [-Fraction(a) for a in row[:free]]
        + [Fraction(int(i == j)) for j in range(m)]
        + [Fraction(limits[i])]
        for i, row in enumerate(rows)
    ]
    costs = [Fraction(c) for c in objective] + [-Fraction(c) for c in objective[:free]] + [Fraction(0)] * (m + 1)
    basis = [n + free + i for i in range(m)]
    while (enter := next((j for j, cost in enumerate(costs[:-1]) if cost > 0), None)) is not None:
        ratios = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
        if not ratios:
            raise FedboundsError("the linear program has no largest value")
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        table[leave] = [entry / pivot if entry else entry for entry in table[leave]]
        for i, row in enumerate(table):
            if i != leave and row[enter]:
                table[i] = _less(row, row[enter], table[leave])
        costs = _less(costs, costs[enter], table[leave])
        basis[leave] = enter
    solution = dict(zip(basis, (row[-1] for row in table), strict=True))
    zero = Fraction(0)
    point = tuple(solution.get(j, zero) - (solution.get(n + j, zero) if j < free else zero) for j in range(n))
    return Optimum(-costs[-1], point, tuple(-costs[n + free + i] for i in range(m)))


def corners(rows: Sequence[Sequence[Fraction]], limits: Sequence[Fraction]) -> list[Vector]:
    """All x with A x <= b at which as many independent rows or coordinate planes meet as x has coordinates.

    Example:
        >>> found = corners([[Fraction(1), Fraction(1)], [Fraction(-1), Fraction(0)]], [Fraction(-1), Fraction(2)])
        >>> [tuple(map(int, point)) for point in found]
        [(-2, 0), (-2, 1), (-1, 0), (0, -1)]
    """
    distinct = dict.fromkeys((*map(Fraction, row), limit) for row, limit in zip(rows, limits, strict=True) if any(row))
    n = len(rows[0]) if rows else 0
    planes = dict.fromkeys([*distinct, *((*(Fraction(int(i == j)) for j in range(n)), Fraction(0)) for i in range(n))])
    points = {point for chosen in combinations(planes, n) if (point := _meeting(chosen)) is not None}
    return sorted(p for p in points if all(sum(map(mul, p, row)) <= limit for *row, limit in distinct))


def _meeting(planes: Sequence[Vector]) -> Vector | None:
    """The one point on all of these planes, each a row and its limit; None if there is none or several."""
    table = [list(plane) for plane in planes]
    for column in range(len(table)):
        pivot = next((i for i in range(column, len(table)) if table[i][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [entry / table[column][column] for entry in table[column]]
        for i, row in enumerate(table):
            if i != column and row[column]:
                table[i] = _less(row, row[column], table[column])
    return tuple(row[-1] for row in table)


def _less(row: list[Fraction], factor: Fraction, pivot: list[Fraction]) -> list[Fraction]:
    return [entry - factor * p if p else entry for entry, p in zip(row, pivot, strict=True)]
