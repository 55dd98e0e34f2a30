"""Expressions as text that depends on nothing but what they are: what the ledger's hashes are made of.

sympy's own representation shows a symbol's assumptions as they were first spelled anywhere in the process, so that it
depends on which modules were imported before.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp
from sympy.printing.repr import ReprPrinter


@lru_cache(maxsize=4096)
def _assumptions_text(symbol: sp.Symbol) -> str:
    """All that follows from a symbol's assumptions, in alphabetical order."""
    return ", ".join(name if holds else f"not {name}" for name, holds in sorted(symbol.assumptions0.items()))


class _Writer(ReprPrinter):
    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return f"{type(expr).__name__}({expr.name!r}: {_assumptions_text(expr)})"

    _print_Dummy = _print_Symbol


@lru_cache(maxsize=2**14)  # a form is written for its claim, for its units and for every other form's proof
def canonical_text(expression: sp.Basic | None) -> str:
    """The whole tree of an expression, every symbol with what is known of it.

    Example:
        >>> prime, whole = sp.Symbol("P", prime=True), sp.Symbol("P", prime=True, integer=True)
        >>> canonical_text(prime - 1) == canonical_text(whole - 1)
        True
        >>> canonical_text(sp.Symbol("x", positive=True)) == canonical_text(sp.Symbol("x", nonnegative=True))
        False
    """
    return _Writer().doprint(expression)
