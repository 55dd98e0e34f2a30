# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemma B.5: how the dual gap shrinks from round to round, and its average, eqs. (34) to (44).

$\delta_{t+1}-\delta_t$ is what the envelope gains less what the objective gains, in x and then in y. (34) replaces
$\mathbb E\langle\nabla_y\tilde F(x_{t+1},y_t),g_y\rangle$ by the same with exact gradients, although $x_{t+1}$ comes
from the same samples as $g_y$; here the gradient is taken at $x_t$ instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational, Symbol

from bounds.assumptions import MARTINGALE
from bounds.audit.axioms import Schema
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Abbreviated, Combine, Gram, Stated
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Vec, inner, square
from bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, JOINTLY_SMOOTH, SAMPLING, STRONGLY_CONCAVE
from bounds.papers.fed_norm_sgda.composites import CURVATURE, SIMPLEX
from bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_5
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import (
    ON_THE_SIMPLEX,
    BlockSmooth,
    NoiseGivenStart,
    SampleMean,
    SmoothFall,
)
from bounds.papers.fed_norm_sgda.proof.caps import CAPS_PROOF
from bounds.papers.fed_norm_sgda.proof.descent import DECREASE, DESCENT_PROOF, MOVE, in_x_before
from bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_X, IN_Y, TO_LETTERS
from bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF
from bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF
from bounds.papers.fed_norm_sgda.proof.letters import (
    DELTA,
    DESCENT_SETTING,
    PAPER,
    S_1,
    S_2,
    G,
    Gammax,
    Gammay,
    H,
    L,
    M,
    N,
    V,
    X,
    betaG,
    c,
    kappa,
    mu,
    nu,
    r,
    x0,
)
from bounds.papers.fed_norm_sgda.results import ENVELOPE

ROUND, CAPS = DIRECTIONS_PROOF.id, CAPS_PROOF.id
HALF = Rational(1, 2)
FALL_X = Symbol("[F~(x_t, y_t) - F~(x_{t+1}, y_t)]", real=True)
FALL_Y = Symbol("[F~(x_{t+1}, y_t) - F~(x_{t+1}, y_{t+1})]", real=True)
GAP_DECREASE = Symbol("[delta_t - delta_{t+1}]", real=True)
Fy1, x1 = Vec.atom("Fy1"), Vec.atom("x1")
DX, DY = IN_X.s + IN_X.n, IN_Y.s + IN_Y.n
CLIMB = Gammay * DY  # y_{t+1} - y_t
SETTING = Setting(
    DESCENT_SETTING.bracket,
    DESCENT_SETTING.atoms,
    letters={**DESCENT_SETTING.letters, GAP_DECREASE: DECREASE - FALL_X - FALL_Y},
)
IN_X_SQUARED = (Gammax**2 * (M + L) + Gammax * Gammay * L) / 2  # what multiplies |g_x|^2
IN_Y_SQUARED = (Gammay**2 + Gammax * Gammay) * L / 2  # and |g_y|^2


@dataclass(frozen=True)
class ServerStep(Schema):
    r"""$x_{t+1}-x_t=-\Gamma_xg_x$, the squares of both sides."""

    axiom: str = "the algorithm: the server's step"
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """Of x1, by its meaning."""
        return Relation(square(x1 - x0), sp.expand(square(MOVE)), "==")


def fall_steps() -> Iterator[Step]:
    """(42), and (34) with the gradient at the old x."""
    noise = (BLOCK_NOISE, MARTINGALE, SAMPLING)
    yield Step("S0", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,))
    yield Step(
        "X1",
        "smoothness in x",
        Relation(FALL_X, sp.expand(-inner(IN_X.F, MOVE) + L / 2 * square(MOVE))),
        SmoothFall("Fx", MOVE, FALL_X),
        ("S0", JOINTLY_SMOOTH),
        EACH,
    )
    for b, fall in ((IN_X, "X"), (IN_Y, "Y")):
        yield Step(
            f"{fall}2",
            "the sample averaged out",
            Relation(inner(b.s, b.F), inner(b.H, b.F), "=="),
            SampleMean(f"s{b.name}", b.F),
            (SAMPLING,),
            EACH,
        )
        yield Step(
            f"{fall}3",
            "the noise averaged out",
            Relation(inner(b.n, b.F), Integer(0), "=="),
            NoiseGivenStart(b.n, b.F),
            noise,
            EACH,
        )
    in_x = Gammax / 2 * (2 * G + 4 * kappa * L * DELTA) + Gammax / 2 * H + L / 2 * square(MOVE)
    yield Step("X4", "Young", Relation(2 * inner(IN_X.H, IN_X.F), H + square(IN_X.F)), Gram(), (), EACH)
    yield Step(
        "42",
        "(42): what the objective loses in x",
        Relation(FALL_X, sp.expand(in_x)),
        Combine((1, Gammax, Gammax, Gammax / 2, Gammax / 2)),
        ("X1", "X2", "X3", "X4", f"{AWAY_PROOF.id}/B6"),
        EACH,
    )
    yield Step(
        "Y1",
        "smoothness in y, at the new x",
        Relation(FALL_Y, sp.expand(-inner(Fy1, CLIMB) + L / 2 * square(CLIMB))),
        SmoothFall("Fy1", CLIMB, FALL_Y),
        ("S0", JOINTLY_SMOOTH),
        EACH,
    )
    yield Step(
        "Y4",
        "smoothness between the old x and the new",
        Relation(square(Fy1 - IN_Y.F), sp.expand(L**2 * square(x1 - x0))),
        BlockSmooth((("Fy1", "Fy"),)),
        ("S0", JOINTLY_SMOOTH),
        EACH,
    )
    yield Step("Y5", "the server's step in x", Relation(square(x1 - x0), sp.expand(square(MOVE)), "=="), ServerStep())
    yield Step(
        "Y6",
        "Young with Gamma_x Lf for what the new x changes",
        Relation(
            -2 * inner(Fy1 - IN_Y.F, DY), sp.expand(square(Fy1 - IN_Y.F) / (Gammax * L) + Gammax * L * square(DY))
        ),
        Gram(),
        (),
        EACH,
    )
    yield Step(
        "34",
        "(34) repaired: what the objective gains in y",
        Relation(FALL_Y, sp.expand(in_y_before() + Gammax * Gammay * L / 2 * square(DX) + IN_Y_SQUARED * square(DY))),
        Combine(
            (
                1,
                -Gammay,
                -Gammay,
                Gammay / 2,
                Gammay / (2 * Gammax * L),
                Gammay * L / (2 * Gammax),
                Gammay / 2,
                Gammay / 2,
            )
        ),
        ("Y1", "Y2", "Y3", "Y6", "Y4", "Y5", f"{AWAY_PROOF.id}/B6p", f"{ROUND}/D4y"),
        EACH,
    )


def in_y_before() -> sp.Expr:
    """The right-hand side of (34) without squared directions."""
    return -Gammay * mu * DELTA - Gammay / 2 * square(IN_Y.H) + Gammay / 2 * X


def raw() -> sp.Expr:
    """All three together, squared directions kept."""
    squares = IN_X_SQUARED * square(DX) + IN_Y_SQUARED * square(DY)
    first_order = in_x_before() + Gammax / 2 * (2 * G + 4 * kappa * L * DELTA) + Gammax / 2 * H + in_y_before()
    return first_order + squares


@dataclass(frozen=True)
class Contraction:
    """The constants of (43): how much of the dual gap is lost in a round, and what is added to it.

    Args:
        suffix: of the steps.
        kept: of Gamma_y mu delta_t.
        gradient: of Gamma_y/kappa^2 times the squared gradient.
        local: of nu Gamma_y V.
        noise: of nu Gamma_y^2 Lf N/2.
    """

    suffix: str
    kept: sp.Rational
    gradient: sp.Rational
    local: sp.Rational
    noise: sp.Rational

    @property
    def adds(self) -> sp.Expr:
        """What a round adds."""
        unsteady = nu * c * IN_X_SQUARED * H
        drift = self.local * nu * Gammay * V
        return self.gradient * Gammay / kappa**2 * G + self.noise / 2 * nu * Gammay**2 * L * N + drift + unsteady

    @property
    def right(self) -> sp.Expr:
        """(43), without the dual gap's decrease."""
        return -self.kept * Gammay * mu * DELTA + self.adds


REPAIRED = Contraction("", Rational(3, 4), Rational(1, 80), Rational("1.525"), Rational("1.0132"))
SHARP = Contraction("-sharp", Rational("0.8839"), Rational("0.0051"), Rational("1.5194"), Rational("1.0132"))


def gap_steps() -> Iterator[Step]:
    """From the three changes to one round of the dual gap."""
    yield Step(
        "43-three",
        "the envelope's decrease, and what the objective loses and gains",
        Relation(-DECREASE + FALL_X + FALL_Y, sp.expand(raw())),
        Combine((1, 1, 1)),
        (f"{DESCENT_PROOF.id}/24", "42", "34"),
        EACH,
    )
    yield Step(
        "43-raw",
        "which is what the dual gap grows by",
        Relation(-GAP_DECREASE, sp.expand(raw())),
        Abbreviated(),
        ("43-three",),
        EACH,
    )
    for constants in (REPAIRED, SHARP):
        yield capped(constants)


def capped(constants: Contraction) -> Step:
    """(43) repaired."""
    share = Rational(53, 52)  # of Gamma_x Gamma_y Lf/2, by the step `x-move`
    lifted = 2 * G + 4 * kappa * L * DELTA
    local = constants.local / 2 * Gammay
    with_x = (  # what Gamma_x multiplies once the other caps are used
        (1 + (1 + share) / 4) * X
        + (HALF + share / (16 * kappa)) * G
        + (4 * kappa + share / 8 + 1 / (16 * kappa)) * L * DELTA
        + (1 + share) / 2 * nu * Gammay * L * N
    )
    return Step(
        f"43{constants.suffix}",
        "(43) repaired: the caps put in",
        Relation(-GAP_DECREASE, sp.expand(constants.right)),
        Combine(
            (
                1,
                IN_X_SQUARED,
                IN_Y_SQUARED,
                nu * (N + 2 * r * S_2 * X + 2 * r * S_1 * betaG**2 * lifted),
                X * (share * Gammax + Gammax + Gammay),
                share * Gammax / kappa * lifted + 2 * (Gammax + Gammay) * L * DELTA / kappa,
                local,
                local * G,
                local * DELTA,
                with_x / (156 * kappa**2),
                0,
                0,
                0,
                0,
            )
        ),
        (
            "43-raw",
            f"{ROUND}/(36)",
            f"{ROUND}/(37)",
            f"{CAPS}/x-move",
            f"{CAPS}/(g)",
            f"{CAPS}/(b)",
            f"{DRIFT_PROOF.id}/B.4",
            f"{CAPS}/theta_G",
            f"{CAPS}/theta_delta",
            f"{CAPS}/(c)",
            f"{CAPS}/(a)",
            f"{CAPS}/c",
            f"{CAPS}/M",
            f"{CAPS}/x-a",
            CURVATURE,
        ),
        EACH,
    )


G_MEAN = measure_symbol(ENVELOPE)
GAP_MEAN = measure_symbol(LEMMA_B_5.measure)
H_MEAN = Symbol("[average over rounds of |sum_i w_i h_x|^2]", nonnegative=True)
IN_MEAN = ((G, G_MEAN), (H, H_MEAN))
NEVER_NEGATIVE = "the dual gap is never negative, so that its decreases sum to at most the first"


def average_steps(constants: Contraction) -> Iterator[Step]:
    """(44): solved for the dual gap, averaged over the rounds."""
    rate, x = 1 / (constants.kept * Gammay * mu), constants.suffix
    one = sp.expand(rate * (GAP_DECREASE + constants.adds))
    yield Step(f"44-round{x}", "solved for the dual gap", Relation(DELTA, one), Combine((rate,)), (f"43{x}",), EACH)
    averaged = one.xreplace({GAP_DECREASE: n.delta0 / n.T, G: G_MEAN, H: H_MEAN})
    yield Step(
        f"44{x}",
        "Lemma B.5, (44): the average over the rounds, telescoped",
        Relation(GAP_MEAN, averaged),
        AverageOverRounds(
            GAP_DECREASE, n.delta0, n.T, GAP_MEAN, DELTA, IN_MEAN, STRONGLY_CONCAVE.name, axiom=NEVER_NEGATIVE
        ),
        (f"44-round{x}", STRONGLY_CONCAVE),
    )


STEPS = (*fall_steps(), *gap_steps(), *average_steps(REPAIRED), *average_steps(SHARP))
ON_AVERAGE = {**TO_LETTERS, G_MEAN: n.epsopt, H_MEAN: n.direction}
ENDS = {"repaired": "44", "sharp": "44-sharp"}
ASCENT_PROOF = Proof(f"{PAPER}/lemma-b.5", SETTING, STEPS, LEMMA_B_5, ENDS, substitute=ON_AVERAGE)
