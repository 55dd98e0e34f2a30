"""Rules of derivation: a corollary is its theorem at given step sizes, an order is a bound without its constants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.axioms import Schema
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting


@dataclass(frozen=True)
class Specialize:
    """A form at given values of some constants; the form's conditions must follow at these values.

    The first premise is the form. Where a value makes a hypothesis of the form true by itself, the hypothesis is
    discharged by a claim: the k-th discharge belongs to the k-th premise after the first, whose right-hand side must
    be what the assumption bounds, at these values, and whose left-hand side what it bounds.
    """

    values: tuple[tuple[sp.Symbol, sp.Expr], ...]  # symbol and value
    discharges: tuple[tuple[str, Relation], ...] = ()  # name of an assumption, and what it says
    # the values that are step sizes, to be compared with those that the result prescribes
    prescribes: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()
    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The form with these values put in."""
        form = premises[0]
        return Relation(form.left, form.right.xreplace(dict(self.values)), form.op)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Substitution, and a comparison of what the discharging claims say."""
        if not premises:
            return ProofFinding(False, "substitution", "there is no form to put the values into")
        values = dict(self.values)
        source, *others = premises
        if conclusion.op == "==" and source.op == "<=":
            return ProofFinding(False, "substitution", f"{source} is no equality")
        if len(others) < len(self.discharges):
            return ProofFinding(
                False, "substitution", f"{len(self.discharges)} hypotheses, {len(others)} claims about them"
            )
        for (name, says), premise in zip(self.discharges, others, strict=False):
            wanted = Relation(says.left, says.right.xreplace(values), says.op)
            weaker = premise.op == "<=" and wanted.op == "=="
            if weaker or not (same(premise.left, wanted.left) and same(premise.right, wanted.right)):
                return ProofFinding(False, "substitution", f"{name} is not discharged: {premise} is not {wanted}")
        for symbol, value in self.values:
            if symbol.is_integer and not value.is_integer and not _whole(value, facts):
                return ProofFinding(False, "substitution", f"{symbol} = {value} is not known to be a whole number >= 1")
        expected = self.relation(setting, premises).right
        equal = conclusion.left == source.left and (conclusion.right == expected or same(conclusion.right, expected))
        return ProofFinding(equal, "substitution", "equal sides" if equal else f"the form becomes {expected}")


def _whole(value: sp.Expr, facts: Relations) -> bool:
    """Whether the facts say that a value equals a floor and is at least 1."""
    floors = [f for f in facts if f.op == "==" and same(f.left, value) and isinstance(f.right, sp.floor)]
    others = [f for f in facts if f not in floors]
    return bool(floors) and prove(value - 1, others).holds


@dataclass(frozen=True)
class Prescribed:
    """What a step size that is a minimum satisfies: it is at most each branch, and its inverse at most the sum of
    theirs.
    """

    symbol: sp.Symbol  # the step size
    branches: tuple[sp.Expr, ...]  # what it is the least of
    which: int | None  # the branch it is compared with; None for the inverse
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @cached_property
    def prescribes(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The step size as the result should prescribe it."""
        return ((self.symbol, sp.Min(*self.branches)),)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """At most this branch, or the inverse at most their sum."""
        if self.which is None:
            return Relation(1 / self.symbol, sp.Add(*(1 / b for b in self.branches)))
        return Relation(self.symbol, self.branches[self.which])

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The relation is one of these."""
        wanted = self.relation(setting, premises)
        equal = same(conclusion.left, wanted.left) and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "minimum", "an instance of it" if equal else f"the minimum gives {wanted}")


@dataclass(frozen=True)
class AtMinimum:
    """A sum of monomials in a step size, at the least of several values: each falling term at the branch where it is
    largest, each rising one where it is smallest.
    """

    symbol: sp.Symbol  # the step size
    branches: tuple[sp.Expr, ...]  # what it is the least of
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @cached_property
    def prescribes(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The step size as the result should prescribe it."""
        return ((self.symbol, sp.Min(*self.branches)),)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Term by term; an equality."""
        if len(premises) != 1:
            return ProofFinding(False, "minimum", "one premise, the sum of monomials")
        expected = sp.S.Zero
        for term in sp.Add.make_args(premises[0].right):
            coefficient, exponent = term.as_coeff_exponent(self.symbol)
            if coefficient.has(self.symbol):
                return ProofFinding(False, "minimum", f"{term} is no monomial in {self.symbol}")
            found = prove(coefficient, facts)
            if not found.holds:
                return ProofFinding(False, "minimum", f"the coefficient of {term}: {found.evidence}")
            values = [term.xreplace({self.symbol: b}) for b in self.branches]
            expected += sp.Max(*values) if exponent.is_negative else sp.Min(*values)
        equal = sp.expand(conclusion.right - expected) == 0 and conclusion.left == premises[0].left
        return ProofFinding(equal, "minimum", "term by term" if equal else f"the minimum gives {expected}")


@dataclass(frozen=True)
class InExpectation:
    """The expectation of an inequality that is linear in the random quantities."""

    means: tuple[tuple[sp.Expr, sp.Expr], ...]  # each random quantity, and the symbol of its mean
    over: str  # what the expectation is over
    axiom: str = "expectation is linear and monotone"
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what its means are the means of"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """Every random quantity by its mean."""
        means = dict(self.means)
        return Relation(premises[0].left.xreplace(means), premises[0].right.xreplace(means))

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Linearity is checked by the second derivative."""
        if len(premises) != 1:
            return ProofFinding(False, "expectation", "one premise, the inequality before")
        wanted = self.relation(setting, premises)
        for side in (premises[0].left, premises[0].right):
            dummies = {quantity: sp.Dummy(f"random{k}") for k, (quantity, _) in enumerate(self.means)}
            opened = side.xreplace(dummies)
            for a in dummies.values():
                if any(sp.diff(opened, a, b) != 0 for b in dummies.values()):
                    return ProofFinding(False, "expectation", f"{side} is not linear in what is random")
            if any(opened.has(quantity.as_base_exp()[0]) for quantity, _ in self.means):
                return ProofFinding(False, "expectation", f"{side} holds what is random in another form")
        equal = conclusion.left == wanted.left and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "expectation", f"linear, over {self.over}" if equal else f"the mean is {wanted}")


@dataclass(frozen=True)
class Lemma(Schema):
    """A named theorem of probability or analysis that is cited, not proved here; it is listed as an axiom.

    Args:
        axiom: its name and statement.
        left, right: what it says here, in terms of the premises.
        needs: the assumptions it uses.
    """

    axiom: str
    left: sp.Expr
    right: sp.Expr
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what is cited, as it is used here"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """What it says."""
        return Relation(self.left, self.right)


@dataclass(frozen=True)
class Markov:
    """With probability 1 - c a nonnegative quantity is at most its mean divided by c."""

    c: sp.Symbol  # the probability of failure
    likely: sp.Symbol  # the symbol of the quantity on that event
    axiom: str = "Markov's inequality"
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "which quantity is likely"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The premise bounds the mean."""
        return Relation(self.likely, premises[0].right / self.c)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Equal sides."""
        if len(premises) != 1:
            return ProofFinding(False, "Markov", "one premise, the bound of the mean")
        wanted = self.relation(setting, premises)
        equal = conclusion.left == wanted.left and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "Markov", "an instance of it" if equal else f"the bound is {wanted.right}")


@dataclass(frozen=True)
class Leading:
    r"""The order for large T: T^r bound has a limit that is the rate's times hidden constants."""

    rate: sp.Expr  # the rate claimed, without its hidden constants
    variable: sp.Symbol  # what grows
    hidden: tuple[sp.Symbol, ...]  # the symbols that the O may hide
    values: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()  # what is put in first, e.g. rho = 1/sqrt(S)
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @property
    def grows(self) -> sp.Symbol:
        """The limit is in this symbol."""
        return self.variable

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The exponent of every term, exactly; then the ratio of the leading one to the rate."""
        if len(premises) != 1:
            return ProofFinding(False, "exponents", "one premise, the bound")
        bound = premises[0].right.xreplace(dict(self.values))
        power = _exponent(self.rate, self.variable)
        if power is None:
            return ProofFinding(False, "exponents", f"{self.rate} is no monomial in {self.variable}")
        leading = sp.S.Zero
        for term in sp.Add.make_args(sp.expand(sp.Add(*sp.Add.make_args(bound)))):  # a form's sum is unevaluated
            exponent = _exponent(term, self.variable)
            if exponent is None:
                return ProofFinding(False, "exponents", f"{term} is no monomial in {self.variable}")
            if exponent > power:
                return ProofFinding(False, "exponents", f"{term} falls more slowly than {self.rate}")
            if exponent == power:
                leading += term
        ratio = sp.simplify(leading / self.rate)
        extra = sorted(str(s) for s in ratio.free_symbols - set(self.hidden))
        if extra or ratio == 0:
            return ProofFinding(
                False, "exponents", f"the leading term is {leading}; {', '.join(extra)} is not in the rate"
            )
        equal = conclusion.left == premises[0].left and same(conclusion.right, ratio * self.rate)
        return ProofFinding(
            equal, "exponents", f"leading term {leading}" if equal else f"the leading term is {leading}"
        )


def _exponent(term: sp.Expr, variable: sp.Symbol) -> sp.Expr | None:
    coefficient, exponent = sp.powdenest(sp.expand_power_base(term, force=True), force=True).as_coeff_exponent(variable)
    return None if coefficient.has(variable) else exponent
