"""How fast clients with different numbers of local steps are in one masked batch: `python benchmarks/minimax.py`.

Fed-Norm-SGDA and Fed-Norm-SGDA+, plain and with momentum, on quadratics with one Hessian: 15 clients, all of them or 5
a round, 2 to 7 local steps, d_x = d_y = 10, noise that grows with the gradient, 40 rounds; against the slow twin, which
runs one client after another and keeps all its gradients. The racers take turns; the clock is the processor's (one
thread). The table shows the median milliseconds of a round of one seed, and how many times the twin takes that long.

Then exact moments: 10 of 50 clients, d_x = d_y = 20, 500 rounds, one Hessian or one times a scale of each client,
against what they replace, 32 seeds of the masked batch (timed on 50 rounds, scaled).
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from fedbounds.empirical.algorithms import SGDA, heavy_ball
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Full, Process, WithoutReplacement
from fedbounds.empirical.problems import QuadraticMinimax, ScaledMinimax, random_quadratic_minimax
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, HALF, ROUNDS, TURNS = 15, 10, 40, 5
SEEDS = (1, 20)


def quadratic() -> QuadraticMinimax:
    """Indefinite in x, strongly concave in y."""
    rng = np.random.default_rng(0)
    a, slopes = rng.normal(size=(HALF, HALF)), rng.normal(size=(2, CLIENTS, HALF))
    coupling = rng.normal(size=(HALF, HALF)) / 4
    return QuadraticMinimax((a + a.T) / 8, coupling, 1.0, *slopes, noise=0.3, growth=0.2, x0=np.ones(HALF))


def milliseconds(race: Callable[[], object]) -> float:
    """Of the processor, for one round."""
    start = time.process_time()
    race()
    return 1000 * (time.process_time() - start) / ROUNDS


def twin(algorithm: FedNormSGDA, problem: QuadraticMinimax, process: Process) -> float:
    """One seed of the slow twin."""
    q = process.matrix(ROUNDS, Streams(0).generator("participation"))
    return milliseconds(lambda: run_reference(algorithm, problem, q, Streams(0)))


def batch(algorithm: FedNormSGDA, problem: QuadraticMinimax, process: Process, seeds: int) -> float:
    """A seed of many."""
    race = partial(simulate, algorithm, problem, process, ROUNDS, seeds=range(seeds), record_every=ROUNDS)
    return milliseconds(race) / seeds


def main() -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    problem = quadratic()
    steps = tuple(np.random.default_rng(1).integers(2, 8, CLIENTS).tolist())
    print(f"{os.cpu_count()} processors, torch {torch.__version__}; local steps {steps}")
    print(f"{'momentum':>8} {'snapshot':>8} {'clients':>8} {'twin':>8}", *(f"{seeds:>8} seeds" for seeds in SEEDS))
    for optimizer, period, participants in itertools.product((SGDA, heavy_ball(0.9)), (None, 5), (15, 5)):
        algorithm = FedNormSGDA(0.02, 0.03, 0.01, 0.02, steps, optimizer=optimizer, snapshot_period=period)
        process = Full(CLIENTS) if participants == CLIENTS else WithoutReplacement(CLIENTS, participants)
        times: dict[int, list[float]] = {seeds: [] for seeds in (0, *SEEDS)}
        for _ in range(TURNS):
            times[0].append(twin(algorithm, problem, process))
            for seeds in SEEDS:
                times[seeds].append(batch(algorithm, problem, process, seeds))
        slow, *batches = (statistics.median(values) for values in times.values())
        cells = (f"{fast:7.3f} {slow / fast:5.1f}x" for fast in batches)
        print(f"{optimizer.momentum:8} {period or '-':>8} {participants:8} {slow:8.2f}", *cells)
    exact_moments()


def exact_moments() -> None:
    """Prints the seconds of the moments and of the seeds that they replace."""
    n, T, timed, seeds = 50, 500, 50, 32
    shared = random_quadratic_minimax(n, 20, 20, noise=0.1)
    rng = np.random.default_rng(2)
    scales, slope, ascent_slope = rng.uniform(0.5, 1.5, n), rng.normal(size=20), rng.normal(size=20)
    parts = (shared.descent_hessian, shared.coupling, shared.concavity)
    scaled = ScaledMinimax(scales, *parts, slope, ascent_slope, noise=0.1)
    algorithm = FedNormSGDA(0.01, 0.01, 0.01, 0.02, tuple(rng.integers(2, 8, n).tolist()))
    print(f"\n{'exact moments':24} {'s':>8} {f'{seeds} seeds, s':>12} {'ratio':>8}")
    for name, problem in (("one Hessian", shared), ("a scale of each client", scaled)):
        process = WithoutReplacement(n, 10)
        exact = milliseconds(partial(moments, algorithm, problem, process, T)) * ROUNDS / 1000
        sample = partial(simulate, algorithm, problem, process, timed, seeds=range(seeds), record_every=timed)
        sampled = milliseconds(sample) * ROUNDS / 1000 * T / timed
        print(f"{name:24} {exact:8.2f} {sampled:12.1f} {sampled / exact:8.1f}")


if __name__ == "__main__":
    main()
