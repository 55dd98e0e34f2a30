"""The runs of a sweep against a result: recorded as theorems need it, the seeds of a setting together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.compile_form import form_view
from fedbounds.bounds.evaluation.evaluate import Value, check_assumed, trusted_claim
from fedbounds.bounds.theory.argument_checks import names_of
from fedbounds.bounds.theory.registry import as_result
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.comparison.compare_run import Confrontation, confront, constants_by_symbol
from fedbounds.empirical.comparison.paper_runs import RunFacts, paper_of, problem_constants
from fedbounds.empirical.comparison.run_setting import RunSetting, stationarity
from fedbounds.empirical.comparison.user_constants import check_given, drop_rounds
from fedbounds.empirical.participation import Process, process_from_spec
from fedbounds.empirical.problems import Problem, problem_from_spec
from fedbounds.empirical.problems.spec import with_defaults
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Run, Store, Sweep, execute, plan
from fedbounds.empirical.sweep.executor import Progress

RECORDED = {"record_models": True, "record_participation": True}


@dataclass(frozen=True, eq=False)
class SweepSetting:
    """One setting of a sweep.

    Attributes:
        label: what sets it apart, in words; the name of the sweep where there is one setting only.
        runs: of the setting, which differ in their seeds alone.
    """

    label: str
    runs: tuple[Run, ...]

    @property
    def task(self) -> Mapping[str, Any]:
        """What all its runs do."""
        return self.runs[0].task

    @property
    def seeds(self) -> list[int]:
        """Of all its runs."""
        return [seed for run in self.runs for seed in run.task["seeds"]]

    def problem(self) -> Problem:
        """Its problem, on the device of its runs."""
        return problem_from_spec(self.task["problem"], device=self.task["device"])

    def process(self) -> Process:
        """Who takes part in it."""
        return process_from_spec(self.task["participation"])


def record_everything(sweep: Sweep) -> Sweep:
    """The same sweep with all recorded that theorems ask of a run: models, who took part, and gradient norms where a
    problem computes them on demand. What is recorded is part of a run's key.

    Example:
        >>> from fedbounds.empirical.sweep import resolve
        >>> sweep = resolve({"rounds": 2, "problem": {"kind": "images"}, "participation": {"kind": "full"},
        ...     "algorithm": {"kind": "fedavg"}})
        >>> task = record_everything(sweep).tasks[0]
        >>> task["record_models"], task["problem"]
        (True, {'kind': 'images', 'gradient_norm': True})
    """
    tasks = []
    for task in sweep.tasks:
        offered = "gradient_norm" in _defaults(task["problem"])
        problem = {**task["problem"], **({"gradient_norm": True} if offered else {})}
        tasks.append({**task, **RECORDED, "problem": problem})
    return replace(sweep, tasks=tuple(tasks))


def _defaults(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """A problem's table with its defaults; as it is where `plan` will say what is wrong with it."""
    try:
        return with_defaults(table)
    except FedboundsError:
        return table


def settings_of(sweep: Sweep, device: str | None = None) -> tuple[SweepSetting, ...]:
    """The settings of a sweep, in its order, with everything recorded.

    Args:
        sweep: what to run.
        device: another device than the sweep names.

    Raises:
        FedboundsError: as `plan`.
    """
    runs = plan(record_everything(sweep), device=device)
    found = []
    for labels, group in groupby(runs, key=lambda run: json.dumps(run.task["labels"])):
        some = tuple(group)
        label = some[0].title.rpartition("seeds=")[0].strip() if json.loads(labels) else sweep.name
        found.append(SweepSetting(label, some))
    return tuple(found)


def confront_sweep(
    sweep: Sweep,
    result: Result | str,
    form: str | None = None,
    *,
    results: str | Path = "results",
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
    interval: int | None = None,
    given: Mapping[str, Value] | None = None,
    assume: str | Iterable[str] = (),
    trust: str | Iterable[str] = (),
) -> dict[SweepSetting, Confrontation]:
    """Hold every setting of a sweep against a result, all its seeds together; runs that are missing are made first.

    Args:
        sweep: what to run, from `read_sweep` or `resolve`.
        result, form, interval, given, assume, trust: as for `confront`.
        results: where runs are kept, in a directory with the sweep's name.
        workers: local processes for missing runs.
        device: another device than the sweep names.
        progress: called after every run, with the outcome, how many are there and how many there are in all.

    Raises:
        FedboundsError: what `confront` would refuse in the end is refused before anything is run, where it can be
            known; a run failed or diverged; or as for `confront`, the setting named.

    Example:
        >>> from tempfile import mkdtemp
        >>> from fedbounds.empirical.sweep import resolve
        >>> sweep = resolve({"rounds": 30, "problem": {"kind": "toy"}, "participation": {"kind": "cyclic", "clients": 3,
        ...     "groups": 3}, "algorithm": {"kind": "generalized-fedavg", "local_step_size": 0.02, "local_steps": 1,
        ...     "server_multiplier": 6, "interval": 3}})
        >>> found = confront_sweep(sweep, "arbitrary-participation/theorem-3.1", results=mkdtemp())
        >>> [(one.label, c.guarantee, bool((c.ratio < 1).all())) for one, c in found.items()]
        [('sweep', True, True)]
    """
    result = as_result(result)
    settings = settings_of(sweep, device)
    _check_words(result, form, given, assume, trust)
    store = Store(Path(results) / sweep.name)
    for setting in settings:
        with prefix_errors(sweep, setting, settings):
            unseen = any(not _there(store, run) for run in setting.runs)
            check_fits(setting, result, form, interval, unseen, given)
    make_runs(sweep, settings, store, workers, progress)
    found = {}
    for setting in settings:
        with prefix_errors(sweep, setting, settings):
            trace = trace_of(setting, store)
            found[setting] = confront(
                trace, result, form, problem=setting.problem(), participation=setting.process(), interval=interval,
                given=given, assume=assume, trust=trust,
            )  # fmt: skip
    return found


def make_runs(
    sweep: Sweep, settings: Sequence[SweepSetting], store: Store, workers: int = 1, progress: Progress | None = None
) -> None:
    """Make those runs of some settings that are missing.

    Raises:
        FedboundsError: a run failed.
    """
    runs = [run for setting in settings for run in setting.runs]
    # what failed before would keep us from answering, so it is tried again
    outcomes = execute(runs, store, workers=workers, retry_failed=True, progress=progress)
    failed = [o for o in outcomes if o.failed]
    if failed:
        first = f"{failed[0].run.title}: {failed[0].status.removeprefix('error: ')}"
        raise FedboundsError(f"{sweep.source}: {len(failed)} of {len(runs)} runs failed, first {first}")


def trace_of(setting: SweepSetting, store: Store) -> Trace:
    """The runs of a setting as one trace.

    Raises:
        FedboundsError: a run is missing or damaged, or a seed diverged.
    """
    trace = join_traces([store.load(run.key) for run in setting.runs])
    _check_finite(trace)
    return trace


def join_traces(traces: Sequence[Trace]) -> Trace:
    """Traces of one setting as one, seed after seed.

    Example:
        >>> one, other = (Trace({"seed": np.array([s]), "round": np.arange(2), "loss": np.full((1, 2), s)},
        ...     {"seed": ("seed",), "round": ("round",), "loss": ("seed", "round")}, {}, "batched", ("done",))
        ...     for s in (3, 5))
        >>> join_traces([one, other]).loss[:, 0].tolist()
        [3, 5]
    """
    first = traces[0]
    if len(traces) == 1:
        return first
    arrays = {
        name: np.concatenate([trace.arrays[name] for trace in traces])
        if dims[0] in ("seed", "participation")
        else first.arrays[name]
        for name, dims in first.dims.items()
    }
    return Trace(arrays, first.dims, first.spec, first.engine, tuple(s for trace in traces for s in trace.statuses))


def _there(store: Store, run: Run) -> bool:
    return store.record_path(run.key).exists()


def _check_words(
    result: Result,
    form: str | None,
    given: Mapping[str, Value] | None,
    assume: str | Iterable[str],
    trust: str | Iterable[str],
) -> None:
    """Names that mean nothing are found out before anything is run."""
    chosen = result.form(form)
    check_assumed(chosen, [assume] if isinstance(assume, str) else assume)
    trusted_claim(form_view(result, chosen), names_of("trust", trust))
    for name in given or {}:
        if result.notation.resolve(name) is None:
            raise unknown_name(f"constant of {result.key}", name, [*result.notation])


def check_fits(
    setting: SweepSetting,
    result: Result,
    form: str | None,
    interval: int | None,
    unseen: bool,
    given: Mapping[str, Value] | None = None,
) -> None:
    """What the paper's results are about, and whether runs of this setting measure it.

    Raises:
        FedboundsError: they are not about such runs.
    """
    task = setting.task
    if "algorithm" not in task:
        raise FedboundsError("the run has phases: a result is about one algorithm, so confront a run of it alone")
    algorithm, problem, process = algorithm_from_spec(task["algorithm"]), setting.problem(), setting.process()
    paper = paper_of(result)
    if paper is not None:
        ahead = RunSetting.ahead(algorithm, problem, process, None, task["rounds"])
        letters = (result.notation.resolve(name) for name in given or {})
        own = frozenset(letter.name for letter in letters if letter)
        paper.check_ahead(ahead, result.form(form), result, interval, own)
    if given:
        _check_stated(result, result.form(form), given, problem, task["rounds"])
    if unseen:
        start, needed = problem.initial_point(np.random.default_rng(0)), stationarity(algorithm)
        if needed not in (metrics := problem.metrics(start[None])):
            kind = task["problem"]["kind"]
            raise FedboundsError(f"problem {kind!r} does not measure {needed}, only {', '.join(metrics)}")


def _check_stated(result: Result, form: Form, given: Mapping[str, Value], problem: Problem, rounds: int) -> None:
    """Refuse constants that contradict what the problem states, or the number of rounds, whatever the runs are.

    Raises:
        FedboundsError: both values.
    """
    stated = {
        name: constant
        for name, constant in problem_constants(problem).items()
        if isinstance(constant, Constant) and constant.source == "exact"
    }
    own = drop_rounds(result, constants_by_symbol(result, given), rounds)
    check_given(result, form, own, lambda _: RunFacts({}, {}, (), stated))


def _check_finite(trace: Trace) -> None:
    """Whether the runs of a setting have an end.

    Raises:
        FedboundsError: one does not: which seed, since when, and what might help.
    """
    lost = np.flatnonzero(trace.diverged_at >= 0)
    if lost.size:
        seed, since = trace.seed[lost[0]], trace.diverged_at[lost[0]]
        raise FedboundsError(
            f"{lost.size} of {len(trace.seed)} seeds diverged, seed {seed} before round {since + 1}: there is nothing "
            "to hold against a bound; lower the step sizes, or take this setting out of the sweep"
        )


@contextmanager
def prefix_errors(sweep: Sweep, setting: SweepSetting, settings: Sequence[SweepSetting]) -> Iterator[None]:
    """Put the file, and the setting where there are several, in front of the one line of an error."""
    try:
        with check_device_memory(setting):
            yield
    except FedboundsError as error:
        which = f", {setting.label}" if len(settings) > 1 else ""
        raise FedboundsError(f"{sweep.source}{which}: {error}") from error


@contextmanager
def check_device_memory(setting: SweepSetting) -> Iterator[None]:
    """What does not fit on a device when the runs are there, and their constants are measured, is one line."""
    try:
        yield
    except torch.OutOfMemoryError:
        problem, device = setting.task["problem"], setting.task["device"]
        network = problem.get("network", problem["kind"])
        raise FedboundsError(
            f"device {device} ran out of memory while constants were measured, every client's gradient of {network} at "
            "once: take fewer clients or a smaller network, or --device cpu, which makes the runs again"
        ) from None
