"""Whether a run that is planned is one that a theorem covers: its conditions and assumptions, before any training.

The constants are those that the problem states and those that the algorithm, the participation and the number of rounds
determine. Others must be given: nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.coverage import coverage
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.checked_conditions import CheckedCondition
from fedbounds.bounds.evaluation.evaluate import Evaluation, Value, check_assumed
from fedbounds.bounds.theory.expectation import ExpectedStatement
from fedbounds.bounds.theory.problem_class import ProblemClass
from fedbounds.bounds.theory.registry import REFERENCES, paper
from fedbounds.bounds.theory.result import Condition, Form, Result
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.bounds.theory.theorem_file import read_theorem_file
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.algorithms.local_optimizer import LocalOptimizer
from fedbounds.empirical.algorithms.local_work import ConfigurableSteps
from fedbounds.empirical.algorithms.workload import Workload
from fedbounds.empirical.comparison.compare_run import (
    check_some_steps,
    check_steps,
    constants_by_symbol,
    coverage_doubts,
    evaluate_horizons,
    first_steps,
    statement_about,
)
from fedbounds.empirical.comparison.compare_sweep import (
    ComparedForm,
    SweepSetting,
    check_forms,
    constants_of,
    forms_of_runs,
    group_runs,
    has_algorithm,
    named_forms,
    settings_of,
)
from fedbounds.empirical.comparison.paper_runs import (
    CONSTANT_OF,
    FUNCTION_GAP,
    GRADIENT_OF_F,
    ComparedRun,
    Constants,
    PaperRuns,
    RunFacts,
    UnknownPaper,
    needed_constants,
    paper_of,
    problem_assumptions,
    problem_constants,
)
from fedbounds.empirical.comparison.run_setting import RunSetting, counted_rounds, everyone_participates
from fedbounds.empirical.comparison.user_constants import check_given, drop_rounds
from fedbounds.empirical.data.datasets import MissingData
from fedbounds.empirical.participation import Cyclic, Permutation
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.problems.logged import Logged
from fedbounds.empirical.problems.problem import Synthetic
from fedbounds.empirical.sweep import Run, Sweep

Answer = Literal["legal", "undecided", "not legal"]
ORDER: Sequence[Answer] = ("legal", "undecided", "not legal")
FEDAVG = {"fedavg", "generalized-fedavg"}
PARTICIPATION = {  # kinds of processes -> kinds of settings, see `_participation`
    "full": "all",
    "without-replacement": "uniform-sampling",
    "with-replacement": "with-replacement",
    "bernoulli": "coins-known-rates",
    "cyclic": "cyclic",
    "permutation": "reshuffled",
}
# parameters of a method, and the values with which it is the method that does not have them
NEUTRAL = {
    "server_multiplier": 1.0,
    "server_step_size": 1.0,
    "server_ascent_step_size": 1.0,
    "interval": 1,
    "momentum": 0.0,
    "step_size_schedule": None,
    "optimizer": LocalOptimizer(),
    "weights": None,
}
MOST = 5  # theorems that are shown where none is named


@dataclass(frozen=True, eq=False)
class RunLegality:
    """Whether one theorem covers one planned run."""

    claim: str  # of the theorem: key[form]
    reasons: tuple[str, ...] = ()  # why the run is not one of the theorem's
    conditions: tuple[CheckedCondition, ...] = ()  # those whose constants are known
    missing: Mapping[str, str] = ()  # pyright: ignore[reportAssignmentType]  # symbol to meaning: constants to give
    open_conditions: tuple[str, ...] = ()  # the conditions that need them
    checked: tuple[str, ...] = ()  # assumptions that hold for the run
    not_checked: tuple[str, ...] = ()  # assumptions that nothing here decides
    to_assume: tuple[str, ...] = ()  # the assumptions that must be assumed for the theorem to cover the run
    notes: tuple[str, ...] = ()  # which statement was taken
    constants: Mapping[str, Constant] = ()  # pyright: ignore[reportAssignmentType]

    @property
    def failed(self) -> tuple[CheckedCondition, ...]:
        """The conditions that fail."""
        return tuple(check for check in self.conditions if not np.all(check.holds))

    @property
    def answer(self) -> Answer:
        """Legal if all conditions hold and nothing excludes the run."""
        if self.reasons or self.failed:
            return "not legal"
        return "undecided" if self.missing or self.open_conditions else "legal"

    @property
    def rank(self) -> tuple[int, int]:
        """From legal to the most reasons against it."""
        return ORDER.index(self.answer), len(self.reasons) + len(self.failed)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "claim": self.claim,
            "answer": self.answer,
            "excluded_by": list(self.reasons),
            "conditions": [
                {
                    "text": c.text,
                    "holds": bool(np.all(c.holds)),
                    "left": c.left,
                    "right": c.right,
                    "limits": c.limits,
                    "admissible": c.admissible,
                }
                for c in self.conditions
            ],
            "missing": dict(self.missing),
            "open_conditions": list(self.open_conditions),
            "assumptions_checked": list(self.checked),
            "assumptions_not_checked": list(self.not_checked),
            "to_assume": list(self.to_assume),
            "notes": list(self.notes),
            "constants": {n: {"value": c.value, "source": c.source} for n, c in dict(self.constants).items()},
        }


def check_sweep(
    sweep: Sweep, keys: Sequence[str] = (), given: Mapping[str, Value] | None = None, assume: Sequence[str] = ()
) -> dict[str, tuple[RunLegality, ...]]:
    """Every setting of a sweep by its label, with the theorems that are named, or the nearest ones at most five.

    Raises:
        FedboundsError: an unknown result, constant or assumption, or a constant that contradicts the problem.

    Example:
        >>> from fedbounds.empirical.sweep import resolve
        >>> sweep = resolve({"rounds": 30, "problem": {"kind": "toy"}, "participation": {"kind": "cyclic", "clients": 3,
        ...     "groups": 3}, "algorithm": {"kind": "generalized-fedavg", "local_step_size": 0.2, "local_steps": 1,
        ...     "server_multiplier": 6, "interval": 3}})
        >>> (found,) = check_sweep(sweep, ["arbitrary-participation/theorem-3.1"])["sweep"]
        >>> found.answer, found.failed[0].limits, round(float(found.failed[0].admissible), 4)
        ('not legal', 'gamma', 0.0278)
    """
    requested = named_forms(keys) if keys else (*forms_of_runs(), *_reference_forms())
    given = dict(given or {})
    check_forms(requested, given, assume)
    found: dict[str, tuple[RunLegality, ...]] = {}
    for setting in _settings(sweep):
        rows = [(form, check_setting(setting, form, given, assume)) for form in requested]
        found[setting.label] = tuple(row for _, row in rows) if keys else _nearest(setting, rows)
    return found


@dataclass(frozen=True, eq=False)
class SettingWithoutData(SweepSetting):
    """A setting whose data are not on this machine: nothing is known of its problem but the number of clients."""

    why: str

    def problem(self) -> Problem:
        """A problem whose constants must be given."""
        return Logged(self.process().clients)


def _settings(sweep: Sweep) -> tuple[SweepSetting, ...]:
    """The settings of a sweep; where files of its data are missing, with what its other tables say."""
    try:
        return settings_of(sweep)
    except FedboundsError as error:
        if not isinstance(error.__cause__, MissingData):
            raise
        why = str(error.__cause__)
    runs = [Run("", task) for task in sweep.tasks]
    return tuple(SettingWithoutData(label, some, why) for label, some in group_runs(runs, sweep.name))


def _reference_forms() -> Iterator[ComparedForm]:
    """The reference theorems with numbers about algorithms whose step sizes and participation are known in runs."""
    for name in REFERENCES:
        for result in paper(name).results:
            form = result.form()
            known = result.kind != "lemma" and not result.measure.lower and not form.order_only
            if known and paper_of(result) is not None:
                yield ComparedForm(result, form)


def _other_algorithm(result: Result, kind: str) -> str:
    """Why a theorem file is not about runs of this kind; "" if it is, or does not say."""
    about = read_theorem_file(result.file).algorithm if result.file else ""
    return (
        "" if not about or about == kind or {about, kind} <= FEDAVG else f"it is about {about}, and the run is {kind}"
    )


def _concepts_of(result: Result, form: Form) -> set[str]:
    """What a form has a symbol for, or sets."""
    names = needed_constants(form) | form.prescribes.keys() | {i for rule in form.derived for i in rule.inputs}
    return {result.notation[name].concept for name in names if name in result.notation}


def _unstated_step_size(result: Result, form: Form) -> tuple[str, ...]:
    """What is open where a theorem file bounds a run and has no step size: its theorem chooses one."""
    measure = form.measure or result.measure
    if not result.file or result.kind == "lemma" or measure.lower or measure.aggregate == "single":
        return ()
    if any(concept.endswith("step_size") for concept in _concepts_of(result, form)):
        return ()
    return (f"step size: {result.key} is about a step size that it does not state; compare yours with its source",)


def _other_method(asked: ComparedForm, setting: RunSetting) -> tuple[str, ...]:
    """What the method of a run has and a theorem file does not: it has no symbol for it, nor does it set it."""
    result, form = asked.result, asked.form
    concepts = _concepts_of(result, form)
    algorithm, reasons = setting.algorithm, list[str]()
    one = getattr(algorithm, "server_multiplier", None) == 1  # then the interval has no effect
    for each in fields(algorithm):  # pyright: ignore[reportArgumentType]  # every algorithm is a dataclass
        name, value = each.name, getattr(algorithm, each.name)
        if name not in NEUTRAL or name in concepts or (each.default is MISSING and name in ("interval", "weights")):
            continue
        neutral = NEUTRAL[name]
        if value != neutral and not (name == "interval" and one):
            shown = f" = {value:g}" if isinstance(value, int | float) else ""
            instead = f"set {name} = {neutral:g}" if isinstance(neutral, int | float) else "leave it out"
            reasons.append(f"the run has {name}{shown}, and {result.key} has no {name}: {instead}")
    if isinstance(algorithm, ConfigurableSteps):
        departure = algorithm.bind_problem(setting.problem).departure
        if departure is not None and departure.field == "local_steps":
            reasons.append(f"the run has {departure.meaning}, and {result.key} is about one number of local steps")
    return tuple(reasons)


def _nearest(setting: SweepSetting, rows: Sequence[tuple[ComparedForm, RunLegality]]) -> tuple[RunLegality, ...]:
    """The theorems about the objective that come nearest; of papers about other algorithms only if there are no others.

    A theorem comes before a corollary, which sets the step sizes of a theorem.
    """
    ascends = "algorithm" in setting.task and algorithm_from_spec(setting.task["algorithm"]).ascends

    def about_objective(form: ComparedForm) -> bool:
        of = (form.form.measure or form.result.measure).of
        return ascends or of == GRADIENT_OF_F or of.startswith(FUNCTION_GAP)

    about = [(form, row) for form, row in rows if about_objective(form)]
    own = [pair for pair in about if has_algorithm(pair[0].result.paper, setting) or pair[1].answer != "not legal"]
    ranked = sorted(own or about, key=lambda pair: (pair[1].rank[0], pair[0].result.kind != "theorem", pair[1].rank[1]))
    shown: dict[object, RunLegality] = {}
    for form, row in ranked:  # of several results of a paper that one reason excludes the first
        same = (form.result.paper, row.reasons) if row.reasons and not row.failed else row.claim
        shown.setdefault(same, row)
    return tuple(shown.values())[:MOST]


def check_setting(
    setting: SweepSetting, form: ComparedForm, given: Mapping[str, Value], assume: Sequence[str] = ()
) -> RunLegality:
    """Whether a theorem covers the runs of one setting."""
    task = setting.task
    if "algorithm" not in task:
        why = "the run has phases, a schedule of algorithms: a result is about one algorithm; check each phase alone"
        return RunLegality(form.claim, (why,))
    if other := _other_algorithm(form.result, str(task["algorithm"].get("kind"))):
        return RunLegality(form.claim, (other,))
    algorithm, problem, process = algorithm_from_spec(task["algorithm"]), setting.problem(), setting.process()
    try:
        ahead = RunSetting.ahead(algorithm, problem, process, None, counted_rounds(algorithm, process, task["rounds"]))
    except FedboundsError as error:
        return RunLegality(form.claim, (str(error),))
    found = _check_run(ahead, form, constants_of(form.result, given), assume)
    if isinstance(setting, SettingWithoutData):
        note = f"constants of the data are not known, give those that you know: {setting.why}"
        found = replace(found, notes=(*found.notes, note))
    return found if not form.result.file else _of_file(found, form, _class_of_run(ahead))


def _class_of_run(setting: RunSetting) -> ProblemClass:
    """The class of a planned run, as far as the problem states it; what it does not state is left open."""
    stated = problem_constants(setting.problem)
    curved, divergence = stated.get("strong_convexity"), stated.get("gradient_divergence_sup")
    noise, synthetic = stated.get("gradient_noise"), isinstance(setting.problem, Synthetic)
    objective = "non-convex"
    if isinstance(curved, Constant) and curved.value > 0:
        objective = "strongly-convex"
    elif not synthetic and isinstance(stated.get("smoothness"), Constant):
        objective = "convex"  # logistic regression, of which alone the smoothness is known
    said: dict[str, tuple[str, ...]] = {"participation": (_participation(setting),)}
    if not isinstance(setting.problem, Logged):  # whose data are missing
        said["objective"] = (objective,)
    if isinstance(divergence, Constant):
        said["heterogeneity"] = ("bounded",) if divergence.value > 0 else ("none",)
    elif synthetic and isinstance(divergence, NoConstant):  # of a network nobody knows it
        said["heterogeneity"] = ("unbounded",)
    if isinstance(noise, Constant):
        said["noise"] = ("bounded",) if noise.value > 0 else ("none",)
    if isinstance(setting.algorithm, ConfigurableSteps):
        said["local-steps"] = (_local_steps(setting.algorithm.workload(setting.problem)),)
    return ProblemClass(said)


def _participation(setting: RunSetting) -> str:
    """The kind of setting that a participation process is."""
    process = setting.process
    if everyone_participates(process):
        return "all"
    if isinstance(process, Permutation) and not process.reshuffle:
        return "cyclic"
    if isinstance(process, Cyclic) and len({*process.sizes.tolist()}) > 1:
        return "arbitrary"  # clients of small groups have larger weights
    alike = process.sums_to_one and process.independent_rounds and process.unbiased
    return PARTICIPATION.get(process.kind, "independent-rounds" if alike else "arbitrary")


def _local_steps(work: Workload) -> str:
    """The kind of setting that the local work is."""
    if not work.constant:
        return "changing"
    most = {*work.most.tolist()}
    return "different" if len(most) > 1 else "one" if most == {1} else "alike"


def _counts(setting: RunSetting) -> dict[str, Constant]:
    """The numbers of participants and of iterations, by concept, where they are the same in all rounds."""
    process, found = setting.process, dict[str, Constant]()
    many = getattr(process, "participants", None)
    if everyone_participates(process):
        many = process.clients
    elif isinstance(process, Cyclic) and len({*process.sizes.tolist()}) == 1:
        many = int(process.sizes[0])
    if many is not None:
        found["participating_clients"] = Constant(float(many), "exact", "of the process")
    if isinstance(setting.algorithm, ConfigurableSteps):
        work = setting.algorithm.workload(setting.problem)
        if _local_steps(work) in ("one", "alike"):
            steps = float(setting.total * work.most[0])
            found["iterations"] = Constant(steps, "exact", "rounds times local steps")
    return found


def _decided(setting: RunSetting) -> dict[str, bool]:
    """Assumptions that theorem files have under usual names, as far as the problem decides them."""
    stated, objective = (
        problem_constants(setting.problem),
        _class_of_run(setting).said.get("objective", ("non-convex",))[0],
    )
    found = {"unbiased-gradients": True}  # noise has mean zero in every step
    if (curved := stated.get("strong_convexity")) is not None:
        found |= dict.fromkeys(("strongly-convex", "strongly-convex-clients"), isinstance(curved, Constant))
    if (noise := stated.get("gradient_noise")) is not None:
        found |= dict.fromkeys(("bounded-noise", "bounded-variance"), isinstance(noise, Constant))
    if objective != "non-convex":
        found |= dict.fromkeys(("convex", "convex-clients"), True)
    if objective == "strongly-convex":
        found["minimizer-exists"] = True
    if isinstance(setting.algorithm, ConfigurableSteps) and setting.algorithm.step_size_schedule is None:
        found["decaying-steps"] = False
    return found


def _of_file(found: RunLegality, form: ComparedForm, run: ProblemClass) -> RunLegality:
    """What the setting of a theorem file adds."""
    reasons = list(found.reasons)
    covered = coverage(form.result, form.form, (), run)
    for a in covered.excluded:
        axis = a.name.removeprefix("setting-")
        if axis in run.said:
            reasons.append(f"{axis} {' or '.join(run.said[axis])} is not covered; {a.statement}")
    return replace(found, reasons=tuple(reasons))


def _check_run(
    setting: RunSetting, asked: ComparedForm, given: Mapping[str, Value], assume: Sequence[str]
) -> RunLegality:
    setting, statement = statement_about(setting, ExpectedStatement(asked.result, asked.form, asked.result.key))
    paper = paper_of(statement.result)
    runs = paper or UnknownPaper()
    bare = replace(statement.form, terms=())  # what only the bound needs is not asked for
    result = replace(statement.result, forms=(bare,), default=bare.name)
    own = drop_rounds(result, constants_by_symbol(result, given), setting.total)
    if result.file and paper and (others := _other_method(asked, setting)):
        return RunLegality(asked.claim, others)
    try:
        steps = runs.steps(setting, None)
        facts = _facts(runs, setting, bare, result, steps.interval, frozenset(own))
        findings = _facts(runs, setting, statement.form, statement.result, steps.interval, frozenset(own)).found
    except FedboundsError as error:
        why = str(error)
        if result.file and why.startswith("no result of "):  # the reason of the paper that has the algorithm
            why = f"{result.key} is not known to cover runs of {setting.algorithm.kind} with these parameters"
        return RunLegality(asked.claim, (why,))
    check_given(result, bare, own, lambda _: facts)
    counts = {q.name: c for concept, c in _counts(setting).items() if (q := result.notation.resolve(concept))}
    known = counts | {name: c for name, c in facts.constants.items() if isinstance(c, Constant)} | own
    groups = [Missing.of(result, bare, condition, known) for condition in bare.conditions]
    decided = tuple(each.condition for each in groups if not each.names)
    found = (_decided(setting) if result.file else {}) | _without_unknown(setting, findings)
    names = [each.name for each in bare.assumptions]
    checked = {"assume": check_assumed(names, {*assume} & {"all", *names}), "checked": found, "strict": False}
    reasons = [*statement.doubts, *coverage_doubts(statement.form, statement.result, paper, setting)]
    needed = {name for each in groups for name in each.names}
    needed |= set(Missing.of(result, replace(bare, conditions=()), None, known).names)
    try:
        some = _known_steps(result, bare, known) if needed else first_steps(bare)
        check_some_steps(result, bare, some, known, steps)
        evaluation = _evaluate(result, replace(bare, conditions=decided), known, prescribes=not needed, **checked)
        if not needed:
            check_steps(evaluation, steps)
    except FedboundsError as error:
        return RunLegality(asked.claim, (*reasons, str(error)))
    statements = {each.name: each.statement for each in bare.assumptions}
    status = evaluation.assumptions
    class_of_run, concepts = (
        _class_of_run(setting),
        {q.concept for n in {*own, *needed} if (q := result.notation.resolve(n))},
    )
    outside = {a.name for a in coverage(result, bare, (), class_of_run).excluded}
    undecided = [n for n, word in status.items() if word == "not checked" and not n.startswith("setting")]
    to_assume = [name for name in undecided if CONSTANT_OF.get(name, _concept_of(name)) not in concepts]
    violated = [name for name, word in status.items() if word == "violated"]
    reasons += [f"it violates {name}: {statements[name]}" for name in violated]
    unbounded = [name for name in to_assume if name in outside]
    to_assume = [name for name in to_assume if name not in outside]
    reasons += [
        f"it violates {name}: {statements[name]}; it has no such bound over all x: if it has one along the run, add "
        f"--assume {name}"
        for name in unbounded
    ]
    opened = [each.condition.words(result.notation) for each in groups if each.names and each.condition]
    return RunLegality(
        asked.claim,
        tuple(reasons),
        evaluation.conditions,
        {name: result.notation[name].meaning for name in result.notation if name in needed},
        (*opened, *_unstated_step_size(asked.result, asked.form), *(f"{n}: {statements[n]}" for n in to_assume)),
        checked=tuple(name for name, word in status.items() if word == "checked" and not name.startswith("setting")),
        not_checked=tuple(name for name in undecided if name not in {*to_assume, *unbounded}),
        to_assume=tuple(to_assume),
        notes=statement.notes,
        constants=evaluation.constants,
    )


def _concept_of(assumption: str) -> str:
    """The constant with the name of an assumption, such as "cohort-divergence"."""
    return assumption.removeprefix("expected-").replace("-", "_")


@dataclass(frozen=True, eq=False)
class Missing:
    """The constants that a condition, or the prescribed step sizes, still need."""

    condition: Any  # the condition; None for the step sizes
    names: frozenset[str]

    @staticmethod
    def of(result: Result, form: Form, condition: Condition | None, known: Mapping[str, Value]) -> Missing:
        """Those that are neither known nor follow from known ones; of several ways the shortest."""

        def lacking(name: str, pending: frozenset[str]) -> frozenset[str]:
            if name in known:
                return frozenset()
            rules = [rule for rule in form.derived if rule.name == name and not pending & {name, *rule.inputs}]
            ways = [frozenset().union(*(lacking(i, pending | {name}) for i in rule.inputs)) for rule in rules]
            optional = any(not rule.inputs for rule in rules)
            return min([*ways, *([] if optional else [frozenset({name})])], key=len)

        sides = (condition.left, condition.right) if condition is not None else tuple(form.prescribes.values())
        names = {str(s) for side in sides for s in side.free_symbols} - form.prescribes.keys()
        return Missing(condition, frozenset().union(*(lacking(name, frozenset()) for name in names)))


def _known_steps(result: Result, form: Form, known: Mapping[str, Value]) -> dict[str, sp.Expr]:
    """The prescribed step sizes whose constants are all known."""
    each = {name: replace(form, prescribes={name: value}) for name, value in form.prescribes.items()}
    return {name: one.prescribes[name] for name, one in each.items() if not Missing.of(result, one, None, known).names}


def _evaluate(
    result: Result, form: Form, known: Mapping[str, Value], *, prescribes: bool, **checked: Any
) -> Evaluation:
    """The decided conditions of a form at the last horizon."""
    form = form if prescribes else replace(form, prescribes={})
    return evaluate_horizons(replace(result, forms=(form,)), form, known, 1, **checked)[0]


def _facts(
    paper: PaperRuns, setting: RunSetting, form: Form, result: Result, interval: int, given: frozenset[str]
) -> RunFacts:
    """The facts of a run that is not made yet; what only a run would show counts as given."""
    stated = problem_constants(setting.problem)

    def collect(taken: frozenset[str]) -> RunFacts:
        compared = ComparedRun(setting, form, result, interval, np.array([setting.total]), taken)
        return paper.collect_facts(compared)

    paper.check_ahead(setting, form, result, interval, given)
    try:
        return collect(given)
    except FedboundsError:
        unknown = {n for n in result.notation if not isinstance(stated.get(result.notation[n].concept), Constant)}
        return collect(given | unknown)


def _without_unknown(setting: RunSetting, found: Mapping[str, bool]) -> dict[str, bool]:
    """The findings without those that fail only because a problem, such as a network, does not state a constant."""
    if isinstance(setting.problem, Synthetic):
        return dict(found)
    stated = problem_constants(setting.problem)
    taken: Constants = {
        concept: c if isinstance(c, Constant) else Constant(0.0, "given") for concept, c in stated.items()
    }
    taken.setdefault("initial_gap", Constant(0.0, "given"))
    now, then = problem_assumptions(setting, stated), problem_assumptions(setting, taken)
    open_names = {name for name, holds in now.items() if not holds and then.get(name, True)}
    return {name: holds for name, holds in found.items() if holds or name not in open_names}


def answer_of(rows: Sequence[RunLegality]) -> Answer:
    """The answer for a setting: the best one of its theorems."""
    answers: set[Answer] = {row.answer for row in rows}
    best: Answer = "undecided" if "undecided" in answers else "not legal"
    return "legal" if "legal" in answers else best
