r"""Compare a run with a result: measure and bound at every horizon, and whether the result covers the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.ledger import why_no_verdict
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import SOFT, Evaluation, Value, evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.resolution import resolve
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.argument_checks import check_constants
from fedbounds.bounds.theory.expectation import ExpectedStatement, expected_statement
from fedbounds.bounds.theory.registry import as_result, paper_names
from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.measured_curve import measure_of_run, measure_run
from fedbounds.empirical.comparison.paper_runs import (
    ComparedRun,
    PaperRuns,
    PlannedRun,
    PrescribedSteps,
    RunFacts,
    UnknownPaper,
    paper_of,
    sets_a_horizon,
)
from fedbounds.empirical.comparison.run_comparison import RunComparison, join_comparisons
from fedbounds.empirical.comparison.run_setting import (
    ExactRun,
    RunSetting,
    setting_of_moments,
    setting_of_trace,
)
from fedbounds.empirical.comparison.user_constants import check_given, drop_rounds, replace_measured
from fedbounds.empirical.participation import Process
from fedbounds.empirical.participation.spec import Participation, as_process
from fedbounds.empirical.problems import Problem, ScaledObjectives
from fedbounds.empirical.simulation.moments import MinimaxMoments, moments
from fedbounds.empirical.simulation.trace import Trace

STEP_AGREEMENT = 1e-9  # relative difference at which step sizes are not those that a result prescribes


def confront(
    run: ExactRun | MinimaxMoments | Trace,
    result: Result | str,
    form: str | None = None,
    *,
    problem: Problem | None = None,
    participation: Participation | None = None,
    interval: int | None = None,
    given: Mapping[str, Value] | None = None,
    assume: str | Iterable[str] = (),
    trust: str | Iterable[str] = (),
) -> RunComparison:
    r"""Compare a run with the bound of a result, at every number of rounds $T=P,P+1,\dots$

    The measure is the result's; the constants, with their kinds, are those of the run's problem, algorithm and
    participation; assumptions are checked on them. If the step sizes of the result depend on T, one run is one point:
    its own T, and its step sizes must be the result's (`confront_family` makes such runs).

    Args:
        run: exact moments, a simulation, or a run made elsewhere, as `Recorder` and `read_log` return it, which needs
            neither problem nor participation. If its participation is given, the constants of participation are those
            of its record; otherwise those of its process.
        result: the result, or its key, e.g. "arbitrary-participation/theorem-3.1".
        form: its name or kind; the strongest one that is not refuted by default.
        problem: of a simulation (moments know theirs).
        participation: of a simulation: the process, its dictionary, or a record as `Recorded.read` takes it.
        interval: P of the analysis, where $\eta=1$ leaves it free.
        given: constants by symbol or concept, which replace those of the run: they may loosen the bound, but not
            contradict the run.
        assume: names of assumptions taken for granted.
        trust: unproved claims that the user accepts, as in `evaluate`.

    A result is not known to cover the run if its paper has no module `run` (all constants but the problem's must then
    be given), or if it does not mention participation and some client is absent or weighted unequally. A run that
    crosses the bound inside its conditions revokes the guarantee.

    Raises:
        FedboundsError: the run is not one of the result's algorithm or does not measure what it bounds, or a constant
            is missing.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
        >>> from fedbounds.empirical.problems import toy_example
        >>> amplified = GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3)
        >>> run = moments(amplified, toy_example(), np.tile(np.eye(3), (10, 1)))
        >>> comparison = confront(run, load("arbitrary-participation/theorem-3.1"), "explicit")
        >>> round(float(comparison.bound[-1]), 12), comparison.guarantee, comparison.crossings.size
        (3.752479138593, True, 0)

    Source: Wang & Ji 2022, Theorem 3.1 and its corollaries.
    """
    return _compare(
        run, as_result(result), form, problem=problem, participation=participation, interval=interval, given=given,
        assume=assume, trust=trust,
    ).judge()  # fmt: skip


@np.errstate(all="ignore")  # a run that diverges overflows; its infinities are correct
def _compare(
    run: ExactRun | MinimaxMoments | Trace,
    result: Result,
    form: str | None,
    *,
    problem: Problem | None,
    participation: Participation | None,
    interval: int | None,
    given: Mapping[str, Value] | None,
    assume: str | Iterable[str],
    trust: str | Iterable[str],
) -> RunComparison:
    """The comparison before its crossings are judged."""
    known = (problem, participation)
    parts = setting_of_trace(run, *known) if isinstance(run, Trace) else setting_of_moments(run, *known)
    setting, statement = statement_about(parts, ExpectedStatement(result, result.form(form), result.key))
    paper = paper_of(result)
    uncovered = coverage_doubts(statement.form, result, paper, setting)
    result, chosen, paper = statement.result, statement.form, paper or UnknownPaper()
    steps = paper.steps(setting, interval)
    measure = measure_of_run(chosen.measure or result.measure, setting, paper)
    curve = measure_run(setting, measure, paper, steps.interval, sets_a_horizon(chosen, result))

    def facts_for(given: frozenset[str]) -> RunFacts:
        facts = paper.collect_facts(ComparedRun(setting, chosen, result, steps.interval, curve.rounds, given))
        return replace(facts, found=setting.decided(facts.found))

    own = drop_rounds(result, constants_by_symbol(result, given), setting.total)
    checked = check_given(result, chosen, own, facts_for)
    checked = replace(checked, doubts=(*uncovered, *statement.doubts, *checked.doubts))
    facts = facts_for(frozenset(own))
    _check_finite(result, facts)
    constants = facts.constants | own
    replaced, remarks = replace_measured(result, chosen, facts.constants, own)
    try:
        if replaced:  # what was measured must not contradict what is given either
            resolve(compiled_form(result, chosen), constants)
        evaluations = evaluate_horizons(
            result, chosen, {name: value for name, value in constants.items() if name not in replaced},
            len(curve.rounds), assume=statement.assumed(assume), trust=statement.trusted(trust), checked=facts.found,
        )  # fmt: skip
    except FedboundsError:
        check_cut_off(result, chosen, constants, steps)  # a better reason, where that is why they contradict
        raise
    last = evaluations[-1].revoke(*checked.doubts)
    check_steps(last, steps)

    def at_horizons(values: list[np.ndarray]) -> np.ndarray:
        before = len(curve.rounds) - 1
        return np.concatenate([np.broadcast_to(values[0], before), values[-1]], axis=None)

    return RunComparison(
        result=result,
        form=chosen,
        label=setting.label,
        measure=curve.measure,
        rounds=curve.rounds,
        measured=curve.measured,
        standard_error=curve.standard_error,
        bound=at_horizons([each.value for each in evaluations]),
        terms={name: at_horizons([each.terms[name] for each in evaluations]) for name in last.terms},
        valid=at_horizons([each.valid for each in evaluations]),
        whole=curve.whole,
        thinned=curve.thinned,
        evaluation=last,
        notes=(*statement.notes, *_weight_notes(setting.problem), *setting.notes, *facts.notes, *remarks),
        seeds=setting.seeds,
        samples=curve.samples,
        given_check=checked,
    )


def statement_about(setting: RunSetting, statement: ExpectedStatement) -> tuple[RunSetting, ExpectedStatement]:
    """A result given the participation, for a process: of its certain record, or in expectation over its records."""
    if setting.q is not None or not statement.given_participation:
        return setting, statement
    if setting.process.certain(setting.total):
        return setting.given_participation(), statement
    return setting, expected_statement(statement)


def coverage_doubts(form: Form, result: Result, paper: PaperRuns | None, setting: RunSetting) -> tuple[str, ...]:
    """Why a form is not known to be about this run at all."""
    reasons = setting.doubts
    if paper is None:
        installed = bool(result.file) or result.paper in paper_names()
        no_runs = f"the paper of {result.key} does not say which runs it is about"
        if result.file:
            no_runs = f"{result.file} names no algorithm whose runs are known: give algorithm, such as 'fedavg'"
        reasons += (f"not known to cover this run: {no_runs if installed else why_no_verdict(result.paper)}",)
    if not any(a.participation for a in form.assumptions) and not setting.full_participation:
        reasons += (
            "not known to cover this run: the result says nothing of who takes part, and here not every client takes "
            "part in every round with its weight in f",
        )
    if setting.problem.client_weights is not None and not (paper and paper.covers_client_weights(form)):
        reasons += (
            "not known to cover this run: the result is about f = (1/N) sum_n F_n, and here f = sum_n p_n F_n with "
            "client_weights; it covers clients with the functions N p_n F_n (problem kind 'scaled')",
        )
    return reasons


def _weight_notes(problem: Problem) -> tuple[str, ...]:
    """How a weighted objective is read."""
    if isinstance(problem, ScaledObjectives):
        return ("f = sum_n p_n F_n as the mean of the functions N p_n F_n, of which the clients take their steps",)
    if problem.client_weights is not None:
        return (
            "f = sum_n p_n F_n with the given weights; clients take steps of their own F_n, and the server weighs the "
            "updates: the mean over more clients, of which the others never participate",
        )
    return ()


def _check_finite(result: Result, facts: RunFacts) -> None:
    """Refuse a run along which a measured constant has no finite value."""
    for name, constant in facts.constants.items():
        if isinstance(constant, Constant) and constant.source in SOFT and not np.isfinite(constant.value).all():
            meaning = result.notation[name].meaning
            raise FedboundsError(f"the run diverges: {name} ({meaning}) has no finite value along it")


def evaluate_horizons(
    result: Result, form: Form, constants: Mapping[str, Value], horizons: int, **claims: Any
) -> list[Evaluation]:
    """The form at all horizons but the last, if there are any, and at the last one."""
    notation = result.notation

    def constants_at(where: slice | int) -> dict[str, Value]:
        found = {}
        for name, value in constants.items():
            numbers = np.asarray(value.value if isinstance(value, Constant) else value)
            quantity = notation.resolve(name)
            if quantity is not None and not quantity.shape and numbers.shape == (horizons,):
                here = numbers[where] if isinstance(where, slice) else float(numbers[where])
                value = replace(value, value=here) if isinstance(value, Constant) else here
            found[name] = value
        return found

    parts = (slice(-1), -1) if horizons > 1 else (-1,)
    return [evaluate(result, constants_at(part), form=form.name, **claims) for part in parts]


def confront_family(
    result: Result | str,  # the result, or its key, e.g. "arbitrary-participation/corollary-3.2"
    problem: Problem,  # of the runs
    participation: Participation,  # a process, or weights (at least T, N)
    horizons: Sequence[int],  # the numbers of rounds T
    *,
    local_steps: int,  # I
    interval: int = 1,  # P
    form: str | None = None,  # its name or kind
    # constants by symbol or concept, which replace those of the runs: they may loosen the bound, but not contradict
    # them
    given: Mapping[str, Value] | None = None,
    assume: str | Iterable[str] = (),  # assume, trust: as for `confront`
    trust: str | Iterable[str] = (),
    # makes the run of an algorithm for T rounds; exact moments by default
    run: Callable[[Algorithm, int], ExactRun | MinimaxMoments | Trace] | None = None,
) -> RunComparison:
    """Compare a result whose step sizes depend on T with one run per T, each with its own step sizes.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> from fedbounds.empirical.problems import toy_example
        >>> corollary = load("arbitrary-participation/corollary-3.2")
        >>> cycles = np.tile(np.eye(3), (100, 1))
        >>> family = confront_family(corollary, toy_example(), cycles, [30, 300], local_steps=1, interval=3)
        >>> family.rounds.tolist(), family.covered_crossings.size, bool((family.ratio < 0.01).all())
        ([30, 300], 0, True)

    Source: Wang & Ji 2022, Corollaries 3.2, 3.3, 4.3 and 4.8.
    """
    result = as_result(result)
    chosen = result.form(form)
    if not chosen.prescribes:
        raise FedboundsError(f"{result.key} [{chosen.name}] sets no step sizes: confront one run at every T")
    if not len(horizons):
        raise FedboundsError("horizons is empty; give at least one number of rounds")
    process = as_process(participation)
    points = []
    for T in sorted({check_count("rounds", T) for T in horizons}):
        algorithm = prescribed_algorithm(
            result, chosen, problem, process, T, local_steps=local_steps, interval=interval, given=given
        )
        points.append(
            _compare(
                moments(algorithm, problem, process, T) if run is None else run(algorithm, T), result, chosen.name,
                problem=problem, participation=process, interval=getattr(algorithm, "interval", None), given=given,
                assume=assume, trust=trust,
            )
        )  # fmt: skip
    return join_comparisons(points, "one run per T, each with the step sizes that the result sets for it").judge()


def prescribed_algorithm(
    result: Result,
    form: Form,
    problem: Problem,
    participation: Process,
    rounds: int,
    *,
    local_steps: int,
    interval: int = 1,
    given: Mapping[str, Value] | None = None,
) -> Algorithm:
    """The algorithm of a result's paper with the step sizes that a form sets for T rounds on this problem."""
    ahead = PlannedRun(problem, participation, rounds, local_steps, interval)
    return (paper_of(result) or UnknownPaper()).prescribe_algorithm(
        result, form, ahead, constants_by_symbol(result, given)
    )


def constants_by_symbol(result: Result, given: Mapping[str, Value] | None) -> dict[str, Value]:
    """The user's constants by the paper's symbols; `evaluate` refuses unknown names."""
    check_constants({} if given is None else given)
    resolved = {name: result.notation.resolve(name) for name in given or {}}
    return {quantity.name if (quantity := resolved[n]) else n: value for n, value in (given or {}).items()}


def first_steps(form: Form) -> dict[str, sp.Expr]:
    """The prescribed step sizes that other constants follow from, as the weight error from the cut-off."""
    first = {i for rule in form.derived for i in rule.inputs} & form.prescribes.keys()
    return {name: form.prescribes[name] for name in first}


def check_cut_off(result: Result, form: Form, constants: Mapping[str, Value], steps: PrescribedSteps) -> None:
    """As `check_steps`, for the steps that other constants follow from, as the weight error from the cut-off."""
    check_some_steps(result, form, first_steps(form), constants, steps)


def check_some_steps(
    result: Result, form: Form, some: Mapping[str, sp.Expr], constants: Mapping[str, Value], steps: PrescribedSteps
) -> None:
    """As `check_steps`, for some of the prescribed step sizes, of which alone all constants need be known."""
    if not some:
        return
    alone = replace(form, terms=(), conditions=(), prescribes=some)
    needed = reachable(alone, prescribed=True)
    alone = replace(alone, derived=tuple(rule for rule in form.derived if rule.name in needed))
    check_steps(evaluate(replace(result, forms=(alone,)), constants, form=alone.name), steps)


def check_steps(evaluation: Evaluation, steps: PrescribedSteps) -> None:
    """Refuse a run with other step sizes than those that the result sets."""
    prescribed = {name: float(np.ravel(value)[0]) for name, value in evaluation.prescribed.items()}
    key = evaluation.result.key
    for name in sorted(prescribed.keys() - steps.own.keys()):
        raise FedboundsError(f"{key} sets {name} = {prescribed[name]:.12g}, and the run has no {name}")
    for name, value in prescribed.items():
        if abs(steps.own[name] - value) > STEP_AGREEMENT * abs(value):
            raise FedboundsError(
                f"{key} sets {name} = {value:.12g} with these constants, the run has {steps.own[name]:.12g}; "
                f"make the run with {name} = {value:.12g}"
            )
