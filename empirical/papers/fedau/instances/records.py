r"""FedAU itself, over every record of participation: small runs without gradient noise, where nothing is sampled.

$F_n(x)=\sum_ja_j\phi(x_j)+b_n^\top x$ with $\sum_nb_n=0$ and $\phi=\log\cosh$ (convex) or $1-\cos$ (not convex): f is
least at 0 with $f^*=0$, $L=\max_ja_j$, $\|\nabla f\|^2<G^2=\sum_ja_j^2$ and $\nabla F_n-\nabla f=b_n$, so that
Option 2 of Assumption 5 holds with exact constants. Weights follow Algorithm 2 of Wang & Ji 2024 on every one of the
$2^{NT}$ records, each with its probability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Annotated, ClassVar, Self

import numpy as np

from fedbounds.bounds.papers.fedau.weight_error import largest_weight_moment
from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import (
    CUTOFF,
    FLAGS,
    Range,
    cancels,
    chances,
    counts,
    positive,
    reals,
)


@lru_cache(maxsize=8)
def every_record(rounds: int) -> np.ndarray:
    """All records of one client, (2^T, T)."""
    return np.array(list(product((0, 1), repeat=rounds)), dtype=float).reshape(2**rounds, rounds)


def weights_of(records: np.ndarray, K: float) -> np.ndarray:
    """Algorithm 2 on records (R, T) with cut-off K: the weights before each round, (R, T)."""
    R, T = records.shape
    weights, intervals, since = np.ones((R, T)), np.zeros(R), np.zeros(R)
    for t in range(1, T):
        since = since + 1
        ends = (records[:, t - 1] == 1) | (since == K)
        fresh = np.where(intervals == 0, since, (intervals * weights[:, t - 1] + since) / (intervals + 1))
        weights[:, t] = np.where(ends, fresh, weights[:, t - 1])
        intervals, since = intervals + ends, np.where(ends, 0, since)
    return weights


@dataclass(frozen=True, eq=False)
class Records(Population, ABC):
    """B runs of FedAU with the same numbers of clients, steps and rounds, whatever the clients' functions are."""

    measured: ClassVar[LeftSide] = "every outcome"

    p: Annotated[np.ndarray, chances("N")]  # participation probabilities, (B, N)
    cutoff: Annotated[np.ndarray, Range(CUTOFF)]  # K, (B,)
    gamma: Annotated[np.ndarray, positive()]  # gamma, eta: step sizes, (B,)
    eta: Annotated[np.ndarray, positive()]
    local_steps: Annotated[int, counts()]  # local_steps, rounds: I and T
    rounds: Annotated[int, counts()]

    @property
    def clients(self) -> int:
        """N."""
        return self.p.shape[1]

    @property
    @abstractmethod
    def smoothness(self) -> np.ndarray:
        """L, (B,)."""

    @property
    def covered(self) -> np.ndarray:
        """Whether f is bounded below, and its gradients too, (B,)."""
        return np.ones(len(self), dtype=bool)

    @abstractmethod
    def symbols(self) -> dict[str, np.ndarray]:
        """What the functions say, (B,)."""

    @abstractmethod
    def average_gradient(self) -> np.ndarray:
        r"""$\frac1T\sum_{t<T}\mathbb E\|\nabla f(x_t)\|^2$ over all records, (B, 1)."""

    @cached_property
    def _records(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Who takes part and with which weight, each (B, R, N, T), and the probabilities of the records, (B, R)."""
        one = every_record(self.rounds)
        which = np.array(list(product(range(len(one)), repeat=self.clients)))
        present = one[which]
        by_cutoff = {K: weights_of(one, K)[which] for K in np.unique(self.cutoff)}
        weights = np.stack([by_cutoff[K] for K in self.cutoff])
        chance = np.where(present[None] == 1, self.p[:, None, :, None], 1 - self.p[:, None, :, None]).prod(axis=(2, 3))
        return np.broadcast_to(present, weights.shape), weights, chance

    @cached_property
    def weight_constants(self) -> dict[str, np.ndarray]:
        r"""W and the mean of $Q_t$ over all records; Q and $\max_tW_t$, the largest over possible ones, (B,)."""
        _, weights, chance = self._records
        p, possible = self.p[:, None, :, None], (chance > 0)[:, :, None]
        error, second = ((p * weights - 1) ** 2).mean(axis=2), (p * weights**2).mean(axis=2)
        return {
            "W": (chance * error.mean(axis=2)).sum(axis=1),
            "Qmean": (chance * second.mean(axis=2)).sum(axis=1),
            "Q": np.where(possible, second, 0).max(axis=(1, 2)),
            "Wmax": np.where(possible, error, 0).max(axis=(1, 2)),
        }

    def constants(self) -> dict[str, np.ndarray]:
        """Exact, (B, 1); p is (B, 1, N)."""
        found = self.symbols() | {"K": self.cutoff, "gamma": self.gamma, "eta": self.eta} | self.weight_constants
        counts = {"N": self.clients, "I": self.local_steps, "T": self.rounds}
        found |= {name: np.full(len(self), float(value)) for name, value in counts.items()}
        return {name: value[:, None] for name, value in found.items()} | {"p": self.p[:, None]}

    def with_step_shares(self, local: np.ndarray, update: np.ndarray) -> Self:
        r"""The same with $\gamma$ at this share of $1/(4\sqrt{15}LI)$ and $\gamma\eta$ of the smaller of its caps."""
        LI = self.smoothness * self.local_steps
        gamma = local / (4 * np.sqrt(15) * LI)
        Q = largest_weight_moment(self.p, self.cutoff, float(self.rounds))
        return replace(self, gamma=gamma, eta=update * np.minimum(1 / 2, self.clients / (27 * Q)) / LI / gamma)


@dataclass(frozen=True, eq=False)
class RecordedInstances(Records):
    """B instances without noise."""

    scale: Annotated[np.ndarray, positive("d")]  # $a>0$, (B, d)
    periodic: Annotated[np.ndarray, Range(FLAGS)]  # 1 for $1-\cos$, 0 for $\log\cosh$, (B,)
    slopes: Annotated[np.ndarray, reals("N d")]  # $b_n$, zero mean over clients, (B, N, d)
    start: Annotated[np.ndarray, reals("d")]  # $x_0$, (B, d)

    def rules(self) -> dict[str, np.ndarray]:
        return super().rules() | {"the slopes sum to zero": cancels(self.slopes)}

    @property
    def cost(self) -> int:
        """Records, in units of ten."""
        return 2 ** (self.clients * self.rounds) // 10

    @cached_property
    def smoothness(self) -> np.ndarray:
        return self.scale.max(axis=1)

    def _slope(self, x: np.ndarray) -> np.ndarray:
        """grad f at points (B, R, N, d)."""
        scale, periodic = self.scale[:, None, None], self.periodic[:, None, None, None]
        return scale * np.where(periodic == 1, np.sin(x), np.tanh(x))

    def average_gradient(self) -> np.ndarray:
        present, weights, chance = self._records
        x = np.broadcast_to(self.start[:, None, None], (*chance.shape, 1, self.start.shape[1]))
        gamma, eta = self.gamma[:, None, None, None], self.eta[:, None, None]
        total = np.zeros(len(self))
        for t in range(self.rounds):
            total += (chance * (self._slope(x) ** 2).sum(axis=(2, 3))).sum(axis=1)
            y = np.broadcast_to(x, (*chance.shape, self.clients, x.shape[3]))
            for _ in range(self.local_steps):
                y = y - gamma * (self._slope(y) + self.slopes[:, None])
            added = (present[..., t, None] * weights[..., t, None] * (y - x)).sum(axis=2)
            x = x + (eta / self.clients * added)[:, :, None]
        return (total / self.rounds)[:, None]

    def symbols(self) -> dict[str, np.ndarray]:
        x, periodic = self.start, self.periodic[:, None] == 1
        return {
            "L": self.smoothness,
            "F": (self.scale * np.where(periodic, 2 * np.sin(x / 2) ** 2, np.logaddexp(x, -x) - np.log(2))).sum(axis=1),
            "G": np.sqrt((self.scale**2).sum(axis=1)),
            "delta": np.sqrt((self.slopes**2).sum(axis=2).max(axis=1)),
            "sigma": np.zeros(len(self)),
        }

    def mutate(self, rng: np.random.Generator) -> Self:
        """Another function, start, probabilities and step sizes; these stay within the caps."""
        slopes = shake(self.slopes, rng)
        moved = replace(
            self,
            scale=perturb(self.scale, rng),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            start=shake(self.start, rng),
            p=np.clip(perturb(self.p, rng), 1e-6, 1),
        )
        return moved.with_step_shares(
            rng.choice([1.0, 1.0, 0.3], size=len(self)), rng.choice([1.0, 1.0, 0.3], size=len(self))
        )


def draw_recorded(rng: np.random.Generator, B: int, shape: tuple[int, ...]) -> RecordedInstances:
    """B random instances of one shape (N, d, I, T), with cut-offs from 1 to none."""
    N, d, I, T = shape
    slopes = rng.choice([0.0, 0.1, 1.0, 5.0], size=(B, 1, 1)) * rng.normal(size=(B, N, d))
    z = RecordedInstances(
        scale=rng.choice([0.1, 1.0, 5.0], size=(B, 1)) * rng.uniform(0.01, 1, (B, d)),
        periodic=rng.integers(2, size=B) * 1.0,
        slopes=slopes - slopes.mean(axis=1, keepdims=True),
        start=rng.choice([0.01, 1.0, 10.0], size=(B, 1)) * rng.normal(size=(B, d)),
        p=np.maximum(rng.uniform(0, 1, (B, N)) ** rng.choice([0.2, 1.0, 4.0], size=(B, 1)), 1e-3),
        cutoff=rng.choice([1.0, 2.0, 3.0, float(T), np.inf], size=B),
        gamma=np.ones(B),
        eta=np.ones(B),
        local_steps=I,
        rounds=T,
    )
    return z.with_step_shares(rng.choice([1.0, 1.0, 0.1], size=B), rng.choice([1.0, 1.0, 0.3], size=B))
