"""Slow twins of generalized FedAvg and its baselines (Wang & Ji 2022): symbols and lines of the paper.

Every function takes the problem, the weights q (T, N), the initial model x0 (d,) and the streams of one seed,
and returns the list of models x_0, ..., x_T. Clients whose weight is zero are skipped, as the paper allows.
"""

from functools import partial

import numpy as np
import torch

from fedbounds.empirical.algorithms.step_sizes import StepSizeSchedule
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import (
    Vector,
    full_oracle,
    local_step_sizes,
    local_update,
    local_work,
    step_sizes,
    stochastic_oracle,
    unless_statistic,
)


def generalized_fedavg(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: object,
    server_multiplier: float,
    interval: int,
    local_epochs: object = None,
    momentum: float = 0.0,
    step_size_schedule: StepSizeSchedule | None = None,
) -> list[Vector]:
    """Algorithm 1, with the accumulator u; the last three numbers are not in the paper."""
    eta, P = server_multiplier, interval
    T, N = q.shape
    tau = local_work(problem, local_steps, local_epochs, T, streams)
    gamma = local_step_sizes(local_step_size, step_size_schedule, T)
    x = [x0]
    t0, u = 0, torch.zeros_like(x0)
    for t in range(T):
        step = torch.zeros_like(x0)
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                step = step + q[t, n] * local_update(g, x[t], gamma[t], tau[t][n], momentum)
        x.append(x[t] + step)
        u = u + step
        if t + 1 - t0 == P:
            x[t + 1] = x[t + 1] + (eta - 1) * u
            t0, u = t + 1, torch.zeros_like(x0)
    return x


def fedavg(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: object,
    local_epochs: object = None,
    momentum: float = 0.0,
    step_size_schedule: StepSizeSchedule | None = None,
) -> list[Vector]:
    """FedAvg: x_{t+1} is the weighted mean of the clients' models, up to the sum of the weights."""
    T, N = q.shape
    tau = local_work(problem, local_steps, local_epochs, T, streams)
    gamma, rho = local_step_sizes(local_step_size, step_size_schedule, T), unless_statistic(problem, momentum)
    x = [x0]
    for t in range(T):
        x.append(x[t])
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                update = local_update(g, x[t], step_sizes(problem, gamma[t]), tau[t][n], rho)
                x[t + 1] = x[t + 1] + q[t, n] * update
    return x


def wait_minibatch(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: int,
    interval: int,
    full: bool = False,
) -> list[Vector]:
    """Local SGD of all clients in the last round of every interval; if `full`, with exact local gradients."""
    T, N = q.shape
    x = [x0]
    for t in range(T):
        x.append(x[t])
        if (t + 1) % interval == 0:
            for n in range(N):
                g = full_oracle(problem, n) if full else stochastic_oracle(problem, n, t, streams)
                x[t + 1] = x[t + 1] + local_update(g, x[t], step_sizes(problem, local_step_size), local_steps) / N
    return x


def wait_for_all(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    step_size: float,
    local_steps: int,
    interval: int,
) -> list[Vector]:
    """One SGD step at the end of an interval, if every client has taken part since the last."""
    T, N = q.shape
    x = [x0]
    gathered: list[list[Vector]] = [[] for _ in range(N)]
    for t in range(T):
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                gathered[n] += [g(x[t]) for _ in range(local_steps)]
        x.append(x[t])
        if (t + 1) % interval == 0 and all(gathered):
            for n in range(N):
                x[t + 1] = x[t + 1] - step_size / N * sum(gathered[n]) / len(gathered[n])
            gathered = [[] for _ in range(N)]
    return x


def frozen_gradient(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    step_size: float,
    local_steps: int,
    interval: int,
) -> list[Vector]:
    """SGD on the interval's participants with all gradients at the interval's first model."""
    T, N = q.shape
    x, gradients = [x0], torch.zeros_like(x0)
    for t in range(T):
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                for _ in range(local_steps):
                    gradients = gradients + q[t, n] * g(x[t])
        x.append(x[t])
        if (t + 1) % interval == 0:
            x[t + 1] = x[t] - step_size * gradients
            gradients = torch.zeros_like(x0)
    return x


TWINS = {
    "generalized-fedavg": generalized_fedavg,
    "fedavg": fedavg,
    "wait-minibatch": wait_minibatch,
    "wait-full": partial(wait_minibatch, full=True),
    "wait-for-all": wait_for_all,
    "frozen-gradient": frozen_gradient,
}
