# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
"""Theorem 3.1 with the free parameters of the chain left open: weights in Jensen's inequality, Young's factor.

The paper splits sums of three and four vectors evenly and takes 2 in Young's inequality. Here every split has weights
that sum to 1, the steps are checked for these weights, and the weights were found by minimising the product of the
seven constants at the largest step size, subject to none being above the evenly split chain's.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp
from sympy import Expr, Integer, Rational

from bounds.audit.claim import Relation
from bounds.audit.geometric_sums import GeometricSum
from bounds.audit.rules import Combine, Everywhere, Gram, Telescope, Unroll, power_sum
from bounds.audit.steps import Proof, Step
from bounds.audit.vectors import square
from bounds.papers.arbitrary_participation.assumptions import BOUNDED_BELOW, WEIGHTS
from bounds.papers.arbitrary_participation.notation import NOTATION as n
from bounds.papers.arbitrary_participation.proof.drift import L1
from bounds.papers.arbitrary_participation.proof.spread import (
    AFTER_DRIFT,
    AFTER_SPREAD,
    DRIFT,
    EACH,
    HALF_STEP,
    PAPER,
    ROUND,
    SMALL_CAP,
    SPREAD,
    G,
    f0,
    gm,
    gy,
    mg0,
    mgm,
    mgy,
    x0,
    y,
    ybar,
)
from bounds.papers.arbitrary_participation.proof.window import (
    C16,
    COMPLETE,
    L2,
    LEAST,
    WHOLE_WINDOW,
    WINDOWS,
    at_mean,
    at_start,
    mean,
    noise,
)
from bounds.papers.arbitrary_participation.results import (
    K3,
    K4,
    LOCAL_CAP,
    ODDS_CAP,
    ONCE,
    THEOREM_3_1,
    TUNED_FIRST,
    TUNED_SECOND,
    TUNED_SLOPE,
    YOUNG_CAP,
)

L, F, I, P = n.L, n.F, n.I, n.P
gamma, eta, rho, sigma, nu, beta, delta, sumsq = n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta, n.delta, n.sumsq
decrease, r = n.decrease, n.r


ROUNDS = f"{PAPER}/lemmas-tuned"


@dataclass(frozen=True)
class Weights:
    """How the chain splits its sums; each tuple sums to 1.

    Args:
        spread: Lemma C.1's three gradients.
        drift: Lemma C.2's four gradients.
        window: the three differences of the window's mean gradient: spread, drift, window divergence.
    """

    spread: tuple[Expr, Expr, Expr]
    drift: tuple[Expr, Expr, Expr, Expr]
    window: tuple[Expr, Expr, Expr]


TUNED_WEIGHTS = Weights(
    (Rational(3, 20), Rational(7, 10), Rational(3, 20)),
    (Rational(3, 25), Rational(1, 10), Rational(8, 25), Rational(23, 50)),
    (Rational(6, 13) / (1 + r), Rational(7, 13) / (1 + r), r / (1 + r)),
)


def tuned_steps(w: Weights) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The chain with these weights, in one round and over one window; what no weight enters is the paper's chain."""
    u1, u2, u3 = w.spread
    v1, v2, v3, v4 = w.drift
    w1, w2, w3 = w.window
    kept = TUNED_SLOPE
    young_spread, young_drift = 1 / (2 * I - 1), 1 / (2 * I * P - 1)
    before, away = y - ybar - gamma * (gy - mgy), ybar - x0 - gamma * mgy
    each = 2 * I * gamma**2
    spread_ratio = 1 + TUNED_FIRST / (I - HALF_STEP)
    spread_adds = each / u2 * nu**2 + gamma**2 * sigma**2 * (1 - sumsq)
    free = spread_adds.xreplace({sumsq: Integer(0)})
    spread = K3 * I * free
    all_ = 2 * I * P * gamma**2
    drift_ratio = 1 + TUNED_SECOND / (I * P - HALF_STEP)
    by_spread = K3 / (72 * v1 * P) * free  # 2IP gamma^2 L^2 K3 I free/v1 at the largest gamma
    drift_adds = by_spread + all_ * (beta**2 / v3 + G / v4) + gamma**2 * rho**2 * sigma**2
    drift = sp.expand(K4 * I * P * drift_adds)
    gradient = sp.diff(drift, G) * G
    kappa = gamma * eta * L * I * P
    bound = (
        2 * decrease / (gamma * eta * I * P)
        + L**2 / w1 * spread
        + L**2 / w2 * (drift - gradient)
        + delta**2 / w3
        + gamma * eta * L * rho**2 * sigma**2 / (1 - kappa)
    ) / kept
    four = square(mgy - mgm) / v1 + square(mgm - mg0) / v2 + square(mg0 - f0) / v3 + G / v4
    three = square(gy - gm) / u1 + square(gm - mgm) / u2 + square(mgm - mgy) / u3
    parts = square(mean - at_mean) / w1 + square(at_mean - at_start) / w2 + square(at_start - f0) / w3
    rounds = (
        Step(
            "S1",
            "Young and Jensen for three gradients with weights",
            Relation(square(before), (1 + young_spread) * SPREAD + each * three),
            Gram(),
            (),
            EACH,
        ),
        Step(
            "S2",
            "the recursion of the spread",
            Relation(AFTER_SPREAD, (1 + young_spread + each * L**2 * (1 / u1 + 1 / u3)) * SPREAD + spread_adds),
            Combine((1, gamma**2, 1, each * (1 / u1 + 1 / u3), each / u3, each / u2)),
            (f"{L1}/L1.0", f"{L1}/L1.1", "S1", f"{L1}/L1.3a", f"{L1}/L1.3b", f"{L1}/L1.3c"),
            EACH,
        ),
        Step(
            "S3",
            "the step size bounds the ratio",
            Relation(young_spread + each * L**2 * (1 / u1 + 1 / u3), spread_ratio - 1),
            Combine(),
            (SMALL_CAP,),
        ),
        Step(
            "S4",
            "the recursion with that ratio",
            Relation(AFTER_SPREAD, spread_ratio * SPREAD + spread_adds),
            Combine((1, SPREAD)),
            ("S2", "S3"),
            EACH,
        ),
        Step(
            "S5",
            "unrolled over one round",
            Relation(SPREAD, spread_adds * power_sum(spread_ratio, I)),
            Unroll(SPREAD, AFTER_SPREAD, I),
            (f"{L1}/L1.start", "S4", f"{L1}/L1.S"),
            "for every t and i <= I",
        ),
        Step(
            "S6",
            "the geometric sum",
            Relation(power_sum(spread_ratio, I), K3 * I),
            GeometricSum(TUNED_FIRST, I, K3),
            (),
            "for every whole I >= 1",
        ),
        Step(
            "S7",
            "the spread, 1 - S_t <= 1",
            Relation(SPREAD, spread),
            Combine((1, spread_adds, 0)),
            ("S5", "S6", f"{L1}/L1.S"),
            "for every t and i <= I",
        ),
        Step(
            "D1",
            "Young and Jensen for four gradients with weights",
            Relation(square(away), (1 + young_drift) * DRIFT + all_ * four),
            Gram(),
            (),
            EACH,
        ),
        Step(
            "D2",
            "the drift after one local step, in terms of spread and drift",
            Relation(
                AFTER_DRIFT,
                (1 + young_drift + all_ * L**2 / v2) * DRIFT
                + all_ * (L**2 * SPREAD / v1 + beta**2 / v3 + G / v4)
                + gamma**2 * rho**2 * sigma**2,
            ),
            Combine((1, gamma**2, 1, all_ / v1, all_ / v1, all_ / v2, all_ / v2, all_ / v3)),
            (
                f"{L2}/L2.0",
                f"{L2}/L2.1",
                "D1",
                f"{L1}/L1.3a",
                f"{L2}/L2.3a",
                f"{L2}/L2.3b",
                f"{L2}/L2.3c",
                f"{L2}/L2.3d",
            ),
            EACH,
        ),
        Step(
            "D3",
            "the step size bounds the ratio",
            Relation(young_drift + all_ * L**2 / v2, drift_ratio - 1),
            Combine(),
            (LOCAL_CAP,),
        ),
        Step(
            "D4",
            "the recursion with that ratio and the bound on the spread",
            Relation(AFTER_DRIFT, drift_ratio * DRIFT + drift_adds),
            Combine((1, DRIFT, all_ * L**2 / v1)),
            ("D2", "D3", "S7", LOCAL_CAP),
            EACH,
        ),
        Step(
            "D5",
            "unrolled over one window",
            Relation(DRIFT, drift_adds * power_sum(drift_ratio, I * P)),
            Unroll(DRIFT, AFTER_DRIFT, I * P, varying=(sumsq,)),
            (f"{L2}/L2.8", "D4", WEIGHTS),
            "for t_0 <= t < t_0 + P and i <= I",
        ),
        Step(
            "D6",
            "the geometric sum",
            Relation(power_sum(drift_ratio, I * P), K4 * I * P),
            GeometricSum(TUNED_SECOND, I * P, K4),
            (),
            "for every whole I, P >= 1",
        ),
        Step(
            "D7",
            "the drift",
            Relation(DRIFT, drift),
            Combine((1, drift_adds)),
            ("D5", "D6"),
            "for t_0 <= t < t_0 + P and i <= I",
        ),
    )
    windows = (
        Step(
            "W1",
            "the average of the spread",
            Relation(SPREAD, spread),
            Everywhere((sumsq,)),
            (f"{ROUNDS}/S7",),
            WINDOWS,
        ),
        Step(
            "W2", "the average of the drift", Relation(DRIFT, drift), Everywhere((sumsq,)), (f"{ROUNDS}/D7",), WINDOWS
        ),
        Step(
            "W3", "Jensen for three differences with weights", Relation(square(mean - f0), parts), Gram(), (), WINDOWS
        ),
        Step(
            "W4",
            "the window's mean gradient against grad f",
            Relation(square(mean - f0), L**2 / w1 * SPREAD + L**2 / w2 * DRIFT + delta**2 / w3),
            Combine((1, 1 / w1, 1 / w2, 1 / w1, 1 / w2, 1 / w3)),
            ("W3", f"{C16}/Th3b", f"{C16}/Th3c", f"{C16}/Th3d", f"{C16}/Th3e", f"{C16}/Th3f"),
            WINDOWS,
        ),
        Step(
            "W5",
            "Young for the squared update, with the factor at which the gradient's square cancels",
            Relation(square(mean + noise), square(mean) / kappa + square(noise) / (1 - kappa)),
            Gram(),
            (YOUNG_CAP,),
            WINDOWS,
        ),
        Step("W6", "what the gradient keeps", Relation(Rational(1, 4), kept), Combine(), (LOCAL_CAP, ODDS_CAP)),
        Step(
            "W7",
            "one window",
            Relation(G, bound),
            Combine(
                (
                    2 / (gamma * eta * I * P * kept),
                    -2 / kept,
                    2 / kept,
                    1 / kept,
                    kappa / kept,
                    kappa / (1 - kappa) / kept,
                    L**2 / w1 / kept,
                    L**2 / w2 / kept,
                    0,
                )
            ),
            (
                f"{C16}/Th1",
                f"{C16}/Th1b",
                f"{C16}/Th2",
                "W4",
                "W5",
                f"{C16}/Th5b",
                "W1",
                "W2",
                "W6",
                LOCAL_CAP,
                YOUNG_CAP,
                ODDS_CAP,
            ),
            WINDOWS,
        ),
        Step(
            "W8",
            "the average over the complete windows, telescoped",
            Relation(LEAST, bound.xreplace({decrease: F / COMPLETE})),
            Telescope(decrease, F, COMPLETE, LEAST, G),
            ("W7", BOUNDED_BELOW, LOCAL_CAP, ODDS_CAP, ONCE),
        ),
    )
    return rounds, windows


IN_ROUNDS, IN_WINDOWS = tuned_steps(TUNED_WEIGHTS)
TUNED_LEMMAS = Proof(ROUNDS, ROUND, IN_ROUNDS, THEOREM_3_1, {})
TUNED_PROOF = Proof(f"{PAPER}/theorem-3.1-tuned", WHOLE_WINDOW, IN_WINDOWS, THEOREM_3_1, {"sharp:tuned": "W8"})
