"""Whole numbers: division with a remainder, two cases that cover all pairs, and a number rounded up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.transcendental import algebraic_form


@dataclass(frozen=True)
class Division:
    r"""$a+1\le b(\lfloor a/b\rfloor+1)$ for whole numbers a >= 0 and b >= 1, because the remainder is at most b - 1."""

    dividend: sp.Expr  # a and b
    divisor: sp.Expr
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The remainder's inequality."""
        return Relation(self.dividend + 1, self.divisor * (sp.floor(self.dividend / self.divisor) + 1))

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Both are whole, and the conclusion is this inequality."""
        a, b = self.dividend, self.divisor
        if not (a.is_integer and b.is_integer and prove(a, facts).holds and prove(b - 1, facts).holds):
            return ProofFinding(False, "division", f"{a} and {b} need not be whole numbers, at least 0 and 1")
        wanted = self.relation(setting, premises)
        equal = same(conclusion.left, wanted.left) and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "division", "an instance of it" if equal else f"the remainder gives {wanted}")


@dataclass(frozen=True)
class Cases:
    r"""For whole numbers a, b >= 1: either a = b + s with s >= 0, or b = a + 1 + s with s >= 0.

    The premises are the two cases, in this order. Each speaks of its own symbol for what is bounded.
    """

    first: sp.Symbol  # a and b
    second: sp.Symbol
    apart: sp.Symbol  # s
    parts: tuple[sp.Expr, sp.Expr]  # what is bounded, in the two cases
    whole: sp.Expr  # what is bounded, in general
    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True
    gives: ClassVar[str] = "what it is in each case"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The two premises are the conclusion in the two cases."""
        a, b, s = self.first, self.second, self.apart
        if not (a.is_integer and b.is_integer and s.is_integer):
            return ProofFinding(False, "two cases", f"{a}, {b}, {s} need not be whole numbers")
        if not (a.is_positive and b.is_positive and s.is_nonnegative) or conclusion.right.has(s):
            return ProofFinding(False, "two cases", f"{a}, {b} >= 1 and {s} >= 0 do not cover the conclusion")
        if len(premises) != 2 or conclusion.left != self.whole:
            return ProofFinding(False, "two cases", f"two premises, and a conclusion about {self.whole}")
        for premise, part, case in zip(premises, self.parts, ({a: b + s}, {b: a + 1 + s}), strict=True):
            wanted = conclusion.right.xreplace(case)
            if premise.left != part or (premise.op == "<=" and conclusion.op == "=="):
                return ProofFinding(False, "two cases", f"{premise} does not bound {part}")
            (said, asked), _ = algebraic_form([sp.expand(premise.right), sp.expand(wanted)], facts)
            if not same(said, asked):
                ((letter, value),) = case.items()
                return ProofFinding(False, "two cases", f"where {letter} = {value} the premise says {premise.right}")
        return ProofFinding(True, "two cases", f"{a} = {b} + {s} or {b} = {a} + 1 + {s}")


@dataclass(frozen=True)
class WholeNumber:
    r"""What holds of a prescribed whole number: $\max\{1,\lceil v\rceil\}$, or v itself where that is whole."""

    letter: sp.Symbol  # the number in the proof, whose domain says that it is whole and at least 1
    symbol: sp.Symbol  # the number in the result, which prescribes it
    value: sp.Expr  # v >= 0
    which: Literal["at least", "at most", "equal"]  # "at least" v, "at most" v + 1, or "equal" to v
    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True

    @property
    def prescribes(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The number as the result should prescribe it."""
        rounded = sp.Max(1, sp.ceiling(self.value))
        return ((self.symbol, self.value if self.which == "equal" else rounded),)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The symbol against its value."""
        n, v = self.letter, self.value
        return {"at least": Relation(v, n), "at most": Relation(n, v + 1), "equal": Relation(n, v, "==")}[self.which]

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The relation is one of these."""
        n, v = self.letter, self.value
        (opened_v,), known = algebraic_form([v], facts)
        if not (n.is_integer and n.is_positive):
            return ProofFinding(False, "whole number", f"the symbol {n} is not one of a whole number >= 1")
        rational = [f for f in facts if not f.slack.has(sp.log, sp.floor)]
        if self.which == "equal":
            nearest = Relation(v, sp.floor(v + sp.Rational(1, 2)), "==")
            if nearest not in facts or Relation(sp.S.One, v) not in facts:
                return ProofFinding(False, "whole number", f"{v} is not known to be a whole number >= 1")
        elif not prove(opened_v, [*rational, *known]).holds:
            return ProofFinding(False, "whole number", f"{v} may be negative")
        wanted = self.relation(setting, premises)
        equal = conclusion == wanted
        return ProofFinding(equal, "whole number", "an instance of it" if equal else f"rounding gives {wanted}")
