"""What the results of Wang & Ji (2022) assume, stated and unstated."""

from fedbounds.bounds.theory import assumptions as common
from fedbounds.bounds.theory.assumptions import (
    DIVERGENCE,
    HORIZONTAL,
    LOCAL_SGD,
    MARTINGALE,
    MINIMIZATION,
    SMOOTH,
    UNBIASED,
    UNCOMPRESSED,
    Assumption,
)
from fedbounds.bounds.theory.problem_class import box, where

INDEPENDENT_CLIENTS = common.INDEPENDENT_CLIENTS.with_label("Lemma C.1 (b)")
EXOGENOUS = common.EXOGENOUS.with_label("Section 3: expectations over the gradient noise only")
BOUNDED_BELOW = common.BOUNDED_BELOW.with_label("Section 3: f* = min f")
SCOPE = (
    MINIMIZATION.with_label("eq. (1)"),
    HORIZONTAL.with_label("eq. (1)"),
    UNCOMPRESSED.with_label("Algorithm 1"),
    *LOCAL_SGD,
)

BOUNDED_GRADIENTS_APART = box(heterogeneity="none bounded")
AFRESH = "all uniform-sampling with-replacement independent-rounds"
COINS = "coins-known-rates coins-unknown-rates"
IN_WINDOWS = "all cyclic reshuffled"  # all clients equally often
SOMEBODY = where(  # whatever the pattern; of coins a round may be empty
    box(participation=f"{AFRESH} {IN_WINDOWS} mixing ergodic arbitrary depends-on-gradients"),
    perhaps=[box(participation=COINS)],
)

WEIGHTS = Assumption(
    "weights", "q_t^n >= 0 and sum_n q_t^n = 1 in every round t", "Section 3", participation=True, cover=SOMEBODY
)
NORM = Assumption(
    "participation-norm", "sum_n (q_t^n)^2 <= rho^2 in every round t", "Section 3", participation=True, cover=SOMEBODY
)
COHORT = Assumption(
    "cohort-divergence",
    "eq. (6) holds with nu for all x and t",
    "Assumption 3', eq. (6)",
    cover=where(BOUNDED_GRADIENTS_APART),
)
PARTICIPATION = Assumption(
    "participation-divergence",
    "eq. (5) holds with beta for all x, t",
    "Assumption 3', eq. (5)",
    cover=where(BOUNDED_GRADIENTS_APART, box(participation="all")),
)
WINDOW = Assumption(
    "window-divergence",
    "eq. (7) holds with delta for all x and all t_0 (Algorithm 1 sets t_0 in {0, P, 2P, ...}; no other is used)",
    "Assumption 3', eq. (7)",
    cover=where(BOUNDED_GRADIENTS_APART, box(participation=IN_WINDOWS)),
)
# The same four in expectation over a random participation, for Theorem 3.1 in expectation over participation.
EXPECTED_NORM = Assumption(
    "expected-participation-norm",
    "E sum_n (q_t^n)^2 <= rho^2 in every round t, in expectation over participation",
    "ours",
    participation=True,
    cover=SOMEBODY,
)
EXPECTED_COHORT = Assumption(
    "expected-cohort-divergence",
    "the left-hand side of eq. (6) at the mean local model is at most nu^2 in expectation over participation",
    "ours",
    cover=COHORT.cover,
)
EXPECTED_PARTICIPATION = Assumption(
    "expected-participation-divergence",
    "the left-hand side of eq. (5) at the start of the window is at most beta^2 in expectation over participation",
    "ours",
    cover=PARTICIPATION.cover,
)
EXPECTED_WINDOW = Assumption(
    "expected-window-divergence",
    "the left-hand side of eq. (7) at the start of the window is at most delta^2 in expectation over participation",
    "ours",
    cover=WINDOW.cover,
)
IN_EXPECTATION = {
    NORM: EXPECTED_NORM,
    COHORT: EXPECTED_COHORT,
    PARTICIPATION: EXPECTED_PARTICIPATION,
    WINDOW: EXPECTED_WINDOW,
}
BOUNDED_DIVERGENCE = DIVERGENCE.with_label("Assumption 3")
REGULARIZED = Assumption(
    "regularized",
    "every client has the same mean weight over every interval of P rounds (over those from multiples of P is enough)",
    "Proposition 4.2",
    participation=True,
    cover=where(box(participation=IN_WINDOWS)),
)
UNBIASED_SAMPLING = Assumption(
    "unbiased-sampling",
    "E q_t^n is the same for all clients n and all rounds t of a window (then it is 1/N, because sum_n q_t^n = 1)",
    "Section 4.2",
    participation=True,
    cover=where(box(participation=f"{AFRESH} reshuffled mixing ergodic"), perhaps=[box(participation=COINS)]),
)
INDEPENDENT_ROUNDS = Assumption(
    "independent-rounds",
    "each client's weights are independent over rounds",
    "Proposition 4.7",
    participation=True,
    cover=where(box(participation=f"{AFRESH} {COINS} cyclic")),
)
JOINTLY_INDEPENDENT = Assumption(
    "jointly-independent-rounds",
    "the weights of different rounds are independent, those of all clients taken together",
    "ours",
    participation=True,
    cover=where(box(participation=f"{AFRESH} {COINS} cyclic")),
)
MIXING = Assumption(
    "strongly-mixing",
    "each client's weights are stationary and strongly mixing with alpha(P) = O(P^-5)",
    "Lemma 4.5",
    participation=True,
    cover=where(box(participation=f"{AFRESH} {COINS} mixing")),
)
SHARED_EQUALLY = Assumption(
    "weights-at-most",
    "q_t^n <= 1/S in every round t, as for S or more participants of equal weight",
    "ours",
    participation=True,
    cover=SOMEBODY,
)
ERGODIC = Assumption(
    "ergodic",
    "Var of the window mean weight tends to 0 as P grows, for every client and window",
    "Proposition 4.4",
    participation=True,
    cover=where(box(participation=f"{AFRESH} {IN_WINDOWS} {COINS} mixing ergodic")),
)
UNIFORMLY_SAMPLED = Assumption(
    "window-variance",
    "the variance of every client's mean weight over every used window is at most windowvar",
    "ours",
    participation=True,
    cover=SOMEBODY,
)

NOISE = (
    SMOOTH.with_label("Assumption 1"),
    UNBIASED.with_label("Assumption 2"),
    INDEPENDENT_CLIENTS,
    MARTINGALE,
    EXOGENOUS,
)
THEOREM = (*NOISE[:2], PARTICIPATION, COHORT, WINDOW, WEIGHTS, NORM, *NOISE[2:], BOUNDED_BELOW)
BOUNDED = (*NOISE[:2], BOUNDED_DIVERGENCE, WEIGHTS, NORM, *NOISE[2:], BOUNDED_BELOW)
