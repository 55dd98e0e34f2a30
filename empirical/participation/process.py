"""Participation processes: samplers of the weights $q_t^n$ with their exact first two moments.

Source: Wang & Ji 2022, Section 4.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import wraps
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory
from fedbounds.bounds.participation.constants import expected_window_divergence


class Round(NamedTuple):
    """The participants of one round; clients whose weight is zero are left out, so there may be none.

    Attributes:
        clients: indices, sorted, (participants,) int64.
        weights: their weights, positive, (participants,) float64.
    """

    clients: np.ndarray
    weights: np.ndarray


def _check_memory_of(moment: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A moment over all pairs of clients, refused where this machine cannot hold it."""

    @wraps(moment)
    def checked(self: Process, t: int, u: int) -> np.ndarray:
        check_memory(f"a covariance over all pairs of clients = {self.clients}", 16 * self.clients**2)
        return moment(self, t, u)

    return checked


class Process(ABC):
    r"""A law of the participation weights $q_t^n$, $t=0,1,\dots$, $n=0,\dots,N-1$.

    Subclasses are frozen dataclasses; their fields are the keys of the process's spec.

    Attributes:
        kind: the name in a spec, e.g. "without-replacement".
        clients: N.
    """

    kind: ClassVar[str]
    clients: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("covariance", "window_covariance"):
            if name in vars(cls):
                setattr(cls, name, _check_memory_of(vars(cls)[name]))

    @property
    def sums_to_one(self) -> bool:
        """Whether the weights of every round sum to one with certainty, as the theorems need."""
        return True

    @property
    @abstractmethod
    def independent_rounds(self) -> bool:
        """Whether the weights of different rounds are independent."""

    @property
    @abstractmethod
    def stationary(self) -> bool:
        """Whether mean and covariance depend on rounds only through their distance."""

    @property
    def exchangeable(self) -> bool:
        """Whether relabeling the clients leaves the law unchanged."""
        return False

    @property
    def independent_clients(self) -> bool:
        """Whether the weights of different clients are independent."""
        return False

    @property
    def unbiased(self) -> bool:
        """Whether every client has mean weight 1/N in every round."""
        return self.stationary and bool(np.allclose(self.mean(0), 1 / self.clients, rtol=1e-9, atol=0))

    @property
    def independent_repeats(self) -> bool:
        """Whether a client drawn k times in a round makes k local updates, each of weight 1/S with its own noise."""
        return False

    @property
    def unnormalized(self) -> bool:
        """Whether every participant has weight 1/N, whatever the other clients do."""
        return False

    @property
    def rates(self) -> np.ndarray:
        """The share of rounds in which each client takes part in the long run, (clients,).

        Raises:
            FedboundsError: not known of this process.
        """
        raise FedboundsError(f"the participation rates of {self.kind} participation are not known: give them")

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Iterator[Round]:
        """One run, round after round; endless, except for a record.

        Args:
            rng: used sequentially, and maybe some rounds ahead; the same generator state gives the same run.
        """

    def matrix(self, rounds: int, rng: np.random.Generator) -> np.ndarray:
        """The first rounds of `draw` as a matrix of weights (rounds, clients).

        Raises:
            FedboundsError: fewer than one round, or more than a record holds.
        """
        q = np.zeros((check_count("rounds", rounds), self.clients))
        for row, (clients, weights) in zip(q, islice(self.draw(rng), len(q)), strict=True):
            row[clients] = weights
        return q

    @abstractmethod
    def mean(self, t: int) -> np.ndarray:
        r"""Exact $\mathbb E[q_t^n]$, (clients,)."""

    @abstractmethod
    def covariance(self, t: int, u: int) -> np.ndarray:
        r"""Exact $\mathrm{Cov}(q_t^n,q_u^m)$ over clients n and m, (clients, clients)."""

    def variance(self, t: int) -> np.ndarray:
        r"""Exact $\mathrm{Var}(q_t^n)$, (clients,)."""
        return np.diag(self.covariance(t, t)).copy()

    def certain(self, rounds: int) -> bool:
        """Whether nothing is random in these rounds: which clients take part in which round, with which weights."""
        return not any((self.variance(t) > 0).any() for t in range(1 if self.stationary else rounds))

    def autocovariance(self, lag: int) -> np.ndarray:
        r"""Exact $\mathrm{Cov}(q_t^n,q_{t+\text{lag}}^m)$ whatever t, (clients, clients).

        Raises:
            FedboundsError: the process is not stationary.
        """
        if not self.stationary:
            raise FedboundsError(f"{self.kind} participation is not stationary: ask for covariance(t, u)")
        return self.covariance(0, check_count("lag", lag, 0))

    def long_run_variance(self) -> np.ndarray:
        r"""Exact $\hat\upsilon^2=\sum_{p}\mathrm{Cov}(q_t^n,q_{t+p}^n)$ over all lags p, (clients,).

        Raises:
            FedboundsError: the process is not stationary, or does not mix.

        Source: Wang & Ji 2022, Lemma 4.5.
        """
        if not (self.stationary and self.independent_rounds):
            raise FedboundsError(
                f"{self.kind} participation has no long-run variance (not stationary and mixing): "
                "use window_covariance, exact at every interval"
            )
        return self.variance(0)

    def window_mean(self, t0: int, interval: int) -> np.ndarray:
        r"""Exact mean of $\overline{q^n_{t_0}}=\frac1P\sum_{t=t_0}^{t_0+P-1}q_t^n$, (clients,)."""
        if self.stationary:
            return self.mean(t0)
        return np.mean([self.mean(t) for t in range(t0, t0 + interval)], axis=0)

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        r"""Exact covariance of the window means, (clients, clients).

        In closed form where one is known, otherwise
        $\frac1{P^2}\sum_{t,u}\mathrm{Cov}(q_t,q_u)$ (`summed_window_covariance`).
        """
        return self.summed_window_covariance(t0, interval)

    def summed_window_covariance(self, t0: int, interval: int) -> np.ndarray:
        """The covariance of the window means, summed over pairs of rounds (over lags if stationary)."""
        total = np.zeros((self.clients, self.clients))
        for lag in range(interval):
            pairs = interval - lag
            if self.stationary:
                part = pairs * self.covariance(t0, t0 + lag)
            else:
                part = sum((self.covariance(t, t + lag) for t in range(t0, t0 + pairs)), np.zeros_like(total))
            total += part if lag == 0 else part + part.T
        return total / interval**2

    def mean_window_divergence(self, v: ArrayLike, interval: int, rounds: int) -> float:
        r"""The root of the expected left side of (7), averaged over the complete windows of a run.

        This is the $\tilde\delta(P)$ of Theorem 3.1 in expectation over participation: its proof needs only
        the average over windows. Of a record: `fedbounds.bounds.participation.constants.mean_window_divergence`; the
        largest window, as (7) is printed, is `fedbounds.bounds.participation.constants.window_divergence`.

        Args:
            v: offsets $\nabla F_n-\nabla f$, (clients, dimension), unit f/x.
            interval: P, the length of a window in rounds.
            rounds: T, at least P.

        Raises:
            FedboundsError: weights that need not sum to one, no complete window, or bad offsets.

        Source: Wang & Ji 2022, eq. (7); Section 4.2.
        """
        self.require_unit_sum("eq. (7)")
        T = check_count("rounds", rounds)
        P = check_count("interval", interval, high=T, why="at most the number of rounds")
        starts = range(0, T - P + 1, P)
        alike = Counter(self._alike(t0) for t0 in starts)
        total = 0.0
        for t0, windows in alike.items():
            covariance, mean = self.window_covariance(t0, P), self.window_mean(t0, P)
            total += windows * expected_window_divergence(covariance, v, mean) ** 2
        return math.sqrt(total / len(starts))

    def _alike(self, t0: int) -> int:
        """A first round from which all windows have the same moments as from t0, and which windows share."""
        return 0 if self.stationary else t0

    def require_unit_sum(self, theorem: str) -> None:
        """Refuse where a theorem needs weights that sum to one.

        Args:
            theorem: what needs it, for the message.

        Raises:
            FedboundsError: some round's weights may fail to sum to one.
        """
        if not self.sums_to_one:
            raise FedboundsError(
                f"{theorem} needs weights that sum to one in every round; {self.kind}: {self._sum_defect()}"
            )

    def require_one_update(self, what: str) -> None:
        """Refuse where a client may make no more than one local update in a round.

        Args:
            what: what needs it, for the message.

        Raises:
            FedboundsError: a client that is drawn twice makes two.
        """
        if self.independent_repeats:
            raise FedboundsError(
                f"{what}: a participant must make one local update in a round; {self.kind} participation with repeats "
                "= 'independent' has one for each time that a client is drawn: give repeats = 'merged'"
            )

    def _sum_defect(self) -> str:
        """Why the weights need not sum to one; called only where they do not."""
        raise AssertionError(f"{self.kind} participation sums to one")

    def spec(self) -> dict[str, Any]:
        """The process as a JSON-able dict with its defaults; `process_from_spec` gives the process back."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]
        given = {name: value for name, value in values.items() if value is not None}
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}

    def _settle(self, **values: object) -> None:
        """Store checked values in the frozen fields."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Exchangeable(Process):
    r"""A process in which all clients are alike and weights sum to one: mean $\frac1N$ and
    $\mathrm{Cov}(q_t,q_u)=k_{tu}(I-\frac1N\mathbf1\mathbf1^\top)$, the only form that is left.
    """

    @property
    def exchangeable(self) -> bool:
        return True

    @property
    def unbiased(self) -> bool:
        return True

    @abstractmethod
    def kernel(self, t: int, u: int) -> float:
        """The factor k of the covariance of rounds t and u."""

    @abstractmethod
    def window_kernel(self, t0: int, interval: int) -> float:
        """The factor of the covariance of the window means."""

    def mean(self, t: int) -> np.ndarray:
        return np.full(self.clients, 1 / self.clients)

    def variance(self, t: int) -> np.ndarray:
        return np.full(self.clients, self.kernel(t, t) * (1 - 1 / self.clients))

    def certain(self, rounds: int) -> bool:  # without a number for each of perhaps very many clients
        return self.clients == 1 or not any(self.kernel(t, t) > 0 for t in range(1 if self.stationary else rounds))

    def covariance(self, t: int, u: int) -> np.ndarray:
        return self.kernel(t, u) * centering(self.clients)

    def window_mean(self, t0: int, interval: int) -> np.ndarray:
        return self.mean(t0)

    def window_covariance(self, t0: int, interval: int) -> np.ndarray:
        return self.window_kernel(t0, interval) * centering(self.clients)


def centering(size: int) -> np.ndarray:
    r"""The matrix $I-\frac1n\mathbf1\mathbf1^\top$."""
    return np.eye(size) - 1 / size


def equal_weights(participants: int) -> np.ndarray:
    """The weights 1/S, read-only because rounds share them."""
    weights = np.full(participants, 1 / participants)
    weights.setflags(write=False)
    return weights
