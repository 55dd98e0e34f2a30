"""What an algorithm is to the engines: who computes, what they compute, and what the server makes of it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch

from bounds.checks import check_count
from empirical.algorithms.cohort import Cohort
from empirical.algorithms.local import LocalSGD, check_positive
from empirical.participation import Process


@dataclass(frozen=True)
class Pairs:
    """The single updates of one round. A *pair* is one client computing in one seed.

    Args:
        seeds: which row of the batch of seeds each pair belongs to, shape (pairs,).
        clients: which client, shape (pairs,).
        weights: its weight $q^n$, shape (pairs,).
        updates: its update $\\Delta_n$, shape (pairs, d).
    """

    seeds: torch.Tensor
    clients: torch.Tensor
    weights: torch.Tensor
    updates: torch.Tensor


@dataclass(frozen=True)
class Report:
    """What the server hears in one round, over all seeds.

    Args:
        weighted_sum: $\\sum_n q^n \\Delta_n$, shape (seeds, d); zero where nobody computed.
        cohort: who computed.
        pairs: the single updates, if the algorithm `needs_updates`.
    """

    weighted_sum: torch.Tensor
    cohort: Cohort
    pairs: Pairs | None = None


class Algorithm(ABC):
    """A federated algorithm: a client update (`local`) and a server update, nothing else.

    Subclasses are frozen dataclasses of step sizes and intervals. The state is an immutable `NamedTuple` of
    tensors whose first axis is the seeds, so that a seed can be taken out of the batch. The round `t` counts
    from the start of the algorithm's own phase.
    """

    kind: ClassVar[str]
    needs_updates: ClassVar[bool] = False

    @property
    @abstractmethod
    def local(self) -> LocalSGD:
        """What a participating client computes, from `model(state)`."""

    @abstractmethod
    def init(self, x0: torch.Tensor, clients: int) -> Any:
        """The state before round 0, from the initial models (seeds, d) and the number of clients N."""

    def informed(self, process: Process) -> Algorithm:
        """The algorithm that knows what it may know of the participation it will meet: nothing, by default."""
        return self

    def cohort(self, state: Any, t: int, drawn: Cohort, clients: int) -> Cohort:
        """Who computes in round t, with which weights, when `drawn` is who is present: as drawn, by default.

        Args:
            state: before the round.
            t: the round.
            drawn: the pairs that are present, with the weights of the participation.
            clients: N.
        """
        return drawn

    @abstractmethod
    def server_update(self, state: Any, t: int, report: Report) -> Any:
        """The state after round t."""

    def model(self, state: Any) -> torch.Tensor:
        """The global models $x_t$, shape (seeds, d)."""
        return state.model

    def diagnostics(self, state: Any) -> dict[str, torch.Tensor]:
        """Counts worth keeping at the end of a run, each of shape (seeds,)."""
        return {}

    def spec(self) -> dict[str, Any]:
        """The dictionary from which `algorithm_from_spec` makes this algorithm again."""
        return {"kind": self.kind} | dataclasses.asdict(self)  # type: ignore[call-overload]


class Checked(Algorithm):
    """Checks the fields of an algorithm by what they mean: counts by their names in `checks`, the others are > 0."""

    checks: ClassVar[Mapping[str, Callable[[str, object], Any]]] = {
        "local_steps": check_count,
        "interval": check_count,
    }

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            check = self.checks.get(field.name, check_positive)
            object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))


class LocalSteps(Checked):
    """Algorithms whose clients run ordinary local SGD."""

    local_step_size: float
    local_steps: int

    @property
    def local(self) -> LocalSGD:
        return LocalSGD(self.local_step_size, self.local_steps)


class ModelOnly(NamedTuple):
    """The state of an algorithm that remembers nothing but the model (seeds, d)."""

    model: torch.Tensor
