"""Hubs and clients of TDCD: each holds its own data and what it received in messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.tiers import TierSteps
from tdcd_deployment.messages import DERIVATIVES, EMBEDDINGS, MODEL, OTHERS, POINTS, Encoding

Embedding = Callable[[Tensor, Tensor], Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Holding:
    """The data of one client.

    Args:
        ids: sample IDs (m,), not negative.
        features: the silo's features of these samples (m, ...).
        labels: their labels (m, ...); None in silos without labels.
    """

    ids: np.ndarray
    features: Tensor
    labels: Tensor | None

    def __post_init__(self) -> None:
        rows = [len(part) for part in (self.features, self.labels) if part is not None]
        if len(np.unique(self.ids)) < len(self.ids) or any(count != len(self.ids) for count in rows):
            raise FedboundsError(f"{len(self.ids)} IDs with {rows} rows; expected distinct IDs and one row for each")


@dataclass(frozen=True, eq=False)
class Silo:
    r"""One silo.

    Args:
        embedding: $h_j$, from parameters $(d_j,)$ and features (m, ...) to embeddings (m, E).
        start: $\theta_j^0$ $(d_j,)$.
        holdings: the data of each client.
    """

    embedding: Embedding
    start: Tensor
    holdings: tuple[Holding, ...]


class Client:
    """One client: its samples, its copy of the block, and the last message about other silos."""

    def __init__(self, silo: Silo, k: int, loss: Loss, local: TierSteps, encoding: Encoding, whole: bool) -> None:
        self.embedding, self.holding, self.loss = silo.embedding, silo.holdings[k], loss
        self.local, self.encoding, self.whole = local, encoding, whole
        self.row = {int(p): i for i, p in enumerate(self.holding.ids)}
        self.batch, self.ids, self.rows = np.empty(0, int), np.empty(0, int), np.empty(0, int)
        self.own, self.others, self.kept = silo.start, torch.empty(0), torch.empty(0)

    def begin(self, r: int, message: bytes) -> bytes:
        """Lines 10 to 14: receive the block and the batch, send the embeddings of the own samples in it."""
        self.own, self.batch = self.encoding.open(message, MODEL, (r, 0))
        self.ids = np.array([p for p in self.batch.tolist() if p in self.row], int)
        self.rows = np.array([self.row[p] for p in self.ids.tolist()], int)
        return self.encoding.seal(EMBEDDINGS, (r, 0), self.embeddings(self.own), self.ids)

    def embeddings(self, own: Tensor) -> Tensor:
        """Of the own samples of the batch, (b, E)."""
        if not len(self.rows):
            return own.new_zeros(0, self.encoding.size)
        found = self.embedding(own, self.holding.features[self.rows])
        if found.numel() != len(self.rows) * self.encoding.size:
            raise FedboundsError(
                f"embeddings of {len(self.rows)} samples have shape {tuple(found.shape)}; expected "
                f"{(len(self.rows), self.encoding.size)}, as embedding_size = {self.encoding.size}"
            )
        return found.reshape(len(self.rows), self.encoding.size)

    def receive_others(self, r: int, message: bytes) -> None:
        """Line 22: receive the sum of the other silos' embeddings, of the own samples or of the whole batch."""
        known = self.batch if self.whole else self.ids
        values, _ = self.encoding.open(message, OTHERS, (r, 0), known)
        table = self.encoding.table(values, len(known))
        self.others = table[np.searchsorted(known, self.ids)] if self.whole else table

    def slopes(self, points: Tensor) -> Tensor:
        r"""$\partial\ell$ in the sum of the embeddings at these points, (b, E)."""
        labels = self.holding.labels
        if labels is None:
            raise FedboundsError("this client has no labels")
        with torch.enable_grad():
            at = points.detach().requires_grad_()
            losses = self.loss(at, labels[self.rows])
            if losses.shape != (len(at),):
                raise FedboundsError(
                    f"the loss has shape {tuple(losses.shape)}; expected one number for each of {len(at)} samples"
                )
            return torch.autograd.grad(losses.sum(), at)[0]

    def derivatives(self, r: int) -> bytes:
        """Remark 2: the derivatives at the embeddings that all have sent."""
        slopes = self.slopes(self.others + self.embeddings(self.own))
        return self.encoding.seal(DERIVATIVES, (r, 0), slopes, batch=self.ids)

    def derivatives_at(self, when: tuple[int, int], message: bytes) -> bytes:
        """Remark 2, in a later step: the derivatives at points that another silo has moved to."""
        values, _ = self.encoding.open(message, POINTS, when, self.ids)
        slopes = self.slopes(self.encoding.table(values, len(self.ids)))
        return self.encoding.seal(DERIVATIVES, when, slopes, batch=self.ids)

    def receive_derivatives(self, when: tuple[int, int], message: bytes) -> None:
        """Receive the derivatives of the loss."""
        values, _ = self.encoding.open(message, DERIVATIVES, when, self.ids)
        self.kept = self.encoding.table(values, len(self.ids))

    def send_embeddings(self, when: tuple[int, int]) -> bytes:
        """Send the current embeddings of the own samples."""
        return self.encoding.seal(EMBEDDINGS, when, self.embeddings(self.own), batch=self.ids)

    def step(self, q: int) -> None:
        """Lines 25 to 29: one local step, with a fresh own embedding and the others' sum of the exchange."""
        if not len(self.rows) or (self.local.discards_last and q == self.local.steps - 1):
            return
        with torch.enable_grad():
            own = self.own.detach().requires_grad_()
            found = self.embeddings(own)
            if self.holding.labels is not None and not (self.local.stale and q):
                self.kept = self.slopes(self.others + found)
            (g,) = torch.autograd.grad((found * self.kept).sum() / len(self.rows), own)
        self.own = self.own - self.local.step_size * g

    def send_model(self, r: int) -> bytes:
        """Line 31: send the copy of the block."""
        return self.encoding.seal(MODEL, (r, self.local.steps), self.own)


class Hub:
    """The hub of one silo: its block, the sample count of each client, the embeddings of the round; no data."""

    def __init__(
        self, start: Tensor, samples: Sequence[int], draw: Callable[[int], np.ndarray], local: TierSteps,
        encoding: Encoding, whole: bool,
    ) -> None:  # fmt: skip
        self.block, self.samples, self.draw = start, np.array(samples), draw
        self.local, self.encoding, self.whole = local, encoding, whole
        self.batch = np.empty(0, int)
        self.ids: list[np.ndarray] = []
        self.own, self.others = torch.empty(0), dict[int, Tensor]()

    def begin(self, r: int) -> bytes:
        """Lines 9 and 10: draw the batch, the same in every hub, and send it with the block."""
        self.batch, self.others = np.sort(self.draw(r)), {}
        if len(np.unique(self.batch)) < len(self.batch):
            raise FedboundsError(f"the batch of round {r} has a sample twice: {self.batch.tolist()}")
        return self.encoding.seal(MODEL, (r, 0), self.block, self.batch)

    def collect(self, r: int, messages: Sequence[bytes]) -> None:
        """Line 16: collect the clients' embeddings, keyed by sample ID.

        Raises:
            FedboundsError: no client or several clients sent a sample of the batch, or a client has no sample and
                `empty` is "refuse".
        """
        opened = [self.encoding.open(message, EMBEDDINGS, (r, 0)) for message in messages]
        self.ids = [ids for _, ids in opened]
        if not np.array_equal(np.sort(np.concatenate(self.ids)), self.batch):
            raise FedboundsError("the clients' samples differ from the batch; expected each sample of the batch once")
        if self.local.empty == "refuse" and self.local.average != "batches" and not all(map(len, self.ids)):
            raise FedboundsError(
                'a client holds no sample of the batch: give a larger batch, or empty = "zero" (it stays in the mean, '
                'as in the published code of Das et al. 2022) or empty = "drop"'
            )
        self.own = self.gather([self.encoding.table(values, len(ids)) for values, ids in opened])

    def gather(self, tables: Sequence[Tensor]) -> Tensor:
        """Order the clients' rows as the batch, (B, E)."""
        order = np.argsort(np.concatenate(self.ids))
        return torch.cat(list(tables))[order]

    def positions(self, k: int) -> np.ndarray:
        r"""$\pi_{k,j}$: the positions of a client's samples in the batch."""
        return np.searchsorted(self.batch, self.ids[k])

    def broadcast(self, r: int) -> bytes:
        """Line 17: send the own embeddings to another hub."""
        return self.encoding.seal(EMBEDDINGS, (r, 0), self.own, batch=self.batch)

    def receive_embeddings(self, when: tuple[int, int], silo: int, message: bytes) -> Tensor:
        """Line 18: receive another hub's embeddings of the same batch."""
        values, _ = self.encoding.open(message, EMBEDDINGS, when, self.batch)
        self.others[silo] = self.encoding.table(values, len(self.batch))
        return self.others[silo]

    def send_others(self, r: int, k: int) -> bytes:
        """Lines 19 and 22: send a client the sum of the other silos' embeddings."""
        total = sum(self.others.values(), torch.zeros_like(self.own))
        known = self.batch if self.whole else self.ids[k]
        return self.encoding.seal(OTHERS, (r, 0), total if self.whole else total[self.positions(k)], batch=known)

    def merge(self, code: int, when: tuple[int, int], messages: Sequence[bytes]) -> bytes:
        """Remark 2: merge the clients' derivatives, or their current embeddings, into one message to another hub."""
        opened = [
            self.encoding.table(self.encoding.open(message, code, when, ids)[0], len(ids))
            for message, ids in zip(messages, self.ids, strict=True)
        ]
        return self.encoding.seal(code, when, self.gather(opened), batch=self.batch)

    def split_derivatives(self, when: tuple[int, int], message: bytes) -> list[bytes]:
        """Split the derivatives from the labeled silo by client."""
        values, _ = self.encoding.open(message, DERIVATIVES, when, self.batch)
        table = self.encoding.table(values, len(self.batch))
        return [
            self.encoding.seal(DERIVATIVES, when, table[self.positions(k)], batch=ids) for k, ids in enumerate(self.ids)
        ]

    def split_points(self, when: tuple[int, int], silo: int, message: bytes) -> list[bytes]:
        """The sums with one silo's current embeddings and all others' of the round's start, split by client."""
        first = self.others[silo]
        now = self.receive_embeddings(when, silo, message)
        self.others[silo] = first
        total = self.own + sum(self.others.values(), torch.zeros_like(self.own)) - first + now
        return [self.encoding.seal(POINTS, when, total[self.positions(k)], batch=ids) for k, ids in enumerate(self.ids)]

    def average(self, r: int, messages: Sequence[bytes]) -> None:
        """Line 32: average the copies."""
        copies = torch.stack([self.encoding.open(each, MODEL, (r, self.local.steps))[0] for each in messages])
        held = np.array([len(ids) for ids in self.ids])
        shares = {"clients": np.ones(len(held)), "shards": self.samples, "batches": held}[self.local.average]
        if self.local.empty == "drop":
            shares = shares * (held > 0)
        weights = torch.from_numpy(shares / shares.sum()).to(self.block.dtype)
        self.block = (weights[:, None] * copies.to(self.block.dtype)).sum(0)
