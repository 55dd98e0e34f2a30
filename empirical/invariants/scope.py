"""The two sides of an invariant, the cases to which it applies, and the features that a run does not use.

An invariant may simplify a case, but not use features that no case has. It declares what it needs; if no case has that,
it is skipped with the reason.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

REFERENCE = "reference twin"  # the invariant without which no report is a pass
ROUND_OFF = 1e-9
SINGLE_PRECISION = 1e-4


class InvariantSides(NamedTuple):
    """The two sides of an invariant, row by row, and the runs that they come from.

    Args:
        got: what the run made of a case.
        expected: what it should have made.
        within: how far apart they may be, relative to their size.
        case: the case of which `got` is what the run made; None for the case that the invariant was given.
        against: the case that `expected` comes from, if it comes from one other run.
        via: what is done to the models of that run to get `expected`, such as "moved by [1]"; nothing if empty.
    """

    got: np.ndarray
    expected: np.ndarray
    within: float = ROUND_OFF
    case: Any = None
    against: Any = None
    via: str = ""


@dataclass(frozen=True)
class Need:
    """A property that some case must have for an invariant to apply."""

    description: str  # what it is, such as "a multiplier other than 1"
    is_met: Callable[[Any], bool]  # whether a case has it
    remedy: str = ""  # how to ask for such cases, where the default cases have none


@dataclass(frozen=True)
class Scope:
    """What an invariant applies to."""

    needs: tuple[Need, ...] = ()  # each must be met by some case
    algorithms: frozenset[str] | None = None  # the kinds of algorithm that it holds for; None for all
    tolerance: float = math.inf  # the largest with which it differs from round-off
    # what the caller must give for the comparison with the reference, such as "give cutoff="; nothing if empty.
    # What is tried without it can break the invariant, and cannot verify it
    lacking: str = ""
    exempt: frozenset[str] = frozenset()  # the kinds of algorithm that it does not hold for

    def why_not(self, cases: Sequence[Any], algorithm: str, tolerance: float) -> str | None:
        """Why it does not apply to these cases, this algorithm and this tolerance; None if it does."""
        if self.algorithms is not None and algorithm not in self.algorithms:
            return f"it is no property of {algorithm}; it holds for {', '.join(sorted(self.algorithms))}"
        if algorithm in self.exempt:
            return f"it is no property of {algorithm}"
        if tolerance > self.tolerance:
            return f"it needs double precision, and the tolerance is {tolerance:g}"
        for need in self.needs:
            if not any(need.is_met(case) for case in cases):
                return f"no case has {need.description}" + (f"; {need.remedy}" if need.remedy else "")
        return None


Checked = TypeVar("Checked", bound=Callable[..., InvariantSides])


def declare_scope(
    *needs: Need,
    algorithms: frozenset[str] | None = None,
    tolerance: float = math.inf,
    lacking: str = "",
    exempt: frozenset[str] = frozenset(),
) -> Callable[[Checked], Checked]:
    """Declare the scope of an invariant."""

    def decorate(invariant: Checked) -> Checked:
        invariant.__dict__["scope"] = Scope(needs, algorithms, tolerance, lacking, exempt)
        return invariant

    return decorate


def scope_of(invariant: Callable[..., InvariantSides]) -> Scope:
    """The scope that an invariant declares; everything by default."""
    return getattr(invariant, "scope", Scope())


@dataclass(frozen=True)
class Feature:
    """An optional feature of implementations."""

    name: str  # its parameter
    description: str  # the description of cases without it, such as "no multiplier (eta = 1)"
    without: Callable[[Any], Any]  # removes it from a case


def unused_features(
    run: Callable[..., Any], features: Sequence[Feature], cases: Sequence[Any], execute: Callable[[Any], np.ndarray]
) -> tuple[Feature, ...]:
    """The features that a run does not use: it has no such parameter, and no case depends on it.

    A parameter that is named and ignored is a bug.
    """
    named = _names(run)
    if named is None:
        return ()
    return tuple(
        feature for feature in features if feature.name not in named and _is_irrelevant(feature, cases, execute)
    )


def _is_irrelevant(feature: Feature, cases: Sequence[Any], execute: Callable[[Any], np.ndarray]) -> bool:
    pairs = [(case, feature.without(case)) for case in cases]
    pairs = [(case, plain) for case, plain in pairs if str(case) != str(plain)]
    try:
        return bool(pairs) and all(np.array_equal(execute(case), execute(plain)) for case, plain in pairs)
    except Exception:  # the invariants report it
        return False


def parameter_names(run: Callable[..., Any]) -> set[str]:
    """The names of a run's parameters; empty if unknown."""
    try:
        return set(inspect.signature(run).parameters)
    except (TypeError, ValueError):
        return set()


def accepted_numbers(run: Callable[..., Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that a run accepts, by name or by `**`."""
    if not numbers:
        return {}
    return {name: value for name, value in numbers.items() if _names(run) is not None or name in parameter_names(run)}


def _names(run: Callable[..., Any]) -> set[str] | None:
    """The names of a run's parameters; None if unknown, or if it does not accept `**`."""
    try:
        parameters = inspect.signature(run).parameters.values()
    except (TypeError, ValueError):
        return None
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return {parameter.name for parameter in parameters}
