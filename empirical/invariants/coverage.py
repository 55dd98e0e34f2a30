"""Size classes: larger cases that every search tests, besides small cases drawn at random.

They find bugs that appear only in late rounds, many local steps or large cohorts. Their numbers are in general position
and of several magnitudes, so that rounding, clipping and dropped digits are visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# of the numbers in cases of a size, in this order: every second case shows small differences
MAGNITUDES = (1.0, 1e3, 1.0, 1e6, 1.0, 1e-3, 1.0, 1e-6)
UNITS = (1.0, 1 / 3, 1e6 / 3, 1e-6 / 3)  # by which the round numbers of small cases are multiplied, the simplest first
FULL = 50  # the examples from which on every size class has one
_NAME = "size_classes"


def general(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random numbers of size 0.1 to 2; none is representable in single precision."""
    return rng.uniform(0.1, 2, shape) * rng.choice((-1.0, 1.0), shape)


@dataclass(frozen=True)
class SizeClass:
    """Cases of one size."""

    exact: SearchStrategy[Any]  # cases of this size, with values in general position
    # cases of this size and below, the simplest first: where a counterexample of this size is shrunk
    up_to: SearchStrategy[Any]


def with_size_classes(small: SearchStrategy[Any], classes: Sequence[SizeClass]) -> SearchStrategy[Any]:
    """The strategy of small cases, which carries size classes for the search."""
    carrying = small.map(lambda case: case)  # an object of its own, whatever hypothesis shares
    setattr(carrying, _NAME, tuple(classes))
    return carrying


def size_classes(strategy: SearchStrategy[Any]) -> tuple[SizeClass, ...]:
    """The size classes that a strategy carries; none if it is not from `with_size_classes`."""
    return getattr(strategy, _NAME, ())


def map_size_classes(
    strategy: SearchStrategy[Any],
    drawn: Callable[[SearchStrategy[Any]], SearchStrategy[Any]],
    exact: Callable[[SearchStrategy[Any], int], SearchStrategy[Any]] | None = None,
) -> SearchStrategy[Any]:
    """A strategy with its size classes, each changed."""
    classes = [
        SizeClass(drawn(each.exact) if exact is None else exact(each.exact, place), drawn(each.up_to))
        for place, each in enumerate(size_classes(strategy))
    ]
    return with_size_classes(drawn(strategy), classes)


def classes_tried(strategy: SearchStrategy[Any], examples: int) -> tuple[SizeClass, ...]:
    """The size classes that a search of so many examples tries: all from `FULL` on, and fewer of fewer examples."""
    classes = size_classes(strategy)
    return classes[: len(classes) * min(examples, FULL) // FULL]
