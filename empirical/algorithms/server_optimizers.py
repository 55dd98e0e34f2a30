"""FedAvg whose server steps with momentum or Adam along the mean update; of no paper with results here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import is_number, quote
from fedbounds.empirical.algorithms.algorithm import RoundReport
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps


def _check_decay(name: str, value: object) -> float:
    if not is_number(value) or not 0 <= value < 1:
        raise FedboundsError(f"{name} = {quote(value)} must be a number in [0, 1)")
    return float(value)


class ServerOptimizer(ConfigurableSteps):
    """FedAvg with a server that remembers earlier updates; a round without participants changes nothing."""

    checks: ClassVar[Mapping[str, Callable[[str, object], Any]]] = {
        **ConfigurableSteps.checks,
        **dict.fromkeys(("server_momentum", "beta1", "beta2"), _check_decay),
        "tau": check_positive,
    }

    @property
    def skips_empty_rounds(self) -> bool:
        """If rounds are alike."""
        return self.same_in_all_rounds


def _where_present(report: RoundReport, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """The new rows of seeds with participants, the old ones of the others."""
    if report.cohort.counts.all():
        return new
    present = report.cohort.to_device(new.device).counts > 0
    return torch.where(present[:, None], new, old)


class MomentumState(NamedTuple):
    """The model and the momentum, each (seeds, d)."""

    model: torch.Tensor
    momentum: torch.Tensor


@dataclass(frozen=True, repr=False)
class FedAvgM(ServerOptimizer):
    r"""FedAvg with server momentum, $\Delta_t=\sum_nq_t^n\Delta_t^n$.

    $$v_{t+1}=\beta v_t+\Delta_t,\qquad x_{t+1}=x_t+\eta v_{t+1},\qquad v_0=0$$

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I\ge1$, or as in `FedAvg`.
        server_momentum: $\beta$ in [0, 1); 0 is generalized FedAvg with P = 1.
        server_multiplier: $\eta > 0$, dimensionless.
        local_epochs, momentum, step_size_schedule: as in `FedAvg`.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedAvgM(0.1, 5, server_momentum=0.9)
        FedAvgM(local_step_size=0.1, local_steps=5, server_momentum=0.9, server_multiplier=1.0)

    Source: Hsu, Qi & Brown 2019, Section 4.3; it has no result here.
    """

    kind = "fedavgm"
    server_momentum: float = 0.9
    server_multiplier: float = 1.0

    def init(self, x0: torch.Tensor, clients: int) -> MomentumState:
        return MomentumState(x0, torch.zeros_like(x0))

    def server_update(self, state: MomentumState, t: int, report: RoundReport) -> MomentumState:
        momentum = self.server_momentum * state.momentum + report.weighted_sum
        momentum = _where_present(report, momentum, state.momentum)
        model = state.model + self.server_multiplier * momentum
        return MomentumState(_where_present(report, model, state.model), momentum)


class AdamState(NamedTuple):
    """The model and the first and second moments of mean updates, each (seeds, d)."""

    model: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor


@dataclass(frozen=True, repr=False)
class FedAdam(ServerOptimizer):
    r"""FedAvg with Adam at the server, without bias correction, $\Delta_t=\sum_nq_t^n\Delta_t^n$.

    $$m_{t+1}=\beta_1m_t+(1-\beta_1)\Delta_t,\quad v_{t+1}=\beta_2v_t+(1-\beta_2)\Delta_t^2,\quad
      x_{t+1}=x_t+\eta\frac{m_{t+1}}{\sqrt{v_{t+1}}+\tau},\quad m_0=0,\ v_0=\tau^2,$$

    in each coordinate.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $I\ge1$, or as in `FedAvg`.
        server_step_size: $\eta > 0$, units x.
        beta1: $\beta_1$ in [0, 1).
        beta2: $\beta_2$ in [0, 1).
        tau: $\tau > 0$, units x.
        local_epochs, momentum, step_size_schedule: as in `FedAvg`.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedAdam(0.1, 5, server_step_size=0.01).spec()["tau"]
        0.001

    Source: Reddi et al. 2021, Algorithm 2, which asks for $v_0\ge\tau^2$; it has no result here.
    """

    kind = "fedadam"
    server_step_size: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def init(self, x0: torch.Tensor, clients: int) -> AdamState:
        return AdamState(x0, torch.zeros_like(x0), torch.full_like(x0, self.tau**2))

    def server_update(self, state: AdamState, t: int, report: RoundReport) -> AdamState:
        update = report.weighted_sum
        first = self.beta1 * state.first + (1 - self.beta1) * update
        second = self.beta2 * state.second + (1 - self.beta2) * update**2
        model = state.model + self.server_step_size * first / (second.sqrt() + self.tau)
        made = AdamState(model, first, second)
        return AdamState(*(_where_present(report, new, old) for new, old in zip(made, state, strict=True)))
