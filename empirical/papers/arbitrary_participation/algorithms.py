"""Generalized FedAvg and what it was compared with: Wang & Ji, "A Unified Analysis of Federated Learning with
Arbitrary Client Participation", NeurIPS 2022: Algorithm 1, Section 5 and the experiments.

The server sees $\\sum_n q_t^n\\Delta_t^n$, with weights $q_t^n \\ge 0$ that the paper takes to sum to one.
Weights that do not are applied as given; an empty round adds zero. Both are outside the
theory, and a trace counts them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from fedbounds.empirical.algorithms.algorithm import (
    Averaging,
    Checked,
    LocalSteps,
    ModelOnly,
    RoundReport,
    ServerSchedule,
)
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local import LocalSGD
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps
from fedbounds.empirical.participation import Round


class _FrozenSteps(Checked):
    """Algorithms whose clients evaluate all their gradients at the model they received."""

    step_size: float
    local_steps: int

    @property
    def local(self) -> LocalSGD:
        return LocalSGD(self.step_size, self.local_steps, frozen=True)


class Anchored(NamedTuple):
    """The model and the model at the start of the current interval, each (seeds, d)."""

    model: torch.Tensor
    anchor: torch.Tensor


@dataclass(frozen=True, repr=False)
class GeneralizedFedAvg(ConfigurableSteps):
    r"""FedAvg whose progress over every P rounds is amplified by eta.

    $$\hat x_{t+1} = x_t + \sum_n q_t^n \Delta_t^n, \qquad
      x_{t+1} = \begin{cases} x_{t_0} + \eta(\hat x_{t+1} - x_{t_0}) & t + 1 - t_0 = P\\ \hat x_{t+1} & \text{else}
      \end{cases}$$

    where $t_0$ starts the current interval. The last $T \bmod P$ rounds stay un-amplified. This is the anchor
    form; the paper accumulates $u = \hat x - x_{t_0}$ and adds $(\eta - 1)u$, as the slow twin does.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$, or as in `FedAvg`.
        server_multiplier: $\eta > 0$, dimensionless; 1 is FedAvg.
        interval: $P \ge 1$ rounds; with 1 it is FedAvg with two-sided learning rates.
        local_epochs, momentum, step_size_schedule: as in `FedAvg`.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> GeneralizedFedAvg(0.1, 5, server_multiplier=10, interval=500).spec()["kind"]
        'generalized-fedavg'

    Source: Wang & Ji 2022, Algorithm 1.
    """

    kind = "generalized-fedavg"
    server_multiplier: float = 1.0
    interval: int = 1

    @property
    def schedule(self) -> ServerSchedule:
        amplifies = self.server_multiplier != 1
        return ServerSchedule(self.interval, self.server_multiplier) if amplifies else ServerSchedule()

    @property
    def skips_empty_rounds(self) -> bool:
        """Not where several rounds are amplified together: an interval with an empty round is shorter."""
        return self.same_in_all_rounds and (self.interval == 1 or self.server_multiplier == 1)

    def init(self, x0: torch.Tensor, clients: int) -> Anchored:
        return Anchored(x0, x0)

    def server_update(self, state: Anchored, t: int, report: RoundReport) -> Anchored:
        model = state.model + report.weighted_sum
        if (t + 1) % self.interval:
            return Anchored(model, state.anchor)
        model = state.anchor + self.server_multiplier * (model - state.anchor)
        return Anchored(model, model)


@dataclass(frozen=True, repr=False)
class FedAvg(Averaging, ConfigurableSteps):
    r"""$x_{t+1} = x_t + \sum_n q_t^n\Delta_t^n$: generalized FedAvg with $\eta = 1$, for which P has no effect.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $\tau_n\ge1$: one number I, one for each client, one for each round and client (T, N), or drawn,
            as `{low: 2, high: 5}`.
        local_epochs: the same in epochs, in place of local steps.
        momentum: $\rho$ in [0, 1) of heavy-ball local steps; the buffer is zero at the start of each round.
        step_size_schedule: a table such as `{kind: "cosine", rounds: 100}`, also `inverse`, `inverse-sqrt` (with
            `delay`) or `step` (with `every`, `factor`); not given for a constant step size.

    Raises:
        FedboundsError: a number outside its domain, both or neither of steps and epochs.

    Example:
        >>> FedAvg(0.1, 5).local.steps
        5
        >>> FedAvg(0.1, local_epochs=2, momentum=0.9, step_size_schedule={"kind": "inverse-sqrt"})
        FedAvg(local_step_size=0.1, local_epochs=2, momentum=0.9, step_size_schedule={'kind': 'inverse-sqrt', ...})

    Source: McMahan et al. 2017; Wang & Ji 2022, Section 2; unequal steps, momentum and schedules are not in the papers.
    """

    kind = "fedavg"

    @property
    def schedule(self) -> ServerSchedule:
        return ServerSchedule()

    @property
    def skips_empty_rounds(self) -> bool:
        """If rounds are alike."""
        return self.same_in_all_rounds


@dataclass(frozen=True)
class WaitMinibatch(Averaging, LocalSteps):
    r"""One round of FedAvg with all clients, once per P rounds.

    In the last round of each interval all N clients run I local steps with minibatch gradients and weigh 1/N;
    in all others nothing happens. Who was drawn to participate plays no role, so an empty round changes
    nothing.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        interval: $P \ge 1$ rounds, in which every client is assumed to have been available.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> nobody = Cohort.from_rounds([Round(np.zeros(0, dtype=np.int64), np.zeros(0))])
        >>> WaitMinibatch(0.1, 5, interval=2).cohort(None, 1, nobody, clients=4).weights
        array([0.25, 0.25, 0.25, 0.25])

    Source: Wang & Ji 2022, experiments, "wait-minibatch".
    """

    kind = "wait-minibatch"
    local_step_size: float
    local_steps: int
    interval: int

    @property
    def schedule(self) -> ServerSchedule:
        return ServerSchedule()

    @property
    def waits(self) -> int:
        return self.interval

    def cohort(self, state: ModelOnly | None, t: int, drawn: Cohort, clients: int) -> Cohort:
        present = 0 if (t + 1) % self.interval else clients
        return Cohort.from_rounds([Round(np.arange(present), np.full(present, 1 / clients))] * len(drawn.counts))


@dataclass(frozen=True)
class WaitFull(WaitMinibatch):
    r"""`WaitMinibatch` whose clients use the gradient of their whole local data set.

    Example:
        >>> WaitFull(0.1, 5, interval=500).local.oracle
        'full'

    Source: Wang & Ji 2022, experiments, "wait-full".
    """

    kind = "wait-full"

    @property
    def local(self) -> LocalSGD:
        return LocalSGD(self.local_step_size, self.local_steps, oracle="full")


class Waiting(NamedTuple):
    """The frozen model (seeds, d), what each client has added up (seeds, N, d), from how many samples (seeds, N),
    and how many intervals ended before every client took part (seeds,)."""

    model: torch.Tensor
    sums: torch.Tensor
    samples: torch.Tensor
    postponed: torch.Tensor


@dataclass(frozen=True)
class WaitForAll(_FrozenSteps):
    r"""One SGD step per P rounds, with gradients that every client gathers at the frozen model while it is present.

    $$x_{t_0+P} = x_{t_0} - \gamma\,\frac1N\sum_n \frac1{M_n}\sum_{j\le M_n} g_n^{(j)}(x_{t_0}),$$

    where a client calls its oracle `local_steps` times in each round of the interval in which it
    participates, $M_n$ times in all; its weight plays no role. The paper needs $M_n \ge 1$. If a
    client is missing when the interval ends, the step waits for the end of the next one: the model has not
    moved, so all samples stay valid. A trace counts these `postponed_intervals`. Holds O(seeds x N x d).

    Args:
        step_size: $\gamma > 0$, units x^2/f.
        local_steps: oracle calls per participation, $\ge 1$.
        interval: $P \ge 1$ rounds.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> WaitForAll(0.1, 5, interval=10).local.frozen
        True

    Source: Wang & Ji 2022, Section 5 (in words; the formula is ours).
    """

    kind = "wait-for-all"
    needs_updates = True
    step_size: float
    local_steps: int
    interval: int

    def init(self, x0: torch.Tensor, clients: int) -> Waiting:
        seeds, dimension = x0.shape
        nobody = x0.new_zeros(seeds, clients, dtype=torch.int64)
        return Waiting(x0, x0.new_zeros(seeds, clients, dimension), nobody, nobody[:, 0])

    def server_update(self, state: Waiting, t: int, report: RoundReport) -> Waiting:
        assert report.pairs is not None
        who = (report.pairs.seeds, report.pairs.clients)
        sums = state.sums.index_put(who, report.pairs.updates, accumulate=True)
        heard = torch.full_like(report.pairs.clients, self.local_steps)
        samples = state.samples.index_put(who, heard, accumulate=True)
        if (t + 1) % self.interval:
            return state._replace(sums=sums, samples=samples)
        complete = (samples > 0).all(1)
        step = (sums / samples[..., None].clamp(min=1)).mean(1)
        return Waiting(
            torch.where(complete[:, None], state.model + step, state.model),
            torch.where(complete[:, None, None], 0.0, sums),
            torch.where(complete[:, None], 0, samples),
            state.postponed + ~complete,
        )

    def diagnostics(self, state: Waiting) -> dict[str, torch.Tensor]:
        return {"postponed_intervals": state.postponed}


class Frozen(NamedTuple):
    """The model at the start of the current interval and the displacement since, each (seeds, d)."""

    model: torch.Tensor
    displacement: torch.Tensor


@dataclass(frozen=True)
class FrozenGradient(_FrozenSteps):
    r"""The limit of generalized FedAvg as $\gamma \to 0$ with $\kappa = \gamma\eta$ fixed.

    $$x_{t_0+P} = x_{t_0} - \kappa\sum_{t=t_0}^{t_0+P-1}\sum_n q_t^n\sum_{i<I} g_n(x_{t_0})$$

    The model moves only when an interval ends; the last $T \bmod P$ rounds move it not at all.

    Args:
        step_size: $\kappa = \gamma\eta > 0$, units x^2/f.
        local_steps: $I \ge 1$.
        interval: $P \ge 1$ rounds.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FrozenGradient(0.1, 5, interval=10).local.step_size
        0.1

    Source: the limit of Wang & Ji 2022, Algorithm 1.
    """

    kind = "frozen-gradient"
    step_size: float
    local_steps: int
    interval: int = 1

    @property
    def schedule(self) -> ServerSchedule:
        return ServerSchedule(self.interval, frozen=True)

    def init(self, x0: torch.Tensor, clients: int) -> Frozen:
        return Frozen(x0, torch.zeros_like(x0))

    def server_update(self, state: Frozen, t: int, report: RoundReport) -> Frozen:
        displacement = state.displacement + report.weighted_sum
        if (t + 1) % self.interval:
            return Frozen(state.model, displacement)
        return Frozen(state.model + displacement, torch.zeros_like(displacement))


ALGORITHMS = (GeneralizedFedAvg, FedAvg, WaitMinibatch, WaitFull, WaitForAll, FrozenGradient)
