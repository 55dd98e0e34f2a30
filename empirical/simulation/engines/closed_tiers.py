r"""Block quadratics without local steps: what a round of a silo does to its block is one affine map.

With $H_{k,j}$ the rows of client k's Hessian, $\xi_{k,j}$ the noise of the round, drawn once, and
$S_{k,j}=\eta\sum_{q<Q}(I-\eta(H_{k,j})_{(j)})^q$,

$$\theta_j^+ = \theta_j - \sum_kw_{k,j}S_{k,j}\big(H_{k,j}(\theta-\bar c)-b_{k,j}+\xi_{k,j}\big).$$

The draws are those of the engine of tiers, so the numbers agree, not only their law.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.problems import BlockQuadratic, Problem
from fedbounds.empirical.simulation.engines.tiers import Tiers


def summed_steps(curvature: Tensor, step_size: float, steps: int) -> Tensor:
    r"""$\eta\sum_{q<Q}(I-\eta H)^q$, by doubling: what Q steps subtract, for each unit of the first gradient."""
    unit = torch.eye(curvature.shape[-1], dtype=curvature.dtype, device=curvature.device)
    once = unit - step_size * curvature
    total, power = torch.zeros_like(curvature), unit.expand_as(curvature)
    for bit in f"{steps:b}":
        total, power = total + power @ total, power @ power
        if bit == "1":
            total, power = total + power, power @ once
    return step_size * total


class SiloMap(NamedTuple):
    """What a round subtracts from a silo's block."""

    # $w_{k,j}S_{k,j}$ of every client, (K_j, d_j, d_j), or, their Hessians all equal, $S_j$, (1, d_j, d_j)
    weighted: Tensor
    weights: Tensor | None  # in the latter case the $w_{k,j}$, (K_j,); None in the former
    rows: Tensor  # $\sum_kw_{k,j}S_{k,j}H_{k,j}$, (d_j, d)
    pulled: Tensor  # $\sum_kw_{k,j}S_{k,j}b_{k,j}$, (d_j,)

    @property
    def clients(self) -> Tensor:
        """$w_{k,j}S_{k,j}$ of every client, (K_j, d_j, d_j)."""
        return self.weighted if self.weights is None else self.weights[:, None, None] * self.weighted

    def noise(self, drawn: Tensor) -> Tensor:
        """The clients' noise (rounds, K_j, d_j) after their steps, in the mean, (rounds, d_j)."""
        if self.weights is None:
            return torch.einsum("rkd,ked->re", drawn, self.weighted)
        return torch.einsum("k,rkd->rd", self.weights, drawn) @ self.weighted[0].T


class ClosedTiers(Tiers):
    """Exact rounds of `TierSteps` on a `BlockQuadratic`, at a cost that does not depend on the local steps.

    A round costs O(seeds x d^2), and O(seeds x clients x d_j) for the noise (by d_j more, if Hessians differ).
    """

    label = "closed form"

    def __init__(self, problem: Problem, local: TierSteps, needs_updates: bool = False) -> None:
        if not isinstance(problem, BlockQuadratic):
            raise FedboundsError(
                f"engine 'closed form' needs a BlockQuadratic, the problem is {type(problem).__name__}; use 'tiers' "
                "or 'auto'"
            )
        super().__init__(problem, local, needs_updates)
        self.quadratic = problem
        self.silos = tuple(self._map(silo) for silo in range(problem.silos))
        self.rows, self.pulled = (torch.cat(parts) for parts in zip(*(s[2:] for s in self.silos), strict=True))

    def _map(self, silo: int) -> SiloMap:
        problem, local = self.quadratic, self.steps
        block, rows, pulled = problem.blocks[silo], problem.rows[silo], problem.pulled[silo]
        count = problem.silo_clients[silo]
        weights = self.weights(silo, None)
        weights = rows.new_full((count,), 1 / count) if weights is None else weights
        sums = summed_steps(rows[..., block], local.step_size, local.steps - int(local.discards_last))
        alike = len(rows) == 1
        weighted = sums if alike else weights[:, None, None] * sums
        pulled = (weights @ pulled)[None] if alike and len(pulled) > 1 else pulled
        return SiloMap(
            weighted,
            weights if alike else None,
            torch.einsum("ked,kdm->em", weighted, rows),
            (weighted @ pulled[..., None]).sum(0)[:, 0],
        )

    def displacement(self, x: Tensor, drawn: Tensor | None) -> Tensor:
        moved = self.pulled - (x - self.quadratic.center) @ self.rows.T
        return moved if drawn is None else moved - self.average_noise(drawn)

    def average_noise(self, drawn: Tensor) -> Tensor:
        """What the noise of rounds (rounds, sum of K_j d_j) adds to what they subtract, (rounds, d)."""
        problem, parts, start = self.quadratic, [], 0
        for own, block, count in zip(self.silos, problem.blocks, problem.silo_clients, strict=True):
            size = block.stop - block.start
            parts.append(own.noise(drawn[:, start : start + count * size].view(-1, count, size)))
            start += count * size
        return torch.cat(parts, -1)
