"""Time and memory of missing runs, from finished runs of the sweep, from a few rounds in another process, or a model.

The model counts a microsecond for each local step, a lower bound, and the numbers that a run holds in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from heapq import heapreplace
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, NamedTuple

from fedbounds.empirical.sweep.batches import batches, setting
from fedbounds.empirical.sweep.provenance import peak_bytes
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.spec import Task
from fedbounds.empirical.sweep.store import RunStatus
from fedbounds.empirical.sweep.workers import spawn_process

STARTING = 30.0  # seconds that a process may need until it begins
SHOWS = 0.05  # seconds by which several rounds must exceed one round to be measurable


class Probe(NamedTuple):
    """Measurements of a few rounds."""

    seconds: Mapping[str, float]  # of a whole run, by its setting; settings that were not measured in time are missing
    memory: int  # the largest memory of the process, in bytes


def probe(runs: Sequence[Run], patience: float, progress: Callable[[int, int], None] | None = None) -> Probe:
    r"""Time a few rounds of every setting, for so many seconds in all.

    $$\text{seconds} = a + b\cdot\text{rounds} + c\cdot\text{records},$$

    where $a$ is what it takes to begin, $b$ a round, and $c$ an evaluation.
    """
    first: dict[str, Task] = {}
    for run in runs:
        first.setdefault(setting(run.task), run.task)
    process, connection = spawn_process(_measure_tasks, list(first.values()), patience)
    found: dict[str, float] = {}
    memory = 0
    try:
        waiting = list(first)
        deadline = time.monotonic() + STARTING
        with suppress(EOFError, OSError):
            while connection.poll(max(0.0, deadline - time.monotonic())):
                if (message := connection.recv()) is None:
                    deadline = time.monotonic() + patience
                    continue
                seconds, memory = message
                here = waiting.pop(0)
                if seconds is not None:
                    found[here] = seconds
                if progress is not None:
                    progress(len(first) - len(waiting), len(first))
    finally:
        process.kill()
        process.join()
        connection.close()
    return Probe(found, memory)


def _measure_tasks(connection: Connection, tasks: Sequence[Task], patience: float) -> None:
    """The other process: says that it begins, then of each task the seconds that it takes and the memory had so far."""
    from fedbounds.empirical.sweep.task import run_task

    def seconds(task: Task) -> float:
        began = time.perf_counter()
        run_task(task)
        return time.perf_counter() - began

    connection.send(None)
    ends = time.perf_counter() + patience
    for place, task in enumerate(tasks):
        try:
            share = (ends - time.perf_counter()) / (len(tasks) - place)
            found = extrapolate_seconds(task, seconds, share)
        except Exception:  # whatever it is: the run will say it
            found = None
        connection.send((found, peak_bytes()))
    connection.close()


def extrapolate_seconds(task: Task, seconds: Callable[[Task], float], share: float) -> float:
    """Seconds that a task takes, from those of short ones."""
    rounds, every = task["rounds"], task["record_every"]
    ends = time.perf_counter() + share
    least = shorten_task(task, 1, recorded=False)
    seconds(least)  # warm up: imports, caches, first calls
    begin, one = seconds(least), least["rounds"]

    def longer(recorded: bool) -> tuple[float, int]:
        """By how much more rounds take longer than the least, and how many they are."""
        many = one
        while True:
            many = min(2 * many, rounds)
            some = shorten_task(task, many, recorded)
            took = seconds(some)
            if many == rounds or took > 2 * begin + SHOWS or time.perf_counter() + 2 * took > ends:
                return max(took - begin, 0.0), some["rounds"]

    if rounds <= one:
        return begin
    more, many = longer(recorded=False)
    a_round = more / (many - one)
    a_record, records = 0.0, -(-rounds // every) + 1
    if records > 2:
        more, many = longer(recorded=True)
        a_record = max(more - a_round * (many - one), 0.0) / (many - 1)
    return begin + a_round * (rounds - one) + a_record * (records - 2)


def shorten_task(task: Task, rounds: int, recorded: bool) -> dict[str, Any]:
    """A task with at most so many rounds, each of them recorded or the last alone; a phase keeps its share of them, and
    at least one.

    Example:
        >>> phases = [{"algorithm": {"kind": "fedavg"}, "rounds": rounds} for rounds in (100, 300)]
        >>> few = shorten_task({"rounds": 400, "record_every": 10, "phases": phases}, 8, recorded=False)
        >>> few["rounds"], few["record_every"], [phase["rounds"] for phase in few["phases"]]
        (8, 8, [2, 6])
    """
    phases = [
        {**phase, "rounds": max(1, phase["rounds"] * rounds // task["rounds"])} for phase in task.get("phases", ())
    ]
    rounds = sum(phase["rounds"] for phase in phases) if phases else min(rounds, task["rounds"])
    every = 1 if recorded else rounds
    return {**task, "rounds": rounds, "record_every": every} | ({"phases": phases} if phases else {})


class Estimate(NamedTuple):
    """Time and memory of missing runs."""

    seconds: Mapping[str, float]  # of each run, by its key
    measured: int  # number of finished runs that the estimate uses
    # number of settings that were run for a few rounds; without these and finished runs, seconds are lower
    # bounds
    tried: int
    total: float  # seconds of all missing runs, one after another
    elapsed: float  # seconds of all missing runs on the given workers
    memory: int  # bytes of a process that makes the largest batch
    whole: int  # bytes of all workers at once
    memory_measured: bool  # whether the memory was measured


def estimate(
    runs: Sequence[Run],
    statuses: Mapping[str, RunStatus],
    workers: int,
    trial: Callable[[Sequence[Run]], Probe] | None = None,
) -> Estimate:
    """Time and memory that the runs which are not finished will take."""
    distinct = {run.key: run for run in runs}
    made = {key: statuses[key].record for key in distinct if statuses[key].finished}
    ratios: dict[str, list[float]] = {}
    for key, record in made.items():
        if record["seconds"] and distinct[key].seconds:
            ratios.setdefault(setting(distinct[key].task), []).append(record["seconds"] / distinct[key].seconds)
    measured = sum(map(len, ratios.values()))
    missing = [run for key, run in distinct.items() if not statuses[key].finished]
    probed = trial(missing) if trial is not None and missing and not measured else Probe({}, 0)
    for run in missing:
        if (alike := setting(run.task)) in probed.seconds and run.seconds:
            ratios[alike] = [probed.seconds[alike] / run.seconds]
    known = [ratio for some in ratios.values() for ratio in some]
    usual = median(known) if known else 1.0
    seconds = {
        key: run.seconds * (median(ratios[alike]) if (alike := setting(run.task)) in ratios else usual)
        for key, run in distinct.items()
    }
    planned = list(batches(missing, workers))
    loads = [sum(seconds[run.key] for run in batch) for batch in planned]
    peaks = [record["provenance"].get("peak_bytes") for record in made.values()]
    seen = max((peak for peak in peaks if peak), default=0)
    alone = probed.memory or peak_bytes()
    held = [seen or alone + sum(run.memory for run in batch[bool(probed.memory) :]) for batch in planned]
    sizes = sorted(held, reverse=True)
    return Estimate(
        seconds, measured, len(probed.seconds), sum(loads), _elapsed(loads, workers), max(sizes, default=0),
        sum(sizes[: max(workers, 1)]), bool(seen or probed.memory),
    )  # fmt: skip


def _elapsed(loads: Sequence[float], workers: int) -> float:
    """When the last of so many workers ends, if each takes the next batch as soon as it can."""
    ends = [0.0] * max(1, min(workers, len(loads)))
    for load in loads:
        heapreplace(ends, ends[0] + load)
    return max(ends)
