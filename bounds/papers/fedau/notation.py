"""The symbols of Wang & Ji (2024); `p`, `omega`, `alphatilde`, `varphi` hold one number per client."""

from __future__ import annotations

from functools import partial

import numpy as np
import sympy as sp

from fedbounds.bounds.papers.fedau.second_moments import least_second_moment, least_sum, least_weighted_sum
from fedbounds.bounds.theory.client_reductions import MaxOverClients
from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import (
    COUNT,
    GRADIENT,
    NONE,
    OBJECTIVE,
    POSITIVE,
    PROBABILITY,
    SMOOTHNESS,
    STEP,
    Derived,
    Domain,
    Notation,
    Quantity,
)

EVERY_RATE = sp.Symbol("p", positive=True)
RARITY = Derived("R", ("p",), -1 / (2 * sp.log(MaxOverClients(1 - EVERY_RATE))), "1/log c, with c = 1/(1 - min p_n)^2")
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
        Quantity(
            "Qmean",
            r"\bar Q",
            "mean over rounds and clients of E p_n (omega_t^n)^2",
            "mean_weight_second_moment",
            POSITIVE,
        ),
        Quantity(
            "Wmax",
            r"\max_tW_t",
            "largest mean over clients of (p_n omega_t^n - 1)^2, over all paths and rounds",
            "largest_weight_error",
        ),
        Quantity(
            "R",
            "R",
            "1/log c with c = 1/(1 - min_n p_n)^2: rounds, in units of log T, until the rarest client has come",
            "rarity",
        ),
        # constant weights: Theorem 1 and Theorem B.4.1
        Quantity(
            "H",
            r"\mathcal H",
            "initial gap h(x_0) - h* of the objective that constant weights minimize",
            "weighted_initial_gap",
            dimension=OBJECTIVE,
        ),
        Quantity(
            "omega", r"\omega_n", "aggregation weight of client n", "aggregation_weights", POSITIVE, shape=("clients",)
        ),
        Quantity("P", "P", "sum over clients of omega_n p_n, eq. (B.4.1)", "weight_normalizer", POSITIVE),
        Quantity(
            "alphatilde",
            r"\tilde\alpha_n",
            "normalized weight omega_n N/P",
            "normalized_weights",
            POSITIVE,
            shape=("clients",),
        ),
        Quantity("etatilde", r"\tilde\eta", "normalized global step size eta P/N", "normalized_multiplier", POSITIVE),
        Quantity(
            "Qtilde", r"\tilde Q", "mean over clients of p_n (omega_n N/P)^2", "normalized_second_moment", POSITIVE
        ),
        Quantity("cgamma", "c", "gamma sqrt(T), the same for all T", "local_step_scale", POSITIVE, STEP),
        Quantity("cboth", "c'", "gamma eta sqrt(T), the same for all T", "global_step_scale", POSITIVE, STEP),
        # the one-step lemmas of Appendix B.3 and B.5
        Quantity(
            "varphi",
            r"\varphi_n",
            "weight of F_n in the objective f~ = sum_n varphi_n F_n",
            "objective_weights",
            Domain(high=1),
            shape=("clients",),
            total=1,
        ),
        Quantity(
            "deltatilde",
            r"\tilde\delta",
            "divergence sup|grad F_n - grad f~|, at most 2 delta",
            "weighted_divergence",
            dimension=GRADIENT,
        ),
        Quantity(
            "gradsq",
            r"\|\nabla\tilde f(\mathbf x_t)\|^2",
            "squared gradient norm, at the start of the round, of the lemma's objective",
            "squared_gradient_norm",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "V",
            r"\left(\sum_n(\frac{p_n\omega_t^n}N-\varphi_n)^2\right)",
            "sum over clients of (p_n omega_t^n/N - varphi_n)^2",
            "weight_gap",
        ),
        Quantity(
            "Z",
            r"\left(\sum_np_n(\omega_t^n)^2\right)",
            "sum over clients of p_n (omega_t^n)^2",
            "sum_of_squared_aggregation_weights",
            POSITIVE,
        ),
        Quantity("Wt", "W_t", "mean over clients of (p_n omega_t^n - 1)^2 in round t", "round_weight_error"),
        Quantity("Qt", "Q_t", "mean over clients of p_n (omega_t^n)^2 in round t", "round_second_moment", POSITIVE),
        Quantity("rate", "p", "probability that one client takes part in a round", "participation_rate", PROBABILITY),
        Quantity("S", "S", "participants per round on average, N p", "participating_clients", POSITIVE),
    ],
    floors=[
        *(
            Derived(
                moment,
                inputs,
                rule,
                f"{error} bounds the mean of (p omega - 1)^2, {moment} that of p omega^2",
                "upwards",
                javascript,
            )
            for moment, error in (("Q", "W"), ("Qmean", "W"), ("Qt", "Wt"))
            for inputs, rule, javascript in (
                (("p", error), least_second_moment, "least_second_moment"),
                ((error,), lambda W: least_second_moment(np.ones(1), W), "W => least_second_moment([1], W)"),
            )
        ),
        Derived(
            "Z",
            ("N", "V"),
            least_sum,
            "sum p omega^2 >= sum (p omega)^2, and sum varphi = 1",
            free="upwards",
            javascript="least_sum",
        ),
        Derived(
            "Z",
            ("p", "varphi", "V"),
            least_weighted_sum,
            "least for p omega/N between varphi and 0",
            free="upwards",
            javascript="least_weighted_sum",
        ),
        RARITY,
        Derived("Qmean", ("Q",), sp.Symbol("Q", positive=True), "at most Q, in every round", "downwards"),
        Derived("W", ("Wmax",), sp.Symbol("Wmax", nonnegative=True), "at most Wmax, in every round", "downwards"),
        Derived("Qtilde", (), sp.Integer(1), "mean p (omega N/P)^2 >= (mean p omega N/P)^2 = 1", free="upwards"),
        Derived(
            "Qtilde",
            ("p",),
            lambda p: 1 / p.mean(-1),
            "the mean of p omega N/P is 1",
            free="upwards",
            javascript="p => 1 / mean_clients(p.length, n => p[n])",
        ),
    ],
)
new_result = partial(paper_result, "fedau", "Wang & Ji 2024", NOTATION)
