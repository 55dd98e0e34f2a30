"""What no choice of the free constants can mend, decided before anything is searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.evaluation.expression_tree import Tree, as_tree, names_in
from fedbounds.bounds.evaluation.program import ROUNDING, holds
from fedbounds.bounds.search.arb_enclosures import nowhere
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose, Interval, enclose, fixed_value
from fedbounds.bounds.search.partial_evaluation import Partial, SearchCondition

Box = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Infeasibility:
    """Why no choice will do, and whether arithmetic with error bounds confirms it."""

    why: str
    proved: bool


def find_infeasibility(partial: Partial, within: Box, whatever: str = "whatever is chosen") -> Infeasibility | None:
    """A condition that fails, or a term that has no value, at every choice of the free constants; None without one.

    Example:
        >>> from fedbounds.bounds.search.partial_evaluation import leave_free
        >>> from fedbounds.bounds.evaluation.form_cache import as_compiled
        >>> theorem = as_compiled("fedmrn/theorem-1")
        >>> known = dict(L=1, mu=100, sigma=1, G=1, q=0.5, Gamma=0.1, Delta1=1, N=10, K=5, S=2)
        >>> find_infeasibility(leave_free(theorem.form("sharp"), known, ["T"]), {}).why
        'mu <= L fails whatever is chosen: 100 against 1 (kappa = L/mu is at least 1)'
    """
    box = box_of(partial, within)
    why = violated_condition(partial, whatever) or _without_value(partial, whatever)
    if why is None and (failing := _failing(partial, box)) is not None:
        names = [name for name in partial.free if name in names_in(failing.left, failing.right)]
        asked = "".join(f", {within[n][0]:g} <= {n} <= {within[n][1]:g}" for n in names if n in within)
        why = f"no {', '.join(names)} meets {failing.words(partial.result.notation)} ({failing.why}){asked}"
    return None if why is None else Infeasibility(why, nowhere(partial, np.inf, box))


def box_of(partial: Partial, within: Box) -> Box:
    """The ranges of the free constants, or else their domains."""
    domains = {name: partial.result.notation[name].domain for name in partial.free}
    return {name: within.get(name, (domain.low, domain.high)) for name, domain in domains.items()}


def violated_condition(partial: Partial, whatever: str) -> str | None:
    """The first condition without free constants that fails, in words."""
    for c in partial.settled:
        left, right = fixed_value(c.left, partial.values), fixed_value(c.right, partial.values)
        if not holds(np.asarray(left), c.op, np.asarray(right)):
            text = c.words(partial.result.notation)
            return f"{text} fails {whatever}: {left:.6g} against {right:.6g} ({c.why})"
    return None


def _without_value(partial: Partial, whatever: str) -> str | None:
    """The first term with a fixed part that is not a number, such as a root of a negative one."""
    for name, expression in partial.terms.items():
        waiting = [as_tree(expression)]
        while waiting:
            part = waiting.pop()
            if part.names & set(partial.free):
                waiting += part.parts
            elif (
                part.number is None
                and part.parts
                and not _opaque(part, partial)
                and np.isnan(fixed_value(part, partial.values))
            ):
                return f"the {name} has no value {whatever}: {part} is not a real number"
    return None


def _opaque(part: Tree, partial: Partial) -> bool:
    """Whether it stands inside a reduction over clients, or follows from free constants by value."""
    names = part.names
    return not names <= set(partial.values) or any(np.ndim(partial.values[n]) for n in names)


def _failing(partial: Partial, box: Box) -> SearchCondition | None:
    """The first condition that fails all over the box, by interval arithmetic."""
    ranges: dict[str, Interval] = {n: (v, v) for n, v in partial.values.items()}
    ranges |= {name: (np.asarray(low), np.asarray(high)) for name, (low, high) in box.items()}
    for c in partial.conditions:
        names = names_in(c.left, c.right)
        try:
            if names <= set(ranges) and fails_everywhere(c, enclose(c.left, ranges), enclose(c.right, ranges)):
                return c
        except CannotEnclose:
            continue
    return None


def narrow_integers(partial: Partial, name: str, numbers: range, within: Box) -> range:
    """The whole numbers of this name without those at the upper end that fail a condition, whatever the others are.

    Example:
        >>> from fedbounds.bounds.search.partial_evaluation import leave_free
        >>> from fedbounds.bounds.evaluation.form_cache import as_compiled
        >>> theorem = as_compiled("fedmrn/theorem-1")
        >>> known = dict(L=1, mu=1, sigma=1, G=1, q=0.5, Gamma=0.1, Delta1=1, N=10, S=2, T=9)
        >>> partial = leave_free(theorem.form("sharp"), known, ["K"])
        >>> narrow_integers(partial, "K", range(1, 10**6), {})  # K <= N
        range(1, 11)
    """
    box, low, high = box_of(partial, within), numbers[0], numbers[-1]
    while low <= high:
        middle = (low + high) // 2
        if _failing(partial, {**box, name: (middle, high)}) is None:
            low = middle + 1
        else:
            high = middle - 1
    return range(numbers[0], high + 1)


def fails_everywhere(c: SearchCondition, left: Interval, right: Interval) -> np.ndarray:
    """Whether the condition fails whatever its sides are within these enclosures, elementwise."""
    above = left[0] > right[1] + ROUNDING * np.abs(right[1])
    below = right[0] > left[1] + ROUNDING * np.abs(left[1])
    return (above if c.op in ("<=", "<", "==") else np.zeros_like(above)) | (
        below if c.op in (">=", ">", "==") else np.zeros_like(below)
    )
