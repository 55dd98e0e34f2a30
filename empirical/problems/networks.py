r"""The networks of the experiments as functions of one flat vector, and their gradients for many clients at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bounds.errors import FedboundsError, unknown_name

_LAYERS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "cnn": ((32, 32), (128,)),
    "cnn-cifar": ((32, 64), (512, 128)),
    "mlp": ((), (32,)),
    "linear": ((), ()),
}
_KERNEL, _PADDING = 5, 2


@dataclass(frozen=True)
class Network:
    r"""Convolutions (5x5, padding 2), each with ReLU and 2x2 max-pooling, then dense layers with ReLU but the last.

    The parameters of a network are one flat vector $x \in \mathbb R^d$: weight and bias of each layer in turn. All
    functions take a batch of such vectors, `(b, d)`, each with images of its own, `(b, B, channels, height, width)`.

    Args:
        name: `"cnn"` and `"cnn-cifar"` are the two networks of Wang & Ji 2022, Table D.2 (with ReLU), of which the
            first dense layer takes the size that the image leaves: 7x7x32 at 28x28, 2x2x32 at 8x8; `"mlp"` has one
            hidden layer of 32 units; `"linear"` is multinomial logistic regression.
        image: (channels, height, width).
        classes: number of outputs.

    Raises:
        FedboundsError: a name that is not one of the four, an image too small to be pooled.

    Example:
        >>> Network("cnn", (1, 28, 28), 10).size, Network("cnn-cifar", (3, 32, 32), 10).size
        (228586, 2218314)
    """

    name: str
    image: tuple[int, int, int]
    classes: int

    def __post_init__(self) -> None:
        if self.name not in _LAYERS:
            raise unknown_name("network", self.name, _LAYERS)
        smallest = 2 ** len(self._convolutions)
        if min(self.image[1:]) < smallest:
            raise FedboundsError(
                f"network {self.name!r} pools images of {self.image[1]}x{self.image[2]} pixels to nothing; "
                f"they must be at least {smallest}x{smallest}"
            )

    @property
    def _convolutions(self) -> tuple[int, ...]:
        return _LAYERS[self.name][0]

    @property
    def convolutional(self) -> bool:
        """Whether there are convolutions."""
        return bool(self._convolutions)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter name -> shape, in the order in which they lie in the flat vector."""
        shapes: dict[str, tuple[int, ...]] = {}
        channels, height, width = self.image
        for i, filters in enumerate(self._convolutions, start=1):
            shapes[f"convolution{i}.weight"] = (filters, channels, _KERNEL, _KERNEL)
            shapes[f"convolution{i}.bias"] = (filters,)
            channels, height, width = filters, height // 2, width // 2
        inputs = channels * height * width
        for i, outputs in enumerate((*_LAYERS[self.name][1], self.classes), start=1):
            shapes[f"dense{i}.weight"] = (outputs, inputs)
            shapes[f"dense{i}.bias"] = (outputs,)
            inputs = outputs
        return shapes

    @cached_property
    def _sizes(self) -> list[int]:
        return [prod(shape) for shape in self.shapes.values()]

    @cached_property
    def size(self) -> int:
        """The number of parameters, d."""
        return sum(self._sizes)

    def unflatten(self, x: Tensor) -> dict[str, Tensor]:
        """The parameters by name, as views: `(..., d)` -> each `(..., *shape)`."""
        parts = x.split(self._sizes, dim=-1)
        return {name: part.unflatten(-1, shape) for part, (name, shape) in zip(parts, self.shapes.items(), strict=True)}

    def flatten(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """The inverse of `unflatten`: each `(..., *shape)` -> `(..., d)`."""
        parts = [parameters[name].flatten(-len(shape)) for name, shape in self.shapes.items()]
        return torch.cat(parts, dim=-1)

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        r"""A random starting point `(d,)`, float64.

        Layers followed by ReLU: Kaiming-normal weights $N(0, 2/\text{fan-in})$ and zero biases. The last layer keeps
        torch's default, weights and biases uniform on $\pm 1/\sqrt{\text{fan-in}}$.

        Source: Wang & Ji 2022, Table D.2 (Kaiming for all layers with ReLU); zero biases and the last layer are as in
        the authors' public code.
        """
        parts: list[np.ndarray] = []
        last = f"dense{len(_LAYERS[self.name][1]) + 1}"
        for name, shape in self.shapes.items():
            layer, kind = name.split(".")
            fan_in = prod(self.shapes[f"{layer}.weight"][1:])
            if layer == last:
                parts.append(rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shape))
            elif kind == "weight":
                parts.append(rng.standard_normal(shape) * (2 / fan_in) ** 0.5)
            else:
                parts.append(np.zeros(shape))
        return np.concatenate([part.reshape(-1) for part in parts])

    def logits(self, x: Tensor, images: Tensor) -> Tensor:
        """The outputs before the softmax: `(b, d)`, `(b, B, C, H, W)` -> `(b, B, classes)`."""
        views = list(self.unflatten(x).values())
        return self._dense(views, self._convolve(views, images))[-1]

    def gradient(self, x: Tensor, images: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        r"""The gradient of $\sum_j w_j \ell(x; \xi_j)$, cross entropy $\ell$, for each of b parameter vectors.

        Args:
            x: parameters `(b, d)`.
            images: `(b, B, C, H, W)`.
            labels: `(b, B)`, int64.
            weights: $w_j$ as `(b, B)`; each $1/B$ if not given.

        Returns:
            `(b, d)`.
        """
        views = [view.detach() for view in self.unflatten(x).values()]
        if not self.convolutional:
            activations = self._dense(views, images.flatten(2))
            return self._dense_gradient(views, activations, labels, weights)
        # torch.split has one backward step for all layers, but gradients with respect to the views need none at all
        leaves = [view.requires_grad_() for view in views]
        with torch.enable_grad():
            logits = self._dense(leaves, self._convolve(leaves, images))[-1]
            losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
            total = losses.mean(1).sum() if weights is None else (losses * weights).sum()
        return torch.cat([part.flatten(1) for part in torch.autograd.grad(total, leaves)], dim=1)

    def _convolve(self, views: list[Tensor], images: Tensor) -> Tensor:
        """The convolutional part, one group of channels per parameter vector: -> `(b, B, features)`."""
        b, batch = images.shape[:2]
        if not self.convolutional:
            return images.flatten(2)
        hidden = images.transpose(0, 1).flatten(1, 2)  # (B, b * C, H, W)
        for i in range(len(self._convolutions)):
            weight, bias = views[2 * i], views[2 * i + 1]
            hidden = F.conv2d(hidden, weight.flatten(0, 1), bias.flatten(), padding=_PADDING, groups=b)
            hidden = F.relu(F.max_pool2d(hidden, 2))  # ReLU and max commute; this order is the cheaper one
        return hidden.view(batch, b, -1).transpose(0, 1)

    def _dense(self, views: list[Tensor], features: Tensor) -> list[Tensor]:
        """The inputs of every dense layer and, last, the logits: each `(b, B, width)`."""
        activations = [features]
        dense = views[2 * len(self._convolutions) :]
        for weight, bias in zip(dense[::2], dense[1::2], strict=True):
            hidden = activations[-1] if len(activations) == 1 else F.relu(activations[-1])
            activations[-1] = hidden
            activations.append(torch.baddbmm(bias.unsqueeze(1), hidden, weight.mT))
        return activations

    def _dense_gradient(
        self, views: list[Tensor], activations: list[Tensor], labels: Tensor, weights: Tensor | None
    ) -> Tensor:
        """Backpropagation written out: for small layers it costs a fraction of what recording them would."""
        *inputs, logits = activations
        error = logits.softmax(2)
        error.scatter_add_(2, labels.unsqueeze(2), error.new_full((1, 1, 1), -1.0).expand(*labels.shape, 1))
        error = error / labels.shape[1] if weights is None else error * weights.unsqueeze(2)
        parts: list[Tensor] = []
        for layer in reversed(range(len(inputs))):
            parts += [error.sum(1), torch.bmm(error.mT, inputs[layer]).flatten(1)]
            if layer:
                error = torch.bmm(error, views[2 * layer]) * (inputs[layer] > 0)
        return torch.cat(parts[::-1], dim=1)
