r"""Rates of bounds in the number of rounds, at prescribed step sizes or at the best powers of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import maximize
from fedbounds.bounds.asymptotics.orders import exponent, growth_exponents
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.expressions import substitute
from fedbounds.bounds.theory.result import Condition, Form, Result, Term

FIRST = 10**6  # the rate counts so much more than the work that it alone decides


@dataclass(frozen=True)
class Complexity:
    r"""The best rate of a bound, and the least work at which it is reached."""

    rate: Fraction  # $\rho$: the bound is $O(T^{-\rho})$, no choice of exponents makes it fall faster
    exponents: Mapping[str, Fraction]  # symbol to the power of T that reaches it
    work: str = ""  # the symbol of the work in a round

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
    work: sp.Symbol | None = None,
    at: Mapping[sp.Expr, sp.Expr] | None = None,
    whole: Iterable[sp.Symbol] = (),
) -> Complexity:
    r"""The best exponents of the free symbols, and of the work the least with which the rate is still reached."""
    symbols, values = [rounds, *free], dict(at or {})
    rows: list[list[Fraction]] = []
    limits: list[Fraction] = []

    def exponents(expression: sp.Expr) -> list[list[Fraction]]:
        return growth_exponents(substitute(expression, values), symbols)

    def add(row: Sequence[Fraction | int], limit: Fraction | int) -> None:
        if limit < 0:
            raise FedboundsError(f"a part grows like {rounds}^{-limit} where the free symbols are constant")
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
    for symbol in whole:
        add([*(-int(symbol == z) for z in free), 0], 0)
    best = maximize([*(-int(work == z) for z in free), FIRST], rows, limits)
    *found, rate = best.point
    return Complexity(rate, {z.name: v for z, v in zip(free, found, strict=True)}, "" if work is None else work.name)


@dataclass(frozen=True)
class Rate:
    r"""How a form falls with the number of rounds: $O(T^{-\rho})$, but for terms that stay."""

    rounds: sp.Symbol  # T
    power: Fraction  # $\rho$
    stays: tuple[str, ...]  # the terms that do not fall
    steps: Mapping[str, Fraction]  # the powers of T of step sizes that were chosen; empty for prescribed ones


def rate(result: Result, form: Form) -> Rate:
    """The rate of a form; the step sizes in its terms are the best powers of T that its conditions admit.

    Raises:
        FedboundsError: the form has no number of rounds, or its order cannot be told.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> found = rate(theorem, theorem.form("explicit"))
        >>> found.power, found.stays
        (Fraction(1, 2), ('window divergence',))
    """
    quantities = {q.concept: q for q in result.notation.values()}
    counted = [quantities[concept].symbol for concept in ("rounds", "iterations") if concept in quantities]
    used = {symbol for term in form.terms for symbol in term.expression.free_symbols}
    T = next((symbol for symbol in counted if symbol in used), None)
    if T is None:
        raise FedboundsError(f"{result.key}[{form.name}] has no number of rounds")
    steps = [quantities[concept].symbol for concept in _STEPS if concept in quantities]
    steps = [symbol for symbol in steps if symbol in used]
    if not steps:
        powers = {term.name: exponent(term.expression, T) for term in form.terms}
        falling = [power for power in powers.values() if power is not None and power < 0]
        stays = tuple(name for name, power in powers.items() if power is not None and power >= 0)
        return Rate(T, -max(falling, default=Fraction(0)), stays, {})
    falls: list[Term] = []
    for term in form.terms:
        if all(any(powers) for powers in growth_exponents(term.expression, [T, *steps])):
            falls.append(term)
    best = best_complexity(falls, form.hypotheses, T, steps)
    stays = tuple(term.name for term in form.terms if term not in falls)
    return Rate(T, best.rate, stays, best.exponents)


_STEPS = (
    "local_step_size",
    "local_ascent_step_size",
    "server_multiplier",
    "server_step_size",
    "server_ascent_step_size",
    "effective_step",
    "effective_ascent_step",
)
