"""The letters of Wang & Ji (2024); `W` is the weight error and `p` holds one participation probability per client."""

from __future__ import annotations

from bounds.symbols import (
    COUNT,
    GRADIENT,
    NONE,
    OBJECTIVE,
    POSITIVE,
    PROBABILITY,
    SMOOTHNESS,
    STEP,
    Domain,
    Notation,
    Quantity,
)

NOTATION = Notation(
    [
        Quantity("L", "L", "smoothness of every F_n", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("F", r"\mathcal F", "initial gap f(x_0) - f*", "initial_gap", dimension=OBJECTIVE),
        Quantity("I", "I", "local SGD steps per round", "local_steps", COUNT),
        Quantity("N", "N", "number of clients", "clients", COUNT),
        Quantity("T", "T", "number of rounds", "rounds", COUNT),
        Quantity("gamma", r"\gamma", "local step size", "local_step_size", POSITIVE, STEP),
        Quantity("eta", r"\eta", "global step size", "server_multiplier", POSITIVE, NONE),
        Quantity("sigma", r"\sigma", "gradient noise (root of its variance)", "gradient_noise", dimension=GRADIENT),
        Quantity(
            "delta",
            r"\delta",
            "gradient divergence sup|grad F_n - grad f|",
            "gradient_divergence_sup",
            dimension=GRADIENT,
        ),
        Quantity("G", "G", "bound on |grad f|", "gradient_bound", dimension=GRADIENT),
        Quantity("W", "W", "weight error: mean over rounds and clients of E(p_n omega_t^n - 1)^2", "weight_error"),
        Quantity(
            "Q",
            "Q",
            "bound, on every path and in every round, on the mean over clients of p_n (omega_t^n)^2",
            "weight_second_moment",
            POSITIVE,
        ),
        Quantity(
            "K",
            "K",
            "length at which a participation interval is cut off; inf for no cut-off",
            "cutoff_interval",
            Domain(low=1, integer=True, infinite=True),
        ),
        Quantity(
            "p",
            "p_n",
            "probability that client n takes part in a round",
            "participation_rates",
            PROBABILITY,
            shape=("clients",),
        ),
    ]
)
