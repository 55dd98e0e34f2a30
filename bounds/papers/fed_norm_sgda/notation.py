"""The symbols of Sharma et al. (2023); `sigmaL` and `sigmaG` are roots, `R` is a squared radius."""

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
    Meaning,
    Notation,
)

FLAT = "|a_i|_2^2 >= |a_i|_1^2/tau_i: Cauchy-Schwarz"
ON_SIMPLEX = "the weights sum to one"

NOTATION = Notation(
    {
        ("Lf", "L_f", "smoothness"): Meaning("smoothness of every f_i in (x, y) jointly", POSITIVE, SMOOTHNESS),
        ("mu", r"\mu", "strong_concavity"): Meaning("strong concavity of every f_i in y", POSITIVE, SMOOTHNESS),
        ("kappa", r"\kappa", "condition_number"): Meaning("condition number Lf/mu", POSITIVE),
        ("sigmaL", r"\sigma_L", "gradient_noise"): Meaning(
            "gradient noise of each block at a zero gradient (root of its variance)", dimension=GRADIENT
        ),
        ("betaL", r"\beta_L", "gradient_noise_growth"): Meaning("growth of the gradient noise with the gradient"),
        ("sigmaG", r"\sigma_G", "weighted_heterogeneity"): Meaning(
            "heterogeneity: root of the weighted mean squared client gradient at a zero of the mean gradient",
            dimension=GRADIENT,
        ),
        ("betaG", r"\beta_G", "heterogeneity_growth"): Meaning(
            "growth of the heterogeneity with the gradient", Domain(1)
        ),
        ("n", "n", "clients"): Meaning("number of clients", COUNT),
        ("P", "P", "participating_clients"): Meaning("clients sampled per round, without replacement", COUNT),
        ("T", "T", "rounds"): Meaning("number of rounds", COUNT),
        ("tau", r"\tau_i", "local_steps_by_client"): Meaning("local steps of client i", COUNT, shape=("clients",)),
        ("w", "w_i", "aggregation_weights"): Meaning(
            "weight of client i at the server", Domain(high=1), shape=("clients",), total=1
        ),
        ("etax", r"\eta_x^c", "local_step_size"): Meaning("clients' step size in x", Domain(), STEP),
        ("etay", r"\eta_y^c", "local_ascent_step_size"): Meaning("clients' step size in y", Domain(), STEP),
        ("gammax", r"\gamma_x^s", "server_step_size"): Meaning("server's step size in x", POSITIVE, STEP),
        ("gammay", r"\gamma_y^s", "server_ascent_step_size"): Meaning("server's step size in y", POSITIVE, STEP),
        ("taueff", r"\tau_{\rm eff}", "effective_local_steps"): Meaning(
            "effective local steps: what multiplies the server's steps", POSITIVE
        ),
        ("Gammax", r"\Gamma_x", "effective_step"): Meaning("effective step in x: taueff gammax", POSITIVE, STEP),
        ("Gammay", r"\Gamma_y", "effective_ascent_step"): Meaning("effective step in y: taueff gammay", POSITIVE, STEP),
        ("Delta", r"\Delta_{\tilde\Phi}", "initial_gap"): Meaning("initial gap of the envelope", dimension=OBJECTIVE),
        ("delta0", r"\delta_0", "initial_dual_gap"): Meaning(
            "initial dual gap: envelope minus objective at (x_0, y_0)", dimension=OBJECTIVE
        ),
        # nonconvex-concave problems
        ("Gx", "G_x", "descent_gradient_bound"): Meaning("Lipschitz constant of every f_i in x", POSITIVE, GRADIENT),
        ("R", "R", "squared_radius"): Meaning(
            "bound on |y|^2 along the run and at the maximizers", POSITIVE, PARAMETER**2
        ),
        ("S", "S", "snapshot_period"): Meaning("rounds between two snapshots of x", COUNT),
        ("Deltabar", r"\bar\Delta_{\tilde\Phi}", "initial_moreau_gap"): Meaning(
            "initial gap of the Moreau envelope of the envelope", dimension=OBJECTIVE
        ),
        # the local coefficients
        ("rho", r"\rho", "momentum"): Meaning(
            "momentum of the local steps", Domain(high=1, high_open=True), default=0.0
        ),
        ("a1", r"\|a_i\|_1", "coefficient_sum"): Meaning(
            "sum of client i's coefficients", POSITIVE, shape=("clients",)
        ),
        ("a2", r"\|a_i\|_2^2", "coefficient_square_sum"): Meaning(
            "sum of client i's squared coefficients", POSITIVE, shape=("clients",)
        ),
        ("alast", r"a_i^{(\tau_i-1)}", "last_coefficient"): Meaning(
            "coefficient of client i's last gradient", POSITIVE, shape=("clients",)
        ),
        ("amax", r"\max_ka_i^{(k)}", "largest_coefficient_by_client"): Meaning(
            "largest coefficient of client i", POSITIVE, shape=("clients",)
        ),
        ("alpha", r"\alpha", "largest_coefficient"): Meaning("largest coefficient of all clients", POSITIVE),
        ("A_w", "A_w", "noise_of_the_mean"): Meaning("n taueff sum_i w_i^2 |a_i|_2^2/|a_i|_1^2"),
        ("B_w", "B_w", "growing_noise_of_the_mean"): Meaning("n taueff max_i w_i |a_i|_2^2/|a_i|_1^2"),
        ("C_w", "C_w", "noise_of_the_drift"): Meaning("sum_i w_i |a_{i,-1}|_2^2, without the last coefficients"),
        ("D", "D", "size_of_the_drift"): Meaning("max_i (|a_{i,-1}|_1^2 + betaL^2 |a_{i,-1}|_2^2)"),
        ("E_w", "E_w", "largest_relative_weight"): Meaning("n max_i w_i"),
        ("nu", r"\nu", "mixing_price"): Meaning(
            "price of noise and drift mixing: 1 if every client takes one step, else 2", Domain(1, 2, integer=True)
        ),
        ("taubar", r"\bar\tau", "mean_local_steps"): Meaning("mean over clients of tau_i", POSITIVE),
        # the objective that is meant, where the server weighs clients by w instead of p
        ("p", "p_i", "objective_weights"): Meaning("weight of f_i in F", Domain(high=1), shape=("clients",), total=1),
        ("chi2", r"\chi^2_{p\|w}", "weight_mismatch"): Meaning("sum_i (p_i - w_i)^2/w_i", Domain(infinite=True)),
        ("epsopt", r"\epsilon_{\rm opt}", "surrogate_stationarity"): Meaning(
            "mean over the rounds of the squared gradient norm of the weighted envelope", POSITIVE, GRADIENT**2
        ),
        ("epsbar", r"\epsilon'_{\rm opt}", "surrogate_moreau_stationarity"): Meaning(
            "mean over the rounds of the squared gradient norm of the weighted Moreau envelope", POSITIVE, GRADIENT**2
        ),
        ("eps", r"\epsilon", "target"): Meaning("target for the gradient norm (not its square)", POSITIVE, GRADIENT),
        ("lag", r"\overline{\|y^*-\tilde y^*\|^2}", "maximizer_mismatch"): Meaning(
            "mean over the rounds of the squared distance of the maximizers for p and for w", dimension=PARAMETER**2
        ),
        ("proxlag", r"\overline{\|\tilde x-\bar x\|^2}", "proximal_mismatch"): Meaning(
            "mean over the rounds of the squared distance of the proximal points for w and for p",
            dimension=PARAMETER**2,
        ),
        # one round, in the lemmas
        ("gradsq", r"\mathcal G_t", "squared_gradient_norm"): Meaning(
            "expected squared gradient norm of the lemma's envelope at the start of the round", dimension=GRADIENT**2
        ),
        ("gap", r"\delta_t", "dual_gap"): Meaning(
            "expected dual gap: envelope minus objective at (x_t, y_t)", dimension=OBJECTIVE
        ),
        ("staledual", r"\hat\delta_t", "stale_dual_gap"): Meaning(
            "expected dual gap at (snapshot, y_t)", dimension=OBJECTIVE
        ),
        ("drift", "X_t", "local_drift"): Meaning(
            "Lf^2 times the weighted mean squared distance of the local iterates from the start of the round",
            dimension=GRADIENT**2,
        ),
        ("direction", r"H_{x,t}", "squared_direction"): Meaning(
            "expected squared norm of the mean exact direction in x", dimension=GRADIENT**2
        ),
        ("gradxsq", r"\mathbb E\|\nabla_x\tilde F\|^2", "squared_descent_gradient_norm"): Meaning(
            "expected squared gradient norm in x of the weighted objective at the start of the round",
            dimension=GRADIENT**2,
        ),
        (
            "noisysq",
            r"\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2\mathbb E\|\nabla_xf_i\|^2",
            "squared_noisy_gradient",
        ): Meaning(
            "what the growing noise in x sees of the local gradients: their squares with squared weights",
            dimension=GRADIENT**2,
        ),
        (
            "sampledrift",
            r"L_f^2\sum_i\frac{w_i^2}{\|a_i\|_1}\sum_ka_i^{(k)}\Delta_i^{(t,k)}",
            "sampled_local_drift",
        ): Meaning("local drift with the clients' weights squared, as sampling sees it", dimension=GRADIENT**2),
        (
            "noisydrift",
            r"L_f^2\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2\Delta_i^{(t,k)}",
            "noisy_local_drift",
        ): Meaning("local drift with all weights squared, as the growing noise sees it", dimension=GRADIENT**2),
        # the standard facts of Appendix A
        ("usq", r"\|u\|^2", "first_square"): Meaning("squared norm of a vector u", dimension=GRADIENT**2),
        ("vsq", r"\|v\|^2", "second_square"): Meaning("squared norm of a vector v", dimension=GRADIENT**2),
        ("young", r"\gamma", "young_weight"): Meaning("weight in Young's inequality", POSITIVE),
        ("squares", r"\|u_i\|^2", "squares"): Meaning(
            "squared norms of vectors u_1, ..., u_n", dimension=GRADIENT**2, shape=("clients",)
        ),
        ("fvalues", "f(u_i)", "function_values"): Meaning(
            "values of a function at points u_1, ..., u_n",
            Domain(low=-float("inf"), low_open=True, high_open=True),
            OBJECTIVE,
            ("clients",),
        ),
        ("excess", "g(x)-g^*", "excess"): Meaning("value of a function less its extremum", dimension=OBJECTIVE),
        ("distsq", r"\|x-x'\|^2", "squared_distance"): Meaning(
            "squared distance of two points", dimension=PARAMETER**2
        ),
        ("slope", r"\langle\nabla g(y'),y-y'\rangle", "slope_along"): Meaning(
            "slope at one point towards another, times their distance",
            Domain(low=-float("inf"), low_open=True, high_open=True),
            OBJECTIVE,
        ),
        ("bregman", r"g(y)-g(x)-\langle\nabla g(x),y-x\rangle", "bregman_distance"): Meaning(
            "value of a function above its tangent", dimension=OBJECTIVE
        ),
    },
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
