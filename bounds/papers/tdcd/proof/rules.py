"""Rules for a sequence that starts at zero and is bounded by the one before, summed over its steps."""

from dataclasses import dataclass
from typing import ClassVar

import flint
import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove, reduce_expression, same, says
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Telescope, varying_products
from fedbounds.bounds.audit.vectors import gram_symbols
from fedbounds.bounds.papers.tdcd.drift import DriftGrowth

BITS = 128


@dataclass(frozen=True)
class SummedRecursion:
    r"""$\sum_{s<n}u_s\le\frac b{m-1}\big(\frac{m^n-1}{m-1}-n\big)$ from $u_0=0$ and $u_{s+1}\le mu_s+b$, m > 1, b >= 0.

    The premises are the start and the recursion.
    """

    now: sp.Expr  # the sequence at s and at s + 1, as they stand in the premises
    after: sp.Expr
    steps: sp.Expr  # n
    total: sp.Symbol  # the symbol of the sum
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "the number of steps"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The geometric sums, added up."""
        multiplier, additive = self._parts(premises, setting)
        growth = (multiplier**self.steps - 1) / (multiplier - 1) - self.steps
        return Relation(self.total, additive / (multiplier - 1) * growth)

    def _parts(self, premises: Relations, setting: ProofSetting) -> tuple[sp.Expr, sp.Expr]:
        """(m, b) of the recursion; m is read off the square of the vector that moves."""
        right = sp.expand(premises[1].right)
        squares = [s for s in varying_products(self.now, setting) if len(set(gram_symbols(s)[s])) == 1]
        multiplier = reduce_expression(sp.diff(right, squares[0]) / sp.diff(self.now, squares[0]))
        return multiplier, reduce_expression(right - multiplier * self.now)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Induction over the steps, then their sum."""
        method = "summed recursion"
        if why := unfit(self.now, self.after, premises):
            return ProofFinding(False, method, why)
        multiplier, additive = self._parts(premises, setting)
        if changing := varying_products(multiplier + additive, setting):
            return ProofFinding(False, method, f"{', '.join(map(str, changing))} changes between the steps")
        if not (multiplier - 1).is_positive or not prove(additive, facts).holds:
            return ProofFinding(False, method, f"{multiplier} is not above 1, or {additive} may be negative")
        wanted = self.relation(setting, premises)
        equal = says(conclusion, wanted)
        return ProofFinding(equal, method, "by induction" if equal else f"the sum is at most {wanted.right}")


def unfit(now: sp.Expr, after: sp.Expr, premises: Relations) -> str:
    """Why these premises are not a start at 0 and a bound of the next value; "" if they are."""
    if len(premises) != 2:
        return "the premises must be the start u_0 = 0 and the recursion"
    start, recursion = premises
    if not (same(start.left, now) and start.right == 0 and start.op == "=="):
        return f"{start} does not start the sequence at 0"
    return "" if recursion.op == "<=" and same(recursion.left, after) else f"{recursion} does not bound the next value"


@dataclass(frozen=True)
class Compound:
    r"""$(1+\frac an)^n\le c$ for every whole $n\ge1$, $a>0$ and $c\ge e^a$, as $\log(1+y)\le y$."""

    rate: sp.Expr  # a, a rational number
    steps: sp.Symbol  # n
    constant: sp.Expr  # c, a rational number
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The power and its bound."""
        return Relation((1 + self.rate / self.steps) ** self.steps, self.constant)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The constant by interval arithmetic."""
        wanted = self.relation(setting, premises)
        if not says(conclusion, wanted):
            return ProofFinding(False, "compound growth", f"the lemma says {wanted}")
        if not (isinstance(self.rate, sp.Rational) and isinstance(self.constant, sp.Rational) and self.rate > 0):
            return ProofFinding(False, "compound growth", f"{self.rate} and {self.constant} are not rational numbers")
        if not self.steps.is_positive:
            return ProofFinding(False, "compound growth", f"{self.steps} may be 0")
        flint.ctx.prec = BITS
        rate, constant = (flint.arb(flint.fmpq(int(x.p), int(x.q))) for x in (self.rate, self.constant))
        holds = bool(rate.exp() <= constant)
        return ProofFinding(
            holds, "compound growth", f"e^{self.rate} {'<=' if holds else 'is not below'} {self.constant}"
        )


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

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The growth, summed."""
        return Relation(self.total, DriftGrowth(self.rate, self.steps) * self.level)

    def recursion(self) -> sp.Expr:
        """What bounds the next value."""
        grown = (1 + self.rate) * self.free + self.rate
        return grown * ((1 + self.rate) / self.free * self.now + self.rate * self.level)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
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
