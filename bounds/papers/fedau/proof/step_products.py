"""Two step sizes prescribed so that their product is the least of several values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.nonnegative import ProofFinding, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting


@dataclass(frozen=True)
class PrescribedProduct:
    """What a product a b that is a minimum satisfies, where a is one too and b is the quotient of the two.

    Args:
        first, second: a and b.
        least: the values that a is the least of.
        branches: the values that a b is the least of.
        which: the branch it is compared with; None for the inverse, which is at most the sum of theirs; "largest" for
            a multiple of the inverse, which is that of the largest.
        multiple: of the inverse.
    """

    first: sp.Symbol
    second: sp.Symbol
    least: tuple[sp.Expr, ...]
    branches: tuple[sp.Expr, ...]
    which: int | Literal["largest"] | None
    multiple: sp.Expr = sp.S.One
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @cached_property
    def prescribes(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The second number as the result should prescribe it."""
        return ((self.second, sp.Min(*self.branches) / sp.Min(*self.least)),)

    def relation(self, setting: ProofSetting, premises: Sequence[Relation]) -> Relation:
        """At most this branch, or the inverse at most their sum or their largest."""
        product = self.first * self.second
        if self.which == "largest":
            return Relation(self.multiple / product, sp.Max(*(self.multiple / b for b in self.branches)))
        if self.which is None:
            return Relation(1 / product, sp.Add(*(1 / b for b in self.branches)))
        return Relation(product, self.branches[self.which])

    def check(
        self, conclusion: Relation, premises: Sequence[Relation], facts: Sequence[Relation], setting: ProofSetting
    ) -> ProofFinding:
        """The relation is one of these."""
        if self.which == "largest" and not self.multiple.is_nonnegative:
            return ProofFinding(False, "minimum", f"{self.multiple} may be negative")
        wanted = self.relation(setting, premises)
        equal = conclusion.op == "<=" and same(conclusion.left, wanted.left) and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "minimum", "an instance of it" if equal else f"the minimum gives {wanted}")
