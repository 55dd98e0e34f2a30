r"""The one transcendental lemma of these proofs: a geometric sum with ratio $1+a/(n-\frac12)$ over n steps is at most
$Kn$.

With $x=\frac1{2n}$ and $b=1-2a$ the ratio is $(1-bx)/(1-x)$, and
$$\sum_{j<n}\Big(1+\frac a{n-\frac12}\Big)^j\le\frac{e^a-1}an\iff
\Big(\frac{1-bx}{1-x}\Big)^{1/(2x)}\le\frac{e^a-x}{1-x}.$$
The logarithms of both sides are power series in x with the same constant term a; the k-th coefficients are
$\frac{1-b^{k+1}}{2(k+1)}$ and $\frac{1-e^{-ak}}k$. The first is at most the second for every $k\ge1$: for large k
because $|b|^{k+1}+2e^{-ak}\le1$, which is monotone in k, and for the others by interval arithmetic. Equality holds at
x = 0, that is in the limit of n, which is why no subdivision of [0, 1/2] alone could prove the smallest constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import flint
import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import power_sum
from fedbounds.bounds.theory.named_numbers import NamedNumber

BITS = 128
PIECES = 1000


@dataclass(frozen=True)
class GeometricSum:
    r"""$1+m+\dots+m^{n-1}\le cn$ for $m=1+a/(n-\frac12)$, every $n\ge1$ and $c\ge(e^a-1)/a$."""

    a: sp.Rational  # a rational in (0, 1)
    steps: sp.Expr  # n, a product of whole numbers
    constant: sp.Expr  # c
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The sum and c n."""
        ratio = 1 + self.a / (self.steps - sp.Rational(1, 2))
        return Relation(power_sum(ratio, self.steps), self.constant * self.steps)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Coefficient by coefficient, and once more by subdivision with a margin."""
        wanted = self.relation(setting, premises)
        if sp.simplify(conclusion.left - wanted.left) != 0 or not same(conclusion.right, wanted.right):
            return ProofFinding(False, "geometric sum", f"the lemma says {wanted}")
        if not all(s.is_integer and s.is_positive for s in self.steps.free_symbols):
            return ProofFinding(False, "geometric sum", f"{self.steps} need not be a whole number")
        if not 0 < self.a < 1:
            return ProofFinding(False, "geometric sum", f"a = {self.a} is outside (0, 1)")
        exact = (sp.exp(self.a) - 1) / self.a
        named = self.constant.exact if isinstance(self.constant, NamedNumber) else self.constant
        if sp.simplify(named - exact) != 0 and not (
            isinstance(named, sp.Rational) and _ball(named) > _supremum(self.a)
        ):
            return ProofFinding(False, "geometric sum", f"{self.constant} is not at least {exact} = {sp.N(exact, 8)}")
        terms = coefficients_dominate(self.a)
        if terms is None:
            return ProofFinding(False, "geometric sum", "a coefficient is not dominated")
        pieces = subdivide(self.a, _supremum(self.a) * flint.arb("1.001"))
        if pieces is None:
            return ProofFinding(False, "geometric sum", "the subdivision does not confirm the constant")
        return ProofFinding(
            True,
            "power series and interval arithmetic",
            f"coefficients 1..{terms} one by one, the others at once; within 0.1 % on {pieces} pieces of [0, 1/2]",
        )


def _ball(value: sp.Rational) -> flint.arb:
    return flint.arb(flint.fmpq(int(value.p), int(value.q)))


def _supremum(a: sp.Rational) -> flint.arb:
    return (_ball(a).exp() - 1) / _ball(a)


def coefficients_dominate(a: sp.Rational, most: int = 500) -> int | None:
    """The k up to which the coefficients were compared singly, all dominated; None if one is not.

    Example:
        >>> coefficients_dominate(sp.Rational(7, 12))
        2
    """
    flint.ctx.prec = BITS
    exponent = _ball(a)
    b = 1 - 2 * exponent
    for k in range(1, most):
        if not (1 - b ** (k + 1)) / (2 * (k + 1)) <= (1 - (-exponent * k).exp()) / k:
            return None
        if abs(b) ** (k + 1) + 2 * (-exponent * k).exp() <= 1:
            return k
    return None


def subdivide(a: sp.Rational, constant: flint.arb, pieces: int = PIECES) -> int | None:
    """The number of pieces of (0, 1/2] on which the sum divided by n is at most the constant; None if one is not."""
    flint.ctx.prec = BITS
    exponent = _ball(a)
    b = 1 - 2 * exponent

    def mean(x: flint.arb) -> flint.arb:  # of the slope (1-b)/((1-x)(1-bx)) over [0, x]; it increases with x
        return ((1 - b * x).log() - (1 - x).log()) / x if x > 0 else 1 - b

    for k in range(pieces):
        low, high = flint.arb(k) / (2 * pieces), flint.arb(k + 1) / (2 * pieces)
        exponents = mean(low).union(mean(high)) / 2
        if not (exponents.exp() - 1) * (1 - low.union(high)) / exponent <= constant:
            return None
    return pieces
