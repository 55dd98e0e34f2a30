"""Fed-Norm-SGDA written out by hand, and the same with one bug."""

import inspect

import numpy as np


def fed_norm_sgda_by_hand(
    game, cohorts, *, weights, local_steps, local_step_sizes, step_sizes, momentum=0.0, period=0, seed=0
):
    """Algorithm 1 with the local map of eq. (12), written out once more."""
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
            Gx = []
            Gy = []
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


def planted(old, new):
    """The run with one bug."""
    source = inspect.getsource(fed_norm_sgda_by_hand)
    assert source.count(old) == 1, old
    space = {"np": np}
    exec(source.replace(old, new), space)
    return space["fed_norm_sgda_by_hand"]
