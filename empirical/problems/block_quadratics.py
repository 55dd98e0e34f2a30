r"""Quadratics whose parameters are split over silos: every constant of the theory of tiers is known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag, check_memory, is_number, quote
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real
from fedbounds.empirical.problems.quadratics import random_quadratic, solve_stationarity
from fedbounds.empirical.problems.vertical import (
    EACH_VARIANCE,
    NOISES,
    SHARED,
    SyntheticVertical,
    check_holders,
    cut_into_runs,
    every_outcome,
)

NoiseLaw = Literal["gaussian", "signs"]


class BlockQuadratic(SyntheticVertical):
    r"""The mean of quadratics, its parameters split over silos, and the quadratics over the clients of each silo.

    $$f(\theta)=\frac1n\sum_{p=1}^n\tfrac12(\theta-c_p)^\top A_p(\theta-c_p),\qquad
      g_{k,j}(\theta) = \mathop{\rm mean}_{p\text{ of }k}\big(A_p(\theta-c_p-\delta_{k,j})\big)_{(j)} + \xi_{k,j}$$

    with noise $\xi$ and shifts $\delta$ of mean zero that are drawn once a round. All clients have the same quadratic
    if there is one, and Assumptions 1 to 3 hold with equality. Of several, each has one client in every silo. A client
    alone is then biased, and only the mean over a silo is not.

    Args:
        hessian: A symmetric `(d, d)`, or $A_p$, `(n, d, d)`, in units of f/x^2.
        blocks: $d_j$, how many parameters each silo has; their sum is d.
        silo_clients: $K_j$, one number for each silo.
        center: c `(d,)`, or $c_p$, `(n, d)`; zero if not given.
        noise: the standard deviation of every coordinate of $\xi$, one number or `(d,)`, in units of a gradient.
        shift: the standard deviation of every coordinate of $\delta$, one number or `(d,)`, in units of x.
        shared_noise: whether all clients see the same noise and the same shift, or each its own.
        noise_law: "gaussian", or "signs" of that size.
        holders: `(silos, n)`, which client of silo j has which quadratic, counted from 0; cyclic, if not given.
        x0: the starting point `(d,)`.
        device: where the tensors live.

    Raises:
        FedboundsError: a shape that does not fit, a value outside its range, A not symmetric, a client with nothing.

    Example:
        >>> problem = BlockQuadratic([[2, 1], [1, 2]], [1, 1], [2, 3], noise=0.5, x0=[1, 1])
        >>> {name: round(problem.constants()[name].value, 9) for name in ("smoothness", "block_gradient_noise")}
        {'smoothness': 3.0, 'block_gradient_noise': 0.5}

    Source: Das et al. 2022, Assumptions 1 to 3; the family is ours.
    """

    affine = True

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
        shift: Any = 0.0,
        noise_law: NoiseLaw = "gaussian",
        holders: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        a = array("hessian", hessian)
        if a.ndim not in (2, 3) or a.shape[-1] != a.shape[-2] or not bool(torch.allclose(a, a.mT)):
            raise FedboundsError(f"hessian of shape {tuple(a.shape)} must be a symmetric matrix, or several")
        d = self.dimension = a.shape[-1]
        self._set_silos(blocks, silo_clients, "parameters", "the Hessian has", x0, device)
        c = torch.zeros(d, dtype=self.dtype) if center is None else array("center", center)
        if c.ndim not in (1, 2) or c.shape[-1] != d or (a.ndim == 3 and c.ndim == 2 and len(a) != len(c)):
            raise FedboundsError(f"center has shape {tuple(c.shape)}, which does not fit a Hessian of {tuple(a.shape)}")
        self.pieces = max(len(a) if a.ndim == 3 else 1, len(c) if c.ndim == 2 else 1)
        # one of each where all are equal
        self.hessians = (a[:1] if bool((a == a[:1]).all()) else a) if a.ndim == 3 else a[None]
        self.centers = (c if c.ndim == 2 else c[None]).to(self.device)
        self.hessians = self.hessians.to(self.device)
        self.noise, self.shift = deviations("noise", noise, d), deviations("shift", shift, d)
        self.shared_noise = check_flag("shared_noise", shared_noise)
        self.noise_law = check_choice("noise_law", noise_law, get_args(NoiseLaw))
        if holders is None:
            self.holders = cut_into_runs(self.pieces, self.silo_clients) if self.pieces > 1 else None
        else:
            self.holders = check_holders(holders, self.pieces, self.silo_clients)

    @cached_property
    def hessian(self) -> Tensor:
        """That of f, (d, d)."""
        return self.hessians.mean(0)

    @cached_property
    def center(self) -> Tensor:
        r"""$\bar c$, (d,)."""
        return self.centers.mean(0)

    @cached_property
    def pulls(self) -> Tensor:
        r"""$A_p(c_p-\bar c)$, (n, d) or, all equal, (1, d)."""
        return ((self.centers - self.center)[:, None] @ self.hessians.mT)[:, 0]

    @cached_property
    def rows(self) -> tuple[Tensor, ...]:
        """A silo's rows of its clients' Hessians $H_{k,j}$, of each silo (K_j, d_j, d) or, all equal, (1, d_j, d)."""
        return tuple(self._average_by_client(j, self.hessians[:, block]) for j, block in enumerate(self.blocks))

    @cached_property
    def pulled(self) -> tuple[Tensor, ...]:
        r"""$b_{k,j}$ of the clients' gradients $H_{k,j}(\theta-\bar c)-b_{k,j}$, of each silo (K_j or 1, d_j)."""
        return tuple(self._average_by_client(j, self.pulls[:, block]) for j, block in enumerate(self.blocks))

    @cached_property
    def _rows_here(self) -> tuple[np.ndarray, ...]:
        """The same on the processor, where noise is drawn."""
        return tuple(rows.cpu().numpy() for rows in self.rows)

    def _average_by_client(self, silo: int, values: Tensor) -> Tensor:
        """Means of what belongs to each quadratic over those of each client: (n or 1, ...) -> (K_j or 1, ...)."""
        if len(values) == 1 or self.holders is None:
            return values
        held = torch.from_numpy(np.eye(self.silo_clients[silo])[self.holders[silo]]).to(values)
        return torch.einsum("pk,p...->k...", held / held.sum(0), values)

    @cached_property
    def _rows_of_others(self) -> tuple[Tensor, ...]:
        """The same rows with zeros in the silo's own columns, (K_j d_j or d_j, d)."""
        found = []
        for block, rows in zip(self.blocks, self.rows, strict=True):
            others = rows.clone()
            others[..., block] = 0
            found.append(others.reshape(-1, self.dimension))
        return tuple(found)

    @cached_property
    def unbiased(self) -> bool:
        """Whether in every silo the mean of the clients' gradients is that of f: they have equally many quadratics."""
        return self.holders is None or all(
            len(set(np.bincount(held, minlength=count))) == 1
            for held, count in zip(self.holders, self.silo_clients, strict=True)
        )

    def shares(self, silo: int) -> Tensor:
        if self.holders is None:
            return super().shares(silo)
        held = np.bincount(self.holders[silo], minlength=self.silo_clients[silo])
        return torch.from_numpy(held / self.pieces).to(self.device)

    # --- noise --------------------------------------------------------------------------------------------------------

    @property
    def _random_numbers(self) -> tuple[int, int]:
        """How many random numbers of a round the noise takes, and how many the shifts."""
        coordinates = sum(k * (b.stop - b.start) for k, b in zip(self.silo_clients, self.blocks, strict=True))
        noisy, shifted = bool(self.noise.any()), bool(self.shift.any())
        if self.shared_noise:
            return noisy * self.dimension, shifted * self.dimension
        return noisy * coordinates, shifted * self.clients * self.dimension

    def draw_round(self, rng: np.random.Generator) -> np.ndarray | None:
        r"""$\xi_{k,j}$ with what the shifts add to it, of all clients one after another, (sum of K_j d_j,)."""
        many = sum(self._random_numbers)
        if not many:
            return None
        units = rng.standard_normal(many) if self.noise_law == "gaussian" else rng.integers(0, 2, many) * 2.0 - 1
        return self._noise_of(units[None])[0]

    def outcomes(self) -> np.ndarray | None:
        many = sum(self._random_numbers)
        signs = every_outcome([-1.0, 1.0], many) if many and self.noise_law == "signs" else None
        return None if signs is None else self._noise_of(signs)

    def _noise_of(self, units: np.ndarray) -> np.ndarray:
        """What numbers with mean zero and variance one make of it, (rounds, ...) -> (rounds, sum of K_j d_j)."""
        noisy, shifted = self._random_numbers
        drawn, moved, parts, first, start = units[:, :noisy], units[:, noisy:], [], 0, 0
        if shifted:
            moved = (moved.reshape(len(units), -1, self.dimension)) * self.shift
        for block, rows, count in zip(self.blocks, self._rows_here, self.silo_clients, strict=True):
            size = block.stop - block.start
            part = np.zeros((len(units), count, size))
            if noisy:
                own = drawn[:, None, block] if self.shared_noise else drawn[:, start : start + count * size]
                part += own.reshape(len(units), -1, size) * self.noise[block]
            if shifted:
                own = moved if self.shared_noise else moved[:, first : first + count]
                part -= np.einsum("rkd,ked->rke", *_broadcast_clients(own, rows), optimize=True)
            parts.append(part.reshape(len(units), -1))
            first, start = first + count, start + count * size
        return np.concatenate(parts, axis=1)

    def noise_traces(self, silo: int) -> Tensor:
        """The variance that noise and shifts give the gradient of each client of a silo, (K_j,) or, all equal, (1,)."""
        noise, shift = (torch.from_numpy(one**2).to(self.device) for one in (self.noise, self.shift))
        return noise[self.blocks[silo]].sum() + (self.rows[silo].square() @ shift).sum(-1)

    def silo_variances(self, x: Tensor) -> Tensor:
        away, found = x - self.center, []
        for j, (block, rows, pulled) in enumerate(zip(self.blocks, self.rows, self.pulled, strict=True)):
            off = torch.einsum("...d,ked->...ke", away, rows - self.hessian[block])
            apart = (off - (pulled - self.pulls.mean(0)[block])).square().sum(-1).mean(-1)
            found.append(apart + self.noise_traces(j).mean())
        return torch.stack(found, -1)

    # --- gradients ----------------------------------------------------------------------------------------------------

    def exchange(self, x: Tensor, randomness: Tensor | None) -> tuple[Tensor, ...]:
        """What every silo adds to its own part of the gradient in a round, (seeds, K_j or 1, d_j)."""
        away, found, start = x - self.center, [], 0
        for j, (block, count) in enumerate(zip(self.blocks, self.silo_clients, strict=True)):
            size = block.stop - block.start
            others = (away @ self._rows_of_others[j].T).view(len(x), -1, size) - self.pulled[j]
            if randomness is not None:
                others = others + randomness[:, start : start + count * size].view(-1, count, size)
            start += count * size
            found.append(others)
        return tuple(found)

    def partial_gradients(self, silo: int, own: Tensor, known: tuple[Tensor, ...]) -> Tensor:
        block = self.blocks[silo]
        away, curvature = own - self.center[block], self.rows[silo][..., block]
        if len(curvature) == 1:
            return away @ curvature[0].T + known[silo]
        return torch.einsum("skd,ked->ske", away, curvature) + known[silo]

    # --- the objective ------------------------------------------------------------------------------------------------

    @cached_property
    def _at_center(self) -> Tensor:
        r"""$f(\bar c)$."""
        return ((self.centers - self.center) * self.pulls).sum(-1).mean() / 2

    def objective(self, x: Tensor) -> Tensor:
        away = x - self.center
        return ((away @ self.hessian / 2 - self.pulls.mean(0)) * away).sum(-1) + self._at_center

    def objective_gradient(self, x: Tensor) -> Tensor:
        return (x - self.center) @ self.hessian - self.pulls.mean(0)

    def minimizer(self) -> Tensor:
        """Where f is least (in one such place), (d,).

        Raises:
            FedboundsError: f is unbounded below.
        """
        if self._minimizer is None:
            raise FedboundsError(f"the objective has no minimizer: {_UNBOUNDED}")
        return self._minimizer.clone()

    @cached_property
    def _minimizer(self) -> Tensor | None:
        away = solve_stationarity(self.hessian, self.pulls.mean(0))
        return None if away is None else self.center + away

    def objective_gap(self, x: Tensor) -> Tensor:
        r"""$f(x)-\min f$: (..., d) -> (...).

        Raises:
            FedboundsError: f is unbounded below.
        """
        away = x - self.minimizer()
        return ((away @ self.hessian) * away).sum(-1) / 2

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        found = {"gradient_norm_squared": self.objective_gradient(x).square().sum(-1), "objective": self.objective(x)}
        return found if self._minimizer is None else found | {"objective_gap": self.objective_gap(x)}

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""Those of Assumptions 1 to 3, all exact; those that do not exist say why.

        smoothness $\|A\|$; block smoothness $\max\|(H_{k,j})_{(j)}\|$, in a client's own block, and partial smoothness
        $\max\|H_{k,j}\|$, in the whole model, exactly as in (7); noise of each block
        $\sigma_j^2=\frac1{K_j}\sum_k\mathbb E\|g_{k,j}-\nabla_{(j)}f\|^2$, where it is the same everywhere.
        """
        own = [_largest_norm(rows[..., block]) for block, rows in zip(self.blocks, self.rows, strict=True)]
        found: dict[str, Constant | NoConstant] = {
            **self._sizes(),
            "smoothness": Constant(_largest_norm(self.hessian[None]), "exact", "norm of the Hessian"),
            "block_smoothness": Constant(max(own), "exact", "largest norm of a client's Hessian in its own block"),
            "partial_smoothness": Constant(
                max(map(_largest_norm, self.rows)), "exact", "largest norm of a block's rows of a client's Hessian"
            ),
            "initial_gap": NoConstant(_UNBOUNDED),
        }
        if self._minimizer is not None:
            found["initial_gap"] = Constant(float(self.objective_gap(self.x0)), "exact", "f(x0) - min f")
        if not self.unbiased or len(self.hessians) > 1:
            why = _DIFFERENT if self.unbiased else _UNEQUAL
            return found | dict.fromkeys(NOISES, NoConstant(why))
        variances = self.silo_variances(self.x0).cpu().numpy()
        shared = SHARED if self.shared_noise and any(self._random_numbers) else ""
        return found | self._noises(variances, EACH_VARIANCE, f"over silos of {EACH_VARIANCE}", shared)


_UNBOUNDED = "the quadratic is unbounded below"
_DIFFERENT = "the clients' Hessians differ, so their gradients differ the more the larger the model is"
_UNEQUAL = "clients of a silo have different numbers of quadratics, so the mean of their gradients is not that of f"


def random_block_quadratic(
    silos: int,
    clients: int,
    dimension: int,
    heterogeneity: float = 0.0,
    condition: float = 10.0,
    *,
    shared: bool = True,
    permuted: bool = False,
    noise: float = 0.0,
    shift: float = 0.0,
    shared_noise: bool = False,
    noise_law: NoiseLaw = "gaussian",
    initial_gap: float = 1.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> BlockQuadratic:
    r"""An instance with prescribed constants: Hessians with norm 1, what the clients disagree by, and the initial gap.

    Args:
        silos: N.
        clients: of each silo, K.
        dimension: of each silo's block.
        heterogeneity: $\max_k\|\nabla F_k(\theta^*)\|$ of K quadratics, one for each client of a silo; if 0 and
            `shared` there is one for all.
        condition: ratio of the largest to the smallest eigenvalue of each Hessian.
        shared: one Hessian for all quadratics, or one each.
        permuted: whether each silo deals the quadratics out to its clients in an order of its own.
        noise, shift, shared_noise, noise_law: as for `BlockQuadratic`.
        initial_gap: $f(\theta^0)-f^*$.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_block_quadratic(silos=2, clients=3, dimension=4, noise=0.5)
        >>> round(problem.constants()["smoothness"].value, 9), problem.constants()["block_gradient_noise"].value
        (1.0, 2.0)
    """
    silos, clients, dimension = (
        check_count(name, value) for name, value in (("silos", silos), ("clients", clients), ("dimension", dimension))
    )
    permuted = check_flag("permuted", permuted)
    check_block_quadratic_memory(silos, clients, dimension, check_flag("shared", shared))
    many = 1 if shared and not real("heterogeneity", heterogeneity) else clients
    base = random_quadratic(
        many, silos * dimension, heterogeneity, condition, shared=shared, initial_gap=initial_gap, seed=seed
    )
    hessians = torch.diag_embed(base.hessians) if base.diagonal else base.hessians
    rng = np.random.default_rng([seed, 1])
    holders = np.stack([rng.permutation(clients) for _ in range(silos)]) if permuted and many > 1 else None
    return BlockQuadratic(
        hessians, [dimension] * silos, [clients] * silos, base.centers, noise, shared_noise, base.x0,
        shift=shift, noise_law=noise_law, holders=holders, device=device,
    )  # fmt: skip


def check_block_quadratic_memory(silos: int, clients: int, dimension: int, shared: bool) -> None:
    """Refuse a random instance that this machine cannot hold while it is made."""
    what = f"a block quadratic with silos = {silos}, clients = {clients}, dimension = {dimension}"
    numbers = (1 if shared else clients) * (silos * dimension) ** 2 + silos * clients * dimension
    check_memory(what, 8 * 6 * numbers)


def _largest_norm(matrices: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrices, 2).max())


def deviations(name: str, value: Any, dimension: int) -> np.ndarray:
    """Standard deviations of every coordinate, (d,)."""
    found = np.full(dimension, real(name, value)) if is_number(value) else array(name, value, (dimension,)).numpy()
    if (found < 0).any():
        raise FedboundsError(f"{name} = {quote(value)} must be numbers >= 0")
    return found


def _broadcast_clients(own: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shifts (rounds, K or 1, d) and rows (K or 1, e, d), with as many clients in both."""
    many = max(own.shape[1], len(rows))
    return np.broadcast_to(own, (len(own), many, own.shape[2])), np.broadcast_to(rows, (many, *rows.shape[1:]))
