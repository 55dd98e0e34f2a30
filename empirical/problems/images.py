"""Image classification: a network, its data spread over clients, and minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bounds.checks import check_count, check_flag
from bounds.errors import FedboundsError
from bounds.symbols import Constant, NoConstant
from empirical.augmentation import Augmentation
from empirical.datasets import Dataset, checksum
from empirical.partition import Partition, class_counts
from empirical.problems.networks import Network
from empirical.problems.problem import Problem
from empirical.words import words_of

_CHUNK = 1024  # samples that are evaluated at once
_SMALL_IMAGE = 16 * 16  # pixels up to which one grouped convolution beats one per client on a processor (measured)


class ImageClassification(Problem):
    r"""Cross entropy of a network on images, $F_n$ the mean over the samples of client n.

    $$f(x) = \frac1N\sum_{n=1}^N F_n(x),\qquad F_n(x) = \frac1{m_n}\sum_{j=1}^{m_n} \ell(x; \xi_{n,j}),$$

    so every client counts the same, however many samples $m_n$ it holds (Wang & Ji 2022, eq. (1)). The images are
    standardised per channel. A stochastic gradient averages over `batch` samples of the client, drawn without
    replacement and afresh each time; a client that holds no more than `batch` takes all of them, and its stochastic
    gradient is then its exact one.

    Dropout (of some networks) and augmentation change the stochastic gradients only: these are then unbiased for the
    gradient of another function, the expectation of $F_n$ over both, while `objective`, `gradient` and the metrics stay
    without, as accuracies are reported. Each sample of each stochastic gradient draws one word of which its changes are
    made, from the same generator as the sample itself.

    Metrics: `train_loss` is f, and `train_accuracy` the same mean over clients of the shares of their samples that are
    classified correctly; `test_loss` and `test_accuracy` are means over the test samples; `gradient_norm_squared`,
    $\|\nabla f\|^2$, on demand.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient.
        augmentation: what is done to the samples of stochastic gradients, in this order; see `Augmentation`.
        gradient_norm: whether `metrics` reports the squared gradient norm, which costs one pass over the data.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: a partition of other data, a value outside its range, an unknown network or operation.

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
        augmentation: Sequence[str] = (),
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
        self.augmentation = Augmentation(augmentation)  # type: ignore[arg-type]
        self.augmentation.check_image(dataset.image)
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
        self._worded = bool(self.augmentation.operations) or self.network.dropout > 0
        if self.augmentation.operations:
            self._raw = torch.from_numpy(dataset.train_images).to(self.device)
            shift, scale = dataset.standardisation
            self._shift, self._scale = (torch.from_numpy(part).to(self.device, dtype) for part in (shift, scale))

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(self.network.initial(rng)).to(self.device, self.dtype)

    def draw(self, rng: np.random.Generator, client: int) -> np.ndarray:
        """Indices of training samples, `(batch,)`; -1 in the places that a small client cannot fill.

        With dropout or augmentation `(2, batch)`: the indices, and a word of randomness for each.
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
            indices = own[drawn[:, : len(own)].argpartition(self.batch - 1, axis=1)[:, : self.batch]]
        return np.stack([indices, words_of(drawn[:, -words:])], axis=1) if words else indices

    def stochastic_gradient(self, x: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        if randomness is None:
            raise FedboundsError("a stochastic gradient of images needs the indices that `draw` returns")
        indices, words = randomness.reshape(-1, *randomness.shape[2:]), None
        if self._worded:
            indices, words = indices.unbind(1)
        return self._sampled(x.reshape(-1, self.dimension), indices, self._padded, words).view(x.shape)

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

    def _sampled(self, x: Tensor, indices: Tensor, padded: bool, words: Tensor | None = None) -> Tensor:
        """Mean gradients over the samples `indices` (b, B) at `x` (b, d); -1 stands for no sample, if `padded`."""
        if len(x) > 1 and not self.prefers_batched:
            own = [None] * len(x) if words is None else words.split(1)
            rows = zip(x.split(1), indices.split(1), own, strict=True)
            return torch.cat([self._sampled(row, some, padded, word) for row, some, word in rows])
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
        return self.network.gradient(x, images, labels, weights, words)

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
        trained = [self._evaluate(row, self._images, self._labels, self._weights) for row in x]
        tested = [self._evaluate(row, self._test_images, self._test_labels, each) for row in x]
        metrics = {
            f"{data}_{metric}": torch.stack([both[place] for both in found])
            for data, found in (("train", trained), ("test", tested))
            for place, metric in enumerate(("loss", "accuracy"))
        }
        if self.gradient_norm:
            metrics["gradient_norm_squared"] = self.objective_gradient(x).square().sum(-1)
        return metrics

    def client_metrics(self, x: Tensor) -> dict[str, np.ndarray]:
        """Every client's loss and accuracies at the models `x` (seeds, d): name -> (seeds, clients).

        `train_loss` and `train_accuracy` are over the client's own samples. The test data belong to nobody:
        `test_accuracy` weighs the accuracy in each class with the share of the class in the client's training samples.
        """
        shares = class_counts(self.partition.assignment, self.dataset.train_labels, self.clients)
        shares = shares / self.partition.sizes[:, None]
        found: dict[str, list[np.ndarray]] = {"train_loss": [], "train_accuracy": [], "test_accuracy": []}
        for row in x:
            losses, hits = self._answers(row, self._images, self._labels)
            for name, values in (("train_loss", losses), ("train_accuracy", hits)):
                total = np.bincount(self.partition.assignment, values, minlength=self.clients)
                found[name].append(total / self.partition.sizes)
            tested = self.dataset.test_labels
            _, hits = self._answers(row, self._test_images, self._test_labels)
            number = np.maximum(np.bincount(tested, minlength=shares.shape[1]), 1)
            found["test_accuracy"].append(shares @ (np.bincount(tested, hits, minlength=len(number)) / number))
        return {name: np.stack(values) for name, values in found.items()}

    @torch.no_grad()
    def _answers(self, x: Tensor, images: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """The loss of every sample at one point `(d,)`, and whether its class was found, as 0 or 1."""
        parts = [self.network.logits(x[None], some[None])[0] for (some,) in self._chunks(images)]
        logits = torch.cat(parts)
        losses = F.cross_entropy(logits, labels, reduction="none")
        return losses.double().cpu().numpy(), (logits.argmax(1) == labels).double().cpu().numpy()

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
                "gradient_bound": NoConstant(unbounded),
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
        bound = "upper bound from ||grad l|| <= sqrt(2) ||sample||"
        biased = NoConstant("augmentation makes the stochastic gradients biased: their mean is another function's")
        return found | {
            "smoothness": Constant(max(smoothness), "exact", "half the largest eigenvalue of the second moments"),
            "gradient_noise": biased if self.augmentation.operations else Constant(max(noise) ** 0.5, "exact", bound),
            "gradient_divergence_sup": Constant(
                2**0.5 * (max(lengths) + float(np.mean(lengths))),
                "exact",
                bound,
            ),
            "gradient_bound": Constant(2**0.5 * float(np.mean(lengths)), "exact", bound),
        }
