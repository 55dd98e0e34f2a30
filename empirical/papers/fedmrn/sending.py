"""Algorithms whose clients send messages of a codec, and local steps that end with encoding and decoding."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch

from fedbounds.empirical.algorithms.algorithm import Averaging, Fits, LocalSteps
from fedbounds.empirical.algorithms.local import Gradient, LocalSGD
from fedbounds.empirical.algorithms.messages.compressor import LARGEST, Compressor
from fedbounds.empirical.algorithms.messages.compressors import FullPrecision, Partly


class Sending(Averaging, LocalSteps):
    """FedAvg with messages of a codec."""

    @property
    @abstractmethod
    def codec(self) -> Compressor:
        """What makes the messages."""

    def message_bytes(self, problem: Fits) -> int | None:
        return partly(self.codec, problem.uncompressed).message_bytes(problem.dimension)


def partly(codec: Compressor, uncompressed: int) -> Compressor:
    """The codec of messages whose last so many numbers are sent as they are."""
    return Partly(codec, uncompressed) if uncompressed else codec


@dataclass(frozen=True)
class LocalCompressed(LocalSGD):
    """Plain local steps, and then a message: the update is what the server makes of its bytes."""

    plain: ClassVar[bool] = False
    worded: ClassVar[bool] = True
    compressor: Compressor = field(default_factory=FullPrecision)  # what makes the message

    def sparing(self, uncompressed: int, statistics: int = 0) -> LocalCompressed:
        return replace(self, compressor=partly(self.compressor, uncompressed))

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        assert words is not None
        updates = super().update(x, gradient)
        rows = updates.reshape(-1, x.shape[-1]).cpu().numpy()
        decoded = np.stack([self.decode(row, word) for row, word in zip(rows, words.flatten().tolist(), strict=True)])
        return torch.from_numpy(decoded).to(x.device, x.dtype).view_as(x)

    def decode(self, update: np.ndarray, word: int) -> np.ndarray:
        """One client's update as the server decodes it; NaN if it cannot be sent."""
        with np.errstate(over="ignore"):
            sent = update.astype(np.float32)
        if not (np.abs(sent) <= LARGEST).all():
            return np.full_like(sent, np.nan)
        message = self.compressor.encode(sent, np.random.Generator(np.random.Philox(key=word)))
        return self.compressor.decode(message)
