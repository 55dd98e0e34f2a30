"""Slow references of FedAU and its baselines (Wang & Ji 2024): symbols and lines of the paper.

Every function takes the problem, the weights q (T, N), only whether they are zero matters, the initial model
x0 (d,) and the streams of one seed, and returns the list of models x_0, ..., x_T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import Vector, local_update, stochastic_oracle

Record = Sequence[bool]  # whether client n took part in rounds 0, ..., t - 1
ComputeWeight = Callable[[int, Record], float]


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


def algorithm_1(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    compute_weight: ComputeWeight,
    *,
    local_step_size: float,
    local_steps: int,
    server_multiplier: float,
) -> list[Vector]:
    """FedAvg with pluggable aggregation weights: compute_weight(n, record of client n before round t)."""
    gamma, eta, I = local_step_size, server_multiplier, local_steps
    present = q != 0
    T, N = q.shape
    x = [x0]
    for t in range(T):
        total = torch.zeros_like(x0)
        for n in range(N):
            if present[t, n]:
                Delta = local_update(stochastic_oracle(problem, n, t, streams), x[t], gamma, I)
                total = total + compute_weight(n, present[:t, n].tolist()) * Delta
        x.append(x[t] + eta / N * total)
    return x


def fedau(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, cutoff: float, rate: float | None, **steps: float
) -> list[Vector]:
    """Algorithm 1 with Algorithm 2."""
    K = math.inf if cutoff == math.inf else int(cutoff)

    def compute_weight(n: int, record: Record) -> float:
        return fedau_weight(record, K, rate)

    return algorithm_1(problem, q, x0, streams, compute_weight, **steps)  # type: ignore[arg-type]


def fixed_weights(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, weights: float | Sequence[float], **steps: float
) -> list[Vector]:
    """Algorithm 1 with constant weights."""
    omega = np.broadcast_to(np.asarray(weights, dtype=float), q.shape[1])
    return algorithm_1(problem, q, x0, streams, lambda n, record: omega[n], **steps)  # type: ignore[arg-type]


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
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: int,
    server_multiplier: float,
) -> list[Vector]:
    """The mean over the participants; an empty round changes nothing."""
    x = [x0]
    for t, row in enumerate(q):
        S = np.flatnonzero(row).tolist()
        x.append(x[t])
        for n in S:
            Delta = local_update(stochastic_oracle(problem, n, t, streams), x[t], local_step_size, local_steps)
            x[t + 1] = x[t + 1] + server_multiplier / len(S) * Delta
    return x


def fedvarp(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: int,
    server_multiplier: float,
) -> list[Vector]:
    """The participants' change since their last update, plus the mean of all last updates."""
    N = q.shape[1]
    x, u = [x0], [torch.zeros_like(x0) for _ in range(N)]
    for t, row in enumerate(q):
        S = np.flatnonzero(row).tolist()
        if len(S) == 0:
            x.append(x[t])
            continue
        step = torch.stack(u).sum(0) / N
        for n in S:
            Delta = local_update(stochastic_oracle(problem, n, t, streams), x[t], local_step_size, local_steps)
            step = step + (Delta - u[n]) / len(S)
            u[n] = Delta
        x.append(x[t] + server_multiplier * step)
    return x


def mifa(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: int,
    server_multiplier: float,
) -> list[Vector]:
    """The mean of all last updates, this round included."""
    N = q.shape[1]
    x, u = [x0], [torch.zeros_like(x0) for _ in range(N)]
    for t, row in enumerate(q):
        for n in np.flatnonzero(row).tolist():
            u[n] = local_update(stochastic_oracle(problem, n, t, streams), x[t], local_step_size, local_steps)
        x.append(x[t] + server_multiplier * torch.stack(u).sum(0) / N)
    return x


TWINS = {
    "fedau": fedau,
    "average-participating": average_participating,
    "average-all": average_all,
    "fixed-weights": fixed_weights,
    "known-participation": known_participation,
    "fedvarp": fedvarp,
    "mifa": mifa,
}
