r"""Participation as weights $q_t^n$, (rounds, clients), and clients as offsets $\mathbf v_n=\nabla F_n-\nabla f$,
(clients, dimension): what is checked when they are read, and what windows of rounds have of them.

Source: Wang & Ji 2022, *A Unified Analysis of Federated Learning with Arbitrary Client Participation*,
Assumption 3' and Section 4.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_matrix, check_vector, quote

SUM_TOLERANCE = 1e-9
SAMPLES = "samples"  # client weights in proportion to the clients' numbers of samples


def check_weights(q: ArrayLike, *, unit_sum: bool = True, name: str = "weights q") -> np.ndarray:
    """The weights as a float array (rounds, clients), or an error that names the first bad entry.

    Args:
        q: weights (rounds, clients), at least 0.
        unit_sum: whether the weights of each round must sum to one (within 1e-9).
        name: what the user calls them.
    """
    weights = check_matrix(name, q, "(rounds, clients)")
    if (weights < 0).any():
        t, n = np.argwhere(weights < 0)[0]
        raise FedboundsError(f"{name}[{t}, {n}] = {weights[t, n]:.12g} is negative; weights are at least 0")
    if unit_sum:
        sums = weights.sum(axis=1)
        bad = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
        if bad.size:
            where = f"{name}[{bad[0]}] sum to {sums[bad[0]]:.12g}"
            ones = bool(np.isin(weights, (0.0, 1.0)).all()) and sums[bad[0]]
            said = "this is a record of who was there: " if ones else ""
            what = "divide each row by its sum (Recorded(q, normalize=True); in a TOML file normalize = true)"
            if not sums[bad[0]]:
                what = "a round without participants is not covered; leave it out, which is exact if P = 1 or eta = 1"
            raise FedboundsError(f"{where}; the theorem needs 1 in every round: {said}{what}")
    return weights


def check_client_weights(value: object, clients: int, sizes: np.ndarray | None = None) -> np.ndarray | None:
    """The weights $p_n$ of clients in the objective, divided by their sum, (clients,); None for the mean over clients.

    Args:
        value: None, one positive number for each client, or "samples" where the clients hold samples.
        clients: N.
        sizes: how many samples each client holds, (clients,).

    Example:
        >>> check_client_weights([1, 3], 2).tolist()
        [0.25, 0.75]
    """
    if value is None:
        return None
    if isinstance(value, str):
        if value != SAMPLES or sizes is None:
            or_samples = "" if sizes is None else f', or "{SAMPLES}" for the numbers of samples'
            raise FedboundsError(
                f"client_weights = {quote(value)} must be a list of {clients} positive numbers{or_samples}"
            )
        value = sizes
    weights = check_vector("client_weights", cast(ArrayLike, value), clients)
    if (weights <= 0).any():
        n = int(np.argmin(weights))
        raise FedboundsError(
            f"client_weights[{n}] = {weights[n]:g} must be positive: leave a client without weight out of the problem"
        )
    return weights / weights.sum()


def centered_offsets(
    v: ArrayLike, clients: int | None = None, *, client_weights: np.ndarray | None = None
) -> np.ndarray:
    r"""The offsets $\mathbf v_n-\sum_mp_m\mathbf v_m$, shape (clients, dimension), unit f/x.

    Args:
        v: offsets, or local gradients, (clients, dimension).
        clients: how many there must be, if that is known.
        client_weights: $p_n$ of the objective, (clients,); 1/N each if not given.

    Example:
        >>> centered_offsets([[1.0], [4.0], [1.0]]).ravel().tolist()
        [-1.0, 2.0, -1.0]
    """
    offsets = check_matrix("offsets v", v, "(clients, dimension)")
    if clients is not None and len(offsets) != clients:
        raise FedboundsError(f"offsets v are of {len(offsets)} clients, the weights of {clients}")
    return offsets - np.average(offsets, axis=0, weights=client_weights)


def window_means(q: ArrayLike, interval: int, *, aligned: bool = True) -> np.ndarray:
    r"""The mean weights $\overline{q^n_{t_0}}=\frac1P\sum_{t=t_0}^{t_0+P-1}q_t^n$, shape (windows, clients).

    Args:
        q: weights (rounds, clients), each round summing to one.
        interval: P, the length of a window in rounds.
        aligned: the complete windows that start at multiples of P, which is all the proof uses; otherwise
            every complete window, as eq. (7) is printed.

    Source: Wang & Ji 2022, Section 4.1.
    """
    weights = check_weights(q)
    rounds, clients = weights.shape
    P = check_count("interval", interval, high=rounds, why="a window needs that many recorded rounds")
    if aligned:
        return weights[: rounds - rounds % P].reshape(-1, P, clients).mean(axis=1)
    return np.lib.stride_tricks.sliding_window_view(weights, P, axis=0).mean(axis=-1)


def expected_window_divergence(covariance: ArrayLike, v: ArrayLike, mean: ArrayLike | None = None) -> float:
    r"""The root of the expected left side of (7), from the mean and covariance of the window means.

    $$\mathbb E\Big\|\sum_n\overline{q^n}\mathbf v_n\Big\|^2
      =\operatorname{tr}(V^\top CV)+\|V^\top\mathbf m\|^2$$

    Args:
        covariance: C, between clients, (clients, clients).
        v: V, offsets (clients, dimension), unit f/x.
        mean: m, (clients,); none means that all are equal, and the second term vanishes.

    Source: Wang & Ji 2022, eq. (7), in expectation as in Section 4.2.
    """
    C = check_matrix("covariance", covariance, "(clients, clients)")
    if C.shape[0] != C.shape[1]:
        raise FedboundsError(f"covariance has shape {C.shape}; expected (clients, clients)")
    offsets = centered_offsets(v, len(C))
    square = float(((C @ offsets) * offsets).sum())
    if mean is not None:
        m = check_vector("mean", mean, len(C))
        square += float((((m - m[0]) @ offsets) ** 2).sum())  # offsets sum to zero: equal means give exactly zero
    return math.sqrt(max(square, 0.0))
