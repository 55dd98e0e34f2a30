r"""Minimax problems whose gradient in x is bounded: concave in y, or only one-point concave, never strongly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import POSITIVE, Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real
from fedbounds.empirical.problems.bounded_gradient import SHAPES
from fedbounds.empirical.problems.minimax_synthetic import SyntheticMinimax


class Well(NamedTuple):
    r"""An even function $\psi$ with $\psi(0) = 0$, its derivative, and the suprema of $|\psi'|$ and $|\psi''|$."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    steepest: float
    sharpest: float


def _one_point(u: Tensor) -> Tensor:
    size = u.abs()
    return -size * torch.expm1(-size)


def _one_point_slope(u: Tensor) -> Tensor:
    size = u.abs()
    return u.sign() * (size * torch.exp(-size) - torch.expm1(-size))


LOG_COSH = Well(SHAPES["log-cosh"].value, SHAPES["log-cosh"].slope, 1.0, 1.0)
ONE_POINT = Well(_one_point, _one_point_slope, 1 + math.exp(-2), 2.0)


class BoundedMinimax(SyntheticMinimax):
    r"""Concave in y, with every gradient in x bounded, one independent problem per coordinate.

    $$f_i(x, y) = \sum_j\big[c_{ij}x_j + \rho\cos x_j - q\log\cosh(y_j-s\sin x_j) + d_{ij}y_j\big],\qquad
      \textstyle|\sum_ip_id_{ij}| < q.$$

    With $\bar c = \sum_ip_ic_i$ and $\bar d$ likewise, $y_j^*(x) = s\sin x_j + \operatorname{artanh}(\bar d_j/q)$ and
    $\Phi(x) = \sum_j[\bar c_jx_j + \rho\cos x_j + \bar d_js\sin x_j]$ plus a constant, bounded below iff $\bar c = 0$.
    The heterogeneity is the same at every point, as in `QuadraticMinimax`;
    $G_x = \max_i\|(|c_{ij}|+\sqrt{\rho^2+q^2s^2})_j\|$ and $L_f\le\sqrt{\rho^2+q^2s^2}+q(1+s^2)$.

    Args:
        slopes: $c_i$ as `(clients, m)`, in units of a gradient.
        ascent_slopes: $d_i$ as `(clients, m)`.
        ripple: $\rho \ge 0$, in units of f.
        depth: $q > 0$, in units of f.
        bend: $s$, how far y follows the sine of x.
        weights, noise, growth, x0, y0, device: as in `QuadraticMinimax`.

    Raises:
        FedboundsError: a shape that does not fit, a value outside its range, a mean slope that no y can balance.

    Example:
        >>> problem = BoundedMinimax([[1.0], [-1.0]], [[0.5], [0.1]], ripple=0.3, depth=0.5, bend=0.8)
        >>> [round(problem.constants()[c].value, 9) for c in ("descent_gradient_bound", "smoothness")]
        [1.5, 1.32]

    Source: the setting is that of Sharma et al. 2023, Theorems 2 and 4; the family is ours.
    """

    well = LOG_COSH

    def __init__(
        self,
        slopes: Any,
        ascent_slopes: Any,
        ripple: float,
        depth: float,
        bend: float,
        *,
        weights: Any = None,
        noise: Any = 0.0,
        growth: float = 0.0,
        x0: Any = None,
        y0: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.ripple, self.depth, self.bend = real("ripple", ripple), real("depth", depth, POSITIVE), real("bend", bend)
        self._set_clients(slopes, ascent_slopes, None, weights, noise, growth, x0, y0, device)
        if self.descent_dimension != self.ascent_dimension:
            raise FedboundsError(
                f"slopes have {self.descent_dimension} coordinates, ascent_slopes {self.ascent_dimension}; "
                "must be as many"
            )

    def _set_weights(self, weights: Any) -> None:
        super()._set_weights(weights)
        balance = self.split(self.mean_slopes)[1] / self.depth
        if float(balance.abs().max()) >= 1:
            raise FedboundsError(
                f"the mean of ascent_slopes reaches {float(balance.abs().max()) * self.depth:g}; it must stay below "
                f"depth = {self.depth:g}, or F(x, .) has no maximum"
            )
        self.offset = balance.atanh()  # y*(x) - s sin x, where q psi' balances the mean slope

    def _bent(self, z: Tensor) -> Tensor:
        """$y - s sin x$."""
        x, y = self.split(z)
        return y - self.bend * x.sin()

    def common(self, z: Tensor) -> Tensor:
        x = self.split(z)[0]
        return (self.ripple * x.cos() - self.depth * self.well.value(self._bent(z))).sum(-1)

    def common_gradient(self, z: Tensor) -> Tensor:
        x, pull = self.split(z)[0], self.depth * self.well.slope(self._bent(z))
        return self.join(self.bend * x.cos() * pull - self.ripple * x.sin(), -pull)

    def best_response(self, x: Tensor) -> Tensor:
        return self.bend * x.sin() + self.offset

    def envelope(self, x: Tensor) -> Tensor:
        c, d = self.split(self.mean_slopes)
        return (c * x + self.ripple * x.cos() + d * self.bend * x.sin()).sum(-1) + self._level()

    def _level(self) -> Tensor:
        r"""$\max_u\sum_j[\bar d_ju_j - q\psi(u_j)]$."""
        d = self.split(self.mean_slopes)[1]
        return (d * self.offset - self.depth * self.well.value(self.offset)).sum()

    def envelope_gradient(self, x: Tensor) -> Tensor:
        c, d = self.split(self.mean_slopes)
        return c - self.ripple * x.sin() + self.bend * d * x.cos()

    def envelope_hessian(self, x: Tensor) -> Tensor:
        d = self.split(self.mean_slopes)[1]
        return torch.diag_embed(-self.ripple * x.cos() - self.bend * d * x.sin())

    def dual_gap(self, z: Tensor) -> Tensor:
        d, u = self.split(self.mean_slopes)[1], self._bent(z)
        fall = self.depth * (self.well.value(u) - self.well.value(self.offset)) - d * (u - self.offset)
        return fall.clamp(min=0).sum(-1)  # below zero only by rounding

    def _steepness(self) -> float:
        r"""$\sup|\partial_x f_0|$ of one coordinate, attained in the limit."""
        return math.hypot(self.ripple, self.depth * self.bend * self.well.steepest)

    def smoothness(self) -> float:
        return self._steepness() + self.depth * self.well.sharpest * (1 + self.bend**2)

    def infimum(self) -> Constant | NoConstant:
        c, d = self.split(self.mean_slopes)
        if float(c.abs().max()) > 1e-12 * float(self.slopes.abs().max()):
            return NoConstant("Phi is unbounded below: the slopes in x do not cancel in the weighted mean")
        depths = torch.hypot(torch.full_like(d, self.ripple), self.bend * d)
        return Constant(float(self._level() - depths.sum()), "exact")

    def constants(self) -> dict[str, Constant | NoConstant]:
        c = self.split(self.slopes)[0]
        steepest = float(torch.linalg.vector_norm(c.abs() + self._steepness(), dim=1).max())
        reach = float((self.bend + self.offset.abs()).square().sum())
        return super().constants() | {
            "descent_gradient_bound": Constant(steepest, "exact", "supremum over all clients and points"),
            "best_response_bound": Constant(reach, "exact", "supremum of the squared norm of y*(x)"),
        }

    def _smoothness_note(self) -> str:
        return "upper bound: each summand of the Hessian at its largest"

    def _strong_concavity(self) -> Constant | NoConstant:
        return NoConstant("f_i(x, .) is almost linear far from its maximum")


class OnePointMinimax(BoundedMinimax):
    r"""Not concave in y, but one-point concave at a maximizer that all clients share.

    $$f_i(x, y) = \sum_j\big[c_{ij}x_j + \rho\cos x_j - q\,\psi(y_j-s\sin x_j)\big],\qquad
      \psi(u) = |u|(1-e^{-|u|}).$$

    $\psi'' < 0$ for $|u| > 2$, yet $u\psi'(u)\ge\psi(u)$; the common maximizer is $y_j^*(x) = s\sin x_j$ and
    $\Phi(x) = \sum_j[\bar c_jx_j+\rho\cos x_j]$. Constants as in `BoundedMinimax` with $|\psi'|\le1+e^{-2}$ and
    $|\psi''|\le2$.

    Args:
        slopes: $c_i$ as `(clients, m)`, in units of a gradient.
        ripple: $\rho \ge 0$, in units of f.
        depth: $q > 0$, in units of f.
        bend: $s$.
        weights, noise, growth, x0, y0, device: as in `QuadraticMinimax`.

    Raises:
        FedboundsError: a shape that does not fit or a value outside its range.

    Example:
        >>> problem = OnePointMinimax([[1.0], [-1.0]], ripple=0.3, depth=0.5, bend=0.8, x0=[1.0], y0=[3.0])
        >>> [round(problem.constants()[c].value, 9) for c in ("best_response_bound", "initial_gap")]
        [0.64, 0.462090692]

    Source: the setting is that of Sharma et al. 2023, Theorem 3 and assumption A8; the family is ours.
    """

    well = ONE_POINT

    def __init__(
        self,
        slopes: Any,
        ripple: float,
        depth: float,
        bend: float,
        *,
        weights: Any = None,
        noise: Any = 0.0,
        growth: float = 0.0,
        x0: Any = None,
        y0: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        none = torch.zeros_like(array("slopes", slopes, (None, None)))
        super().__init__(
            slopes, none, ripple, depth, bend, weights=weights, noise=noise, growth=growth, x0=x0, y0=y0, device=device
        )
