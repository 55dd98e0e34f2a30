r"""Geometric sums with ratio $r=1+\frac1{n-1/2}$ over n steps: at most $(e-1)n$, on average over the steps $(e-2)n$.

With $x=\frac1{2n}$, so that $r=\frac{1+x}{1-x}$ and $0<x\le\frac12$,
$$\sum_{j<n}r^j\le(e-1)n\iff r^n\le\frac{e-x}{1-x},\qquad
\frac1n\sum_{i<n}\sum_{j<i}r^j\le(e-2)n\iff r^n(1-x)^2\le e-3x+x^2 .$$
The logarithms of both sides are power series in x with the constant term 1, and $\log r^n=\sum_{k\text{ even}}
\frac{x^k}{k+1}$. In the first the k-th coefficients are at most $\frac1{k+1}$ and $\frac{1-e^{-k}}k$, and $e^k\ge1+k$
settles every k. In the second $x^2-3x+e=(\alpha-x)(\bar\alpha-x)$ with $|\alpha|^2=e$, so that they are
$\frac{[k\text{ even}]}{k+1}-\frac2k$ and $-\frac{2\,\mathrm{Re}\,\alpha^{-k}}k\ge-\frac{2e^{-k/2}}k$; as
$\frac k{k+1}\le1$ it is enough that $2\,\mathrm{Re}\,\alpha^{-1}=\frac3e\le2$ and $2e^{-k/2}\le1$ for $k\ge2$.
Both bounds are limits for large n and hence the smallest constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import flint
import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.geometric_sums import BITS
from fedbounds.bounds.audit.nonnegative import ProofFinding, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Unroll, power_sum
from fedbounds.bounds.audit.vectors import gram_symbols, product_symbol
from fedbounds.bounds.theory.named_numbers import NamedNumber

SINGLE = 60  # coefficients compared one by one, besides the argument for all


def mean_power_sum(multiplier: sp.Expr, steps: sp.Expr) -> sp.Expr:
    r"""$\frac1n\sum_{i<n}(1+m+\dots+m^{i-1})$."""
    return (power_sum(multiplier, steps) - steps) / ((multiplier - 1) * steps)


def half_step_ratio(steps: sp.Expr) -> sp.Expr:
    """1 + 1/(n - 1/2)."""
    return 1 + 1 / (steps - sp.Rational(1, 2))


@dataclass(frozen=True)
class HalfStepSum:
    r"""$1+r+\dots+r^{n-1}\le cn$ for $r=1+\frac1{n-1/2}$, every $n\ge1$ and $c\ge e-1$; on average over the lengths
    0, ..., n-1 of the sum, $c\ge e-2$.
    """

    steps: sp.Expr  # n, a product of whole numbers
    constant: sp.Expr  # c
    average: bool = False  # whether the sum is averaged
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The sum or its average, and c n."""
        total = mean_power_sum if self.average else power_sum
        return Relation(total(half_step_ratio(self.steps), self.steps), self.constant * self.steps)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Coefficient by coefficient, and once more at whole numbers of steps, exactly."""
        method, said = "geometric sum", self.relation(setting, premises)
        equal = sp.simplify(conclusion.left - said.left) == 0 and same(conclusion.right, said.right)
        if not equal or conclusion.op != "<=":
            return ProofFinding(False, method, f"the lemma says {said}")
        if not all(s.is_integer and s.is_positive for s in self.steps.free_symbols):
            return ProofFinding(False, method, f"{self.steps} need not be a whole number")
        least = sp.E - (2 if self.average else 1)
        if not is_at_least(self.constant, least):
            return ProofFinding(False, method, f"{self.constant} is not at least {least} = {sp.N(least, 8)}")
        if not (average_dominates() if self.average else sum_dominates()):
            return ProofFinding(False, method, "a coefficient is not dominated")
        largest = max(averaged_sum(n, self.average) for n in (1, 2, 3, 10, 100))
        if not _ball(largest) <= _exponential() - (2 if self.average else 1):
            return ProofFinding(False, method, f"{float(largest)} is above {least}")
        return ProofFinding(
            True,
            "power series and interval arithmetic",
            f"every coefficient is dominated, {SINGLE} of them one by one; {float(largest):.4f} n at n = 100, exactly",
        )


def is_at_least(constant: sp.Expr, least: sp.Expr) -> bool:
    """Whether a constant, exact with names put in or rational, is at least a number."""
    exact = constant.xreplace({name: name.exact for name in constant.atoms(NamedNumber)})
    if sp.simplify(exact - least) == 0:
        return True
    flint.ctx.prec = BITS
    offset = sp.simplify(least - sp.E)
    return isinstance(exact, sp.Rational) and bool(
        _ball(Fraction(int(exact.p), int(exact.q))) >= _exponential() + int(offset)
    )


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _exponential() -> flint.arb:
    flint.ctx.prec = BITS
    return flint.arb(1).exp()


def sum_dominates(single: int = SINGLE) -> bool:
    """Whether 1/(k+1) for even k, else 0, is at most (1 - e^-k)/k; e^k >= 1 + k shows it for all k."""
    flint.ctx.prec = BITS
    for k in range(1, single):
        left = flint.arb(1) / (k + 1) if k % 2 == 0 else flint.arb(0)
        if not left <= (1 - (-flint.arb(k)).exp()) / k:
            return False
    return True


def average_dominates(single: int = SINGLE) -> bool:
    """Whether [k even]/(k+1) - 2/k is at most -2 Re(alpha^-k)/k; 2 e^(-k/2) <= 1 shows it for all k >= 2."""
    e = _exponential()
    alpha = flint.acb(flint.arb(3) / 2, (4 * e - 9).sqrt() / 2)  # a root of x^2 - 3x + e
    if not (alpha * alpha - 3 * alpha + flint.acb(e)).abs_upper() < flint.arb("1e-30"):
        return False
    if not (3 / e <= 2 and 2 / e <= 1):  # k = 1, and the largest of 2 e^(-k/2) for k >= 2
        return False
    power = flint.acb(1)
    for k in range(1, single):
        power = power / alpha
        left = (flint.arb(1) / (k + 1) if k % 2 == 0 else flint.arb(0)) - flint.arb(2) / k
        if not left <= -2 * power.real / k:
            return False
    return True


def averaged_sum(n: int, average: bool) -> Fraction:
    """The sum divided by n, exactly."""
    ratio = 1 + Fraction(2, 2 * n - 1)
    sums, total = Fraction(0), Fraction(0)  # of i powers, and of the first i of these
    for _ in range(n):
        total += sums
        sums = 1 + ratio * sums
    return total / n**2 if average else sums / n


@dataclass(frozen=True)
class UnrollMean(Unroll):
    r"""As `Unroll`, averaged over k = 0, ..., n-1: $\frac1n\sum_{k<n}u_k\le b\,\frac1n\sum_{k<n}\frac{m^k-1}{m-1}$."""

    ratio: sp.Expr = sp.S.One  # ratio, adds: m and b, as the recursion in the premises has them
    adds: sp.Expr = sp.S.Zero
    # each vector of one step that the sequence holds, and what stands for it in the average over the steps
    names: tuple[tuple[str, str], ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The average of the bounds for every k."""
        return Relation(rename_vectors(self.now, dict(self.names)), self.adds * mean_power_sum(self.ratio, self.steps))

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The recursion unrolls for every k, and the average of its bounds is the conclusion."""
        each = Relation(self.now, self.adds * power_sum(self.ratio, self.steps))
        found = super().check(each, premises, facts, setting)
        if not found.holds:
            return found
        wanted = self.relation(setting, premises)
        mean, expected = wanted.left, wanted.right
        gone = [name for pair in gram_symbols(mean).values() for name in pair if name not in setting.atoms]
        if gone:
            return ProofFinding(False, "induction", f"{', '.join(gone)} is not averaged over the steps")
        if any(setting.atoms[new].still for _, new in self.names):
            return ProofFinding(False, "induction", "what stays the same in all steps is no average")
        equal = same(conclusion.left, mean) and sp.simplify(conclusion.right - expected) == 0 and conclusion.op == "<="
        evidence = f"{found.evidence}; averaged over the steps" if equal else f"{mean} is at most {expected}"
        return ProofFinding(equal, "induction", evidence)


def rename_vectors(expression: sp.Expr, names: Mapping[str, str]) -> sp.Expr:
    """The same inner products of vectors with other names.

    Example:
        >>> rename_vectors(2 * product_symbol("x", "y"), {"y": "Y"})
        2*<Y,x>
    """
    pairs = gram_symbols(expression)
    return expression.xreplace({s: product_symbol(names.get(a, a), names.get(b, b)) for s, (a, b) in pairs.items()})
