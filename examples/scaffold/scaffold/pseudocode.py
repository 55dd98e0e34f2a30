"""The slow twin: Algorithm 1 with option II, symbols and lines of the paper."""

import numpy as np
import torch

import fedbounds as fb
from fedbounds.algorithms import Streams, Vector, stochastic_oracle


def scaffold(
    problem: fb.problems.Problem, q: np.ndarray, x0: Vector, streams: Streams,
    *, local_step_size: float, local_steps: int, server_multiplier: float,
) -> list[Vector]:  # fmt: skip
    """The models x_0, ..., x_R when client i takes part in round r where q[r, i] is not zero."""
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


TWINS = {"scaffold": scaffold}
