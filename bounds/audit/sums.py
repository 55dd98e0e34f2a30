"""Sums of terms, as the special cases and the inequalities between forms of any paper need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from fedbounds.bounds.theory.result import Result, Term


def terms_of(result: Result, form: str, *, without: str = "") -> tuple[Term, ...]:
    """The terms of a form, without the one of this name."""
    return tuple(term for term in result.form(form).terms if term.name != without)


def one(expression: sp.Expr | int) -> tuple[Term, ...]:
    """A sum of one term."""
    return (Term("bound", sp.Integer(expression) if isinstance(expression, int) else expression),)


def times(factor: sp.Expr | int, terms: Sequence[Term]) -> tuple[Term, ...]:
    """Every term times a number."""
    return tuple(Term(t.name, factor * t.expression) for t in terms)


def substitute_terms(terms: Sequence[Term], values: Mapping[sp.Expr, sp.Expr]) -> tuple[Term, ...]:
    """The terms with symbols replaced."""
    return tuple(Term(t.name, t.expression.xreplace(dict(values))) for t in terms)
