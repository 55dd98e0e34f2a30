"""Compiled forms: one numpy function per form, with common subexpressions, run in chunks that fit the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import sympy as sp
from sympy.printing.numpy import NumPyPrinter

from bounds.clients import REDUCTIONS
from bounds.result import Form

CHUNK = 8192  # entries per array and pass: a dozen float64 temporaries stay within a second-level cache


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


class Compiled:
    """The numpy functions of one form.

    `value(constants)` is the bound alone; `parts(constants)` is every term, both sides of every condition, the extreme
    admissible value that each condition leaves to the constant it limits, and the prescribed step sizes.
    Constants are arrays that broadcast against each other; a vector over clients has the clients last.
    """

    def __init__(self, form: Form, vectors: frozenset[str]) -> None:
        self._vectors = vectors
        terms = [t.expression for t in form.terms]
        self._counts = (len(terms), len(form.conditions), len(form.prescribes))
        self.extremes = [c.extreme for c in form.conditions]
        pieces = list(terms)
        pieces += [side for c in form.conditions for side in (c.left, c.right)]
        pieces += [sp.nan if e is None else e for e in self.extremes]
        pieces += form.prescribes.values()
        self._parts = tuple(pieces)
        self._total = (sp.Add(*terms),)
        self._names = arguments(pieces)
        self._value_names = arguments(self._total)
        self._functions: dict[str, Callable[..., list[np.ndarray]]] = {}

    def _function(self, which: str) -> tuple[Callable[..., list[np.ndarray]], tuple[sp.Symbol, ...]]:
        names, expressions = (self._names, self._parts) if which == "parts" else (self._value_names, self._total)
        if which not in self._functions:
            self._functions[which] = compile_expressions(names, expressions)
        return self._functions[which], names

    def _run(self, which: str, count: int, constants: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        function, names = self._function(which)
        values = {s.name: np.asarray(constants[s.name], dtype=float) for s in names}
        any_vector = bool(self._vectors & values.keys())
        if any_vector:
            values = {k: v if k in self._vectors else v[..., None] for k, v in values.items()}
        lead = [v.shape[:-1] if any_vector else v.shape for v in values.values()]
        shape: tuple[int, ...] = np.broadcast_shapes(*lead) if lead else ()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if math.prod(shape) <= CHUNK:
                out = function(*values.values())
                if any_vector:
                    out = [np.asarray(o)[..., 0] if np.ndim(o) else np.asarray(o) for o in out]
                return [np.asarray(o, dtype=float) for o in out]
            results = [np.empty(shape) for _ in range(count)]
            first, *rest = shape
            rows = max(1, CHUNK // max(1, math.prod(rest)))
            # inputs that vary along the first axis are sliced; the others are used whole
            full = [len(one) == len(shape) and one[0] == first for one in lead]
            for start in range(0, first, rows):
                piece = slice(start, start + rows)
                chunk = [v[piece] if along else v for v, along in zip(values.values(), full, strict=True)]
                for result, out in zip(results, function(*chunk), strict=True):
                    result[piece] = np.asarray(out)[..., 0] if any_vector and np.ndim(out) else out
            return results

    def value(self, constants: Mapping[str, np.ndarray]) -> np.ndarray:
        """The bound alone, at every setting."""
        return self._run("value", 1, constants)[0]

    def parts(
        self, constants: Mapping[str, np.ndarray]
    ) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]], list[np.ndarray], list[np.ndarray]]:
        """Terms; (left, right) of each condition; the extremes (nan where none); prescribed values."""
        terms, conditions, prescribed = self._counts
        flat = self._run("parts", terms + 3 * conditions + prescribed, constants)
        sides = flat[terms : terms + 2 * conditions]
        rest = flat[terms + 2 * conditions :]
        pairs = [(sides[2 * i], sides[2 * i + 1]) for i in range(conditions)]
        return flat[:terms], pairs, rest[:conditions], rest[conditions:]


@lru_cache(maxsize=256)
def compile_form(form: Form, vectors: frozenset[str] = frozenset()) -> Compiled:
    """The compiled form, made once per process."""
    return Compiled(form, vectors)
