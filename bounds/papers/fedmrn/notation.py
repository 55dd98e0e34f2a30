"""The letters of Li et al. (2024); `Delta1` is E|w_1 - w*|^2 and `F` is F(w_0) - F*."""

from __future__ import annotations

from fedbounds.bounds.symbols import (
    COUNT,
    GRADIENT,
    OBJECTIVE,
    PARAMETER,
    POSITIVE,
    SMOOTHNESS,
    STEP,
    Notation,
    Quantity,
)

NOTATION = Notation(
    [
        Quantity("L", "L", "smoothness of every F_k", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("mu", r"\mu", "strong convexity of every F_k", "strong_convexity", POSITIVE, SMOOTHNESS),
        Quantity("sigma", r"\sigma", "gradient noise (root of its variance)", "gradient_noise", dimension=GRADIENT),
        Quantity("G", "G", "bound on the stochastic gradients", "gradient_bound", dimension=GRADIENT),
        Quantity("q", "q", "relative error of the masking operator", "relative_compression_error"),
        Quantity(
            "Gamma",
            r"\Gamma",
            "F* minus the mean of the clients' own minima",
            "function_heterogeneity",
            dimension=OBJECTIVE,
        ),
        Quantity(
            "Delta1",
            r"\mathbb E\|\mathbf w_1-\mathbf w^*\|^2",
            "expected squared distance of the first model from the minimizer",
            "initial_squared_distance",
            dimension=PARAMETER**2,
        ),
        Quantity("F", r"F(\mathbf w_0)-F^*", "initial gap F(w_0) - F*", "initial_gap", dimension=OBJECTIVE),
        Quantity("N", "N", "number of clients", "clients", COUNT),
        Quantity("K", "K", "clients sampled per round, without replacement", "participating_clients", COUNT),
        Quantity("S", "S", "local steps per round", "local_steps", COUNT),
        Quantity("T", "T", "number of iterations (rounds times local steps)", "iterations", COUNT),
        Quantity("d", "d", "number of parameters (forms R1 and R2 only)", "parameters", COUNT),
        Quantity(
            "eta", r"\eta", "constant step size (Theorem 2's is 1/(L sqrt(T)))", "local_step_size", POSITIVE, STEP
        ),
    ]
)
