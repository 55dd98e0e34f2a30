"""The constants of Wang & Ji (2022) from weights and offsets, as they are printed: what the package computes faster."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_number, check_vector
from fedbounds.bounds.participation.constants import centered_offsets, check_weights, window_means


def participation_norm(q: ArrayLike) -> float:
    r"""The participation norm $\rho=\max_t\sqrt{\sum_n(q_t^n)^2}$: $1/\sqrt S$ for $S$ equal weights.

    Args:
        q: weights (rounds, clients), each round summing to one.

    Source: Wang & Ji 2022, Theorem 3.1.
    """
    return float(np.sqrt((check_weights(q) ** 2).sum(axis=1).max()))


def participation_divergence(q: ArrayLike, v: ArrayLike) -> float:
    r"""How far a round's participants are from everyone, $\tilde\beta=\max_t\|\sum_nq_t^n\mathbf v_n\|$.

    Args:
        q: weights (rounds, clients), each round summing to one.
        v: offsets (clients, dimension), unit f/x.

    Source: Wang & Ji 2022, eq. (5).
    """
    weights = check_weights(q)
    return float(np.linalg.norm(weights @ centered_offsets(v, weights.shape[1]), axis=1).max())


def cohort_divergence(q: ArrayLike, v: ArrayLike) -> float:
    r"""How far a round's participants are from each other, $\tilde\nu$.

    $$\tilde\nu^2=\max_t\sum_nq_t^n\Big\|\mathbf v_n-\sum_{n'}q_t^{n'}\mathbf v_{n'}\Big\|^2$$

    Different rounds may attain $\tilde\beta$ and $\tilde\nu$: each is at most $d$, but
    $\tilde\beta^2+\tilde\nu^2\le d^2$ (Proposition 4.1) fails in general, as in the example.

    Args:
        q: weights (rounds, clients), each round summing to one.
        v: offsets (clients, dimension), unit f/x.

    Source: Wang & Ji 2022, eq. (6).
    """
    weights = check_weights(q)
    offsets = centered_offsets(v, weights.shape[1])
    worst = 0.0
    for row in weights:
        present = np.flatnonzero(row)
        share, cohort = row[present], offsets[present]
        worst = max(worst, float(share @ ((cohort - share @ cohort) ** 2).sum(axis=1)))
    return math.sqrt(worst)


def gradient_divergence(v: ArrayLike) -> float:
    r"""The gradient divergence $d=\max_n\|\mathbf v_n\|$ of Assumption 3.

    Args:
        v: offsets (clients, dimension), unit f/x.

    Source: Wang & Ji 2022, eq. (4).
    """
    return float(np.linalg.norm(centered_offsets(v), axis=1).max())


def window_divergence(q: ArrayLike, v: ArrayLike, interval: int, *, aligned: bool = True) -> float:
    r"""How far the worst window's participants are from everyone, $\tilde\delta(P)$.

    $$\tilde\delta^2(P)=\max_{t_0\in\{0,P,2P,\dots\}}\Big\|\sum_n\overline{q^n_{t_0}}\,\mathbf v_n\Big\|^2$$

    The largest of the windows; `mean_window_divergence` has their mean.

    Args:
        q: weights (rounds, clients), each round summing to one.
        v: offsets (clients, dimension), unit f/x.
        interval: P, the length of a window in rounds.
        aligned: only windows that start at multiples of P, as the proof uses them.

    Source: Wang & Ji 2022, eq. (7).
    """
    return _over_windows(_squared_pulls(q, v, interval, aligned), average=False)


def mean_window_divergence(q: ArrayLike, v: ArrayLike, interval: int, *, aligned: bool = True) -> float:
    r"""As `window_divergence`, but the mean over the windows under the root, not the largest.

    $$\sqrt{\operatorname*{mean}_{t_0\in\{0,P,2P,\dots\}}\Big\|\sum_n\overline{q^n_{t_0}}\,\mathbf v_n\Big\|^2}$$

    Never larger, and all that the proof of Theorem 3.1 needs. What participation implies before it is drawn:
    `mean_window_divergence` of a participation process.

    Args:
        q, v, interval, aligned: as for `window_divergence`.

    Source: Wang & Ji 2022, eq. (7), as its sum over windows enters Appendix C.3.
    """
    return _over_windows(_squared_pulls(q, v, interval, aligned), average=True)


def _squared_pulls(q: ArrayLike, v: ArrayLike, interval: int, aligned: bool) -> np.ndarray:
    """The left side of (7) for every window."""
    means = window_means(q, interval, aligned=aligned)
    offsets = centered_offsets(v, means.shape[1])
    pulls = (means - means[:, :1]) @ offsets  # offsets sum to zero: equal means give exactly zero
    return (pulls**2).sum(axis=1)


def bound_15(q: ArrayLike, interval: int, d: float, *, average: bool = False) -> float:
    r"""The paper's bound on $\tilde\delta(P)$ from $d$ alone, $d\sqrt{N\sum_n(\overline{q^n}-\frac1N)^2}$.

    Args:
        q: weights (rounds, clients), each round summing to one.
        interval: P, the length of a window in rounds.
        d: the gradient divergence of Assumption 3, unit f/x.
        average: the mean over windows under the root, not the maximum.

    Source: Wang & Ji 2022, eq. (15), where weights that sum to one force $\mu_{t_0}=\frac1N$.
    """
    means = window_means(q, interval)
    clients = means.shape[1]
    squares = clients * ((means - 1 / clients) ** 2).sum(axis=1)
    return check_number("d", d, 0, why="the gradient divergence") * _over_windows(squares, average)


def median_bound(q: ArrayLike, interval: int, d: float, *, average: bool = False) -> float:
    r"""The best bound on $\tilde\delta(P)$ from $d$ alone, $d\sum_n|\overline{q^n}-\mathrm{med}|$.

    *Proof.* $\sum_n\mathbf v_n=0$, hence for every number $\mu$
    $$\Big\|\sum_n\overline{q^n}\mathbf v_n\Big\|=\Big\|\sum_n(\overline{q^n}-\mu)\mathbf v_n\Big\|
      \le d\sum_n|\overline{q^n}-\mu|$$
    by the triangle inequality, and the median of the $\overline{q^n}$ minimizes the right side over $\mu$.

    *Never larger than (15).* The minimum is at most the value at $\mu=\frac1N$, where Cauchy-Schwarz gives
    $\sum_n|\overline{q^n}-\frac1N|\le\sqrt{N\sum_n(\overline{q^n}-\frac1N)^2}$.

    *Not improvable.* One-dimensional offsets of $+d$ for the $\lfloor N/2\rfloor$ largest $\overline{q^n}$,
    $-d$ for the $\lfloor N/2\rfloor$ smallest and 0 for one left over sum to zero, and attain it.

    Args:
        q: weights (rounds, clients), each round summing to one.
        interval: P, the length of a window in rounds.
        d: the gradient divergence of Assumption 3, unit f/x.
        average: the mean of the squares over windows under the root, not the maximum.

    Source: from Wang & Ji 2022, eq. (13); sharpens their eq. (15).
    """
    means = window_means(q, interval)
    deviations = np.abs(means - np.median(means, axis=1, keepdims=True)).sum(axis=1)
    return check_number("d", d, 0, why="the gradient divergence") * _over_windows(deviations**2, average)


def expected_bound_15(variance: ArrayLike, d: float, mean: ArrayLike | None = None) -> float:
    r"""The root of the expected right side of (15), from the variance of the window means.

    $$d\sqrt{N\sum_n\Big[\mathrm{Var}(\overline{q^n})+\Big(\mathbb E\overline{q^n}-\frac1N\Big)^2\Big]}$$

    With means 1/N and equal variances this is the paper's $Nd\sqrt{\mathrm{Var}(\overline q)}$.

    Args:
        variance: of each client's window mean, (clients,).
        d: the gradient divergence of Assumption 3, unit f/x.
        mean: of each client's window mean, (clients,); none means 1/N.

    Source: Wang & Ji 2022, eq. (15) and Propositions 4.6 and 4.7, with the exact variance.
    """
    variances = check_vector("variance", variance)
    if (variances < 0).any():
        raise FedboundsError(f"variance = {variances.min():.12g} is negative; variances are at least 0")
    clients = len(variances)
    bias = 0.0 if mean is None else check_vector("mean", mean, clients) - 1 / clients
    total = clients * float((variances + bias**2).sum())
    return check_number("d", d, 0, why="the gradient divergence") * math.sqrt(total)


def _over_windows(squares: np.ndarray, average: bool) -> float:
    return math.sqrt(float(squares.mean() if average else squares.max()))
