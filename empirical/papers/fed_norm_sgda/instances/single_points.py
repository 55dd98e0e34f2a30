"""Vectors and functions at single points, for the standard facts of Appendix A of Sharma et al. (2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.population import Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import Range, always, nonnegative, positive, reals, sums_to


@dataclass(frozen=True, eq=False)
class Facts(Population):
    r"""B times n vectors, and a function $\sum_ja_jg(x_j)$ at the first two of them."""

    vectors: Annotated[np.ndarray, reals("n d")]  # (B, n, d)
    weights: Annotated[np.ndarray, nonnegative("n")]  # on the simplex, (B, n)
    curvature: Annotated[np.ndarray, nonnegative("d")]  # $a_j\ge0$, (B, d)
    levels: Annotated[np.ndarray, positive("2")]  # two numbers that a fact may need, positive, (B, 2)
    # of g: 0 for $x^2/2$, 1 for $\log\cosh x$, 2 for $1-\cos x$, (B,)
    kind: Annotated[np.ndarray, Range(Domain(0, 2, integer=True))]

    def rules(self) -> dict[str, np.ndarray]:
        return {
            "the weights sum to one": sums_to(self.weights, 1),
            "there are two vectors": always(self.vectors.shape[1] >= 2, self.weights),
        }

    def value(self, x: np.ndarray) -> np.ndarray:
        """The function, (B, 1) of (B, d)."""
        log_cosh = np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2)
        g = np.choose(self.kind[:, None], (x**2 / 2, log_cosh, 2 * np.sin(x / 2) ** 2))
        return (self.curvature * g).sum(axis=1, keepdims=True)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Its gradient, (B, d)."""
        return self.curvature * np.choose(self.kind[:, None], (x, np.tanh(x), np.sin(x)))

    def mutate(self, rng: np.random.Generator) -> Self:
        weights = perturb(self.weights, rng)
        return replace(
            self,
            vectors=shake(self.vectors, rng),
            weights=weights / weights.sum(axis=1, keepdims=True),
            **self.neighbors(rng, curvature=perturb, levels=perturb),
        )


def draw_facts(rng: np.random.Generator, B: int, n: int, d: int) -> Facts:
    """B random instances with n >= 2 vectors in d dimensions, some of them equal or multiples of each other."""
    vectors = 10 ** rng.uniform(-1, 1, (B, 1, 1)) * rng.normal(size=(B, n, d))
    levels = 10 ** rng.uniform(-1, 1, (B, 2))
    like = rng.integers(0, 3, B)[:, None]
    vectors[:, 1] = np.where(like == 0, vectors[:, 0] / levels[:, :1], vectors[:, 1])
    vectors = np.where(like[:, :, None] == 1, vectors[:, :1], vectors)
    return Facts(
        vectors, rng.dirichlet(np.ones(n), size=B), rng.uniform(0, 1, (B, d)) ** 3 * 10, levels, rng.integers(0, 3, B)
    )
