"""How fast the silos of TDCD are in one batch and in closed form: `python benchmarks/tdcd.py`.

Block quadratics, 2 silos of 50 clients each, blocks of 10 parameters, noise of each client's own, one Hessian for all
or one for each client: the engine of tiers and the closed form against the slow twin, which runs one client after
another. Then what a round in closed form costs by the number of local steps, of clients, and of silos. The racers take
turns; the clock is the processor's (one thread). Numbers are medians.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import BlockQuadratic, random_block_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

SILOS, CLIENTS, BLOCK, STEPS, TURNS = 2, 50, 10, 10, 7
SEEDS = 20


def milliseconds(race: Callable[[], object], rounds: int) -> float:
    """Of the processor, for one round."""
    start = time.process_time()
    race()
    return 1000 * (time.process_time() - start) / rounds


def engine(problem: BlockQuadratic, name: str, steps: int, rounds: int, seeds: int = 1) -> float:
    """A round of one of so many seeds."""
    race = partial(
        simulate, TDCD(0.01, steps), problem, Full(problem.clients), rounds, seeds=range(seeds), engine=name,
        record_every=rounds,
    )  # fmt: skip
    return milliseconds(race, rounds * seeds)


def twin(problem: BlockQuadratic, steps: int, rounds: int) -> float:
    """A round of the slow twin."""
    q = np.full((rounds, problem.clients), 1 / problem.clients)
    return milliseconds(partial(run_reference, TDCD(0.01, steps), problem, q, Streams(0)), rounds)


def medians(racers: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Of all turns, in which everybody races once."""
    for race in racers.values():
        race()
    turns = [{name: race() for name, race in racers.items()} for _ in range(TURNS)]
    return {name: statistics.median(turn[name] for turn in turns) for name in racers}


def instance(silos: int = SILOS, clients: int = CLIENTS, shared: bool = True) -> BlockQuadratic:
    return random_block_quadratic(silos, clients, BLOCK, shared=shared, noise=0.1)


def main() -> None:
    """Prints both tables."""
    torch.set_num_threads(1)
    print(f"{os.cpu_count()} processors, torch {torch.__version__}; {SILOS} x {CLIENTS} clients, {STEPS} local steps")
    print(f"{'Hessians':10} {'racer':24} {'ms':>9} {'times as fast':>14}")
    for shared in (True, False):
        problem = instance(shared=shared)
        found = medians({
            "twin": partial(twin, problem, STEPS, 2),
            "tiers": partial(engine, problem, "tiers", STEPS, 200),
            f"tiers, {SEEDS} seeds": partial(engine, problem, "tiers", STEPS, 50, SEEDS),
            "closed form": partial(engine, problem, "closed form", STEPS, 200),
            f"closed form, {SEEDS} seeds": partial(engine, problem, "closed form", STEPS, 50, SEEDS),
        })  # fmt: skip
        for name, took in found.items():
            print(f"{'one' if shared else 'different':10} {name:24} {took:9.4f} {found['twin'] / took:13.1f}x")

    settings: dict[str, tuple[BlockQuadratic, int]] = {
        **{f"{steps} local steps": (instance(), steps) for steps in (1, 10, 100, 1000)},
        **{f"{clients} clients a silo": (instance(clients=clients), STEPS) for clients in (400, 800, 1600)},
        **{f"{silos} silos of 400": (instance(silos, 400), STEPS) for silos in (4, 8)},
    }
    found = medians({
        name: partial(engine, problem, "closed form", steps, 50, SEEDS) for name, (problem, steps) in settings.items()
    })  # fmt: skip
    print(f"\n{'closed form':24} {'N K':>6} {'ms':>9} {'us for each client':>19}")
    for name, took in found.items():
        clients = settings[name][0].clients
        print(f"{name:24} {clients:6} {took:9.4f} {1000 * took / clients:19.3f}")


if __name__ == "__main__":
    main()
