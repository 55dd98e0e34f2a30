"""What it takes to hand out and keep a run: runs of 5 ms through the local engine, against a bare pool of processes.

The pool is that of the standard library. It sends each trace back, which is dropped; ours keeps each in two
files, in a new folder below the first argument, if there is one.
"""

import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Run, Store, execute
from fedbounds.empirical.sweep.keys import run_key

RUNS, FEW, WORKERS, TURNS = 1000, 100, 2, 3
SECONDS = 0.005  # of the processor, that a run takes
SPEC = {"problem": {"kind": "quadratic", "clients": 10, "dimension": 10}, "algorithm": {"kind": "fedavg"}, "rounds": 50}


def spin(task):
    """A small trace, after 5 ms of work."""
    until = time.thread_time() + SECONDS
    while time.thread_time() < until:
        pass
    loss = np.linspace(1, 0.5, 50)[None]
    arrays = {"seed": np.array(task["seeds"]), "round": np.arange(50), "loss": loss, "gradient": loss**2}
    dims = {"seed": ("seed",), "round": ("round",), "loss": ("seed", "round"), "gradient": ("seed", "round")}
    return Trace(arrays, dims, dict(task), "spinning", ("done",))


def bare(runs, _folder):
    """The pool of the standard library: when each run came back."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        return [time.perf_counter() for _ in pool.map(spin, [run.task for run in runs])]


def ours(runs, folder):
    """The local engine: when each run was kept."""
    ends, store = [], Store(Path(tempfile.mkdtemp(dir=folder)))
    execute(runs, store, workers=WORKERS, run_task=spin, progress=lambda *_: ends.append(time.perf_counter()))
    return ends


def processor():
    """Seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measured(racer, runs, folder):
    """Runs a second from the first tenth on, when all workers have begun; milliseconds of all processors a run."""
    before = processor()
    racer(runs[:FEW], folder)
    between = processor()
    ends = racer(runs, folder)
    both = processor() - between - (between - before)  # what it takes to start is in both
    first = len(ends) // 10
    return (len(ends) - first) / (ends[-1] - ends[first]), both / (RUNS - FEW) * 1e3


def main():
    tasks = [{**SPEC, "seeds": [seed], "labels": {"seed": seed}} for seed in range(RUNS)]
    runs = [Run(run_key(task, "sources", {}), task) for task in tasks]
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        turns = [[measured(racer, runs, folder) for racer in (ours, bare)] for _ in range(TURNS)]
    print(f"{RUNS} runs of {SECONDS * 1e3:.0f} ms on {WORKERS} workers, medians of {TURNS} turns")
    print("                       runs a second   processor, ms a run")
    for name, racer in (("local engine, kept", 0), ("bare pool, not kept", 1)):
        pace, spent = (statistics.median(turn[racer][what] for turn in turns) for what in (0, 1))
        print(f"{name:20s} {pace:15.0f} {spent:21.2f}")
    paces, costs = (statistics.median(mine[what] / their[what] for mine, their in turns) for what in (0, 1))
    print(f"engine / pool        {paces:15.2f} {costs:21.2f}")


if __name__ == "__main__":
    main()
