"""The interface of federated minimax problems: blocks of gradients, feasible sets with their projections, envelopes."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from fedbounds.bounds.theory.symbols import POSITIVE
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.problem import Problem


def project_onto_ball(y: Tensor, radius: float = 1.0) -> Tensor:
    r"""The nearest point of the ball around the origin, $y\,\min\{1, r/\|y\|\}$.

    Source: Sharma et al. 2023, the constraint $\|y\|^2\le1$ of eq. (8).
    """
    length = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
    limit = real("radius", radius, POSITIVE)
    return torch.where(length > limit, y * (limit / length), y)


def project_onto_simplex(y: Tensor) -> Tensor:
    r"""The nearest point with entries that are not negative and add up to one: $\max\{y-\theta, 0\}$.

    $\theta$ is found exactly, by sorting: with $y_{(1)}\ge y_{(2)}\ge\dots$, it is
    $(\sum_{j\le k}y_{(j)}-1)/k$ for the largest k for which that is below $y_{(k)}$.

    Source: Sharma et al. 2023, the constraint $y\in\Delta_C$ of eq. (9).
    """
    sorted_down = y.sort(dim=-1, descending=True).values
    counts = torch.arange(1, y.shape[-1] + 1, dtype=y.dtype, device=y.device)
    thresholds = (sorted_down.cumsum(-1) - 1) / counts
    last = ((thresholds < sorted_down).sum(-1, keepdim=True) - 1).clamp(min=0)  # below 0 where y is not finite
    return (y - thresholds.gather(-1, last)).clamp(min=0)


class Minimax(Problem):
    r"""A federated minimax problem, $\min_x\max_{y\in Y} F(x, y) = \sum_i p_i f_i(x, y)$, of one vector $z = (x, y)$.

    `gradient` is $(\nabla_xf_i, \nabla_yf_i)$ without a change of sign; `objective` is F; $\Phi(x) = \max_{y\in Y}F(x,
    y)$ is minimized. `project` finds the nearest feasible y if `constrained`; starting points are feasible.

    Source: Sharma et al. 2023, eq. (1); the constraints are those of eqs. (8) and (9).
    """

    ascends = True
    descent_dimension: int  # $d_x$, the length of the first block
    ascent_dimension: int  # $d_y$, the length of the second block
    weights: Tensor  # $p$, `(clients,)`, with sum 1
    constrained: bool = False  # whether Y is less than the whole space

    def split(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The two blocks of a state: (..., d_x + d_y) -> (..., d_x), (..., d_y), without a copy."""
        return z[..., : self.descent_dimension], z[..., self.descent_dimension :]

    def join(self, x: Tensor, y: Tensor) -> Tensor:
        """The state of two blocks: (..., d_x), (..., d_y) -> (..., d_x + d_y)."""
        return torch.cat([x, y], dim=-1)

    def project(self, y: Tensor) -> Tensor:
        """The feasible point nearest to y, (..., d_y) -> (..., d_y); y itself where everything is feasible."""
        return y

    def snapshot_gradient(self, x: Tensor, snapshot: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        r"""Stochastic gradients whose blocks are taken at two places, with the same sample.

        $$\big(\nabla_xf_i(x, y; \xi),\ \nabla_yf_i(\hat x, y; \xi)\big)$$

        Source: Sharma et al. 2023, Algorithm 1 (Fed-Norm-SGDA+).
        """
        places = torch.cat([x, self.join(snapshot, self.split(x)[1])])
        twice = None if randomness is None else torch.cat([randomness, randomness])
        here, there = self.stochastic_gradient(places, torch.cat([clients, clients]), twice).chunk(2)
        return self.join(self.split(here)[0], self.split(there)[1])


class ExactEnvelope(Minimax):
    r"""A minimax problem whose inner maximum is known exactly, and with it $\Phi$, its gradient and the dual gap."""

    @abstractmethod
    def best_response(self, x: Tensor) -> Tensor:
        r"""$y^*(x)$, where F(x, .) is largest: (..., d_x) -> (..., d_y)."""

    @abstractmethod
    def envelope(self, x: Tensor) -> Tensor:
        r"""$\Phi(x) = \max_yF(x, y)$: (..., d_x) -> (...)."""

    @abstractmethod
    def envelope_gradient(self, x: Tensor) -> Tensor:
        r"""$\nabla\Phi(x) = \nabla_xF(x, y^*(x))$: (..., d_x) -> (..., d_x)."""

    def dual_gap(self, z: Tensor) -> Tensor:
        r"""$\Phi(x) - F(x, y) \ge 0$: (..., d) -> (...)."""
        return self.envelope(self.split(z)[0]) - self.objective(z)
