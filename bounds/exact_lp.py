"""Linear programs in exact fractions, for the handful of unknowns that exponents have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from bounds.errors import FedboundsError

Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Optimum:
    """The largest value, a point where it is taken, and the multipliers of the rows that prove that none is larger."""

    value: Fraction
    point: Vector
    multipliers: Vector


def maximise(
    objective: Sequence[Fraction | int], rows: Sequence[Sequence[Fraction | int]], limits: Sequence[Fraction | int]
) -> Optimum:
    r"""Maximise $c\cdot x$ over all $x$ (of either sign) with $A x\le b$, where $b\ge0$, so that $x=0$ is admissible.

    The simplex method with Bland's rule, which cannot cycle. The multipliers $\lambda\ge0$ satisfy $\lambda A=c$ and
    $\lambda\cdot b$ = the value: a proof that anyone can check.

    Args:
        objective: c, shape (n,).
        rows: A, shape (m, n).
        limits: b, shape (m,), none negative.

    Raises:
        FedboundsError: a negative limit, or no largest value.

    Example:
        >>> best = maximise([1, 1], [[1, 0], [1, 2]], [1, 3])
        >>> best.value, best.point, best.multipliers
        (Fraction(2, 1), (Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 2), Fraction(1, 2)))
    """
    n, m = len(objective), len(rows)
    if any(limit < 0 for limit in limits):
        raise FedboundsError("a linear program needs limits of at least 0, so that the origin is admissible")
    # columns: x = u - w with u, w >= 0, then one slack per row, then the right-hand side
    table = [
        [Fraction(a) for a in row]
        + [-Fraction(a) for a in row]
        + [Fraction(int(i == j)) for j in range(m)]
        + [Fraction(limits[i])]
        for i, row in enumerate(rows)
    ]
    costs = [Fraction(c) for c in objective] + [-Fraction(c) for c in objective] + [Fraction(0)] * (m + 1)
    basis = [2 * n + i for i in range(m)]
    while (enter := next((j for j, cost in enumerate(costs[:-1]) if cost > 0), None)) is not None:
        ratios = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
        if not ratios:
            raise FedboundsError("the linear program has no largest value")
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        table[leave] = [entry / pivot for entry in table[leave]]
        for i, row in enumerate(table):
            if i != leave and row[enter]:
                table[i] = [entry - row[enter] * p for entry, p in zip(row, table[leave], strict=True)]
        costs = [cost - costs[enter] * p for cost, p in zip(costs, table[leave], strict=True)]
        basis[leave] = enter
    solution = dict(zip(basis, (row[-1] for row in table), strict=True))
    point = tuple(solution.get(j, Fraction(0)) - solution.get(n + j, Fraction(0)) for j in range(n))
    return Optimum(-costs[-1], point, tuple(-costs[2 * n + i] for i in range(m)))
