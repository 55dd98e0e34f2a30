"""FedAU's weights alone: probabilities, a cut-off and a number of rounds, with the exact law of the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.bounds.papers.fedau.weight_error import mean_weight, squared_error
from fedbounds.empirical.falsification.instances.population import LeftSide, Population
from fedbounds.empirical.falsification.instances.ranges import CUTOFF, Range, chances, counts


@dataclass(frozen=True, eq=False)
class IntervalInstances(Population):
    """B settings with the same numbers of clients and rounds."""

    measured: ClassVar[LeftSide] = "exact law"

    p: Annotated[np.ndarray, chances("N")]  # participation probabilities, (B, N)
    cutoff: Annotated[np.ndarray, Range(CUTOFF)]  # K, a whole number or inf, (B,)
    rounds: Annotated[int, counts()]  # T

    @cached_property
    def errors(self) -> np.ndarray:
        r"""$\mathbb E(p_n\omega_t^n-1)^2$, (B, N, T)."""
        return self._each(squared_error)

    @cached_property
    def means(self) -> np.ndarray:
        r"""$\mathbb E\omega_t^n$, (B, N, T)."""
        return self._each(mean_weight)

    def _each(self, of: object) -> np.ndarray:
        assert callable(of)
        return np.array(
            [
                [of(p, K, self.rounds) for p in row]
                for row, K in zip(self.p, np.minimum(self.cutoff, self.rounds), strict=True)
            ]
        )

    @property
    def weight_error(self) -> np.ndarray:
        """W, (B, 1)."""
        return self.errors.mean(axis=(1, 2))[:, None]

    def cut_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the cut-off interval by summing over its law, each (B, N); K must be finite."""
        K = int(self.cutoff.max())
        k = np.arange(1, K + 1)
        p, cut = self.p[:, :, None], self.cutoff[:, None, None]
        law = np.where(k < cut, p * (1 - p) ** (k - 1), np.where(k == cut, (1 - p) ** (k - 1.0), 0))
        mean = (law * k).sum(axis=2)
        return mean, (law * (k - mean[:, :, None]) ** 2).sum(axis=2)

    def constants(self) -> dict[str, np.ndarray]:
        """(B, 1); p is (B, 1, N)."""
        counts = {"N": self.p.shape[1], "T": self.rounds}
        found = {name: np.full((len(self), 1), float(value)) for name, value in counts.items()}
        return found | {"p": self.p[:, None], "K": self.cutoff[:, None], "W": self.weight_error}

    def mutate(self, rng: np.random.Generator) -> Self:
        size = 10.0 ** rng.uniform(-2, 0.3, (len(self), 1))
        odds = np.log(self.p / np.maximum(1 - self.p, 1e-9)) + size * rng.normal(size=self.p.shape)
        moved = np.where(np.isfinite(self.cutoff), self.cutoff + rng.integers(-2, 3, len(self)), self.cutoff)
        return replace(self, p=np.clip(1 / (1 + np.exp(-odds)), 1e-4, 1), cutoff=np.maximum(moved, 1))


def draw_intervals(rng: np.random.Generator, B: int, clients: int, rounds: int) -> IntervalInstances:
    """B random settings: rare and frequent clients, cut-offs from 1 to none."""
    p = np.where(rng.random((B, 1)) < 0.1, 1.0, rng.uniform(0, 1, (B, clients)) ** rng.choice([0.2, 1, 4], size=(B, 1)))
    cutoff = np.floor(10.0 ** rng.uniform(0, np.log10(2 * rounds + 2), B))
    return IntervalInstances(np.maximum(p, 1e-4), np.where(rng.random(B) < 0.1, np.inf, cutoff), rounds)
