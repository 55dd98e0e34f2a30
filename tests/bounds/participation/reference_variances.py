"""Closed forms of the variance of a window mean under single processes, which the package computes for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_vector
from fedbounds.bounds.participation.window_variance import (
    _cohort,
    markov_correlation,
    markov_window_factor,
    periodic_window,
    ragged_places,
)


def permutation_variance(
    clients: int, participants: int, interval: int, start: int = 0, *, reshuffle: bool = True
) -> float:
    r"""Variance when clients are taken in the order of random permutations, S places a round.

    $$\mathrm{Var}(\overline{q^n})=\frac{1}{(SP)^2}\,\frac1N\Big(1-\frac1N\Big)
      \sum_{\text{cycles}}\frac{m(N-m)}{N-1}$$

    where $m$ is how many of a cycle's $N$ places lie in the window: zero if the window covers whole cycles.

    Args:
        clients: N, the length of a cycle in places.
        participants: S places per round; S need not divide N, a round may straddle two cycles.
        interval: P, the length of the window in rounds.
        start: the window's first round.
        reshuffle: a new permutation each cycle, or the same one forever.

    Source: Wang & Ji 2022, Proposition 4.2 (zero over whole cycles); hypergeometric at the ragged ends.
    """
    N, S = _cohort(clients, participants)
    P, first = check_count("interval", interval), check_count("start", start, 0)
    ragged = ragged_places(first * S, (first + P) * S, N, reshuffle=check_flag("reshuffle", reshuffle))
    return float(ragged) * (1 - 1 / N) / N / (S * P) ** 2


def group_markov_variance(groups: int, group_size: int, leave: float, interval: int = 1) -> float:
    r"""Variance under the stationary chain of equal groups, $\frac{c_P}{S^2}\frac1G(1-\frac1G)$.

    Args:
        groups: G equal groups, one active at a time.
        group_size: S, the clients of a group, each with weight 1/S while active.
        leave: p, the probability that the active group is left for a uniform other one.
        interval: P, the length of the window in rounds.

    Source: exact form of Wang & Ji 2022, Proposition 4.6.
    """
    factor = markov_window_factor(markov_correlation(groups, leave), interval)
    return factor * (1 - 1 / groups) / groups / check_count("group_size", group_size) ** 2


def markov_long_run_variance(groups: int, group_size: int, leave: float) -> float:
    r"""The long-run variance of the chain of groups, $\hat\upsilon^2=\mathrm{Var}(q)\frac{1+r}{1-r}$.

    Args:
        groups: G equal groups, one active at a time.
        group_size: S, the clients of a group.
        leave: p in (0, 1], and below 1 for two groups: otherwise the chain does not mix.

    Source: Wang & Ji 2022, Lemma 4.5, for this chain.
    """
    r = markov_correlation(groups, leave)
    if abs(r) >= 1:
        raise FedboundsError(f"leave = {leave:g} with groups = {groups} does not mix: no long-run variance")
    return group_markov_variance(groups, group_size, leave) * (1 + r) / (1 - r)


def stationary_window_variance(autocovariance: ArrayLike, interval: int) -> float:
    r"""Variance for a stationary sequence, $\frac1P[\gamma_0+2\sum_{p<P}(1-\frac pP)\gamma_p]$.

    Args:
        autocovariance: $\gamma_0,\gamma_1,\dots$, at least P of them.
        interval: P, the length of the window in rounds.

    Source: what Wang & Ji 2022, Lemma 4.5 (Billingsley, Theorem 27.4) takes the limit of.
    """
    gamma, P = check_vector("autocovariance", autocovariance), check_count("interval", interval)
    if len(gamma) < P:
        raise FedboundsError(f"autocovariance has {len(gamma)} lags; interval = {P} needs lags 0 to {P - 1}")
    lag = np.arange(1, P)
    return float(gamma[0] + 2 * ((1 - lag / P) * gamma[1:P]).sum()) / P


def long_run_variance(autocovariance: ArrayLike) -> float:
    r"""The long-run variance $\hat\upsilon^2=\gamma_0+2\sum_{p\ge1}\gamma_p$, summed over the lags given.

    Args:
        autocovariance: $\gamma_0,\gamma_1,\dots$, up to the last that matters.

    Source: Wang & Ji 2022, Lemma 4.5.
    """
    gamma = check_vector("autocovariance", autocovariance)
    return float(gamma[0] + 2 * gamma[1:].sum())


def periodic_groups_variance(
    sizes: ArrayLike,
    participants: int,
    slot: int,
    interval: int,
    start: int = 0,
    *,
    permutation: bool = True,
    offset: int | None = None,
) -> np.ndarray:
    r"""Variance for a client of each group under periodic availability, $\beta_{gg}/n_g^2+\omega_g(1-1/n_g)$.

    Arguments, errors, symbols and source as for `periodic_window`.
    """
    window = periodic_window(sizes, participants, slot, interval, start, permutation=permutation, offset=offset)
    n = np.asarray(sizes, dtype=float)
    return np.diag(window.between) / n**2 + window.within * (1 - 1 / n)
