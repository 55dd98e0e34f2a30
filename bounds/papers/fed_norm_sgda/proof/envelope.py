r"""Lemmas B.1 and B.6: how smooth the envelope is, and the gradients away from the maximizer.

Where $f(x,\cdot)$ is only $\mu$-PL, $y^*$ is the nearest maximizer, and $\mu\,\mathrm{dist}\le\|\nabla_yf\|$.
"""

import sympy as sp
from sympy import sqrt

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.participation_rules import Triangle
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, STRONGLY_CONCAVE
from fedbounds.bounds.papers.fed_norm_sgda.composites import SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_1, LEMMA_B_6
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, SelfBounded, smooth

DELTA, DESCENT_SETTING, PAPER, Fx, Fy, G, L = of.DELTA, of.DESCENT_SETTING, of.PAPER, of.Fx, of.Fy, of.G, of.L
kappa, mu, y0, ys = of.kappa, of.mu, of.y0, of.ys

SMOOTHNESS_OF_ENVELOPE = measure_symbol(LEMMA_B_1.measure)
TWO_POINTS = ProofSetting.of(
    "two points x and u, and a maximizer at each",
    Atom("x", "point", 0, "any point", per_client=False),
    Atom("u", "point", 0, "any other point", per_client=False),
    Atom("yx", "point", 0, "a maximizer of f(x, .)", per_client=False),
    Atom("yu", "point", 0, "the maximizer of f(u, .) next to yx", per_client=False),
    Atom("e", "gradient", 0, "grad_y f(u, yx)", "u yx", "f/y", per_client=False),
    Atom("px", "gradient", 0, "grad_x f(x, yx) = grad phi(x)", "x yx", "f/x", per_client=False),
    Atom("pu", "gradient", 0, "grad_x f(u, yu) = grad phi(u)", "u yu", "f/x", per_client=False),
)
x, u, yx, yu, e, px, pu = (Vec.atom(name) for name in ("x", "u", "yx", "yu", "e", "px", "pu"))
ANYWHERE = "for all x and u"


DANSKIN = "Danskin: grad phi(x) = grad_x f(x, y) at any maximizer y"
LENGTH, ROUNDED = L * sqrt(1 + kappa**2), (1 + kappa) * L
SMOOTH_ENVELOPE = Relation(SMOOTHNESS_OF_ENVELOPE, ROUNDED)  # Lemma B.1


def smoothness(constant: sp.Expr) -> ByMeaning:
    """A gradient that is Lipschitz with M for all pairs of points: the smoothness is at most M."""
    lipschitz = le(square(px - pu), constant**2 * square(x - u))
    return ByMeaning("LeastConstant", SMOOTHNESS_OF_ENVELOPE, constant, DANSKIN, given=(lipschitz,))


s = Chain(TWO_POINTS, ANYWHERE)
at_maximum = "a smooth function has no gradient at its maximum"
s["E1", "the gradient in y at another x"] = by(
    ByMeaning("AtMaximizer", square(e), L**2 * square(u - x), at_maximum, (JOINTLY_SMOOTH.name,)), JOINTLY_SMOOTH
)
s["E2", "the error bound: f(u, .) at yx"] = le(mu**2 * square(yx - yu), square(e)), STRONGLY_CONCAVE
s["E3", "the maximizer is kappa-Lipschitz"] = le(square(yx - yu), kappa**2 * square(u - x)), "E1 E2"
s["E4", "joint smoothness at the two maximizers"] = smooth("px", "pu"), JOINTLY_SMOOTH
s["E5", "the gradient of the envelope"] = le(square(px - pu), LENGTH**2 * square(x - u)), "E4 E3"
s["B.1-sharp", "Lemma B.1 with the Euclidean length", ""] = smoothness(LENGTH), "E5"
s["E6", "with a round constant"] = le(square(px - pu), ROUNDED**2 * square(x - u)), {"E5": 1}
s["B.1", "Lemma B.1, repaired", ""] = smoothness(ROUNDED), "E6"
ENVELOPE_PROOF = s.proof(f"{PAPER}/lemma-b.1", LEMMA_B_1, {"sharp": "B.1-sharp", "repaired": "B.1"})

# --- Lemma B.6 ------------------------------------------------------------------------------------------------------

Phi = Vec.atom("Phi")
ROUND = "for every round t"
ROOTS = sqrt(G), sqrt(2 * kappa * L * DELTA)

s = Chain(DESCENT_SETTING, ROUND)
s["B6a", "smoothness between y_t and the maximizer"] = smooth("Phi", "Fx", ON_THE_SIMPLEX), SIMPLEX, JOINTLY_SMOOTH
s["B6b", "quadratic growth, Lemma A.5: F~(x_t, .) at y_t"] = le(mu / 2 * square(ys - y0), DELTA), STRONGLY_CONCAVE
s["B6c", "the gradient in x against that of the envelope"] = le(square(Phi - Fx), 2 * kappa * L * DELTA), "B6a B6b"
s["B6c-turned", "the same, turned"] = le(square(Fx - Phi), 2 * kappa * L * DELTA), "B6c"
s["B6", "Lemma B.6"] = le(square(Fx), 2 * G + 4 * kappa * L * DELTA), {"B6c": 2}
s["B6y", "the gradient in y, Lemma A.7, eq. (33)"] = SelfBounded("Fy", DELTA), SIMPLEX, JOINTLY_SMOOTH
s["B6p", "the gradient in y from below, Lemma A.5: F~(x_t, .) at y_t"] = by(
    le(2 * mu * DELTA, square(Fy)), STRONGLY_CONCAVE
)
s["B6g", "a symbol for a square"] = le(square(Phi), G)
s["B6-sharp", "Lemma B.6 by the triangle inequality"] = Triangle(Phi, Fx - Phi, ROOTS), "B6g B6c-turned"
TO_SYMBOLS = {G: n.gradsq, DELTA: n.gap}
ENDS = {"printed": "B6", "sharp": "B6-sharp"}
AWAY_PROOF = s.proof(f"{PAPER}/lemma-b.6", LEMMA_B_6, ENDS, square(Fx), TO_SYMBOLS)
