"""The problem of a run that was made elsewhere: nothing is known of it but the numbers of clients and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.problem import Problem

LOG = "log"  # the problem in the specification of such a trace


class Logged(Problem):
    """The problem of a log; its constants must be given."""

    dtype, device = torch.float64, torch.device("cpu")

    def __init__(self, clients: int, dimension: int = 0, client_weights: Sequence[float] | None = None) -> None:
        self.clients, self.dimension = clients, dimension
        self.client_weights = None if client_weights is None else np.array(client_weights)

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray:
        """An empty array, not None: the gradients of a log may have been noisy."""
        return np.zeros(0)

    def constants(self) -> dict[str, Constant | NoConstant]:
        """None: they must be given."""
        return {}

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        _unknown("starting point")

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        _unknown("gradients elsewhere than where they were logged")

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        _unknown("stochastic gradients")

    def objective(self, x: Tensor) -> Tensor:
        _unknown("values elsewhere than where they were logged")

    def objective_gradient(self, x: Tensor) -> Tensor:
        _unknown("gradients elsewhere than where they were logged")

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        _unknown("metrics but the logged ones")


def _unknown(what: str) -> NoReturn:
    raise FedboundsError(f"a log has no {what}: give the constants that need them, as given={{'L': 1}}")
