"""The search for runs that break an invariant, and what is reported of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bounds.checks import check_count, check_number, quote
from bounds.errors import FedboundsError, unknown_name
from empirical.invariants.cases import Case, PlainProblem, Run
from empirical.invariants.properties import INVARIANTS, ROUND_OFF, Sides, agreement_with
from empirical.invariants.twin import generalized_fedavg
from empirical.problems import Quadratic

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A case in which an invariant does not hold.

    Args:
        case: what was run; `case.models(run)` runs it again, or `case.weights(run)` for weights.
        told: what is wrong, in one line.
        sides: the two sides that should be equal; None if the run did not return models.
    """

    case: Any
    told: str
    sides: Sides | None = None


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the search found about one invariant.

    Args:
        name: of the invariant.
        statement: what it says, in one sentence.
        examples: how many cases it held for.
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
        lines = [f"BROKEN  {self.name}", self.statement, "Smallest counterexample found:"]
        return "\n        ".join([*lines, *(f"  {line}" for line in [*str(found.case).splitlines(), found.told])])


class BrokenInvariant(AssertionError):
    """Some invariant does not hold; the message is the report."""


@dataclass(frozen=True, eq=False)
class Report:
    """A verdict for each invariant; prints as one block, and has no truth value.

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
        verdicts = {verdict.name: verdict for verdict in self.verdicts}
        if name not in verdicts:
            raise unknown_name("invariant", str(name), verdicts)
        return verdicts[name]

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
    cases: SearchStrategy[Case] | None = None,
    tolerance: float = ROUND_OFF,
) -> Report:
    r"""Look for runs of an implementation of generalized FedAvg that break its invariants, and shrink them.

    Args:
        run: a function `run(problem, weights, *, rounds, step_size, local_steps, multiplier, interval, seed)` that
            returns the models $x_0,\dots,x_T$ as an array (T + 1, d); see `empirical.invariants.cases` for what it
            is given.
        invariants: names of `INVARIANTS`; all if not given.
        examples: how many cases to try.
        seed: of the search; the same seed tries the same cases.
        twin: what the run must agree with, in the invariant "reference twin": another implementation of yours, say.
        cases: a strategy of `Case`; that of `empirical.strategies.cases()`, without noise, if not given.
        tolerance: largest difference between equal models, relative to the larger of 1 and their largest entry. For
            a run that computes in float32, take 1e-4 and leave out "frozen gradient limit".

    Returns:
        A verdict for each invariant: held, for so many examples, or broken, with the smallest counterexample found.
        A run that raises, or whose models are not finite, breaks the invariant that ran it.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a run that cannot be called as said or
            returns something else than models.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> def never_amplifies(problem, weights, **numbers):
        ...     return generalized_fedavg(problem, weights, **numbers | {"multiplier": 1.0})
        >>> report = check_invariants(never_amplifies, invariants=["translation", "two sided step sizes"])
        >>> [verdict.status for verdict in report.verdicts]
        ['held', 'broken']
        >>> report["two sided step sizes"].counterexample.told
        'at t = 1: [0.25], expected [0]'

    Source: Wang & Ji 2022, Algorithm 1.
    """
    strategy = strategy_of(cases, "cases")
    chosen = chosen_from({**INVARIANTS, "reference twin": agreement_with(twin)}, invariants)
    problem = PlainProblem.of(Quadratic([1.0, 0.5], [[1.0, 0.0], [0.0, 1.0]], x0=[2.0, 1.0]))
    first = Case(problem, np.full((3, 2), 0.5), step_size=0.5, local_steps=1, multiplier=2.0, interval=2)
    called = "run(problem, weights, rounds=, step_size=, local_steps=, multiplier=, interval=, seed=)"
    try_out(lambda: first.models(run), f"the run raised {{}}; it is called as {called}")
    return search(chosen, strategy, lambda case: case.models(run), examples, seed, tolerance)


def search(
    chosen: Mapping[str, Callable[..., Sides]],
    strategy: SearchStrategy[Any],
    run_case: Callable[[Any], np.ndarray],
    examples: int,
    seed: int,
    tolerance: float,
) -> Report:
    """Look for cases that break the chosen invariants, and shrink them.

    Args:
        chosen: the invariants by name, each from an `execute` and a case to two sides.
        strategy: of the cases.
        run_case: what a case gives; called once for each.
        examples: how many cases to try.
        seed: of the search.
        tolerance: largest difference, relative to the larger of 1 and the largest entry.

    Raises:
        FedboundsError: a number outside its range.
    """
    examples, seed = check_count("examples", examples), check_count("seed", seed, low=0)
    tolerance = check_number("tolerance", tolerance, low=0)
    held = dict.fromkeys(chosen, 0)
    found: dict[str, Counterexample] = {}

    def visit(case: Any) -> bool:
        execute = cache(run_case)  # each case once: a case equals nothing but itself
        for name in [name for name in chosen if name not in found]:
            counterexample = _counterexample(chosen[name], execute, case, tolerance)
            if counterexample is None:
                held[name] += 1
            else:
                found[name] = counterexample
        return len(found) == len(chosen)

    _find(strategy, visit, examples, seed, shrink=False)
    for name in found:  # the same seed comes to the same counterexample, and from there to smaller ones

        def break_it(case: Any, name: str = name) -> Counterexample | None:
            return _counterexample(chosen[name], cache(run_case), case, tolerance)

        smallest = _find(strategy, lambda case: break_it(case) is not None, examples, seed)
        found[name] = (smallest and break_it(smallest)) or found[name]  # not everything breaks twice
    verdicts = (Verdict(name, _statement(chosen[name]), held[name], found.get(name)) for name in chosen)
    return Report(tuple(verdicts))


def chosen_from(known: Mapping[str, Callable[..., Sides]], names: Sequence[str] | None) -> dict[str, Any]:
    """The invariants of these names; all if there are no names.

    Raises:
        FedboundsError: no list of names, or an unknown one.
    """
    names = tuple(known) if names is None else names
    if isinstance(names, str) or not names:
        raise FedboundsError(f"invariants = {quote(names)} must be a list of names, such as [{next(iter(known))!r}]")
    for name in names:
        if name not in known:
            raise unknown_name("invariant", str(name), known)
    return {name: known[name] for name in names}


def strategy_of(cases: SearchStrategy[Any] | None, name: str) -> SearchStrategy[Any]:
    """The strategy that is given, or that of this name in `empirical.strategies`.

    Raises:
        FedboundsError: what is given is none.
        MissingExtra: hypothesis is not installed.
    """
    from empirical import strategies  # late: it needs the extra

    strategy = getattr(strategies, name)() if cases is None else cases
    if not isinstance(strategy, strategies.SearchStrategy):
        raise FedboundsError(f"cases = {quote(cases)} must be a strategy, like empirical.strategies.{name}()")
    return strategy


def try_out(first: Callable[[], object], told: str) -> None:
    """The first run: what goes wrong here is the protocol, not an invariant.

    Args:
        first: runs it.
        told: where it raises something, with {} for that.

    Raises:
        FedboundsError: as told, or what the case itself has to say of the run.
    """
    try:
        first()
    except FedboundsError:
        raise
    except Exception as error:
        raise FedboundsError(told.format(_line(error))) from error


def _statement(invariant: Callable[..., Sides]) -> str:
    return (inspect.getdoc(invariant) or "").split("\n")[0]


def _counterexample(
    invariant: Callable[..., Sides], execute: Callable[[Any], np.ndarray], case: Any, tolerance: float
) -> Counterexample | None:
    try:
        sides = invariant(execute, case)
    except FedboundsError as error:
        return Counterexample(case, str(error))
    except Exception as error:
        return Counterexample(case, f"the run raised {_line(error)}")
    got, expected, within = sides
    size = max(1.0, float(np.abs(got).max()))  # models are finite; what is expected of them may overflow
    far = ~(np.abs(got - expected) <= max(tolerance, within) * size).all(axis=1)
    if not far.any():
        return None
    t = int(far.argmax())
    return Counterexample(case, f"at t = {t}: {_row(got[t])}, expected {_row(expected[t])}", sides)


def _find(
    strategy: SearchStrategy[Any], condition: Callable[[Any], bool], examples: int, seed: int, shrink: bool = True
) -> Any:
    """The smallest case that hypothesis finds to meet the condition, if any; with one seed it tries the same cases."""
    from hypothesis import Phase, Verbosity, find, settings
    from hypothesis.errors import Flaky, NoSuchExample

    quiet = settings(
        max_examples=examples,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
    )
    try:
        return find(strategy, condition, settings=quiet, random=Random(seed))
    except (NoSuchExample, Flaky):  # flaky: a run that is not deterministic
        return None


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _row(model: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in model) + "]"
