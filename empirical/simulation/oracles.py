"""What a client's pseudo-code asks of a problem: its stochastic gradients, exact ones, and local steps with either."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

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


def local_update(g: Oracle, x: Vector, gamma: float | Vector, I: int) -> Vector:
    """Delta after I local steps from x (Wang & Ji 2022, Algorithm 1, lines 4 to 8)."""
    y = x
    for _ in range(I):
        y = y - gamma * g(y)
    return y - x
