"""The hubs and clients of TDCD: each holds nothing but what is its own, and what came to it in messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.papers.tdcd.messages import DERIVATIVES, EMBEDDINGS, MODEL, OTHERS, POINTS, Encoding

Embedding = Callable[[Tensor, Tensor], Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Holding:
    """What one client holds.

    Args:
        ids: of its samples, (m,), not negative.
        features: its silo's features of them, (m, ...).
        labels: theirs, (m, ...); None in silos that do not know them.
    """

    ids: np.ndarray
    features: Tensor
    labels: Tensor | None

    def __post_init__(self) -> None:
        rows = [len(part) for part in (self.features, self.labels) if part is not None]
        if len(np.unique(self.ids)) < len(self.ids) or any(count != len(self.ids) for count in rows):
            raise FedboundsError(f"a client holds {len(self.ids)} IDs, each once, and as many rows; these have {rows}")


@dataclass(frozen=True, eq=False)
class Silo:
    r"""What one silo brings.

    Args:
        embedding: $h_j$, of the silo's parameters $(d_j,)$ and features (m, ...), (m, E).
        start: $\theta_j^0$.
        holdings: of its clients.
    """

    embedding: Embedding
    start: Tensor
    holdings: tuple[Holding, ...]


class Client:
    """One client: its samples, its copy of the block, and what it was last told of the others."""

    def __init__(self, silo: Silo, k: int, loss: Loss, local: TierSteps, encoding: Encoding, whole: bool) -> None:
        self.embedding, self.holding, self.loss = silo.embedding, silo.holdings[k], loss
        self.local, self.encoding, self.whole = local, encoding, whole
        self.row = {int(p): i for i, p in enumerate(self.holding.ids)}
        self.batch, self.ids, self.rows = np.empty(0, int), np.empty(0, int), np.empty(0, int)
        self.own, self.others, self.kept = silo.start, torch.empty(0), torch.empty(0)

    def begin(self, r: int, message: bytes) -> bytes:
        """Lines 10 to 14: the block and the batch come; the embeddings of the own samples among it go."""
        self.own, self.batch = self.encoding.opened(message, MODEL, (r, 0))
        self.ids = np.array([p for p in self.batch.tolist() if p in self.row], int)
        self.rows = np.array([self.row[p] for p in self.ids.tolist()], int)
        return self.encoding.sealed(EMBEDDINGS, (r, 0), self.embeddings(self.own), self.ids)

    def embeddings(self, own: Tensor) -> Tensor:
        """Of the own samples of the batch, (b, E)."""
        if not len(self.rows):
            return own.new_zeros(0, self.encoding.size)
        found = self.embedding(own, self.holding.features[self.rows])
        if found.numel() != len(self.rows) * self.encoding.size:
            raise FedboundsError(
                f"embeddings of {len(self.rows)} samples have shape {tuple(found.shape)}, embedding_size = "
                f"{self.encoding.size}"
            )
        return found.reshape(len(self.rows), self.encoding.size)

    def hear(self, r: int, message: bytes) -> None:
        """Line 22: the sum of the others' embeddings, of the own samples, or to be looked up by ID."""
        known = self.batch if self.whole else self.ids
        values, _ = self.encoding.opened(message, OTHERS, (r, 0), known)
        table = self.encoding.table(values, len(known))
        self.others = table[np.searchsorted(known, self.ids)] if self.whole else table

    def slopes(self, points: Tensor) -> Tensor:
        r"""$\partial\ell$ in the sum of the embeddings at these points, (b, E)."""
        labels = self.holding.labels
        if labels is None:
            raise FedboundsError("this client does not know the labels")
        with torch.enable_grad():
            at = points.detach().requires_grad_()
            losses = self.loss(at, labels[self.rows])
            if losses.shape != (len(at),):
                raise FedboundsError(f"the loss has shape {tuple(losses.shape)}; one number for each sample is wanted")
            return torch.autograd.grad(losses.sum(), at)[0]

    def derivatives(self, r: int) -> bytes:
        """Remark 2: the derivatives at the embeddings that all have sent."""
        slopes = self.slopes(self.others + self.embeddings(self.own))
        return self.encoding.sealed(DERIVATIVES, (r, 0), slopes, batch=self.ids)

    def derivatives_at(self, when: tuple[int, int], message: bytes) -> bytes:
        """Remark 2, in a later step: the derivatives at points that another silo has moved to."""
        values, _ = self.encoding.opened(message, POINTS, when, self.ids)
        slopes = self.slopes(self.encoding.table(values, len(self.ids)))
        return self.encoding.sealed(DERIVATIVES, when, slopes, batch=self.ids)

    def told(self, when: tuple[int, int], message: bytes) -> None:
        """The derivatives have come."""
        values, _ = self.encoding.opened(message, DERIVATIVES, when, self.ids)
        self.kept = self.encoding.table(values, len(self.ids))

    def ask(self, when: tuple[int, int]) -> bytes:
        """What its samples' embeddings have become."""
        return self.encoding.sealed(EMBEDDINGS, when, self.embeddings(self.own), batch=self.ids)

    def step(self, q: int) -> None:
        """Lines 25 to 29: the own embedding is new in every step, the others' sum is that of the exchange."""
        if not len(self.rows) or (self.local.discards_last and q == self.local.steps - 1):
            return
        with torch.enable_grad():
            own = self.own.detach().requires_grad_()
            found = self.embeddings(own)
            if self.holding.labels is not None and not (self.local.stale and q):
                self.kept = self.slopes(self.others + found)
            (g,) = torch.autograd.grad((found * self.kept).sum() / len(self.rows), own)
        self.own = self.own - self.local.step_size * g

    def model(self, r: int) -> bytes:
        """Line 31: the copy of the block."""
        return self.encoding.sealed(MODEL, (r, self.local.steps), self.own)


class Hub:
    """The hub of one silo: its block, how many samples each client has, and the embeddings of the round; no data."""

    def __init__(
        self, start: Tensor, samples: Sequence[int], draw: Callable[[int], np.ndarray], local: TierSteps,
        encoding: Encoding, whole: bool,
    ) -> None:  # fmt: skip
        self.block, self.samples, self.draw = start, np.array(samples), draw
        self.local, self.encoding, self.whole = local, encoding, whole
        self.batch = np.empty(0, int)
        self.ids: list[np.ndarray] = []
        self.own, self.others = torch.empty(0), dict[int, Tensor]()

    def open(self, r: int) -> bytes:
        """Lines 9 and 10: the batch, of which every hub draws the same, and the block."""
        self.batch, self.others = np.sort(self.draw(r)), {}
        if len(np.unique(self.batch)) < len(self.batch):
            raise FedboundsError(f"the batch of round {r} has a sample twice: {self.batch.tolist()}")
        return self.encoding.sealed(MODEL, (r, 0), self.block, self.batch)

    def collect(self, r: int, messages: Sequence[bytes]) -> None:
        """Line 16: the embeddings of the batch from those of the clients, keyed by sample ID.

        Raises:
            FedboundsError: a sample of the batch came from nobody or from several, or a client has none and nothing is
                said of what becomes of it.
        """
        opened = [self.encoding.opened(message, EMBEDDINGS, (r, 0)) for message in messages]
        self.ids = [ids for _, ids in opened]
        if not np.array_equal(np.sort(np.concatenate(self.ids)), self.batch):
            raise FedboundsError("the clients' samples are not those of the batch, each once")
        if self.local.empty == "refuse" and self.local.average != "batches" and not all(map(len, self.ids)):
            raise FedboundsError(
                'a client holds no sample of the batch: give a larger batch, or empty = "zero" (it stays in the mean, '
                'as in the published code of Das et al. 2022) or empty = "drop"'
            )
        self.own = self.gathered([self.encoding.table(values, len(ids)) for values, ids in opened])

    def gathered(self, tables: Sequence[Tensor]) -> Tensor:
        """Rows of the clients in the order of the batch, (B, E)."""
        order = np.argsort(np.concatenate(self.ids))
        return torch.cat(list(tables))[order]

    def rows(self, k: int) -> np.ndarray:
        r"""$\pi_{k,j}$: where a client's samples stand in the batch."""
        return np.searchsorted(self.batch, self.ids[k])

    def broadcast(self, r: int) -> bytes:
        """Line 17: the own embeddings, for another hub."""
        return self.encoding.sealed(EMBEDDINGS, (r, 0), self.own, batch=self.batch)

    def hear(self, when: tuple[int, int], silo: int, message: bytes) -> Tensor:
        """Line 18: another hub's, which must be of the same batch."""
        values, _ = self.encoding.opened(message, EMBEDDINGS, when, self.batch)
        self.others[silo] = self.encoding.table(values, len(self.batch))
        return self.others[silo]

    def others_sum(self, r: int, k: int) -> bytes:
        """Lines 19 and 22: the sum of the others' embeddings, for a client."""
        total = sum(self.others.values(), torch.zeros_like(self.own))
        known = self.batch if self.whole else self.ids[k]
        return self.encoding.sealed(OTHERS, (r, 0), total if self.whole else total[self.rows(k)], batch=known)

    def together(self, code: int, when: tuple[int, int], messages: Sequence[bytes]) -> bytes:
        """Remark 2: the clients' derivatives, or what their embeddings have become, in one message to another hub."""
        opened = [
            self.encoding.table(self.encoding.opened(message, code, when, ids)[0], len(ids))
            for message, ids in zip(messages, self.ids, strict=True)
        ]
        return self.encoding.sealed(code, when, self.gathered(opened), batch=self.batch)

    def passed_on(self, when: tuple[int, int], message: bytes) -> list[bytes]:
        """The derivatives from the silo with the labels, for each client those of its samples."""
        values, _ = self.encoding.opened(message, DERIVATIVES, when, self.batch)
        table = self.encoding.table(values, len(self.batch))
        return [
            self.encoding.sealed(DERIVATIVES, when, table[self.rows(k)], batch=ids) for k, ids in enumerate(self.ids)
        ]

    def points(self, when: tuple[int, int], silo: int, message: bytes) -> list[bytes]:
        """Where another silo has moved to while all others stand where the round began, for each client its samples."""
        first = self.others[silo]
        now = self.hear(when, silo, message)
        self.others[silo] = first
        total = self.own + sum(self.others.values(), torch.zeros_like(self.own)) - first + now
        return [self.encoding.sealed(POINTS, when, total[self.rows(k)], batch=ids) for k, ids in enumerate(self.ids)]

    def average(self, r: int, messages: Sequence[bytes]) -> None:
        """Line 32: the mean of the copies."""
        copies = torch.stack([self.encoding.opened(each, MODEL, (r, self.local.steps))[0] for each in messages])
        held = np.array([len(ids) for ids in self.ids])
        shares = {"clients": np.ones(len(held)), "shards": self.samples, "batches": held}[self.local.average]
        if self.local.empty == "drop":
            shares = shares * (held > 0)
        weights = torch.from_numpy(shares / shares.sum()).to(self.block.dtype)
        self.block = (weights[:, None] * copies.to(self.block.dtype)).sum(0)
