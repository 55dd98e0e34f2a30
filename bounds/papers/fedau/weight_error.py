r"""The weights of FedAU under Bernoulli participation: their exact mean, mean squared error, and the weight error $W$.

Let a client take part with probability $p$, $q=1-p$, and let $S$ be its interval cut off at $K$,
$\Pr\{S=k\}=pq^{k-1}$ for $k<K$, $\Pr\{S=K\}=q^{K-1}$. After $t$ rounds with $M\ge1$ completed intervals and $s<K$
rounds since the last, the weight is $\omega_t=(t-s)/M$; with $M=0$ (only for $t<K$) it is 1.

Small cases are done in rationals, by dynamic programming over (intervals, rounds since the last). Large ones by renewal
theory: with $\varphi$ the generating function of $S$,
$\mathbb E[\omega_t^2;M\ge1]=\sum_{s<K}q^sj^2[z^j]\,\mathrm{Li}_2(\varphi(z))$, $j=t-s$. Since
$1-\varphi(z)=(1-z)A(z)$ with $A(z)=\sum_{s<K}(qz)^s$, and $j^2[z^j]$ is the operator $(z\,d/dz)^2$, all of it is
$[z^t]$ of an elementary function, whose coefficients come from one fast Fourier transform on a circle inside the unit
disk. $\mathbb E\,\omega_t$ has a closed form.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from bounds.errors import FedboundsError

LONGEST = 2**20  # rounds: a transform of eight times that many points
ALIASING = 1e-16  # what later coefficients add to earlier ones, relative
NEAR_ZERO = 0.1  # below this |phi| the two functions of phi are summed as series
SERIES = 20


def exact_weight_moments(p: Fraction, K: int | None, rounds: int) -> list[tuple[Fraction, Fraction]]:
    r"""$(\mathbb E\,\omega_t,\ \mathbb E(p\,\omega_t-1)^2)$ for $t=0,\dots,$ `rounds` - 1, in rationals.

    Args:
        p: participation probability, in (0, 1].
        K: cut-off length >= 1, or None for no cut-off.
        rounds: how many; the cost grows with its cube.

    Example:
        >>> [str(error) for _, error in exact_weight_moments(Fraction(1, 2), 2, 4)]
        ['1/4', '1/4', '1/8', '3/32']

    Source: Wang & Ji 2024, Algorithm 2.
    """
    states: dict[tuple[int, int], Fraction] = {(0, 0): Fraction(1)}  # (intervals, rounds since the last)
    moments = []
    for t in range(rounds):
        mean = error = Fraction(0)
        for (intervals, since), probability in states.items():
            weight = Fraction(t - since, intervals) if intervals else Fraction(1)
            mean += probability * weight
            error += probability * (p * weight - 1) ** 2
        moments.append((mean, error))
        following: dict[tuple[int, int], Fraction] = {}
        for (intervals, since), probability in states.items():
            completed, running = (intervals + 1, 0), (intervals, since + 1)
            absent = completed if since + 1 == K else running
            for state, chance in ((completed, p), (absent, 1 - p)):
                if chance:
                    following[state] = following.get(state, Fraction(0)) + probability * chance
        states = following
    return moments


def mean_weight(p: float, K: float, rounds: int) -> np.ndarray:
    r"""$\mathbb E\,\omega_t$ for $t=0,\dots,$ `rounds` - 1.

    $$\mathbb E\,\omega_t=\frac{1-q^K}p\ (t\ge K),\qquad
      \mathbb E\,\omega_t=\frac{1-q^t}p-(t-1)q^t\ (1\le t<K),\qquad \mathbb E\,\omega_0=1,$$

    because, given their number, the completed intervals are exchangeable.

    Args:
        p: participation probability, in (0, 1].
        K: cut-off length >= 1, inf for none.
        rounds: how many.

    Returns:
        (rounds,) means.

    Example:
        >>> mean_weight(1 / 3, 3, 5) * 9
        array([ 9.,  9., 11., 19., 19.])

    Source: Wang & Ji 2024, eq. (B.6.8), whose step (a) it replaces.
    """
    t = np.arange(rounds, dtype=float)
    survival = (1 - p) ** np.minimum(t, K)
    mean = (1 - survival) / p - np.where(t < K, (t - 1) * survival, 0.0)
    mean[0] = 1.0
    return mean


def squared_error(p: float, K: float, rounds: int) -> np.ndarray:
    r"""$\mathbb E(p\,\omega_t-1)^2$ for $t=0,\dots,$ `rounds` - 1, by one Fourier transform.

    Args:
        p: participation probability, in (0, 1].
        K: cut-off length >= 1, inf for none; any K >= `rounds` is none.
        rounds: how many.

    Returns:
        (rounds,) mean squared errors, to an absolute error of 1e-11 up to 2^16 rounds.

    Example:
        >>> np.round(squared_error(0.5, 2, 4) * 32, 9)
        array([8., 8., 4., 3.])

    Source: Wang & Ji 2024, Algorithm 2.
    """
    if p == 1:
        return np.zeros(rounds)
    q, cut = 1 - p, int(min(K, rounds))
    t = np.arange(rounds)
    mean = mean_weight(p, cut, rounds)
    none_yet = np.where(t < cut, q**t, 0.0)  # probability that no interval is complete, where the weight is 1
    second = _second_moment(q, cut, rounds) + none_yet
    bias = p * mean - 1
    return bias**2 + p**2 * np.maximum(second - mean**2, 0.0)


def _second_moment(q: float, K: int, rounds: int) -> np.ndarray:
    """E[omega_t^2; some interval is complete] for t < rounds, by one transform."""
    points = 2 ** math.ceil(math.log2(8 * rounds))
    radius = ALIASING ** (1 / points)
    angle = np.arange(points // 2 + 1)
    z = radius * np.exp(-2j * np.pi / points * angle)
    # (q z)^K with its angle reduced in integers: K may be as large as the number of rounds
    power = (q * radius) ** K * np.exp(-2j * np.pi / points * (angle * K % points))
    values = _second_moment_series(z, q * z, power, K)
    coefficients = np.fft.irfft(values, points)[:rounds]
    return coefficients * radius ** -np.arange(rounds, dtype=float)


def _second_moment_series(z: np.ndarray, y: np.ndarray, yK: np.ndarray, K: int) -> np.ndarray:
    r"""$A\,(z\,d/dz)^2\,\mathrm{Li}_2(\varphi)$ with $y=qz$, $y^K$ given, $A=(1-y^K)/(1-y)$ and $\varphi=1-(1-z)A$.

    $$D=z\frac d{dz}:\qquad D^2\mathrm{Li}_2(\varphi)=(D\varphi)^2\Big[\frac1{\varphi(1-\varphi)}
      +\frac{\log(1-\varphi)}{\varphi^2}\Big]-\frac{\log(1-\varphi)}\varphi D^2\varphi$$
    """
    a = (1 - yK) / (1 - y)
    da = (y * a - K * yK) / (1 - y)
    d2a = (y * a + 2 * y * da - K**2 * yK) / (1 - y)
    rest = (1 - z) * a
    phi = 1 - rest
    dphi = z * a - (1 - z) * da
    d2phi = z * a + 2 * z * da - (1 - z) * d2a
    close = np.abs(phi) < NEAR_ZERO
    safe, log = np.where(close, 1.0, phi), np.log(rest)
    slope = -log / safe
    curve = (1 / rest - slope) / safe
    if close.any():
        k, little = np.arange(SERIES)[::-1], phi[close]
        slope[close] = np.polyval(1 / (k + 1), little)
        curve[close] = np.polyval((k + 1) / (k + 2), little)
    return a * (dphi**2 * curve + slope * d2phi)


def weight_error(p: np.ndarray, K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    r"""The weight error of FedAU with cut-off K under Bernoulli participation, exactly.

    $$W=\frac1{NT}\sum_{t<T}\sum_n\mathbb E(p_n\omega_t^n-1)^2$$

    Args:
        p: (..., N) participation probabilities, in (0, 1].
        K: (...) cut-off lengths, integers >= 1 or inf.
        T: (...) rounds, integers >= 1.

    Returns:
        (...) weight errors.

    Raises:
        FedboundsError: more rounds than a transform can hold.

    Example:
        >>> float(round(weight_error(np.array([0.5]), 2, 6)[()] * 4608, 6))
        683.0

    Source: Wang & Ji 2024, the left-hand side of eq. (7).
    """
    p, K, T = np.asarray(p, dtype=float), np.asarray(K, dtype=float), np.asarray(T, dtype=float)
    if T.max() > LONGEST:
        raise FedboundsError(
            f"W follows from p, K, T for T up to {LONGEST}, and T = {T.max():.12g}: give W (Theorem 3 bounds it)"
        )
    shape = np.broadcast_shapes(p.shape[:-1], K.shape, T.shape)
    cut, rounds = np.broadcast_to(K, shape).ravel(), np.broadcast_to(T, shape).ravel()
    rates = np.broadcast_to(p, (*shape, p.shape[-1])).reshape(-1, p.shape[-1])
    longest: dict[tuple[float, float], int] = {}  # one transform for each rate and cut-off, as long as its longest run
    for row, k, t in zip(rates, cut, rounds, strict=True):
        for rate in np.unique(row):
            longest[rate, k] = max(longest.get((rate, k), 0), int(t))
    running = {key: np.cumsum(squared_error(*key, t)) for key, t in longest.items()}
    out = [
        np.mean([running[rate, k][int(t) - 1] for rate in row]) / t
        for row, k, t in zip(rates, cut, rounds, strict=True)
    ]
    return np.reshape(out, shape)


def largest_weight_moment(p: np.ndarray, K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    r"""The essential supremum of $Q=\max_{t<T}\frac1N\sum_np_n(\omega_t^n)^2$ for FedAU under Bernoulli participation.

    $$\frac1N\sum_np_n\,m_n^2,\qquad m_n=\min(K,\max(T-1,1))\text{ if }p_n<1,\quad m_n=1\text{ if }p_n=1$$

    The weights are largest together when nobody takes part until the cut-off or the round before last.

    Args:
        p: (..., N) participation probabilities, in (0, 1].
        K: (...) cut-off lengths, integers >= 1 or inf.
        T: (...) rounds, integers >= 1.

    Returns:
        (...) suprema.

    Example:
        >>> float(largest_weight_moment(np.array([0.5, 1.0]), 3, 10))
        2.75

    Source: Wang & Ji 2024, Theorem 2, whose step sizes need Q before the run.
    """
    p = np.asarray(p, dtype=float)
    most = np.minimum(K, np.maximum(np.asarray(T, dtype=float) - 1, 1))[..., None]
    return np.mean(p * np.where(p < 1, most, 1.0) ** 2, axis=-1)
