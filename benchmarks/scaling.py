"""What engines cost as the job grows, with fitted exponents: `python -m benchmarks.scaling --out scaling.svg`.

For each engine one number of the job is changed at a time, the others stay: clients N (10 take part in a round),
dimension d, local steps I, rounds T, seeds; runs, for a sweep. Every point is a process of its own, forked from one
that has imported everything, on one thread: processor time, and the largest resident memory beyond what it began with.
An exponent is fitted by least squares through logarithms to what the largest values cost beyond the least: those that
cost at least twice as much. Where fewer than three do, no term dominates and there is none. `--check` makes a run with
a million clients and says what a fit up to a tenth of them foretells.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.participation import Full, Process, WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, Problem, random_block_quadratic, random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.sweep import Store, execute, plan, resolve
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import Curve

COHORT, LEAST = 10, 3  # clients of a round; points of a fit
FAR = 1_000_000


class Size(NamedTuple):
    """The numbers of a job."""

    N: int = 100
    d: int = 50
    I: int = 10
    T: int = 100
    seeds: int = 1
    runs: int = 1


class Cost(NamedTuple):
    """What a point took.

    Attributes:
        setup: seconds until the first round is over.
        work: seconds of a round of all seeds; of all of it where T or runs is what changes, or there are no rounds.
        memory: MiB.
    """

    setup: float
    work: float
    memory: float


def engine(problem: Problem, algorithm: Algorithm, process: Process, name: str, size: Size, start: float) -> Cost:
    """Of a simulation, nothing recorded but its ends."""
    clocked: list[float] = []
    simulate(
        algorithm, problem, process, size.T, seeds=range(size.seeds), engine=name, record_every=size.T,
        progress=lambda done, total: clocked.append(time.process_time()),
    )  # fmt: skip
    return Cost(clocked[0] - start, (clocked[-2] - clocked[0]) / (len(clocked) - 2), 0.0)


def closed_form(size: Size, start: float) -> Cost:
    problem = random_quadratic(size.N, size.d, diagonal=True, noise=0.1)
    return engine(problem, FedAvg(0.01, size.I), WithoutReplacement(size.N, COHORT), "closed form", size, start)


def own_hessians(size: Size, start: float) -> Cost:
    problem = random_quadratic(size.N, size.d, shared=False, noise=0.1)
    return engine(problem, FedAvg(0.01, size.I), WithoutReplacement(size.N, COHORT), "closed form", size, start)


def batched(size: Size, start: float) -> Cost:
    """A network of 32 units on images of so many pixels that it has about d parameters."""
    side = max(1, round(((size.d - 362) / 32) ** 0.5))
    rng, samples = np.random.default_rng(0), 20 * size.N
    images = rng.integers(0, 256, (samples, 1, side, side), dtype=np.uint8)
    labels = rng.integers(0, 10, samples)
    dataset = Dataset("random", images, labels, images[:10], labels[:10], 10)
    partition = Partition(np.arange(samples) % size.N, np.zeros(size.N, np.int64))
    problem = ImageClassification(dataset, partition, "mlp")
    return engine(problem, FedAvg(0.05, size.I), WithoutReplacement(size.N, COHORT), "batched", size, start)


def tiers(size: Size, start: float) -> Cost:
    problem = random_block_quadratic(2, size.N // 2, size.d // 2, noise=0.1)
    return engine(problem, TDCD(0.01, size.I), Full(problem.clients), "tiers", size, start)


def exact_moments(size: Size, start: float) -> Cost:
    problem = random_quadratic(size.N, size.d, noise=0.1)
    ready = time.process_time()
    moments(FedAvg(0.01, size.I), problem, WithoutReplacement(size.N, COHORT), size.T)
    return Cost(ready - start, time.process_time() - ready, 0.0)


def sweep(size: Size, start: float) -> Cost:
    """Runs of 20 rounds on small quadratics, in one process, into a folder; then a look at all of them."""
    spec = {
        "rounds": 20,
        "record_every": 10,
        "seeds": size.runs,
        "seeds_per_run": 1,
        "problem": {"kind": "quadratic", "clients": 10, "dimension": 3, "noise": 0.1},
        "participation": {"kind": "without-replacement", "clients": 10, "participants": 3},
        "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
    }
    with TemporaryDirectory() as folder:
        store, runs = Store(Path(folder)), plan(resolve(spec))
        execute(runs, store)
        made = time.process_time()
        execute(runs, store)
        return Cost(time.process_time() - made, made - start, 0.0)


Axes = Mapping[str, Sequence[int]]
JOBS: Mapping[str, tuple[Callable[[Size, float], Cost], Size, Axes]] = {
    "closed form, one diagonal Hessian": (
        closed_form,
        Size(T=300),
        {
            "N": [100, 1000, 10_000, 30_000, 60_000, 100_000, 300_000],
            "d": [64, 4096, 16_384, 65_536, 262_144],
            "I": [1, 10, 100, 1000, 10_000],
            "seeds": [1, 16, 64, 256, 1024, 4096],
        },
    ),
    "closed form, own Hessians": (
        own_hessians,
        Size(T=100),
        {
            "N": [256, 1024, 2048, 4096, 8192],
            "d": [32, 64, 128, 256, 384],
            "I": [1, 10, 100, 1000, 10_000],
            "seeds": [1, 4, 16, 64, 256],
        },
    ),
    "batched, network": (
        batched,
        Size(d=2410, T=20),
        {
            "N": [100, 1000, 10_000, 30_000, 60_000],
            "d": [2410, 8554, 33_130, 65_162, 131_434, 259_562],
            "I": [1, 4, 16, 64, 256],
            "seeds": [1, 4, 8, 16, 32, 64],
        },
    ),
    "tiers": (
        tiers,
        Size(T=30),
        {
            "N": [50, 800, 3200, 12_800, 25_600],
            "d": [20, 160, 320, 640, 1280],
            "I": [1, 16, 64, 256, 1024],
            "seeds": [1, 4, 16, 64, 256],
        },
    ),
    "exact moments": (
        exact_moments,
        Size(T=200),
        {
            "N": [100, 400, 800, 1600, 3200],
            "d": [50, 200, 400, 800, 1600],
            "T": [100, 400, 1600, 6400, 25_600],
        },
    ),
    "sweep": (sweep, Size(), {"runs": [30, 100, 300, 1000, 2000]}),
}


def measured(work: Callable[[Size, float], Cost], size: Size) -> Cost:
    """In a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        page, start = resource.getpagesize(), time.process_time()
        before = int(Path("/proc/self/statm").read_text().split()[1]) * page
        cost = work(size, start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(writer, json.dumps(cost._replace(memory=(peak - before) / 2**20)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        found = told.read()
    os.waitpid(child, 0)
    return Cost(*json.loads(found))


class Fit(NamedTuple):
    """log(y - least) = intercept + exponent log x, over so many points."""

    exponent: float
    error: float
    intercept: float
    points: int
    worst: float  # largest factor between a point and the line

    def at(self, x: float) -> float:
        return float(np.exp(self.intercept) * x**self.exponent)


def fitted(x: Sequence[int], y: Sequence[float]) -> Fit | None:
    """Of what is beyond the least, over those that are at least twice as much; None where they are fewer than three."""
    kept = [k for k in range(len(y)) if y[k] >= 2 * min(y)]
    if len(kept) < LEAST:
        return None
    logs = np.log([x[k] for k in kept]), np.log([y[k] - min(y) for k in kept])
    (exponent, intercept), off = np.polyfit(*logs, 1), logs[0] - logs[0].mean()
    residuals = logs[1] - intercept - exponent * logs[0]
    error = float(np.sqrt((residuals**2).sum() / max(1, len(kept) - 2) / (off**2).sum()))
    return Fit(float(exponent), error, float(intercept), len(kept), float(np.exp(abs(residuals).max())))


def middle(turns: Sequence[Sequence[float]]) -> Cost:
    """Medians."""
    return Cost(*map(statistics.median, zip(*turns, strict=True)))


def in_words(fit: Fit | None) -> str:
    return f"{fit.exponent:.2f} +- {fit.error:.2f} ({fit.points}, {fit.worst:.2f})" if fit else "no term dominates"


def main() -> None:
    """Measures, fits, draws."""
    parser = argparse.ArgumentParser(description="What engines cost as the job grows.")
    parser.add_argument("--out", type=Path, help="an SVG; its data go beside it")
    parser.add_argument("--only", nargs="+", default=[], help="first words of jobs")
    parser.add_argument(
        "--points", type=Path, help="a JSON file in which points are kept, and from which they are taken"
    )
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="one job at ten times the largest N")
    given = parser.parse_args()
    torch.set_num_threads(1)
    known: dict[str, list[list[float]]] = {}
    if given.points and given.points.exists():
        known = json.loads(given.points.read_text())
    chosen = {name: job for name, job in JOBS.items() if not given.only or name.split()[0].rstrip(",") in given.only}
    places = [(name, axis, x) for name, (_, _, axes) in chosen.items() for axis, values in axes.items() for x in values]
    for _ in range(given.turns):
        for name, axis, x in places:
            work, size, _ = chosen[name]
            own = known.setdefault(f"{name}: {axis} = {x}", [])
            if len(own) < given.turns:
                own.append(list(measured(work, size._replace(**{axis: x}))))
                if given.points:
                    given.points.write_text(json.dumps(known))
    print(f"{'':34}{'':7}{'range':>18}{'before the rounds':>26}{'a round':>26}{'memory':>26}")
    times: dict[str, list[Curve]] = {}
    memories: dict[str, list[Curve]] = {}
    for name, (_, _, axes) in chosen.items():
        for axis, values in axes.items():
            medians = [middle(known[f"{name}: {axis} = {x}"]) for x in values]
            fits = [in_words(fitted(values, column)) for column in zip(*medians, strict=True)]
            print(f"{name:34}{axis:7}{values[0]:8} to {values[-1]:6}" + "".join(f"{words:>26}" for words in fits))
            for x, one in zip(values, medians, strict=True):
                print(f"    {axis} = {x}: setup {one.setup:.3g} s, {1e3 * one.work:.4g} ms, {one.memory:.1f} MiB")
            x = np.array(values, float)
            times.setdefault(axis, []).append(Curve(name, x, np.array([1e3 * one.work for one in medians])))
            memories.setdefault(axis, []).append(Curve(name, x, np.array([one.memory for one in medians])))
    if given.check:
        name = "closed form, one diagonal Hessian"
        work, size, axes = JOBS[name]
        few = [x for x in axes["N"] if x <= FAR // 10]
        columns = zip(*(middle(known[f"{name}: N = {x}"]) for x in few), strict=True)
        there = measured(work, size._replace(N=FAR))
        for what, column, found in zip(Cost._fields, columns, there, strict=True):
            fit = fitted(few, column)
            foretold = f"{fit.at(FAR) + min(column):.4g} foretold" if fit else f"no more than {max(column):.4g} before"
            print(f"{name}, N = {FAR}: {what} {found:.4g}, {foretold}")
    for place, groups, label in (
        (given.out, times, "ms of a round (moments: of all)"),
        (given.out and given.out.with_stem(f"{given.out.stem}-memory"), memories, "largest memory, MiB"),
    ):
        if place is None:
            continue
        shown = {f"against {axis}": groups[axis] for axis in ("N", "d", "I", "seeds") if axis in groups}
        picture = panels(
            shown,
            x_label="the number that changes",
            y_labels=[label] * len(shown),
            title="What engines cost as the job grows",
            caption="One thread of a machine with other work on it, medians of one to three.",
            alternative=f"Of each engine {label} against N, d, I and seeds, both on logarithmic axes.",
            y_scales=["log"] * len(shown),
            x_scale="log",
        )
        print(*picture.save(place, force=True))


if __name__ == "__main__":
    main()
