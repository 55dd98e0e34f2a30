"""The paper's own chain to Theorem 1 with its constants; it rests on (19), (25) and (34), which are false."""

import sympy as sp
from sympy import Rational, Symbol

from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.rules import Gram, Unfolded
from fedbounds.bounds.audit.vectors import inner, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import SAMPLING, STRONGLY_CONCAVE
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_5
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import ascent
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import given_start, sample_mean
from fedbounds.bounds.papers.fed_norm_sgda.proof.caps import CAPS_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.descent import DECREASE, DESCENT_PROOF, in_x_before
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_Y, NOISY
from fedbounds.bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem import descent_steps
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1

DELTA, PAPER, S_1, S_2, G, Gammax, Gammay, H = of.DELTA, of.PAPER, of.S_1, of.S_2, of.G, of.Gammax, of.Gammay, of.H
L, M, N, V, X, betaG, c, kappa, mu, r = of.L, of.M, of.N, of.V, of.X, of.betaG, of.c, of.kappa, of.mu, of.r

ASCENT_PROOF, CAPS, CLIMB, DX, DY = ascent.ASCENT_PROOF, ascent.CAPS, ascent.CLIMB, ascent.DX, ascent.DY
FALL_X, FALL_Y, G_MEAN, GAP_DECREASE = ascent.FALL_X, ascent.FALL_Y, ascent.G_MEAN, ascent.GAP_DECREASE
LIFTED, ON_AVERAGE = ascent.LIFTED, ascent.ON_AVERAGE
ROUND, SETTING, TELESCOPED, Fy1 = ascent.ROUND, ascent.SETTING, ascent.TELESCOPED, ascent.Fy1

HALF = Rational(1, 2)
LATER = Symbol("[Phi~(x_{t+1}) - F~(x_{t+1}, y_t)]", real=True)
ASCENT = ASCENT_PROOF.id
THERE = SETTING.with_symbols({LATER: DELTA - DECREASE + FALL_X})


def ascent_steps(s: Chain) -> None:
    """(34) to (38) as printed: the ascent measured at the new x."""
    s["34-sample", "(34) as printed: the sample averaged out at the new x, which depends on it"] = by(
        eq(inner(IN_Y.s, Fy1), inner(IN_Y.H, Fy1)), sample_mean("sy", Fy1), SAMPLING
    )
    s["34-noise", "(34) as printed: the noise averaged out at the new x, which depends on it"] = by(
        eq(inner(IN_Y.n, Fy1), 0), given_start(IN_Y.n, Fy1), *NOISY
    )
    s["34", "(34) as printed"] = by(
        le(FALL_Y, sp.expand(-Gammay * inner(Fy1, IN_Y.H) + L / 2 * square(CLIMB))), f"{ASCENT}/Y1 34-sample 34-noise"
    )
    s["35a", "(35): two parts"] = by(
        le(square(Fy1 - IN_Y.H), 2 * square(Fy1 - IN_Y.F) + 2 * square(IN_Y.F - IN_Y.H)), Gram()
    )
    s["35", "(35): smoothness between the old x and the new, and the drift"] = by(
        le(square(Fy1 - IN_Y.H), sp.expand(2 * L**2 * Gammax**2 * square(DX) + 2 * X)),
        f"35a {ASCENT}/Y4 {ASCENT}/Y5 {ROUND}/D4y",
    )
    s["35-gap", "the gradient in y at the new x from below, Lemma A.5: F~(x_{t+1}, .) at y_t"] = by(
        le(2 * mu * LATER, square(Fy1)), STRONGLY_CONCAVE
    )
    gained = -Gammay * mu * (DELTA - DECREASE + FALL_X) - Gammay / 2 * square(IN_Y.H) + Gammay * X
    gained += Gammay * L**2 * Gammax**2 * square(DX) + Gammay**2 * L / 2 * square(DY)
    s["38", "(38) as printed: the gap at the new x is the old one and what envelope and objective change"] = by(
        le(FALL_Y, sp.expand(gained)), Unfolded, {"34": 1, "35": Gammay / 2, "35-gap": Gammay / 2}
    )


def contraction() -> sp.Expr:
    """(43) as printed, without the dual gap's decrease."""
    lost = -Gammay * mu / 4 * DELTA + Gammay / (48 * kappa**2) * G + 2 * Gammax**2 * M * c * H
    return lost + Rational(3, 2) * Gammay**2 * L * N + (Rational(9, 2) * Gammay + 2 * Gammax**2 * L * r * S_2) * V


def gap_steps(s: Chain) -> None:
    """(43) as printed."""
    kept, drift = 1 - Gammay * mu, Rational(9, 4) * Gammay
    in_x = in_x_before() + Gammax / 2 * LIFTED + Gammax / 2 * H
    moved = kept * (Gammax**2 * (M + L) / 2) + Gammay * L**2 * Gammax**2
    rest = kept * in_x - Gammay * mu * DELTA - Gammay / 2 * square(IN_Y.H) + Gammay * X
    raw = sp.expand(rest + moved * square(DX) + Gammay**2 * L / 2 * square(DY))
    s["43-three", "the envelope's decrease, and what the objective loses and gains"] = by(
        le(-DECREASE + FALL_X + FALL_Y, raw),
        {"38": 1, f"{DESCENT_PROOF.id}/24": kept, f"{ASCENT}/42": kept},
        f"{CAPS}/(a)-printed",
        CURVATURE,
    )
    s["43-raw", "which is what the dual gap grows by"] = le(-GAP_DECREASE, raw), Unfolded, "43-three"
    s["43-moved", "what multiplies the squared direction in x", ""] = by(
        le(moved, Gammax**2 * M), {f"{CAPS}/(a)-printed": Gammax**2 * L, f"{CAPS}/M-low": HALF * Gammax**2}, CURVATURE
    )
    factors = {
        "43-raw": 1,
        f"{ROUND}/(36)-printed": moved,
        "43-moved": N + 2 * r * S_1 * betaG**2 * LIFTED + c * H,
        f"{ROUND}/(37)-printed": Gammay**2 * L / 2,
        f"{CAPS}/(g)-printed-symbols": Gammay * X,
        f"{CAPS}/x-g-printed": Gammax * X / (52 * kappa),
        f"{CAPS}/x-b-printed": Gammax * LIFTED / (1248 * kappa**2),
        f"{CAPS}/(b)-printed": 2 * Gammay * L * DELTA / kappa,
        f"{DRIFT_PROOF.id}/B.4-explicit": drift,
        f"{CAPS}/theta_G-printed": drift * G,
        f"{CAPS}/theta_delta-printed": drift * DELTA,
    }
    s["43", "(43) as printed: the caps put in"] = by(
        le(-GAP_DECREASE, sp.expand(contraction())),
        factors,
        *(f"{CAPS}/{name}" for name in ("(c)-printed", "(a)-printed", "c", "M", "M-low")),
        CURVATURE,
    )


s = Chain(THERE, EACH, (DIRECTIONS_PROOF, DRIFT_PROOF, DESCENT_PROOF, CAPS_PROOF, ASCENT_PROOF))
ascent_steps(s)
gap_steps(s)
one = sp.expand(4 / (Gammay * mu) * (GAP_DECREASE + contraction()) + DELTA)
s["44-round", "solved for the dual gap"] = le(DELTA, one), "43"
s["16", "Lemma B.5, (16) with (1 + kappa) Lf", ""] = TELESCOPED, "44-round", STRONGLY_CONCAVE
GAP_PROOF = s.proof(f"{PAPER}/lemma-b.5-printed", LEMMA_B_5, {"explicit": "16"}, substitute=ON_AVERAGE)


def rest() -> sp.Expr:
    """(41) as printed, without decrease and gradient."""
    direction = -Gammax / 2 * (1 - c * Gammax * M) * H
    return direction + Rational(5, 2) * Gammax * (kappa * L * DELTA + V) + Gammax**2 * M / 2 * N


initial = 6 * n.Delta / (Gammax * n.T) + 60 * kappa**2 * n.delta0 / (Gammay * n.T)
noise = (90 * kappa**2 * Gammay * L + 3 * Gammax * M) * N
local = (270 * kappa**2 + 15 + 120 * kappa**2 * L * r * S_2 * Gammax**2 / Gammay) * V
s = Chain(THERE, EACH, (DIRECTIONS_PROOF, DRIFT_PROOF, DESCENT_PROOF, CAPS_PROOF, GAP_PROOF))
descent_steps(s, Rational(3, 8) * Gammax, rest(), Rational(5, 4) * Gammax, source="-printed", local="B.4-explicit")
s["18", "(18) with the constants of the paper's own proof", ""] = by(
    le(G_MEAN, sp.expand(initial + noise + local)),
    {"T1": Rational(9, 4), f"{GAP_PROOF.id}/16": 15 * kappa * L},
    *(f"{CAPS}/{name}" for name in ("(c)-printed", "x-a-printed", "c", "M")),
    CURVATURE,
)
PRINTED_PROOF = s.proof(f"{PAPER}/theorem-1-printed", THEOREM_1, {"explicit": "18"}, substitute=ON_AVERAGE)
