"""The likely cause of broken invariants: the one known mistake that explains every case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedbounds.empirical.invariants.report import Counterexample
from fedbounds.empirical.invariants.scope import SINGLE_PRECISION, InvariantSides

Outcome = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Misreading:
    """A known mistake, as a change of the reference."""

    description: str  # what such a run does, such as "it ignores the multiplier"
    as_if: Callable[[Outcome, Any], np.ndarray]  # from the reference and a case to the outcome with the mistake
    remedy: str = ""  # what to do if it is intended


def differing_rows(sides: InvariantSides, tolerance: float) -> np.ndarray:
    """Which rows differ by more than the tolerance, booleans; expected values may be infinite."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = max(1.0, float(np.abs(sides.got).max()))
        return np.any(~(np.abs(sides.got - sides.expected) <= max(tolerance, sides.within) * size), axis=1)


def likely_cause(
    found: Mapping[str, Counterexample],
    drawn: Sequence[Any],
    outcome: Outcome,
    twin: Outcome,
    misreadings: Sequence[Misreading],
    tolerance: float,
) -> str | None:
    """The likely cause in one line, or None where a single invariant is broken for no known reason.

    A known mistake is a cause only if it explains the outcomes in all tested cases.
    """
    raised = [counterexample.message for counterexample in found.values() if counterexample.sides is None]
    if found and len(raised) == len(found):
        return f"it gives no models in some cases: {raised[0]}" if len(raised) > 1 else None
    for name in ("determinism", "repeated", "seed without noise"):
        if name in found and len(found) > 1:
            return f"it is random where nothing should be: begin with {name!r}, the others may follow from it"
    sides = [counterexample.sides for counterexample in found.values() if counterexample.sides is not None]
    close = not any(differing_rows(each, SINGLE_PRECISION).any() for each in sides if each.within < SINGLE_PRECISION)
    if not raised and close and all(np.array_equal(each.got, each.got.astype(np.float32)) for each in sides):
        return f"the sides differ by round-off: if it computes in single precision, pass tolerance={SINGLE_PRECISION}"
    cases = [case for each in found.values() for case in (each.case, each.drawn)] + list(drawn)
    for misreading in misreadings:
        if _explains(misreading, cases, outcome, twin, tolerance):
            return misreading.description + (f" ({misreading.remedy})" if misreading.remedy else "")
    if len(found) == 1:
        return None
    smallest = min(found, key=lambda name: len(str(found[name].case)))
    return f"not among the known mistakes; begin with {smallest!r}, whose counterexample is the smallest to read"


def _explains(misreading: Misreading, cases: Sequence[Any], outcome: Outcome, twin: Outcome, tolerance: float) -> bool:
    """Whether the reference with the mistake equals the run in all cases, and the reference does not."""
    differs = False
    for case in cases:
        try:
            got = outcome(case)
            if differing_rows(InvariantSides(got, misreading.as_if(twin, case)), tolerance).any():
                return False
            differs |= bool(differing_rows(InvariantSides(got, twin(case)), tolerance).any())
        except Exception:  # a run, or a reference with a mistake, may fail
            return False
    return differs
