r"""Participation by independent coins, one per client and round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_number
from fedbounds.empirical.participation.process import Process, Round
from fedbounds.empirical.participation.sampling import block_rounds


@dataclass(frozen=True)
class Bernoulli(Process):
    r"""Client n takes part in a round with probability $p_n$, independently of everything else.

    With `normalize` the $S_t$ participants of a round have weight $1/S_t$; a round in which nobody takes part
    has no weights and lies outside the theorems. Without it a participant has weight $1/N$ (inverse
    probabilities, if any, are for the algorithm to apply), and the weights of a round sum to $S_t/N$.

    Normalized moments, with $B$ the number of other participants, which has a Poisson-binomial law:
    $$\mathbb E[q^n]=p_n\mathbb E\tfrac1{1+B_{-n}},\quad
      \mathbb E[(q^n)^2]=p_n\mathbb E\tfrac1{(1+B_{-n})^2},\quad
      \mathbb E[q^nq^m]=p_np_m\mathbb E\tfrac1{(2+B_{-nm})^2}$$

    Args:
        clients: N.
        probability: p, one for all or one per client, in [0, 1].
        normalize: whether participants share a total weight of one.

    Raises:
        FedboundsError: a count, probability or flag outside its range, or not one probability per client.

    Example:
        >>> process = Bernoulli(2, 0.5)
        >>> process.mean(0).round(12).tolist(), process.empty_round_probability, process.sums_to_one
        ([0.375, 0.375], 0.25, False)

    Source: footnote 1 of Wang & Ji 2022 (weights that do not sum to one).
    """

    clients: int
    probability: float | Sequence[float] | np.ndarray
    normalize: bool = True
    kind: ClassVar[str] = "bernoulli"

    def __post_init__(self) -> None:
        N = check_count("clients", self.clients)
        p = self.probability.tolist() if isinstance(self.probability, np.ndarray) else self.probability
        if isinstance(p, Sequence) and not isinstance(p, str):
            if len(p) != N:
                raise FedboundsError(f"probability has {len(p)} entries; expected one per client, {N}")
            p = tuple(check_number(f"probability[{n}]", value, 0, 1) for n, value in enumerate(p))
        else:
            p = check_number("probability", p, 0, 1)
        self._settle(clients=N, probability=p, normalize=check_flag("normalize", self.normalize))

    @cached_property
    def probabilities(self) -> np.ndarray:
        """One probability per client, (clients,)."""
        return np.broadcast_to(np.asarray(self.probability, dtype=float), (self.clients,))

    @property
    def rates(self) -> np.ndarray:
        """The probabilities, (clients,)."""
        return self.probabilities

    @property
    def unnormalized(self) -> bool:
        """Without `normalize`."""
        return not self.normalize

    @property
    def empty_round_probability(self) -> float:
        r"""The probability $\prod_n(1-p_n)$ that nobody takes part in a round."""
        return float(np.prod(1 - self.probabilities))

    @property
    def sums_to_one(self) -> bool:
        """Whether weights are normalized and somebody always takes part."""
        certain = self.probabilities == 1
        return bool(certain.any() if self.normalize else certain.all())

    @property
    def exchangeable(self) -> bool:
        """Whether all probabilities are equal."""
        return bool((self.probabilities == self.probabilities[0]).all())

    @property
    def independent_clients(self) -> bool:
        """Whether weights are not normalized (or there is one client)."""
        return not self.normalize or self.clients == 1

    @property
    def independent_rounds(self) -> bool:
        return True

    @property
    def stationary(self) -> bool:
        return True

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """Fresh coins for all clients in every round."""
        N, p = self.clients, self.probabilities
        while True:
            present = rng.random((block_rounds(N), N)) < p
            counts = present.sum(axis=1)
            ends = counts.cumsum()
            clients = present.nonzero()[1]
            weights = np.repeat(1 / np.maximum(counts, 1) if self.normalize else np.full(len(counts), 1 / N), counts)
            for low, high in zip((ends - counts).tolist(), ends.tolist(), strict=True):
                yield Round(clients[low:high], weights[low:high])

    def mean(self, t: int) -> np.ndarray:
        return self._moments[0].copy()

    def covariance(self, t: int, u: int) -> np.ndarray:
        return self._moments[1].copy() if t == u else np.zeros((self.clients, self.clients))

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        return self._moments[1] / interval

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (clients,) and covariance (clients, clients) of a round's weights."""
        N, p = self.clients, self.probabilities
        if not self.normalize:
            return p / N, np.diag(p * (1 - p)) / N**2
        # Expectations over a Poisson-binomial law by Fourier inversion of its characteristic function phi, a
        # finite sum: E g(B) = mean_j phi(w_j) sum_k g(k) w_j^-k. An odd number of nodes avoids w = -1, where
        # phi may vanish, so that clients are left out of the product phi by division.
        nodes = np.exp(2j * np.pi * np.arange(N + 1 + N % 2) / (N + 1 + N % 2))
        factor = 1 - p[:, None] + p[:, None] * nodes
        without = p[:, None] / factor  # p_n over the factor of client n, (clients, nodes)
        law = factor.prod(axis=0) / len(nodes)

        def expected(reciprocal: np.ndarray) -> np.ndarray:
            return law * np.fft.fft(reciprocal)

        others = np.arange(len(nodes))
        mean = (without @ expected(1 / (1 + others))).real
        second = ((without * expected(1 / (2 + others) ** 2)) @ without.T).real
        np.fill_diagonal(second, (without @ expected(1 / (1 + others) ** 2)).real)
        return mean, second - np.outer(mean, mean)

    def _sum_defect(self) -> str:
        if self.normalize:
            chance = f"nobody takes part in a round with probability {self.empty_round_probability:.3g}"
            return f"{chance}; give a record of the run in which somebody takes part in every round (kind recorded)"
        return "a participant has weight 1/N, whoever else takes part (normalize shares a weight of one)"
