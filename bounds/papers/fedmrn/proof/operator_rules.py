"""Rules for unbiased operators, a round of local steps, and means over them; vectors' meanings come from the atoms."""

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.axioms import Schema, Unfit
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove, same, says
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import varying_products
from fedbounds.bounds.audit.vectors import Vec, gram_symbols, inner, square


@dataclass(frozen=True)
class Unbiased(Schema):
    r"""$\mathbb E\langle\hat u-u,c\rangle=0$ for c that is known before the last randomness of $\hat u$ is drawn."""

    drawn: str  # what is random
    mean: str  # its mean given all that was known before
    known: Vec  # a combination of such vectors
    axiom: str  # of what it is the mean
    needs: tuple[str, ...]  # the assumptions by which it is
    given: tuple[Relation, ...] = ()  # what premises or conditions must say

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """What is known comes from the atoms."""
        drawn, mean = setting.atoms[self.drawn], setting.atoms[self.mean]
        if (drawn.kind, mean.kind) != ("point", "point") or drawn.per_client != mean.per_client:
            raise Unfit(f"{self.mean} is not the mean of {self.drawn}")
        late = [name for name in (*self.known.atoms, self.mean) if setting.atoms[name].time >= drawn.time]
        if late:
            raise Unfit(f"{', '.join(late)} is not known before {self.drawn} is drawn")
        return Relation(inner(Vec.atom(self.drawn) - Vec.atom(self.mean), self.known), sp.S.Zero, "==")


@dataclass(frozen=True)
class Walk(Schema):
    r"""$\|\sum_{i<m}\eta_ih_i\|^2\le m^2\eta^2C$ where the premise shows $\|h\|^2\le C$ for every step."""

    step: str  # h
    change: Vec  # what the steps add up to: a model less one that is still, where the round started
    steps: sp.Expr  # m, at most so many
    size: sp.Expr  # eta, the largest step size
    axiom: str = "Cauchy-Schwarz: the square of a sum is at most the number of summands times the sum of the squares"
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "the number of steps"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise."""
        if len(premises) != 1 or premises[0].op != "<=" or not same(premises[0].left, square(Vec.atom(self.step))):
            raise Unfit(f"the premise does not bound |{self.step}|^2")
        starts = [name for name, coefficient in self.change.coefficients if coefficient == -1]
        if len(self.change.atoms) != 2 or len(starts) != 1 or not setting.atoms[starts[0]].still:
            raise Unfit(f"{self.change} is not a model less one that stays where it is")
        if changing := varying_products(premises[0].right, setting):
            raise Unfit(f"{', '.join(map(str, changing))} differs between the steps")
        return Relation(square(self.change), self.steps**2 * self.size**2 * premises[0].right)


@dataclass(frozen=True)
class EveryRound:
    """The mean over T iterations of what is 0 but at the end of a round of S: at most its bound there over S."""

    each: sp.Symbol  # what the premise bounds at the end of a round
    mean: sp.Symbol  # the symbol of its mean over the iterations
    steps: sp.Expr  # S
    axiom: str = "T iterations hold at most T/S synchronizations, and between them nothing is masked or drawn"
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "how many iterations synchronize"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise."""
        return Relation(self.mean, premises[0].right / self.steps)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The bound is the same in every round, and not negative."""
        if len(premises) != 1 or premises[0].op != "<=" or premises[0].left != self.each:
            return ProofFinding(False, "mean over iterations", f"one premise, a bound of {self.each}")
        if changing := varying_products(premises[0].right, setting):
            return ProofFinding(
                False, "mean over iterations", f"{', '.join(map(str, changing))} differs between rounds"
            )
        found = prove(premises[0].right, facts)
        if not found.holds:
            return found
        wanted = self.relation(setting, premises)
        equal = says(conclusion, wanted)
        return ProofFinding(
            equal, "mean over iterations", "once in S" if equal else f"the mean is at most {wanted.right}"
        )


@dataclass(frozen=True)
class MeanRatio:
    r"""$\frac1S\sum_{\tau\le S}\sup\frac{\|e\|^2}{\|u\|^2}\le\frac1S\sum_{\tau\le S}c_\tau$ where the premise shows
    $\|e\|^2\le c_\tau\|u\|^2$ for every u.
    """

    error: sp.Expr  # the two squares
    of: sp.Expr
    average: sp.Symbol  # the symbol of the mean
    index: sp.Symbol  # tau, in which c is linear
    steps: sp.Expr  # S
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "the steps averaged over"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """What is linear in tau has its mean at the mean (S + 1)/2 of tau."""
        if len(premises) != 1 or premises[0].op != "<=" or not same(premises[0].left, self.error):
            return ProofFinding(False, "mean over steps", f"one premise, a bound of {self.error}")
        factor = sp.expand(sp.cancel(premises[0].right / self.of))
        powers = {term.as_coeff_exponent(self.index)[1] for term in sp.Add.make_args(factor)}
        if gram_symbols(factor) or not powers <= {sp.S.Zero, sp.S.One}:
            return ProofFinding(False, "mean over steps", f"{factor} is not linear in {self.index} alone")
        wanted = factor.subs(self.index, (self.steps + 1) / 2)
        equal = conclusion.op == "<=" and conclusion.left == self.average and same(conclusion.right, wanted)
        return ProofFinding(
            equal, "mean over steps", "at the mean of the steps" if equal else f"the mean is at most {wanted}"
        )
