"""The check of an implementation of generalized FedAvg, or of another algorithm, and the ways to get it wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedbounds.bounds.errors import unknown_name
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.invariants.cases import FEATURES, Case, PlainProblem, Run
from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.search import Subject, check
from fedbounds.empirical.papers.arbitrary_participation.plain import generalized_fedavg
from fedbounds.empirical.papers.arbitrary_participation.properties import INVARIANTS, agreement_with
from fedbounds.empirical.problems import Quadratic

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def _weighted(law: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """The twin with other weights."""
    return lambda twin, case: twin(replace(case, weights=law(case.weights)))


def _with_noise(law: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """The twin with other noise."""
    return lambda twin, case: twin(replace(case, problem=replace(case.problem, noises=law(case.problem.noises))))


def _received_only(twin: Callable[[Case], np.ndarray], case: Case) -> np.ndarray:
    """The twin whose local gradients are all taken at the received model: one step, I times as long."""
    noises = case.problem.noises
    calm = replace(case.problem, noises=None if noises is None else noises.mean(axis=2, keepdims=True))
    return twin(replace(case, problem=calm, local_steps=1, step_size=case.local_steps * case.step_size))


def _starting(where: Callable[[list[np.ndarray], np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """Algorithm 1 whose clients start elsewhere: from the models so far, the step so far and the model left last."""

    def as_if(twin: Callable[[Case], np.ndarray], case: Case) -> np.ndarray:
        models, summed = [case.problem.x0], np.zeros(case.problem.dimension)
        for t in range(case.rounds):
            x, step, left = models[t], np.zeros(case.problem.dimension), models[t]
            for n in np.flatnonzero(case.weights[t]):
                start = where(models, step, left)
                left = start + case.update(t, int(n), start)
                step = step + case.weights[t, n] * (left - x)
            summed = summed + step
            amplified = (case.multiplier - 1) * summed if case.ends(t) else 0.0
            models.append(x + step + amplified)
            summed = np.zeros_like(summed) if case.ends(t) else summed
        return np.stack(models)

    return as_if


MISREADINGS = (
    Misreading(
        "it ignores the multiplier",
        lambda twin, case: twin(replace(case, multiplier=1.0)),
        "if it has none: cases(multipliers=(1.0,))",
    ),
    Misreading(
        "it amplifies in every round, as if the interval were 1",
        lambda twin, case: twin(replace(case, interval=1)),
        "if it has no interval: cases(intervals=(1,))",
    ),
    Misreading(
        "it does one local step, however many there are",
        lambda twin, case: twin(replace(case, local_steps=1)),
        "if it has no local steps: cases(local_steps=(1,))",
    ),
    Misreading(
        "it does a local step too few", lambda twin, case: twin(replace(case, local_steps=case.local_steps - 1))
    ),
    Misreading("it takes every local gradient at the received model", _received_only),
    Misreading("each client starts where the one before it stopped", _starting(lambda models, step, left: left)),
    Misreading("each client starts from the sum so far", _starting(lambda models, step, left: models[-1] + step)),
    Misreading(
        "clients start from the model of the round before", _starting(lambda models, step, left: models[-2:][0])
    ),
    Misreading("its steps have the wrong sign", lambda twin, case: twin(replace(case, step_size=-case.step_size))),
    Misreading(
        "it divides the step size by the local steps",
        lambda twin, case: twin(replace(case, step_size=case.step_size / case.local_steps)),
    ),
    Misreading(
        "it gives equal weights to those who take part",
        _weighted(lambda q: (q != 0) / np.maximum((q != 0).sum(axis=1, keepdims=True), 1)),
        "if that is meant: cases(participation=('one-hot', 'subsets'))",
    ),
    Misreading("it gives the weight 1/N to each who takes part", _weighted(lambda q: (q != 0) / q.shape[1])),
    Misreading("it normalizes the weights", _weighted(lambda q: q / np.maximum(q.sum(axis=1, keepdims=True), 1e-300))),
    Misreading("it squares the weights", _weighted(np.square)),
    Misreading(
        "it begins at zero",
        lambda twin, case: twin(replace(case, problem=replace(case.problem, start=np.zeros_like(case.problem.start)))),
    ),
    Misreading("it leaves the noise out", _with_noise(np.zeros_like), "if there is none: cases(noise=False)"),
    Misreading("it gives all clients the same noise", _with_noise(lambda g: np.broadcast_to(g[:, :1], g.shape))),
    Misreading("it gives all local steps the same noise", _with_noise(lambda g: np.broadcast_to(g[:, :, :1], g.shape))),
)


def check_invariants(
    run: Run,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    twin: Run | None = None,
    cases: SearchStrategy[Case] | None = None,
    tolerance: float | None = None,
    algorithm: str = "generalized-fedavg",
) -> Report:
    r"""Look for runs of an implementation of generalized FedAvg that break its invariants, and shrink them.

    Args:
        run: a function `run(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed)` that
            returns the models $x_0,\dots,x_T$ as an array (T + 1, d); see `fedbounds.empirical.invariants.cases` for
            what it is given. If it names no `multiplier`, `interval` or `local_steps` (but takes `**_`) and none makes
            a difference, it is an algorithm without, and the cases have none.
        invariants: names of `INVARIANTS`; all if not given.
        examples: how many cases to try.
        seed: of the search; the same seed tries the same cases.
        twin: what the run must agree with, in the invariant "reference twin": another implementation of yours, say;
            Algorithm 1 as the paper prints it if not given.
        cases: a strategy of `Case`; that of `fedbounds.empirical.strategies.cases()`, without noise, if not given.
        tolerance: largest difference between equal models, relative to the larger of 1 and their largest entry; if
            not given, 1e-9, or 1e-4 for a run that returns single precision.
        algorithm: what the run is an implementation of, a kind of `fedbounds.empirical.algorithms.algorithms()` or
            "other". All but generalized FedAvg and FedAvg make weights of their own of who takes part ($q_t^n > 0$), so
            that fewer invariants apply, and the twin is one that you give.

    Returns:
        A verdict for each invariant: held, for so many examples; broken, with the smallest counterexample found; or
        skipped, where it does not apply to these cases or this algorithm, with the reason. A run that raises, or
        whose models are not finite, breaks the invariant that ran it. If something is broken, the likely cause.

    Raises:
        FedboundsError: an unknown invariant or algorithm, a number outside its range, or a run that cannot be called
            as said or returns something else than models.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> def never_amplifies(problem, weights, multiplier, **numbers):
        ...     return generalized_fedavg(problem, weights, **numbers)
        >>> report = check_invariants(never_amplifies, invariants=["translation", "two sided step sizes"])
        >>> [verdict.status for verdict in report.verdicts]
        ['held', 'broken']
        >>> report["two sided step sizes"].counterexample.told, report.cause
        ('at t = 1: [0.5], expected [1]', 'it ignores the multiplier (if it has none: cases(multipliers=(1.0,)))')

    Source: Wang & Ji 2022, Algorithm 1.
    """
    kinds = [kind for kind, known in algorithms().items() if not known.ascends]
    if algorithm not in (*kinds, "other"):
        raise unknown_name("algorithm", str(algorithm), [*kinds, "other"])
    known = dict(INVARIANTS) if twin is None else {**INVARIANTS, "reference twin": agreement_with(twin)}
    problem = PlainProblem.of(Quadratic([1.0, 0.5], [[1.0, 0.0], [0.0, 1.0]], x0=[2.0, 1.0]))
    first = Case(problem, np.full((3, 2), 0.5), step_size=0.5, local_steps=1, multiplier=2.0, interval=2)
    called = "run(problem, weights, rounds=, step_size=, local_steps=, multiplier=, interval=, seed=)"
    subject = Subject(run, Case.models, twin or generalized_fedavg, FEATURES, MISREADINGS, algorithm)
    cases_of = "fedbounds.empirical.strategies.cases"
    return check(subject, first, called, known, cases_of, invariants, examples, seed, cases, tolerance)
