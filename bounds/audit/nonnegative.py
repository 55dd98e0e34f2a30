"""Rational inequalities under conditions: is an expression nonnegative wherever the facts hold?

First, exact random rationals try to refute it. Then two independent proofs: every fact becomes a substitution by
nonnegative variables (`I = 1 + u`), after which no coefficient is negative; or z3 finds the negation unsatisfiable.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import sympy as sp
import z3

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.quotients import Quotient, cancel, normal, quotient
from fedbounds.bounds.audit.slack_variables import slack_substitution
from fedbounds.bounds.audit.vectors import opaque
from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.expressions import parts
from fedbounds.bounds.theory.named_numbers import NamedNumber

RLIMIT = 4_000_000  # z3 counts its own steps, so that the verdict does not depend on the machine
DIGITS = 15  # of the rational enclosure of a named number
NO_WITNESS = "no values were found at which the facts hold"


@dataclass(frozen=True)
class ProofFinding:
    """Whether something was shown, how, and what was found on the way."""

    holds: bool
    method: str
    evidence: str


@dataclass
class System:
    """A polynomial problem: nonnegative `facts` (as expressions) over positive symbols.

    Args:
        facts: expressions that are nonnegative.
        stands: what a symbol stands for, where it is a floor, a maximum or a minimum.
        numbers: the value of a symbol that is a named number or a root of one, to `DIGITS` digits.
    """

    facts: list[sp.Expr]
    stands: dict[sp.Symbol, sp.Expr] = field(default_factory=dict)
    numbers: dict[sp.Symbol, sp.Expr] = field(default_factory=dict)


def prove(expression: sp.Expr, facts: Sequence[Relation] = ()) -> ProofFinding:
    """Whether the expression is nonnegative wherever its symbols are in their domains and the facts hold.

    Example:
        >>> x, y = sp.symbols("x y", positive=True)
        >>> prove(x + 1 / x - 2).method
        'coefficients failed; z3'
        >>> prove(3 - y, [Relation(y, sp.Integer(2))]).holds
        True
        >>> prove(x - 1).evidence
        'false at x = 5/8'
    """
    return _prove(expression, tuple(facts))


@lru_cache(maxsize=4096)
def _prove(expression: sp.Expr, facts: tuple[Relation, ...]) -> ProofFinding:
    expression, system = _plain(expression, facts)
    if expression.is_zero:
        return ProofFinding(True, "identity", "both sides are equal")
    if expression in system.facts:
        return ProofFinding(True, "fact", "one of the facts")
    symbols = sorted({s for e in (expression, *system.facts) for s in e.free_symbols}, key=str)
    values = slack_substitution(system.facts, symbols)
    try:
        coefficients = _by_coefficients(expression, values)
        tries = 12 if coefficients else 60
        at, found = _sampled(expression, system, values, tries)
        if not found:  # look longer before saying that there are none
            at, found = _sampled(expression, system, values, 50 * tries)
        if at is not None:
            return ProofFinding(False, "exact rationals", f"false at {at}" if at else "it is negative")
        fraction = cancel(expression)
    except sp.PolynomialError:
        return ProofFinding(False, "coefficients, z3", f"{_short(expression)} is not rational")
    sampled = f"no counterexample at {found} random exact rationals" if found else NO_WITNESS
    if coefficients:
        second = _by_z3(fraction, system.facts, RLIMIT // 40)
        return ProofFinding(True, "coefficients", f"all coefficients nonnegative; {'z3 agrees' if second else sampled}")
    if _by_z3(fraction, system.facts, RLIMIT):
        return ProofFinding(True, "coefficients failed; z3", f"unsatisfiable; {sampled}")
    return ProofFinding(False, "coefficients, z3", f"neither method shows {_short(expression)} >= 0")


def _short(expression: sp.Expr) -> str:
    text = str(expression)
    return text if len(text) <= 160 else text[:157] + "..."


class _Extremum(sp.Function):
    """A maximum or minimum that does not compare its arguments: sympy's does, slowly, each time that it is rebuilt."""

    is_real = True
    of_any: bool

    def _among(self, signs: Iterable[bool | None]) -> bool | None:
        return (any if self.of_any else all)(signs) or None

    def _eval_is_nonnegative(self) -> bool | None:
        return self._among(a.is_nonnegative for a in self.args)

    def _eval_is_positive(self) -> bool | None:
        return self._among(a.is_positive for a in self.args)

    def _sympystr(self, printer: Any) -> str:
        return f"{'Max' if self.of_any else 'Min'}({', '.join(map(printer._print, self.args))})"


class _Largest(_Extremum):
    of_any = True


class _Smallest(_Extremum):
    of_any = False


def _still(e: sp.Expr) -> sp.Expr:
    """The expression with extrema that compare nothing, but for those inside what is over clients."""
    if isinstance(e, OverClients) or not e.has(sp.Max, sp.Min):
        return e
    args = map(_still, parts(e))
    return _Largest(*args) if isinstance(e, sp.Max) else _Smallest(*args) if isinstance(e, sp.Min) else e.func(*args)


def _plain(expression: sp.Expr, facts: Sequence[Relation]) -> tuple[sp.Expr, System]:
    """Roots, floors, extrema and named numbers replaced by symbols with facts, so that all is rational."""
    system = System([fact.slack for fact in facts] + [-fact.slack for fact in facts if fact.op == "=="])
    everything = [_still(e) for e in (expression, *relevant_facts(expression, system.facts))]
    symbols: dict[sp.Basic, sp.Symbol] = {}
    for number in sorted({a for e in everything for a in e.atoms(NamedNumber, sp.Pow) if _constant(a)}, key=str):
        symbol = sp.Symbol(str(number), positive=True)
        value = sp.Rational(str(sp.N(number, DIGITS)))
        margin = sp.Rational(1, 10 ** (DIGITS - 3))
        symbols[number] = symbol
        system.numbers[symbol] = value
        everything += [symbol - (value - margin), (value + margin) - symbol]
    for part in sorted({a for e in everything for a in e.atoms(OverClients)}, key=str):
        symbols[part] = sp.Symbol(f"[{part}]", real=True, nonnegative=part.is_nonnegative)
    everything = [e.xreplace(symbols) for e in everything] if symbols else everything
    stands: dict[sp.Symbol, sp.Expr] = {}
    while extrema := {a for e in everything for a in e.atoms(_Extremum)}:
        part = min(extrema, key=lambda a: (len(a.atoms(_Extremum)), str(a)))  # inner ones first
        symbol = sp.Symbol(f"[{part}]", real=True, nonnegative=part.is_nonnegative, positive=part.is_positive)
        stands[symbol] = part
        everything = [e.xreplace({part: symbol}) for e in everything]
        apart = [symbol - a if isinstance(part, _Largest) else a - symbol for a in part.args]
        everything += [*apart, *([-sp.Mul(*apart)] if len(apart) == 2 else [])]  # it is one of the two
    for part in sorted({a for e in everything for a in e.atoms(sp.floor)}, key=str):
        inside = part.args[0]
        known = [Relation(sp.S.Zero, e) for e in everything[1:] if not e.has(sp.floor)]
        least = next((m for m in (2, 1, 0) if prove(inside - m, known).holds), None)
        symbol = sp.Symbol(
            f"[{inside}]", positive=True if least else None, nonnegative=least is not None or None, integer=True
        )
        stands[symbol] = part
        everything = [e.xreplace({part: symbol}) for e in everything]
        everything += [inside - symbol, symbol + 1 - inside]
        everything += [symbol - least] if least else []
    powers: dict[sp.Symbol, int] = {}
    for power in {a for e in everything for a in e.atoms(sp.Pow)}:
        if (
            isinstance(power.base, sp.Symbol)
            and power.base.is_nonnegative
            and (isinstance(power.exp, sp.Rational) and power.exp.q > 1)
        ):
            powers[power.base] = int(sp.ilcm(powers.get(power.base, 1), power.exp.q))
    for symbol, q in sorted(powers.items(), key=lambda pair: str(pair[0])):
        root = sp.Symbol(f"{symbol.name}^(1/{q})", positive=symbol.is_positive, nonnegative=True)
        everything = [e.xreplace({symbol: root**q}) for e in everything]  # sqrt((a - b)^2) stays as it is
        stands = {s: e.xreplace({symbol: root**q}) for s, e in stands.items()}
        if symbol in system.numbers:
            value = sp.N(sp.root(system.numbers.pop(symbol), q), DIGITS)
            system.numbers[root] = sp.Rational(str(value))
        if symbol.is_integer and symbol.is_positive:
            everything.append(root - 1)
    return everything[0], System([e for e in everything[1:] if not e.is_zero], stands, system.numbers)


def _constant(number: sp.Expr) -> bool:
    """Whether this is a named number, or a root of a rational one."""
    if isinstance(number, NamedNumber):
        return True
    base, exponent = number.as_base_exp()
    return bool(base.is_Rational and base.is_positive and exponent.is_Rational and not exponent.is_Integer)


def relevant_facts(expression: sp.Expr, facts: Sequence[sp.Expr]) -> list[sp.Expr]:
    """The facts that share symbols with the expression, directly or through one another; the others say nothing of
    it.
    """
    free, found = set(expression.free_symbols), list[sp.Expr]()
    while more := [f for f in facts if f not in found and f.free_symbols & free]:
        found += more
        free |= {s for f in more for s in f.free_symbols}
    return [f for f in facts if f in found]


def counterexample(
    expression: sp.Expr,
    facts: Sequence[sp.Expr],
    substitution: dict[sp.Symbol, sp.Expr] | None = None,
    tries: int = 60,
) -> str | None:
    """Exact rational values at which the facts hold and the expression is negative, as text."""
    try:
        return _sampled(expression, System(list(facts)), substitution, tries)[0]
    except sp.PolynomialError:
        return _irrational(expression, facts, tries)


def _irrational(expression: sp.Expr, facts: Sequence[sp.Expr], tries: int) -> str | None:
    """A counterexample where roots, floors or named numbers occur, whose signs sympy decides."""
    symbols = sorted({s for e in (expression, *facts) for s in e.free_symbols}, key=str)
    solved, source = slack_substitution(facts, symbols), random.Random(0)
    fresh = sorted({s for e in solved.values() for s in e.free_symbols} | (set(symbols) - set(solved)), key=str)
    for k in range(tries):
        picks = {s: sp.Rational(str(_pick(s, source, whole=bool(s.is_integer) or k % 3 == 0))) for s in fresh}
        values = {s: solved.get(s, s).xreplace(picks) for s in symbols}
        if any((s.is_integer and not v.is_integer) or (s.is_positive and not v.is_positive) for s, v in values.items()):
            continue
        if all(fact.xreplace(values).is_nonnegative for fact in facts) and expression.xreplace(values).is_negative:
            return ", ".join(f"{s} = {v}" for s, v in values.items())
    return None


def _sampled(
    expression: sp.Expr, system: System, substitution: dict[sp.Symbol, sp.Expr] | None, tries: int
) -> tuple[str | None, int]:
    """A counterexample, and the number of points tried at which the facts hold.

    Every fourth point owes nothing to the substitution, so that an error in it is found out; floors and extrema are
    computed.
    """
    facts, numbers = system.facts, {s: _exactly(v, {}) for s, v in system.numbers.items()}
    symbols = sorted({s for e in (expression, *facts) for s in e.free_symbols if s not in numbers}, key=str)
    if numbers:  # these are no symbols: they have one value, in a small interval
        apart = [f for f in (fact.xreplace(dict(system.numbers)) for fact in facts) if f.free_symbols]
        solved = slack_substitution(apart, symbols)
    else:
        solved = slack_substitution(facts, symbols) if substitution is None else substitution
    fresh = sorted({s for e in solved.values() for s in e.free_symbols} | (set(symbols) - set(solved)), key=str)
    points = [solved.get(s, s) for s in symbols]
    source, found = random.Random(0), 0
    for k in range(tries):
        direct = k % 4 == 3
        picks = [_pick(s, source, whole=bool(s.is_integer) or k % 3 == 0) for s in (symbols if direct else fresh)]
        try:
            values = picks if direct else [_exactly(point, dict(zip(fresh, picks, strict=True))) for point in points]
            known = dict(zip(symbols, values, strict=True)) | numbers
            for symbol, part in system.stands.items():  # inner ones were replaced first
                known[symbol] = _extreme(part, known)
            if not all(_in_domain(s, v) for s, v in known.items()):
                continue
            value = _exactly(expression, known)
            if any(_exactly(fact, known) < 0 for fact in facts):
                continue
        except ZeroDivisionError:
            continue
        found += 1
        if value < 0 and all(_exactly(expression, known | _moved(numbers, way)) < 0 for way in (-1, 1) if numbers):
            return ", ".join(f"{s} = {known[s]}" for s in symbols), found
    return None, found


def _moved(numbers: Mapping[sp.Symbol, flint.fmpq], way: int) -> dict[sp.Symbol, flint.fmpq]:
    """The numbers at the ends of their intervals: what is negative at one end only may be zero between."""
    return {symbol: value + flint.fmpq(way, 10 ** (DIGITS - 3)) for symbol, value in numbers.items()}


def _extreme(part: sp.Expr, values: Mapping[sp.Symbol, flint.fmpq]) -> flint.fmpq:
    """The value of a floor, a maximum or a minimum."""
    inside = [_exactly(a, values) for a in parts(part)]
    return (
        flint.fmpq(inside[0].floor())
        if isinstance(part, sp.floor)
        else (max if isinstance(part, _Largest) else min)(inside)
    )


def _in_domain(symbol: sp.Symbol, value: flint.fmpq) -> bool:
    return not (symbol.is_integer and value.q != 1) and not (symbol.is_positive and value <= 0)


def _exactly(expression: sp.Expr, values: Mapping[sp.Symbol, flint.fmpq]) -> flint.fmpq:
    """The value of a rational expression."""
    if isinstance(expression, sp.Symbol):
        return values[expression]
    if isinstance(expression, sp.Rational):
        return flint.fmpq(int(expression.p), int(expression.q))
    if isinstance(expression, sp.Add):
        return sum((_exactly(a, values) for a in expression.args), flint.fmpq(0))
    if isinstance(expression, sp.Mul):
        return math.prod((_exactly(a, values) for a in expression.args), start=flint.fmpq(1))
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer:
        return _exactly(expression.base, values) ** int(expression.exp)
    raise sp.PolynomialError(f"{expression} is not rational")


def _pick(symbol: sp.Symbol, source: random.Random, whole: bool) -> flint.fmpq:
    low = 1 if symbol.is_positive and not symbol.name.startswith("slack") else 0
    sign = 1 if symbol.is_nonnegative else source.choice([1, -1])
    if whole:
        return flint.fmpq(sign * source.choice([low, low, 1, 2, 3, 7, 50]))
    return flint.fmpq(sign * source.randint(1, 40), source.choice([1, 3, 10, 40, 1000]))


def _by_coefficients(expression: sp.Expr, values: dict[sp.Symbol, sp.Expr]) -> bool:
    current = expression.xreplace(values)
    found = quotient(current)
    if _one_sign(found):  # common factors may help: (x^3 + 1)/(x + 1)
        return True
    found = cancel(current)
    return _one_sign(found) or found.above == 0


def _one_sign(found: Quotient) -> bool:
    """Whether no coefficient is negative, or none above or none below positive, and no symbol is negative."""
    degrees = found.above.degrees(), found.below.degrees()
    used = {s for s, *powers in zip(found.symbols, *degrees, strict=False) if any(powers)}
    if not all(s.is_nonnegative for s in used):
        return False
    signs = [{c > 0 for c in part.coeffs()} for part in (found.above, found.below)]
    return len(signs[0]) == 1 and signs[0] == signs[1]


def _by_z3(fraction: Quotient, facts: Sequence[sp.Expr], limit: int) -> bool:
    """Whether it is negative is unsatisfiable, denominators being nonzero wherever they are evaluated."""

    def negative(text: Text) -> str:
        above, below = (text(fraction.symbols, part) for part in (fraction.above, fraction.below))
        return f"(assert (distinct {below} 0))(assert (< (* {above} {below}) 0))"

    return _unsatisfiable(facts, negative, limit)


Text = Callable[[Sequence[sp.Symbol | NamedNumber], flint.fmpz_mpoly], str]


def _unsatisfiable(facts: Sequence[sp.Expr], claim: Callable[[Text], str], limit: int) -> bool:
    """Whether facts and claim contradict each other; written in SMT-LIB, which z3 reads faster than it is built."""
    names: dict[sp.Symbol | NamedNumber, str] = {}  # symbols of one name may be two

    def text(symbols: Sequence[sp.Symbol | NamedNumber], polynomial: flint.fmpz_mpoly) -> str:
        summands = []
        for powers, c in polynomial.terms():
            factors = [
                names.setdefault(s, f"v{len(names)}") for s, k in zip(symbols, powers, strict=False) for _ in range(k)
            ]
            summands.append(f"(* {c if c >= 0 else f'(- {-c})'} 1 {' '.join(factors)})")
        return f"(+ 0 0 {' '.join(summands)})"

    try:
        quotients = [cancel(fact) for fact in facts]
    except sp.PolynomialError:
        return False
    asserted = []
    for symbols, above, below in quotients:
        n, d = text(symbols, above), text(symbols, below)
        asserted.append(f"(assert (>= (* {n} {d}) 0))(assert (distinct {d} 0))")
    asserted.append(claim(text))
    for s, name in names.items():
        if s.is_nonnegative:
            asserted.append(f"(assert ({'>' if s.is_positive else '>='} {name} 0))")
        if s.is_integer and s.is_positive:
            asserted.append(f"(assert (>= {name} 1))")
    solver = z3.Tactic("qfnra-nlsat", z3.Context()).solver()
    solver.set("rlimit", limit)
    solver.from_string("".join(f"(declare-const {name} Real)" for name in names.values()) + "".join(asserted))
    return solver.check() == z3.unsat


def never_zero(expression: sp.Expr, facts: Sequence[Relation]) -> bool:
    """Whether an expression is defined and not zero wherever the facts hold, so that one may divide by it."""
    if any(fact.strict and fact.slack == expression for fact in facts):
        return True
    plain, system = _plain(expression, facts)
    try:
        found = cancel(plain)
        strict = [
            f for fact in facts if fact.strict for f, _ in sp.factor_list(normal(_plain(fact.slack, ())[0])[0])[1]
        ]
    except sp.PolynomialError:
        return False
    if found.above == 0:
        return False

    def nonzero(factor: flint.fmpz_mpoly) -> bool:
        plainly = found.written(factor)
        if plainly.is_positive or plainly in strict or -plainly in strict:
            return True
        return _unsatisfiable(system.facts, lambda text: f"(assert (= {text(found.symbols, factor)} 0))", RLIMIT)

    return all(nonzero(f) for part in (found.above, found.below) for f, _ in part.factor()[1])


@lru_cache(maxsize=4096)
def satisfiable(facts: tuple[Relation, ...]) -> ProofFinding:
    """Whether facts can hold together: contradictory ones prove anything, so that what rests on them says nothing."""
    said = ", ".join(map(str, facts))
    slacks = [f.slack for f in facts] + [-f.slack for f in facts if f.op == "=="]
    _, system = _plain(sp.Add(*{s for e in slacks for s in e.free_symbols}), facts)
    if any(e.is_negative for e in (*slacks, *system.facts) if e.is_number):
        return ProofFinding(False, "exact rationals", f"no values satisfy {said}")
    try:
        witness = _sampled(sp.S.NegativeOne, system, None, 200)[0]  # the first point at which the facts hold
    except sp.PolynomialError:
        if hold_at_squares(facts):
            return ProofFinding(True, "exact rationals", f"values were found that satisfy {said}")
        return ProofFinding(True, "none", f"whether {said} can hold together is not decided")
    if witness is not None or hold_at_squares(facts):
        return ProofFinding(True, "exact rationals", f"values were found that satisfy {said}")
    if _by_z3(quotient(sp.S.NegativeOne), system.facts, RLIMIT):
        return ProofFinding(False, "z3", f"no values satisfy {said}")
    return ProofFinding(True, "none", f"{NO_WITNESS}: {said}")


def hold_at_squares(facts: tuple[Relation, ...], tries: int = 20000) -> bool:
    """Whether the facts hold at some squares with rational roots; a reduction over clients counts as a symbol."""
    facts = tuple(replace(f, left=_unnamed(f.left), right=_unnamed(f.right)) for f in facts)
    over = {part for f in facts for side in (f.left, f.right) for part in side.atoms(OverClients)}
    replaced = {part: sp.Symbol(f"over{k}", positive=True) for k, part in enumerate(sorted(over, key=str))}
    facts = tuple(replace(f, left=f.left.xreplace(replaced), right=f.right.xreplace(replaced)) for f in facts)
    slacks = [f.slack for f in facts]
    symbols = sorted(set().union(*(s.free_symbols for s in slacks)), key=str)
    if (
        not symbols
        or any(map(opaque, symbols))
        or any(e.atoms(sp.Function) - e.atoms(sp.floor, sp.log) for e in slacks)
    ):
        return False
    numbers, draw = sp.lambdify(symbols, slacks, "math", docstring_limit=0), random.Random(199)
    whole, any_ = [1, 1, 4, 9, 16, 10**12], [Fraction(1, 10**12), Fraction(1, 16), Fraction(1, 4), 1, 1, 4, 16]
    choices = [whole if s.is_integer else any_ for s in symbols]
    for _ in range(tries):
        point = [draw.choice(c) for c in choices]
        try:
            near = [abs(v) < 1e-9 if f.op == "==" else v > -1e-9 for f, v in zip(facts, numbers(*point), strict=True)]
        except (ArithmeticError, ValueError):
            continue
        at = {s: sp.Rational(v) for s, v in zip(symbols, point, strict=True)}
        if all(near) and all(_holds_at(f, f.slack.xreplace(at)) for f in facts):
            return True
    return False


def _unnamed(expression: sp.Expr) -> sp.Expr:
    return expression.xreplace({number: number.exact for number in expression.atoms(NamedNumber)})


def _holds_at(fact: Relation, slack: sp.Expr) -> bool:
    if fact.op == "==":
        return slack.is_zero is True
    return slack.is_positive is True if fact.strict else slack.is_nonnegative is True


@lru_cache(maxsize=4096)
def same(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether two expressions are equal, by normal form."""
    if left == right:
        return True
    difference, _ = _plain(_still(left) - _still(right), ())
    return normal(difference)[0].is_zero is True


def says(conclusion: Relation, wanted: Relation) -> bool:
    """Whether a step concludes just the upper bound that a rule gives."""
    return conclusion.op == "<=" and conclusion.left == wanted.left and same(conclusion.right, wanted.right)


def reduce_expression(expression: sp.Expr) -> sp.Expr:
    """A rational expression in lowest terms, written out; any other expanded."""
    try:
        found = cancel(expression)
    except sp.PolynomialError:
        return sp.expand(expression)
    return found.written(found.above) / found.written(found.below)
