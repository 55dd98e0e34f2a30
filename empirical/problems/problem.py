"""What an algorithm may ask of a problem: local gradients, exact or stochastic, and the constants of the theory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant


class LowerBound(NamedTuple):
    """A lower bound of the objective, hence of the initial gap."""

    metric: str  # the metric that is the objective
    value: float  # the bound
    why: str  # its reason


class SiloSizes(NamedTuple):
    """Sizes of the messages between silos and their clients."""

    parameters: tuple[int, ...]  # $d_j$, of every silo
    silo_clients: tuple[int, ...]  # $K_j$
    batch: int  # samples of a round
    embedding: int  # numbers of a sample's embedding


class Problem(ABC):
    r"""A federated problem, $\min_x f(x) = \sum_{n=1}^N p_n F_n(x)$, with $p_n=\frac1N$ in the papers' objective.

    Parameters are one flat vector. `x`, `(seeds, cohort, d)`, is the local iterate of every participating client of
    every run; `clients`, `(seeds, cohort)`, are their indices. Problems are immutable: `draw` draws randomness from a
    given generator, and `stochastic_gradient` takes it.

    Attributes:
        clients: number of clients, $N$.
        dimension: number of parameters, $d$.
        client_weights: $p_n$, `(clients,)`, which sum to one; None for $\frac1N$ each.
        dtype: of every tensor that comes out; float64 for synthetic problems, float32 for networks.
        device: where the tensors live.
        faster_together: whether runs of several settings are faster together on a processor.
        prefers_batched: whether one call for a whole cohort is faster than one call per client, on this device.
        data_checksum: identifies the data in cache keys; None for problems without data.
        ascends: whether a second player maximizes (`Minimax`), so that only minimax algorithms can run on it.
        steps_per_epoch: local steps in which each client computes as many gradients as it holds samples, `(clients,)`;
            None where clients hold no samples.
        uncompressed: how many coordinates, the last, are sent in full precision under any compression.
        statistics: how many coordinates, the last, are running statistics; a stochastic gradient holds there what a
            step of length one subtracts.
        affine: whether gradients are affine in the model, with noise that does not depend on it, so that local steps
            have a closed form.
        fuses_steps: whether `fuse_steps` is faster than single stochastic gradients, and equal up to rounding.
        silos: number of silos that hold a block of the parameters each (`Vertical`); 0 if every client has the whole
            model.
        silo_sizes: the sizes of the messages of silos that exchange embeddings; None for others.
        lower_bound: a lower bound of the objective, if its minimum is not known; else None.
    """

    ascends: bool = False
    affine: bool = False
    fuses_steps: bool = False
    silos: int = 0
    clients: int
    client_weights: np.ndarray | None = None
    dimension: int
    dtype: torch.dtype
    device: torch.device
    faster_together: bool = False
    prefers_batched: bool = True
    data_checksum: str | None = None
    steps_per_epoch: np.ndarray | None = None
    lower_bound: LowerBound | None = None
    uncompressed: int = 0
    statistics: int = 0

    @property
    def silo_sizes(self) -> SiloSizes | None:
        return None

    def client_mean(self, values: Tensor) -> Tensor:
        r"""$\sum_np_nv_n$: (clients, ...) -> (...)."""
        if self.client_weights is None:
            return values.mean(0)
        return torch.tensordot(torch.from_numpy(self.client_weights).to(values), values, 1)

    @abstractmethod
    def initial_point(self, rng: np.random.Generator) -> Tensor:
        """A starting point `(d,)`; synthetic problems return their fixed $x_0$ and draw nothing."""

    @abstractmethod
    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        r"""The exact local gradients $\nabla F_n(x)$: `x` (seeds, cohort, d), `clients` (seeds, cohort) -> like `x`."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray | None:
        """The randomness of one stochastic gradient of one client; None if the gradients are free of noise."""

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray | None:
        """The randomness of `steps` stochastic gradients, stacked: the same numbers as `steps` calls of `draw`."""
        drawn = [self.draw(rng, client) for _ in range(steps)]
        kept = [randomness for randomness in drawn if randomness is not None]
        return np.stack(kept) if kept else None

    def draws_of_all(
        self, generators: Sequence[np.random.Generator], clients: Sequence[int], steps: int
    ) -> np.ndarray | None:
        """What `draws` gives for each of several clients, from a generator of its own: (steps, clients, ...)."""
        found = [self.draws(rng, client, steps) for rng, client in zip(generators, clients, strict=True)]
        drawn = [own for own in found if own is not None]
        return np.stack(drawn, axis=1) if drawn else None

    @abstractmethod
    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        r"""The stochastic gradients $g_n(x)$ that `randomness` (seeds, cohort, ...) makes of `gradient`."""

    def fuse_steps(self, x: Tensor, clients: Tensor, drawn: Tensor, sizes: Tensor) -> Tensor:
        r"""The models after local steps $x \leftarrow x - s\,g_n(x)$, all in one if the problem `fuses_steps`.

        Args:
            x: the models, (seeds, cohort, d).
            clients: whose, (seeds, cohort).
            drawn: the randomness of the steps, (steps, seeds, cohort, ...).
            sizes: $s$, (seeds, cohort, 1).

        Returns:
            (seeds, cohort, d).
        """
        for own in drawn:
            x = torch.addcmul(x, self.stochastic_gradient(x, clients, own), sizes, value=-1)
        return x

    @abstractmethod
    def objective(self, x: Tensor) -> Tensor:
        """$f(x)$: (..., d) -> (...)."""

    @abstractmethod
    def objective_gradient(self, x: Tensor) -> Tensor:
        r"""$\nabla f(x)$: (..., d) -> (..., d)."""

    @abstractmethod
    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        """What is recorded of the global models `x` (seeds, d): name -> (seeds,)."""

    def metrics_and_products(self, x: Tensor) -> dict[str, Tensor]:
        r"""The metrics, and, where they cost no further pass over the data, $\nabla F_n(x)^\top\nabla F_m(x)$ as
        `gradient_products` (seeds, clients, clients).
        """
        return self.metrics(x)

    @abstractmethod
    def constants(self) -> dict[str, Constant | NoConstant]:
        """Concept -> its value, valid on the whole domain, or the reason why no finite value exists."""

    def local_loss(self, x: Tensor, client: int) -> Tensor:
        r"""$F_n(x)$ at one point `(d,)`, in a form that autograd differentiates twice.

        Raises:
            FedboundsError: there is no such form, or no second derivative.
        """
        raise FedboundsError(f"{type(self).__name__} has no second derivatives to be had")

    def gradient_variance(self, x: Tensor, blocks: Sequence[slice] = (slice(None),)) -> Tensor:
        r"""$\mathbb E\|g_n(x)-\nabla F_n(x)\|^2$ at one point `(d,)`, exactly, within blocks of coordinates.

        Returns:
            (blocks, clients), float64.

        Raises:
            FedboundsError: it is not known.
        """
        raise FedboundsError(f"the variance of stochastic gradients of {type(self).__name__} is not known")


class Synthetic(Problem):
    r"""A problem in closed form, with Gaussian gradient noise $g_n(x) = \nabla F_n(x) + s\,\xi$, $\xi \sim N(0, I_d)$.

    The noise is independent between clients and steps; its total variance is $\sigma^2 = d s^2$.
    """

    noise: float  # $s$, the standard deviation of the noise in each coordinate, in units of a gradient
    x0: Tensor  # the fixed starting point `(d,)`

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.x0.clone()

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray | None:
        return rng.standard_normal(self.dimension) if self.noise else None

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray | None:
        return rng.standard_normal((steps, self.dimension)) if self.noise else None

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        gradient = self.gradient(x, clients)
        return gradient if randomness is None else gradient.add_(randomness, alpha=self.noise)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        return {
            "gradient_norm_squared": self.objective_gradient(x).square().sum(-1),
            "objective_gap": self.objective_gap(x),
        }

    @abstractmethod
    def objective_gap(self, x: Tensor) -> Tensor:
        r"""$f(x) - \min f$: (..., d) -> (...)."""

    @abstractmethod
    def offsets(self) -> np.ndarray:
        r"""$v_n = \nabla F_n - \nabla f$ as an array `(clients, d)`, where it does not depend on $x$."""

    def gradient_variance(self, x: Tensor, blocks: Sequence[slice] = (slice(None),)) -> Tensor:
        sizes = torch.tensor([len(range(self.dimension)[block]) for block in blocks], dtype=torch.float64)
        return self.noise**2 * sizes[:, None].expand(-1, self.clients)

    def _noise_constant(self) -> Constant:
        note = f"sqrt(d) s with d = {self.dimension}, s = {self.noise:g}"
        return Constant(self.dimension**0.5 * self.noise, "exact", note)


def client_gradients(problem: Problem, x: Tensor, clients: np.ndarray | None = None) -> Tensor:
    r"""$\nabla F_n(x)$ over all data of a client: (d,) -> (clients, d); of all clients by default."""
    names = torch.arange(problem.clients) if clients is None else torch.from_numpy(np.asarray(clients))
    names = names.to(problem.device)
    return problem.gradient(x.expand(1, len(names), -1), names[None])[0]


def decay_term(weight_decay: float, x: Tensor) -> Tensor:
    r"""$\frac\rho2\|x\|^2$: (..., d) -> (...); 0 without weight decay, also where the square overflows."""
    return weight_decay / 2 * x.square().sum(-1) if weight_decay else x.new_zeros(x.shape[:-1])
