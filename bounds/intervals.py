"""Enclosures: what values an expression can take when its symbols range over intervals.

An enclosure never misses a value, so it can prove that no number of rounds in a block reaches a target. Many blocks
are enclosed in one call: every interval is a pair of arrays that broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import sympy as sp

from bounds.clients import REDUCTIONS, OverClients
from bounds.compilation import STEP, arguments, compile_expressions
from bounds.expressions import parts, symbol_names

Interval = tuple[np.ndarray, np.ndarray]


class CannotEnclose(Exception):
    """A function of a free symbol that intervals know nothing about; caught by whoever asks."""


_RISING: Mapping[type, Callable[[np.ndarray], np.ndarray]] = {
    sp.exp: np.exp,
    sp.log: np.log,
    sp.floor: lambda x: np.floor(x + STEP * np.abs(x)),  # as compiled: 27296/853 is 32, computed or not
    sp.ceiling: lambda x: np.ceil(x - STEP * np.abs(x)),
}


def enclose(expression: sp.Expr, ranges: Mapping[str, Interval]) -> Interval:
    """The smallest and largest value that the expression may take, by interval arithmetic.

    Args:
        expression: the symbols' names are the keys of `ranges`.
        ranges: name to (low, high) arrays, the same array twice for what is fixed; vectors over clients are fixed.

    Raises:
        CannotEnclose: a function of something that is not fixed and of which only values are known.

    Example:
        >>> T = sp.Symbol("T", positive=True)
        >>> low, high = enclose(sp.sqrt(T) / sp.floor(T / 2), {"T": (np.array([4.0, 16.0]), np.array([9.0, 16.0]))})
        >>> low.tolist(), high.tolist()
        ([0.5, 0.5], [1.5, 0.5])
    """
    with np.errstate(all="ignore"):
        return _enclose(expression, ranges)


def fixed_value(expression: sp.Expr, values: Mapping[str, float | np.ndarray]) -> float:
    """The expression at numbers for all its symbols; reductions over clients take vectors.

    Example:
        >>> x = sp.Symbol("x")
        >>> fixed_value(sp.sqrt(x) + sp.Rational(1, 2), {"x": 4.0})
        2.5
    """
    fixed = {name: np.asarray(v, dtype=float) for name, v in values.items()}
    return float(enclose(expression, {name: (v, v) for name, v in fixed.items()})[0])


def _enclose(e: sp.Expr, ranges: Mapping[str, Interval]) -> Interval:
    if isinstance(e, sp.Symbol):
        return ranges[e.name]
    if e.is_number and not e.has(sp.nan):
        number = np.asarray(float(e))
        return number, number
    if isinstance(e, OverClients):
        return _reduced(e, ranges)
    inner = [_enclose(a, ranges) for a in parts(e)]
    if isinstance(e, sp.Add):
        return reduce(lambda x, y: (_known(x[0] + y[0], -np.inf), _known(x[1] + y[1], np.inf)), inner)
    if isinstance(e, sp.Mul):
        return reduce(_product, inner)
    if isinstance(e, sp.Pow):
        return _power(inner[0], inner[1])
    if isinstance(e, sp.Min):
        return reduce(np.minimum, (p[0] for p in inner)), reduce(np.minimum, (p[1] for p in inner))
    if isinstance(e, sp.Max):
        return reduce(np.maximum, (p[0] for p in inner)), reduce(np.maximum, (p[1] for p in inner))
    if isinstance(e, sp.Abs):
        ((low, high),) = inner
        return np.maximum(0, np.maximum(low, -high)), np.maximum(-low, high)
    if type(e) not in _RISING:
        return _computed(e, ranges)
    ((low, high),) = inner
    rising = _RISING[type(e)]
    return _known(rising(low), -np.inf), _known(rising(high), np.inf)


def _reduced(e: OverClients, ranges: Mapping[str, Interval]) -> Interval:
    """A sum, mean, maximum or median over clients rises with every entry."""
    names = symbol_names(e)
    inside: dict[str, Interval] = {}
    for name in names:
        low, high = ranges[name]
        if low is not high:
            inside[name] = low[..., None], high[..., None]
        else:  # fixed: a vector over clients, or a number
            fixed = low if low.ndim else low[..., None]
            inside[name] = fixed, fixed
    low, high = _enclose(parts(e)[0], inside)
    reduce_ = REDUCTIONS[type(e).__name__]
    return reduce_(np.atleast_1d(low))[..., 0], reduce_(np.atleast_1d(high))[..., 0]


def _computed(e: sp.Expr, ranges: Mapping[str, Interval]) -> Interval:
    """A function of which nothing is known but its values: its arguments must be fixed."""
    names = arguments([e])
    if any(ranges[s.name][0] is not ranges[s.name][1] for s in names):
        raise CannotEnclose(str(e))
    value = np.asarray(compile_expressions(names, (e,))(*(ranges[s.name][0] for s in names))[0], dtype=float)
    return value, value


def _known(values: np.ndarray, otherwise: float) -> np.ndarray:
    """An undetermined end (inf - inf, a logarithm of a negative number) becomes the one that misses nothing."""
    return np.where(np.isnan(values), otherwise, values)


def _product(x: Interval, y: Interval) -> Interval:
    corners = [a * b for a in x for b in y]
    positive = (x[0] >= 0) & (y[0] >= 0)  # there 0 * inf, the limit of larger products, is at least 0
    low = reduce(np.minimum, [np.where(np.isnan(c), np.where(positive, 0.0, -np.inf), c) for c in corners])
    high = reduce(np.maximum, [_known(c, np.inf) for c in corners])
    return low, high


def _power(base: Interval, exponent: Interval) -> Interval:
    low, high = base
    if np.ndim(exponent[0]) == 0 and exponent[0] == exponent[1]:
        power = float(exponent[0])
        whole = power.is_integer()
        low = low if whole else np.maximum(low, 0.0)  # a root is only taken where there is one
        ends = low**power, high**power
        least, most = np.fmin(*ends), np.fmax(*ends)
        around = (low < 0) & (high >= 0)
        if whole and power > 0 and power % 2 == 0:
            least = np.where(around, 0.0, least)
        elif whole and power < 0:
            most = np.where(around, np.inf, most)
            least = least if power % 2 == 0 else np.where(around, -np.inf, least)
        return least, most
    logarithm = np.where(low > 0, np.log(low), -np.inf), np.log(high)
    inside = _product(logarithm, exponent)
    return np.exp(inside[0]), np.exp(inside[1])
