"""Section 4: what bounded divergence and the pattern of participation make of the three divergences."""

from sympy import Abs, Integer, Symbol, log

from fedbounds.bounds.audit.axioms import Jensen, MeanOf
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.derivations import InExpectation, Lemma, Markov
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import ClientByClient, Everywhere
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.arbitrary_participation import assumptions, participation
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.proof.spread import PAPER
from fedbounds.bounds.papers.arbitrary_participation.results import EQUATION_11
from fedbounds.bounds.theory.client_reductions import MedianOverClients
from fedbounds.bounds.theory.client_reductions import SumOverClients as Sum

N, P, S, d, theta, nu, beta, upsilon, windowvar = n.N, n.P, n.S, n.d, n.theta, n.nu, n.beta, n.upsilon, n.windowvar

# --- (11) and Proposition 4.1 ---------------------------------------------------------------------------------------

COHORT_ATOMS = (
    Atom("g", "gradient", 0, "grad F_n at x", at="x", mean="mg"),
    Atom("mg", "gradient", 0, "weighted mean of grad F_n(x) in round t", per_client=False, of="mean"),
    Atom("f", "gradient", 0, "grad f at x", at="x", of="f", per_client=False),
)
ONE_ROUND = ProofSetting.of("sum over clients with the weights of one round", *COHORT_ATOMS)
g, mg, f = (Vec.atom(a.name) for a in COHORT_ATOMS)
POINTS = "for every round t and point x"
WITHIN, AROUND = square(g - mg), square(mg - f)

c = Chain(ONE_ROUND, POINTS)
c["D1", "the participants' mean gradient is their mean"] = MeanOf(g - mg, mg - f), assumptions.WEIGHTS
c["D2", "eq. (11)"] = eq(square(g - f), WITHIN + AROUND), "D1"
c["D3", "Assumption 3, averaged over the participants: every client at x"] = by(
    le(square(g - f), d**2), assumptions.BOUNDED_DIVERGENCE, assumptions.WEIGHTS
)
c["D4", "eq. (6)"] = le(WITHIN, nu**2), assumptions.COHORT
c["D5", "eq. (5)"] = le(AROUND, beta**2), assumptions.PARTICIPATION
c["D6", "(11) with the suprema of (5) and (6)"] = le(square(g - f), nu**2 + beta**2), "D2 D4 D5"
DECOMPOSITION = c.proof(f"{PAPER}/equation-11", EQUATION_11, {"printed": "D3", "explicit": "D6"}, square(g - f))

ANY_ROUND, OTHER_ROUND = Symbol("sup (5)", nonnegative=True), Symbol("sup (6)", nonnegative=True)
c = Chain(ONE_ROUND, cites=(DECOMPOSITION,))
BY_11 = {f"{DECOMPOSITION.id}/D2": -1, f"{DECOMPOSITION.id}/D3": 1}
c["D1", "(5) in one round, by (11)", POINTS] = le(AROUND, d**2), BY_11
c["D2", "(6) in one round, by (11)", POINTS] = le(WITHIN, d**2), BY_11
c["D3", "the supremum of (5)"] = Everywhere(of=AROUND, is_=ANY_ROUND), "D1"
c["D4", "the supremum of (6)"] = Everywhere(of=WITHIN, is_=OTHER_ROUND), "D2"
c["D5", "both"] = le(ANY_ROUND + OTHER_ROUND, 2 * d**2), {"D3": 1, "D4": 1}
EACH = c.proof(f"{PAPER}/proposition-4.1", participation.PROPOSITION_4_1, {"repaired": "D5"}, ANY_ROUND + OTHER_ROUND)

# --- One window: Proposition 4.2 and (15) ----------------------------------------------------------------------------

CLIENT_ATOMS = (
    Atom("qv", "gradient", 0, "qbar_n (grad F_n - grad f)", of="other", mean="mqv"),
    Atom("mqv", "gradient", 0, "mean over clients of qbar_n (grad F_n - grad f)", per_client=False, of="mean"),
    Atom("v", "gradient", 0, "grad F_n - grad f", of="other", mean="0"),
)
ALL_CLIENTS = ProofSetting.of("plain mean over the N clients", *CLIENT_ATOMS)
qv, mqv, v = (Vec.atom(a.name) for a in CLIENT_ATOMS)
LHS = N**2 * square(mqv)  # |sum_n qbar_n v_n|^2, the left-hand side of (7)
OFFSET = qv - 1 / N * v  # (qbar_n - 1/N) v_n
SQUARES = Sum((n.qbar - 1 / N) ** 2)
weight, length = Symbol("qbar_n - 1/N", real=True), Symbol("|v_n|", nonnegative=True)
FREE = "for every point x and window"
ALIGNED = "for every point x and every window that starts at a multiple of P"
E7 = measure_symbol(participation.EXPECTED_WINDOW)

c = Chain(ALL_CLIENTS, FREE)
c["D1", "grad f is the mean of the grad F_n, so the offsets v_n sum to zero, eq. (12)"] = (
    Jensen(OFFSET),
    assumptions.WEIGHTS,
)
c["D2", "every client's mean weight is 1/N, because they are equal and sum to 1", ALIGNED] = by(
    eq(square(OFFSET), Integer(0)), assumptions.REGULARIZED, assumptions.WEIGHTS
)
c["D3", "the left-hand side of (7)", ALIGNED] = le(LHS, 0), "D1 D2"
REGULAR = c.proof(f"{PAPER}/proposition-4.2", participation.PROPOSITION_4_2, {"printed": "D3"}, LHS)

c = Chain(ALL_CLIENTS, FREE, (REGULAR,))
c["D1", "(qbar_n - 1/N)^2 (d^2 - |v_n|^2) >= 0, averaged over the clients"] = by(
    le(square(OFFSET), SQUARES * d**2 / N),
    ClientByClient(
        weight**2 * (d**2 - length**2),
        (le(length, d),),
        (weight, length),
        (((2, 0), SQUARES / N), ((2, 2), square(OFFSET))),
        needs=(assumptions.BOUNDED_DIVERGENCE.name,),
    ),
    assumptions.BOUNDED_DIVERGENCE,
)
c["D2", "Cauchy-Schwarz over the clients, eq. (15)"] = le(LHS, N * SQUARES * d**2), f"{REGULAR.id}/D1 D1"
FIFTEEN = c.proof(f"{PAPER}/equation-15", participation.EQUATION_15, {"printed": "D2"}, LHS)

# With the median mu of the mean weights: the bracket weighs client n by |qbar_n - mu|/C, C = sum_n |qbar_n - mu|.
SIGNED_ATOMS = (
    Atom("sv", "gradient", 0, "sign(qbar_n - mu)(grad F_n - grad f)", of="other", mean="msv"),
    Atom("msv", "gradient", 0, "its mean", per_client=False, of="mean"),
)
BY_DEVIATION = ProofSetting.of("sum over clients with weights |qbar_n - mu|/C", *CLIENT_ATOMS, *SIGNED_ATOMS)
sv, msv = Vec.atom("sv"), Vec.atom("msv")
DEVIATIONS = Sum(Abs(n.qbar - MedianOverClients(n.qbar)))
c = Chain(BY_DEVIATION, FREE)
c["D1", "the offsets sum to zero, so any common mu may be subtracted, eq. (12)"] = Lemma(
    "grad f is the mean of the grad F_n, so their offsets sum to zero", LHS, DEVIATIONS**2 * square(msv)
)
c["D2", "Jensen"] = Jensen(sv), assumptions.WEIGHTS
c["D3", "Assumption 3, averaged: every client at x"] = le(square(sv), d**2), assumptions.BOUNDED_DIVERGENCE
c["D4", "the triangle inequality over the clients"] = le(LHS, DEVIATIONS**2 * d**2), "D1 D2 D3"
MEDIAN = c.proof(f"{PAPER}/equation-15-median", participation.EQUATION_15, {"sharp:median": "D4"}, LHS)

# --- Random weights: Propositions 4.4, 4.6, 4.7 ---

MEAN_SQUARES = Symbol("E sum_n (qbar_n - 1/N)^2", nonnegative=True)
VARIANCE = Symbol("max_n Var(qbar_n)", nonnegative=True)
LIKELY = measure_symbol(participation.AVERAGE_WINDOW)
BY_VARIANCE = N**2 * d**2 * windowvar
c = Chain(ALL_CLIENTS, cites=(FIFTEEN,))
c["D1", "(15) in expectation over the participation", FREE] = by(
    InExpectation(((square(mqv), E7 / N**2), (SQUARES, MEAN_SQUARES)), "the participation"), f"{FIFTEEN.id}/D2"
)
c["D2", "E qbar_n = 1/N, so E (qbar_n - E qbar_n)^2 = Var(qbar_n) <= the largest"] = by(
    le(MEAN_SQUARES, N * VARIANCE), assumptions.UNBIASED_SAMPLING, assumptions.WEIGHTS
)
c["D3", "windowvar bounds the variance in every window used"] = le(VARIANCE, windowvar), assumptions.UNIFORMLY_SAMPLED
c["D4", "the window divergence in expectation"] = le(E7, BY_VARIANCE), {"D1": 1, "D2": N * d**2, "D3": N**2 * d**2}
ERGODIC_PROOF = c.proof(f"{PAPER}/proposition-4.4", participation.PROPOSITION_4_4, {"repaired": "D4"})
ERGODIC = ERGODIC_PROOF.id

c = Chain(ALL_CLIENTS, cites=(ERGODIC_PROOF,))
c["D1", "the window divergence in expectation, as in Proposition 4.4"] = le(E7, BY_VARIANCE), f"{ERGODIC}/D4"
c["D2", "Markov's inequality for the average over the windows"] = Markov(n.c, LIKELY), "D1"
MIXING_PROOF = c.proof(
    f"{PAPER}/proposition-4.6", participation.PROPOSITION_4_6, {"repaired": "D1", "repaired:probability": "D2"}
)

TAIL = Symbol("average over clients and windows of (qbar_n - 1/N)^2, likely", nonnegative=True)
SUB_GAUSSIAN = (log(1 / n.c) + log(1 / (1 - theta)) / 2) / (2 * theta * P)
HOEFFDING = (
    "Hoeffding's lemma: the mean of P independent numbers in [0, 1] is sub-Gaussian with variance proxy s^2 = 1/(4P); "
    "E exp(lambda Y^2) <= (1 - 2 lambda s^2)^(-1/2) for such Y; exp is convex; Chernoff with lambda = theta/(2 s^2)"
)
HOEFFDING_SHARED = HOEFFDING.replace("[0, 1]", "[0, 1/S]").replace("1/(4P)", "1/(4P S^2)")
MEAN_OF_P = "the variance of a mean of P independent numbers is 1/P of their mean variance"
TAILED = (assumptions.INDEPENDENT_ROUNDS, assumptions.UNBIASED_SAMPLING, assumptions.WEIGHTS)
NAMES = tuple(a.name for a in TAILED)
c = Chain(ALL_CLIENTS, cites=(FIFTEEN, ERGODIC_PROOF))
c["D1", "the variance of a mean of P uncorrelated weights"] = by(
    Lemma(MEAN_OF_P, VARIANCE, upsilon**2 / P, (assumptions.INDEPENDENT_ROUNDS.name,)), assumptions.INDEPENDENT_ROUNDS
)
c["D2", "the window divergence in expectation"] = by(
    le(E7, N**2 * d**2 * upsilon**2 / P), {f"{ERGODIC}/D1": 1, f"{ERGODIC}/D2": N * d**2, "D1": N**2 * d**2}
)
c["D3", "Markov's inequality for the average over the windows"] = Markov(n.c, LIKELY), "D2"
c["D4", "the average over clients and windows of the squared deviations, with probability 1 - c"] = by(
    Lemma(HOEFFDING, TAIL, SUB_GAUSSIAN, NAMES), *TAILED
)
c["D5", "(15) averaged over the windows: N times the sum over clients is N^2 times their mean"] = by(
    InExpectation(((square(mqv), LIKELY / N**2), (SQUARES, N * TAIL)), "the windows"), f"{FIFTEEN.id}/D2"
)
c["D6", "the average over the windows, sub-Gaussian"] = by(
    le(LIKELY, N**2 * d**2 * SUB_GAUSSIAN), {"D4": N**2 * d**2, "D5": 1}
)
c["D7", "the average over clients and windows of the squared deviations of weights in [0, 1/S]"] = by(
    Lemma(HOEFFDING_SHARED, TAIL, SUB_GAUSSIAN / S**2, (*NAMES, assumptions.SHARED_EQUALLY.name)),
    *TAILED,
    assumptions.SHARED_EQUALLY,
)
c["D8", "the average over the windows, sub-Gaussian"] = by(
    le(LIKELY, N**2 * d**2 * SUB_GAUSSIAN / S**2), {"D7": N**2 * d**2, "D5": 1}
)
INDEPENDENT_PROOF = c.proof(
    f"{PAPER}/proposition-4.7",
    participation.PROPOSITION_4_7,
    {"printed": "D2", "repaired:markov": "D3", "repaired:probability": "D6", "repaired:equal-weights": "D8"},
)
PROOFS = (DECOMPOSITION, EACH, REGULAR, FIFTEEN, MEDIAN, ERGODIC_PROOF, MIXING_PROOF, INDEPENDENT_PROOF)
