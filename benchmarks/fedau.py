"""What FedAU costs: its weights alone, its rounds, and the memory it needs: `python benchmarks/fedau.py`.

Three tables. *Weights alone*: 100 clients, 10,000 rounds, 1,000 seeds, the drawing of who takes part apart from the
estimate. *A round*: 100 clients, 10 a round in the mean, d = 50, 5 local steps, one diagonal Hessian, 32 seeds, in
closed form, against FedAvg and against the slow twin. *Memory*: 250 clients that share a network on 28 x 28 images; the
largest resident size of a process of its own, torch and data included, and what the algorithm's state holds. Seconds
are of the processor, one thread.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fedau.algorithms import MIFA, AverageAll, AverageParticipating, FedAU, FedVarp
from fedbounds.empirical.papers.fedau.participation_weights import ParticipationWeights
from fedbounds.empirical.participation import Bernoulli
from fedbounds.empirical.problems import ImageClassification, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, ROUNDS, SEEDS = 100, 10_000, 1_000
STEPS = (0.05, 5)
ALGORITHMS = {
    made.kind: made
    for made in (
        FedAvg(*STEPS),
        FedAU(*STEPS),
        AverageParticipating(*STEPS),
        AverageAll(*STEPS),
        FedVarp(*STEPS),
        MIFA(*STEPS),
    )
}


def seconds(work: Callable[[], object], turns: int = 3) -> float:
    """Of the processor, the best of some turns."""
    best = float("inf")
    for _ in range(turns):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def weights_alone(rounds: int = ROUNDS) -> tuple[float, float]:
    """Seconds for the estimate and for drawing who takes part."""
    rng = np.random.default_rng(0)
    p, estimate = rng.uniform(0.02, 0.2, CLIENTS), ParticipationWeights((SEEDS, CLIENTS), cutoff=50)
    drawing = estimating = 0.0
    for _ in range(rounds):
        begin = time.process_time()
        present = rng.random((SEEDS, CLIENTS)) < p
        drawn = time.process_time()
        estimate.update(present)
        drawing, estimating = drawing + drawn - begin, estimating + time.process_time() - drawn
    return estimating, drawing


def a_round() -> dict[str, float]:
    """Microseconds of a round of one seed, by algorithm; FedAU's slow twin last."""
    problem, process = random_quadratic(CLIENTS, 50, noise=0.1, diagonal=True), Bernoulli(CLIENTS, 0.1, normalize=False)
    rounds, seeds, times = 300, 32, {}
    for name, algorithm in ALGORITHMS.items():
        taken = seconds(lambda a=algorithm: simulate(a, problem, process, rounds, seeds=range(seeds), record_every=100))
        times[name] = taken / rounds / seeds * 1e6
    q = process.matrix(30, np.random.default_rng(0))
    times["slow twin of fedau"] = (
        seconds(lambda: run_reference(ALGORITHMS["fedau"], problem, q, Streams(0)), turns=1) / len(q) * 1e6
    )
    return times


def memory(kind: str) -> dict[str, int]:
    """Bytes in this process: the largest size up to the end of the run, and what the algorithm's state holds."""
    rng, clients, samples = np.random.default_rng(0), 250, 2500
    images = rng.integers(0, 256, (samples, 1, 28, 28), dtype=np.uint8)
    dataset = Dataset("random", images, rng.integers(0, 10, samples), images[:10], np.arange(10), 10)
    partition = Partition(np.arange(samples) % clients, np.zeros(clients, dtype=np.int64))
    problem, process = ImageClassification(dataset, partition, "cnn"), Bernoulli(clients, 0.1, normalize=False)
    simulate(ALGORITHMS[kind], problem, process, 4, engine="sequential")
    state = ALGORITHMS[kind].init(torch.zeros(1, problem.dimension), clients)
    held = sum({t.data_ptr(): t.numel() * t.element_size() for t in state}.values())
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak": largest, "state": held, "model": 4 * problem.dimension}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", choices=ALGORITHMS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.memory:
        print(json.dumps(memory(asked.memory)))
        return
    estimating, drawing = weights_alone()
    print(f"weights alone, {CLIENTS} clients x {ROUNDS:,} rounds x {SEEDS:,} seeds")
    print(f"  estimate {estimating:6.1f} s   drawing who takes part {drawing:6.1f} s\n")
    times = a_round()
    print("a round of one seed, closed form         us   FedAvg = 1")
    for name, taken in times.items():
        print(f"  {name:30} {taken:12.1f} {taken / times['fedavg']:12.2f}")
    print("\nmemory, 250 clients, CNN on 28 x 28    peak, MiB   FedAvg = 1   state, models")
    sizes = {}
    for name in ALGORITHMS:
        done = subprocess.run([sys.executable, __file__, "--memory", name], capture_output=True, text=True, check=True)
        sizes[name] = json.loads(done.stdout)
    for name, size in sizes.items():
        ratio, models = size["peak"] / sizes["fedavg"]["peak"], size["state"] / size["model"]
        print(f"  {name:30} {size['peak'] / 2**20:12.0f} {ratio:12.3f} {models:15.2f}")


if __name__ == "__main__":
    main()
