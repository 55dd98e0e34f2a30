"""Why an expression is not negative, in the form that `certificate_checker` verifies by multiplying out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import flint
import sympy as sp
from scipy.optimize import linprog
from scipy.sparse import csr_array

from fedbounds.bounds.audit.nonnegative import relevant_facts
from fedbounds.bounds.audit.quotients import cancel, quotient
from fedbounds.bounds.audit.slack_variables import Slack, slacks_of
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.named_numbers import NamedNumber

Reason = dict[str, Any]
Facts = Mapping[str, sp.Expr]
Text = Callable[[sp.Expr], str]
MOST = 3000  # products after which no more are looked for


class NoReason(FedboundsError):
    """No reason was found that can be multiplied out."""


def reason(
    expression: sp.Expr, facts: Facts, text: Text, strictly: bool = False, strict: Collection[str] = ()
) -> Reason:
    """Why an expression is not negative (strictly: positive) where the facts are not negative."""
    try:
        if not strictly and cancel(expression).above == 0:
            return {"above": []}
    except sp.PolynomialError as error:
        raise NoReason(f"a certificate speaks of fractions of polynomials only; {error}") from error
    known = strict if strictly else None
    for way in (_by_signs, _by_products, _by_parts):
        try:
            found = way(expression, facts, text, known)
        except (NoReason, sp.PolynomialError):  # a slack that divides by a symbol which may be 0; a root in a fact
            continue
        if found is not None:
            return found
    shown = str(expression) if len(str(expression)) <= 120 else f"{str(expression)[:120]}..."
    raise NoReason(f"no certificate was found that {shown} is {'positive' if strictly else 'not negative'}")


def _by_signs(expression: sp.Expr, facts: Facts, text: Text, strict: Collection[str] | None) -> Reason | None:
    """Symbols by slacks, after which no coefficient is negative; every slack is a fact over what is positive."""
    symbols = sorted({s for e in (expression, *facts.values()) for s in e.free_symbols}, key=str)
    slacks = slacks_of(list(facts.values()), symbols)
    solved = expression.xreplace(slacks[-1].values if slacks else {})
    for current, over in ((expression, quotient), (expression, cancel), (solved, quotient), (solved, cancel)):
        found = over(current)
        above, below = found.written(found.above), found.written(found.below)
        if below.could_extract_minus_sign():
            above, below = -above, -below
        if plainly(above, strict is not None) and plainly(below, True):
            return {
                "above": [*_terms(above, slacks, facts, text)],
                "below": [*_terms(below, slacks, facts, text)],
            }
    return None


def _terms(polynomial: sp.Expr, slacks: Sequence[Slack], facts: Facts, text: Text) -> Iterator[list[str]]:
    """Every monomial as a factor in the symbols and the facts that its slacks stand for."""
    own = [s.symbol for s in slacks if polynomial.has(s.symbol)]
    stands = {s.symbol: _factor(s, facts) for s in slacks if s.symbol in own}
    for powers, factor in sp.Poly(polynomial, *own).terms() if own else [((), polynomial)]:
        used = [stands[s] for s, k in zip(own, powers, strict=False) for _ in range(int(k))]
        yield [text(factor / sp.Mul(*(below for _, below in used))), *(name for name, _ in used)]


def _factor(slack: Slack, facts: Facts) -> tuple[str, sp.Expr]:
    """The name of the fact, and what it is over the slack: positive in the symbols."""
    name = next(name for name, fact in facts.items() if fact == slack.fact)
    found = cancel(slack.fact / slack.is_)
    above, below = found.written(found.above), found.written(found.below)
    if below.could_extract_minus_sign():
        above, below = -above, -below
    if plainly(above, True) and plainly(below, True):
        return name, above / below
    raise NoReason(f"{name} over its slack {slack.is_} is not plainly positive")


def plainly(expression: sp.Expr, strictly: bool) -> bool:
    """Whether no coefficient and no symbol of a polynomial is negative; strictly, also that a term is positive."""
    terms = sp.Add.make_args(sp.expand(expression))
    signed = all(t.is_nonnegative or _even(t) for t in terms)
    return signed and (not strictly or any(t.is_positive for t in terms))


def _even(term: sp.Expr) -> bool:
    powers = [f.as_base_exp() for f in sp.Mul.make_args(term)]
    return all(b.is_nonnegative or (k.is_Integer and k > 0 and k % 2 == 0) for b, k in powers)


def _by_parts(expression: sp.Expr, facts: Facts, text: Text, strict: Collection[str] | None) -> Reason | None:
    """Numerator and denominator, each for a reason of its own."""
    found = cancel(expression)
    above, below = found.written(found.above), found.written(found.below)
    if below.is_number or (above.is_number and plainly(below, True)):
        return None
    try:
        lower = reason(below, facts, text, True, strict or ())
    except NoReason:
        above, below = -above, -below
        lower = reason(below, facts, text, True, strict or ())
    upper = reason(above, facts, text, strict is not None, strict or ())
    one = [["1"]]
    return {
        "above": _both(upper["above"], lower.get("below", one)),
        "below": _both(upper.get("below", one), lower["above"]),
    }


def _both(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> list[list[str]]:
    """Every product of a term of the one with a term of the other."""
    return [[f"({a})*({b})" if a != "1" else b, *names, *others] for a, *names in first for b, *others in second]


Terms = dict[tuple[int, ...], int]
Symbols = tuple[sp.Symbol | NamedNumber, ...]
Product = tuple[sp.Expr, tuple[str, ...], Terms]


def _by_products(expression: sp.Expr, facts: Facts, text: Text, strict: Collection[str] | None) -> Reason | None:
    """A sum of facts times monomials with positive coefficients, found by linear programming and solved exactly."""
    found = cancel(expression)
    few: Symbols = found.symbols
    others = {s for fact in relevant_facts(expression, list(facts.values())) for s in fact.free_symbols}
    many: Symbols = tuple(sorted(others | set(few), key=str))
    for most, symbols in ((1, few), (1, many), (2, few), (2, many)):
        sides = _sides(expression, symbols)
        if sides is None:
            return None
        target, below = sides
        summed = _summed(target, [*_products(target, symbols, facts, most)], strict)
        if summed is not None:
            return {"above": [[text(e), *names] for e, names in summed], "below": [[text(below)]]}
    return None


def _sides(expression: sp.Expr, symbols: Symbols) -> tuple[Terms, sp.Expr] | None:
    """The numerator in these symbols, and the denominator, which must be positive."""
    found = cancel(expression)
    below, sign = found.written(found.below), 1
    if below.could_extract_minus_sign():
        below, sign = -below, -1
    if not set(found.symbols) <= set(symbols) or not plainly(below, True):
        return None
    at = [symbols.index(s) for s in found.symbols]
    terms: Terms = {}
    for powers, c in found.above.terms():
        monomial = [0] * len(symbols)
        for k, power in zip(at, powers, strict=False):
            monomial[k] = int(power)
        terms[tuple(monomial)] = sign * int(c)
    return terms, below


def _summed(
    target: Terms, products: Sequence[Product], strict: Collection[str] | None
) -> list[tuple[sp.Expr, tuple[str, ...]]] | None:
    """The products with positive coefficients that sum to the target; None where there are none."""
    if not products:
        return None
    rows = {m: k for k, m in enumerate(sorted({m for _, _, p in products for m in p} | set(target)))}
    columns = [{rows[m]: c for m, c in p.items()} for _, _, p in products]
    largest = [max(abs(c) for c in column.values()) for column in columns]
    entries = [(k, j, c / largest[j]) for j, column in enumerate(columns) for k, c in column.items()]
    at, of, values = zip(*entries, strict=True)
    matrix = csr_array((values, (at, of)), shape=(len(rows), len(columns)))
    goal = [target.get(m, 0) for m in rows]
    positive = (
        None
        if strict is None
        else [[-float({*names} <= {*strict} and e.is_positive is True) for e, names, _ in products]]
    )
    least = None if strict is None else [-1e-6]  # something positive is among them
    solved = linprog([1.0] * len(columns), positive, least, A_eq=matrix, b_eq=goal, method="highs-ds")
    if solved.status != 0:
        return None
    support = [k for k, c in enumerate(solved.x) if c > 1e-9]
    exact = _solved([columns[k] for k in support], goal)
    if exact is None:
        return None
    return [(c * products[k][0], products[k][1]) for k, c in zip(support, exact, strict=True) if c]


def _products(target: Terms, symbols: Symbols, facts: Facts, most: int) -> Iterator[Product]:
    """Monomials that are not negative, times up to so many facts, that could occur in the target."""
    known = {name: sides for name, fact in facts.items() if (sides := _sides(fact, symbols)) and len(sides[0]) > 1}
    signed = [bool(s.is_nonnegative) for s in symbols]
    wanted, seen = set(target), set[tuple[tuple[int, ...], tuple[str, ...]]]()
    for _ in range(2):
        fresh: set[tuple[int, ...]] = set()
        for count in range(most + 1):
            for names in combinations_with_replacement(known, count):
                product, below = {(0,) * len(symbols): 1}, sp.S.One
                for name in names:
                    product, below = _times(product, known[name][0]), below * known[name][1]
                for monomial, part in [(m, p) for m in wanted for p in product]:
                    rest = tuple(a - b for a, b in zip(monomial, part, strict=True))
                    if (rest, names) in seen or any(
                        k < 0 or (k % 2 and not sign) for k, sign in zip(rest, signed, strict=True)
                    ):
                        continue
                    seen.add((rest, names))
                    whole = _times(product, {rest: 1})
                    fresh |= set(whole)
                    yield sp.Mul(below, *(s**k for s, k in zip(symbols, rest, strict=True))), names, whole
        if len(seen) > MOST:
            return
        wanted |= fresh


def _times(first: Terms, second: Terms) -> Terms:
    total: Terms = {}
    for m, c in first.items():
        for n, d in second.items():
            both = tuple(a + b for a, b in zip(m, n, strict=True))
            total[both] = total.get(both, 0) + c * d
    return {m: c for m, c in total.items() if c}


def _solved(columns: Sequence[Mapping[int, int]], goal: Sequence[int]) -> list[sp.Rational] | None:
    """The coefficients exactly; None where these columns do not give the goal, or one is negative."""
    if not columns:
        return None
    rows, last = len(goal), len(columns)
    matrix = flint.fmpq_mat(rows, last + 1)
    for j, column in enumerate([*columns, dict(enumerate(goal))]):
        for i, c in column.items():
            matrix[i, j] = flint.fmpq(c)
    reduced, rank = matrix.rref()
    values = [sp.Rational(0)] * last
    for i in range(rank):
        pivot = next(j for j in range(last + 1) if reduced[i, j] != 0)
        if pivot == last:
            return None
        values[pivot] = sp.Rational(int(reduced[i, last].p), int(reduced[i, last].q))
    return values if all(v >= 0 for v in values) else None
