"""What measuring the constants of a network costs beside the run: `python benchmarks/measured.py [NETWORK ...]`.

Digits, 50 clients, 5 of them a round by classes in turn, 5 local steps, batch 16, one seed, one thread: the setting of
the figures of Wang & Ji (2022) here. Beside it the shorter run of the gallery's overlay: 1,000 glyphs, 10 clients, 5 of
them a round, 2 local steps, 1,000 rounds. Either records losses and accuracies of 50 models; what comes on top of that
is said: the gradients of all clients at these models with the models themselves, the noise from every sample's gradient
at 5 of them, and the rest of the constants of Theorem 3.1, that is, local models in 4 rounds and gradients there. A few
rounds are timed and scaled to as many as those runs have; times are of the processor, shares are of the run without any
records. The curvature of all clients by Lanczos, which no theorem's constant needs, is timed at one model.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from fedbounds.empirical.comparison.measured_constants import client_curvatures, largest_noise
from fedbounds.empirical.comparison.run_setting import setting_of_trace
from fedbounds.empirical.data.datasets import glyphs, load_dataset
from fedbounds.empirical.data.partition import majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.trajectory_constants import measure_along_run
from fedbounds.empirical.participation import PeriodicGroups
from fedbounds.empirical.problems import ImageClassification
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace

PARTICIPANTS, POINTS = 5, 50
TIMED, KEPT = 40, 20  # rounds that are timed, and records of them
SETTINGS = {"digits": (50, 5, 2000), "glyphs": (10, 2, 1000)}  # clients, local steps, rounds


def seconds(work) -> float:
    """Of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    print(f"{POINTS} models of a run, of which {TIMED} rounds are timed")
    print("                               run   losses gradients    noise     rest  without losses")
    for network in sys.argv[1:] or ("mlp", "cnn-small", "cnn-small-smooth", "cnn", "cnn-smooth"):
        row("digits", network)
    row("glyphs", "cnn-small-smooth")


def row(name: str, network: str) -> None:
    """One setting, and the curvature of its clients."""
    clients, steps, rounds = SETTINGS[name]
    data = load_dataset("digits") if name == "digits" else glyphs(1000, 200)
    partition = majority_class_partition(data.train_labels, clients, np.random.default_rng(0))
    process = PeriodicGroups(clients, PARTICIPANTS, 2, groups=max(2, clients // 10))
    bare, problem = (ImageClassification(data, partition, network, gradient_norm=there) for there in (False, True))
    algorithm = GeneralizedFedAvg(1e-3, steps, 1.0, 1)

    def go(every: int, on: ImageClassification = problem) -> Trace:
        kept = on is problem
        return simulate(
            algorithm, on, process, TIMED, record_every=every, record_models=kept, record_participation=kept
        )

    go(TIMED)  # once to warm up
    without, losses, all_of_it = (seconds(lambda one=one: go(*one)) for one in (
        (TIMED, bare), (TIMED // KEPT, bare), (TIMED // KEPT,)
    ))  # fmt: skip
    run, whole = go(TIMED // KEPT), without * rounds / TIMED
    noise = seconds(lambda: largest_noise(run, problem))
    rest = seconds(lambda: measure_along_run(setting_of_trace(run, problem, process), 1))
    losses, gradients = ((one - other) * POINTS / KEPT for one, other in ((losses, without), (all_of_it, losses)))
    shares = "".join(f"{part / whole:9.1%}" for part in (losses, gradients, noise, rest))
    print(f"{name} {network:18s} {whole:8.1f} s{shares}{(gradients + noise + rest) / whole:14.1%}")
    x = torch.from_numpy(run.model[0, -1])
    if problem.network.smooth and name == "digits":
        lanczos = seconds(lambda: client_curvatures(problem, x, steps=12))
        print(f"{'':25s} curvature of {clients} clients at one model, 12 products each: {lanczos:.1f} s")


if __name__ == "__main__":
    main()
