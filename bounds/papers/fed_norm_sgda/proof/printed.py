# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""The paper's own chain to Theorem 1, its constants kept; it rests on (19), (25) and (34), which are false.

Everything else in it follows: with these three the constants of [explicit] come out.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp
from sympy import Integer, Rational, Symbol

from bounds.assumptions import MARTINGALE
from bounds.audit.axioms import Assumed
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Abbreviated, Combine, Gram
from bounds.audit.steps import Proof, Setting, Step
from bounds.audit.vectors import inner, square
from bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, BOUNDED_BELOW, SAMPLING, STRONGLY_CONCAVE
from bounds.papers.fed_norm_sgda.composites import CURVATURE
from bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_5
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.ascent import (
    ASCENT_PROOF,
    CAPS,
    CLIMB,
    DX,
    DY,
    FALL_X,
    FALL_Y,
    G_MEAN,
    GAP_DECREASE,
    GAP_MEAN,
    H_MEAN,
    IN_MEAN,
    NEVER_NEGATIVE,
    ON_AVERAGE,
    ROUND,
    SETTING,
    Fy1,
)
from bounds.papers.fed_norm_sgda.proof.axioms import NoiseGivenStart, SampleMean
from bounds.papers.fed_norm_sgda.proof.descent import DECREASE, DESCENT_PROOF, in_x_before
from bounds.papers.fed_norm_sgda.proof.directions import EACH, IN_Y
from bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF
from bounds.papers.fed_norm_sgda.proof.letters import (
    DELTA,
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
    r,
)
from bounds.papers.fed_norm_sgda.results import THEOREM_1

HALF = Rational(1, 2)
LATER = Symbol("[Phi~(x_{t+1}) - F~(x_{t+1}, y_t)]", real=True)
ASCENT = ASCENT_PROOF.id
THERE = Setting(SETTING.bracket, SETTING.atoms, letters={**SETTING.letters, LATER: DELTA - DECREASE + FALL_X})


def ascent_steps() -> Iterator[Step]:
    """(34) to (38) as printed: the ascent measured at the new x."""
    yield Step(
        "34-sample",
        "(34) as printed: the sample averaged out at the new x, which depends on it",
        Relation(inner(IN_Y.s, Fy1), inner(IN_Y.H, Fy1), "=="),
        SampleMean("sy", Fy1),
        (SAMPLING,),
        EACH,
    )
    yield Step(
        "34-noise",
        "(34) as printed: the noise averaged out at the new x, which depends on it",
        Relation(inner(IN_Y.n, Fy1), Integer(0), "=="),
        NoiseGivenStart(IN_Y.n, Fy1),
        (BLOCK_NOISE, MARTINGALE, SAMPLING),
        EACH,
    )
    yield Step(
        "34",
        "(34) as printed",
        Relation(FALL_Y, sp.expand(-Gammay * inner(Fy1, IN_Y.H) + L / 2 * square(CLIMB))),
        Combine((1, -Gammay, -Gammay)),
        (f"{ASCENT}/Y1", "34-sample", "34-noise"),
        EACH,
    )
    yield Step(
        "35a",
        "(35): two parts",
        Relation(square(Fy1 - IN_Y.H), 2 * square(Fy1 - IN_Y.F) + 2 * square(IN_Y.F - IN_Y.H)),
        Gram(),
        (),
        EACH,
    )
    yield Step(
        "35",
        "(35): smoothness between the old x and the new, and the drift",
        Relation(square(Fy1 - IN_Y.H), sp.expand(2 * L**2 * Gammax**2 * square(DX) + 2 * X)),
        Combine((1, 2, 2 * L**2, 2)),
        ("35a", f"{ASCENT}/Y4", f"{ASCENT}/Y5", f"{ROUND}/D4y"),
        EACH,
    )
    yield Step(
        "35-gap",
        "the gradient in y at the new x from below, Lemma A.5",
        Relation(2 * mu * LATER, square(Fy1)),
        Assumed(2 * mu * LATER, square(Fy1), (STRONGLY_CONCAVE.name,), "F~(x_{t+1}, .) at y_t"),
        (STRONGLY_CONCAVE,),
        EACH,
    )
    gained = -Gammay * mu * LATER - Gammay / 2 * square(IN_Y.H) + Gammay * X
    squares = Gammay * L**2 * Gammax**2 * square(DX) + Gammay**2 * L / 2 * square(DY)
    yield Step(
        "38-raw",
        "(38) as printed, squared directions kept",
        Relation(FALL_Y, sp.expand(gained + squares)),
        Combine((1, Gammay / 2, Gammay / 2)),
        ("34", "35", "35-gap"),
        EACH,
    )
    yield Step(
        "38",
        "the gap at the new x is the old one with the changes of the envelope and of the objective",
        Relation(FALL_Y, sp.expand((gained + squares).xreplace({LATER: DELTA - DECREASE + FALL_X}))),
        Abbreviated(),
        ("38-raw",),
        EACH,
    )


def contraction() -> sp.Expr:
    """(43) as printed, without the dual gap's decrease."""
    lost = -Gammay * mu / 4 * DELTA + Gammay / (48 * kappa**2) * G + 2 * Gammax**2 * M * c * H
    return lost + Rational(3, 2) * Gammay**2 * L * N + (Rational(9, 2) * Gammay + 2 * Gammax**2 * L * r * S_2) * V


def gap_steps() -> Iterator[Step]:
    """(43) and (44) as printed."""
    kept = 1 - Gammay * mu
    in_x = in_x_before() + Gammax / 2 * (2 * G + 4 * kappa * L * DELTA) + Gammax / 2 * H
    moved = kept * (Gammax**2 * (M + L) / 2) + Gammay * L**2 * Gammax**2
    rest = kept * in_x - Gammay * mu * DELTA - Gammay / 2 * square(IN_Y.H) + Gammay * X
    raw = rest + moved * square(DX) + Gammay**2 * L / 2 * square(DY)
    yield Step(
        "43-three",
        "the envelope's decrease, and what the objective loses and gains",
        Relation(-DECREASE + FALL_X + FALL_Y, sp.expand(raw)),
        Combine((1, kept, kept, 0)),
        ("38", f"{DESCENT_PROOF.id}/24", f"{ASCENT}/42", f"{CAPS}/(a)-printed", CURVATURE),
        EACH,
    )
    yield Step(
        "43-raw",
        "which is what the dual gap grows by",
        Relation(-GAP_DECREASE, sp.expand(raw)),
        Abbreviated(),
        ("43-three",),
        EACH,
    )
    yield Step(
        "43-moved",
        "what multiplies the squared direction in x",
        Relation(moved, Gammax**2 * M),
        Combine((Gammax**2 * L, Rational(1, 2) * Gammax**2)),
        (f"{CAPS}/(a)-printed", f"{CAPS}/M-low", CURVATURE),
    )
    lifted = 2 * G + 4 * kappa * L * DELTA
    drift = Rational(9, 4) * Gammay
    small = ("(c)-printed", "(a)-printed", "c", "M", "M-low")  # what the remainder is shown with
    yield Step(
        "43",
        "(43) as printed: the caps put in",
        Relation(-GAP_DECREASE, sp.expand(contraction())),
        Combine(
            (
                1,
                moved,
                N + 2 * r * S_1 * betaG**2 * lifted + c * H,
                Gammay**2 * L / 2,
                Gammay * X,
                Gammax * X / (52 * kappa),
                Gammax * lifted / (1248 * kappa**2),
                2 * Gammay * L * DELTA / kappa,
                drift,
                drift * G,
                drift * DELTA,
                *(0 for _ in small),
            )
        ),
        (
            "43-raw",
            f"{ROUND}/(36)-printed",
            "43-moved",
            f"{ROUND}/(37)-printed",
            f"{CAPS}/(g)-printed-letters",
            f"{CAPS}/x-g-printed",
            f"{CAPS}/x-b-printed",
            f"{CAPS}/(b)-printed",
            f"{DRIFT_PROOF.id}/B.4-explicit",
            f"{CAPS}/theta_G-printed",
            f"{CAPS}/theta_delta-printed",
            *(f"{CAPS}/{name}" for name in small),
            CURVATURE,
        ),
        EACH,
    )


def average_steps() -> Iterator[Step]:
    """(44) and (16) as printed."""
    rate = 4 / (Gammay * mu)
    one = sp.expand(rate * (GAP_DECREASE + contraction()) + DELTA)
    yield Step("44-round", "solved for the dual gap", Relation(DELTA, one), Combine((rate,)), ("43",), EACH)
    averaged = one.xreplace({GAP_DECREASE: n.delta0 / n.T, G: G_MEAN, H: H_MEAN})
    yield Step(
        "16",
        "Lemma B.5, (16) with (1 + kappa) Lf",
        Relation(GAP_MEAN, averaged),
        AverageOverRounds(
            GAP_DECREASE, n.delta0, n.T, GAP_MEAN, DELTA, IN_MEAN, STRONGLY_CONCAVE.name, axiom=NEVER_NEGATIVE
        ),
        ("44-round", STRONGLY_CONCAVE),
    )


GAP_PROOF = Proof(
    f"{PAPER}/lemma-b.5-printed",
    THERE,
    (*ascent_steps(), *gap_steps(), *average_steps()),
    LEMMA_B_5,
    {"explicit": "16"},
    substitute=ON_AVERAGE,
)


def rest() -> sp.Expr:
    """(41) as printed, without decrease and gradient."""
    direction = -Gammax / 2 * (1 - c * Gammax * M) * H
    return direction + Rational(5, 2) * Gammax * (kappa * L * DELTA + V) + Gammax**2 * M / 2 * N


def theorem_steps() -> Iterator[Step]:
    """(41) and (18) as printed."""
    lifted, kept = 2 * G + 4 * kappa * L * DELTA, Rational(3, 8) * Gammax
    drift = Rational(5, 4) * Gammax
    yield Step(
        "41",
        "(41) as printed",
        Relation(-DECREASE, sp.expand(-kept * G + rest())),
        Combine(
            (
                1,
                Gammax**2 * M / 2,
                Gammax * lifted / (2496 * kappa**2),
                Gammax * X / (78 * kappa),
                drift,
                drift * G,
                drift * DELTA,
            )
        ),
        (
            f"{DESCENT_PROOF.id}/24",
            f"{ROUND}/(36)-printed",
            f"{CAPS}/x-b-printed",
            f"{CAPS}/x-g-printed",
            f"{DRIFT_PROOF.id}/B.4-explicit",
            f"{CAPS}/theta_G-printed",
            f"{CAPS}/theta_delta-printed",
            CURVATURE,
        ),
        EACH,
    )
    one = sp.expand((DECREASE + rest()) / kept)
    yield Step("41-G", "solved for the gradient", Relation(G, one), Combine((1 / kept,)), ("41",), EACH)
    averaged = one.xreplace({DECREASE: n.Delta / n.T, DELTA: GAP_MEAN, H: H_MEAN})
    yield Step(
        "T1",
        "the average over the rounds, telescoped",
        Relation(G_MEAN, averaged),
        AverageOverRounds(DECREASE, n.Delta, n.T, G_MEAN, G, ((DELTA, GAP_MEAN), (H, H_MEAN)), BOUNDED_BELOW.name),
        ("41-G", BOUNDED_BELOW),
    )
    initial = 6 * n.Delta / (Gammax * n.T) + 60 * kappa**2 * n.delta0 / (Gammay * n.T)
    noise = (90 * kappa**2 * Gammay * L + 3 * Gammax * M) * N
    local = (270 * kappa**2 + 15 + 120 * kappa**2 * L * r * S_2 * Gammax**2 / Gammay) * V
    small = ("(c)-printed", "x-a-printed", "c", "M")  # what the remainder is shown with
    yield Step(
        "18",
        "(18) with the constants of the paper's own proof",
        Relation(G_MEAN, sp.expand(initial + noise + local)),
        Combine((Rational(9, 4), 15 * kappa * L, *(0 for _ in small))),
        ("T1", f"{GAP_PROOF.id}/16", *(f"{CAPS}/{name}" for name in small), CURVATURE),
    )


PRINTED_PROOF = Proof(
    f"{PAPER}/theorem-1-printed",
    THERE,
    tuple(theorem_steps()),
    THEOREM_1,
    {"explicit": "18"},
    substitute=ON_AVERAGE,
)
