r"""Mean and covariance of the models round by round, when participation is given or independent between rounds.

In a round the model changes by $\sum_nq^n\Delta_n(x)=D_qx+b_q+\sum_nq^n\zeta_n$, where $D_q=\sum_nq^nD_n$. With
weights of mean $\mu$ and covariance $\Sigma=\sum_kw_kw_k^\top$, independent of the model with mean m and covariance C,
$$\mathrm{Cov}(x+D_qx+b_q)=(I+D_\mu)C(I+D_\mu)^\top+\sum_k\big(E_kCE_k^\top+g_kg_k^\top\big),\quad
  E_k=\sum_nw_k^nD_n,\quad g_k=\sum_nw_k^n(D_nm+b_n).$$
Any covariance between clients is therefore as cheap as independent clients: one term for each of its at most N
eigenvalues, and with weights that are given none.

Source: the law of total variance; for equal Hessians the recursion is that of Wang & Ji 2022, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fedbounds.empirical.algorithms import ServerSchedule
from fedbounds.empirical.simulation.moments.local_work import Coordinates, LocalWork, apply, sandwich, trace

BLOCK = 512  # recorded rounds that are weighed in one matrix product
FITS = 20_000  # numbers that are worked on at a time: they stay in the cache, and products too small for threads
NEGLIGIBLE = 1e-14  # eigenvalues of a covariance below this share of the largest are rounding


class WeightCovariance(NamedTuple):
    """What random weights add to the covariance."""

    increments: np.ndarray  # $E_k$, (K, d) or, symmetric, (K, d, d)
    shifts: np.ndarray  # $e_k=\sum_nw_k^nb_n$, (K, d)

    def covariance(self, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        r"""$\sum_k(E_kCE_k^\top+g_kg_k^\top)$ with $g_k=E_km+e_k$."""
        if self.increments.ndim == 2:
            moved = self.increments * mean + self.shifts
            return (self.increments**2).sum(axis=0) * covariance + (moved**2).sum(axis=0)
        moved = self.increments @ mean + self.shifts
        total, block = moved.T @ moved, max(1, FITS // covariance.size)
        for start in range(0, len(moved), block):
            some = self.increments[start : start + block]
            total += (some @ covariance @ some).sum(axis=0)
        return total


class RoundLaw(NamedTuple):
    r"""The law of one round's update, given the model x: mean $D_\mu x+b_\mu$, and what is random about it."""

    increment: np.ndarray  # $D_\mu$, (d,) or (d, d)
    shift: np.ndarray  # $b_\mu$, (d,)
    noise: np.ndarray  # $\sum_n\mathbb E(q^n)^2\,\mathrm{Cov}\,\zeta_n$, in the shape of the increment
    spread: WeightCovariance | None = None  # from random weights, or None


def noise_weights(second_moment: np.ndarray, common: bool) -> np.ndarray:
    r"""The weight of a client's noise covariance, $\mathbb E(q^n)^2$; of common noise, $\mathbb E(\sum_nq^n)^2$."""
    return second_moment.sum()[None] if common else np.diag(second_moment)


def weighted_sum(weights: np.ndarray, operators: np.ndarray) -> np.ndarray:
    """The weighted sum over clients: (N,), (N or 1, ...) -> (...)."""
    if len(operators) == 1:
        return weights.sum() * operators[0]
    present = np.flatnonzero(weights)
    if len(present) < len(weights):
        weights, operators = weights[present], operators[present]
    return np.tensordot(weights, operators, axes=1)


def random_round(work: LocalWork, mean: np.ndarray, covariance: np.ndarray, *, common: bool = False) -> RoundLaw:
    """The law of a round whose weights are random."""
    return RoundLaw(
        weighted_sum(mean, work.increments),
        mean @ work.shifts,
        weighted_sum(noise_weights(covariance + np.outer(mean, mean), common), work.noise),
        spread(work, covariance),
    )


def spread(work: LocalWork, covariance: np.ndarray) -> WeightCovariance | None:
    """The terms $E_k, e_k$ of a covariance of the weights (N, N); None if it is zero."""
    if not covariance.any():
        return None
    eigenvalues, vectors = np.linalg.eigh(covariance)
    kept = eigenvalues > NEGLIGIBLE * eigenvalues[-1]
    roots = (vectors[:, kept] * np.sqrt(eigenvalues[kept])).T
    increments = work.increments
    if len(increments) == 1:
        increments = np.broadcast_to(increments, (roots.shape[1], *increments.shape[1:]))
    return WeightCovariance(np.tensordot(roots, increments, axes=1), roots @ work.shifts)


def recorded_rounds(work: LocalWork, q: np.ndarray, *, common: bool = False) -> Iterator[RoundLaw]:
    """The rounds of a record of weights, (rounds, N)."""
    if work.increments.ndim == 3:
        for row in q:
            squares = row.sum()[None] ** 2 if common else row**2
            yield RoundLaw(weighted_sum(row, work.increments), row @ work.shifts, weighted_sum(squares, work.noise))
        return
    for start in range(0, len(q), BLOCK):
        rows = q[start : start + BLOCK]
        totals = rows.sum(axis=1, keepdims=True)
        squares = totals**2 if common else (rows**2 if len(work.noise) > 1 else (rows**2).sum(axis=1, keepdims=True))
        increments = (rows if len(work.increments) > 1 else totals) @ work.increments
        yield from map(RoundLaw, increments, rows @ work.shifts, squares @ work.noise)


class State(NamedTuple):
    r"""The law of a model within an interval, before amplification.

    With $x_{t_0}$ of mean m and covariance C, $x=x_{t_0}+z+\Psi(x_{t_0}-m)+r$, where r has covariance R and is
    uncorrelated with $x_{t_0}$. The displacement from $x_{t_0}$ is kept apart so that a large $\eta$ cancels nothing.
    """

    start: np.ndarray  # m, (d,)
    start_covariance: np.ndarray  # C, (d,) or (d, d)
    displacement: np.ndarray  # z, (d,)
    transfer: np.ndarray  # $\Psi$, in the shape of C
    rest: np.ndarray  # R, in the shape of C

    @staticmethod
    def begin(start: np.ndarray, covariance: np.ndarray) -> State:
        """At the beginning of an interval."""
        nothing = np.zeros_like(covariance)
        return State(start, covariance, np.zeros_like(start), nothing, nothing)

    @property
    def mean(self) -> np.ndarray:
        """Of the model, (d,)."""
        return self.start + self.displacement

    def covariance(self, one: np.ndarray) -> np.ndarray:
        r"""$(I+\Psi)C(I+\Psi)^\top+R$."""
        return sandwich(one + self.transfer, self.start_covariance) + self.rest

    def squared_displacement(self) -> float:
        r"""$\mathbb E\|x-x_{t_0}\|^2=\|z\|^2+\operatorname{tr}\Psi C\Psi^\top+\operatorname{tr}R$."""
        spread = sandwich(self.transfer, self.start_covariance) + self.rest
        return float(self.displacement @ self.displacement) + trace(spread)

    def advance(self, law: RoundLaw, one: np.ndarray, added: np.ndarray) -> State:
        """After a round; `added` is the covariance that noise and random weights add."""
        return self._replace(
            displacement=self.displacement + apply(law.increment, self.mean) + law.shift,
            transfer=self.transfer + law.increment + apply(law.increment, self.transfer),
            rest=sandwich(one + law.increment, self.rest) + added,
        )

    def advance_frozen(self, law: RoundLaw, added: np.ndarray) -> State:
        """After a round in which all gradients are taken at the interval's first model."""
        return self._replace(
            displacement=self.displacement + apply(law.increment, self.start) + law.shift,
            transfer=self.transfer + law.increment,
            rest=self.rest + added,
        )

    def amplify(self, multiplier: float, one: np.ndarray) -> State:
        r"""The beginning of the next interval, $x_{t_0}+\eta(x-x_{t_0})$."""
        spread = sandwich(one + multiplier * self.transfer, self.start_covariance)
        return State.begin(self.start + multiplier * self.displacement, spread + multiplier**2 * self.rest)


def propagate(
    coordinates: Coordinates, laws: Iterable[RoundLaw], schedule: ServerSchedule
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    r"""Mean and covariance of $x_0,x_1,\dots$, one more than there are laws."""
    one, (interval, multiplier, frozen) = coordinates.identity, schedule
    state = State.begin(coordinates.start, np.zeros_like(one))
    mean, covariance = state.start, state.start_covariance
    yield mean, covariance
    for t, law in enumerate(laws, start=1):
        added = law.noise
        if law.spread is not None:
            added = added + law.spread.covariance(mean, covariance)
        state = state.advance_frozen(law, added) if frozen else state.advance(law, one, added)
        if t % interval == 0:
            state = state.amplify(multiplier, one)
            mean, covariance = state.start, state.start_covariance
        elif not frozen:
            mean, covariance = state.mean, state.covariance(one)
        yield mean, covariance
