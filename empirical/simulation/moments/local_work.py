r"""What I local steps on a quadratic do to a model: one affine map per client, and Gaussian noise of known covariance.

With $B_n=I_d-\gamma A_n$ the update of client n is
$$\Delta_n(x)=D_nx+b_n+\zeta_n,\qquad D_n=B_n^I-I_d,\quad b_n=-D_nc_n,\quad
  \mathrm{Cov}\,\zeta_n=\gamma^2s^2\sum_{j<I}B_n^{2j}.$$

Everything is kept in coordinates in which as much as possible is diagonal: the eigenvectors of a Hessian that all
clients share, or the given ones. Where all Hessians are diagonal there, operators are vectors $(d,)$ and covariances
are variances $(d,)$, for coordinates never mix; otherwise both are matrices $(d, d)$. The two kinds meet only in
`apply`, `sandwich` and `identity`.

Source: Wang & Ji 2022, Algorithm 1 on quadratics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.problems import Quadratic


def apply(operator: np.ndarray, to: np.ndarray) -> np.ndarray:
    """An operator on a vector or on an operator: a product by coordinate, or of matrices."""
    return operator * to if operator.ndim == 1 else operator @ to


def sandwich(operator: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""$MCM^\top$, the covariance after the operator $M$."""
    return operator**2 * covariance if operator.ndim == 1 else operator @ covariance @ operator.T


class LocalWork(NamedTuple):
    r"""The updates of all clients after some local steps, in the coordinates of `Coordinates`."""

    increments: np.ndarray  # $D_n$, (N or 1, d) or (N, d, d); one for all where the Hessian is shared
    shifts: np.ndarray  # $b_n$, (N, d)
    noise: np.ndarray  # the covariance of $\zeta_n$, in the shape of the increments


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A quadratic problem in the coordinates in which its Hessians are as diagonal as can be."""

    problem: Quadratic  # the quadratic
    directions: np.ndarray  # the coordinates' axes, columns of an orthogonal matrix (d, d)
    eigenvalues: np.ndarray  # of the Hessians, (1, d) shared or (N, d)
    # eigenvectors in these coordinates (N, d, d), or None where the Hessians are diagonal in them
    frames: np.ndarray | None
    centers: np.ndarray  # the clients' minimizers, (N, d)
    start: np.ndarray  # the initial model, (d,)

    @staticmethod
    def from_problem(problem: Quadratic) -> Coordinates:
        """The coordinates that suit the problem: O(d^3) for one Hessian, O(N d^3) for different dense ones."""
        hessians, centers, start = (t.cpu().numpy() for t in (problem.hessians, problem.centers, problem.x0))
        directions = np.eye(problem.dimension)
        frames = None
        if problem.diagonal:
            eigenvalues = np.atleast_2d(hessians)
        elif problem.shared:
            values, directions = np.linalg.eigh(hessians)
            eigenvalues = values[None]
        else:
            eigenvalues, frames = np.linalg.eigh(hessians)
        return Coordinates(problem, directions, eigenvalues, frames, centers @ directions, start @ directions)

    @property
    def clients(self) -> int:
        """N."""
        return len(self.centers)

    @cached_property
    def identity(self) -> np.ndarray:
        """The operator that changes nothing: ones (d,), or the unit matrix (d, d)."""
        return np.ones(len(self.start)) if self.frames is None else np.eye(len(self.start))

    def function(self, values: np.ndarray) -> np.ndarray:
        """The operators with these eigenvalues (N or 1, d): as they are, or as matrices (N, d, d)."""
        if self.frames is None:
            return values
        return (self.frames * values[:, None, :]) @ self.frames.transpose(0, 2, 1)

    @cached_property
    def hessians(self) -> np.ndarray:
        """$A_n$: (1, d), (N, d) or (N, d, d)."""
        return self.function(self.eigenvalues)

    @cached_property
    def mean_hessian(self) -> np.ndarray:
        r"""$\bar A=\sum_np_nA_n$, (d,) or (d, d)."""
        return self._mean(self.hessians)

    @cached_property
    def linear(self) -> np.ndarray:
        r"""$A_nc_n$, (N, d): the gradient of client n is $A_nx$ minus this."""
        if self.frames is None:
            return self.eigenvalues * self.centers
        return np.einsum("nij,nj->ni", self.hessians, self.centers)

    def work(self, step_size: float, steps: int, *, frozen: bool = False, noisy: bool = True) -> LocalWork:
        r"""The updates after `steps` local steps."""
        spread = (step_size * self.problem.noise) ** 2 if noisy else 0.0
        if frozen:
            change, squares = -step_size * steps * self.eigenvalues, np.full(self.eigenvalues.shape, float(steps))
        else:
            change, squares = powers(step_size * self.eigenvalues, steps)
        increments = self.function(change)
        if self.frames is None:
            shifts = -increments * self.centers
        else:
            shifts = -np.einsum("nij,nj->ni", increments, self.centers)
        return LocalWork(increments, shifts, self.function(spread * squares))

    def squared_gradient(self, mean: np.ndarray, covariance: np.ndarray) -> float:
        r"""$\mathbb E\|\nabla f(x)\|^2=\|\nabla f(\mathbb Ex)\|^2+\operatorname{tr}\bar A^2\operatorname{Cov}x$."""
        gradient = apply(self.mean_hessian, mean) - self.mean_linear
        return float(gradient @ gradient + np.vdot(self._squared_hessian, covariance))

    def objective_gap(self, mean: np.ndarray, covariance: np.ndarray) -> float:
        r"""$\mathbb Ef(x)-\min f$; infinite where $f$ is unbounded below."""
        if self.minimizer is None:
            return np.inf
        away = mean - self.minimizer
        return float(away @ apply(self.mean_hessian, away) + np.vdot(self.mean_hessian, covariance)) / 2

    @cached_property
    def mean_linear(self) -> np.ndarray:
        r"""$\sum_np_nA_nc_n$, (d,)."""
        return self._mean(self.linear)

    def _mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over clients, with their weights in f; of one value for all, itself."""
        return values[0] if len(values) == 1 else np.average(values, axis=0, weights=self.problem.client_weights)

    @cached_property
    def _squared_hessian(self) -> np.ndarray:
        return apply(self.mean_hessian, self.mean_hessian)

    @cached_property
    def minimizer(self) -> np.ndarray | None:
        """The minimizer of f, (d,); None where f is unbounded below."""
        try:
            return self.problem.minimizer().cpu().numpy() @ self.directions
        except FedboundsError:
            return None


def trace(operator: np.ndarray) -> float:
    """The trace of a matrix, or the sum of variances."""
    return float(operator.sum() if operator.ndim == 1 else np.trace(operator))


def powers(rate: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    r"""$(1-r)^I-1$ and $\sum_{j<I}(1-r)^{2j}$, accurate however small r is."""
    if steps == 0:
        return np.zeros_like(rate), np.zeros_like(rate)
    squared = rate * (rate - 2)  # (1 - r)^2 - 1, without cancellation
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.expm1(steps * np.log1p(squared))  # (1 - r)^(2I) - 1
        sums = np.where(squared == 0, steps, growth / squared)
        magnitude = np.expm1(steps / 2 * np.log1p(squared))
    flips = (rate > 1) & (steps % 2 == 1)
    return np.where(flips, -2 - magnitude, magnitude), sums
