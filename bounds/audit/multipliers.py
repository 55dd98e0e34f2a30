"""The multipliers of a linear combination, found by elimination."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import cast

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.nonnegative import reduce_expression
from fedbounds.bounds.audit.vectors import opaque

MOST_LEFT = 3  # squares that a conclusion may leave out


def eliminate(conclusion: Relation, premises: Sequence[Relation]) -> tuple[sp.Expr, ...] | None:
    r"""Multipliers with which no inner product and no left-hand side is left over: slack = sum_k m_k slack_k + rest.

    What no premise speaks of is left to the rest; where that is not enough, as few squares as possible are. A premise
    without inner products gets 0, as a fact about constants, unless it is the conclusion itself.

    Returns:
        One multiplier for each premise, in order; None where these equations determine none.
    """
    found = [coefficients(relation.slack) for relation in (conclusion, *premises)]
    if None in found:
        return None
    wanted, *slacks = cast(list[dict[sp.Symbol, sp.Expr]], found)
    speak = [slack for slack in slacks if slack]
    if not speak:
        same = len(premises) == 1 and reduce_expression(premises[0].slack - conclusion.slack) == 0
        return None if wanted else (sp.S.One,) if same else (sp.S.Zero,) * len(premises)
    unknown = [sp.Dummy(f"m{k}") for k in range(len(speak))]
    terms = sorted({s for slack in speak for s in slack}, key=str)
    rows = {s: sum((m * slack.get(s, 0) for m, slack in zip(unknown, speak, strict=True)), -wanted.get(s, sp.S.Zero))
            for s in terms}  # fmt: skip
    squares = [s for s in terms if s.is_nonnegative]
    for left in (left for count in range(MOST_LEFT) for left in combinations(squares, count)):
        solved = solve_unique([row for s, row in rows.items() if s not in left], unknown)
        if solved is not None:
            values = iter(solved)
            return tuple(next(values) if slack else sp.S.Zero for slack in slacks)
    return None


def solve_unique(equations: Sequence[sp.Expr], unknown: Sequence[sp.Symbol]) -> tuple[sp.Expr, ...] | None:
    """The only solution of linear equations; None where there is none, or more than one."""
    solutions = sp.linsolve(equations, *unknown) if equations else ()
    for solution in cast(Iterable[sp.Tuple], solutions):
        if not solution.free_symbols & set(unknown):
            return tuple(reduce_expression(value) for value in solution)
    return None


def coefficients(slack: sp.Expr) -> dict[sp.Symbol, sp.Expr] | None:
    """What stands before each inner product and left-hand side; None where one of them does not enter linearly."""
    found: dict[sp.Symbol, sp.Expr] = {}
    for summand in sp.Add.make_args(sp.expand(slack)):
        terms = [s for s in summand.free_symbols if opaque(s)]
        if terms:
            factor, term = summand.as_independent(*terms, as_Add=False)
            if not isinstance(term, sp.Symbol):
                return None
            found[term] = found.get(term, sp.S.Zero) + factor
    return found
