r"""The facts of Appendix A: sums of squares, tangents, and one gradient step from a point."""

import sympy as sp
from sympy import Symbol

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Gram
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, product_symbol, square
from fedbounds.bounds.papers.fed_norm_sgda import lemmas_basic as facts
from fedbounds.bounds.papers.fed_norm_sgda.composites import SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import SumOverClients
from fedbounds.bounds.theory.result import Result

u, v, gradient, away = (Vec.atom(name) for name in ("u", "v", "gradient", "away"))
VECTORS = ProofSetting(
    "any vectors", {a: Atom(a, "gradient", 0, f"any vector {a}", per_client=False) for a in ("u", "v")}
)
ONE_FUNCTION = ProofSetting(
    "any two points",
    {
        "gradient": Atom("gradient", "gradient", 0, "grad g at x", per_client=False),
        "away": Atom("away", "point", 0, "x' - x", per_client=False),
    },
)
EXCESS, BREGMAN = Symbol("[g(x) - g*]", nonnegative=True), Symbol("[g(y) above its tangent at x]", nonnegative=True)
ONE_STEP = "descent lemma, for a step of 1/Lf along the gradient"
AFTER = Symbol("[g after one step of 1/Lf, less its least value]", real=True)


def smooth(result: Result, excess: sp.Symbol, symbol: sp.Symbol, assumption: Assumption, least_value: str) -> Proof:
    """Lemmas A.6 and A.7: after one step the function is not below its minimum."""
    along = -1 / n.Lf * gradient
    fall = sp.expand(inner(gradient, along) + n.Lf / 2 * square(along))
    s = Chain(ONE_FUNCTION)
    s["step", "one gradient step"] = ByMeaning("OneStep", AFTER, excess + fall, ONE_STEP, ("smooth",)), facts.SMOOTH
    s["least", least_value] = le(sp.S.Zero, AFTER), assumption
    s["fact", result.title] = le(square(gradient), 2 * n.Lf * excess), "step least"
    return s.proof(result.key, result, PRINTED, square(gradient), {excess: symbol})


PRINTED = {"printed": "fact"}

s = Chain(VECTORS)
s["fact", "a square is left"] = le(inner(u, v), sp.expand(square(u) / (2 * n.young) + n.young / 2 * square(v))), Gram()
SYMBOLS = {product_symbol("u", "u"): n.usq, product_symbol("v", "v"): n.vsq}
YOUNG = s.proof(facts.LEMMA_A_1.key, facts.LEMMA_A_1, PRINTED, inner(u, v), SYMBOLS)

DIFFERENCE = measure_symbol(facts.LEMMA_A_2.measure)
s = Chain(ONE_FUNCTION)
s["fact", "strong concavity, by definition: at y and y'"] = by(
    le(DIFFERENCE, n.slope - n.mu / 2 * n.distsq), facts.STRONGLY_CONCAVE
)
TANGENT = s.proof(facts.LEMMA_A_2.key, facts.LEMMA_A_2, {"repaired": "fact"})

MEAN_SQUARE, SQUARED_SUM = SumOverClients(n.w * n.squares), n.n * SumOverClients(n.squares)
s = Chain(VECTORS)
s["fact", "Jensen, for weights on the simplex"] = by(
    ByMeaning("MeanSquare", measure_symbol(facts.SQUARE_OF_MEAN), MEAN_SQUARE, given=(ON_THE_SIMPLEX,)), SIMPLEX
)
JENSEN = s.proof(facts.LEMMA_A_3.key, facts.LEMMA_A_3, {"printed:squares": "fact"})

s = Chain(VECTORS)
s["fact", "Jensen with weights 1/n: the mean is the sum over n"] = by(
    ByMeaning("SquareOfSum", measure_symbol(facts.LEMMA_A_4.measure), SQUARED_SUM)
)
SUM = s.proof(facts.LEMMA_A_4.key, facts.LEMMA_A_4, PRINTED)

growth = n.mu / 2 * square(away)
s = Chain(ONE_FUNCTION)
s["definition", "strong convexity at the minimizer, where the gradient is 0: away = x - x*"] = by(
    le(growth, EXCESS), facts.STRONGLY_CONVEX
)
s["fact", "solved"] = le(square(away), 2 * EXCESS / n.mu), "definition"
GROWTH = s.proof(facts.LEMMA_A_5.key, facts.LEMMA_A_5, PRINTED, square(away), {EXCESS: n.excess})

s = Chain(ONE_FUNCTION)
s["definition", "strong convexity towards the minimizer, away = x* - x"] = by(
    le(EXCESS, sp.expand(-inner(gradient, away) - growth)), facts.STRONGLY_CONVEX
)
s["fact", "a square is left"] = le(EXCESS, square(gradient) / (2 * n.mu)), {"definition": 1}
SLOPE = {product_symbol("gradient", "gradient"): n.usq}
FROM_BELOW = s.proof(facts.LEMMA_A_5_GRADIENT.key, facts.LEMMA_A_5_GRADIENT, PRINTED, EXCESS, SLOPE)

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
