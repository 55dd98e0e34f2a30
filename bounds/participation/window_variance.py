r"""Exact variance of a client's mean participation weight over a window of rounds, in closed form.

The paper replaces $\mathrm{Var}(\overline{q^n_{t_0}})$ by its limit $\hat\upsilon^2/P$, or for independent
rounds by $\upsilon^2/P$. Here it is exact at every $P$. Weights have no unit, nor have their variances.

Source: Wang & Ji 2022, *A Unified Analysis of Federated Learning with Arbitrary Client Participation*,
Section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.inputs.checks import check_count, check_number, check_vector


def without_replacement_variance(clients: int, participants: int, interval: int = 1) -> float:
    r"""Variance for $S$ of $N$ clients, uniform without replacement, independent rounds: $\frac{N-S}{SN^2P}$.

    Args:
        clients: N.
        participants: S, each with weight 1/S.
        interval: P, the length of the window in rounds.

    Source: Wang & Ji 2022, Proposition 4.7 ($\upsilon^2/P$), exact for this sampling.
    """
    N, S = _cohort(clients, participants)
    return (N - S) / (S * N**2 * check_count("interval", interval))


def markov_correlation(groups: int, leave: float) -> float:
    r"""The correlation $r=1-\frac{pG}{G-1}$ of successive rounds when one group of several is active.

    Args:
        groups: G, at least 2.
        leave: p in [0, 1], the probability that the active group is left for a uniform other one.

    Source: the one eigenvalue below 1 of the symmetric chain on G states.
    """
    G = check_count("groups", groups, 2, why="the active group leaves for another one")
    return 1 - check_number("leave", leave, 0, 1) * G / (G - 1)


def markov_window_factor(correlation: float, interval: int) -> float:
    r"""The factor $c_P$ from variance to variance of the window mean, for a geometric autocovariance.

    $$c_P=\frac1P\Big[1+2\sum_{p<P}\Big(1-\frac pP\Big)r^p\Big]
         =\frac1P\Big[\frac{1+r}{1-r}-\frac{2r(1-r^P)}{P(1-r)^2}\Big]$$

    The sum is used where the second form cancels, P(1-r) < 1.

    Args:
        correlation: r in [-1, 1], between successive rounds.
        interval: P, the length of the window in rounds.

    Source: exact where Wang & Ji 2022, Lemma 4.5 and Proposition 4.6 have the limit $\hat\upsilon^2/P$.
    """
    r, P = check_number("correlation", correlation, -1, 1), check_count("interval", interval)
    if P * (1 - r) < 1:
        lag = np.arange(1, P)
        return float((1 + 2 * ((1 - lag / P) * r**lag).sum()) / P)
    return ((1 + r) / (1 - r) - 2 * r * (1 - r**P) / (P * (1 - r) ** 2)) / P


class PeriodicWindow(NamedTuple):
    r"""Exact moments of a window of periodic availability, averaged over the random offset.

    The mean of client $n$ of group $g$ is $\kappa_g/n_g$; the covariance of clients of groups $g\ne h$ is
    $\beta_{gh}/(n_gn_h)$, and within a group $\frac{\beta_{gg}}{n_g^2}+\omega_g(\mathbb1[n=n']-\frac1{n_g})$.
    """

    share: np.ndarray  # $\kappa$, the expected share of the window in which each group is available, (groups,)
    between: np.ndarray  # $\beta$, the covariance of these shares over the offset, (groups, groups)
    within: np.ndarray  # $\omega$, from the sampling inside each group, (groups,)


def periodic_window(
    sizes: ArrayLike,
    participants: int,
    slot: int,
    interval: int,
    start: int = 0,
    *,
    permutation: bool = True,
    offset: int | None = None,
) -> PeriodicWindow:
    r"""The moments of a window when groups of clients are available in turn.

    Group 0 is available first, for `offset` rounds; then the next groups in turn, `slot` rounds each. While a
    group of $n$ clients is available, $S$ of them take part in each round with weight $1/S$. Given the
    offset, the shares are fixed and slots are independent: $\omega$ is the expected sum over slots of
    $\frac{c}{(SP)^2n}$, with $c$ the slot's `ragged_places`, or $\frac{S(n-S)}{n-1}$ per independent round.

    Args:
        sizes: clients per group, (groups,), in the order of their turns.
        participants: S, at most the smallest group.
        slot: rounds of availability at a time.
        interval: P, the length of the window in rounds.
        start: the window's first round.
        permutation: the clients of a slot are taken in the order of random permutations, begun anew in each
            slot; otherwise each round's S are uniform without replacement, and independent.
        offset: the length of the first slot, in [1, slot]; none means uniformly random.

    Source: periodic availability in the experiments of Wang & Ji 2022, Section 6.
    """
    n = np.array([check_count("group size", size) for size in check_vector("sizes", sizes)])
    G = len(n)
    S = check_count("participants", participants, high=int(n.min()), why="at most the smallest group")
    slot, P, t0 = check_count("slot", slot), check_count("interval", interval), check_count("start", start, 0)
    first = np.arange(1, slot + 1) if offset is None else np.array([check_count("offset", offset, high=slot)])

    turn = np.arange(t0 // slot, (t0 + P + slot - 1) // slot + 1)  # all slots that some offset puts in the window
    group = turn % G
    end = first[:, None] + turn * slot  # (offsets, slots)
    begin = np.where(turn > 0, end - slot, 0)
    low, high = np.clip(t0, begin, end), np.clip(t0 + P, begin, end)
    if permutation:
        ragged = ragged_places((low - begin) * S, (high - begin) * S, n[group])
    else:
        ragged = (high - low) * (S * (n[group] - S) / np.maximum(n[group] - 1, 1))
    in_group = np.eye(G)[group]  # (slots, groups)
    shares = (high - low) @ in_group / P
    share = shares.mean(axis=0)
    between = (shares - share).T @ (shares - share) / len(first)
    return PeriodicWindow(share, between, (ragged @ in_group).mean(axis=0) / (n * (S * P) ** 2))


def ragged_places(first: ArrayLike, last: ArrayLike, size: ArrayLike, *, reshuffle: bool = True) -> np.ndarray:
    r"""The sum over cycles of $\frac{m(n-m)}{n-1}$, where the places taken include $m$ of a cycle's $n$.

    The counts of the $n$ clients have covariance $\frac1n(I-\frac1n\mathbf1\mathbf1^\top)$ times this number.
    Whole cycles contribute nothing. Arrays broadcast.

    Args:
        first: the first place taken, from 0.
        last: one past the last place taken.
        size: n, the length of a cycle.
        reshuffle: a new permutation each cycle, or the same one forever.

    Example:
        >>> float(ragged_places(0, 5, 5)), float(ragged_places(3, 6, 5))
        (0.0, 2.5)

    Source: variance of sampling without replacement (hypergeometric).
    """
    a, b, n = np.asarray(first), np.asarray(last), np.asarray(size)

    def ragged(m: np.ndarray) -> np.ndarray:
        return m * (n - m) / np.maximum(n - 1, 1)

    if not reshuffle:
        return ragged((b - a) % n)
    within_one = b <= (a // n + 1) * n
    return np.where(within_one, ragged(b - a), ragged(n - a % n) + ragged(b % n))


def _cohort(clients: int, participants: int) -> tuple[int, int]:
    N = check_count("clients", clients)
    return N, check_count("participants", participants, high=N, why="at most all clients")
