"""FedAvg with aggregation weights on clients with kinks, over all coins of the participation and signs of the noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Self

import numpy as np

from fedbounds.empirical.falsification.instances.paths import local_changes, together
from fedbounds.empirical.falsification.instances.piecewise_quadratics import (
    KinkedClients,
    PiecewiseQuadratic,
    draw_clients,
    remove_rounding,
    supremum,
)
from fedbounds.empirical.falsification.instances.population import perturb
from fedbounds.empirical.falsification.instances.ranges import chances, counts, positive
from fedbounds.empirical.papers.fedau.instances.records import Records, every_record, weights_of
from fedbounds.empirical.papers.fedau.instances.weighted import ConstantWeightRuns

EACH = 20
NOISY = ((1, 1, 2, 1, 7), (1, 1, 3, 3, 4), (2, 1, 2, 1, 4), (1, 2, 2, 8, 2), (2, 1, 2, 2, 3))  # N, d, knots, I and T
WITHOUT_NOISE = ((1, 1, 2, 2, 9), (2, 1, 3, 2, 5), (3, 1, 2, 1, 3))
NO_COINS = ((1, 1, 2, 1, 60), (2, 1, 3, 4, 12), (1, 1, 2, 1, 200))


@dataclass(frozen=True, eq=False)
class Branched(KinkedClients):
    """B runs whose participation is drawn like their noise."""

    p: Annotated[np.ndarray, chances("N")]  # participation probabilities, (B, N)
    gamma: Annotated[np.ndarray, positive()]  # gamma, eta: step sizes, (B,)
    eta: Annotated[np.ndarray, positive()]
    local_steps: Annotated[int, counts()]  # local_steps, rounds: I and T
    rounds: Annotated[int, counts()]

    @property
    def sure(self) -> bool:
        """Whether participation is full."""
        return bool((self.p == 1).all())

    @property
    def cost(self) -> int:
        """Local steps, and a sixtieth for each path at the end."""
        outcomes = 2 ** (self.local_steps * bool(self.noise.any())) + (not self.sure)
        return self.local_steps * self.rounds + outcomes ** (self.clients * (self.rounds - 1)) // 60

    @abstractmethod
    def weights_on(self, records: np.ndarray, t: int) -> np.ndarray:
        """Aggregation weights in round t on records of the rounds before, (P, N) as binary numbers, (B, P or 1, N)."""

    def mean_square(self, function: PiecewiseQuadratic) -> np.ndarray:
        r"""$\frac1T\sum_{t<T}\mathbb E\|\nabla g(x_t)\|^2$, over all paths, (B, 1)."""
        B, N = self.p.shape
        x, chance, records = self.start[:, :, None], np.ones((B, 1)), np.zeros((1, N), dtype=int)
        total = np.zeros(B)
        for t in range(self.rounds):
            total += (chance * (function.slope(x) ** 2).sum(axis=1)).sum(axis=1)
            if t == self.rounds - 1:
                break
            *_, moves = local_changes(self, x, self.gamma, self.local_steps, t)
            ways = moves.shape[4]
            law = np.repeat(self.p[:, :, None] / ways, ways, axis=2)
            weights = self.eta[:, None, None] / N * self.weights_on(records, t)
            moves = np.swapaxes(weights, 1, 2)[:, :, None, :, None] * moves
            if not self.sure:
                moves = np.concatenate([moves, np.zeros_like(moves[..., :1])], axis=4)
                law = np.concatenate([law, 1 - self.p[:, :, None]], axis=2)
            present = ways > np.indices((moves.shape[4],) * N).reshape(N, -1).T
            joint = np.ones((B, 1))
            for own in np.moveaxis(law, 1, 0):
                joint = (joint[:, :, None] * own[:, None]).reshape(B, -1)
            x = (x[..., None] + together(np.ones((B, N)), moves)).reshape(B, x.shape[1], -1)
            chance = (chance[:, :, None] * joint[:, None]).reshape(B, -1)
            records = (2 * records[:, None] + present).reshape(-1, N)
        return (total / self.rounds)[:, None]

    def moved_chances(self, rng: np.random.Generator) -> np.ndarray:
        """Other participation probabilities; rates of one in all instances stay."""
        return self.p if self.sure else np.clip(perturb(self.p, rng), 1e-6, 1)


@dataclass(frozen=True, eq=False)
class KinkedWeighted(Branched, ConstantWeightRuns):
    """Constant weights."""

    def weights_on(self, records: np.ndarray, t: int) -> np.ndarray:
        """The same on every record."""
        return self.omega[:, None]

    def average_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Of the objective with these weights, (B, 1)."""
        return self.mean_square(self.weighted(weights))

    def gap(self, weights: np.ndarray) -> np.ndarray:
        """Of the objective with these weights, infinite where it is not bounded below, (B,)."""
        return self.above_infimum(self.weighted(weights))

    def bounded_below(self, weights: np.ndarray) -> np.ndarray:
        """Whether the objective with these weights is, (B,)."""
        return np.isfinite(self.gap(weights))

    def divergences_from(self, weights: np.ndarray) -> np.ndarray:
        """Squared, of the clients' gradients from that of the objective with these weights, (B, N)."""
        mean = np.einsum("bn,bndm->bdm", weights, self.slopes)[:, None]
        return supremum(remove_rounding(self.slopes - mean, self.slopes))

    def mutated(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, probabilities, weights and step sizes; these stay within the caps."""
        shares = self.moved_shares(rng)
        moved = replace(self, **self.moved_clients(rng), p=self.moved_chances(rng), omega=perturb(self.omega, rng))
        return moved.with_step_shares(*shares)


@dataclass(frozen=True, eq=False)
class KinkedRecords(Branched, Records):
    """FedAU's own weights; gradients are bounded, as there is no curvature beyond the knots."""

    def weights_on(self, records: np.ndarray, t: int) -> np.ndarray:
        """Algorithm 2's."""
        T = self.rounds
        by_cutoff = {K: weights_of(every_record(T), K)[records << (T - t), t] for K in np.unique(self.cutoff)}
        return np.stack([by_cutoff[K] for K in self.cutoff])

    def average_gradient(self) -> np.ndarray:
        return self.mean_square(self.objective)

    @property
    def covered(self) -> np.ndarray:
        return np.isfinite(self.above_infimum(self.objective)) & (self.curvatures[..., [0, -1]] == 0).all(
            axis=(1, 2, 3)
        )

    def letters(self) -> dict[str, np.ndarray]:
        return {
            "L": self.smoothness,
            "F": self.above_infimum(self.objective),
            "G": np.sqrt(supremum(self.objective.at_knots)),
            "delta": np.sqrt(self.divergences.max(axis=1)),
            "sigma": self.sigma,
        }

    def mutated(self, rng: np.random.Generator) -> Self:
        """Other functions, noise, probabilities and step sizes; these stay within the caps."""
        moved = replace(self, **self.moved_clients(rng), p=self.moved_chances(rng))
        return moved.with_step_shares(
            rng.choice([1.0, 1.0, 0.3], size=len(self)), rng.choice([1.0, 1.0, 0.3], size=len(self))
        )


def draw_base(
    rng: np.random.Generator, shape: tuple[int, ...], *, noisy: bool, sure: bool
) -> dict[str, np.ndarray | int]:
    """The fields of every kind, of EACH instances of one shape: clients, coordinates, knots, I and T."""
    N, d, m, I, T = shape
    p = np.maximum(rng.uniform(0, 1, (EACH, N)) ** rng.choice([0.2, 1.0, 6.0], size=(EACH, 1)), 1e-3)
    one = np.ones(EACH)
    return {
        **draw_clients(rng, EACH, (N, d, m), noisy=noisy),
        "samples": 0, "p": np.ones_like(p) if sure else p, "gamma": one, "eta": one, "local_steps": I, "rounds": T,
    }  # fmt: skip


def kinds(repeats: int) -> Iterator[tuple[tuple[int, ...], bool, bool]]:
    """Shapes, whether there is noise, and whether participation is full."""
    for _ in range(repeats):
        yield from ((shape, True, False) for shape in NOISY)
        yield from ((shape, False, False) for shape in WITHOUT_NOISE)
        yield (1, 1, 2, 1, 9), True, True
        yield from ((shape, False, True) for shape in NO_COINS)


@lru_cache(maxsize=8)
def kinked_weighted(cells: int, known: bool, equal: bool) -> tuple[KinkedWeighted, ...]:
    """Constant weights, those of known probabilities if `known`, one probability for all clients if `equal`."""
    rng, found = np.random.default_rng(103), []
    for shape, noisy, sure in kinds(3 if cells > 100 else 1):
        parts = draw_base(rng, shape, noisy=noisy, sure=sure)
        p = np.repeat(parts["p"][:, :1], shape[0], axis=1) if equal else parts["p"]  # type: ignore[index]
        off = rng.choice([0.0, 0.1, 1.0], size=(EACH, 1)) * rng.uniform(-1, 1, (EACH, shape[0]))
        z = KinkedWeighted(**parts | {"p": p}, omega=1 / p if known else np.maximum(1 + off, 1e-3) / p)  # type: ignore
        found.append(z.with_step_shares(rng.choice([1.0, 1.0, 0.3], size=EACH), rng.choice([1.0, 1.0, 0.3], size=EACH)))
    return tuple(found)


@lru_cache(maxsize=8)
def kinked_records(cells: int) -> tuple[KinkedRecords, ...]:
    """FedAU, with cut-offs from 1 to none."""
    rng, found = np.random.default_rng(101), []
    for shape, noisy, sure in kinds(3 if cells > 100 else 1):
        if shape[0] * shape[4] <= 10:
            cutoff = rng.choice([1.0, 2.0, 3.0, float(shape[4]), np.inf], size=EACH)
            z = KinkedRecords(**draw_base(rng, shape, noisy=noisy, sure=sure), cutoff=cutoff)  # type: ignore[arg-type]
            flat = z.curvatures.copy()
            flat[..., [0, -1]] = 0.0
            flat[np.abs(flat).max(axis=(1, 2, 3)) == 0, :, :, 1] = 1.0
            z = replace(z, curvatures=flat)
            found.append(
                z.with_step_shares(rng.choice([1.0, 1.0, 0.1], size=EACH), rng.choice([1.0, 1.0, 0.3], size=EACH))
            )
    return tuple(found)
