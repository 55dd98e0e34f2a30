"""The papers' pseudo-code in plain NumPy: the reference twins of the invariants, and examples of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedbounds.empirical.invariants.cases import PlainProblem

if TYPE_CHECKING:
    from fedbounds.empirical.papers.fed_norm_sgda.games import Game


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
        >>> from fedbounds.empirical.problems import toy_example
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


def fed_norm_sgda(
    game: Game,
    cohorts: np.ndarray,
    *,
    weights: np.ndarray,
    local_steps: np.ndarray,
    local_step_sizes: tuple[float, float],
    step_sizes: tuple[float, float],
    momentum: float = 0.0,
    period: int = 0,
    seed: int = 0,
) -> np.ndarray:
    r"""Algorithm 1 with the local map of eq. (12): every local iterate from the coefficients of all gradients so far.

    Args:
        game: the clients.
        cohorts: who takes part, (T, P).
        weights: $w_i$, (n,).
        local_steps: $\tau_i$, (n,).
        local_step_sizes: $(\eta_x, \eta_y)$, unit x^2/f.
        step_sizes: $(\Gamma_x, \Gamma_y)$, unit x^2/f.
        momentum: $\rho$; the coefficients are $a^{(j)}(k) = 1 + \rho + \dots + \rho^{k-j-1}$.
        period: S, or 0 for no snapshots.
        seed: not used; nothing is random.

    Returns:
        $(x_0, y_0), \dots, (x_T, y_T)$, (T + 1, d).

    Example:
        >>> from fedbounds.empirical.papers.fed_norm_sgda.games import Game
        >>> game = Game(np.array([[[1.0, 0.0], [0.0, -1.0]]]), np.zeros((1, 2)), np.array([1.0, 1.0]), 1)
        >>> fed_norm_sgda(game, np.array([[0]]), weights=np.ones(1), local_steps=np.array([2]),
        ...               local_step_sizes=(0.5, 0.0), step_sizes=(1.0, 1.0))[1]
        array([0.25, 0.  ])

    Source: Sharma et al. 2023, Algorithm 1, eqs. (3) and (12).
    """
    n, P = game.clients, cohorts.shape[1]
    states, snapshot = [(game.x0, game.y0)], game.x0
    for t, cohort in enumerate(cohorts):
        x, y = states[t]
        if period and t % period == 0:
            snapshot = x
        gx, gy = 0 * x, 0 * y
        for i in cohort:
            tau = int(local_steps[i])
            sums = [sum(momentum**m for m in range(k)) for k in range(tau + 1)]
            a = [[sums[k - j] for j in range(k)] for k in range(tau + 1)]
            Gx: list[np.ndarray] = []
            Gy: list[np.ndarray] = []
            for k in range(tau):
                xk = x - local_step_sizes[0] * sum((c * g for c, g in zip(a[k], Gx, strict=True)), 0 * x)
                yk = y + local_step_sizes[1] * sum((c * g for c, g in zip(a[k], Gy, strict=True)), 0 * y)
                Gx.append(game.gradient(i, xk, yk)[0])
                Gy.append(game.gradient(i, snapshot if period else xk, yk)[1])
            share = weights[i] * n / P / sum(a[tau])
            gx = gx + share * sum(c * g for c, g in zip(a[tau], Gx, strict=True))
            gy = gy + share * sum(c * g for c, g in zip(a[tau], Gy, strict=True))
        states.append((x - step_sizes[0] * gx, y + step_sizes[1] * gy))
    return np.stack([np.concatenate(state) for state in states])
