r"""What must hold for any implementation of generalized FedAvg, and a search for runs for which it does not.

Each invariant is a function of an `execute` (a case to its models) and a `Case`; it returns two arrays that must be
equal, row by row. `check_invariants` looks for a case in which they are not, and shrinks it. The protocol of a run is
that of `empirical.cases`. $\Delta_t^n$ is the update of client n, $q_t^n$ its weight, $\eta$ the multiplier, P the
interval, and $t_0$ starts an interval.

Source: Wang & Ji 2022, *A Unified Analysis of Federated Learning with Arbitrary Client Participation*, Algorithm 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bounds.checks import check_count, check_number, quote
from bounds.errors import FedboundsError, unknown_name
from empirical.cases import Case, PlainProblem, Run
from empirical.problems import Quadratic
from empirical.strategies import cases as all_cases

ROUND_OFF = 1e-9
SMALL = 2.0**-24  # the step size that stands for its limit 0


class Sides(NamedTuple):
    """The two sides of an invariant, (rows, d) each, and how far apart they may be, relative to their size."""

    got: np.ndarray
    expected: np.ndarray
    within: float = ROUND_OFF


Execute = Callable[[Case], np.ndarray]
Property = Callable[[Execute, Case], Sides]


def generalized_fedavg(
    problem: PlainProblem,
    weights: np.ndarray,
    *,
    rounds: int,
    step_size: float,
    local_steps: int,
    multiplier: float = 1.0,
    interval: int = 1,
    seed: int = 0,
) -> np.ndarray:
    """Algorithm 1 as the paper prints it, with the accumulator u: the reference twin, and an example of a run.

    Args:
        problem: the clients.
        weights: $q_t^n$, (T, N).
        rounds: T.
        step_size: $\\gamma$, unit x^2/f.
        local_steps: I.
        multiplier: $\\eta$.
        interval: P.
        seed: not used; the noise is given by the problem.

    Returns:
        $x_0, \\dots, x_T$, (T + 1, d).

    Example:
        >>> from empirical.problems import toy_example
        >>> toy = PlainProblem.of(toy_example())
        >>> generalized_fedavg(toy, np.eye(3), rounds=3, step_size=0.5, local_steps=1)[1]
        array([0., 1.])

    Source: Wang & Ji 2022, Algorithm 1.
    """
    x = [problem.x0]
    t0, u = 0, np.zeros(problem.dimension)
    for t in range(rounds):
        step = np.zeros(problem.dimension)
        for n in range(problem.clients):
            y = x[t]
            for i in range(local_steps):
                y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, i))
            step = step + weights[t, n] * (y - x[t])
        x.append(x[t] + step)
        u = u + step
        if t + 1 - t0 == interval:
            x[t + 1] = x[t + 1] + (multiplier - 1) * u
            t0, u = t + 1, np.zeros(problem.dimension)
    return np.stack(x)


# --- the amplification ------------------------------------------------------------------------------------


def anchor_form(execute: Execute, case: Case) -> Sides:
    r"""An interval ends at its anchor plus eta times its un-amplified progress, and knows nothing else of the past.

    $$x_{t_0+P} = x_{t_0} + \eta(\hat x_{t_0+P} - x_{t_0}), \qquad x_t = \hat x_t \text{ for } t_0 < t < t_0 + P,$$

    with $\hat x$ the run from $x_{t_0}$ with $\eta = 1$: the form without an accumulator.
    """
    got = execute(case)
    expected = got.copy()
    for t0 in range(0, case.rounds, case.interval):
        later = case.restarted(t0, got[t0])
        plain = execute(replace(later, weights=later.weights[: case.interval], multiplier=1.0))
        expected[t0 + 1 : t0 + len(plain)] = plain[1:]
        if len(plain) == case.interval + 1:
            expected[t0 + case.interval] = got[t0] + case.multiplier * (plain[-1] - got[t0])
    return Sides(got, expected)


def summed_displacements(execute: Execute, case: Case) -> Sides:
    r"""The model is where it began, plus eta times what complete intervals moved, plus what the last rounds moved.

    $$x_t = x_0 + \eta\sum_{k\text{ complete}} u_k + u_{\text{tail}}, \qquad u_k = \sum_{t\in k}\sum_n q_t^n\Delta_t^n$$
    """
    got = execute(case)
    complete, tail = np.zeros_like(got[0]), np.zeros_like(got[0])
    expected = [case.problem.x0]
    for t in range(case.rounds):
        tail = tail + case.step(t, got[t])
        if case.ends(t):
            complete, tail = complete + tail, np.zeros_like(tail)
        expected.append(case.problem.x0 + case.multiplier * complete + tail)
    return Sides(got, np.stack(expected))


def plain_multiplier(execute: Execute, case: Case) -> Sides:
    r"""With eta = 1 the interval plays no role: $x_t(\eta=1, P) = x_t(\eta=1, 1)$."""
    plain = replace(case, multiplier=1.0)
    return Sides(execute(plain), execute(replace(plain, interval=1)))


def two_sided_step_sizes(execute: Execute, case: Case) -> Sides:
    r"""With P = 1, eta is a second step size, at the server: $x_{t+1} = x_t + \eta\sum_n q_t^n\Delta_t^n$."""
    each = replace(case, interval=1)
    got = execute(each)
    steps = [case.multiplier * case.step(t, got[t]) for t in range(case.rounds)]
    return Sides(got, np.stack([case.problem.x0, *(got[:-1] + steps)]))


def frozen_gradient_limit(execute: Execute, case: Case) -> Sides:
    r"""As gamma tends to 0 with kappa = gamma eta fixed, all gradients are taken where the interval began.

    $$x_{t_0+P} \to x_{t_0} - \kappa\sum_{t=t_0}^{t_0+P-1}\sum_n q_t^n\sum_{i<I}g_n(x_{t_0})$$

    Computed with $\eta = 2^{24}$, and compared to three digits.
    """
    got = execute(replace(case, step_size=SMALL * case.step_size, multiplier=1 / SMALL))
    x, progress = case.problem.x0, np.zeros(case.problem.dimension)
    expected, problem = [x], case.problem
    for t in range(case.rounds):
        for n in range(problem.clients):
            gradients = [problem.gradient(n, x) + problem.noise(t, n, i) for i in range(case.local_steps)]
            progress = progress - case.step_size * case.weights[t, n] * np.sum(gradients, axis=0)
        if case.ends(t):
            x, progress = x + progress, np.zeros_like(x)
        expected.append(x)
    return Sides(got, np.stack(expected), within=1e-3)


# --- one round --------------------------------------------------------------------------------------------


def averaged_models(execute: Execute, case: Case) -> Sides:
    r"""Before amplification the model is the mean of the participants' models, $x_{t+1} = \sum_n q_t^n y_{t,I}^n$.

    This needs weights that sum to one. Checked in the rounds that do not end an interval, of at least two rounds.
    """
    return _mean_of_models(execute, case)


def weights_as_given(execute: Execute, case: Case) -> Sides:
    r"""Weights that do not sum to one are applied as they are: $x_{t+1} = \sum_n q_t^n y_{t,I}^n + (1-\sum_n q_t^n)x_t$.

    So the model is the participants' mean only where the weights sum to one, and stays where it is in a round without
    participants. Outside the theory: leave it out for a run that normalises its weights or refuses others.
    """
    sums = np.resize([0.5, 0.0, 1.5], case.rounds)
    return _mean_of_models(execute, replace(case, weights=case.weights * sums[:, None]))


def _mean_of_models(execute: Execute, case: Case) -> Sides:
    case = replace(case, interval=max(case.interval, 2))
    got = execute(case)
    expected = got.copy()
    for t in range(case.rounds):
        if not case.ends(t):
            models = np.stack([got[t] + case.update(t, n, got[t]) for n in range(case.problem.clients)])
            expected[t + 1] = case.weights[t] @ models + (1 - case.weights[t].sum()) * got[t]
    return Sides(got, expected)


# --- clients ----------------------------------------------------------------------------------------------


def absent_clients(execute: Execute, case: Case) -> Sides:
    r"""A client whose weight is always zero changes nothing, whether it is computed or skipped.

    The absent client is a copy of another with its gradients and noise doubled. Noise that depends on how many
    clients were computed before is found too.
    """
    N, old = case.problem.clients, case.problem
    more = case.renamed(np.append(0, np.arange(N)), np.hstack([np.zeros((case.rounds, 1)), case.weights]))
    twice = np.where(np.arange(N + 1) == 0, 2.0, 1.0)
    problem = replace(
        more.problem,
        hessians=twice[:, None, None] * more.problem.hessians,
        slopes=twice[:, None] * (more.problem.slopes + 1.0) - 1.0,
        noises=None if old.noises is None else twice[:, None, None] * more.problem.noises,
    )
    return Sides(execute(replace(more, problem=problem)), execute(case))


def relabelled_clients(execute: Execute, case: Case) -> Sides:
    r"""Renaming the clients, together with their weights and their noise, changes nothing."""
    order = np.roll(np.arange(case.problem.clients), 1)
    return Sides(execute(case.renamed(order, case.weights[:, order])), execute(case))


def split_clients(execute: Execute, case: Case) -> Sides:
    r"""Two copies of a client whose weights add up to the client's are the client: $q = \frac14q + \frac34q$."""
    who = np.tile(np.arange(case.problem.clients), 2)
    return Sides(execute(case.renamed(who, np.hstack([case.weights / 4, 3 * case.weights / 4]))), execute(case))


# --- coordinates and units --------------------------------------------------------------------------------


def translation(execute: Execute, case: Case) -> Sides:
    r"""Moving the origin moves every model: $F_n(\cdot - s)$ and $x_0 + s$ give $x_t + s$."""
    shift = np.arange(1.0, case.problem.dimension + 1)
    return Sides(execute(case.translated(shift)), execute(case) + shift)


def rotation(execute: Execute, case: Case) -> Sides:
    r"""An orthogonal change of coordinates commutes with the run: $F_n(U^\top\cdot)$ and $Ux_0$ give $Ux_t$."""
    v = np.arange(1.0, case.problem.dimension + 1)
    mirror = np.eye(len(v)) - 2 * np.outer(v, v) / (v @ v)
    return Sides(execute(case.rotated(mirror)), execute(case) @ mirror)


def scaling(execute: Execute, case: Case) -> Sides:
    r"""Only gamma times the gradients matters: $(F_n, g_n, \gamma) \to (aF_n, ag_n, \gamma/a)$ changes nothing."""
    return Sides(execute(case.scaled(3.0)), execute(case))


# --- randomness -------------------------------------------------------------------------------------------


def determinism(execute: Execute, case: Case) -> Sides:
    r"""The same case run again, with the same seed, gives the same models."""
    return Sides(execute(replace(case)), execute(case))


def seed_without_noise(execute: Execute, case: Case) -> Sides:
    r"""Where the noise is given ($\sigma = 0$: there is none), nothing is random: the seed plays no role."""
    return Sides(execute(replace(case, seed=case.seed + 1)), execute(case))


def agreement_with(twin: Run) -> Property:
    """The invariant that a run and another implementation give the same models."""

    def reference_twin(execute: Execute, case: Case) -> Sides:
        """The models are those of the reference twin, by default Algorithm 1 as the paper prints it."""
        return Sides(execute(case), case.models(twin))

    return reference_twin


INVARIANTS: Mapping[str, Property] = {
    held.__name__.replace("_", " "): held
    for held in (
        anchor_form,
        summed_displacements,
        plain_multiplier,
        two_sided_step_sizes,
        frozen_gradient_limit,
        averaged_models,
        weights_as_given,
        absent_clients,
        relabelled_clients,
        split_clients,
        translation,
        rotation,
        scaling,
        determinism,
        seed_without_noise,
        agreement_with(generalized_fedavg),
    )
}


# --- the search -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A case in which an invariant does not hold.

    Args:
        case: to be run again with `case.models(run)`.
        told: what is wrong, in one line.
        sides: the two sides that should be equal; None if the run raised.
    """

    case: Case
    told: str
    sides: Sides | None = None


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the search found about one invariant.

    Args:
        name: of the invariant.
        statement: what it says, in one sentence.
        examples: how many cases it held for, before the counterexample if there is one.
        counterexample: the smallest that was found; None if none was.
    """

    name: str
    statement: str
    examples: int
    counterexample: Counterexample | None = None

    @property
    def status(self) -> str:
        """In words: "held" or "broken"."""
        return "held" if self.counterexample is None else "broken"

    def __str__(self) -> str:
        if self.counterexample is None:
            return f"held    {self.name} ({self.examples} examples)"
        found = self.counterexample
        lines = [self.statement, "smallest counterexample:", *str(found.case).splitlines(), found.told]
        return "\n          ".join([f"BROKEN  {self.name}", *lines])


class BrokenInvariant(AssertionError):
    """Some invariant does not hold; the message is the report."""


@dataclass(frozen=True, eq=False)
class Report:
    """A verdict for each invariant. It prints as one block; it has no truth value.

    Example:
        >>> report = check_invariants(generalized_fedavg, invariants=["translation", "rotation"], examples=10)
        >>> print(report)
        2 invariants, none broken
        held    translation (10 examples)
        held    rotation (10 examples)
        >>> report["rotation"].status
        'held'
    """

    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """The verdicts of the invariants that do not hold."""
        return tuple(verdict for verdict in self.verdicts if verdict.counterexample is not None)

    def raise_if_broken(self) -> None:
        """For tests.

        Raises:
            BrokenInvariant: some invariant does not hold; the message is the whole report.
        """
        if self.broken:
            raise BrokenInvariant(str(self))

    def __getitem__(self, name: str) -> Verdict:
        for verdict in self.verdicts:
            if verdict.name == name:
                return verdict
        raise unknown_name("invariant", name, [verdict.name for verdict in self.verdicts])

    def __bool__(self) -> NoReturn:
        raise TypeError("a report has no truth value; use report.raise_if_broken() or report.broken")

    def __str__(self) -> str:
        head = f"{len(self.verdicts)} invariants, {len(self.broken) or 'none'} broken"
        return "\n".join([head, *(str(verdict) for verdict in self.verdicts)])


def check_invariants(
    run: Run,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    twin: Run = generalized_fedavg,
    cases: Any = None,
    tolerance: float = ROUND_OFF,
) -> Report:
    r"""Look for cases in which a run breaks the invariants of generalized FedAvg, and shrink them.

    Args:
        run: a function `run(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed)` that
            returns the models $x_0,\dots,x_T$ as an array (T + 1, d); see `empirical.cases` for what it is given.
        invariants: names of `INVARIANTS`; all if not given.
        examples: how many cases to try.
        seed: of the search; the same seed finds the same.
        twin: what the run must agree with, in the invariant "reference twin".
        cases: a strategy of `Case`; that of `empirical.strategies.cases()`, without noise, if not given.
        tolerance: largest difference between equal models, relative to the larger of 1 and their largest entry.
            For a run that computes in float32, take 1e-4 and leave out "frozen gradient limit".

    Returns:
        A verdict for each invariant: held, for how many examples, or broken, with the smallest counterexample found.
        A run that raises, or whose models are not finite, is broken there.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a run that returns something else than
            models.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> def forgets_to_amplify(problem, weights, **numbers):
        ...     return generalized_fedavg(problem, weights, **numbers | {"multiplier": 1.0})
        >>> report = check_invariants(forgets_to_amplify, examples=20)
        >>> [verdict.name for verdict in report.broken][:2]
        ['anchor form', 'summed displacements']

    Source: Wang & Ji 2022, Algorithm 1.
    """
    chosen = {name: _named(name) for name in (INVARIANTS if invariants is None else invariants)}
    if "reference twin" in chosen:
        chosen["reference twin"] = agreement_with(twin)
    examples, seed = check_count("examples", examples), check_count("seed", seed, low=0)
    tolerance = check_number("tolerance", tolerance, low=0)
    _try_out(run)
    strategy = all_cases() if cases is None else cases

    held, first = dict.fromkeys(chosen, 0), {}

    def visit(case: Case) -> bool:
        execute = _executor(run)
        for name in chosen.keys() - first.keys():
            found = _counterexample(chosen[name], execute, case, tolerance)
            if found is None:
                held[name] += 1
            else:
                first[name] = found
        return len(first) == len(chosen)

    _find(strategy, visit, examples, seed)
    for name, found in first.items():

        def broken(case: Case, name: str = name) -> bool:
            return _counterexample(chosen[name], _executor(run), case, tolerance) is not None

        smallest = _find(strategy, broken, examples, seed)
        again = smallest and _counterexample(chosen[name], _executor(run), smallest, tolerance)
        first[name] = again or found  # a run that is not deterministic may not break twice
    verdicts = (Verdict(name, _statement(chosen[name]), held[name], first.get(name)) for name in chosen)
    return Report(tuple(verdicts))


def _named(name: str) -> Property:
    if name not in INVARIANTS:
        raise unknown_name("invariant", str(name), INVARIANTS)
    return INVARIANTS[name]


def _statement(held: Property) -> str:
    return (inspect.getdoc(held) or "").split("\n")[0]


def _try_out(run: Run) -> None:
    """The first run: what goes wrong here is the protocol, not an invariant."""
    problem = PlainProblem.of(Quadratic([1.0, 0.5], [[1.0, 0.0], [0.0, 1.0]], x0=[2.0, 1.0]))
    case = Case(problem, np.full((2, 2), 0.5), step_size=0.5, local_steps=1, multiplier=2.0, interval=2)
    try:
        case.models(run)
    except FedboundsError:
        raise
    except Exception as error:
        told = "it is called as run(problem, weights, rounds=, step_size=, local_steps=, multiplier=, interval=, seed=)"
        raise FedboundsError(f"run = {quote(run)} raised {_line(error)}; {told}") from error


def _executor(run: Run) -> Execute:
    """Runs each case once."""
    return cache(lambda case: case.models(run))


def _counterexample(held: Property, execute: Execute, case: Case, tolerance: float) -> Counterexample | None:
    try:
        sides = held(execute, case)
    except FedboundsError:
        raise
    except Exception as error:
        return Counterexample(case, f"the run raised {_line(error)}")
    got, expected, within = sides
    size = max(1.0, float(np.abs(expected).max()))
    far = ~(np.abs(got - expected) <= max(tolerance, within) * size).all(axis=1)
    if not far.any():
        return None
    t = int(far.argmax())
    return Counterexample(case, f"at t = {t}: {_row(got[t])}, expected {_row(expected[t])}", sides)


def _find(strategy: Any, condition: Callable[[Case], bool], examples: int, seed: int) -> Case | None:
    """The smallest case that hypothesis finds to meet the condition; the same seed tries the same cases."""
    from hypothesis import HealthCheck, Phase, Verbosity, find, settings
    from hypothesis.errors import NoSuchExample

    quiet = settings(
        max_examples=examples,
        phases=(Phase.generate, Phase.shrink),
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    try:
        return find(strategy, condition, settings=quiet, random=Random(seed))
    except NoSuchExample:
        return None


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _row(model: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in model) + "]"
