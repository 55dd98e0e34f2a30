"""Typed helpers around sympy; what its functions give back is declared for the type checker in `typings/`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

import sympy as sp


def parts(expression: sp.Expr) -> tuple[sp.Expr, ...]:
    """The arguments of an expression, themselves expressions."""
    return cast("tuple[sp.Expr, ...]", expression.args)


def symbol_names(*expressions: sp.Expr) -> set[str]:
    """The names of the free symbols.

    Example:
        >>> x, y = sp.symbols("x y")
        >>> sorted(symbol_names(x + 1, x * y))
        ['x', 'y']
    """
    return set[str]().union(*map(_names, expressions))


@lru_cache(maxsize=2**16)
def _names(expression: sp.Expr) -> frozenset[str]:
    return frozenset(str(symbol) for symbol in expression.free_symbols)


def substitute(expression: sp.Expr, steps: Mapping[Any, sp.Expr]) -> sp.Expr:
    """The expression with these symbols replaced, all at once."""
    return _substitute(expression, tuple(steps.items())) if steps else expression


@lru_cache(maxsize=2**14)
def _substitute(expression: sp.Expr, steps: tuple[tuple[Any, sp.Expr], ...]) -> sp.Expr:
    return expression.xreplace(dict(steps))


def rename_symbols(expression: sp.Expr, names: Mapping[Any, sp.Expr]) -> sp.Expr:
    """The expression with symbols for parts of it, or for other symbols, as `xreplace` has it but for extrema.

    sympy compares the arguments of a maximum whenever it is rebuilt, which takes longer than all else and finds nothing
    new where a symbol stands for what was compared before.

    Example:
        >>> x, y, z = sp.symbols("x y z", positive=True)
        >>> rename_symbols(sp.Max(x + y, 2) / z, {x + y: z})
        Max(2, z)/z
    """
    if expression in names:
        return names[expression]
    before = parts(expression)
    after = [rename_symbols(part, names) for part in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return expression
    return remade(expression, after)


def remade(like: sp.Expr, of: Iterable[sp.Expr]) -> sp.Expr:
    """Another of its kind; a maximum or minimum does not compare its parts."""
    return like.func(*of, evaluate=False) if isinstance(like, sp.Max | sp.Min) else like.func(*of)


def largest(*values: sp.Expr | int) -> sp.Expr:
    """The maximum as it stands: sympy's own comparison of such expressions takes seconds, and finds nothing."""
    return sp.Max(*values, evaluate=False)


def least(*values: sp.Expr | int) -> sp.Expr:
    """The minimum as it stands."""
    return sp.Min(*values, evaluate=False)


def base_and_exponent(power: sp.Pow) -> tuple[sp.Expr, sp.Expr]:
    """Of a power."""
    return power.args
