"""Reference implementations: every algorithm by its pseudo-code, one client at a time, and the oracles it calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from fedbounds.bounds.theory.registry import merge_tables
from fedbounds.empirical.algorithms import Algorithm, RandomWork
from fedbounds.empirical.algorithms.step_sizes import StepSizeSchedule
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import Streams

Vector = torch.Tensor
Oracle = Callable[[Vector], Vector]


def stochastic_oracle(problem: Problem, n: int, t: int, streams: Streams) -> Oracle:
    """g_n: every call draws anew from the place (round t, client n) of the noise."""
    rng, name = streams.generator("noise", t, n), torch.tensor([[n]])

    def g(y: Vector) -> Vector:
        xi = problem.draw(rng, n)
        drawn = None if xi is None else torch.from_numpy(np.asarray(xi))[None, None]
        if drawn is not None and drawn.is_floating_point():
            drawn = drawn.to(problem.dtype)
        return problem.stochastic_gradient(y[None, None], name, drawn)[0, 0]

    return g


def step_sizes(problem: Problem, gamma: float) -> Vector:
    """gamma in every coordinate, but one where running statistics are, (d,)."""
    sizes = torch.full((problem.dimension,), gamma, dtype=problem.dtype)
    sizes[problem.dimension - problem.statistics :] = 1.0
    return sizes


def full_oracle(problem: Problem, n: int) -> Oracle:
    """The exact gradient of F_n."""
    return lambda y: problem.gradient(y[None, None], torch.tensor([[n]]))[0, 0]


def momenta(problem: Problem, rho: float) -> Vector:
    """rho in every coordinate, but zero where running statistics are, (d,)."""
    found = torch.full((problem.dimension,), rho, dtype=problem.dtype)
    found[problem.dimension - problem.statistics :] = 0.0
    return found


def local_update(g: Oracle, x: Vector, gamma: float | Vector, I: int, momentum: float | Vector = 0.0) -> Vector:
    """Delta after I local steps from x (Wang & Ji 2022, Algorithm 1, lines 4 to 8), with heavy-ball momentum."""
    y, d = x, torch.zeros_like(x)
    for _ in range(I):
        d = momentum * d + g(y)
        y = y - gamma * d
    return y - x


Steps = Sequence[Sequence[int]]


def local_work(problem: Problem, local_steps: object, local_epochs: object, rounds: int, streams: Streams) -> Steps:
    """`tau[t][n]`: numbers, or draws from low, ..., high at the place (round) of the stream `work`; epochs in steps."""
    amount = local_epochs if local_steps is None else local_steps
    per_epoch = [1] * problem.clients if problem.steps_per_epoch is None else problem.steps_per_epoch.tolist()
    tau = []
    for t in range(rounds):
        if isinstance(amount, RandomWork):
            rng = streams.generator("work", t if amount.redraw else 0)
            row = [int(rng.integers(amount.low, amount.high + 1)) for _ in range(problem.clients)]
        else:
            table = np.asarray(amount)
            row = np.broadcast_to(table[t] if table.ndim == 2 else table, problem.clients).tolist()
        tau.append([k if local_epochs is None else k * per_epoch[i] for i, k in enumerate(row)])
    return tau


def local_step_sizes(gamma: float, schedule: StepSizeSchedule | None, rounds: int) -> list[float]:
    """The step size of every round."""
    return [gamma * (1.0 if schedule is None else schedule.multiple(t)) for t in range(rounds)]


def mean_updates(
    problem: Problem,
    q: np.ndarray,
    streams: Streams,
    local_step_size: float,
    local_steps: object,
    local_epochs: object,
    momentum: float,
    step_size_schedule: StepSizeSchedule | None,
) -> Callable[[int, Vector], Vector]:
    """The weighted sum of the participants' updates from x in round t, as `found(t, x)`; clients one by one."""
    T, N = q.shape
    tau = local_work(problem, local_steps, local_epochs, T, streams)
    gamma, rho = local_step_sizes(local_step_size, step_size_schedule, T), momenta(problem, momentum)

    def found(t: int, x: Vector) -> Vector:
        total = torch.zeros_like(x)
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                total = total + q[t, n] * local_update(g, x, step_sizes(problem, gamma[t]), tau[t][n], rho)
        return total

    return found


def fedavgm(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    server_momentum: float,
    server_multiplier: float,
    **local: Any,
) -> list[Vector]:
    """FedAvg with server momentum; a round without participants changes nothing."""
    delta = mean_updates(problem, q, streams, **local)
    x, v = [x0], torch.zeros_like(x0)
    for t in range(len(q)):
        if not q[t].any():
            x.append(x[t])
            continue
        v = server_momentum * v + delta(t, x[t])
        x.append(x[t] + server_multiplier * v)
    return x


def fedadam(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    server_step_size: float,
    beta1: float,
    beta2: float,
    tau: float,
    **local: Any,
) -> list[Vector]:
    """Reddi et al. 2021, Algorithm 2 with FedAdam's line 9; a round without participants changes nothing."""
    delta = mean_updates(problem, q, streams, **local)
    x, m, v = [x0], torch.zeros_like(x0), torch.full_like(x0, tau**2)
    for t in range(len(q)):
        if not q[t].any():
            x.append(x[t])
            continue
        Delta_t = delta(t, x[t])
        m = beta1 * m + (1 - beta1) * Delta_t
        v = beta2 * v + (1 - beta2) * Delta_t * Delta_t
        x.append(x[t] + server_step_size * m / (torch.sqrt(v) + tau))
    return x


TWINS = {"fedavgm": fedavgm, "fedadam": fedadam}


@cache
def twins() -> Mapping[str, Callable[..., list[torch.Tensor]]]:
    """The reference implementation of every algorithm by its kind: of no paper, and `<paper>.pseudocode:TWINS`."""
    return TWINS | merge_tables("empirical", "pseudocode", lambda module: module.TWINS)


def run_reference(algorithm: Algorithm, problem: Problem, q: np.ndarray, streams: Streams) -> torch.Tensor:
    """The models x_0, ..., x_T of one seed, shape (T + 1, d), by the algorithm's reference implementation.

    Args:
        algorithm: the algorithm.
        problem: the clients' gradients.
        q: the weights, shape (T, N).
        streams: of the seed.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
        >>> from fedbounds.empirical.problems import toy_example
        >>> run_reference(FedAvg(0.1, 1), toy_example(), np.eye(3), Streams(0)).shape
        torch.Size([4, 2])
    """
    x0 = problem.initial_point(streams.generator("initialization"))
    numbers = {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)}  # type: ignore[arg-type]
    return torch.stack(twins()[algorithm.kind](problem, q, x0, streams, **numbers))


__all__ = ["run_reference", "twins"]
