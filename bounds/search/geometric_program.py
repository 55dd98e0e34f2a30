r"""Geometric programs: bounds that are convex in the logarithms of their step sizes.

A *product* is $c\prod_ix_i^{a_i}\prod_kp_k^{w_k}\prod_k(1-p_k)^{u_k}$ with $c>0$ and posynomials $p_k$ (sums of
monomials with positive coefficients). With $y=\log x$ its logarithm is affine plus $w_k\log p_k(e^y)$, convex for
$w_k>0$, plus $u_k\log(1-p_k(e^y))$, which is convex for $u_k<0$; a sum of such products is convex too. Exponents stay
exact, so that the directions in which a bound falls for ever are decided, not guessed: this is what no library does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product as choices

import numpy as np
import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import Vector, maximize
from fedbounds.bounds.search.interval_arithmetic import fixed_values
from fedbounds.bounds.theory.expressions import base_and_exponent, parts, symbol_names

MOST_PRODUCTS = 500  # an expression that expands beyond this is left to the numerical search


class NotGeometric(Exception):
    """The expression is not a sum of products; caught by whoever asks, never shown to a user."""


@dataclass(frozen=True)
class Product:
    """exp(log_coefficient) * prod x^exponents * prod posynomial^weight * prod (1 - posynomial)^weight."""

    log_coefficient: float
    exponents: Vector
    factors: tuple[tuple[Posynomial, Fraction], ...] = ()
    gaps: tuple[tuple[Posynomial, Fraction], ...] = ()

    def __mul__(self, other: Product) -> Product:
        return Product(
            self.log_coefficient + other.log_coefficient,
            tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)),
            self.factors + other.factors,
            self.gaps + other.gaps,
        )

    def __pow__(self, power: Fraction) -> Product:
        return Product(
            float(power) * self.log_coefficient,
            tuple(power * a for a in self.exponents),
            tuple((p, power * w) for p, w in self.factors),
            tuple((p, power * w) for p, w in self.gaps),
        )

    @property
    def monomial(self) -> bool:
        """Whether there are no factors and no gaps."""
        return not self.factors and not self.gaps

    @property
    def convex(self) -> bool:
        """Whether the logarithm is convex in the logarithms of the variables."""
        return all(w > 0 for _, w in self.factors) and all(w < 0 for _, w in self.gaps)

    @property
    def degrees(self) -> list[Vector]:
        """The exponents of every monomial it expands to (gaps count as 1); the largest rules along a direction."""
        rows = [[tuple(w * a for a in m.exponents) for m in p] for p, w in self.factors]
        return [
            tuple(sum(column, Fraction(0)) for column in zip(self.exponents, *choice, strict=True))
            for choice in choices(*rows)
        ]

    def along(self, direction: Vector) -> Product:
        """What is left of it far out in a direction along which it neither grows nor vanishes."""
        kept = []
        for posynomial, weight in self.factors:
            top = max(_dot(m.exponents, direction) for m in posynomial)
            kept.append((tuple(m for m in posynomial if _dot(m.exponents, direction) == top), weight))
        gaps = [(tuple(m for m in p if not _dot(m.exponents, direction)), w) for p, w in self.gaps]
        return replace(self, factors=tuple(kept), gaps=tuple((p, w) for p, w in gaps if p))


Posynomial = tuple[Product, ...]


@dataclass
class ProductReader:
    """Reads expressions as sums of products in some variables; parts that many expressions share are read once.

    Attributes:
        variables: the symbols.
        values: of all other symbols.
    """

    variables: Sequence[str]
    values: Mapping[str, float | np.ndarray]
    _read: dict[sp.Expr, tuple[list[Product], list[Product]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._places = {name: i for i, name in enumerate(self.variables)}
        self._value = fixed_values(self.values)

    def sum(self, expression: sp.Expr) -> tuple[Product, ...]:
        """The expression as a sum of products; constants that are zero make their terms vanish."""
        positive, negative = self._split_by_sign(expression)
        if negative:
            raise NotGeometric
        return tuple(positive)

    def condition(self, left: sp.Expr, right: sp.Expr) -> tuple[Product, ...]:
        """The condition left <= right as a sum of products that must be at most 1."""
        over = self.sum(right)
        if len(over) != 1:
            raise NotGeometric
        quotient = tuple(p * over[0] ** Fraction(-1) for p in self.sum(left))
        if not all(p.convex for p in quotient):
            raise NotGeometric
        return quotient

    def _split_by_sign(self, e: sp.Expr) -> tuple[list[Product], list[Product]]:
        """The positive and the negative products of an expression."""
        if e not in self._read:
            self._read[e] = self._split(e)
        return self._read[e]

    def _split(self, e: sp.Expr) -> tuple[list[Product], list[Product]]:
        origin = (Fraction(0),) * len(self.variables)
        if not symbol_names(e) & set(self._places):
            number = self._value(e)
            if not np.isfinite(number):
                raise NotGeometric
            constant = [Product(float(np.log(abs(number))), origin)] if number else []
            return (constant, []) if number >= 0 else ([], constant)
        if isinstance(e, sp.Symbol):
            unit = tuple(Fraction(int(i == self._places[e.name])) for i in range(len(self.variables)))
            return [Product(0.0, unit)], []
        if isinstance(e, sp.Add):
            signed = [self._split_by_sign(a) for a in parts(e)]
            return [p for part in signed for p in part[0]], [p for part in signed for p in part[1]]
        if isinstance(e, sp.Mul):
            positive, negative = [Product(0.0, origin)], []
            for a in parts(e):
                plus, minus = self._split_by_sign(a)
                positive, negative = (
                    [p * q for p in positive for q in plus] + [p * q for p in negative for q in minus],
                    [p * q for p in positive for q in minus] + [p * q for p in negative for q in plus],
                )
                if len(positive) + len(negative) > MOST_PRODUCTS:
                    raise NotGeometric
            return positive, negative
        if isinstance(e, sp.Pow):
            base, exponent = base_and_exponent(e)
            if exponent.is_number and exponent.is_real:
                return [_power(*self._split_by_sign(base), _fraction(exponent))], []
        raise NotGeometric


def _fraction(number: sp.Expr) -> Fraction:
    if isinstance(number, sp.Rational):
        return Fraction(int(number.p), int(number.q))
    return Fraction(float(number))


def _power(positive: list[Product], negative: list[Product], power: Fraction) -> Product:
    if not positive:
        raise NotGeometric
    if len(positive) == 1:
        lead = positive[0]
        if not negative:
            return lead**power
        ratio = tuple(p * lead ** Fraction(-1) for p in negative)
        if all(p.monomial for p in ratio):  # lead - negative = lead (1 - ratio)
            return lead**power * Product(0.0, (Fraction(0),) * len(lead.exponents), gaps=((ratio, power),))
    if negative or not all(p.monomial for p in positive):
        raise NotGeometric
    return Product(0.0, (Fraction(0),) * len(positive[0].exponents), factors=((tuple(positive), power),))


def _dot(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


# --- A program, and the directions in which it falls for ever ---------------------------------------------------


@dataclass(frozen=True)
class GeometricProgram:
    """Minimize a sum of products where other sums are at most 1 and low <= y <= high, with y the logarithms.

    Attributes:
        objective: products, all convex in logarithms.
        constraints: each a sum of products that is at most 1; a sum of none always holds.
        low, high: shape (n,), -inf and inf where there is no end.
    """

    objective: tuple[Product, ...]
    constraints: tuple[tuple[Product, ...], ...]
    low: np.ndarray
    high: np.ndarray


def falls_for_ever(program: GeometricProgram) -> Vector | None:
    """A direction in logarithms along which some product vanishes and nothing grows; None if there is none.

    Exact: a linear program in fractions over the exponents. Without such a direction the minimum is attained.
    """
    falling, level = _rows(program)
    return _direction(falling, level)


def loosens_for_ever(program: GeometricProgram) -> Vector | None:
    """A direction along which the objective stays but some constraint becomes slack; None if there is none.

    Only for programs without a direction of `falls_for_ever`.
    """
    falling, level = _rows(program)
    return _direction(level, falling)


def _rows(program: GeometricProgram) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
    """The exponents of the objective, and of everything that must not grow either."""
    n = len(program.low)
    unit = [tuple(Fraction(int(i == j)) for j in range(n)) for i in range(n)]
    level = [row for sum_ in program.constraints for p in sum_ for row in p.degrees]
    every = (*program.objective, *(p for sum_ in program.constraints for p in sum_))
    level += [m.exponents for p in every for posynomial, _ in p.gaps for m in posynomial]
    level += [unit[i] for i in range(n) if np.isfinite(program.high[i])]
    level += [tuple(-u for u in unit[i]) for i in range(n) if np.isfinite(program.low[i])]
    return tuple(dict.fromkeys(row for p in program.objective for row in p.degrees)), tuple(dict.fromkeys(level))


@lru_cache(maxsize=1024)
def _direction(falling: tuple[Vector, ...], level: tuple[Vector, ...]) -> Vector | None:
    """v with falling.v <= 0, as many of them strictly as possible but at least one, and level.v <= 0."""
    if not any(any(row) for row in falling):
        return None
    n, k = len(falling[0]), len(falling)
    slack = [[int(i == j) for j in range(k)] for i in range(k)]
    rows = [[*row, *slack[i]] for i, row in enumerate(falling)]  # degree + slack <= 0
    rows += [[*row, *[0] * k] for row in level]
    rows += [[*[0] * n, *s] for s in slack]  # 0 <= slack <= 1
    best = maximize([0] * n + [1] * k, rows, [0] * (k + len(level)) + [1] * k, nonnegative=k)
    return tuple(best.point[:n]) if best.value > 0 else None


def far_out(program: GeometricProgram, direction: Vector) -> GeometricProgram:
    """The program that remains far out in a direction of `falls_for_ever`; it has the same infimum."""

    moving = np.array([bool(v) for v in direction])
    return GeometricProgram(
        survivors(program.objective, [direction]),
        tuple(survivors(sum_, [direction]) for sum_ in program.constraints),
        np.where(moving, -np.inf, program.low),
        np.where(moving, np.inf, program.high),
    )


def survivors(products: Sequence[Product], directions: Sequence[Vector]) -> tuple[Product, ...]:
    """The products that do not vanish along these directions, one after the other, as they are far out."""
    left = tuple(products)
    for direction in directions:
        left = tuple(p.along(direction) for p in left if max(_dot(r, direction) for r in p.degrees) == 0)
    return left
