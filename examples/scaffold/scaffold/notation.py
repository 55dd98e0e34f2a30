"""The symbols, and what the theorem assumes."""

from fedbounds.authoring import (
    BOUNDED_BELOW,
    COUNT,
    FULL_PARTICIPATION,
    GRADIENT,
    OBJECTIVE,
    POSITIVE,
    SAMPLED,
    SMOOTH,
    SMOOTHNESS,
    STEP,
    UNBIASED,
    Assumption,
    Notation,
    Quantity,
)

NOTATION = Notation(
    [
        Quantity("beta", r"\beta", "smoothness of every f_i", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("sigma", r"\sigma", "gradient noise (root of its variance)", "gradient_noise", dimension=GRADIENT),
        Quantity("F", "F", "initial gap f(x_0) - f*", "initial_gap", dimension=OBJECTIVE),
        Quantity("N", "N", "number of clients", "clients", COUNT),
        Quantity("S", "S", "clients sampled in a round", "participating_clients", COUNT),
        Quantity("K", "K", "local steps in a round", "local_steps", COUNT),
        Quantity("R", "R", "number of rounds", "rounds", COUNT),
        Quantity("eta_l", r"\eta_l", "local step size", "local_step_size", POSITIVE, STEP),
        Quantity("eta_g", r"\eta_g", "global step size, times the mean update", "server_multiplier", POSITIVE),
    ]
)
NOISE = UNBIASED.with_label("(A4)")
BETA_SMOOTH = SMOOTH.with_label("(A5)")
BELOW = BOUNDED_BELOW  # the paper writes f* without saying that it is finite
ALL_CLIENTS = FULL_PARTICIPATION.with_label("S = N")
SAMPLING = Assumption(
    "uniform-sampling",
    "S of the N clients are drawn uniformly without replacement in every round, independently of everything else",
    "Algorithm 1", participation=True, cover=SAMPLED,
)  # fmt: skip
