r"""Sums of any number of summands, by induction on that number.

A sum up to $n+b$ grows by its summand at $n+1+b$; everything else in a relation is compared at $n+1$ and at $n$, with
powers and logarithms as symbols. An increment that is not rational is shown to fall to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.transcendental import algebraic_form
from fedbounds.bounds.audit.vectors import opaque


@dataclass(frozen=True)
class Induction:
    r"""left(n) = right(n), or left(n) <= right(n), for every whole n >= start."""

    variable: sp.Symbol  # n, a whole number
    start: int = 1  # where the induction starts
    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The start, and the increment."""
        n = self.variable
        if not n.is_integer:
            return ProofFinding(False, "induction", f"{n} need not be a whole number")
        if not prove(n - self.start, facts).holds:
            return ProofFinding(False, "induction", f"{n} may be less than {self.start}, where the induction starts")
        slack = conclusion.slack
        for total in slack.atoms(sp.Sum):
            if why := self._unfit(total):
                return ProofFinding(False, "induction", why)
        if hidden := sorted(str(x) for x in slack.free_symbols if opaque(x)):
            return ProofFinding(False, "induction", f"{', '.join(hidden)} may depend on {n}")
        others = [f for f in facts if not f.slack.has(n)]  # what holds of n alone need not hold of every smaller one
        from_start = [*others, Relation(sp.Integer(self.start), n)]
        first = sp.expand(slack.subs(n, self.start).doit())
        rise = sp.expand(self.increment(slack))
        if rise.atoms(sp.Dummy):
            return ProofFinding(False, "induction", "the sums do not cancel from the increment")
        try:
            (first_open, rise_open), known = algebraic_form([first, rise], from_start)
        except sp.PolynomialError as reason:
            return ProofFinding(False, "induction", str(reason))
        if conclusion.op == "==":
            for part, name in ((first_open, f"at {n} = {self.start}"), (rise_open, "the increments")):
                if not same(part, sp.S.Zero):
                    return ProofFinding(False, "induction", f"{name}: the sides differ by {sp.factor(part)}")
            return ProofFinding(True, "induction", f"equal at {n} = {self.start}, and so are the increments")
        found = prove(first_open, [*others, *known])
        if not found.holds:
            return ProofFinding(False, "induction", f"at {n} = {self.start}: {found.evidence}")
        found = prove(rise_open, [*from_start, *known])
        if not found.holds and rise.has(sp.log):
            found = falls_to_zero(rise, n, self.start, others)
        if not found.holds:
            return ProofFinding(False, "induction", f"the increment: {found.evidence}")
        return ProofFinding(True, "induction", f"holds at {n} = {self.start}; the increment: {found.evidence}")

    def _unfit(self, total: sp.Sum) -> str:
        n = self.variable
        index, low, high = total.limits[0]
        if len(total.limits) != 1 or total.function.has(n) or low.has(n) or index == n:
            return f"{total} depends on {n} otherwise than by its last summand"
        if sp.expand(high.subs(n, n + 1) - high) != 1:
            return f"{total} does not grow by one summand from {n} to {n + 1}"
        if not (high.subs(n, self.start) - low + 1).is_nonnegative:
            return f"{total} is not defined at {n} = {self.start}"
        return ""

    def increment(self, expression: sp.Expr) -> sp.Expr:
        """The expression at n + 1 less at n."""
        n = self.variable
        before = {total: sp.Dummy() for total in expression.atoms(sp.Sum)}
        after = {
            value: value + total.function.subs(total.limits[0][0], total.limits[0][2] + 1)
            for total, value in before.items()
        }
        now = expression.xreplace(before)
        return now.subs(n, n + 1).xreplace(after) - now


def falls_to_zero(expression: sp.Expr, variable: sp.Symbol, start: int, facts: Relations) -> ProofFinding:
    """Whether an expression decreases to 0 as the variable grows, and so is positive before.

    Example:
        >>> m = sp.Symbol("m", positive=True, integer=True)
        >>> falls_to_zero(sp.log(m + 1) - sp.log(m) - 1 / (m + 1), m, 1, ()).holds
        True
        >>> falls_to_zero(sp.log(m + 1) - sp.log(m) - 1 / m, m, 1, ()).holds
        False
    """
    x = sp.Symbol(f"{variable.name}~", positive=True)
    curve = expression.xreplace({variable: x})
    if sp.limit(curve, x, sp.oo) != 0:
        return ProofFinding(False, "monotone", f"{expression} does not tend to 0")
    found = prove(-sp.diff(curve, x), [*facts, Relation(sp.Integer(start), x)])
    return ProofFinding(found.holds, "monotone", f"{expression} falls to 0" if found.holds else found.evidence)


@dataclass(frozen=True)
class ByRecursion:
    r"""$a_x\le h(x)$ for $x=x_1,x_1+1,\dots$ from $a_{x_1}\le h(x_1)$ and $a_{x+1}\le m(x)a_x+r(x)$ with $m\ge0$.

    The first premise is the recursion; the others, and conditions, are facts about constants, $x\ge x_1$ among them.
    """

    now: sp.Symbol  # now, after: the sequence at x and at x + 1, as they stand in the recursion
    after: sp.Expr
    index: sp.Symbol  # x
    first: tuple[sp.Expr, sp.Expr]  # x_1, and the sequence there
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "where the sequence starts, and what comes after what"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The start, and that the bound carries itself on; the fact that x is at least x_1 is looked for."""
        method, x = "induction", self.index
        if not premises or premises[0].op != "<=" or not same(premises[0].left, self.after):
            return ProofFinding(False, method, f"the first premise must bound {self.after}")
        if conclusion.op != "<=" or conclusion.left != self.now:
            return ProofFinding(False, method, f"it shows a bound of {self.now}")
        start, value = self.first
        known = [*facts, *premises[1:]]
        if not any(f.op == "<=" and same(f.left, start) and f.right == x for f in known):
            return ProofFinding(False, method, f"no premise says that {x} is at least {start}")
        fixed = [f for f in known if not f.slack.has(x)]
        step, bound = premises[0].right, conclusion.right
        factor = sp.diff(step, self.now)
        rest = sp.expand(step - factor * self.now)
        if hidden := sorted(
            str(s) for e in (factor, rest, bound) for s in e.free_symbols if s == self.now or opaque(s)
        ):
            return ProofFinding(False, method, f"{', '.join(hidden)} may change from step to step")
        for expression, given, what in (
            (bound.subs(x, start) - value, fixed, f"at {x} = {start}"),
            (factor, known, "the factor"),
            (bound.subs(x, x + 1) - factor * bound - rest, known, f"from {x} to {x} + 1"),
        ):
            found = prove(expression, given)
            if not found.holds:
                return ProofFinding(False, method, f"{what}: {found.evidence}")
        return ProofFinding(True, method, f"holds at {x} = {start}, and from {x} to {x} + 1")
