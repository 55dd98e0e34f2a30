"""Facts about constants as a substitution: every symbol by nonnegative slack variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from fedbounds.bounds.audit.quotients import normal


def domain_facts(symbols: Iterable[sp.Symbol]) -> list[sp.Expr]:
    """That whole numbers with a positive domain are at least 1."""
    return [s - 1 for s in symbols if s.is_integer and s.is_positive]


def slack_substitution(facts: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    """Every symbol by nonnegative slack variables, where the facts can be solved one after the other.

    A fact a - b >= 0 whose two sides are monomials after earlier substitutions is solved for one of its symbols: from
    above as limit/(1 + slack), from below as limit*(1 + slack) or limit + slack. Only facts in nonnegative symbols,
    whose denominators have a known sign, are solved; the boundary, where a symbol is zero, follows by continuity.
    """
    slacks = slacks_of(facts, symbols)
    return dict(slacks[-1].values) if slacks else {}


@dataclass(frozen=True)
class Slack:
    """A nonnegative variable for how far a fact is from equality."""

    symbol: sp.Symbol  # it
    fact: sp.Expr  # what is not negative
    is_: sp.Expr  # the slack in the symbols
    values: Mapping[sp.Symbol, sp.Expr]  # the symbols by slacks, this one too


def slacks_of(facts: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]) -> tuple[Slack, ...]:
    """The slacks by which `slack_substitution` solves, in its order."""
    return _solved(tuple(facts), tuple(symbols))


@lru_cache(maxsize=4096)
def _solved(facts: tuple[sp.Expr, ...], symbols: tuple[sp.Symbol, ...]) -> tuple[Slack, ...]:
    slacks: list[Slack] = []
    values: dict[sp.Symbol, sp.Expr] = {}
    pending = [*facts, *domain_facts(symbols)]
    for fact in sorted(pending, key=lambda e: (len(e.free_symbols), str(e))):
        sides = _sides(fact)
        if sides is None:
            continue
        positive, negative = (side.xreplace(values) for side in sides)
        free = positive.free_symbols | negative.free_symbols
        for symbol in sorted(free, key=lambda s: (s in values, _order(s))):
            if symbol in values or symbol.name.startswith("slack") or not symbol.is_nonnegative:
                continue
            up, down = _degree(positive, symbol), _degree(negative, symbol)
            if up is None or down is None or (up == 0) == (down == 0):
                continue
            divisor = negative / symbol**down if down else positive / symbol**up
            if not divisor.is_positive:  # a symbol that may be zero is not canceled
                continue
            slack = sp.Symbol(f"slack{len(slacks)}", nonnegative=True)
            if down:  # positive >= c symbol^k: a bound from above
                limit = _root(positive / divisor, down)
                value, is_ = limit / (1 + slack), limit / symbol - 1
            else:
                limit = _root(negative / divisor, up)
                value, is_ = (
                    (limit + slack, symbol - limit) if limit.is_number else (limit * (1 + slack), symbol / limit - 1)
                )
            if any(not p.exp.is_integer for p in value.atoms(sp.Pow)):
                continue
            values = {s: v.xreplace({symbol: value}) for s, v in values.items()} | {symbol: value}
            slacks.append(Slack(slack, fact, is_.xreplace({s.symbol: s.is_ for s in slacks}), values))
            break
    return tuple(slacks)


def _root(value: sp.Expr, degree: int) -> sp.Expr:
    return value if degree == 1 else sp.powdenest(value ** sp.Rational(1, degree), force=True)


@lru_cache(maxsize=4096)
def _sides(fact: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """a and b of a fact a >= b without negative terms or denominators; None where a symbol or a denominator has no
    sign."""
    above, below = normal(fact)
    if not (below.is_nonnegative or below.is_nonpositive) or not all(s.is_nonnegative for s in above.free_symbols):
        return None
    return _two_sides(above if below.is_nonnegative else sp.expand(-above))


def _order(symbol: sp.Symbol) -> tuple[int, str]:
    """Step sizes and T are solved for before L, I, P, which occur in the limits."""
    first = ("eta", "gamma", "T", "rho")
    return (first.index(symbol.name) if symbol.name in first else len(first), symbol.name)


def _two_sides(polynomial: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    terms = sp.Add.make_args(polynomial)
    negative = [t for t in terms if t.could_extract_minus_sign()]
    positive = [t for t in terms if not t.could_extract_minus_sign()]
    return sp.factor(sp.Add(*positive)), sp.factor(-sp.Add(*negative))


def _degree(side: sp.Expr, symbol: sp.Symbol) -> int | None:
    """The power of the symbol if the side is a monomial in it, else None."""
    if not side.has(symbol):
        return 0
    coefficient, exponent = side.as_coeff_exponent(symbol)
    return int(exponent) if exponent.is_Integer and exponent > 0 and not coefficient.has(symbol) else None
