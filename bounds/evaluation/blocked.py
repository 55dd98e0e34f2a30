"""Functions at many settings: in chunks that fit the cache, in which the steps of a program use a few arrays again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from fedbounds.bounds.evaluation.program import OPERATIONS, Coded, Program, operation

CHUNK = 32768  # entries per array and pass: a handful of them stay in the cache, and a step takes longer than its call
# what can write into an array; not powers, which have shortcuts of their own
IN_PLACE: Mapping[str, np.ufunc] = {name: made for name, made in OPERATIONS.items() if isinstance(made, np.ufunc)} | {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "negative": np.negative,
}


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


def evaluate_at_once(code: Coded, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results at these arguments."""
    results, within = evaluate_watched(code.function, *values)
    results = results if within else far_ranging(code.function, values, results)
    return [np.asarray(result, dtype=float) for result in results]


def evaluate_in_chunks(
    code: Coded, values: Sequence[np.ndarray], along: Sequence[bool], rows: int, into: Sequence[np.ndarray]
) -> Iterator[tuple[slice, list[Any]]]:
    """One chunk of settings after another, and the results there, which the next chunk overwrites.

    Args:
        code: the function.
        values: its arguments.
        along: which of them vary along their first axis, that of settings; the others are used whole.
        rows: how many settings a chunk has.
        into: arrays of all settings; the first results are put there.

    Example:
        >>> double = Program(("x",), (2.0,), (("*", 0, 1),), (2,)).coded
        >>> x, twice = np.arange(5.0), np.empty(5)
        >>> [place for place, _ in evaluate_in_chunks(double, [x], [True], 2, [twice])]
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
        >>> twice
        array([0., 2., 4., 6., 8.])
    """
    length = next(len(v) for v, varies in zip(values, along, strict=True) if varies)
    rows = min(rows, length)
    walk = _walk(code, [v[:1] if varies else v for v, varies in zip(values, along, strict=True)], along, rows, into)
    for start in range(0, length, rows):
        place = slice(start, min(start + rows, length))
        chunk = [v[place] if varies else v for v, varies in zip(values, along, strict=True)]
        here = [array[place] for array in into]
        results, within = (
            evaluate_watched(code.function, *chunk) if walk is None else evaluate_watched(walk, chunk, here)
        )
        if not within:
            results = far_ranging(code.function, chunk, results)
        for array, result in zip(here, results, strict=False):
            if array is not result:
                array[...] = result
        yield place, results


def _walk(
    code: Coded, first: Sequence[np.ndarray], along: Sequence[bool], rows: int, into: Sequence[np.ndarray]
) -> _Walk | None:
    """How to walk over the chunks, from the first setting; None where there is no program, or that setting leaves the
    range of doubles: then perhaps all do."""
    if code.program is None:
        return None
    values, within = evaluate_watched(code.program.values, *first)
    return _Walk(code.program, values, along, rows, into) if within else None


class _Walk:
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
            shape, where = (rows, *np.shape(values[place])[1:]), None
            if name in IN_PLACE and place in belongs and into[belongs[place]].shape[1:] == shape[1:]:
                where = belongs[place] - len(into)
            elif name in IN_PLACE:
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
