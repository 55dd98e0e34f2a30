"""Values as users type them: numbers, small expressions, vectors and files.

`ast.parse` reads the structure of an expression, in which every number and name is replaced by a placeholder; the nodes
in `Parser` are allowed, and everything else is an error. Nothing is handed to `eval` or to a symbolic parser.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Generic, NoReturn, Protocol, TypeVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import is_number, quote, read_number
from fedbounds.bounds.inputs.user_files import read_text

LONGEST = 500  # characters in one value
DEEPEST = 40  # nested parentheses, signs or powers
LARGEST_EXPONENT = 64
LARGEST_FILE = 16 * 2**20  # bytes in a file of numbers
FUNCTIONS: Mapping[str, tuple[Callable[..., float], int | None]] = {
    "sqrt": (math.sqrt, 1),
    "log": (math.log, 1),
    "min": (min, None),
    "max": (max, None),
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|[-+*/(),]))"
)


V = TypeVar("V")


class Algebra(Protocol[V]):
    """What the operations of the grammar mean; ValueError for what they cannot do."""

    def number(self, text: str) -> V: ...
    def name(self, name: str) -> V: ...
    def negative(self, value: V) -> V: ...
    def total(self, terms: Sequence[tuple[str, V]]) -> V: ...
    def product(self, factors: Sequence[tuple[str, V]]) -> V: ...
    def power(self, base: V, exponent: V) -> V: ...
    def call(self, name: str, values: Sequence[V]) -> V: ...


class _Numbers:
    """Floating-point numbers."""

    def __init__(self, lookup: Callable[[str], float]) -> None:
        self._lookup = lookup

    def number(self, text: str) -> float:
        return float(text)

    def name(self, name: str) -> float:
        return float(name) if name in ("inf", "nan") else self._lookup(name)

    def negative(self, value: float) -> float:
        return -value

    def total(self, terms: Sequence[tuple[str, float]]) -> float:
        result = terms[0][1]
        for sign, term in terms[1:]:
            result = result + term if sign == "+" else result - term
        return result

    def product(self, factors: Sequence[tuple[str, float]]) -> float:
        result = factors[0][1]
        for sign, factor in factors[1:]:
            if sign == "/" and factor == 0:
                raise ValueError("division by zero")
            result = result * factor if sign == "*" else result / factor
        return result

    def power(self, base: float, exponent: float) -> float:
        if abs(exponent) > LARGEST_EXPONENT:
            raise ValueError(f"the exponent {exponent:g} is beyond {LARGEST_EXPONENT}")
        return self._real(lambda: base**exponent)

    def call(self, name: str, values: Sequence[float]) -> float:
        if name not in FUNCTIONS:
            raise ValueError(f"unknown function {name!r}")
        function, arity = FUNCTIONS[name]
        if arity is not None and len(values) != arity:
            raise ValueError(f"{name} takes {arity} argument, not {len(values)}")
        return self._real(lambda: function(*values) if arity else function(values))

    def _real(self, compute: Callable[[], float]) -> float:
        try:
            result = compute()
        except OverflowError:
            raise ValueError("too large a number") from None
        except ZeroDivisionError as error:
            raise ValueError(str(error)) from None
        if isinstance(result, complex):
            raise ValueError("not a real number")
        return float(result)


class Parser(Generic[V]):
    """One expression; the algebra gives numbers, names, functions and operations their meaning.

    Args:
        text: the expression.
        where: the constant whose value it is, for messages.
        algebra: the operations.
        longest, deepest: limits of its characters and of its nesting.
    """

    def __init__(
        self, text: str, where: str, algebra: Algebra[V], *, longest: int = LONGEST, deepest: int = DEEPEST
    ) -> None:
        self._where, self._algebra, self._deepest = where, algebra, deepest
        if len(text) > longest:
            raise FedboundsError(f"{where}: the expression has {len(text)} characters, at most {longest} are read")
        self._text = text.strip()
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                found = self._text[position:].lstrip()[0]
                self._fail(f"unexpected {found!r}{' (write 10% as 0.1)' if found == '%' else ''}")
            self._tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
            position = match.end()

    def _fail(self, problem: str) -> NoReturn:
        shown = self._text if len(self._text) <= LONGEST else f"{self._text[:60]}..."
        raise FedboundsError(
            f"{self._where} = {shown!r}: {problem}; a value is a number or an expression in constants with "
            "+ - * / ** sqrt log min max"
        )

    def value(self) -> V:
        """The value of the whole text."""
        if not self._tokens:
            self._fail("nothing there")
        self._check_parentheses()
        try:
            return self._evaluate(self._parse(), 0)
        except FedboundsError:
            raise
        except ValueError as error:
            self._fail(str(error))

    def _check_parentheses(self) -> None:
        depth = 0
        for _, token in self._tokens:
            depth += (token == "(") - (token == ")")
            if depth < 0:
                self._fail("unexpected ')'")
            if depth > self._deepest:
                self._fail(f"nested deeper than {self._deepest}")
        if depth:
            self._fail("a parenthesis is not closed")

    def _parse(self) -> ast.expr:
        """The structure of the text, with a placeholder for each number and name: no literal or keyword of Python."""
        words = [token if kind == "op" else f"_{k}" for k, (kind, token) in enumerate(self._tokens)]
        try:
            return ast.parse(" ".join(words), mode="eval").body
        except SyntaxError as error:
            # the last token of the range that Python reports, or the end
            stop = max(error.offset or 1, (error.end_offset or 1) - 1)
            starts = accumulate((len(word) + 1 for word in words), initial=1)
            found = [token for start, (_, token) in zip(starts, self._tokens, strict=False) if start <= stop]
            ended = not error.offset or stop > len(" ".join(words))
            self._fail("it ends too early" if ended else f"unexpected {found[-1]!r}")
        except (MemoryError, RecursionError):
            self._fail(f"nested deeper than {self._deepest}, or of thousands of terms")

    def _evaluate(self, node: ast.expr, depth: int) -> V:
        if depth > self._deepest:
            self._fail(f"nested deeper than {self._deepest}")
        match node:
            case ast.Name(id=name):
                kind, token = self._tokens[int(name[1:])]
                return self._algebra.number(token) if kind == "number" else self._algebra.name(token)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._evaluate(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._algebra.product([("*", self._algebra.negative(self._evaluate(operand, depth + 1)))])
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return self._algebra.power(self._evaluate(left, depth + 1), self._evaluate(right, depth + 1))
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self._algebra.total(self._operands(node, {ast.Add: "+", ast.Sub: "-"}, depth))
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                return self._algebra.product(self._operands(node, {ast.Mult: "*", ast.Div: "/"}, depth))
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=[]):
                kind, token = self._tokens[int(name[1:])]
                if kind == "name":
                    return self._algebra.call(token, [self._evaluate(argument, depth + 1) for argument in arguments])
        self._fail("not an expression of numbers")

    def _operands(self, node: ast.expr, signs: Mapping[type[ast.operator], str], depth: int) -> list[tuple[str, V]]:
        """The operands of a + b - c or a * b / c, each with its sign."""
        found: list[tuple[str, ast.expr]] = []
        while isinstance(node, ast.BinOp) and type(node.op) in signs:
            found.append((signs[type(node.op)], node.right))
            node = node.left
        found.append((next(iter(signs.values())), node))
        return [(sign, self._evaluate(operand, depth + 1)) for sign, operand in reversed(found)]


def split_list(text: str) -> list[str]:
    """Split at the commas outside parentheses.

    Example:
        >>> split_list("0.1, min(1, 2), 3")
        ['0.1', 'min(1, 2)', '3']
    """
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts


def read_numbers(path: str | Path, where: str) -> np.ndarray:
    """The numbers in a text or CSV file, in reading order."""
    import csv  # takes its time

    file = Path(path)
    try:
        text = read_text(file, str(file), LARGEST_FILE)
    except FedboundsError as error:
        raise FedboundsError(f"{where}: {error}") from None
    numbers: list[float] = []
    try:
        rows = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise FedboundsError(f"{where}: {file} is not a CSV file: {error}") from None
    for line, row in enumerate(rows, start=1):
        for cell in row:
            try:
                numbers += [read_number(cell)] if cell.strip() else []
            except ValueError:
                raise FedboundsError(f"{where}: {file}, line {line}: {quote(cell.strip())} is not a number") from None
    if not numbers:
        raise FedboundsError(f"{where}: {file} holds no numbers")
    return np.array(numbers)


def parse_assignments(assignments: Mapping[str, object]) -> dict[str, float | np.ndarray]:
    """The values of `name=text` pairs; a value may refer to the other names."""
    done: dict[str, float | np.ndarray] = {}
    pending: list[str] = []

    def number(text: object, where: str) -> float:
        if not isinstance(text, str) and not is_number(text):
            raise FedboundsError(f"{where} = {quote(text)} is not a number")
        if not isinstance(text, str):
            try:
                return float(text)
            except OverflowError:
                raise FedboundsError(f"{where} = {quote(text)} is too large a number") from None
        return Parser(text, where, _Numbers(lambda name: reference(name, where))).value()

    def reference(name: str, where: str) -> float:
        if name not in assignments:
            others = [n for n in assignments if n != where]
            if not others:
                raise FedboundsError(f"unknown name in {where} {quote(name)}: write a number")
            raise unknown_name(f"name in {where}", name, others)
        value = resolve(name)
        if isinstance(value, np.ndarray):
            raise FedboundsError(f"{where}: {name} is a vector and cannot be used in an expression")
        return value

    def resolve(name: str) -> float | np.ndarray:
        if name in done:
            return done[name]
        if name in pending:
            raise FedboundsError(f"the values refer to each other in a circle: {' -> '.join([*pending, name])}")
        pending.append(name)
        raw = assignments[name]
        if isinstance(raw, str) and raw.strip().startswith("@"):
            done[name] = read_numbers(raw.strip()[1:], name)
        else:
            parts = raw if isinstance(raw, list) else split_list(raw) if isinstance(raw, str) else [raw]
            vector = isinstance(raw, list) or len(parts) > 1
            parts = parts[:-1] if vector and parts[-1] == "" else parts
            numbers = [number(part, name) for part in parts]
            done[name] = np.array(numbers) if vector else numbers[0]
        pending.pop()
        return done[name]

    return {name: resolve(name) for name in assignments}


def names_in(text: object) -> set[str]:
    """The names in an expression; none in anything else.

    Example:
        >>> sorted(names_in("sqrt(9/P)")), names_in("@rates.csv"), names_in(2.5)
        (['P', 'sqrt'], set(), set())
    """
    if not isinstance(text, str) or text.strip().startswith("@"):
        return set()
    return {match["name"] for match in _TOKEN.finditer(text) if match["name"]}


def parse_function(
    name: str, argument: str, text: str, constants: Mapping[str, float | np.ndarray]
) -> Callable[[float], float]:
    """The function of one argument that an expression in it and in constants is.

    Example:
        >>> parse_function("delta", "P", "d*sqrt(9/P)", {"d": 2.0})(4)
        3.0
    """

    def function(value: float) -> float:
        def lookup(word: str) -> float:
            known = constants.get(word)
            if word == argument:
                return float(value)
            if known is None:
                raise unknown_name(f"name in {name}", word, [*constants, argument])
            if isinstance(known, np.ndarray):
                raise FedboundsError(f"{name}: {word} is a vector and cannot be used in an expression")
            return known

        return Parser(text, name, _Numbers(lookup)).value()

    return function
