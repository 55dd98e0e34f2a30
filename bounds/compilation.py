"""Compiled forms: one numpy function per form, with common subexpressions, run in chunks that fit the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp
from sympy.printing.numpy import NumPyPrinter

from bounds.clients import REDUCTIONS
from bounds.result import Form

ROUNDING = 1e-12  # relative slack of a condition: 1/36 and 1/(12*1*1*3) differ in the last bit
CHUNK = 16384  # entries per array and pass: a dozen float64 temporaries stay within a second-level cache


class _Printer(NumPyPrinter):
    """numpy code whose minima and maxima broadcast (the stock printer stacks their arguments)."""

    def _fold(self, name: str, arguments: Sequence[sp.Expr]) -> str:
        code = self._print(arguments[0])
        for argument in arguments[1:]:
            code = f"{self._module_format('numpy.' + name)}({code}, {self._print(argument)})"
        return code

    def _print_Min(self, expr: sp.Expr) -> str:
        return self._fold("minimum", expr.args)  # pyright: ignore[reportArgumentType]

    def _print_Max(self, expr: sp.Expr) -> str:
        return self._fold("maximum", expr.args)  # pyright: ignore[reportArgumentType]

    def _print_Pow(self, expr: sp.Expr, rational: bool = False) -> str:
        base, exponent = expr.args
        if base.is_Symbol and isinstance(exponent, sp.Integer) and 2 <= exponent.p <= 4:  # products beat pow by far
            return "(" + "*".join([self._print(base)] * exponent.p) + ")"
        return super()._print_Pow(expr, rational=rational)


def compile_expressions(
    names: tuple[sp.Symbol, ...], expressions: tuple[sp.Expr, ...]
) -> Callable[..., list[np.ndarray]]:
    """A numpy function of the symbols (in order) that returns the expressions' values."""
    printer = _Printer(
        {
            "fully_qualified_modules": False,
            "inline": True,
            "allow_unknown_functions": True,
            "user_functions": {},
        }
    )
    return sp.lambdify(names, list(expressions), modules=[REDUCTIONS, "numpy"], cse=True, printer=printer)


def arguments(expressions: Sequence[sp.Expr]) -> tuple[sp.Symbol, ...]:
    """Every free symbol, in alphabetical order."""
    free: set[sp.Symbol] = set().union(*(e.free_symbols for e in expressions))  # pyright: ignore
    return tuple(sorted(free, key=lambda s: s.name))


def holds(left: np.ndarray, op: str, right: np.ndarray) -> np.ndarray:
    """Whether left op right, elementwise, up to rounding; the strict operators are strict."""
    if op in ("<", ">"):
        return left < right if op == "<" else left > right
    plainly = left <= right if op == "<=" else left >= right if op == ">=" else left == right
    if np.all(plainly):
        return plainly
    slack = ROUNDING * np.maximum(np.abs(left), np.abs(right))
    return plainly | ((np.abs(left - right) <= slack) & np.isfinite(slack))


class Parts(NamedTuple):
    """Everything about a form at given constants; arrays of the settings' shape, or of a shape that broadcasts to it.

    Attributes:
        terms: in order.
        sides: (left, right) of each condition.
        extremes: the extreme admissible value of the constant each condition limits; None where there is none.
        prescribed: the step sizes that the form sets.
        total: the sum of the terms.
        holds: whether each condition holds.
    """

    terms: list[np.ndarray]
    sides: list[tuple[np.ndarray, np.ndarray]]
    extremes: list[np.ndarray | None]
    prescribed: list[np.ndarray]
    total: np.ndarray
    holds: list[np.ndarray]


Blocks = Iterator[tuple[slice | None, list[np.ndarray], list[np.ndarray]]]


class Compiled:
    """The numpy functions of one form: `value(constants)` is the bound alone, `parts(constants)` everything.

    Constants are arrays that broadcast against each other; a vector over clients has the clients last. Many settings are
    worked through in chunks, so that intermediate results stay in the cache; equal expressions are computed once.
    """

    def __init__(self, form: Form, vectors: frozenset[str]) -> None:
        self._vectors = vectors
        terms = [t.expression for t in form.terms]
        self._operators = [c.op for c in form.conditions]
        pieces: list[sp.Expr | None] = [*terms, *(side for c in form.conditions for side in (c.left, c.right))]
        pieces += [c.extreme for c in form.conditions]
        pieces += form.prescribes.values()
        self._pieces = pieces
        self._splits = np.cumsum([len(terms), 2 * len(form.conditions), len(form.conditions)]).tolist()
        self._expressions = {
            "value": (sp.Add(*terms),),
            # an expression that occurs twice is one result; a letter needs none
            "parts": tuple(dict.fromkeys(e for e in pieces if e is not None and not e.is_Symbol)),
        }
        known = [e for e in pieces if e is not None]
        self._names = {"value": arguments(self._expressions["value"]), "parts": arguments(known)}
        self._functions: dict[str, Callable[..., list[np.ndarray]]] = {}

    def _function(self, which: str) -> Callable[..., list[np.ndarray]]:
        if which not in self._functions:
            self._functions[which] = compile_expressions(self._names[which], self._expressions[which])
        return self._functions[which]

    def _inputs(
        self, which: str, constants: Mapping[str, np.ndarray]
    ) -> tuple[list[np.ndarray], tuple[int, ...], bool]:
        """The arguments, the shape of the settings, and whether the arguments end in a client axis."""
        names = [s.name for s in self._names[which]]
        values = [np.asarray(constants[name], dtype=float) for name in names]
        clients = bool(self._vectors & set(names))
        if clients:
            values = [v if n in self._vectors else v[..., None] for n, v in zip(names, values, strict=True)]
        return values, np.broadcast_shapes(*(v.shape[:-1] if clients else v.shape for v in values)), clients

    def _chunks(self, which: str, values: list[np.ndarray], shape: tuple[int, ...], clients: bool) -> Blocks:
        """(place, arguments, results) of one chunk after the other; the place is None if there is only one."""
        function = self._function(which)

        def run(chunk: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                results = [np.asarray(r, dtype=float) for r in function(*chunk)]
            if clients:
                results = [r[..., 0] if r.ndim else r for r in results]
                chunk = [c[..., 0] for c in chunk]
            return chunk, results

        if math.prod(shape) <= CHUNK:
            yield None, *run(values)
            return
        rows = max(1, CHUNK // max(1, math.prod(shape[1:])))
        # inputs that vary along the first axis are sliced; the others are used whole
        axes = len(shape) + clients
        along = [v.ndim == axes and v.shape[0] == shape[0] for v in values]
        for start in range(0, shape[0], rows):
            place = slice(start, start + rows)
            yield place, *run([v[place] if sliced else v for v, sliced in zip(values, along, strict=True)])

    def value(self, constants: Mapping[str, np.ndarray]) -> np.ndarray:
        """The bound alone, at every setting."""
        values, shape, clients = self._inputs("value", constants)
        total = np.empty(shape)
        for place, _, (result,) in self._chunks("value", values, shape, clients):
            if place is None:
                return result
            total[place] = result
        return total

    def parts(self, constants: Mapping[str, np.ndarray]) -> Parts:
        """Terms, both sides of every condition and whether it holds, extremes, prescribed values and the total."""
        values, shape, clients = self._inputs("parts", constants)
        names, unique = self._names["parts"], self._expressions["parts"]
        results = [np.empty(shape) for _ in unique]
        total, verdicts = np.empty(shape), [np.empty(shape, dtype=bool) for _ in self._operators]
        for place, chunk, outputs in self._chunks("parts", values, shape, clients):
            terms, sides, *_ = self._arranged(dict(zip((*unique, *names), (*outputs, *chunk), strict=True)))
            added = total[place] if place else np.empty(np.broadcast_shapes(*(t.shape for t in terms)))
            np.copyto(added, terms[0])
            for term in terms[1:]:
                added += term
            checked = [holds(a, op, b) for (a, b), op in zip(sides, self._operators, strict=True)]
            if place is None:
                return Parts(
                    *self._arranged(dict(zip((*unique, *names), (*outputs, *chunk), strict=True))), added, checked
                )
            for into, output in zip((*results, *verdicts), (*outputs, *checked), strict=True):
                into[place] = output
        whole = [np.broadcast_to(v[..., 0] if clients else v, shape) for v in values]
        return Parts(*self._arranged(dict(zip((*unique, *names), (*results, *whole), strict=True))), total, verdicts)

    def _arranged(
        self, found: Mapping[sp.Expr, np.ndarray]
    ) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]], list[np.ndarray | None], list[np.ndarray]]:
        """Terms, sides, extremes and prescribed values."""
        flat = [None if e is None else found[e] for e in self._pieces]
        a, b, c = self._splits
        sides = flat[a:b]
        return flat[:a], list(zip(sides[::2], sides[1::2], strict=True)), flat[b:c], flat[c:]  # pyright: ignore


@lru_cache(maxsize=256)
def compile_form(form: Form, vectors: frozenset[str] = frozenset()) -> Compiled:
    """The compiled form, made once per process."""
    return Compiled(form, vectors)
