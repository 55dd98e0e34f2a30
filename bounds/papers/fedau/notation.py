"""The symbols of Wang & Ji (2024); `p`, `omega`, `alphatilde`, `varphi` hold one number per client."""

from functools import partial

import numpy as np
import sympy as sp

from fedbounds.bounds.theory.client_reductions import MaxOverClients
from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import Derived, read_notation


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
NOTATION = read_notation(
    __file__,
    [
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
