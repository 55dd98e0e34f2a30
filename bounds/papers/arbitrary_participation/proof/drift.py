# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
"""Lemma C.2: how far the mean model drifts from the start of its window, eqs. (C.8) to (C.12)."""

from __future__ import annotations

from sympy import Expr, Integer, Rational, Symbol

from bounds.audit.axioms import Assumed, Jensen, Smooth, Starts, Uncorrelated
from bounds.audit.claim import Relation
from bounds.audit.geometric_sums import GeometricSum
from bounds.audit.rules import Combine, Gram, SumOverClients, Unroll, power_sum
from bounds.audit.steps import Proof, Step
from bounds.audit.vectors import inner, square
from bounds.papers.arbitrary_participation.assumptions import PARTICIPATION, WEIGHTS
from bounds.papers.arbitrary_participation.notation import NOTATION as n
from bounds.papers.arbitrary_participation.proof.spread import (
    A1,
    A2,
    AFTER_DRIFT,
    DRIFT,
    EACH,
    HALF_STEP,
    ONE_CLIENT,
    ONE_STEP,
    PAPER,
    PAST,
    ROUND,
    SECOND_MOMENTS,
    SPREAD,
    SUMS,
    G,
    f0,
    g0,
    gm,
    gy,
    mg0,
    mgm,
    mgy,
    mxi,
    q,
    s,
    x0,
    ybar,
)
from bounds.papers.arbitrary_participation.results import K1, K2, LEMMA_C_2, LOCAL_CAP
from bounds.result import Condition

L, I, P = n.L, n.I, n.P
gamma, rho, sigma, nu, beta, sumsq = n.gamma, n.rho, n.sigma, n.nu, n.beta, n.sumsq
SECOND = Rational(5, 9)  # exponent of the geometric sum
L1 = f"{PAPER}/lemma-c.1"
DRIFT_RATIO = 1 + SECOND / (I * P - HALF_STEP)


def drift_bound(spread: Expr, second: Expr, noise: Expr) -> Expr:
    """Where Lemma C.2 ends, given three constants: of the spread, of the geometric sum, of the spread's noise."""
    return (
        spread * second / 3 * gamma**2 * I**2 * nu**2
        + 8 * second * gamma**2 * I**2 * P**2 * (beta**2 + G)
        + second * gamma**2 * I * P * sigma**2 * (rho**2 + noise / P)
    )


def printed_bound(spread: Expr, factor: Expr) -> Expr:
    """Where Lemma C.2 ends with the paper's constants; `spread` is 3, or 0 where there is none."""
    return (
        spread * gamma**2 * I**2 * nu**2
        + 24 * gamma**2 * I**2 * P**2 * (beta**2 + G)
        + 3 * gamma**2 * I * P * sigma**2 * (rho**2 + factor / (6 * P))
    )


LEAST_SUM = Symbol("S_min", nonnegative=True)
ONE_ROUND = Condition(P, "==", Integer(1), "no drift within a window of one round")
ROWS = (  # suffix, constant of the spread, the claim it comes from, what 1 - S_t is bounded by in all rounds
    ("", Integer(3), "C.5", Integer(1)),
    ("-sharp", K1, "C.5-sharp", Integer(1)),
    ("-least", Integer(3), "C.5", 1 - LEAST_SUM),
    ("-one", Integer(0), "L1.one", Integer(0)),
)


def drift_steps() -> tuple[Step, ...]:
    """Lemma C.2: how far the mean model drifts from the window's start."""
    away = ybar - x0 - gamma * mgy
    young = 1 / (2 * I * P - 1)
    four = square(mgy - mgm) + square(mgm - mg0) + square(mg0 - f0) + G
    steps = [
        Step(
            "L2.0a",
            "the mean noise is uncorrelated with the models and gradients of this step",
            Relation(inner(mxi, away), Integer(0), "=="),
            Uncorrelated(mxi, away),
            PAST,
            EACH,
        ),
        Step(
            "L2.0",
            "one local step splits the drift into gradients and noise, eq. (C.9)",
            Relation(AFTER_DRIFT, square(away) + gamma**2 * square(mxi), "=="),
            Combine((-2 * gamma,)),
            ("L2.0a",),
            EACH,
        ),
        Step(
            "L2.1a",
            "q_n^2 (sigma^2 - E|xi_n|^2) >= 0, summed over the clients",
            Relation(SECOND_MOMENTS, sigma**2 * sumsq),
            SumOverClients(q**2 * (sigma**2 - s), ONE_CLIENT, (q, s), SUMS, needs=(A2.name,)),
            (A2,),
            EACH,
        ),
        Step(
            "L2.1b",
            "S_t <= rho^2",
            Relation(sumsq, rho**2),
            Assumed(sumsq, rho**2, (WEIGHTS.name,), "the weights of every round"),
            (WEIGHTS,),
            "for every round t",
        ),
        Step(
            "L2.1",
            "the mean noise is at most rho^2 sigma^2",
            Relation(square(mxi), rho**2 * sigma**2),
            Combine((1, 1, sigma**2)),
            (f"{L1}/L1.1c", "L2.1a", "L2.1b"),
            EACH,
        ),
        Step(
            "L2.2",
            "Young with 1/(2IP - 1) and Jensen for four gradients, (C.4) and (C.2)",
            Relation(square(away), (1 + young) * DRIFT + 8 * I * P * gamma**2 * four),
            Gram(),
            (),
            EACH,
        ),
        Step(
            "L2.3a",
            "Jensen over the clients",
            Relation(square(mgy - mgm), square(gy - gm)),
            Jensen(gy - gm),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L2.3b",
            "Jensen over the clients",
            Relation(square(mgm - mg0), square(gm - g0)),
            Jensen(gm - g0),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L2.3c",
            "smoothness between the mean model and the window's start",
            Relation(square(gm - g0), L**2 * DRIFT),
            Smooth("gm", "g0", L),
            (A1,),
            EACH,
        ),
        Step(
            "L2.3d",
            "eq. (5) at the window's start",
            Relation(square(mg0 - f0), beta**2),
            Assumed(square(mg0 - f0), beta**2, (PARTICIPATION.name,), "the participants' mean gradient at x0"),
            (PARTICIPATION,),
            EACH,
        ),
        Step(
            "L2.3",
            "the drift after one local step, in terms of spread and drift",
            Relation(
                AFTER_DRIFT,
                (1 + young + 8 * I * P * L**2 * gamma**2) * DRIFT
                + 8 * I * P * gamma**2 * (L**2 * SPREAD + beta**2 + G)
                + gamma**2 * rho**2 * sigma**2,
            ),
            Combine((1, gamma**2, 1, *[8 * I * P * gamma**2] * 5)),
            ("L2.0", "L2.1", "L2.2", f"{L1}/L1.3a", "L2.3a", "L2.3b", "L2.3c", "L2.3d"),
            EACH,
        ),
        Step(
            "L2.5",
            "the step size keeps the ratio below 1 + 5/(9(IP - 1/2))",
            Relation(young + 8 * I * P * L**2 * gamma**2, DRIFT_RATIO - 1),
            Combine(),
            (LOCAL_CAP,),
        ),
        Step(
            "L2.8",
            "within a window a round starts where the last one ended, so at most IP local steps are taken",
            Relation(DRIFT, Integer(0), "=="),
            Starts(DRIFT, "ybar_{t_0,0} = x_{t_0}; x_{t+1} = ybar_{t,I} because the weights sum to 1"),
            (WEIGHTS,),
            "for t = t_0, i = 0",
        ),
    ]
    steps += [
        Step(
            "L2.S",
            "S_min is the least S_t",
            Relation(LEAST_SUM, sumsq),
            Assumed(LEAST_SUM, sumsq, (WEIGHTS.name,), "what S_min stands for"),
            (WEIGHTS,),
            "for every round t",
        ),
        Step(
            "L2.9",
            "the geometric sum is at most K2 IP",
            Relation(power_sum(DRIFT_RATIO, I * P), K2 * I * P),
            GeometricSum(SECOND, I * P, K2),
            (),
            "for every whole I, P >= 1",
        ),
        Step(
            "L2.one",
            "with one local step in a window of one round the only drift used is that before it",
            Relation(DRIFT, Integer(0)),
            Starts(DRIFT, "ybar_{t_0,0} = x_{t_0}, and t = t_0, i = 0", "<="),
            (ONE_STEP, ONE_ROUND),
            "for t = t_0, i = 0",
        ),
    ]
    for name, spread, source, factor in ROWS:
        gradients = 8 * I * P * gamma**2 * (beta**2 + G)
        cohort = spread / 3 * gamma**2 * I * nu**2 / P
        noise = gamma**2 * sigma**2 * rho**2
        own = gamma**2 * sigma**2 * spread / (18 * P)
        adds = cohort + gradients + noise + own * factor
        steps += [
            Step(
                f"L2.7{name}",
                "the recursion of the drift, eq. (C.9), with the sum of squared weights of this round",
                Relation(AFTER_DRIFT, DRIFT_RATIO * DRIFT + cohort + gradients + noise + own * (1 - sumsq)),
                Combine((1, DRIFT, 8 * I * P * gamma**2 * L**2, 0)),
                ("L2.3", "L2.5", f"{L1}/{source}", f"{L1}/L1.S", LOCAL_CAP),
                EACH,
            ),
            Step(
                f"L2.7b{name}",
                "the recursion for all rounds of a window, whose sums of squared weights may differ",
                Relation(AFTER_DRIFT, DRIFT_RATIO * DRIFT + adds),
                Combine((1, 0 if factor == 1 else own)),
                (f"L2.7{name}", "L2.S"),
                EACH,
            ),
            Step(
                f"L2.8b{name}",
                "the recursion unrolled over at most IP local steps of one window",
                Relation(DRIFT, adds * power_sum(DRIFT_RATIO, I * P)),
                Unroll(DRIFT, AFTER_DRIFT, I * P, varying=(sumsq,)),
                ("L2.8", f"L2.7b{name}", "L2.S", f"{L1}/L1.S"),
                "for t_0 <= t < t_0 + P and i <= I",
            ),
            Step(
                f"L2.10{name}",
                "Lemma C.2 with that constant, for all rounds of a window",
                Relation(DRIFT, drift_bound(spread, K2, spread / 18 * factor)),
                Combine((1, adds, 0, 0)),
                (f"L2.8b{name}", "L2.9", "L2.S", f"{L1}/L1.S"),
                "for t_0 <= t < t_0 + P and i <= I",
            ),
        ]
    for name, source, bound in (
        ("", "L2.10", printed_bound(Integer(3), 1 - sumsq)),
        ("-least", "L2.10-least", printed_bound(Integer(3), 1 - LEAST_SUM)),
        ("-one", "L2.10-one", printed_bound(Integer(0), Integer(0))),
    ):
        steps.append(
            Step(
                f"C.8{name}",
                "Lemma C.2: the slack of the geometric sum covers the S_t of the current round",
                Relation(DRIFT, bound),
                Combine((1, 0, 0, 0)),
                (source, "L2.1b", "L2.S", f"{L1}/L1.S"),
                "for t_0 <= t < t_0 + P and i <= I",
            )
        )
    return tuple(steps)


DRIFT_PROOF = Proof(
    f"{PAPER}/lemma-c.2",
    ROUND,
    drift_steps(),
    LEMMA_C_2,
    {"printed": "C.8", "sharp": "L2.10-sharp"},
    DRIFT,
    {next(iter(G.free_symbols)): n.gradsq},
)
