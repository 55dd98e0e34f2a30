"""Generalized FedAvg on clients with kinks, over all signs of the noise, or over many of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Self

import numpy as np

from fedbounds.empirical.falsification.instances.paths import initial_states, local_changes, sampling_error, together
from fedbounds.empirical.falsification.instances.piecewise_quadratics import (
    CANCELED,
    KinkedClients,
    draw_clients,
    remove_rounding,
    supremum,
)
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import Course, ParticipatingRuns

EACH = 24
EVERY_PATH = (  # clients, coordinates, knots, I, P, T and how many take part: at most ten draws of noise
    (1, 1, 2, 1, 1, 10, 1), (1, 1, 3, 2, 1, 5, 1), (1, 1, 2, 1, 5, 10, 1), (1, 2, 2, 5, 1, 2, 1),
    (2, 1, 2, 1, 2, 10, 1), (2, 1, 2, 2, 2, 5, 1), (2, 1, 3, 1, 1, 5, 2), (3, 1, 2, 3, 1, 3, 1), (2, 1, 2, 1, 2, 4, 2),
)  # fmt: skip
WITHOUT_NOISE = (
    (1, 1, 2, 1, 1, 60, 1), (1, 1, 3, 1, 1, 8, 1), (2, 1, 2, 3, 2, 20, 1), (3, 2, 3, 2, 3, 9, 3), (2, 1, 3, 8, 1, 2, 2),
    (1, 1, 2, 1, 1, 400, 1), (2, 1, 2, 1, 8, 48, 1),
)  # fmt: skip
MANY_PATHS = ((1, 1, 2, 1, 1, 40, 1), (2, 1, 2, 2, 2, 16, 1))
SAMPLES = 2000


@dataclass(frozen=True, eq=False)
class KinkedRuns(KinkedClients, ParticipatingRuns):
    """B runs on piecewise quadratics."""

    @property
    def cost(self) -> int:
        """Local steps, and a sixtieth for each path at the end."""
        draws = self.local_steps * int((self.weights != 0).any(axis=0).sum()) * bool(self.noise.any())
        return self.rounds * self.local_steps + (self.samples or 2**draws) // 60

    @cached_property
    def initial_gap(self) -> np.ndarray:
        return self.above_infimum(self.objective)

    def _pulled(self, weights: np.ndarray) -> np.ndarray:
        """sum_n w_n (F_n' - f') at the knots, for weights (B, ..., N), (B, ..., d, m)."""
        return remove_rounding(np.einsum("b...n,bndm->b...dm", weights, self.offsets), self.slopes)

    @cached_property
    def participation_divergence(self) -> np.ndarray:
        return supremum(self._pulled(self.weights))

    @cached_property
    def window(self) -> np.ndarray:
        return supremum(self._pulled(self.window_weights))

    @cached_property
    def cohort_divergence(self) -> np.ndarray:
        apart = remove_rounding(self.offsets[:, None] - self._pulled(self.weights)[:, :, None], self.slopes)
        return np.einsum("btn,btndm->btdm", self.weights, apart**2).max(axis=3).sum(axis=2)

    @cached_property
    def divergence_of_participants(self) -> np.ndarray:
        return np.einsum("btn,bndm->btdm", self.weights, self.offsets**2).max(axis=3).sum(axis=2)

    @property
    def smooth(self) -> np.ndarray:
        return np.isfinite(self.initial_gap) & (self.smoothness > 0)

    @property
    def centered(self) -> np.ndarray:
        return self.same_far_away

    @cached_property
    def course(self) -> Course:
        """Every client's local steps on every path; spread and drift by means over the clients' own branches."""
        B, T, I, P = len(self), self.rounds, self.local_steps, self.interval
        gradient, gap = np.full((2, B, T + 1), np.nan)
        error = np.repeat((CANCELED * np.abs(self.slopes).max(axis=(1, 2, 3))[:, None]) ** 2, T + 1, axis=1)
        decrease, (spread, drift) = np.full((B, T // P), np.nan), np.full((2, B, T, I + 1), np.nan)
        f, least = self.objective, self.objective.minimum()[0]
        x, anchor, moved = initial_states(self), initial_states(self), np.zeros((1, 1, 1))
        for t in range(T + 1):
            squares = (f.slope(x) ** 2).sum(axis=1)
            gradient[:, t] = squares.mean(axis=1)
            if self.samples:
                error[:, t] += sampling_error(squares)
            else:
                gap[:, t] = (f.value(x).mean(axis=2) - least).sum(axis=1)
            if t == T:
                break
            if t % P == 0:
                anchor, moved = x, np.zeros_like(x)
            q = self.weights[:, t, :, None, None]
            for i, last in enumerate(local_changes(self, x, self.gamma, I, t)):
                if self.samples:
                    continue
                middle, variance = last.mean(axis=4), last.var(axis=4)
                mean = (q * middle).sum(axis=1)
                of_clients = (q * ((middle - mean[:, None]) ** 2 + (1 - q) * variance)).sum(axis=1)
                of_mean = (moved + mean) ** 2 + (q**2 * variance).sum(axis=1)
                spread[:, t, i], drift[:, t, i] = (v.mean(axis=2).sum(axis=1) for v in (of_clients, of_mean))
            steps = together(self.weights[:, t], last)
            moved = (moved[..., None] + steps).reshape(B, moved.shape[1], -1)
            anchor = np.repeat(anchor, steps.shape[3], axis=2)
            whole = moved if (t + 1) % P else self.eta[:, None, None] * moved
            if (t + 1) % P == 0 and not self.samples:
                decrease[:, t // P] = -f.value_change(anchor, whole).mean(axis=2).sum(axis=1)
            x = anchor + whole
        return Course(gradient, gap, decrease, spread, drift, error=error)

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, weights and step sizes; the step sizes stay within their caps."""
        moved = replace(self, **self.move_clients(rng), weights=self.move_weights(rng))
        return moved.with_step_shares(*self.move_shares(rng))


def draw_kinked(
    rng: np.random.Generator, B: int, shape: tuple[int, ...], *, noisy: bool, samples: int = 0
) -> KinkedRuns:
    """B random instances of one shape: clients, coordinates, knots, I, P, T and how many take part in a round."""
    N, d, m, I, P, T, present = shape
    in_turn = np.repeat(np.eye(N)[np.arange(T) % N][None], B, axis=0)
    z = KinkedRuns(
        **draw_clients(rng, B, (N, d, m), noisy=noisy),
        samples=samples,
        weights=in_turn if present < N else rng.dirichlet(np.ones(N), size=(B, T)),
        gamma=np.ones(B),
        eta=np.ones(B),
        local_steps=I,
        interval=P,
        reach=P,
    )
    return z.with_step_shares(rng.choice([1.0, 1.0, 0.3, 0.01], size=B), rng.choice([1.0, 1.0, 0.3], size=B))


@lru_cache(maxsize=4)
def kinked_pool(cells: int, gradients: bool) -> tuple[KinkedRuns, ...]:
    """Instances of every shape; where many are asked for and nothing but gradients, some whose paths are too many."""
    rng, deep = np.random.default_rng(41), cells > 100

    def pools() -> Iterator[KinkedRuns]:
        for _ in range(3 if deep else 1):
            for noisy, shapes in ((True, EVERY_PATH), (False, WITHOUT_NOISE)):
                yield from (draw_kinked(rng, EACH, shape, noisy=noisy) for shape in shapes)
        if deep and gradients:
            yield from (draw_kinked(rng, EACH, shape, noisy=True, samples=SAMPLES) for shape in MANY_PATHS)

    return tuple(pools())
