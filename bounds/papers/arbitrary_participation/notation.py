"""The symbols of Wang & Ji (2022); `nu`, `beta`, `delta` are the roots of the paper's tilde quantities."""

from functools import partial

import sympy as sp

from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import (
    COUNT,
    GRADIENT,
    NONE,
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

UNIT_INTERVAL = Domain(high=1, low_open=True)
OPEN_UNIT_INTERVAL = Domain(high=1, low_open=True, high_open=True)

EQUAL = sp.Symbol("N", positive=True, integer=True)  # so many equal weights have the least squares
SHARED = sp.Symbol("S", positive=True, integer=True)

NOTATION = Notation(
    {
        ("L", "L", "smoothness"): Meaning("smoothness of every F_n", POSITIVE, SMOOTHNESS),
        ("F", r"\mathcal F", "initial_gap"): Meaning("initial gap f(x_0) - f*", dimension=OBJECTIVE),
        ("I", "I", "local_steps"): Meaning("local SGD steps per round", COUNT),
        ("P", "P", "interval"): Meaning("amplification interval in rounds", COUNT),
        ("T", "T", "rounds"): Meaning("number of rounds", COUNT),
        ("gamma", r"\gamma", "local_step_size"): Meaning("local learning rate", POSITIVE, STEP),
        ("eta", r"\eta", "server_multiplier"): Meaning("amplification factor", POSITIVE, NONE),
        ("rho", r"\rho", "participation_norm"): Meaning("root of the largest sum of squared weights", UNIT_INTERVAL),
        ("sigma", r"\sigma", "gradient_noise"): Meaning("gradient noise (root of its variance)", dimension=GRADIENT),
        ("nu", r"\tilde\nu", "cohort_divergence"): Meaning(
            "divergence among the participants, eq. (6)", dimension=GRADIENT
        ),
        ("beta", r"\tilde\beta", "participation_divergence"): Meaning(
            "divergence of the participants from f, eq. (5)", dimension=GRADIENT
        ),
        ("delta", r"\tilde\delta", "window_divergence"): Meaning(
            "divergence of a window of P rounds from f, eq. (7)", dimension=GRADIENT
        ),
        ("d", "d", "gradient_divergence_sup"): Meaning(
            "gradient divergence sup|grad F_n - grad f|", dimension=GRADIENT
        ),
        ("S", "S", "participating_clients"): Meaning("participants per round, equal weights", COUNT),
        ("N", "N", "clients"): Meaning("number of clients", COUNT),
        ("upsilon", r"\upsilon", "weight_deviation"): Meaning("standard deviation of a weight q_t^n"),
        ("upsilonhat", r"\hat\upsilon", "long_run_weight_deviation"): Meaning(
            "root of the long-run variance of a weight"
        ),
        ("c", "c", "failure_probability"): Meaning("probability of failure", OPEN_UNIT_INTERVAL),
        ("sumsq", "S_t", "sum_of_squared_weights"): Meaning("sum of squared weights in round t", UNIT_INTERVAL),
        ("gradsq", r"\mathbb E\|\nabla f(\mathbf x_{t_0})\|^2", "squared_gradient_norm"): Meaning(
            "expected squared gradient norm at the window's start", dimension=GRADIENT**2
        ),
        ("decrease", r"\mathbb E[f(\mathbf x_{t_0})-f(\mathbf x_{t_0+P})]", "window_decrease"): Meaning(
            "expected decrease of f over one window",
            Domain(low=-float("inf"), low_open=True, high_open=True),
            OBJECTIVE,
        ),
        ("windowvar", r"\max_{n,t_0}\operatorname{Var}(\overline{q^n_{t_0}})", "window_mean_variance"): Meaning(
            "largest exact variance of a client's mean weight over a window of P rounds"
        ),
        ("qbar", r"\overline{q^n_{t_0}}", "window_mean_weights"): Meaning(
            "mean weight of each client over one window", shape=("clients",), total=1
        ),
        ("s", "s", "step_scale"): Meaning(
            "free scale of Corollary 3.3's step size (the paper takes 1)", POSITIVE, PARAMETER / OBJECTIVE, default=1.0
        ),
        ("theta", r"\theta", "tail_parameter"): Meaning(
            "free parameter of the sub-Gaussian bound", OPEN_UNIT_INTERVAL, default=0.9
        ),
        ("r", "r", "jensen_odds"): Meaning(
            "odds w/(1 - w) of the window divergence's weight w in Jensen's inequality", POSITIVE, default=7 / 17
        ),
        ("E", "E", "unavailable_rounds"): Meaning("most rounds in a row that a client is unavailable", COUNT),
        ("M", "M", "oracle_calls"): Meaning("oracle calls per client and window when waiting for all", COUNT),
    },
    floors=[
        Derived(name, ("N",), power, "weights that sum to one: Cauchy-Schwarz", free="upwards")
        for name, power in (("rho", EQUAL ** sp.Rational(-1, 2)), ("sumsq", 1 / EQUAL))
    ]
    + [
        Derived("rho", ("S",), SHARED ** sp.Rational(-1, 2), "S equal weights: rho = 1/sqrt(S)"),
        Derived("sumsq", ("S",), 1 / SHARED, "S equal weights: the sum of their squares is 1/S", free="downwards"),
    ],
)
new_result = partial(paper_result, "arbitrary-participation", "Wang & Ji 2022", NOTATION)
