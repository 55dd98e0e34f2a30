"""What measuring the constants of a network costs beside the run: `python benchmarks/measured.py [NETWORK ...]`.

Digits, 50 clients, 5 of them a round by classes in turn, 5 local steps, batch 16, one seed, one thread: the setting of
the figures of Wang & Ji (2022) here. A run records 50 models, metrics and gradient norms; then all constants of
Theorem 3.1 are measured: the noise from every sample's gradient at 5 models, and the rest, that is, every client's
gradient at all models and, in 4 rounds, the local models. A few rounds are timed and scaled to as many as those
figures have; times are of the processor, shares are of the run without any records. The curvature of all clients by
Lanczos, which no theorem's constant needs, is timed at one model.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from fedbounds.empirical.datasets import load_dataset
from fedbounds.empirical.measured import client_curvatures
from fedbounds.empirical.measured.visits import largest_noise
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.visited import visited
from fedbounds.empirical.participation import PeriodicGroups
from fedbounds.empirical.partition import majority_class_partition
from fedbounds.empirical.problems import ImageClassification
from fedbounds.empirical.run_setting import of_trace
from fedbounds.empirical.simulate import simulate

CLIENTS, PARTICIPANTS, POINTS, TIMED, ROUNDS = 50, 5, 50, 100, 2000


def seconds(work) -> float:
    """Of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    digits = load_dataset("digits")
    partition = majority_class_partition(digits.train_labels, CLIENTS, np.random.default_rng(0))
    process = PeriodicGroups(CLIENTS, PARTICIPANTS, 2, groups=5)
    print(f"{POINTS} models of {ROUNDS} rounds, {TIMED} of them timed")
    print("network               run  records    noise     rest  together")
    for network in sys.argv[1:] or ("mlp", "cnn-small", "cnn-small-smooth", "cnn", "cnn-smooth"):
        problem = ImageClassification(digits, partition, network, gradient_norm=True)
        algorithm = GeneralizedFedAvg(1e-3, 5, 1.0, 1)
        runs = []

        def go(every: int, problem=problem, algorithm=algorithm, runs=runs) -> None:
            runs.append(simulate(algorithm, problem, process, TIMED, record_every=every, record_models=True,
                                 record_participation=True))  # fmt: skip

        go(TIMED)  # once to warm up
        bare = seconds(lambda go=go: go(TIMED))
        recorded = seconds(lambda go=go: go(TIMED // POINTS)) - bare
        run, whole = runs[-1], bare * ROUNDS / TIMED
        noise = seconds(lambda r=run, p=problem: largest_noise(r, p))
        rest = seconds(lambda r=run, p=problem: visited(of_trace(r, p, process), 1))
        shares = (recorded / whole, noise / whole, rest / whole)
        print(f"{network:18s} {whole:8.1f} s {shares[0]:8.1%} {shares[1]:8.1%} {shares[2]:8.1%} {sum(shares):8.1%}")
        x = torch.from_numpy(run.model[0, -1])
        if problem.network.smooth:
            lanczos = seconds(lambda p=problem, x=x: client_curvatures(p, x, steps=12))
            print(f"{'':18s} curvature of {CLIENTS} clients at one model, 12 products each: {lanczos:.1f} s")


if __name__ == "__main__":
    main()
