"""What racers in environments of their own are given, and what they answer; needs nothing but numpy."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

COHORT, STEPS, BATCH, WARM = 10, 10, 16, 3


class Job(NamedTuple):
    """The work of a race.

    Attributes:
        work: "quad", "mlp8" or "cnn28".
        first: what each client holds: images (clients, each, channels, height, width), or Hessians (clients, d, d).
        second: labels (clients, each), or centers (clients, d).
        noise: of the gradients of quadratics, per coordinate.
        size: of local steps.
        model: the parts of the initial model, of a network weight and bias of each layer as torch has them.
    """

    work: str
    first: np.ndarray
    second: np.ndarray
    noise: float
    size: float
    model: list[np.ndarray]


def written(job: Job, path: Path) -> Path:
    parts = {f"part{k}": part for k, part in enumerate(job.model)}
    np.savez(path, work=job.work, first=job.first, second=job.second, noise=job.noise, size=job.size, **parts)
    return path


def read(path: str | Path) -> Job:
    found = np.load(path)
    parts = [found[f"part{k}"] for k in range(len(found.files) - 5)]
    return Job(str(found["work"]), found["first"], found["second"], float(found["noise"]), float(found["size"]), parts)


def batches(rng: np.random.Generator, each: int, clients: int = COHORT) -> np.ndarray:
    """Each client's samples of every step, without replacement, (clients, steps, batch)."""
    return rng.random((clients, STEPS, each)).argpartition(BATCH - 1, axis=2)[..., :BATCH]


def answer(play: Callable[[Job, int, Callable[[], float]], tuple[np.ndarray, list[float]]], *packages: str) -> None:
    """Plays one round in which nothing is random, then the race, and prints both as one line of JSON.

    Args:
        play: from a job, the number of rounds and the clock to the last model and the clock after every round.
        packages: whose versions are told.
    """
    check, race, rounds, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    clock = time.process_time if threads == 1 else time.perf_counter
    model, _ = play(read(check), 1, clock)
    _, clocked = play(read(race), rounds + WARM, clock)
    seconds = np.diff(clocked[WARM - 1 :]).tolist()
    told = {"model": np.asarray(model).tolist(), "seconds": seconds}
    print(json.dumps(told | {"versions": {name: version(name) for name in packages}}), flush=True)
