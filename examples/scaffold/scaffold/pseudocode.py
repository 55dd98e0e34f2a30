"""The slow reference: that of SCAFFOLD in fedbounds, with the global step size of Theorem III."""

import numpy as np

import fedbounds as fb
from fedbounds.algorithms import Streams, Vector
from fedbounds.empirical.simulation.reference_algorithms import scaffold


def prescribed_scaffold(
    problem: fb.problems.Problem, q: np.ndarray, x0: Vector, streams: Streams,
    *, local_step_size: float, local_steps: int, server_multiplier: float,
) -> list[Vector]:  # fmt: skip
    """The models x_0, ..., x_R when client i takes part in round r where q[r, i] is not zero."""
    S = np.count_nonzero(q[0])
    numbers = {"local_step_size": local_step_size, "local_steps": local_steps, "server_multiplier": S**0.5}
    return scaffold(problem, q, x0, streams, **numbers)


TWINS = {"scaffold-theorem-3": prescribed_scaffold}
