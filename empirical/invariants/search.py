"""The search for cases in which an implementation breaks an invariant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_number, quote
from fedbounds.empirical.invariants.cases import ChangedArgument, as_array
from fedbounds.empirical.invariants.causes import Misreading, differing_rows, likely_cause
from fedbounds.empirical.invariants.coverage import classes_tried, map_size_classes
from fedbounds.empirical.invariants.report import Counterexample, InvariantVerdict, Report
from fedbounds.empirical.invariants.scope import (
    REFERENCE,
    ROUND_OFF,
    SINGLE_PRECISION,
    Feature,
    InvariantSides,
    scope_of,
    unused_features,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


SHARED = 400  # cases that break one invariant and are tested on the others
SHRINKING = 400  # cases tested to shrink one counterexample; 0 for no shrinking

_DRAWN: WeakKeyDictionary[Any, dict[tuple[int, int], list[tuple[Any, int | None]]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Subject:
    """An implementation under test, and its reference.

    Args:
        run: the implementation.
        outcome: from a case and a run to the outcome of the run.
        twin: the reference implementation.
        features: optional features of an implementation.
        misreadings: known mistakes, as changes of the reference.
        algorithm: the kind of algorithm that it implements.
    """

    run: Callable[..., Any]
    outcome: Callable[[Any, Callable[..., Any]], np.ndarray]
    twin: Callable[..., Any]
    features: Sequence[Feature] = ()
    misreadings: Sequence[Misreading] = ()
    algorithm: str = "generalized-fedavg"

    def __call__(self, case: Any) -> np.ndarray:
        """The outcome of the run in a case."""
        return self.outcome(case, self.run)


def check(
    subject: Subject,
    first: Any,
    called: str,
    known: Mapping[str, Callable[..., InvariantSides]],
    default: str,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float | None = None,
) -> Report:
    """The check of a paper's invariants: select cases and invariants, try the run, search."""
    strategy = strategy_of(cases, default)
    chosen = select_invariants(known, invariants)
    own = try_out(subject, first, strategy, f"the run raised {{}}; it is called as {called}")
    return search(subject, chosen, strategy, examples, seed, own if tolerance is None else tolerance)


def search(
    subject: Subject,
    chosen: Mapping[str, Callable[..., InvariantSides]],
    strategy: SearchStrategy[Any],
    examples: int,
    seed: int,
    tolerance: float,
) -> Report:
    """Look for cases that break the chosen invariants, and shrink them.

    Args:
        subject: what is tested.
        chosen: the invariants by name, each from an `execute` and a case to two sides.
        strategy: of the cases.
        examples: how many cases to try.
        seed: of the search.
        tolerance: largest difference, relative to the larger of 1 and the largest entry.

    Raises:
        FedboundsError: a number outside its range.
    """
    examples, seed = check_count("examples", examples), check_count("seed", seed, low=0)
    tolerance = check_number("tolerance", tolerance, low=0)
    few = max(1, examples - len(classes_tried(strategy, examples)))  # the rest are one of each size class
    drawn = _draw_cases(strategy, examples, few, seed)
    without = unused_features(subject.run, subject.features, [case for case, _ in drawn], subject)
    for feature in without:
        strategy = map_size_classes(strategy, lambda cases, left_out=feature.without: cases.map(left_out))
        drawn = [(feature.without(case), place) for case, place in drawn]
    classes = classes_tried(strategy, examples)
    tried = [case for case, _ in drawn]
    skipped = {
        name: why
        for name, invariant in chosen.items()
        if (why := scope_of(invariant).why_not(tried, subject.algorithm, tolerance)) is not None
    }
    held = dict.fromkeys(chosen, 0)
    found: dict[str, tuple[Counterexample, int | None]] = {}
    for case, place in drawn:
        outcomes = cache(subject)  # each case once: a case equals nothing but itself
        for name in chosen:
            if name in found or (name in skipped and name != REFERENCE):
                continue  # what is no full comparison with the reference can break it
            counterexample = _counterexample(chosen[name], outcomes, case, tolerance)
            if counterexample is None:
                held[name] += 1
            else:
                found[name] = counterexample, place
    smallest: dict[str, Counterexample] = {}
    seen: list[Any] = []  # cases that break something, met on the way to smaller ones
    for name, (first, place) in found.items():

        def break_it(case: Any, name: str = name) -> Counterexample | None:
            broken = _counterexample(chosen[name], cache(subject), case, tolerance)
            seen.extend([case] if broken else [])
            return broken

        if place is not None and (shared := _first_broken(seen, break_it)):  # large cases are shrunk once for all
            smallest[name] = shared
            continue
        # the same seed comes to the same small counterexample, and from there to smaller ones
        where = strategy if place is None else classes[place].up_to
        shrunk = _shrink(where, lambda case: break_it(case) is not None, few, seed)
        smallest[name] = (shrunk and break_it(shrunk)) or first  # not everything breaks twice
    _share_counterexamples(smallest, seen, chosen, subject, tolerance)
    twin = replace(subject, run=subject.twin)
    verdicts = []
    for name, invariant in chosen.items():
        missing = scope_of(invariant).lacking or (skipped.get(name) if name == REFERENCE else None)
        if missing is None and not (held[name] or name in found or name in skipped):
            missing = "no case was drawn"
        missing = None if name in found else missing
        statement, counterexample = (inspect.getdoc(invariant) or "").split("\n")[0], smallest.get(name)
        verdicts.append(InvariantVerdict(name, statement, held[name], counterexample, skipped.get(name), missing))
    return Report(
        tuple(verdicts),
        likely_cause(smallest, tried, subject, twin, subject.misreadings, tolerance) if smallest else None,
        tuple(feature.description for feature in without),
    )


def _draw_cases(strategy: SearchStrategy[Any], examples: int, few: int, seed: int) -> list[tuple[Any, int | None]]:
    """The cases to try, a few small ones first, then one of each size class with its place; drawn once."""
    known = _DRAWN.setdefault(strategy, {})
    if (examples, seed) not in known:
        drawn: list[tuple[Any, int | None]] = []
        _find(strategy, lambda case: bool(drawn.append((case, None))), few, seed, shrink=False)
        for place, each in enumerate(classes_tried(strategy, examples)):
            several: list[Any] = []  # the first that hypothesis draws is the simplest, which shows the least
            _find(each.exact, lambda case, several=several: bool(several.append(case)), 2, seed, shrink=False)
            drawn.extend((case, place) for case in several[-1:])
        known[examples, seed] = drawn
    return known[examples, seed]


def _first_broken(
    seen: Sequence[Any], break_it: Callable[[Any], Counterexample | None], most: int = 20
) -> Counterexample | None:
    """The counterexample of the smallest of the first cases that breaks something; None if none does."""
    return next((broken for case in sorted(seen, key=_size)[:most] if (broken := break_it(case))), None)


def _share_counterexamples(
    found: dict[str, Counterexample],
    seen: Sequence[Any],
    chosen: Mapping[str, Callable[..., InvariantSides]],
    subject: Subject,
    tolerance: float,
) -> None:
    """Try every broken invariant on small cases that break another, and keep the smallest that breaks it."""
    cases = sorted(seen, key=_size)
    for name, own in found.items():
        for case in cases[:SHARED]:
            if _size(case) >= _size(own.drawn):
                break
            smaller = _counterexample(chosen[name], cache(subject), case, tolerance)
            if smaller is not None:
                found[name] = smaller
                break


def _size(case: Any) -> int:
    """The length of a case in print."""
    return len(str(case))


def select_invariants(
    known: Mapping[str, Callable[..., InvariantSides]], names: Sequence[str] | None
) -> dict[str, Any]:
    """The invariants of these names; all if there are no names."""
    names = tuple(known) if names is None else names
    if isinstance(names, str) or not names:
        raise FedboundsError(f"invariants = {quote(names)} must be a list of names, such as [{next(iter(known))!r}]")
    for name in names:
        if name not in known:
            raise unknown_name("invariant", str(name), known)
    return {name: known[name] for name in names}


def strategy_of(cases: SearchStrategy[Any] | None, default: str, **wanted: Any) -> SearchStrategy[Any]:
    """The given strategy, or the one that the function of this dotted name returns."""
    module, _, name = default.rpartition(".")
    made = getattr(import_module(module), name)  # late: it needs the extra
    from hypothesis.strategies import SearchStrategy

    strategy = made(**wanted) if cases is None else cases
    if not isinstance(strategy, SearchStrategy):
        raise FedboundsError(f"cases = {quote(cases)} must be a strategy, like {default}()")
    return strategy


def try_out(subject: Subject, first: Any, strategy: SearchStrategy[Any], message: str) -> float:
    """The default tolerance, after first runs: if two cases fail, the run does not follow the protocol."""
    returned: list[Any] = []

    def record_result(*arguments: Any, **numbers: Any) -> Any:
        returned.append(subject.run(*arguments, **numbers))
        return returned[-1]

    def find_error(case: Any) -> Exception | None:
        try:
            subject.outcome(case, record_result)
        except ChangedArgument:  # it follows the protocol; the invariants report the change
            return None
        except Exception as error:
            return error
        return None

    error = find_error(first)
    if error is not None and find_error(_find(strategy, lambda case: True, 1, seed=0, shrink=False)) is not None:
        if isinstance(error, FedboundsError):
            raise error
        unused = isinstance(error, TypeError) and "unexpected keyword argument" in str(error)
        remedy = "; add **_ to its parameters for arguments that it does not use" if unused else ""
        raise FedboundsError(message.format(_one_line(error)) + remedy) from error
    return SINGLE_PRECISION if as_array(returned[-1]).dtype == np.float32 else ROUND_OFF


def _counterexample(
    invariant: Callable[..., InvariantSides], outcomes: Callable[[Any], np.ndarray], case: Any, tolerance: float
) -> Counterexample | None:
    ran = [case]

    def execute(other: Any) -> np.ndarray:
        ran.append(other)
        return outcomes(other)

    try:
        sides = invariant(execute, case)
    except FedboundsError as error:
        return Counterexample(ran[-1], str(error), drawn=case)
    except Exception as error:
        return Counterexample(ran[-1], f"the run raised {_one_line(error)}", drawn=case)
    far = differing_rows(sides, tolerance)
    if not far.any():
        return None
    t = int(far.argmax())
    got, expected = _rows(sides.got[t], sides.expected[t])
    message = f"at t = {t}: {got}, expected {expected}"
    return Counterexample(case if sides.case is None else sides.case, message, sides, drawn=case)


def _shrink(strategy: SearchStrategy[Any], breaks: Callable[[Any], bool], examples: int, seed: int) -> Any:
    """The smallest of the first `SHRINKING` cases that breaks the invariant; None if none does."""
    if not SHRINKING:
        return None
    broken: list[Any] = []
    left = iter(range(SHRINKING))

    def test_case(case: Any) -> bool:
        if next(left, None) is None or not breaks(case):
            return False
        broken.append(case)
        return True

    return _find(strategy, test_case, examples, seed) or min(broken, key=_size, default=None)


def _find(
    strategy: SearchStrategy[Any], condition: Callable[[Any], bool], examples: int, seed: int, shrink: bool = True
) -> Any:
    """The smallest case that hypothesis finds to meet the condition, if any; with one seed it tries the same cases."""
    from hypothesis import Phase, Verbosity, find, settings
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable

    def holds(case: Any) -> bool:  # by name: hypothesis looks for the source of a lambda, which takes long
        return condition(case)

    quiet = settings(
        max_examples=examples,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
    )
    try:
        return find(strategy, holds, settings=quiet, random=Random(seed))
    except (NoSuchExample, Unsatisfiable, Flaky):  # flaky: a run that is not deterministic
        return None


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _rows(got: np.ndarray, expected: np.ndarray) -> tuple[str, str]:
    """Two rows in six digits, or in as many as are needed to see a difference."""
    for digits in range(6, 18):
        rows = ["[" + ", ".join(f"{value:.{digits}g}" for value in row) + "]" for row in (got, expected)]
        if rows[0] != rows[1]:
            break
    return rows[0], rows[1]
