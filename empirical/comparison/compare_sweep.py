"""Compare the runs of a sweep with one result or many, the seeds of a setting together."""

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
from fedbounds.bounds.evaluation.evaluate import Value, check_assumed, trusted_claim
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.theory.argument_checks import names_of
from fedbounds.bounds.theory.form_selection import split_key
from fedbounds.bounds.theory.names_by_meaning import unknown_constant
from fedbounds.bounds.theory.registry import as_result, load, paper_names, paper_submodule, papers
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.comparison.compare_run import RunComparison, confront, constants_by_symbol
from fedbounds.empirical.comparison.paper_runs import RunFacts, paper_of, problem_constants
from fedbounds.empirical.comparison.run_setting import RunSetting, counted_rounds, stationarity
from fedbounds.empirical.comparison.user_constants import check_given, drop_rounds
from fedbounds.empirical.participation import Process, process_from_spec
from fedbounds.empirical.problems import Problem, problem_from_spec
from fedbounds.empirical.problems.spec import PROBLEMS
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Run, Store, Sweep, execute, plan
from fedbounds.empirical.sweep.executor import Progress

USUAL = ("theorem", "corollary", "proposition")  # kinds that are taken where nothing is named
RECORDED = {"record_models": True, "record_participation": True}


@dataclass(frozen=True, eq=False)
class SweepSetting:
    """One setting of a sweep, with its label (the sweep's name if there is one setting) and its runs, one or many
    seeds each."""

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
        """Its participation process."""
        return process_from_spec(self.task["participation"])


@dataclass(frozen=True, eq=False)
class ComparedForm:
    """One form of a result that runs are compared with."""

    result: Result
    form: Form

    @property
    def claim(self) -> str:
        """Its name: key[form]."""
        return f"{self.result.key}[{self.form.name}]"


@dataclass(frozen=True, eq=False)
class SweepComparison:
    """One setting of a sweep with many results: claim to comparison, and claim to the reason why there is none."""

    setting: SweepSetting
    found: Mapping[str, RunComparison]
    without: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class SweepComparisons:
    """The settings of a sweep with many results."""

    forms: tuple[ComparedForm, ...]  # the results that at least one setting was compared with, in the papers' order
    comparisons: tuple[SweepComparison, ...]  # the comparisons, setting by setting

    def comparisons_of(self, form: ComparedForm) -> dict[SweepSetting, RunComparison]:
        """The settings that were compared with one result."""
        return {one.setting: one.found[form.claim] for one in self.comparisons if form.claim in one.found}

    @property
    def crossed(self) -> bool:
        """Whether a bound is crossed where its conditions hold."""
        return any(c.covered_crossings.size for one in self.comparisons for c in one.found.values())


def record_everything(sweep: Sweep) -> Sweep:
    """The same sweep with models, participation and gradient norms recorded, which theorems need; this changes the keys
    of its runs.
    """
    tasks = []
    for task in sweep.tasks:
        offered = "gradient_norm" in _defaults(task["problem"])
        problem = {**task["problem"], **({"gradient_norm": True} if offered else {})}
        tasks.append({**task, **RECORDED, "problem": problem})
    return replace(sweep, tasks=tuple(tasks))


def _defaults(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """A problem's table with its defaults; unchanged if it is wrong, which `plan` reports."""
    try:
        return PROBLEMS.with_defaults(table)
    except FedboundsError:
        return table


def settings_of(sweep: Sweep, device: str | None = None) -> tuple[SweepSetting, ...]:
    """The settings of a sweep, in its order, with everything recorded, on its device or another one."""
    runs = plan(record_everything(sweep), device=device)
    return tuple(SweepSetting(label, some) for label, some in group_runs(runs, sweep.name))


def group_runs(runs: Iterable[Run], name: str) -> Iterator[tuple[str, tuple[Run, ...]]]:
    """The runs of each setting, all its seeds together, with its label; the only setting has the name of the sweep."""
    for labels, group in groupby(runs, key=lambda run: json.dumps(run.task["labels"])):
        some = tuple(group)
        yield some[0].title.rpartition("seeds=")[0].strip() if json.loads(labels) else name, some


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
) -> dict[SweepSetting, RunComparison]:
    """Compare every setting of a sweep with a result, all its seeds together; missing runs are made first."""
    result = as_result(result)
    settings = settings_of(sweep, device)
    _check_names(result, form, given, assume, trust)
    store = Store(Path(results) / sweep.name)
    for setting in settings:
        with prefix_errors(sweep, setting, settings):
            missing = any(not store.record_path(run.key).exists() for run in setting.runs)
            check_fits(setting, result, form, interval, missing, given)
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


def named_forms(keys: Iterable[str]) -> tuple[ComparedForm, ...]:
    """Results by key, each in its default form or in one that is named: "fedau/theorem-2:printed"."""
    found: dict[str, ComparedForm] = {}
    for key in keys:
        name, form = split_key(key)
        result = load(name)
        compared_form = ComparedForm(result, result.form(form))
        found[compared_form.claim] = compared_form
    return tuple(found.values())


def forms_of_runs() -> Iterator[ComparedForm]:
    """The theorems, corollaries and propositions about whole runs, of papers that say which runs they are about."""
    for paper in papers():
        for result in paper.results:
            form = result.form()
            about_runs = result.kind in USUAL and (form.measure or result.measure).aggregate != "single"
            if about_runs and paper_of(result) is not None:
                yield ComparedForm(result, form)


def confront_results(
    sweep: Sweep,
    keys: Sequence[str] = (),
    *,
    results: str | Path = "results",
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
    given: Mapping[str, Value] | None = None,
    assume: Iterable[str] = (),
) -> SweepComparisons:
    """Compare every setting of a sweep with many results; missing runs are made first.

    Example:
        >>> from tempfile import mkdtemp
        >>> from fedbounds.empirical.sweep import resolve
        >>> sweep = resolve({"rounds": 30, "problem": {"kind": "toy"}, "participation": {"kind": "cyclic", "clients": 3,
        ...     "groups": 3}, "algorithm": {"kind": "generalized-fedavg", "local_step_size": 0.02, "local_steps": 1,
        ...     "server_multiplier": 6, "interval": 3}})
        >>> found = confront_results(sweep, results=mkdtemp())
        >>> [form.claim for form in found.forms]
        ['arbitrary-participation/theorem-3.1[sharp]']
        >>> found.comparisons[0].without["arbitrary-participation/corollary-3.2[sharp]"][:52]
        'arbitrary-participation/corollary-3.2 sets gamma = 0'
    """
    requested = named_forms(keys) if keys else tuple(forms_of_runs())
    given, assume = dict(given or {}), tuple(assume)
    check_forms(requested, given, assume)
    settings, store = settings_of(sweep, device), Store(Path(results) / sweep.name)
    refused = {setting: _refusals(setting, requested, given) for setting in settings}
    # by default, papers about other algorithms are not mentioned
    reasons = {
        setting: {p.claim: why for p, why in found.items() if keys or has_algorithm(p.result.paper, setting)}
        for setting, found in refused.items()
    }
    if all(len(found) == len(requested) for found in refused.values()):
        first = next((why for found in reasons.values() for why in found.values()), "no result is about its algorithms")
        raise FedboundsError(f"{sweep.source}: {first}")
    make_runs(sweep, settings, store, workers, progress)
    comparisons = []
    for setting in settings:
        fitting = [compared_form for compared_form in requested if compared_form not in refused[setting]]
        found, without = _compare_setting(setting, store, fitting, given, assume, keep_violated=bool(keys))
        comparisons.append(SweepComparison(setting, found, without | reasons[setting]))
    forms = tuple(p for p in requested if any(p.claim in one.found for one in comparisons))
    if not forms:
        first = next(why for one in comparisons for why in one.without.values())
        raise FedboundsError(f"{sweep.source}: none of the results can be compared with these runs: {first}")
    return SweepComparisons(forms, tuple(comparisons))


def make_runs(
    sweep: Sweep, settings: Sequence[SweepSetting], store: Store, workers: int = 1, progress: Progress | None = None
) -> None:
    """Make the missing runs of some settings; refused if one fails."""
    runs = [run for setting in settings for run in setting.runs]
    outcomes = execute(runs, store, workers=workers, retry_failed=True, progress=progress)
    failed = [o for o in outcomes if o.failed]
    if failed:
        first = f"{failed[0].run.title}: {failed[0].status.removeprefix('error: ')}"
        raise FedboundsError(f"{sweep.source}: {len(failed)} of {len(runs)} runs failed, first {first}")


def trace_of(setting: SweepSetting, store: Store) -> Trace:
    """The runs of a setting as one trace; refused if a run is missing or damaged, or a seed diverged."""
    trace = join_traces([store.load(run.key) for run in setting.runs])
    _check_finite(trace)
    return trace


def join_traces(traces: Sequence[Trace]) -> Trace:
    """Traces of one setting as one, seed after seed."""
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


def _check_names(
    result: Result,
    form: str | None,
    given: Mapping[str, Value] | None,
    assume: str | Iterable[str],
    trust: str | Iterable[str],
) -> None:
    """Refuse unknown names before anything is run."""
    chosen = result.form(form)
    check_assumed([a.name for a in chosen.assumptions], [assume] if isinstance(assume, str) else assume)
    trusted_claim(compiled_form(result, chosen), names_of("trust", trust))
    for name in given or {}:
        if result.notation.resolve(name) is None:
            raise unknown_constant(f"constant of {result.key}", name, result.notation)


def check_fits(
    setting: SweepSetting,
    result: Result,
    form: str | None,
    interval: int | None,
    missing: bool,
    given: Mapping[str, Value] | None = None,
) -> None:
    """Refuse a setting whose runs the paper's results are not about, or that does not measure what they bound."""
    task = setting.task
    if "algorithm" not in task:
        raise FedboundsError("the run has phases: a result is about one algorithm, so compare a run of it alone")
    algorithm, problem, process = algorithm_from_spec(task["algorithm"]), setting.problem(), setting.process()
    paper, rounds = paper_of(result), counted_rounds(algorithm, process, task["rounds"])
    if paper is not None:
        ahead = RunSetting.ahead(algorithm, problem, process, None, rounds)
        quantities = (result.notation.resolve(name) for name in given or {})
        own = frozenset(quantity.name for quantity in quantities if quantity)
        paper.check_ahead(ahead, result.form(form), result, interval, own)
    if given:
        _check_stated(result, result.form(form), given, problem, rounds)
    if missing:
        start, needed = problem.initial_point(np.random.default_rng(0)), stationarity(algorithm)
        if needed not in (metrics := problem.metrics(start[None])):
            kind = task["problem"]["kind"]
            raise FedboundsError(f"problem {kind!r} does not measure {needed}, only {', '.join(metrics)}")


def _check_stated(result: Result, form: Form, given: Mapping[str, Value], problem: Problem, rounds: int) -> None:
    """Refuse constants that contradict what the problem states, or the number of rounds, before any run."""
    stated = {
        name: constant
        for name, constant in problem_constants(problem).items()
        if isinstance(constant, Constant) and constant.source == "exact"
    }
    own = drop_rounds(result, constants_by_symbol(result, given), rounds)
    check_given(result, form, own, lambda _: RunFacts({}, {}, (), stated))


def _check_finite(trace: Trace) -> None:
    """Refuse a setting whose seeds diverged."""
    lost = np.flatnonzero(trace.diverged_at >= 0)
    if lost.size:
        seed, since = trace.seed[lost[0]], trace.diverged_at[lost[0]]
        raise FedboundsError(
            f"{lost.size} of {len(trace.seed)} seeds diverged, seed {seed} before round {since + 1}, so there is "
            "nothing to compare with a bound; lower the step sizes, or remove this setting from the sweep"
        )


@contextmanager
def prefix_errors(sweep: Sweep, setting: SweepSetting, settings: Sequence[SweepSetting]) -> Iterator[None]:
    """Begin errors with the file, and with the setting where there are several."""
    try:
        with check_device_memory(setting):
            yield
    except FedboundsError as error:
        which = f", {setting.label}" if len(settings) > 1 else ""
        raise FedboundsError(f"{sweep.source}{which}: {error}") from error


@contextmanager
def check_device_memory(setting: SweepSetting) -> Iterator[None]:
    """Turn a lack of device memory, while constants are measured along the runs, into a `FedboundsError`."""
    try:
        yield
    except torch.OutOfMemoryError:
        problem, device = setting.task["problem"], setting.task["device"]
        network = problem.get("network", problem["kind"])
        raise FedboundsError(
            f"device {device} ran out of memory while constants were measured, every client's gradient of {network} at "
            "once: take fewer clients or a smaller network, or --device cpu, which makes the runs again"
        ) from None


def check_forms(requested: Sequence[ComparedForm], given: Mapping[str, Value], assume: Sequence[str]) -> None:
    """Refuse names that none of the results knows, before anything is run."""
    for name in given:
        if all(compared_form.result.notation.resolve(name) is None for compared_form in requested):
            known = {symbol: q for asked in requested for symbol, q in asked.result.notation.items()}
            raise unknown_constant("constant", name, known)
    assumptions = {a.name for compared_form in requested for a in compared_form.form.assumptions} | {"all"}
    for name in assume:
        if name not in assumptions:
            raise unknown_name("assumption", name, sorted(assumptions))


def _refusals(
    setting: SweepSetting, requested: Iterable[ComparedForm], given: Mapping[str, Value]
) -> dict[ComparedForm, str]:
    """The results that are not about such runs, with the reason."""
    found = {}
    for compared_form in requested:
        try:
            own = constants_of(compared_form.result, given)
            check_fits(setting, compared_form.result, compared_form.form.name, None, missing=True, given=own)
        except FedboundsError as error:
            found[compared_form] = str(error)
    return found


def constants_of(result: Result, given: Mapping[str, Value]) -> dict[str, Value]:
    """The given constants that a result has."""
    return {name: value for name, value in given.items() if result.notation.resolve(name) is not None}


def has_algorithm(paper: str, setting: SweepSetting) -> bool:
    """Whether the algorithm of a setting is one of this paper's."""
    module = paper_submodule(paper, "empirical", "algorithms") if paper in paper_names() else None
    kinds = {one.kind for one in module.ALGORITHMS} if module else set()
    return setting.task.get("algorithm", {}).get("kind") in kinds


def _compare_setting(
    setting: SweepSetting,
    store: Store,
    requested: Iterable[ComparedForm],
    given: Mapping[str, Value],
    assume: Sequence[str],
    keep_violated: bool,
) -> tuple[dict[str, RunComparison], dict[str, str]]:
    """One setting with each result; the reason where it cannot be compared, or violates an assumption."""
    found: dict[str, RunComparison] = {}
    without: dict[str, str] = {}
    try:
        trace = trace_of(setting, store)
    except FedboundsError as error:
        return found, {compared_form.claim: str(error) for compared_form in requested}
    problem, process = setting.problem(), setting.process()
    for compared_form in requested:
        result, form = compared_form.result, compared_form.form
        names = [each.name for each in form.assumptions]
        taken = check_assumed(names, {*assume} & {"all", *names})
        try:
            with check_device_memory(setting):
                c = confront(
                    trace, result, form.name, problem=problem, participation=process,
                    given=constants_of(result, given), assume=taken,
                )  # fmt: skip
        except FedboundsError as error:
            without[compared_form.claim] = str(error)
            continue
        violated = [name for name, status in c.evaluation.assumptions.items() if status == "violated"]
        if violated and not keep_violated:
            without[compared_form.claim] = f"the runs violate what it assumes: {', '.join(violated)}"
        else:
            found[compared_form.claim] = c
    return found, without
