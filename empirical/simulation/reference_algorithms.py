"""Reference implementations: every algorithm by its pseudo-code, one client at a time, and the oracles it calls."""

from __future__ import annotations

import dataclasses
import math
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


def unless_statistic(problem: Problem, value: float) -> Vector:
    """The value in every coordinate, but zero where running statistics are, (d,)."""
    found = torch.full((problem.dimension,), value, dtype=problem.dtype)
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
    proximal_mu: float = 0.0,
) -> Callable[[int, Vector], Vector]:
    """The weighted sum of the participants' updates from x in round t, as `found(t, x)`; clients one by one."""
    T, N = q.shape
    tau = local_work(problem, local_steps, local_epochs, T, streams)
    gamma, rho = local_step_sizes(local_step_size, step_size_schedule, T), unless_statistic(problem, momentum)
    mu = unless_statistic(problem, proximal_mu)

    def found(t: int, x: Vector) -> Vector:
        total = torch.zeros_like(x)
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                h = g if not proximal_mu else lambda y, g=g: g(y) + mu * (y - x)
                total = total + q[t, n] * local_update(h, x, step_sizes(problem, gamma[t]), tau[t][n], rho)
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


def fedprox(problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, **local: Any) -> list[Vector]:
    """Li et al. 2020, Algorithm 2: local steps on F_n(y) + mu/2 |y - x_t|^2."""
    delta, x = mean_updates(problem, q, streams, **local), [x0]
    for t in range(len(q)):
        x.append(x[t] + delta(t, x[t]))
    return x


def fednova(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    effective_local_steps: float | None,
    local_step_size: float,
    local_steps: object,
    local_epochs: object,
    momentum: float,
    step_size_schedule: StepSizeSchedule | None,
) -> list[Vector]:
    """Wang et al. 2020, Section 4: d_n is a mean of the local gradients with the weights a_n of their momentum."""
    T, N = q.shape
    p = [1 / N] * N if problem.client_weights is None else problem.client_weights.tolist()
    tau = local_work(problem, local_steps, local_epochs, T, streams)
    gamma, x = local_step_sizes(local_step_size, step_size_schedule, T), [x0]
    for t in range(T):
        norm = [sum(sum(momentum**j for j in range(k)) for k in range(1, tau[t][n] + 1)) for n in range(N)]  # |a_n|_1
        tau_eff = effective_local_steps or sum(p[n] * norm[n] for n in range(N))
        total = torch.zeros_like(x0)
        for n in range(N):
            if q[t, n]:
                g = stochastic_oracle(problem, n, t, streams)
                d = local_update(g, x[t], gamma[t], tau[t][n], momentum) / (-gamma[t] * norm[n])
                total = total + q[t, n] * d
        x.append(x[t] - tau_eff * gamma[t] * total)
    return x


def scaffold(
    problem: Problem,
    q: np.ndarray,
    x0: Vector,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: int,
    server_multiplier: float,
) -> list[Vector]:
    """Karimireddy et al. 2020, Algorithm 1 with option II, in its symbols."""
    eta_l, K, eta_g = local_step_size, local_steps, server_multiplier
    N = q.shape[1]
    x, c, c_i = [x0], torch.zeros_like(x0), [torch.zeros_like(x0) for _ in range(N)]
    for r, row in enumerate(q):
        S = np.flatnonzero(row).tolist()
        Delta_x, Delta_c = torch.zeros_like(x0), torch.zeros_like(x0)
        for i in S:
            g, y = stochastic_oracle(problem, i, r, streams), x[r]
            for _ in range(K):
                y = y - eta_l * (g(y) - c_i[i] + c)
            c_plus = c_i[i] - c + (x[r] - y) / (K * eta_l)
            Delta_x, Delta_c = Delta_x + (y - x[r]) / len(S), Delta_c + (c_plus - c_i[i]) / N
            c_i[i] = c_plus
        x.append(x[r] + eta_g * Delta_x)
        c = c + Delta_c
    return x


def ef21(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, step_size: float, share: float
) -> list[Vector]:
    """Richtarik et al. 2021, Algorithm 2, whose g_i^0 = C(grad f_i(x^0)) is the step of round 0 from g_i = 0."""
    N, d = q.shape[1], len(x0)
    k = max(1, math.ceil(round(share * d, 9)))
    x, g = [x0], [torch.zeros_like(x0) for _ in range(N)]
    for t, row in enumerate(q):
        for i in np.flatnonzero(row).tolist():
            c = full_oracle(problem, i)(x[t]) - g[i]
            for j in sorted(range(d), key=lambda j: -abs(float(c[j])))[k:]:  # of equal entries the first are kept
                c[j] = 0.0
            g[i] = g[i] + c
        x.append(x[t] - step_size * sum(g) / N)
    return x


TWINS = {
    "fedavgm": fedavgm,
    "fedadam": fedadam,
    "fedprox": fedprox,
    "fednova": fednova,
    "scaffold": scaffold,
    "ef21": ef21,
}


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
