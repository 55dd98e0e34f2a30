"""Lemma C.2: how far the mean model drifts from the start of its window, eqs. (C.8) to (C.12)."""

from __future__ import annotations

from sympy import Expr, Integer, Rational, Symbol

from fedbounds.bounds.audit.axioms import Jensen, Smooth, Starts, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.geometric_sums import GeometricSum
from fedbounds.bounds.audit.rules import ClientByClient, Gram, Unroll, power_sum
from fedbounds.bounds.audit.vectors import Vec, square
from fedbounds.bounds.papers.arbitrary_participation.assumptions import NORM, PARTICIPATION, WEIGHTS
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.proof import spread as lemma
from fedbounds.bounds.papers.arbitrary_participation.results import K1, K2, LEMMA_C_2, LOCAL_CAP
from fedbounds.bounds.theory.result import Condition

A1, A2, AFTER_DRIFT, DRIFT, EACH = lemma.A1, lemma.A2, lemma.AFTER_DRIFT, lemma.DRIFT, lemma.EACH
HALF_STEP, ONE_CLIENT, ONE_STEP, PAPER = lemma.HALF_STEP, lemma.ONE_CLIENT, lemma.ONE_STEP, lemma.PAPER
PAST, ROUND, SECOND_MOMENTS, SPREAD = lemma.PAST, lemma.ROUND, lemma.SECOND_MOMENTS, lemma.SPREAD
SPREAD_PROOF, SUMS, G, q, s = lemma.SPREAD_PROOF, lemma.SUMS, lemma.G, lemma.q, lemma.s

L, I, P, gamma, rho, sigma, nu, beta, sumsq = n.L, n.I, n.P, n.gamma, n.rho, n.sigma, n.nu, n.beta, n.sumsq
SECOND = Rational(5, 9)  # exponent of the geometric sum
L1 = f"{PAPER}/lemma-c.1"
DRIFT_RATIO = 1 + SECOND / (I * P - HALF_STEP)
IN_WINDOW, START = "for t_0 <= t < t_0 + P and i <= I", "for t = t_0, i = 0"
ybar, x0, gy, mgy, gm, mgm, g0, mg0, f0, mxi = (
    Vec.atom(name) for name in ("ybar", "x0", "gy", "mgy", "gm", "mgm", "g0", "mg0", "f0", "mxi")
)


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
