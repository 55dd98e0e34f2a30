"""The check of an implementation of generalized FedAvg, or of another algorithm, and the ways to get it wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.algorithms import algorithms
from fedbounds.empirical.invariants.cases import FEATURES, Case, PlainProblem, Run
from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.invariants.coverage import SizeClass, map_size_classes, size_classes, with_size_classes
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.scope import REFERENCE, Need, parameter_names, scope_of
from fedbounds.empirical.invariants.search import Subject, check, strategy_of
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import (
    NAMED_ONLY,
    OWN_NUMBERS,
    generalized_fedavg,
    reference_run,
)
from fedbounds.empirical.papers.arbitrary_participation.properties import (
    ALGORITHM_1,
    INVARIANTS,
    SPECIAL_CASES,
    Invariant,
    agreement_with,
    agreement_with_some,
)
from fedbounds.empirical.problems import Quadratic

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def _weighted(law: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """The twin with other weights."""
    return lambda twin, case: twin(replace(case, weights=law(case.weights)))


def _with_noise(law: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """The twin with other noise, where there is any."""

    def as_if(twin: Callable[[Case], np.ndarray], case: Case) -> np.ndarray:
        noises = case.problem.noises
        return twin(case if noises is None else replace(case, problem=replace(case.problem, noises=law(noises))))

    return as_if


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
    Misreading("it gives the weight 1/N to each participant", _weighted(lambda q: (q != 0) / q.shape[1])),
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


_LONGEST = 300  # the largest cut-off that cases are made to exceed
_NO_CUTOFF = 100  # the cut-off that they exceed where the run is said to have none


# a round without participants changes what comes after it, or has a meaning of its own
WITH_EMPTY_ROUNDS = frozenset({"fedau", "mifa", "average-all", "fixed-weights", "known-participation", "ef21"})


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
    **own_numbers: float,
) -> Report:
    r"""Look for runs of an implementation of generalized FedAvg that break its invariants, and shrink them.

    Args:
        run: a function `run(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed)` that
            returns the models $x_0,\dots,x_T$ as an array (T + 1, d); see `fedbounds.empirical.invariants.cases` for
            what it is given. If it names no `multiplier`, `interval` or `local_steps` (but takes `**_`) and none makes
            a difference, it is an algorithm without, and the cases have none. If it asks for `problem.noise`, some
            cases have noise. It leaves the weights that it is given as they are.
        invariants: names of `INVARIANTS`, or of the `SPECIAL_CASES` of the algorithm; all if not given.
        examples: how many cases to try: from 50 on, one of each of `fedbounds.empirical.invariants.strategies.SIZES`
            (up to 130 rounds, 25 local steps, intervals of 8 rounds and cohorts of 1 to 12 clients; numbers from 1e-6
            to 1e6); the others are small.
        seed: of the search; the same seed tries the same cases.
        twin: what the run must agree with, in the invariant "reference twin": another implementation of yours, say;
            the pseudo-code of the algorithm as the paper prints it if not given.
        cases: a strategy of `Case`; that of `fedbounds.empirical.invariants.strategies.cases()` if not given.
        tolerance: largest difference between equal models, relative to the larger of 1 and their largest entry; if
            not given, 1e-9, or 1e-4 for a run that returns single precision.
        algorithm: what the run is an implementation of, a kind of `fedbounds.empirical.algorithms.algorithms()` or
            "other". All but generalized FedAvg and FedAvg make weights of their own of who takes part ($q_t^n > 0$), so
            that fewer invariants apply.
        own_numbers: what only the reference of this algorithm needs: `cutoff` of FedAU, `client_weights` of fixed
            weights, `probability` of known participation, `server_momentum` of FedAvgM, `server_step_size`, `beta1`,
            `beta2` and `tau` of FedAdam, `share` of EF21. A run that names such a parameter is given values, and is
            compared without; for one that does not, say the number that it has. A run of FedProx must name
            `proximal_mu`, and one of FedNova `client_steps` (the local steps of each client, (N,)). A cut-off is
            compared only if some case exceeds it: those of `cases()` exceed every one up to 300, and 100 where
            `cutoff` is infinite.

    Returns:
        A verdict for each invariant: held, for so many examples; broken, with the smallest counterexample found;
        skipped, where it does not apply to these cases or this algorithm, with the reason; or not compared, where the
        reference needs something that is not given: then `report.passed` is false and `report.raise_if_broken()`
        raises. A run that raises, or whose models are not finite, breaks the invariant that ran it. If something is
        broken, the likely cause.

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
        >>> report["two sided step sizes"].counterexample.message, report.cause
        ('at t = 1: [0.5], expected [1]', 'it ignores the multiplier (if it has none: cases(multipliers=(1.0,)))')

    Source: Wang & Ji 2022, Algorithm 1.
    """
    kinds = [kind for kind, known in algorithms().items() if not known.ascends]
    if algorithm not in (*kinds, "other"):
        raise unknown_name("algorithm", str(algorithm), [*kinds, "other"])
    problem = PlainProblem.from_problem(Quadratic([1.0, 0.5], [[1.0, 0.0], [0.0, 1.0]], x0=[2.0, 1.0]))
    own = {"cutoff": 2.0, "client_weights": np.array([0.5, 2.0]), "probability": np.array([0.5, 0.25])}
    own |= {"server_momentum": 0.5, "server_step_size": 0.5, "beta1": 0.5, "beta2": 0.75, "tau": 0.125}
    own |= {"proximal_mu": 0.5, "client_steps": np.array([1, 1]), "share": 0.5}
    own = {name: own[name] for name in OWN_NUMBERS.get(algorithm, ())} | own_numbers
    first = Case(problem, np.full((3, 2), 0.5), step_size=0.5, local_steps=1, multiplier=2.0, interval=2, own=own)
    missing = _missing(run, algorithm, own_numbers, first)
    reference, compared = _reference(algorithm, twin, missing)
    special = {name: each for name, each in SPECIAL_CASES.items() if algorithm in (scope_of(each).algorithms or ())}
    known = {**special, **INVARIANTS, REFERENCE: compared}
    given = strategy_of(
        cases,
        "fedbounds.empirical.invariants.strategies.cases",
        noise=None if _asks_for_noise(run, first) else False,
        empty_rounds=algorithm in WITH_EMPTY_ROUNDS,
    )
    if "cutoff" in own_numbers:
        given = _exceeding(given, own_numbers["cutoff"])
    if own and not missing:
        given = _with(given, own_numbers, [name for name in own if name not in own_numbers])
    if algorithm == "ef21":
        given = map_size_classes(given, lambda of: of.map(_without_ties))
    called = "run(problem, weights, rounds=, step_size=, local_steps=, multiplier=, interval=, seed=)"
    misreadings = MISREADINGS if algorithm in ALGORITHM_1 else (*_other_algorithms(algorithm), *MISREADINGS)
    subject = Subject(run, Case.models, reference or run, FEATURES, misreadings, algorithm)
    cases_of = "fedbounds.empirical.invariants.strategies.cases"
    return check(subject, first, called, known, cases_of, invariants, examples, seed, given, tolerance)


def _missing(run: Run, algorithm: str, own_numbers: Mapping[str, Any], first: Case) -> list[str]:
    """What the reference of an algorithm needs, and is neither given nor a parameter that the run reads."""
    needed = OWN_NUMBERS.get(algorithm, {})
    for name, value in own_numbers.items():
        if name not in needed:
            here = f"{algorithm} has {', '.join(needed)}" if needed else f"{algorithm} has no numbers of its own"
            raise FedboundsError(f"check_invariants has no argument {name!r}; {here}")
        if name in NAMED_ONLY:
            raise FedboundsError(f"{name} differs from case to case; name the parameter {name} in the run")
        kind = algorithms()[algorithm]
        usual = ("local_step_size", "local_steps", "step_size")
        fields = {field.name: 1 for field in dataclasses.fields(kind) if field.name in usual}  # type: ignore[arg-type]
        kind(**fields, **{needed[name]: value})
    known = {*own_numbers, *parameter_names(run)}
    return [name for name in needed if name not in known and not _reads(run, name, first)]


def _reads(run: Run, name: str, case: Case) -> bool:
    """Whether a run does without a number of the case only by an error, as one that reads it from `**numbers`."""
    try:
        case.models(run)
    except Exception:
        return False
    try:
        replace(case, own={own: value for own, value in case.own.items() if own != name}).models(run)
    except Exception:
        return True
    return False


def _reference(algorithm: str, twin: Run | None, missing: Sequence[str]) -> tuple[Run | None, Invariant]:
    """The reference of an algorithm, if there is one, and the invariant that compares with it."""
    if twin is not None:
        return twin, agreement_with(twin, None, _EXCEEDED)
    if algorithm not in OWN_NUMBERS:
        return None, agreement_with_some(lambda case: (), "give twin=, a slow implementation of your own")
    reference = generalized_fedavg if algorithm in ALGORITHM_1 else reference_run(algorithm)
    if not missing:
        return reference, agreement_with(lambda *case, **numbers: reference(*case, **numbers), None, _EXCEEDED)
    every = _with_any_cutoff if missing == ["cutoff"] else lambda case: ()
    said = "; ".join(
        ("" if name in NAMED_ONLY else f"give {name}=, or ") + f"name the parameter {name} in the run"
        for name in missing
    )
    return None, agreement_with_some(every, said)


def _longest_interval(case: Case) -> int:
    """The most rounds from one participation of a client to its next, or from the beginning to its first."""
    ends = [np.append(0, np.flatnonzero(column) + 1) for column in case.weights.T]
    return max(int(np.diff(each).max(initial=1)) for each in ends)


_EXCEEDED = Need(
    "an interval longer than the cut-off",
    lambda case: np.isinf(case.own.get("cutoff", np.inf)) or _longest_interval(case) > case.own["cutoff"],
    f"those of cases() have up to {_LONGEST + 1} rounds",
)


def _with_any_cutoff(case: Case) -> Iterator[Run]:
    """FedAU without a cut-off, and with each that cuts off an interval of a case."""
    for cutoff in (np.inf, *range(_longest_interval(case) - 1, 0, -1)):
        yield partial(reference_run("fedau"), cutoff=cutoff)


def _exceeding(cases: SearchStrategy[Case], cutoff: float) -> SearchStrategy[Case]:
    """Cases with a size class in which a client is absent for longer than the cut-off, if they have size classes."""
    from hypothesis import strategies as st

    K = _NO_CUTOFF if np.isinf(cutoff) else int(cutoff)
    classes = size_classes(cases)
    if not classes or K > _LONGEST:
        return cases

    def absent(case: Case, *gaps: int) -> Case:
        """Client 0 takes part after so many rounds, and the last client, if it is another, in between."""
        N, problem = case.problem.clients, replace(case.problem, noises=None)
        rows = np.eye(N)[[N - 1]] if N > 1 else np.zeros((1, 1))
        q = np.repeat(rows, sum(gaps) + 2, axis=0)
        q[[0, *np.cumsum(gaps), sum(gaps) + 1]] = np.eye(N)[0]
        return replace(case, problem=problem, weights=q)

    # an interval of K rounds tells K from all that are smaller, one of K + 1 rounds from all that are larger
    smaller = st.tuples(cases, st.sampled_from([(K,), (K + 1,), (K, K + 1)])).map(
        lambda drawn: absent(drawn[0], *drawn[1])
    )
    longer = SizeClass(classes[0].exact.map(lambda case: absent(case, K, K + 1)), smaller)
    return with_size_classes(cases, [longer, *classes])


def _without_ties(case: Case) -> Case:
    """The case with centers moved a little, so that no two entries of gradients have the same magnitude."""
    old = case.problem
    n, j = np.indices(old.centers.shape)
    size = max(np.abs(old.centers).max(), np.abs(old.start).max(), 1e-6)
    return replace(case, problem=replace(old, centers=old.centers + 0.1 * size * np.sin(1 + 3 * n + 7 * j**2)))


def _with(cases: SearchStrategy[Case], said: Mapping[str, Any], drawn: Sequence[str]) -> SearchStrategy[Case]:
    """Cases with own numbers of the algorithm: those that are said, and others that are drawn."""
    from fedbounds.empirical.invariants.strategies import with_own_numbers

    cases = with_own_numbers(cases, *drawn) if drawn else cases
    return (
        cases
        if not said
        else map_size_classes(cases, lambda of: of.map(lambda case: replace(case, own={**case.own, **said})))
    )


def _asks_for_noise(run: Run, case: Case) -> bool:
    """Whether a run asks the problem for noise."""
    asked = []

    class Listening(PlainProblem):
        def noise(self, t: int, n: int, i: int) -> np.ndarray:
            asked.append((t, n, i))
            return super().noise(t, n, i)

    with suppress(Exception):  # whether it can be called as said is tried later
        replace(case, problem=Listening(**vars(case.problem))).models(run)
    return bool(asked)


def _other_algorithms(algorithm: str) -> Iterator[Misreading]:
    """The algorithms that one might have implemented instead."""
    for kind in ("average-participating", "average-all", "mifa", "fedvarp", "fedavg"):
        if kind != algorithm:
            made = partial(Case.models, run=reference_run(kind))
            yield Misreading(f"it is {kind}", lambda twin, case, made=made: made(case))
