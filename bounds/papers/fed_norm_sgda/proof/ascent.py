"""Lemma B.5: how the dual gap shrinks from round to round, and its average, eqs. (34) to (44).

(34) ignores that $x_{t+1}$ and $g_y$ come from the same samples; here the gradient is taken at $x_t$ instead.
"""

from dataclasses import dataclass

import sympy as sp
from sympy import Rational, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.proof_step_checker import measure_symbol
from fedbounds.bounds.audit.rules import Gram, Telescope, Unfolded
from fedbounds.bounds.audit.vectors import Vec, inner, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, SAMPLING, STRONGLY_CONCAVE
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE, SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_5
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import axioms
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.caps import CAPS_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.descent import DECREASE, DESCENT_PROOF, MOVE, in_x_before
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_X, IN_Y, NOISY, TO_SYMBOLS
from fedbounds.bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.results import ENVELOPE

DELTA, DESCENT_SETTING, PAPER, S_1, S_2, G = of.DELTA, of.DESCENT_SETTING, of.PAPER, of.S_1, of.S_2, of.G
Gammax, Gammay, H, L, M, N, V, X, betaG, c = of.Gammax, of.Gammay, of.H, of.L, of.M, of.N, of.V, of.X, of.betaG, of.c
kappa, mu, nu, r, x0 = of.kappa, of.mu, of.nu, of.r, of.x0

ROUND, CAPS = DIRECTIONS_PROOF.id, CAPS_PROOF.id
HALF = Rational(1, 2)
FALL_X = Symbol("[F~(x_t, y_t) - F~(x_{t+1}, y_t)]", real=True)
FALL_Y = Symbol("[F~(x_{t+1}, y_t) - F~(x_{t+1}, y_{t+1})]", real=True)
GAP_DECREASE = Symbol("[delta_t - delta_{t+1}]", real=True)
Fy1, x1 = Vec.atom("Fy1"), Vec.atom("x1")
DX, DY = IN_X.s + IN_X.n, IN_Y.s + IN_Y.n
CLIMB = Gammay * DY  # y_{t+1} - y_t
SETTING = DESCENT_SETTING.with_symbols({GAP_DECREASE: DECREASE - FALL_X - FALL_Y})
IN_X_SQUARED = (Gammax**2 * (M + L) + Gammax * Gammay * L) / 2  # what multiplies |g_x|^2
IN_Y_SQUARED = (Gammay**2 + Gammax * Gammay) * L / 2  # and |g_y|^2
LIFTED = 2 * G + 4 * kappa * L * DELTA  # Lemma B.6


def fall_steps(s: Chain) -> None:
    """(42), and (34) with the gradient at the old x."""
    s["X1", "smoothness in x"] = axioms.of_objective("Fx", MOVE, FALL_X), SIMPLEX, JOINTLY_SMOOTH
    for b, fall in ((IN_X, "X"), (IN_Y, "Y")):
        s[f"{fall}2", "the sample averaged out"] = axioms.sample_mean(f"s{b.name}", b.F), SAMPLING
        s[f"{fall}3", "the noise averaged out"] = axioms.given_start(b.n, b.F), *NOISY
    s["X4", "Young"] = le(2 * inner(IN_X.H, IN_X.F), H + square(IN_X.F)), Gram()
    in_x = Gammax / 2 * LIFTED + Gammax / 2 * H + L / 2 * square(MOVE)
    s["42", "(42): what the objective loses in x"] = le(FALL_X, sp.expand(in_x)), f"X1 X2 X3 X4 {AWAY_PROOF.id}/B6"
    s["Y1", "smoothness in y, at the new x"] = axioms.of_objective("Fy1", CLIMB, FALL_Y), SIMPLEX, JOINTLY_SMOOTH
    s["Y4", "smoothness between the old x and the new"] = by(
        axioms.smooth("Fy1", "Fy", axioms.ON_THE_SIMPLEX), SIMPLEX, JOINTLY_SMOOTH
    )
    s["Y5", "the server's step in x", ""] = ByMeaning(
        "ServerStep", square(x1 - x0), sp.expand(square(MOVE)), "the algorithm: the server's step", op="=="
    )
    changes = square(Fy1 - IN_Y.F) / (Gammax * L) + Gammax * L * square(DY)
    s["Y6", "Young with Gamma_x Lf for what the new x changes"] = by(
        le(-2 * inner(Fy1 - IN_Y.F, DY), sp.expand(changes)), Gram()
    )
    gained = in_y_before() + Gammax * Gammay * L / 2 * square(DX) + IN_Y_SQUARED * square(DY)
    s["34", "(34) repaired: what the objective gains in y"] = by(
        le(FALL_Y, sp.expand(gained)), f"Y1 Y2 Y3 Y6 Y4 Y5 {AWAY_PROOF.id}/B6p {ROUND}/D4y"
    )


def in_y_before() -> sp.Expr:
    """The right-hand side of (34) without squared directions."""
    return -Gammay * mu * DELTA - Gammay / 2 * square(IN_Y.H) + Gammay / 2 * X


def raw() -> sp.Expr:
    """All three together, squared directions kept."""
    squares = IN_X_SQUARED * square(DX) + IN_Y_SQUARED * square(DY)
    first_order = in_x_before() + Gammax / 2 * LIFTED + Gammax / 2 * H + in_y_before()
    return first_order + squares


@dataclass(frozen=True)
class Contraction:
    """The constants of (43): how much of the dual gap is lost in a round, and what is added to it."""

    suffix: str  # of the steps
    kept: sp.Rational  # of Gamma_y mu delta_t
    gradient: sp.Rational  # of Gamma_y/kappa^2 times the squared gradient
    local: sp.Rational  # of nu Gamma_y V
    noise: sp.Rational  # of nu Gamma_y^2 Lf N/2

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


def gap_steps(s: Chain) -> None:
    """From the three changes to one round of the dual gap."""
    s["43-three", "the envelope's decrease, and what the objective loses and gains"] = by(
        le(-DECREASE + FALL_X + FALL_Y, sp.expand(raw())), f"{DESCENT_PROOF.id}/24 42 34"
    )
    s["43-raw", "which is what the dual gap grows by"] = le(-GAP_DECREASE, sp.expand(raw())), Unfolded, "43-three"
    for constants in (REPAIRED, SHARP):
        capped(s, constants)


def capped(s: Chain, constants: Contraction) -> None:
    """(43) repaired."""
    share = Rational(53, 52)  # of Gamma_x Gamma_y Lf/2, by the step `x-move`
    local = constants.local / 2 * Gammay
    with_x = (  # what Gamma_x multiplies once the other caps are used
        (1 + (1 + share) / 4) * X
        + (HALF + share / (16 * kappa)) * G
        + (4 * kappa + share / 8 + 1 / (16 * kappa)) * L * DELTA
        + (1 + share) / 2 * nu * Gammay * L * N
    )
    factors = {
        "43-raw": 1,
        f"{ROUND}/(36)": IN_X_SQUARED,
        f"{ROUND}/(37)": IN_Y_SQUARED,
        f"{CAPS}/x-move": nu * (N + 2 * r * S_2 * X + 2 * r * S_1 * betaG**2 * LIFTED),
        f"{CAPS}/(g)": X * (share * Gammax + Gammax + Gammay),
        f"{CAPS}/(b)": share * Gammax / kappa * LIFTED + 2 * (Gammax + Gammay) * L * DELTA / kappa,
        f"{DRIFT_PROOF.id}/B.4": local,
        f"{CAPS}/theta_G": local * G,
        f"{CAPS}/theta_delta": local * DELTA,
        f"{CAPS}/(c)": with_x / (156 * kappa**2),
    }
    s[f"43{constants.suffix}", "(43) repaired: the caps put in"] = by(
        le(-GAP_DECREASE, sp.expand(constants.right)), factors, f"{CAPS}/(a) {CAPS}/c {CAPS}/M {CAPS}/x-a", CURVATURE
    )


G_MEAN = measure_symbol(ENVELOPE)
GAP_MEAN = measure_symbol(LEMMA_B_5.measure)
H_MEAN = Symbol("[average over rounds of |sum_i w_i h_x|^2]", nonnegative=True)
IN_MEAN = ((G, G_MEAN), (H, H_MEAN))
NEVER_NEGATIVE = "the dual gap is never negative, so that its decreases sum to at most the first"


def average_steps(s: Chain, constants: Contraction) -> None:
    """(44): solved for the dual gap, averaged over the rounds."""
    x = constants.suffix
    one = sp.expand((GAP_DECREASE + constants.adds) / (constants.kept * Gammay * mu))
    s[f"44-round{x}", "solved for the dual gap"] = le(DELTA, one), f"43{x}"
    s[f"44{x}", "Lemma B.5, (44): the average over the rounds, telescoped", ""] = by(
        TELESCOPED, f"44-round{x}", STRONGLY_CONCAVE
    )


TELESCOPED = Telescope(
    GAP_DECREASE, n.delta0, n.T, GAP_MEAN, DELTA, IN_MEAN, STRONGLY_CONCAVE.name, axiom=NEVER_NEGATIVE
)
s = Chain(SETTING, EACH, (AWAY_PROOF, DIRECTIONS_PROOF, DRIFT_PROOF, DESCENT_PROOF, CAPS_PROOF))
fall_steps(s)
gap_steps(s)
average_steps(s, REPAIRED)
average_steps(s, SHARP)
ON_AVERAGE = {**TO_SYMBOLS, G_MEAN: n.epsopt, H_MEAN: n.direction}
ENDS = {"repaired": "44", "sharp": "44-sharp"}
ASCENT_PROOF = s.proof(f"{PAPER}/lemma-b.5", LEMMA_B_5, ENDS, substitute=ON_AVERAGE)
