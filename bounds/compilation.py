"""Compiled forms: one numpy function per form, with common subexpressions, run in chunks that fit the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from fedbounds.bounds.programs import Coded

ROUNDING = 1e-12  # relative slack of a condition: 1/36 and 1/(12*1*1*3) differ in the last bit
STEP = 4 * float(np.finfo(float).eps)  # relative: T/P is computed as T times 1/P, so that 98/49 is less than 2 by a bit
CHUNK = 16384  # entries per array and pass: a dozen float64 temporaries stay within a second-level cache


def holds(left: np.ndarray, op: str, right: np.ndarray) -> np.ndarray:
    """Whether left op right, elementwise, up to rounding of the right-hand side; the strict operators are strict."""
    if op in ("<", ">"):
        return left < right if op == "<" else left > right
    ends = right * (1 + ROUNDING), right * (1 - ROUNDING)
    if op == "<=":
        return left <= np.maximum(*ends)
    if op == ">=":
        return left >= np.minimum(*ends)
    return (left <= np.maximum(*ends)) & (left >= np.minimum(*ends))


def _far_ranging(function: Callable[..., list[np.ndarray]], values: list[np.ndarray]) -> list[np.ndarray]:
    """What the function returns; where a power or product left the range of doubles on the way (gamma^2 L^2 at
    gamma = 1e-170), in long doubles, whose exponents reach further: no term is then lost, and 0 times infinity is 0."""
    left: list[str] = []
    with np.errstate(
        divide="ignore", over="call", under="call", invalid="call", call=lambda kind, _: left.append(kind)
    ):
        results = function(*values)
    if left:
        with np.errstate(all="ignore"), suppress(TypeError):  # raised by a function, as digamma, of doubles alone
            results = [np.asarray(r).astype(float) for r in function(*(v.astype(np.longdouble) for v in values))]
    return results


class Parts(NamedTuple):
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


class Compiled:
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

    def _chunks(self, which: str, constants: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> Blocks:
        """(place, results) of one chunk after the other; the place is None if there is only one."""
        code = self._function(which)
        names, function = code.names, code.function
        values = [np.asarray(constants[name], dtype=float) for name in names]
        clients = bool(self._vectors & set(names))
        if clients:
            values = [v if n in self._vectors else v[..., None] for n, v in zip(names, values, strict=True)]

        def run(chunk: list[np.ndarray]) -> list[np.ndarray]:
            results = [np.asarray(r, dtype=float) for r in _far_ranging(function, chunk)]
            return [r[..., 0] if r.ndim else r for r in results] if clients else results

        if math.prod(shape) <= CHUNK:
            yield None, run(values)
            return
        rows = max(1, CHUNK // max(1, math.prod(shape[1:])))
        # inputs that vary along the first axis are sliced; the others are used whole
        axes = len(shape) + clients
        along = [v.ndim == axes and v.shape[0] == shape[0] for v in values]
        for start in range(0, shape[0], rows):
            place = slice(start, start + rows)
            yield place, run([v[place] if sliced else v for v, sliced in zip(values, along, strict=True)])

    def _whole(self, which: str, count: int, constants: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        shape = self._shape(which, constants)
        whole = np.empty((count, *shape))
        for place, results in self._chunks(which, constants, shape):
            if place is None:
                return results
            for into, result in zip(whole, results, strict=True):
                into[place] = result
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

    def parts(self, constants: Mapping[str, np.ndarray]) -> Parts:
        """Terms, prescribed values, the total, and whether each condition holds."""
        terms, prescribed, operators = self._layout.terms, self._layout.prescribed, self._layout.operators
        kept, shape = terms + prescribed, self._shape("parts", constants)
        whole = np.empty((kept + 1, *shape))  # the last is the total
        verdicts = [np.empty(shape, dtype=bool) for _ in operators]
        for place, results in self._chunks("parts", constants, shape):
            sides = results[kept:]
            checked = [holds(sides[2 * i], op, sides[2 * i + 1]) for i, op in enumerate(operators)]
            if place is None:
                return Parts(results[:terms], results[terms:kept], np.asarray(sum(results[:terms])), checked)
            total = whole[-1][place]
            total[...] = results[0]
            for term in results[1:terms]:
                total += term
            for into, result in zip((*whole[:-1], *verdicts), (*results[:kept], *checked), strict=True):
                into[place] = result
        return Parts([*whole[:terms]], [*whole[terms:kept]], whole[-1], verdicts)
