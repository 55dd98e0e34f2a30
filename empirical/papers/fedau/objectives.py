r"""What an algorithm minimizes instead of f when clients take part at different rates.

Averaged over participation, a round of Wang & Ji 2024, Algorithm 1, is a round of full participation on
$h=\sum_n\varphi_nF_n$ with $\varphi_n\propto p_n\,\mathbb E\,\omega^n$. Only $\varphi_n=1/N$ is $f$.

Source: Wang & Ji 2024, Theorem 1 and eq. (B.4.1).
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.papers.fedau import algorithms
from fedbounds.empirical.papers.fedau.accounting import independent_coins
from fedbounds.empirical.participation import Bernoulli, Process
from fedbounds.empirical.problems import BoundedGradient, ImageClassification, Problem, Quadratic
from fedbounds.empirical.problems.problem import client_gradients


class Objective(Protocol):
    """A function of the model with its gradient, its least value and where it is attained."""

    def objective_gradient(self, x: Tensor) -> Tensor:
        """(..., d) -> (..., d)."""
        ...

    def objective_gap(self, x: Tensor) -> Tensor:
        """The excess over the least value, (..., d) -> (...)."""
        ...

    def minimizer(self) -> Tensor:
        """Where the least value is attained, (d,)."""
        ...


def objective_weights(algorithm: Algorithm, participation: Process) -> np.ndarray:
    r"""The weights $\varphi_n$, which sum to one, of the objective that an algorithm minimizes.

    - constant weights: $\omega_np_n/P$ with $P=\sum_n\omega_np_n$;
    - FedAU with cut-off K, in the long run: $1-(1-p_n)^K$, normalized, as $\mathbb E\,\omega^n$ tends to
      $(1-(1-p_n)^K)/p_n$;
    - the mean over the participants: $\mathbb E[\mathbb 1^n/|S|]$, normalized.

    Args:
        algorithm: one of these.
        participation: independent coins, `Bernoulli`, or everyone, `Full`.

    Returns:
        (clients,) weights.

    Raises:
        FedboundsError: another algorithm or process.

    Example:
        >>> from fedbounds.algorithms import AverageAll, FedAU
        >>> objective_weights(AverageAll(0.1, 5), Bernoulli(2, [0.25, 0.75])).tolist()
        [0.25, 0.75]
        >>> objective_weights(FedAU(0.1, 5, cutoff=2), Bernoulli(2, [0.5, 1.0])).round(6).tolist()
        [0.428571, 0.571429]

    Source: Wang & Ji 2024, eq. (B.4.1) and Lemma B.6.1.
    """
    coins = independent_coins(participation)
    if coins is None:
        raise FedboundsError(
            f"what {algorithm.kind} minimizes is known under Bernoulli participation, not {participation.kind}: there, "
            "who takes part depends on the model's past"
        )
    rule = _WEIGHTS.get(type(algorithm))
    if rule is None:
        known = ", ".join(kind.kind for kind in _WEIGHTS)
        raise FedboundsError(f"what {algorithm.kind} minimizes is not known; known: {known}")
    unnormalized = rule(algorithm, coins)
    return unnormalized / unnormalized.sum()


def _constant(algorithm: Any, p: np.ndarray) -> np.ndarray:
    informed: algorithms.ConstantWeights = algorithm.bind_process(Bernoulli(len(p), p))
    return p * informed.omega


def _fedau(algorithm: Any, p: np.ndarray) -> np.ndarray:
    return 1 - (1 - p) ** algorithm.cutoff


def _mean_of_participants(algorithm: Any, p: np.ndarray) -> np.ndarray:
    return Bernoulli(len(p), p, normalize=True).mean(0)


_WEIGHTS: Mapping[type[Algorithm], Callable[[Any, np.ndarray], np.ndarray]] = {
    algorithms.AverageAll: _constant,
    algorithms.FixedWeights: _constant,
    algorithms.KnownParticipation: _constant,
    algorithms.FedAU: _fedau,
    algorithms.AverageParticipating: _mean_of_participants,
}


def weighted_objective(problem: Problem, weights: ArrayLike) -> Objective:
    r"""$h=\sum_n\varphi_nF_n$ as a function of its own.

    Args:
        problem: a `Quadratic`, a `BoundedGradient`, or `ImageClassification`, of which the gap is h itself: an upper
            bound, as no loss is negative.
        weights: $\varphi_n\ge0$, (clients,), summing to one.

    Raises:
        FedboundsError: weights that are not weights, or a problem whose sums have no closed form; asking for the
            minimizer or the gap of a sum that is unbounded below.

    Example:
        >>> problem = Quadratic([1.0], [[0.0], [1.0], [4.0], [10.0]])
        >>> weighted_objective(problem, [0.1, 0.2, 0.3, 0.4]).minimizer().tolist()
        [5.4]

    Source: Wang & Ji 2024, eq. (B.4.1); scaling the $F_n$ as in Appendix A.1.
    """
    phi = np.asarray(weights, dtype=float)
    if phi.shape != (problem.clients,) or not (phi >= 0).all() or abs(phi.sum() - 1) > 1e-9:
        raise FedboundsError(
            f"objective weights of shape {phi.shape} and sum {phi.sum():.12g} must be {problem.clients} numbers >= 0 "
            "that sum to one"
        )
    if isinstance(problem, Quadratic):
        scaled = np.stack([phi[n] * len(phi) * problem.hessian(n).cpu().numpy() for n in range(len(phi))])
        return Quadratic(scaled, problem.centers, 0.0, problem.x0)
    if isinstance(problem, BoundedGradient):
        return _Tilted(problem, torch.from_numpy(phi) @ problem.slopes.cpu())
    if isinstance(problem, ImageClassification):
        return _OfImages(problem, phi)
    raise FedboundsError(f"weighted sums of the clients of {type(problem).__name__} have no closed form here")


class _OfImages:
    """h of a network on images, whose least value is not known, but not negative."""

    def __init__(self, problem: ImageClassification, weights: np.ndarray) -> None:
        self.problem, self.weights = problem, torch.from_numpy(weights).to(problem.device, problem.dtype)

    def objective_gradient(self, x: Tensor) -> Tensor:
        rows = x.to(self.weights).reshape(-1, self.problem.dimension)
        return torch.stack([self.weights @ client_gradients(self.problem, row) for row in rows]).view(x.shape)

    def minimizer(self) -> Tensor:
        raise FedboundsError("where the weighted sum of losses on images is least is not known")

    def objective_gap(self, x: Tensor) -> Tensor:
        """An upper bound of it: h itself."""
        losses = self.problem.client_metrics(x.reshape(-1, self.problem.dimension))["train_loss"]
        return torch.from_numpy(losses @ self.weights.double().cpu().numpy()).view(x.shape[:-1])


class _Tilted:
    r"""$h(x)=\phi(x)+b^\top x$, where $\phi$ has a bounded gradient."""

    def __init__(self, problem: BoundedGradient, tilt: Tensor) -> None:
        self.problem, self.tilt = problem, torch.where(tilt.abs() > 1e-12 * problem.slopes.abs().max(), tilt, 0.0)

    def objective_gradient(self, x: Tensor) -> Tensor:
        return self.problem.objective_gradient(x) + self.tilt

    def minimizer(self) -> Tensor:
        if self.problem.shape == "log-cosh" and bool((self.tilt.abs() < self.problem.scales).all()):
            return torch.atanh(-self.tilt / self.problem.scales)
        if bool(self.tilt.any()):
            raise FedboundsError("the weighted sum of the clients has no minimum: its slope outweighs its bowl")
        return self.problem.minimizer()

    def objective_gap(self, x: Tensor) -> Tensor:
        lowest = self.minimizer()
        return self.problem.objective(x) - self.problem.objective(lowest) + (x - lowest) @ self.tilt


def predicted_bias(algorithm: Algorithm, problem: Problem, participation: Process) -> float:
    r"""The distance $\|x_h-x_*\|$ from the minimizer of f of the point to which an algorithm converges instead.

    Exact for the mean of the models of constant weights on quadratics with one Hessian, whatever I and $\gamma$; for
    others, the limit of small steps.

    Args:
        algorithm, participation: as for `objective_weights`.
        problem: as for `weighted_objective`.

    Returns:
        A distance, in units of x.

    Raises:
        FedboundsError: either is not known.

    Example:
        >>> from fedbounds.algorithms import FedAU
        >>> problem = Quadratic([1.0], [[0.0], [1.0], [4.0], [10.0]])
        >>> rates = Bernoulli(4, [0.05, 0.2, 0.5, 0.9])
        >>> round(predicted_bias(FedAU(0.01, 2, cutoff=5), problem, rates), 4)  # 5.0735 instead of 3.75
        1.3235

    Source: Wang & Ji 2024, Theorem 1.
    """
    everyone = np.full(problem.clients, 1 / problem.clients)
    minimizers = [
        weighted_objective(problem, phi).minimizer() for phi in (objective_weights(algorithm, participation), everyone)
    ]
    return float(torch.linalg.vector_norm(minimizers[0] - minimizers[1]))
