"""The letters of Wang & Ji (2022); `nu`, `beta`, `delta` are the roots of the paper's tilde quantities."""

from __future__ import annotations

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
    Notation,
    Quantity,
)

UNIT_INTERVAL = Domain(high=1, low_open=True)
OPEN_UNIT_INTERVAL = Domain(high=1, low_open=True, high_open=True)

EQUAL = sp.Symbol("N", positive=True, integer=True)  # so many equal weights have the least squares
SHARED = sp.Symbol("S", positive=True, integer=True)

NOTATION = Notation(
    [
        Quantity("L", "L", "smoothness of every F_n", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("F", r"\mathcal F", "initial gap f(x_0) - f*", "initial_gap", dimension=OBJECTIVE),
        Quantity("I", "I", "local SGD steps per round", "local_steps", COUNT),
        Quantity("P", "P", "amplification interval in rounds", "interval", COUNT),
        Quantity("T", "T", "number of rounds", "rounds", COUNT),
        Quantity("gamma", r"\gamma", "local learning rate", "local_step_size", POSITIVE, STEP),
        Quantity("eta", r"\eta", "amplification factor", "server_multiplier", POSITIVE, NONE),
        Quantity("rho", r"\rho", "root of the largest sum of squared weights", "participation_norm", UNIT_INTERVAL),
        Quantity("sigma", r"\sigma", "gradient noise (root of its variance)", "gradient_noise", dimension=GRADIENT),
        Quantity(
            "nu", r"\tilde\nu", "divergence among the participants, eq. (6)", "cohort_divergence", dimension=GRADIENT
        ),
        Quantity(
            "beta",
            r"\tilde\beta",
            "divergence of the participants from f, eq. (5)",
            "participation_divergence",
            dimension=GRADIENT,
        ),
        Quantity(
            "delta",
            r"\tilde\delta",
            "divergence of a window of P rounds from f, eq. (7)",
            "window_divergence",
            dimension=GRADIENT,
        ),
        Quantity("d", "d", "gradient divergence sup|grad F_n - grad f|", "gradient_divergence_sup", dimension=GRADIENT),
        Quantity("S", "S", "participants per round, equal weights", "participating_clients", COUNT),
        Quantity("N", "N", "number of clients", "clients", COUNT),
        Quantity("upsilon", r"\upsilon", "standard deviation of a weight q_t^n", "weight_deviation"),
        Quantity(
            "upsilonhat", r"\hat\upsilon", "root of the long-run variance of a weight", "long_run_weight_deviation"
        ),
        Quantity("c", "c", "probability of failure", "failure_probability", OPEN_UNIT_INTERVAL),
        Quantity("sumsq", "S_t", "sum of squared weights in round t", "sum_of_squared_weights", UNIT_INTERVAL),
        Quantity(
            "gradsq",
            r"\mathbb E\|\nabla f(\mathbf x_{t_0})\|^2",
            "expected squared gradient norm at the window's start",
            "squared_gradient_norm",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "decrease",
            r"\mathbb E[f(\mathbf x_{t_0})-f(\mathbf x_{t_0+P})]",
            "expected decrease of f over one window",
            "window_decrease",
            Domain(low=-float("inf"), low_open=True, high_open=True),
            OBJECTIVE,
        ),
        Quantity(
            "windowvar",
            r"\max_{n,t_0}\operatorname{Var}(\overline{q^n_{t_0}})",
            "largest exact variance of a client's mean weight over a window of P rounds",
            "window_mean_variance",
        ),
        Quantity(
            "qbar",
            r"\overline{q^n_{t_0}}",
            "mean weight of each client over one window",
            "window_mean_weights",
            shape=("clients",),
            total=1,
        ),
        Quantity(
            "s",
            "s",
            "free scale of Corollary 3.3's step size (the paper takes 1)",
            "step_scale",
            POSITIVE,
            PARAMETER / OBJECTIVE,
            default=1.0,
        ),
        Quantity(
            "theta",
            r"\theta",
            "free parameter of the sub-Gaussian bound",
            "tail_parameter",
            OPEN_UNIT_INTERVAL,
            default=0.9,
        ),
        Quantity(
            "r",
            "r",
            "odds w/(1 - w) of the window divergence's weight w in Jensen's inequality",
            "jensen_odds",
            POSITIVE,
            default=7 / 17,
        ),
        Quantity("E", "E", "most rounds in a row that a client is unavailable", "unavailable_rounds", COUNT),
        Quantity("M", "M", "oracle calls per client and window when waiting for all", "oracle_calls", COUNT),
    ],
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
