r"""Participation of exchangeable clients: all, S sampled, or S at a time through permutations.

Every round has S places with weight $1/S$; $A=\frac1N(I-\frac1N\mathbf1\mathbf1^\top)$ is the covariance of one place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag
from fedbounds.bounds.participation.window_variance import ragged_places
from fedbounds.empirical.participation.process import Exchangeable, Round, equal_weights

REPEATS = ("merged", "independent")


class IndependentRounds(Exchangeable):
    """A process whose rounds are independent and alike."""

    @property
    def independent_rounds(self) -> bool:
        return True

    @property
    def stationary(self) -> bool:
        return True

    def window_kernel(self, t0: int, interval: int) -> float:
        return self.kernel(t0, t0) / interval


@dataclass(frozen=True)
class Full(IndependentRounds):
    r"""Everyone in every round, $q_t^n=\frac1N$.

    Args:
        clients: N.

    Raises:
        FedboundsError: N is not an integer of at least 1.

    Example:
        >>> Full(4).mean(0).tolist()
        [0.25, 0.25, 0.25, 0.25]

    Source: Wang & Ji 2022, Section 2 (local SGD as a special case).
    """

    clients: int
    kind: ClassVar[str] = "full"

    def __post_init__(self) -> None:
        self._settle(clients=check_count("clients", self.clients))

    @property
    def rates(self) -> np.ndarray:
        """One, (clients,)."""
        return np.ones(self.clients)

    @property
    def unnormalized(self) -> bool:
        """Always: everyone has 1/N."""
        return True

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """Everyone, for ever; `rng` is not used."""
        everyone = Round(np.arange(self.clients), equal_weights(self.clients))
        while True:
            yield everyone

    def kernel(self, t: int, u: int) -> float:
        """Zero: nothing is random."""
        return 0.0


@dataclass(frozen=True)
class WithReplacement(IndependentRounds):
    r"""S places a round, each given to a uniform client; $\mathrm{Cov}(q_t,q_t)=\frac1SA$.

    A client drawn k times has weight k/S, so that $\rho=1$ is the only bound on the participation norm.

    Args:
        clients: N.
        participants: S, from 1 to N.

    Raises:
        FedboundsError: a count outside its range.

    Example:
        >>> WithReplacement(2, 2).variance(0).tolist()
        [0.125, 0.125]

    Source: multinomial sampling; Wang & Ji 2022, Section 4.2.3 (independent participation).
    """

    clients: int
    participants: int
    kind: ClassVar[str] = "with-replacement"

    def __post_init__(self) -> None:
        self._settle(**_counts(self.clients, self.participants))

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """Fresh places in every round."""
        weights, block = equal_weights(self.participants), block_rounds(self.participants)
        while True:
            places = np.sort(rng.integers(self.clients, size=(block, self.participants)), axis=1)
            repeats = (places[:, 1:] == places[:, :-1]).any(axis=1)
            for row, repeated in zip(places, repeats.tolist(), strict=True):
                yield round_from_places(row) if repeated else Round(row, weights)

    def kernel(self, t: int, u: int) -> float:
        """1/(SN) for the same round."""
        return 1 / (self.participants * self.clients) if t == u else 0.0


@dataclass(frozen=True)
class WithoutReplacement(IndependentRounds):
    r"""S different clients a round, uniform; $\mathrm{Cov}(q_t,q_t)=\frac{N-S}{S(N-1)}A$.

    So the variance of a weight is $\upsilon^2=\frac{N-S}{SN^2}$.

    Args:
        clients: N.
        participants: S, from 1 to N, each with weight 1/S.

    Raises:
        FedboundsError: a count outside its range.

    Example:
        >>> WithoutReplacement(2, 1).variance(0).tolist()
        [0.25, 0.25]

    Source: Wang & Ji 2022, Section 6 ("independent" participation).
    """

    clients: int
    participants: int
    kind: ClassVar[str] = "without-replacement"

    def __post_init__(self) -> None:
        self._settle(**_counts(self.clients, self.participants))

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """A fresh subset in every round."""
        weights = equal_weights(self.participants)
        for chosen in subsets(self.clients, self.participants, rng):
            yield Round(chosen, weights)

    def kernel(self, t: int, u: int) -> float:
        """(N-S)/(SN(N-1)) for the same round."""
        N, S = self.clients, self.participants
        return (N - S) / (S * N * max(N - 1, 1)) if t == u else 0.0


@dataclass(frozen=True)
class Permutation(Exchangeable):
    r"""S clients a round, in the order of a random permutation of all N: regularized participation.

    Round t has the places $tS,\dots,tS+S-1$, and a cycle is N places long; no client has two places of a
    cycle. Where S does not divide N, a round may straddle two cycles; with reshuffling it may then hold a
    client twice, who gets weight 2/S. Windows of whole cycles, so all aligned ones of $N/\gcd(N,S)$ rounds,
    are regularized. Of a client that is drawn twice the round makes one local update of weight 2/S, or, with
    independent repeats, two of weight 1/S with noise of their own, as the published code of Wang & Ji (2022).

    $$\mathrm{Cov}(q_t,q_u)=\frac1{S^2}\Big(a-\frac b{N-1}\Big)A$$
    where of the $S^2$ pairs of places of the two rounds $a$ hold the same client and $b$ two different ones
    of a cycle.

    Args:
        clients: N.
        participants: S, from 1 to N.
        reshuffle: a new permutation for each cycle, or the same one for ever.
        repeats: "merged" (the default) or "independent".

    Raises:
        FedboundsError: a count outside its range, a flag that is none, or an unknown name.

    Example:
        >>> q = Permutation(6, 2).matrix(3, np.random.default_rng(0))
        >>> q.sum(axis=0).tolist()
        [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
        >>> Permutation(6, 2).window_covariance(0, 3).any()
        np.False_

    Source: Wang & Ji 2022, Proposition 4.2 and Section 6 ("regularized" participation).
    """

    clients: int
    participants: int
    reshuffle: bool = True
    repeats: str | None = None
    kind: ClassVar[str] = "permutation"

    def __post_init__(self) -> None:
        reshuffle = check_flag("reshuffle", self.reshuffle)
        repeats = check_repeats(self.repeats)
        self._settle(**_counts(self.clients, self.participants), reshuffle=reshuffle, repeats=repeats)

    @property
    def independent_repeats(self) -> bool:
        """As `repeats` says."""
        return self.repeats is not None

    @property
    def independent_rounds(self) -> bool:
        """Only where everyone takes part in every round."""
        return self.participants == self.clients

    @property
    def stationary(self) -> bool:
        """With one permutation for ever, or where everyone takes part in every round."""
        return not self.reshuffle or self.participants == self.clients

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """S places at a time through the cycles."""
        return sequential(np.arange(self.clients), self.participants, rng, self.reshuffle)

    def kernel(self, t: int, u: int) -> float:
        """(a - b/(N-1))/(S^2 N)."""
        N, S = self.clients, self.participants
        if self.reshuffle:
            return float(place_pairs(t, u, S, N)) / (S * S * N)
        ahead = (u - t) * S % N
        same = max(S - ahead, 0) + max(S - (N - ahead), 0)
        return (same - (S * S - same) / max(N - 1, 1)) / (S * S * N)

    def _alike(self, t0: int) -> int:
        return t0 % (self.clients // math.gcd(self.clients, self.participants))

    def window_kernel(self, t0: int, interval: int) -> float:
        """The ragged places of the window over (SP)^2 N."""
        N, S = self.clients, self.participants
        ragged = ragged_places(t0 * S, (t0 + interval) * S, N, reshuffle=self.reshuffle)
        return float(ragged) / (N * (S * interval) ** 2)


def place_pairs(i: int | np.ndarray, k: int | np.ndarray, participants: int, size: int | np.ndarray) -> np.ndarray:
    r"""The number $a-\frac b{n-1}$ for rounds i and k of reshuffled cycles of n places; arrays broadcast.

    Of the pairs of places of the two rounds, a are the same place and b two different places of one cycle.

    Example:
        >>> float(place_pairs(0, 0, 2, 3)), float(place_pairs(0, 1, 2, 3)), float(place_pairs(0, 2, 2, 3))
        (1.0, -1.0, 0.0)
    """
    S = participants
    (cycle_i, head_i), (cycle_k, head_k) = ((r * S // size, np.minimum(S, size - r * S % size)) for r in (i, k))
    tail_i, tail_k = S - head_i, S - head_k
    in_one_cycle = (
        (cycle_i == cycle_k) * (head_i * head_k + tail_i * tail_k)
        + (cycle_i == cycle_k + 1) * head_i * tail_k
        + (cycle_i + 1 == cycle_k) * tail_i * head_k
    )
    same = np.equal(i, k) * S
    return same - (in_one_cycle - same) / np.maximum(np.subtract(size, 1), 1)


def sequential(
    members: np.ndarray, participants: int, rng: np.random.Generator, reshuffle: bool = True
) -> Iterator[Round]:
    """Rounds of S places at a time through permutations of `members`, one after the other."""
    order, left, weights = rng.permutation(members), members[:0], equal_weights(participants)
    while True:
        straddles = len(left) > 0  # then the first round may hold a client of both cycles
        places = np.concatenate([left, order])
        full = len(places) - len(places) % participants
        left = places[full:]
        for clients in np.sort(places[:full].reshape(-1, participants), axis=1):
            twice = straddles and (clients[1:] == clients[:-1]).any()
            yield round_from_places(clients) if twice else Round(clients, weights)
            straddles = False
        if reshuffle:
            order = rng.permutation(members)


def permuted_clients(clients: int, rng: np.random.Generator) -> Iterator[int]:
    """The clients in the order of one permutation of all of them after the other, for ever."""
    while True:
        yield from rng.permutation(clients).tolist()


def subsets(clients: int, participants: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Independent uniform subsets, sorted, (participants,) each."""
    while clients > 1000:  # below, it is faster to order random keys for many rounds at once
        yield np.sort(rng.choice(clients, participants, replace=False, shuffle=False))
    while True:
        keys = rng.random((block_rounds(clients), clients))
        yield from np.sort(np.argpartition(keys, participants - 1, axis=1)[:, :participants], axis=1)


def block_rounds(size: int) -> int:
    """How many rounds to draw at once, where each needs `size` random numbers, so that a block fits the cache."""
    return min(64, max(1, 2**13 // size))


def check_repeats(repeats: object) -> str | None:
    """How a client that is drawn twice in a round computes: None for one update of the weights together."""
    return "independent" if repeats is not None and check_choice("repeats", repeats, REPEATS) != "merged" else None


def round_from_places(places: np.ndarray) -> Round:
    """The round in which each place counts 1/S."""
    clients, counts = np.unique(places, return_counts=True)
    return Round(clients, counts / len(places))


def _counts(clients: int, participants: int) -> dict[str, int]:
    N = check_count("clients", clients)
    S = check_count("participants", participants, high=N, why="at most all clients")
    return {"clients": N, "participants": S}
