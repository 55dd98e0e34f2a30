"""What a paper must know of a run before its results can be compared with it, and what all papers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.registry import paper_names, paper_submodule, paper_submodules
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.bounds.theory.theorem_file import read_theorem_file
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.run_setting import RunSetting
from fedbounds.empirical.participation import Process
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.trace import Trace

Constants = dict[str, Constant | NoConstant]
CONSTANT_OF = {  # assumptions that a constant exists -> its concept
    "smooth": "smoothness",
    "unbiased-noise": "gradient_noise",
    "bounded-divergence": "gradient_divergence_sup",
    "bounded-gradient": "gradient_bound",
}
GRADIENT_OF_F = "squared gradient norm of f"
FUNCTION_GAP = "function gap"  # begins what a result bounds that is about f(x_t) - f*
MEASURED = "constants that were measured are those of this run: its bound is no guarantee, for this or any other run"


@dataclass(frozen=True)
class PrescribedSteps:
    """What a result may set, as the run has it: P of the analysis (1 where the paper has none), and symbol to value."""

    interval: int
    own: Mapping[str, float]


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run for a form, at each horizon."""

    constants: dict[str, Value]  # by symbol; vectors over the horizons where they depend on them
    found: dict[str, bool]  # assumption name to whether it was found to hold
    notes: tuple[str, ...] = ()  # what else a reader must know
    # by concept, used by the form or not; given constants are compared with them
    all_constants: Mapping[str, Constant | NoConstant] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A run, the form that it is compared with, and at which horizons."""

    setting: RunSetting  # the run
    form: Form  # form, result: the bound
    result: Result
    interval: int  # P of the analysis
    horizons: np.ndarray  # numbers of rounds, each at least P
    given: frozenset[str]  # the symbols that the user gives

    @property
    def symbols(self) -> set[str]:
        """The symbols of the form that the user does not give."""
        return needed_constants(self.form) - self.given

    @property
    def concepts(self) -> set[str]:
        """Their concepts."""
        return {self.result.notation[name].concept for name in self.symbols}

    @property
    def rounds(self) -> Constants:
        """The number of rounds."""
        return {"rounds": Constant(self.horizons.astype(float), "given", "of the run")}

    def measured_constants(
        self, stated: Constants, measure: Callable[[], Constants], wanted: set[str] | None = None
    ) -> tuple[Constants, tuple[str, ...]]:
        """The wanted constants that are not known otherwise, as they are along the run, and a note for the reader."""
        setting, wanted = self.setting, self.concepts if wanted is None else wanted
        missing = {concept for concept in wanted if isinstance(stated.get(concept), NoConstant)}
        if setting.logged:  # what is not measured is left to the user
            missing = {concept for concept in wanted if not isinstance(stated.get(concept), Constant)}
        elif not missing or not isinstance(setting.run, Trace):
            return {}, ()
        elif "model" not in setting.run.arrays:
            how = "it can be measured along a run: simulate with record_models=True and record_participation=True"
            unknown = ((concept, stated[concept]) for concept in sorted(missing))
            return {
                name: NoConstant(f"{none.why}; {how}") for name, none in unknown if isinstance(none, NoConstant)
            }, ()
        measured = {concept: constant for concept, constant in measure().items() if concept in missing}
        return measured, (MEASURED,) if any(isinstance(c, Constant) for c in measured.values()) else ()

    def facts(
        self,
        constants: Constants,
        found: dict[str, bool],
        notes: tuple[str, ...] = (),
        all_constants: Mapping[str, Constant | NoConstant] | None = None,
    ) -> RunFacts:
        """The facts of the run, from constants by concept."""
        used = select_constants(self.result, self.form, constants, self.given)
        return RunFacts(used, found, notes, constants if all_constants is None else all_constants)


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that is not made yet: what its step sizes may depend on."""

    problem: Problem
    process: Process
    rounds: int
    local_steps: int
    interval: int

    @property
    def constants(self) -> Constants:
        """Those of the problem, the rounds and the local steps."""
        steps = algorithm_constants(local_steps=self.local_steps)
        return problem_constants(self.problem) | {"rounds": Constant(float(self.rounds), "given", "of the run")} | steps


def prescribe(result: Result, form: Form, constants: Constants, given: Mapping[str, Value]) -> PrescribedValues:
    """The step sizes that a form sets, from constants by concept and given ones by symbol."""
    return evaluate_steps(result, form, select_constants(result, form, constants, frozenset(given)) | dict(given))


def evaluate_steps(result: Result, form: Form, constants: Mapping[str, Value]) -> PrescribedValues:
    """As `prescribe`, from constants by symbol."""
    evaluation = evaluate(result, constants, form=form.name)
    steps = {name: float(np.ravel(value)[0]) for name, value in evaluation.prescribed.items()}
    return PrescribedValues(steps, {name: np.asarray(c.value) for name, c in evaluation.constants.items()})


class PrescribedValues(NamedTuple):
    """The step sizes that a form sets, and the constants that they follow from, by symbol."""

    steps: dict[str, float]
    constants: dict[str, np.ndarray]


class PaperRuns(ABC):
    """One paper's knowledge of runs."""

    authors: str = ""  # of the paper, and its year
    # what the paper's measures may be over, as a run is measured: its rounds may be something else to a paper
    over: ClassVar[tuple[str, ...]] = ("rounds", "window starts")
    given_record: ClassVar[bool] = False  # whether bounds over random participation are compared given a record, too

    @abstractmethod
    def steps(self, setting: RunSetting, interval: int | None) -> PrescribedSteps:
        """The step sizes of a run, and the interval of its analysis."""

    def check_ahead(
        self, setting: RunSetting, form: Form, result: Result, interval: int | None, given: frozenset[str]
    ) -> None:
        """Refuse a form before a run is made, where the run cannot be one of those that the form is about."""
        self.steps(setting, interval)

    @abstractmethod
    def collect_facts(self, compared: ComparedRun) -> RunFacts:
        """What a run says about a form."""

    @abstractmethod
    def prescribe_algorithm(
        self, result: Result, form: Form, ahead: PlannedRun, given: Mapping[str, Value]
    ) -> Algorithm:
        """The algorithm with the step sizes that a form sets."""

    def measure(self, setting: RunSetting, of: str) -> tuple[np.ndarray, np.ndarray | None]:
        """What a result bounds, at every recorded round (R,), and its samples (seeds, R), if there are any."""
        if of.startswith(FUNCTION_GAP):
            return average_samples(
                setting.recorded("objective_gap", "the gap: the problem must know the least value of F")
            )
        if of != GRADIENT_OF_F:
            raise FedboundsError(f"the run measures squared gradient norms of f over rounds, the result bounds: {of}")
        return setting.values, setting.samples

    def covers_client_weights(self, form: Form) -> bool:
        """Whether a form holds for $f=\\sum_np_nF_n$ with any weights, where clients take steps of their own $F_n$."""
        return False

    def check_no_interval(self, interval: int | None) -> None:
        """Refuse an interval where the paper has none."""
        if interval not in (None, 1):
            raise FedboundsError(f"interval = {interval}, but the results of {self.authors} have no interval")

    def not_covered(self, reason: str) -> FedboundsError:
        """The error of a run that no result of the paper covers."""
        return FedboundsError(f"no result of {self.authors} covers this run: {reason}")


def average_samples(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean over seeds (R,) of samples (seeds, R), and the samples; a seed that diverged counts as infinite."""
    samples = np.where(np.isnan(samples), np.inf, samples)
    return samples.mean(axis=0), samples


def algorithm_constants(**values: Any) -> Constants:
    """Constants of an algorithm, by concept: numbers, or arrays over horizons or clients."""
    return {
        concept: Constant(value if isinstance(value, np.ndarray) else float(value), "given", "of the algorithm")
        for concept, value in values.items()
    }


class UnknownPaper(PaperRuns):
    """The facts of every run: the constants of the problem and the number of rounds.

    For results of papers without a module `run`: what their step sizes, windows and constants of participation mean in
    a run is not known, so they must be given.
    """

    def steps(self, setting: RunSetting, interval: int | None) -> PrescribedSteps:
        """No step size has a symbol."""
        return PrescribedSteps(1 if interval is None else check_count("interval", interval), {})

    def collect_facts(self, compared: ComparedRun) -> RunFacts:
        """The problem's constants, and the assumptions on problem and noise."""
        constants = run_constants(compared.setting) | compared.rounds
        return compared.facts(constants, problem_assumptions(compared.setting, constants))

    def prescribe_algorithm(
        self, result: Result, form: Form, ahead: PlannedRun, given: Mapping[str, Value]
    ) -> Algorithm:
        """No algorithm."""
        raise FedboundsError(f"the paper of {result.key} does not say which algorithm its results are about")


def paper_of(result: Result) -> PaperRuns | None:
    """What the paper of a result knows of runs; None where it has no module `run`.

    For a theorem file it is the paper that has its algorithm.
    """
    name = _paper_of_algorithm(read_theorem_file(result.file).algorithm) if result.file else result.paper
    module = paper_submodule(name, "empirical", "run") if name in paper_names() else None
    if module is None:
        return None
    runs = getattr(module, "RUNS", None)
    if not isinstance(runs, PaperRuns):
        raise FedboundsError(f"{module.__name__} must say RUNS, a fedbounds.empirical.comparison.paper_runs.PaperRuns")
    if result.file:
        runs = copy(runs)
        runs.authors = result.source.paper
    return runs


def _paper_of_algorithm(kind: str) -> str:
    """The paper that has an algorithm of this kind; "" if none has."""
    found = paper_submodules("empirical", "algorithms").items()
    return next((name for name, module in found if any(each.kind == kind for each in module.ALGORITHMS)), "")


def problem_constants(problem: Problem) -> Constants:
    """Smoothness, initial gap, noise, gradient divergence and number of clients, as the problem states them."""
    return {"clients": Constant(float(problem.clients), "exact", "of the problem")} | dict(problem.constants())


def run_constants(setting: RunSetting) -> Constants:
    """What the problem states; if its least value is unknown, the gap is bounded at the run's own starts."""
    constants, floor, run = problem_constants(setting.problem), setting.problem.lower_bound, setting.run
    unknown = not isinstance(constants.get("initial_gap"), Constant)
    if floor is not None and unknown and isinstance(run, Trace) and floor.metric in run.metrics:
        starts = run.arrays[floor.metric][:, 0]
        note = f"upper bound: {floor.metric} at x0, mean over the seeds' starts, as {floor.why}"
        constants["initial_gap"] = Constant(float(starts.mean()) - floor.value, "exact", note)
    return constants


def problem_assumptions(setting: RunSetting, stated: Constants) -> dict[str, bool]:
    """The assumptions on problem and noise that can be checked, and whether they hold.

    Noise is drawn independently in every step and participation does not depend on it, so noise is a martingale
    difference and participation exogenous by construction.
    """
    found = {
        "independent-clients": not setting.common_noise,
        "martingale-noise": True,
        "full-participation": setting.full_participation,
        "bounded-below": isinstance(stated.get("initial_gap"), Constant),
    }
    for name, concept in CONSTANT_OF.items():
        constant = stated.get(concept)
        if isinstance(constant, NoConstant):
            found[name] = False
        elif constant is not None and constant.source == "exact":
            found[name] = True
    return found


def needed_constants(form: Form) -> set[str]:
    """The symbols in the terms, conditions and prescribed steps of a form."""
    return {str(s) for s in form.symbols} | {str(s) for e in form.prescribes.values() for s in e.free_symbols}


def sets_a_horizon(form: Form, result: Result) -> bool:
    """Whether the step sizes that a form sets may depend on the number of rounds, so that one run is of one T."""
    symbols = {str(symbol) for step in form.prescribes.values() for symbol in step.free_symbols}
    if symbols & {rule.name for rule in form.derived}:
        return True
    return any(result.notation[symbol].concept in ("rounds", "iterations") for symbol in symbols)


def select_constants(result: Result, form: Form, constants: Constants, given: frozenset[str]) -> dict[str, Value]:
    """Those constants that a form needs, directly or to derive others, by the paper's symbols.

    A `NoConstant` is included where there is no alternative: evaluating the form then says why there is none.
    """
    selected: dict[str, Value] = {}
    waiting, seen = sorted(needed_constants(form) - given), set(given)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        constant = constants.get(result.notation[name].concept)
        if constant is not None:
            selected[name] = constant  # pyright: ignore[reportArgumentType]  # evaluate explains a NoConstant
        else:
            waiting += [i for rule in form.derived if rule.name == name for i in rule.inputs]
    return selected
