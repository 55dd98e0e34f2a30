"""Sums of the theorem's terms as the corollaries have them."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from fedbounds.bounds.theory.result import Term


def merged(terms: Sequence[Term], gap: str = "noise") -> tuple[Term, ...]:
    """The theorem's terms, summed as the corollaries do: two noises of the drift, and two that balance each other."""
    names = {"initial gap": gap, "update noise": "noise", "local noise": "drift noise"}
    sums: dict[str, sp.Expr] = {}
    for t in terms:
        name = names.get(t.name, t.name)
        sums[name] = sums.get(name, sp.S.Zero) + t.expression
    return tuple(Term(name, total) for name, total in sums.items())
