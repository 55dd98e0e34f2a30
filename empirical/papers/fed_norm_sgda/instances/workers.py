"""What clients of Fed-Norm-SGDA do in a round, and how the server combines it, whatever their functions are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.ranges import Range, always, counts, nonnegative, positive, sums_to

Values = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Workers(Population):
    """What clients do in a round, and how the server combines it."""

    weights: Annotated[np.ndarray, positive("n")]  # $w_i$, (B, n)
    rates: Annotated[np.ndarray, positive("n K")]  # $v_j$, how long each local step is, (B, n, max tau)
    momentum: Annotated[np.ndarray, Range(Domain(0, 1, high_open=True), "n")]  # $\rho_i$, (B, n)
    growth: Annotated[np.ndarray, nonnegative()]  # $\beta_L$, (B,)
    etax: Annotated[np.ndarray, nonnegative()]  # etax, etay: clients' steps, (B,)
    etay: Annotated[np.ndarray, nonnegative()]
    Gammax: Annotated[np.ndarray, nonnegative()]  # Gammax, Gammay: $\tau_{\rm eff}$ times the server's steps, (B,)
    Gammay: Annotated[np.ndarray, nonnegative()]
    taueff: Annotated[np.ndarray, positive()]  # (B,)
    tau: Annotated[tuple[int, ...], counts("n")]  # local steps of every client
    participants: Annotated[int, counts()]  # P

    def rules(self) -> dict[str, np.ndarray]:
        enough, drawn = self.rates.shape[2] >= max(self.tau), self.participants <= self.clients
        return super().rules() | {
            "the weights sum to one": sums_to(self.weights, 1),
            "there are rates for all local steps": always(enough, self.weights),
            "participants are at most the clients": always(drawn, self.weights),
        }

    @property
    def clients(self) -> int:
        """n."""
        return len(self.tau)

    @property
    def rest(self) -> float:
        """d = (n - P)/(n - 1), of one client 0."""
        return (self.clients - self.participants) / max(1, self.clients - 1)

    @property
    def sampled(self) -> float:
        """n/P."""
        return self.clients / self.participants

    @cached_property
    def coefficients(self) -> np.ndarray:
        r"""$a_i^{(j)}(\tau_i)$, zero from $\tau_i$ on, (B, n, max tau)."""
        a = np.zeros(self.rates.shape)
        for i, tau in enumerate(self.tau):
            power, total = np.ones(len(self)), np.zeros(len(self))
            for j in reversed(range(tau)):
                total, power = total + power, power * self.momentum[:, i]
                a[:, i, j] = self.rates[:, i, j] * total
        return a

    @cached_property
    def norms(self) -> Values:
        """a1, a2, alast and amax, each (B, n)."""
        a = self.coefficients
        last = a[:, range(self.clients), [tau - 1 for tau in self.tau]]
        return {"a1": a.sum(axis=2), "a2": (a**2).sum(axis=2), "alast": last, "amax": a.max(axis=2)}

    @cached_property
    def composites(self) -> Values:
        """The paper's composite constants and those behind them, each (B,)."""
        w, n, (a1, a2, _, amax) = self.weights, self.clients, self.norms.values()
        alpha, growth = amax.max(axis=1), self.growth[:, None] ** 2
        before = self.coefficients * (np.arange(max(self.tau)) < np.array(self.tau)[:, None] - 1)  # the last ones apart
        first, early = before.sum(axis=2), (before**2).sum(axis=2)
        Z, Q = (w**2 * a2 / a1**2).sum(axis=1), (w * a2 / a1**2).max(axis=1)
        K, W = (w * amax / a1).max(axis=1), w.max(axis=1)
        return {
            "alpha": alpha,
            "Z": Z,
            "Q": Q,
            "K": K,
            "W": W,
            "S_2": self.rest * W + self.growth**2 * K,
            "A_w": n * self.taueff * Z,
            "B_w": n * self.taueff * Q,
            "C_w": (w * early).sum(axis=1),
            "D": (first**2 + growth * early).max(axis=1),
            "E_w": n * W,
            "a_m": (a1 * (first + growth * alpha[:, None])).max(axis=1),
        }

    def worker_symbols(self) -> Values:
        """What every form may ask about clients and server: (B, 1), or (B, 1, n) for vectors over clients."""
        n, tau = self.clients, np.array(self.tau, dtype=float)
        found = self.composites | {
            "betaL": self.growth,
            "etax": self.etax,
            "etay": self.etay,
            "Gammax": self.Gammax,
            "Gammay": self.Gammay,
            "taueff": self.taueff,
            "gammax": self.Gammax / self.taueff,
            "gammay": self.Gammay / self.taueff,
        }
        counts = {"n": n, "P": self.participants, "nu": min(2, max(self.tau)), "taubar": tau.mean()}
        found |= {name: np.full(len(self), float(value)) for name, value in counts.items()}
        vectors = self.norms | {"w": self.weights, "tau": np.broadcast_to(tau, (len(self), n))}
        return {name: value[:, None] for name, value in (found | vectors).items()}

    def move_workers(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Neighbors of weights, rates, momentum, growth and tau_eff; equal clients stay equal."""
        even = (np.ptp(self.weights, axis=1) == 0)[:, None]
        weights = np.where(even, self.weights, perturb(self.weights, rng))
        plain = np.ptp(self.rates, axis=(1, 2)) == 0
        return {
            "weights": weights / weights.sum(axis=1, keepdims=True),
            "rates": np.where(plain[:, None, None], self.rates, perturb(self.rates, rng)),
            "momentum": np.where(plain[:, None], self.momentum, np.minimum(perturb(self.momentum, rng), 0.95)),
            "growth": perturb(self.growth, rng),
            "taueff": np.where(plain, self.taueff, perturb(self.taueff, rng)),
        }


def cap_steps(values: np.ndarray, *factors: np.ndarray | float) -> np.ndarray:
    """The largest step whose product with each factor is at most 1, at most `values`, (B,)."""
    with np.errstate(divide="ignore"):
        return np.min([values, *(np.broadcast_to(1 / np.asarray(f, dtype=float), values.shape) for f in factors)], 0)


def draw_workers(
    rng: np.random.Generator, B: int, tau: tuple[int, ...], participants: int, *, growing: bool, even: bool
) -> dict[str, object]:
    """Weights, local coefficients and tau_eff of B instances; all alike and plain if `even`."""
    n, K = len(tau), max(tau)
    plain = rng.random(B) < 0.5
    if even:
        weights, plain = np.full((B, n), 1 / n), np.ones(B, dtype=bool)
    else:
        weights = rng.dirichlet(np.full(n, 1.0), size=B) + 1e-3
        weights = np.where(rng.random((B, 1)) < 0.3, 1 / n, weights / weights.sum(axis=1, keepdims=True))
    spans = rng.choice([0.0, 0.5, 2.0], size=(B, 1, 1))
    rates = np.where(plain[:, None, None], 1.0, np.exp(spans * rng.normal(size=(B, n, K))))
    momentum = np.where(plain[:, None], 0.0, rng.choice([0.0, 0.5, 0.9], size=(B, 1)) * rng.uniform(0, 1, (B, n)))
    growth = rng.choice([0.3, 1.0, 10.0], size=B) if growing else np.zeros(B)
    taueff = np.full(B, float(np.mean(tau))) if even else rng.choice([1.0, float(np.mean(tau)), 0.1], size=B)
    one = np.ones(B)
    return {
        "weights": weights, "rates": rates, "momentum": momentum, "growth": growth, "etax": one, "etay": one,
        "Gammax": one, "Gammay": one, "taueff": taueff, "tau": tau, "participants": participants,
    }  # fmt: skip
