"""What the results of Wang & Ji (2024) assume, stated and unstated."""

from fedbounds.bounds.theory.assumptions import (
    BOUNDED_BELOW,
    DIVERGENCE,
    HORIZONTAL,
    INDEPENDENT_CLIENTS,
    LOCAL_SGD,
    MARTINGALE,
    MINIMIZATION,
    SMOOTH,
    UNBIASED,
    UNCOMPRESSED,
    Assumption,
)
from fedbounds.bounds.theory.assumptions import CITED as CITED_ELSEWHERE
from fedbounds.bounds.theory.problem_class import ASKED, METHOD, box, where

SCOPE = (
    MINIMIZATION.with_label("eq. (1)"),
    HORIZONTAL.with_label("eq. (1)"),
    UNCOMPRESSED.with_label("Algorithm 1"),
    *LOCAL_SGD,
)
ALL_CLIENTS = box(participation="all")
COINS = box(participation="all coins-known-rates coins-unknown-rates")  # rates may be 1

BERNOULLI = Assumption(
    "bernoulli-participation",
    "client n takes part in each round with probability p_n, independently over rounds and clients and of the noise",
    "Assumption 4",
    participation=True,
    cover=where(COINS),
)
PAST_WEIGHTS = Assumption(
    "past-weights", "omega_t^n depends only on who took part before round t", "Section 3, Algorithm 1", cover=METHOD
)
SURE_Q = Assumption(
    "sure-Q", "(1/N) sum_n p_n (omega_t^n)^2 <= Q on every path and in every round", "unstated", cover=METHOD
)
NEARLY_OPTIMAL = Assumption(
    "nearly-optimal-weights",
    "(1/N) sum_n (p_n omega_t^n - 1)^2 <= 1/81 on every path and in every round",
    "Assumption 5, Option 1",
    cover=where(ALL_CLIENTS, perhaps=[COINS]),
)
BOUNDED_GRADIENT = Assumption(
    "bounded-gradient", "|grad f(x)| <= G for all x", "Assumption 5, Option 2", cover=where(box(gradients="bounded"))
)
FEDAU_WEIGHTS = Assumption(
    "fedau-weights", "omega_t^n is computed by Algorithm 2 with cut-off K", "Section 3", cover=METHOD
)

CONSTANT_WEIGHTS = Assumption("constant-weights", "omega_t^n = omega_n > 0 in every round", "Theorem 1", cover=METHOD)
INVERSE_RATES = Assumption(
    "inverse-rates",
    "omega_t^n = 1/p_n in every round",
    "Appendix A.3",
    cover=where(box(participation="all coins-known-rates")),
)
EQUAL_RATES = Assumption("equal-rates", "every p_n is S/N", "Appendix A.3", cover=where(ALL_CLIENTS, perhaps=[COINS]))
H_BOUNDED_BELOW = Assumption(
    "h-bounded-below",
    "h = (1/P) sum_n omega_n p_n F_n has a finite infimum h*",
    "Theorem B.4.1, h* of h(x_0) - h*",
    cover=ASKED,
)
F_BOUNDED_BELOW = BOUNDED_BELOW.with_label("Theorem 2, f* = min_x f(x)")
OBJECTIVE_WEIGHTS = Assumption(
    "objective-weights",
    "f~ = sum_n varphi_n F_n with varphi_n >= 0 and sum_n varphi_n = 1",
    "Definition B.3.1",
    cover=METHOD,
)
CUT_OFF_LAW = Assumption(
    "cut-off-geometric",
    "S = k with probability p (1-p)^(k-1) for 1 <= k < K, else S = K",
    "Section B.6",
    cover=where(COINS),
)
CITED = CITED_ELSEWHERE.with_label("Appendix A.3")

BOUNDED_DIVERGENCE = Assumption(  # d is the dimension here
    DIVERGENCE.name, "|grad F_n(x) - grad f(x)| <= delta for all x, n", "Assumption 3", cover=DIVERGENCE.cover
)
LOCAL = (
    SMOOTH.with_label("Assumption 1"),
    UNBIASED.with_label("Assumption 2"),
    INDEPENDENT_CLIENTS.with_label("Assumption 2"),
    MARTINGALE.with_label("Assumption 2"),
    BOUNDED_DIVERGENCE,
)
ONE_STEP = (*LOCAL, BERNOULLI, PAST_WEIGHTS)
CONSTANT = (*LOCAL, BERNOULLI, CONSTANT_WEIGHTS, H_BOUNDED_BELOW)
COMMON = (*ONE_STEP, SURE_Q, F_BOUNDED_BELOW)
OPTION_1 = (*COMMON, NEARLY_OPTIMAL)
OPTION_2 = (*COMMON, BOUNDED_GRADIENT)
KNOWN_RATES = (*LOCAL, BERNOULLI, INVERSE_RATES, F_BOUNDED_BELOW)
KNOWN_EQUAL_RATES = (*KNOWN_RATES, EQUAL_RATES)
FEDAU = (BERNOULLI, FEDAU_WEIGHTS)
