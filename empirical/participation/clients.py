r"""Participation of independent clients: Markov chains and cycles, one for each client.

A participant has weight 1/N, whoever else takes part: $N q_t^n = \mathbb 1_t^n$.

Source: Wang & Ji 2024, Appendix C.6.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory, check_number
from fedbounds.bounds.participation.window_variance import markov_window_factor
from fedbounds.empirical.participation.process import Process, Round
from fedbounds.empirical.participation.sampling import block_rounds

Probability = float | Sequence[float] | np.ndarray


class IndependentClients(Process):
    """A process of indicators that are independent between clients, with one target probability each."""

    probability: Probability

    def _settle_clients(self) -> None:
        """Check clients and probabilities: one for all, or one per client."""
        N = check_count("clients", self.clients)
        check_memory(f"the state of each of clients = {N}", 64 * N)
        p = self.probability.tolist() if isinstance(self.probability, np.ndarray) else self.probability
        if isinstance(p, Sequence) and not isinstance(p, str):
            if len(p) != N:
                raise FedboundsError(f"probability has {len(p)} entries; expected one per client, {N}")
            p = tuple(check_number(f"probability[{n}]", value, 0, 1) for n, value in enumerate(p))
        else:
            p = check_number("probability", p, 0, 1)
        self._settle(clients=N, probability=p)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """One probability per client, (clients,)."""
        return np.broadcast_to(np.asarray(self.probability, dtype=float), (self.clients,))

    @property
    def unnormalized(self) -> bool:
        return True

    @property
    def sums_to_one(self) -> bool:
        """Where everyone always takes part."""
        return bool((self.rates == 1).all())

    @property
    def independent_clients(self) -> bool:
        return True

    @property
    def exchangeable(self) -> bool:
        """Whether all probabilities are equal."""
        return bool((self.probabilities == self.probabilities[0]).all())

    @abstractmethod
    def presences(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Who takes part, round after round, in blocks of booleans (some rounds, clients)."""

    @abstractmethod
    def joint(self, t: int, u: int) -> np.ndarray:
        r"""Exact probability that a client takes part in both rounds, (clients,)."""

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """The clients that are present, each with weight 1/N."""
        share = np.full(self.clients, 1 / self.clients)
        share.setflags(write=False)
        for block in self.presences(rng):
            for row in block:
                clients = np.flatnonzero(row)
                yield Round(clients, share[: len(clients)])

    def mean(self, t: int) -> np.ndarray:
        return self.joint(t, t) / self.clients

    def covariance(self, t: int, u: int) -> np.ndarray:
        return np.diag(self._covariances(t, u))

    def _covariances(self, t: int, u: int) -> np.ndarray:
        return (self.joint(t, u) - self.joint(t, t) * self.joint(u, u)) / self.clients**2

    def _sum_defect(self) -> str:
        return "a participant has weight 1/N, whoever else takes part"


@dataclass(frozen=True)
class Markovian(IndependentClients):
    r"""Every client is a stationary chain of two states, present and absent.

    An absent client comes with probability $\min\{a,\frac p{1-p}\}$ in the next round, a present one leaves with the
    probability that keeps p stationary, $\Pr\{\text{leave}\}=\Pr\{\text{come}\}\,\frac{1-p}p$. So

    $$\mathrm{Cov}(\mathbb 1_t,\mathbb 1_u)=p(1-p)\,r^{|t-u|},\qquad r=1-\Pr\{\text{come}\}-\Pr\{\text{leave}\}.$$

    Args:
        clients: N.
        probability: p, one for all or one per client, in [0, 1]; a client with 0 never comes, one with 1 never leaves.
        come: a, the most that the probability to come may be, in (0, 1].

    Raises:
        FedboundsError: a count or probability outside its range, or not one probability per client.

    Example:
        >>> process = Markovian(2, [0.5, 0.02])
        >>> process.come_rates.round(6).tolist(), process.leave_rates.round(6).tolist()
        ([0.05, 0.020408], [0.05, 1.0])

    Source: Wang & Ji 2024, Appendix C.6, "Markovian", with a = 0.05.
    """

    clients: int
    probability: Probability
    come: float = 0.05
    kind: ClassVar[str] = "markovian"

    def __post_init__(self) -> None:
        self._settle_clients()
        self._settle(come=check_number("come", self.come, 0, 1))
        if self.come == 0:
            raise FedboundsError("come = 0 must be in (0, 1]: no client would ever participate")

    @property
    def rates(self) -> np.ndarray:
        """The probabilities, (clients,)."""
        return self.probabilities

    @cached_property
    def come_rates(self) -> np.ndarray:
        """From absent to present, (clients,)."""
        p = self.probabilities
        return np.minimum(self.come, np.divide(p, 1 - p, out=np.full(len(p), np.inf), where=p < 1))

    @cached_property
    def leave_rates(self) -> np.ndarray:
        """From present to absent, (clients,)."""
        p = self.probabilities
        odds = np.divide(1 - p, p, out=np.ones(len(p)), where=p > 0)
        return np.where(p > 0, np.minimum(self.come_rates * odds, 1.0), 1.0)

    @cached_property
    def correlations(self) -> np.ndarray:
        """r, of successive rounds, (clients,)."""
        return 1 - self.come_rates - self.leave_rates

    @property
    def independent_rounds(self) -> bool:
        """Where every client is always or never there, or forgets at once."""
        p = self.probabilities
        return bool(((p == 0) | (p == 1) | (self.correlations == 0)).all())

    @property
    def stationary(self) -> bool:
        """Always: the first round has the stationary law."""
        return True

    def presences(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """One uniform number per client and round; the first decides with the stationary law."""
        N, stay = self.clients, 1 - self.leave_rates
        chance = self.probabilities
        while True:
            block = rng.random((block_rounds(N), N))
            present = np.empty(block.shape, dtype=bool)
            for numbers, row in zip(block, present, strict=True):
                np.less(numbers, chance, out=row)
                chance = np.where(row, stay, self.come_rates)
            yield present

    def joint(self, t: int, u: int) -> np.ndarray:
        r"""Exact probability that a client takes part in both rounds, $p^2+p(1-p)r^{|t-u|}$, (clients,)."""
        p = self.probabilities
        return p * p + p * (1 - p) * self.correlations ** abs(t - u)

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        factors = {r: markov_window_factor(r, interval) for r in np.unique(self.correlations).tolist()}
        return np.diag(self._covariances(t0, t0) * [factors[r] for r in self.correlations.tolist()])

    def long_run_variance(self) -> np.ndarray:
        r"""Exact $\hat\upsilon^2=\mathrm{Var}(q)\frac{1+r}{1-r}$, (clients,).

        Raises:
            FedboundsError: a chain that alternates, r = -1, and does not mix.
        """
        r = self.correlations
        if (r == -1).any():
            n = int(np.flatnonzero(r == -1)[0])
            raise FedboundsError(f"client {n} is present in every second round, and does not mix: no long-run variance")
        return self._covariances(0, 0) * (1 + r) / (1 - r)


class Cycles(IndependentClients):
    r"""Every client is present in the first $a_n$ rounds of each of its cycles of $L_n$ rounds.

    The client has a random phase $\varphi_n$ and takes part in round t if $(t+\varphi_n) \bmod L_n < a_n$.
    """

    cycle: int

    @cached_property
    def active(self) -> np.ndarray:
        r"""$a_n$: p times the cycle, rounded, but at least one round unless p = 0, (clients,)."""
        p = self.probabilities
        return np.where(p > 0, np.maximum(1, np.rint(p * self.cycle)), 0).astype(np.int64)

    @property
    @abstractmethod
    def lengths(self) -> np.ndarray:
        r"""$L_n$, (clients,)."""

    @abstractmethod
    def possible(self, phases: np.ndarray) -> np.ndarray:
        """Which of the phases (n,) a client may have, all alike: (clients, n)."""

    @property
    def rates(self) -> np.ndarray:
        r"""$a_n/L_n$, as near to the probabilities as whole rounds allow, (clients,)."""
        return self.active / self.lengths

    @property
    def independent_rounds(self) -> bool:
        """Where every client is always or never there."""
        return bool(((self.active == 0) | (self.active == self.lengths)).all())

    def _settle_cycle(self) -> None:
        self._settle_clients()
        cycle = check_count("cycle", self.cycle)
        check_memory(f"the phases of clients = {self.clients} in a cycle = {cycle}", 16 * self.clients * cycle)
        self._settle(cycle=cycle)

    def presences(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """One uniform number per client decides its phase."""
        which = (rng.random(self.clients) * self._allowed.sum(axis=1)).astype(np.int64)
        phase = np.argmax(np.cumsum(self._allowed, axis=1) > which[:, None], axis=1)
        t, rounds = 0, block_rounds(self.clients)
        while True:
            yield (np.arange(t, t + rounds)[:, None] + phase) % self.lengths < self.active
            t += rounds

    def joint(self, t: int, u: int) -> np.ndarray:
        both = self._presence(t) & self._presence(u) & self._allowed
        return both.sum(axis=1) / self._allowed.sum(axis=1)

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        share = sum(self._presence(t).astype(float) for t in range(t0, t0 + interval)) / interval
        mean = np.average(share, axis=1, weights=self._allowed)
        variance = np.average((share - mean[:, None]) ** 2, axis=1, weights=self._allowed)
        return np.diag(variance / self.clients**2)

    @cached_property
    def _allowed(self) -> np.ndarray:
        """Which phases each client may have, booleans (clients, longest cycle)."""
        phases = np.arange(self.lengths.max())
        return self.possible(phases) & (phases < self.lengths[:, None])

    def _presence(self, t: int) -> np.ndarray:
        """Who takes part in round t with which phase, (clients, phases)."""
        phases = np.arange(self.lengths.max())
        return (t + phases) % self.lengths[:, None] < self.active[:, None]


@dataclass(frozen=True)
class CyclicClients(Cycles):
    r"""Every client is present in $\max\{1,\mathrm{round}(pL)\}$ consecutive rounds of each L, from a uniform phase on.

    Stationary. With a active rounds, $\Pr\{\mathbb 1_t=\mathbb 1_{t+h}=1\}$ is the share of a cycle in which both are
    active.

    Args:
        clients: N.
        probability: p, one for all or one per client, in [0, 1]; a client with 0 never comes. What is kept in the long
            run is `rates`, a multiple of 1/L.
        cycle: L, in rounds.

    Raises:
        FedboundsError: a count or probability outside its range, or not one probability per client.

    Example:
        >>> process = CyclicClients(2, [0.5, 0.001], cycle=4)
        >>> process.rates.tolist(), process.matrix(8, np.random.default_rng(0)).sum(axis=0).tolist()
        ([0.5, 0.25], [2.0, 1.0])

    Source: Wang & Ji 2024, Appendix C.6, "cyclic", as its text says (L = 100).
    """

    clients: int
    probability: Probability
    cycle: int = 100
    kind: ClassVar[str] = "cyclic-clients"

    def __post_init__(self) -> None:
        self._settle_cycle()

    @property
    def stationary(self) -> bool:
        return True

    @property
    def lengths(self) -> np.ndarray:
        """L for everyone, (clients,)."""
        return np.full(self.clients, self.cycle)

    def possible(self, phases: np.ndarray) -> np.ndarray:
        """All of them, (clients, n)."""
        return np.ones((self.clients, len(phases)), dtype=bool)


@dataclass(frozen=True)
class CyclicFromInactive(Cycles):
    r"""The cycles of the paper's experiments as published: every client begins absent, for a uniform remaining time.

    A client is present in $a=\max\{1,\mathrm{round}(pL)\}$ consecutive rounds and then absent in
    $b=\max\{1,L-a\}$; in the beginning it is absent for r rounds, r uniform on $\{0,\dots,b-1\}$. That is not
    stationary: in round 0 a client with p = 0.527 is present with probability 1/47, in round 50 for sure, in round 99
    never, and half of the time in the long run. `CyclicClients` is the stationary process that the paper describes.

    Args:
        clients: N.
        probability: p, one for all or one per client, in [0, 1]; a client with 0 never comes, and one with 1 is absent
            in one round of L + 1.
        cycle: L, in rounds.

    Raises:
        FedboundsError: a count or probability outside its range, or not one probability per client.

    Example:
        >>> process = CyclicFromInactive(1, 0.527)
        >>> [round(float(process.mean(t)[0]), 3) for t in (0, 10, 50, 99)]
        [0.021, 0.234, 1.0, 0.0]

    Source: the public code of Wang & Ji 2024.
    """

    clients: int
    probability: Probability
    cycle: int = 100
    kind: ClassVar[str] = "cyclic-from-inactive"

    def __post_init__(self) -> None:
        self._settle_cycle()

    @property
    def stationary(self) -> bool:
        """Only if no client ever participates."""
        return not self.active.any()

    @property
    def lengths(self) -> np.ndarray:
        """a + b, (clients,)."""
        return self.active + np.maximum(1, self.cycle - self.active)

    def possible(self, phases: np.ndarray) -> np.ndarray:
        """0, and those after the active rounds but the first: a phase of L - r leaves r rounds, (clients, n)."""
        return (phases == 0) | (phases > self.active[:, None])
