"""What settings of a sweep gain from one batch: `python -m benchmarks.together`.

Runs of FedAvg that differ in the step size alone, 10 of 100 clients, 10 local steps, one seed: the race's MLP, and
quadratics with different dense Hessians or one, d = 100. Alone, each run makes its problem anew, as runs of a sweep
do; together they share it, and stand in one batch (`simulate_together`). Both take turns; the clock is the processor's
(one thread); the ratio is the median over the turns.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import torch

from benchmarks.race import CLIENTS, EACH, PROCESS, SIZE, pictures, quadratics
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.problems import Problem, random_quadratic
from fedbounds.empirical.simulation.simulate import JointRun, simulate, simulate_together

TURNS, STEPS = 5, 10
JOBS: dict[str, tuple[Callable[[], Problem], int]] = {  # with the rounds of a run
    "MLP": (lambda: pictures("mlp8", CLIENTS, EACH)[0], 100),
    "quadratics, different Hessians": (lambda: quadratics(CLIENTS, 0.1)[0], 500),
    "quadratics, one Hessian": (lambda: random_quadratic(CLIENTS, 100, noise=0.1), 500),
}
RUNS = {"MLP": (8, 16, 32, 64)}  # of the others eight


def seconds(job: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    job()
    return time.process_time() - start


def main() -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    print(f"one thread of {os.cpu_count()}; torch {torch.__version__}; {TURNS} turns")
    print(f"{'problem':32}{'runs':>6}{'alone, ms a round':>19}{'together':>10}{'times as fast':>15}")
    for name, (problem, rounds) in JOBS.items():
        for runs in RUNS.get(name, (8,)):
            settings = [JointRun(FedAvg(SIZE * (k + 1) / runs, STEPS), (0,), rounds) for k in range(runs)]

            def together(settings: list[JointRun] = settings) -> object:
                return list(simulate_together(settings, problem(), PROCESS, record_every=rounds))  # noqa: B023

            def alone(settings: list[JointRun] = settings) -> None:
                for one in settings:
                    simulate(one.algorithm, problem(), PROCESS, rounds, record_every=rounds)  # noqa: B023

            together()
            turns = [(seconds(alone), seconds(together)) for _ in range(TURNS)]
            apart, joined = (1e3 * statistics.median(took) / (runs * rounds) for took in zip(*turns, strict=True))
            ratio = statistics.median(one / other for one, other in turns)
            print(f"{name:32}{runs:6}{apart:19.3f}{joined:10.3f}{ratio:15.2f}", flush=True)


if __name__ == "__main__":
    main()
