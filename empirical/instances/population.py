"""Populations: many instances of one shape, whose arrays carry the instances first."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, eq=False)
class Population:
    """Instances that are measured, mutated and selected together; every array field has the instances first."""

    def _arrays(self) -> dict[str, np.ndarray]:
        return {f.name: v for f in fields(self) if isinstance(v := getattr(self, f.name), np.ndarray)}

    @cached_property
    def _size(self) -> int:
        return len(next(iter(self._arrays().values())))

    def __len__(self) -> int:
        return self._size

    @property
    def cost(self) -> int:
        """Steps that a measurement takes, one after the other."""
        return 1

    def take(self, which: np.ndarray) -> Self:
        """Some of the instances, by index or mask."""
        return replace(self, **{name: array[which] for name, array in self._arrays().items()})

    def replaced_where(self, mask: np.ndarray, other: Self) -> Self:
        """The instances of `other` where the mask holds, one's own elsewhere."""
        mine, theirs = self._arrays(), other._arrays()
        return replace(
            self,
            **{k: np.where(mask.reshape(-1, *[1] * (v.ndim - 1)), theirs[k], v) for k, v in mine.items()},
        )

    def mutated(self, rng: np.random.Generator) -> Self:
        """A neighbor of every instance."""
        raise TypeError(f"{type(self).__name__} does not say what its neighbors are")

    def describe(self, index: int) -> dict[str, Any]:
        """One instance with all its numbers, so that it can be replayed."""
        numbers: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v[index].tolist() if isinstance(v, np.ndarray) else v for k, v in numbers.items()}


def stirred(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some instances' positive values times a random factor, small or large; zeros stay."""
    size = 10.0 ** rng.uniform(-2, 0.3, len(values)) * (rng.random(len(values)) < 0.5)
    return values * np.exp(size.reshape(-1, *[1] * (values.ndim - 1)) * rng.normal(size=values.shape))


def shaken(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some instances' values of either sign, moved by a random share of the instance's size."""
    axes = tuple(range(1, values.ndim))
    size = 10.0 ** rng.uniform(-2, 0.3, len(values)) * (rng.random(len(values)) < 0.5)
    scale = size.reshape(-1, *[1] * (values.ndim - 1)) * (np.abs(values).max(axis=axes, keepdims=True) + 1e-3)
    return values + scale * rng.normal(size=values.shape)
