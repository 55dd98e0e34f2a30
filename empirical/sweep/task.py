"""What one run is: a resolved task becomes a trace. The digest of the sources starts at this module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.participation import process_from_spec
from fedbounds.empirical.problems import Problem, problem_from_spec
from fedbounds.empirical.problems.spec import PROBLEMS
from fedbounds.empirical.runtime.device import resolve_device
from fedbounds.empirical.simulation.engines import choose_engine, most_participants
from fedbounds.empirical.simulation.engines.compiled import COMPILING, SAVED, CompiledEngine
from fedbounds.empirical.simulation.simulate import JointRun, simulate_together
from fedbounds.empirical.simulation.trace import Trace


def run_task(task: Mapping[str, Any]) -> Trace:
    """Simulate a resolved task.

    Torch computes in one thread, here as on every worker, so that a result does not depend on where it was
    made.
    """
    ((trace,),) = run_together([task])
    return trace


def run_together(tasks: Sequence[Mapping[str, Any]], problem: Problem | None = None) -> Iterator[list[Trace]]:
    """Simulate tasks that differ in nothing but the sizes of steps and seeds: traces in order, as they are there.

    Args:
        tasks: of the runs.
        problem: theirs, if it is made already.
    """
    task, device = tasks[0], _device(tasks[0])
    with _one_thread(), _memory_of(tasks, device):
        yield from simulate_together(
            [_setting(each) for each in tasks],
            problem_from_spec(task["problem"], device=device) if problem is None else problem,
            process_from_spec(task["participation"]),
            engine=task["engine"],
            record_every=task["record_every"],
            streams=task["streams"],
            record_models=task["record_models"],
            record_participation=task["record_participation"],
        )


def make_problem(task: Mapping[str, Any]) -> Problem:
    """The problem of a task on its device."""
    return problem_from_spec(task["problem"], device=_device(task))


def compiling_seconds(tasks: Sequence[Mapping[str, Any]], problem: Problem | None) -> tuple[float, float]:
    """How long runs of one batch are compiled, about, and what that saves them; zero if they are not compiled."""
    task = tasks[0]
    if problem is None or problem.silos or problem.ascends:
        return 0.0, 0.0
    seeds, most = max(len(each["seeds"]) for each in tasks), most_participants(process_from_spec(task["participation"]))
    for each in task.get("phases") or [task]:
        algorithm = algorithm_from_spec(each["algorithm"])
        engine = choose_engine(task["engine"], problem, algorithm, each["rounds"], seeds, most)
        if isinstance(engine, CompiledEngine):
            return COMPILING, SAVED * each["rounds"] * seeds * most * algorithm.most_local_steps(problem)
    return 0.0, 0.0


def _device(task: Mapping[str, Any]) -> str:
    return resolve_device(task["device"], "network" in PROBLEMS.with_defaults(task["problem"]))


def _setting(task: Mapping[str, Any]) -> JointRun:
    phases = [(algorithm_from_spec(phase["algorithm"]), phase["rounds"]) for phase in task.get("phases", ())]
    return JointRun(
        None if phases else algorithm_from_spec(task["algorithm"]), task["seeds"], task["rounds"], phases or None
    )


@contextmanager
def _memory_of(tasks: Sequence[Mapping[str, Any]], device: str) -> Iterator[None]:
    """What does not fit on a device is one line: what was asked, what there is, which key to lower."""
    try:
        yield
    except torch.OutOfMemoryError:
        free, whole = torch.cuda.mem_get_info(device)
        seeds, clients = sum(len(task["seeds"]) for task in tasks), tasks[0]["participation"].get("clients", "all")
        raise FedboundsError(
            f"device {device} ran out of memory: {seeds} seeds of {clients} clients together, "
            f"{free / 2**30:.1f} of {whole / 2**30:.1f} GiB are free; lower seeds_per_run, or problem.batch"
        ) from None


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
