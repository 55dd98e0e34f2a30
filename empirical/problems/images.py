"""Image classification: the mean cross entropy of a network over clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_flag
from fedbounds.bounds.participation.constants import check_client_weights
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition, class_counts
from fedbounds.empirical.problems.image_problem import ImageProblem, Samples
from fedbounds.empirical.problems.networks import NetworkSteps
from fedbounds.empirical.problems.problem import LowerBound
from fedbounds.empirical.problems.softmax import SoftmaxRegression

SAMPLE_SLOPE = "|grad l| <= sqrt(2) |sample|"
_AT_ONCE = 2**18  # numbers in the images of the local steps that are gathered at once


def f1_score(hits: np.ndarray, labels: np.ndarray) -> float:
    """The harmonic mean of precision and recall of class 1, zero if nothing of it was found."""
    found = float(hits @ (labels == 1))
    return 2 * found / (2 * found + float((1 - hits).sum())) if found else 0.0


class ImageClassification(ImageProblem):
    r"""Cross entropy of a network on images, $F_n$ the mean over the samples of client n.

    $$f(x) = \sum_{n=1}^N p_nF_n(x),\qquad F_n(x) = \frac1{m_n}\sum_{j=1}^{m_n} \ell(x; \xi_{n,j}),$$

    with equal weights $p_n=\frac1N$, whatever the numbers of samples $m_n$ (Wang & Ji 2022, eq. (1)), unless
    `client_weights` gives others. With weight decay $\rho$ every $\ell$ has the term $\frac\rho2\|x\|^2$. The images
    are standardised per channel. A stochastic gradient averages over `batch` samples of the client, drawn without
    replacement; a client with at most `batch` samples takes all of them.

    Dropout, augmentation and the batch statistics of batch normalization change the stochastic gradients only, which
    are then unbiased for another function; `objective`, `gradient` and the metrics do not use them.

    Metrics: `train_loss`, f; `train_accuracy`, weighted as f; `test_loss` (without decay), `test_accuracy`, over the
    test samples, if there are any; for two classes `test_f1`, of class 1; on demand `gradient_norm_squared`,
    $\|\nabla f\|^2$.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient.
        augmentation: operations on the samples of stochastic gradients, in this order; see `Augmentation`.
        gradient_norm: whether `metrics` reports the squared gradient norm, which costs one pass over the data.
        client_weights: $p_n$ of f, "samples" for $m_n/\sum_im_i$, or one positive number for each client.
        weight_decay: $\rho\ge0$, in units of a loss; the papers have none.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: a partition of other data, a value outside its range, an unknown network or operation.

    Example:
        >>> from fedbounds.empirical.data.datasets import load_dataset
        >>> from fedbounds.empirical.data.partition import majority_class_partition
        >>> digits = load_dataset("digits")
        >>> partition = majority_class_partition(digits.train_labels, 20, np.random.default_rng(0))
        >>> problem = ImageClassification(digits, partition, "mlp")
        >>> problem.dimension, problem.clients
        (2410, 20)
    """

    lower_bound = LowerBound("train_loss", 0.0, "cross entropy is not negative")
    keeps_statistics = True

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        network: str = "cnn",
        batch: int = 16,
        *,
        augmentation: Sequence[str] = (),
        gradient_norm: bool = False,
        client_weights: Any = None,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(dataset, partition, network, batch, augmentation, weight_decay, dtype, device)
        self.gradient_norm = check_flag("gradient_norm", gradient_norm)
        self.dimension, self.fuses_steps = self.network.size, self.network.dense
        own, sizes = partition.assignment, partition.sizes
        self.client_weights = p = check_client_weights(client_weights, self.clients, sizes)
        self._shares = 1.0 / (self.clients * sizes[own]) if p is None else p[own] / sizes[own]
        self._weights = torch.from_numpy(self._shares).to(self.device, dtype)

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(self.network.initial(rng)).to(self.device, self.dtype)

    def fuse_steps(self, x: Tensor, clients: Tensor, drawn: Tensor, sizes: Tensor) -> Tensor:
        if not self.fuses_steps:
            return super().fuse_steps(x, clients, drawn, sizes)
        blocks = self._blocks(drawn.flatten(1, 2), sizes.reshape(-1, 1))
        kept = 1 - self.weight_decay * sizes.reshape(-1, 1, 1) if self.weight_decay else None
        return self.network.fuse_steps(x.reshape(-1, self.dimension), blocks, kept).view(x.shape)

    def _blocks(self, drawn: Tensor, sizes: Tensor) -> Iterator[NetworkSteps]:
        """The samples of local steps `(steps, pairs, ...)`, no more of them at once than a processor's cache holds."""
        for some in drawn.split(max(1, _AT_ONCE // (drawn[0].numel() * self._images[0].numel()))):
            shape = some.shape[:2]
            indices, words = self._split_draw(some.flatten(0, 1))
            images, labels, weights, *_ = self._samples(indices, self._padded, words, training=True)
            each = sizes / self.batch if weights is None else weights.unflatten(0, shape) * sizes
            yield NetworkSteps(images.unflatten(0, shape), labels.unflatten(0, shape), each.expand(*shape, -1))

    def sample_gradient(self, x: Tensor, samples: Samples) -> Tensor:
        return self._add_weight_decay(self.network.gradient(x, *samples), x, samples)

    def objective(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.dimension)
        values = [self._evaluate(row, self._images, self._labels, self._shares)[0] for row in rows]
        return torch.tensor(values, dtype=torch.float64).view(x.shape[:-1]) + self.decay(x).double().cpu()

    def local_loss(self, x: Tensor, client: int) -> Tensor:
        if not self.network.smooth:
            raise FedboundsError(
                f"network {self.network.name!r} has kinks (ReLU, maxima), so that its Hessian misses how its gradient "
                "jumps: compare gradients at pairs of points, or take a smooth network such as cnn-smooth"
            )
        own = torch.from_numpy(self.partition.samples[client]).to(self.device)
        logits = self.network.logits(x[None], self._images[own][None])[0]
        return F.cross_entropy(logits, self._labels[own]) + self.decay(x)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        norms = {"gradient_norm_squared": self.objective_gradient(x).square().sum(-1)} if self.gradient_norm else {}
        return self._quality_metrics(x) | norms

    def metrics_and_products(self, x: Tensor) -> dict[str, Tensor]:
        if not self.gradient_norm or self.clients**2 > self.dimension:  # they would outweigh the models
            return self.metrics(x)
        names = torch.arange(self.clients, device=self.device)[None]
        each = [self.gradient(row.expand(1, self.clients, -1), names)[0].double() for row in x]
        return self._quality_metrics(x) | {
            "gradient_norm_squared": torch.stack([self.client_mean(own).square().sum() for own in each]),
            "gradient_products": torch.stack([own @ own.T for own in each]),
        }

    def _quality_metrics(self, x: Tensor) -> dict[str, Tensor]:
        """Losses and accuracies, and with two classes the F1 score."""
        samples = len(self._test_labels)
        names = ["train_loss", "train_accuracy", *(["test_loss", "test_accuracy"] if samples else [])]
        found: list[list[float]] = []
        for row in x:
            trained = self._losses_hits(row, self._images, self._labels)
            found.append([float(a @ self._shares) for a in trained])
            found[-1][0] += float(self.decay(row))
            if samples:
                tested = self._losses_hits(row, self._test_images, self._test_labels)
                found[-1] += [float(a @ np.full(samples, 1.0 / samples)) for a in tested]
                if self.dataset.classes == 2:
                    found[-1].append(f1_score(tested[1], self.dataset.test_labels))
        if samples and self.dataset.classes == 2:
            names.append("test_f1")
        return dict(zip(names, torch.tensor(found, dtype=torch.float64).T, strict=True))

    def client_metrics(self, x: Tensor) -> dict[str, np.ndarray]:
        """Every client's loss and accuracies at the models `x` (seeds, d): name -> (seeds, clients).

        `train_loss` and `train_accuracy` are over the client's own samples. The test data belong to no client:
        `test_accuracy` weighs the accuracy in each class with the share of the class in the client's training samples.
        """
        shares = class_counts(self.partition.assignment, self.dataset.train_labels, self.clients)
        shares = shares / self.partition.sizes[:, None]
        tested = self.dataset.test_labels
        names = ("train_loss", "train_accuracy", *(("test_accuracy",) if len(tested) else ()))
        found: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for row in x:
            losses, hits = self._losses_hits(row, self._images, self._labels)
            for name, values in (("train_loss", losses), ("train_accuracy", hits)):
                total = np.bincount(self.partition.assignment, values, minlength=self.clients)
                decay = float(self.decay(row)) if name == "train_loss" else 0.0
                found[name].append(total / self.partition.sizes + decay)
            if not len(tested):
                continue
            _, hits = self._losses_hits(row, self._test_images, self._test_labels)
            number = np.maximum(np.bincount(tested, minlength=shares.shape[1]), 1)
            each = np.bincount(tested, hits, minlength=len(number)) / number
            found["test_accuracy"].append(shares @ each[: shares.shape[1]])  # without classes that nobody holds
        return {name: np.stack(values) for name, values in found.items()}

    def _evaluate(self, x: Tensor, images: Tensor, labels: Tensor, weights: np.ndarray) -> tuple[float, float]:
        """The weighted loss and the weighted share of correct answers at one point `(d,)`, summed in float64."""
        losses, hits = self._losses_hits(x, images, labels)
        return float(losses @ weights), float(hits @ weights)

    def constants(self) -> dict[str, Constant | NoConstant]:
        """What is known for every x: nothing for other networks than `linear`, of which see `SoftmaxRegression`.

        The initial gap depends on the starting point: of a run it is at most f(x0), see `lower_bound`.
        """
        found: dict[str, Constant | NoConstant] = {
            "clients": Constant(float(self.clients), "exact"),
            "strong_convexity": NoConstant(
                "f is not strongly convex: adding a constant to all outputs changes nothing"
            ),
            "initial_gap": NoConstant(
                "min f is unknown; of a run the gap is at most f(x0), as cross entropy is not negative"
            ),
        }
        if self.network.name != "linear":
            unbounded = "gradients of a network grow without bound with its weights"
            kinked = "the gradient of a ReLU network is not continuous, so not Lipschitz"
            return found | {
                "smoothness": NoConstant(unbounded if self.network.smooth else kinked),
                "gradient_noise": NoConstant(unbounded),
                "gradient_divergence_sup": NoConstant(unbounded),
                "gradient_bound": NoConstant(unbounded),
            }
        known, rho = self.softmax, self.weight_decay
        steepest = f"upper bound for every sample, from {SAMPLE_SLOPE}"
        biased = NoConstant("augmentation makes the stochastic gradients biased: their mean is another function's")
        largest = "the largest eigenvalue of the clients' second moments"
        slope = f"upper bound, from {SAMPLE_SLOPE} or {largest}"
        noise = Constant(float(known.noise(self.batch).max()), "exact", f"upper bound, from {SAMPLE_SLOPE}")
        curved = f"half {largest}{', and the decay' if rho else ''}"
        found |= {
            "smoothness": Constant(float(known.smoothness.max()) + rho, "exact", curved),
            "gradient_noise": biased if self.augmentation.operations else noise,
            "gradient_divergence_sup": Constant(known.divergence, "exact", slope),
        }
        if rho:
            steep = NoConstant("gradients of a function with weight decay grow without bound with its parameters")
            convex = Constant(rho, "exact", "the weight decay: cross entropy is convex")
            return found | {"strong_convexity": convex, "gradient_bound": steep}
        return found | {
            "gradient_bound": Constant(known.gradient, "exact", slope),
            "client_gradient_bound": Constant(float(known.gradients.max()), "exact", slope),
            "stochastic_gradient_bound": biased
            if self.augmentation.operations
            else Constant(known.sample_gradient, "exact", steepest),
        }

    @cached_property
    def softmax(self) -> SoftmaxRegression:
        """What holds for every x of `linear`, of its cross entropy without weight decay.

        Raises:
            FedboundsError: another network.
        """
        if self.network.name != "linear":
            raise FedboundsError(f"network {self.network.name!r} is no logistic regression: nothing holds for every x")
        own = [self._images[torch.from_numpy(samples)] for samples in self.partition.samples]
        return SoftmaxRegression([samples.flatten(1).double().cpu() for samples in own], self.client_weights)
