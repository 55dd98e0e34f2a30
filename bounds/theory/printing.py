"""How expressions are written: plain text that `fedbounds.bounds.theory.parsing` reads back, and LaTeX in the paper's
symbols."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.expressions import parts, remade, rename_symbols
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.symbols import Notation

LONG = 100  # symbols, numbers and operations from which what is written has its repeated parts abbreviated
LARGE = 10**6  # numerators and denominators from which a fraction is printed as a decimal
DIGITS = 14  # characters of a decimal that is printed in full
WORTHWHILE = 9  # of them in a part that is worth a name
DELIMITED = re.compile(r"\{[^{}]*\}|\([^()]*\)|\[[^][]*\]|\\\|.*?\\\||\\langle.*?\\rangle")


class _Ordered:
    """What is subtracted comes last: n - P, not -P + n."""

    def _as_ordered_terms(self, expr: sp.Expr, order: str | None = None) -> list[sp.Expr]:
        terms = super()._as_ordered_terms(expr, order=order)  # pyright: ignore[reportAttributeAccessIssue]
        return sorted(terms, key=lambda term: bool(term.could_extract_minus_sign()))


class _Plain(_Ordered, StrPrinter):
    """Text in which every word is a symbol, a definition, or a function that `fedbounds.bounds.theory.parsing`
    knows."""

    def _call(self, name: str, arguments: Sequence[sp.Basic]) -> str:
        return f"{name}({', '.join(self._print(argument) for argument in arguments)})"

    def _print_Max(self, expr: sp.Expr) -> str:
        return self._call("max", expr.args)

    def _print_Min(self, expr: sp.Expr) -> str:
        return self._call("min", expr.args)

    def _print_Abs(self, expr: sp.Expr) -> str:
        return self._call("abs", expr.args)

    def _print_Exp1(self, expr: sp.Expr) -> str:
        return "exp(1)"

    def _print_Infinity(self, expr: sp.Expr) -> str:
        return "inf"

    def _print_Function(self, expr: sp.Function) -> str:
        return self._call(getattr(expr, "word", "") or type(expr).__name__, expr.args)


def _factor(symbol: str) -> str:
    r"""LaTeX of a symbol, in brackets if it is a sum outside all others: `F(w)-F^*`, and not `\|w-w^*\|^2`."""
    rest = symbol
    while (shorter := DELIMITED.sub("", rest)) != rest:
        rest = shorter
    return rf"\left({symbol}\right)" if "+" in rest or "-" in rest else symbol


class _Latex(_Ordered, LatexPrinter):
    """LaTeX in the symbols of a notation; sums run over its clients."""

    def __init__(self, notation: Notation) -> None:
        super().__init__({"symbol_names": {q.symbol: _factor(q.latex) for q in notation.values()}})
        number = notation.resolve("clients")
        entries = " ".join(q.latex for q in notation.values() if q.shape)
        # read by OverClients
        self.clients = "i" if re.search(r"_\{?i\b", entries) else "n", "N" if number is None else number.latex

    def _needs_mul_brackets(self, expr: sp.Expr, first: bool = False, last: bool = False) -> bool:
        """A sum over clients ends where the product ends."""
        return super()._needs_mul_brackets(expr, first=first, last=last) or (not last and isinstance(expr, OverClients))


@lru_cache(maxsize=2**16)
def plain(expression: sp.Expr) -> str:
    """The expression as text.

    Example:
        >>> n, P = sp.symbols("n P", positive=True)
        >>> plain(1 - (n - P) / sp.Max(1, n - 1))
        '1 - (n - P)/max(1, n - 1)'
    """
    return _Plain().doprint(expression)


def plain_decimals(expression: sp.Expr) -> str:
    """The expression as text for people, in which fractions of many digits are decimals: exact ones where short.

    Example:
        >>> q, L = sp.symbols("q L", positive=True)
        >>> [plain_decimals(sp.Rational(text) * q / L) for text in ("12/7", "1.0000000001", "0.333333333333333314")]
        ['12*q/(7*L)', '1.0000000001*q/L', '0.333333*q/L']
    """
    long = [one for one in expression.atoms(sp.Rational) if one.q > 1 and max(abs(one.p), one.q) >= LARGE]
    texts = {one: repr(float(one)) for one in long}
    exact = {one for one, text in texts.items() if len(text) <= DIGITS and sp.Rational(text) == one}
    decimals = {one: sp.Float(text if one in exact else f"{float(one):.6g}") for one, text in texts.items()}
    return _Plain({"full_prec": False}).doprint(expression.xreplace(decimals))


def latex(expression: sp.Basic, notation: Notation) -> str:
    r"""The expression in the symbols of a paper.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("fed-norm-sgda/theorem-1")
        >>> latex(theorem.form("printed").conditions[0].left, theorem.notation)
        '\\sum_iw_i'
    """
    return _Latex(notation).doprint(expression)


@dataclass(frozen=True)
class NamedParts:
    """Expressions with the names that they use."""

    expressions: tuple[sp.Expr, ...]  # in order, with their repeated parts abbreviated
    parts: dict[str, sp.Expr]  # name to what it abbreviates, each made of symbols, numbers and names before it
    numbers: dict[str, sp.Expr]  # the named numbers, each made of those before it

    def definitions(self) -> list[tuple[str, sp.Expr]]:
        """Every name with its meaning, in an order in which they can be read."""
        return [*self.numbers.items(), *self.parts.items()]


def name_shared_parts(expressions: Iterable[sp.Expr], notation: Notation) -> NamedParts:
    """The expressions as they are printed: in long ones, repeated parts get names X1, X2, ..."""
    short = tuple(expressions)
    parts: list[tuple[sp.Symbol, sp.Expr]] = []
    while sum(map(_size, short)) > LONG and (part := _worth_a_name([*short, *(p for _, p in parts)])):
        symbol = sp.Symbol(f"X{len(parts) + 1}", **_sign(part))
        short = tuple(rename_symbols(e, {part: symbol}) for e in short)
        parts = [*((s, rename_symbols(e, {part: symbol})) for s, e in parts), (symbol, part)]
    parts = _readable(parts)
    free = [name for k in range(1, 2 * len(parts) + 9) if (name := f"X{k}") not in notation]
    names: dict[sp.Basic, sp.Expr] = {s: sp.Symbol(free[k], **_sign(s)) for k, (s, _) in enumerate(parts)}
    short = tuple(rename_symbols(e, names) for e in short)
    named = {str(names[s]): rename_symbols(e, names) for s, e in parts}
    return NamedParts(short, named, _numbers([*short, *named.values()]))


@dataclass(frozen=True)
class Printed:
    """An expression as papers write it."""

    expression: sp.Expr  # equal to ours for two clients or more
    # the quotients in it that are 0/0 for one client, each with what ours then is
    alone: frozenset[tuple[sp.Expr, sp.Expr]] = frozenset()


def as_printed(expression: sp.Expr, notation: Notation) -> Printed:
    """The expression without guards against 0/0, and without a number of clients that cancels.

    Ours is what is proved, evaluated and read back: it divides by max(1, n - 1), so that n = 1 is an answer.
    """
    clients = notation.resolve("clients")
    return Printed(expression) if clients is None else _print_count(expression, clients.symbol)


@lru_cache(maxsize=2**16)
def _print_count(expression: sp.Expr, n: sp.Symbol) -> Printed:
    if n not in expression.free_symbols:
        return Printed(expression)
    guard, alone = sp.Max(1, n - 1), frozenset()
    if isinstance(expression, sp.Add) and expression.has(guard):
        above = sp.expand((1 - expression) * guard)
        if expression == 1 - above / guard and _vanishes(above):
            quotient = (n - 1 - above) / (n - 1)
            return Printed(quotient, frozenset({(quotient, sp.S.One)}))
    if isinstance(expression, sp.Mul):
        powers = dict(map(_power, parts(expression)))
        above = next(filter(_vanishes, powers), None)
        if above is not None and powers.get(guard, sp.S.Zero).is_negative:  # 0/0 for one client, and 0 with the guard
            expression *= (guard / (n - 1)) ** -powers[guard]
            alone = frozenset({(above / (n - 1), sp.S.Zero)})
    inside = [_print_count(part, n) for part in parts(expression)]
    if inside:
        expression = remade(expression, [part.expression for part in inside])
    return Printed(_cancel_count(expression, n), alone.union(*(part.alone for part in inside)))


def _power(factor: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The base and the exponent of a factor, 1 if it is no power."""
    return factor.as_base_exp()


def _vanishes(counts: sp.Expr) -> bool:
    """Whether a difference of counts is 0 where all are 1, as n - P is for one client."""
    ones = dict.fromkeys(counts.free_symbols, sp.S.One)
    return bool(counts.is_Add and counts.is_integer) and counts.xreplace(ones) == 0


def _cancel_count(product: sp.Expr, n: sp.Symbol) -> sp.Expr:
    """A product in which n stands above a sum or a maximum with n below: n is taken inside."""
    powers = dict(map(_power, sp.Mul.make_args(product)))
    if powers.get(n, sp.S.Zero).is_positive:
        above = n ** powers[n]
        for factor in powers:
            if isinstance(factor, sp.Add | sp.Max | sp.Min) and any(_divides(n, part) for part in parts(factor)):
                inside = remade(factor, [_cancel_count(part * above, n) for part in parts(factor)])
                return product / factor / above * inside
    return product


def _divides(n: sp.Symbol, part: sp.Expr) -> bool:
    """Whether n stands below the line."""
    return bool(dict(map(_power, sp.Mul.make_args(part))).get(n, sp.S.Zero).is_negative)


def _sign(expression: sp.Expr) -> dict[str, bool]:
    """What a symbol must know so that it can stand for the expression."""
    known = {"positive": expression.is_positive, "nonnegative": expression.is_nonnegative, "real": expression.is_real}
    return {name: True for name, value in known.items() if value}


def _worth_a_name(expressions: Sequence[sp.Expr]) -> sp.Expr | None:
    """The longest part that occurs more than once; None if none is long enough."""
    counts = Counter(
        part
        for expression in expressions
        for part in sp.preorder_traversal(expression)
        if isinstance(part, sp.Add | sp.Function | sp.Max | sp.Min) and part.free_symbols
    )
    sizes = {part: _size(part) for part, count in counts.items() if count > 1}
    largest = max(sizes.values(), default=0)
    return min((part for part, size in sizes.items() if size == largest >= WORTHWHILE), key=plain, default=None)


@lru_cache(maxsize=2**16)
def _size(expression: sp.Basic) -> int:
    """How many symbols, numbers and operations it has."""
    return 1 + sum(map(_size, expression.args))


def _readable(parts: Sequence[tuple[sp.Symbol, sp.Expr]]) -> list[tuple[sp.Symbol, sp.Expr]]:
    """The parts in an order in which each is made of earlier ones."""
    left, done = list(parts), []
    while left:
        open_ = {symbol for symbol, _ in left}
        done += [part for part in left if not part[1].free_symbols & open_]
        left = [part for part in left if part not in done]
    return done


def _numbers(expressions: Iterable[sp.Expr]) -> dict[str, sp.Expr]:
    """The named numbers in the expressions, and those that these are made of, first."""
    found: dict[str, sp.Expr] = {}

    def visit(expression: Any) -> None:
        for number in sorted(expression.atoms(NamedNumber), key=lambda number: number.name):
            visit(number.exact)
            found.setdefault(number.name, number.exact)

    for expression in expressions:
        visit(expression)
    return found
