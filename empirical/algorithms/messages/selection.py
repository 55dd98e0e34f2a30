"""Which entries of vectors are the largest."""

from __future__ import annotations

import torch


def largest(y: torch.Tensor, count: int) -> torch.Tensor:
    """Where the `count` < d entries of largest magnitude of each row (..., d) are, of equal ones the first; NaN too."""
    size = y.abs()
    edge = size.kthvalue(y.shape[-1] - count, dim=-1, keepdim=True).values  # the largest that is left out
    equal, above = size == edge, size > edge
    spare = count - above.sum(-1, keepdim=True)
    return above | equal & (equal.cumsum(-1) <= spare) | size.isnan()
