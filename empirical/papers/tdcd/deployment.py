"""TDCD as it is deployed: whatever a hub or a client learns of another comes over a link, as bytes that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.tdcd.algorithms import Tiered
from fedbounds.empirical.papers.tdcd.messages import DERIVATIVES, EMBEDDINGS, Delivery, Encoding, counted
from fedbounds.empirical.papers.tdcd.nodes import Client, Holding, Hub, Loss, Silo
from fedbounds.empirical.papers.tdcd.traffic import Link, Sent
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks
from fedbounds.empirical.runtime.streams import Streams


class Deployment:
    r"""Hubs and clients, and the links between them.

    Args:
        silos: what each of them brings.
        loss: $\ell$ of the sum of the embeddings (b, E) and the labels (b, ...), of each sample, (b,).
        draw: of a round the sample IDs of its batch: what hubs make of the seed that they share.
        algorithm: `TDCD`, as printed, or with the labels in one silo.
        label_silo: that one, if there is one.
        whole_sum: whether clients get the others' sum for the whole batch and find their own rows in it.
        embedding_size: E.
        dtype: of numbers on the wire.

    Raises:
        FedboundsError: there is no silo. Rounds raise it where embeddings, losses or batches are not as said here, or
            numbers are not finite.

    Attributes:
        deliveries: everything that was sent.

    Example:
        >>> from fedbounds.empirical.papers.tdcd.algorithms import TDCD
        >>> y = torch.tensor([1.0, 2.0], dtype=torch.float64)
        >>> def linear(theta, features):
        ...     return features @ theta[:, None]
        >>> silo = Silo(linear, 0 * y[:1], (Holding(np.arange(2), torch.ones_like(y)[:, None], y),))
        >>> def squares(total, labels):
        ...     return (total[:, 0] - labels) ** 2 / 2
        >>> deployed = Deployment([silo, silo], squares, lambda r: np.arange(2), TDCD(0.5, 1))
        >>> deployed.round()
        >>> deployed.model.tolist(), len(deployed.deliveries)
        ([0.75, 0.75], 10)

    Source: Das et al. 2022, Algorithm 1 and Remark 2.
    """

    def __init__(
        self,
        silos: Sequence[Silo],
        loss: Loss,
        draw: Callable[[int], np.ndarray],
        algorithm: Tiered,
        *,
        label_silo: int = 0,
        whole_sum: bool = False,
        embedding_size: int = 1,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        if not silos:
            raise FedboundsError("a deployment needs at least one silo")
        local, encoding = algorithm.local, Encoding(dtype, embedding_size, silos[0].start.dtype)
        self.exchanges, self.label_silo, self.done = algorithm.derivative_exchanges, label_silo, 0
        self.steps = local.steps
        self.deliveries: list[Delivery] = []
        self.hubs = [
            Hub(silo.start, [len(h.ids) for h in silo.holdings], draw, local, encoding, whole_sum) for silo in silos
        ]
        known = [silo if not self.exchanges or j == label_silo else _unlabeled(silo) for j, silo in enumerate(silos)]
        self.clients = [
            [Client(silo, k, loss, local, encoding, whole_sum) for k in range(len(silo.holdings))] for silo in known
        ]

    @classmethod
    def of(
        cls, problem: VerticalNetworks, algorithm: Tiered, seed: int = 0, *, label_silo: int = 0,
        whole_sum: bool = False, dtype: torch.dtype | None = None,
    ) -> Deployment:  # fmt: skip
        """The run of one seed, as `simulate` has it, by messages.

        Args:
            problem: whose data are dealt out to hubs and clients.
            algorithm, label_silo, whole_sum: see above.
            seed: of the initial point and the batches.
            dtype: of numbers on the wire; the problem's, if not given.

        Raises:
            FedboundsError: a seed that is none.
        """
        streams = Streams(seed)
        silos = silos_of(problem, problem.initial_point(streams.generator("initialization")))

        def draw(r: int) -> np.ndarray:
            drawn = problem.draw_round(streams.generator("noise", r))
            return np.arange(problem.samples) if drawn is None else drawn

        return cls(
            silos, problem.loss.values, draw, algorithm, label_silo=label_silo, whole_sum=whole_sum,
            embedding_size=problem.embedding_size, dtype=dtype or problem.dtype,
        )  # fmt: skip

    @property
    def model(self) -> Tensor:
        """All hubs' blocks, (d,)."""
        return torch.cat([hub.block for hub in self.hubs])

    def send(self, source: tuple[int, int | None], target: tuple[int, int | None], what: str, message: bytes) -> bytes:
        """Over a link; returns what arrives."""
        self.deliveries.append(Delivery(self.done, source, target, what, message))
        return message

    def down(self, j: int, what: str, messages: Sequence[bytes]) -> list[bytes]:
        """From a hub to each of its clients."""
        return [self.send((j, None), (j, k), what, message) for k, message in enumerate(messages)]

    def up(self, j: int, what: str, messages: Sequence[bytes]) -> list[bytes]:
        """From all clients of a silo to their hub."""
        return [self.send((j, k), (j, None), what, message) for k, message in enumerate(messages)]

    def across(self, j: int, other: int, what: str, message: bytes) -> bytes:
        """From one hub to another."""
        return self.send((j, None), (other, None), what, message)

    def round(self) -> None:
        """One round; what goes from one to another goes over a link."""
        r, silos = self.done, range(len(self.hubs))
        for j, hub in enumerate(self.hubs):
            opened = self.down(j, "model", [hub.open(r)] * len(self.clients[j]))
            sent = [client.begin(r, each) for client, each in zip(self.clients[j], opened, strict=True)]
            hub.collect(r, self.up(j, "embeddings", sent))
        informed = [self.label_silo] if self.exchanges else [*silos]
        for j in silos:
            for other in informed:
                if other != j:
                    self.hubs[other].hear((r, 0), j, self.across(j, other, "embeddings", self.hubs[j].broadcast(r)))
        for j in informed:
            told = self.down(j, "others", [self.hubs[j].others_sum(r, k) for k in range(len(self.clients[j]))])
            for client, message in zip(self.clients[j], told, strict=True):
                client.hear(r, message)
        for q in range(self.steps):
            if q < self.exchanges:
                self._derivatives(r, q)
            for clients in self.clients:
                for client in clients:
                    client.step(q)
        for j, hub in enumerate(self.hubs):
            hub.average(r, self.up(j, "model", [client.model(r) for client in self.clients[j]]))
        self.done += 1

    def _derivatives(self, r: int, q: int) -> None:
        """Remark 2: what the clients of the silo with the labels find out for those of the others."""
        when, home, later = (r, q), self.label_silo, ", later steps" if q else ""
        hub, labeled = self.hubs[home], self.clients[home]
        others = [j for j in range(len(self.hubs)) if j != home]
        shared = b""
        if others and not q:
            shared = hub.together(
                DERIVATIVES, when, self.up(home, "derivatives", [each.derivatives(r) for each in labeled])
            )
        for j in others:
            if q:
                asked = self.up(j, "embeddings" + later, [client.ask(when) for client in self.clients[j]])
                moved = self.across(j, home, "embeddings" + later, self.hubs[j].together(EMBEDDINGS, when, asked))
                points = self.down(home, "points" + later, hub.points(when, j, moved))
                slopes = [each.derivatives_at(when, at) for each, at in zip(labeled, points, strict=True)]
                shared = hub.together(DERIVATIVES, when, self.up(home, "derivatives" + later, slopes))
            heard = self.across(home, j, "derivatives" + later, shared)
            told = self.down(j, "derivatives" + later, self.hubs[j].passed_on(when, heard))
            for client, message in zip(self.clients[j], told, strict=True):
                client.told(when, message)

    def sent(self, r: int) -> dict[tuple[Link, str], Sent]:
        """What was sent in a round, kind by kind, counted on the wire."""
        found: dict[tuple[Link, str], list[Delivery]] = {}
        for each in self.deliveries:
            if each.round == r:
                found.setdefault((each.link, each.what), []).append(each)
        width = self.hubs[0].encoding.number.itemsize
        return {key: counted(*key, [each.message for each in some], width) for key, some in found.items()}


def silos_of(problem: VerticalNetworks, x0: Tensor) -> list[Silo]:
    """What each silo of a problem brings: its block of x0 and its columns, its clients their rows."""
    found = []
    for j, block in enumerate(problem.blocks):
        data = problem.silo_data(j)
        holdings = [Holding(ids, data.features[ids], data.labels[ids]) for ids in data.shards]
        found.append(Silo(data.embed, x0[block], tuple(holdings)))
    return found


def _unlabeled(silo: Silo) -> Silo:
    holdings = tuple(Holding(holding.ids, holding.features, None) for holding in silo.holdings)
    return Silo(silo.embedding, silo.start, holdings)
