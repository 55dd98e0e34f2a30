r"""Quadratics whose parameters are split over silos: every constant of the theory of tiers is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.checks import check_flag, is_number, quote
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.symbols import Constant, NoConstant
from fedbounds.empirical.problems.border import array, real
from fedbounds.empirical.problems.vertical import Vertical, blocks_of, counts


class BlockQuadratic(Vertical):
    r"""One quadratic, its parameters split over silos; clients see it with noise that is drawn once a round.

    $$f(\theta)=\tfrac12(\theta-c)^\top A(\theta-c),\qquad
      g_{k,j}(\theta) = A_{j,:}(\theta-c) + s_j\,\xi_{k,j},\quad\xi\sim N(0,I)$$

    Args:
        hessian: A, symmetric, `(d, d)`, in units of f/x^2.
        blocks: $d_j$, how many parameters each silo has; their sum is d.
        silo_clients: $K_j$, one number for each silo.
        center: c, `(d,)`; zero if not given.
        noise: the standard deviation of every coordinate's noise, one number or `(d,)`, in units of a gradient.
        shared_noise: whether the clients of a silo see the same noise, or each its own.
        x0: the starting point `(d,)`.
        device: where the tensors live.

    Raises:
        FedboundsError: a shape that does not fit, a value outside its range, A not symmetric.

    Source: Das et al. 2022, Assumptions 1 to 3, all of them with equality; the family is ours.
    """

    def __init__(
        self,
        hessian: Any,
        blocks: Sequence[int],
        silo_clients: Sequence[int],
        center: Any = None,
        noise: Any = 0.0,
        shared_noise: bool = False,
        x0: Any = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        a = array("hessian", hessian, (None, None))
        if a.shape[0] != a.shape[1] or not bool(torch.allclose(a, a.T)):
            raise FedboundsError(f"hessian of shape {tuple(a.shape)} must be a symmetric matrix")
        self.dimension = len(a)
        sizes = counts("blocks", blocks)
        if sum(sizes) != self.dimension:
            raise FedboundsError(f"blocks have {sum(sizes)} parameters in all, the Hessian has {self.dimension}")
        self.blocks, self.silo_clients = blocks_of(sizes), counts("silo_clients", silo_clients)
        if len(self.blocks) != len(self.silo_clients):
            raise FedboundsError(f"silo_clients are of {len(self.silo_clients)} silos, blocks of {len(self.blocks)}")
        self.clients = sum(self.silo_clients)
        self.dtype, self.device = torch.float64, torch.device(device)
        zero = torch.zeros(self.dimension, dtype=self.dtype)
        self.hessian = a.to(self.device)
        self.center = (zero if center is None else array("center", center, (self.dimension,))).to(self.device)
        self.x0 = (zero if x0 is None else array("x0", x0, (self.dimension,))).to(self.device)
        spread = [real("noise", noise)] * self.dimension if is_number(noise) else array("noise", noise, zero.shape)
        self.noise = np.asarray(spread, float)
        if (self.noise < 0).any():
            raise FedboundsError(f"noise = {quote(noise)} must be numbers >= 0")
        self.shared_noise = check_flag("shared_noise", shared_noise)

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.x0.clone()

    def draw_round(self, rng: np.random.Generator) -> np.ndarray | None:
        """$s_j\\xi_{k,j}$ of all clients, one after another, (sum of K_j d_j,)."""
        if not self.noise.any():
            return None
        parts = []
        for block, count in zip(self.blocks, self.silo_clients, strict=True):
            own = rng.standard_normal((1 if self.shared_noise else count, block.stop - block.start))
            parts.append(np.broadcast_to(own * self.noise[block], (count, own.shape[1])).ravel())
        return np.concatenate(parts)

    def exchange(self, x: Tensor, randomness: Tensor | None) -> tuple[Tensor, ...]:
        """Of every silo $A_{j,-j}(\\theta-c)_{-j}+s_j\\xi_{k,j}$, (seeds, K_j or 1, d_j)."""
        away, told, start = x - self.center, [], 0
        for block, count in zip(self.blocks, self.silo_clients, strict=True):
            rows, size = self.hessian[block], block.stop - block.start
            others = (away @ rows.T - away[:, block] @ rows[:, block].T)[:, None]
            if randomness is not None:
                others = others + randomness[:, start : start + count * size].view(-1, count, size)
            start += count * size
            told.append(others)
        return tuple(told)

    def partial_gradients(self, silo: int, own: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        block = self.blocks[silo]
        return (own - self.center[block]) @ self.hessian[block, block].T + known[silo]

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.stochastic_gradient(x, clients, None)

    def objective(self, x: Tensor) -> Tensor:
        away = x - self.center
        return ((away @ self.hessian) * away).sum(-1) / 2

    def objective_gradient(self, x: Tensor) -> Tensor:
        return (x - self.center) @ self.hessian

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        return {"gradient_norm_squared": self.objective_gradient(x).square().sum(-1), "objective": self.objective(x)}

    def constants(self) -> dict[str, Constant | NoConstant]:
        L = float(torch.linalg.matrix_norm(self.hessian, 2))
        own = [float(torch.linalg.matrix_norm(self.hessian[block, block], 2)) for block in self.blocks]
        variance = float((self.noise**2).sum())
        return {
            "smoothness": Constant(L, "exact", "norm of the Hessian"),
            "block_smoothness": Constant(max(own), "exact", "largest norm of a diagonal block"),
            "block_gradient_noise": Constant(variance, "exact", "sum of the variances of the coordinates"),
        }
