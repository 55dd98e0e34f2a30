r"""Local steps whose points and messages an unbiased operator changes: exact first and second moments on quadratics.

Every client goes on from what the server would make of its update u by then: a masked update is $\hat u=u+\epsilon$
with $\mathbb E[\epsilon\mid u]=0$ and a covariance that is linear in the second moments of u, so that those of every
model obey a recursion of their own. For signed masks on noise $\{-a,a\}$ that needs $|u_i|\le a$; whether it is sure is
bounded along the run, and the label says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.empirical.problems import Quadratic

Label = Literal["exact", "approximate"]
Measured = tuple[float, float, float, float]  # gap, squared distance, squared norm, squared gradient


@dataclass(frozen=True)
class Masking:
    r"""An unbiased masking operator, by the covariance of its error."""

    name: str  # what it is called
    # of the error in each coordinate, from $\mathbb Eu_i^2$, (..., d), and the amplitude
    variance: Callable[[np.ndarray, float], np.ndarray]
    # from the step size of the round's first iteration; None where updates have no bounds
    amplitude: Callable[[float], float] | None = None


def signed_masks(amplitude: Callable[[float], float]) -> Masking:
    """Signed masks on noise {-a, a}; a may follow the step size of the round."""
    return Masking("signed masks", lambda squares, a: a**2 - squares, amplitude)


def sparsifier(keep: float) -> Masking:
    """Every coordinate is kept with this probability and divided by it: q^2 = 1/keep - 1."""
    if not 0 < keep <= 1:
        raise FedboundsError(f"a coordinate is kept with a probability in (0, 1], not {keep}")
    return Masking("sparsifier", lambda squares, _: (1 / keep - 1) * squares)


def norm_scaled_sign() -> Masking:
    """Stochastic signs of the update's own length: q^2 = d - 1, for every update."""
    return Masking("norm-scaled sign", lambda squares, _: squares.sum(axis=-1, keepdims=True) - squares)


@dataclass(frozen=True, eq=False)
class MaskedMoments:
    r"""Exact expectations along T iterations; all arrays begin with the start."""

    label: Label  # "exact"; "approximate" where an update may have left its bounds, so that a mask was biased
    objective_gap: np.ndarray  # $\mathbb EF(\bar w_t)-F^*$, (T+1,)
    squared_distance: np.ndarray  # $\mathbb E\|\bar w_t-w^*\|^2$, (T+1,)
    squared_norm: np.ndarray  # $\mathbb E\|\bar w_t\|^2$, (T+1,)
    gradient_norm_squared: np.ndarray  # $\mathbb E\|\nabla F(\bar w_t)\|^2$, (T+1,)
    masked_drift: np.ndarray  # $\frac1N\sum_k\mathbb E\|\bar w_t-x_k^t\|^2$, (T,)
    synchronization_error: np.ndarray  # $\mathbb E\|\bar w_{t+1}-\bar v_{t+1}\|^2$, (T,)
    gradient_bound: float  # the least G with $\mathbb E\|\nabla F_k(x_k^t,\xi)\|^2\le G^2$ in all iterations
    # what no gradient exceeds, whatever is drawn; infinite where nothing bounds noise or masks
    sure_gradient_bound: float
    largest_share: float  # of its bound that an update has in the root mean square; 0 where there is none


def masked_moments(
    problem: Quadratic,
    masking: Masking,
    steps: Callable[[int], float],
    *,
    iterations: int,
    local_steps: int,
    cohort: int,
    first: int = 0,
    progressive: bool = False,
    largest_noise: float | None = None,
) -> MaskedMoments:
    r"""The moments of T iterations: all N clients run, K of them upload after every S.

    Args:
        problem: a `Quadratic`; its gradient noise has the covariance $s^2I$.
        masking: how updates are masked, afresh in every local step and for the upload.
        steps: the step size of iteration t.
        iterations: T.
        local_steps: S.
        cohort: K, drawn uniformly without replacement.
        first: t of the first iteration.
        progressive: whether the tau-th local step masks with probability tau/S.
        largest_noise: sure bound on a coordinate of the gradient noise; unbounded if not given, unless s = 0.

    Raises:
        FedboundsError: a count outside its domain, more participants than clients, a singular mean Hessian.

    Example:
        >>> problem = Quadratic(hessians=np.ones((2, 1)), centers=[[1.0], [-1.0]], x0=[2.0])
        >>> masks = signed_masks(lambda step: 16 * step)
        >>> run = masked_moments(problem, masks, lambda t: 0.25, iterations=3, local_steps=1, cohort=1)
        >>> run.label, run.objective_gap.tolist()[:3]
        ('exact', [2.0, 9.0, 12.5])
    """
    for name, value in (("iterations", iterations), ("local_steps", local_steps), ("cohort", cohort)):
        check_count(name, value)
    if cohort > problem.clients:
        raise FedboundsError(f"{cohort} of {problem.clients} clients cannot be drawn without replacement")
    run = _Run(problem, masking, cohort, progressive, local_steps, largest_noise)
    sizes = [steps(first + t) for t in range(iterations)]
    start = run.measure(run.m, run.C)
    found = [row for t in range(0, iterations, local_steps) for row in run.round(sizes[t : t + local_steps])]
    gap, distance, norm, gradient = np.array([start, *(measured for measured, _ in found)]).T
    drift, synchronization = np.array([errors for _, errors in found]).T
    return MaskedMoments(
        label="exact" if run.sure else "approximate",
        objective_gap=gap,
        squared_distance=distance,
        squared_norm=norm,
        gradient_norm_squared=gradient,
        masked_drift=drift,
        synchronization_error=synchronization,
        gradient_bound=float(np.sqrt(run.gradient)),
        sure_gradient_bound=run.steepest if masking.amplitude and run.sure else math.inf,
        largest_share=run.share,
    )


class _Run:
    """One round after another; second moments of the start's model w, of the updates u and of both."""

    def __init__(
        self, problem: Quadratic, masking: Masking, cohort: int, progressive: bool, S: int, noise: float | None
    ) -> None:
        self.N, self.d, self.S, self.K = problem.clients, problem.dimension, S, cohort
        self.A = np.stack([problem.hessian(k).cpu().numpy() for k in range(self.N)])
        self.c = problem.centers.cpu().numpy()
        self.noise, self.masking, self.progressive = problem.noise, masking, progressive
        self.mean_A = self.A.mean(axis=0)
        if np.linalg.matrix_rank(self.mean_A) < self.d:
            raise FedboundsError("the mean Hessian is singular: there is no minimizer to measure from")
        self.ws = np.linalg.solve(self.mean_A, np.einsum("kij,kj->i", self.A, self.c) / self.N)
        self.m = problem.x0.cpu().numpy() - self.ws  # everything is measured from the minimizer
        self.c = self.c - self.ws
        self.C = np.outer(self.m, self.m)
        self.reach = np.abs(self.m)  # of w, surely, coordinate by coordinate
        self.largest = 0.0 if self.noise == 0 else np.inf if noise is None else noise
        self.sure, self.share, self.gradient, self.steepest = True, 0.0, 0.0, 0.0

    def measure(self, m: np.ndarray, C: np.ndarray) -> Measured:
        """Gap, squared distance, squared norm and squared gradient of a model with these moments around w*."""
        A, square = self.mean_A, np.trace(C)
        norm = square + 2 * m @ self.ws + self.ws @ self.ws
        return np.sum(A * C) / 2, square, norm, np.sum((A @ A) * C)

    def round(self, steps: list[float]) -> Iterator[tuple[Measured, tuple[float, float]]]:
        """After every iteration of a round, the last of which may be cut short, what is measured, and both errors."""
        A, I, N, noise = self.A, np.eye(self.d), self.N, self.noise**2 * np.eye(self.d)
        size = np.abs(A)
        amplitude = self.masking.amplitude(steps[0]) if self.masking.amplitude else 0.0
        b = self.m - self.c
        bb = self.C - np.einsum("i,kj->kij", self.m, self.c) - np.einsum("ki,j->kij", self.c, self.m)
        bb = bb + np.einsum("ki,kj->kij", self.c, self.c)
        u, ub, uu = np.zeros((N, self.d)), np.zeros_like(A), np.zeros_like(A)
        B = np.zeros_like(A)  # E[u_k | w] = -B_k (w - c_k)
        hull = np.zeros((N, self.d))
        for tau, step in enumerate(steps):
            chance = (tau + 1) / self.S if self.progressive else 1.0
            squares = np.einsum("kii->ki", uu)
            error = chance * np.maximum(self.masking.variance(squares, amplitude), 0)
            together = np.trace(uu.sum(axis=0) + self.pairs(B)[0]) / N**2  # the square of the mean update
            drift = (squares + error).sum(axis=1).mean() - together
            hat = uu + ub + np.swapaxes(ub, 1, 2) + bb + np.einsum("ki,ij->kij", error, I)
            self.gradient = max(self.gradient, float((np.einsum("kij,kjl,kil->k", A, hat, A)).max() + np.trace(noise)))
            M = I - step * A
            turned = step * np.einsum("kij,kjl,klm->kim", M, ub, A)
            uu = (
                np.einsum("kij,kjl,kml->kim", M, uu, M) - turned - np.swapaxes(turned, 1, 2)
                + step**2 * (np.einsum("kij,kjl,klm->kim", A, bb + np.einsum("ki,ij->kij", error, I), A) + noise)
            )  # fmt: skip
            ub = np.einsum("kij,kjl->kil", M, ub) - step * np.einsum("kij,kjl->kil", A, bb)
            u = np.einsum("kij,kj->ki", M, u) - step * np.einsum("kij,kj->ki", A, b)
            B = np.einsum("kij,kjl->kil", M, B) + step * A
            if self.masking.amplitude:
                away = self.reach + np.abs(self.c) + amplitude
                slopes = np.einsum("kij,kj->ki", size, away) + self.largest
                self.steepest = max(self.steepest, float(np.linalg.norm(slopes, axis=1).max()))
                hull = hull + step * slopes
                self.sure = self.sure and bool(hull.max() <= amplitude)
                self.share = max(self.share, float(np.sqrt(np.einsum("kii->ki", uu).max()) / amplitude))
            model, synchronization = self.average(u, uu, B), 0.0
            if tau == self.S - 1:
                at_end = model
                model = self.synchronize(u, uu, B, amplitude)
                synchronization = np.trace(model[1]) - np.trace(at_end[1])
                self.m, self.C = model
                self.reach = self.reach + amplitude
            yield self.measure(*model), (drift, synchronization)

    def pairs(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sum over pairs of different clients of E u_k u_l^T, and the sum over clients of E w u_k^T."""
        BC = np.einsum("kij,jl->kil", B, self.C) - np.einsum("kij,kj,l->kil", B, self.c, self.m)  # of B_k (w - c_k) w^T
        Bm, Bc = B.sum(axis=0), np.einsum("kij,kj->i", B, self.c)
        whole = Bm @ self.C @ Bm.T - np.outer(Bm @ self.m, Bc) - np.outer(Bc, Bm @ self.m) + np.outer(Bc, Bc)
        own = np.einsum("kij,kmj->im", BC, B) - np.einsum("kij,j,km,klm->il", B, self.m, self.c, B)
        own = own + np.einsum("kij,kj,km,klm->il", B, self.c, self.c, B)
        return whole - own, -BC.sum(axis=0).T

    def average(self, u: np.ndarray, uu: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and second moment of w plus the mean of all updates."""
        different, with_w = self.pairs(B)
        mean_w = with_w / self.N
        second = self.C + mean_w + mean_w.T + (uu.sum(axis=0) + different) / self.N**2
        return self.m + u.mean(axis=0), second

    def synchronize(
        self, u: np.ndarray, uu: np.ndarray, B: np.ndarray, amplitude: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and second moment of w plus the mean of a cohort's masked updates."""
        N, K = self.N, self.K
        error = np.maximum(self.masking.variance(np.einsum("kii->ki", uu), amplitude), 0)
        different, with_w = self.pairs(B)
        mean_w = with_w / N
        alone = uu.sum(axis=0) + np.diag(error.sum(axis=0))
        both = (K - 1) / (N - 1) * different if N > 1 else 0 * different
        return self.m + u.mean(axis=0), self.C + mean_w + mean_w.T + (alone + both) / (K * N)
