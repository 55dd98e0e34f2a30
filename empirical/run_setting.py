"""A run taken apart: who ran what, what was measured, which constants and assumptions are known of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bounds.errors import FedboundsError
from bounds.evaluation import Value
from bounds.result import Form, Result
from bounds.symbols import Constant, NoConstant
from empirical.algorithms import Algorithm, algorithm_from_spec
from empirical.moments import Moments, along_the_run
from empirical.participation import Process, Recorded
from empirical.problems import Problem
from empirical.run_constants import (
    Constants,
    algorithm_constants,
    is_regularized,
    offsets,
    problem_constants,
    process_constants,
    record_constants,
)
from empirical.streams import Streams
from empirical.trace import Trace

DIVERGENCES = ("cohort_divergence", "participation_divergence", "window_divergence")


@dataclass(frozen=True, eq=False)
class Setting:
    """A run taken apart: who ran what, and the squared gradient norms that were recorded."""

    algorithm: Algorithm
    problem: Problem
    process: Process
    q: np.ndarray | None  # the weights (T, N), if the run is given its participation
    label: str
    total: int
    at: np.ndarray  # the recorded rounds, (R,)
    values: np.ndarray  # (R,)
    errors: np.ndarray | None  # (R,)
    common_noise: bool
    notes: tuple[str, ...]


def of_moments(run: Moments) -> Setting:
    """Exact moments taken apart."""
    record = isinstance(run.participation, Recorded)
    q = run.participation.matrix(run.rounds, np.random.default_rng()) if record else None  # a record draws nothing
    return Setting(
        algorithm=run.algorithm,
        problem=run.problem,
        process=run.participation,
        q=q,
        label=run.label,
        total=run.rounds,
        at=np.arange(run.rounds + 1),
        values=run.gradient_norm_squared,
        errors=None,
        common_noise=run.noise == "common",
        notes=(),
    )


def of_trace(run: Trace, problem: Problem | None, participation: Process | np.ndarray | None) -> Setting:
    """A simulation taken apart: the mean over its seeds, a seed that diverged counting as infinite.

    Raises:
        FedboundsError: it lacks its problem or participation, has phases, or did not record gradient norms.
    """
    if problem is None or participation is None:
        raise FedboundsError(
            "a simulation does not carry its problem and participation: give problem= and participation="
        )
    if "algorithm" not in run.spec:
        raise FedboundsError("the run has phases: a result is about one algorithm, so confront a run of it alone")
    if "gradient_norm_squared" not in run.dims:
        raise FedboundsError(f"the run did not record gradient_norm_squared; it has {', '.join(run.metrics)}")
    process = participation if isinstance(participation, Process) else Recorded(participation)
    total, streams = int(run.spec["rounds"]), run.spec.get("streams", {})
    q = None
    if isinstance(process, Recorded) or "participation" in streams:
        q = process.matrix(total, Streams(0, streams).generator("participation"))
    norms = np.where(np.isnan(run.gradient_norm_squared), np.inf, run.gradient_norm_squared)
    seeds = len(norms)
    with np.errstate(invalid="ignore"):
        errors = norms.std(axis=0, ddof=1) / np.sqrt(seeds) if seeds > 1 else None
    every = int(run.spec.get("record_every", 1))
    notes = (f"measured every {every} rounds only: a minimum over rounds may be overestimated",) if every > 1 else ()
    if "diverged" in run.statuses:
        notes += (f"{run.statuses.count('diverged')} of {seeds} seeds diverged and count as infinite",)
    return Setting(
        algorithm=algorithm_from_spec(run.spec["algorithm"]),
        problem=problem,
        process=process,
        q=q,
        label=f"mean of {seeds} seeds",
        total=total,
        at=run.arrays["round"],
        values=norms.mean(axis=0),
        errors=errors,
        common_noise=False,
        notes=notes,
    )


def what_is_known(
    setting: Setting, form: Form, result: Result, interval: int, horizons: np.ndarray, given: frozenset[str]
) -> tuple[dict[str, Value], dict[str, bool], tuple[str, ...]]:
    """What a run says about a form at each horizon.

    Args:
        setting: the run.
        form, result: what is promised.
        interval: P of the analysis.
        horizons: numbers of rounds, each at least P.
        given: the letters that need not be found out.

    Returns:
        The constants by letter, assumption name to whether it was found to hold, and notes.

    Raises:
        FedboundsError: weights that do not sum to one, or divergences that cannot be known.
    """
    notes: tuple[str, ...] = ()
    stated = problem_constants(setting.problem)
    known: Constants = stated | algorithm_constants(setting.algorithm, interval)
    known["rounds"] = Constant(horizons.astype(float), "given", "of the run")

    needed = {str(s) for s in form.symbols} | {str(s) for e in form.prescribes.values() for s in e.free_symbols}
    needed -= given
    divergences = bool({result.notation[name].concept for name in needed} & set(DIVERGENCES))
    v = offsets(setting.problem) if divergences else None
    if setting.q is not None:
        known |= record_constants(setting.q, v, interval, horizons)
    else:
        known |= process_constants(setting.process, v, interval, horizons)
        notes += ("averaged over participation: its constants are largest expected values over the rounds",)
    if divergences and v is None:
        if setting.q is None:
            raise FedboundsError(
                "the Hessians differ, so the divergences of Assumption 3' are known only along a run whose "
                "participation is given: run a record of it (process.matrix(rounds, rng))"
            )
        run = along_the_run(setting.algorithm, setting.problem, setting.q[: setting.total], interval)
        known |= run.constants(horizons)
        notes += ("the Hessians differ: divergences are suprema along this run, not constants of the problem",)
    letters: dict[str, Value] = {}
    for name in needed:
        constant = known.get(result.notation[name].concept)
        if constant is not None:
            letters[name] = constant  # pyright: ignore[reportArgumentType]  # evaluate explains a NoConstant
    found = _found(setting, form, interval, int(horizons[-1]), stated)
    if v is not None:
        found |= {"participation-divergence": True, "cohort-divergence": True, "window-divergence": True}
    return letters, found, notes


def _found(setting: Setting, form: Form, interval: int, rounds: int, stated: Constants) -> dict[str, bool]:
    """The assumptions of a form that can be checked on a run, and whether they hold.

    Noise is drawn afresh in every step and participation never looks at it, so that noise is a martingale difference
    and participation exogenous by construction.
    """
    process, given = setting.process, setting.q is not None
    found: dict[str, bool] = {
        "weights": True,  # or they would have been refused
        "independent-clients": not setting.common_noise,
        "martingale-noise": True,
        "exogenous-participation": True,
        "bounded-below": isinstance(stated.get("initial_gap"), Constant),
        "independent-rounds": process.independent_rounds,
        "window-variance": not given,
    }
    for name, concept in (
        ("smooth", "smoothness"),
        ("unbiased-noise", "gradient_noise"),
        ("bounded-divergence", "gradient_divergence_sup"),
    ):
        constant = stated.get(concept)
        if isinstance(constant, NoConstant):
            found[name] = False
        elif constant is not None and constant.source == "exact":
            found[name] = True
    assumed = {assumption.name for assumption in form.assumptions}
    if "regularized" in assumed:
        found["regularized"] = is_regularized(setting.q, process, interval, rounds)
    if "unbiased-sampling" in assumed:
        found["unbiased-sampling"] = not given and _unbiased(process, rounds)
    return found


def _unbiased(process: Process, rounds: int) -> bool:
    """Whether in every round all clients have the same mean weight."""
    if process.unbiased:
        return True
    means = np.array([process.mean(t) for t in range(1 if process.stationary else rounds)])
    return bool(np.allclose(means, means[:, :1], rtol=1e-9, atol=0))
