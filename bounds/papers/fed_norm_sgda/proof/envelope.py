# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemmas B.1 and B.6: how smooth the envelope is, and the gradients away from the maximiser.

Where $f(x,\cdot)$ is only $\mu$-PL, $y^*$ is the maximiser that is nearest: quadratic growth, the error bound
$\mu\,\mathrm{dist}\le\|\nabla_yf\|$ and $\nabla\Phi=\nabla_xf(x,y^*)$ hold alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp
from sympy import sqrt

from bounds.audit.axioms import Assumed, Schema, Unfit
from bounds.audit.claim import Relation
from bounds.audit.nonnegative import same
from bounds.audit.participation_rules import Triangle
from bounds.audit.rules import Combine, Stated
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Atom, Vec, square
from bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, STRONGLY_CONCAVE
from bounds.papers.fed_norm_sgda.composites import SIMPLEX
from bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_1, LEMMA_B_6
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, BlockSmooth, SelfBounded
from bounds.papers.fed_norm_sgda.proof.letters import DELTA, DESCENT_SETTING, PAPER, Fx, Fy, G, L, kappa, mu, y0, ys

SMOOTHNESS_OF_ENVELOPE = measure_symbol(LEMMA_B_1.measure)
TWO_POINTS = Setting(
    "two points x and u, and a maximiser at each",
    {
        atom.name: atom
        for atom in (
            Atom("x", "point", 0, "any point", per_client=False),
            Atom("u", "point", 0, "any other point", per_client=False),
            Atom("yx", "point", 0, "a maximiser of f(x, .)", per_client=False),
            Atom("yu", "point", 0, "the maximiser of f(u, .) next to yx", per_client=False),
            Atom("e", "gradient", 0, "grad_y f(u, yx)", "u yx", "f/y", per_client=False),
            Atom("px", "gradient", 0, "grad_x f(x, yx) = grad phi(x)", "x yx", "f/x", per_client=False),
            Atom("pu", "gradient", 0, "grad_x f(u, yu) = grad phi(u)", "u yu", "f/x", per_client=False),
        )
    },
)
x, u, yx, yu, e, px, pu = (Vec.atom(name) for name in ("x", "u", "yx", "yu", "e", "px", "pu"))
ANYWHERE = "for all x and u"


@dataclass(frozen=True)
class AtMaximiser(Schema):
    r"""$\|\nabla_yf(u,y_x)\|\le L_f\|u-x\|$, because $\nabla_yf(x,y_x)=0$ at a maximiser."""

    axiom: str = "a smooth function has no gradient at its maximum"
    needs: tuple[str, ...] = (JOINTLY_SMOOTH.name,)

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """Of e, by its meaning."""
        return Relation(square(e), L**2 * square(u - x))


@dataclass(frozen=True)
class LeastConstant(Schema):
    r"""A gradient that is Lipschitz with M for all pairs of points: the smoothness is at most M.

    Args:
        constant: M.
    """

    constant: sp.Expr
    axiom: str = "Danskin: grad phi(x) = grad_x f(x, y) at any maximiser y"
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The premise is the Lipschitz bound, squared."""
        wanted = Relation(square(px - pu), self.constant**2 * square(x - u))
        if len(premises) != 1 or not same(premises[0].left, wanted.left) or not same(premises[0].right, wanted.right):
            raise Unfit(f"the premise is not {wanted}")
        return Relation(SMOOTHNESS_OF_ENVELOPE, self.constant)


LIPSCHITZ_MAXIMISER = Relation(square(yx - yu), kappa**2 * square(u - x))
ENVELOPE_STEPS = (
    Step(
        "E1",
        "the gradient in y at another x",
        Relation(square(e), L**2 * square(u - x)),
        AtMaximiser(),
        (JOINTLY_SMOOTH,),
        ANYWHERE,
    ),
    Step(
        "E2",
        "the error bound",
        Relation(mu**2 * square(yx - yu), square(e)),
        Assumed(mu**2 * square(yx - yu), square(e), (STRONGLY_CONCAVE.name,), "f(u, .) at yx"),
        (STRONGLY_CONCAVE,),
        ANYWHERE,
    ),
    Step(
        "E3",
        "the maximiser is kappa-Lipschitz",
        LIPSCHITZ_MAXIMISER,
        Combine((1 / mu**2, 1 / mu**2)),
        ("E1", "E2"),
        ANYWHERE,
    ),
    Step(
        "E4",
        "joint smoothness at the two maximisers",
        Relation(square(px - pu), sp.expand(L**2 * (square(x - u) + square(yx - yu)))),
        BlockSmooth((("px", "pu"),)),
        (JOINTLY_SMOOTH,),
        ANYWHERE,
    ),
    Step(
        "E5",
        "the gradient of the envelope",
        Relation(square(px - pu), (L * sqrt(1 + kappa**2)) ** 2 * square(x - u)),
        Combine((1, L**2)),
        ("E4", "E3"),
        ANYWHERE,
    ),
    Step(
        "B.1-sharp",
        "Lemma B.1 with the Euclidean length",
        Relation(SMOOTHNESS_OF_ENVELOPE, L * sqrt(1 + kappa**2)),
        LeastConstant(L * sqrt(1 + kappa**2)),
        ("E5",),
    ),
    Step(
        "E6",
        "with a round constant",
        Relation(square(px - pu), ((1 + kappa) * L) ** 2 * square(x - u)),
        Combine((1,)),
        ("E5",),
        ANYWHERE,
    ),
    Step(
        "B.1",
        "Lemma B.1, repaired",
        Relation(SMOOTHNESS_OF_ENVELOPE, (1 + kappa) * L),
        LeastConstant((1 + kappa) * L),
        ("E6",),
    ),
)
ENVELOPE_PROOF = Proof(
    f"{PAPER}/lemma-b.1", TWO_POINTS, ENVELOPE_STEPS, LEMMA_B_1, {"sharp": "B.1-sharp", "repaired": "B.1"}
)

# --- Lemma B.6 ------------------------------------------------------------------------------------------------------

Phi = Vec.atom("Phi")
ROUND = "for every round t"
AWAY_STEPS = (
    Step("S0", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,)),
    Step(
        "B6a",
        "smoothness between y_t and the maximiser",
        Relation(square(Phi - Fx), sp.expand(L**2 * square(ys - y0))),
        BlockSmooth((("Phi", "Fx"),)),
        ("S0", JOINTLY_SMOOTH),
        ROUND,
    ),
    Step(
        "B6b",
        "quadratic growth, Lemma A.5",
        Relation(mu / 2 * square(ys - y0), DELTA),
        Assumed(sp.expand(mu / 2 * square(ys - y0)), DELTA, (STRONGLY_CONCAVE.name,), "F~(x_t, .) at y_t"),
        (STRONGLY_CONCAVE,),
        ROUND,
    ),
    Step(
        "B6c",
        "the gradient in x against that of the envelope",
        Relation(square(Phi - Fx), 2 * kappa * L * DELTA),
        Combine((1, 2 * kappa * L)),
        ("B6a", "B6b"),
        ROUND,
    ),
    Step(
        "B6c-turned",
        "the same, turned",
        Relation(square(Fx - Phi), 2 * kappa * L * DELTA),
        Combine((1,)),
        ("B6c",),
        ROUND,
    ),
    Step("B6", "Lemma B.6", Relation(square(Fx), 2 * G + 4 * kappa * L * DELTA), Combine((2,)), ("B6c",), ROUND),
    Step(
        "B6y",
        "the gradient in y, Lemma A.7, eq. (33)",
        Relation(square(Fy), 2 * L * DELTA),
        SelfBounded("Fy", DELTA),
        ("S0", JOINTLY_SMOOTH),
        ROUND,
    ),
    Step(
        "B6p",
        "the gradient in y from below, Lemma A.5",
        Relation(2 * mu * DELTA, square(Fy)),
        Assumed(2 * mu * DELTA, square(Fy), (STRONGLY_CONCAVE.name,), "F~(x_t, .) at y_t"),
        (STRONGLY_CONCAVE,),
        ROUND,
    ),
    Step("B6g", "a letter for a square", Relation(square(Phi), G), Combine(), (), ROUND),
    Step(
        "B6-sharp",
        "Lemma B.6 by the triangle inequality",
        Relation(square(Fx), (sqrt(G) + sqrt(2 * kappa * L * DELTA)) ** 2),
        Triangle(Phi, Fx - Phi, (sqrt(G), sqrt(2 * kappa * L * DELTA))),
        ("B6g", "B6c-turned"),
        ROUND,
    ),
)
TO_LETTERS = {G: n.gradsq, DELTA: n.gap}
AWAY_PROOF = Proof(
    f"{PAPER}/lemma-b.6",
    DESCENT_SETTING,
    AWAY_STEPS,
    LEMMA_B_6,
    {"printed": "B6", "sharp": "B6-sharp"},
    square(Fx),
    TO_LETTERS,
)
