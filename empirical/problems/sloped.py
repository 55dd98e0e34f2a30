r"""Clients who share one function and differ by a linear term each: the divergence is the same at every x."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real, start_point
from fedbounds.empirical.problems.problem import Synthetic


class Sloped(Synthetic):
    r"""$F_n(x) = \phi(x) + b_n^\top x$ with $\sum_n b_n = 0$, so that $f = \phi$, whose least value is $\phi(0) = 0$.

    Args:
        slopes: $b_n$ as `(clients, d)`, in units of f/x, with mean zero.
        noise: $s \ge 0$ per coordinate, in units of f/x.
        x0: the starting point `(d,)`; zero if not given.
        device: where the tensors live.
    """

    def __init__(self, slopes: Any, noise: float, x0: Any, device: torch.device | str) -> None:
        b = array("slopes", slopes, (None, None))
        self.clients, self.dimension = int(b.shape[0]), int(b.shape[1])
        self.dtype, self.device = torch.float64, torch.device(device)
        if float(b.mean(0).abs().max()) > 1e-9 * float(b.abs().max()):
            raise FedboundsError(f"slopes must have mean zero over clients; their mean is {b.mean(0).tolist()}")
        self.noise = real("noise", noise)
        self.slopes, self.x0 = (b - b.mean(0)).to(self.device), start_point(x0, self.dimension, self.device)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.objective_gradient(x).add_(self.slopes[clients])

    def objective_gap(self, x: Tensor) -> Tensor:
        return self.objective(x)  # min f = f(0) = 0

    def minimizer(self) -> Tensor:
        """A global minimizer of f: the origin (where f repeats itself, one of many)."""
        return torch.zeros_like(self.x0)

    def offsets(self) -> np.ndarray:
        return self.slopes.cpu().numpy().copy()

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""Those that are the same whatever $\phi$ is, all exact; subclasses add the others.

        initial gap $F = \phi(x_0)$; gradient noise $\sigma = \sqrt d\,s$; divergence $\max_n\|b_n\|$.
        """
        return {
            "clients": Constant(float(self.clients), "exact"),
            "initial_gap": Constant(float(self.objective(self.x0)), "exact", "f(x0), as min f = 0"),
            "gradient_noise": self._noise_constant(),
            "gradient_divergence_sup": Constant(
                float(torch.linalg.vector_norm(self.slopes, dim=1).max()), "exact", "max_n ||b_n||, the same at every x"
            ),
        }

    @abstractmethod
    def objective_gradient(self, x: Tensor) -> Tensor:
        r"""$\nabla\phi(x)$, a new tensor: (..., d) -> (..., d)."""


def check_slopes_memory(clients: int, dimension: int) -> None:
    """Refuse a random problem of slopes that this machine cannot hold while it is made."""
    check_memory(f"a problem with clients = {clients}, dimension = {dimension}", 4 * 8 * clients * dimension)


def random_slopes(rng: np.random.Generator, clients: int, dimension: int, heterogeneity: float) -> np.ndarray:
    r"""Gaussian slopes with mean zero, `(clients, d)`, the longest as long as `heterogeneity` (of one client: 0)."""
    slopes = rng.standard_normal((clients, dimension))
    slopes -= slopes.mean(0)
    largest = np.linalg.norm(slopes, axis=1).max()
    return (heterogeneity / largest if clients > 1 else 0.0) * slopes
