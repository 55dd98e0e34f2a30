r"""FedAvg with aggregation weights under Bernoulli participation, on quadratics, exactly.

Client n has $F_n(x)=\frac12\sum_ja_jx_j^2+b_n^\top x$ with $\sum_nb_n=0$, so that $\nabla F_n-\nabla f=b_n$ everywhere;
a may be negative where a claim is about one round. With $S_1=\sum_{i<I}(1-\gamma a)^i$ and
$S_2=\sum_{i<I}(1-\gamma a)^{2i}$, per coordinate,
$$\mathbb E\Delta_n=-\gamma S_1(ax+b_n),\qquad \mathrm{Var}\,\Delta_n=\gamma^2S_2s^2,$$
and a round adds $\frac\eta N\sum_n\mathbb 1_n\omega_n\Delta_n$ with independent $\mathbb 1_n$ of mean $p_n$. Written
from Wang & Ji 2024, Algorithm 1; shares nothing with `fedbounds.empirical.simulation.moments`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np

from fedbounds.empirical.falsification.instances.population import Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import (
    cancels,
    chances,
    counts,
    nonnegative,
    positive,
    reals,
    sums_to,
)


def sum_over_clients(weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Weighted sum over the clients, (B, N) and (B, N, d) to (B, d); zero where only rounding is left of it."""
    parts = weights[:, :, None] * vectors
    total = parts.sum(axis=1)
    return np.where(np.abs(total) < 1e-14 * np.abs(parts).sum(axis=1), 0.0, total)


@dataclass(frozen=True, eq=False)
class ConstantWeightRuns(Population, ABC):
    """B runs with the same numbers of clients, steps and rounds and constant weights, whatever the functions are."""

    p: Annotated[np.ndarray, chances("N")]  # participation probabilities, (B, N)
    omega: Annotated[np.ndarray, positive("N")]  # aggregation weights, (B, N)
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
    @abstractmethod
    def sigma(self) -> np.ndarray:
        """The root of the largest variance of a client's noise, (B,)."""

    @abstractmethod
    def bounded_below(self, weights: np.ndarray) -> np.ndarray:
        """Whether g = sum_n w_n F_n is, (B,)."""

    @abstractmethod
    def gap(self, weights: np.ndarray) -> np.ndarray:
        """g(x_0) - g* for g = sum_n w_n F_n, (B,); only where it is bounded below."""

    @abstractmethod
    def divergences_from(self, weights: np.ndarray) -> np.ndarray:
        r"""$\sup_x\|\nabla F_n-\nabla g\|^2$ for $g=\sum_nw_nF_n$, (B, N)."""

    @abstractmethod
    def average_gradient(self, weights: np.ndarray) -> np.ndarray:
        r"""$\frac1T\sum_{t<T}\mathbb E\|\nabla g(x_t)\|^2$ for $g=\sum_nw_nF_n$, (B, 1)."""

    def objective_weights(self) -> np.ndarray:
        r"""Of h: $\omega_np_n/P$, (B, N)."""
        weights = self.p * self.omega
        return weights / weights.sum(axis=1, keepdims=True)

    def constants(self) -> dict[str, np.ndarray]:
        """The constants of a run, exact, each (B, 1); p and omega are (B, 1, N)."""
        N, uniform = self.clients, np.full_like(self.p, 1 / self.clients)
        found = {
            "L": self.smoothness,
            "F": self.gap(uniform),
            "H": self.gap(self.objective_weights()),
            "sigma": self.sigma,
            "delta": np.sqrt(self.divergences_from(uniform).max(axis=1)),
            "W": ((self.p * self.omega - 1) ** 2).mean(axis=1),
            "Q": (self.p * self.omega**2).mean(axis=1),
            "gamma": self.gamma,
            "eta": self.eta,
        }
        counts = {"N": N, "I": self.local_steps, "T": self.rounds}
        found |= {name: np.full(len(self), float(value)) for name, value in counts.items()}
        named = {name: value[:, None] for name, value in found.items()}
        return named | {"p": self.p[:, None], "omega": self.omega[:, None]}

    @property
    def _widest(self) -> np.ndarray:
        r"""The largest $\gamma\eta LI$: of Lemma B.3.3 in one round, of Theorem 2 in more, (B,)."""
        one = np.full(len(self), 1 / 2)
        return np.minimum(one, 1 / (27 * (self.p * self.omega**2).mean(axis=1))) if self.rounds > 1 else one

    def with_step_shares(self, local: np.ndarray, update: np.ndarray) -> Self:
        r"""The same with $\gamma$ at this share of $1/(4\sqrt{15}LI)$ and $\gamma\eta$ of the smaller of its caps."""
        LI = self.smoothness * self.local_steps
        gamma = local / (4 * np.sqrt(15) * LI)
        return replace(self, gamma=gamma, eta=update * self._widest / LI / gamma)

    def move_shares(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Neighbors of what `with_step_shares` takes, within the caps."""
        LI = self.smoothness * self.local_steps
        local, update = self.gamma * 4 * np.sqrt(15) * LI, self.gamma * self.eta * LI / self._widest
        return np.minimum(perturb(local, rng), 1), np.minimum(perturb(update, rng), 1)


@dataclass(frozen=True, eq=False)
class WeightedInstances(ConstantWeightRuns):
    """B instances with the same numbers of clients, steps and rounds, and constant weights."""

    curvature: Annotated[np.ndarray, reals("d")]  # a, of either sign, (B, d)
    slopes: Annotated[np.ndarray, reals("N d")]  # $b_n$, zero mean over clients, (B, N, d)
    start: Annotated[np.ndarray, reals("d")]  # $x_0$, (B, d)
    noise: Annotated[np.ndarray, nonnegative("d")]  # standard deviation per coordinate, (B, d)
    # weights of the objective $\tilde f=\sum_n\varphi_nF_n$ of a one-round lemma, (B, N)
    phi: Annotated[np.ndarray, nonnegative("N")]

    def rules(self) -> dict[str, np.ndarray]:
        return super().rules() | {
            "the slopes sum to zero": cancels(self.slopes),
            "phi sums to one": sums_to(self.phi, 1),
            "some curvature is not zero": self.smoothness > 0,
        }

    @property
    def cost(self) -> int:
        """T."""
        return self.rounds

    @cached_property
    def smoothness(self) -> np.ndarray:
        return np.abs(self.curvature).max(axis=1)

    @cached_property
    def sigma(self) -> np.ndarray:
        return np.sqrt((self.noise**2).sum(axis=1))

    def bounded_below(self, weights: np.ndarray) -> np.ndarray:
        """Whether all curvatures are positive, (B,)."""
        return np.asarray(self.curvature.min(axis=1) > 0)

    def divergences_from(self, weights: np.ndarray) -> np.ndarray:
        """Squared, of the clients' slopes from their weighted mean, (B, N)."""
        return ((self.slopes - sum_over_clients(weights, self.slopes)[:, None]) ** 2).sum(axis=2)

    @cached_property
    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """S_1 and S_2 after i = 0, ..., I local steps, each (B, I+1, d)."""
        keep = (1 - self.gamma[:, None] * self.curvature)[:, None]
        powers = keep ** np.arange(self.local_steps)[:, None]
        zero = np.zeros_like(keep)
        return tuple(np.concatenate([zero, np.cumsum(v, axis=1)], axis=1) for v in (powers, powers**2))  # type: ignore[return-value]

    def mean_gradient(self, weights: np.ndarray) -> np.ndarray:
        r"""$ax_0+\sum_nw_nb_n$ for weights (B, N) that sum to one, (B, d)."""
        return self.curvature * self.start + sum_over_clients(weights, self.slopes)

    def drift(self) -> np.ndarray:
        r"""$\mathbb E\|y^n_{0,i}-x_0\|^2$ of every client after i = 0, ..., I steps, (B, N (I+1))."""
        first, second = self.sums
        gradient = (self.curvature * self.start)[:, None] + self.slopes
        moved = (first[:, None] * gradient[:, :, None]) ** 2 + (second * self.noise[:, None] ** 2)[:, None]
        return (self.gamma[:, None] ** 2 * moved.sum(axis=3).reshape(len(self), -1)).reshape(len(self), -1)

    def ascent(self) -> np.ndarray:
        r"""$\mathbb E\tilde f(x_1)-\tilde f(x_0)$, (B, 1)."""
        a, p, w, N = self.curvature, self.p[:, :, None], self.omega[:, :, None], self.clients
        first, second = (v[:, -1] for v in self.sums)
        gamma, eta = self.gamma[:, None], self.eta[:, None]
        mean = -gamma[:, None] * first[:, None] * ((a * self.start)[:, None] + self.slopes)
        variance = gamma**2 * second * self.noise**2
        step = eta / N * sum_over_clients(self.p * self.omega, mean)
        spread = (eta / N) ** 2 * (w**2 * (p * (1 - p) * mean**2 + p * variance[:, None])).sum(axis=1)
        change = self.mean_gradient(self.phi) * step + a / 2 * (step**2 + spread)
        return change.sum(axis=1, keepdims=True)

    def average_gradient(self, weights: np.ndarray) -> np.ndarray:
        a, p, w, N = self.curvature, self.p[:, :, None], self.omega[:, :, None], self.clients
        first, second = (v[:, -1] for v in self.sums)
        gamma, eta = self.gamma[:, None], self.eta[:, None]
        pull = sum_over_clients(weights, self.slopes)
        step = gamma * first  # what a client multiplies its gradient by
        fresh = (eta / N) ** 2 * (gamma**2 * second * self.noise**2) * (p * w**2).sum(axis=1)
        chance = (eta / N * step)[:, None] ** 2 * w**2 * p * (1 - p)
        mean, variance, total = self.start, np.zeros_like(a), np.zeros(len(self))
        keep = 1 - eta / N * step * a * (p * w).sum(axis=1)
        drive = eta / N * step * sum_over_clients(self.p * self.omega, self.slopes)
        for _ in range(self.rounds):
            total += ((a * mean + pull) ** 2 + a**2 * variance).sum(axis=1)
            local = ((a * mean)[:, None] + self.slopes) ** 2 + (a**2 * variance)[:, None]
            mean, variance = keep * mean - drive, keep**2 * variance + (chance * local).sum(axis=1) + fresh
        return (total / self.rounds)[:, None]

    def gap(self, weights: np.ndarray) -> np.ndarray:
        gradient = self.mean_gradient(weights)
        return (gradient**2 / (2 * np.where(self.curvature > 0, self.curvature, np.inf))).sum(axis=1)

    def constants(self) -> dict[str, np.ndarray]:
        """Those of a run and of its first round."""
        found = {
            "V": ((self.p * self.omega / self.clients - self.phi) ** 2).sum(axis=1),
            "Z": (self.p * self.omega**2).sum(axis=1),
            "gradsq": (self.mean_gradient(self.phi) ** 2).sum(axis=1),
        }
        return super().constants() | {name: value[:, None] for name, value in found.items()}

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other curvatures, slopes, start, noise, probabilities, weights and step sizes; these stay within the caps."""
        slopes = shake(self.slopes, rng)
        even = np.ptp(self.phi, axis=1, keepdims=True) == 0  # then the objective stays f
        phi = np.where(even, self.phi, perturb(self.phi, rng))
        moved = replace(
            self,
            curvature=perturb(self.curvature, rng),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            **self.neighbors(rng, start=shake, noise=perturb),
            p=np.minimum(perturb(self.p, rng), 1),
            omega=perturb(self.omega, rng),
            phi=phi / phi.sum(axis=1, keepdims=True),
        )
        return moved.with_step_shares(*self.move_shares(rng))


def draw_weighted(
    rng: np.random.Generator, B: int, shape: tuple[int, ...], *, uniform: bool = True
) -> WeightedInstances:
    r"""B random instances of one shape (N, d, I, T); of one round where T = 1, then of either curvature."""
    N, d, I, T = shape

    def sizes(*values: float) -> np.ndarray:
        return rng.choice(values, size=B)

    spectrum = rng.uniform(0.001, 1, (B, d)) ** sizes(1.0, 6.0)[:, None]
    spectrum[:, 0] = 1.0
    signs = rng.choice([-1.0, 1.0], size=(B, d)) if T == 1 else 1.0
    slopes = sizes(0.0, 0.1, 1.0, 10.0)[:, None, None] * rng.normal(size=(B, N, d))
    p = np.where(rng.random((B, 1)) < 0.2, 1.0, rng.uniform(0, 1, (B, N)) ** sizes(1.0, 4.0, 12.0)[:, None])
    p = np.maximum(p, 1e-6)
    off = sizes(0.0, 0.05, 0.1, 1.0)[:, None] * rng.uniform(-1, 1, (B, N))  # within 1/9 where it is at most 0.1
    z = WeightedInstances(
        curvature=sizes(0.05, 1.0, 20.0)[:, None] * signs * spectrum,
        slopes=slopes - slopes.mean(axis=1, keepdims=True),
        start=sizes(0.0, 0.01, 1.0, 10.0)[:, None] * rng.normal(size=(B, d)),
        noise=sizes(0.0, 0.1, 1.0, 10.0)[:, None] * rng.uniform(0, 1, (B, d)),
        p=p,
        omega=np.maximum(1 + off, 1e-3) / p,
        phi=np.full((B, N), 1 / N) if uniform else rng.dirichlet(np.full(N, 0.5), size=B),
        gamma=np.ones(B),
        eta=np.ones(B),
        local_steps=I,
        rounds=T,
    )
    return z.with_step_shares(sizes(1.0, 1.0, 0.3, 1e-3), sizes(1.0, 1.0, 0.3, 0.03))
