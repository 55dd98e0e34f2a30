r"""Losses of a sample as functions of one vector, the sum of the silos' embeddings, and their derivatives in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice


class EmbeddingLoss(ABC):
    r"""$\ell(z;y)$ of sums of embeddings z, `(..., size)`, and labels y, `(...)`.

    Attributes:
        size: of an embedding.
        curvature: $\sup_z\|\nabla^2\ell\|$.
        steepness: $\sup_z\|\nabla\ell\|$; None if there is none.

    Args:
        classes: number of classes.
    """

    size: int = 1
    curvature: ClassVar[float]
    steepness: ClassVar[float | None] = None

    @abstractmethod
    def __init__(self, classes: int) -> None: ...

    @abstractmethod
    def values(self, sums: Tensor, labels: Tensor) -> Tensor:
        r"""$\ell$, `(...)`."""

    @abstractmethod
    def slopes(self, sums: Tensor, labels: Tensor) -> Tensor:
        r"""$\nabla_z\ell$, `(..., size)`."""

    @abstractmethod
    def answers(self, sums: Tensor) -> Tensor:
        """The class that is found, `(...)`."""


class CrossEntropy(EmbeddingLoss):
    r"""$-\log\mathrm{softmax}(z)_y$: one output for each class."""

    curvature = 0.5
    steepness = 2**0.5

    def __init__(self, classes: int) -> None:
        self.size = classes

    def values(self, sums: Tensor, labels: Tensor) -> Tensor:
        each = F.cross_entropy(sums.flatten(0, -2), labels.flatten(), reduction="none")
        return each.view(labels.shape)

    def slopes(self, sums: Tensor, labels: Tensor) -> Tensor:
        chances = sums.softmax(-1)
        return chances.scatter_add_(-1, labels[..., None], chances.new_full((), -1.0).expand(*labels.shape, 1))

    def answers(self, sums: Tensor) -> Tensor:
        return sums.argmax(-1)


class Logistic(EmbeddingLoss):
    r"""$\log(1+e^z)-yz$ for two classes, y = 0 and 1: binary cross entropy of one output."""

    curvature = 0.25
    steepness = 1.0

    def __init__(self, classes: int) -> None:
        if classes != 2:
            raise FedboundsError(f'loss "logistic" is for two classes, these are {classes}: take "cross-entropy"')

    def values(self, sums: Tensor, labels: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(sums[..., 0], labels.to(sums.dtype), reduction="none")

    def slopes(self, sums: Tensor, labels: Tensor) -> Tensor:
        return sums.sigmoid() - labels[..., None]

    def answers(self, sums: Tensor) -> Tensor:
        return (sums[..., 0] > 0).long()


class LeastSquares(EmbeddingLoss):
    r"""$\frac12(z-y)^2$, the label y as a number; the class found is the nearest."""

    curvature = 1.0

    def __init__(self, classes: int) -> None:
        self._last = classes - 1

    def values(self, sums: Tensor, labels: Tensor) -> Tensor:
        return (sums[..., 0] - labels).square() / 2

    def slopes(self, sums: Tensor, labels: Tensor) -> Tensor:
        return sums - labels[..., None]

    def answers(self, sums: Tensor) -> Tensor:
        return torch.floor(sums[..., 0] + 0.5).clamp(0, self._last).long()


_LOSSES: Mapping[str, type[EmbeddingLoss]] = {
    "cross-entropy": CrossEntropy,
    "logistic": Logistic,
    "least-squares": LeastSquares,
}


def loss_by_name(name: str, classes: int) -> EmbeddingLoss:
    """`"cross-entropy"`, `"logistic"` or `"least-squares"`."""
    return _LOSSES[check_choice("loss", name, tuple(_LOSSES))](classes)
