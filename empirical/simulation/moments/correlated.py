r"""Mean and variance of the models when rounds of participation depend on each other and all Hessians are equal.

With weights that sum to one the model is linear in them: along an eigenvector of the Hessian, with
$\beta=(1-\gamma\lambda)^I$, $w=1-\beta$ and the mean center $z_t=\sum_nq_t^nc_n$ of the participants,
$$\hat x_{t+1}=\beta x_t+wz_t+\zeta_t .$$
So beside the variance of the model one needs its covariance with all the mean centers to come, which a round updates at
a cost of O((T - t) d). Within an interval $x_t=\Phi x_{t_0}+u_t$, and $x_{t_0+P}=(1+\eta(\Phi-1))x_{t_0}+\eta u$.

Source: Wang & Ji 2022, Algorithm 1 on quadratics with one Hessian, averaged over participation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.participation import PeriodicGroups, Permutation, Process
from fedbounds.empirical.participation.sampling import place_pairs
from fedbounds.empirical.simulation.moments.local_work import Coordinates, LocalWork

MOST_ROUNDS = 2000  # where every pair of rounds has a covariance of its own, of which nothing else is known


def correlated_rounds(
    coordinates: Coordinates,
    work: LocalWork,
    process: Process,
    rounds: int,
    *,
    interval: int = 1,
    multiplier: float = 1.0,
    frozen: bool = False,
    common: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    r"""Mean and variances, each (d,), of $x_0,\dots,x_T$."""
    increment, shifts, noise = work.increments[0], work.shifts, work.noise[0]
    pull = np.zeros_like(increment) if frozen else increment  # what the round does to the displacement so far
    ahead = center_covariances(process, shifts, rounds)
    start, start_variance = coordinates.start, np.zeros_like(increment)
    with_start = np.zeros((rounds, len(increment)))  # Cov(x_{t_0}, b_{q_u}) for rounds u from t on
    yield start, start_variance

    moved, mean_move, variance, with_move, both = _interval_begins(rounds, len(increment))
    for t in range(rounds):
        now = ahead(t)  # Cov(b_{q_t}, b_{q_u}) for rounds u from t on
        mean = process.mean(t)
        squares = 1.0 if common else float(mean @ mean + process.variance(t).sum())
        mean_move = mean_move + pull * mean_move + increment * start + mean @ shifts
        variance = (1 + pull) ** 2 * variance + now[0] + 2 * (1 + pull) * with_move[0] + squares * noise
        both = (1 + pull) * both + with_start[0]
        moved = moved + increment + pull * moved
        with_move = ((1 + pull) * with_move + now)[1:]
        with_start = with_start[1:]
        if (t + 1) % interval == 0:
            carry = 1 + multiplier * moved
            start = start + multiplier * mean_move
            start_variance = carry**2 * start_variance + multiplier**2 * variance + 2 * multiplier * carry * both
            with_start = carry * with_start + multiplier * with_move
            moved, mean_move, variance, with_move, both = _interval_begins(rounds - t - 1, len(increment))
            yield start, start_variance
        elif frozen:
            yield start, start_variance
        else:
            carry = 1 + moved
            yield start + mean_move, carry**2 * start_variance + variance + 2 * carry * both


def _interval_begins(rounds_left: int, dimension: int) -> tuple[np.ndarray, ...]:
    """Phi - 1, the mean displacement, Var u, Cov(u, b_{q_u}) for the rounds left, Cov(x_{t_0}, u): all zero."""
    zero = np.zeros(dimension)
    return zero, zero, zero, np.zeros((rounds_left, dimension)), zero


def center_covariances(process: Process, vectors: np.ndarray, rounds: int) -> Callable[[int], np.ndarray]:
    r"""Covariances, coordinate by coordinate, of $\sum_nq_t^na_n$ and $\sum_nq_u^na_n$ for all rounds u from t on.

    Stationary processes cost T covariances (N, N); permutations and periodic groups of G O(d) and O(slot + G d)
    for each pair of rounds; any other process a covariance (N, N) for each pair, which is refused beyond 2000 rounds.
    """
    centered = vectors - vectors.mean(axis=0)
    if process.stationary:
        rows = np.array([_along(process.covariance(0, lag), centered) for lag in range(rounds)])
        return lambda t: rows[: rounds - t]
    if isinstance(process, Permutation):
        N, S, squares = process.clients, process.participants, (centered**2).sum(axis=0)
        return lambda t: place_pairs(t, np.arange(t, rounds), S, N)[:, None] / (S * S * N) * squares
    if isinstance(process, PeriodicGroups):
        return _periodic_covariances(process, centered, rounds)
    if rounds > MOST_ROUNDS:
        raise FedboundsError(
            f"rounds = {rounds}: {process.kind} participation is not stationary, and exact moments over it need the "
            f"covariance of every pair of rounds; at most {MOST_ROUNDS}, or give a record of participation (a matrix)"
        )
    return lambda t: np.array([_along(process.covariance(t, u), centered) for u in range(t, rounds)])


def _along(covariance: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The diagonal of A^T C A for vectors A (N, d) and a covariance C (N, N): (d,)."""
    return ((covariance @ vectors) * vectors).sum(axis=0)


def _periodic_covariances(process: PeriodicGroups, vectors: np.ndarray, rounds: int) -> Callable[[int], np.ndarray]:
    """Periodic availability: who is available correlates all rounds, the sampling inside a group those of one slot."""
    S, sizes, groups = process.participants, process.sizes, len(process.sizes)
    inside = process.labels == np.arange(groups)[:, None]
    means = inside @ vectors / sizes[:, None]
    scatter = inside @ (vectors - means[process.labels]) ** 2

    first = np.arange(1, process.slot + 1) if process.offset is None else np.array([process.offset])
    after = np.arange(rounds) - first[:, None]  # (offsets, rounds)
    turn = after // process.slot + 1
    place = np.where(turn > 0, after % process.slot, np.arange(rounds))
    group = turn % groups
    one_hot = group[..., None] == np.arange(groups)
    # of the offsets, which share of the first k has each group available in each round: (offsets + 1, rounds, groups)
    shares = np.concatenate([np.zeros((1, rounds, groups)), np.cumsum(one_hot, axis=0)]) / len(first)

    def ahead(t: int) -> np.ndarray:
        near = slice(t, min(t + process.slot, rounds))
        out = np.zeros((rounds - t, vectors.shape[1]))
        edges = [0, *(np.flatnonzero(np.diff(turn[:, t])) + 1), len(first)]  # offsets with one group available at t
        mean = shares[-1, t] @ means
        for low, high in pairwise(edges):
            out += (means[group[low, t]] - mean) * ((shares[high, t:] - shares[low, t:]) @ means)

        n = sizes[group[:, t]][:, None]
        if process.sampling == "permutation":
            pairs = place_pairs(place[:, t, None], place[:, near], S, n)
        else:
            pairs = np.equal(place[:, t, None], place[:, near]) * S * (n - S) / np.maximum(n - 1, 1)
        pairs = pairs * (turn[:, t, None] == turn[:, near]) / (S * S * n * len(first))
        out[: pairs.shape[1]] += pairs.T @ one_hot[:, t] @ scatter
        return out

    return ahead
