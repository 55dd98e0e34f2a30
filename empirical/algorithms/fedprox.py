"""FedProx: local steps with a proximal term."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import torch

from fedbounds.bounds.inputs.checks import check_number
from fedbounds.empirical.algorithms.algorithm import Averaging
from fedbounds.empirical.algorithms.local import Gradient, LocalSGD
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps, LocalWork


@dataclass(frozen=True)
class ProximalSGD(LocalSGD):
    r"""I steps $y \leftarrow y - \gamma(g_n(y) + \mu(y - x))$; running statistics have no such term."""

    plain: ClassVar[bool] = False
    proximal_mu: float = 0.0
    statistics: int = 0  # how many coordinates, the last, are running statistics

    def sparing(self, uncompressed: int, statistics: int = 0) -> ProximalSGD:
        return replace(self, statistics=statistics)

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        def proximal(y: torch.Tensor) -> torch.Tensor:
            displacement = y - x
            displacement[..., x.shape[-1] - self.statistics :] = 0
            return torch.add(gradient(y), displacement, alpha=self.proximal_mu)

        return super().update(x, proximal)


@dataclass(frozen=True, repr=False)
class FedProx(Averaging, ConfigurableSteps):
    r"""FedAvg whose clients descend on $F_n(y) + \frac\mu2\|y - x_t\|^2$.

    $$y \leftarrow y - \gamma_t\big(g_n(y) + \mu(y - x_t)\big) \quad (\tau_n \text{ times from } x_t), \qquad
      x_{t+1} = x_t + \sum_n q_t^n(y_n - x_t)$$

    The local solver is SGD with $\tau_n$ steps; the paper allows any inexact solution. With $\mu=0$ it is FedAvg. The
    first local step is that of FedAvg whatever $\mu$ is.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $\tau_n\ge1$, as in `FedAvg`.
        proximal_mu: $\mu \ge 0$, units f/x^2.
        local_epochs, momentum, step_size_schedule: as in `FedAvg`.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedProx(0.1, 5, proximal_mu=0.5)
        FedProx(local_step_size=0.1, local_steps=5, proximal_mu=0.5)

    Source: Li et al. 2020, Federated optimization in heterogeneous networks, Algorithm 2; it has no result here.
    """

    kind = "fedprox"
    checks: ClassVar[Mapping[str, Callable[[str, object], Any]]] = {
        **ConfigurableSteps.checks,
        "proximal_mu": partial(check_number, low=0),
    }
    proximal_mu: float = field(kw_only=True)

    @property
    def skips_empty_rounds(self) -> bool:
        """If rounds are alike."""
        return self.same_in_all_rounds

    @property
    def local(self) -> LocalSGD | LocalWork:
        steps = super().local
        if not self.proximal_mu:
            return steps
        if isinstance(steps, LocalWork):
            return replace(steps, proximal_mu=self.proximal_mu)
        return ProximalSGD(steps.step_size, steps.steps, proximal_mu=self.proximal_mu)
