r"""A run against a result: what was measured, what was promised, and whether the promise covered the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedbounds.bounds.audit.ledger import why_no_verdict
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import SOFT, Evaluation, Value, evaluate
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.argument_checks import check_constants
from fedbounds.bounds.theory.expectation import ExpectedStatement, expected_statement
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.registry import as_result, paper_names
from fedbounds.bounds.theory.result import Form, Result, reachable
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.paper_runs import (
    PaperRuns,
    PlannedRun,
    RunFacts,
    UnknownPaper,
    paper_of,
    sets_a_horizon,
)
from fedbounds.empirical.comparison.run_comparison import Confrontation
from fedbounds.empirical.comparison.run_setting import (
    ExactRun,
    RunSetting,
    as_process,
    setting_of_moments,
    setting_of_trace,
)
from fedbounds.empirical.comparison.user_constants import drop_rounds, ground, surer
from fedbounds.empirical.participation import Process
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.moments import MinimaxMoments, moments
from fedbounds.empirical.simulation.trace import Trace

STEP_AGREEMENT = 1e-9  # relative difference at which step sizes are not those that a result prescribes
OVERALL = "gradient noise and participation"


def confront(
    run: ExactRun | MinimaxMoments | Trace,
    result: Result | str,
    form: str | None = None,
    *,
    problem: Problem | None = None,
    participation: Process | np.ndarray | None = None,
    interval: int | None = None,
    given: Mapping[str, Value] | None = None,
    assume: str | Iterable[str] = (),
    trust: str | Iterable[str] = (),
) -> Confrontation:
    r"""Compare a run with what a result promises for it, at every number of rounds $T=P,P+1,\dots$

    The measure is the result's; the constants, with their kinds, are those of the run's problem, algorithm and
    participation; assumptions are checked on them. What a paper's results must know of a run is in
    `fedbounds.empirical.papers`. Where the result sets step sizes that depend on T, one run is one point: its own T,
    and its step sizes must be the result's (`confront_family` makes such runs).

    Args:
        run: exact moments, a simulation, or a run made elsewhere, as `Recorder` and `read_log` make it a trace, which
            needs neither problem nor participation. Of a run whose participation is given, the constants of
            participation are those of its record; otherwise those of its process.
        result: what is promised, or its key, e.g. "arbitrary-participation/theorem-3.1".
        form: its name or kind; the strongest one that is not refuted by default.
        problem: of a simulation (moments know theirs).
        participation: of a simulation: the process, or the weights.
        interval: P of the analysis, where $\eta=1$ leaves it free.
        given: constants by letter or concept, which win over those of the run: they may loosen the bound, never
            contradict the run.
        assume: names of assumptions taken for granted.
        trust: claims that the user answers for, as in `evaluate`.

    A result whose paper brings no `run`, so that nobody knows what its letters mean in one (all but the problem's must
    be given), or that says nothing of who takes part while not everybody does, is not known to cover the run, and a run
    that crosses the bound inside its conditions revokes the guarantee.

    Raises:
        FedboundsError: what the result is about was not run or not measured, or a constant is missing.

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
    return _judged(
        _compared(run, as_result(result), form, problem=problem, participation=participation, interval=interval,
                  given=given, assume=assume, trust=trust)
    )  # fmt: skip


def _judged(comparison: Confrontation) -> Confrontation:
    """The comparison with what its crossings say of the guarantee, and its records of an average."""
    said, spacing = comparison.revoked, comparison.spacing
    noted = replace(comparison, notes=(*comparison.notes, spacing)) if spacing else comparison
    return replace(noted, evaluation=noted.evaluation.revoked(said)) if said else noted


def _not_known_to_cover(form: Form, result: Result, paper: PaperRuns | None, setting: RunSetting) -> tuple[str, ...]:
    """Why nobody knows that a form is about this run at all; assumptions that nobody listed are not met for free."""
    reasons = setting.doubts
    if paper is None:
        stranger = result.paper not in paper_names()
        why = (
            why_no_verdict(result.paper)
            if stranger
            else f"the paper of {result.key} does not say which runs it is about"
        )
        reasons += (f"not known to cover this run: {why}",)
    if not any(a.participation for a in form.assumptions) and not setting.everybody:
        reasons += (
            "not known to cover this run: the result says nothing of who takes part, and here not every client takes "
            "part in every round with weight 1/N",
        )
    return reasons


@np.errstate(all="ignore")  # a run that diverges overflows, and its infinities say so
def _compared(
    run: ExactRun | MinimaxMoments | Trace,
    result: Result,
    form: str | None,
    *,
    problem: Problem | None,
    participation: Process | np.ndarray | None,
    interval: int | None,
    given: Mapping[str, Value] | None,
    assume: str | Iterable[str],
    trust: str | Iterable[str],
) -> Confrontation:
    """Measured and promised, before the crossings are judged."""
    apart = (problem, participation)
    setting = setting_of_trace(run, *apart) if isinstance(run, Trace) else setting_of_moments(run, *apart)
    own_paper = paper_of(result)
    paper = own_paper or UnknownPaper()
    statement = ExpectedStatement(result, result.form(form), result.key)
    if setting.q is None and statement.given_participation:
        if setting.process.certain(setting.total):
            setting = setting.given_participation()
        else:
            statement = expected_statement(statement)
    result, chosen = statement.result, statement.form
    assume, trust = statement.assumed(assume), statement.trusted(trust)
    measure = _measure(chosen.measure or result.measure, setting, paper.over)
    steps = paper.steps(setting, interval)
    values, samples = paper.measured(setting, measure.of)
    P = steps.interval
    last = measure.aggregate == "last"  # else the rounds before T are enough, and a log may end with them
    horizons = setting.at if last else np.union1d(setting.at, [setting.total])
    horizons = horizons[horizons >= P]
    if sets_a_horizon(chosen, result):
        horizons = np.array([setting.total])
    if not horizons.size or horizons[-1] < P:
        raise FedboundsError(f"the run has {setting.total} rounds, less than one window of interval = {P}")
    if last and horizons[-1] > setting.at[-1]:
        raise FedboundsError(f"the last model, x_{setting.total}, was not measured, the result bounds: {measure}")

    curve, sampled = _along(measure, setting.at, values, samples, horizons, P)
    whole = _whole(measure, setting.at, horizons, P)
    thinned = np.zeros(len(horizons))
    if measure.aggregate == "average" and not whole.all():
        fewer, _ = _along(measure, setting.at[::2], values[::2], None, horizons, P)
        thinned = np.where(whole | (fewer == curve), 0.0, fewer / curve - 1)
    own = drop_rounds(result, constants_by_symbol(result, given), setting.total)

    def says(given: frozenset[str]) -> RunFacts:
        known = paper.known(setting, chosen, result, P, horizons, given)
        return replace(known, found=setting.vouched(known.found))

    grounds = ground(result, chosen, own, says)
    uncovered = _not_known_to_cover(chosen, result, own_paper, setting)
    grounds = replace(grounds, doubts=(*uncovered, *statement.doubts, *grounds.doubts))
    known = says(frozenset(own))
    for name, constant in known.constants.items():
        if not isinstance(constant, Constant) or constant.source not in SOFT:
            continue
        if not np.isfinite(constant.value).all():
            meaning = result.notation[name].meaning
            raise FedboundsError(f"the run diverges: {name} ({meaning}) has no finite value along it")
    constants = known.constants | own
    replaced, remarks = surer(result, chosen, known.constants, own)
    try:
        everywhere = evaluate(result, constants, form=chosen.name, assume=assume, checked=known.found)
    except FedboundsError:
        _same_cut_off(result, chosen, constants, steps.own)  # a better reason, where that is why they contradict
        raise
    if replaced:  # what was measured contradicts nothing that is given, which is surer
        constants = {name: constant for name, constant in constants.items() if name not in replaced}
        everywhere = evaluate(result, constants, form=chosen.name, assume=assume, checked=known.found)
    at_the_end = evaluate(
        result,
        {n: c if result.notation[n].shape else _last(c, len(horizons)) for n, c in constants.items()},
        form=chosen.name,
        assume=assume,
        checked=known.found,
        trust=trust,
    ).revoked(*grounds.doubts)
    _same_steps(at_the_end, steps.own)
    shape = horizons.shape
    return Confrontation(
        result=result,
        form=chosen,
        label=setting.label,
        measure=measure,
        rounds=horizons,
        measured=curve,
        standard_error=_standard_error(sampled),
        bound=np.broadcast_to(everywhere.value, shape),
        terms={name: np.broadcast_to(value, shape) for name, value in everywhere.terms.items()},
        valid=np.broadcast_to(everywhere.valid, shape),
        whole=whole,
        thinned=thinned,
        evaluation=at_the_end,
        notes=(*statement.notes, *setting.notes, *known.notes, *remarks),
        seeds=setting.seeds,
        samples=sampled,
        ground=grounds,
    )


def confront_family(
    result: Result | str,
    problem: Problem,
    participation: Process | np.ndarray,
    horizons: Sequence[int],
    *,
    local_steps: int,
    interval: int = 1,
    form: str | None = None,
    given: Mapping[str, Value] | None = None,
    assume: str | Iterable[str] = (),
    trust: str | Iterable[str] = (),
    run: Callable[[Algorithm, int], ExactRun | MinimaxMoments | Trace] | None = None,
) -> Confrontation:
    r"""Compare a result that sets step sizes depending on T with one run per T, each with its own step sizes.

    Args:
        result: what is promised, or its key, e.g. "arbitrary-participation/corollary-3.2".
        problem: what to run on.
        participation: a process, or weights (at least T, N).
        horizons: the numbers of rounds T.
        local_steps: I.
        interval: P.
        form: its name or kind.
        given: constants by letter or concept, which win over those of the runs: they may loosen the bound, never
            contradict them.
        assume: names of assumptions taken for granted.
        trust: claims that the user answers for, as in `evaluate`.
        run: makes the run of an algorithm for T rounds; exact moments by default.

    Raises:
        FedboundsError: the form sets no step sizes, or as for `confront`.

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
        done = moments(algorithm, problem, process, T) if run is None else run(algorithm, T)
        points.append(
            _compared(
                done, result, chosen.name, problem=problem, participation=process,
                interval=getattr(algorithm, "interval", None), given=given, assume=assume, trust=trust,
            )
        )  # fmt: skip
    last = points[-1]
    errors = [p.standard_error for p in points if p.standard_error is not None]
    samples = [p.samples for p in points if p.samples is not None]
    family = replace(
        last,
        rounds=np.concatenate([p.rounds for p in points]),
        measured=np.concatenate([p.measured for p in points]),
        standard_error=np.concatenate(errors) if len(errors) == len(points) else None,
        bound=np.concatenate([p.bound for p in points]),
        terms={name: np.concatenate([p.terms[name] for p in points]) for name in last.terms},
        valid=np.concatenate([p.valid for p in points]),
        whole=np.concatenate([p.whole for p in points]),
        thinned=np.concatenate([p.thinned for p in points]),
        seeds=max(p.seeds for p in points),
        samples=np.concatenate(samples, axis=1) if len(samples) == len(points) else None,
        notes=(*last.notes, "one run per T, each with the step sizes that the result sets for it"),
    )
    return _judged(family)


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
    """The algorithm of a result's paper with the step sizes that a form sets for T rounds on this problem.

    Raises:
        FedboundsError: a constant is missing, or the form sets an interval that is not a whole number.
    """
    ahead = PlannedRun(problem, participation, rounds, local_steps, interval)
    return (paper_of(result) or UnknownPaper()).prescribed(result, form, ahead, constants_by_symbol(result, given))


def _measure(measure: Measure, setting: RunSetting, over: tuple[str, ...]) -> Measure:
    """The left-hand side as this run measures it, over one of these.

    Raises:
        FedboundsError: the run does not measure it.
    """
    if measure.aggregate not in ("minimum", "average", "last"):
        raise FedboundsError(f"a run is measured over its rounds, the result bounds: {measure}")
    if measure.over not in over:
        raise FedboundsError(f"the run is measured over {' or '.join(over)}, the result bounds: {measure}")
    if setting.q is None:
        return replace(measure, expectation=OVERALL, given="", latex=measure.latex.replace(r"\mid\mathcal Q", ""))
    if not measure.given:
        raise FedboundsError(
            f"the result bounds an expectation over participation, the run is given its record: {measure}; "
            "run a process instead"
        )
    return measure


def _along(
    measure: Measure,
    at: np.ndarray,
    values: np.ndarray,
    samples: np.ndarray | None,
    horizons: np.ndarray,
    interval: int,
) -> tuple[np.ndarray, np.ndarray | None]:
    """The measure at each horizon, from what was recorded, and the samples (S, K) that it is a mean of."""
    if measure.aggregate == "last":
        where = np.searchsorted(at, horizons)
        return values[where], _of_many(samples, where)
    if measure.over == "window starts":
        kept = at % interval == 0
        at, values, samples = at[kept] // interval, values[kept], None if samples is None else samples[:, kept]
        horizons = horizons // interval  # complete windows only
    if measure.aggregate == "average":
        averages = None if samples is None else averages_before(horizons, at, samples)
        return averages_before(horizons, at, values), _of_many(averages, slice(None))
    last = np.searchsorted(at, horizons) - 1  # of the values recorded before T
    least = np.minimum.accumulate(values)
    first_least = np.maximum.accumulate(np.where(values <= least, np.arange(len(values)), 0))
    return least[last], _of_many(samples, first_least[last])


def averages_before(horizons: np.ndarray, at: np.ndarray, values: np.ndarray) -> np.ndarray:
    r"""$\frac1T\sum_{t<T}v_t$ of values that were recorded at some t only, and lie on straight lines between them.

    After the last record the value is taken to be that one. Where every t was recorded this is the plain average. That
    of the records alone would count the first value, often the largest by far, for all rounds up to the next record.

    Args:
        horizons: the T, (K,), each at least 1.
        at: the t, ascending from 0, (R,).
        values: (..., R), infinite where a run diverged.

    Returns:
        (..., K).

    Example:
        >>> t = np.array([0, 4, 8])
        >>> averages_before(np.array([1, 3, 8]), t, 8.0 - t).tolist()  # of 8, of 8, 7, 6, and of 8, 7, ..., 1
        [8.0, 7.0, 4.5]
    """
    gaps, ends = np.append(np.diff(at), np.inf), np.append(np.arange(1, len(at)), 0)

    def summed(n: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Over n values from the k-th record on."""
        share = n * (n - 1) / 2 / gaps[k]  # of the next record
        return (n - share) * values[..., k] + share * np.where(share > 0, values[..., ends[k]], 0.0)

    between = summed(gaps[:-1], np.arange(len(at) - 1)).cumsum(axis=-1)
    up_to = np.concatenate([np.zeros((*values.shape[:-1], 1)), between], axis=-1)
    last = np.searchsorted(at, horizons) - 1
    return (up_to[..., last] + summed(horizons - at[last], last)) / horizons


def _of_many(samples: np.ndarray | None, where: np.ndarray | slice) -> np.ndarray | None:
    """The samples (S, R) at these places; None where nothing, or one thing, was sampled."""
    return None if samples is None or len(samples) < 2 else samples[:, where]


def _whole(measure: Measure, at: np.ndarray, horizons: np.ndarray, interval: int) -> np.ndarray:
    """Whether everything that the measure is over was recorded, at each horizon."""
    if measure.aggregate == "last":
        return np.isin(horizons, at)
    every = interval if measure.over == "window starts" else 1
    return np.searchsorted(at[at % every == 0], horizons - horizons % every) == horizons // every


def _standard_error(samples: np.ndarray | None) -> np.ndarray | None:
    """Of the mean over samples (S, K)."""
    with np.errstate(invalid="ignore"):
        return None if samples is None else samples.std(axis=0, ddof=1) / len(samples) ** 0.5


def constants_by_symbol(result: Result, given: Mapping[str, Value] | None) -> dict[str, Value]:
    """The user's constants under the paper's letters; unknown names are left for `evaluate` to refuse."""
    check_constants({} if given is None else given)
    resolved = {name: result.notation.resolve(name) for name in given or {}}
    return {quantity.name if (quantity := resolved[n]) else n: value for n, value in (given or {}).items()}


def _last(value: Value, horizons: int) -> Value:
    """The constant at the largest horizon, where it depends on it."""
    if isinstance(value, Constant) and np.shape(value.value) == (horizons,):
        return Constant(float(np.asarray(value.value)[-1]), value.source, value.note)
    return value


def _same_cut_off(result: Result, form: Form, constants: Mapping[str, Value], own: Mapping[str, float]) -> None:
    """As `_same_steps`, for the steps that other constants follow from, as the weight error from the cut-off."""
    first = {i for rule in form.derived for i in rule.inputs} & form.prescribes.keys()
    if not first:
        return
    alone = replace(form, terms=(), conditions=(), prescribes={name: form.prescribes[name] for name in first})
    needed = reachable(alone, prescribed=True)
    alone = replace(alone, derived=tuple(rule for rule in form.derived if rule.name in needed))
    _same_steps(evaluate(replace(result, forms=(alone,)), constants, form=alone.name), own)


def _same_steps(evaluation: Evaluation, own: Mapping[str, float]) -> None:
    """Refuse a run with other step sizes than those that the result sets."""
    prescribed = {name: float(np.ravel(value)[0]) for name, value in evaluation.prescribed.items()}
    key = evaluation.result.key
    for name in sorted(prescribed.keys() - own.keys()):
        raise FedboundsError(f"{key} sets {name} = {prescribed[name]:.12g}, and the run has no {name}")
    for name, value in prescribed.items():
        if abs(own[name] - value) > STEP_AGREEMENT * abs(value):
            raise FedboundsError(
                f"{key} sets {name} = {value:.12g} with these constants, the run has {own[name]:.12g}; "
                "set that, or in Python (fedbounds.empirical.comparison.compare_run) confront_family makes runs with "
                "its step sizes"
            )
