"""A linear model in silos, small enough to be read: the problem for the engine, and the same for hubs and clients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fedbounds.empirical.papers.tdcd.algorithms import Tiered
from fedbounds.empirical.papers.tdcd.deployment import Deployment
from fedbounds.empirical.papers.tdcd.nodes import Holding, Silo
from fedbounds.empirical.problems.vertical import Vertical, blocks_of
from fedbounds.empirical.streams import Streams


def least_squares(total: Tensor, labels: Tensor) -> Tensor:
    return ((total - labels[:, None]) ** 2).sum(1) / 2


def logistic(total: Tensor, labels: Tensor) -> Tensor:
    return torch.nn.functional.softplus(total).sum(1) - labels * total.sum(1)


def tanh(theta: Tensor, features: Tensor) -> Tensor:
    """Two numbers of a sample; not linear in the parameters."""
    return torch.tanh(features @ theta.reshape(features.shape[-1], 2))


class LinearSilos(Vertical):
    r"""$h_j(\theta_j;x)=\tanh(x^\top\theta_j)$, with two numbers for each sample; rows are split as each silo likes."""

    embeds = True
    embedding = staticmethod(tanh)
    embedding_size = 2

    def __init__(
        self, features: Sequence[int], shards: Sequence[Sequence[int]], batch: int, loss=least_squares
    ) -> None:
        rng, self.samples = np.random.default_rng(5), sum(shards[0])
        self.blocks = blocks_of([2 * size for size in features])
        self.silo_clients, self.batch, self.loss = tuple(map(len, shards)), batch, loss
        self.dimension, self.clients = 2 * sum(features), sum(self.silo_clients)
        self.dtype, self.device = torch.float64, torch.device("cpu")
        self.features = [torch.from_numpy(rng.standard_normal((self.samples, size))) for size in features]
        self.labels = torch.from_numpy(rng.integers(0, 2, self.samples).astype(float))
        orders = [rng.permutation(self.samples) for _ in features]
        self.parts = [np.split(o, np.cumsum(sizes)[:-1]) for o, sizes in zip(orders, shards, strict=True)]
        self.x0 = torch.from_numpy(rng.standard_normal(self.dimension))

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.x0.clone()

    def draw_round(self, rng: np.random.Generator) -> np.ndarray:
        return rng.choice(self.samples, self.batch, replace=False)

    def exchange(self, x: Tensor, randomness: Tensor | None) -> tuple[Tensor, Tensor]:
        assert randomness is not None and len(x) == 1
        ids = randomness[0].long()
        return ids, torch.stack(
            [self.embedding(x[0, b], f[ids]) for b, f in zip(self.blocks, self.features, strict=True)]
        )

    def _mine(self, silo: int, k: int, ids: Tensor) -> Tensor:
        return torch.from_numpy(np.flatnonzero(np.isin(ids.numpy(), self.parts[silo][k])))

    def _gradients(self, silo: int, own: Tensor, known: tuple[Tensor, Tensor], stale: bool) -> Tensor:
        (ids, told), out = known, torch.zeros_like(own)
        for k in range(own.shape[1]):
            rows = self._mine(silo, k, ids)
            if len(rows):
                theta = own[0, k].detach().requires_grad_()
                found = self.embedding(theta, self.features[silo][ids[rows]])
                others = told[:, rows].sum(0) - told[silo, rows]
                at = (told[:, rows].sum(0) if stale else others + found.detach()).requires_grad_()
                slopes = torch.autograd.grad(self.loss(at, self.labels[ids[rows]]).sum(), at)[0]
                out[0, k] = torch.autograd.grad((slopes * found).sum() / len(rows), theta)[0]
        return out

    def partial_gradients(self, silo: int, own: Tensor, known: tuple[Tensor, Tensor]) -> Tensor:
        return self._gradients(silo, own, known, False)

    def stale_gradients(self, silo: int, own: Tensor, known: tuple[Tensor, Tensor]) -> Tensor:
        return self._gradients(silo, own, known, True)

    def held(self, silo: int, known: tuple[Tensor, Tensor]) -> Tensor:
        return torch.tensor([[len(self._mine(silo, k, known[0])) for k in range(self.silo_clients[silo])]])

    def shares(self, silo: int) -> Tensor:
        return torch.tensor([len(part) / self.samples for part in self.parts[silo]], dtype=self.dtype)

    def objective(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.dimension)
        totals = [
            sum(self.embedding(row[b], f) for b, f in zip(self.blocks, self.features, strict=True)) for row in flat
        ]
        return torch.stack([self.loss(each, self.labels).mean() for each in totals]).view(x.shape[:-1])

    def objective_gradient(self, x: Tensor) -> Tensor:
        at = x.detach().requires_grad_()
        return torch.autograd.grad(self.objective(at).sum(), at)[0]

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        raise NotImplementedError

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        return {"objective": self.objective(x)}

    def constants(self) -> dict:
        return {}

    def silos_of(self) -> list[Silo]:
        """What each silo brings to a deployment: its own columns and block, its clients their own rows."""
        return [
            Silo(
                self.embedding,
                self.x0[block].clone(),
                tuple(Holding(part, columns[part].clone(), self.labels[part].clone()) for part in parts),
            )
            for block, columns, parts in zip(self.blocks, self.features, self.parts, strict=True)
        ]

    def deployed(self, algorithm: Tiered, seed: int = 1, silos: Sequence[Silo] | None = None, **how) -> Deployment:
        return Deployment(
            self.silos_of() if silos is None else silos,
            self.loss,
            lambda r: self.draw_round(Streams(seed).generator("noise", r)),
            algorithm,
            embedding_size=2,
            **how,
        )
