"""The symbols of Wang & Ji (2024); `p`, `omega`, `alphatilde`, `varphi` hold one number per client."""

from functools import partial

import numpy as np
import sympy as sp

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
    Meaning,
    Notation,
)


def least_squares(p: np.ndarray, target: np.ndarray, V: np.ndarray) -> np.ndarray:
    r"""The least $\sum_nu_n^2/p_n$ with $\sum_n(u_n-\varphi_n)^2\le V$: a lower bound, attained for equal $p_n$.

    Example:
        >>> p, target = np.array([0.5, 0.5]), np.array([0.5, 0.5])
        >>> [round(float(least_squares(p, target, np.array(V))), 12) for V in (0.0, 0.125)]
        [1.0, 0.25]
    """
    squares = target**2
    length, miss = np.sqrt(squares.sum(axis=-1)), np.sqrt(V)
    mean = (squares * p).sum(axis=-1) / squares.sum(axis=-1)
    beyond = miss >= length  # then u = 0 will do
    shift = np.where(beyond, 0.0, mean * miss / np.where(beyond, 1.0, length - miss))  # 1/lambda
    least = (squares / (p + shift[..., None])).sum(axis=-1) - miss * np.where(beyond, 0.0, length - miss) / mean
    return np.where(beyond, 0.0, np.maximum(least, 0.0))


def least_second_moment(p: np.ndarray, W: np.ndarray) -> np.ndarray:
    r"""The least mean over clients of $p_n\omega_n^2$ at the weight error $W$, the mean of $(p_n\omega_n-1)^2$."""
    N = p.shape[-1]
    return N * least_squares(p, np.full(N, 1 / N), W / N)


def least_sum(N: np.ndarray, V: np.ndarray) -> np.ndarray:
    r"""The least $\sum_np_n\omega_n^2$ at $V=\sum_n(p_n\omega_n/N-\varphi_n)^2$: $N^2(|\varphi|-\sqrt V)^2$, and
    $|\varphi|^2\ge1/N$.

    Example:
        >>> float(least_sum(np.array(4.0), np.array(0.0)))
        4.0
    """
    return N**2 * np.maximum(1 / np.sqrt(N) - np.sqrt(V), 0.0) ** 2


def least_weighted_sum(p: np.ndarray, varphi: np.ndarray, V: np.ndarray) -> np.ndarray:
    r"""The least $\sum_np_n\omega_n^2$ at $V=\sum_n(p_n\omega_n/N-\varphi_n)^2$.

    Example:
        >>> float(least_weighted_sum(np.array([0.5, 0.5]), np.array([1.0, 0.0]), np.array(0.0)))
        8.0
    """
    return p.shape[-1] ** 2 * least_squares(p, varphi, V)


EVERY_RATE = sp.Symbol("p", positive=True)
RARITY = Derived("R", ("p",), -1 / (2 * sp.log(MaxOverClients(1 - EVERY_RATE))), "1/log c, with c = 1/(1 - min p_n)^2")
NOTATION = Notation(
    {
        ("L", "L", "smoothness"): Meaning("smoothness of every F_n", POSITIVE, SMOOTHNESS),
        ("F", r"\mathcal F", "initial_gap"): Meaning("initial gap f(x_0) - f*", dimension=OBJECTIVE),
        ("I", "I", "local_steps"): Meaning("local SGD steps per round", COUNT),
        ("N", "N", "clients"): Meaning("number of clients", COUNT),
        ("T", "T", "rounds"): Meaning("number of rounds", COUNT),
        ("gamma", r"\gamma", "local_step_size"): Meaning("local step size", POSITIVE, STEP),
        ("eta", r"\eta", "server_multiplier"): Meaning("global step size", POSITIVE, NONE),
        ("sigma", r"\sigma", "gradient_noise"): Meaning("gradient noise (root of its variance)", dimension=GRADIENT),
        ("delta", r"\delta", "gradient_divergence_sup"): Meaning(
            "gradient divergence sup|grad F_n - grad f|", dimension=GRADIENT
        ),
        ("G", "G", "gradient_bound"): Meaning("bound on |grad f|", dimension=GRADIENT),
        ("W", "W", "weight_error"): Meaning("weight error: mean over rounds and clients of E(p_n omega_t^n - 1)^2"),
        ("Q", "Q", "weight_second_moment"): Meaning(
            "bound, on every path and in every round, on the mean over clients of p_n (omega_t^n)^2", POSITIVE
        ),
        ("K", "K", "cutoff_interval"): Meaning(
            "length at which a participation interval is cut off; inf for no cut-off",
            Domain(low=1, integer=True, infinite=True),
        ),
        ("p", "p_n", "participation_rates"): Meaning(
            "probability that client n takes part in a round", PROBABILITY, shape=("clients",)
        ),
        ("Qmean", r"\bar Q", "mean_weight_second_moment"): Meaning(
            "mean over rounds and clients of E p_n (omega_t^n)^2", POSITIVE
        ),
        ("Wmax", r"\max_tW_t", "largest_weight_error"): Meaning(
            "largest mean over clients of (p_n omega_t^n - 1)^2, over all paths and rounds"
        ),
        ("R", "R", "rarity"): Meaning(
            "1/log c with c = 1/(1 - min_n p_n)^2: rounds, in units of log T, until the rarest client has come"
        ),
        # constant weights: Theorem 1 and Theorem B.4.1
        ("H", r"\mathcal H", "weighted_initial_gap"): Meaning(
            "initial gap h(x_0) - h* of the objective that constant weights minimize", dimension=OBJECTIVE
        ),
        ("omega", r"\omega_n", "aggregation_weights"): Meaning(
            "aggregation weight of client n", POSITIVE, shape=("clients",)
        ),
        ("P", "P", "weight_normalizer"): Meaning("sum over clients of omega_n p_n, eq. (B.4.1)", POSITIVE),
        ("alphatilde", r"\tilde\alpha_n", "normalized_weights"): Meaning(
            "normalized weight omega_n N/P", POSITIVE, shape=("clients",)
        ),
        ("etatilde", r"\tilde\eta", "normalized_multiplier"): Meaning("normalized global step size eta P/N", POSITIVE),
        ("Qtilde", r"\tilde Q", "normalized_second_moment"): Meaning(
            "mean over clients of p_n (omega_n N/P)^2", POSITIVE
        ),
        ("cgamma", "c", "local_step_scale"): Meaning("gamma sqrt(T), the same for all T", POSITIVE, STEP),
        ("cboth", "c'", "global_step_scale"): Meaning("gamma eta sqrt(T), the same for all T", POSITIVE, STEP),
        # the one-step lemmas of Appendix B.3 and B.5
        ("varphi", r"\varphi_n", "objective_weights"): Meaning(
            "weight of F_n in the objective f~ = sum_n varphi_n F_n", Domain(high=1), shape=("clients",), total=1
        ),
        ("deltatilde", r"\tilde\delta", "weighted_divergence"): Meaning(
            "divergence sup|grad F_n - grad f~|, at most 2 delta", dimension=GRADIENT
        ),
        ("gradsq", r"\|\nabla\tilde f(\mathbf x_t)\|^2", "squared_gradient_norm"): Meaning(
            "squared gradient norm, at the start of the round, of the lemma's objective", dimension=GRADIENT**2
        ),
        ("V", r"\left(\sum_n(\frac{p_n\omega_t^n}N-\varphi_n)^2\right)", "weight_gap"): Meaning(
            "sum over clients of (p_n omega_t^n/N - varphi_n)^2"
        ),
        ("Z", r"\left(\sum_np_n(\omega_t^n)^2\right)", "sum_of_squared_aggregation_weights"): Meaning(
            "sum over clients of p_n (omega_t^n)^2", POSITIVE
        ),
        ("Wt", "W_t", "round_weight_error"): Meaning("mean over clients of (p_n omega_t^n - 1)^2 in round t"),
        ("Qt", "Q_t", "round_second_moment"): Meaning("mean over clients of p_n (omega_t^n)^2 in round t", POSITIVE),
        ("rate", "p", "participation_rate"): Meaning("probability that one client takes part in a round", PROBABILITY),
        ("S", "S", "participating_clients"): Meaning("participants per round on average, N p", POSITIVE),
    },
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
