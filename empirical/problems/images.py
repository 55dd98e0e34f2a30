"""Image classification: a network, its data spread over clients, and minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bounds.checks import check_count, check_flag
from bounds.errors import FedboundsError
from bounds.symbols import Constant, NoConstant
from empirical.datasets import Dataset, checksum
from empirical.partition import Partition
from empirical.problems.networks import Network
from empirical.problems.problem import Problem

_CHUNK = 1024  # samples that are evaluated at once
_SMALL_IMAGE = 16 * 16  # pixels up to which one grouped convolution beats one per client on a processor (measured)


class ImageClassification(Problem):
    r"""Cross entropy of a network on images, $F_n$ the mean over the samples of client n.

    $$f(x) = \frac1N\sum_{n=1}^N F_n(x),\qquad F_n(x) = \frac1{m_n}\sum_{j=1}^{m_n} \ell(x; \xi_{n,j}),$$

    so every client counts the same, however many samples $m_n$ it holds (Wang & Ji 2022, eq. (1)). The images are
    standardised per channel. A stochastic gradient averages over `batch` samples of the client, drawn without
    replacement and afresh each time; a client that holds no more than `batch` takes all of them, and its stochastic
    gradient is then its exact one.

    Metrics: `train_loss` is f, `test_loss` and `test_accuracy` are means over the test samples;
    `gradient_norm_squared`, $\|\nabla f\|^2$, on demand.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient.
        gradient_norm: whether `metrics` reports the squared gradient norm, which costs one pass over the data.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: a partition of other data, a value outside its range, an unknown network.

    Example:
        >>> from empirical.datasets import load_dataset
        >>> from empirical.partition import majority_class_partition
        >>> digits = load_dataset("digits")
        >>> partition = majority_class_partition(digits.train_labels, 20, np.random.default_rng(0))
        >>> problem = ImageClassification(digits, partition, "mlp")
        >>> problem.dimension, problem.clients
        (2410, 20)
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        network: str = "cnn",
        batch: int = 16,
        *,
        gradient_norm: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        if len(partition.assignment) != len(dataset.train_labels):
            raise FedboundsError(
                f"the partition deals {len(partition.assignment)} samples, "
                f"data set {dataset.name} has {len(dataset.train_labels)}"
            )
        self.network = Network(network, dataset.image, dataset.classes)
        self.batch = check_count("batch", batch)
        self.gradient_norm = check_flag("gradient_norm", gradient_norm)
        self.dataset, self.partition = dataset, partition
        self.clients, self.dimension = partition.clients, self.network.size
        self.dtype, self.device = dtype, torch.device(device)
        small = dataset.image[1] * dataset.image[2] <= _SMALL_IMAGE
        self.prefers_batched = not self.network.convolutional or small or self.device.type != "cpu"
        self.data_checksum = checksum(dataset)

        train, test = dataset.standardised()
        self._images = torch.from_numpy(train).to(self.device, dtype)
        self._labels = torch.from_numpy(dataset.train_labels).to(self.device)
        self._test_images = torch.from_numpy(test).to(self.device, dtype)
        self._test_labels = torch.from_numpy(dataset.test_labels).to(self.device)
        weights = 1.0 / (self.clients * partition.sizes[partition.assignment])
        self._weights = torch.from_numpy(weights).to(self.device, dtype)
        self._padded = int(partition.sizes.min()) < self.batch

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(self.network.initial(rng)).to(self.device, self.dtype)

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray:
        """Indices of training samples, `(batch,)`; -1 in the places that a small client cannot fill."""
        return self.draws(rng, client, 1)[0]

    def draws(self, rng: np.random.Generator, client: int, steps: int) -> np.ndarray:
        own = self.partition.samples[client]
        if len(own) <= self.batch:
            whole = np.full(self.batch, -1, dtype=np.int64)
            whole[: len(own)] = own
            return np.tile(whole, (steps, 1))
        ranks = rng.random((steps, len(own)))
        return own[ranks.argpartition(self.batch - 1, axis=1)[:, : self.batch]]

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        if randomness is None:
            raise FedboundsError("a stochastic gradient of images needs the indices that `draw` returns")
        indices = randomness.reshape(-1, randomness.shape[-1])
        return self._sampled(x.reshape(-1, self.dimension), indices, self._padded).view(x.shape)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        rows, names = x.reshape(-1, self.dimension), clients.reshape(-1).tolist()
        own = [torch.from_numpy(self.partition.samples[client]) for client in names]
        longest = max((len(samples) for samples in own), default=0)
        at_once = max(1, _CHUNK * 16 // max(longest, 1)) if self.prefers_batched else 1
        parts = []
        for start in range(0, len(own), at_once):
            some = own[start : start + at_once]
            indices = torch.nn.utils.rnn.pad_sequence(some, batch_first=True, padding_value=-1).to(self.device)
            parts.append(self._sampled(rows[start : start + at_once], indices, True))
        return torch.cat(parts).view(x.shape) if parts else torch.empty_like(x)

    def _sampled(self, x: Tensor, indices: Tensor, padded: bool) -> Tensor:
        """Mean gradients over the samples `indices` (b, B) at `x` (b, d); -1 stands for no sample, if `padded`."""
        if len(x) > 1 and not self.prefers_batched:
            return torch.cat(
                [self._sampled(row, own, padded) for row, own in zip(x.split(1), indices.split(1), strict=True)]
            )
        weights = None
        if padded:
            present = indices >= 0
            weights = present.to(self.dtype) / present.sum(1, keepdim=True)
            indices = indices.clamp(min=0)
        flat = indices.flatten()
        images = self._images.index_select(0, flat).view(*indices.shape, *self.network.image)
        return self.network.gradient(x, images, self._labels.index_select(0, flat).view(indices.shape), weights)

    def objective(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.dimension)
        values = [self._evaluate(row, self._images, self._labels, self._weights)[0] for row in rows]
        return torch.stack(values).view(x.shape[:-1])

    def objective_gradient(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x).view(-1, self.dimension)
        for row, total in zip(x.reshape(-1, 1, self.dimension), out, strict=True):
            for images, labels, weights in self._chunks(self._images, self._labels, self._weights):
                total += self.network.gradient(row, images[None], labels[None], weights[None])[0]
        return out.view(x.shape)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        each = torch.full_like(self._test_labels, 1.0 / len(self._test_labels), dtype=self.dtype)
        tested = [self._evaluate(row, self._test_images, self._test_labels, each) for row in x]
        metrics = {
            "train_loss": self.objective(x),
            "test_loss": torch.stack([loss for loss, _ in tested]),
            "test_accuracy": torch.stack([accuracy for _, accuracy in tested]),
        }
        if self.gradient_norm:
            metrics["gradient_norm_squared"] = self.objective_gradient(x).square().sum(-1)
        return metrics

    @torch.no_grad()
    def _evaluate(self, x: Tensor, images: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted loss and the weighted share of correct answers at one point `(d,)`."""
        loss, correct = x.new_zeros(()), x.new_zeros(())
        for some, truth, weight in self._chunks(images, labels, weights):
            logits = self.network.logits(x[None], some[None])[0]
            loss += F.cross_entropy(logits, truth, reduction="none") @ weight
            correct += (logits.argmax(1) == truth).to(self.dtype) @ weight
        return loss, correct

    @staticmethod
    def _chunks(*tensors: Tensor) -> Any:
        return zip(*(tensor.split(_CHUNK) for tensor in tensors), strict=True)

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""What is known for every x: nothing for ReLU networks; upper bounds for `linear`.

        Logistic regression, with $\tilde\xi = (\xi, 1)$ and means over a client's samples:
        $L = \frac12\max_n\lambda_{\max}(\mathrm{mean}\,\tilde\xi\tilde\xi^\top)$ (a supremum: it is approached where
        two classes have probability one half each); $\|\nabla\ell\|\le\sqrt2\|\tilde\xi\|$ bounds noise and divergence.
        """
        found: dict[str, Constant | NoConstant] = {
            "clients": Constant(float(self.clients), "exact"),
            "strong_convexity": NoConstant(
                "f is not strongly convex: adding a constant to all outputs changes nothing"
            ),
            "initial_gap": NoConstant("min f is unknown (f(x0) is above the gap, as cross entropy is not negative)"),
        }
        if self.network.name != "linear":
            unbounded = "gradients of a network grow without bound with its weights"
            return found | {
                "smoothness": NoConstant("the gradient of a ReLU network is not continuous, so not Lipschitz"),
                "gradient_noise": NoConstant(unbounded),
                "gradient_divergence_sup": NoConstant(unbounded),
            }
        smoothness, noise, lengths = [], [], []
        for own in self.partition.samples:
            samples = self._images[torch.from_numpy(own)].flatten(1).double()
            samples = torch.cat([samples, samples.new_ones(len(own), 1)], dim=1)
            squares = samples.square().sum(1)
            smoothness.append(float(torch.linalg.matrix_norm(samples, 2)) ** 2 / len(own) / 2)
            lengths.append(float(squares.sqrt().mean()))
            batch = min(self.batch, len(own))
            without_replacement = (len(own) - batch) / (batch * max(len(own) - 1, 1))
            noise.append(without_replacement * 2 * float(squares.mean()))
        return found | {
            "smoothness": Constant(max(smoothness), "exact", "half the largest eigenvalue of the second moments"),
            "gradient_noise": Constant(max(noise) ** 0.5, "exact", "upper bound from ||grad l|| <= sqrt(2) ||sample||"),
            "gradient_divergence_sup": Constant(
                2**0.5 * (max(lengths) + float(np.mean(lengths))),
                "exact",
                "upper bound from ||grad l|| <= sqrt(2) ||sample||",
            ),
        }
