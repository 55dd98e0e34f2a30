r"""Values as users type them: numbers, small expressions, vectors and files, read by a grammar of our own.

    expression := term (('+' | '-') term)*
    term       := factor (('*' | '/') factor)*
    factor     := ('+' | '-') factor | power
    power      := atom ('**' factor)?
    atom       := number | name | function '(' expression (',' expression)* ')' | '(' expression ')'

Names are other constants of the same call. Nothing is ever handed to `eval` or to a symbolic parser,
which would run code or read a letter as a function of its own; and an error points at the place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
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
    """Recursive descent over the tokens of one text; what the operations mean is the algebra's.

    Args:
        text: what to read.
        where: what it is the value of, for the message.
        algebra: the meaning of numbers, names, functions and operations.
        longest, deepest: how many characters are read, and how deep they may be nested.
    """

    def __init__(
        self, text: str, where: str, algebra: Algebra[V], *, longest: int = LONGEST, deepest: int = DEEPEST
    ) -> None:
        self._where, self._algebra, self._depth, self._deepest = where, algebra, 0, deepest
        if len(text) > longest:
            raise FedboundsError(f"{where}: the expression has {len(text)} characters, at most {longest} are read")
        self._text = text.strip()
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                self._fail(f"unexpected {self._text[position:].lstrip()[0]!r}")
            self._tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
            position = match.end()
        self._at = 0

    def _fail(self, what: str) -> NoReturn:
        shown = self._text if len(self._text) <= LONGEST else f"{self._text[:60]}..."
        raise FedboundsError(
            f"{self._where} = {shown!r}: {what}; a value is a number or an expression in constants with "
            "+ - * / ** sqrt log min max"
        )

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        token = self._peek()
        if token and token in wanted and self._tokens[self._at][0] == "op":
            self._at += 1
            return token
        return ""

    def value(self) -> V:
        """What the whole text says.

        Raises:
            FedboundsError: it does not follow the grammar, or the algebra refuses an operation.
        """
        if not self._tokens:
            self._fail("nothing there")
        try:
            result = self._expression()
        except FedboundsError:
            raise
        except ValueError as error:
            self._fail(str(error))
        if self._peek():
            self._fail(f"unexpected {self._peek()!r}")
        return result

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > self._deepest:
            self._fail(f"nested deeper than {self._deepest}")

    def _expression(self) -> V:
        self._deeper()
        terms = [("+", self._term())]
        while op := self._take("+", "-"):
            terms.append((op, self._term()))
        self._depth -= 1
        return self._algebra.total(terms) if len(terms) > 1 else terms[0][1]

    def _term(self) -> V:
        factors = [("*", self._factor())]
        while op := self._take("*", "/"):
            factors.append((op, self._factor()))
        return self._algebra.product(factors)

    def _factor(self) -> V:
        self._deeper()
        sign = self._take("+", "-")
        if sign:
            value = self._factor()
            result = self._algebra.negative(value) if sign == "-" else value
        else:
            result = self._power()
        self._depth -= 1
        return result

    def _power(self) -> V:
        base = self._atom()
        return self._algebra.power(base, self._factor()) if self._take("**") else base

    def _atom(self) -> V:
        if self._take("("):
            result = self._expression()
            if not self._take(")"):
                self._fail("a parenthesis is not closed")
            return result
        if self._at >= len(self._tokens):
            self._fail("it ends too early")
        kind, token = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return self._algebra.number(token)
        if kind != "name":
            self._fail(f"unexpected {token!r}")
        return self._call(token) if self._peek() == "(" else self._algebra.name(token)

    def _call(self, name: str) -> V:
        self._take("(")
        values = [self._expression()]
        while self._take(","):
            values.append(self._expression())
        if not self._take(")"):
            self._fail("a parenthesis is not closed")
        return self._algebra.call(name, values)


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
    """The numbers in a text or CSV file, in reading order.

    Raises:
        FedboundsError: no such file, too large, or an entry that is not a number (with its line).
    """
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
    """The values of `name=text` pairs; a value may refer to the other names.

    Args:
        assignments: name to text, number, or list of either ("@file" reads a vector from a file).

    Raises:
        FedboundsError: a value that cannot be read, an unknown name, a circle of references.

    Example:
        >>> parse_assignments({"L": "2", "gamma": "1/(12*L)", "p": "0.1, 0.35, 0.8"})
        {'L': 2.0, 'gamma': 0.041666666666666664, 'p': array([0.1 , 0.35, 0.8 ])}
        >>> parse_assignments({"tau": "3,"})
        {'tau': array([3.])}
    """
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

    Raises:
        FedboundsError: when it is called: it cannot be read, or not be computed there.

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
