"""The symbols of Li et al. (2024); `Delta1` is E|w_1 - w*|^2 and `F` is F(w_0) - F*."""

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
    Meaning,
    Notation,
)

NOTATION = Notation(
    {
        ("L", "L", "smoothness"): Meaning("smoothness of every F_k", POSITIVE, SMOOTHNESS),
        ("mu", r"\mu", "strong_convexity"): Meaning("strong convexity of every F_k", POSITIVE, SMOOTHNESS),
        ("sigma", r"\sigma", "gradient_noise"): Meaning("gradient noise (root of its variance)", dimension=GRADIENT),
        ("G", "G", "stochastic_gradient_bound"): Meaning("bound on the stochastic gradients", dimension=GRADIENT),
        ("q", "q", "relative_compression_error"): Meaning("relative error of the masking operator"),
        ("Gamma", r"\Gamma", "function_heterogeneity"): Meaning(
            "F* minus the mean of the clients' own minima", dimension=OBJECTIVE
        ),
        ("Delta1", r"\mathbb E\|\mathbf w_1-\mathbf w^*\|^2", "initial_squared_distance"): Meaning(
            "expected squared distance of the first model from the minimizer", dimension=PARAMETER**2
        ),
        ("F", r"F(\mathbf w_0)-F^*", "initial_gap"): Meaning("initial gap F(w_0) - F*", dimension=OBJECTIVE),
        ("N", "N", "clients"): Meaning("number of clients", COUNT),
        ("K", "K", "participating_clients"): Meaning("clients sampled per round, without replacement", COUNT),
        ("S", "S", "local_steps"): Meaning("local steps per round", COUNT),
        ("T", "T", "iterations"): Meaning("number of iterations (rounds times local steps)", COUNT),
        ("d", "d", "parameters"): Meaning("number of parameters (forms for signed masks only)", COUNT),
        ("a", "a", "mask_amplitude"): Meaning("amplitude of the mask noise", POSITIVE, PARAMETER),
        ("eta", r"\eta", "local_step_size"): Meaning(
            "constant step size (Theorem 2's is 1/(L sqrt(T)))", POSITIVE, STEP
        ),
        # what the lemmas leave open in iteration t
        ("etat", r"\eta_t", "step_size_at_t"): Meaning("step size of iteration t", POSITIVE, STEP),
        ("Deltat", r"\mathbb E\|\bar{\mathbf w}_t-\mathbf w^*\|^2", "squared_distance"): Meaning(
            "expected squared distance of the averaged model from the minimizer", dimension=PARAMETER**2
        ),
        ("V", r"\mathbb E\|\mathbf g_t-\bar{\mathbf g}_t\|^2", "averaged_gradient_noise"): Meaning(
            "noise of the averaged gradient", dimension=GRADIENT**2
        ),
        ("Dt", r"\frac1N\sum_k\mathbb E\|\bar{\mathbf w}_t-\mathbf x_k^t\|^2", "masked_drift"): Meaning(
            "mean squared distance of the masked local models from the averaged model", dimension=PARAMETER**2
        ),
        ("M", r"\mathbb E\|\bar{\mathbf w}_{t+1}-\bar{\mathbf v}_{t+1}\|^2", "synchronization_error"): Meaning(
            "error of masks and client sampling in one step", dimension=PARAMETER**2
        ),
        ("gradsq", r"\mathbb E\|\nabla F(\bar{\mathbf w}_t)\|^2", "squared_gradient_norm"): Meaning(
            "squared gradient norm at the averaged model", dimension=GRADIENT**2
        ),
        ("meansq", r"\mathbb E\|\bar{\mathbf g}_t\|^2", "squared_mean_gradient"): Meaning(
            "squared norm of the clients' mean gradient", dimension=GRADIENT**2
        ),
    }
)
new_result = partial(paper_result, "fedmrn", "Li et al. 2024", NOTATION)
