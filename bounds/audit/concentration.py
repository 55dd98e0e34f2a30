"""Rules for statements with high probability: bounded differences, and all of several events at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting


@dataclass(frozen=True)
class McDiarmid:
    r"""With probability 1 - c, $Z^2\le\big(\sqrt B+\sqrt{PA\ln(1/c)/2}\big)^2$ from $(\mathbb EZ)^2\le B$ and
    $\Delta^2\le A$.

    Z is a function of P independent draws that moves by at most $\Delta$ when one of them is replaced, so that Z
    exceeds its mean by $\Delta\sqrt{P\ln(1/c)/2}$ with probability at most c.
    """

    moves: sp.Symbol  # moves, mean, likely: the symbols of $\Delta$, of the mean and of $Z^2$ on the event
    mean: sp.Symbol
    likely: sp.Symbol
    draws: sp.Expr  # P
    c: sp.Symbol  # the probability of failure
    scale: sp.Expr  # k, taken out of both roots; the conclusion is $k(\sqrt{B/k}+\sqrt{PA\ln(1/c)/(2k)})^2$
    axiom: str = (
        "McDiarmid 1989: a function of P independent draws that moves by at most D when one is replaced exceeds its "
        "mean by D sqrt(P ln(1/c)/2) with probability at most c"
    )
    needs: tuple[str, ...] = ("jointly-independent-rounds",)
    gives: ClassVar[str] = "what moves, by how much, and how often it is drawn"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The squared sum of the roots, times the scale."""
        mean, tail = self._radicands(premises)
        return Relation(self.likely, self.scale * (sp.sqrt(mean) + sp.sqrt(tail * sp.log(1 / self.c))) ** 2)

    def _radicands(self, premises: Relations) -> tuple[sp.Expr, sp.Expr]:
        """What stands below the two roots, the tail's without its logarithm."""
        moves, mean = (p.right for p in premises)
        return sp.cancel(mean / self.scale), sp.cancel(self.draws * moves / (2 * self.scale))

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The premises bound the squared move and the squared mean; the scale is nonnegative."""
        if [p.left for p in premises] != [self.moves**2, self.mean**2] or any(p.op != "<=" for p in premises):
            return ProofFinding(False, "McDiarmid", f"two premises, bounds of {self.moves}^2 and of {self.mean}^2")
        for value in (self.scale, *self._radicands(premises)):
            if not (found := prove(value, facts)).holds:
                return ProofFinding(False, "McDiarmid", f"{value} may be negative: {found.evidence}")
        wanted = self.relation(setting, premises)
        equal = conclusion.left == wanted.left and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "McDiarmid", "an instance of it" if equal else f"the bound is {wanted.right}")


@dataclass(frozen=True)
class AllAtOnce:
    """The union bound: what holds for each of at most K with probability 1 - c/K holds for all with 1 - c."""

    c: sp.Symbol  # the probability of failure
    one: sp.Symbol  # one, every: the symbols of the quantity for one, and of the largest
    every: sp.Symbol
    count: sp.Expr  # K, at least the number there is
    axiom: str = "the union bound"
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "how many there are"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The premise at c/K."""
        return Relation(self.every, premises[0].right.xreplace({self.c: self.c / self.count}))

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """K is at least 1, so that c/K is a probability."""
        if len(premises) != 1 or premises[0].left != self.one or premises[0].op != "<=":
            return ProofFinding(False, "union bound", f"one premise, a bound of {self.one}")
        if not (found := prove(self.count - 1, facts)).holds:
            return ProofFinding(False, "union bound", f"{self.count} may be below 1: {found.evidence}")
        wanted = self.relation(setting, premises)
        equal = conclusion.left == wanted.left and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "union bound", "an instance of it" if equal else f"the bound is {wanted.right}")
