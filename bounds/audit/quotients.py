"""Rational expressions as quotients of two integer polynomials, in flint's arithmetic, which sympy's cannot match."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import flint
import sympy as sp

from fedbounds.bounds.theory.named_numbers import NamedNumber


class Quotient(NamedTuple):
    """Two integer polynomials in the same symbols."""

    # the symbols and named numbers, in the order of the polynomials' generators
    symbols: tuple[sp.Symbol | NamedNumber, ...]
    above: flint.fmpz_mpoly  # above, below: numerator and denominator
    below: flint.fmpz_mpoly

    def written(self, polynomial: flint.fmpz_mpoly) -> sp.Expr:
        """A polynomial in these symbols as a sum of monomials."""
        return sp.Add(
            *(
                sp.Mul(sp.Integer(int(c)), *(s**k for s, k in zip(self.symbols, powers, strict=False) if k))
                for powers, c in polynomial.terms()
            )
        )


@lru_cache(maxsize=4096)
def quotient(expression: sp.Expr) -> Quotient:
    """The expression over one denominator, common factors of the two left as they are."""
    symbols = tuple(sorted(expression.free_symbols | expression.atoms(NamedNumber), key=str))
    context = flint.fmpz_mpoly_ctx.get([f"x{k}" for k in range(max(1, len(symbols)))], flint.Ordering.lex)
    above, below = _pair(expression, dict(zip(symbols, context.gens(), strict=False)), context.constant(1))
    return Quotient(symbols, above, below)


@lru_cache(maxsize=4096)
def cancel(expression: sp.Expr) -> Quotient:
    """The expression over one denominator in lowest terms."""
    symbols, above, below = quotient(expression)
    common = above.gcd(below)
    return Quotient(symbols, above // common, below // common)


Pair = tuple[flint.fmpz_mpoly, flint.fmpz_mpoly]


def _pair(e: sp.Expr, generators: Mapping[sp.Expr, flint.fmpz_mpoly], one: flint.fmpz_mpoly) -> Pair:
    if isinstance(e, sp.Symbol | NamedNumber):
        return generators[e], one
    if isinstance(e, sp.Rational):
        return one * int(e.p), one * int(e.q)
    if isinstance(e, sp.Add):
        above, below = _pair(e.args[0], generators, one)
        for a in e.args[1:]:
            n, d = _pair(a, generators, one)
            if d == below:
                above = above + n
            else:
                common = below.gcd(d)
                rest = d // common
                above, below = above * rest + n * (below // common), below * rest
        return above, below
    if isinstance(e, sp.Mul):
        above, below = one, one
        for a in e.args:
            n, d = _pair(a, generators, one)
            above, below = above * n, below * d
        return above, below
    if isinstance(e, sp.Pow) and e.exp.is_Integer:
        n, d = _pair(e.base, generators, one)
        k = abs(int(e.exp))
        if e.exp > 0:
            return n**k, d**k
        if n == 0:
            raise sp.PolynomialError(f"{e} divides by zero")
        return d**k, n**k
    raise sp.PolynomialError(f"{e} is not rational")


def normal(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator without common factors, written out; of any expression."""
    try:
        found = cancel(expression)
    except sp.PolynomialError:
        above, below = sp.fraction(sp.cancel(sp.together(expression)))
        return sp.expand(above), sp.expand(below)
    return found.written(found.above), found.written(found.below)
