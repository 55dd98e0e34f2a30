"""Reading what `fedbounds.bounds.theory.printing` writes: text to expressions, by the grammar of values and no
other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.value_grammar import LARGEST_EXPONENT, Parser
from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.names_by_meaning import unknown_symbol
from fedbounds.bounds.theory.result import Result

LONGEST = 200_000  # characters in one line
DEEPEST = 100
FUNCTIONS: Mapping[str, Callable[..., sp.Expr]] = {
    "sqrt": sp.sqrt,
    "log": sp.log,
    "exp": sp.exp,
    "abs": sp.Abs,
    "floor": sp.floor,
    "ceiling": sp.ceiling,
    "min": lambda *values: sp.Min(*values, evaluate=False),
    "max": lambda *values: sp.Max(*values, evaluate=False),
    **{reduction.word: reduction for reduction in OverClients.__subclasses__()},
}


class _Expressions:
    """What the grammar's operations mean for expressions; sums and products are put together at once, so that
    nothing is multiplied out."""

    def __init__(self, names: Mapping[str, sp.Expr], functions: Mapping[str, Callable[..., sp.Expr]]) -> None:
        self._names, self._functions = names, functions

    def number(self, text: str) -> sp.Expr:
        return sp.Rational(text)

    def name(self, name: str) -> sp.Expr:
        if name == "inf":
            return sp.oo
        if name not in self._names:
            raise unknown_symbol(name, self._names)
        return self._names[name]

    def negative(self, value: sp.Expr) -> sp.Expr:
        return sp.Mul(-1, value, evaluate=False)

    def settled(self, value: sp.Expr) -> sp.Expr:
        """A product as sympy has it where it stands alone: 2*(a + b) is 2*a + 2*b, but 1/(2*(a + b)) is not."""
        return sp.Mul(*sp.Mul.make_args(value))

    def total(self, terms: Sequence[tuple[str, sp.Expr]]) -> sp.Expr:
        return sp.Add(*(sp.Mul(*((-1,) if sign == "-" else ()), *sp.Mul.make_args(term)) for sign, term in terms))

    def product(self, factors: Sequence[tuple[str, sp.Expr]]) -> sp.Expr:
        if any(sign == "/" and factor == 0 for sign, factor in factors):
            raise ValueError("division by zero")
        powers = [sp.Pow(factor, -1) if sign == "/" else factor for sign, factor in factors]
        parts = [part for power in powers for part in sp.Mul.make_args(power)]
        whole = sp.Mul(*parts)
        if isinstance(whole, sp.Add) and len(parts) > 1:  # a number multiplied out
            number = sp.Mul(*(part for part in parts if part.is_Rational))
            return sp.Mul(number, *(part for part in parts if not part.is_Rational), evaluate=False)
        return whole

    def power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        exponent = self.settled(exponent)
        if exponent.is_number and abs(exponent) > LARGEST_EXPONENT:
            raise ValueError(f"the exponent {exponent} is beyond {LARGEST_EXPONENT}")
        return sp.Pow(base, exponent)

    def call(self, name: str, values: Sequence[sp.Expr]) -> sp.Expr:
        if name not in self._functions:
            raise ValueError(f"unknown function {name!r}")
        return self._functions[name](*map(self.settled, values))


def read_expression(text: str, result: Result) -> sp.Expr:
    """The expression that a text of `fedbounds show --sympy` says, in the symbols of a result.

    Lines NAME = EXPRESSION define what the lines after them use; the last line is the expression itself. A definition
    without symbols is a named number.
    """
    names: dict[str, sp.Expr] = {q.name: q.symbol for q in result.notation.values()}
    functions = {**_functions_of(result), **FUNCTIONS}
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise FedboundsError("there is no expression to read")
    for line in lines[:-1]:
        name, equals, meaning = (part.strip() for part in line.partition("="))
        if not equals or not name.isidentifier() or name in names:
            raise FedboundsError(f"{line!r} does not define a new name; it reads NAME = EXPRESSION")
        value = read_text_expression(meaning, name, names, functions)
        names[name] = value if value.free_symbols else NamedNumber(name, value)
    return read_text_expression(lines[-1], "expression", names, functions)


@lru_cache(maxsize=256)
def _functions_of(result: Result) -> dict[str, Callable[..., Any]]:
    """The functions in a result's forms, by name."""
    own = {type(f) for form in result.forms for e in form.expressions for f in e.atoms(sp.Function)}
    return {f.__name__: f for f in own if not issubclass(f, OverClients)}


def is_finite_real(expression: sp.Expr) -> bool:
    """Whether nothing in an expression is known to be infinite or not real.

    Example:
        >>> is_finite_real(sp.sqrt(2)), is_finite_real(sp.sqrt(-2)), is_finite_real(1 / sp.Integer(0))
        (True, False, False)
    """
    atoms = expression.atoms()
    return not (
        expression.is_real is False
        or expression.has(sp.sqrt(-1))
        or any(atom.is_number and atom.is_finite is not True for atom in atoms)
    )


def read_text_expression(
    text: str, where: str, names: Mapping[str, sp.Expr], functions: Mapping[str, Callable[..., sp.Expr]]
) -> sp.Expr:
    """The expression that one line says."""
    algebra = _Expressions(names, functions)
    return algebra.settled(Parser(text, where, algebra, longest=LONGEST, deepest=DEEPEST).value())
