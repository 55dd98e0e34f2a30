"""Enclosures with rigorous error bounds, which confirm what the search for rounds calls proved.

Every end of an interval is infinite, a fraction, or a ball of python-flint's `arb` with 192 bits. Constants are the
doubles that were given; "at most" and "equal" allow a relative difference of 1e-12, and a floor one of 4 units in the
last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.evaluation.expression_tree import REDUCTIONS, Grown, Number, Tree, as_tree
from fedbounds.bounds.evaluation.program import ROUNDING, STEP
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose
from fedbounds.bounds.search.partial_evaluation import Partial

if TYPE_CHECKING:
    from flint import arb

BITS = 192
OPERATIONS = 1_000_000  # of arb, within which a search is confirmed or is not
IN_FRACTIONS = 1_000  # operations that are tried in fractions first
LARGEST_POWER, LONGEST = 64, 20_000  # of a fraction, and the bits that it may have
_FRACTIONS: ContextVar[bool] = ContextVar("fractions", default=False)  # what numbers are made of here
End = Any  # a Fraction or an arb, or a float that is inf or -inf: python-flint has no types
Ends = tuple[End, End]


class NoValue(Exception):
    """An even root of what is negative throughout; caught by whoever asks."""


class TooMany(Exception):
    """The operations are used up; caught by whoever asks."""


class Irrational(Exception):
    """What no fraction is, or only a long one; caught by whoever asks."""


def available() -> bool:
    """Whether python-flint (the extra `audit`) is installed."""
    try:
        import flint  # noqa: F401
    except ImportError:
        return False
    return True


def confirm(
    partial: Partial,
    target: float,
    excluded: Sequence[tuple[float, float]],
    reached: float | None,
    operations: int = OPERATIONS,
) -> bool:
    """Whether the bound exceeds the target, or a condition fails, all over these blocks, and neither where reached.

    Returns:
        True only if all of it is proved; False also where that took too much, or python-flint, which is not there.
    """
    (name,) = partial.free

    def everywhere(enclosures: _Enclosures) -> bool:
        if reached is not None and not enclosures.reaches({name: (reached, reached)}):
            return False
        waiting = [(0, len(excluded))] if excluded else []
        while waiting:
            first, last = waiting.pop()
            if not enclosures.excludes({name: (excluded[first][0], excluded[last - 1][1])}):
                if last == first + 1:
                    return False
                middle = (first + last) // 2
                waiting += [(first, middle), (middle, last)]
        return True

    return _decide(partial, target, operations, everywhere)


def nowhere(partial: Partial, target: float, box: Mapping[str, tuple[float, float]]) -> bool:
    """Whether the bound exceeds the target, or a condition fails, all over this box of the free constants."""
    return _decide(partial, target, OPERATIONS, lambda enclosures: enclosures.excludes(box))


def _decide(partial: Partial, target: float, operations: int, question: Callable[[_Enclosures], bool]) -> bool:
    exact = _FRACTIONS.set(True)
    try:
        return question(_Enclosures(partial, target, min(operations, IN_FRACTIONS)))
    except CannotEnclose:
        return False
    except (Irrational, TooMany):
        pass  # arb can do it, or more of it
    finally:
        _FRACTIONS.reset(exact)
    if not available():
        return False
    import flint

    with flint.ctx.workprec(BITS):
        try:
            return question(_Enclosures(partial, target, operations))
        except (CannotEnclose, TooMany):
            return False


def arb_enclosure(expression: Grown, ranges: Mapping[str, tuple[float, float] | np.ndarray]) -> Ends:
    """The ends between which the expression lies: a rigorous second opinion on
    `fedbounds.bounds.search.interval_arithmetic.enclose`.
    """
    import flint

    with flint.ctx.workprec(BITS):
        fixed = {n: v for n, v in ranges.items() if isinstance(v, np.ndarray)}
        walk = _Enclosure(fixed, frozenset(ranges) - frozenset(fixed), math.inf)
        return walk.enclose(
            as_tree(expression), {n: (_end(v[0]), _end(v[1])) for n, v in ranges.items() if n not in fixed}
        )


class _Enclosures:
    """A form with free constants: which boxes of them are excluded, and which reach the target."""

    def __init__(self, partial: Partial, target: float, operations: int) -> None:
        self.terms = tuple(partial.terms.values())
        self.conditions = (*partial.settled, *partial.conditions)
        self.signed = (partial.form.measure or partial.result.measure).signed
        self.limit = _end(target) * (1 + _end(ROUNDING)) if math.isfinite(target) else target
        self.walk = _Enclosure(partial.values, frozenset(partial.free), operations)

    def excludes(self, box: Mapping[str, tuple[float, float]]) -> bool:
        self.walk.forget()
        at = {name: (_end(low), _end(high)) for name, (low, high) in box.items()}
        try:
            if any(self._fails(c.left, c.op, c.right, at) for c in self.conditions):
                return True
            total = self._total(at)
        except NoValue:
            return True
        return _surely(total[0], ">", self.limit) or (not self.signed and _surely(total[1], "<", 0))

    def reaches(self, box: Mapping[str, tuple[float, float]]) -> bool:
        self.walk.forget()
        at = {name: (_end(low), _end(high)) for name, (low, high) in box.items()}
        try:
            total = self._total(at)
            least = self.signed or _surely(total[0], ">=", 0)
            return (
                least
                and _surely(total[1], "<=", self.limit)
                and all(self._holds(c.left, c.op, c.right, at) for c in self.conditions)
            )
        except NoValue:
            return False

    def _total(self, at: Mapping[str, Ends]) -> Ends:
        return reduce(_sum, (self.walk.enclose(as_tree(e), at) for e in self.terms), (_end(0), _end(0)))

    def _fails(self, left: Grown, op: str, right: Grown, at: Mapping[str, Ends]) -> bool:
        (a, b), (c, d) = self.walk.enclose(as_tree(left), at), self.walk.enclose(as_tree(right), at)
        above = _surely(a, ">=", d) if op == "<" else _surely(a, ">", _with_tolerance(d, 1))
        below = _surely(b, "<=", c) if op == ">" else _surely(b, "<", _with_tolerance(c, -1))
        return (op in ("<=", "<", "==") and above) or (op in (">=", ">", "==") and below)

    def _holds(self, left: Grown, op: str, right: Grown, at: Mapping[str, Ends]) -> bool:
        (a, b), (c, d) = self.walk.enclose(as_tree(left), at), self.walk.enclose(as_tree(right), at)
        below = _surely(b, "<", c) if op == "<" else _surely(b, "<=", _with_tolerance(c, 1))
        above = _surely(a, ">", d) if op == ">" else _surely(a, ">=", _with_tolerance(d, -1))
        return (below or op in (">=", ">")) and (above or op in ("<=", "<"))


class _Enclosure:
    """From the leaves of an expression to its enclosure; what does not move is enclosed once."""

    def __init__(self, values: Mapping[str, np.ndarray], free: frozenset[str], operations: float) -> None:
        self.values, self.free, self.operations = values, free, operations
        self._moves: dict[Tree, bool] = {}
        self._fixed: dict[tuple[Tree, int | None], Ends] = {}
        self._moving: dict[tuple[Tree, int | None], Ends] = {}

    def forget(self) -> None:
        """The free symbols are about to get other ranges."""
        self._moving.clear()

    def enclose(self, e: Tree, at: Mapping[str, Ends], client: int | None = None) -> Ends:
        if e not in self._moves:
            self._moves[e] = bool(e.names & self.free)
        known = self._moving if self._moves[e] else self._fixed
        if (e, client) not in known:
            self.operations -= 1
            if self.operations < 0:
                raise TooMany
            low, high = self._enclosed(e, at, client)
            known[e, client] = _finite(low, -math.inf), _finite(high, math.inf)
        return known[e, client]

    def _enclosed(self, e: Tree, at: Mapping[str, Ends], client: int | None) -> Ends:
        if e.kind == "symbol":
            if e.name in at:
                return at[e.name]
            value = self.values[e.name]
            number = _end(float(value[client] if np.ndim(value) else value))
            return number, number
        if e.kind == "named":
            return self.enclose(e.parts[0], at, client)
        if e.number is not None:
            number = _constant(e.number)
            return number, number
        if e.kind in REDUCTIONS:
            return self._reduced(e, at)
        inner = [self.enclose(part, at, client) for part in e.parts]
        if e.kind == "+":
            return reduce(_sum, inner)
        if e.kind == "*":
            return reduce(_product, inner)
        if e.kind == "**":
            exponent = e.parts[1].number
            rational = exponent is not None and e.parts[1].kind == "number" and exponent.ratio
            return _rational_power(inner[0], *rational) if rational else _power(*inner)
        if e.kind == "minimum":
            return reduce(_least, (p[0] for p in inner)), reduce(_least, (p[1] for p in inner))
        if e.kind == "maximum":
            return reduce(_most, (p[0] for p in inner)), reduce(_most, (p[1] for p in inner))
        if e.kind == "abs":
            ((low, high),) = inner
            return _most(_end(0), _most(low, _minus(high))), _most(_minus(low), high)
        if e.kind in _RISING:
            ((low, high),) = inner
            return _RISING[e.kind](low), _RISING[e.kind](high)
        _leave_fractions()
        in_balls = getattr(type(e.expression), "in_balls", None)
        if in_balls is None or any(not _same(*ends) for ends in inner):
            raise CannotEnclose(str(e))
        value = in_balls(*(low for low, _ in inner))
        return value, value

    def _reduced(self, e: Tree, at: Mapping[str, Ends]) -> Ends:
        """A sum, mean, maximum or median over clients rises with every entry."""
        sizes = {len(self.values[n]) for n in e.names - set(at) if np.ndim(self.values[n])}
        entries = [self.enclose(e.parts[0], at, client) for client in range(max(sizes, default=1))]
        name, count = REDUCTIONS[e.kind], len(entries)
        if name == "max":
            return reduce(_most, (low for low, _ in entries)), reduce(_most, (high for _, high in entries))
        if name not in ("sum", "mean"):
            raise CannotEnclose(f"the {name} over clients")
        total = reduce(_sum, entries)
        share = _end(count if name == "mean" else 1)
        return _product(total, (1 / share, 1 / share))


# --- Ends of intervals --------------------------------------------------------------------------------------------


def _leave_fractions() -> None:
    """Raise where only fractions are wanted; called before what may leave the rational numbers."""
    if _FRACTIONS.get():
        raise Irrational


def _end(number: float) -> End:
    if math.isinf(number):
        return number
    if _FRACTIONS.get():
        return Fraction(number)
    from flint import arb

    return arb(number)


def _constant(number: Number) -> End:
    if number.value is not None and number.word in ("float", "inf", "-inf"):
        return _end(number.value)
    if number.ratio is not None and _FRACTIONS.get():
        return Fraction(*number.ratio)
    _leave_fractions()
    from flint import arb, fmpq

    if number.ratio is not None:
        return arb(fmpq(*number.ratio))
    named: Mapping[str, Callable[[], arb]] = {
        "pi": arb.pi,
        "e": lambda: arb(1).exp(),
        "gamma": arb.const_euler,
    }
    if number.word in named:
        return named[number.word]()
    raise CannotEnclose("a number that arb does not have")


def _finite(end: End, otherwise: float) -> End:
    """An end that is not known becomes the one that misses nothing."""
    if isinstance(end, float):
        return otherwise if math.isnan(end) else end
    if isinstance(end, Fraction):
        if end.numerator.bit_length() + end.denominator.bit_length() > LONGEST:
            raise Irrational
        return end
    return end if end.is_finite() else otherwise


def _same(low: End, high: End) -> bool:
    return low is high or (not isinstance(low, float) and not isinstance(high, float) and bool(low == high))


def _surely(left: End, op: str, right: End) -> bool:
    """Whether the relation holds for all numbers in the two enclosures."""
    if op == "<":
        return bool(left < right)
    if op == "<=":
        return bool(left <= right)
    return bool(left > right) if op == ">" else bool(left >= right)


def _with_tolerance(right: End, sign: int) -> End:
    """The right-hand side with the slack of a condition."""
    return right if isinstance(right, float) else right + sign * _end(ROUNDING) * abs(right)


def _minus(end: End) -> End:
    return -end


def _least(a: End, b: End) -> End:
    if isinstance(a, float) or isinstance(b, float):
        infinite, other = (a, b) if isinstance(a, float) else (b, a)
        return infinite if infinite < 0 else other
    return min(a, b) if isinstance(a, Fraction) else a.min(b)


def _most(a: End, b: End) -> End:
    return _minus(_least(_minus(a), _minus(b)))


def _sum(x: Ends, y: Ends) -> Ends:
    return _plus(x[0], y[0], -math.inf), _plus(x[1], y[1], math.inf)


def _plus(a: End, b: End, otherwise: float) -> End:
    if isinstance(a, float) and isinstance(b, float):
        return a if a == b else otherwise
    return a if isinstance(a, float) else b if isinstance(b, float) else a + b


def _times(a: End, b: End, otherwise: float) -> End:
    if not isinstance(a, float) and not isinstance(b, float):
        return a * b
    infinite, other = (a, b) if isinstance(a, float) else (b, a)
    if other > 0 or other < 0:
        return infinite if other > 0 else -infinite
    return otherwise  # 0 times infinity, or a sign that is not known


def _product(x: Ends, y: Ends) -> Ends:
    positive = bool(x[0] >= 0) and bool(y[0] >= 0)
    if positive:  # there 0 * inf, the limit of larger products, is at least 0
        return _times(x[0], y[0], 0.0) or _end(0), _times(x[1], y[1], math.inf)
    low = reduce(_least, [_times(a, b, -math.inf) for a in x for b in y])
    return low, reduce(_most, [_times(a, b, math.inf) for a in x for b in y])


def _inverse(x: Ends) -> Ends:
    low, high = x
    if low > 0 or high < 0:
        return tuple(_end(0) if isinstance(end, float) else 1 / end for end in (high, low))
    if low >= 0:
        return (
            math.inf if _is_zero(high) else _end(0) if isinstance(high, float) else _positive_part(1 / high)
        ), math.inf
    return -math.inf, math.inf


def _positive_part(end: End) -> End:
    return end if isinstance(end, Fraction) or end.is_finite() else _end(0)


def _is_zero(end: End) -> bool:
    return not isinstance(end, float) and bool(end == 0)


def _rational_power(base: Ends, p: int, q: int) -> Ends:
    if p < 0:
        return _inverse(_rational_power(base, -p, q))
    low, high = base
    if q > 1:
        if high < 0:
            raise NoValue
        _leave_fractions()
        low = _root_end(low, q)
        return _end_power(low, p), _end_power(high if isinstance(high, float) else _root_end(high, q), p)
    if p % 2 or low >= 0:
        return _end_power(low, p), _end_power(high, p)
    if high <= 0:
        return _end_power(high, p), _end_power(low, p)
    return _end(0), _most(_end_power(low, p), _end_power(high, p))


def _root_end(end: End, q: int) -> End:
    if isinstance(end, float):
        return end if end > 0 else _end(0)
    return end.root(q) if end > 0 else end.nonnegative_part().root(q)


def _end_power(end: End, p: int) -> End:
    if p > LARGEST_POWER:
        _leave_fractions()
    return end**p


def _power(base: Ends, exponent: Ends) -> Ends:
    _leave_fractions()
    low, high = (_finite(_logarithm(end), other) for end, other in zip(base, (-math.inf, math.inf), strict=True))
    inside = _product((low, high), exponent)
    return _exponential(inside[0]), _exponential(inside[1])


def _logarithm(end: End) -> End:
    _leave_fractions()
    if isinstance(end, float):
        return end
    return end.log() if end > 0 else -math.inf if end <= 0 else math.nan


def _exponential(end: End) -> End:
    _leave_fractions()
    if isinstance(end, float):
        return end if end > 0 else _end(0)
    return end.exp()


def _floor(end: End) -> End:
    if isinstance(end, float):
        return end
    nearly = end + _end(STEP) * abs(end)
    return Fraction(math.floor(nearly)) if isinstance(nearly, Fraction) else nearly.floor()


def _ceiling(end: End) -> End:
    if isinstance(end, float):
        return end
    nearly = end - _end(STEP) * abs(end)
    return Fraction(math.ceil(nearly)) if isinstance(nearly, Fraction) else nearly.ceil()


_RISING: Mapping[str, Callable[[End], End]] = {
    "exp": _exponential,
    "log": _logarithm,
    "floor": _floor,
    "ceil": _ceiling,
}
