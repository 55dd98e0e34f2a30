"""Enclosures: the values that an expression can take when its symbols range over intervals.

Every operation is rounded outwards, so an enclosure contains all values. Many blocks are enclosed in one call: an
interval is a pair of arrays that broadcast. `fedbounds.bounds.search.arb_enclosures` confirms what is called proved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from fedbounds.bounds.evaluation.expression_tree import REDUCTIONS, Grown, Number, Tree, as_tree
from fedbounds.bounds.evaluation.program import OVER_CLIENTS, STEP

Interval = tuple[np.ndarray, np.ndarray]
EPS = float(np.finfo(float).eps)
ELEMENTARY = 4 * EPS  # numpy's exp, log and powers are wrong by less than 4 units in the last place
BY_VALUE = 1e-12  # so far a function of which only values are known may be off


class CannotEnclose(Exception):
    """A function of a free symbol that intervals know nothing about; caught by whoever asks."""


def enclose(expression: Grown, ranges: Mapping[str, Interval]) -> Interval:
    """The smallest and largest value that the expression may take, by interval arithmetic rounded outwards."""
    with np.errstate(all="ignore"):
        return _IntervalWalk(ranges, outward=True).enclose(as_tree(expression))


def fixed_value(expression: Grown, values: Mapping[str, float | np.ndarray]) -> float:
    """The expression at numbers for all its symbols, rounded to nearest; reductions over clients take vectors."""
    return fixed_values(values)(expression)


def fixed_values(values: Mapping[str, float | np.ndarray]) -> Callable[[Grown], float]:
    """As `fixed_value`, for many expressions that share parts."""
    fixed = {name: np.asarray(v, dtype=float) for name, v in values.items()}
    walk = _IntervalWalk({name: (v, v) for name, v in fixed.items()}, outward=False)

    def value(expression: Grown) -> float:
        with np.errstate(all="ignore"):
            return float(walk.enclose(as_tree(expression))[0])

    return value


@dataclass(frozen=True)
class _IntervalWalk:
    """From the leaves of an expression to its value, every step rounded outwards or to nearest."""

    ranges: Mapping[str, Interval]
    outward: bool
    known: dict[Tree, Interval] = field(default_factory=dict, repr=False, compare=False)

    def enclose(self, e: Tree) -> Interval:
        if e not in self.known:  # a denominator stands in many terms
            self.known[e] = self._enclosed(e)
        return self.known[e]

    def _enclosed(self, e: Tree) -> Interval:
        if e.kind == "symbol":
            return self.ranges[e.name]
        if e.number is not None:
            return self._number(e.number)
        if e.kind in REDUCTIONS:
            return self._reduced(e)
        if e.kind == "function":
            return self._computed(e)
        inner = [self.enclose(part) for part in e.parts]
        if e.kind == "+":
            return reduce(self._sum, inner)
        if e.kind == "*":
            return reduce(self._product, inner)
        if e.kind == "**":
            return self._power(inner[0], inner[1])
        if e.kind == "minimum":
            return reduce(np.minimum, (p[0] for p in inner)), reduce(np.minimum, (p[1] for p in inner))
        if e.kind == "maximum":
            return reduce(np.maximum, (p[0] for p in inner)), reduce(np.maximum, (p[1] for p in inner))
        ((low, high),) = inner
        if e.kind == "abs":
            return np.maximum(0, np.maximum(low, -high)), np.maximum(-low, high)
        if e.kind in _WHOLE:  # as compiled: 27296/853 is 32, computed or not
            rounded, sign = _WHOLE[e.kind]
            low, high = self._wider(low + sign * STEP * np.abs(low), high + sign * STEP * np.abs(high))
            return _replace_nan(rounded(low), -np.inf), _replace_nan(rounded(high), np.inf)
        low, high = self._wider(_RISING[e.kind](low), _RISING[e.kind](high), ELEMENTARY)
        least = np.maximum(low, 0.0) if e.kind == "exp" else low
        return _replace_nan(least, -np.inf), _replace_nan(high, np.inf)

    def _wider(self, low: np.ndarray, high: np.ndarray, relative: float = 0.0) -> Interval:
        """The ends moved outwards: to the next number, and further by a relative error."""
        if not self.outward:
            return low, high
        if relative:
            low, high = (
                np.where(np.isfinite(low), low - relative * np.abs(low), low),
                np.where(np.isfinite(high), high + relative * np.abs(high), high),
            )
        return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)

    def _number(self, number: Number) -> Interval:
        """A number that stands by itself; of one that is computed, the parts are enclosed: sympy's value of 1 - 1, left
        as it is written, need not be 0.
        """
        if number.value is None:
            return self._nowhere(np.asarray(True), np.asarray(0.0), np.asarray(0.0))
        low = high = np.asarray(number.value)
        if np.isinf(number.value) and number.finite and self.outward:  # beyond what a float holds
            largest = np.finfo(float).max
            return np.minimum(low, largest), np.maximum(high, -largest)
        if number.exact or not np.isfinite(number.value):
            return low, high
        return self._wider(low, high, EPS)

    def _sum(self, x: Interval, y: Interval) -> Interval:
        if not self.outward and np.isfinite(nearest := x[0] + y[0]).all():
            return nearest, nearest
        low, high = self._wider(x[0] + y[0], x[1] + y[1])
        nothing = (x[0] == 0) | (y[0] == 0), (x[1] == 0) | (y[1] == 0)  # there the sum is exact
        low, high = np.where(nothing[0], x[0] + y[0], low), np.where(nothing[1], x[1] + y[1], high)
        return _replace_nan(low, -np.inf), _replace_nan(high, np.inf)

    def _product(self, x: Interval, y: Interval) -> Interval:
        if not self.outward and np.isfinite(nearest := x[0] * y[0]).all():
            return nearest, nearest
        if self.outward and all(np.all(low > 0) and np.all(np.isfinite(high)) for low, high in (x, y)):  # as mostly
            low, high = self._wider(x[0] * y[0], x[1] * y[1])
            return np.maximum(low, 0.0), high
        corners = [a * b for a in x for b in y]
        positive = (x[0] >= 0) & (y[0] >= 0)  # there 0 * inf, the limit of larger products, is at least 0
        low = reduce(np.minimum, [np.where(np.isnan(c), np.where(positive, 0.0, -np.inf), c) for c in corners])
        high = reduce(np.maximum, [_replace_nan(c, np.inf) for c in corners])
        if not self.outward:
            return low, high
        low, high = self._wider(low, high)
        alike = positive | ((x[1] <= 0) & (y[1] <= 0))
        unlike = ((x[0] >= 0) & (y[1] <= 0)) | ((x[1] <= 0) & (y[0] >= 0))
        low, high = np.where(alike, np.maximum(low, 0.0), low), np.where(unlike, np.minimum(high, 0.0), high)
        finite = np.isfinite(x[0]) & np.isfinite(x[1]) & np.isfinite(y[0]) & np.isfinite(y[1])
        nothing = finite & (((x[0] == 0) & (x[1] == 0)) | ((y[0] == 0) & (y[1] == 0)))
        return np.where(nothing, 0.0, low), np.where(nothing, 0.0, high)

    def _power(self, base: Interval, exponent: Interval) -> Interval:
        low, high = base
        single = np.ndim(exponent[0]) == 0
        if not self.outward and single and exponent[0] not in (0, 1) and np.isfinite(exponent[0]) and np.all(low > 0):
            nearest = low ** float(exponent[0])
            if np.isfinite(nearest).all():
                return nearest, nearest
        if single and (exponent[0] > 0 or exponent[1] < 0):
            powers = sorted({float(exponent[0]), float(exponent[1])})
            whole = len(powers) == 1 and powers[0].is_integer()
            rootless = (high < 0) & (not whole)
            low = low if whole else np.maximum(low, 0.0)  # a root is only taken where there is one
            if powers == [1.0]:
                return base
            ends = [end**power for end in (low, high) for power in powers]
            least, most = self._wider(
                reduce(np.fmin, ends), reduce(np.fmax, ends), 0.0 if set(powers) <= {-1.0, 0.5, 2.0} else ELEMENTARY
            )
            even = whole and powers[0] % 2 == 0
            least = np.maximum(least, 0.0) if even else np.where(low >= 0, np.maximum(least, 0.0), least)
            if powers[0] > 0:
                most = np.where((low == 0) & (high == 0), 0.0, most)
            around = (low < 0) & (high >= 0)
            if even and powers[0] > 0:
                least = np.where(around, 0.0, least)
            elif whole and powers[0] < 0:
                most = np.where(around, np.inf, most)
                least = least if even else np.where(around, -np.inf, least)
            return self._nowhere(rootless, least, most)
        logarithm = self._wider(np.where(low > 0, np.log(low), -np.inf), np.log(high), ELEMENTARY)
        inside = self._product(logarithm, exponent)
        least, most = self._wider(np.exp(inside[0]), np.exp(inside[1]), ELEMENTARY)
        return np.maximum(least, 0.0), most

    def _nowhere(self, where: np.ndarray, low: np.ndarray, high: np.ndarray) -> Interval:
        """Where there is no value nothing is known; to nearest it is nan."""
        ends = (-np.inf, np.inf) if self.outward else (np.nan, np.nan)
        return np.where(where, ends[0], low), np.where(where, ends[1], high)

    def _reduced(self, e: Tree) -> Interval:
        """A sum, mean, maximum or median over clients rises with every entry."""
        inside: dict[str, Interval] = {}
        for name in e.names:
            low, high = self.ranges[name]
            if low is not high:
                inside[name] = low[..., None], high[..., None]
            else:  # fixed: a vector over clients, or a number
                fixed = low if low.ndim else low[..., None]
                inside[name] = fixed, fixed
        low, high = (np.atleast_1d(end) for end in _IntervalWalk(inside, self.outward).enclose(e.parts[0]))
        name = REDUCTIONS[e.kind]
        rounding = EPS * low.shape[-1] if name in ("sum", "mean") else EPS
        size = OVER_CLIENTS[name](np.maximum(np.abs(low), np.abs(high)))
        slack = np.where(np.isfinite(size), rounding * size, 0.0) if self.outward else 0.0
        ends = OVER_CLIENTS[name](low) - slack, OVER_CLIENTS[name](high) + slack
        least = np.where((low >= 0).all(axis=-1, keepdims=True), np.maximum(ends[0], 0.0), ends[0])
        return least[..., 0], ends[1][..., 0]

    def _computed(self, e: Tree) -> Interval:
        """A function of which nothing is known but its values, so that its arguments must be fixed, or but that it
        rises with each of them."""
        from fedbounds.bounds.evaluation.numpy_code import arguments, compile_expressions  # sympy takes its time

        function = e.expression
        if getattr(type(function), "rises", False):
            inner = [self.enclose(part) for part in e.parts]
            low, high = (np.asarray(function._imp_(*(x[i] for x in inner)), dtype=float) for i in (0, 1))
            least, most = self._wider(low, high, BY_VALUE)
            return _replace_nan(np.where(low >= 0, np.maximum(least, 0.0), least), -np.inf), _replace_nan(most, np.inf)
        if any(self.ranges[name][0] is not self.ranges[name][1] for name in e.names):
            raise CannotEnclose(str(e))
        names = arguments([function])
        values = compile_expressions(names, (function,))(*(self.ranges[s.name][0] for s in names))
        value = np.asarray(values[0], dtype=float)
        return self._wider(value, value, BY_VALUE)


_RISING: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"exp": np.exp, "log": np.log}
_WHOLE: Mapping[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {"floor": (np.floor, 1), "ceil": (np.ceil, -1)}


def _replace_nan(values: np.ndarray, otherwise: float) -> np.ndarray:
    """An undetermined end (inf - inf, a logarithm of a negative number) becomes the one that misses nothing."""
    return np.where(np.isnan(values), otherwise, values)
