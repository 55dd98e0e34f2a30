"""When compiling the local steps of a dense network pays off: `python -m benchmarks.compiled [ROUNDS]`.

FedAvg on the race's MLP, 10 of 100 clients, 10 local steps, one seed. It measures the processor time of a compilation
without and with the files that an earlier one left, that of a round with both engines, and from these the local steps
that repay a compilation: `REPAID` of `fedbounds.empirical.simulation.engines.compiled`, from which "auto" compiles.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile

import torch

from benchmarks.race import CLIENTS, COHORT, EACH, PROCESS, SIZE, STEPS, pictures
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.engines.compiled import REPAID
from fedbounds.empirical.simulation.simulate import simulate

SHORT, TURNS = 10, 3


def seconds(problem: Problem, engine: str, rounds: int) -> float:
    """Processor time of a run, that of compilers included."""
    before = os.times()
    simulate(FedAvg(SIZE, STEPS), problem, PROCESS, rounds, engine=engine, record_every=rounds)
    return sum(os.times()[:4]) - sum(before[:4])


def main() -> None:
    """Prints the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    torch.set_num_threads(1)
    problem = pictures("mlp8", CLIENTS, EACH)[0]
    seconds(problem, "batched", SHORT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        first, again = (seconds(problem, "compiled", SHORT) for _ in range(2))
        turns: dict[str, list[float]] = {"batched": [], "compiled": []}
        for _ in range(TURNS):
            for engine, took in turns.items():
                more = seconds(problem, engine, SHORT + rounds) - seconds(problem, engine, SHORT)
                took.append(more / rounds)
    batched, compiled = (statistics.median(took) for took in turns.values())
    saved = (batched - compiled) / (COHORT * STEPS)
    print(f"compilation {first:.1f} s, with the files of an earlier one {again:.1f} s")
    print(
        f"saved {1e6 * saved:.1f} us a local step: repaid after {first / saved:.3g}, with the files {again / saved:.3g}"
    )
    print(f"auto compiles from {REPAID:.3g} local steps")


if __name__ == "__main__":
    main()
