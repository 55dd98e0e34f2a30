r"""Clients whose gradients are bounded, convex or not, with every constant exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.symbols import Constant, Domain, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real
from fedbounds.empirical.problems.sloped import Sloped, check_slopes_memory, random_slopes


class ScalarFunction(NamedTuple):
    """A function of one real variable, its derivative, why it is not strongly convex, and where it is steepest."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    flat: str
    steepest: str


def _log_cosh(x: Tensor) -> Tensor:
    """log cosh x, to full relative accuracy near 0 and without overflow."""
    size = x.abs()
    near = size.clamp(max=1.0).sinh().square().log1p() / 2
    return torch.where(size < 1, near, size + torch.expm1(-2 * size).div(2).log1p())


SHAPES: Mapping[str, ScalarFunction] = {
    "log-cosh": ScalarFunction(
        _log_cosh, torch.tanh, "the second derivative falls to 0 far away", "approached far away"
    ),
    "cosine": ScalarFunction(
        lambda x: 2 * (x / 2).sin().square(), torch.sin, "the second derivative is negative at pi", "attained at pi/2"
    ),
}


class BoundedGradient(Sloped):
    r"""A common function with a bounded gradient plus one linear term per client; the linear terms cancel in the mean.

    $$F_n(x) = \phi(x) + b_n^\top x,\qquad \sum_n b_n = 0,\qquad f = \phi,\ \min f = f(0) = 0,$$
    $$\phi(x) = \sum_j a_j \log\cosh x_j\ \text{(convex)}\quad\text{or}\quad
      \phi(x) = \sum_j a_j (1 - \cos x_j)\ \text{(not convex)}.$$

    All constants of Wang & Ji 2024, Assumptions 1-3 and Option 2 of Assumption 5 are exact.

    Args:
        slopes: $b_n$ as `(clients, d)`, in units of f/x, with mean zero.
        scales: $a_j > 0$ as `(d,)`, in units of f/x^2 (x has no unit, so f and f/x^2 have the same).
        shape: "log-cosh" or "cosine".
        noise: $s \ge 0$ per coordinate, in units of f/x.
        x0: the starting point `(d,)`; zero if not given.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, an unknown shape, slopes that do not cancel.

    Example:
        >>> problem = BoundedGradient([[1.0, 0.0], [-1.0, 0.0]], scales=[0.6, 0.8], x0=[3.0, 1.0])
        >>> problem.constants()["gradient_bound"].value, problem.constants()["smoothness"].value
        (1.0, 0.8)

    Source: the setting is that of Wang & Ji 2024, Theorem 2, Option 2; the family is ours.
    """

    def __init__(
        self,
        slopes: Any,
        scales: Any,
        shape: str = "log-cosh",
        noise: float = 0.0,
        x0: Any = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(slopes, noise, x0, device)
        if not isinstance(shape, str) or shape not in SHAPES:
            raise unknown_name("shape", str(shape), SHAPES)
        a = array("scales", scales, (self.dimension,))
        if float(a.min()) <= 0:
            raise FedboundsError(f"scales[{int(a.argmin())}] = {float(a.min()):g} must be positive")
        self.shape, self.scales = shape, a.to(self.device)

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.scales * SHAPES[self.shape].slope(x)

    def objective(self, x: Tensor) -> Tensor:
        return (self.scales * SHAPES[self.shape].value(x)).sum(-1)

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""The constants of Assumptions 1-3 and 5, all exact; strong convexity says why there is none.

        smoothness $L = \max_ja_j$ (attained at 0); gradient bound $G = \sqrt{\sum_ja_j^2}$; and those of `Sloped`.
        """
        shape = SHAPES[self.shape]
        return super().constants() | {
            "smoothness": Constant(float(self.scales.max()), "exact", "second derivative at 0"),
            "strong_convexity": NoConstant(shape.flat),
            "gradient_bound": Constant(float(torch.linalg.vector_norm(self.scales)), "exact", shape.steepest),
        }


def random_bounded_gradient(
    clients: int,
    dimension: int,
    shape: str = "log-cosh",
    heterogeneity: float = 1.0,
    condition: float = 4.0,
    *,
    noise: float = 0.0,
    spread: float = 2.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> BoundedGradient:
    r"""An instance with $L = 1$ and Gaussian slopes scaled to the divergence $\max_n\|b_n\|$ = `heterogeneity`.

    Args:
        clients: N >= 1 (one client has no divergence, whatever the argument).
        dimension: d >= 1.
        shape: "log-cosh" or "cosine".
        heterogeneity: the divergence, in units of f/x.
        condition: ratio of the largest to the smallest $a_j$, >= 1, which are spaced evenly in logarithm.
        noise: s, standard deviation of the gradient noise per coordinate.
        spread: standard deviation of each coordinate of $x_0$.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_bounded_gradient(clients=4, dimension=2, condition=1.0)
        >>> round(problem.constants()["gradient_bound"].value, 9) == round(2**0.5, 9)
        True
    """
    clients, dimension = check_count("clients", clients), check_count("dimension", dimension)
    heterogeneity, spread = real("heterogeneity", heterogeneity), real("spread", spread)
    condition = real("condition", condition, Domain(low=1))
    check_slopes_memory(clients, dimension)
    rng = np.random.default_rng(check_count("seed", seed, low=0))
    slopes = random_slopes(rng, clients, dimension, heterogeneity)
    scales = np.exp(-math.log(condition) * np.linspace(0.0, 1.0, dimension))
    return BoundedGradient(slopes, scales, shape, noise, spread * rng.standard_normal(dimension), device=device)
