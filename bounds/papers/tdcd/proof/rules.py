"""Rules for the drift in a round of local steps on one batch, and for the sum over the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.nonnegative import ProofFinding, same, says
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Telescope, varying_products
from fedbounds.bounds.papers.tdcd.drift import DriftGrowth
from fedbounds.bounds.papers.tdcd.proof.recursion_rules import unfit


@dataclass(frozen=True)
class SummedGrowth:
    r"""$\sum_{s<n}u_s\le\sum_{s<n}((1+x)^s-1)^2\,b$ from $u_0=0$ and, for every $\rho>0$,
    $u_{s+1}\le\nu\big(\frac{1+x}\rho u_s+xb\big)$ with $\nu=(1+x)\rho+x$.

    By induction $u_s\le\rho_s^2b$ with $\rho_s=(1+x)^s-1$: the choice $\rho=\rho_s$ gives $\nu=\rho_{s+1}$; in the
    first step, where $u_0=0$, let $\rho\to0$. The premises are the start and the recursion.
    """

    now: sp.Expr  # the sequence at s and at s + 1, as they stand in the premises
    after: sp.Expr
    free: sp.Symbol  # rho
    rate: sp.Expr  # x
    level: sp.Expr  # b
    steps: sp.Expr  # n
    total: sp.Symbol  # the symbol of the sum
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "the number of steps"

    def relation(self, setting: ProofSetting, premises: Sequence[Relation]) -> Relation:
        """The growth, summed."""
        return Relation(self.total, DriftGrowth(self.rate, self.steps) * self.level)

    def recursion(self) -> sp.Expr:
        """What bounds the next value."""
        grown = (1 + self.rate) * self.free + self.rate
        return grown * ((1 + self.rate) / self.free * self.now + self.rate * self.level)

    def check(
        self, conclusion: Relation, premises: Sequence[Relation], facts: Sequence[Relation], setting: ProofSetting
    ) -> ProofFinding:
        """The recursion is that one, and nothing in it changes with s but the sequence."""
        method = "summed growth"
        if why := unfit(self.now, self.after, premises):
            return ProofFinding(False, method, why)
        if not same(premises[1].right, self.recursion()):
            return ProofFinding(False, method, f"the recursion must be {self.recursion()}")
        if changing := varying_products(self.rate + self.level, setting):
            return ProofFinding(False, method, f"{', '.join(map(str, changing))} changes between the steps")
        if (self.rate + self.level).has(self.free) or not (self.rate.is_nonnegative and self.level.is_nonnegative):
            return ProofFinding(
                False, method, f"{self.rate} or {self.level} may be negative, or depends on {self.free}"
            )
        wanted = self.relation(setting, premises)
        equal = says(conclusion, wanted)
        return ProofFinding(equal, method, "by induction" if equal else f"the sum is at most {wanted.right}")


@dataclass(frozen=True)
class Realized(Telescope):
    """A telescope whose gap is by definition what the objective falls by, so that it need not be bounded below."""

    below: str = "the gap of the run"
    axiom: str = "the decreases of the rounds add up to what the objective falls by in the run, at most Delta"

    @property
    def needs(self) -> tuple[str, ...]:
        """Nothing."""
        return ()
