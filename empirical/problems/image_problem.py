"""What problems on images have in common: a network, its data spread over clients, minibatches, whole passes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory
from fedbounds.bounds.theory.symbols import NONNEGATIVE
from fedbounds.empirical.data.augmentation import Augmentation
from fedbounds.empirical.data.datasets import Dataset, checksum
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.networks import Network
from fedbounds.empirical.problems.problem import Problem, decay_term
from fedbounds.empirical.problems.softmax import without_replacement
from fedbounds.empirical.runtime.counter_rng import words_from_uniforms

_CHUNK = 1024  # samples that are evaluated at once
_PIXELS = 2**18  # of images that are convolved at once: what comes of more leaves a processor's cache (measured)
_KEYS = 2**17  # random numbers that are ordered at once
_EACH = 2**21  # numbers in the gradients of single samples that are computed at once
_SMALL_IMAGE = 16 * 16  # pixels up to which one grouped convolution beats one per client on a processor (measured)


class Samples(NamedTuple):
    """Samples of b parameter vectors."""

    images: Tensor  # standardised, `(b, B, channels, height, width)`
    labels: Tensor  # `(b, B)`
    weights: Tensor | None = None  # `(b, B)`; each 1/B if None
    words: Tensor | None = None  # random words for dropout, `(b, B)`; None without
    training: bool = False  # whether batch normalization uses their statistics


class ImageProblem(Problem):
    r"""A problem whose functions are weighted sums over image samples, client i's the mean over its own.

    Images of bytes are standardised per channel. A stochastic gradient averages over `batch` samples of the client,
    drawn without replacement; a client with at most `batch` samples takes all of them. An epoch is as many local steps
    as it takes to compute one gradient for each of a client's samples.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient; as an attribute at most those of the largest client.
        augmentation: operations on the samples of stochastic gradients, in this order; see `Augmentation`.
        weight_decay: $\rho\ge0$, in units of a loss: every sample's function has the term $\frac\rho2\|x\|^2$.
        dtype: float32, or float64 for checks.
        device: where the tensors live.
    """

    keeps_statistics: ClassVar[bool] = False  # whether networks with running statistics are for it
    _weights: Tensor  # of every training sample in the objective, (samples,)

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        network: str,
        batch: int,
        augmentation: Sequence[str],
        weight_decay: float,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        self.weight_decay = real("weight_decay", weight_decay, NONNEGATIVE)
        if len(partition.assignment) != len(dataset.train_labels):
            raise FedboundsError(
                f"the partition deals {len(partition.assignment)} samples, "
                f"data set {dataset.name} has {len(dataset.train_labels)}"
            )
        self.network = Network(network, dataset.image, dataset.classes)
        # no client holds more, and places that no client fills would cost memory
        self.batch = min(check_count("batch", batch), int(partition.sizes.max()))
        numbers = int(np.prod(dataset.image))
        check_memory(f"batch = {batch}, {self.batch} samples of {numbers} numbers", 24 * self.batch * numbers)
        self.uncompressed, self.statistics = self.network.normalizing, self.network.statistics
        if self.statistics and not self.keeps_statistics:
            raise FedboundsError(f"network {network!r} has running statistics, which minimax problems do not keep")
        if self.statistics and batch == 1:
            raise FedboundsError(f"batch = 1: network {network!r} normalizes batches, which takes two samples at least")
        self.augmentation = Augmentation(augmentation)  # type: ignore[arg-type]
        self.augmentation.check_image(dataset.image)
        if self.augmentation.operations and not dataset.in_bytes:
            raise FedboundsError(f"augmentation is for images of bytes, which data set {dataset.name} does not have")
        self.dataset, self.partition, self.clients = dataset, partition, partition.clients
        self.dtype, self.device = dtype, torch.device(device)
        self.steps_per_epoch = -(-partition.sizes // self.batch)
        small = dataset.image[1] * dataset.image[2] <= _SMALL_IMAGE
        self.prefers_batched = not self.network.convolutional or small or self.device.type != "cpu"
        self.faster_together = self.network.dense
        self.data_checksum = checksum(dataset)

        train, test = dataset.standardised()
        self._images = torch.from_numpy(train).to(self.device, dtype)
        self._labels = torch.from_numpy(dataset.train_labels).to(self.device)
        self._test_images = torch.from_numpy(test).to(self.device, dtype)
        self._test_labels = torch.from_numpy(dataset.test_labels).to(self.device)
        self._padded = int(partition.sizes.min()) < self.batch
        self._worded = bool(self.augmentation.operations) or self.network.dropout > 0
        if self.augmentation.operations:
            self._raw = torch.from_numpy(dataset.train_images).to(self.device)
            shift, scale = dataset.standardisation
            self._shift, self._scale = (torch.from_numpy(part).to(self.device, dtype) for part in (shift, scale))

    def decay(self, x: Tensor) -> Tensor:
        r"""$\frac\rho2\|x\|^2$ of the parameters of the network: (..., d) -> (...)."""
        return decay_term(self.weight_decay, x[..., : x.shape[-1] - self.statistics])

    def _add_weight_decay(self, slope: Tensor, x: Tensor, samples: Samples) -> Tensor:
        """A gradient in x with that of the decay, which counts as often as the samples do."""
        if not self.weight_decay:
            return slope
        total = 1.0 if samples.weights is None else samples.weights.sum(1, keepdim=True)
        decayed = F.pad(x[..., : x.shape[-1] - self.statistics], (0, self.statistics))
        return slope + self.weight_decay * total * decayed

    @abstractmethod
    def sample_gradient(self, x: Tensor, samples: Samples) -> Tensor:
        """The gradient of the weighted sum over samples of what is minimized, at b points: `(b, d)` -> `(b, d)`."""

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray:
        """Indices of training samples, `(self.batch,)`; -1 in the places that a small client cannot fill.

        With dropout or augmentation `(2, self.batch)`: the indices, and a word of randomness for each.
        """
        return self.draws(rng, client, 1)[0]

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray:
        own = self.partition.samples[client]
        small, words = len(own) <= self.batch, self.batch if self._worded else 0
        drawn = rng.random((steps, (0 if small else len(own)) + words)) if words or not small else np.empty((steps, 0))
        if small:
            indices = np.full((steps, self.batch), -1, dtype=np.int64)
            indices[:, : len(own)] = own
        else:
            indices = own[self._first(drawn[:, : len(own)])]
        return np.stack([indices, words_from_uniforms(drawn[:, -words:])], axis=1) if words else indices

    def draws_of_all(
        self, generators: Sequence[np.random.Generator], clients: Sequence[int], steps: int
    ) -> np.ndarray | None:
        table = self._equal_shares
        if table is None or self._worded:
            return super().draws_of_all(generators, clients, steps)
        size, names = table.shape[1], np.asarray(clients)
        drawn = np.empty((steps, len(names), self.batch), dtype=np.int64)
        at_once = max(1, _KEYS // (steps * size))
        for start in range(0, len(names), at_once):
            some = slice(start, start + at_once)
            keys = np.empty((len(names[some]), steps, size))
            for rng, own in zip(generators[some], keys, strict=True):
                rng.random(out=own)
            drawn[:, some] = table[names[some, None], self._first(keys).swapaxes(0, 1)]
        return drawn

    def _first(self, keys: np.ndarray) -> np.ndarray:
        """Where the smallest numbers of each row are, as many as a batch.

        A generator's numbers are multiples of $2^{-53}$: with its place in the last bits of each one partition of whole
        numbers finds them, in half the time of numpy's `argpartition` (measured), and in one order on all processors.
        """
        bits = (keys.shape[-1] - 1).bit_length()
        if bits > 63 - 53:
            return keys.argpartition(self.batch - 1, axis=-1)[..., : self.batch]
        placed = (keys * 2.0**53).astype(np.int64) << bits
        placed |= np.arange(keys.shape[-1])
        placed.partition(self.batch - 1, axis=-1)
        return np.sort(placed[..., : self.batch], axis=-1) & (2**bits - 1)

    @cached_property
    def _equal_shares(self) -> np.ndarray | None:
        """The samples of every client, (clients, samples), if all have as many, and more than a batch."""
        sizes = self.partition.sizes
        alike = sizes[0] > self.batch and bool((sizes == sizes[0]).all())
        return np.stack(self.partition.samples) if alike else None

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        return self._stochastic(x, randomness, self.sample_gradient).view(x.shape)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        rows, names = x.reshape(-1, self.dimension), clients.reshape(-1)
        sizes, here = self.partition.sizes, self.device.type == "cpu"
        # elsewhere one would have to wait for the device to learn who the clients are
        longest = int((sizes[names.numpy()] if here else sizes).max(initial=0))
        at_once = max(1, _CHUNK * 16 // max(longest, 1)) if self.prefers_batched else 1
        parts = []
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            width = int(sizes[some.numpy()].max()) if here else longest
            indices = self._samples_of[some, :width]
            parts.append(self._compute(rows[start : start + at_once], indices, True, None, self.sample_gradient))
        return torch.cat(parts).view(x.shape) if parts else torch.empty_like(x)

    @cached_property
    def _samples_of(self) -> Tensor:
        """The samples of every client, (clients, most samples), filled up with -1."""
        own = [torch.from_numpy(samples) for samples in self.partition.samples]
        return torch.nn.utils.rnn.pad_sequence(own, batch_first=True, padding_value=-1).to(self.device)

    def objective_gradient(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x).view(-1, self.dimension)
        for row, total in zip(x.reshape(-1, 1, self.dimension), out, strict=True):
            for images, labels, weights in self._chunks(self._images, self._labels, self._weights):
                total += self.sample_gradient(row, Samples(images[None], labels[None], weights[None]))[0]
        return out.view(x.shape)

    def gradient_variance(self, x: Tensor, blocks: Sequence[slice] = (slice(None),)) -> Tensor:
        r"""Of the sampling of batches without replacement, exactly, from the gradient of every sample.

        $$\frac{m-B}{B(m-1)}\Big(\frac1m\sum_j\|\nabla\ell_j\|^2-\|\nabla F_n\|^2\Big)$$
        """
        if self._worded:
            raise FedboundsError("dropout and augmentation are random too, and make another function's gradients")
        if self.statistics:
            raise FedboundsError("batch normalization: the gradient of a batch is no mean of its samples' gradients")
        owners = torch.from_numpy(self.partition.assignment).to(self.device)
        squares = torch.zeros(len(blocks), self.clients, dtype=torch.float64, device=self.device)
        sums = x.new_zeros(self.clients, self.dimension)
        at_once = max(1, _EACH // self.dimension)
        for start in range(0, len(self._labels), at_once):
            some = slice(start, start + at_once)
            samples = Samples(self._images[some].unsqueeze(1), self._labels[some].unsqueeze(1))
            each = self.sample_gradient(x.expand(len(samples.labels), -1), samples)
            sums.index_add_(0, owners[some], each)
            lengths = torch.stack([each[:, block].square().sum(1, dtype=torch.float64) for block in blocks])
            squares.index_add_(1, owners[some], lengths)
        sizes = torch.from_numpy(self.partition.sizes).to(self.device)
        means = sums / sizes.unsqueeze(1).to(self.dtype)
        within = torch.stack([means[:, block].square().sum(1, dtype=torch.float64) for block in blocks])
        share = torch.from_numpy(without_replacement(self.partition.sizes, self.batch)).to(self.device)
        return (squares / sizes - within).clamp(min=0) * share

    def _stochastic(self, x: Tensor, randomness: Tensor | None, compute: Callable[[Tensor, Samples], Tensor]) -> Tensor:
        """What is computed at `x` (seeds, cohort, ...) from the samples that were drawn: `(pairs, ...)`."""
        if randomness is None:
            raise FedboundsError("a stochastic gradient of images needs the indices that `draw` returns")
        indices, words = self._split_draw(randomness.flatten(0, 1))
        return self._compute(x.reshape(len(indices), -1), indices, self._padded, words, compute, training=True)

    def _split_draw(self, drawn: Tensor) -> tuple[Tensor, Tensor | None]:
        """The indices of samples, `(b, B)`, and their words if there are any, of what b parameter vectors drew."""
        indices, words = drawn.unbind(1) if self._worded else (drawn, None)
        return indices, words

    def _compute(
        self,
        x: Tensor,
        indices: Tensor,
        padded: bool,
        words: Tensor | None,
        compute: Callable[[Tensor, Samples], Tensor],
        training: bool = False,
    ) -> Tensor:
        """What is computed at `x` (b, ...) from the samples `indices` (b, B); -1 stands for no sample, if `padded`."""
        if len(x) > 1 and not self.prefers_batched:
            own = [None] * len(x) if words is None else words.split(1)
            rows = zip(x.split(1), indices.split(1), own, strict=True)
            return torch.cat([self._compute(row, some, padded, word, compute, training) for row, some, word in rows])
        return compute(x, self._samples(indices, padded, words, training))

    def _samples(self, indices: Tensor, padded: bool, words: Tensor | None, training: bool) -> Samples:
        """The samples `indices` (b, B); -1 stands for no sample, if `padded`."""
        weights = None
        if padded:
            present = indices >= 0
            weights = present.to(self.dtype) / present.sum(1, keepdim=True)
            indices = indices.clamp(min=0)
        flat = indices.flatten()
        if words is not None and self.augmentation.operations:
            changed = self.augmentation.apply(self._raw.index_select(0, flat), words.flatten())
            images = (changed.to(self.dtype) - self._shift) / self._scale
        else:
            images = self._images.index_select(0, flat)
        images = images.view(*indices.shape, *self.network.image)
        labels = self._labels.index_select(0, flat).view(indices.shape)
        return Samples(images, labels, weights, words, training)

    @torch.no_grad()
    def _losses_hits(self, x: Tensor, images: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """The loss of every sample at one point `(d,)`, and whether its class was found, as 0 or 1."""
        parts = [self.network.logits(x[None], some[None])[0] for (some,) in self._chunks(images)]
        logits = torch.cat(parts)
        losses = F.cross_entropy(logits, labels, reduction="none")
        return losses.double().cpu().numpy(), (logits.argmax(1) == labels).double().cpu().numpy()

    def _chunks(self, *tensors: Tensor) -> Any:
        cached = self.network.convolutional and self.device.type == "cpu"
        at_once = min(_CHUNK, max(1, _PIXELS // self._images[0, 0].numel())) if cached else _CHUNK
        return zip(*(tensor.split(at_once) for tensor in tensors), strict=True)
