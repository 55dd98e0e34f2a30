"""FedNova: a mean of updates that are divided by the clients' work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from fedbounds.empirical.algorithms.algorithm import Averaging
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.algorithms.local_optimizer import LocalOptimizer
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.runtime.streams import Streams


@dataclass(frozen=True, repr=False)
class FedNova(Averaging, ConfigurableSteps):
    r"""FedAvg with normalized updates: unequal local steps do not change the objective.

    $$x_{t+1} = x_t - \tau_{\rm eff}\sum_n q_t^n\gamma_t d_n, \qquad
      d_n = -\frac{\Delta_t^n}{\gamma_t\|a_n\|_1}, \qquad \tau_{\rm eff} = \sum_np_n\|a_n\|_1,$$

    where $\|a_n\|_1=\tau_n$ without momentum, so that $d_n$ is the mean of the local gradients, and $p_n$ is the
    weight of $F_n$ in the objective. The sum in $\tau_{\rm eff}$ is over all clients, who takes part or not. With
    equal local steps it is FedAvg.

    Args:
        local_step_size: $\gamma > 0$, units x^2/f.
        local_steps: $\tau_n\ge1$, as in `FedAvg`.
        effective_local_steps: $\tau_{\rm eff}>0$; if not given, the sum above, of each round.
        local_epochs, momentum, step_size_schedule: as in `FedAvg`.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> FedNova(0.1, (2, 5), effective_local_steps=3)
        FedNova(local_step_size=0.1, local_steps=(2, 5), effective_local_steps=3.0)

    Source: Wang et al. 2020, Tackling the objective inconsistency problem, Section 4; it has no result here.
    """

    kind = "fednova"
    averages = False  # the factors of the updates do not sum to one
    checks: ClassVar[Mapping[str, Callable[[str, object], Any]]] = {
        **ConfigurableSteps.checks,
        "effective_local_steps": lambda name, value: None if value is None else check_positive(name, value),
    }
    effective_local_steps: float | None = field(default=None, kw_only=True)
    _shares: ClassVar[np.ndarray | None] = None  # $p_n$ of the problem to which it is bound; None if equal

    @property
    def skips_empty_rounds(self) -> bool:
        """If rounds are alike."""
        return self.same_in_all_rounds

    def bind_problem(self, problem: Problem) -> FedNova:
        bound = super().bind_problem(problem)
        assert isinstance(bound, FedNova)
        object.__setattr__(bound, "_shares", problem.client_weights)
        return bound

    def local_work(self, t: int, overall: int, cohort: Cohort, streams: Sequence[Streams]) -> Cohort:
        r"""The pairs with their local steps, and their weights multiplied by $\tau_{\rm eff}/\|a_n\|_1$."""
        cohort = super().local_work(t, overall, cohort, streams)
        if self.departure is None and self.effective_local_steps is None:
            return cohort  # all factors are one
        assert self._bound is not None
        steps = np.broadcast_to(self._bound.steps(t, overall, streams), (len(streams), len(self._bound.unit)))
        masses = LocalOptimizer(momentum=self.momentum).masses(int(steps.max()))[steps]
        effective = self.effective_local_steps
        if effective is None:
            effective = np.average(masses, axis=1, weights=self._shares, keepdims=True)
        return cohort.with_weights(cohort.weights * (effective / masses)[cohort.seeds, cohort.clients])
