"""The letters of Sharma et al. (2023); `sigmaL` and `sigmaG` are roots, `tau` and `w` hold one number per client."""

from __future__ import annotations

from bounds.symbols import (
    COUNT,
    GRADIENT,
    OBJECTIVE,
    POSITIVE,
    SMOOTHNESS,
    STEP,
    Domain,
    Notation,
    Quantity,
)

NOTATION = Notation(
    [
        Quantity("Lf", "L_f", "smoothness of every f_i in (x, y) jointly", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("mu", r"\mu", "strong concavity of every f_i in y", "strong_concavity", POSITIVE, SMOOTHNESS),
        Quantity(
            "sigmaL",
            r"\sigma_L",
            "gradient noise of each block at a zero gradient (root of its variance)",
            "gradient_noise",
            dimension=GRADIENT,
        ),
        Quantity("betaL", r"\beta_L", "growth of the gradient noise with the gradient", "gradient_noise_growth"),
        Quantity(
            "sigmaG",
            r"\sigma_G",
            "heterogeneity: root of the weighted mean squared client gradient at a zero of the mean gradient",
            "weighted_heterogeneity",
            dimension=GRADIENT,
        ),
        Quantity(
            "betaG", r"\beta_G", "growth of the heterogeneity with the gradient", "heterogeneity_growth", Domain(1)
        ),
        Quantity("n", "n", "number of clients", "clients", COUNT),
        Quantity("P", "P", "clients sampled per round, without replacement", "participating_clients", COUNT),
        Quantity("T", "T", "number of rounds", "rounds", COUNT),
        Quantity("tau", r"\tau_i", "local steps of client i", "local_steps_by_client", COUNT, shape=("clients",)),
        Quantity(
            "w", "w_i", "weight of client i at the server", "aggregation_weights", Domain(high=1), shape=("clients",)
        ),
        Quantity("etax", r"\eta_x^c", "clients' step size in x", "local_step_size", Domain(), STEP),
        Quantity("etay", r"\eta_y^c", "clients' step size in y", "local_ascent_step_size", Domain(), STEP),
        Quantity("gammax", r"\gamma_x^s", "server's step size in x", "server_step_size", POSITIVE, STEP),
        Quantity("gammay", r"\gamma_y^s", "server's step size in y", "server_ascent_step_size", POSITIVE, STEP),
        Quantity(
            "taueff",
            r"\tau_{\rm eff}",
            "effective local steps: what multiplies the server's steps",
            "effective_local_steps",
            POSITIVE,
        ),
        Quantity("Delta", r"\Delta_{\tilde\Phi}", "initial gap of the envelope", "initial_gap", dimension=OBJECTIVE),
        Quantity(
            "delta0",
            r"\delta_0",
            "initial dual gap: envelope minus objective at (x_0, y_0)",
            "initial_dual_gap",
            dimension=OBJECTIVE,
        ),
    ]
)
