r"""The weights of FedAU under Bernoulli participation: their exact mean, mean squared error, and the weight error $W$.

Let a client take part with probability $p$, $q=1-p$, and let $S$ be its interval cut off at $K$,
$\Pr\{S=k\}=pq^{k-1}$ for $k<K$, $\Pr\{S=K\}=q^{K-1}$. After $t$ rounds with $M\ge1$ completed intervals and $s<K$
rounds since the last, the weight is $\omega_t=(t-s)/M$; with $M=0$ (only for $t<K$) it is 1.

By renewal theory, with $\varphi$ the generating function of $S$,
$\mathbb E[\omega_t^2;M\ge1]=\sum_{s<K}q^sj^2[z^j]\,\mathrm{Li}_2(\varphi(z))$, $j=t-s$. Since
$1-\varphi(z)=(1-z)A(z)$ with $A(z)=\sum_{s<K}(qz)^s$, and $j^2[z^j]$ is the operator $(z\,d/dz)^2$, all of it is
$[z^t]$ of an elementary function, whose coefficients come from one fast Fourier transform on a circle inside the unit
disk. $\mathbb E\,\omega_t$ has a closed form.

Sums over many rounds need no transform of their length. The function is analytic in $|z|<1/q$ but for a pole at 1 and
a cut along $[1,1/q)$, where $\log(1-\varphi)$ jumps by $2\pi i$; so, up to $q^t$,

$$\mathbb E\,\omega_t^2=(\mathbb E S)^2+\int_1^{1/q}A(x)\,\Big(x\frac d{dx}\Big)^2\log\varphi(x)\,x^{-t-1}\,dx,$$

and the sum over $t$ is the same integral with a geometric sum in it.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory, check_vector

LONGEST = 2**20  # rounds: a transform of eight times that many points, or a little more
SETTLED = 48.0  # over p: rounds after which q^t is below 1e-20, so that the integral is all there is
FIRST_PANEL, NODES = 2.0**-6, 12  # of the integral: panels that double from 2^-6/T on, each by Gauss and Legendre
SHORT = 2**13  # rounds of a table of which many are kept
ALIASING = 1e-16  # what later coefficients add to earlier ones, relative
NEAR_ZERO = 0.03  # below this |phi| the two functions of phi are summed as series
SERIES = 12


class WeightStatistics(NamedTuple):
    r"""What there is to know about FedAU's weights before a run; see `weight_statistics`."""

    mean: np.ndarray  # (N, T) means $\mathbb E\,\omega_t^n$
    squared_error: np.ndarray  # (N, T) mean squared relative errors $\mathbb E(p_n\omega_t^n-1)^2$
    weight_error: float  # their mean over clients and rounds, the W of Theorem 2
    mean_second_moment: float  # mean over clients and rounds of $p_n\mathbb E(\omega_t^n)^2$, the last term's Q
    largest_second_moment: float  # largest value of $\frac1N\sum_np_n(\omega_t^n)^2$ on any path, the step size's Q


def weight_statistics(rates: ArrayLike, rounds: int, cut_off: float = math.inf) -> WeightStatistics:
    r"""FedAU's weights under Bernoulli participation, exactly: means, mean squared errors and what theorems need.

    $$W=\frac1{NT}\sum_{t<T}\sum_n\mathbb E(p_n\omega_t^n-1)^2$$

    Nothing is simulated. The bias of a cut-off K stays: $p_n\mathbb E\,\omega_t^n=1-(1-p_n)^K$ from round K on.

    Args:
        rates: (N,) participation probabilities $p_n$, in (0, 1].
        rounds: T, at most 2^20.
        cut_off: K, an integer >= 1, or inf for none.

    Raises:
        FedboundsError: a rate outside (0, 1], or a cut-off or number of rounds that is not a whole number >= 1.

    Example:
        >>> law = weight_statistics([0.5, 1.0], rounds=4, cut_off=2)
        >>> np.round(law.mean, 9)
        array([[1. , 1. , 1.5, 1.5],
               [1. , 1. , 1. , 1. ]])
        >>> round(law.weight_error, 9), law.largest_second_moment
        (0.08984375, 1.5)
        >>> weight_statistics([0.5, 0.0], rounds=4)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: rates[1] = 0 must lie in (0, 1]: the weight of a client that never takes
        part ...

    Source: Wang & Ji 2024, Algorithm 2.
    """
    p = check_vector("rates", rates)
    for i in np.flatnonzero(~((p > 0) & (p <= 1)))[:1]:
        raise FedboundsError(
            f"rates[{i}] = {p[i]:.12g} must lie in (0, 1]: the weight of a client that never takes part is 1 before "
            "round K and K from then on, and nothing is right for it"
        )
    T = check_count("rounds", rounds, high=LONGEST)
    K = cut_off if cut_off == math.inf else check_count("cut_off", cut_off, why="or inf for no cut-off")
    check_memory(f"{len(p)} clients and {T} rounds", 16 * len(p) * T)
    mean, error = np.empty((2, len(p), T))
    rates_, which = np.unique(p, return_inverse=True)
    for i, rate in enumerate(rates_):
        mean[which == i] = mean_weight(rate, min(K, T), T)
        error[which == i] = squared_error(rate, K, T)
    second = (error - 1 + 2 * p[:, None] * mean) / p[:, None]  # p E omega^2
    return WeightStatistics(
        mean, error, float(error.mean()), float(second.mean()), float(largest_weight_moment(p, K, T))
    )


def mean_weight(p: float, K: float, rounds: int) -> np.ndarray:
    r"""$\mathbb E\,\omega_t$ for $t=0,\dots,$ `rounds` - 1.

    $$\mathbb E\,\omega_t=\frac{1-q^K}p\ (t\ge K),\qquad
      \mathbb E\,\omega_t=\frac{1-q^t}p-(t-1)q^t\ (1\le t<K),\qquad \mathbb E\,\omega_0=1,$$

    because, given their number, the completed intervals are exchangeable.

    Source: Wang & Ji 2024, eq. (B.6.8), whose step (a) it replaces.
    """
    t = np.arange(rounds, dtype=float)
    survival = (1 - p) ** np.minimum(t, K)
    mean = (1 - survival) / p - np.where(t < K, (t - 1) * survival, 0.0)
    mean[0] = 1.0
    return mean


def mean_square(p: float, K: float, rounds: int) -> np.ndarray:
    r"""$\mathbb E\,\omega_t^2$ for $t=0,\dots,$ `rounds` - 1, by one Fourier transform.

    Source: Wang & Ji 2024, Algorithm 2.
    """
    if p == 1:
        return np.ones(rounds)
    q, cut = 1 - p, int(min(K, rounds))
    t = np.arange(rounds)
    none_yet = np.where(t < cut, q**t, 0.0)  # probability that no interval is complete, where the weight is 1
    return _second_moment(q, cut, rounds) + none_yet


def squared_error(p: float, K: float, rounds: int) -> np.ndarray:
    r"""$\mathbb E(p\,\omega_t-1)^2$ for $t=0,\dots,$ `rounds` - 1, by one Fourier transform.

    Source: Wang & Ji 2024, Algorithm 2.
    """
    mean = mean_weight(p, min(K, rounds), rounds)
    return (p * mean - 1) ** 2 + p**2 * np.maximum(mean_square(p, K, rounds) - mean**2, 0.0)


@lru_cache(maxsize=8)
def _circle(points: int, turns: int) -> tuple[float, np.ndarray]:
    """The radius of the circle, and exp(-2 pi i turns j/points) on half of it, its angle reduced in integers."""
    angle = np.arange(points // 2 + 1) * turns % points
    return ALIASING ** (1 / points), np.exp(-2j * np.pi / points * angle)


def _second_moment(q: float, K: int, rounds: int) -> np.ndarray:
    """E[omega_t^2; some interval is complete] for t < rounds, by one transform."""
    points = min(m * 2 ** math.ceil(math.log2(8 * rounds / m)) for m in (4, 5, 6, 7))
    radius, once = _circle(points, 1)
    power = (q * radius) ** K * _circle(points, K)[1]  # (q z)^K; K may be as large as the number of rounds
    z = radius * once
    coefficients = np.fft.irfft(_second_moment_series(z, q * z, power, K), points)[:rounds]
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


def _sums(p: float, K: int, rounds: int) -> np.ndarray:
    """The sums of E omega_t and of E omega_t^2 over t < 1, ..., t < `rounds`; (2, rounds)."""
    return (_short_sums if rounds <= SHORT else _long_sums)(p, K, rounds)


def _new_sums(p: float, K: int, rounds: int) -> np.ndarray:
    sums = np.cumsum([mean_weight(p, K, rounds), mean_square(p, K, rounds)], axis=1)
    sums.flags.writeable = False
    return sums


_short_sums, _long_sums = lru_cache(maxsize=1024)(_new_sums), lru_cache(maxsize=32)(_new_sums)


def _settled(p: np.ndarray) -> np.ndarray:
    """The first round from which on the integral is exact to rounding; a power of two, so that tables are shared."""
    return np.where(p < 1, 2.0 ** np.ceil(np.log2(SETTLED / p)), 1.0)


def _later(p: float, K: float, start: int, T: np.ndarray) -> np.ndarray:
    r"""The sums of E omega_t and of E omega_t^2 over start <= t < T, by the integral; (2, ...)."""
    q = 1 - p
    mean, more = (1 - q**K) / p, T - start
    if p == 1 or K == 1:
        return np.stack([mean * more, mean**2 * more])
    panels = int(np.ceil(np.log2(SETTLED / FIRST_PANEL * float(T.max()) / start)))
    ends = np.append(0.0, FIRST_PANEL / float(T.max()) * 2.0 ** np.arange(panels + 1))
    end = 0.9 * p  # x^-t is below 1e-18 from there on
    ends = np.append(ends[ends < end], end)
    node, weight = np.polynomial.legendre.leggauss(NODES)
    v = (ends[:-1, None] + np.diff(ends)[:, None] * (node + 1) / 2).ravel()
    dv = (np.diff(ends)[:, None] * weight / 2).ravel()
    y, cut = q * (1 + v), min(K, 4.0 * LONGEST)  # (q x)^K is 0 beyond
    yK = y**cut
    a = (1 - yK) / (1 - y)
    da = (y * a - cut * yK) / (1 - y)
    d2a = (y * a + 2 * y * da - cut**2 * yK) / (1 - y)
    phi = 1 + v * a
    dphi = (1 + v) * a + v * da
    d2phi = (1 + v) * (a + 2 * da) + v * d2a
    curve = a * (d2phi / phi - (dphi / phi) ** 2)
    log = np.log1p(v)
    summed = np.exp(-start * log) * -np.expm1(-more[..., None] * log) / v  # of x^(-t-1)
    return np.stack([mean * more, mean**2 * more + summed @ (curve * dv)])


@lru_cache(maxsize=16)
def _averages(p: bytes, K: bytes, T: bytes, clients: int) -> np.ndarray:
    """The means over the rounds of E omega_t and E omega_t^2, (2, settings, clients), from bytes of float arrays."""
    rounds, rates = np.repeat(np.frombuffer(T), clients), np.frombuffer(p)
    settled = np.minimum(_settled(rates), LONGEST)
    # a cut-off beyond the run, or one that no interval comes to, is none
    cut = np.minimum(np.repeat(np.frombuffer(K), clients), np.minimum(rounds, settled))
    out = np.empty((2, rates.size))
    pairs, which = np.unique(np.stack([rates, cut], axis=1), axis=0, return_inverse=True)
    order = np.argsort(which, axis=None, kind="stable")
    ends = np.searchsorted(which.ravel()[order], np.arange(len(pairs) + 1))
    for (rate, k), start, end in zip(pairs, ends, ends[1:], strict=False):
        places = order[start:end]
        lengths, table = rounds[places], int(settled[places[0]])
        longest = int(min(2.0 ** np.ceil(np.log2(lengths.max())), table))
        sums = _sums(float(rate), int(k), longest)[:, np.minimum(lengths, longest).astype(int) - 1]
        late = lengths > longest
        if late.any():
            sums[:, late] += _later(float(rate), float(k), longest, lengths[late])
        out[:, places] = sums / lengths
    return out.reshape(2, -1, clients)


def _average_square(p: np.ndarray, K: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""$\frac1T\sum_{t<T}$ of $\mathbb E\,\omega_t^n$ and of $\mathbb E(\omega_t^n)^2$, and p; all (..., N)."""
    rarest = float(p.min())
    if T.max() > LONGEST and _settled(np.asarray(rarest)) > LONGEST:
        raise FedboundsError(
            f"W follows from p, K, T for T up to {LONGEST} where a rate is as small as {rarest:.6g}, and "
            f"T = {T.max():.12g}: give W (Theorem 3 bounds it), "
            "or take a form that needs none, as fedau/corollary-4:repaired"
        )
    shape = np.broadcast_shapes(p.shape[:-1], K.shape, T.shape)
    K, T = np.broadcast_to(K, shape), np.broadcast_to(T, shape)
    p = np.broadcast_to(p, (*shape, p.shape[-1]))
    mean, square = _averages(p.tobytes(), K.tobytes(), T.tobytes(), p.shape[-1])
    return mean.reshape(p.shape), square.reshape(p.shape), p


def weight_error(p: np.ndarray, K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    r"""The weight error of FedAU with cut-off K under Bernoulli participation, exactly.

    $$W=\frac1{NT}\sum_{t<T}\sum_n\mathbb E(p_n\omega_t^n-1)^2$$

    Source: Wang & Ji 2024, the left-hand side of eq. (7).
    """
    mean, square, rates = _average_square(*(np.asarray(one, dtype=float) for one in (p, K, T)))
    return np.mean(np.maximum(rates**2 * square - 2 * rates * mean + 1, 0.0), axis=-1)


def mean_weight_moment(p: np.ndarray, K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    r"""The mean over the rounds of $\mathbb E\,Q_t$ for FedAU under Bernoulli participation, exactly.

    $$\bar Q=\frac1{NT}\sum_{t<T}\sum_np_n\mathbb E(\omega_t^n)^2$$

    Far below the bound on every path: at most $\frac1N\sum_n(\frac{2-p_n}{p_n}+p_n)$ whatever K is.

    Source: Wang & Ji 2024, Theorem 2, whose last term needs it and no more.
    """
    _, square, rates = _average_square(*(np.asarray(one, dtype=float) for one in (p, K, T)))
    return np.mean(rates * square, axis=-1)


def largest_weight_moment(p: np.ndarray, K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    r"""The essential supremum of $Q=\max_{t<T}\frac1N\sum_np_n(\omega_t^n)^2$ for FedAU under Bernoulli participation.

    $$\frac1N\sum_np_n\,m_n^2,\qquad m_n=\min(K,\max(T-1,1))\text{ if }p_n<1,\quad m_n=1\text{ if }p_n=1$$

    The weights are largest together when nobody takes part until the cut-off or the round before last.

    Source: Wang & Ji 2024, Theorem 2, whose step sizes need Q before the run.
    """
    p = np.asarray(p, dtype=float)
    return np.mean(p * np.where(p < 1, _largest_weight(K, T), 1.0) ** 2, axis=-1)


def largest_weight_error(p: np.ndarray, K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    r"""The essential supremum of $\max_{t<T}\frac1N\sum_n(p_n\omega_t^n-1)^2$ for FedAU, Bernoulli participation.

    $$\frac1N\sum_{p_n<1}\max\{(1-p_n)^2,(p_nm-1)^2\},\qquad m=\min(K,\max(T-1,1))$$

    In round $m$ every client whose $p_n<1$ may have any of the weights 1 (present in every round) and $m$ (present in
    the round before at most), whatever the others do, and no weight lies outside $[1,m]$.

    Source: Wang & Ji 2024, Assumption 5, Option 1.
    """
    p = np.asarray(p, dtype=float)
    return np.mean(np.where(p < 1, np.maximum((1 - p) ** 2, (p * _largest_weight(K, T) - 1) ** 2), 0.0), axis=-1)


def _largest_weight(K: np.ndarray | float, T: np.ndarray | float) -> np.ndarray:
    """Of a client that may be absent, over all records and rounds t < T, (..., 1)."""
    return np.minimum(K, np.maximum(np.asarray(T, dtype=float) - 1, 1))[..., None]
