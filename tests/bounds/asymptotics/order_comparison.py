r"""Whether one expression is of the order of another, decided exactly.

"A = O(B) whenever T >= N^5 I" is a statement about linear forms on a cone of exponents, which linear programming over
fractions proves (by a weighted geometric mean) or refutes (by exponents of a family of instances on which A/B is
unbounded).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import Vector, maximize
from fedbounds.bounds.asymptotics.orders import _Order, _Unknown, exponent
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.theory.expressions import substitute
from fedbounds.bounds.theory.result import Condition, Form
from fedbounds.bounds.theory.symbols import Notation

Sides = Sequence[Sequence[Vector]]
Assumed = Condition | tuple[sp.Expr, str, sp.Expr]


@dataclass(frozen=True)
class PowerComparison:
    """Products, by their exponents: left <= product of right^weight times product of assumption^-power."""

    left: Mapping[Vector, Fraction]  # weights of the left-hand side's branches; they add up to 1
    right: Mapping[Vector, Fraction]  # weights of the right-hand side's parts; they add up to 1
    assumptions: Mapping[str, Fraction]  # the power with which each assumption (a quotient that is at least 1) is used


@dataclass(frozen=True)
class Proved:
    """The claim holds for every instance.

    Attributes:
        proof: one comparison for each part of the left-hand side (and each choice of branches of minima).
    """

    proof: tuple[PowerComparison, ...]
    answer: ClassVar[str] = "proved"


@dataclass(frozen=True)
class Refuted:
    """The claim is false: on this family of instances the ratio of the two sides is unbounded."""

    model: Mapping[str, Fraction]  # symbol to exponent: T = x^5, N = x, ..
    ratio: Fraction  # the exponent of x with which left/right grows
    answer: ClassVar[str] = "false"

    def __str__(self) -> str:
        family = ", ".join(f"{name} = x^{power}" for name, power in self.model.items() if power)
        return f"false: with {family or 'constants'} the ratio grows like x^{self.ratio}"


@dataclass(frozen=True)
class CouldNotTell:
    """Neither, because."""

    why: str
    answer: ClassVar[str] = "could not tell"


def order_at_most(
    left: sp.Expr,
    right: sp.Expr,
    when: Iterable[Assumed] = (),
    *,
    varying: Iterable[sp.Symbol],
    notation: Notation | None = None,
) -> Proved | Refuted | CouldNotTell:
    r"""Whether left = O(right), uniformly over all values of the varying symbols that meet the assumptions."""
    symbols = tuple(sorted(set(varying), key=lambda s: s.name))
    try:
        rows = _cone(symbols, when, notation)
        order = _Order(symbols, [row for _, row in rows])
        above, below = order.growth(left), order.growth(right)
    except _Unknown as unknown:
        return CouldNotTell(str(unknown))
    rows = [(text, order.pad(row)) for text, row in rows]
    above, below = ([[order.pad(v) for v in least] for least in side] for side in (above, below))
    if not below and above:
        return CouldNotTell("the right-hand side is zero")
    proofs: list[PowerComparison] = []
    for least in above:
        for selection in product(*below):
            found = _compare(least, selection, rows, len(symbols) + len(order.atoms))
            if isinstance(found, PowerComparison):
                proofs.append(found)
            elif any(found[len(symbols) :]):
                return CouldNotTell(f"it depends on how {', '.join(str(a) for a in order.atoms)} grows")
            else:
                return _refutation(symbols, found, above, below)
    return Proved(tuple(proofs))


def _compare(
    least: Sequence[Vector], selection: Sequence[Vector], rows: Sequence[tuple[str, Vector]], n: int
) -> PowerComparison | Vector:
    """Exponents v in the cone with a.v > b.v for all a on the left and b on the right; or the proof that none exist."""
    pairs = [(a, b) for a in least for b in selection]
    table = [[*(y - x for x, y in zip(a, b, strict=True)), 1] for a, b in pairs]  # (b - a).v + t <= 0
    table += [[*(-x for x in row), 0] for _, row in rows]
    table += [[*[0] * n, 1]]
    best = maximize([0] * n + [1], table, [0] * (len(table) - 1) + [1])
    if best.value > 0:
        return best.point[:n]
    left: dict[Vector, Fraction] = {}
    right: dict[Vector, Fraction] = {}
    for (a, b), weight in zip(pairs, best.multipliers, strict=False):
        if weight:
            left[a] = left.get(a, Fraction(0)) + weight
            right[b] = right.get(b, Fraction(0)) + weight
    used: dict[str, Fraction] = {}
    for (text, _), power in zip(rows, best.multipliers[len(pairs) :], strict=False):
        if power:
            used[text] = used.get(text, Fraction(0)) + power
    return PowerComparison(left, right, used)


def _refutation(symbols: Sequence[sp.Symbol], v: Vector, above: Sides, below: Sides) -> Refuted:
    scale = lcm(*(x.denominator for x in v))
    v = tuple(x * scale for x in v)

    def size(side: Sides) -> Fraction:
        return max(min(_dot(a, v) for a in least) for least in side)

    model = {s.name: x for s, x in zip(symbols, v, strict=False)}
    return Refuted(model, size(above) - size(below))


def _dot(a: Vector, v: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, v, strict=False)), Fraction(0))


def _cone(symbols: Sequence[sp.Symbol], when: Iterable[Assumed], notation: Notation | None) -> list[tuple[str, Vector]]:
    """What the assumptions and the domains say about the exponents: row.v >= 0, each with its text."""
    rows: list[tuple[str, Vector]] = []
    plain = _Order(symbols, [])
    for assumed in when:
        left, op, right = assumed if isinstance(assumed, tuple) else (assumed.left, assumed.op, assumed.right)
        if op not in ("<=", "<", ">=", ">", "=="):
            raise FedboundsError(f"an assumption compares with <=, >= or ==, not {op!r}")
        sides = [plain.growth(sp.sympify(side, strict=True)) for side in (left, right)]
        if plain.atoms:
            raise _Unknown(f"the assumptions depend on how {plain.atoms[0]} grows")
        for larger, smaller in {"<": [(1, 0)], ">": [(0, 1)], "=": [(0, 1), (1, 0)]}[op[0]]:
            if len(sides[larger]) != 1 or any(len(least) != 1 for least in sides[smaller]):
                raise _Unknown(f"{left} {op} {right} is not a comparison of products")
            for high in sides[larger][0]:
                for (low,) in sides[smaller]:
                    rows.append((f"{left} {op} {right}", tuple(x - y for x, y in zip(high, low, strict=True))))
    for i, symbol in enumerate(symbols):
        quantity = None if notation is None else notation.get(symbol.name)
        unit = tuple(Fraction(int(i == j)) for j in range(len(symbols)))
        if quantity is not None and quantity.domain.low >= 1:
            rows.append((f"{symbol} >= 1", unit))
        if quantity is not None and quantity.domain.high <= 1:
            rows.append((f"{symbol} <= 1", tuple(-x for x in unit)))
    return rows


def term_exponents(
    form: Form, symbol: sp.Symbol, steps: Mapping[sp.Symbol, sp.Expr] | None = None
) -> dict[str, Fraction]:
    """For each term that is not zero the power of the symbol with which it grows."""
    found = {t.name: exponent(substitute(t.expression, steps or {}), symbol) for t in form.terms}
    return {name: power for name, power in found.items() if power is not None}


def dominant_terms(form: Form, symbol: sp.Symbol, steps: Mapping[sp.Symbol, sp.Expr] | None = None) -> tuple[str, ...]:
    """The terms that fall slowest (or grow fastest) as the symbol goes to infinity."""
    powers = term_exponents(form, symbol, steps)
    return tuple(name for name, power in powers.items() if power == max(powers.values()))


def regime(
    form: Form,
    term: str,
    when: Iterable[Assumed] = (),
    *,
    varying: Iterable[sp.Symbol],
    notation: Notation | None = None,
) -> dict[str, Proved | Refuted | CouldNotTell]:
    """For every other term whether it is O(this term) under the assumptions: all proved means that it rules there."""
    expressions = {t.name: t.expression for t in form.terms}
    if term not in expressions:
        raise unknown_name(f"term of the form {form.name}", term, expressions)
    when, varying = tuple(when), tuple(varying)
    return {
        name: order_at_most(e, expressions[term], when, varying=varying, notation=notation)
        for name, e in expressions.items()
        if name != term
    }
