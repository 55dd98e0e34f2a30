"""Expressions as trees of plain data, over which enclosures are computed without sympy.

A tree has the parts of its expression in the same order. One that was read from a file loads its expression only where
it holds a function known by its values alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Union

if TYPE_CHECKING:
    import sympy as sp

Grown = Union["Tree", "sp.Expr"]

REDUCTIONS = {"sum_clients": "sum", "mean_clients": "mean", "max_clients": "max", "median_clients": "median"}


class Number(NamedTuple):
    """A number that an expression holds."""

    value: float | None  # the nearest double; None where it is not real
    exact: bool  # whether it is that double
    finite: bool  # whether it is finite, though no double may be as large
    ratio: tuple[int, int] | None = None  # numerator and denominator of a rational one
    word: str = ""  # what it is called if it is none: pi, e, gamma, inf, -inf or float ("" otherwise)


class Tree:
    """An expression.

    Attributes:
        kind: "symbol", "number", "named" (a number with a name; its part is its exact value), "+", "*", "**",
            "minimum", "maximum", "abs", "exp", "log", "floor", "ceil", one of `REDUCTIONS`, or "function".
        parts: its arguments.
        name: of a symbol.
        number: of a number.
        origin: the expression.
        names: of its symbols.
    """

    __slots__ = ("kind", "name", "names", "number", "origin", "parts")

    def __init__(
        self,
        kind: str,
        parts: tuple[Tree, ...] = (),
        name: str = "",
        number: Number | None = None,
        origin: Callable[[], Any] | None = None,
    ) -> None:
        self.kind, self.parts, self.name, self.number, self.origin = kind, parts, name, number, origin
        inside = () if kind == "named" else parts
        self.names = frozenset({name} if kind == "symbol" else ()).union(*(part.names for part in inside))

    def __str__(self) -> str:
        return str(self.expression)

    @property
    def expression(self) -> Any:
        """What it was made from."""
        return self.name if self.origin is None else self.origin()


def as_tree(expression: Grown) -> Tree:
    """The tree of an expression; of a tree, itself.

    Example:
        >>> import sympy as sp
        >>> x, y = sp.symbols("x y")
        >>> tree = as_tree(sp.sqrt(x) * y)
        >>> tree.kind, sorted(part.kind for part in tree.parts), sorted(tree.names)
        ('*', ['**', 'symbol'], ['x', 'y'])
    """
    if isinstance(expression, Tree):
        return expression
    return _tree_of(expression)


@lru_cache(maxsize=2**16)
def _tree_of(expression: sp.Expr) -> Tree:
    """The tree of an expression; equal expressions have the same one."""
    import sympy as sp  # takes its time

    from fedbounds.bounds.theory.expressions import parts
    from fedbounds.bounds.theory.named_numbers import NamedNumber

    def origin() -> sp.Expr:
        return expression

    if isinstance(expression, sp.Symbol):
        return Tree("symbol", name=expression.name, origin=origin)
    if isinstance(expression, NamedNumber):
        return Tree("named", (as_tree(expression.exact),), number=_number(expression), origin=origin)
    if expression.is_number and not expression.args and expression is not sp.nan:
        return Tree("number", number=_number(expression), origin=origin)
    return Tree(_kind(expression), tuple(map(as_tree, parts(expression))), origin=origin)


def _kind(expression: sp.Expr) -> str:
    import sympy as sp

    from fedbounds.bounds.theory.client_reductions import OverClients

    if isinstance(expression, OverClients):
        return expression.word
    kinds = {sp.Add: "+", sp.Mul: "*", sp.Pow: "**", sp.Min: "minimum", sp.Max: "maximum", sp.Abs: "abs"}
    functions = {sp.exp: "exp", sp.log: "log", sp.floor: "floor", sp.ceiling: "ceil"}
    named = next((kind for known, kind in kinds.items() if isinstance(expression, known)), "")
    return named or functions.get(type(expression), "function")


def _number(expression: sp.Expr) -> Number:
    import sympy as sp

    try:
        value = float(expression)
    except TypeError:  # complex
        return Number(None, False, False)
    words = {sp.pi: "pi", sp.E: "e", sp.EulerGamma: "gamma", sp.oo: "inf", -sp.oo: "-inf"}
    if not isinstance(expression, sp.Rational):
        whole = isinstance(expression, sp.Float)
        return Number(value, whole, bool(expression.is_finite), None, "float" if whole else words.get(expression, ""))
    ratio = int(expression.p), int(expression.q)
    return Number(value, math.isfinite(value) and Fraction(value) == Fraction(*ratio), True, ratio)


def names_in(*expressions: Grown) -> frozenset[str]:
    """The names of the symbols of these expressions."""
    return frozenset[str]().union(*(as_tree(e).names for e in expressions))


def postorder(trees: Iterable[Tree]) -> list[Tree]:
    """Every part of these trees once, those that others are made of first."""
    found: dict[Tree, None] = {}

    def visit(tree: Tree) -> None:
        if tree not in found:
            for part in tree.parts:
                visit(part)
            found[tree] = None

    for tree in trees:
        visit(tree)
    return list(found)


class Structure(NamedTuple):
    """What a search walks over in a form."""

    terms: tuple[Tree, ...]  # in order
    sides: tuple[tuple[Tree, Tree], ...]  # left and right of every condition
    length: int  # how many parts all of them have, with what stands there twice counted twice


def serialize_trees(trees: Sequence[Tree]) -> list[list[Any]]:
    """Trees, in the order of `postorder`, as data: the kind, then what it holds, or the places of its parts."""
    places = {tree: k for k, tree in enumerate(trees)}
    written: list[list[Any]] = []
    for tree in trees:
        if tree.kind == "symbol":
            written.append([tree.kind, tree.name])
        elif tree.number is not None:
            written.append([tree.kind, *tree.number, *(places[part] for part in tree.parts)])
        else:
            written.append([tree.kind, *(places[part] for part in tree.parts)])
    return written


def read_trees(written: Sequence[Sequence[Any]], origins: Callable[[], Sequence[Tree]]) -> list[Tree]:
    """Trees as `serialize_trees` has them.

    Example:
        >>> x = Tree("symbol", name="x")
        >>> trees = postorder([Tree("*", (x, Tree("exp", (x,))))])
        >>> serialize_trees(trees)
        [['symbol', 'x'], ['exp', 0], ['*', 0, 1]]
        >>> [sorted(tree.names) for tree in read_trees(serialize_trees(trees), lambda: trees)]
        [['x'], ['x'], ['x']]
    """
    trees: list[Tree] = []
    for place, (kind, *rest) in enumerate(written):
        name, number = "", None
        if kind == "symbol":
            (name,), rest = rest, []
        elif kind in ("number", "named"):
            value, exact, finite, ratio, word, *rest = rest
            number = Number(value, exact, finite, None if ratio is None else tuple(ratio), word)
        parts = tuple(trees[k] for k in rest)
        trees.append(Tree(kind, parts, name, number, lambda place=place: origins()[place].expression))
    return trees
