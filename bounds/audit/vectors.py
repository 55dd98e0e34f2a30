r"""Vectors of a proof as formal combinations of atoms, and their inner products as symbols.

$\langle u,v\rangle$ is bilinear, so that $\|a-\gamma b\|^2$ becomes $\langle a,a\rangle-2\gamma\langle a,b\rangle
+\gamma^2\langle b,b\rangle$, a polynomial whose symbols are the Gram matrix of the atoms. The bracket averages over
whatever the proof says (clients with their weights, local steps, gradient noise), so a vector inequality that holds for
every Gram matrix holds for every average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import sympy as sp

Kind = Literal["point", "gradient", "noise"]


@dataclass(frozen=True)
class Atom:
    """One vector of the proof.

    Args:
        name: how it is written.
        kind: a point, a gradient, or gradient noise.
        time: a point or gradient of time t depends on noise of times < t only; noise of time t is drawn then.
        at: for a gradient, the name of the point where it is taken.
        of: for a gradient, "F_n" or "f".
        per_client: whether it differs between clients (else its mean over the clients is itself).
        mean: the name of its mean over the bracket's clients (and, in a window, rounds and local steps); "0" if that
            is 0.
        meaning: in words.
        still: whether it stays the same from round to round and step to step of a window, weights included.
    """

    name: str
    kind: Kind
    time: int
    meaning: str
    at: str = ""
    of: str = "F_n"
    per_client: bool = True
    mean: str = ""
    still: bool = False


@dataclass(frozen=True)
class Vec:
    """A linear combination of atoms, by name.

    Example:
        >>> a, b, gamma = Vec.atom("a"), Vec.atom("b"), sp.Symbol("gamma", positive=True)
        >>> square(a - gamma * b)
        <a,a> - 2*<a,b>*gamma + <b,b>*gamma**2
    """

    coefficients: tuple[tuple[str, sp.Expr], ...]

    @staticmethod
    def atom(name: str) -> Vec:
        """The atom itself."""
        return Vec(((name, sp.S.One),))

    @staticmethod
    def of(coefficients: Mapping[str, sp.Expr]) -> Vec:
        """The combination without its zeros, in alphabetical order."""
        kept = {name: sp.cancel(c) for name, c in coefficients.items()}
        return Vec(tuple(sorted((name, c) for name, c in kept.items() if c != 0)))

    def __add__(self, other: Vec) -> Vec:
        total = dict(self.coefficients)
        for name, c in other.coefficients:
            total[name] = total.get(name, sp.S.Zero) + c
        return Vec.of(total)

    def __sub__(self, other: Vec) -> Vec:
        return self + (-1) * other

    def __rmul__(self, factor: sp.Expr | int) -> Vec:
        return Vec.of({name: factor * c for name, c in self.coefficients})

    @property
    def atoms(self) -> tuple[str, ...]:
        """The names that occur."""
        return tuple(name for name, _ in self.coefficients)

    def __str__(self) -> str:
        parts = [name if c == 1 else f"-{name}" if c == -1 else f"({c})*{name}" for name, c in self.coefficients]
        return " + ".join(parts).replace("+ -", "- ") or "0"


def product_symbol(a: str, b: str) -> sp.Symbol:
    """The symbol of the inner product of two atoms; a square is nonnegative."""
    first, second = sorted((a, b))
    return sp.Symbol(f"<{first},{second}>", nonnegative=True) if a == b else sp.Symbol(f"<{first},{second}>", real=True)


def inner(u: Vec, v: Vec) -> sp.Expr:
    """The inner product as a polynomial in the atoms' Gram matrix."""
    return sp.expand(sp.Add(*(c * k * product_symbol(a, b) for a, c in u.coefficients for b, k in v.coefficients)))


def square(u: Vec) -> sp.Expr:
    """The squared norm."""
    return inner(u, u)


def gram_symbols(expression: sp.Expr) -> dict[sp.Symbol, tuple[str, str]]:
    """Every Gram symbol of an expression with the atoms it pairs."""
    return {symbol: pair for symbol in expression.free_symbols if (pair := factors_of_product(symbol.name))}


def factors_of_product(name: str) -> tuple[str, str] | None:
    """The atoms whose inner product is the symbol of this name; None where it is no inner product.

    Example:
        >>> factors_of_product(product_symbol("b", "a").name), factors_of_product("gamma")
        (('a', 'b'), None)
    """
    if not (name.startswith("<") and name.endswith(">")):
        return None
    first, _, second = name[1:-1].partition(",")
    return first, second


def opaque(symbol: sp.Symbol) -> bool:
    """Whether a symbol is an inner product or a left-hand side, so that nothing is known of it but its name."""
    return symbol.name.startswith(("<", "["))
