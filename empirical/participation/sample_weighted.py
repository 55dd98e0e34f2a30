"""Participants whose updates are averaged with weights of their own, such as their numbers of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import check_client_weights
from fedbounds.empirical.participation.process import Process, Round


@dataclass(frozen=True, eq=False)
class SampleWeighted(Process):
    r"""The participants of another process, averaged with weights in proportion to $p_n$, as by FedAvg.

    $$\hat q_t^n=\frac{p_nq_t^n}{\sum_mp_mq_t^m}$$

    Args:
        process: who participates, $q_t^n$.
        client_weights: $p_n > 0$, such as numbers of samples, (clients,); only their ratios matter.

    Raises:
        FedboundsError: not one positive number for each client; a mean or a covariance of random participation, which
            has no closed form.

    Example:
        >>> from fedbounds.empirical.participation.sampling import Full
        >>> SampleWeighted(Full(3), [10, 10, 20]).mean(0).tolist()
        [0.25, 0.25, 0.5]

    Source: McMahan et al. 2017, Algorithm 1 ($n_k/n$); Wang & Ji 2022, footnote 1 (normalized weights).
    """

    process: Process
    client_weights: Sequence[float] | np.ndarray
    kind: ClassVar[str] = "sample-weighted"

    def __post_init__(self) -> None:
        if not isinstance(self.process, Process):
            raise FedboundsError('process must be a participation process, such as { kind = "full", clients = 3 }')
        if check_client_weights(self.client_weights, self.process.clients) is None:
            raise FedboundsError("client_weights must be a positive number for each client")
        p = np.array(self.client_weights, dtype=float)  # as given, so that its spec makes the same process again
        p.setflags(write=False)
        self._settle(client_weights=p, clients=len(p))

    @property
    def sums_to_one(self) -> bool:
        return self.process.sums_to_one

    @property
    def independent_rounds(self) -> bool:
        return self.process.independent_rounds

    @property
    def stationary(self) -> bool:
        return self.process.stationary

    @property
    def independent_repeats(self) -> bool:
        return self.process.independent_repeats

    @property
    def rates(self) -> np.ndarray:
        return self.process.rates

    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """The rounds of the process, with the weights of its participants."""
        for clients, weights in self.process.draw(rng):
            mass = np.asarray(self.client_weights)[clients] * weights
            yield Round(clients, mass / mass.sum() if len(mass) else mass)

    def certain(self, rounds: int) -> bool:
        return self.process.certain(rounds)

    def mean(self, t: int) -> np.ndarray:
        self._require_certain(t)
        mass = np.asarray(self.client_weights) * self.process.mean(t)
        return mass / mass.sum()

    def variance(self, t: int) -> np.ndarray:
        self._require_certain(t)
        return np.zeros(self.clients)

    def covariance(self, t: int, u: int) -> np.ndarray:
        self._require_certain(max(t, u))
        return np.zeros((self.clients, self.clients))

    def spec(self) -> dict[str, Any]:
        weights = np.asarray(self.client_weights).tolist()
        return {"kind": self.kind, "process": self.process.spec(), "client_weights": weights}

    def _require_certain(self, t: int) -> None:
        if not self.process.certain(t + 1):
            raise FedboundsError(
                f"the moments of {self.process.kind} participation weighted by samples have no closed form: give a "
                "record of it, process.matrix(rounds, rng), or streams = { participation = 0 } in a sweep"
            )

    def _sum_defect(self) -> str:
        return f"its process, {self.process.kind}, may have rounds whose weights do not"
