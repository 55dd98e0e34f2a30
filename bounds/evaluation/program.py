"""Formulas as programs: a few operations of numpy in order, as plain data that no sympy is needed to run.

A program is read from a file and run step by step; nothing in it is handed to Python, and it can call nothing but the
operations below and functions that a paper defines.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError

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


class Coded(NamedTuple):
    """A numpy function.

    Attributes:
        names: of its arguments, in order.
        function: of them.
        program: the same as data; None where it cannot be written as one.
    """

    names: tuple[str, ...]
    function: Callable[..., list[Any]]
    program: Program | None = None


class Program(NamedTuple):
    """Formulas, step by step.

    Attributes:
        names: of the arguments, in order; the first values.
        numbers: that the formulas hold; the next values.
        steps: the operation's name, and which values it takes; each makes the next value.
        results: which values are the results.

    Example:
        >>> square_and_double = Program(("x",), (2,), (("*", 0, 0), ("*", 1, 0)), (2, 3))
        >>> square_and_double.run(5.0)
        [25.0, 10.0]
    """

    names: tuple[str, ...]
    numbers: tuple[float, ...]
    steps: tuple[tuple[Any, ...], ...]
    results: tuple[int, ...]

    @property
    def coded(self) -> Coded:
        """The program as a function."""
        return Coded(self.names, self.run, self)

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


def operation(name: str) -> Callable[..., Any]:
    """What a step does: an operation of numpy, or a function of a paper as MODULE:NAME.

    Raises:
        FedboundsError: neither.

    Example:
        >>> float(operation("sqrt")(9.0)), float(operation("fedbounds.bounds.display.plain_text:number")(0.5))
        (3.0, 0.5)
    """
    return OPERATIONS.get(name) or OVER_CLIENTS.get(name) or function_at(name)


def function_at(place: str) -> Callable[..., Any]:
    """The function of fedbounds.bounds at MODULE:NAME.

    Raises:
        FedboundsError: there is none.
    """
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
