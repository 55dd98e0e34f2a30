"""Exact projections onto the sets in which the maximizing player of an experiment lives."""

from __future__ import annotations

import torch
from torch import Tensor

from fedbounds.bounds.theory.symbols import POSITIVE
from fedbounds.empirical.problems.argument_checks import real


def project_onto_ball(y: Tensor, radius: float = 1.0) -> Tensor:
    r"""The nearest point of the ball around the origin, $y\,\min\{1, r/\|y\|\}$.

    Source: Sharma et al. 2023, the constraint $\|y\|^2\le1$ of eq. (8).
    """
    length = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
    limit = real("radius", radius, POSITIVE)
    return torch.where(length > limit, y * (limit / length), y)


def project_onto_simplex(y: Tensor) -> Tensor:
    r"""The nearest point with entries that are not negative and add up to one: $\max\{y-\theta, 0\}$.

    $\theta$ is found exactly, by sorting: with $y_{(1)}\ge y_{(2)}\ge\dots$, it is
    $(\sum_{j\le k}y_{(j)}-1)/k$ for the largest k for which that is below $y_{(k)}$.

    Source: Sharma et al. 2023, the constraint $y\in\Delta_C$ of eq. (9).
    """
    sorted_down = y.sort(dim=-1, descending=True).values
    counts = torch.arange(1, y.shape[-1] + 1, dtype=y.dtype, device=y.device)
    thresholds = (sorted_down.cumsum(-1) - 1) / counts
    last = ((thresholds < sorted_down).sum(-1, keepdim=True) - 1).clamp(min=0)  # below 0 where y is not finite
    return (y - thresholds.gather(-1, last)).clamp(min=0)
