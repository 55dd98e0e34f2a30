r"""Fair classification: the classes are weighed by an adversary who prefers those that are classified worst."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_flag
from fedbounds.bounds.theory.symbols import POSITIVE, Constant, NoConstant
from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.image_problem import Samples
from fedbounds.empirical.problems.minimax import ExactEnvelope, project_onto_simplex
from fedbounds.empirical.problems.minimax_images import MinimaxImages
from fedbounds.empirical.problems.problem import LowerBound


class FairImages(MinimaxImages, ExactEnvelope):
    r"""Training for the classes with the largest losses.

    $$\min_x\max_{y\in\Delta_C}\sum_{c=1}^Cy_cF_c(x) - \frac\lambda2\|y\|^2+\frac\rho2\|x\|^2,$$

    with $F_c$ the mean loss over the $N_c$ training samples of class c. It is the mean over all samples of
    $\varphi_j(x, y) = \frac N{N_{b_j}}y_{b_j}\ell(h_x(a_j), b_j) - \frac\lambda2\|y\|^2$, and client i has weight
    $m_i/N$. The best response is the projection of $F(x)/\lambda$ onto the simplex, so the envelope, its gradient and
    the dual gap are exact. y starts at 1/C in each coordinate.

    Metrics: `envelope` $\Phi(x)$; `dual_gap`; `test_accuracy`; `worst_class_test_accuracy`; on demand
    `envelope_gradient_norm_squared`, $\|\nabla\Phi(x)\|^2$.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient.
        regularization: $\lambda > 0$, in units of a loss; the paper does not give its own.
        gradient_norm: whether `metrics` reports the gradient of the envelope, which costs one pass over the data.
        weight_decay: $\rho\ge0$, in units of a loss; the paper has none.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: a partition of other data, a value outside its range, an unknown network, a class without
            training samples.

    Example:
        >>> from fedbounds.empirical.data.datasets import load_dataset
        >>> from fedbounds.empirical.data.partition import dirichlet_partition
        >>> digits = load_dataset("digits")
        >>> partition = dirichlet_partition(digits.train_labels, 15, np.random.default_rng(0), 0.1)
        >>> problem = FairImages(digits, partition, "mlp")
        >>> z = problem.initial_point(np.random.default_rng(0))
        >>> response = problem.best_response(problem.split(z)[0])
        >>> round(float(response.sum()), 6), bool(problem.dual_gap(z) > 0)
        (1.0, True)

    Source: Sharma et al. 2023, eq. (9).
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        network: str = "cnn-small",
        batch: int = 32,
        *,
        regularization: float = 0.1,
        gradient_norm: bool = False,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.regularization = real("regularization", regularization, POSITIVE)
        self.gradient_norm = check_flag("gradient_norm", gradient_norm)
        super().__init__(dataset, partition, network, batch, dataset.classes, weight_decay, dtype, device)
        alike = (
            "with all classes weighed alike the objective is their mean loss less a constant, and no loss is negative"
        )
        self.lower_bound = LowerBound("envelope", -self.regularization / (2 * dataset.classes), alike)
        self._class_sizes = np.bincount(dataset.train_labels, minlength=dataset.classes)
        if not self._class_sizes.all():
            absent = int(self._class_sizes.argmin())
            raise FedboundsError(f"class {absent} of {dataset.name} has no training sample, so no mean loss")
        self._rarity = torch.from_numpy(len(dataset.train_labels) / self._class_sizes).to(self.device, dtype)

    def initial_adversary(self) -> Tensor:
        classes = self.ascent_dimension
        return torch.full((classes,), 1 / classes, dtype=self.dtype, device=self.device)

    def project(self, y: Tensor) -> Tensor:
        return project_onto_simplex(y)

    def sample_values(self, x: Tensor, y: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        found = self.network.backward(x[None], images[None], labels[None], losses=True, parameters=False).losses
        assert found is not None
        return (self._rarity * y)[labels] * found[0] - self.regularization / 2 * y.square().sum() + self.decay(x)

    def player_gradients(
        self, x: Tensor, y: Tensor, samples: Samples, *, descent: bool = True, ascent: bool = True
    ) -> tuple[Tensor, Tensor]:
        labels = samples.labels
        even = x.new_full(labels.shape, 1 / labels.shape[1])
        rare = (even if samples.weights is None else samples.weights) * self._rarity[labels]
        found = self.network.backward(
            x, samples.images, labels, rare * y.gather(1, labels), samples.words, losses=ascent, parameters=descent
        )
        in_x = x if found.parameters is None else self._add_weight_decay(found.parameters, x, samples)
        if found.losses is None:
            return in_x, y
        total = 1.0 if samples.weights is None else samples.weights.sum(1, keepdim=True)
        in_y = torch.zeros_like(y).scatter_add(1, labels, rare * found.losses)
        return in_x, in_y - self.regularization * total * y

    def class_losses(self, x: Tensor) -> Tensor:
        """$F_c(x)$, the mean loss over the training samples of each class, weighed as the clients are:
        (..., d_x) -> (..., C), in float64."""
        rows, labels = [], self.dataset.train_labels
        counts = self._counts[self.partition.assignment]
        for row in x.reshape(-1, self.descent_dimension):
            losses, _ = self._losses_hits(row, self._images, self._labels)
            rows.append(np.bincount(labels, losses * counts, minlength=self.ascent_dimension) / self._class_sizes)
        return torch.from_numpy(np.stack(rows)).to(x.device).view(*x.shape[:-1], self.ascent_dimension)

    @property
    def _counts(self) -> np.ndarray:
        """As how many samples one of each client counts, (clients,): 1, but of a surrogate."""
        return self.weights.cpu().numpy() / (self.partition.sizes / len(self.dataset.train_labels))

    def best_response(self, x: Tensor) -> Tensor:
        return project_onto_simplex(self.class_losses(x) / self.regularization).to(x.dtype)

    def envelope(self, x: Tensor) -> Tensor:
        return self._maximum(self.class_losses(x)) + self.decay(x.double())

    def envelope_gradient(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.descent_dimension)
        responses, out = self.best_response(rows), torch.zeros_like(rows)
        for row, y, total in zip(rows.split(1), responses.split(1), out, strict=True):
            for images, labels, weights in self._chunks(self._images, self._labels, self._weights):
                samples = Samples(images[None], labels[None], weights[None])
                total += self.player_gradients(row, y, samples, ascent=False)[0][0]
        return out.view(x.shape)

    def dual_gap(self, z: Tensor) -> Tensor:
        x, y = self.split(z)
        losses = self.class_losses(x)
        return self._maximum(losses) - self._payoff(losses, y)

    def _maximum(self, losses: Tensor) -> Tensor:
        """The envelope, from the mean losses of the classes."""
        return self._payoff(losses, project_onto_simplex(losses / self.regularization))

    def _payoff(self, losses: Tensor, y: Tensor) -> Tensor:
        """F, from the mean losses of the classes."""
        return (losses * y).sum(-1) - self.regularization / 2 * y.square().sum(-1)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        networks, y = self.split(x)
        losses = self.class_losses(networks)
        envelope = self._maximum(losses)
        truth = self.dataset.test_labels
        number = np.bincount(truth, minlength=self.ascent_dimension)
        accuracies = []
        for network in networks:
            _, hits = self._losses_hits(network, self._test_images, self._test_labels)
            within = np.bincount(truth, hits, minlength=len(number))[number > 0] / number[number > 0]
            accuracies.append([hits.mean(), within.min()])
        test, worst = torch.tensor(accuracies, dtype=torch.float64).unbind(1)
        metrics = {
            "envelope": envelope + self.decay(networks.double()),
            "dual_gap": envelope - self._payoff(losses, y),
            "test_accuracy": test,
            "worst_class_test_accuracy": worst,
        }
        if self.gradient_norm:
            metrics["envelope_gradient_norm_squared"] = self.envelope_gradient(networks).square().sum(-1)
        return metrics

    def constants(self) -> dict[str, Constant | NoConstant]:
        return super().constants() | {
            "strong_concavity": Constant(self.regularization, "exact", "every f_i(x, .) is a quadratic in y"),
            "best_response_bound": Constant(1.0, "exact", "the corners of the simplex"),
        }
