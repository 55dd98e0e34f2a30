"""Local steps after each of which fewer weights are left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from fedbounds.empirical.algorithms.local import Gradient, LocalSGD
from fedbounds.empirical.algorithms.messages.compressors import TopK


def largest(y: torch.Tensor, count: int) -> torch.Tensor:
    """Where the `count` < d entries of largest magnitude of each row (..., d) are, of equal ones the first; NaN too.

    Example:
        >>> largest(torch.tensor([[3.0, -1.0, 1.0, -4.0]]), 3).tolist()
        [[True, True, False, True]]
    """
    size = y.abs()
    edge = size.kthvalue(y.shape[-1] - count, dim=-1, keepdim=True).values  # the largest that is left out
    equal, above = size == edge, size > edge
    spare = count - above.sum(-1, keepdim=True)
    return above | equal & (equal.cumsum(-1) <= spare) | size.isnan()


@dataclass(frozen=True)
class LocalPruning(LocalSGD):
    r"""Local steps after each of which fewer of the *weights* are kept, those of largest magnitude.

    After step $\tau$ of S a share $1-(1-\text{share})\tau/S$ is left, so that in the end `share` is.

    Args:
        step_size, steps: of the local steps.
        codec: the share that is kept in the end, and the message.
        whole: how many weights, the last, are never pruned.
    """

    plain: ClassVar[bool] = False
    codec: TopK = field(default_factory=TopK)
    whole: int = 0

    def sparing(self, uncompressed: int, statistics: int = 0) -> LocalPruning:
        return replace(self, whole=uncompressed)

    def update(self, x: torch.Tensor, gradient: Gradient, words: torch.Tensor | None = None) -> torch.Tensor:
        y, size = x, x.shape[-1] - self.whole
        for step in range(1, self.steps + 1):
            y = torch.sub(y, gradient(y), alpha=self.step_size)
            share = 1 - (1 - self.codec.share) * step / self.steps
            count = self.codec.count(size) if step == self.steps else max(self.codec.count(size), round(share * size))
            if count < size:
                some = y[..., :size]
                pruned = torch.where(largest(some, count), some, torch.zeros_like(some))
                y = torch.cat([pruned, y[..., size:]], -1) if self.whole else pruned
        return y.float().to(x.dtype) - x  # messages hold float32
