r"""Quadratic minimax problems, strongly concave in y and not convex in x: everything of the theory in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory
from fedbounds.bounds.theory.symbols import POSITIVE, Constant, Domain, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real
from fedbounds.empirical.problems.minimax_synthetic import Prox, SyntheticMinimax

_FLAT = 1e-12  # relative size below which an eigenvalue counts as zero


class QuadraticMinimax(SyntheticMinimax):
    r"""Clients with one Hessian and a linear term each, if wanted with a ripple that makes the envelope non-convex.

    $$f_i(x, y) = \tfrac12x^\top Ax + x^\top By - \tfrac\mu2\|y\|^2 + \rho\textstyle\sum_j\cos x_j
      + c_i^\top x + d_i^\top y.$$

    With $\bar c = \sum_ip_ic_i$ and $\bar d$ likewise, $y^*(x) = (B^\top x+\bar d)/\mu$ and
    $\nabla\Phi(x) = (A+\frac1\mu BB^\top)x - \rho\sin x + \bar c + \frac1\mu B\bar d$. The heterogeneity is the same at
    every point: $\beta_G = 1$ and $\sigma_G^2 = \max\{\sum_ip_i\|c_i-\bar c\|^2, \sum_ip_i\|d_i-\bar d\|^2\}$.

    Args:
        descent_hessian: A, symmetric, possibly indefinite, `(d_x, d_x)`, in units of f/x^2.
        coupling: B, `(d_x, d_y)`.
        concavity: $\mu > 0$.
        slopes: $c_i$ as `(clients, d_x)`, in units of a gradient.
        ascent_slopes: $d_i$ as `(clients, d_y)`.
        ripple: $\rho \ge 0$ (x is measured in radians).
        weights: $p$; 1/N each if not given.
        noise: the standard deviation s of the additive noise in each coordinate, a pair $(s_x, s_y)$, or a matrix R
            that turns standard normals into the noise.
        growth: $\beta_L$, the standard deviation of the factor by which a stochastic gradient is off.
        x0, y0: the starting point; zero if not given.
        device: where the tensors live.

    Raises:
        FedboundsError: a shape that does not fit, a value outside its range, A not symmetric.

    Example:
        >>> problem = QuadraticMinimax([[0.5]], [[1.0]], 1.0, [[1.0], [-0.5]], [[0.25], [-0.75]], x0=[1.0])
        >>> problem.smoothness(), problem.envelope_gradient(problem.z0[:1]).item()
        (1.5, 1.5)
        >>> problem.constants()["initial_gap"].value
        0.75

    Source: the setting is that of Sharma et al. 2023, Theorem 1; the family is ours.
    """

    def __init__(
        self,
        descent_hessian: Any,
        coupling: Any,
        concavity: float,
        slopes: Any,
        ascent_slopes: Any,
        *,
        ripple: float = 0.0,
        weights: Any = None,
        noise: Any = 0.0,
        growth: float = 0.0,
        x0: Any = None,
        y0: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self._set_common(descent_hessian, coupling, concavity, ripple, device)
        self._set_clients(slopes, ascent_slopes, None, weights, noise, growth, x0, y0, device)
        self._check_blocks()

    def _set_common(self, hessian: Any, coupling: Any, concavity: Any, ripple: Any, device: Any) -> None:
        a, b = array("descent_hessian", hessian, (None, None)), array("coupling", coupling, (None, None))
        if a.shape[0] != a.shape[1] or (a - a.T).abs().max() > _FLAT * a.abs().max():
            raise FedboundsError(f"descent_hessian of shape {tuple(a.shape)} must be a symmetric matrix")
        if len(b) != len(a):
            raise FedboundsError(
                f"coupling has shape {tuple(b.shape)}; with {len(a)} coordinates of x it needs as many rows"
            )
        self.concavity, self.ripple = real("concavity", concavity, POSITIVE), real("ripple", ripple)
        self.descent_hessian, self.coupling = ((a + a.T) / 2).to(device), b.to(device)
        below = -self.concavity * torch.eye(b.shape[1], dtype=b.dtype, device=device)
        upper = torch.cat([self.descent_hessian, self.coupling], dim=1)
        self.joint_hessian = torch.cat([upper, torch.cat([self.coupling.T, below], dim=1)])
        self._unscaled = self.descent_hessian + self.coupling @ self.coupling.T / self.concavity
        if not bool(self._unscaled.isfinite().all()):
            raise FedboundsError(f"A + B B^T / mu overflows with concavity = {self.concavity:g}; rescale the problem")
        self._norm = float(torch.linalg.eigvalsh(self.joint_hessian).abs().max())

    def _check_blocks(self) -> None:
        for name, have, want in (
            ("slopes", self.descent_dimension, len(self.descent_hessian)),
            ("ascent_slopes", self.ascent_dimension, self.coupling.shape[1]),
        ):
            if have != want:
                raise FedboundsError(f"{name} have {have} coordinates; with the coupling given they must have {want}")

    def common(self, z: Tensor) -> Tensor:
        return ((z @ self.joint_hessian) * z).sum(-1) / 2 + self.ripple * self.split(z)[0].cos().sum(-1)

    def common_gradient(self, z: Tensor) -> Tensor:
        gradient = z @ self.joint_hessian
        if self.ripple:
            self.split(gradient)[0].sub_(self.split(z)[0].sin(), alpha=self.ripple)
        return gradient

    @property
    def envelope_matrix(self) -> Tensor:
        r"""$\bar s(A + \frac1\mu BB^\top)$, the Hessian of the envelope but for its ripple, `(d_x, d_x)`."""
        return self.mean_scale * self._unscaled

    @property
    def envelope_slope(self) -> Tensor:
        r"""$\bar c + \frac1\mu B\bar d$, `(d_x,)`."""
        c, d = self.split(self.mean_slopes)
        return c + self.coupling @ d / self.concavity

    def best_response(self, x: Tensor) -> Tensor:
        return x @ self.coupling / self.concavity + self.split(self.mean_slopes)[1] / self._own_concavity

    @property
    def _own_concavity(self) -> float:
        """The concavity of F: that of the common function times the mean scale."""
        return self.mean_scale * self.concavity

    def envelope(self, x: Tensor) -> Tensor:
        ascent = self.split(self.mean_slopes)[1]
        quadratic = ((x @ self.envelope_matrix / 2 + self.envelope_slope) * x).sum(-1)
        ripple = self.mean_scale * self.ripple * x.cos().sum(-1)
        return quadratic + ripple + ascent.square().sum() / (2 * self._own_concavity)

    def envelope_gradient(self, x: Tensor) -> Tensor:
        return x @ self.envelope_matrix + self.envelope_slope - self.mean_scale * self.ripple * x.sin()

    def envelope_hessian(self, x: Tensor) -> Tensor:
        return self.envelope_matrix - torch.diag_embed(self.mean_scale * self.ripple * x.cos())

    def dual_gap(self, z: Tensor) -> Tensor:
        x, y = self.split(z)
        return self._own_concavity / 2 * (y - self.best_response(x)).square().sum(-1)

    def prox(self, x: Tensor) -> Prox:
        if self.ripple:
            return super().prox(x)
        pull = 2 * self.smoothness()
        shifted = self.envelope_matrix + pull * torch.eye(self.descent_dimension, dtype=x.dtype, device=x.device)
        target = (pull * x - self.envelope_slope).reshape(-1, self.descent_dimension)
        point = torch.linalg.solve(shifted, target.T).T.reshape(x.shape)
        return Prox(point, torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device))

    def smoothness(self) -> float:
        return float(self.scales.max()) * (self._norm + self.ripple)

    def infimum(self) -> Constant | NoConstant:
        h, b = self.envelope_matrix, self.envelope_slope
        values, frame = torch.linalg.eigh(h)
        along, flat = frame.T @ b, _FLAT * float(values.abs().max()) * len(h)
        if float(values[0]) < -flat:
            return NoConstant("Phi is unbounded below: A + B B^T / mu has a negative eigenvalue")
        curved = values > flat
        if bool((along[~curved].abs() > _FLAT * torch.linalg.vector_norm(b)).any()):
            return NoConstant("Phi is unbounded below: it is linear along a kernel of A + B B^T / mu")
        ascent = self.split(self.mean_slopes)[1]
        constant = float(ascent.square().sum()) / (2 * self._own_concavity)
        least = constant - float((along[curved].square() / values[curved]).sum()) / 2
        if not self.ripple:
            return Constant(least, "exact")
        depth = self.mean_scale * self.ripple * len(h)
        return Constant(least - depth, "exact", "the quadratic part at its least, all cosines at -1")

    def constants(self) -> dict[str, Constant | NoConstant]:
        why = "the coupling makes it grow without bound"
        return super().constants() | {
            "descent_gradient_bound": NoConstant(f"the gradient in x is not bounded: {why}"),
            "best_response_bound": NoConstant(f"y*(x) is not bounded: {why}"),
        }

    def _smoothness_note(self) -> str:
        return "upper bound: norm of the joint Hessian plus the ripple" if self.ripple else "norm of the joint Hessian"

    def _strong_concavity(self) -> Constant | NoConstant:
        return Constant(float(self.scales.min()) * self.concavity, "exact", "of the least concave client")


class ScaledMinimax(QuadraticMinimax):
    r"""Clients who have one function, each scaled by its own factor: heterogeneity that grows with the gradient.

    $$f_i = s_if_0,\qquad f_0(x, y) = \tfrac12x^\top Ax + x^\top By - \tfrac\mu2\|y\|^2 + \rho\textstyle\sum_j\cos x_j
      + c^\top x + d^\top y.$$

    Here $\sigma_G = 0$ and $\beta_G^2 = \sum_ip_is_i^2/(\sum_ip_is_i)^2$, exactly; $L_f$ is that of the steepest
    client and $\mu$ that of the flattest.

    Args:
        scales: $s_i > 0$ as `(clients,)`, without unit.
        descent_hessian, coupling, concavity, ripple: of $f_0$, as in `QuadraticMinimax`.
        slope: c, `(d_x,)`, in units of a gradient.
        ascent_slope: d, `(d_y,)`.
        weights, noise, growth, x0, y0, device: as in `QuadraticMinimax`.

    Raises:
        FedboundsError: a scale that is not positive; and as `QuadraticMinimax`.

    Example:
        >>> problem = ScaledMinimax([1.0, 3.0], [[0.0]], [[1.0]], 1.0, [1.0], [0.0])
        >>> round(problem.constants()["heterogeneity_growth"].value ** 2, 12)
        1.25

    Source: the setting is that of Sharma et al. 2023, assumption A3 with $\beta_G > 1$; the family is ours.
    """

    def __init__(
        self,
        scales: Any,
        descent_hessian: Any,
        coupling: Any,
        concavity: float,
        slope: Any,
        ascent_slope: Any,
        *,
        ripple: float = 0.0,
        weights: Any = None,
        noise: Any = 0.0,
        growth: float = 0.0,
        x0: Any = None,
        y0: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        s = array("scales", scales, (None,))
        if float(s.min()) <= 0:
            raise FedboundsError(f"scales[{int(s.argmin())}] = {float(s.min()):g} must be positive")
        self._set_common(descent_hessian, coupling, concavity, ripple, device)
        c, d = array("slope", slope, (None,)), array("ascent_slope", ascent_slope, (None,))
        self._set_clients(torch.outer(s, c), torch.outer(s, d), s, weights, noise, growth, x0, y0, device)
        self._check_blocks()

    def _spread(self) -> float:
        return 0.0  # exactly: what is left of the slopes is rounding


def check_minimax_memory(clients: int, descent: int, ascent: int) -> None:
    """Refuse a random minimax problem that this machine cannot hold while it is made."""
    numbers = 4 * (descent + ascent) * (descent + ascent + clients)
    check_memory(f"a minimax problem with {clients} clients and {descent} + {ascent} coordinates", 8 * numbers)


def random_quadratic_minimax(
    clients: int,
    descent_dimension: int,
    ascent_dimension: int,
    heterogeneity: float = 1.0,
    condition: float = 4.0,
    *,
    ripple: float = 0.0,
    noise: float = 0.0,
    growth: float = 0.0,
    spread: float = 1.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> QuadraticMinimax:
    r"""An instance with $L_f = 1 + \rho$ and $\mu = 1/$`condition` that is not convex in x although $\Phi$ is bounded.

    In random frames $B$ has singular values between $\sigma$ and $\sigma/2$ with $A = -\frac12\sqrt{BB^\top}$ along
    them, and $A = \frac12$ where there is no coupling; $\sigma$ is such that the joint Hessian has norm 1.

    Args:
        clients: n >= 1.
        descent_dimension: $d_x \ge 1$.
        ascent_dimension: $d_y \ge 1$.
        heterogeneity: $\sigma_G$, in both blocks, in units of a gradient (0 for one client, whatever the argument).
        condition: $\kappa \ge 2$ without a ripple (with it, $L_f/\mu$ is $1+\rho$ times as large).
        ripple: $\rho$.
        noise: standard deviation of the additive noise per coordinate.
        growth: $\beta_L$.
        spread: standard deviation of each coordinate of the starting point.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_quadratic_minimax(5, 3, 2, heterogeneity=0.5, condition=10.0)
        >>> known = problem.constants()
        >>> [round(known[c].value, 9) for c in ("smoothness", "strong_concavity", "weighted_heterogeneity")]
        [1.0, 0.1, 0.5]
    """
    clients = check_count("clients", clients)
    descent, ascent = (
        check_count("descent_dimension", descent_dimension),
        check_count("ascent_dimension", ascent_dimension),
    )
    heterogeneity, spread = real("heterogeneity", heterogeneity), real("spread", spread)
    mu = 1 / real("condition", condition, Domain(low=2))
    check_minimax_memory(clients, descent, ascent)
    rng = np.random.default_rng(check_count("seed", seed, low=0))
    frames = [np.linalg.qr(rng.standard_normal((size, size)))[0] for size in (descent, ascent)]
    coupled, rest = min(descent, ascent), 1 - mu
    # det([[1 - s/2, s], [s, 1 - mu]]) = 0 for the largest singular value s: the lowest eigenvalue is -1
    largest = (-rest / 2 + (rest**2 / 4 + 4 * rest) ** 0.5) / 2
    singular = np.linspace(largest, largest / 2, coupled)
    along = np.concatenate([-singular / 2, np.full(descent - coupled, 0.5)])
    coupling = (frames[0][:, :coupled] * singular) @ frames[1][:, :coupled].T
    hessian = (frames[0] * along) @ frames[0].T
    slopes = []
    for size in (descent, ascent):
        drawn = rng.standard_normal((clients, size))
        drawn -= drawn.mean(0)
        with np.errstate(over="ignore"):  # slopes that are not finite are refused below, by name
            scale = heterogeneity / np.sqrt((drawn**2).sum(1).mean()) if clients > 1 else 0.0
            slopes.append(scale * drawn)
    start = spread * rng.standard_normal(descent + ascent)
    return QuadraticMinimax(
        (hessian + hessian.T) / 2, coupling, mu, *slopes, ripple=ripple, noise=noise, growth=growth,
        x0=start[:descent], y0=start[descent:], device=device,
    )  # fmt: skip
