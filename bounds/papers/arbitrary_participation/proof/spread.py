"""Lemmas C.1 and C.2: how far the local models of one round spread, and the mean model drifts from its window's start.

Eqs. (C.5) to (C.12).
"""

import sympy as sp
from sympy import Integer, Rational

from fedbounds.bounds.audit.axioms import Independent, Jensen, MeanOf, Smooth, Starts, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.geometric_sums import GeometricSum
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import ClientByClient, Gram, Unroll, power_sum
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.arbitrary_participation.assumptions import (
    COHORT,
    EXOGENOUS,
    INDEPENDENT_CLIENTS,
    NORM,
    PARTICIPATION,
    WEIGHTS,
)
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.results import K1, K2, LEMMA_C_1, LEMMA_C_2, LOCAL_CAP
from fedbounds.bounds.theory.assumptions import MARTINGALE, SMOOTH, UNBIASED
from fedbounds.bounds.theory.result import Condition

PAPER = "arbitrary-participation"
L, I, gamma, sigma, nu, sumsq = n.L, n.I, n.gamma, n.sigma, n.nu, n.sumsq
A1, A2 = SMOOTH.with_label("Assumption 1"), UNBIASED.with_label("Assumption 2")
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
ROUND = ProofSetting.of(
    "sum over clients with weights q_t^n, expectation over the noise, in round t before local step i",
    *ROUND_ATOMS,
    given="participation",
)
y, ybar, x0, gy, mgy, gm, mgm, g0, mg0, f0, xi, mxi = (Vec.atom(a.name) for a in ROUND_ATOMS)
EACH, IN_ROUND = "for every round t and local step i < I", "for every t and i <= I"

SPREAD, DRIFT, G = square(y - ybar), square(ybar - x0), square(f0)
AFTER_SPREAD = square((y - gamma * (gy + xi)) - (ybar - gamma * (mgy + mxi)))
AFTER_DRIFT = square(ybar - gamma * (mgy + mxi) - x0)
SECOND_MOMENTS = sp.Symbol("sum_n q_n^2 E|xi_n|^2", nonnegative=True)
q, s = sp.Symbol("q_n", nonnegative=True), sp.Symbol("E|xi_n|^2", nonnegative=True)
ONE_CLIENT = (le(q, 1), le(s, sigma**2))
SUMS = (((1, 0), Integer(1)), ((2, 0), sumsq), ((1, 1), square(xi)), ((2, 1), SECOND_MOMENTS))
SMALL_CAP = Condition(gamma, "<=", 1 / (12 * L * I), "12 I L^2 gamma^2 <= 1/(12 I)", gamma)
HALF_STEP = Rational(1, 2)
ONE_STEP = Condition(I, "==", Integer(1), "no local drift with one local step")
FIRST = Rational(7, 12)  # exponent of the geometric sum

SPREAD_NOISE = gamma**2 * sigma**2 * (1 - sumsq)
SPREAD_ADDS = 6 * I * gamma**2 * nu**2 + SPREAD_NOISE
SPREAD_RATIO = 1 + FIRST / (I - HALF_STEP)

before = y - ybar - gamma * (gy - mgy)
around = square(xi - mxi)
young = 1 / (2 * I - 1)

c = Chain(ROUND, EACH)
c["L1.0a", "the noise is uncorrelated with the models and gradients of this step"] = by(
    Uncorrelated(xi - mxi, before), *PAST
)
c["L1.0", "one local step splits the spread into drift and noise, eq. (C.6)"] = by(
    eq(AFTER_SPREAD, square(before) + gamma**2 * around), "L1.0a"
)
c["L1.1a", "the weighted mean of the noise pairs with its own mean"] = MeanOf(xi, mxi), WEIGHTS
c["L1.1b", "variance decomposition of the noise over the clients"] = by(
    eq(around, square(xi) - square(mxi)), Gram(), "L1.1a"
)
c["L1.1c", "independence across clients, used in (C.6)(b)"] = by(
    Independent("xi", SECOND_MOMENTS), A2, INDEPENDENT_CLIENTS, EXOGENOUS
)
c["L1.1d", "q_n (1 - q_n)(sigma^2 - E|xi_n|^2) >= 0, summed over the clients"] = by(
    le(square(xi) - SECOND_MOMENTS, sigma**2 * (1 - sumsq)),
    ClientByClient(q * (1 - q) * (sigma**2 - s), ONE_CLIENT, (q, s), SUMS, needs=(WEIGHTS.name, UNBIASED.name)),
    A2,
    WEIGHTS,
)
c["L1.1", "the noise around its mean is at most sigma^2 (1 - S_t)"] = by(
    le(around, sigma**2 * (1 - sumsq)), "L1.1b L1.1c L1.1d"
)
c["L1.S", "the squares of weights that sum to 1 sum to at most 1", "for every round t"] = by(
    le(sumsq, 1), ClientByClient(q * (1 - q), ONE_CLIENT[:1], (q, s), SUMS, needs=(WEIGHTS.name,)), WEIGHTS
)
three = square(gy - gm) + square(gm - mgm) + square(mgm - mgy)
c["L1.2", "Young with 1/(2I - 1) and Jensen for three gradients, (C.4) and (C.2)"] = by(
    le(square(before), (1 + young) * SPREAD + 6 * I * gamma**2 * three), Gram()
)
c["L1.3a", "smoothness between the local models and their mean"] = Smooth("gy", "gm", L), A1
c["L1.3b", "Jensen over the clients"] = Jensen(gm - gy), WEIGHTS
c["L1.3c", "eq. (6): grad F_n(ybar) around its weighted mean"] = le(square(gm - mgm), nu**2), COHORT
grows = young + 12 * I * L**2 * gamma**2
c["L1.4", "the recursion of the spread, eq. (C.6)"] = by(
    le(AFTER_SPREAD, (1 + grows) * SPREAD + SPREAD_ADDS), "L1.0 L1.1 L1.2 L1.3a L1.3b L1.3c"
)
c["L1.5", "the step size keeps the ratio below 1 + 7/(12(I - 1/2))", ""] = le(grows, SPREAD_RATIO - 1), SMALL_CAP
c["L1.5b", "the recursion with that ratio"] = by(
    le(AFTER_SPREAD, SPREAD_RATIO * SPREAD + SPREAD_ADDS), {"L1.4": 1, "L1.5": SPREAD}
)
c["L1.start", "all local models of a round start at the same point", "for i = 0"] = by(
    Starts(SPREAD, "y_{t,0}^n = x_t for every client")
)
c["L1.6", "the recursion unrolled over at most I local steps of one round", IN_ROUND] = by(
    le(SPREAD, SPREAD_ADDS * power_sum(SPREAD_RATIO, I)), Unroll(SPREAD, AFTER_SPREAD, I), "L1.start L1.5b L1.S"
)
c["L1.one", "with one local step the only spread used is that before it", "for every t and i < I"] = by(
    Starts(SPREAD, "y_{t,0}^n = x_t for every client, and i < I = 1", "<="), ONE_STEP
)
for name, constant, lemma in (("", Integer(3), ""), ("-sharp", K1, " with the smallest constant")):
    c[f"L1.7{name}", f"the geometric sum is at most {constant} I", "for every whole I >= 1"] = by(
        GeometricSum(FIRST, I, constant)
    )
    c[f"C.5{name}", f"Lemma C.1{lemma}", IN_ROUND] = by(
        le(SPREAD, constant * I * SPREAD_ADDS), {"L1.6": 1, f"L1.7{name}": SPREAD_ADDS}, "L1.S"
    )

SPREAD_PROOF = c.proof(f"{PAPER}/lemma-c.1", LEMMA_C_1, {"printed": "C.5", "sharp": "C.5-sharp"}, SPREAD)

# --- Lemma C.2: the drift -------------------------------------------------------------------------------------------

P, rho, beta = n.P, n.rho, n.beta
SECOND = Rational(5, 9)  # exponent of the geometric sum
L1 = f"{PAPER}/lemma-c.1"
DRIFT_RATIO = 1 + SECOND / (I * P - HALF_STEP)
IN_WINDOW, START = "for t_0 <= t < t_0 + P and i <= I", "for t = t_0, i = 0"


def drift_bound(spread: sp.Expr, second: sp.Expr, noise: sp.Expr) -> sp.Expr:
    """Where Lemma C.2 ends, given three constants: of the spread, of the geometric sum, of the spread's noise."""
    return (
        spread * second / 3 * gamma**2 * I**2 * nu**2
        + 8 * second * gamma**2 * I**2 * P**2 * (beta**2 + G)
        + second * gamma**2 * I * P * sigma**2 * (rho**2 + noise / P)
    )


def printed_bound(spread: sp.Expr, factor: sp.Expr) -> sp.Expr:
    """Where Lemma C.2 ends with the paper's constants; `spread` is 3, or 0 where there is none."""
    return (
        spread * gamma**2 * I**2 * nu**2
        + 24 * gamma**2 * I**2 * P**2 * (beta**2 + G)
        + 3 * gamma**2 * I * P * sigma**2 * (rho**2 + factor / (6 * P))
    )


LEAST_SUM = sp.Symbol("S_min", nonnegative=True)
ONE_ROUND = Condition(P, "==", Integer(1), "no drift within a window of one round")
ROWS = (  # suffix, constant of the spread, the claim it comes from, what 1 - S_t is bounded by in all rounds
    ("", Integer(3), "C.5", Integer(1)),
    ("-sharp", K1, "C.5-sharp", Integer(1)),
    ("-least", Integer(3), "C.5", 1 - LEAST_SUM),
    ("-one", Integer(0), "L1.one", Integer(0)),
)

away = ybar - x0 - gamma * mgy
young = 1 / (2 * I * P - 1)
four = square(mgy - mgm) + square(mgm - mg0) + square(mg0 - f0) + G

c = Chain(ROUND, EACH, (SPREAD_PROOF,))
c["L2.0a", "the mean noise is uncorrelated with the models and gradients of this step"] = by(
    Uncorrelated(mxi, away), *PAST
)
c["L2.0", "one local step splits the drift into gradients and noise, eq. (C.9)"] = by(
    eq(AFTER_DRIFT, square(away) + gamma**2 * square(mxi)), "L2.0a"
)
c["L2.1a", "q_n^2 (sigma^2 - E|xi_n|^2) >= 0, summed over the clients"] = by(
    le(SECOND_MOMENTS, sigma**2 * sumsq),
    ClientByClient(q**2 * (sigma**2 - s), ONE_CLIENT, (q, s), SUMS, needs=(A2.name,)),
    A2,
)
c["L2.1b", "S_t <= rho^2", "for every round t"] = le(sumsq, rho**2), NORM
c["L2.1", "the mean noise is at most rho^2 sigma^2"] = by(
    le(square(mxi), rho**2 * sigma**2), {f"{L1}/L1.1c": 1, "L2.1a": 1, "L2.1b": sigma**2}
)
c["L2.2", "Young with 1/(2IP - 1) and Jensen for four gradients, (C.4) and (C.2)"] = by(
    le(square(away), (1 + young) * DRIFT + 8 * I * P * gamma**2 * four), Gram()
)
c["L2.3a", "Jensen over the clients"] = Jensen(gy - gm), WEIGHTS
c["L2.3b", "Jensen over the clients"] = Jensen(gm - g0), WEIGHTS
c["L2.3c", "smoothness between the mean model and the window's start"] = Smooth("gm", "g0", L), A1
c["L2.3d", "eq. (5): the participants' mean gradient at the window's start"] = by(
    le(square(mg0 - f0), beta**2), PARTICIPATION
)
grows = young + 8 * I * P * L**2 * gamma**2
adds = 8 * I * P * gamma**2 * (L**2 * SPREAD + beta**2 + G) + gamma**2 * rho**2 * sigma**2
c["L2.3", "the drift after one local step, in terms of spread and drift"] = by(
    le(AFTER_DRIFT, (1 + grows) * DRIFT + adds), f"L2.0 L2.1 L2.2 {L1}/L1.3a L2.3a L2.3b L2.3c L2.3d"
)
c["L2.5", "the step size keeps the ratio below 1 + 5/(9(IP - 1/2))", ""] = le(grows, DRIFT_RATIO - 1), LOCAL_CAP
c["L2.8", "within a window a round starts where the last one ended, so at most IP local steps are taken", START] = by(
    Starts(DRIFT, "ybar_{t_0,0} = x_{t_0}; x_{t+1} = ybar_{t,I} because the weights sum to 1"), WEIGHTS
)
c["L2.S", "S_min is the least S_t", "for every round t"] = le(LEAST_SUM, sumsq), WEIGHTS
c["L2.9", "the geometric sum is at most K2 IP", "for every whole I, P >= 1"] = GeometricSum(SECOND, I * P, K2)
c["L2.one", "with one local step in a window of one round the only drift used is that before it", START] = by(
    Starts(DRIFT, "ybar_{t_0,0} = x_{t_0}, and t = t_0, i = 0", "<="), ONE_STEP, ONE_ROUND
)
for name, spread, source, factor in ROWS:
    gradients = 8 * I * P * gamma**2 * (beta**2 + G)
    cohort = spread / 3 * gamma**2 * I * nu**2 / P
    noise = gamma**2 * sigma**2 * rho**2
    own = gamma**2 * sigma**2 * spread / (18 * P)
    adds = cohort + gradients + noise + own * factor
    c[f"L2.7{name}", "the recursion of the drift, eq. (C.9), with the sum of squared weights of this round"] = by(
        le(AFTER_DRIFT, DRIFT_RATIO * DRIFT + cohort + gradients + noise + own * (1 - sumsq)),
        {"L2.3": 1, "L2.5": DRIFT, f"{L1}/{source}": 8 * I * P * gamma**2 * L**2},
        f"{L1}/L1.S",
        LOCAL_CAP,
    )
    c[f"L2.7b{name}", "the recursion for all rounds of a window, whose sums of squared weights may differ"] = by(
        le(AFTER_DRIFT, DRIFT_RATIO * DRIFT + adds), {f"L2.7{name}": 1, "L2.S": 0 if factor == 1 else own}
    )
    c[f"L2.8b{name}", "the recursion unrolled over at most IP local steps of one window", IN_WINDOW] = by(
        le(DRIFT, adds * power_sum(DRIFT_RATIO, I * P)),
        Unroll(DRIFT, AFTER_DRIFT, I * P, varying=(sumsq,)),
        f"L2.8 L2.7b{name} L2.S {L1}/L1.S",
    )
    c[f"L2.10{name}", "Lemma C.2 with that constant, for all rounds of a window", IN_WINDOW] = by(
        le(DRIFT, drift_bound(spread, K2, spread / 18 * factor)), {f"L2.8b{name}": 1, "L2.9": adds}, f"L2.S {L1}/L1.S"
    )
for name, bound in (
    ("", printed_bound(Integer(3), 1 - sumsq)),
    ("-least", printed_bound(Integer(3), 1 - LEAST_SUM)),
    ("-one", printed_bound(Integer(0), Integer(0))),
):
    c[f"C.8{name}", "Lemma C.2: the slack of the geometric sum covers the S_t of the current round", IN_WINDOW] = by(
        le(DRIFT, bound), f"L2.10{name} L2.1b L2.S {L1}/L1.S"
    )

DRIFT_PROOF = c.proof(
    f"{PAPER}/lemma-c.2",
    LEMMA_C_2,
    {"printed": "C.8", "sharp": "L2.10-sharp"},
    DRIFT,
    {next(iter(G.free_symbols)): n.gradsq},
)
