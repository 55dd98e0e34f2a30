"""Theorem 3.1 with free weights in Jensen's inequality and a free factor in Young's.

The weights minimize the product of the seven constants at the largest step size; none exceeds the evenly split one.
"""

import sympy as sp
from sympy import Integer, Rational

from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.geometric_sums import GeometricSum
from fedbounds.bounds.audit.rules import Everywhere, Gram, Telescope, Unroll, power_sum
from fedbounds.bounds.audit.vectors import Vec, square
from fedbounds.bounds.papers.arbitrary_participation import results
from fedbounds.bounds.papers.arbitrary_participation.assumptions import BOUNDED_BELOW, WEIGHTS
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.proof import spread as lemma
from fedbounds.bounds.papers.arbitrary_participation.proof import window
from fedbounds.bounds.papers.arbitrary_participation.proof.spread import DRIFT_PROOF, IN_WINDOW, L1

AVERAGED, C16, COMPLETE, L2, LEAST = window.AVERAGED, window.C16, window.COMPLETE, window.L2, window.LEAST
WHOLE_WINDOW, WINDOW_PROOF, WINDOWS, at_mean = window.WHOLE_WINDOW, window.WINDOW_PROOF, window.WINDOWS, window.at_mean
at_start, mean, noise = window.at_start, window.mean, window.noise

AFTER_DRIFT, AFTER_SPREAD, DRIFT, EACH = lemma.AFTER_DRIFT, lemma.AFTER_SPREAD, lemma.DRIFT, lemma.EACH
HALF_STEP, IN_ROUND, PAPER, ROUND = lemma.HALF_STEP, lemma.IN_ROUND, lemma.PAPER, lemma.ROUND
SMALL_CAP, SPREAD, SPREAD_PROOF, G = lemma.SMALL_CAP, lemma.SPREAD, lemma.SPREAD_PROOF, lemma.G

L, F, I, P, gamma, eta, rho, sigma, nu, beta = n.L, n.F, n.I, n.P, n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta
delta, sumsq, decrease, r = n.delta, n.sumsq, n.decrease, n.r
y, ybar, x0, gy, mgy, gm, mgm, mg0, f0 = (
    Vec.atom(name) for name in ("y", "ybar", "x0", "gy", "mgy", "gm", "mgm", "mg0", "f0")
)
kept = results.TUNED_SLOPE

# How the chain splits its sums: the weights of each line sum to 1.
u1, u2, u3 = Rational(3, 20), Rational(7, 10), Rational(3, 20)  # Lemma C.1's three gradients
v1, v2, v3, v4 = Rational(3, 25), Rational(1, 10), Rational(8, 25), Rational(23, 50)  # Lemma C.2's four gradients
w1, w2, w3 = Rational(6, 13) / (1 + r), Rational(7, 13) / (1 + r), r / (1 + r)  # a window: spread, drift, divergence

# --- Lemmas C.1 and C.2; what no weight enters is the paper's chain ---------------------------------------------------

c = Chain(ROUND, EACH, (SPREAD_PROOF, DRIFT_PROOF))
before, young, each = y - ybar - gamma * (gy - mgy), 1 / (2 * I - 1), 2 * I * gamma**2
three = square(gy - gm) / u1 + square(gm - mgm) / u2 + square(mgm - mgy) / u3
ratio, grows = 1 + results.TUNED_FIRST / (I - HALF_STEP), young + each * L**2 * (1 / u1 + 1 / u3)
adds = each / u2 * nu**2 + gamma**2 * sigma**2 * (1 - sumsq)
free = adds.xreplace({sumsq: Integer(0)})
spread = results.K3 * I * free
c["S1", "Young and Jensen for three gradients with weights"] = by(
    le(square(before), (1 + young) * SPREAD + each * three), Gram()
)
c["S2", "the recursion of the spread"] = by(
    le(AFTER_SPREAD, (1 + grows) * SPREAD + adds), f"{L1}/L1.0 {L1}/L1.1 S1 {L1}/L1.3a {L1}/L1.3b {L1}/L1.3c"
)
c["S3", "the step size bounds the ratio", ""] = le(grows, ratio - 1), SMALL_CAP
c["S4", "the recursion with that ratio"] = le(AFTER_SPREAD, ratio * SPREAD + adds), {"S2": 1, "S3": SPREAD}
c["S5", "unrolled over one round", IN_ROUND] = by(
    le(SPREAD, adds * power_sum(ratio, I)), Unroll(SPREAD, AFTER_SPREAD, I), f"{L1}/L1.start S4 {L1}/L1.S"
)
c["S6", "the geometric sum", "for every whole I >= 1"] = GeometricSum(results.TUNED_FIRST, I, results.K3)
c["S7", "the spread, 1 - S_t <= 1", IN_ROUND] = le(SPREAD, spread), {"S5": 1, "S6": adds}, f"{L1}/L1.S"

away, young, each = ybar - x0 - gamma * mgy, 1 / (2 * I * P - 1), 2 * I * P * gamma**2
four = square(mgy - mgm) / v1 + square(mgm - mg0) / v2 + square(mg0 - f0) / v3 + G / v4
ratio, grows = 1 + results.TUNED_SECOND / (I * P - HALF_STEP), young + each * L**2 / v2
own = gamma**2 * rho**2 * sigma**2
adds = results.K3 / (72 * v1 * P) * free + each * (beta**2 / v3 + G / v4) + own  # the first is S7 at the largest gamma
drift = sp.expand(results.K4 * I * P * adds)
c["D1", "Young and Jensen for four gradients with weights"] = by(
    le(square(away), (1 + young) * DRIFT + each * four), Gram()
)
c["D2", "the drift after one local step, in terms of spread and drift"] = by(
    le(AFTER_DRIFT, (1 + grows) * DRIFT + each * (L**2 * SPREAD / v1 + beta**2 / v3 + G / v4) + own),
    f"{L2}/L2.0 {L2}/L2.1 D1 {L1}/L1.3a {L2}/L2.3a {L2}/L2.3b {L2}/L2.3c {L2}/L2.3d",
)
c["D3", "the step size bounds the ratio", ""] = le(grows, ratio - 1), results.LOCAL_CAP
c["D4", "the recursion with that ratio and the bound on the spread"] = by(
    le(AFTER_DRIFT, ratio * DRIFT + adds), {"D2": 1, "D3": DRIFT, "S7": each * L**2 / v1}, results.LOCAL_CAP
)
c["D5", "unrolled over one window", IN_WINDOW] = by(
    le(DRIFT, adds * power_sum(ratio, I * P)),
    Unroll(DRIFT, AFTER_DRIFT, I * P, varying=(sumsq,)),
    f"{L2}/L2.8 D4",
    WEIGHTS,
)
c["D6", "the geometric sum", "for every whole I, P >= 1"] = GeometricSum(results.TUNED_SECOND, I * P, results.K4)
c["D7", "the drift", IN_WINDOW] = le(DRIFT, drift), {"D5": 1, "D6": adds}
TUNED_LEMMAS = c.proof(f"{PAPER}/lemmas-tuned", results.THEOREM_3_1, {})

# --- Theorem 3.1 ------------------------------------------------------------------------------------------------------

c = Chain(WHOLE_WINDOW, WINDOWS, (TUNED_LEMMAS, WINDOW_PROOF))
parts = square(mean - at_mean) / w1 + square(at_mean - at_start) / w2 + square(at_start - f0) / w3
kappa = gamma * eta * L * I * P
bound = (
    2 * decrease / (gamma * eta * I * P)
    + L**2 / w1 * spread
    + L**2 / w2 * (drift - sp.diff(drift, G) * G)
    + delta**2 / w3
    + gamma * eta * L * rho**2 * sigma**2 / (1 - kappa)
) / kept
c["W1", "the average of the spread"] = Everywhere((sumsq,)), f"{TUNED_LEMMAS.id}/S7"
c["W2", "the average of the drift"] = Everywhere((sumsq,)), f"{TUNED_LEMMAS.id}/D7"
c["W3", "Jensen for three differences with weights"] = le(square(mean - f0), parts), Gram()
c["W4", "the window's mean gradient against grad f"] = by(
    le(square(mean - f0), L**2 / w1 * SPREAD + L**2 / w2 * DRIFT + delta**2 / w3),
    f"W3 {C16}/Th3b {C16}/Th3c {C16}/Th3d {C16}/Th3e {C16}/Th3f",
)
c["W5", "Young for the squared update, with the factor at which the gradient's square cancels"] = by(
    le(square(mean + noise), square(mean) / kappa + square(noise) / (1 - kappa)), Gram(), results.YOUNG_CAP
)
c["W6", "what the gradient keeps", ""] = le(Rational(1, 4), kept), results.LOCAL_CAP, results.ODDS_CAP
c["W7", "one window"] = by(
    le(G, bound),
    {f"{C16}/Th1": 2 / (gamma * eta * I * P * kept), f"{C16}/Th1b": -2 / kept, f"{C16}/Th2": 2 / kept},
    {"W4": 1 / kept, "W5": kappa / kept, f"{C16}/Th5b": kappa / (1 - kappa) / kept},
    {"W1": L**2 / w1 / kept, "W2": L**2 / w2 / kept},
    "W6",
    results.LOCAL_CAP,
    results.YOUNG_CAP,
    results.ODDS_CAP,
)
c["W8", AVERAGED, ""] = by(
    Telescope(decrease, F, COMPLETE, LEAST, G), "W7", BOUNDED_BELOW, results.LOCAL_CAP, results.ODDS_CAP, results.ONCE
)
TUNED_PROOF = c.proof(f"{PAPER}/theorem-3.1-tuned", results.THEOREM_3_1, {"sharp:tuned": "W8"})
