# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""The facts of Appendix A: sums of squares, tangents, and one gradient step from a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import sympy as sp
from sympy import Symbol

from bounds.assumptions import Assumption
from bounds.audit.axioms import Assumed, Schema
from bounds.audit.claim import Relation
from bounds.audit.nonnegative import Finding, same
from bounds.audit.rules import Combine, Gram, Stated
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Atom, Vec, inner, square
from bounds.clients import SumOverClients
from bounds.papers.fed_norm_sgda import lemmas_basic as facts
from bounds.papers.fed_norm_sgda.composites import SIMPLEX
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX
from bounds.result import Result

u, v, gradient, away = (Vec.atom(name) for name in ("u", "v", "gradient", "away"))
VECTORS = Setting("any vectors", {a: Atom(a, "gradient", 0, f"any vector {a}", per_client=False) for a in ("u", "v")})
ONE_FUNCTION = Setting(
    "any two points",
    {
        "gradient": Atom("gradient", "gradient", 0, "grad g at x", per_client=False),
        "away": Atom("away", "point", 0, "x' - x", per_client=False),
    },
)
EXCESS, BREGMAN = Symbol("[g(x) - g*]", nonnegative=True), Symbol("[g(y) above its tangent at x]", nonnegative=True)
AFTER = Symbol("[g after one step of 1/Lf, less its least value]", real=True)


@dataclass(frozen=True)
class MeanSquare:
    r"""$\|\sum_iw_iu_i\|^2\le\sum_iw_i\|u_i\|^2$ for weights on the simplex; and the square of a sum of n vectors."""

    even: bool
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what the squares stand for"

    def check(
        self, conclusion: Relation, premises: Sequence[Relation], facts: Sequence[Relation], setting: Setting
    ) -> Finding:
        """For n vectors with weights 1/n, the mean is their sum over n."""
        if self.even:
            wanted = n.n * SumOverClients(n.squares)
        elif any(p == ON_THE_SIMPLEX for p in premises):
            wanted = SumOverClients(n.w * n.squares)
        else:
            return Finding(False, "Jensen", "no premise says that the weights sum to 1")
        equal = same(conclusion.right, wanted) and conclusion.op == "<="
        return Finding(equal, "Jensen", "an instance of it" if equal else f"it says {wanted}")


@dataclass(frozen=True)
class OneStep(Schema):
    r"""$g(x-\frac1L\nabla g(x))\le g(x)-\frac1{2L}\|\nabla g(x)\|^2$.

    Args:
        excess: what g(x) is above.
    """

    excess: sp.Symbol
    axiom: str = "descent lemma, for a step of 1/Lf along the gradient"
    needs: tuple[str, ...] = ("smooth",)

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The step is away = -gradient/Lf."""
        step = -1 / n.Lf * gradient
        fall = sp.expand(inner(gradient, step) + n.Lf / 2 * square(step))
        return Relation(AFTER, self.excess + fall)


def smooth(result: Result, excess: sp.Symbol, letter: sp.Symbol, assumption: Assumption, least_value: str) -> Proof:
    """Lemmas A.6 and A.7: after one step the function is not below its minimum."""
    after = Relation(AFTER, excess - square(gradient) / (2 * n.Lf))
    least = Relation(sp.S.Zero, AFTER)
    bound = Relation(square(gradient), 2 * n.Lf * excess)
    not_below = Assumed(sp.S.Zero, AFTER, (assumption.name,), "no value is below the least one")
    steps = (
        Step("step", "one gradient step", after, OneStep(excess), (facts.SMOOTH,)),
        Step("least", least_value, least, not_below, (assumption,)),
        Step("fact", result.title, bound, Combine((2 * n.Lf, 2 * n.Lf)), ("step", "least")),
    )
    return Proof(result.key, ONE_FUNCTION, steps, result, {"printed": "fact"}, square(gradient), {excess: letter})


tangent = n.slope - n.mu / 2 * n.distsq
growth = n.mu / 2 * square(away)
YOUNG = Proof(
    facts.LEMMA_A_1.key,
    VECTORS,
    (
        Step(
            "fact",
            "a square is left",
            Relation(inner(u, v), sp.expand(square(u) / (2 * n.young) + n.young / 2 * square(v))),
            Gram(),
        ),
    ),
    facts.LEMMA_A_1,
    {"printed": "fact"},
    inner(u, v),
    {square(u): n.usq, square(v): n.vsq},
)
DIFFERENCE = measure_symbol(facts.LEMMA_A_2.measure)
TANGENT = Proof(
    facts.LEMMA_A_2.key,
    ONE_FUNCTION,
    (
        Step(
            "fact",
            "strong concavity, by definition",
            Relation(DIFFERENCE, tangent),
            Assumed(DIFFERENCE, tangent, ("strongly-concave",), "at y and y'"),
            (facts.STRONGLY_CONCAVE,),
        ),
    ),
    facts.LEMMA_A_2,
    {"repaired": "fact"},
)
JENSEN = Proof(
    facts.LEMMA_A_3.key,
    VECTORS,
    (
        Step("w", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,)),
        Step(
            "fact",
            "Jensen",
            Relation(measure_symbol(facts.SQUARE_OF_MEAN), SumOverClients(n.w * n.squares)),
            MeanSquare(False),
            ("w",),
        ),
    ),
    facts.LEMMA_A_3,
    {"printed:squares": "fact"},
)
SQUARED_SUM = Relation(measure_symbol(facts.LEMMA_A_4.measure), n.n * SumOverClients(n.squares))
SUM = Proof(
    facts.LEMMA_A_4.key,
    VECTORS,
    (Step("fact", "Jensen with weights 1/n", SQUARED_SUM, MeanSquare(True)),),
    facts.LEMMA_A_4,
    {"printed": "fact"},
)
GROWTH = Proof(
    facts.LEMMA_A_5.key,
    ONE_FUNCTION,
    (
        Step(
            "definition",
            "strong convexity at the minimiser, where the gradient is 0",
            Relation(growth, EXCESS),
            Assumed(growth, EXCESS, ("strongly-convex",), "away = x - x*"),
            (facts.STRONGLY_CONVEX,),
        ),
        Step("fact", "solved", Relation(square(away), 2 * EXCESS / n.mu), Combine((2 / n.mu,)), ("definition",)),
    ),
    facts.LEMMA_A_5,
    {"printed": "fact"},
    square(away),
    {EXCESS: n.excess},
)
FROM_BELOW = Proof(
    facts.LEMMA_A_5_GRADIENT.key,
    ONE_FUNCTION,
    (
        Step(
            "definition",
            "strong convexity towards the minimiser, away = x* - x",
            Relation(EXCESS, sp.expand(-inner(gradient, away) - growth)),
            Assumed(EXCESS, sp.expand(-inner(gradient, away) - growth), ("strongly-convex",), "away = x* - x"),
            (facts.STRONGLY_CONVEX,),
        ),
        Step(
            "fact", "a square is left", Relation(EXCESS, square(gradient) / (2 * n.mu)), Combine((1,)), ("definition",)
        ),
    ),
    facts.LEMMA_A_5_GRADIENT,
    {"printed": "fact"},
    EXCESS,
    {square(gradient): n.usq},
)
BASIC_PROOFS = (
    YOUNG,
    TANGENT,
    JENSEN,
    SUM,
    GROWTH,
    FROM_BELOW,
    smooth(facts.LEMMA_A_6, BREGMAN, n.bregman, facts.CONVEX, "a convex function above its tangent is least there, 0"),
    smooth(facts.LEMMA_A_7, EXCESS, n.excess, facts.BELOW, "no value is below the infimum"),
)
