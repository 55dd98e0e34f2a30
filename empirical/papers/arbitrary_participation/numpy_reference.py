"""Algorithm 1 on plain problems of NumPy arrays: the pseudo-code itself, and nothing of an engine."""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import torch

from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.invariants.cases import PlainProblem
from fedbounds.empirical.simulation.reference_algorithms import twins


class _PlainOracle:
    """A plain problem, and its given noise in place of random streams, as the pseudo-code asks for them."""

    dtype, statistics, steps_per_epoch, client_weights = torch.float64, 0, None, None

    def __init__(self, problem: PlainProblem) -> None:
        self._problem, self.clients, self.dimension = problem, problem.clients, problem.dimension

    def generator(self, name: str, t: int, n: int) -> Iterator[np.ndarray]:
        """The noise of client n in round t, local step by local step."""
        return (self._problem.noise(t, n, i) for i in count())

    def draw(self, noises: Iterator[np.ndarray], n: int) -> np.ndarray:
        """The noise of the next step."""
        return next(noises)

    def gradient(self, y: torch.Tensor, client: torch.Tensor) -> torch.Tensor:
        """The gradient of one client, (1, 1, d)."""
        return torch.from_numpy(self._problem.gradient(int(client), y[0, 0].numpy()))[None, None]

    def stochastic_gradient(self, y: torch.Tensor, client: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """The same with this noise."""
        return self.gradient(y, client) + noise


def generalized_fedavg(
    problem: PlainProblem,  # the clients
    weights: np.ndarray,  # $q_t^n$, (T, N)
    *,
    rounds: int,  # T
    step_size: float,  # $\gamma$, unit x^2/f
    local_steps: int,  # I
    multiplier: float = 1.0,  # $\eta$
    interval: int = 1,  # P
    seed: int = 0,  # not used; the noise is given by the problem
) -> np.ndarray:
    """Algorithm 1 as the paper prints it, with the accumulator u.

    Example:
        >>> from fedbounds.empirical.problems import toy_example
        >>> toy = PlainProblem.from_problem(toy_example())
        >>> generalized_fedavg(toy, np.eye(3), rounds=3, step_size=0.5, local_steps=1)[1]
        array([0., 1.])

    Source: Wang & Ji 2022, Algorithm 1.
    """
    return reference_run("generalized-fedavg")(
        problem,
        np.asarray(weights)[:rounds],
        rounds=rounds,
        step_size=step_size,
        local_steps=local_steps,
        multiplier=multiplier,
        interval=interval,
    )


# the algorithms whose pseudo-code asks for gradients of given noise alone, with what a run calls their own numbers
OWN_NUMBERS = {
    "generalized-fedavg": {},
    "fedavg": {},
    "frozen-gradient": {},
    "average-participating": {},
    "average-all": {},
    "fixed-weights": {"client_weights": "weights"},
    "known-participation": {"probability": "probability"},
    "fedau": {"cutoff": "cutoff"},
    "fedvarp": {},
    "mifa": {},
    "fedavgm": {"server_momentum": "server_momentum"},
    "fedadam": {name: name for name in ("server_step_size", "beta1", "beta2", "tau")},
    "fedprox": {"proximal_mu": "proximal_mu"},
    "fednova": {"client_steps": "local_steps"},
    "scaffold": {},
    "ef21": {"share": "share"},
}
NAMED_ONLY = frozenset({"proximal_mu", "client_steps"})  # no one value of these suits all cases


def reference_run(kind: str) -> Callable[..., np.ndarray]:
    """The pseudo-code of an algorithm, as a run on plain problems.

    Example:
        >>> from fedbounds.empirical.problems import toy_example
        >>> toy, there = PlainProblem.from_problem(toy_example()), np.array([[0, 0, 1], [1, 0, 1]])
        >>> reference_run("fedau")(toy, there, rounds=2, step_size=0.5, local_steps=1, cutoff=2).shape
        (3, 2)

    Source: the papers of the algorithms.
    """
    names = [field.name for field in dataclasses.fields(algorithms()[kind])]  # type: ignore[arg-type]
    called = {field: own for own, field in OWN_NUMBERS[kind].items()}

    def run(problem: PlainProblem, weights: np.ndarray, **numbers: Any) -> np.ndarray:
        asked = _PlainOracle(problem)
        steps = {
            "local_step_size": numbers["step_size"],
            "server_multiplier": numbers.get("multiplier", 1.0),
            "interval": 1,
            "rate": None,
            "local_epochs": None,
            "momentum": 0.0,
            "step_size_schedule": None,
            "effective_local_steps": None,
        }
        given = steps | numbers
        models = twins()[kind](
            asked,
            np.asarray(weights),
            torch.from_numpy(problem.x0),
            asked,
            **{name: given[called.get(name, name)] for name in names},
        )
        return torch.stack(models).numpy()

    return run
