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
DIGITS = 4_000  # of a number, before and after its point, however it is written
PARTS, NESTED = 20_000, 150  # of an expression with the meaning of its names
RAISED = LARGEST_EXPONENT**2  # a number that is an exponent
TOWER, COMPARED = 2, 50  # exponentials inside each other, and arguments of min and max
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
        digits, _, power = text.lower().partition("e")
        if len(digits) > DIGITS or len(power) > len(str(DIGITS)) + 1 or abs(int(power or 0)) > DIGITS:
            raise ValueError(f"the number {text if len(text) < 20 else text[:20] + '...'} has over {DIGITS} digits")
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
        return _of_finite_size(whole)

    def power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        exponent = self.settled(exponent)
        if exponent.is_number and abs(exponent) > LARGEST_EXPONENT:
            raise ValueError(f"the exponent {exponent} is beyond {LARGEST_EXPONENT}")
        if exponent.is_number and any(_digits(each) * abs(exponent) > DIGITS for each in base.atoms(sp.Rational)):
            raise ValueError(f"a power of a number has over {DIGITS} digits")
        return _of_finite_size(sp.Pow(base, exponent))

    def call(self, name: str, values: Sequence[sp.Expr]) -> sp.Expr:
        if name not in self._functions:
            raise ValueError(f"unknown function {name!r}")
        return _of_finite_size(self._functions[name](*map(self.settled, values)))


def _digits(number: sp.Rational) -> float:
    """How many digits a fraction has, about."""
    return 0.301 * max(int(number.p).bit_length(), int(number.q).bit_length())


def _of_finite_size(expression: sp.Expr) -> sp.Expr:
    """The expression, unless it is an exponential with too many digits to be rounded."""
    if isinstance(expression, sp.exp) and expression.args[0].is_number and abs(expression.args[0]) > DIGITS:
        raise ValueError(f"exp is taken of a number beyond {DIGITS}")
    return expression


def _why_too_large(expression: sp.Expr) -> str:
    """Why an expression would take too long to compile or to evaluate; "" if it would not."""
    known: dict[sp.Basic, tuple[int, int, int]] = {}  # what occurs often is counted often, and measured once

    def measure(part: sp.Basic) -> tuple[int, int, int]:
        """Its parts, their nesting, and that of exponentials."""
        if part not in known:
            inside = [measure(each) for each in part.args]
            sizes, depths, towers = zip(*inside, strict=True) if inside else ((), (), ())
            grows = isinstance(part, sp.exp | sp.Pow) and part.args[-1].free_symbols  # the exponent
            tower = max(*towers, measure(part.args[-1])[2] + 1) if grows else max(towers, default=0)
            known[part] = (1 + sum(sizes), 1 + max(depths, default=0), tower)
        return known[part]

    size, depth, tower = measure(expression)
    if size > PARTS:
        return f"it has {size} parts, at most {PARTS} are read"
    if depth > NESTED:
        return f"it is nested deeper than {NESTED}"
    if tower > TOWER:
        return f"it has exponentials inside exponentials, deeper than {TOWER}"
    exponents = [each.args[-1] for each in expression.atoms(sp.Pow)]
    if raised := [each for each in exponents if isinstance(each, sp.Rational) and abs(each) > RAISED]:
        return f"the exponent {raised[0]} is beyond {RAISED}"
    compared = sum(len(each.args) for each in expression.atoms(sp.Max, sp.Min))
    return f"its min and max have {compared} arguments, at most {COMPARED} are read" if compared > COMPARED else ""


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
    found = algebra.settled(Parser(text, where, algebra, longest=LONGEST, deepest=DEEPEST).value())
    if why := _why_too_large(found):
        raise FedboundsError(f"{where}: {why}")
    return found
