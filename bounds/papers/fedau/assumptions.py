"""What the results of Wang & Ji (2024) assume, stated and unstated."""

from __future__ import annotations

from bounds.assumptions import (
    BOUNDED_BELOW,
    DIVERGENCE,
    INDEPENDENT_CLIENTS,
    MARTINGALE,
    SMOOTH,
    UNBIASED,
    Assumption,
)

BERNOULLI = Assumption(
    "bernoulli-participation",
    "client n takes part in each round with probability p_n, independently over rounds and clients and of the noise",
    "Assumption 4",
)
PAST_WEIGHTS = Assumption(
    "past-weights", "omega_t^n depends only on who took part before round t", "Section 3, Algorithm 1"
)
SURE_Q = Assumption("sure-Q", "(1/N) sum_n p_n (omega_t^n)^2 <= Q on every path and in every round", "unstated")
NEARLY_OPTIMAL = Assumption(
    "nearly-optimal-weights",
    "(1/N) sum_n (p_n omega_t^n - 1)^2 <= 1/81 on every path and in every round",
    "Assumption 5, Option 1",
)
BOUNDED_GRADIENT = Assumption("bounded-gradient", "|grad f(x)| <= G for all x", "Assumption 5, Option 2")
FEDAU_WEIGHTS = Assumption("fedau-weights", "omega_t^n is computed by Algorithm 2 with cut-off K", "Section 4")

COMMON = (
    SMOOTH.labelled("Assumption 1"),
    UNBIASED.labelled("Assumption 2"),
    INDEPENDENT_CLIENTS.labelled("Assumption 2"),
    MARTINGALE.labelled("Assumption 2"),
    DIVERGENCE.labelled("Assumption 3"),
    BERNOULLI,
    PAST_WEIGHTS,
    SURE_Q,
    BOUNDED_BELOW,
)
OPTION_1 = (*COMMON, NEARLY_OPTIMAL)
OPTION_2 = (*COMMON, BOUNDED_GRADIENT)
