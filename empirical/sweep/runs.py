"""From resolved tasks to runs with keys; builds every component once, so that typos are found before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.empirical.sweep.keys import algorithm_modules, canonical_json, run_key, source_digest
from fedbounds.empirical.sweep.spec import COMPONENTS, Sweep, Task

if TYPE_CHECKING:
    from fedbounds.empirical.algorithms import Algorithm
    from fedbounds.empirical.algorithms.algorithm import LinkLoad
    from fedbounds.empirical.problems.problem import SiloSizes


MOST_SEEDS = 32  # that a title names one by one


@dataclass(frozen=True)
class Run:
    """One unit of work: a task with its block of seeds, its key, the seconds that it takes at least, the bytes of a
    client's longest message (None if unknown), how many like it are made together at most, what a round
    sends over each class of links, if there are several, and the bytes of the numbers that it holds."""

    key: str
    task: Task
    seconds: float = 0.0
    message_bytes: int | None = None
    together: int = 1
    link_loads: Mapping[str, LinkLoad] = field(default_factory=dict)
    memory: int = 0

    @property
    def title(self) -> str:
        """The run in words: its labels and its seeds.

        Example:
            >>> Run("0" * 64, {"seeds": [0, 1], "labels": {"algorithm": "fedavg", "rounds": 10}}).title
            'algorithm=fedavg rounds=10 seeds=0,1'
        """
        labels = [
            f"{name}={value if isinstance(value, str) else quote(value)}" for name, value in self.task["labels"].items()
        ]
        seeds = [*map(str, self.task["seeds"])]
        shown = seeds if len(seeds) <= MOST_SEEDS else [*seeds[:2], "...", seeds[-1]]
        return " ".join([*labels, "seeds=" + ",".join(shown)])


class Prepared(NamedTuple):
    """A task after the check of its components."""

    task: Task
    data: Mapping[str, str]  # checksums of the data that it reads, by the dotted place of the file in the task
    seconds: float = 0.0  # a lower bound of its duration
    message_bytes: int | None = None  # of a client's message
    together: int = 1  # how many such runs are made together at most
    link_loads: Mapping[str, LinkLoad] = MappingProxyType({})  # what a round sends over each class of links
    memory: int = 0  # bytes of the numbers that it holds


class Component(NamedTuple):
    """The properties of a problem, process or algorithm that was built to check its table."""

    table: Mapping[str, Any]
    clients: int = 0
    dimension: int = 0
    data: Mapping[str, str] = MappingProxyType({})
    ascends: bool = False
    uncompressed: int = 0
    statistics: int = 0
    steps_per_epoch: np.ndarray | None = None
    silos: int = 0
    affine: bool = False
    faster_together: bool = False
    algorithm: Algorithm | None = None
    silo_sizes: SiloSizes | None = None
    client_weights: np.ndarray | None = None
    participants: int = 0


class Fitting(NamedTuple):
    """An algorithm on a problem: its completed table, a lower bound of its seconds, the bytes of a client's message,
    the loads of links, and the most local steps of a client.
    """

    table: Mapping[str, Any]
    seconds: float
    message_bytes: int | None
    link_loads: Mapping[str, LinkLoad]
    local_steps: int


def plan(
    sweep: Sweep, prepare: Callable[[Sweep, Task], Prepared] | None = None, device: str | None = None
) -> tuple[Run, ...]:
    """Check every task of a sweep and give it its key.

    Args:
        sweep: from `read_sweep` or `resolve`.
        prepare: checks and completes one task (default: a new `Preparation`).
        device: another device than the tasks name; as in `resolve_device`.

    Raises:
        FedboundsError: a table does not make a problem, a process or an algorithm; says which, and what
            would.
    """
    prepare = prepare or Preparation()
    here = {} if device is None else {"device": device}
    prepared = [prepare(sweep, {**task, **here}) for task in sweep.tasks]
    digest = cache(source_digest)
    return tuple(
        Run(
            run_key(one.task, digest(algorithm_modules(one.task)), one.data),
            one.task,
            one.seconds,
            one.message_bytes,
            one.together,
            one.link_loads,
            one.memory,
        )
        for one in prepared
    )


def local_key(task: Task, sources: str) -> str:
    """The key of a run's task with the data that this machine has."""
    data = {**_build("problem", task["problem"]).data, **_build("participation", task["participation"]).data}
    return run_key(task, sources, data)


class Preparation:
    """Builds each different table of a sweep once, and writes it back with all defaults."""

    def __init__(self) -> None:
        self._known: dict[str, Component] = {}
        self._checked: Sweep | None = None

    def __call__(self, sweep: Sweep, task: Task) -> Prepared:
        """The task with its components' tables completed."""
        from fedbounds.empirical.runtime.device import resolve_device
        from fedbounds.empirical.runtime.streams import Streams
        from fedbounds.empirical.simulation.runtime_estimate import building_seconds
        from fedbounds.empirical.simulation.simulate import check_run_memory

        if sweep is not self._checked:
            self._check_tables(sweep)
        with _error_place(f"{sweep.source}: [streams]"):
            Streams(0, task["streams"])
        task = {**task, "engine": task["engine"].replace("-", " ")}
        problem = self._component(sweep, task, "problem", task["problem"])
        with _error_place(f"{sweep.source}: {_place(task, 'participation')}"):
            table = _with_client_weights(task["participation"], problem)
        process = self._component(sweep, task, "participation", table)
        if problem.clients != process.clients:
            raise FedboundsError(
                f"{sweep.source}: {_place(task, 'participation')} has {process.clients} clients, "
                f"{_place(task, 'problem')} has {problem.clients}"
            )
        with _error_place(sweep.source):
            task["device"] = resolve_device(task["device"], "network" in problem.table)
            length, seeds, every = task["rounds"], len(task["seeds"]), task["record_every"]
            check_run_memory(problem.clients, problem.dimension, length, seeds, every, task["record_models"])
        task["problem"], task["participation"] = problem.table, process.table
        seconds = building_seconds(problem.table, problem.dimension)
        if "algorithm" in task:
            found = self._algorithm(sweep, task, task["algorithm"], task["rounds"], problem)
            task["algorithm"], loads = found.table, found.link_loads
            seconds, lengths, steps = seconds + found.seconds, [found.message_bytes], found.local_steps
        else:
            phases, lengths, loads, steps = [], [], {}, 0
            for index, phase in enumerate(task["phases"]):
                where = f", phase {index}"
                found = self._algorithm(sweep, task, phase["algorithm"], phase["rounds"], problem, where)
                seconds, steps = seconds + found.seconds, max(steps, found.local_steps)
                lengths.append(found.message_bytes)
                phases.append({**phase, "algorithm": found.table})
            task["phases"] = phases
        known = [length for length in lengths if length is not None]
        longest = max(known) if len(known) == len(lengths) else None
        together = most_together(problem, process, task, steps)
        data = {**problem.data, **process.data}
        return Prepared(task, data, seconds, longest, together, loads, _count_numbers(problem, task))

    def _check_tables(self, sweep: Sweep) -> None:
        """Check the tables that need no data, of all tasks, before the data of one are loaded."""
        from fedbounds.empirical.participation.spec import SampleWeighted

        for task in sweep.tasks:
            if task["participation"].get("kind") != SampleWeighted.kind:  # it may need the problem's weights
                self._component(sweep, task, "participation", task["participation"])
            if "algorithm" in task:
                self._component(sweep, task, "algorithm", task["algorithm"])
            for index, phase in enumerate(task.get("phases", ())):
                self._component(sweep, task, "algorithm", phase["algorithm"], f", phase {index}")
        self._checked = sweep

    def _algorithm(
        self, sweep: Sweep, task: Task, table: Mapping[str, Any], rounds: int, problem: Component, suffix: str = ""
    ) -> Fitting:
        """An algorithm that can run on a problem for so many rounds."""
        from fedbounds.empirical.simulation.engines import check_engine
        from fedbounds.empirical.simulation.runtime_estimate import check_work, may_be_closed

        built = self._component(sweep, task, "algorithm", table, suffix)
        assert built.algorithm is not None
        with _error_place(f"{sweep.source}: engine"):
            check_engine(task["engine"], built.algorithm)
        with _error_place(f"{sweep.source}: {_place(task, 'algorithm')}{suffix}"):
            built.algorithm.check(problem, rounds)
            closed = built.algorithm.plain_steps and may_be_closed(task["engine"], problem.affine)
            seeds = len(task["seeds"])
            seconds = check_work(built.algorithm, problem, rounds, seeds, problem.dimension, closed)
        algorithm = built.algorithm
        sent, loads = algorithm.message_bytes(problem), algorithm.link_loads(problem)
        return Fitting(built.table, seconds, sent, loads, algorithm.most_local_steps(problem))

    def _component(self, sweep: Sweep, task: Task, name: str, table: Mapping[str, Any], suffix: str = "") -> Component:
        identity = f"{name} {canonical_json(table)}"
        if identity not in self._known:
            with _error_place(f"{sweep.source}: {_place(task, name)}{suffix}"):
                self._known[identity] = _build(name, table)
        return self._known[identity]


def _build(name: str, table: Mapping[str, Any]) -> Component:
    from fedbounds.empirical.algorithms import algorithm_from_spec
    from fedbounds.empirical.participation import process_from_spec
    from fedbounds.empirical.problems.spec import PROBLEMS, file_checksums, sketch
    from fedbounds.empirical.simulation.engines import most_participants

    if name == "algorithm":
        algorithm = algorithm_from_spec(table)
        return Component(algorithm.spec(), algorithm=algorithm)
    if name == "participation":
        process = process_from_spec(table)
        most = most_participants(process)
        if "file" not in table:
            return Component(process.spec(), process.clients, participants=most)
        content = hashlib.sha256(canonical_json(process.spec()).encode()).hexdigest()
        return Component(table, process.clients, data={"participation.file": content}, participants=most)
    problem, clients, dimension = sketch(table)
    checksum = problem.data_checksum
    data = {} if checksum is None else {"problem.data": checksum}
    data |= {f"problem.{key}": content for key, content in file_checksums(table).items()}
    return Component(
        PROBLEMS.with_defaults(table),
        clients,
        dimension,
        data,
        problem.ascends,
        problem.uncompressed,
        problem.statistics,
        problem.steps_per_epoch,
        problem.silos,
        problem.affine,
        problem.faster_together,
        silo_sizes=problem.silo_sizes if problem.dimension == dimension else None,
        client_weights=problem.client_weights,
    )


def _with_client_weights(table: Mapping[str, Any], problem: Component) -> Mapping[str, Any]:
    """The table of a process that weighs its participants as the problem's objective does, with these weights."""
    from fedbounds.empirical.participation.spec import OF_PROBLEM, SampleWeighted

    if table.get("kind") != SampleWeighted.kind or table.get("client_weights", OF_PROBLEM) != OF_PROBLEM:
        return table
    if problem.client_weights is None:
        raise FedboundsError('the problem has no client_weights: give it client_weights = "samples", or a list here')
    return {**table, "client_weights": problem.client_weights.tolist()}


def recorded_metrics(run: Run) -> list[str]:
    """What a run records as one number for each seed and round, found at the first model of its problem.

    A run counts bytes only where messages are always equally long; `uplink_bytes` is listed in any case.
    """
    from fedbounds.empirical.problems import problem_from_spec

    problem = problem_from_spec(run.task["problem"], device=run.task["device"])
    found = problem.metrics(problem.initial_point(np.random.default_rng(0))[None])
    return ["participants", "uplink_bytes", *(name for name, value in found.items() if value.ndim == 1)]


def most_together(problem: Component, process: Component, task: Task, steps: int) -> int:
    """How many runs of a task's kind are made together at most: one where that does not pay.

    On a processor 16 seeds in all, with more of which dense networks leave the cache (measured); and as many models and
    recorded numbers as half a GiB holds.
    """
    from fedbounds.empirical.simulation.engines import may_repay

    here, seeds = task["device"] == "cpu", len(task["seeds"])
    if problem.ascends or problem.silos or (here and not problem.faster_together):
        return 1
    may_compile = task["engine"] == "auto" and not problem.affine
    long = may_compile and may_repay(task["rounds"] * seeds, process.participants, steps)
    if here and (long or task["engine"] == "compiled"):  # its numbers may depend on who else is in the batch
        return 1
    records = task["rounds"] // task["record_every"] + 2
    numbers = seeds * problem.dimension * (4 + (records if task["record_models"] else 0))
    return max(1, min((16 if here else 512) // seeds, 2**26 // numbers))


def _count_numbers(problem: Component, task: Task) -> int:
    """Bytes of the models of server and clients, and of what is recorded."""
    records = task["rounds"] // task["record_every"] + 2
    of_a_seed = 4 * (problem.dimension + records) + (2 * records * problem.dimension if task["record_models"] else 0)
    return 8 * (len(task["seeds"]) * of_a_seed + problem.clients * problem.dimension)


def _place(task: Task, name: str) -> str:
    """Where in the file a component's table stands, and which axes changed it."""
    labels = task["labels"]
    plural = f"{COMPONENTS[name]}.{labels[name]}" if name in labels else name
    axes = [f"{path} = {value!r}" for path, value in labels.items() if path.startswith(f"{name}.")]
    return f"[{plural}]" + (f" with {', '.join(axes)} from [vary]" if axes else "")


@contextmanager
def _error_place(place: str) -> Iterator[None]:
    """Put a place in front of the one line of an error."""
    try:
        yield
    except FedboundsError as error:
        raise FedboundsError(f"{place}: {error}") from error
