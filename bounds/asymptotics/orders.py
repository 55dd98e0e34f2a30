r"""Exponents of expressions, decided exactly.

With every varying symbol written as $x^{v}$ and $x\to\infty$, a product of powers grows like $x^{a\cdot v}$, a sum like
its largest part. Symbols that do not vary are constants, and constants do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import Vector, maximize
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.expressions import base_and_exponent, parts, symbol_names

Growth = tuple[tuple[Vector, ...], ...]  # the largest, over alternatives, of the smallest a.v of each


class _Unknown(Exception):
    """Why an expression has no order that could be told."""


class _Order:
    """The growth of expressions on a cone; functions that are no powers become coordinates of their own."""

    def __init__(self, symbols: Sequence[sp.Symbol], cone: Sequence[Vector]) -> None:
        self.symbols, self.cone = tuple(symbols), tuple(cone)
        self.atoms: list[sp.Expr] = []

    def pad(self, v: Vector) -> Vector:
        return v + (Fraction(0),) * (len(self.symbols) + len(self.atoms) - len(v))

    def growth(self, e: sp.Expr) -> Growth:
        """Up to constant factors; raises _Unknown."""
        if e == 0:
            return ()
        if not symbol_names(e) & {s.name for s in self.symbols}:
            return ((self.pad(()),),)
        if isinstance(e, sp.Symbol):
            return ((self._unit(self.symbols.index(e)),),)
        if isinstance(e, sp.Mul):
            total: Growth = ((self.pad(()),),)
            for factor in parts(e):
                if factor.is_number and factor.is_negative:
                    raise _Unknown(f"{e} may be negative")
                total = self._times(total, self.growth(factor))
            return total
        if isinstance(e, sp.Add):
            return self._sum(e)
        if isinstance(e, sp.Pow) and isinstance(e.exp, sp.Rational):
            power = Fraction(int(e.exp.p), int(e.exp.q))
            below = self.growth(base_and_exponent(e)[0])
            base = tuple(tuple(tuple(power * x for x in v) for v in least) for least in below)
            return base if power > 0 else tuple(dict.fromkeys(product(*base)))
        if isinstance(e, sp.Max):
            return tuple(least for a in parts(e) for least in self.growth(a))
        if isinstance(e, sp.Min):  # min of maxima is a maximum of minima
            branches = [self.growth(a) for a in parts(e)]
            return tuple(tuple(v for least in choice for v in least) for choice in product(*branches))
        if isinstance(e, sp.floor):
            inner = self.growth(parts(e)[0])
            if all(self._never_below_one(v) for least in inner for v in least):
                return inner  # x/2 < floor(x) <= x for x >= 1
            raise _Unknown(f"{e} may be zero: nothing says that {e.args[0]} >= 1")
        if e not in self.atoms:
            self.atoms.append(e)
        return ((self._unit(len(self.symbols) + self.atoms.index(e)),),)

    def _unit(self, i: int) -> Vector:
        return tuple(Fraction(int(i == j)) for j in range(len(self.symbols) + len(self.atoms)))

    def _times(self, a: Growth, b: Growth) -> Growth:
        return tuple(
            tuple(tuple(p + q for p, q in zip(self.pad(x), self.pad(y), strict=True)) for x in least for y in other)
            for least in a
            for other in b
        )

    def _sum(self, e: sp.Add) -> Growth:
        positive = [a for a in parts(e) if not _is_negative(a)]
        negative = [-a for a in parts(e) if _is_negative(a)]
        for a in negative:  # 1 - c/T is of order 1 where c < 1 and T >= 1
            shares = [sp.simplify(a / b).as_coeff_Mul() for b in positive]
            if not any(self._small(share, rest, len(negative)) for share, rest in shares):
                raise _Unknown(f"nothing says that {e} is not smaller than its parts")
        return tuple(least for a in positive for least in self.growth(a))

    def _small(self, share: sp.Expr, rest: sp.Expr, among: int) -> bool:
        if len(self.symbols) == 1 and all(v[0] < 0 for least in self.growth(rest) for v in least):
            return True  # 1 - c/x is of order 1 for large x, whatever c
        if not float(share) < 0.999 / among or symbol_names(rest) - {s.name for s in self.symbols}:
            return False
        return all(self._never_below_one(tuple(-x for x in v)) for least in self.growth(rest) for v in least)

    def _never_below_one(self, a: Vector) -> bool:
        """Whether a.v >= 0 on the whole cone."""
        down = [-x for x in a]
        rows = [[-x for x in self.pad(row)[: len(a)]] for row in self.cone]
        return maximize(down, [*rows, down], [0] * len(rows) + [1]).value <= 0


def _is_negative(term: sp.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0].is_negative)


# --- One symbol going to infinity -------------------------------------------------------------------------------


def exponent(expression: sp.Expr, symbol: sp.Symbol) -> Fraction | None:
    """The power of the symbol with which the expression grows (falls, if negative); None for zero."""
    up = (Fraction(1),)
    order = _Order((symbol,), (up,))
    try:
        growth = order.growth(expression)
    except _Unknown as unknown:
        raise FedboundsError(f"the order in {symbol} cannot be told: {unknown}") from None
    if order.atoms:
        raise FedboundsError(f"the order in {symbol} cannot be told: it depends on how {order.atoms[0]} grows")
    return max((min(v[0] for v in least) for least in growth), default=None)


def growth_exponents(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> list[list[Fraction]]:
    """The exponents of each part of a sum of products in these symbols; nothing for zero."""
    order = _Order(symbols, [tuple(Fraction(int(i == j)) for j in range(len(symbols))) for i in range(len(symbols))])
    try:
        growth = order.growth(expression)
    except _Unknown as unknown:
        raise FedboundsError(f"the order of {expression} cannot be told: {unknown}") from None
    if order.atoms or any(len(least) != 1 for least in growth):
        raise FedboundsError(f"the order of {expression} cannot be told: it is no sum of products")
    return sorted(list(order.pad(least[0])) for least in growth)


def least_exponents(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> list[list[Fraction]]:
    """The exponents of the products of which an expression is of the order of the smallest."""
    order = _Order(symbols, [tuple(Fraction(int(i == j)) for j in range(len(symbols))) for i in range(len(symbols))])
    try:
        growth = order.growth(expression)
    except _Unknown as unknown:
        raise FedboundsError(f"the order of {expression} cannot be told: {unknown}") from None
    if order.atoms or len(growth) != 1:
        raise FedboundsError(f"the order of {expression} cannot be told: it is no smallest product")
    return [list(order.pad(v)) for v in growth[0]]


def all_positive(left: sp.Expr, right: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The sides of a relation, with what is subtracted on one side added to the other.

    Example:
        >>> x, y = sp.symbols("x y", positive=True)
        >>> all_positive(x, 1 - y)
        (x + y, 1)
    """
    sides = [sp.Add.make_args(side) for side in (left, right)]
    if not any(_is_negative(part) for side in sides for part in side):
        return left, right
    kept, moved = ([[c * part for part in side if _is_negative(part) == (c < 0)] for side in sides] for c in (1, -1))
    return sp.Add(*kept[0], *moved[1]), sp.Add(*kept[1], *moved[0])
