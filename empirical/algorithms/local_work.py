"""Local SGD with unequal numbers of steps, step sizes that change over rounds, and momentum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.algorithm import Checked, Fits
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local import LocalSGD
from fedbounds.empirical.algorithms.local_optimizer import LocalOptimizer
from fedbounds.empirical.algorithms.step_sizes import StepSizeSchedule, check_schedule
from fedbounds.empirical.algorithms.workload import Amount, RandomWork, Workload, check_work
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.runtime.streams import Streams


@dataclass(frozen=True)
class LocalWork:
    r"""Local steps whose number and step size are those of each pair in the cohort.

    $$d_{k+1}=\rho d_k+g_n(y_k)+\mu(y_k-x),\quad y_{k+1}=y_k-\gamma_td_{k+1},\quad d_0=0,\ y_0=x,\qquad
      \Delta_n=y_{\tau_n}-x$$
    """

    step_size: float  # $\gamma$, of the first round
    optimizer: LocalOptimizer  # $\rho$ is its momentum; it has nothing else
    proximal_mu: float = 0.0  # $\mu$
    plain: ClassVar[bool] = False
    worded: ClassVar[bool] = False
    oracle: ClassVar[str] = "stochastic"


class Departure(NamedTuple):
    """In which way local steps are not those of local SGD."""

    field: str  # the argument that makes the difference
    meaning: str  # what the algorithm has


@dataclass(frozen=True, repr=False)
class ConfigurableSteps(Checked):
    """Algorithms whose local steps may be unequal, change over rounds and have momentum; by default local SGD."""

    checks: ClassVar[Mapping[str, Callable[[str, object], Any]]] = {
        **Checked.checks,
        "local_steps": lambda name, value: value,  # checked together with local_epochs
        "local_epochs": lambda name, value: value,
        "momentum": lambda name, value: LocalOptimizer(momentum=value).momentum,  # type: ignore[arg-type]
        "step_size_schedule": lambda name, value: check_schedule(value),
    }
    local_step_size: float
    local_steps: Amount | None = None
    _: KW_ONLY
    local_epochs: Amount | None = None
    momentum: float = 0.0
    step_size_schedule: StepSizeSchedule | Mapping[str, Any] | None = None
    _bound: ClassVar[Workload | None] = None  # the local steps on the problem to which it is bound

    def __post_init__(self) -> None:
        steps, epochs = check_work(self.local_steps, self.local_epochs)
        object.__setattr__(self, "local_steps", steps)
        object.__setattr__(self, "local_epochs", epochs)
        super().__post_init__()

    @property
    def local(self) -> LocalSGD | LocalWork:
        if self.departure is None and self._equal_steps is not None:
            return LocalSGD(self.local_step_size, self._equal_steps)
        return LocalWork(self.local_step_size, LocalOptimizer(momentum=self.momentum))

    @property
    def departure(self) -> Departure | None:
        """In which way its clients do not run local SGD of one step size and number of steps; None if they do.

        Epochs become local steps on a problem only: call `bind_problem` before.
        """
        if self.momentum:
            return Departure("momentum", f"momentum = {self.momentum:g} in local steps")
        if self._schedule is not None:
            return Departure("step_size_schedule", f"step sizes that change over rounds ({self._schedule.kind})")
        if self._equal_steps is None:
            return Departure("local_steps", "local steps that differ between clients or rounds")
        return None

    @property
    def draws(self) -> bool:
        return isinstance(self._amount, RandomWork)

    @property
    def same_in_all_rounds(self) -> bool:
        """Whether neither the step size nor the local steps depend on the round."""
        return self.step_size_schedule is None and not self.draws and np.ndim(self._amount) < 2  # type: ignore[arg-type]

    def check(self, problem: Fits, rounds: int) -> None:
        super().check(problem, rounds)
        self.workload(problem).check(rounds)
        schedule = self._schedule
        if schedule is not None and rounds > schedule.most_rounds:
            raise FedboundsError(
                f"step_size_schedule.rounds = {schedule.most_rounds:g}, but {self.kind} runs for {rounds} rounds; give "
                f"at least {rounds}"
            )

    def workload(self, problem: Fits) -> Workload:
        """The local steps of every client of a problem.

        Raises:
            FedboundsError: epochs of clients who hold no samples.
        """
        return Workload.of(self.local_steps, self.local_epochs, problem)

    def bind_problem(self, problem: Problem) -> ConfigurableSteps:
        bound = dataclasses.replace(self)
        object.__setattr__(bound, "_bound", self.workload(problem))
        return bound

    def most_local_steps(self, problem: Fits) -> int:
        return int(np.max(self.workload(problem).most))

    def local_work(self, t: int, overall: int, cohort: Cohort, streams: Sequence[Streams]) -> Cohort:
        r"""The pairs with their $\tau_n$ and $\gamma_t$, where these are not always the same."""
        if self.departure is None:
            return cohort
        if self._bound is None:
            raise FedboundsError(f"{self.kind} has rounds only on a problem: call bind_problem(problem)")
        steps = self._bound.steps(t, overall, streams)
        own = steps[cohort.clients] if steps.ndim == 1 else steps[cohort.seeds, cohort.clients]
        multiple = 1.0 if self._schedule is None else self._schedule.multiple(t)
        sizes = np.full(len(own), self.local_step_size * multiple)
        return dataclasses.replace(cohort, steps=own, step_sizes=sizes)

    def spec(self) -> dict[str, Any]:
        """Keys that are as in local SGD are left out."""
        table: dict[str, Any] = {"kind": self.kind}
        for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only)):
            value = getattr(self, field.name)
            if (field.kw_only or field.name == "local_steps") and value == field.default:
                continue
            if isinstance(value, StepSizeSchedule):
                value = value.spec()
            table[field.name] = dataclasses.asdict(value) if isinstance(value, RandomWork) else value
        return table

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.spec().items() if name != "kind")
        return f"{type(self).__name__}({shown})"

    @property
    def _schedule(self) -> StepSizeSchedule | None:
        return check_schedule(self.step_size_schedule)

    @property
    def _amount(self) -> Amount:
        amount = self.local_epochs if self.local_steps is None else self.local_steps
        assert amount is not None
        return amount

    @cached_property
    def _equal_steps(self) -> int | None:
        """The number of local steps of all clients in all rounds; None where it is not the same, or not known."""
        if self.draws or (self.local_epochs is not None and self._bound is None):
            return None
        steps = np.asarray(self._amount) * (1 if self._bound is None else self._bound.unit)
        return int(steps.flat[0]) if np.ptp(steps) == 0 else None
