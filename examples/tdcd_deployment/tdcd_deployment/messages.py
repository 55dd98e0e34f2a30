r"""The messages of TDCD between hubs and clients, as bytes, and a record of each delivery.

| message | from, to | holds |
|---|---|---|
| model | hub, its clients | the silo's block $\theta_j$, and the sample IDs of the batch |
| embeddings | client, its hub | $h_j(\theta_{k,j};X_j^{(p)})$ of its samples of the batch, and their IDs |
| embeddings | hub, other hubs | those of the batch, in the order of the IDs |
| others | hub, its clients | $\sum_{l\ne j}\Phi_l^{(p)}$ of the client's samples, or of the whole batch |
| model | client, its hub | its copy of the block |

If one silo alone has the labels, embeddings go to its hub only; its clients return the derivatives of the loss in the
sum, which its hub passes on. In later local steps they do so at *points*, $\Phi_{-l}^{t_0}+\Phi_l^t$ of each other silo
l.

Source: Das et al. 2022, Algorithm 1, lines 9 to 32, and Remark 2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.messages import envelope
from fedbounds.empirical.algorithms.messages.envelope import HEAD, OVERHEAD
from fedbounds.empirical.papers.tdcd.traffic import ID_BYTES, Link, Sent

MODEL, EMBEDDINGS, OTHERS, DERIVATIVES, POINTS = range(32, 37)
_IDS = np.dtype("<u4")


@dataclass(frozen=True)
class Encoding:
    """Encode numbers and sample IDs as bytes.

    Args:
        dtype: of the numbers on the wire, float32 or float64.
        size: E, the numbers of one sample's embedding.
        inside: dtype of the computation.
    """

    dtype: torch.dtype
    size: int
    inside: torch.dtype

    @property
    def number(self) -> np.dtype:
        """A number on the wire."""
        return np.dtype("<f4" if self.dtype == torch.float32 else "<f8")

    def seal(self, code: int, when: tuple[int, int], values: Tensor, ids: object = (), batch: object = ()) -> bytes:
        """Encode a message.

        Args:
            code: the kind of the message.
            when: the round and its local step.
            values: the numbers.
            ids: sample IDs in the message.
            batch: sample IDs that both sides know; they enter the checksum only.
        """
        numbers = values.detach().cpu().numpy().astype(self.number).ravel()
        payload = np.asarray(ids, _IDS).tobytes() + numbers.tobytes()
        return envelope.seal(code, numbers.size, payload, self._shared_context(when, batch))

    def open(self, message: bytes, code: int, when: tuple[int, int], batch: object = ()) -> tuple[Tensor, np.ndarray]:
        """Decode a message into its numbers and IDs.

        Raises:
            FedboundsError: the message is damaged, of another kind, or of another round, step or batch.
        """
        size, payload = envelope.unseal(message, code, self._shared_context(when, batch))
        cut = len(payload) - size * self.number.itemsize
        if cut < 0 or cut % ID_BYTES:
            raise FedboundsError(f"the message carries {len(payload)} bytes for {size} numbers")
        values = torch.from_numpy(np.frombuffer(payload, self.number, offset=cut).astype(np.float64))
        if not values.isfinite().all():
            raise FedboundsError(f"the message of round {when[0]}, step {when[1]} holds numbers that are not finite")
        return values.to(self.inside), np.frombuffer(payload[:cut], _IDS).astype(np.int64)

    def table(self, values: Tensor, samples: int) -> Tensor:
        """Reshape numbers to embeddings (samples, E).

        Raises:
            FedboundsError: the count of numbers is not samples times E.
        """
        if len(values) != samples * self.size:
            raise FedboundsError(f"{len(values)} numbers do not fit {samples} embeddings of {self.size} numbers each")
        return values.reshape(samples, self.size)

    def _shared_context(self, when: tuple[int, int], batch: object) -> bytes:
        head = struct.pack("<QQBQ", *when, self.number.itemsize, self.size)
        return head + np.asarray(batch, _IDS).tobytes()


@dataclass(frozen=True)
class Delivery:
    """One message.

    Args:
        round: its round.
        source, target: (silo, client); client is None for a hub.
        what: the kind of its content.
        message: the bytes.
    """

    round: int
    source: tuple[int, int | None]
    target: tuple[int, int | None]
    what: str
    message: bytes

    @property
    def link(self) -> Link:
        """The class of its link."""
        if self.source[1] is None and self.target[1] is None:
            return "hub to hub"
        return "hub to client" if self.source[1] is None else "client to hub"


def count_messages(link: Link, what: str, messages: Sequence[bytes], width: int) -> Sent:
    """Count the numbers (from the message headers) and the IDs (from the lengths)."""
    opened = [(HEAD.unpack_from(message)[3], len(message) - OVERHEAD) for message in messages]
    floats = sum(size for size, _ in opened)
    return Sent(link, what, len(messages), floats, sum(length - size * width for size, length in opened) // ID_BYTES)
