r"""Proofs that no constants meet the conditions of a form.

A condition that compares sums of products with one product is linear in the logarithms of the constants, one row for
each summand. Positive multiples of rows that add up to $0\le c$ with $c<0$ prove that the rows contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log

import numpy as np
import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import maximize
from fedbounds.bounds.asymptotics.rates import at_most
from fedbounds.bounds.search.geometric_program import NotGeometric, Product, ProductReader
from fedbounds.bounds.search.infeasibility import fails_everywhere
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose, Interval, enclose
from fedbounds.bounds.theory.result import Condition, Form, Result

ROUNDING = Fraction(1, 10**6)  # of the logarithms of coefficients, which are rounded to
DIGITS = 10**9


@dataclass(frozen=True)
class _Row:
    """exponents . y <= limit, where y are the logarithms of the constants."""

    exponents: tuple[Fraction, ...]
    limit: Fraction
    said: str  # the condition, or the domain, that says it


def find_contradiction(result: Result, form: Form) -> str:
    """The conditions and domains that no constants meet together; "" where none is proved."""
    names = sorted(form.variables)
    domains = {name: result.notation[name].domain for name in names if not result.notation[name].shape}
    ranges = {name: (np.asarray(domain.low), np.asarray(domain.high)) for name, domain in domains.items()}
    for c in form.conditions:
        if _never_holds(c.left - c.right, c.op) or _fails_in(c, ranges):
            return c.text
    reader = ProductReader(names, {})
    positive = {name for name in names if result.notation[name].symbol.is_positive}
    relations = [(pair, condition.text) for condition in form.conditions for pair in at_most(condition)]
    compared = [(low, high, text) for pair, text in relations for low, high in _compared(reader, *pair)]
    for _ in names:  # what must be positive may follow from what else must be
        for low, high, _text in compared:
            if _support(low, names) <= positive:
                positive |= {name for name, power in zip(names, high.exponents, strict=True) if power > 0}
    rows = [*_domains(result, names)]
    for low, high, text in compared:
        if _support(low, names) | _support(high, names) <= positive:
            exponents = tuple(a - b for a, b in zip(low.exponents, high.exponents, strict=True))
            rows.append(_Row(exponents, _rounded(high.log_coefficient - low.log_coefficient), text))
    return _contradicting(rows)


def _never_holds(difference: sp.Expr, op: str) -> bool:
    """Whether the sign of left - right, which follows from what the symbols may be, excludes a relation."""
    above, below = bool(difference.is_positive), bool(difference.is_negative)
    level = bool(difference.is_nonnegative), bool(difference.is_nonpositive)
    return {"<=": above, "<": level[0], ">=": below, ">": level[1], "==": above or below}[op]


def _fails_in(condition: Condition, ranges: Mapping[str, Interval]) -> bool:
    """Whether interval arithmetic excludes a relation of numbers."""
    if not {str(symbol) for symbol in condition.left.free_symbols | condition.right.free_symbols} <= ranges.keys():
        return False
    try:
        return bool(fails_everywhere(condition, *(enclose(side, ranges) for side in (condition.left, condition.right))))
    except CannotEnclose:
        return False


def _domains(result: Result, names: Sequence[str]) -> Iterator[_Row]:
    for i, name in enumerate(names):
        domain = result.notation[name].domain
        unit = tuple(Fraction(int(i == j)) for j in range(len(names)))
        if domain.low > 0:
            yield _Row(tuple(-u for u in unit), _rounded(-log(domain.low)), f"{name} in {domain}")
        if 0 < domain.high < inf:
            yield _Row(unit, _rounded(log(domain.high)), f"{name} in {domain}")


def _compared(reader: ProductReader, below: sp.Expr, above: sp.Expr) -> Iterator[tuple[Product, Product]]:
    """Products of which the first is at most the second where one side is at most the other."""
    for low in below.args if isinstance(below, sp.Max) else (below,):
        for high in above.args if isinstance(above, sp.Min) else (above,):
            try:
                smaller, (larger,) = reader.sum(low), reader.sum(high)
            except (NotGeometric, ValueError):
                continue
            signed = any(not s.is_nonnegative for s in low.free_symbols | high.free_symbols)
            if larger.monomial and not signed and not any(one.gaps for one in smaller):  # no summand is negative
                yield from ((one, larger) for one in smaller if one.monomial)


def _support(product: Product, names: Sequence[str]) -> set[str]:
    return {name for name, power in zip(names, product.exponents, strict=True) if power}


def _rounded(number: float) -> Fraction:
    return Fraction(number).limit_denominator(DIGITS)


def _contradicting(rows: list[_Row]) -> str:
    """What the rows that contradict each other say; "" if all can hold.

    The largest s with exponents . y + s <= limit + most, where `most` makes all right-hand sides nonnegative.
    """
    most = max([Fraction(0), *(-row.limit for row in rows)])
    if not most:
        return ""
    size = len(rows[0].exponents)
    table = [[*row.exponents, Fraction(1)] for row in rows] + [[*[Fraction(0)] * size, Fraction(1)]]
    best = maximize([0] * size + [1], table, [row.limit + most for row in rows] + [most])
    if best.value > most - ROUNDING:
        return ""
    needed = [row.said for row, multiplier in zip(rows, best.multipliers, strict=False) if multiplier]
    return " and ".join(dict.fromkeys(needed))
