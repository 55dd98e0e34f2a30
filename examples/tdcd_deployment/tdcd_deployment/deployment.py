"""TDCD by messages: hubs and clients exchange bytes only, and every message is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.tdcd.algorithms import Tiered
from fedbounds.empirical.papers.tdcd.traffic import Link, Sent
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks
from fedbounds.empirical.runtime.streams import Streams
from tdcd_deployment.messages import DERIVATIVES, EMBEDDINGS, Delivery, Encoding, count_messages
from tdcd_deployment.nodes import Client, Holding, Hub, Loss, Silo


class Deployment:
    r"""Hubs, clients and the links between them.

    Args:
        silos: the silos.
        loss: $\ell$ per sample (b,), from the sum of the embeddings (b, E) and the labels (b, ...).
        draw: the sample IDs of a round's batch, from the seed that all hubs share.
        algorithm: `TDCD`, `PrintedTDCD` or `LabelPrivateTDCD`.
        label_silo: the silo with the labels, for `LabelPrivateTDCD`.
        whole_sum: whether clients receive the others' sum of the whole batch instead of their own samples.
        embedding_size: E.
        dtype: of numbers on the wire.

    Raises:
        FedboundsError: no silo. Rounds raise it if embeddings, losses or batches have another shape, or numbers are not
            finite.

    Attributes:
        deliveries: all messages so far.

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
            raise FedboundsError("silos is empty; give at least one silo")
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
        """Split a problem's data over hubs and clients; the models are those of `simulate` for this seed.

        Args:
            problem: the problem.
            algorithm, label_silo, whole_sum: as above.
            seed: of the initial point and the batches.
            dtype: of numbers on the wire; the problem's if None.

        Raises:
            FedboundsError: an invalid seed.
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
        """Record a message and return what arrives."""
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
        """Run one round of Algorithm 1 by messages."""
        r, silos = self.done, range(len(self.hubs))
        for j, hub in enumerate(self.hubs):
            arrived = self.down(j, "model", [hub.begin(r)] * len(self.clients[j]))
            embeddings = [client.begin(r, each) for client, each in zip(self.clients[j], arrived, strict=True)]
            hub.collect(r, self.up(j, "embeddings", embeddings))
        receivers = [self.label_silo] if self.exchanges else [*silos]
        for j in silos:
            for other in receivers:
                if other != j:
                    message = self.across(j, other, "embeddings", self.hubs[j].broadcast(r))
                    self.hubs[other].receive_embeddings((r, 0), j, message)
        for j in receivers:
            sums = self.down(j, "others", [self.hubs[j].send_others(r, k) for k in range(len(self.clients[j]))])
            for client, message in zip(self.clients[j], sums, strict=True):
                client.receive_others(r, message)
        for q in range(self.steps):
            if q < self.exchanges:
                self._exchange_derivatives(r, q)
            for clients in self.clients:
                for client in clients:
                    client.step(q)
        for j, hub in enumerate(self.hubs):
            hub.average(r, self.up(j, "model", [client.send_model(r) for client in self.clients[j]]))
        self.done += 1

    def _exchange_derivatives(self, r: int, q: int) -> None:
        """Remark 2: the labeled silo computes the derivatives of the loss for the others."""
        when, home, later = (r, q), self.label_silo, ", later steps" if q else ""
        hub, labeled = self.hubs[home], self.clients[home]
        others = [j for j in range(len(self.hubs)) if j != home]
        shared = b""
        if others and not q:
            derivatives = self.up(home, "derivatives", [each.derivatives(r) for each in labeled])
            shared = hub.merge(DERIVATIVES, when, derivatives)
        for j in others:
            if q:
                embeddings = [client.send_embeddings(when) for client in self.clients[j]]
                merged = self.hubs[j].merge(EMBEDDINGS, when, self.up(j, "embeddings" + later, embeddings))
                moved = self.across(j, home, "embeddings" + later, merged)
                points = self.down(home, "points" + later, hub.split_points(when, j, moved))
                slopes = [each.derivatives_at(when, at) for each, at in zip(labeled, points, strict=True)]
                shared = hub.merge(DERIVATIVES, when, self.up(home, "derivatives" + later, slopes))
            arrived = self.across(home, j, "derivatives" + later, shared)
            parts = self.down(j, "derivatives" + later, self.hubs[j].split_derivatives(when, arrived))
            for client, message in zip(self.clients[j], parts, strict=True):
                client.receive_derivatives(when, message)

    def sent(self, r: int) -> dict[tuple[Link, str], Sent]:
        """Count the messages, numbers and IDs of a round, by link and kind."""
        found: dict[tuple[Link, str], list[Delivery]] = {}
        for each in self.deliveries:
            if each.round == r:
                found.setdefault((each.link, each.what), []).append(each)
        width = self.hubs[0].encoding.number.itemsize
        return {key: count_messages(*key, [each.message for each in some], width) for key, some in found.items()}


def silos_of(problem: VerticalNetworks, x0: Tensor) -> list[Silo]:
    """The silos of a problem: blocks of x0, columns of the features, rows of the clients."""
    found = []
    for j, block in enumerate(problem.blocks):
        data = problem.silo_data(j)
        holdings = [Holding(ids, data.features[ids], data.labels[ids]) for ids in data.shards]
        found.append(Silo(data.embed, x0[block], tuple(holdings)))
    return found


def _unlabeled(silo: Silo) -> Silo:
    holdings = tuple(Holding(holding.ids, holding.features, None) for holding in silo.holdings)
    return Silo(silo.embedding, silo.start, holdings)
