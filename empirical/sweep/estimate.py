"""Time and memory of missing runs, from finished runs of the sweep, from a few rounds in another process, or a model.

The model counts a microsecond for each local step, a lower bound, and the numbers that a run holds in memory. What a
process does once (planning, imports, problems, compiling) is added to what its runs take.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from heapq import heapreplace
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fedbounds.empirical.sweep.batches import Batch, batches, setting
from fedbounds.empirical.sweep.keys import canonical_json
from fedbounds.empirical.sweep.provenance import peak_bytes
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.spec import Task
from fedbounds.empirical.sweep.store import RunStatus, Store
from fedbounds.empirical.sweep.workers import spawn_process

if TYPE_CHECKING:
    from fedbounds.empirical.problems import Problem

T = TypeVar("T")

STARTING = 60.0  # seconds that a process may need until it begins
BUILDING = 300.0  # seconds that it may need to make a problem
GRACE = 3  # times the patience, after which a process that times rounds is ended
SHOWS = 0.05  # seconds by which several rounds must exceed one round to be measurable


class Probe(NamedTuple):
    """Measurements of a few rounds."""

    seconds: Mapping[str, float]  # of a whole run, by its setting; settings that were not measured in time are missing
    memory: int  # the largest memory of the process, in bytes
    once: Mapping[str, float] = MappingProxyType({})  # seconds that the first run of a setting takes longer
    starting: float = 0.0  # seconds until a new process begins
    building: float = 0.0  # seconds that the problems take longer the first time that a process makes them


class _Timing(NamedTuple):
    """What the other process finds of a setting: seconds of a run, what the first takes longer, what the first
    making of its problem takes longer."""

    seconds: float
    once: float
    building: float


def probe(planned: Sequence[Batch], patience: float, progress: Callable[[int, int], None] | None = None) -> Probe:
    r"""Time a few rounds of a batch of every setting, for so many seconds in all; making problems is not counted.

    $$\text{seconds} = a + b\cdot\text{rounds} + c\cdot\text{records},$$

    where $a$ is what it takes to begin, $b$ a round, and $c$ an evaluation; each with what it takes to write it.
    """
    first: dict[str, list[Task]] = {}
    for batch in planned:
        first.setdefault(setting(batch[0].task), [run.task for run in batch])
    with TemporaryDirectory() as folder:  # the other process may be killed
        began = time.monotonic()
        process, connection = spawn_process(_measure_batches, list(first.values()), patience, folder)
        found: dict[str, _Timing] = {}
        memory, starting, left, place, since = 0, 0.0, patience, 0, began
        try:
            names, timing = list(first), False
            deadline = began + STARTING
            with suppress(EOFError, OSError):
                while connection.poll(max(0.0, deadline - time.monotonic())):
                    message, now = connection.recv(), time.monotonic()
                    starting = starting or now - began
                    if timing:
                        left -= now - since
                    since, timing = now, message == "rounds"
                    deadline = now + (GRACE * patience - (patience - left) if timing else BUILDING)
                    if isinstance(message, str):
                        continue
                    timed, memory = message
                    if timed is not None:
                        found[names[place]] = timed
                    place += 1
                    if progress is not None:
                        progress(place, len(names))
        finally:
            process.kill()
            process.join()
            connection.close()
    seconds = {name: one.seconds for name, one in found.items()}
    once = {name: one.once for name, one in found.items()}
    return Probe(seconds, memory, once, starting, sum(one.building for one in found.values()))


def _measure_batches(connection: Connection, planned: Sequence[Sequence[Task]], patience: float, folder: str) -> None:
    """The other process: says what it does, then of each batch the timing of a run and the memory had so far."""
    from fedbounds.empirical.sweep.task import make_problem

    connection.send("problem")
    left, making, made, problem = patience, 0.0, "", None
    for place, tasks in enumerate(planned):
        found, building = None, 0.0
        connection.send("problem")
        try:
            if made != (made := canonical_json([tasks[0]["problem"], tasks[0]["device"]])):
                problem = None  # no two at once
                problem, cold = _time(partial(make_problem, tasks[0]))
                problem = None
                problem, warm = _time(partial(make_problem, tasks[0]))
                building, making = max(cold - warm, 0.0), warm
            connection.send("rounds")
            began = time.perf_counter()
            found = _time_batch(tasks, problem, making, left / (len(planned) - place), Store(Path(folder)))
            left = max(left - (time.perf_counter() - began), 0.0)
        except Exception:  # whatever it is: the run will say it
            made = ""
        connection.send((found and found._replace(building=building), peak_bytes()))
    connection.close()


def _time(work: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and the seconds that it takes."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def _time_batch(tasks: Sequence[Task], problem: Problem | None, making: float, share: float, store: Store) -> _Timing:
    """The seconds of a run in a batch of whole tasks, of which few rounds are made and written."""
    from fedbounds.empirical.sweep.task import compiling_seconds, run_together

    short = [{**task, "engine": "batched" if task["engine"] == "compiled" else task["engine"]} for task in tasks]
    calls: list[float] = []

    def seconds(some: Task) -> float:
        few = {name: some[name] for name in ("rounds", "record_every")}
        shortened = [{**task, **few, **_phases(task, some)} for task in short]

        def work() -> None:
            for place, trace in enumerate(chain.from_iterable(run_together(shortened, problem))):
                store.save(f"{place:064x}", trace, {}, sync=False)

        calls.append(_time(work)[1])
        return calls[-1]

    whole = extrapolate_seconds(short[0], seconds, share)
    compiling, saved = compiling_seconds(tasks, problem)
    whole = max(whole - saved, whole / 2) + making
    return _Timing(whole / len(tasks), max(calls[0] - calls[1], 0.0) + compiling, 0.0)


def _phases(task: Task, some: Task) -> Task:
    """The phases of a task with the rounds that another has."""
    pairs = zip(task.get("phases", ()), some.get("phases", ()), strict=True)
    return {"phases": [{**own, "rounds": other["rounds"]} for own, other in pairs]} if "phases" in task else {}


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
    total: float  # seconds of all missing runs, one after another in this process, from the start of the command
    elapsed: float  # the same on the given workers
    memory: int  # bytes of a process that makes the largest batch
    whole: int  # bytes of all workers at once
    memory_measured: bool  # whether the memory was measured


def estimate(
    runs: Sequence[Run],
    statuses: Mapping[str, RunStatus],
    workers: int,
    trial: Callable[[Sequence[Batch]], Probe] | None = None,
    planning: float = 0.0,
) -> Estimate:
    """Time and memory that the runs which are not finished will take.

    Args:
        runs: of the sweep.
        statuses: by key.
        workers: processes that make them.
        trial: times batches, if no run is finished.
        planning: seconds that the command takes before its first run.
    """
    distinct = {run.key: run for run in runs}
    made = {key: statuses[key].record for key in distinct if statuses[key].finished}
    ratios: dict[str, list[float]] = {}
    for key, record in made.items():
        if record["seconds"] and distinct[key].seconds:
            ratios.setdefault(setting(distinct[key].task), []).append(record["seconds"] / distinct[key].seconds)
    measured = sum(map(len, ratios.values()))
    missing = [run for key, run in distinct.items() if not statuses[key].finished]
    planned = list(batches(missing, workers))
    probed = trial(planned) if trial is not None and missing and not measured else Probe({}, 0)
    for run in missing:
        if (alike := setting(run.task)) in probed.seconds and run.seconds:
            ratios[alike] = [probed.seconds[alike] / run.seconds]
    known = [ratio for some in ratios.values() for ratio in some]
    usual = median(known) if known else 1.0
    seconds = {
        key: run.seconds * (median(ratios[alike]) if (alike := setting(run.task)) in ratios else usual)
        for key, run in distinct.items()
    }
    loads = [sum(seconds[run.key] for run in batch) for batch in planned]
    peaks = [record["provenance"].get("peak_bytes") for record in made.values()]
    seen = max((peak for peak in peaks if peak), default=0)
    alone = probed.memory or peak_bytes()
    held = [seen or alone + sum(run.memory for run in batch[bool(probed.memory) :]) for batch in planned]
    sizes = sorted(held, reverse=True)
    before = planning if missing and (measured or probed.seconds) else 0.0
    total = before + sum(probed.once.values()) + sum(loads)
    elapsed = before + _elapsed(planned, loads, workers, probed) if workers > 1 else total
    return Estimate(
        seconds, measured, len(probed.seconds), total, elapsed, max(sizes, default=0),
        sum(sizes[: max(workers, 1)]), bool(seen or probed.memory),
    )  # fmt: skip


def _elapsed(planned: Sequence[Batch], loads: Sequence[float], workers: int, probed: Probe) -> float:
    """When the last of so many workers ends, if each takes the next batch as soon as it can.

    Each process begins, makes problems for the first time and begins the settings of its batches; processes beyond the
    processors share them.
    """
    processes = max(1, min(workers, len(loads)))
    crowd = max(1.0, processes / len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else 1.0
    ends, begun = [0.0] * processes, dict[str, int]()
    for batch, load in zip(planned, loads, strict=True):
        name = setting(batch[0].task)
        begun[name] = begun.get(name, 0) + 1
        heapreplace(ends, ends[0] + load + (probed.once.get(name, 0.0) if begun[name] <= processes else 0.0))
    return crowd * (probed.starting + probed.building + max(ends))
