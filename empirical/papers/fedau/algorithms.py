r"""FedAU and what it was compared with: Wang & Ji, "A Lightweight Method for Tackling Unknown Participation Statistics
in Federated Averaging", ICLR 2024: Algorithms 1 and 2 and the experiments.

$$x_{t+1} = x_t + \frac\eta N\sum_n \mathbb 1_t^n\,\omega_t^n\,\Delta_t^n$$

In this paper only *who* takes part is random: the weights that a participation process draws play no role, a
participant is a client whose weight is not zero. So one process serves all these algorithms. A round in which nobody
takes part leaves the model as it is, except with MIFA.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_number, is_number, quote
from fedbounds.empirical.algorithms.algorithm import Checked, LocalSteps, ModelOnly, RoundReport, ServerSchedule
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.algorithms.memory import ClientMemory, Stored
from fedbounds.empirical.papers.fedau.participation_weights import Intervals, check_cutoff, check_rate, weight_paths
from fedbounds.empirical.participation import Bernoulli, Process

PerClient = float | Sequence[float] | np.ndarray


def check_weights_of_clients(name: str, value: object) -> float | tuple[float, ...]:
    """One positive number for all clients, or one for each."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
        return tuple(check_positive(f"{name}[{n}]", each) for n, each in enumerate(value))
    return check_positive(name, value)


def check_probabilities(name: str, value: object) -> float | tuple[float, ...] | None:
    """One probability in (0, 1] for all clients, or one for each; None if not yet given."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
        return tuple(_probability(f"{name}[{n}]", each) for n, each in enumerate(value))
    return _probability(name, value)


def _probability(name: str, value: object) -> float:
    if is_number(value) and value == 0:
        raise FedboundsError(f"{name} = {quote(value)} must be in (0, 1]: who never takes part has no weight 1/p")
    return check_number(name, value, 0, 1)


class Aggregation(LocalSteps):
    r"""Algorithm 1: $x_{t+1} = x_t + \eta\sum_n v_t^n\Delta_t^n$ with weights v that depend on participation."""

    own_weights = True
    server_multiplier: float

    @property
    def schedule(self) -> ServerSchedule:
        return ServerSchedule(1, self.server_multiplier)

    def reweigh_record(self, record: np.ndarray) -> np.ndarray:
        return self.applied(record != 0)

    def factor_weights(self, process: Process) -> tuple[Process, np.ndarray] | None:
        return None

    @abstractmethod
    def applied(self, present: np.ndarray) -> np.ndarray:
        r"""The weights $v_t^n$ in a record of who takes part: booleans (T, N) to (T, N)."""


class _WithoutMemory(Aggregation):
    """An aggregation whose server remembers nothing but the model."""

    def init(self, x0: torch.Tensor, clients: int) -> ModelOnly:
        return ModelOnly(x0)

    def server_update(self, state: ModelOnly, t: int, report: RoundReport) -> ModelOnly:
        return ModelOnly(state.model + self.server_multiplier * report.weighted_sum)


@dataclass(frozen=True)
class AverageParticipating(_WithoutMemory):
    r"""FedAvg as it is usually implemented: the mean over the participants.

    $$x_{t+1} = x_t + \frac\eta{|S_t|}\sum_{n\in S_t}\Delta_t^n, \qquad x_{t+1} = x_t \text{ if } S_t = \emptyset$$

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> AverageParticipating(0.1, 5).applied(np.array([[True, True, False], [False, False, False]])).tolist()
        [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]

    Source: Wang & Ji 2024, Section 5, "average participating" (in words; empty rounds as in the authors' public code).
    """

    kind = "average-participating"
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0

    def cohort(self, state: ModelOnly, t: int, drawn: Cohort, clients: int) -> Cohort:
        return drawn.with_weights(1 / drawn.counts[drawn.seeds])

    def factor_weights(self, process: Process) -> tuple[Process, np.ndarray] | None:
        if not isinstance(process, Bernoulli):
            return None
        return replace(process, normalize=True), np.ones(process.clients)

    def applied(self, present: np.ndarray) -> np.ndarray:
        return present / np.maximum(present.sum(axis=1, keepdims=True), 1)


class ConstantWeights(_WithoutMemory):
    r"""Algorithm 1 with weights $\omega_n$ that do not change: it minimizes $\sum_n\omega_np_nF_n$, normalized.

    Source: Wang & Ji 2024, Algorithm 1 and Theorem 1.
    """

    @property
    @abstractmethod
    def omega(self) -> float | np.ndarray:
        r"""$\omega_n$, one for all clients or (N,)."""

    def weights_of(self, clients: int) -> np.ndarray:
        r"""$\omega_n$ of each of N clients, (N,)."""
        omega = self.omega
        if np.ndim(omega) and np.size(omega) != clients:
            raise FedboundsError(f"{self.kind} has weights of {np.size(omega)} clients, the problem has {clients}")
        return np.broadcast_to(omega, clients)

    def init(self, x0: torch.Tensor, clients: int) -> ModelOnly:
        self.weights_of(clients)
        return super().init(x0, clients)

    def cohort(self, state: ModelOnly, t: int, drawn: Cohort, clients: int) -> Cohort:
        return drawn.with_weights(self.weights_of(clients)[drawn.clients] / clients)

    def factor_weights(self, process: Process) -> tuple[Process, np.ndarray] | None:
        return (process, self.weights_of(process.clients)) if process.unnormalized else None

    def applied(self, present: np.ndarray) -> np.ndarray:
        return present * self.weights_of(present.shape[1]) / present.shape[1]


@dataclass(frozen=True)
class AverageAll(ConstantWeights):
    r"""FedAvg in which absent clients count as zero updates, $\omega\equiv1$.

    $$x_{t+1} = x_t + \frac\eta N\sum_{n\in S_t}\Delta_t^n$$

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> AverageAll(0.1, 5).applied(np.array([[True, False]])).tolist()
        [[0.5, 0.0]]

    Source: Wang & Ji 2024, Section 5, "average all".
    """

    kind = "average-all"
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0

    @property
    def omega(self) -> float:
        return 1.0


@dataclass(frozen=True)
class FixedWeights(ConstantWeights):
    r"""Algorithm 1 with given weights $\omega_n$.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        weights: $\omega_n > 0$, one for all clients or one for each.
        server_multiplier: $\eta > 0$.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FixedWeights(0.1, 5, weights=[2, 4]).applied(np.array([[True, False], [True, True]])).tolist()
        [[1.0, 0.0], [1.0, 2.0]]

    Source: Wang & Ji 2024, Algorithm 1 and Theorem 1.
    """

    kind = "fixed-weights"
    checks: ClassVar = {**Checked.checks, "weights": check_weights_of_clients}
    local_step_size: float
    local_steps: int
    weights: PerClient
    server_multiplier: float = 1.0

    @cached_property
    def omega(self) -> np.ndarray:
        return np.asarray(self.weights)


@dataclass(frozen=True)
class KnownParticipation(ConstantWeights):
    r"""Algorithm 1 for an oracle that knows the participation rates, $\omega_n = 1/p_n$.

    The rates of a process are those that it keeps: clients of `cyclic-clients` come in whole rounds of a cycle, so a
    client of 0.527 keeps 0.53 and is weighted by 1/0.53. The authors' public code weights it by 1/0.527, the rate that
    was asked for; give `probability` for that.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$.
        probability: $p_n$ in (0, 1], one for all clients or one for each; if not given, the rates of the process that
            the simulation runs with.

    Raises:
        FedboundsError: a number outside its domain; no rates, neither given nor of the process.

    Example:
        >>> KnownParticipation(0.1, 5, probability=[0.5, 0.25]).omega.tolist()
        [2.0, 4.0]

    Source: Wang & Ji 2024, Section 5, "known participation statistics".
    """

    kind = "known-participation"
    checks: ClassVar = {**Checked.checks, "probability": check_probabilities}
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0
    probability: PerClient | None = None

    def bind_process(self, process: Process) -> KnownParticipation:
        return self if self.probability is not None else replace(self, probability=process.rates)

    @cached_property
    def omega(self) -> np.ndarray:
        if self.probability is None:
            raise FedboundsError("known-participation lacks the probability of each client")
        return 1 / np.asarray(self.probability)


class Estimating(NamedTuple):
    """The model (seeds, d), and the weights, completed intervals and running interval of each client, (seeds, N)."""

    model: torch.Tensor
    weights: torch.Tensor
    completed: torch.Tensor
    running: torch.Tensor


@dataclass(frozen=True)
class FedAU(Aggregation):
    r"""FedAvg whose clients are weighted by their mean participation interval so far, cut off at K.

    $$x_{t+1} = x_t + \frac\eta N\sum_{n\in S_t}\omega_t^n\Delta_t^n,$$

    where $\omega_t^n$ is a function of the rounds before t (see
    `fedbounds.empirical.papers.fedau.participation_weights`). Three numbers per client are kept. With K = 1 it is
    `AverageAll`; with K fixed its weights tend to $(1-(1-p_n)^K)/p_n$ under Bernoulli participation, so that it
    minimizes $\sum_n[1-(1-p_n)^K]F_n$, normalized. With a `rate` the mean is exponentially weighted: a variant that the
    paper names and does not analyze.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$.
        cutoff: K, an integer of at least 1, or infinity.
        rate: of the exponentially weighted variant, in (0, 1]; none for the paper's mean.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedAU(0.1, 5, cutoff=2).applied(np.array([[0, 1], [0, 1], [1, 1]]) == 1).tolist()
        [[0.0, 0.5], [0.0, 0.5], [1.0, 0.5]]

    Source: Wang & Ji 2024, Algorithms 1 and 2.
    """

    kind = "fedau"
    checks: ClassVar = {**Checked.checks, "cutoff": check_cutoff, "rate": check_rate}
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0
    cutoff: float = 50
    rate: float | None = None

    def init(self, x0: torch.Tensor, clients: int) -> Estimating:
        start = Intervals.none_yet((len(x0), clients))  # on the CPU, where cohorts are
        return Estimating(x0, *map(torch.from_numpy, start))

    def cohort(self, state: Estimating, t: int, drawn: Cohort, clients: int) -> Cohort:
        return drawn.with_weights(state.weights.numpy()[drawn.seeds, drawn.clients] / clients)

    def record_cohort(self, state: Estimating, t: int, cohort: Cohort) -> Estimating:
        present = np.zeros(state.weights.shape, dtype=bool)
        present[cohort.seeds, cohort.clients] = True
        before = Intervals(*(values.numpy() for values in state[1:]))
        return Estimating(state.model, *map(torch.from_numpy, before.after(t, present, self.cutoff, self.rate)))

    def server_update(self, state: Estimating, t: int, report: RoundReport) -> Estimating:
        return state._replace(model=state.model + self.server_multiplier * report.weighted_sum)

    def applied(self, present: np.ndarray) -> np.ndarray:
        return present * weight_paths(present, self.cutoff, self.rate) / present.shape[1]


@dataclass(frozen=True)
class FedVarp(ClientMemory, LocalSteps):
    r"""Variance reduction by the last update $u_n$ of every client, zero before its first.

    $$x_{t+1} = x_t + \eta\Big[\frac1{|S_t|}\sum_{n\in S_t}(\Delta_t^n - u_n) + \frac1N\sum_n u_n\Big], \qquad
      \text{then } u_n \leftarrow \Delta_t^n \text{ for } n\in S_t;$$

    no step at all in an empty round. Holds N + 1 models and more; FedAU holds one.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedVarp(0.1, 5).needs_updates
        True

    Source: Jhunjhunwala et al. 2022; the update rule of the experiments of Wang & Ji 2024 is that of their public code.
    """

    kind = "fedvarp"
    stored = "updates"
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0

    def server_update(self, state: Stored, t: int, report: RoundReport) -> Stored:
        assert report.pairs is not None
        changes = self.overwrite(state, report, report.pairs.updates)
        counts = report.cohort.to_device(state.model.device).counts[:, None]
        step = torch.where(counts > 0, changes / counts.clamp(min=1) + state.mean, 0.0).to(state.model.dtype)
        mean = state.mean + changes / state.own.shape[1]
        return Stored(state.model + self.server_multiplier * step, state.own, mean)


@dataclass(frozen=True)
class MIFA(ClientMemory, LocalSteps):
    r"""Memorized impatient averaging: everyone counts in every round, the absent with their last update.

    $$u_n \leftarrow \Delta_t^n \text{ for } n\in S_t \ (0 \text{ before the first}), \qquad
      x_{t+1} = x_t + \frac\eta N\sum_{n=1}^N u_n,$$

    also in an empty round. Holds N + 1 models and more; FedAU holds one.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        server_multiplier: $\eta > 0$.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> MIFA(0.1, 5).needs_updates
        True

    Source: Gu et al. 2021; the update rule of the experiments of Wang & Ji 2024 is that of their public code.
    """

    kind = "mifa"
    stored = "updates"
    local_step_size: float
    local_steps: int
    server_multiplier: float = 1.0

    def server_update(self, state: Stored, t: int, report: RoundReport) -> Stored:
        assert report.pairs is not None
        mean = state.mean + self.overwrite(state, report, report.pairs.updates) / state.own.shape[1]
        return Stored(state.model + self.server_multiplier * mean.to(state.model.dtype), state.own, mean)


ALGORITHMS = (FedAU, AverageParticipating, AverageAll, FixedWeights, KnownParticipation, FedVarp, MIFA)
