"""Exact moments against sampling, measured in one run: `python -m benchmarks.moments`.

Generalized FedAvg with 10 local steps, amplification by 2 every 5 rounds, 100 clients of which 10 take part, d = 50,
T = 1000 rounds. The exact expectation over gradient noise and participation is compared with what it replaces: 32
seeds of the step-by-step engine (timed on 50 rounds, scaled to T), whose answer still has a standard error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import torch

from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.participation import GroupMarkov, PeriodicGroups, Permutation, Process, WithoutReplacement
from fedbounds.empirical.problems import Quadratic, random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, COHORT, DIMENSION, ROUNDS, SEEDS, SAMPLED_ROUNDS = 100, 10, 50, 1000, 32, 50
ALGORITHM = GeneralizedFedAvg(0.01, 10, 2.0, 5)
DIFFERENT = random_quadratic(CLIENTS, DIMENSION, shared=False, noise=0.1)
SHARED = random_quadratic(CLIENTS, DIMENSION, noise=0.1)
INDEPENDENT = WithoutReplacement(CLIENTS, COHORT)
CASES: dict[str, tuple[Quadratic, Process | np.ndarray]] = {
    "different Hessians, 10 of 100": (DIFFERENT, INDEPENDENT),
    "different Hessians, a record": (DIFFERENT, INDEPENDENT.matrix(ROUNDS, np.random.default_rng(0))),
    "one Hessian, 10 of 100": (SHARED, INDEPENDENT),
    "one Hessian, a record": (SHARED, INDEPENDENT.matrix(ROUNDS, np.random.default_rng(0))),
    "one Hessian, permutation": (SHARED, Permutation(CLIENTS, COHORT)),
    "one Hessian, Markov groups": (SHARED, GroupMarkov(CLIENTS, CLIENTS // COHORT, 0.1)),
    "one Hessian, periodic groups": (SHARED, PeriodicGroups(CLIENTS, COHORT, slot=100)),
}


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Prints one line per case."""
    torch.set_num_threads(1)
    print(f"{os.cpu_count()} cores; numpy {np.__version__}, torch {torch.__version__}; T = {ROUNDS}, d = {DIMENSION}")
    print(f"{'exact moments':32}{'seconds':>10}{'cpu s':>8}{'32 seeds, s':>13}{'cpu s':>8}{'ratio':>8}")
    for name, (problem, participation) in CASES.items():
        exact, exact_cpu = seconds(lambda: moments(ALGORITHM, problem, participation, ROUNDS))  # noqa: B023
        sampled, sampled_cpu = seconds(
            lambda: simulate(
                ALGORITHM,
                problem,  # noqa: B023
                participation,  # noqa: B023
                SAMPLED_ROUNDS,
                seeds=range(SEEDS),
                engine="batched",
            )
        )
        scale = ROUNDS / SAMPLED_ROUNDS
        print(
            f"{name:32}{exact:10.2f}{exact_cpu:8.2f}{scale * sampled:13.1f}{scale * sampled_cpu:8.1f}"
            f"{scale * sampled_cpu / exact_cpu:8.1f}"
        )


if __name__ == "__main__":
    main()
