"""What an algorithm may ask of a problem whose parameters and features are split over silos, and whose samples over
the clients of each silo."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, start_point
from fedbounds.empirical.problems.problem import Problem, SiloSizes


class Vertical(Problem):
    r"""A problem of N silos: block j of the parameters belongs to silo j, and each of its $K_j$ clients has a copy.

    $$\min_\theta f(\theta),\qquad \theta = (\theta_1,\dots,\theta_N),\qquad
    g_{k,j}(\theta)\approx\nabla_{(j)}f(\theta)\quad\text{for the clients k of silo j}$$

    A client computes stochastic partial gradients in its own block from its own copy of it and from `exchange`, which
    gives the information on the other blocks once a round. The randomness of a round is the same for all clients.
    Clients are numbered through all silos; in `gradient` and `stochastic_gradient` entries outside the client's block
    are zero.

    Source: Das et al. 2022, Section 3, eqs. (1) to (4) and (16).
    """

    blocks: tuple[slice, ...]  # the slice of each silo's parameters
    silo_clients: tuple[int, ...]  # $K_j$
    embeds: bool = False  # whether silos are coupled through the sum of their embeddings of a sample
    embedding_size: int = 0  # numbers of a sample's embedding; 0 without embeddings
    batch: int = 0  # samples of a round's batch; all if gradients are free of noise, 0 without samples
    shared_noise: bool = False  # whether the clients of a silo have the same noise

    @property
    def silos(self) -> int:
        """N."""
        return len(self.blocks)

    @property
    def silo_sizes(self) -> SiloSizes | None:
        parameters = tuple(block.stop - block.start for block in self.blocks)
        sizes = SiloSizes(parameters, self.silo_clients, self.batch, self.embedding_size)
        return sizes if self.embedding_size else None

    @property
    def silo_of(self) -> np.ndarray:
        """Of every client the number of its silo, (clients,)."""
        return np.arange(self.silos).repeat(self.silo_clients)

    @abstractmethod
    def draw_round(self, rng: np.random.Generator) -> np.ndarray | None:
        """The randomness of a round, the same for all clients; None if the gradients are free of noise."""

    @abstractmethod
    def exchange(self, x: Tensor, randomness: Tensor | None) -> Any:
        """What clients know beside their own block in a round that begins at the models x (seeds, d)."""

    @abstractmethod
    def partial_gradients(self, silo: int, own: Tensor, known: Any) -> Tensor:
        r"""$g_{k,j}$ of all clients of a silo at their copies of its block."""

    def stale_gradients(self, silo: int, own: Tensor, known: Any) -> Tensor:
        """The same with the derivatives of the loss in the embeddings kept from where the round began."""
        raise FedboundsError(f"{type(self).__name__} has no embeddings, whose derivatives could be sent")

    def descend(self, silo: int, own: Tensor, known: Any, size: float, stale: bool = False) -> None:
        """Moves all clients' copies of a silo's block, (seeds, K_j, d_j), a step of this size, in place."""
        gradients = self.stale_gradients if stale else self.partial_gradients
        own.sub_(gradients(silo, own, known), alpha=size)

    def batch_counts(self, silo: int, known: Any) -> Tensor | None:
        """How many samples of the round's batch every client of a silo holds, (seeds, K_j); None without samples."""
        return None

    def outcomes(self) -> np.ndarray | None:
        """All equally likely draws of `draw_round`, (outcomes, ...); None if they are too many, or nothing is drawn."""
        return None

    def silo_variances(self, x: Tensor) -> Tensor:
        r"""$\sigma_j^2(\theta)=\frac1{K_j}\sum_k\mathbb E\|g_{k,j}(\theta)-\nabla_{(j)}f(\theta)\|^2$, exactly.

        What clients differ by counts as variance: (..., d) -> (..., silos).
        """
        found = x.new_zeros(*x.shape[:-1], self.silos, dtype=torch.float64)
        everyone, silos = torch.arange(self.clients, device=self.device)[None], torch.from_numpy(self.silo_of)
        own_blocks = [self.blocks[silo] for silo in self.silo_of]
        for place in np.ndindex(x.shape[:-1]):
            own = self.gradient(x[place].expand(1, self.clients, -1), everyone)[0]
            apart = (own - self.objective_gradient(x[place])).double()
            inside = torch.stack([row[block].square().sum() for row, block in zip(apart, own_blocks, strict=True)])
            each = self.gradient_variance(x[place])[0].to(inside) + inside
            found[place] = found[place].index_add(0, silos.to(each.device), each)
        return found / torch.tensor(self.silo_clients).to(found)

    def shares(self, silo: int) -> Tensor:
        """Which share of the samples each client of a silo holds, (K_j,): 1/K_j each, by default."""
        count = self.silo_clients[silo]
        return torch.full((count,), 1 / count, dtype=self.dtype, device=self.device)

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray | None:
        return self.draw_round(rng)

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        flat, names = x.reshape(-1, self.dimension), clients.reshape(-1)
        drawn = None if randomness is None else randomness.reshape(-1, *randomness.shape[clients.ndim :])
        known, out = self.exchange(flat, drawn), torch.zeros_like(flat)
        first = np.cumsum((0, *self.silo_clients))
        for silo, block in enumerate(self.blocks):
            own = flat[:, None, block].expand(-1, self.silo_clients[silo], -1)
            found = self.partial_gradients(silo, own, known)
            inside = (names >= int(first[silo])) & (names < int(first[silo + 1]))
            rows = inside.nonzero()[:, 0]
            out[rows, block] = found[rows, names[rows] - int(first[silo])]
        return out.view(x.shape)


class SyntheticVertical(Vertical):
    """A problem of silos in closed form, from a fixed starting point."""

    x0: Tensor  # the starting point `(d,)`

    def _set_silos(self, blocks: object, silo_clients: object, each: str, whole: str, x0: Any, device: Any) -> None:
        """Check and keep the silos, once `dimension` is set; `each` and `whole` name what the blocks divide."""
        sizes = check_counts("blocks", blocks)
        if sum(sizes) != self.dimension:
            raise FedboundsError(f"blocks have {sum(sizes)} {each} in all, {whole} {self.dimension}")
        self.blocks, self.silo_clients = blocks_from_sizes(sizes), check_counts("silo_clients", silo_clients)
        if len(self.blocks) != len(self.silo_clients):
            raise FedboundsError(f"silo_clients are of {len(self.silo_clients)} silos, blocks of {len(self.blocks)}")
        self.clients = sum(self.silo_clients)
        self.dtype, self.device = torch.float64, torch.device(device)
        self.x0 = start_point(x0, self.dimension, self.device)

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return self.x0.clone()

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self.stochastic_gradient(x, clients, None)

    def _sizes(self) -> dict[str, Constant | NoConstant]:
        """The constants that are numbers of clients."""
        return {
            "clients": Constant(float(self.clients), "exact"),
            "clients_of_each_silo": Constant(np.array(self.silo_clients, float), "exact"),
        }

    def _noises(
        self, variances: np.ndarray, root: str, each: str, shared: str = ""
    ) -> dict[str, Constant | NoConstant]:
        """The constants of the noise, from the variances (silos,); `shared` says why averaging does not reduce it."""
        averaged = float((variances / np.array(self.silo_clients)).sum())
        return {
            "noise_of_each_block": Constant(np.sqrt(variances), "exact", f"root of {root}"),
            "block_gradient_noise": Constant(float(variances.sum()), "exact", f"sum {each}"),
            "averaged_block_gradient_noise": NoConstant(shared)
            if shared and max(self.silo_clients) > 1
            else Constant(averaged, "exact", "sum over silos of that variance over the number of clients"),
        }


NOISES = ("noise_of_each_block", "block_gradient_noise", "averaged_block_gradient_noise")
EACH_VARIANCE = "E|g_kj - grad_j f|^2, mean over the clients of a silo, the same at every x"
SHARED = "the clients share their noise, which averaging does not reduce"


def blocks_from_sizes(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Where blocks of these sizes lie, one after another."""
    return tuple(slice(start, stop) for start, stop in pairwise(accumulate(sizes, initial=0)))


MOST_OUTCOMES = 2**16


def every_outcome(values: Sequence[float], times: int) -> np.ndarray | None:
    """All that so many draws from equally likely values can be, (outcomes, times); None if they are too many."""
    if times * np.log(len(values)) > np.log(MOST_OUTCOMES):
        return None
    return np.array(list(product(values, repeat=times)))


def cut_into_runs(pieces: int, silo_clients: Sequence[int]) -> np.ndarray:
    """Which client has which piece when each silo cuts them into runs as equal as can be, (silos, pieces)."""
    if pieces < max(silo_clients):
        raise FedboundsError(f"{pieces} pieces are too few for a silo of {max(silo_clients)} clients")
    return np.stack([np.arange(pieces) * count // pieces for count in silo_clients])


def check_holders(holders: Any, pieces: int, silo_clients: Sequence[int]) -> np.ndarray:
    """Which client has which piece, (silos, pieces), with at least one for every client."""
    found = array("holders", holders, (len(silo_clients), pieces)).numpy()
    for silo, (row, count) in enumerate(zip(found, silo_clients, strict=True)):
        if set(row.tolist()) != set(range(count)):
            raise FedboundsError(f"holders of silo {silo} must be its clients, 0 to {count - 1}, each at least once")
    return found.astype(int)


def check_counts(name: str, values: object) -> tuple[int, ...]:
    """Numbers of at least one thing for each silo."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise FedboundsError(f"{name} = {quote(values)} must be a list of integers >= 1, one for each silo")
    return tuple(check_count(f"{name}[{j}]", value) for j, value in enumerate(values))
