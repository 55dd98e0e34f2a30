r"""Generalized FedAvg on instances whose constants are exact, measured without sampling.

Every client has $F_n(x)=h(x)+b_n^\top x$ with $\sum_nb_n=0$ and
$h(x)=\sum_j[\frac{a_j}2x_j^2+\kappa_j(1-\cos x_j)]$, $a,\kappa\ge0$: $f=h$ is least at 0 with $f^*=0$,
$L=\max_j(a_j+\kappa_j)$, and $\nabla F_n-\nabla f=b_n$ at every x. With $\kappa=0$ these are the quadratics with equal
Hessians (diagonal without loss of generality), and all expectations follow from means and variances; with ripples the
noise must be zero. The recursions are written from Wang & Ji 2022, Algorithm 1, and share nothing with
`fedbounds.empirical.simulation.moments`, against which they are tested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np

from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.population import perturb, shake
from fedbounds.empirical.falsification.instances.ranges import Range, cancels, nonnegative, reals, symmetric
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import Course, ParticipatingRuns

ROUND_OFF = 1e-9


@dataclass(frozen=True, eq=False)
class FedAvgInstances(ParticipatingRuns):
    """B instances of generalized FedAvg with the same numbers of clients, rounds and steps."""

    curvature: Annotated[np.ndarray, nonnegative("d")]  # $a\ge0$, (B, d)
    ripple: Annotated[np.ndarray, nonnegative("d")]  # $\kappa\ge0$, (B, d)
    slopes: Annotated[np.ndarray, reals("N d")]  # $b_n$, zero mean over clients, (B, N, d)
    start: Annotated[np.ndarray, reals("d")]  # $x_0$, (B, d)
    noise: Annotated[np.ndarray, nonnegative("d")]  # standard deviation per coordinate, (B, d)
    # covariance of the clients' noise, at most 1 on the diagonal; diagonal if independent, (B, N, N)
    correlation: Annotated[np.ndarray, Range(Domain(-1, 1), "N N")]

    def rules(self) -> dict[str, np.ndarray]:
        quiet = ~self.ripple.any(axis=1) | ~self.noise.any(axis=1)
        return super().rules() | {
            "the slopes sum to zero": cancels(self.slopes),
            "there is no noise beside ripples": quiet,
            "some curvature is not zero": self.smoothness > 0,
            "the correlation is symmetric": symmetric(self.correlation),
        }

    @cached_property
    def smoothness(self) -> np.ndarray:
        return (self.curvature + self.ripple).max(axis=1)

    @cached_property
    def initial_gap(self) -> np.ndarray:
        return (self.curvature / 2 * self.start**2 + 2 * self.ripple * np.sin(self.start / 2) ** 2).sum(axis=1)

    @cached_property
    def sigma(self) -> np.ndarray:
        return np.sqrt((self.noise**2).sum(axis=1) * np.einsum("bnn->bn", self.correlation).max(axis=1))

    @cached_property
    def noise_weight(self) -> np.ndarray:
        r"""$q_t^\top\Gamma q_t$, the share of the noise that is left in the mean; $S_t$ if independent, (B, T)."""
        return np.einsum("btn,bnm,btm->bt", self.weights, self.correlation, self.weights)

    @cached_property
    def pulls(self) -> np.ndarray:
        r"""$\sum_nq_t^nb_n$, (B, T, d)."""
        return self.pulled(self.weights)

    def pulled(self, weights: np.ndarray) -> np.ndarray:
        r"""$\sum_nw^nb_n$ for weights (B, ..., N), where rounding of offsets that cancel is zero, (B, ..., d)."""
        pull = weights @ self.slopes
        return np.where(np.abs(pull) < 1e-14 * np.abs(self.slopes).max(axis=(1, 2), keepdims=True), 0.0, pull)

    @cached_property
    def cancellation(self) -> np.ndarray:
        """By how much offsets exceed the pull that is left of them in a round, or the gradient of f, (B, T)."""
        most = np.sqrt((self.slopes**2).sum(axis=2).max(axis=1))[:, None, None]
        left = np.sqrt(np.stack([self.course.gradient[:, :-1], (self.pulls**2).sum(axis=2)], axis=2))
        return np.where(left > 0, np.maximum(most / np.where(left > 0, left, 1), 1), 1).max(axis=2)

    @cached_property
    def cohort(self) -> np.ndarray:
        """The left-hand side of (6) per coordinate, (B, T, d)."""
        apart = self.slopes[:, None] - self.pulls[:, :, None]
        return np.einsum("btn,btnd->btd", self.weights, apart**2)

    @cached_property
    def cohort_divergence(self) -> np.ndarray:
        return self.cohort.sum(axis=2)

    @cached_property
    def participation_divergence(self) -> np.ndarray:
        return (self.pulls**2).sum(axis=2)

    @cached_property
    def divergence_of_participants(self) -> np.ndarray:
        return np.einsum("btn,bn->bt", self.weights, self.divergences)

    @cached_property
    def divergences(self) -> np.ndarray:
        return (self.slopes**2).sum(axis=2)

    @cached_property
    def window(self) -> np.ndarray:
        return (self.pulled(self.window_weights) ** 2).sum(axis=2)

    @cached_property
    def course(self) -> FollowedCourse:
        """The exact course: by means and variances, or step by step where there are ripples."""
        if not self.ripple.any():
            return quadratic_course(self)
        return rippled_course(self)

    @property
    def smooth(self) -> np.ndarray:
        """Whether the curvatures are those of a convex function with ripples, (B,)."""
        return (self.curvature.min(axis=1) >= 0) & (self.ripple.min(axis=1) >= 0) & (self.smoothness > 0)

    @property
    def centered(self) -> np.ndarray:
        """Whether the slopes have mean zero, (B,)."""
        return np.abs(self.slopes.mean(axis=1)).max(axis=1) <= ROUND_OFF * (
            1e-300 + np.abs(self.slopes).max(axis=(1, 2))
        )

    @property
    def unbiased(self) -> np.ndarray:
        """A covariance of at most the declared variance; noise is drawn anew in every step, so it has no memory."""
        return (np.linalg.eigvalsh(self.correlation.astype(float)).min(axis=1) > -ROUND_OFF) & (
            np.diagonal(self.correlation, axis1=1, axis2=2).max(axis=1) <= 1 + ROUND_OFF
        )

    @property
    def independent(self) -> np.ndarray:
        """Whether no two clients' noise is correlated, (B,)."""
        return np.all(self.correlation * (1 - np.eye(self.clients)) == 0, axis=(1, 2))

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other curvatures, slopes, start, noise, weights and step sizes; the step sizes stay within their caps."""
        slopes, weights = shake(self.slopes, rng), self.move_weights(rng)
        off = 1 - np.eye(self.clients)
        diagonal = self.correlation * np.eye(self.clients)
        shared = np.clip(perturb(self.correlation * off, rng).max(axis=(1, 2)), 0, 1)[:, None, None]
        keeps = np.any(self.correlation * off, axis=(1, 2), keepdims=True)
        moved = replace(
            self,
            **self.neighbors(rng, curvature=perturb, ripple=perturb),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            **self.neighbors(rng, start=shake, noise=perturb),
            weights=weights,
            correlation=np.where(keeps, diagonal + shared * off, self.correlation),
        )
        return moved.with_step_shares(*self.move_shares(rng))


class QuadraticMoments(NamedTuple):
    """Means and variances on quadratics, coordinate by coordinate, in the symbols of `quadratic_course`."""

    m: np.ndarray  # m, C: of $x_{t_0}$ in every round, (B, T, d)
    C: np.ndarray
    zeta: np.ndarray  # zeta, psi, rest: of $\bar y_{t,i}-x_{t_0}$, with rest $=\mathrm{Var}\,r$, (B, T, I+1, d)
    psi: np.ndarray
    rest: np.ndarray
    mean_zeta: np.ndarray  # mean_zeta, mean_psi: their means over the window's local steps, (B, K, d)
    mean_psi: np.ndarray
    mean_rest: np.ndarray  # variance of the mean of r over the window's local steps, (B, K, d)
    mean_cross: np.ndarray  # covariance of that mean with the mean noise z, (B, K, d)
    mean_noise: np.ndarray  # variance of z, (B, K, d)


class Path(NamedTuple):
    """The iterates of a noise-free run."""

    anchor: np.ndarray  # $x_{t_0}$ in every round, (B, T, d)
    moved: np.ndarray  # $x_t-x_{t_0}$, (B, T, d)
    change: np.ndarray  # $y^n_{t,i}-x_t$, (B, T, I+1, N, d)


@dataclass(frozen=True)
class FollowedCourse(Course):
    """Of runs whose models are known, not only what is measured of them; decreases are no differences."""

    behind: QuadraticMoments | Path  # what the models are distributed as


def quadratic_course(z: FedAvgInstances) -> FollowedCourse:
    r"""Means and variances, coordinate by coordinate.

    With $B=1-\gamma a$, from $x_{t_0}$ of mean m and variance C the mean model is
    $\bar y=x_{t_0}+\zeta+\psi(x_{t_0}-m)+r$: $\zeta\leftarrow B\zeta-\gamma(am+b^q_t)$,
    $\psi\leftarrow B\psi-\gamma a$, and $r\leftarrow Br-\gamma\xi$ with $\mathrm{Var}\,\xi=s^2q_t^\top\Gamma q_t$.
    A window's sums of $\zeta$, $\psi$, r and of the noise are kept beside.
    """
    B, T, I, P, d = len(z), z.rounds, z.local_steps, z.interval, z.curvature.shape[1]
    K, IP = T // P, I * P
    a, gamma, eta = z.curvature, z.gamma[:, None], z.eta[:, None]
    keep, noise, pulls, left = 1 - gamma * a, z.noise**2, z.pulls, z.noise_weight
    powers = keep[:, None, :] ** np.arange(I)[:, None]
    ratio = np.concatenate([np.zeros((B, 1, d)), np.cumsum(powers, axis=1)], axis=1)
    squares = np.concatenate([np.zeros((B, 1, d)), np.cumsum(powers**2, axis=1)], axis=1)
    apart = np.einsum("btn,bnn->bt", z.weights, z.correlation) - left
    spread = np.einsum("bid,btd->bti", ratio**2, z.cohort) + np.einsum("bid,bd,bt->bti", squares, noise, apart)

    digits = z.start.dtype
    path, ends = np.empty((3, B, T, I + 1, d), digits), np.empty((5, B, K, d), digits)
    law = QuadraticMoments(*np.empty((2, B, T, d), digits), *path, *ends)
    fresh = noise * left.T[:, :, None]
    pushes = np.empty(
        (T, 5, B, d), digits
    )  # on zeta, psi, Var r, Cov(r, noise) and Var noise, in every local step of a round
    pushes[:, 1], pushes[:, 2], pushes[:, 3], pushes[:, 4] = -gamma * a, gamma**2 * fresh, -gamma * fresh, fresh
    keeps, none = np.stack([keep, keep, keep**2, keep, np.ones_like(a)]), np.zeros((5, B, d))
    m, C, state = z.start, none[0], none
    for t in range(T):
        if t % P == 0:
            law.m[:, t : t + P], law.C[:, t : t + P] = m[:, None], C[:, None]
            pushes[t : t + P, 0] = (-gamma[:, None] * ((a * m)[:, None] + pulls[:, t : t + P])).swapaxes(0, 1)
            state, sums = none, none
            rs = rs_r = none[0]  # Var of the sum of r, and its covariance with r
        for i in range(I):
            path[:, :, t, i] = state[:3]
            sums, rs, rs_r = sums + state, rs + 2 * rs_r + state[2], keep * (rs_r + state[2])
            state = keeps * state + pushes[t]
        path[:, :, t, I] = state[:3]
        if (t + 1) % P == 0:
            k = t // P
            ends[:2, :, k], ends[2, :, k], ends[3, :, k], ends[4, :, k] = sums[:2], rs, sums[3], state[4]
            m, C = m + eta * state[0], (1 + eta * state[1]) ** 2 * C + eta**2 * state[2]
    ends[:2] /= IP
    ends[2:] /= IP**2
    last, last_C = (m, C) if T % P == 0 else (m + state[0], (1 + state[1]) ** 2 * C + state[2])
    zeta, psi, r = path[:, :, P - 1 : K * P : P, I]
    step, turn = eta[:, None] * zeta, eta[:, None] * psi
    grown = (
        step * (2 * law.m[:, : K * P : P] + step) + turn * (2 + turn) * law.C[:, : K * P : P] + eta[:, None] ** 2 * r
    )
    decrease = -(a[:, None] / 2 * grown).sum(axis=2)
    zeta0, psi0, rest0 = law.zeta[:, :, 0], law.psi[:, :, 0], law.rest[:, :, 0]
    second = np.concatenate(
        [(law.m + zeta0) ** 2 + (1 + psi0) ** 2 * law.C + rest0, (last**2 + last_C)[:, None]], axis=1
    )
    drift = (law.zeta**2 + law.psi**2 * law.C[:, :, None] + law.rest).sum(axis=3)
    gradient, gap = (a[:, None] ** 2 * second).sum(axis=2), (a[:, None] * second).sum(axis=2) / 2
    return FollowedCourse(gradient, gap, decrease, spread * z.gamma[:, None, None] ** 2, drift, law)


# --- Noise-free runs on non-convex instances, step by step ------------------------------------------------------------


def slope(z: FedAvgInstances, x: np.ndarray) -> np.ndarray:
    """grad f at points (B, ..., d)."""
    a, kappa = (v.reshape(len(z), *[1] * (x.ndim - 2), -1) for v in (z.curvature, z.ripple))
    return a * x + kappa * np.sin(x)


def slope_change(z: FedAvgInstances, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """grad f(x + step) - grad f(x) for (B, ..., d), without the cancellation of two nearly equal gradients."""
    ndim = max(x.ndim, step.ndim)
    a, kappa = (v.reshape(len(z), *[1] * (ndim - 2), -1) for v in (z.curvature, z.ripple))
    return a * step + 2 * kappa * np.cos(x + step / 2) * np.sin(step / 2)


def value_change(z: FedAvgInstances, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """f(x + step) - f(x), by coordinate, for (B, d), without the cancellation of two nearly equal values."""
    half = x + step / 2
    return z.curvature * step * half + 2 * z.ripple * np.sin(half) * np.sin(step / 2)


def rippled_course(z: FedAvgInstances) -> FollowedCourse:
    """Every client's local steps as Algorithm 1 of Wang & Ji 2022 has them, for all instances at once."""
    B, T, I, P, d = len(z), z.rounds, z.local_steps, z.interval, z.curvature.shape[1]
    gamma = z.gamma[:, None, None]
    digits = z.start.dtype
    anchors, moves = np.empty((2, B, T, d), digits)
    path = Path(anchors, moves, np.empty((B, T, I + 1, z.clients, d), digits))
    visited = np.empty((B, T + 1, d), digits)
    x = anchor = z.start
    moved, decrease = np.zeros_like(x), np.empty((B, T // P), digits)
    for t in range(T):
        if t % P == 0:
            anchor, moved = x, np.zeros_like(x)
        visited[:, t], path.anchor[:, t], path.moved[:, t] = x, anchor, moved
        change = np.zeros_like(z.slopes)  # from x, so that small steps are not lost in x
        for i in range(I + 1):
            path.change[:, t, i] = change
            if i < I:
                change = change - gamma * (slope(z, x[:, None] + change) + z.slopes)
        moved = moved + (z.weights[:, t, :, None] * change).sum(axis=1)
        whole = moved if (t + 1) % P else z.eta[:, None] * moved
        x = anchor + whole
        if (t + 1) % P == 0:
            decrease[:, t // P] = -value_change(z, anchor, whole).sum(axis=1)
    visited[:, T] = x
    a, kappa = z.curvature[:, None], z.ripple[:, None]
    gap = (a / 2 * visited**2 + 2 * kappa * np.sin(visited / 2) ** 2).sum(axis=2)
    mean, apart = split(z, path)
    spread = (z.weights[:, :, None] * (apart**2).sum(axis=4)).sum(axis=3)
    drift = ((path.moved[:, :, None] + mean) ** 2).sum(axis=3)
    return FollowedCourse((slope(z, visited) ** 2).sum(axis=2), gap, decrease, spread, drift, path)


def split(z: FedAvgInstances, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The clients' mean change of the model in a round, (B, T, I+1, d), and each client's distance from it."""
    mean = (z.weights[:, :, None, :, None] * path.change).sum(axis=3)
    apart = path.change - mean[:, :, :, None]
    size = np.abs(path.change).max(axis=(1, 2, 3, 4), keepdims=True)
    return mean, np.where(np.abs(apart) < 1e-14 * size, 0.0, apart)
