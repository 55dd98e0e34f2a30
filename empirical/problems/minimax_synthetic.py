r"""Minimax problems in closed form: clients who share one function, envelopes and proximal points to any accuracy."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import is_number
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real, start_point
from fedbounds.empirical.problems.minimax import ExactEnvelope

_NEWTON_STEPS, _HALVINGS = 60, 40


class Prox(NamedTuple):
    """A proximal point and how far the true one can be."""

    point: Tensor  # `(..., descent_dimension)`, in units of x
    # an upper bound of the distance to the true point, `(...)`, in units of x; 0 where it is a closed form
    error: Tensor


class SyntheticMinimax(ExactEnvelope):
    r"""Clients who share one function, scaled, and differ by a linear term: $f_i(z) = s_if_0(z) + b_i^\top z$.

    Stochastic gradients are $(1 + \beta\varepsilon)\nabla f_i(z) + R\xi$ with one standard normal $\varepsilon$ and a
    vector $\xi\sim N(0, I)$ per gradient, independent of each other, between clients and between steps. Hence per
    block $\mathbb E\|\cdot\|^2 = \beta_L^2\|\nabla_bf_i\|^2 + \sigma_L^2$ with $\beta_L = \beta$ and $\sigma_L^2$ the
    larger of the traces of $RR^\top$ over the two blocks.
    """

    scales: Tensor  # $s_i > 0$, `(clients,)`, without unit
    slopes: Tensor  # $b_i$, `(clients, d_x + d_y)`, in units of a gradient
    noise_root: Tensor  # R, `(d, d)`, in units of a gradient
    growth: float  # $\beta$, without unit
    z0: Tensor  # the starting point `(d,)`

    def _set_clients(
        self, descent: Any, ascent: Any, scales: Tensor | None, weights: Any, noise: Any, growth: Any,
        x0: Any, y0: Any, device: torch.device | str,
    ) -> None:  # fmt: skip
        """Check what all families have in common and keep it; `descent` and `ascent` are the two halves of b_i."""
        b, ascending = array("slopes", descent, (None, None)), array("ascent_slopes", ascent, (None, None))
        if len(b) != len(ascending):
            raise FedboundsError(f"slopes are of {len(b)} clients, ascent_slopes of {len(ascending)}; must be as many")
        self.clients, self.descent_dimension, self.ascent_dimension = len(b), b.shape[1], ascending.shape[1]
        self.dimension = self.descent_dimension + self.ascent_dimension
        self.dtype, self.device = torch.float64, torch.device(device)
        self.growth = real("growth", growth)
        root = _noise_root(noise, self.descent_dimension, self.ascent_dimension)
        starts = (("x0", x0, self.descent_dimension), ("y0", y0, self.ascent_dimension))
        start = [start_point(given, size, self.device, name) for name, given, size in starts]
        ones = torch.ones(self.clients, dtype=torch.float64)
        self.slopes = torch.cat([b, ascending], dim=1).to(self.device)
        self.scales = (ones if scales is None else scales).to(self.device)
        self.noise_root, self.z0 = root.to(self.device), torch.cat(start)
        self._noisy = bool(self.growth) or bool(root.any())
        self._set_weights(ones / self.clients if weights is None else weights)

    def _set_weights(self, weights: Any) -> None:
        self.weights = check_weights(weights, self.clients).to(self.device)
        self.mean_scale = float(self.weights @ self.scales)
        self.mean_slopes = self.weights @ self.slopes

    def surrogate(self, weights: Any) -> Self:
        r"""The same clients with other weights: its objective is $\tilde F = \sum_iw_if_i$."""
        other = copy.copy(self)
        other._set_weights(weights)
        return other

    @abstractmethod
    def common(self, z: Tensor) -> Tensor:
        """$f_0(z)$: (..., d) -> (...)."""

    @abstractmethod
    def common_gradient(self, z: Tensor) -> Tensor:
        r"""$\nabla f_0(z)$, a new tensor: (..., d) -> (..., d)."""

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.z0.clone()

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.common_gradient(x).mul_(self.scales[clients, None]).add_(self.slopes[clients])

    def objective(self, x: Tensor) -> Tensor:
        return self.mean_scale * self.common(x) + x @ self.mean_slopes

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.common_gradient(x).mul_(self.mean_scale).add_(self.mean_slopes)

    @property
    def noise_covariance(self) -> Tensor:
        r"""$\Sigma = RR^\top$ of the additive noise, `(d, d)`."""
        return self.noise_root @ self.noise_root.T

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray | None:
        drawn = self.draws(rng, client, 1)
        return None if drawn is None else drawn[0]

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray | None:
        r"""$\xi$, and after it $\varepsilon$ if the noise grows with the gradient: (steps, d) or (steps, d + 1)."""
        if not self._noisy:
            return None
        return rng.standard_normal((steps, self.dimension + bool(self.growth)))

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        gradient = self.gradient(x, clients)
        if randomness is None:
            return gradient
        if self.growth:
            gradient = gradient * (1 + self.growth * randomness[..., self.dimension :])
        return gradient + randomness[..., : self.dimension] @ self.noise_root.T

    @abstractmethod
    def envelope_hessian(self, x: Tensor) -> Tensor:
        r"""$\nabla^2\Phi(x)$: (..., d_x) -> (..., d_x, d_x)."""

    @abstractmethod
    def infimum(self) -> Constant | NoConstant:
        r"""$\min_x\Phi(x)$, or a lower bound of it (the note says which), or why there is none."""

    @abstractmethod
    def smoothness(self) -> float:
        r"""$L_f$: every $\nabla f_i$ is Lipschitz with it, in (x, y) jointly."""

    def prox(self, x: Tensor) -> Prox:
        r"""$\operatorname{argmin}_u\Phi(u) + L_f\|u-x\|^2$, by Newton's method, with a bound of its error.

        $\Phi + \frac{L_f}2\|\cdot\|^2$ is convex, being a maximum of convex functions, so the function minimized is
        $L_f$-strongly convex and a point u is at most $\|\nabla\Phi(u) + 2L_f(u-x)\|/L_f$ away from its minimizer.

        Source: Sharma et al. 2023, Definition 4 with $\lambda = 1/(2L_f)$, eq. (54).
        """
        smoothness = self.smoothness()
        shift = 2 * smoothness * torch.eye(self.descent_dimension, dtype=x.dtype, device=x.device)
        u = x.clone()
        residual = self.envelope_gradient(u)
        for _ in range(_NEWTON_STEPS):
            step = torch.linalg.solve(self.envelope_hessian(u) + shift, residual)
            size = torch.linalg.vector_norm(residual, dim=-1)
            if not bool(size.any()):
                break
            fraction, better = torch.ones_like(size), torch.zeros_like(size, dtype=torch.bool)
            for _ in range(_HALVINGS):  # each row halves its own step until its residual falls
                trial = u - fraction[..., None] * step
                left = self.envelope_gradient(trial) + 2 * smoothness * (trial - x)
                falls = ~better & (torch.linalg.vector_norm(left, dim=-1) < size)
                u, residual = (torch.where(falls[..., None], new, old) for new, old in ((trial, u), (left, residual)))
                better |= falls
                fraction = torch.where(better, fraction, fraction / 2)
                if bool(better.all()):
                    break
            if not bool(better.any()):  # no residual can fall further: rounding
                break
        return Prox(u, torch.linalg.vector_norm(residual, dim=-1) / smoothness)

    def moreau_envelope(self, x: Tensor) -> Tensor:
        r"""$\Phi_{1/2L_f}(x) = \min_u\Phi(u) + L_f\|u-x\|^2$: (..., d_x) -> (...)."""
        point = self.prox(x).point
        return self.envelope(point) + self.smoothness() * (point - x).square().sum(-1)

    def moreau_gradient(self, x: Tensor) -> Tensor:
        r"""$\nabla\Phi_{1/2L_f}(x) = 2L_f(x - \mathrm{prox}(x))$: (..., d_x) -> (..., d_x)."""
        return 2 * self.smoothness() * (x - self.prox(x).point)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        r"""Of the states `x` (seeds, d): the two stationarity measures of the theory, the envelope and the dual gap.

        `envelope_gradient_norm_squared` $\|\nabla\Phi(x)\|^2$, `moreau_gradient_norm_squared`
        $\|\nabla\Phi_{1/2L_f}(x)\|^2$, `envelope` $\Phi(x)$, `dual_gap` $\Phi(x) - F(x, y)$ and
        `ascent_norm_squared` $\|y\|^2$ (which the theorems without strong concavity want bounded).
        """
        descent, ascent = self.split(x)
        return {
            "envelope_gradient_norm_squared": self.envelope_gradient(descent).square().sum(-1),
            "moreau_gradient_norm_squared": self.moreau_gradient(descent).square().sum(-1),
            "envelope": self.envelope(descent),
            "dual_gap": self.dual_gap(x),
            "ascent_norm_squared": ascent.square().sum(-1),
        }

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""The constants of assumptions A1-A7, each valid on the whole domain, or why there is none.

        Smoothness $L_f$; strong concavity $\mu$; gradient noise $\sigma_L$, the root of the larger trace of
        $RR^\top$ over the blocks, and its growth $\beta_L=\beta$; heterogeneity
        $\sigma_G^2 = \max\{\sum_ip_i\|c_i-\bar c\|^2, \sum_ip_i\|d_i-\bar d\|^2\}$ and its growth
        $\beta_G^2 = \sum_ip_is_i^2/(\sum_ip_is_i)^2$; the initial gaps $\Phi(x_0)-\min\Phi$,
        $\Phi_{1/2L_f}(x_0)-\min\Phi$ and $\Phi(x_0)-F(x_0,y_0)$; the families add $G_x$ (`descent_gradient_bound`)
        and $\sup_x\|y^*(x)\|^2$ (`best_response_bound`). Weights are the problem's own throughout.
        """
        start, least = self.split(self.z0)[0], self.infimum()
        blocks = [float(part.sum()) for part in self.split(self.noise_covariance.diagonal())]
        gap: Constant | NoConstant = least
        moreau_gap: Constant | NoConstant = least
        if isinstance(least, Constant):
            bound = f", upper bound: {least.note}" if least.note else ""
            at_start, smoothed = float(self.envelope(start)), float(self.moreau_envelope(start))
            gap = Constant(at_start - float(least.value), "exact", f"Phi(x0) - min Phi{bound}")
            moreau_gap = Constant(smoothed - float(least.value), "exact", f"Moreau envelope at x0 - min Phi{bound}")
        return {
            "clients": Constant(float(self.clients), "exact"),
            "smoothness": Constant(self.smoothness(), "exact", self._smoothness_note()),
            "strong_concavity": self._strong_concavity(),
            "gradient_noise": Constant(max(blocks) ** 0.5, "exact", "larger block of the noise"),
            "gradient_noise_growth": Constant(self.growth, "exact"),
            "weighted_heterogeneity": Constant(self._spread(), "exact", "larger block of the spread of the slopes"),
            "heterogeneity_growth": Constant(self._heterogeneity_growth(), "exact"),
            "initial_gap": gap,
            "initial_moreau_gap": moreau_gap,
            "initial_dual_gap": Constant(float(self.dual_gap(self.z0)), "exact", "Phi(x0) - F(x0, y0)"),
        }

    @abstractmethod
    def _smoothness_note(self) -> str:
        """Whether the smoothness is the least one."""

    @abstractmethod
    def _strong_concavity(self) -> Constant | NoConstant:
        r"""$\mu$ of assumption A4."""

    def _spread(self) -> float:
        r"""$\sigma_G$: the root of the larger of $\sum_ip_i\|e_i\|^2$ over the blocks, $e_i$ what is not scaled."""
        own = self.slopes - (self.scales / self.mean_scale)[:, None] * self.mean_slopes
        return max(float(self.weights @ part.square().sum(-1)) for part in self.split(own)) ** 0.5

    def _heterogeneity_growth(self) -> float:
        r"""$\beta_G = \sqrt{\sum_ip_is_i^2}/\sum_ip_is_i$."""
        return max(1.0, float((self.weights @ self.scales.square()) ** 0.5) / self.mean_scale)  # but for rounding


def check_weights(weights: Any, clients: int) -> Tensor:
    """Weights of clients: none negative, with sum 1."""
    w = array("weights", weights, (clients,))
    if float(w.min()) < 0:
        raise FedboundsError(f"weights[{int(w.argmin())}] = {float(w.min()):g} must not be negative")
    if abs(float(w.sum()) - 1) > 1e-9:
        raise FedboundsError(f"weights sum to {float(w.sum()):.12g}, must sum to 1")
    return w


def _noise_root(noise: Any, descent: int, ascent: int) -> Tensor:
    """R of a standard deviation per coordinate, one for each block, or R itself."""
    given = array("noise", [real("noise", noise)] * 2 if is_number(noise) else noise)
    if tuple(given.shape) == (2,):
        in_x, in_y = (real("noise", float(s)) for s in given)
        return torch.diag(torch.tensor([in_x] * descent + [in_y] * ascent, dtype=torch.float64))
    if tuple(given.shape) != (descent + ascent,) * 2:
        raise FedboundsError(
            f"noise has shape {tuple(given.shape)}; must be a number, a pair (x, y), or a matrix of shape "
            f"({descent + ascent}, {descent + ascent})"
        )
    return given
