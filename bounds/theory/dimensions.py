"""Dimensions of expressions: what unit a bound has, and which sum in it adds unlike things."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.expressions import parts
from fedbounds.bounds.theory.symbols import NONE, Dimension, Notation


class DimensionMismatch(FedboundsError):
    """A sum, minimum or transcendental function mixes units; the message names the offending factor."""

    def __init__(self, message: str, factor: sp.Expr) -> None:
        super().__init__(message)
        self.factor = factor


def dimension_of(expression: sp.Expr, notation: Notation) -> Dimension | None:
    r"""The unit of an expression in the paper's symbols; None for zero, which has every unit.

    Raises:
        DimensionMismatch: names the sum whose summands differ.

    Example:
        >>> from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
        >>> str(dimension_of(n.L * n.F, n))
        'f^2/x^2'
        >>> dimension_of(1 + n.sigma**2, n)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.theory.dimensions.DimensionMismatch: sigma**2 + 1 adds 1 and f^2/x^2
    """
    units = {quantity.symbol: quantity.dimension for quantity in notation.values()}
    return _dimension(expression, units)


def _same(expression: sp.Expr, units: Mapping[sp.Symbol, Dimension], word: str) -> Dimension | None:
    found: dict[Dimension, None] = {}
    for argument in parts(expression):
        dimension = _dimension(argument, units)
        if dimension is not None:
            found[dimension] = None
    if len(found) > 1:
        raise DimensionMismatch(f"{expression} {word} {' and '.join(sorted(map(str, found)))}", expression)
    return next(iter(found), None)


def _dimension(expression: sp.Expr, units: Mapping[sp.Symbol, Dimension]) -> Dimension | None:
    if expression.is_zero:
        return None
    if isinstance(expression, sp.Symbol):
        return units[expression]
    if expression.is_number:
        return NONE
    if isinstance(expression, sp.Mul):
        total = NONE
        for factor in expression.args:
            part = _dimension(factor, units)
            if part is None:
                return None
            total = total * part
        return total
    if isinstance(expression, sp.Pow):
        base, exponent = expression.args
        unit = _dimension(base, units)
        if unit is None or unit == NONE:
            return unit
        if not isinstance(exponent, sp.Rational):
            raise DimensionMismatch(f"{expression} raises {unit} to a power that is not a number", expression)
        return unit ** Fraction(int(exponent.p), int(exponent.q))
    if isinstance(expression, sp.Add):
        return _same(expression, units, "adds")
    if isinstance(expression, sp.Min | sp.Max):
        return _same(expression, units, "compares")
    if isinstance(expression, OverClients | sp.Abs):
        return _dimension(expression.args[0], units)
    for argument in parts(expression):
        unit = _dimension(argument, units)
        if unit not in (None, NONE):
            raise DimensionMismatch(f"{expression} applies a function to the unit {unit}", expression)
    return NONE
