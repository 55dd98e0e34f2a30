r"""One round of TDCD on quadratics, and all that the proof says of it, exactly: every path is followed.

Client k has $F_k(x)=\frac12(x-c_k)^\top A_k(x-c_k)$, f is the mean of them, and in silo j it sees the block j of its
gradient with noise $\pm v_{kj}$, drawn once for the round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shaken
from fedbounds.empirical.falsification.instances.ranges import always, counts, positive, reals, symmetric


@dataclass(frozen=True, eq=False)
class BlockRounds(Population):
    """B instances of a round."""

    measured: ClassVar[LeftSide] = "every outcome"
    hessians: Annotated[np.ndarray, reals("K d d")]  # $A_k$, (B, K, d, d), symmetric
    centers: Annotated[np.ndarray, reals("K d")]  # $c_k$, (B, K, d)
    noise: Annotated[np.ndarray, reals("K d")]  # $v_{kj}$, (B, K, d): the block j of a client's, for all j
    start: Annotated[np.ndarray, reals("d")]  # the synchronized model, (B, d)
    step: Annotated[np.ndarray, positive()]  # (B,)
    local_steps: Annotated[int, counts()]  # Q
    silos: Annotated[int, counts()]  # N, each with d/N parameters

    def rules(self) -> dict[str, np.ndarray]:
        return {
            "the Hessians are symmetric": symmetric(self.hessians),
            "some Hessian is not zero": (self.hessians != 0).any(axis=(1, 2, 3)),
            "silos have equally many coordinates": always(self.start.shape[1] % self.silos == 0, self.start),
        }

    @property
    def cost(self) -> int:
        """The local steps, and a sixtieth for each path."""
        return self.local_steps + 2 ** (self.clients * self.silos) // 60

    def mutated(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, starts and step sizes; clients that are alike stay so."""
        hessians, centers, noise = (shaken(v, rng) for v in (self.hessians, self.centers, self.noise))
        hessians, noise = hessians + np.swapaxes(hessians, 2, 3), np.where(self.noise == 0, 0.0, noise)
        alike = self.alike
        return replace(
            self,
            hessians=np.where(alike[:, None, None, None], hessians[:, :1], hessians) / 2,
            centers=np.where(alike[:, None, None], centers[:, :1], centers),
            noise=noise,
            start=shaken(self.start, rng),
            step=perturb(self.step, rng),
        )

    @property
    def alike(self) -> np.ndarray:
        """Whether all clients have the same function, (B,)."""
        one = (self.hessians == self.hessians[:, :1]).all(axis=(1, 2, 3))
        return one & (np.ptp(self.centers, axis=1) == 0).all(axis=1)

    @property
    def clients(self) -> int:
        """In every silo."""
        return self.hessians.shape[1]

    def blocks(self, vectors: np.ndarray) -> np.ndarray:
        """(..., d) as (..., N, d/N)."""
        return vectors.reshape(*vectors.shape[:-1], self.silos, -1)

    @cached_property
    def signs(self) -> np.ndarray:
        """Of the noise of every client in every silo on each path, (paths, K, N)."""
        size = self.clients * self.silos
        return np.array(list(product((-1.0, 1.0), repeat=size))).reshape(-1, self.clients, self.silos)

    @cached_property
    def noise_on_paths(self) -> np.ndarray:
        """The noise on every path, (B, paths, K, N, d/N)."""
        return self.signs[None, ..., None] * self.blocks(self.noise)[:, None]

    def gradients(self, views: np.ndarray) -> np.ndarray:
        """g_kj at the views (B, paths, K, N, d) of the clients, each its own block, (B, paths, K, N, d/N)."""
        away = views - self.centers[:, None, :, None]
        whole = self.blocks(np.einsum("bkij,bpknj->bpkni", self.hessians, away))
        return np.einsum("bpknni->bpkni", whole) + self.noise_on_paths

    @cached_property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """The clients' views of the model and their gradients before each local step, and after the last one."""
        own = np.eye(self.silos)[..., None]  # (N, N, 1): which block of a view is the client's own
        paths = len(self.signs)
        shape = (len(self.start), paths, self.clients, self.silos, self.start.shape[1])
        view, views, found = np.broadcast_to(self.start[:, None, None, None], shape), [], []
        for _ in range(self.local_steps + 1):
            gradient = self.gradients(view)
            views.append(view)
            found.append(gradient)
            moved = own * gradient[..., None, :]
            view = view - self.step[:, None, None, None, None] * moved.reshape(shape)
        return np.stack(views), np.stack(found)

    @cached_property
    def gradient(self) -> np.ndarray:
        """The blocks of grad f at the synchronized model, (B, 1, 1, N, d/N)."""
        away = self.start[:, None] - self.centers
        return self.blocks(np.einsum("bkij,bkj->bki", self.hessians, away).mean(axis=1))[:, None, None]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a model on every path, (B, paths, d)."""
        return len(self.start), len(self.signs), self.start.shape[1]

    def slope(self, models: np.ndarray) -> np.ndarray:
        """Grad f at (B, paths, d), of the same shape."""
        away = models[:, :, None] - self.centers[:, None]
        return np.einsum("bkij,bpkj->bpki", self.hessians, away).mean(axis=2)

    def objective(self, models: np.ndarray) -> np.ndarray:
        """f at (B, paths, d)."""
        away = models[:, :, None] - self.centers[:, None]
        return np.einsum("bpki,bkij,bpkj->bpk", away, self.hessians, away).mean(axis=2) / 2

    @cached_property
    def decrease(self) -> np.ndarray:
        """E f(x) - E f(x^+), (B, 1)."""
        moved = self.steps[1][:-1].sum(axis=0).mean(axis=2)  # (B, paths, N, d/N): the clients' mean
        after = self.start[:, None] - self.step[:, None, None] * moved.reshape(*moved.shape[:2], -1)
        return (self.objective(self.start[:, None]) - self.objective(after)).mean(axis=1, keepdims=True)

    def summed(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The product of two vectors (B, paths, K, N, ...): expectation, clients' mean, sum over the silos; (B, 1)."""
        return (first * second).sum(axis=-1).sum(axis=-1).mean(axis=(1, 2))[:, None]

    @cached_property
    def errors(self) -> np.ndarray:
        """g^0 less the block of grad f, (B, paths, K, N, d/N)."""
        return self.steps[1][0] - self.gradient
