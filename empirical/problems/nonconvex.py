"""Non-convex clients whose constants are nevertheless exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.sloped import Sloped, check_slopes_memory, random_slopes


class CosineQuadratic(Sloped):
    r"""A common rippled bowl plus one linear term per client; the linear terms cancel in the mean.

    $$F_n(x) = h(x) + b_n^\top x,\qquad \sum_n b_n = 0,\qquad
      h(x) = \sum_j \Big[\tfrac{\alpha}{2} x_j^2 + \kappa (1 - \cos x_j)\Big],\qquad f = h,\ \min f = 0.$$

    f is non-convex exactly when $\kappa > \alpha$. All constants of Assumptions 1-3 are exact.

    Args:
        slopes: $b_n$ as `(clients, d)`, in units of f/x, with mean zero.
        curvature: $\alpha \ge 0$, in units of f/x^2.
        ripple: $\kappa \ge 0$, not both zero (x is measured in radians, so f and f/x^2 have the same unit).
        noise: $s \ge 0$ per coordinate, in units of f/x.
        x0: the starting point `(d,)`; zero if not given.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, slopes that do not cancel.

    Example:
        >>> problem = CosineQuadratic([[1.0, 0.0], [-1.0, 0.0]], curvature=0.5, ripple=1.0, x0=[3.0, 1.0])
        >>> problem.constants()["smoothness"].value
        1.5

    Source: the setting is that of Wang & Ji 2022, Assumptions 1-3; the family is ours.
    """

    def __init__(
        self,
        slopes: Any,
        curvature: float,
        ripple: float,
        noise: float = 0.0,
        x0: Any = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(slopes, noise, x0, device)
        self.curvature, self.ripple = real("curvature", curvature), real("ripple", ripple)
        if self.curvature + self.ripple == 0:
            raise FedboundsError("curvature and ripple are both 0; at least one must be positive")

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.curvature * x + self.ripple * x.sin()

    def objective(self, x: Tensor) -> Tensor:
        return (self.curvature / 2 * x.square() + 2 * self.ripple * (x / 2).sin().square()).sum(-1)

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""The constants of Assumptions 1-3, all exact; those that do not exist say why.

        smoothness $L = \alpha+\kappa$ (attained at 0); strong convexity $\mu = \alpha-\kappa$ if positive; gradient
        bound $G = \sqrt d\,\kappa$ if $\alpha = 0$; and those of `Sloped`.
        """
        convex = self.curvature - self.ripple
        steepest = self.dimension**0.5 * self.ripple
        return super().constants() | {
            "smoothness": Constant(self.curvature + self.ripple, "exact", "second derivative at 0"),
            "strong_convexity": Constant(convex, "exact", "second derivative at pi")
            if convex > 0
            else NoConstant(f"the second derivative at pi is {convex:g}"),
            "gradient_bound": NoConstant("the curvature makes the gradient of f grow without bound")
            if self.curvature
            else Constant(steepest, "exact", "attained at pi/2"),
        }


def random_cosine_quadratic(
    clients: int,
    dimension: int,
    heterogeneity: float = 1.0,
    curvature: float = 0.25,
    ripple: float = 0.75,
    *,
    noise: float = 0.0,
    spread: float = 3.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> CosineQuadratic:
    r"""An instance with Gaussian slopes scaled to the divergence $\max_n\|b_n\|$ = `heterogeneity`.

    Args:
        clients: N >= 1 (one client has no divergence, whatever the argument).
        dimension: d >= 1.
        heterogeneity: the divergence d, in units of f/x.
        curvature: $\alpha$.
        ripple: $\kappa$; the defaults make f non-convex with $L = 1$.
        noise: s, standard deviation of the gradient noise per coordinate.
        spread: standard deviation of each coordinate of $x_0$, in units of x.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_cosine_quadratic(clients=4, dimension=2, heterogeneity=0.5)
        >>> round(problem.constants()["gradient_divergence_sup"].value, 9)
        0.5
    """
    clients, dimension = check_count("clients", clients), check_count("dimension", dimension)
    heterogeneity = real("heterogeneity", heterogeneity)
    check_slopes_memory(clients, dimension)
    rng = np.random.default_rng(check_count("seed", seed, low=0))
    slopes = random_slopes(rng, clients, dimension, heterogeneity)
    x0 = real("spread", spread) * rng.standard_normal(dimension)
    return CosineQuadratic(slopes, curvature, ripple, noise, x0, device=device)
