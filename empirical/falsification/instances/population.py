"""Populations: many instances of one shape, whose arrays carry the instances first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args, get_type_hints

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.falsification.instances.ranges import Range, Ranges, check_field

Move = Callable[[np.ndarray, np.random.Generator], np.ndarray]
LeftSide = Literal["exact moments", "every outcome", "exact law", "sampled"]


@dataclass(frozen=True, eq=False)
class Population:
    """Instances that are measured, mutated and selected together; every array field has the instances first."""

    measured: ClassVar[LeftSide] = "exact moments"  # how the left side is computed
    ranges: ClassVar[Ranges] = {}  # of the fields that the class adds; of all fields if instances are replayed

    @property
    def left_side(self) -> LeftSide:
        """How the left side is computed. If it is sampled, `Sides.rounding` is its confidence bound."""
        return self.measured

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that differ between instances, by name."""
        return {f.name: v for f in fields(self) if isinstance(v := getattr(self, f.name), np.ndarray)}

    @cached_property
    def _size(self) -> int:
        return len(next(iter(self.arrays().values())))

    def __len__(self) -> int:
        return self._size

    @property
    def cost(self) -> int:
        """Steps that a measurement takes, one after the other."""
        return 1

    def rules(self) -> dict[str, np.ndarray]:
        """Relations between the fields of an instance: each rule, and whether it holds, (B,)."""
        return {}

    def take(self, which: np.ndarray) -> Self:
        """Some of the instances, by index or mask."""
        return replace(self, **{name: array[which] for name, array in self.arrays().items()})

    def concatenate(self, other: Self) -> Self:
        """These instances and then those of another population of the same shape."""
        mine, theirs = self.arrays(), other.arrays()
        return replace(self, **{name: np.concatenate([mine[name], theirs[name]]) for name in mine})

    def repeat(self, times: int) -> Self:
        """The first of the instances, so many times."""
        return self.take(np.zeros(times, dtype=int))

    def to_long_doubles(self) -> Self:
        """The same numbers with more digits."""
        real = {k: v for k, v in self.arrays().items() if np.issubdtype(v.dtype, np.floating)}
        return replace(self, **{name: array.astype(np.longdouble) for name, array in real.items()})

    def replace_where(self, mask: np.ndarray, other: Self) -> Self:
        """The instances of `other` where the mask holds, else these."""
        mine, theirs = self.arrays(), other.arrays()
        return replace(
            self,
            **{k: np.where(mask.reshape(-1, *[1] * (v.ndim - 1)), theirs[k], v) for k, v in mine.items()},
        )

    def mutate(self, rng: np.random.Generator) -> Self:
        """A neighbor of every instance."""
        raise TypeError(f"{type(self).__name__} has no neighbors: it defines no mutate()")

    def neighbors(self, rng: np.random.Generator, **moves: Move) -> dict[str, np.ndarray]:
        """Neighbors of fields, each by its own move."""
        return {name: move(getattr(self, name), rng) for name, move in moves.items()}

    def resample(self) -> Self:
        """The same instances, measured on other samples."""
        raise TypeError(f"{type(self).__name__} is not sampled")

    def describe(self, index: int) -> dict[str, Any]:
        """One instance with all its numbers, so that it can be replayed."""
        numbers: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v[index].tolist() if isinstance(v, np.ndarray) else v for k, v in numbers.items()}

    @classmethod
    def all_ranges(cls) -> Ranges:
        """Those of all fields, from `Annotated[type, range]` or from `ranges`."""
        hints = get_type_hints(cls, include_extras=True)
        annotated = {name: one for name, hint in hints.items() for one in get_args(hint) if isinstance(one, Range)}
        listed = (vars(kind).get("ranges", {}) for kind in reversed(cls.__mro__))
        return annotated | {name: one for ranges in listed for name, one in ranges.items()}

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Self:
        """One instance from all its numbers, as `describe` returns them and JSON stores them."""
        made: dict[str, Any] = {}
        sizes, ranges, hints = dict[str, int](), cls.all_ranges(), get_type_hints(cls)
        known = [field.name for field in fields(cls)]
        if strange := [name for name in numbers if name not in known]:
            raise unknown_name(f"number of {cls.__name__}", strange[0], known)
        for field in fields(cls):
            if field.name not in numbers:
                raise FedboundsError(f"the instance has no {field.name}: {cls.__name__} needs it")
            if field.name not in ranges:
                raise FedboundsError(f"{cls.__name__} is no kind of instance that is replayed")
            value, hint = numbers[field.name], hints[field.name]
            kinds = (hint, *get_args(hint))
            if value is None and type(None) in kinds:
                made[field.name] = None
            elif np.ndarray in kinds:
                array = np.asarray(value)
                if array.dtype.kind == "b" and not ranges[field.name].domain.integer:
                    raise FedboundsError(f"{field.name} = {value!r} is true or false; must be a number")
                array = check_field(
                    field.name, array.astype(float) if array.dtype.kind in "UO" else array, ranges, sizes
                )
                made[field.name] = array[None]
            else:
                whole = tuple(value) if isinstance(value, list) else value
                if any(type(one) not in (int, bool) for one in (whole if isinstance(whole, tuple) else (whole,))):
                    raise FedboundsError(f"{field.name} = {value!r} is no whole number")
                check_field(field.name, np.asarray(whole), ranges, sizes)
                made[field.name] = whole
        found = cls(**made)
        if broken := [rule for rule, held in found.rules().items() if not held.all()]:
            raise FedboundsError(f"the instance is no {cls.__name__}: {broken[0]} must hold")
        return found


class PrescribedDraws(np.random.Generator):
    """A generator whose normal numbers are given coordinates, so that `mutate` becomes a function of them.

    All other draws are constant: every size is one, every coin falls on its first side, rarer events do not happen.

    Attributes:
        read: how many coordinates have been used.
    """

    def __init__(self, steps: np.ndarray | None = None) -> None:
        # steps: the coordinates of each neighbor, (B, D); None to count how many there are
        super().__init__(np.random.PCG64(0))
        self._steps, self.read = steps, 0

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The next coordinates, in this shape."""
        shape = (size,) if isinstance(size, int) else tuple(size)
        start, self.read = self.read, self.read + int(np.prod(shape[1:]))
        return np.zeros(shape) if self._steps is None else self._steps[:, start : self.read].reshape(shape)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Zero."""
        return np.zeros(size if size is not None else ())

    def random(self, size: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Just below one half."""
        return np.full(size if size is not None else (), 0.499)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Any:
        """Zero."""
        return np.zeros(size, dtype=int)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """The first."""
        return np.full(size, np.asarray(a)[0])


def perturb(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some instances' positive values times a random factor, small or large; zeros stay."""
    size = 10.0 ** rng.uniform(-2, 0.3, len(values)) * (rng.random(len(values)) < 0.5)
    return values * np.exp(size.reshape(-1, *[1] * (values.ndim - 1)) * rng.normal(size=values.shape))


def shake(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some instances' values of either sign, moved by a random share of the instance's size."""
    axes = tuple(range(1, values.ndim))
    size = 10.0 ** rng.uniform(-2, 0.3, len(values)) * (rng.random(len(values)) < 0.5)
    scale = size.reshape(-1, *[1] * (values.ndim - 1)) * (np.abs(values).max(axis=axes, keepdims=True) + 1e-3)
    return values + scale * rng.normal(size=values.shape)
