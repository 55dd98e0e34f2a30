r"""Minimax problems on images: a network against an adversary who is the same for all samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.symbols import POSITIVE, Constant, NoConstant
from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.image_problem import ImageProblem, Samples
from fedbounds.empirical.problems.minimax import Minimax, project_onto_ball


class MinimaxImages(ImageProblem, Minimax):
    r"""A network with parameters x and an adversary y, whose objective is a mean over all training samples.

    $$F(x, y) = \frac1N\sum_{j=1}^N\varphi_j(x, y) = \sum_ip_if_i(x, y),\qquad p_i = \frac{m_i}N,\qquad
      f_i(x, y) = \frac1{m_i}\sum_{j\in i}\varphi_j(x, y),$$

    with $m_i$ samples of client i: so every sample counts the same. Every $\varphi_j$ has the term
    $\frac\rho2\|x\|^2$. Minibatches are those of `ImageProblem`.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient.
        ascent_dimension: $d_y$.
        weight_decay: $\rho\ge0$, in units of a loss; the paper has none.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: a partition of other data, a value outside its range, an unknown network.
    """

    constrained = True

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        network: str,
        batch: int,
        ascent_dimension: int,
        weight_decay: float,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        super().__init__(dataset, partition, network, batch, (), weight_decay, dtype, device)
        self.descent_dimension, self.ascent_dimension = self.network.size, ascent_dimension
        self.dimension = self.descent_dimension + ascent_dimension
        samples = len(self._labels)
        self.weights = torch.from_numpy(partition.sizes / samples).to(self.device)
        self._weights = torch.full((samples,), 1 / samples, dtype=dtype, device=self.device)

    @abstractmethod
    def initial_adversary(self) -> Tensor:
        """Where y starts, `(d_y,)`, feasible."""

    @abstractmethod
    def sample_values(self, x: Tensor, y: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        r"""$\varphi_j(x, y)$ of samples at one point: `(d_x,)`, `(d_y,)`, `(B, ...)`, `(B,)` -> `(B,)`."""

    @abstractmethod
    def player_gradients(
        self, x: Tensor, y: Tensor, samples: Samples, *, descent: bool = True, ascent: bool = True
    ) -> tuple[Tensor, Tensor]:
        r"""The gradients of $\sum_jw_j\varphi_j$ in x and in y at b points, `(b, d_x)` and `(b, d_y)`.

        Args:
            x: (b, d_x).
            y: (b, d_y).
            samples: b times B of them, with their $w_j$.
            descent: whether the first is wanted; if not, it may be anything.
            ascent: whether the second is.
        """

    def surrogate(self, weights: Sequence[float] | np.ndarray) -> Self:
        r"""The same clients with other weights: $\sum_iw_if_i$, the objective with these weights.

        Args:
            weights: $w_i\ge0$ with sum 1, (clients,).
        """
        other = copy(self)
        other.weights = torch.as_tensor(np.asarray(weights), dtype=torch.float64, device=self.device)
        each = other.weights.cpu().numpy() / self.partition.sizes
        other._weights = torch.from_numpy(each[self.partition.assignment]).to(self.device, self.dtype)
        return other

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        x = torch.from_numpy(self.network.initial(rng)).to(self.device, self.dtype)
        return self.join(x, self.initial_adversary())

    def sample_gradient(self, x: Tensor, samples: Samples) -> Tensor:
        return self.join(*self.player_gradients(*self.split(x), samples))

    def snapshot_gradient(self, x: Tensor, snapshot: Tensor, clients: Tensor, randomness: Tensor | None) -> Tensor:
        """As of `Minimax`, at the cost of the two blocks that are needed out of four."""

        def compute(places: Tensor, samples: Samples) -> Tensor:
            (x, y), there = self.split(places[:, : self.dimension]), places[:, self.dimension :]
            in_x, _ = self.player_gradients(x, y, samples, ascent=False)
            _, in_y = self.player_gradients(there, y, samples, descent=False)
            return self.join(in_x, in_y)

        return self._stochastic(torch.cat([x, snapshot], -1), randomness, compute).view(x.shape)

    @torch.no_grad()
    def objective(self, x: Tensor) -> Tensor:
        values = []
        for row in x.reshape(-1, self.dimension):
            network, y = self.split(row)
            chunks = self._chunks(self._images, self._labels, self._weights)
            parts = [self.sample_values(network, y, images, labels) @ weights for images, labels, weights in chunks]
            values.append(torch.stack(parts).sum())
        return torch.stack(values).view(x.shape[:-1])

    def constants(self) -> dict[str, Constant | NoConstant]:
        """Why a network on images has hardly any of the constants of the theory; subclasses add what is known of y."""
        kinked = NoConstant("the gradient of a ReLU network is not continuous, so not Lipschitz")
        unbounded = NoConstant("gradients of a network grow without bound with its weights")
        drawn = NoConstant("the starting point is drawn with the seed, and the least value of the envelope is unknown")
        if self.network.name == "linear":
            kinked = unbounded = NoConstant("no bound is worked out for logistic regression with an adversary")
        return {
            "clients": Constant(float(self.clients), "exact"),
            "smoothness": kinked,
            "gradient_noise": unbounded,
            "gradient_noise_growth": unbounded,
            "weighted_heterogeneity": unbounded,
            "heterogeneity_growth": unbounded,
            "descent_gradient_bound": unbounded,
            "initial_gap": drawn,
            "initial_moreau_gap": drawn,
            "initial_dual_gap": drawn,
        }


class Attack(NamedTuple):
    """The result of an attack on a network."""

    perturbation: Tensor  # the one with the largest training loss, `(d_y,)`
    loss: Tensor  # its training loss, `()`
    start: Tensor  # the training loss at the start of the attack, `()`


class RobustImages(MinimaxImages):
    r"""Training against one perturbation y that is added to every image.

    $$\min_x\max_{\|y\|\le r}\frac1N\sum_{j=1}^N\ell(h_x(a_j + y), b_j)+\frac\rho2\|x\|^2$$

    The perturbation is in units of the brightest pixel of the training data (255 in most data sets, 16 in the digits);
    images are not clipped after it is added. It starts at 0.

    The inner maximum is estimated from below by an attack (not specified in the paper): `attack_steps` ascent steps on
    the mean training loss from the run's y, each of length 2.5 r / steps along the gradient and projected onto the
    ball; the point with the largest training loss is its result.

    Metrics: `train_loss`, F(x, y) at the run's y; `test_accuracy`; `robust_test_accuracy`, on test images with the
    perturbation of the attack, an upper estimate of the least accuracy over the ball; `envelope_lower_estimate`, F
    there, a lower estimate of $\Phi(x)$; `ascent_norm_squared`, $\|y\|^2$.

    Args:
        dataset: images and labels.
        partition: which client holds which training sample.
        network: a name, see `Network`.
        batch: samples of a stochastic gradient.
        radius: r > 0, in brightest pixels.
        attack_steps: of the attack, 0 or more; each is a pass over the training data whenever metrics are recorded.
        weight_decay: $\rho\ge0$, in units of a loss; the paper has none.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: a partition of other data, a value outside its range, an unknown network.

    Example:
        >>> from fedbounds.empirical.data.datasets import load_dataset
        >>> from fedbounds.empirical.data.partition import dirichlet_partition
        >>> digits = load_dataset("digits")
        >>> partition = dirichlet_partition(digits.train_labels, 15, np.random.default_rng(0), 0.1)
        >>> problem = RobustImages(digits, partition, "mlp")
        >>> problem.descent_dimension, problem.ascent_dimension
        (2410, 64)

    Source: Sharma et al. 2023, eq. (8) with r = 1 (a sum there) and $\rho=0$.
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        network: str = "cnn-small",
        batch: int = 32,
        *,
        radius: float = 1.0,
        attack_steps: int = 10,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.radius = real("radius", radius, POSITIVE)
        self.attack_steps = check_count("attack_steps", attack_steps, low=0)
        super().__init__(dataset, partition, network, batch, int(np.prod(dataset.image)), weight_decay, dtype, device)
        if not dataset.in_bytes:
            raise FedboundsError(f"data set {dataset.name} has no pixels, on which an adversary could act")
        brightest, deviation = max(1, int(dataset.train_images.max())), dataset.standardisation[1][0].astype(np.float64)
        self._lift = torch.from_numpy(brightest / deviation).to(self.device, dtype)  # pixels to the network's units

    def initial_adversary(self) -> Tensor:
        return torch.zeros(self.ascent_dimension, dtype=self.dtype, device=self.device)

    def project(self, y: Tensor) -> Tensor:
        return project_onto_ball(y, self.radius)

    def shift(self, y: Tensor) -> Tensor:
        """What a perturbation adds to what the network sees: (..., d_y) -> (..., channels, height, width)."""
        return y.unflatten(-1, self.dataset.image) * self._lift

    def sample_values(self, x: Tensor, y: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        found = self.network.backward(
            x[None], (images + self.shift(y))[None], labels[None], losses=True, parameters=False
        ).losses
        assert found is not None
        return found[0] + self.decay(x)

    def player_gradients(
        self, x: Tensor, y: Tensor, samples: Samples, *, descent: bool = True, ascent: bool = True
    ) -> tuple[Tensor, Tensor]:
        images = samples.images + self.shift(y).unsqueeze(1)
        found = self.network.backward(
            x, images, samples.labels, samples.weights, samples.words, parameters=descent, pixels=ascent
        )
        in_x = x if found.parameters is None else self._add_weight_decay(found.parameters, x, samples)
        return in_x, y if found.pixels is None else (found.pixels.sum(1) * self._lift).flatten(1)

    def attack(self, x: Tensor, y: Tensor) -> Attack:
        """The perturbation of the largest training loss that the attack meets.

        Args:
            x: the network, (d_x,).
            y: where the attack starts, (d_y,), feasible.
        """
        value, slope = self._ascent(x, y, slope=self.attack_steps > 0)
        found = Attack(y, value, value)
        for left in reversed(range(self.attack_steps)):
            length = torch.linalg.vector_norm(slope)
            if not length > 0:
                break
            y = self.project(y + 2.5 * self.radius / self.attack_steps * slope / length)
            value, slope = self._ascent(x, y, slope=left > 0)
            if value > found.loss:
                found = found._replace(perturbation=y, loss=value)
        return found

    def _ascent(self, x: Tensor, y: Tensor, slope: bool) -> tuple[Tensor, Tensor]:
        """F(x, y) and, if wanted, its gradient in y."""
        value, total = self.decay(x), torch.zeros_like(y)
        for images, labels, weights in self._chunks(self._images, self._labels, self._weights):
            seen = (images + self.shift(y))[None]
            found = self.network.backward(
                x[None], seen, labels[None], weights[None], losses=True, parameters=False, pixels=slope
            )
            assert found.losses is not None
            value = value + found.losses[0] @ weights
            if found.pixels is not None:
                total = total + (found.pixels[0].sum(0) * self._lift).flatten()
        return value, total

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        rows = []
        for network, y in zip(*self.split(x), strict=True):
            worst = self.attack(network, y)
            _, clean = self._losses_hits(network, self._test_images, self._test_labels)
            _, robust = self._losses_hits(
                network, self._test_images + self.shift(worst.perturbation), self._test_labels
            )
            rows.append(
                {
                    "train_loss": float(worst.start),
                    "test_accuracy": float(clean.mean()),
                    "robust_test_accuracy": float(robust.mean()),
                    "envelope_lower_estimate": float(worst.loss),
                    "ascent_norm_squared": float(y.square().sum()),
                }
            )
        return {name: torch.tensor([row[name] for row in rows], dtype=torch.float64) for name in rows[0]}

    def constants(self) -> dict[str, Constant | NoConstant]:
        return super().constants() | {
            "strong_concavity": NoConstant("the loss is not concave in the perturbation"),
            "best_response_bound": Constant(self.radius**2, "exact", "the squared radius of the ball"),
        }
