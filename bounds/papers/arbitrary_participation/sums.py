"""Sums of terms, as the special cases and the inequalities between forms need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import sympy as sp

from bounds.papers.arbitrary_participation.results import without
from bounds.result import Result, Term


def of(result: Result, form: str, *names: str) -> tuple[Term, ...]:
    """The terms of a form without those of these names."""
    return without(result.form(form).terms, *names)


def one(expression: sp.Expr | int) -> tuple[Term, ...]:
    """A sum of one term."""
    return (Term("bound", sp.Integer(expression) if isinstance(expression, int) else expression),)


def times(factor: sp.Expr | int, terms: Sequence[Term]) -> tuple[Term, ...]:
    """Every term times a number."""
    return tuple(Term(t.name, factor * t.expression) for t in terms)


def at(terms: Sequence[Term], values: dict[sp.Symbol, sp.Expr]) -> tuple[Term, ...]:
    """The terms with letters replaced."""
    return tuple(Term(t.name, cast(sp.Expr, t.expression.subs(list(values.items()), simultaneous=True))) for t in terms)


def merged(terms: Sequence[Term], gap: str = "noise") -> tuple[Term, ...]:
    """The theorem's terms, summed as the corollaries do: two noises of the drift, and two that balance each other."""
    names = {"initial gap": gap, "update noise": "noise", "local noise": "drift noise"}
    sums: dict[str, sp.Expr] = {}
    for t in terms:
        name = names.get(t.name, t.name)
        sums[name] = sums.get(name, sp.S.Zero) + t.expression
    return tuple(Term(name, total) for name, total in sums.items())
