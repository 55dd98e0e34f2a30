r"""Runs of generalized FedAvg with given weights, whatever the clients' functions are: what the symbols say of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Annotated, Self

import numpy as np

from fedbounds.bounds.papers.arbitrary_participation.assumptions import IN_EXPECTATION
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.ranges import counts, nonnegative, positive, sums_to


@dataclass(frozen=True)
class Course:
    """The quantities of the proof: expectations over the gradient noise given the participation."""

    gradient: np.ndarray  # $\mathbb E\|\nabla f(x_t)\|^2$, (B, T+1)
    gap: np.ndarray  # $\mathbb Ef(x_t)-f^*$, (B, T+1)
    decrease: np.ndarray  # $\mathbb Ef(x_{t_0})-\mathbb Ef(x_{t_0+P})$ over each complete window, (B, K)
    spread: np.ndarray  # $V_{t,i}$, (B, T, I+1)
    drift: np.ndarray  # $D_{t,i}$, (B, T, I+1)
    # by how much the gradient may be less than it was measured, by rounding or as paths are drawn, (B, T+1)
    error: np.ndarray | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class ParticipatingRuns(Population, ABC):
    """B runs with the same numbers of clients, rounds and steps."""

    weights: Annotated[np.ndarray, nonnegative("T N")]  # $q_t^n$, (B, T, N)
    gamma: Annotated[np.ndarray, positive()]  # gamma, eta: step sizes, (B,)
    eta: Annotated[np.ndarray, positive()]
    local_steps: Annotated[int, counts()]  # local_steps, interval: I and P
    interval: Annotated[int, counts()]
    # gamma is kept within $1/(12LI\cdot\text{reach})$ by mutations; P, or 1 where a claim allows it
    reach: Annotated[int, counts()]

    def rules(self) -> dict[str, np.ndarray]:
        return super().rules() | {"the weights of a round sum to one": sums_to(self.weights, 1)}

    # --- what the functions say --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def smoothness(self) -> np.ndarray:
        """L, (B,)."""

    @property
    @abstractmethod
    def initial_gap(self) -> np.ndarray:
        r"""$f(x_0)-f^*$, (B,)."""

    @property
    @abstractmethod
    def sigma(self) -> np.ndarray:
        """The root of the largest variance of a client's noise, (B,)."""

    @property
    @abstractmethod
    def divergences(self) -> np.ndarray:
        r"""$\sup_x\|\nabla F_n-\nabla f\|^2$, (B, N)."""

    @property
    @abstractmethod
    def cohort_divergence(self) -> np.ndarray:
        """The largest left-hand side of (6), (B, T)."""

    @property
    @abstractmethod
    def participation_divergence(self) -> np.ndarray:
        """The largest left-hand side of (5), (B, T)."""

    @property
    @abstractmethod
    def divergence_of_participants(self) -> np.ndarray:
        """The largest left-hand side of (11), (B, T)."""

    @property
    @abstractmethod
    def window(self) -> np.ndarray:
        """The largest left-hand side of (7) at the complete aligned windows, (B, K)."""

    @property
    @abstractmethod
    def course(self) -> Course:
        """What is measured."""

    @property
    @abstractmethod
    def smooth(self) -> np.ndarray:
        """Whether f is smooth and bounded below, (B,)."""

    @property
    @abstractmethod
    def centered(self) -> np.ndarray:
        """Whether the divergences are finite and those from the clients' mean, (B,)."""

    @property
    def unbiased(self) -> np.ndarray:
        """Whether the noise has mean zero and at most the declared variance, (B,)."""
        return np.ones(len(self), dtype=bool)

    @property
    def independent(self) -> np.ndarray:
        """Whether the noise of different clients is, (B,)."""
        return np.ones(len(self), dtype=bool)

    # --- what participation says -------------------------------------------------------------------------------------

    @property
    def cost(self) -> int:
        """T I."""
        return self.rounds * self.local_steps

    @property
    def clients(self) -> int:
        """N."""
        return self.weights.shape[2]

    @property
    def rounds(self) -> int:
        """T."""
        return self.weights.shape[1]

    @cached_property
    def sum_of_squares(self) -> np.ndarray:
        r"""$S_t=\sum_n(q_t^n)^2$, (B, T)."""
        return (self.weights**2).sum(axis=2)

    @cached_property
    def window_weights(self) -> np.ndarray:
        """Mean weights over the complete aligned windows, (B, K, N)."""
        K = self.rounds // self.interval
        return self.weights[:, : K * self.interval].reshape(len(self), K, self.interval, -1).mean(axis=2)

    def constants(self) -> dict[str, np.ndarray]:
        """The paper's constants, exact, each (B, 1); a dictionary of one's own."""
        return dict(self._constants)

    @cached_property
    def _constants(self) -> dict[str, np.ndarray]:
        found = {
            "L": self.smoothness,
            "F": self.initial_gap,
            "sigma": self.sigma,
            "rho": np.minimum(np.sqrt(self.sum_of_squares.max(axis=1)), 1),
            "sumsq": self.sum_of_squares.min(axis=1),
            "nu": np.sqrt(self.cohort_divergence.max(axis=1)),
            "beta": np.sqrt(self.participation_divergence.max(axis=1)),
            "delta": np.sqrt(self.window.max(axis=1)),
            "d": np.sqrt(self.divergences.max(axis=1)),
            "gamma": self.gamma,
            "eta": self.eta,
        }
        counts = {"I": self.local_steps, "P": self.interval, "T": self.rounds, "N": self.clients, "s": 1.0, "r": 7 / 17}
        found |= {name: np.full(len(self), float(value)) for name, value in counts.items()}
        return {name: value[:, None] for name, value in found.items()}

    def with_step_shares(self, local: np.ndarray, update: np.ndarray) -> Self:
        r"""The same with $\gamma$ and $\gamma\eta$ at these shares of $1/(12LI\cdot\text{reach})$ and $1/(2LIP)$."""
        gamma = local / (12 * self.smoothness * self.local_steps * self.reach)
        return replace(self, gamma=gamma, eta=update / (2 * self.smoothness * self.local_steps * self.interval * gamma))

    def move_shares(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Neighbors of what `with_step_shares` takes, within the caps."""
        L = self.smoothness * self.local_steps
        local, update = self.gamma * 12 * L * self.reach, self.gamma * self.eta * 2 * L * self.interval
        return np.minimum(perturb(local, rng), 1), np.minimum(perturb(update, rng), 1)

    def move_weights(self, rng: np.random.Generator) -> np.ndarray:
        """Neighbors of the weights, in half of all cases; who takes part stays so."""
        if rng.random() >= 0.5:
            return self.weights
        weights = perturb(self.weights, rng)
        return weights / weights.sum(axis=2, keepdims=True)


# --- assumptions -----------------------------------------------------------------------------------------------------

ROUND_OFF = 1e-9
Check = Callable[[ParticipatingRuns], np.ndarray]


def _weights(z: ParticipatingRuns) -> np.ndarray:
    total = np.abs(z.weights.sum(axis=2) - 1).max(axis=1)
    return (z.weights.min(axis=(1, 2)) >= 0) & (total < ROUND_OFF)


def _regular(z: ParticipatingRuns) -> np.ndarray:
    if not z.window_weights.shape[1]:
        return np.zeros(len(z), dtype=bool)
    return np.ptp(z.window_weights, axis=2).max(axis=1) < 1e-12


def _always(z: ParticipatingRuns) -> np.ndarray:
    """True by construction: constants are the instance's own, and participation is fixed before any noise is drawn."""
    return np.ones(len(z), dtype=bool)


GIVEN: Mapping[str, Check] = {
    "smooth": lambda z: z.smooth,
    "unbiased-noise": lambda z: z.unbiased,
    "independent-clients": lambda z: z.independent,
    "martingale-noise": _always,
    "exogenous-participation": _always,
    "bounded-below": lambda z: z.smooth,
    "bounded-divergence": lambda z: z.centered,
    "cohort-divergence": lambda z: z.centered,
    "participation-divergence": lambda z: z.centered,
    "window-divergence": lambda z: z.centered,
    "weights": _weights,
    "participation-norm": _always,
    "regularized": _regular,
}
# participation is given here: an expectation over it is that of a law with one outcome
ASSUMPTIONS: Mapping[str, Check] = {**GIVEN, **{b.name: GIVEN[a.name] for a, b in IN_EXPECTATION.items()}}


def met(z: ParticipatingRuns, assumptions: Iterable[Assumption]) -> tuple[dict[str, np.ndarray], str]:
    """Which instances meet each of them, (B,), and the names of those that cannot be checked here."""
    return _met(z, frozenset(a.name for a in assumptions))


@lru_cache(maxsize=1024)
def _met(z: ParticipatingRuns, names: frozenset[str]) -> tuple[dict[str, np.ndarray], str]:
    unknown = sorted(names - set(ASSUMPTIONS))
    found = {name: np.zeros(len(z), dtype=bool) for name in unknown}
    found |= {name: ASSUMPTIONS[name](z) for name in sorted(names & set(ASSUMPTIONS))}
    return found, f"not checkable here: {', '.join(unknown)}" if unknown else ""


def all_of(assumed: Mapping[str, np.ndarray], z: ParticipatingRuns) -> np.ndarray:
    """Whether each instance meets them all, (B, 1)."""
    return np.logical_and.reduce([np.ones(len(z), dtype=bool), *assumed.values()])[:, None]
