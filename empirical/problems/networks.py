r"""The networks of the experiments as functions of one flat vector, and their gradients for many clients at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote
from fedbounds.empirical.problems.recurrent import last_hidden
from fedbounds.empirical.runtime.counter_rng import uniforms

MOMENTUM, EPSILON = 0.1, 1e-5  # of batch normalization
_STATISTICS = ("mean", "variance")
_DROPOUT = 100  # the purpose of the first dense layer's random numbers; augmentation has the lower ones


class Layers(NamedTuple):
    """Filters of the convolutions, units of the dense layers but the last, and what else tells networks apart."""

    filters: tuple[int, ...]
    units: tuple[int, ...]
    kernel: int = 5
    dropout: float = 0.0
    unpooled: tuple[int, ...] = ()  # convolutions without pooling; such a network also leaves out what images forbid
    smooth: bool = False  # GELU for ReLU and mean-pooling for max-pooling
    normalized: bool = False  # batch normalization between convolution and ReLU; no biases elsewhere
    recurrent: int = 0  # width of the long short-term memory that goes through the rows of an image before all else


class NetworkSteps(NamedTuple):
    """Some local steps of b parameter vectors."""

    images: Tensor  # `(steps, b, B, channels, height, width)`
    labels: Tensor  # `(steps, b, B)`, int64
    sizes: Tensor  # the step's size times the weight of the sample, `(steps, b, B)`, or `(steps, b, 1)`


class Backward(NamedTuple):
    r"""The results of a backward pass, for each of b parameter vectors; None if not required."""

    losses: Tensor | None = None  # $\ell(x; \xi_j)$, `(b, B)`
    # the gradient of $\sum_j w_j\ell(x; \xi_j)$ in the parameters, `(b, d)`; in the place of running statistics
    # by how much they are too large
    parameters: Tensor | None = None
    pixels: Tensor | None = None  # the same in the images, `(b, B, channels, height, width)`


_LAYERS: Mapping[str, Layers] = {
    "cnn": Layers((32, 32), (128,)),
    "cnn-small": Layers((8, 16), (32,), kernel=3),
    "cnn-cifar": Layers((32, 64), (512, 128)),
    "cnn-smooth": Layers((32, 32), (128,), smooth=True),
    "cnn-small-smooth": Layers((8, 16), (32,), kernel=3, smooth=True),
    "cnn-cifar-smooth": Layers((32, 64), (512, 128), smooth=True),
    "fedau-svhn": Layers((32, 32), (128,), kernel=3),
    "fedau-cifar-10": Layers((32, 32), (256, 64), kernel=3),
    "fedau-cifar-100": Layers((32, 32), (512, 256), kernel=3, dropout=0.2),
    "fedau-cinic-10": Layers((32, 32), (512, 256), kernel=3, dropout=0.2),
    "vgg-11": Layers((64, 128, 256, 256, 512, 512, 512, 512), (), kernel=3, unpooled=(3, 5, 7)),
    "cnn4-bn": Layers((32, 64, 128, 256), (), kernel=3, normalized=True),
    "cnn4-bn-small": Layers((8, 16, 32, 64), (), kernel=3, normalized=True),
    "cnn8-bn": Layers((32, 32, 64, 64, 128, 128, 256, 256), (), kernel=3, unpooled=(1, 3, 5, 7), normalized=True),
    "lstm": Layers((), (), recurrent=64),
    "lstm-small": Layers((), (), recurrent=16),
    "mlp": Layers((), (32,)),
    "linear": Layers((), ()),
}


@dataclass(frozen=True)
class Network:
    r"""Convolutions, padded to keep the size, with ReLU and, in most networks each of them, 2x2 max-pooling, or long
    short-term memory; then dense layers with ReLU but the last; while training, some have dropout before each.

    The parameters of a network are one flat vector $x \in \mathbb R^d$: weight and bias of each layer. All
    functions take a batch of such vectors, `(b, d)`, each with images of its own, `(b, B, channels, height, width)`.

    Networks with batch normalization (no biases but its own) have its numbers after all others: factor $\gamma_c$ and
    shift $\beta_c$ of each layer's channels c, and last the *running statistics* $m_c$ and $v_c$ of each layer. While
    training a channel h becomes $\gamma_c(h-\mu_c)/\sqrt{\sigma_c^2+10^{-5}}+\beta_c$, with the mean $\mu_c$ and
    variance $\sigma_c^2$ of the batch, and $m_c\leftarrow m_c+0.1(\mu_c-m_c)$,
    $v_c\leftarrow v_c+0.1(\frac n{n-1}\sigma_c^2-v_c)$ of n pixels, as in torch; else $m_c$ and $v_c$ stand for them.

    Args:
        name: which one; the first dense layer takes the size that the image leaves, 8x8x32 at 32x32, 2x2x32 at 8x8.
            `"cnn"` and `"cnn-cifar"` (5x5 kernels) are the two networks of Wang & Ji 2022, Table D.2 (with ReLU);
            `"fedau-svhn"`, `"fedau-cifar-10"`, `"fedau-cifar-100"` and `"fedau-cinic-10"` (3x3 kernels, the last two
            with dropout 0.2) those of Wang & Ji 2024, Appendix C.3; `"vgg-11"` (3x3 kernels) has the convolutions
            64-M-128-M-256-256-M-512-512-M-512-512-M, M for pooling, and a linear classifier, as VGG-11 is used on
            images of 32x32, which Sharma et al. 2023 name without its layers: without batch normalization, and without
            those poolings that smaller images do not allow;
            `"cnn4-bn"` (32-M-64-M-128-M-256-M) and `"cnn8-bn"` (twice each, M after every second) are those of Li et
            al. 2024, as in the authors' code: 3x3, batch normalization before ReLU and pooling, a linear classifier
            without bias; `"cnn4-bn-small"` has a quarter of the filters;
            `"cnn-small"` has two convolutions 3x3 of 8 and 16 filters and a hidden layer of 32 units, for two cores;
            `"cnn-smooth"`, `"cnn-small-smooth"` and `"cnn-cifar-smooth"` are those networks with GELU in place of ReLU
            and means in place of maxima, so that their gradients have derivatives;
            `"lstm"` (width 64) and `"lstm-small"` (16) go through the rows of an image, top to bottom, by long
            short-term memory, and put the last state through the dense layer: a sequence is an image (1, steps,
            features), of which `images[..., columns]` are some features;
            `"mlp"` has one hidden layer of 32 units; `"linear"` is multinomial logistic regression.
        image: (channels, height, width).
        classes: number of outputs.

    Raises:
        FedboundsError: a name that is not one of these, an image too small to be pooled.

    Example:
        >>> Network("cnn", (1, 28, 28), 10).size, Network("cnn-cifar", (3, 32, 32), 10).size
        (228586, 2218314)
        >>> Network("fedau-svhn", (3, 32, 32), 10).size, Network("fedau-cifar-10", (3, 32, 32), 10).size
        (273706, 551786)
        >>> Network("vgg-11", (3, 32, 32), 10).size, Network("cnn-small", (1, 8, 8), 10).size
        (9225610, 3658)
        >>> Network("cnn4-bn", (1, 28, 28), 10).parameters, Network("cnn8-bn", (3, 32, 32), 100).parameters
        (390880, 1275616)
        >>> Network("lstm-small", (1, 48, 76), 2).size  # 4 * 16 * (76 + 16 + 1) + 2 * (16 + 1)
        5986
    """

    name: str
    image: tuple[int, int, int]
    classes: int

    def __post_init__(self) -> None:
        if ":" in self.name:
            raise FedboundsError(f"network = {quote(self.name)} is a factory, which only kind = 'model-on-data' takes")
        if self.name not in _LAYERS:
            raise unknown_name("network", self.name, _LAYERS)
        smallest = 1 if self._layers.unpooled or self._layers.normalized else 2 ** len(self._layers.filters)
        if min(self.image[1:]) < smallest:
            raise FedboundsError(
                f"network {self.name!r} pools images of {self.image[1]}x{self.image[2]} pixels to nothing; "
                f"they must be at least {smallest}x{smallest}"
            )

    @property
    def _layers(self) -> Layers:
        return _LAYERS[self.name]

    @property
    def smooth(self) -> bool:
        """Whether the output is a smooth function of the parameters, so that Hessians mean something."""
        return self._layers.smooth or not (self._layers.filters or self._layers.units)  # so are sigmoids and tanh

    @property
    def convolutional(self) -> bool:
        """Whether there are convolutions."""
        return bool(self._layers.filters)

    @property
    def dense(self) -> bool:
        """Whether there are dense layers alone."""
        return not (self.convolutional or self._layers.recurrent)

    @cached_property
    def _pooled(self) -> list[bool]:
        """Whether pooling follows each convolution: never where an image is one pixel high or wide."""
        side, pooled = min(self.image[1:]), []
        for i in range(1, len(self._layers.filters) + 1):
            pooled.append(i not in self._layers.unpooled and side > 1)
            side //= 1 + pooled[-1]
        return pooled

    @property
    def dropout(self) -> float:
        """The share of its inputs that every dense layer loses while training."""
        return self._layers.dropout

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter name -> shape, in the order in which they lie in the flat vector."""
        shapes: dict[str, tuple[int, ...]] = {}
        channels, height, width = self.image
        kernel = self._layers.kernel
        for i, filters in enumerate(self._layers.filters, start=1):
            shapes[f"convolution{i}.weight"] = (filters, channels, kernel, kernel)
            if not self._layers.normalized:
                shapes[f"convolution{i}.bias"] = (filters,)
            halved = 1 + self._pooled[i - 1]
            channels, height, width = filters, height // halved, width // halved
        inputs = channels * height * width
        if state := self._layers.recurrent:
            shapes |= {"lstm.weight": (4 * state, channels * width + state), "lstm.bias": (4 * state,)}
            inputs = state
        for i, outputs in enumerate((*self._layers.units, self.classes), start=1):
            shapes[f"dense{i}.weight"] = (outputs, inputs)
            if not self._layers.normalized:
                shapes[f"dense{i}.bias"] = (outputs,)
            inputs = outputs
        for parts in (("weight", "bias"), _STATISTICS) if self._layers.normalized else ():
            for i, filters in enumerate(self._layers.filters, start=1):
                shapes |= {f"normalization{i}.{part}": (filters,) for part in parts}
        return shapes

    @cached_property
    def _sizes(self) -> list[int]:
        return [prod(shape) for shape in self.shapes.values()]

    @cached_property
    def size(self) -> int:
        """The numbers in the flat vector, d: parameters and running statistics."""
        return sum(self._sizes)

    @property
    def statistics(self) -> int:
        """How many running statistics there are; they come last."""
        return 2 * sum(self._layers.filters) if self._layers.normalized else 0

    @property
    def parameters(self) -> int:
        """The number of parameters that are trained, which come first."""
        return self.size - self.statistics

    @property
    def normalizing(self) -> int:
        """How many numbers are batch normalization's, running statistics among them; they come last."""
        return 2 * self.statistics

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
        torch's default, weights and biases uniform on $\pm 1/\sqrt{\text{fan-in}}$. With batch normalization all
        weights are $N(0, 0.01^2)$, factors and variances one, shifts and means zero. The weights of a long short-term
        memory are uniform on $\pm 1/\sqrt{\text{width}}$, as torch's default, its biases zero but those of the forget
        gates, which are one.

        Source: Wang & Ji 2022, Table D.2, and Wang & Ji 2024, Appendix C.3 (Kaiming for all layers with ReLU); zero
        biases and the last layer are as in the authors' public code, as is what Li et al. 2024 begin with. Forget
        gates that begin open: Jozefowicz, Zaremba & Sutskever 2015.
        """
        parts: list[np.ndarray] = []
        if self._layers.normalized:
            for name, shape in self.shapes.items():
                one = name.startswith("normalization") and name.endswith(("weight", "variance"))
                parts.append(0.01 * rng.standard_normal(shape) if len(shape) > 1 else np.full(shape, float(one)))
            return np.concatenate([part.reshape(-1) for part in parts])
        last, state = f"dense{len(self._layers.units) + 1}", self._layers.recurrent
        for name, shape in self.shapes.items():
            layer, kind = name.split(".")
            fan_in = prod(self.shapes[f"{layer}.weight"][1:])
            if name == "lstm.weight":
                parts.append(rng.uniform(-(state**-0.5), state**-0.5, shape))
            elif name == "lstm.bias":
                parts.append(np.repeat([0.0, 1.0, 0.0, 0.0], state))
            elif layer == last:
                parts.append(rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shape))
            elif kind == "weight":
                parts.append(rng.standard_normal(shape) * (2 / fan_in) ** 0.5)
            else:
                parts.append(np.zeros(shape))
        return np.concatenate([part.reshape(-1) for part in parts])

    def logits(self, x: Tensor, images: Tensor) -> Tensor:
        """The outputs before the softmax, as when not training: `(b, d)`, `(b, B, C, H, W)` -> `(b, B, classes)`."""
        views = self.unflatten(x)
        return self._dense(views, self._features(views, images), [])[-1]

    def gradient(
        self,
        x: Tensor,
        images: Tensor,
        labels: Tensor,
        weights: Tensor | None = None,
        words: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        r"""The gradient of $\sum_j w_j \ell(x; \xi_j)$, cross entropy $\ell$, for each of b parameter vectors.

        Args:
            x: parameters `(b, d)`.
            images: `(b, B, C, H, W)`.
            labels: `(b, B)`, int64.
            weights: $w_j$ as `(b, B)`; each $1/B$ if not given.
            words: of which the samples' dropout is made, `(b, B)`, int64; no dropout if not given.
            training: normalize with the statistics of the batch, the samples weighed with $w_j\ge0$ that sum to one.

        Returns:
            `(b, d)`; in the places of running statistics what a step of length one takes from them: zero if not
            training.
        """
        found = self.backward(x, images, labels, weights, words, training).parameters
        assert found is not None
        return found

    def backward(
        self,
        x: Tensor,
        images: Tensor,
        labels: Tensor,
        weights: Tensor | None = None,
        words: Tensor | None = None,
        training: bool = False,
        *,
        losses: bool = False,
        parameters: bool = True,
        pixels: bool = False,
    ) -> Backward:
        """The losses and the required gradients, in one pass.

        Args:
            x, images, labels, weights, words, training: as for `gradient`.
            losses: whether the losses are wanted.
            parameters: whether the gradient in the parameters is.
            pixels: whether the gradient in the images is.
        """
        views = {name: view.detach() for name, view in self.unflatten(x).items()}
        if self.dense:
            columns = self._columns(views, images.flatten(2))
            each = _cross_entropy(columns[-1].mT, labels) if losses else None
            classes = torch.arange(self.classes, device=labels.device).unsqueeze(1)
            error = columns[-1].softmax(1) - (labels.unsqueeze(1) == classes).to(x.dtype)
            error = error / labels.shape[1] if weights is None else error * weights.unsqueeze(1)
            gradient, in_images = self._dense_gradient(views, columns, error, parameters, pixels)
            return Backward(each, gradient, None if in_images is None else in_images.reshape(images.shape))
        masks = [] if words is None else self.masks(words, x.dtype)
        # torch.split has one backward step for all layers, but gradients with respect to the views need none at all
        still = {name: view for name, view in views.items() if name.endswith(_STATISTICS)}
        leaves = [view.requires_grad_() for name, view in views.items() if name not in still] if parameters else []
        seen, batch = images.detach().requires_grad_() if pixels else images, _Batch(weights) if training else None
        with torch.set_grad_enabled(parameters or pixels):
            logits = self._dense(views, self._features(views, seen, batch), masks)[-1]
            each = _cross_entropy(logits, labels)
            total = each.mean(1).sum() if weights is None else (each * weights).sum()
        wanted = [*leaves, *([seen] if pixels else [])]
        slopes = list(torch.autograd.grad(total, wanted)) if wanted else []
        in_images = slopes.pop() if pixels else None
        if batch is not None:
            slopes += [MOMENTUM * (view - batch.found[name]) for name, view in still.items()]
        else:
            slopes += [torch.zeros_like(view) for view in still.values()]
        gradient = torch.cat([part.flatten(1) for part in slopes], dim=1) if parameters else None
        return Backward(each.detach() if losses else None, gradient, in_images)

    def pull_back(self, x: Tensor, images: Tensor, slopes: Callable[[Tensor], Tensor]) -> Tensor:
        r"""The gradient, in the parameters, of a function of all outputs of which the derivatives in them are known.

        Args:
            x: parameters `(b, d)`.
            images: `(b, B, C, H, W)`.
            slopes: the outputs `(b, B, classes)` -> the function's derivatives in them, of the same shape.

        Returns:
            $\sum_j J_j^\top s_j$ with the Jacobians $J_j$ of sample j's outputs, `(b, d)`.
        """
        if all(name.startswith("dense") for name in self.shapes):
            views = self.unflatten(x.detach())
            columns = self._columns(views, images.flatten(2))
            gradient, _ = self._dense_gradient(views, columns, slopes(columns[-1].mT).mT, True, False)
            assert gradient is not None
            return gradient
        return self.flatten(self._layers_pulled_back(x, images, slopes))

    @torch.no_grad()
    def descend(
        self, x: Tensor, images: Tensor, slopes: Callable[[Tensor], Tensor], size: float, kept: Tensor | None = None
    ) -> None:
        """A step of this size against what `pull_back` finds, in place and layer by layer: where a network is large,
        putting its gradient together takes as long as a convolution.

        `kept` is the share of the parameters that weight decay leaves, (b, 1); 1 if None.
        """
        parts, found = self.unflatten(x), self._layers_pulled_back(x, images, slopes)
        if kept is not None:
            x.mul_(kept)
        for name, slope in found.items():
            parts[name].sub_(slope, alpha=size)

    def _layers_pulled_back(self, x: Tensor, images: Tensor, slopes: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
        """The same by the names of the layers."""
        leaves = {name: view.detach().requires_grad_() for name, view in self.unflatten(x).items()}
        with torch.enable_grad():
            logits = self._dense(leaves, self._features(leaves, images), [])[-1]
        found = torch.autograd.grad(logits, list(leaves.values()), slopes(logits.detach()), materialize_grads=True)
        return dict(zip(leaves, found, strict=True))

    def fuse_steps(self, x: Tensor, blocks: Iterable[NetworkSteps], kept: Tensor | None = None) -> Tensor:
        r"""Where steps against gradients of the cross entropy end, of networks of dense layers: layer by layer.

        $$x \leftarrow kx - \sum_j s_j\nabla\ell(x; \xi_j)$$

        A small layer's gradient takes less time than putting it in one vector and that vector's step: a third of the
        time of steps along `gradient`, from which only rounding tells these.

        Args:
            x: parameters `(b, d)`.
            blocks: the samples of the steps, and the sizes.
            kept: the share k of the parameters that weight decay leaves, `(b, 1, 1)`; 1 if None.
        """
        parts = [part.clone(memory_format=torch.contiguous_format) for part in self.unflatten(x).values()]
        weights, shifts = parts[::2], [part.unsqueeze(2) for part in parts[1::2]]
        classes = torch.arange(self.classes, device=x.device).unsqueeze(1)
        for images, labels, sizes in blocks:
            sizes = sizes.unsqueeze(2)
            targets = (labels.unsqueeze(2) == classes).to(x.dtype) * sizes
            for seen, size, target in zip(images.unbind(0), sizes.unbind(0), targets.unbind(0), strict=True):
                columns = [seen.flatten(2).mT]  # samples last, as in `_columns`
                for weight, shift in zip(weights, shifts, strict=True):
                    columns[-1] = columns[-1].relu_() if len(columns) > 1 else columns[-1]
                    columns.append(_plus_product(shift, weight, columns[-1]))
                error = columns.pop().softmax(1).mul_(size).sub_(target)
                for k in reversed(range(len(weights))):
                    # the derivative of ReLU in one operation, where a product with signs takes two
                    below = (
                        torch.ops.aten.threshold_backward(torch.bmm(weights[k].mT, error), columns[k], 0)
                        if k
                        else error
                    )
                    if kept is not None:
                        weights[k], shifts[k] = weights[k] * kept, shifts[k] * kept
                    weights[k] = _plus_product(weights[k], error, columns[k].mT, -1, spare=True)
                    shifts[k] = shifts[k].sub_(error.sum(2, keepdim=True))
                    error = below
        return torch.cat([part.flatten(1) for pair in zip(weights, shifts, strict=True) for part in pair], dim=1)

    def masks(self, words: Tensor, dtype: torch.dtype) -> list[Tensor]:
        r"""What dropout multiplies the inputs of each dense layer with: 0, or $1/(1-\text{dropout})$.

        Args:
            words: one per sample, int64, any shape; every sample has masks of its own.
            dtype: of the masks.

        Returns:
            `(*words.shape, inputs)` for each dense layer; nothing without dropout.
        """
        if not self.dropout:
            return []
        inputs = [shape[1] for name, shape in self.shapes.items() if name.startswith("dense") and len(shape) == 2]
        kept = [uniforms(words, _DROPOUT + i, width) >= self.dropout for i, width in enumerate(inputs)]
        return [mask.to(dtype) / (1 - self.dropout) for mask in kept]

    def _features(self, views: Mapping[str, Tensor], images: Tensor, seen: _Batch | None = None) -> Tensor:
        """What dense layers see; convolutions have one group of channels per parameter vector: -> `(b, B, width)`."""
        b, batch = images.shape[:2]
        if self._layers.recurrent:
            return last_hidden(views["lstm.weight"], views["lstm.bias"], images.transpose(2, 3).flatten(3))
        if not self.convolutional:
            return images.flatten(2)
        hidden = images.transpose(0, 1).flatten(1, 2)  # (B, b * C, H, W)
        for i in range(len(self._layers.filters)):
            weight, bias = views[f"convolution{i + 1}.weight"], views.get(f"convolution{i + 1}.bias")
            flat = None if bias is None else bias.flatten()
            hidden = F.conv2d(hidden, weight.flatten(0, 1), flat, padding="same", groups=b)
            if i == 0 and b == 1 and not self._layers.unpooled and hidden.device.type == "cpu":
                # one network is then 1.1 to 1.5 times as fast there, mostly for the maxima (measured; VGG-11 is slower)
                hidden = hidden.contiguous(memory_format=torch.channels_last)
            if self._layers.normalized:
                hidden = _normalize(hidden, views, f"normalization{i + 1}", seen)
            if self._layers.smooth:
                hidden = F.gelu(hidden)
                hidden = F.avg_pool2d(hidden, 2) if self._pooled[i] else hidden
            else:
                pooled = F.max_pool2d(hidden, 2) if self._pooled[i] else hidden
                hidden = F.relu(pooled)  # ReLU and max commute; this order is the cheaper one
        return hidden.reshape(batch, b, -1).transpose(0, 1)

    def _dense(self, views: Mapping[str, Tensor], features: Tensor, masks: list[Tensor]) -> list[Tensor]:
        """The inputs of every dense layer and, last, the logits: each `(b, B, width)`."""
        activations, activation = [features], F.gelu if self._layers.smooth else F.relu
        for i in range(len(self._layers.units) + 1):
            weight, bias = views[f"dense{i + 1}.weight"], views.get(f"dense{i + 1}.bias")
            hidden = activations[-1] if i == 0 else activation(activations[-1])
            activations[-1] = hidden * masks[i] if masks else hidden
            if bias is None:
                activations.append(torch.bmm(activations[-1], weight.mT))
            else:
                activations.append(torch.baddbmm(bias.unsqueeze(1), activations[-1], weight.mT))
        return activations

    def _columns(self, views: Mapping[str, Tensor], features: Tensor) -> list[Tensor]:
        """What `_dense` gives without masks and with ReLU, each `(b, width, B)`.

        With the samples last all that is done to a layer goes along them, without a remainder where batches are of 16
        or 32: 1.4 times as fast for small layers (measured).
        """
        columns = [features.mT]
        for i in range(len(self._layers.units) + 1):
            weight, bias = views[f"dense{i + 1}.weight"], views[f"dense{i + 1}.bias"]
            columns[-1] = columns[-1] if i == 0 else F.relu(columns[-1])
            columns.append(torch.baddbmm(bias.unsqueeze(2), weight, columns[-1]))
        return columns

    def _dense_gradient(
        self, views: Mapping[str, Tensor], columns: list[Tensor], error: Tensor, parameters: bool, pixels: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """Backpropagation written out: for small layers it costs a fraction of what recording them would.

        The error at the outputs is `(b, classes, B)`; the gradients are `(b, d)`, and in the features `(b, B, width)`.
        """
        inputs = columns[:-1]
        parts: list[Tensor] = []
        for layer in reversed(range(len(inputs) if parameters or pixels else 0)):
            if parameters:
                parts += [error.sum(2), torch.bmm(error, inputs[layer].mT).flatten(1)]
            if layer:
                error = torch.bmm(views[f"dense{layer + 1}.weight"].mT, error) * (inputs[layer] > 0)
        gradient = torch.cat(parts[::-1], dim=1) if parameters else None
        return gradient, torch.bmm(error.mT, views["dense1.weight"]) if pixels else None


class _Batch:
    """How the samples of a batch are weighed, `(b, B)` (equally if None), and the statistics that were found of it."""

    def __init__(self, weights: Tensor | None) -> None:
        self.weights = weights
        self.found: dict[str, Tensor] = {}


def _normalize(hidden: Tensor, views: Mapping[str, Tensor], name: str, batch: _Batch | None) -> Tensor:
    """Batch normalization of `(B, b * C, H, W)`, with running statistics if there is no batch to take them of."""
    scale, shift, mean, variance = (views[f"{name}.{part}"].flatten() for part in ("weight", "bias", *_STATISTICS))
    if batch is None:
        return F.batch_norm(hidden, mean, variance, scale, shift, eps=EPSILON)
    if batch.weights is None:
        mean, variance = torch.zeros_like(mean), torch.zeros_like(variance)
        hidden = F.batch_norm(hidden, mean, variance, scale, shift, training=True, momentum=1.0, eps=EPSILON)
    else:
        pixels, channels = hidden[0, 0].numel(), hidden.shape[1] // len(batch.weights)
        each = batch.weights.T.repeat_interleave(channels, 1)[..., None, None] / pixels
        count = (batch.weights > 0).sum(1).repeat_interleave(channels) * pixels
        mean = (each * hidden).sum((0, 2, 3))
        centered = hidden - mean[:, None, None]
        variance = (each * centered.square()).sum((0, 2, 3))
        hidden = centered * (scale * (variance + EPSILON).rsqrt())[:, None, None] + shift[:, None, None]
        variance = variance * count / (count - 1).clamp(min=1)
    shape = views[f"{name}.mean"].shape
    batch.found |= {f"{name}.mean": mean.detach().view(shape), f"{name}.variance": variance.detach().view(shape)}
    return hidden


def _plus_product(base: Tensor, left: Tensor, right: Tensor, times: int = 1, spare: bool = False) -> Tensor:
    """`base + times * left @ right` of batches of matrices, in the place of `base` if that may be lost.

    A compiler is shown a sum, which it makes together with what is done next: as one operation it copies `base` first.
    """
    if torch.compiler.is_compiling():
        return base + times * torch.bmm(left, right)
    return (base.baddbmm_ if spare else base.baddbmm)(left, right, alpha=times)


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of every sample: `(b, B, classes)`, `(b, B)` -> `(b, B)`."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
