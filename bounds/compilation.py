"""Compiled forms: one numpy function per form, with common subexpressions, run in chunks that fit the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp
from sympy.printing.numpy import NumPyPrinter

from fedbounds.bounds.result import Form

STEP = 4 * float(np.finfo(float).eps)  # relative: T/P is computed as T times 1/P, so that 98/49 is less than 2 by a bit
ROUNDING = 1e-12  # relative slack of a condition: 1/36 and 1/(12*1*1*3) differ in the last bit
CHUNK = 16384  # entries per array and pass: a dozen float64 temporaries stay within a second-level cache


class _Printer(NumPyPrinter):
    """numpy code whose minima and maxima broadcast (the stock printer stacks their arguments) and whose reductions keep
    the client axis."""

    keeps_clients = True

    def _fold(self, name: str, arguments: Sequence[sp.Expr]) -> str:
        code = self._print(arguments[0])
        for argument in arguments[1:]:
            code = f"{self._module_format('numpy.' + name)}({code}, {self._print(argument)})"
        return code

    def _print_Min(self, expr: sp.Min) -> str:
        return self._fold("minimum", expr.args)

    def _print_Max(self, expr: sp.Max) -> str:
        return self._fold("maximum", expr.args)

    def _whole(self, name: str, sign: str, argument: sp.Expr) -> str:
        code = self._print(argument)
        nearly = f"{code} {sign} {STEP!r}*{self._module_format('numpy.abs')}({code})"
        return f"{self._module_format('numpy.' + name)}({nearly})"

    def _print_floor(self, expr: sp.floor) -> str:
        return self._whole("floor", "+", expr.args[0])

    def _print_ceiling(self, expr: sp.ceiling) -> str:
        return self._whole("ceil", "-", expr.args[0])

    def _print_Pow(self, expr: sp.Expr, rational: bool = False) -> str:
        base, exponent = expr.args
        if base.is_Symbol and isinstance(exponent, sp.Integer) and 2 <= exponent.p <= 4:  # products beat pow by far
            return "(" + "*".join([self._print(base)] * exponent.p) + ")"
        return super()._print_Pow(expr, rational=rational)


@lru_cache(maxsize=1024)
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
    return sp.lambdify(names, list(expressions), modules=["numpy"], cse=True, printer=printer, docstring_limit=0)


def arguments(expressions: Sequence[sp.Expr]) -> tuple[sp.Symbol, ...]:
    """Every free symbol, in alphabetical order."""
    return _arguments(tuple(expressions))


@lru_cache(maxsize=2**14)
def _arguments(expressions: tuple[sp.Expr, ...]) -> tuple[sp.Symbol, ...]:
    return tuple(sorted({s for e in expressions for s in e.free_symbols}, key=lambda s: s.name))


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


Blocks = Iterator[tuple[slice | None, list[np.ndarray]]]


class Compiled:
    """The numpy functions of one form.

    `value(constants)` is the bound alone; `parts(constants)` has its terms and whether its conditions hold;
    `sides(constants)` shows the conditions. Constants are arrays that broadcast against each other; a vector over
    clients has the clients last. Many settings are worked through in chunks, so that intermediate results stay in the
    cache.
    """

    def __init__(self, form: Form, vectors: frozenset[str]) -> None:
        self._vectors = vectors
        self._operators = [c.op for c in form.conditions]
        terms = [t.expression for t in form.terms]
        self._sizes = len(terms), len(form.prescribes)
        sides = [side for c in form.conditions for side in (c.left, c.right)]
        extremes = [c.extreme for c in form.conditions]
        self._has_extreme = [e is not None for e in extremes]
        self._expressions = {
            "value": (sp.Add(*terms),),
            "parts": (*terms, *form.prescribes.values(), *sides),
            "sides": (*sides, *(e for e in extremes if e is not None)),
        }
        self._names = {which: arguments(expressions) for which, expressions in self._expressions.items()}
        self._functions: dict[str, Callable[..., list[np.ndarray]]] = {}

    def _function(self, which: str) -> Callable[..., list[np.ndarray]]:
        if which not in self._functions:
            self._functions[which] = compile_expressions(self._names[which], self._expressions[which])
        return self._functions[which]

    def _shape(self, which: str, constants: Mapping[str, np.ndarray]) -> tuple[int, ...]:
        """The shape of the settings."""
        shapes = {s.name: np.shape(constants[s.name]) for s in self._names[which]}
        return np.broadcast_shapes(*(shape[:-1] if n in self._vectors else shape for n, shape in shapes.items()))

    def _chunks(self, which: str, constants: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> Blocks:
        """(place, results) of one chunk after the other; the place is None if there is only one."""
        function, names = self._function(which), [s.name for s in self._names[which]]
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

    def _whole(self, which: str, constants: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        shape = self._shape(which, constants)
        whole = np.empty((len(self._expressions[which]), *shape))
        for place, results in self._chunks(which, constants, shape):
            if place is None:
                return results
            for into, result in zip(whole, results, strict=True):
                into[place] = result
        return list(whole)

    def value(self, constants: Mapping[str, np.ndarray]) -> np.ndarray:
        """The bound alone, at every setting."""
        return self._whole("value", constants)[0]

    def sides(self, constants: Mapping[str, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Left, right, and the extreme admissible value of what it limits (or None), for every condition."""
        flat = self._whole("sides", constants)
        extremes = iter(flat[2 * len(self._operators) :])
        return [
            (flat[2 * i], flat[2 * i + 1], next(extremes) if has else None) for i, has in enumerate(self._has_extreme)
        ]

    def parts(self, constants: Mapping[str, np.ndarray]) -> Parts:
        """Terms, prescribed values, the total, and whether each condition holds."""
        terms, prescribed = self._sizes
        kept, shape = terms + prescribed, self._shape("parts", constants)
        whole = np.empty((kept + 1, *shape))  # the last is the total
        verdicts = [np.empty(shape, dtype=bool) for _ in self._operators]
        for place, results in self._chunks("parts", constants, shape):
            sides = results[kept:]
            checked = [holds(sides[2 * i], op, sides[2 * i + 1]) for i, op in enumerate(self._operators)]
            if place is None:
                return Parts(results[:terms], results[terms:kept], np.asarray(sum(results[:terms])), checked)
            total = whole[-1][place]
            total[...] = results[0]
            for term in results[1:terms]:
                total += term
            for into, result in zip((*whole[:-1], *verdicts), (*results[:kept], *checked), strict=True):
                into[place] = result
        return Parts([*whole[:terms]], [*whole[terms:kept]], whole[-1], verdicts)


@lru_cache(maxsize=256)
def compile_form(form: Form, vectors: frozenset[str] = frozenset()) -> Compiled:
    """The compiled form, made once per process."""
    return Compiled(form, vectors)
