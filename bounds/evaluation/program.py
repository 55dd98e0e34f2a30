"""Formulas as programs: a few numpy operations in order, run at one setting or at many, in chunks that fit the cache.

A program is plain data. It can be read from a file: nothing in it is handed to Python, and a file can name nothing but
the operations below and functions of fedbounds.bounds.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError

CHUNK = 32768  # entries per array and pass: a handful of them stay in the cache, and a step takes longer than its call
ROUNDING = 1e-12  # relative slack of a condition: 1/36 and 1/(12*1*1*3) differ in the last bit
STEP = 4 * float(np.finfo(float).eps)  # relative: T/P is computed as T times 1/P, so that 98/49 is less than 2 by a bit
PACKAGE = "fedbounds.bounds"
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "negative": operator.neg,
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
OVER_CLIENTS: Mapping[str, Callable[..., Any]] = {
    name: partial(reduction, axis=-1, keepdims=True)
    for name, reduction in {"sum": np.sum, "mean": np.mean, "max": np.max, "median": np.median}.items()
}
# what can write into an array; not powers, which have shortcuts of their own
IN_PLACE: Mapping[str, np.ufunc] = {name: made for name, made in OPERATIONS.items() if isinstance(made, np.ufunc)} | {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "negative": np.negative,
}


class Program(NamedTuple):
    """Formulas, step by step."""

    names: tuple[str, ...]  # of the arguments, in order; the first values
    numbers: tuple[float, ...]  # that the formulas hold; the next values
    # the operation's name (or a function, which no file can hold), and which values it takes; each makes the next value
    steps: tuple[tuple[Any, ...], ...]
    results: tuple[int, ...]  # which values are the results

    def run(self, *arguments: Any) -> list[Any]:
        """The results at these arguments."""
        values = self.values(*arguments)
        return [values[place] for place in self.results]

    def values(self, *arguments: Any) -> list[Any]:
        """All values at these arguments: they themselves, the numbers, and what each step makes."""
        values = [*arguments, *self.numbers]
        for step in self.steps:
            values.append(operation(step[0])(*(values[place] for place in step[1:])))
        return values


def operation(name: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function of a step: an operation of numpy, a function of a paper as MODULE:NAME, or the function itself.

    Example:
        >>> float(operation("sqrt")(9.0)), float(operation("fedbounds.bounds.display.plain_text:number")(0.5))
        (3.0, 0.5)
    """
    if callable(name):
        return name
    return OPERATIONS.get(name) or OVER_CLIENTS.get(name) or function_at(name)


def function_at(place: str) -> Callable[..., Any]:
    """The function of fedbounds.bounds at MODULE:NAME."""
    module, _, name = place.partition(":")
    if not module.startswith(f"{PACKAGE}.") or not callable(found := vars(import_module(module)).get(name)):
        raise FedboundsError(f"{place} is no function of fedbounds.bounds")
    return found


def read_program(written: Mapping[str, Sequence[Any]]) -> Program:
    """A program as a file has it."""
    return Program(
        tuple(written["names"]),
        tuple(written["numbers"]),
        tuple(map(tuple, written["steps"])),
        tuple(written["results"]),
    )


def evaluate_watched(function: Callable[..., Any], *values: Any) -> tuple[Any, bool]:
    """What the function returns, and whether no power or product left the range of doubles on the way."""
    left: list[str] = []
    with np.errstate(
        divide="ignore", over="call", under="call", invalid="call", call=lambda kind, _: left.append(kind)
    ):
        return function(*values), not left


def far_ranging(function: Callable[..., list[Any]], values: Sequence[np.ndarray], results: list[Any]) -> list[Any]:
    """The results in long doubles, whose exponents reach further (gamma^2 L^2 at gamma = 1e-170): no term is then lost,
    and 0 times infinity is 0. Those in doubles where the function takes no others, as digamma."""
    with np.errstate(all="ignore"), suppress(TypeError):
        return [np.asarray(r).astype(float) for r in function(*(v.astype(np.longdouble) for v in values))]
    return results


def evaluate_at_once(program: Program, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results at these arguments."""
    results, within = evaluate_watched(program.run, *values)
    results = results if within else far_ranging(program.run, values, results)
    return [np.asarray(result, dtype=float) for result in results]


def evaluate_in_chunks(
    program: Program, values: Sequence[np.ndarray], along: Sequence[bool], rows: int, into: Sequence[np.ndarray]
) -> Iterator[tuple[slice, list[Any]]]:
    """One chunk of settings after another, and the results there, which the next chunk overwrites."""
    length = next(len(v) for v, varies in zip(values, along, strict=True) if varies)
    rows = min(rows, length)
    first = [v[:1] if varies else v for v, varies in zip(values, along, strict=True)]
    found, within = evaluate_watched(program.values, *first)
    # where the first setting leaves the range of doubles, perhaps all do
    by_chunk = _ChunkEvaluator(program, found, along, rows, into) if within else None
    for start in range(0, length, rows):
        place = slice(start, min(start + rows, length))
        chunk = [v[place] if varies else v for v, varies in zip(values, along, strict=True)]
        here = [array[place] for array in into]
        results, within = evaluate_watched(by_chunk, chunk, here) if by_chunk else evaluate_watched(program.run, *chunk)
        if not within:
            results = far_ranging(program.run, chunk, results)
        for array, result in zip(here, results, strict=False):
            if array is not result:
                array[...] = result
        yield place, results


class _ChunkEvaluator:
    """A program at one chunk after another: what is the same in all of them is computed once, and what is not is
    written where a result belongs, or into an array whose value nobody will need.

    Args:
        program: the steps.
        values: at all its places, for one setting.
        along: which arguments vary from chunk to chunk.
        rows: how many settings a chunk has at most.
        into: where the first results go.
    """

    def __init__(
        self, program: Program, values: Sequence[Any], along: Sequence[bool], rows: int, into: Sequence[np.ndarray]
    ) -> None:
        first, end = len(program.names) + len(program.numbers), len(values)
        varies = [*along, *(False for _ in program.numbers)]
        needed = {place: k for k, (_, *taken) in enumerate(program.steps, first) for place in taken}
        needed |= dict.fromkeys(program.results, end)
        belongs = {place: k for k, place in reversed([*enumerate(program.results[: len(into)])])}
        spare, lies = defaultdict[tuple[int, ...], list[int]](list), dict[int, int]()
        self._rows, self._results, self._arrays = rows, program.results, list[np.ndarray]()
        self._along = along
        self._steps: list[tuple[int, Callable[..., Any], list[int], int | None]] = []
        for place, (name, *taken) in enumerate(program.steps, first):
            varies.append(any(varies[k] for k in taken))
            if not varies[place]:
                continue
            for k in {*taken} & {*lies}:
                if needed[k] == place:
                    spare[self._arrays[lies[k]].shape].append(lies.pop(k))
            where = None
            if name in IN_PLACE:
                shape = (rows, *np.shape(values[place])[1:])
                if place in belongs and into[belongs[place]].shape[1:] == shape[1:]:
                    where = belongs[place] - len(into)
                else:
                    if not spare[shape]:
                        spare[shape].append(len(self._arrays))
                        self._arrays.append(np.empty(shape))
                    where = lies[place] = spare[shape].pop()
            self._steps.append((place, IN_PLACE.get(name) or operation(name), taken, where))
        # whole numbers as they are used, which spares every step a conversion
        fixed = [float(value) if isinstance(value, int) else value for value in values]
        self._values = [None if changes else value for value, changes in zip(fixed, varies, strict=True)]

    def __call__(self, chunk: Sequence[np.ndarray], into: Sequence[np.ndarray]) -> list[Any]:
        """The results at the next chunk."""
        values: list[Any] = [*chunk, *self._values[len(chunk) :]]
        length = len(next(value for value, varies in zip(chunk, self._along, strict=False) if varies))
        arrays = [*(self._arrays if length == self._rows else (a[:length] for a in self._arrays)), *into]
        for place, operate, taken, where in self._steps:
            if where is None:
                values[place] = operate(*(values[k] for k in taken))
            elif len(taken) == 2:
                one, other = taken
                values[place] = operate(values[one], values[other], out=arrays[where])
            else:
                values[place] = operate(values[taken[0]], out=arrays[where])
        return [values[k] for k in self._results]


def holds(left: np.ndarray, op: str, right: np.ndarray) -> np.ndarray:
    """Whether left op right, elementwise, up to rounding of the right-hand side; the strict operators are strict."""
    if op in ("<", ">"):
        return left < right if op == "<" else left > right
    within = []
    if op != ">=":
        within.append(left <= _shift(right, ROUNDING))
    if op != "<=":
        within.append(left >= _shift(right, -ROUNDING))
    return within[0] if len(within) == 1 else within[0] & within[1]


def _shift(right: np.ndarray, by: float) -> np.ndarray:
    """A right-hand side, larger or smaller by a fraction of its size."""
    ahead = right * (1 + by)
    if np.ndim(right) and np.size(right) and np.min(right) >= 0:
        return ahead
    return (np.maximum if by > 0 else np.minimum)(ahead, right * (1 - by))


class FormParts(NamedTuple):
    """A form at given constants; arrays of the settings' shape, or of a shape that broadcasts to it."""

    terms: list[np.ndarray]  # in order
    prescribed: list[np.ndarray]  # the step sizes that the form sets
    total: np.ndarray  # the sum of the terms
    holds: list[np.ndarray]  # whether each condition holds


class Layout(NamedTuple):
    """What the functions of a form return."""

    terms: int  # terms, prescribed: how many there are
    prescribed: int
    operators: tuple[str, ...]  # of the conditions, in order
    # whether each condition has an extreme admissible value, when that is asked
    limited: Callable[[], tuple[bool, ...]]


Blocks = Iterator[tuple[slice | None, list[np.ndarray]]]


class CompiledFunctions:
    """The numpy functions of one form.

    `value(constants)` is the bound alone; `parts(constants)` has its terms and whether its conditions hold;
    `sides(constants)` shows the conditions. Constants are arrays that broadcast against each other; a vector over
    clients has the clients last. Many settings are worked through in chunks, so that intermediate results stay in the
    cache.
    """

    def __init__(self, layout: Layout, program: Callable[[str], Program], vectors: frozenset[str]) -> None:
        self._layout, self._vectors, self._program = layout, vectors, cache(program)

    def _shape(self, which: str, constants: Mapping[str, np.ndarray]) -> tuple[int, ...]:
        """The shape of the settings."""
        shapes = {name: np.shape(constants[name]) for name in self._program(which).names}
        return np.broadcast_shapes(*(shape[:-1] if n in self._vectors else shape for n, shape in shapes.items()))

    def _chunks(
        self, which: str, constants: Mapping[str, np.ndarray], shape: tuple[int, ...], into: Sequence[np.ndarray]
    ) -> Blocks:
        """(place, results) of one chunk after the other, the first of them in the arrays given; the place is None, and
        nothing is put there, if there is only one."""
        program = self._program(which)
        names = program.names
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
            evaluate_in_chunks(program, values, along, rows, into)
            if many
            else [(None, evaluate_at_once(program, values))]
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
