"""FedAvg in ten lines of NumPy, with paper package for one bug."""

import inspect

import numpy as np


def fedavg_by_hand(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed):
    x, u = problem.x0, 0.0
    models = [x]
    for t in range(rounds):
        step = np.zeros_like(x)
        for n in np.flatnonzero(weights[t]):
            y = x
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            step = step + weights[t, n] * (y - x)
        x, u = x + step, u + step
        if (t + 1) % interval == 0:
            x = x + (multiplier - 1) * u
            u = 0.0
        models.append(x)
    return np.array(models)


def planted(line, mutated):
    """`fedavg_by_hand` with one bug."""
    source = inspect.getsource(fedavg_by_hand)
    assert source.count(line) == 1, f"{line!r} is not a line of the implementation"
    namespace = {"np": np}
    exec(source.replace(line, mutated), namespace)
    return namespace["fedavg_by_hand"]
