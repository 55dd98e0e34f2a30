"""The ranges of the fields of instances: which numbers a field may hold, and in which shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import COUNT, NONNEGATIVE, POSITIVE, PROBABILITY, Domain

ROUND_OFF = 1e-9  # relative, of sums that are zero or one
MOST = 1_000  # steps, rounds, clients of an instance
INF = float("inf")


class Range(NamedTuple):
    """The range of a field: the domain of its numbers, and its axes in one instance.

    Axes are names or numbers, as "N d" or "d m+1"; a name has one size in all fields of an instance.
    """

    domain: Domain
    axes: str = ""


Ranges = Mapping[str, Range]
REALS = Domain(-INF, INF)
FLAGS = Domain(0, 1, integer=True)
WHOLE = Domain(0, INF, integer=True)
CUTOFF = Domain(1, INF, integer=True, infinite=True)


def reals(axes: str = "") -> Range:
    """Any numbers."""
    return Range(REALS, axes)


def positive(axes: str = "") -> Range:
    """Above zero."""
    return Range(POSITIVE, axes)


def nonnegative(axes: str = "") -> Range:
    """At least zero."""
    return Range(NONNEGATIVE, axes)


def chances(axes: str = "") -> Range:
    """Positive probabilities."""
    return Range(PROBABILITY, axes)


def counts(axes: str = "", most: float = MOST) -> Range:
    """Integers from one to `most`."""
    return Range(replace(COUNT, high=most), axes)


def flag() -> Range:
    """True or false."""
    return Range(FLAGS)


def check_field(name: str, value: np.ndarray, ranges: Ranges, sizes: dict[str, int]) -> np.ndarray:
    """The numbers of a field of one instance; refused outside its range."""
    domain, axes = ranges[name]
    names = axes.split()
    if value.ndim != len(names) or 0 in value.shape:
        wanted = f"an array ({', '.join(names)})" if names else "one number"
        raise FedboundsError(f"{name} must be {wanted}, not of shape {value.shape}")
    for axis, found in zip(names, value.shape, strict=True):
        base, _, more = axis.partition("+")
        size = int(base) if base.isdigit() else sizes.setdefault(base, found - int(more or 0))
        if found != size + int(more or 0):
            raise FedboundsError(f"{name} must have {size + int(more or 0)} entries along {axis}, not {found}")
    inside = np.atleast_1d(domain.contains(value))
    if not inside.all():
        wrong = np.atleast_1d(value)[~inside][0]
        raise FedboundsError(f"{name} = {wrong:.12g} is outside {domain}")
    return value


def sums_to(values: np.ndarray, total: float, size: np.ndarray | float = 1.0) -> np.ndarray:
    """Whether the sums over the last axis are this, but for rounding of numbers of this size, (B, ...) to (B,)."""
    off = np.abs(values.sum(axis=-1) - total)
    return np.asarray((off <= ROUND_OFF * size).reshape(len(values), -1).all(axis=1))


def symmetric(matrices: np.ndarray) -> np.ndarray:
    """Whether all matrices (B, ..., d, d) are, but for rounding, (B,)."""
    off = np.abs(matrices - np.swapaxes(matrices, -1, -2)).reshape(len(matrices), -1).max(axis=1)
    return np.asarray(off <= ROUND_OFF * np.abs(matrices).reshape(len(matrices), -1).max(axis=1))


def cancels(vectors: np.ndarray) -> np.ndarray:
    """Whether the vectors of all clients, (B, N, ...), sum to zero but for rounding, (B,)."""
    size = np.abs(vectors).reshape(len(vectors), -1).max(axis=1)
    off = np.abs(vectors.sum(axis=1)).reshape(len(vectors), -1).max(axis=1)
    return np.asarray(off <= ROUND_OFF * size)


def always(held: bool, like: np.ndarray) -> np.ndarray:
    """The same for all instances of an array, (B,)."""
    return np.full(len(like), held)
