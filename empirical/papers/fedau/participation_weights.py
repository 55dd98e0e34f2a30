r"""The weights of clients whose participation rates nobody knows, estimated online: plain NumPy, without a simulator.

FedAU multiplies the update of client n by the mean $\omega^n$ of its past *participation intervals*, the rounds from
one participation to the next, each cut off at length K. The mean interval of a client that takes part with probability
p is 1/p, so that frequent and rare clients count the same. Three numbers per client are all that is kept.

Source: Wang & Ji 2024, *A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging*,
Algorithm 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory, check_number, is_number, quote


class Intervals(NamedTuple):
    """What is known of the clients' participation intervals; any shape that ends with the clients."""

    weights: np.ndarray  # $\omega_t$, float64
    completed: np.ndarray  # M, how many intervals are complete, int32
    running: np.ndarray  # S, rounds since the last complete one, int32; below K

    @staticmethod
    def none_yet(shape: int | tuple[int, ...]) -> Intervals:
        r"""Before round 0: $\omega_0=1$, M = S = 0."""
        return Intervals(np.ones(shape), np.zeros(shape, np.int32), np.zeros(shape, np.int32))

    def after(self, t: int, present: np.ndarray, cutoff: float, rate: float | None = None) -> Intervals:
        r"""After round t, in which the clients `present` (booleans) took part.

        An interval is complete when the client takes part or S reaches K. At that moment all t + 1 rounds lie in
        complete intervals, so that their mean length is $\omega_{t+1}=(t+1)/M$.
        """
        running = self.running + np.int32(1)
        ends = present if math.isinf(cutoff) else present | (running >= cutoff)
        done = np.flatnonzero(ends)
        weights, completed = self.weights.copy(), self.completed.copy()
        flat, many, lengths = weights.reshape(-1), completed.reshape(-1), running.reshape(-1)
        count = many[done] + np.int32(1)
        many[done] = count
        if rate is None:
            flat[done] = (t + 1) / count
        else:  # the first interval replaces the weight 1
            flat[done] += np.where(count == 1, 1.0, rate) * (lengths[done] - flat[done])
        lengths[done] = 0
        return Intervals(weights, completed, running)


@dataclass(eq=False)
class ParticipationWeights:
    r"""FedAU's weights $\omega_t^n$, updated after every round with who took part in it.

    $$\omega_{t+1}^n=\frac{t+1}{M_{t+1}^n}\ \text{ when an interval of client } n \text{ ends in round } t,\qquad
      \omega_{t+1}^n=\omega_t^n\ \text{ otherwise},$$

    the mean length of its M intervals so far; an interval ends when the client takes part, or after K rounds. With a
    `rate` a it is their exponentially weighted mean, $\omega\leftarrow(1-a)\omega+aS$; the first interval replaces the
    initial 1. A round's weights depend on the rounds before it only: read `weights`, then `update`.

    A client that never takes part has weight 1 until round K and K from then on; it is never used. Rounds in which
    nobody takes part are rounds: update with nobody.

    Args:
        clients: N, or a shape that ends with it, such as (seeds, N).
        cutoff: K, an integer of at least 1, or infinity for none. Large K: variance; small K: weights of rare clients
            are too small, $1-(1-p)^K$ times what they should be.
        rate: a, in (0, 1]; none for the plain mean.

    Attributes:
        weights: $\omega_t$ of the coming round, (clients,), read-only; each in [1, K].
        rounds: t, how many rounds were seen.
        intervals: M and S beside the weights.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> estimate = ParticipationWeights(clients=3, cutoff=4)
        >>> for present in [[True, False, False], [True, True, False], [True, False, False], [True, True, False]]:
        ...     estimate.update(np.array(present))
        >>> estimate.weights
        array([1., 2., 4.])

    Source: Wang & Ji 2024, Algorithm 2; the exponentially weighted variant is named in its Section 3.
    """

    clients: int | tuple[int, ...]
    cutoff: float = 50
    rate: float | None = None
    rounds: int = field(init=False, default=0)
    intervals: Intervals = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = self.clients if isinstance(self.clients, tuple) else (self.clients,)
        shape = tuple(check_count("clients", size) for size in sizes)
        check_memory(f"weights for clients = {quote(self.clients)}", 16 * math.prod(shape))
        self.cutoff, self.rate = check_cutoff("cutoff", self.cutoff), check_rate("rate", self.rate)
        self.intervals = Intervals.none_yet(shape)

    @property
    def weights(self) -> np.ndarray:
        r"""$\omega_t$ of the coming round, (clients,); a later update leaves the array as it is."""
        weights = self.intervals.weights.view()
        weights.setflags(write=False)
        return weights

    def update(self, participated: np.ndarray) -> None:
        """Take note of one more round.

        Args:
            participated: who took part, booleans (clients,).

        Raises:
            FedboundsError: something else than one boolean per client; nothing is changed.
        """
        present = np.asarray(participated)
        shape = self.intervals.weights.shape
        if present.dtype != bool or present.shape != shape:
            raise FedboundsError(
                f"participated has shape {present.shape} of {present.dtype}; expected one boolean per client, {shape}: "
                "of a list of names, numpy.isin(all_names, names)"
            )
        self.intervals = self.intervals.after(self.rounds, present, self.cutoff, self.rate)
        self.rounds += 1


def weight_paths(participated: ArrayLike, cutoff: float = 50, rate: float | None = None) -> np.ndarray:
    r"""The weights $\omega_0,\dots,\omega_{T-1}$ that FedAU uses in the rounds of a record.

    Args:
        participated: who took part, (T, ..., N); anything but zero is a participation.
        cutoff: K, an integer of at least 1, or infinity.
        rate: of the exponentially weighted variant, or none.

    Returns:
        In the shape of the record: row t depends on the rows before t only.

    Raises:
        FedboundsError: a number outside its domain, or a record without rounds or clients.

    Example:
        >>> weight_paths([[0], [0], [1], [0], [0]], cutoff=3).ravel().tolist()
        [1.0, 1.0, 1.0, 3.0, 3.0]

    Source: Wang & Ji 2024, Algorithm 2.
    """
    present = np.asarray(participated) != 0
    if present.ndim < 2 or not present.size:
        raise FedboundsError(f"participated has shape {present.shape}; expected (rounds, clients)")
    estimate = ParticipationWeights(present.shape[1:], cutoff, rate)
    paths = np.empty(present.shape)
    for t, here in enumerate(present):
        paths[t] = estimate.weights
        estimate.update(here)
    return paths


def check_cutoff(name: str, value: object) -> float:
    """K as an int, or infinity."""
    if is_number(value) and value == math.inf:
        return math.inf
    return check_count(name, value, why="rounds after which an interval is cut off; inf for never")


def check_rate(name: str, value: object) -> float | None:
    """The rate of the exponentially weighted mean as a float, or None for the plain mean."""
    if value is None:
        return None
    if is_number(value) and value == 0:
        raise FedboundsError(f"{name} = {quote(value)} must be a number in (0, 1]; leave it out for the plain mean")
    return check_number(name, value, 0, 1, why="the share of the newest interval")
