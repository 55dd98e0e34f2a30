"""One fixed job at equal mathematics, as ratios measured in one run: `make race`, or `python -m benchmarks.race`.

FedAvg, 100 clients, 10 a round without replacement, 10 local steps, nothing evaluated in the rounds that count. `quad`:
different dense Hessians, d = 100, gradient noise; `mlp8`: 64-32-10 on 8 x 8 pixels; `cnn28`: two convolutions 5 x 5 x
32, 128 units on 28 x 28; batches of 16 of a client's 120 samples, drawn without replacement. Our engines against loops
by hand, and against pfl-research, FedJAX, Flower and one compiled XLA program, each from pip in an environment of its
own that is made in the user's cache folder; one that cannot be made is a line that says why.

Before anything is timed every racer makes a round in which nothing is random, of ten clients whose samples are one
batch, and must end at our engine's model. Then the racers take turns. The clock is the processor's, of one thread (with
`--threads 2`: the wall's); a line of JSON for each racer, and a table of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.racers import by_hand
from benchmarks.racers.job import BATCH, COHORT, STEPS, WARM, Job, batches, written
from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, Problem, Quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import JointRun, simulate, simulate_together

CLIENTS, EACH, SIZE, MANY = 100, 120, 0.05, 16
PROCESS = WithoutReplacement(CLIENTS, COHORT)
SHORT = 0.002  # the step size of the round in which all are compared: each of its steps is a tenth of the way gone
NEAR = 0.01  # of that way: a step too few is ten times that, a kink that rounding crosses up to half of it (CNN)
ROUNDS = {"quad": 400, "mlp8": 60, "cnn28": 3}
SLOW = {"quad": 40, "mlp8": 10, "cnn28": 1}  # rounds of the slow twin, and of Flower
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedbounds" / "racers"
ENVIRONMENTS = {
    "jax": ("fedjax==0.0.17", "jax==0.10.2", "jaxlib==0.10.2"),
    "pfl": ("pfl[pytorch]==0.6.0", "torch==2.13.0"),
    "flower": ("flwr[simulation]==1.41.0", "torch==2.13.0"),
}


class Racer(NamedTuple):
    """One who takes part.

    Attributes:
        turn: plays some rounds: the seconds of each.
        first: the model after the round in which nothing is random; None where our engine's own is meant.
        wall: whether its clock is on the wall whatever was asked for.
    """

    turn: Callable[[], Sequence[float]]
    first: np.ndarray | None = None
    wall: bool = False


class Work(NamedTuple):
    """A problem as our engine has it and as others do, and the small one on which all are compared."""

    problem: Problem
    race: Job
    small: Problem
    check: Job


def quadratics(clients: int, noise: float) -> tuple[Problem, Job]:
    """Different dense Hessians with eigenvalues in [0.1, 1], d = 100."""
    rng, d = np.random.default_rng(0), 100
    frames = np.linalg.qr(rng.normal(size=(clients, d, d)))[0]
    hessians = (frames * rng.uniform(0.1, 1.0, (clients, 1, d))) @ frames.transpose(0, 2, 1)
    problem = Quadratic((hessians + hessians.transpose(0, 2, 1)) / 2, rng.normal(size=(clients, d)), noise=noise)
    given = [problem.hessians.float().numpy(), problem.centers.float().numpy()]
    return problem, Job("quad", *given, noise, SIZE, [np.zeros(d, np.float32)])


def pictures(work: str, clients: int, each: int) -> tuple[Problem, Job]:
    """Random images: what they show does not matter to the clock."""
    rng, side, samples = np.random.default_rng(0), 28 if work == "cnn28" else 8, each * clients
    images = rng.integers(0, 256, (samples, 1, side, side), dtype=np.uint8)
    labels = rng.integers(0, 10, samples)
    dataset = Dataset("random", images, labels, images[:10], labels[:10], 10)
    partition = Partition(np.arange(samples) // each, np.zeros(clients, np.int64))
    problem = ImageClassification(dataset, partition, "cnn" if side == 28 else "mlp")
    seen = dataset.standardised()[0].astype(np.float32).reshape(clients, each, 1, side, side)
    start = problem.initial_point(Streams(0).generator("initialization"))
    model = [part.numpy() for part in problem.network.unflatten(start).values()]
    return problem, Job(work, seen, labels.reshape(clients, each), 0.0, SIZE, model)


def made(work: str) -> Work:
    if work == "quad":
        (problem, race), (small, check) = quadratics(CLIENTS, 0.1), quadratics(COHORT, 0.0)
    else:
        (problem, race), (small, check) = pictures(work, CLIENTS, EACH), pictures(work, COHORT, BATCH)
    return Work(problem, race, small, check._replace(size=SHORT))


def environment(name: str) -> str:
    """The Python of an environment with the packages of that name, made if it is not there.

    Raises:
        subprocess.CalledProcessError: it cannot be made.
    """
    place, wanted = CACHE / name, " ".join(ENVIRONMENTS[name])
    python, stamp = place / "bin" / "python", place / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        for command in ([sys.executable, "-m", "venv", place], [python, "-m", "pip", "install", "-q", *wanted.split()]):
            subprocess.run(command, capture_output=True, text=True, check=True)
        stamp.write_text(wanted)
    return str(python)


def elsewhere(name: str, script: str, work: Work, rounds: int, threads: int, *more: str) -> Racer:
    """A racer in an environment of its own."""
    python, folder = environment(name), Path(tempfile.mkdtemp())
    given = [str(written(job, folder / f"{k}.npz")) for k, job in enumerate((work.check, work.race))]
    settings = {"OMP_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu"}
    bound = ["taskset", "-c", "0"] if threads == 1 and name == "jax" else []
    if threads == 1:
        settings["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    place = Path(__file__).parent / "racers" / script
    command = [*bound, python, str(place), *given, str(rounds), str(threads), *more]

    def played() -> dict[str, list[float]]:
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | settings
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.strip().splitlines()[-1])

    first = [played()]
    print(json.dumps({"versions": first[0]["versions"]}), flush=True)
    model = np.array(first[0]["model"])
    return Racer(lambda: (first.pop() if first else played())["seconds"], model, name == "flower")


def hand(play: by_hand.Round, check: by_hand.Round, work: Work, rounds: int, clock: Callable[[], float]) -> Racer:
    """A racer that draws clients and samples as one does by hand."""
    job, each = work.race, work.race.first.shape[1]

    def played(play: by_hand.Round, job: Job, rounds: int) -> tuple[torch.Tensor, list[float]]:
        rng, clocked, many = np.random.default_rng(1), [clock()], len(job.first)
        x = torch.from_numpy(np.concatenate([part.ravel() for part in job.model]))
        for _ in range(rounds):
            clients = rng.choice(many, COHORT, replace=False)
            drawn = np.zeros((COHORT, STEPS, 1), np.int64)
            if job.work != "quad":
                drawn = batches(rng, EACH if many == CLIENTS else BATCH)
            x = play(x, torch.from_numpy(clients), torch.from_numpy(drawn))
            clocked.append(clock())
        return x, clocked

    assert job.work == "quad" or each == EACH
    first, _ = played(check, work.check, 1)
    return Racer(lambda: np.diff(played(play, job, rounds)[1]).tolist(), first.numpy())


def ours(
    work: Work, engine: str, rounds: int, clock: Callable[[], float], sizes: Sequence[float] = (SIZE,), seeds: int = 1
) -> Racer:
    """Our engine, of settings and seeds together; what is prepared before the first rounds is left out."""
    block = max(1, rounds // 20)  # rounds between looks at the clock, which take 8 microseconds here

    def turn() -> list[float]:
        clocked: list[float] = []

        def look(done: int, total: int) -> None:
            if done >= WARM and (done - WARM) % block == 0 and done <= rounds + WARM:
                clocked.append(clock())

        settings = [JointRun(FedAvg(size, STEPS), range(seeds), rounds + WARM + 1) for size in sizes]
        list(
            simulate_together(
                settings, work.problem, PROCESS, engine=engine, record_every=rounds + WARM + 1, progress=look
            )
        )
        return (np.diff(clocked) / (block * len(sizes) * seeds)).tolist()

    return Racer(turn)


def twin(work: Work, rounds: int, clock: Callable[[], float]) -> Racer:
    """The slow twin: the algorithm as its pseudo-code reads."""
    q, one = (
        PROCESS.matrix(rounds, Streams(0).generator("participation")),
        Full(COHORT).matrix(1, np.random.default_rng(0)),
    )

    def turn() -> list[float]:
        start = clock()
        run_reference(FedAvg(SIZE, STEPS), work.problem, q, Streams(0))
        return [(clock() - start) / rounds]

    return Racer(turn, run_reference(FedAvg(SHORT, STEPS), work.small, one, Streams(0))[-1].numpy())


def entered(name: str, racers: dict[str, Racer], without: Sequence[str], enter: Callable[[], Racer]) -> None:
    """Lets somebody from elsewhere take part, or says why not."""
    try:
        if name.partition(" ")[0] not in without:
            racers[name] = enter()
    except (subprocess.CalledProcessError, OSError) as error:
        told = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        print(f"{name}: not here: {(told.strip().splitlines() or ['nothing was said'])[-1]}", flush=True)


def field(work: Work, threads: int, without: Sequence[str]) -> dict[str, Racer]:
    """Who takes part."""
    name, clock = work.race.work, time.process_time if threads == 1 else time.perf_counter
    rounds, slow, quad = ROUNDS[name], SLOW[name], name == "quad"
    loop = by_hand.quadratic_loop if quad else by_hand.plain_loop
    batched = by_hand.quadratic_batched if quad else by_hand.hand_batched
    racers = {
        "plain torch loop": hand(
            loop(work.race), loop(work.check), work, max(1, rounds // 4 if quad else rounds), clock
        ),
        "hand-batched torch": hand(batched(work.race), batched(work.check), work, rounds, clock),
    }
    if threads == 1:
        racers["slow twin"] = twin(work, slow, clock)
    if not quad:
        racers["torch vmap"] = hand(by_hand.by_vmap(work.race), by_hand.by_vmap(work.check), work, rounds, clock)
        entered("pfl-research", racers, without, lambda: elsewhere("pfl", "in_pfl.py", work, rounds, threads))
        entered("FedJAX", racers, without, lambda: elsewhere("jax", "in_fedjax.py", work, rounds, threads))
    entered("one XLA program", racers, without, lambda: elsewhere("jax", "compiled_xla.py", work, rounds, threads))
    if name == "mlp8":
        entered(
            "one XLA program, replacement",
            racers,
            without,
            lambda: elsewhere("jax", "compiled_xla.py", work, rounds, threads, "replacement"),
        )
    if not quad:
        entered("Flower (wall)", racers, without, lambda: elsewhere("flower", "in_flower.py", work, slow, threads))
    racers["ours, chosen"] = ours(work, "auto", rounds, clock)
    if quad:
        racers["ours, batched"] = ours(work, "batched", rounds // 4, clock)
    if name == "mlp8" and threads == 1:
        sizes = [SIZE * (k + 1) / MANY for k in range(MANY)]
        racers["ours, compiled"] = ours(work, "compiled", rounds, clock)
        racers[f"ours, {MANY} step sizes together"] = ours(work, "auto", rounds, clock, sizes)
        racers[f"ours, compiled, {MANY} seeds"] = ours(work, "compiled", rounds, clock, seeds=MANY)
    return racers


def compared(work: Work, racers: dict[str, Racer]) -> None:
    """Exits if somebody computes something else."""
    run = simulate(FedAvg(SHORT, STEPS), work.small, Full(COHORT), 1, record_models=True)
    before, after = run.model[0].astype(np.float64)
    start = np.concatenate([part.ravel() for part in work.check.model])
    assert np.array_equal(start, before.astype(np.float32))
    for name, racer in racers.items():
        if racer.first is not None:
            away = float(np.linalg.norm(racer.first - after) / np.linalg.norm(after - before))
            print(f"{work.race.work}: {name} ends {away:.1e} from our engine, relative to the way gone", flush=True)
            if not away <= NEAR:
                sys.exit(f"{name} computes something else")


def raced(work: Work, racers: dict[str, Racer], turns: int, threads: int) -> None:
    """A line of JSON for each racer, and the table."""
    seconds: dict[str, list[float]] = {name: [] for name in racers}
    for k in range(turns):
        for name, racer in racers.items():
            if k == 0 or not racer.wall:  # Ray takes longer to start than all others to play
                seconds[name] += racer.turn()
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    for name, found in seconds.items():
        clock = "wall" if threads > 1 or racers[name].wall else "processor"
        quartiles = np.percentile(found, [25, 75]) * 1e3
        line = {"work": work.race.work, "racer": name, "threads": threads, "clock": clock, "timed": len(found)}
        line |= {"median_ms": 1e3 * medians[name], "quartiles_ms": quartiles.tolist(), "load": os.getloadavg()[0]}
        print(json.dumps(line, sort_keys=False))
    print(
        f"\n{work.race.work}, {threads} thread(s)\n{'racer':32}{'ms a round':>12}{'rounds/s':>11}{'times as fast':>15}"
    )
    for name, median in sorted(medians.items(), key=lambda pair: -pair[1]):
        times = medians["plain torch loop"] / median
        print(f"{name:32}{1e3 * median:12.3f}{1 / median:11.1f}{times:15.2f}", flush=True)


def main() -> None:
    """Compares, then races."""
    parser = argparse.ArgumentParser(description="The race.")
    parser.add_argument("--work", nargs="+", choices=list(ROUNDS), default=list(ROUNDS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--without", nargs="+", default=[], help="racers from elsewhere, by their first words")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(f"{os.cpu_count()} cores; torch {torch.__version__}, numpy {np.__version__}; load {os.getloadavg()}")
    for name in given.work:
        work = made(name)
        racers = field(work, given.threads, given.without)
        compared(work, racers)
        raced(work, racers, given.turns, given.threads)


if __name__ == "__main__":
    main()
