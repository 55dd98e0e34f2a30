"""The numbers of rounds that no choice of the other free constants allows: the lower end of every search.

Boxes of all free constants are excluded by interval arithmetic, those with the fewest rounds first. A constant derived
from free ones by value alone may be anything in its domain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sympy as sp

from fedbounds.bounds.evaluation.expression_tree import as_tree, names_in
from fedbounds.bounds.search.effort import ENCLOSURE, EvaluationBudget, Exhausted
from fedbounds.bounds.search.infeasibility import Box, box_of
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose, Interval
from fedbounds.bounds.search.partial_evaluation import Partial
from fedbounds.bounds.search.threshold import LARGEST, LARGEST_COUNT, SMALLEST, Blocks, possible

CLOSE = 1e-3  # width, in logarithms, at which the box with the fewest rounds is as good as one point
AT_ONCE = 128  # boxes that are halved at once
SHARE = 0.15  # of the evaluations that a question may cost, for this on top of them


def least_possible_rounds(partial: Partial, counter: str, target: float, within: Box, effort: EvaluationBudget) -> int:
    """The number of rounds below which every one is excluded, whatever the other free constants are.

    Returns:
        1 where nothing is excluded, and more than 2^53 where everything up to there is.

    Example:
        >>> from fedbounds.bounds.search.partial_evaluation import leave_free
        >>> from fedbounds.bounds.evaluation.form_cache import as_compiled
        >>> theorem = as_compiled("arbitrary-participation/theorem-3.1")
        >>> known = dict(L=1, F=5, I=2, P=2, sigma=0, nu=0, beta=0, delta=0, rho=1)
        >>> free = leave_free(theorem.form("explicit"), known, ["gamma", "eta", "T"])
        >>> least = least_possible_rounds(free, "T", 0.1, {}, EvaluationBudget.of(1))
        >>> 1000 < least <= 1600  # gamma*eta <= 1/(2*L*I*P), so 16*L*F*P/T
        True
    """
    own = EvaluationBudget(max(1, int(SHARE * effort.allowed)))
    sides = (side for c in partial.conditions for side in (c.left, c.right))
    seen = names_in(*partial.terms.values(), *sides)  # what enters by value alone is not worth halving
    names = [counter, *(name for name in partial.free if name != counter and name in seen)]
    box, most = box_of(partial, within), float(LARGEST_COUNT)
    whole = np.array([partial.result.notation[name].domain.integer for name in names])
    ends = np.array([(1.0, most) if name == counter else box[name] for name in names])
    ends = np.where(whole[:, None], np.minimum(ends, most), np.clip(ends, SMALLEST, LARGEST))
    fixed: dict[str, Interval] = {n: (v, v) for n, v in partial.values.items()}
    for name in partial.opaque:
        domain = partial.result.notation[name].domain
        fixed[name] = np.asarray(float(domain.low)), np.asarray(float(domain.high))

    positive = replace(
        partial, terms={name: _with_positive_divisors(as_tree(e).expression) for name, e in partial.terms.items()}
    )
    low, high = ends[None, :, 0], ends[None, :, 1]
    try:
        while True:
            width = _width(low, high, whole)
            front = np.lexsort((-width.max(axis=1), low[:, 0]))
            if width[front[0]].max() < CLOSE:
                break
            front = front[width[front].max(axis=1) > 0][:AT_ONCE]
            own.spend(ENCLOSURE)
            near, far = _halves(low[front], high[front], width[front].argmax(axis=1), whole)
            ranges = {name: (near[:, i], far[:, i]) for i, name in enumerate(names)}
            kept = possible(positive, fixed | ranges, target, len(near))
            others = np.ones(len(low), dtype=bool)
            others[front] = False
            low, high = np.vstack([low[others], near[kept]]), np.vstack([high[others], far[kept]])
            if not len(low):
                return LARGEST_COUNT + 1
    except (CannotEnclose, Exhausted):
        pass
    return int(low[:, 0].min())


def _with_positive_divisors(term: sp.Expr) -> sp.Expr:
    """The term, where every sum that it divides by is positive: the conditions of a form keep it so."""

    def divides(e: sp.Basic) -> bool:
        return isinstance(e, sp.Pow) and bool(e.exp.is_negative) and isinstance(e.base, sp.Add)

    return term.replace(divides, lambda e: sp.Pow(sp.Max(e.base, 0, evaluate=False), e.exp))


def _logarithms(low: np.ndarray, high: np.ndarray) -> Blocks:
    return np.log(np.clip(low, SMALLEST, LARGEST)), np.log(np.clip(high, SMALLEST, LARGEST))


def _width(low: np.ndarray, high: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """How many times as wide as nothing each side is, in logarithms; 0 where it cannot be halved."""
    near, far = _logarithms(low, high)
    return np.where(whole & (low == high), 0.0, far - near)


def _halves(low: np.ndarray, high: np.ndarray, side: np.ndarray, whole: np.ndarray) -> Blocks:
    """Both halves of every box, along one side each."""
    at = np.arange(len(low)), side
    middle = np.exp(sum(_logarithms(low[at], high[at])) / 2)
    counts = whole[side]
    middle = np.where(counts, np.clip(np.floor(middle), low[at], np.maximum(high[at] - 1, low[at])), middle)
    near, far = high.copy(), low.copy()
    near[at], far[at] = middle, np.where(counts, middle + 1, middle)
    return np.vstack([low, far]), np.vstack([near, high])
