"""The runs of a sweep against many results at once: those of the papers that its algorithms are about, or those named.

A result that a run cannot be held against is not an error here: it stands in the answer with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.evaluate import Value, check_assumed
from fedbounds.bounds.theory.registry import load, paper_names, paper_submodule, papers
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.empirical.comparison.compare_run import Confrontation, confront
from fedbounds.empirical.comparison.compare_sweep import (
    SweepSetting,
    check_device_memory,
    check_fits,
    make_runs,
    settings_of,
    trace_of,
)
from fedbounds.empirical.comparison.paper_runs import paper_of
from fedbounds.empirical.sweep import Store, Sweep
from fedbounds.empirical.sweep.executor import Progress

USUAL = ("theorem", "corollary", "proposition")  # kinds that are taken where nothing is named


@dataclass(frozen=True, eq=False)
class ComparedForm:
    """One form of a result, as a run is held against it."""

    result: Result
    form: Form

    @property
    def claim(self) -> str:
        """How it is named: key[form]."""
        return f"{self.result.key}[{self.form.name}]"


@dataclass(frozen=True, eq=False)
class SweepComparison:
    """One setting of a sweep against many results.

    Attributes:
        setting: which runs.
        found: claim to the comparison.
        without: claim to why there is none.
    """

    setting: SweepSetting
    found: Mapping[str, Confrontation]
    without: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Confrontations:
    """The settings of a sweep against many results.

    Attributes:
        promises: the results that at least one setting was held against, in the papers' order.
        held: setting by setting.
    """

    promises: tuple[ComparedForm, ...]
    held: tuple[SweepComparison, ...]

    def of(self, promise: ComparedForm) -> dict[SweepSetting, Confrontation]:
        """The settings that were held against one result."""
        return {one.setting: one.found[promise.claim] for one in self.held if promise.claim in one.found}

    @property
    def crossed(self) -> bool:
        """Whether a bound is crossed where its conditions hold."""
        return any(c.covered_crossings.size for one in self.held for c in one.found.values())


def promises_named(keys: Iterable[str]) -> tuple[ComparedForm, ...]:
    """Results by key, each in its default form or in one that is named: "fedau/theorem-2[printed]".

    Example:
        >>> [promise.claim for promise in promises_named(["fedau/theorem-2[printed]"])]
        ['fedau/theorem-2[printed]']
    """
    found: dict[str, ComparedForm] = {}
    for key in keys:
        name, _, form = key.partition("[")
        result = load(name)
        promise = ComparedForm(result, result.form(form.removesuffix("]") or None))
        found[promise.claim] = promise
    return tuple(found.values())


def promises_of_runs() -> Iterator[ComparedForm]:
    """The theorems, corollaries and propositions about whole runs of the papers that know what runs they are about."""
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
) -> Confrontations:
    """Hold every setting of a sweep against many results; runs that are missing are made first.

    Args:
        sweep: what to run, from `read_sweep` or `resolve`.
        keys: the results, "fedau/theorem-2" or "fedau/theorem-2[printed]"; where none is named, the theorems,
            corollaries and propositions whose paper is about the algorithm and whose assumptions the runs do not
            violate.
        results: where runs are kept, in a directory with the sweep's name.
        workers: local processes for missing runs.
        device: another device than the sweep names.
        progress: called after every run, with the outcome, how many are there and how many there are in all.
        given: constants by letter or concept, for those results that know them; as for `confront`.
        assume: names of assumptions taken for granted, in those results that make them.

    Raises:
        FedboundsError: no setting can be held against any of the results; a name that none of them knows; a run failed.

    Example:
        >>> from tempfile import mkdtemp
        >>> from fedbounds.empirical.sweep import resolve
        >>> sweep = resolve({"rounds": 30, "problem": {"kind": "toy"}, "participation": {"kind": "cyclic", "clients": 3,
        ...     "groups": 3}, "algorithm": {"kind": "generalized-fedavg", "local_step_size": 0.02, "local_steps": 1,
        ...     "server_multiplier": 6, "interval": 3}})
        >>> found = confront_results(sweep, results=mkdtemp())
        >>> [promise.claim for promise in found.promises]
        ['arbitrary-participation/theorem-3.1[sharp]']
        >>> found.held[0].without["arbitrary-participation/corollary-3.2[sharp]"][:52]
        'arbitrary-participation/corollary-3.2 sets gamma = 0'
    """
    asked = promises_named(keys) if keys else tuple(promises_of_runs())
    given, assume = dict(given or {}), tuple(assume)
    _check_known(asked, given, assume)
    settings, store = settings_of(sweep, device), Store(Path(results) / sweep.name)
    refused = {setting: _refused(setting, asked, given) for setting in settings}
    # of papers that are about other algorithms nobody asked
    reasons = {
        setting: {p.claim: why for p, why in found.items() if keys or _is_home(p.result.paper, setting)}
        for setting, found in refused.items()
    }
    if all(len(found) == len(asked) for found in refused.values()):
        first = next((why for found in reasons.values() for why in found.values()), "no result is about its algorithms")
        raise FedboundsError(f"{sweep.source}: {first}")
    make_runs(sweep, settings, store, workers, progress)
    held = []
    for setting in settings:
        fitting = [promise for promise in asked if promise not in refused[setting]]
        found, without = _held(setting, store, fitting, given, assume, choosy=not keys)
        held.append(SweepComparison(setting, found, without | reasons[setting]))
    promises = tuple(p for p in asked if any(p.claim in one.found for one in held))
    if not promises:
        first = next(why for one in held for why in one.without.values())
        raise FedboundsError(f"{sweep.source}: none of the results can be held against these runs: {first}")
    return Confrontations(promises, tuple(held))


def _check_known(asked: Sequence[ComparedForm], given: Mapping[str, Value], assume: Sequence[str]) -> None:
    """Names that mean nothing to any of the results are found out before anything is run."""
    for name in given:
        if all(promise.result.notation.resolve(name) is None for promise in asked):
            raise unknown_name("constant", name, {letter for promise in asked for letter in promise.result.notation})
    known = {a.name for promise in asked for a in promise.form.assumptions} | {"all"}
    for name in assume:
        if name not in known:
            raise unknown_name("assumption", name, sorted(known))


def _refused(
    setting: SweepSetting, asked: Iterable[ComparedForm], given: Mapping[str, Value]
) -> dict[ComparedForm, str]:
    """The results that are not about such runs, with the reason."""
    found = {}
    for promise in asked:
        try:
            own = {name: value for name, value in given.items() if promise.result.notation.resolve(name) is not None}
            check_fits(setting, promise.result, promise.form.name, None, unseen=True, given=own)
        except FedboundsError as error:
            found[promise] = str(error)
    return found


def _is_home(paper: str, setting: SweepSetting) -> bool:
    """Whether the algorithm of a setting is one of this paper's."""
    module = paper_submodule(paper, "empirical", "algorithms") if paper in paper_names() else None
    kinds = {one.kind for one in module.ALGORITHMS} if module else set()
    return setting.task.get("algorithm", {}).get("kind") in kinds


def _held(
    setting: SweepSetting,
    store: Store,
    asked: Iterable[ComparedForm],
    given: Mapping[str, Value],
    assume: Sequence[str],
    choosy: bool,
) -> tuple[dict[str, Confrontation], dict[str, str]]:
    """One setting against each result; where it cannot be, or (if choosy) an assumption is violated, the reason."""
    found: dict[str, Confrontation] = {}
    without: dict[str, str] = {}
    try:
        trace = trace_of(setting, store)
    except FedboundsError as error:
        return found, {promise.claim: str(error) for promise in asked}
    problem, process = setting.problem(), setting.process()
    for promise in asked:
        result, form = promise.result, promise.form
        own = {name: value for name, value in given.items() if result.notation.resolve(name) is not None}
        names = [a.name for a in form.assumptions]
        taken = check_assumed(names, {*assume} & {"all", *names})
        try:
            with check_device_memory(setting):
                c = confront(
                    trace, result, form.name, problem=problem, participation=process, given=own, assume=taken
                )  # fmt: skip
        except FedboundsError as error:
            without[promise.claim] = str(error)
            continue
        violated = [name for name, status in c.evaluation.assumptions.items() if status == "violated"]
        if violated and choosy:
            without[promise.claim] = f"the runs violate what it assumes: {', '.join(violated)}"
        else:
            found[promise.claim] = c
    return found, without
