"""What a paper must know of a run before its results can be held against it, and what all papers know alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.registry import paper_names, paper_submodule
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.participation import Process
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.trace import Trace

Constants = dict[str, Constant | NoConstant]
GRADIENT_OF_F = "squared gradient norm of f"
MEASURED = "constants that were measured are those of this run: its bound is no guarantee, for this or any other run"


@dataclass(frozen=True)
class PrescribedSteps:
    """What a result may set, as the run has it.

    Attributes:
        interval: P of the analysis; 1 where the paper has none.
        own: letter to value.
    """

    interval: int
    own: Mapping[str, float]


@dataclass(frozen=True)
class RunFacts:
    """What a run says about a form at each horizon.

    Attributes:
        constants: by letter; vectors over the horizons where they depend on them.
        found: assumption name to whether it was found to hold.
        notes: what else a reader must know.
        said: all that the run says of any constant, by concept, used or not: what a user gives is held against it.
    """

    constants: dict[str, Value]
    found: dict[str, bool]
    notes: tuple[str, ...] = ()
    said: Mapping[str, Constant | NoConstant] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that is not made yet: what its step sizes may depend on."""

    problem: Problem
    process: Process
    rounds: int
    local_steps: int
    interval: int


class PaperRuns(ABC):
    """One paper's knowledge of runs.

    Attributes:
        over: what the paper's measures may be over, as a run is measured: its rounds may be something else to a paper.
    """

    over: ClassVar[tuple[str, ...]] = ("rounds", "window starts")

    @abstractmethod
    def steps(self, setting: RunSetting, interval: int | None) -> PrescribedSteps:
        """The step sizes of a run, and the interval of its analysis.

        Raises:
            FedboundsError: the paper's results are not about this algorithm, or not with this interval.
        """

    def check_ahead(
        self, setting: RunSetting, form: Form, result: Result, interval: int | None, given: frozenset[str]
    ) -> None:
        """Refuse a form before a run is made, where the run cannot be one of those that the form is about.

        Args:
            setting: the run that is not made yet.
            form, result: what is promised.
            interval: P of the analysis, if given.
            given: the letters that need not be found out.

        Raises:
            FedboundsError: it cannot be.
        """
        self.steps(setting, interval)

    @abstractmethod
    def known(
        self,
        setting: RunSetting,
        form: Form,
        result: Result,
        interval: int,
        horizons: np.ndarray,
        given: frozenset[str],
    ) -> RunFacts:
        """What a run says about a form.

        Args:
            setting: the run.
            form, result: what is promised.
            interval: P of the analysis.
            horizons: numbers of rounds, each at least P.
            given: the letters that need not be found out.

        Raises:
            FedboundsError: the result is not about this participation, or a constant cannot be known.
        """

    @abstractmethod
    def prescribed(self, result: Result, form: Form, ahead: PlannedRun, given: Mapping[str, Value]) -> Algorithm:
        """The algorithm with the step sizes that a form sets.

        Raises:
            FedboundsError: a constant is missing, or what the form sets cannot be run.
        """

    def measured(self, setting: RunSetting, of: str) -> tuple[np.ndarray, np.ndarray | None]:
        """What a result bounds, at every recorded round (R,), and its samples over seeds (seeds, R), if it was sampled.

        Raises:
            FedboundsError: the run does not measure it.
        """
        if of != GRADIENT_OF_F:
            raise FedboundsError(f"the run measures squared gradient norms of f over rounds, the result bounds: {of}")
        return setting.values, setting.samples


class UnknownPaper(PaperRuns):
    """What every run says, for results that nobody vouches for: the constants of the problem and the number of rounds.

    What their step sizes, windows and constants of participation mean in a run, nobody here knows: they must be given.
    """

    def steps(self, setting: RunSetting, interval: int | None) -> PrescribedSteps:
        """No step size has a letter."""
        return PrescribedSteps(1 if interval is None else check_count("interval", interval), {})

    def known(
        self,
        setting: RunSetting,
        form: Form,
        result: Result,
        interval: int,
        horizons: np.ndarray,
        given: frozenset[str],
    ) -> RunFacts:
        """The problem's constants, and the assumptions on problem and noise."""
        constants = run_constants(setting)
        constants["rounds"] = Constant(horizons.astype(float), "given", "of the run")
        found = problem_assumptions(setting, constants)
        return RunFacts(select_constants(result, form, constants, given), found, (), constants)

    def prescribed(self, result: Result, form: Form, ahead: PlannedRun, given: Mapping[str, Value]) -> Algorithm:
        """No algorithm.

        Raises:
            FedboundsError: always.
        """
        raise FedboundsError(f"the paper of {result.key} does not say which algorithm its results are about")


def paper_of(result: Result) -> PaperRuns | None:
    """What a result must be told of a run: its constants with their kinds, its assumptions, its step sizes.

    None where its paper brings no module `run`: then nobody knows which runs it is about.

    Raises:
        FedboundsError: the module `run` says no RUNS, or one that is no `PaperRuns`.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> type(paper_of(load("fedau/theorem-2"))).__name__
        'FedAUPaper'
    """
    module = paper_submodule(result.paper, "empirical", "run") if result.paper in paper_names() else None
    if module is None:
        return None
    runs = getattr(module, "RUNS", None)
    if not isinstance(runs, PaperRuns):
        raise FedboundsError(f"{module.__name__} must say RUNS, a fedbounds.empirical.comparison.paper_runs.PaperRuns")
    return runs


def problem_constants(problem: Problem) -> Constants:
    """Smoothness, initial gap, noise, gradient divergence and number of clients, as the problem states them."""
    return {"clients": Constant(float(problem.clients), "exact", "of the problem")} | dict(problem.constants())


def run_constants(setting: RunSetting) -> Constants:
    """What the problem states, and where it knows no least value, the gap of the run's own starts from above."""
    constants, floor, run = problem_constants(setting.problem), setting.problem.floor, setting.run
    unknown = not isinstance(constants.get("initial_gap"), Constant)
    if floor is not None and unknown and isinstance(run, Trace) and floor.metric in run.metrics:
        starts = run.arrays[floor.metric][:, 0]
        note = f"upper bound: {floor.metric} at x0, mean over the seeds' starts, as {floor.why}"
        constants["initial_gap"] = Constant(float(starts.mean()) - floor.value, "exact", note)
    return constants


def add_measured_constants(
    stated: Constants, wanted: set[str], setting: RunSetting, measure: Callable[[], Constants]
) -> Constants:
    """The constants that are wanted and that the problem does not have, as they are along the run.

    Args:
        stated: what is known without looking at the run.
        wanted: concepts.
        setting: the run; where it recorded no models, the constants stay unknown, and say how they could be known. Of
            a run made elsewhere, whatever is not measured is left to the user.
        measure: what the run says, concept by concept.
    """
    missing = {concept for concept in wanted if isinstance(stated.get(concept), NoConstant)}
    if setting.logged:
        missing = {concept for concept in wanted if not isinstance(stated.get(concept), Constant)}
        return {concept: constant for concept, constant in measure().items() if concept in missing}
    if not missing or not isinstance(setting.run, Trace):
        return {}
    if "model" not in setting.run.arrays:
        how = "it can be measured along a run: simulate with record_models=True and record_participation=True"
        without = ((concept, stated[concept]) for concept in sorted(missing))
        return {concept: NoConstant(f"{none.why}; {how}") for concept, none in without if isinstance(none, NoConstant)}
    return {concept: constant for concept, constant in measure().items() if concept in missing}


def problem_assumptions(setting: RunSetting, stated: Constants) -> dict[str, bool]:
    """The assumptions on problem and noise that can be checked, and whether they hold.

    Noise is drawn afresh in every step and participation never looks at it, so that noise is a martingale difference
    and participation exogenous by construction.
    """
    found = {
        "independent-clients": not setting.common_noise,
        "martingale-noise": True,
        "full-participation": setting.full_participation,
        "bounded-below": isinstance(stated.get("initial_gap"), Constant),
    }
    for name, concept in (
        ("smooth", "smoothness"),
        ("unbiased-noise", "gradient_noise"),
        ("bounded-divergence", "gradient_divergence_sup"),
        ("bounded-gradient", "gradient_bound"),
    ):
        constant = stated.get(concept)
        if isinstance(constant, NoConstant):
            found[name] = False
        elif constant is not None and constant.source == "exact":
            found[name] = True
    return found


def needed_constants(form: Form) -> set[str]:
    """The letters in the terms, conditions and prescribed steps of a form."""
    return {str(s) for s in form.symbols} | {str(s) for e in form.prescribes.values() for s in e.free_symbols}


def sets_a_horizon(form: Form, result: Result) -> bool:
    """Whether the step sizes that a form sets may depend on the number of rounds, so that one run is of one T."""
    letters = {str(symbol) for step in form.prescribes.values() for symbol in step.free_symbols}
    if letters & {rule.name for rule in form.derived}:
        return True
    return any(result.notation[letter].concept in ("rounds", "iterations") for letter in letters)


def select_constants(result: Result, form: Form, constants: Constants, given: frozenset[str]) -> dict[str, Value]:
    """Those constants that a form needs, directly or to derive others, under the paper's letters.

    A `NoConstant` is handed on where nothing else will do: evaluating the form then says why there is none.
    """
    letters: dict[str, Value] = {}
    waiting, seen = sorted(needed_constants(form) - given), set(given)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        constant = constants.get(result.notation[name].concept)
        if constant is not None:
            letters[name] = constant  # pyright: ignore[reportArgumentType]  # evaluate explains a NoConstant
        else:
            waiting += [i for rule in form.derived if rule.name == name for i in rule.inputs]
    return letters
