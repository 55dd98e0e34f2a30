"""The papers' pseudo-code in plain NumPy: the reference twins of the invariants, and examples of runs."""

from __future__ import annotations

import numpy as np

from empirical.invariants.cases import PlainProblem


def generalized_fedavg(
    problem: PlainProblem,
    weights: np.ndarray,
    *,
    rounds: int,
    step_size: float,
    local_steps: int,
    multiplier: float = 1.0,
    interval: int = 1,
    seed: int = 0,
) -> np.ndarray:
    r"""Algorithm 1 as the paper prints it, with the accumulator u.

    Args:
        problem: the clients.
        weights: $q_t^n$, (T, N).
        rounds: T.
        step_size: $\gamma$, unit x^2/f.
        local_steps: I.
        multiplier: $\eta$.
        interval: P.
        seed: not used; the noise is given by the problem.

    Returns:
        $x_0,\dots,x_T$, (T + 1, d).

    Example:
        >>> from empirical.problems import toy_example
        >>> toy = PlainProblem.of(toy_example())
        >>> generalized_fedavg(toy, np.eye(3), rounds=3, step_size=0.5, local_steps=1)[1]
        array([0., 1.])

    Source: Wang & Ji 2022, Algorithm 1.
    """
    x = [problem.x0]
    t0, u = 0, np.zeros(problem.dimension)
    for t in range(rounds):
        step = np.zeros(problem.dimension)
        for n in range(problem.clients):
            y = x[t]
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            step = step + weights[t, n] * (y - x[t])
        x.append(x[t] + step)
        u = u + step
        if t + 1 - t0 == interval:
            x[t + 1] = x[t + 1] + (multiplier - 1) * u
            t0, u = t + 1, np.zeros(problem.dimension)
    return np.stack(x)


def fedau_weights(participated: np.ndarray, cutoff: float) -> np.ndarray:
    r"""FedAU's weights as the paper computes them, one client at a time.

    Args:
        participated: who took part, booleans (T, N).
        cutoff: K, or infinity.

    Returns:
        $\omega_0,\dots,\omega_{T-1}$, (T, N).

    Example:
        >>> fedau_weights(np.array([[False], [False], [True], [True], [False]]), cutoff=2).ravel().tolist()
        [1.0, 1.0, 2.0, 1.5, 1.3333333333333333]

    Source: Wang & Ji 2024, Algorithm 2.
    """
    omega = np.ones(participated.shape)
    for n in range(participated.shape[1]):
        M, S = 0, 0
        for t in range(1, len(participated)):
            S = S + 1
            if participated[t - 1, n] or cutoff == S:
                omega[t, n] = S if M == 0 else (M * omega[t - 1, n] + S) / (M + 1)
                M, S = M + 1, 0
            else:
                omega[t, n] = omega[t - 1, n]
    return omega
