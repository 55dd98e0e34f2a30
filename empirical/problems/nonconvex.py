"""Non-convex clients whose constants are nevertheless exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bounds.checks import check_count, check_memory
from bounds.errors import FedboundsError
from bounds.symbols import Constant, NoConstant
from empirical.problems.border import array, real
from empirical.problems.problem import Synthetic


class CosineQuadratic(Synthetic):
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
        b = array("slopes", slopes, (None, None))
        self.clients, self.dimension = int(b.shape[0]), int(b.shape[1])
        self.dtype, self.device = torch.float64, torch.device(device)
        if float(b.mean(0).abs().max()) > 1e-9 * float(b.abs().max()):
            raise FedboundsError(f"slopes must have mean zero over clients; their mean is {b.mean(0).tolist()}")
        self.curvature, self.ripple = real("curvature", curvature), real("ripple", ripple)
        if self.curvature + self.ripple == 0:
            raise FedboundsError("curvature and ripple are both 0; at least one must be positive")
        self.noise = real("noise", noise)
        start = torch.zeros(self.dimension, dtype=self.dtype) if x0 is None else array("x0", x0, (self.dimension,))
        self.slopes, self.x0 = (b - b.mean(0)).to(self.device), start.to(self.device)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.objective_gradient(x).add_(self.slopes[clients])

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.curvature * x + self.ripple * x.sin()

    def objective(self, x: Tensor) -> Tensor:
        return (self.curvature / 2 * x.square() + 2 * self.ripple * (x / 2).sin().square()).sum(-1)

    def objective_gap(self, x: Tensor) -> Tensor:
        return self.objective(x)  # min f = f(0) = 0

    def minimiser(self) -> Tensor:
        """A global minimiser of f: the origin (if the curvature is 0, one of many)."""
        return torch.zeros_like(self.x0)

    def offsets(self) -> np.ndarray:
        return self.slopes.cpu().numpy().copy()

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""The constants of Assumptions 1-3, all exact; strong convexity says why where there is none.

        smoothness $L = \alpha+\kappa$ (attained at 0); strong convexity $\mu = \alpha-\kappa$ if positive; initial gap
        $F = h(x_0)$; gradient noise $\sigma = \sqrt d\,s$; divergence $d = \max_n\|b_n\|$.
        """
        convex = self.curvature - self.ripple
        return {
            "clients": Constant(float(self.clients), "exact"),
            "smoothness": Constant(self.curvature + self.ripple, "exact", "second derivative at 0"),
            "strong_convexity": Constant(convex, "exact", "second derivative at pi")
            if convex > 0
            else NoConstant(f"the second derivative at pi is {convex:g}"),
            "initial_gap": Constant(float(self.objective(self.x0)), "exact", "f(x0), as min f = 0"),
            "gradient_noise": self._noise_constant(),
            "gradient_divergence_sup": Constant(
                float(self.slopes.norm(dim=1).max()), "exact", "max_n ||b_n||, the same at every x"
            ),
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
) -> CosineQuadratic:
    r"""An instance with Gaussian slopes scaled to the divergence $\max_n\|b_n\|$ = `heterogeneity`.

    Args:
        clients: N >= 1 (one client has no divergence, whatever is asked for).
        dimension: d >= 1.
        heterogeneity: the divergence d, in units of f/x.
        curvature: $\alpha$.
        ripple: $\kappa$; the defaults make f non-convex with $L = 1$.
        noise: s, standard deviation of the gradient noise per coordinate.
        spread: standard deviation of each coordinate of $x_0$, in units of x.
        seed: of the instance; the same seed is the same problem.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_cosine_quadratic(clients=4, dimension=2, heterogeneity=0.5)
        >>> round(problem.constants()["gradient_divergence_sup"].value, 9)
        0.5
    """
    clients, dimension = check_count("clients", clients), check_count("dimension", dimension)
    heterogeneity = real("heterogeneity", heterogeneity)
    check_memory(f"a problem with clients = {clients}, dimension = {dimension}", 4 * 8 * clients * dimension)
    rng = np.random.default_rng(check_count("seed", seed, low=0))
    slopes = rng.standard_normal((clients, dimension))
    slopes -= slopes.mean(0)
    largest = np.linalg.norm(slopes, axis=1).max()
    scale = heterogeneity / largest if clients > 1 else 0.0
    x0 = real("spread", spread) * rng.standard_normal(dimension)
    return CosineQuadratic(scale * slopes, curvature, ripple, noise, x0)
