"""The letters of Li et al. (2024); `Delta1` is E|w_1 - w*|^2 and `F` is F(w_0) - F*."""

from __future__ import annotations

from functools import partial

from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import (
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
        Quantity("G", "G", "bound on the stochastic gradients", "stochastic_gradient_bound", dimension=GRADIENT),
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
        Quantity("d", "d", "number of parameters (forms for signed masks only)", "parameters", COUNT),
        Quantity("a", "a", "amplitude of the mask noise", "mask_amplitude", POSITIVE, PARAMETER),
        Quantity(
            "eta", r"\eta", "constant step size (Theorem 2's is 1/(L sqrt(T)))", "local_step_size", POSITIVE, STEP
        ),
        # what the lemmas leave open in iteration t
        Quantity("etat", r"\eta_t", "step size of iteration t", "step_size_at_t", POSITIVE, STEP),
        Quantity(
            "Deltat",
            r"\mathbb E\|\bar{\mathbf w}_t-\mathbf w^*\|^2",
            "expected squared distance of the averaged model from the minimizer",
            "squared_distance",
            dimension=PARAMETER**2,
        ),
        Quantity(
            "V",
            r"\mathbb E\|\mathbf g_t-\bar{\mathbf g}_t\|^2",
            "noise of the averaged gradient",
            "averaged_gradient_noise",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "Dt",
            r"\frac1N\sum_k\mathbb E\|\bar{\mathbf w}_t-\mathbf x_k^t\|^2",
            "mean squared distance of the masked local models from the averaged model",
            "masked_drift",
            dimension=PARAMETER**2,
        ),
        Quantity(
            "M",
            r"\mathbb E\|\bar{\mathbf w}_{t+1}-\bar{\mathbf v}_{t+1}\|^2",
            "error of masks and client sampling in one step",
            "synchronization_error",
            dimension=PARAMETER**2,
        ),
        Quantity(
            "gradsq",
            r"\mathbb E\|\nabla F(\bar{\mathbf w}_t)\|^2",
            "squared gradient norm at the averaged model",
            "squared_gradient_norm",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "meansq",
            r"\mathbb E\|\bar{\mathbf g}_t\|^2",
            "squared norm of the clients' mean gradient",
            "squared_mean_gradient",
            dimension=GRADIENT**2,
        ),
    ]
)
new_result = partial(paper_result, "fedmrn", "Li et al. 2024", NOTATION)
