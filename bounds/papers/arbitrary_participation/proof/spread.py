# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
"""Lemma C.1: how far the local models of one round drift apart, eqs. (C.5) to (C.7)."""

from __future__ import annotations

import sympy as sp
from sympy import Integer, Rational

from bounds.assumptions import MARTINGALE, SMOOTH, UNBIASED
from bounds.audit.axioms import Assumed, Independent, Jensen, MeanOf, Smooth, Starts, Uncorrelated
from bounds.audit.claim import Relation
from bounds.audit.geometric_sums import GeometricSum
from bounds.audit.rules import Combine, Gram, SumOverClients, Unroll, power_sum
from bounds.audit.steps import Proof, Setting, Step
from bounds.audit.vectors import Atom, Vec, inner, square
from bounds.papers.arbitrary_participation.assumptions import COHORT, EXOGENOUS, INDEPENDENT_CLIENTS, WEIGHTS
from bounds.papers.arbitrary_participation.notation import NOTATION as n
from bounds.papers.arbitrary_participation.results import K1, LEMMA_C_1
from bounds.result import Condition

PAPER = "arbitrary-participation"
L, I, gamma, sigma, nu, sumsq = n.L, n.I, n.gamma, n.sigma, n.nu, n.sumsq
A1, A2 = SMOOTH.labelled("Assumption 1"), UNBIASED.labelled("Assumption 2")
PAST = (A2, MARTINGALE, EXOGENOUS)

ROUND_ATOMS = (
    Atom("y", "point", 0, "y_{t,i}^n, the local model", mean="ybar"),
    Atom("ybar", "point", 0, "the weighted mean of the local models", per_client=False),
    Atom("x0", "point", 0, "x_{t_0}, where the window starts", per_client=False, still=True),
    Atom("gy", "gradient", 0, "grad F_n at y", at="y", mean="mgy"),
    Atom("mgy", "gradient", 0, "weighted mean of grad F_n(y^n)", per_client=False, of="mean"),
    Atom("gm", "gradient", 0, "grad F_n at ybar", at="ybar", mean="mgm"),
    Atom("mgm", "gradient", 0, "weighted mean of grad F_n(ybar)", per_client=False, of="mean"),
    Atom("g0", "gradient", 0, "grad F_n at x0", at="x0", mean="mg0"),
    Atom("mg0", "gradient", 0, "weighted mean of grad F_n(x0)", per_client=False, of="mean"),
    Atom("f0", "gradient", 0, "grad f at x0", at="x0", of="f", per_client=False, still=True),
    Atom("xi", "noise", 0, "the noise of client n in this local step", mean="mxi"),
    Atom("mxi", "noise", 0, "the weighted mean of the noise", per_client=False),
)
ROUND = Setting(
    "sum over clients with weights q_t^n, expectation over the noise, in round t before local step i",
    {a.name: a for a in ROUND_ATOMS},
    given="participation",
)
y, ybar, x0, gy, mgy, gm, mgm, g0, mg0, f0, xi, mxi = (Vec.atom(a.name) for a in ROUND_ATOMS)
EACH = "for every round t and local step i < I"

SPREAD, DRIFT, G = square(y - ybar), square(ybar - x0), square(f0)
AFTER_SPREAD = square((y - gamma * (gy + xi)) - (ybar - gamma * (mgy + mxi)))
AFTER_DRIFT = square(ybar - gamma * (mgy + mxi) - x0)
SECOND_MOMENTS = sp.Symbol("sum_n q_n^2 E|xi_n|^2", nonnegative=True)
q, s = sp.Symbol("q_n", nonnegative=True), sp.Symbol("E|xi_n|^2", nonnegative=True)
ONE_CLIENT = (Relation(q, Integer(1)), Relation(s, sigma**2))
SUMS = (((1, 0), Integer(1)), ((2, 0), sumsq), ((1, 1), square(xi)), ((2, 1), SECOND_MOMENTS))
SMALL_CAP = Condition(gamma, "<=", 1 / (12 * L * I), "12 I L^2 gamma^2 <= 1/(12 I)", gamma)
HALF_STEP = Rational(1, 2)
ONE_STEP = Condition(I, "==", Integer(1), "no local drift with one local step")
FIRST = Rational(7, 12)  # exponent of the geometric sum

SPREAD_NOISE = gamma**2 * sigma**2 * (1 - sumsq)
SPREAD_ADDS = 6 * I * gamma**2 * nu**2 + SPREAD_NOISE
SPREAD_RATIO = 1 + FIRST / (I - HALF_STEP)


def spread_steps() -> tuple[Step, ...]:
    """Lemma C.1: how far the local models of one round drift apart."""
    apart, turned = y - ybar, gy - mgy
    before = apart - gamma * turned
    young = 1 / (2 * I - 1)
    return (
        Step(
            "L1.0a",
            "the noise is uncorrelated with the models and gradients of this step",
            Relation(inner(xi - mxi, before), Integer(0), "=="),
            Uncorrelated(xi - mxi, before),
            PAST,
            EACH,
        ),
        Step(
            "L1.0",
            "one local step splits the spread into drift and noise, eq. (C.6)",
            Relation(AFTER_SPREAD, square(before) + gamma**2 * square(xi - mxi), "=="),
            Combine((-2 * gamma,)),
            ("L1.0a",),
            EACH,
        ),
        Step(
            "L1.1a",
            "the weighted mean of the noise pairs with its own mean",
            Relation(inner(xi, mxi), square(mxi), "=="),
            MeanOf(xi, mxi),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L1.1b",
            "variance decomposition of the noise over the clients",
            Relation(square(xi - mxi), square(xi) - square(mxi), "=="),
            Gram(),
            ("L1.1a",),
            EACH,
        ),
        Step(
            "L1.1c",
            "independence across clients, used in (C.6)(b)",
            Relation(square(mxi), SECOND_MOMENTS, "=="),
            Independent("xi", SECOND_MOMENTS),
            (A2, INDEPENDENT_CLIENTS, EXOGENOUS),
            EACH,
        ),
        Step(
            "L1.1d",
            "q_n (1 - q_n)(sigma^2 - E|xi_n|^2) >= 0, summed over the clients",
            Relation(square(xi) - SECOND_MOMENTS, sigma**2 * (1 - sumsq)),
            SumOverClients(q * (1 - q) * (sigma**2 - s), ONE_CLIENT, (q, s), SUMS, needs=(WEIGHTS.name, UNBIASED.name)),
            (A2, WEIGHTS),
            EACH,
        ),
        Step(
            "L1.1",
            "the noise around its mean is at most sigma^2 (1 - S_t)",
            Relation(square(xi - mxi), sigma**2 * (1 - sumsq)),
            Combine((1, -1, 1)),
            ("L1.1b", "L1.1c", "L1.1d"),
            EACH,
        ),
        Step(
            "L1.S",
            "the squares of weights that sum to 1 sum to at most 1",
            Relation(sumsq, Integer(1)),
            SumOverClients(q * (1 - q), ONE_CLIENT[:1], (q, s), SUMS, needs=(WEIGHTS.name,)),
            (WEIGHTS,),
            "for every round t",
        ),
        Step(
            "L1.2",
            "Young with 1/(2I - 1) and Jensen for three gradients, (C.4) and (C.2)",
            Relation(
                square(before),
                (1 + young) * SPREAD + 6 * I * gamma**2 * (square(gy - gm) + square(gm - mgm) + square(mgm - mgy)),
            ),
            Gram(),
            (),
            EACH,
        ),
        Step(
            "L1.3a",
            "smoothness between the local models and their mean",
            Relation(square(gy - gm), L**2 * SPREAD),
            Smooth("gy", "gm", L),
            (A1,),
            EACH,
        ),
        Step(
            "L1.3b",
            "Jensen over the clients",
            Relation(square(mgm - mgy), square(gm - gy)),
            Jensen(gm - gy),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L1.3c",
            "eq. (6) at the mean model",
            Relation(square(gm - mgm), nu**2),
            Assumed(square(gm - mgm), nu**2, (COHORT.name,), "grad F_n(ybar) around its weighted mean"),
            (COHORT,),
            EACH,
        ),
        Step(
            "L1.4",
            "the recursion of the spread, eq. (C.6)",
            Relation(AFTER_SPREAD, (1 + young + 12 * I * L**2 * gamma**2) * SPREAD + SPREAD_ADDS),
            Combine((1, gamma**2, 1, 12 * I * gamma**2, 6 * I * gamma**2, 6 * I * gamma**2)),
            ("L1.0", "L1.1", "L1.2", "L1.3a", "L1.3b", "L1.3c"),
            EACH,
        ),
        Step(
            "L1.5",
            "the step size keeps the ratio below 1 + 7/(12(I - 1/2))",
            Relation(young + 12 * I * L**2 * gamma**2, SPREAD_RATIO - 1),
            Combine(),
            (SMALL_CAP,),
        ),
        Step(
            "L1.5b",
            "the recursion with that ratio",
            Relation(AFTER_SPREAD, SPREAD_RATIO * SPREAD + SPREAD_ADDS),
            Combine((1, SPREAD)),
            ("L1.4", "L1.5"),
            EACH,
        ),
        Step(
            "L1.start",
            "all local models of a round start at the same point",
            Relation(SPREAD, Integer(0), "=="),
            Starts(SPREAD, "y_{t,0}^n = x_t for every client"),
            (),
            "for i = 0",
        ),
        Step(
            "L1.6",
            "the recursion unrolled over at most I local steps of one round",
            Relation(SPREAD, SPREAD_ADDS * power_sum(SPREAD_RATIO, I)),
            Unroll(SPREAD, AFTER_SPREAD, I),
            ("L1.start", "L1.5b", "L1.S"),
            "for every t and i <= I",
        ),
        Step(
            "L1.one",
            "with one local step the only spread used is that before it",
            Relation(SPREAD, Integer(0)),
            Starts(SPREAD, "y_{t,0}^n = x_t for every client, and i < I = 1", "<="),
            (ONE_STEP,),
            "for every t and i < I",
        ),
        *(
            step
            for name, constant in (("", Integer(3)), ("-sharp", K1))
            for step in (
                Step(
                    f"L1.7{name}",
                    f"the geometric sum is at most {constant} I",
                    Relation(power_sum(SPREAD_RATIO, I), constant * I),
                    GeometricSum(FIRST, I, constant),
                    (),
                    "for every whole I >= 1",
                ),
                Step(
                    f"C.5{name}",
                    "Lemma C.1" + (" with the smallest constant" if name else ""),
                    Relation(SPREAD, constant * I * SPREAD_ADDS),
                    Combine((1, SPREAD_ADDS, 0)),
                    ("L1.6", f"L1.7{name}", "L1.S"),
                    "for every t and i <= I",
                ),
            )
        ),
    )


SPREAD_PROOF = Proof(
    f"{PAPER}/lemma-c.1", ROUND, spread_steps(), LEMMA_C_1, {"printed": "C.5", "sharp": "C.5-sharp"}, SPREAD
)
