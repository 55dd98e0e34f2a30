"""Suprema of products of powers under conditions that are products of powers: linear programs in the logarithms.

The multipliers of the program are read off as fractions and checked exactly: the value is then a proved upper bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import linprog

from fedbounds.bounds.audit.counterexample import RELATIONS
from fedbounds.bounds.theory.expressions import parts
from fedbounds.bounds.theory.result import Condition
from fedbounds.bounds.theory.symbols import Notation

Powers = Mapping[sp.Symbol, Fraction]
FIXED = (sp.S.One, sp.S.Half)  # values of the constants that do not grow
WHOLE = 1e-9  # relative distance from a whole number


@dataclass(frozen=True)
class Supremum:
    """An upper bound of an expression, infinite if there is none."""

    value: sp.Expr
    sharp: bool  # whether it is known to be the least upper bound


@dataclass(frozen=True)
class _Row:
    """That a product of powers is at most a number."""

    powers: Powers
    limit: sp.Expr


def supremum(ratio: sp.Expr, notation: Notation, conditions: Iterable[Condition] = ()) -> Supremum | None:
    """The supremum of a product of powers over the domains of its symbols, under conditions on them.

    A factor may be the smallest of several products, or the largest in a denominator. Of a sum of products, or with
    one in a denominator, the value is an upper bound, but infinite only if the supremum is. A sum with subtracted
    products has a value only if it is infinite. Conditions that compare no
    products are left out. None where the ratio is of no such kind, the conditions contradict each other, or nothing
    is found.

    Example:
        >>> from fedbounds.bounds.theory.standard_symbols import STANDARD
        >>> I, S, N = (STANDARD[name].symbol for name in "ISN")
        >>> supremum(3 / (4 * I), STANDARD), supremum(I / (1 + I), STANDARD)
        (Supremum(value=3/4, sharp=True), Supremum(value=1, sharp=False))
        >>> supremum(S / N, STANDARD, [Condition(S, "<=", N, "")])
        Supremum(value=1, sharp=True)
    """
    summands = sp.Add.make_args(sp.expand(ratio))
    if len(summands) == 1:
        return _of_product(ratio, notation, conditions)
    found = [_of_product(each, notation, conditions) for each in summands]
    values = [each.value for each in found if each is not None]
    if len(values) == len(summands):
        return Supremum(sp.Add(*values), sp.oo in values)
    return _along_a_ray(ratio, notation, conditions)


def _along_a_ray(ratio: sp.Expr, notation: Notation, conditions: Iterable[Condition]) -> Supremum | None:
    """An infinite supremum, if one or two constants, or all, grow together while the others are fixed."""
    conditions = list(conditions)
    symbols = ratio.free_symbols
    while near := [c for c in conditions if _symbols(c) & symbols and not _symbols(c) <= symbols]:
        symbols = symbols | {s for c in near for s in _symbols(c)}
    kept = [c for c in conditions if _symbols(c) <= symbols]
    if any(s.name not in notation for s in symbols) or ratio.has(sp.Max, sp.Min):
        return None
    domains = {s: notation[s.name].domain for s in sorted(symbols, key=str)}
    growing = [s for s, domain in domains.items() if domain.high == np.inf]
    sets = [set(each) for size in (1, 2) for each in combinations(growing, size)] + [set(growing)]
    size = sp.Dummy("t", positive=True)
    for value, grown in product(map(sp.Rational, ("1", "2", "1/2")), sets):
        at = {s: next((v for v in (value, *FIXED) if domains[s].contains(float(v))), sp.nan) for s in symbols - grown}
        ray = {**at, **dict.fromkeys(grown, size)}
        if sp.nan in at.values() or _limit(ratio.xreplace(ray), size) != sp.oo:
            continue
        if all(_holds_far(replace(c, left=c.left.xreplace(ray), right=c.right.xreplace(ray)), size) for c in kept):
            return Supremum(sp.oo, True)
    return None


def _symbols(condition: Condition) -> set[sp.Symbol]:
    return condition.left.free_symbols | condition.right.free_symbols


def _limit(expression: sp.Expr, size: sp.Symbol) -> Any:
    """The limit where a symbol grows; nan if it is not known."""
    try:
        return sp.limit(expression, size, sp.oo)
    except (NotImplementedError, ValueError, TypeError):
        return sp.nan


def _holds_far(condition: Condition, size: sp.Symbol) -> bool:
    """Whether a condition holds where a symbol is large."""
    slack = sp.simplify(condition.right - condition.left)
    if slack.is_number:
        return bool(slack.is_real and RELATIONS[condition.op](sp.S.Zero, slack))
    limit = _limit(slack, size)
    if condition.op in ("<=", "<"):
        return limit.is_extended_positive is True
    return condition.op != "==" and limit.is_extended_negative is True


def _of_product(ratio: sp.Expr, notation: Notation, conditions: Iterable[Condition]) -> Supremum | None:
    rows: list[_Row] = []
    read = _product(ratio, rows)
    if read is None:
        return _unbounded(ratio, notation, conditions)
    if not read[0].is_positive:
        return None
    factor, objective = read
    rest = [row for c in conditions for row in _rows_of(c)]
    sharp = all(row.limit is not sp.nan for row in rows)
    rows = [row for row in rows if row.limit is not sp.nan]
    known = {symbol for row in (_Row(objective, factor), *rows) for symbol in row.powers}
    while near := [row for row in rest if row.powers.keys() & known]:  # conditions on these symbols, and on those there
        rest = [row for row in rest if row not in near]
        known |= {symbol for row in near for symbol in row.powers}
        sharp &= all(row.limit is not sp.nan for row in near)
        rows += [row for row in near if row.limit is not sp.nan]
    columns = sorted(known, key=str)
    for symbol in columns:
        if symbol.name in notation:
            if notation[symbol.name].domain.low < 0:
                return None
            rows += _domain(symbol, notation)
    found = _solve(factor, objective, [_whole(row, notation) for row in rows], columns, notation, sharp)
    if found is None or found.value == sp.oo:
        return found
    return Supremum(found.value, found.sharp and not any(base.is_Add for base in _bases(ratio)))


def _unbounded(ratio: sp.Expr, notation: Notation, conditions: Iterable[Condition]) -> Supremum | None:
    """Of what is no product: an infinite supremum, if it is one at fixed values of the constants in other factors."""
    odd = {s for base in _bases(ratio) if not isinstance(base, sp.Symbol) for s in base.free_symbols}
    for value in map(sp.Rational, ("1/2", "1", "2")):
        at = {s: value for s in odd if s.name in notation and notation[s.name].domain.contains(float(value))}
        fixed = ratio.xreplace(at)
        if len(at) < len(odd) or not fixed.free_symbols or fixed.free_symbols & odd or _product(fixed, []) is None:
            continue
        rest = [replace(c, left=c.left.xreplace(at), right=c.right.xreplace(at)) for c in conditions]
        fit = all(RELATIONS[c.op](c.left, c.right) for c in rest if not (c.left.free_symbols | c.right.free_symbols))
        found = _of_product(fixed, notation, rest) if fit else None
        if found is not None and found.value == sp.oo:
            return found
    return None


def _bases(product: sp.Expr) -> list[sp.Expr]:
    return [factor.as_base_exp()[0] for factor in sp.Mul.make_args(product)]


def _product(expression: sp.Expr, rows: list[_Row]) -> tuple[sp.Expr, dict[sp.Symbol, Fraction]] | None:
    """Number and powers of a product; a minimum in it is a new symbol, with rows that say what it is at most.

    A sum in a denominator is at least its largest part, and at most that times their number. A minimum or a sum inside
    it is limited on the wrong side: a row with the limit nan marks that the program is an upper bound only.
    """
    number, powers = sp.S.One, dict[sp.Symbol, Fraction]()
    for factor in sp.Mul.make_args(expression):
        if factor.is_number:
            number *= factor
            continue
        base, power = factor.as_base_exp()
        if not isinstance(power, sp.Rational):
            return None
        exponent = Fraction(int(power.p), int(power.q))
        if isinstance(base, (sp.Max, sp.Add) if exponent < 0 else sp.Min):
            symbol, sign = sp.Dummy(), 1 if exponent > 0 else -1
            for one in parts(base):
                inner: list[_Row] = []
                read = _product(one, inner)
                if read is None or not read[0].is_positive:
                    return None
                rows += [*inner, _Row({}, sp.nan)] if inner and sign < 0 else inner
                row = {symbol: Fraction(sign)} | {s: -sign * p for s, p in read[1].items()}
                rows.append(_Row(row, read[0] ** sign))
            base = symbol
        if not isinstance(base, sp.Symbol):
            return None
        powers[base] = powers.get(base, Fraction(0)) + exponent
    return number, powers


def _rows_of(condition: Condition) -> Iterator[_Row]:
    """A condition between products; of another one its symbols, with the limit nan."""
    smaller, larger = condition.left, condition.right
    if condition.op in (">=", ">"):
        smaller, larger = larger, smaller
    extra: list[_Row] = []
    read = None if larger == 0 else _product(smaller / larger, extra)
    if read is None or extra or not read[0].is_positive:
        yield _Row({s: Fraction(1) for s in smaller.free_symbols | larger.free_symbols}, sp.nan)
        return
    number, powers = read
    yield _Row(powers, 1 / number)
    if condition.op == "==":
        yield _Row({s: -p for s, p in powers.items()}, number)


def _domain(symbol: sp.Symbol, notation: Notation) -> Iterator[_Row]:
    domain = notation[symbol.name].domain
    if domain.low > 0:
        yield _Row({symbol: Fraction(-1)}, 1 / sp.Rational(repr(float(domain.low))))
    if np.isfinite(domain.high):
        yield _Row({symbol: Fraction(1)}, sp.Rational(repr(float(domain.high))))


def _whole(row: _Row, notation: Notation) -> _Row:
    """A largest or smallest value of an integer, as an integer."""
    if len(row.powers) != 1:
        return row
    ((symbol, power),) = row.powers.items()
    if symbol.name not in notation or not notation[symbol.name].domain.integer or not power:
        return row
    edge = row.limit ** (1 / sp.Rational(power))
    largest = power > 0
    return _Row({symbol: Fraction(1 if largest else -1)}, sp.floor(edge) if largest else 1 / sp.ceiling(edge))


def _solve(
    factor: sp.Expr,
    objective: Powers,
    rows: Sequence[_Row],
    columns: Sequence[sp.Symbol],
    notation: Notation,
    sharp: bool,
) -> Supremum | None:
    if not any(objective.values()):
        return Supremum(factor, sharp)
    if any(not row.limit.is_positive for row in rows):
        return None
    matrix = np.array([[float(row.powers.get(s, 0)) for s in columns] for row in rows]).reshape(-1, len(columns))
    limits = np.array([float(sp.log(row.limit)) for row in rows])
    gain = np.array([float(objective.get(s, 0)) for s in columns])
    if rows and not _feasible(matrix, limits):
        return None
    if not rows or not _feasible(matrix.T, gain, equations=True):  # nothing proves a bound: a ray rises without end
        return Supremum(sp.oo, True) if sharp else None
    found = linprog(-gain, matrix, limits, bounds=(None, None), method="highs-ds")
    if found.status != 0:
        return None
    value, proof = factor, dict[sp.Symbol, Fraction]()
    for row, marginal in zip(rows, found.ineqlin.marginals, strict=True):
        multiplier = max(Fraction(float(-marginal)).limit_denominator(1000), Fraction(0))
        value *= row.limit ** sp.Rational(multiplier)
        for s, power in row.powers.items():
            proof[s] = proof.get(s, Fraction(0)) + multiplier * power
    if any(proof.get(s, 0) != objective.get(s, 0) for s in columns):  # the rows, to these powers, give the ratio
        return None
    whole = [s.name in notation and notation[s.name].domain.integer for s in columns]
    counts = np.exp(found.x[whole])
    return Supremum(value, sharp and bool(np.all(np.abs(counts - np.round(counts)) < WHOLE * counts)))


def _feasible(matrix: np.ndarray, limits: np.ndarray, equations: bool = False) -> bool:
    """Whether A x <= b has a solution; or A x = b one with x >= 0."""
    zero = np.zeros(matrix.shape[1])
    if equations:
        return linprog(zero, A_eq=matrix, b_eq=limits, bounds=(0, None), method="highs-ds").status == 0
    return linprog(zero, matrix, limits, bounds=(None, None), method="highs-ds").status == 0
