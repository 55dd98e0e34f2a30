"""Slow references of FedAU and its baselines (Wang & Ji 2024): symbols and lines of the paper.

Every function takes the problem, the weights q (T, N), only whether they are zero matters, the initial model
x0 (d,) and the streams of one seed, and returns the list of models x_0, ..., x_T.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import Vector, local_update, stochastic_oracle


def fedau_weights(participated: np.ndarray, cutoff: float) -> np.ndarray:
    """FedAU's weights as the paper computes them, one client at a time.

    Example:
        >>> fedau_weights(np.array([[False], [False], [True], [True], [False]]), cutoff=2).ravel().tolist()
        [1.0, 1.0, 2.0, 1.5, 1.3333333333333333]

    Source: Wang & Ji 2024, Algorithm 2.
    """
    omega = np.ones(participated.shape)
    for t, n in np.ndindex(participated.shape):
        omega[t, n] = fedau_weight(participated[:t, n].tolist(), cutoff)
    return omega


Record = Sequence[bool]  # whether client n took part in rounds 0, ..., t - 1
ComputeWeight = Callable[[int, Record], float]
Server = Callable[[int, Vector, float, Mapping[int, Vector]], Vector]  # of t, x_t, eta and the participants' updates


def fedau_weight(record: Record, K: float, a: float | None = None) -> float:
    """Algorithm 2: omega_t of one client, from its record; with a, the mean is exponentially weighted."""
    M, S, omega = 0, 0, 1.0
    for t in range(1, len(record) + 1):
        S = S + 1
        if record[t - 1] or S == K:
            if M == 0:
                omega = S
            elif a is None:
                omega = (M * omega + S) / (M + 1)
            else:
                omega = (1 - a) * omega + a * S
            M, S = M + 1, 0
    return omega


def run_rounds(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    server: Server,
    *,
    local_step_size: float,
    local_steps: int,
    server_multiplier: float,
) -> list[Vector]:
    """The participants' updates Delta by client, from which the server makes the next model."""
    x = [x0]
    for t, row in enumerate(q):
        Delta = {
            n: local_update(stochastic_oracle(problem, n, t, streams), x[t], local_step_size, local_steps)
            for n in np.flatnonzero(row).tolist()
        }
        x.append(server(t, x[t], server_multiplier, Delta))
    return x


def algorithm_1(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, compute_weight: ComputeWeight, **steps: float
) -> list[Vector]:
    """FedAvg with pluggable aggregation weights: compute_weight(n, record of client n before round t)."""
    present, N = q != 0, q.shape[1]

    def server(t: int, x: Vector, eta: float, Delta: Mapping[int, Vector]) -> Vector:
        total = torch.zeros_like(x)
        for n in Delta:
            total = total + compute_weight(n, present[:t, n].tolist()) * Delta[n]
        return x + eta / N * total

    return run_rounds(problem, q, x0, streams, server, **steps)  # type: ignore[arg-type]


def fedau(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, cutoff: float, rate: float | None, **steps: float
) -> list[Vector]:
    """Algorithm 1 with Algorithm 2."""
    K = math.inf if cutoff == math.inf else int(cutoff)

    def compute_weight(n: int, record: Record) -> float:
        return fedau_weight(record, K, rate)

    return algorithm_1(problem, q, x0, streams, compute_weight, **steps)


def fixed_weights(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, weights: float | Sequence[float], **steps: float
) -> list[Vector]:
    """Algorithm 1 with constant weights."""
    omega = np.broadcast_to(np.asarray(weights, dtype=float), q.shape[1])
    return algorithm_1(problem, q, x0, streams, lambda n, record: omega[n], **steps)


def average_all(problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, **steps: float) -> list[Vector]:
    """Algorithm 1 with omega = 1."""
    return fixed_weights(problem, q, x0, streams, weights=1.0, **steps)


def known_participation(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    probability: float | Sequence[float],
    **steps: float,
) -> list[Vector]:
    """Algorithm 1 with omega = 1/p."""
    return fixed_weights(problem, q, x0, streams, weights=(1 / np.asarray(probability)).tolist(), **steps)


def average_participating(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, **steps: float
) -> list[Vector]:
    """The mean over the participants; an empty round changes nothing."""

    def server(t: int, x: Vector, eta: float, Delta: Mapping[int, Vector]) -> Vector:
        for n in Delta:
            x = x + eta / len(Delta) * Delta[n]
        return x

    return run_rounds(problem, q, x0, streams, server, **steps)  # type: ignore[arg-type]


def fedvarp(problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, **steps: float) -> list[Vector]:
    """The participants' change since their last update, plus the mean of all last updates."""
    u = [torch.zeros_like(x0) for _ in range(q.shape[1])]

    def server(t: int, x: Vector, eta: float, Delta: Mapping[int, Vector]) -> Vector:
        if not Delta:
            return x
        step = torch.stack(u).sum(0) / len(u)
        for n in Delta:
            step = step + (Delta[n] - u[n]) / len(Delta)
            u[n] = Delta[n]
        return x + eta * step

    return run_rounds(problem, q, x0, streams, server, **steps)  # type: ignore[arg-type]


def mifa(problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, **steps: float) -> list[Vector]:
    """The mean of all last updates, this round included."""
    u = [torch.zeros_like(x0) for _ in range(q.shape[1])]

    def server(t: int, x: Vector, eta: float, Delta: Mapping[int, Vector]) -> Vector:
        for n in Delta:
            u[n] = Delta[n]
        return x + eta * torch.stack(u).sum(0) / len(u)

    return run_rounds(problem, q, x0, streams, server, **steps)  # type: ignore[arg-type]


TWINS = {
    "fedau": fedau,
    "average-participating": average_participating,
    "average-all": average_all,
    "fixed-weights": fixed_weights,
    "known-participation": known_participation,
    "fedvarp": fedvarp,
    "mifa": mifa,
}
