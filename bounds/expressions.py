"""Typed helpers around sympy; what its functions give back is declared for the type checker in `typings/`."""

from __future__ import annotations

from collections.abc import Mapping
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
    return {str(symbol) for expression in expressions for symbol in expression.free_symbols}


def substituted(expression: sp.Expr, steps: Mapping[Any, sp.Expr]) -> sp.Expr:
    """The expression with these symbols replaced, all at once."""
    return expression.subs(list(steps.items()), simultaneous=True) if steps else expression


def base_and_exponent(power: sp.Pow) -> tuple[sp.Expr, sp.Expr]:
    """Of a power."""
    return power.args
