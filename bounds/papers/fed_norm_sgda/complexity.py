r"""The rounds, and the work in each, that a bound needs for a target, in exact exponents.

With every free symbol $z=T^{v_z}$, the largest $\rho$ with every term $O(T^{-\rho})$ is a linear program over
fractions; a target $\epsilon^2$ is met after $T=O(\epsilon^{-2/\rho})$ rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import maximize
from fedbounds.bounds.asymptotics.orders import growth_exponents
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.expressions import substitute
from fedbounds.bounds.theory.result import Condition, Term

FIRST = 10**6  # the rate counts so much more than the work that it alone decides


@dataclass(frozen=True)
class Complexity:
    r"""The best rate of a bound, and the least work at which it is reached."""

    rate: Fraction  # $\rho$: the bound is $O(T^{-\rho})$, no choice of exponents makes it fall faster
    exponents: Mapping[str, Fraction]  # letter to the power of T that reaches it
    work: str  # the letter of the work in a round

    @property
    def rounds(self) -> Fraction:
        r"""a, where a target $\epsilon$ for the norm takes $\epsilon^{-a}$ rounds (the bound is on the square)."""
        return 2 / self.rate

    @property
    def total_work(self) -> Fraction:
        r"""b, where it takes $\epsilon^{-b}$ units of work over all rounds."""
        return self.rounds * (1 + self.exponents[self.work])


def best_complexity(
    terms: Iterable[Term],
    conditions: Iterable[Condition],
    rounds: sp.Symbol,
    free: Sequence[sp.Symbol],
    work: sp.Symbol,
    at: Mapping[sp.Expr, sp.Expr] | None = None,
    whole: Iterable[sp.Symbol] = (),
) -> Complexity:
    r"""The best exponents of the free symbols, and of the work the least with which the rate is still reached."""
    letters, values = [rounds, *free], dict(at or {})
    rows: list[list[Fraction]] = []
    limits: list[Fraction] = []

    def exponents(expression: sp.Expr) -> list[list[Fraction]]:
        return growth_exponents(substitute(expression, values), letters)

    def add(row: Sequence[Fraction | int], limit: Fraction | int) -> None:
        if limit < 0:
            raise FedboundsError(f"a part grows like {rounds}^{-limit} where the free letters are constant")
        rows.append([Fraction(x) for x in row])
        limits.append(Fraction(limit))

    for term in terms:
        for power, *others in exponents(term.expression):
            add([*others, 1], -power)  # power + others.v <= -rho
    for condition in conditions:
        larger, smaller = (
            (condition.left, condition.right) if condition.op in ("<=", "<") else (condition.right, condition.left)
        )
        bound = exponents(smaller)
        if len(bound) != 1:
            raise FedboundsError(f"{condition.text} does not compare with a product")
        for power, *others in exponents(larger):
            low, *rest = bound[0]
            add([*(a - b for a, b in zip(others, rest, strict=True)), 0], low - power)
    for letter in whole:
        add([*(-int(letter == z) for z in free), 0], 0)
    best = maximize([*(-int(work == z) for z in free), FIRST], rows, limits)
    *found, rate = best.point
    return Complexity(rate, {z.name: v for z, v in zip(free, found, strict=True)}, work.name)
