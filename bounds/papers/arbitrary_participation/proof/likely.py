r"""Proposition 4.7 with high probability at every point: bounded differences of $Z=\sup_x|\sum_n\overline{q^n}v_n(x)|$.

$v_n(x)=\nabla F_n(x)-\nabla f(x)$. The bracket of the vectors compares one round's weights q with another draw q' of
them: it weighs client n by $(q^n+q'^n)/2$, and $s_n=(q^n-q'^n)/(q^n+q'^n)$ lies in [-1, 1].
"""

from sympy import Symbol, log, sqrt

from fedbounds.bounds.audit.axioms import Jensen
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.concentration import AllAtOnce, McDiarmid
from fedbounds.bounds.audit.derivations import InExpectation, Lemma
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import ClientByClient, Everywhere, Unfolded
from fedbounds.bounds.audit.transcendental import Opened
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.arbitrary_participation import likely
from fedbounds.bounds.papers.arbitrary_participation.assumptions import (
    BOUNDED_DIVERGENCE,
    JOINTLY_INDEPENDENT,
    UNBIASED_SAMPLING,
    WEIGHTS,
)
from fedbounds.bounds.papers.arbitrary_participation.likely import one_window
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.participation import PROPOSITION_4_7
from fedbounds.bounds.papers.arbitrary_participation.proof.participation import (
    ERGODIC_PROOF,
    FIFTEEN,
    LHS,
    MEAN_OF_P,
    MEAN_SQUARES,
    SQUARES,
    VARIANCE,
)
from fedbounds.bounds.papers.arbitrary_participation.proof.spread import PAPER

N, P, T, d, c, upsilon = n.N, n.P, n.T, n.d, n.c, n.upsilon
EXCHANGED = (
    Atom("ev", "gradient", 0, "s_n (grad F_n - grad f), |s_n| <= 1", of="other", mean="mev"),
    Atom("mev", "gradient", 0, "its mean, (1/2) sum_n (q^n - q'^n)(grad F_n - grad f)", per_client=False, of="mean"),
)
one_root, tail_root = Symbol("root of the mean", real=True), Symbol("root of the tail", real=True)
TWO_DRAWS = ProofSetting.of(
    "sum over clients with weights (q^n + q'^n)/2, q' being another draw of the round's weights q",
    *EXCHANGED,
    symbols={one_root: sqrt(likely.ANY_WEIGHTS), tail_root: sqrt(2 * log(1 / c))},
)
ev, mev = (Vec.atom(a.name) for a in EXCHANGED)
LARGEST2 = Symbol("Z^2", nonnegative=True)  # the largest left-hand side of (7) over all points
MEAN, MEAN2 = Symbol("E Z", nonnegative=True), Symbol("E Z^2", nonnegative=True)
MOVES = Symbol("how far Z moves when one round is drawn anew", nonnegative=True)
DEVIATIONS = Symbol("sum_n (q_t^n - 1/N)^2", nonnegative=True)
ROUND = Symbol("max_t E sum_n (q_t^n - 1/N)^2", nonnegative=True)
POINTS = "for every point x"
ONE, EVERY = measure_symbol(likely.ONE_WINDOW), measure_symbol(likely.ALL_WINDOWS)
q = Symbol("q_t^n", real=True)
YOUNG = N**2 / 4
FOUR_TERM = likely.SCALE * ((1 + 1 / (YOUNG - 1)) * one_root**2 + YOUNG * tail_root**2)

h = Chain(TWO_DRAWS, cites=(FIFTEEN, ERGODIC_PROOF))
h["H1", "Jensen"] = Jensen(ev), WEIGHTS
h["H2", "Assumption 3 at every point, as |s_n| <= 1: every client at x", POINTS] = by(
    le(square(ev), d**2), BOUNDED_DIVERGENCE, WEIGHTS
)
h["H2b", "a round drawn anew moves the sum over the clients by at most 2d at any point", POINTS] = by(
    le(4 / P**2 * square(mev), 4 * d**2 / P**2), "H1 H2"
)
h["H3", "so Z, the largest over the points, moves by at most 2d/P"] = by(
    Everywhere(of=4 / P**2 * square(mev), is_=MOVES**2), "H2b"
)
h["H4", "(15) is free of x, so it bounds the largest over the points"] = by(
    Everywhere(of=LHS, is_=LARGEST2), f"{FIFTEEN.id}/D2"
)
h["H5", "in expectation"] = InExpectation(((LARGEST2, MEAN2), (SQUARES, MEAN_SQUARES)), "the participation"), "H4"
h["H6", "the weights of a round sum to 1 and are at most 1", "for every round"] = by(
    le(DEVIATIONS, 1 - 1 / N),
    ClientByClient(
        q - q**2, (le(0 * q, q), le(q, 1)), (q,), (((1,), 1 + 0 * q), ((2,), DEVIATIONS + 1 / N)), needs=(WEIGHTS.name,)
    ),
    WEIGHTS,
)
h["H7", "in expectation, in every round"] = InExpectation(((DEVIATIONS, ROUND),), "the participation"), "H6"
h["H8", "the variances of means of P independent weights"] = by(
    Lemma(MEAN_OF_P, MEAN_SQUARES, ROUND / P, (JOINTLY_INDEPENDENT.name, UNBIASED_SAMPLING.name)),
    JOINTLY_INDEPENDENT,
    UNBIASED_SAMPLING,
)
h["H9", "the square of the mean of Z is at most its mean square"] = Lemma(
    "Jensen's inequality for expectations: (E Z)^2 <= E Z^2", MEAN**2, MEAN2
)
h["H10", "the mean of Z, for any weights"] = by(
    le(MEAN**2, d**2 * (N - 1) / P), {"H9": 1, "H5": 1, "H8": N * d**2, "H7": N * d**2 / P}
)
h["H11", "the variance of a mean of P independent weights"] = by(
    Lemma(MEAN_OF_P, VARIANCE, upsilon**2 / P, (JOINTLY_INDEPENDENT.name,)), JOINTLY_INDEPENDENT
)
h["H12", "the mean of Z, by the variance of the weights"] = by(
    le(MEAN**2, d**2 * N**2 * upsilon**2 / P),
    {"H9": 1, "H5": 1, f"{ERGODIC_PROOF.id}/D2": N * d**2, "H11": N**2 * d**2},
)
for name, source in (("H13", "H10"), ("H14", "H12")):
    h[name, "McDiarmid's inequality for one window, at all points at once"] = by(
        McDiarmid(MOVES, MEAN, ONE, P, c, likely.SCALE), f"H3 {source}", JOINTLY_INDEPENDENT
    )
    h[f"{name}-all", "at most T/P windows, each with probability of failure c P/T"] = by(
        AllAtOnce(c, ONE, EVERY, T / P), name, likely.SOME_WINDOW
    )
h["H15", "(C.4) with b such that the tail gets the printed factor"] = by(
    le(likely.SCALE * (one_root + tail_root) ** 2, FOUR_TERM), likely.FOUR_CLIENTS
)
h["H16", "the same with the roots written out"] = by(
    le(one_window(likely.ANY_WEIGHTS), FOUR_TERM.xreplace(dict(TWO_DRAWS.symbols))), Unfolded, "H15"
)
h["H17", "the logarithm of a product"] = Lemma("ln(2/c) = ln(2) + ln(1/c)", log(1 / c), log(2 / c) - log(2))
h["H18", "Proposition 4.7's constant for one window, as (N - 1)/(N^2 - 4) <= 1/4 <= ln(2)/2"] = by(
    le(ONE, likely.OWN_CONSTANT), Opened, {"H13": 1, "H16": 1, "H17": N**2 * d**2 / (2 * P)}, likely.FOUR_CLIENTS
)

LIKELY_PROOF = h.proof(
    f"{PAPER}/proposition-4.7-likely",
    PROPOSITION_4_7,
    {
        "repaired:one-window": "H13",
        "repaired:all-windows": "H13-all",
        "repaired:own-constant": "H18",
        "sharp:one-window": "H14",
        "sharp:all-windows": "H14-all",
    },
)
