r"""Powers of what decays exponentially, by tangents: $e^{-y}\le\frac{e^{-z}}{1+y-z}$, because $e^{y-z}\ge1+y-z$.

With $b\le e^{-1/(2R)}$ this bounds $b^a$, $y=\frac a{2R}$, by a quotient of polynomials in a, R and z.
"""

from dataclasses import dataclass
from typing import ClassVar

import flint
import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, never_zero, prove, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.transcendental import algebraic_form


@dataclass(frozen=True)
class Tangent:
    r"""$b^a\le\frac{cR}{R+a/2-Rz}$ for $0\le b\le e^{-1/(2R)}$, $c\ge e^{-z}$ and every z at which the denominator is
    positive; also at $R=0$, where b = 0.
    """

    base: sp.Expr  # b and a > 0
    power: sp.Expr
    decay: sp.Expr  # R
    at: sp.Expr  # z, where the tangent touches
    value: sp.Expr  # c; `exp(-at)`, or a rational number that is at least that
    axiom: str  # why b is at most that exponential
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what the symbols stand for"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The power and its tangent."""
        below = self.decay + self.power / 2 - self.decay * self.at
        return Relation(self.base**self.power, self.value * self.decay / below)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The constant by interval arithmetic, the denominator from the premises."""
        if not self._constant():
            return ProofFinding(False, "tangent", f"{self.value} is not known to be at least exp(-{self.at})")
        if not (self.decay.is_nonnegative and prove(self.base, facts).holds):
            return ProofFinding(False, "tangent", f"{self.decay} or {self.base} may be negative")
        below = self.decay + self.power / 2 - self.decay * self.at
        sides = [side for r in premises for side in (r.left, r.right)]
        (denominator, power, *found), known = algebraic_form([below, self.power, *sides], facts)
        known += [Relation(a, b, r.op) for r, a, b in zip(premises, found[::2], found[1::2], strict=True)]
        for part, name in ((denominator, below), (power, self.power)):
            if not (prove(part, [*facts, *known]).holds and never_zero(part, [*facts, *known])):
                return ProofFinding(False, "tangent", f"{name} may be 0 or negative")
        wanted = self.relation(setting, premises)
        equal = conclusion.left == wanted.left and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "tangent", "an instance of it" if equal else f"the tangent gives {wanted}")

    def _constant(self) -> bool:
        if self.value == sp.exp(-self.at):
            return True
        if not (isinstance(self.value, sp.Rational) and isinstance(self.at, sp.Rational)):
            return False
        value, at = (flint.arb(flint.fmpq(int(x.p), int(x.q))) for x in (self.value, self.at))
        return bool((-at).exp() <= value)
