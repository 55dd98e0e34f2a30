r"""Lemma B.3 and eq. (41): one round of descent of the envelope, and what the caps on the steps make of it."""

import sympy as sp
from sympy import Integer, Rational, Symbol

from fedbounds.bounds.audit.axioms import Descent
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.rules import Gram, Unfolded
from fedbounds.bounds.audit.vectors import Vec, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, SAMPLING
from fedbounds.bounds.papers.fed_norm_sgda.composites import SAMPLED, SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_3
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, given_start, sample_mean
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_X, NOISY, TO_SYMBOLS
from fedbounds.bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF, ENVELOPE_PROOF, ROUNDED, SMOOTH_ENVELOPE

DELTA, DESCENT_SETTING, PAPER, S_1, S_2, G = of.DELTA, of.DESCENT_SETTING, of.PAPER, of.S_1, of.S_2, of.G
Gammax, H, K, L, M, N, Q, W, X, betaG = of.Gammax, of.H, of.K, of.L, of.M, of.N, of.Q, of.W, of.X, of.betaG
betaL, c, d, kappa, nu, r = of.betaL, of.c, of.d, of.kappa, of.nu, of.r

ROUND = DIRECTIONS_PROOF.id
Phi = Vec.atom("Phi")
DIRECTION = IN_X.s + IN_X.n
MOVE = -Gammax * DIRECTION  # x_{t+1} - x_t
DECREASE = Symbol("[Phi~(x_t) - Phi~(x_{t+1})]", real=True)
HALF = Rational(1, 2)


def before_the_caps(s: Chain) -> None:
    """(23) and (24): what needs no cap on the steps."""
    s["P1", "(23): descent lemma for the envelope"] = by(
        Descent("Phi", MOVE, DECREASE, ROUNDED, "F~/x", (ON_THE_SIMPLEX, SMOOTH_ENVELOPE)),
        SIMPLEX,
        f"{ENVELOPE_PROOF.id}/B.1",
        JOINTLY_SMOOTH,
    )
    s["P2", "the sample averaged out"] = sample_mean("sx", Phi), SAMPLING
    s["P3", "the noise averaged out"] = given_start(IN_X.n, Phi), *NOISY
    s["P4", "two parts, between the envelope and the mean exact direction"] = by(
        le(square(Phi - IN_X.H), 2 * square(Phi - IN_X.F) + 2 * square(IN_X.F - IN_X.H)), Gram()
    )
    s["24", "(24): by gradient, direction, dual gap, drift and the squared direction"] = by(
        le(-DECREASE, sp.expand(in_x_before() + M / 2 * square(MOVE))),
        *(Unfolded, f"P1 P2 P3 P4 {AWAY_PROOF.id}/B6c {ROUND}/D4x"),
    )


def in_x_before() -> sp.Expr:
    """The right-hand side of (24) without its last summand."""
    return -Gammax / 2 * (G + H) + Gammax / 2 * (4 * kappa * L * DELTA + 2 * X)


def lemma_steps(s: Chain, suffix: str, price: sp.Expr, form: str) -> None:
    """Lemma B.3 under its own conditions (i), (ii), (iii)."""
    *_, first, second, third = LEMMA_B_3.form(form).conditions
    step = price * Gammax * M * r
    for name, says, left, condition in (
        ("i", "noise in the gradient", 64 * step * betaL**2 * betaG**2 * Q, first),
        ("ii", "sampling", 8 * step * W * d * sp.Max(8 * betaG**2, 1), second),
        ("iii", "noise in the drift", 8 * step * betaL**2 * K, third),
    ):
        s[f"({name}){suffix}", f"({name}): {says}", ""] = le(left, 1), Unfolded, condition, SAMPLED
    growth, drift = 32 * step * betaG**2, 4 * step
    s[f"S_1{suffix}", "what the noise grows with, and sampling", ""] = by(
        le(growth * S_1, 1), Unfolded, {f"(i){suffix}": HALF, f"(ii){suffix}": HALF}
    )
    s[f"S_2{suffix}", "what the drift is seen with", ""] = by(
        le(drift * S_2, 1), Unfolded, {f"(ii){suffix}": HALF, f"(iii){suffix}": HALF}
    )
    bound = (
        -Rational(7, 16) * Gammax * G
        - Gammax / 2 * (1 - price * c * Gammax * M) * H
        + Rational(5, 4) * Gammax * X
        + Rational(9, 4) * Gammax * kappa * L * DELTA
        + price * Gammax**2 * M / 2 * N
    )
    factors = {
        "24": 1,
        f"{ROUND}/(36){suffix}": Gammax**2 * M / 2,
        f"S_1{suffix}": Gammax * (G + 2 * kappa * L * DELTA) / 16,
        f"S_2{suffix}": Gammax * X / 4,
    }
    s[f"15{suffix}", "Lemma B.3, (15)" + (" as in the paper's chain" if suffix else " at the price nu")] = by(
        le(-DECREASE, sp.expand(bound)), factors
    )


s = Chain(DESCENT_SETTING, EACH, (ENVELOPE_PROOF, AWAY_PROOF, DIRECTIONS_PROOF))
before_the_caps(s)
lemma_steps(s, "", nu, "repaired")
lemma_steps(s, "-printed", Integer(1), "explicit")
ENDS = {"explicit": "15-printed", "repaired": "15"}
DESCENT_PROOF = s.proof(f"{PAPER}/lemma-b.3", LEMMA_B_3, ENDS, -DECREASE, TO_SYMBOLS)
