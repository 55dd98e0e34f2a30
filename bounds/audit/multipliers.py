"""The multipliers of a linear combination, found by elimination."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import cast

import sympy as sp

from bounds.audit.claim import Relation
from bounds.audit.nonnegative import reduced

MOST_LEFT = 3  # squares that a conclusion may leave out


def eliminated(conclusion: Relation, premises: Sequence[Relation]) -> tuple[sp.Expr, ...] | None:
    r"""Multipliers with which no inner product and no left-hand side is left over: slack = sum_k m_k slack_k + rest.

    Where no combination leaves nothing over, as few squares as possible are left to the rest. A premise without inner
    products gets 0, as a fact about constants, unless it is the conclusion itself.

    Returns:
        One multiplier for each premise, in order; None where these equations determine none.

    Example:
        >>> a, b, x = (sp.Symbol(name, nonnegative=True) for name in ("<a,a>", "<b,b>", "x"))
        >>> eliminated(Relation(a, 3 * x), [Relation(a, 2 * b), Relation(b, x)])
        (1, 2)
    """
    slacks = [sp.expand(p.slack) for p in premises]
    wanted = sp.expand(conclusion.slack)
    terms = sorted(
        (s for s in set().union(wanted.free_symbols, *(s.free_symbols for s in slacks)) if opaque(s)), key=str
    )
    if any(sp.diff(slack, s).has(*terms) for slack in (wanted, *slacks) for s in terms):
        return None
    if not terms and len(slacks) == 1 and reduced(slacks[0] - wanted) == 0:
        return (sp.S.One,)
    speak = [k for k, slack in enumerate(slacks) if slack.free_symbols & set(terms)]
    unknown = [sp.Dummy(f"m{k}") for k in speak]
    rows = {s: sum((m * sp.diff(slacks[k], s) for m, k in zip(unknown, speak, strict=True)), sp.S.Zero)
            - sp.diff(wanted, s) for s in terms}  # fmt: skip
    squares = [s for s in terms if s.is_nonnegative]
    for left in (left for count in range(MOST_LEFT) for left in combinations(squares, count)):
        equations = [row for s, row in rows.items() if s not in left]
        solved = sp.solve(equations, unknown, dict=True) if unknown else [{}] * all(e == 0 for e in equations)
        if len(solved) == 1 and len(solved[0]) == len(unknown):
            found = dict(zip(speak, (reduced(cast(sp.Expr, solved[0][m])) for m in unknown), strict=True))
            return tuple(found.get(k, sp.S.Zero) for k in range(len(slacks)))
    return None


def opaque(symbol: sp.Basic) -> bool:
    """Whether a symbol is an inner product or a left-hand side, so that nothing is known of it but its name."""
    return str(symbol).startswith(("<", "["))
