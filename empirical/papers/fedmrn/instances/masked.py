"""Masked local steps on clients with kinks, on every path: updates become (1 + q) or (1 - q) times what they were, or
a or -a with the same mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np

from fedbounds.empirical.falsification.instances.paths import initial_states, jointly, split, together
from fedbounds.empirical.falsification.instances.piecewise_quadratics import KinkedClients
from fedbounds.empirical.falsification.instances.ranges import always, counts, nonnegative


class MaskedCourse(NamedTuple):
    """What is measured on all paths, each (B,)."""

    # $\frac1T\sum_{t<T}\mathbb E\|\nabla f(\bar w_t)\|^2$ at the clients' mean before every iteration
    gradient: np.ndarray
    gap: np.ndarray  # $\mathbb Ef(\bar w_T)-f^*$
    largest: np.ndarray  # $\max_{t,k}\mathbb E\|\nabla F_k(x_k^t)+\xi_k^t\|^2$
    sure: np.ndarray  # what $\|\nabla F_k(x_k^t)+\xi_k^t\|^2$ never exceeds


@dataclass(frozen=True, eq=False)
class MaskedClients(KinkedClients):
    r"""B runs of N clients that all take S local steps; K of them, drawn without replacement, then upload.

    A gradient is taken where the server would be by then: at $w+\hat u$ for an update u, with
    $\hat u=(1\pm q)u$, either sign with chance 1/2 in every coordinate, and so for the upload.
    """

    q: Annotated[np.ndarray, nonnegative()]  # the relative error of a mask, (B,)
    cohort: Annotated[int, counts()]  # cohort, local_steps, iterations: K, S and T, a multiple of S
    local_steps: Annotated[int, counts()]
    iterations: Annotated[int, counts()]

    def rules(self) -> dict[str, np.ndarray]:
        whole, drawn = self.iterations % self.local_steps == 0, self.cohort <= self.clients
        return super().rules() | {
            "iterations are a multiple of local_steps": always(whole, self.start),
            "cohort is at most the number of clients": always(drawn, self.start),
        }

    @property
    def cost(self) -> int:
        """Iterations, and a sixtieth for each path at the end."""
        branches = 2 ** (bool(self.noise.any()) + bool(self.q.any()))
        return self.iterations + branches ** (self.iterations * self.clients) // 60

    def masked(self, u: np.ndarray, tau: int, amplitude: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
        """What u, (B, N, d, paths, branches), becomes in the tau-th local step or, tau = 0, the upload; the chances."""
        if amplitude is not None:
            a = amplitude.reshape(-1, 1, 1, 1, 1)
            share = np.clip(u / np.where(a > 0, a, 1), -1, 1)
            return [(sign * a + 0 * u, (1 + sign * share) / 2) for sign in (-1, 1)]
        if tau == 1 or not self.q.any():  # before the first local step there is no update
            return [(u, np.ones_like(u))]
        q = self.q.reshape(-1, 1, 1, 1, 1)
        return [((1 + sign * q) * u, np.full_like(u, 0.5)) for sign in (-1, 1)]

    def course(
        self, step: Callable[[int], np.ndarray], amplitude: Callable[[int], np.ndarray] | None = None
    ) -> MaskedCourse:
        """With the step size of each iteration t = 0, 1, ..., (B,)."""
        x, f, N, S = initial_states(self), self.objective, self.clients, self.local_steps
        chance, everyone = np.ones_like(x), np.full((len(self), N), 1 / N)
        u, p = np.zeros((2, len(self), N, *x.shape[1:], 1))
        norms, largest, sure = np.zeros((3, len(self)))
        for t in range(self.iterations):
            if t % S == 0:
                u, p = np.zeros((len(self), N, *x.shape[1:], 1)), np.ones((len(self), N, *x.shape[1:], 1))
            average = x[..., None] + together(everyone, u)
            weights = chance[..., None] * jointly(everyone, p)
            slopes = f.slope(average.reshape(*x.shape[:2], -1)).reshape(average.shape)
            norms += (weights * slopes**2).sum(axis=(1, 2, 3))
            a = None if amplitude is None else amplitude(t)
            hats, p, u = branch(self.masked(u, t % S + 1, a), p, u)
            points = x[:, None, :, :, None] + hats
            slope = self.each.slope(points.reshape(*points.shape[:3], -1)).reshape(points.shape)
            weights = chance[:, None, :, :, None] * p
            moments = (weights * slope**2).sum(axis=(3, 4)) + self.noise**2
            largest = np.maximum(largest, moments.sum(axis=2).max(axis=1))
            seen = np.where(weights > 0, np.abs(slope) + self.noise[..., None, None], 0).max(axis=(3, 4))
            sure = np.maximum(sure, (seen**2).sum(axis=2).max(axis=1))
            eta = step(t).reshape(-1, 1, 1, 1, 1)
            u = u - eta * slope
            if self.noise.any():
                u, p = split(u, eta * self.noise[..., None, None]), split(p / 2, 0.0)
            if t % S == S - 1:
                sent, p, _ = branch(self.masked(u, 0, a), p, u)
                cohorts = list(combinations(range(N), self.cohort))
                shares = [np.isin(np.arange(N), c) / self.cohort * np.ones((len(self), 1)) for c in cohorts]
                chance = np.concatenate([chance[..., None] * jointly(share, p) for share in shares], axis=3)
                x = np.concatenate([x[..., None] + together(share, sent) for share in shares], axis=3)
                x, chance = (v.reshape(*v.shape[:2], -1) for v in (x, chance / len(cohorts)))
        gap = ((chance * f.value(x)).sum(axis=2) - f.minimum()[0]).sum(axis=1)
        return MaskedCourse(norms / self.iterations, gap, largest, sure)


def branch(
    may: list[tuple[np.ndarray, np.ndarray]], chance: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What updates become, the chance of each branch, and the updates themselves."""
    hats = np.concatenate([hat for hat, _ in may], axis=-1)
    return hats, np.concatenate([chance * p for _, p in may], axis=-1), np.concatenate([u] * len(may), axis=-1)
