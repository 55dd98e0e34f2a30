"""What an algorithm is to the engines: who computes, what they compute, and what the server makes of it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch

from empirical.algorithms.local import LocalSGD
from empirical.participation import Round


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
        pairs: the single updates, if the algorithm `needs_updates`.
    """

    weighted_sum: torch.Tensor
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

    def cohort(self, t: int, drawn: Round, clients: int) -> Round:
        """Who computes in round t, with which weights, when `drawn` is who is present: as drawn, by default."""
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


class ModelOnly(NamedTuple):
    """The state of an algorithm that remembers nothing but the model (seeds, d)."""

    model: torch.Tensor
