"""Averages of what is bounded one by one: over the rounds of a run and over clients; and symbols that stand for
something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, never_zero, prove, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.theory.client_reductions import MeanOverClients


@dataclass(frozen=True)
class HarmonicAverage:
    r"""$\frac1T\sum_{t<T}e_t\le\frac1T\big(a+(T-1)g_0+g_1\sum_{t=1}^{T-1}\frac1t\big)$ from $e_0\le a$ and
    $e_t\le g_0+g_1/t$.
    """

    start: sp.Expr  # start, each: e_0 and e_t, as the premises bound them
    each: sp.Expr
    average: sp.Symbol  # the symbol of the average
    round: sp.Symbol  # t
    rounds: sp.Symbol  # T
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "the rounds averaged over"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The bound of a round is a constant and a multiple of 1/t; the sum is taken term by term."""
        t, T = self.round, self.rounds
        if len(premises) != 2 or premises[0].left != self.start or premises[1].left != self.each:
            return ProofFinding(False, "average", f"two premises, bounds of {self.start} and of {self.each}")
        if not (t.is_integer and t.is_positive and T.is_integer and T.is_positive):
            return ProofFinding(False, "average", f"{t} and {T} need not be whole numbers >= 1")
        first, bound = premises[0].right, sp.expand(premises[1].right)
        constant, falling = bound.coeff(t, 0), bound.coeff(t, -1)
        if first.has(t) or not same(bound, constant + falling / t):
            return ProofFinding(False, "average", f"{premises[1]} is no constant and a multiple of 1/{t}")
        index = next(iter({s.variables[0] for s in conclusion.right.atoms(sp.Sum)}), t)
        harmonic = sp.Sum(1 / index, (index, 1, T - 1))
        expected = (first + (T - 1) * constant + falling * harmonic) / T
        equal = conclusion.left == self.average and sp.expand(conclusion.right - expected) == 0
        return ProofFinding(equal, "average", "term by term" if equal else f"the average is at most {expected}")


@dataclass(frozen=True)
class AverageOverClients:
    """A bound of every client's part, averaged: each mean over clients in the conclusion is that of its argument."""

    part: sp.Expr  # what is bounded for every client
    average: sp.Symbol  # the symbol of its mean over clients
    vectors: tuple[sp.Symbol, ...]  # the symbols that differ between clients
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "whose mean over clients it is"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The conclusion is linear in its means, and its other symbols are the same for all clients."""
        if len(premises) != 1 or premises[0].left != self.part or conclusion.left != self.average:
            return ProofFinding(False, "mean over clients", f"one premise, a bound of {self.part} for every client")
        means = {mean: sp.Dummy() for mean in conclusion.right.atoms(MeanOverClients)}
        outside = sp.expand(conclusion.right.doit().xreplace(means))
        if any(outside.has(v) for v in self.vectors):
            return ProofFinding(False, "mean over clients", "outside the means a symbol differs between the clients")
        if any(sp.diff(outside, a, b) != 0 for a in means.values() for b in means.values()):
            return ProofFinding(False, "mean over clients", f"{conclusion.right} is not linear in its means")
        expected = outside.xreplace({dummy: mean.args[0] for mean, dummy in means.items()})
        equal = sp.expand(expected - premises[0].right) == 0 or same(expected, premises[0].right)
        return ProofFinding(equal, "mean over clients", "equal for each client" if equal else f"not {premises[0]}")


@dataclass(frozen=True)
class StandsFor:
    """A symbol of the proof replaced by what it stands for, on the right-hand side.

    Args:
        symbol: of the proof.
        value: what it stands for.
        axiom: why.
        may_vanish: whether the axiom also says what happens where a positive symbol stands for 0, or for a quotient
            whose denominator is 0.
    """

    letter: sp.Symbol
    value: sp.Expr
    axiom: str = ""
    needs: tuple[str, ...] = ()
    may_vanish: bool = False
    equalities: ClassVar[bool] = True
    gives: ClassVar[str] = "what the symbol stands for"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """Substitution on the right-hand side."""
        premise = premises[0]
        return Relation(premise.left, premise.right.xreplace({self.letter: self.value}), premise.op)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """A positive symbol stands for what is positive."""
        if len(premises) != 1 or not self.axiom:
            return ProofFinding(False, "definition", "one premise, and a reason why the symbol stands for that")
        positive = self.value.is_positive or self.may_vanish or _above_zero(self.value, facts)
        if self.letter.is_positive and not positive:
            return ProofFinding(False, "definition", f"{self.letter} is positive, {self.value} may not be")
        expected = self.relation(setting, premises)
        equal = conclusion.left == expected.left and conclusion.op == expected.op
        equal = equal and (conclusion.right == expected.right or same(conclusion.right, expected.right))
        return ProofFinding(equal, "definition", "equal sides" if equal else f"it becomes {expected}")


@dataclass(frozen=True)
class AtStep(StandsFor):
    """A step size replaced by its value, which must be the one that the result prescribes."""

    gives: ClassVar[str] = ""

    @property
    def prescribes(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The step size as the result should prescribe it."""
        return ((self.letter, self.value),)


def _above_zero(value: sp.Expr, facts: Relations) -> bool:
    return prove(value, facts).holds and never_zero(value, facts)
