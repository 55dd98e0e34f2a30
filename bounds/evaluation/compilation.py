"""Compiled forms: one numpy function per form, with common subexpressions, run in chunks that fit the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fedbounds.bounds.evaluation.blocked import CHUNK, evaluate_at_once, evaluate_in_chunks
from fedbounds.bounds.evaluation.program import Coded

ROUNDING = 1e-12  # relative slack of a condition: 1/36 and 1/(12*1*1*3) differ in the last bit
STEP = 4 * float(np.finfo(float).eps)  # relative: T/P is computed as T times 1/P, so that 98/49 is less than 2 by a bit


def holds(left: np.ndarray, op: str, right: np.ndarray) -> np.ndarray:
    """Whether left op right, elementwise, up to rounding of the right-hand side; the strict operators are strict."""
    if op in ("<", ">"):
        return left < right if op == "<" else left > right
    within = []
    if op != ">=":
        within.append(left <= _moved(right, ROUNDING))
    if op != "<=":
        within.append(left >= _moved(right, -ROUNDING))
    return within[0] if len(within) == 1 else within[0] & within[1]


def _moved(right: np.ndarray, by: float) -> np.ndarray:
    """A right-hand side that is so much, relatively, further up or down."""
    ahead = right * (1 + by)
    if np.ndim(right) and np.size(right) and np.min(right) >= 0:
        return ahead
    return (np.maximum if by > 0 else np.minimum)(ahead, right * (1 - by))


class FormParts(NamedTuple):
    """A form at given constants; arrays of the settings' shape, or of a shape that broadcasts to it.

    Attributes:
        terms: in order.
        prescribed: the step sizes that the form sets.
        total: the sum of the terms.
        holds: whether each condition holds.
    """

    terms: list[np.ndarray]
    prescribed: list[np.ndarray]
    total: np.ndarray
    holds: list[np.ndarray]


class Layout(NamedTuple):
    """What the functions of a form return.

    Attributes:
        terms, prescribed: how many there are.
        operators: of the conditions, in order.
        limited: whether each condition has an extreme admissible value, when that is asked.
    """

    terms: int
    prescribed: int
    operators: tuple[str, ...]
    limited: Callable[[], tuple[bool, ...]]


Blocks = Iterator[tuple[slice | None, list[np.ndarray]]]


class CompiledFunctions:
    """The numpy functions of one form.

    `value(constants)` is the bound alone; `parts(constants)` has its terms and whether its conditions hold;
    `sides(constants)` shows the conditions. Constants are arrays that broadcast against each other; a vector over
    clients has the clients last. Many settings are worked through in chunks, so that intermediate results stay in the
    cache.
    """

    def __init__(self, layout: Layout, code: Callable[[str], Coded], vectors: frozenset[str]) -> None:
        self._layout, self._code, self._vectors = layout, code, vectors
        self._functions: dict[str, Coded] = {}

    def _function(self, which: str) -> Coded:
        if which not in self._functions:
            self._functions[which] = self._code(which)
        return self._functions[which]

    def _shape(self, which: str, constants: Mapping[str, np.ndarray]) -> tuple[int, ...]:
        """The shape of the settings."""
        shapes = {name: np.shape(constants[name]) for name in self._function(which).names}
        return np.broadcast_shapes(*(shape[:-1] if n in self._vectors else shape for n, shape in shapes.items()))

    def _chunks(
        self, which: str, constants: Mapping[str, np.ndarray], shape: tuple[int, ...], into: Sequence[np.ndarray]
    ) -> Blocks:
        """(place, results) of one chunk after the other, the first of them in the arrays given; the place is None, and
        nothing is put there, if there is only one."""
        code = self._function(which)
        names = code.names
        values = [np.asarray(constants[name], dtype=float) for name in names]
        clients = bool(self._vectors & set(names))
        if clients:
            values = [v if n in self._vectors else v[..., None] for n, v in zip(names, values, strict=True)]
            into = [array[..., None] for array in into]
        many = math.prod(shape) > CHUNK
        # inputs that vary along the first axis are sliced; the others are used whole
        along = [many and v.ndim == len(shape) + clients and v.shape[0] == shape[0] for v in values]
        rows = max(1, CHUNK // max(1, math.prod(shape[1:])))
        blocks = (
            evaluate_in_chunks(code, values, along, rows, into) if many else [(None, evaluate_at_once(code, values))]
        )
        for place, results in blocks:
            yield place, [r[..., 0] if np.ndim(r) else r for r in results] if clients else results

    def _whole(self, which: str, count: int, constants: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        shape = self._shape(which, constants)
        whole = np.empty((count, *shape))
        for place, results in self._chunks(which, constants, shape, [*whole]):
            if place is None:
                return results
        return list(whole)

    def value(self, constants: Mapping[str, np.ndarray]) -> np.ndarray:
        """The bound alone, at every setting."""
        return self._whole("value", 1, constants)[0]

    def sides(self, constants: Mapping[str, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Left, right, and the extreme admissible value of what it limits (or None), for every condition."""
        limited = self._layout.limited()
        flat = self._whole("sides", 2 * len(limited) + sum(limited), constants)
        extremes = iter(flat[2 * len(limited) :])
        return [(flat[2 * i], flat[2 * i + 1], next(extremes) if has else None) for i, has in enumerate(limited)]

    def parts(self, constants: Mapping[str, np.ndarray]) -> FormParts:
        """Terms, prescribed values, the total, and whether each condition holds."""
        terms, prescribed, operators = self._layout.terms, self._layout.prescribed, self._layout.operators
        kept, shape = terms + prescribed, self._shape("parts", constants)
        whole = np.empty((kept + 1, *shape))  # the last is the total
        verdicts = [np.empty(shape, dtype=bool) for _ in operators]
        for place, results in self._chunks("parts", constants, shape, [*whole[:-1]]):
            sides = results[kept:]
            checked = [holds(sides[2 * i], op, sides[2 * i + 1]) for i, op in enumerate(operators)]
            if place is None:
                return FormParts(results[:terms], results[terms:kept], np.asarray(sum(results[:terms])), checked)
            total = whole[-1][place]
            total[...] = results[0]
            for term in results[1:terms]:
                total += term
            for into, verdict in zip(verdicts, checked, strict=True):
                into[place] = verdict
        return FormParts([*whole[:terms]], [*whole[terms:kept]], whole[-1], verdicts)
