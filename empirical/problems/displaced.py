r"""Clients who share one function with bounded slope, each displaced: not convex or convex, all constants exact."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count
from fedbounds.bounds.theory.symbols import POSITIVE, Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real, start_point
from fedbounds.empirical.problems.problem import Synthetic
from fedbounds.empirical.problems.sloped import check_slopes_memory

Shape = Literal["cosine", "pseudo-huber"]
NoiseLaw = Literal["gaussian", "signs"]
_HALVINGS = 200  # of the interval in which a coordinate of the minimizer lies


class Displaced(Synthetic):
    r"""One function of every coordinate, $F_n(x) = \sum_j\phi(x_j - c_{nj})$, with a bounded slope and $\min F_n = 0$.

    | shape | $\phi(x)$ | $L$ | steepest | convex |
    |---|---|---|---|---|
    | `cosine` | $s(1-\cos x)$ | $s$ | $s$ | no |
    | `pseudo-huber` | $s^2(\sqrt{1+(x/s)^2}-1)$ | 1 | $s$ | yes, not strongly |

    With noise of random signs, stochastic gradients are bounded surely, by $\sqrt d(s+\text{noise})$.

    Args:
        centers: $c_n$ as `(clients, d)`, in units of x (radians for the cosine).
        shape: "cosine" or "pseudo-huber".
        scale: $s > 0$: of the cosine in units of f, of pseudo-Huber in units of x.
        noise: standard deviation of the gradient noise in each coordinate, in units of f/x.
        noise_law: "gaussian", or "signs" of that size.
        x0: the starting point `(d,)`; zero if not given.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, an unknown shape or law.

    Example:
        >>> problem = Displaced([[0.5], [-0.5]], noise=0.1, noise_law="signs")
        >>> [round(problem.constants()[c].value, 6) for c in ("function_heterogeneity", "stochastic_gradient_bound")]
        [0.122417, 1.1]
        >>> Displaced([[0.0], [2.0], [7.0]], "pseudo-huber").minimizer()
        tensor([2.0790], dtype=torch.float64)

    Source: the setting is that of Li et al. 2024, Assumptions 1-3; the families are ours.
    """

    def __init__(
        self,
        centers: Any,
        shape: Shape = "cosine",
        scale: float = 1.0,
        noise: float = 0.0,
        noise_law: NoiseLaw = "gaussian",
        x0: Any = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        c = array("centers", centers, (None, None))
        self.clients, self.dimension = int(c.shape[0]), int(c.shape[1])
        self.dtype, self.device = torch.float64, torch.device(device)
        self.shape = check_choice("shape", shape, get_args(Shape))
        self.noise_law = check_choice("noise_law", noise_law, get_args(NoiseLaw))
        self.scale, self.noise = real("scale", scale, POSITIVE), real("noise", noise)
        self.centers, self.x0 = c.to(self.device), start_point(x0, self.dimension, self.device)

    def value(self, x: Tensor) -> Tensor:
        r"""$\phi$, in each coordinate."""
        if self.shape == "cosine":
            return 2 * self.scale * (x / 2).sin().square()
        return x.square() / (1 + torch.hypot(x / self.scale, torch.ones_like(x)))

    def slope(self, x: Tensor) -> Tensor:
        r"""$\phi'$, in each coordinate."""
        return self.scale * x.sin() if self.shape == "cosine" else x / torch.hypot(x / self.scale, torch.ones_like(x))

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray | None:
        drawn = self.draws(rng, client, 1)
        return None if drawn is None else drawn[0]

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray | None:
        if self.noise_law == "gaussian" or not self.noise:
            return super().draws(rng, client, steps)
        return np.where(rng.random((steps, self.dimension)) < 0.5, -1.0, 1.0)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.slope(x - self.centers[clients])

    def objective(self, x: Tensor) -> Tensor:
        return self.value(x[..., None, :] - self.centers).sum(-1).mean(-1)

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.slope(x[..., None, :] - self.centers).mean(-2)

    def objective_gap(self, x: Tensor) -> Tensor:
        if self.shape == "cosine":  # f - f* = sum_j R_j phi(x_j - angle_j)
            return (self._resultant.abs() * self.value(x - self.minimizer())).sum(-1)
        return self.objective(x) - self.objective(self.minimizer())

    def minimizer(self) -> Tensor:
        """A global minimizer of f as `(d,)`: the mean direction of cosines; of pseudo-Huber where the slope is zero."""
        return self._minimizer.clone()

    @cached_property
    def _resultant(self) -> Tensor:
        r"""$R_je^{i\varphi_j}=\frac1N\sum_ne^{ic_{nj}}$."""
        return torch.exp(1j * self.centers).mean(0)

    @cached_property
    def _minimizer(self) -> Tensor:
        if self.shape == "cosine":
            return self._resultant.angle()
        low, high = self.centers.amin(0), self.centers.amax(0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            rising = self.objective_gradient(middle) > 0
            low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
        return (low + high) / 2

    def offsets(self) -> np.ndarray:
        raise FedboundsError("there are no fixed offsets: the clients' slopes differ from point to point")

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""All exact; strong convexity says why there is none.

        smoothness L; initial gap $f(x_0)-f^*$; noise $\sigma=\sqrt d\,\text{noise}$; heterogeneity
        $f^*-\frac1N\sum_n\min F_n=f^*$; bounds of $\|\nabla f\|$, of $\|\nabla F_n\|$, $\sqrt d\,s$, and of stochastic
        gradients; divergence $\sup_{n,x}\|\nabla F_n-\nabla f\|$, of pseudo-Huber from above.
        """
        cosine, root, s = self.shape == "cosine", self.dimension**0.5, self.scale
        where = "attained at pi/2" if cosine else "approached far away"
        if cosine:
            steepest = s * float(torch.linalg.vector_norm(self._resultant.abs()))
            apart = s * (torch.exp(1j * self.centers) - self._resultant).abs()
        else:
            steepest = s * root
            apart = (self.centers[:, None] - self.centers).abs().clamp(max=2 * s).mean(1)
        steepness = Constant(root * s, "exact", f"of every client, {where}")
        bounded = self.noise_law == "signs" or not self.noise
        return {
            "clients": Constant(float(self.clients), "exact"),
            "smoothness": Constant(s if cosine else 1.0, "exact", "second derivative at 0"),
            "strong_convexity": NoConstant(
                "the second derivative is negative at pi" if cosine else "the second derivative falls to 0 far away"
            ),
            "initial_gap": Constant(float(self.objective_gap(self.x0)), "exact", "f(x0) - f*"),
            "gradient_noise": self._noise_constant(),
            "function_heterogeneity": Constant(float(self.objective(self.minimizer())), "exact", "f*, as min F_n = 0"),
            "gradient_divergence_sup": Constant(
                float(torch.linalg.vector_norm(apart, dim=1).max()),
                "exact",
                "attained" if cosine else "upper bound: slopes differ by at most the centers, and by 2s",
            ),
            "gradient_bound": Constant(steepest, "exact", "of f"),
            "client_gradient_bound": steepness,
            "stochastic_gradient_bound": Constant(root * (s + self.noise), "exact", "sure, noise included")
            if bounded
            else NoConstant("Gaussian gradient noise has no sure bound; noise_law = signs has one"),
        }


def random_displaced(
    clients: int,
    dimension: int,
    shape: Shape = "cosine",
    scale: float = 1.0,
    heterogeneity: float = 1.0,
    *,
    noise: float = 0.0,
    noise_law: NoiseLaw = "gaussian",
    spread: float = 2.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Displaced:
    r"""An instance with Gaussian centers of standard deviation `heterogeneity` about zero, in each coordinate.

    Args:
        clients, dimension: N and d, at least 1.
        shape, scale, noise, noise_law: as for `Displaced`.
        heterogeneity: standard deviation of the centers, in units of x.
        spread: standard deviation of each coordinate of $x_0$.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> random_displaced(8, 3, noise=0.1, noise_law="signs").constants()["smoothness"].value
        1.0
    """
    clients, dimension = check_count("clients", clients), check_count("dimension", dimension)
    check_slopes_memory(clients, dimension)
    rng = np.random.default_rng(check_count("seed", seed, low=0))
    centers = real("heterogeneity", heterogeneity) * rng.standard_normal((clients, dimension))
    x0 = real("spread", spread) * rng.standard_normal(dimension)
    return Displaced(centers, shape, scale, noise, noise_law, x0, device=device)
