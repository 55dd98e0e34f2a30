r"""One iteration of N clients on quadratics, and all that the proofs say of it, exactly: every path is followed.

The coordinates are independent of each other, so that each has its own paths and the inner products add up. Noise is
$\pm\sigma_j$; the operator of relative error q sends u to $(1\pm q)u$, and a signed mask to $\pm a$ with the mean u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import comb
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shaken
from fedbounds.empirical.falsification.instances.ranges import (
    ROUND_OFF,
    WHOLE,
    Range,
    Ranges,
    always,
    counts,
    nonnegative,
    positive,
    reals,
)

Masks = Callable[[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]  # of an update: what it may become, and the chance


def as_alike(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """What clients have, (B, N, d), the same for all of them where it was before."""
    same = (np.ptp(before, axis=1) == 0).all(axis=1)
    return np.where(same[:, None, None], after[:, :1], after)


@dataclass(frozen=True, eq=False)
class MaskedIterations(Population):
    """B instances of the last of `len(steps)` iterations of a round, after which K of N clients upload."""

    measured: ClassVar[LeftSide] = "every outcome"
    ranges: ClassVar[Ranges] = {"progressive": Range(WHOLE)}

    # curvature, center: of $F_k=\frac h2\|z-c\|^2$ in each coordinate, (B, N, d)
    curvature: Annotated[np.ndarray, reals("N d")]
    center: Annotated[np.ndarray, reals("N d")]
    start: Annotated[np.ndarray, reals("d")]  # of the round, (B, d)
    noise: Annotated[np.ndarray, nonnegative("d")]  # $\sigma_j$, (B, d)
    steps: Annotated[np.ndarray, positive("S")]  # of the iterations of the round, each (B,)
    cohort: Annotated[int, counts()]  # K
    relative: Annotated[np.ndarray | None, nonnegative()]  # q, (B,); None under signed masks
    amplitude: Annotated[np.ndarray, nonnegative()]  # a, (B,)
    progressive: int = 0  # S, if the tau-th local step masks with the chance tau/S; 0 if it always does

    def rules(self) -> dict[str, np.ndarray]:
        local = self.steps.shape[1] if self.progressive else 0
        return {
            "cohort is at most the number of clients": always(self.cohort <= self.curvature.shape[1], self.start),
            "there are no more steps than local steps": always(local <= self.progressive, self.start),
        }

    @property
    def cost(self) -> int:
        """One, and a thirtieth for each coordinate of each joint path and cohort."""
        N, d = self.curvature.shape[1:]
        paths = 2 ** (N * (2 * self.steps.shape[1] + 1))
        return 1 + comb(N, self.cohort) * d * paths // 30

    def mutated(self, rng: np.random.Generator) -> Self:
        """Other functions, starts, noise, steps and errors; clients that are alike stay so, and so do signs."""
        curvature = np.sign(self.curvature) * perturb(np.abs(self.curvature), rng)
        return replace(
            self,
            curvature=as_alike(self.curvature, curvature),
            center=as_alike(self.center, shaken(self.center, rng)),
            start=shaken(self.start, rng),
            noise=perturb(self.noise, rng),
            steps=self.steps * (perturb(self.steps[:, :1], rng) / self.steps[:, :1]),
            relative=None if self.relative is None else perturb(self.relative, rng),
        )

    @property
    def falling(self) -> np.ndarray:
        """Whether steps do not increase, and the first is at most twice any other, (B,)."""
        first, most = self.steps[:, 0], 2 * self.steps.min(axis=1) * (1 + ROUND_OFF)
        return (np.diff(self.steps, axis=1) <= ROUND_OFF * self.steps[:, :1]).all(axis=1) & (first <= most)

    def masked(self, u: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """What an update (B, N, d, paths) may become, each with its chance."""
        if self.relative is not None:
            q = self.relative[:, None, None, None]
            return [((1 + sign * q) * u, np.full(u.shape, 0.5)) for sign in (1, -1)]
        a = self.amplitude[:, None, None, None] * np.ones_like(u)
        return [(sign * a, (1 + sign * u / a) / 2) for sign in (1, -1)]

    def masked_locally(self, u: np.ndarray, tau: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same in the tau-th local step."""
        if not self.progressive:
            return self.masked(u)
        chance = tau / self.progressive
        return [(u, np.full(u.shape, 1 - chance)), *((hat, chance * p) for hat, p in self.masked(u))]

    @cached_property
    def clients(self) -> dict[str, np.ndarray]:
        """Every path of every client by itself, (B, N, d, paths), and the squares of all gradients of the round."""
        h, c = self.curvature[..., None], self.center[..., None]
        s, noise = self.start[:, None, :, None], self.noise[:, None, :, None]
        chance, u = np.ones((*self.curvature.shape, 1)), np.zeros((*self.curvature.shape, 1))
        means, largest = [], []
        w = x = g = xi = u
        for tau, step in enumerate(self.steps.T, start=1):
            may = self.masked_locally(u, tau)
            branches = [(chance * p, u, hat, sign * noise + 0 * u) for hat, p in may for sign in (1.0, -1.0)]
            chance, before, hat, xi = (np.concatenate(parts, axis=-1) for parts in zip(*branches, strict=True))
            halved = chance / 2
            w, x = s + before, s + hat
            g = h * (x - c)
            u = before - step[:, None, None, None] * (g + xi)
            chance = halved
            square = (g + xi) ** 2
            means.append((chance * square).sum(axis=(2, 3)))
            largest.append(np.where(chance > 0, square, 0).max(axis=3).sum(axis=2))
        ends = self.masked(u)
        found = {"w": w, "x": x, "g": g, "xi": xi, "v": s + u}
        found = {name: np.concatenate([path, path], axis=-1) for name, path in found.items()}
        found["y"] = s + np.concatenate([hat for hat, _ in ends], axis=-1)
        found["chance"] = np.concatenate([chance * p for _, p in ends], axis=-1)
        found["squares"] = np.stack(means, axis=2).reshape(len(s), -1)
        found["sure"] = np.stack(largest, axis=2).reshape(len(s), -1)
        return found

    @property
    def minimizer(self) -> np.ndarray:
        """w*, (B, d); the start where there is none."""
        total = self.curvature.sum(axis=1)
        some = np.where(total > 0, total, 1.0)
        return np.where(total > 0, (self.curvature * self.center).sum(axis=1) / some, self.start)

    def atoms(self, cohort: tuple[int, ...]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The chance of every joint path, (B, d, paths), and the vectors on it, (B, N or 1, d, paths)."""
        each, N = self.clients, self.curvature.shape[1]
        joint = np.array(list(product(range(each["chance"].shape[-1]), repeat=N))).T
        paths = {
            name: np.stack([each[name][:, k][..., joint[k]] for k in range(N)], axis=1)
            for name in ("chance", "w", "x", "g", "xi", "v", "y")
        }
        chance = paths.pop("chance").prod(axis=1)
        h, c = self.curvature[..., None], self.center[..., None]
        b = paths["w"].mean(axis=1, keepdims=True)
        at_b = h * (b - c)
        commons = {"gb": paths["g"], "nb": paths["xi"], "vb": paths["v"], "f0": at_b}
        drawn = {"va": paths["v"][:, list(cohort)], "wn": paths["y"][:, list(cohort)]}
        found = paths | {name: v.mean(axis=1, keepdims=True) for name, v in (commons | drawn).items()}
        still = {"s": self.start[:, None, :, None], "ws": self.minimizer[:, None, :, None]}
        return chance, found | still | {"b": b, "g0": at_b}

    @cached_property
    def products(self) -> dict[str, np.ndarray]:
        """Every inner product of the proofs, (B, 1), and the values that stand beside them."""
        N = self.curvature.shape[1]
        cohorts = list(combinations(range(N), self.cohort))
        total: dict[str, np.ndarray] = {}
        for cohort in cohorts:
            chance, found = self.atoms(cohort)
            names = sorted(found)
            values = {
                f"<{a},{c}>": (chance * (found[a] * found[c]).mean(axis=1)).sum(axis=(1, 2))
                for a in names
                for c in names
                if a <= c
            }
            values |= self._values(chance, found)
            for name, value in values.items():
                total[name] = total.get(name, 0.0) + value[:, None] / len(cohorts)
        return total | {"<h,h>": self.clients["squares"]}

    def _values(self, chance: np.ndarray, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Means of function values, as differences that do not cancel."""
        h, c, ws = self.curvature[..., None], self.center[..., None], found["ws"]

        def above(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            """The mean over the clients of F_k(first) - F_k(second)."""
            gap = h / 2 * (first - second) * (first + second - 2 * c)
            return (chance * gap.mean(axis=1)).sum(axis=(1, 2))

        return {
            "excess": above(found["x"], ws),
            "gap": above(found["b"], ws),
            "decrease": above(found["b"], found["wn"]),
            "Gamma": (h / 2 * (ws - c) ** 2).mean(axis=1).sum(axis=(1, 2)),
        }
