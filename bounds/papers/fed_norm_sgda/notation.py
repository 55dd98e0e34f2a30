"""The symbols of Sharma et al. (2023); `sigmaL` and `sigmaG` are roots, `R` is a squared radius."""

from __future__ import annotations

from functools import partial

import numpy as np
import sympy as sp

from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import (
    COUNT,
    GRADIENT,
    OBJECTIVE,
    PARAMETER,
    POSITIVE,
    SMOOTHNESS,
    STEP,
    Derived,
    Domain,
    Notation,
    Quantity,
)

FLAT = "|a_i|_2^2 >= |a_i|_1^2/tau_i: Cauchy-Schwarz"
ON_SIMPLEX = "the weights sum to one"

NOTATION = Notation(
    [
        Quantity("Lf", "L_f", "smoothness of every f_i in (x, y) jointly", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("mu", r"\mu", "strong concavity of every f_i in y", "strong_concavity", POSITIVE, SMOOTHNESS),
        Quantity("kappa", r"\kappa", "condition number Lf/mu", "condition_number", POSITIVE),
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
            "w",
            "w_i",
            "weight of client i at the server",
            "aggregation_weights",
            Domain(high=1),
            shape=("clients",),
            total=1,
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
        Quantity("Gammax", r"\Gamma_x", "effective step in x: taueff gammax", "effective_step", POSITIVE, STEP),
        Quantity("Gammay", r"\Gamma_y", "effective step in y: taueff gammay", "effective_ascent_step", POSITIVE, STEP),
        Quantity("Delta", r"\Delta_{\tilde\Phi}", "initial gap of the envelope", "initial_gap", dimension=OBJECTIVE),
        Quantity(
            "delta0",
            r"\delta_0",
            "initial dual gap: envelope minus objective at (x_0, y_0)",
            "initial_dual_gap",
            dimension=OBJECTIVE,
        ),
        # nonconvex-concave problems
        Quantity("Gx", "G_x", "Lipschitz constant of every f_i in x", "descent_gradient_bound", POSITIVE, GRADIENT),
        Quantity(
            "R", "R", "bound on |y|^2 along the run and at the maximizers", "squared_radius", POSITIVE, PARAMETER**2
        ),
        Quantity("S", "S", "rounds between two snapshots of x", "snapshot_period", COUNT),
        Quantity(
            "Deltabar",
            r"\bar\Delta_{\tilde\Phi}",
            "initial gap of the Moreau envelope of the envelope",
            "initial_moreau_gap",
            dimension=OBJECTIVE,
        ),
        # the local coefficients
        Quantity(
            "rho", r"\rho", "momentum of the local steps", "momentum", Domain(high=1, high_open=True), default=0.0
        ),
        Quantity("a1", r"\|a_i\|_1", "sum of client i's coefficients", "coefficient_sum", POSITIVE, shape=("clients",)),
        Quantity(
            "a2",
            r"\|a_i\|_2^2",
            "sum of client i's squared coefficients",
            "coefficient_square_sum",
            POSITIVE,
            shape=("clients",),
        ),
        Quantity(
            "alast",
            r"a_i^{(\tau_i-1)}",
            "coefficient of client i's last gradient",
            "last_coefficient",
            POSITIVE,
            shape=("clients",),
        ),
        Quantity(
            "amax",
            r"\max_ka_i^{(k)}",
            "largest coefficient of client i",
            "largest_coefficient_by_client",
            POSITIVE,
            shape=("clients",),
        ),
        Quantity("alpha", r"\alpha", "largest coefficient of all clients", "largest_coefficient", POSITIVE),
        Quantity("A_w", "A_w", "n taueff sum_i w_i^2 |a_i|_2^2/|a_i|_1^2", "noise_of_the_mean"),
        Quantity("B_w", "B_w", "n taueff max_i w_i |a_i|_2^2/|a_i|_1^2", "growing_noise_of_the_mean"),
        Quantity("C_w", "C_w", "sum_i w_i |a_{i,-1}|_2^2, without the last coefficients", "noise_of_the_drift"),
        Quantity("D", "D", "max_i (|a_{i,-1}|_1^2 + betaL^2 |a_{i,-1}|_2^2)", "size_of_the_drift"),
        Quantity("E_w", "E_w", "n max_i w_i", "largest_relative_weight"),
        Quantity(
            "nu",
            r"\nu",
            "price of noise and drift mixing: 1 if every client takes one step, else 2",
            "mixing_price",
            Domain(1, 2, integer=True),
        ),
        Quantity("taubar", r"\bar\tau", "mean over clients of tau_i", "mean_local_steps", POSITIVE),
        # the objective that is meant, where the server weighs clients by w instead of p
        Quantity("p", "p_i", "weight of f_i in F", "objective_weights", Domain(high=1), shape=("clients",), total=1),
        Quantity("chi2", r"\chi^2_{p\|w}", "sum_i (p_i - w_i)^2/w_i", "weight_mismatch", Domain(infinite=True)),
        Quantity(
            "epsopt",
            r"\epsilon_{\rm opt}",
            "mean over the rounds of the squared gradient norm of the weighted envelope",
            "surrogate_stationarity",
            POSITIVE,
            GRADIENT**2,
        ),
        Quantity(
            "epsbar",
            r"\epsilon'_{\rm opt}",
            "mean over the rounds of the squared gradient norm of the weighted Moreau envelope",
            "surrogate_moreau_stationarity",
            POSITIVE,
            GRADIENT**2,
        ),
        Quantity("eps", r"\epsilon", "target for the gradient norm (not its square)", "target", POSITIVE, GRADIENT),
        Quantity(
            "lag",
            r"\overline{\|y^*-\tilde y^*\|^2}",
            "mean over the rounds of the squared distance of the maximizers for p and for w",
            "maximizer_mismatch",
            dimension=PARAMETER**2,
        ),
        Quantity(
            "proxlag",
            r"\overline{\|\tilde x-\bar x\|^2}",
            "mean over the rounds of the squared distance of the proximal points for w and for p",
            "proximal_mismatch",
            dimension=PARAMETER**2,
        ),
        # one round, in the lemmas
        Quantity(
            "gradsq",
            r"\mathcal G_t",
            "expected squared gradient norm of the lemma's envelope at the start of the round",
            "squared_gradient_norm",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "gap",
            r"\delta_t",
            "expected dual gap: envelope minus objective at (x_t, y_t)",
            "dual_gap",
            dimension=OBJECTIVE,
        ),
        Quantity(
            "staledual", r"\hat\delta_t", "expected dual gap at (snapshot, y_t)", "stale_dual_gap", dimension=OBJECTIVE
        ),
        Quantity(
            "drift",
            "X_t",
            "Lf^2 times the weighted mean squared distance of the local iterates from the start of the round",
            "local_drift",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "direction",
            r"H_{x,t}",
            "expected squared norm of the mean exact direction in x",
            "squared_direction",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "gradxsq",
            r"\mathbb E\|\nabla_x\tilde F\|^2",
            "expected squared gradient norm in x of the weighted objective at the start of the round",
            "squared_descent_gradient_norm",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "noisysq",
            r"\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2\mathbb E\|\nabla_xf_i\|^2",
            "what the growing noise in x sees of the local gradients: their squares with squared weights",
            "squared_noisy_gradient",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "sampledrift",
            r"L_f^2\sum_i\frac{w_i^2}{\|a_i\|_1}\sum_ka_i^{(k)}\Delta_i^{(t,k)}",
            "local drift with the clients' weights squared, as sampling sees it",
            "sampled_local_drift",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "noisydrift",
            r"L_f^2\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2\Delta_i^{(t,k)}",
            "local drift with all weights squared, as the growing noise sees it",
            "noisy_local_drift",
            dimension=GRADIENT**2,
        ),
        # the standard facts of Appendix A
        Quantity("usq", r"\|u\|^2", "squared norm of a vector u", "first_square", dimension=GRADIENT**2),
        Quantity("vsq", r"\|v\|^2", "squared norm of a vector v", "second_square", dimension=GRADIENT**2),
        Quantity("young", r"\gamma", "weight in Young's inequality", "young_weight", POSITIVE),
        Quantity(
            "squares",
            r"\|u_i\|^2",
            "squared norms of vectors u_1, ..., u_n",
            "squares",
            dimension=GRADIENT**2,
            shape=("clients",),
        ),
        Quantity(
            "fvalues",
            "f(u_i)",
            "values of a function at points u_1, ..., u_n",
            "function_values",
            Domain(low=-float("inf"), low_open=True, high_open=True),
            OBJECTIVE,
            shape=("clients",),
        ),
        Quantity("excess", "g(x)-g^*", "value of a function less its extremum", "excess", dimension=OBJECTIVE),
        Quantity("distsq", r"\|x-x'\|^2", "squared distance of two points", "squared_distance", dimension=PARAMETER**2),
        Quantity(
            "slope",
            r"\langle\nabla g(y'),y-y'\rangle",
            "slope at one point towards another, times their distance",
            "slope_along",
            Domain(low=-float("inf"), low_open=True, high_open=True),
            OBJECTIVE,
        ),
        Quantity(
            "bregman",
            r"g(y)-g(x)-\langle\nabla g(x),y-x\rangle",
            "value of a function above its tangent",
            "bregman_distance",
            dimension=OBJECTIVE,
        ),
    ],
    floors=[
        Derived(name, inputs, rule, why, "upwards", javascript)
        for name, inputs, rule, why, javascript in (
            ("A_w", ("taueff", "taubar"), np.divide, f"{FLAT}, and {ON_SIMPLEX}", "(above, below) => above / below"),
            (
                "A_w",
                ("taueff", "w", "tau"),
                lambda t, w, tau: t * w.shape[-1] * (w**2 / tau).sum(-1),
                FLAT,
                "least_noise_of_the_mean",
            ),
            ("B_w", ("taueff", "taubar"), np.divide, f"{FLAT}, and {ON_SIMPLEX}", "(above, below) => above / below"),
            (
                "B_w",
                ("taueff", "w", "tau"),
                lambda t, w, tau: t * w.shape[-1] * (w / tau).max(-1),
                FLAT,
                "least_growing_noise",
            ),
            ("E_w", (), sp.Integer(1), ON_SIMPLEX, ""),
            (
                "chi2",
                ("p", "E_w"),
                lambda p, E_w: p.shape[-1] * (p**2).sum(-1) / E_w - 1,
                "every w_i is at most E_w/n",
                "least_mismatch",
            ),
            ("taubar", (), sp.Integer(1), "a client takes at least one step", ""),
        )
    ],
)
new_result = partial(paper_result, "fed-norm-sgda", "Sharma et al. 2023", NOTATION)
