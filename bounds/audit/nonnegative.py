r"""Rational inequalities under conditions: is an expression nonnegative wherever the facts hold?

Two methods that know nothing of each other. *Coefficients*: every fact becomes a substitution by nonnegative variables
(`I = 1 + u`, `gamma = 1/(12 L I P (1 + v))`), after which numerator and denominator have no negative coefficient; that is a
proof. *z3*: the negation, with the denominators asserted positive, is unsatisfiable; also a proof, under a limit that is a
count. Neither is used before an exact evaluation at random rationals has failed to refute the claim.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp
import z3

from bounds.audit.claim import Relation
from bounds.named_numbers import NamedNumber

RLIMIT = 4_000_000  # z3 counts its own steps, so that the verdict does not depend on the machine
DIGITS = 15  # of the rational enclosure of a named number


@dataclass(frozen=True)
class Finding:
    """Whether something was shown, how, and what was found on the way."""

    holds: bool
    method: str
    evidence: str


@dataclass
class System:
    """A polynomial problem: nonnegative `facts` (as expressions) over positive symbols.

    Args:
        facts: expressions that are nonnegative.
        named: what stands for roots, floors and named numbers.
    """

    facts: list[sp.Expr]
    named: dict[sp.Expr, sp.Symbol] = field(default_factory=dict)


def prove(expression: sp.Expr, facts: Sequence[Relation] = ()) -> Finding:
    """Whether the expression is nonnegative wherever its symbols are in their domains and the facts hold.

    Example:
        >>> x, y = sp.symbols("x y", positive=True)
        >>> prove(x + 1 / x - 2).method
        'coefficients failed; z3'
        >>> prove(3 - y, [Relation(y, sp.Integer(2))]).holds
        True
        >>> prove(x - 1).evidence
        'false at x = 1/2'
    """
    expression, system = _plain(expression, facts)
    if expression.is_zero:
        return Finding(True, "identity", "both sides are equal")
    at = counterexample(expression, system.facts)
    if at is not None:
        return Finding(False, "exact rationals", f"false at {at}")
    numerator, denominator = _fraction(expression)
    if _by_coefficients(expression, system.facts):
        second = _by_z3(numerator, denominator, system.facts, RLIMIT // 40)
        agreed = "z3 agrees" if second else "no counterexample at 60 random exact rationals"
        return Finding(True, "coefficients", f"all coefficients nonnegative; {agreed}")
    if _by_z3(numerator, denominator, system.facts, RLIMIT):
        return Finding(True, "coefficients failed; z3", "unsatisfiable; no counterexample at 60 random exact rationals")
    return Finding(False, "coefficients, z3", f"neither method shows {_short(expression)} >= 0")


def _short(expression: sp.Expr) -> str:
    text = str(expression)
    return text if len(text) <= 160 else text[:157] + "..."


def _plain(expression: sp.Expr, facts: Sequence[Relation]) -> tuple[sp.Expr, System]:
    """Roots, floors, exponentials and named numbers replaced by symbols with facts, so that all is rational."""
    system = System([fact.slack for fact in facts] + [-fact.slack for fact in facts if fact.op == "=="])
    everything = [expression, *system.facts]
    for number in sorted({a for e in everything for a in e.atoms(NamedNumber)}, key=str):
        symbol = sp.Symbol(number.name, positive=True)
        value = sp.Rational(str(sp.N(number, DIGITS)))
        margin = sp.Rational(1, 10 ** (DIGITS - 3))
        everything = [e.xreplace({number: symbol}) for e in everything]
        everything += [symbol - (value - margin), (value + margin) - symbol]
    for part in sorted({a for e in everything for a in e.atoms(sp.floor)}, key=str):
        symbol, inside = sp.Symbol(f"[{part.args[0]}]", positive=True, integer=True), part.args[0]
        known = [Relation(sp.S.Zero, e) for e in everything[1:] if not e.has(sp.floor)]
        least = next((m for m in (2, 1) if prove(inside - m, known).holds), 0)  # pyright: ignore[reportOperatorIssue]
        everything = [e.xreplace({part: symbol}) for e in everything]
        everything += [inside - symbol, symbol + 1 - inside, symbol - least]  # pyright: ignore[reportOperatorIssue]
    powers: dict[sp.Symbol, int] = {}
    for power in {a for e in everything for a in e.atoms(sp.Pow)}:
        if isinstance(power.base, sp.Symbol) and power.exp.is_Rational and power.exp.q > 1:
            powers[power.base] = int(sp.ilcm(powers.get(power.base, 1), power.exp.q))
    for symbol, q in powers.items():
        root = sp.Symbol(f"{symbol.name}^(1/{q})", positive=symbol.is_positive, nonnegative=True)
        everything = [sp.powdenest(e.subs(symbol, root**q), force=True) for e in everything]
    return everything[0], System([e for e in everything[1:] if not e.is_zero])


def _fraction(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    numerator, denominator = sp.fraction(sp.cancel(sp.together(expression)))
    return sp.expand(numerator), sp.expand(denominator)


def domain_facts(symbols: Iterable[sp.Symbol]) -> list[sp.Expr]:
    """That whole numbers with a positive domain are at least 1."""
    return [s - 1 for s in symbols if s.is_integer and s.is_positive]


def counterexample(expression: sp.Expr, facts: Sequence[sp.Expr], tries: int = 60) -> str | None:
    """Exact rational values at which the facts hold and the expression is negative, as text."""
    symbols = sorted({s for e in (expression, *facts) for s in e.free_symbols}, key=str)
    source, found = random.Random(0), 0
    substitution = _substitution(facts, symbols)
    fresh = sorted({s for e in substitution.values() for s in e.free_symbols} | (set(symbols) - set(substitution)), key=str)
    for k in range(tries):
        picks = {}
        for s in fresh:
            whole = s.is_integer or k % 3 == 0
            low = 0 if s.name.startswith("slack") or not s.is_positive else 1
            picks[s] = sp.Integer(source.choice([low, low, 1, 2, 3, 7, 50])) if whole else sp.Rational(
                source.randint(1, 40), source.choice([1, 3, 10, 40, 1000])
            )
        values = {s: substitution[s].xreplace(picks) if s in substitution else picks[s] for s in symbols}
        if any(v.has(sp.zoo, sp.nan) for v in values.values()) or any(
            s.is_integer and v.is_integer is False for s, v in values.items()
        ):
            continue
        if all(_at_least_zero(fact.xreplace(values)) for fact in facts):
            found += 1
            value = expression.xreplace(values)
            if value.is_finite is not False and value.is_negative:
                return ", ".join(f"{s} = {values[s]}" for s in symbols)
    return None


def _at_least_zero(value: sp.Expr) -> bool:
    return bool(value.is_finite is not False and value.is_nonnegative)


def _substitution(facts: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    """Every symbol by nonnegative slack variables, where the facts can be solved one after the other.

    A fact a - b >= 0 whose two sides are monomials after earlier substitutions is solved for one of its symbols: from above
    as limit/(1 + slack), from below as limit*(1 + slack) or limit + slack.
    """
    values: dict[sp.Symbol, sp.Expr] = {}
    count = 0

    def replaced(e: sp.Expr) -> sp.Expr:
        return sp.cancel(sp.together(e.xreplace(values)))

    pending = [*facts, *domain_facts(symbols)]
    for fact in sorted(pending, key=lambda e: (len(e.free_symbols), str(e))):
        current = replaced(fact)
        numerator = sp.factor_terms(sp.fraction(current)[0])
        positive, negative = _two_sides(sp.expand(numerator))
        for symbol in sorted(numerator.free_symbols, key=lambda s: (s in values, _order(s))):
            if symbol in values or symbol.name.startswith("slack"):
                continue
            up, down = _degree(positive, symbol), _degree(negative, symbol)
            if up is None or down is None or (up == 0) == (down == 0):
                continue
            slack = sp.Symbol(f"slack{count}", nonnegative=True)
            count += 1
            if down:  # positive >= c symbol^k: a bound from above
                limit = (positive / (negative / symbol**down)) ** sp.Rational(1, down)
                value = sp.powdenest(limit, force=True) / (1 + slack)
            else:
                limit = sp.powdenest((negative / (positive / symbol**up)) ** sp.Rational(1, up), force=True)
                value = limit + slack if limit.is_number else limit * (1 + slack)
            if any(not p.exp.is_integer for p in value.atoms(sp.Pow)):
                continue
            values = {s: v.xreplace({symbol: value}) for s, v in values.items()} | {symbol: value}
            break
    return values


def _order(symbol: sp.Symbol) -> tuple[int, str]:
    """Step sizes and T are solved for before L, I, P, which occur in the limits."""
    first = ("eta", "gamma", "T", "rho")
    return (first.index(symbol.name) if symbol.name in first else len(first), symbol.name)


def _two_sides(polynomial: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    terms = sp.Add.make_args(polynomial)
    negative = [t for t in terms if t.could_extract_minus_sign()]
    positive = [t for t in terms if not t.could_extract_minus_sign()]
    return sp.factor(sp.Add(*positive)), sp.factor(-sp.Add(*negative))


def _degree(side: sp.Expr, symbol: sp.Symbol) -> int | None:
    """The power of the symbol if the side is a monomial in it, else None."""
    if not side.has(symbol):
        return 0
    coefficient, exponent = side.as_coeff_exponent(symbol)
    return int(exponent) if exponent.is_Integer and exponent > 0 and not coefficient.has(symbol) else None


def _by_coefficients(expression: sp.Expr, facts: Sequence[sp.Expr]) -> bool:
    symbols = sorted({s for e in (expression, *facts) for s in e.free_symbols}, key=str)
    values = _substitution(facts, symbols)
    current = expression
    for _ in range(len(values) + 1):  # a limit may hold a symbol that is itself replaced
        if not (current.free_symbols & set(values)):
            break
        current = current.xreplace(values)
    numerator, denominator = _fraction(current)
    return _one_sign(numerator) * _one_sign(denominator) > 0 or numerator.is_zero is True


def _one_sign(polynomial: sp.Expr) -> int:
    """1 or -1 if all coefficients have that sign and all symbols are nonnegative, else 0."""
    symbols = sorted(polynomial.free_symbols, key=str)
    if not all(s.is_nonnegative for s in symbols):
        return 0
    coefficients = sp.Poly(polynomial, *symbols).coeffs() if symbols else [polynomial]
    signs = {1 if c > 0 else -1 for c in coefficients if c != 0}
    return signs.pop() if len(signs) == 1 else 0


def _by_z3(numerator: sp.Expr, denominator: sp.Expr, facts: Sequence[sp.Expr], limit: int) -> bool:
    """Whether numerator*denominator < 0 is unsatisfiable, denominators being nonzero wherever they are evaluated."""
    context = z3.Context()
    solver = z3.Tactic("qfnra-nlsat", context).solver()
    solver.set("rlimit", limit)
    variables: dict[sp.Symbol, z3.ArithRef] = {}

    def term(e: sp.Expr) -> z3.ArithRef:
        if isinstance(e, sp.Symbol):
            if e not in variables:
                variables[e] = z3.Real(e.name, context)
                if e.is_positive:
                    solver.add(variables[e] > 0)
                elif e.is_nonnegative:
                    solver.add(variables[e] >= 0)
                if e.is_integer and e.is_positive:
                    solver.add(variables[e] >= 1)
            return variables[e]
        if e.is_Rational:
            return z3.RatVal(int(e.p), int(e.q), context)
        if isinstance(e, sp.Add):
            return z3.Sum([term(a) for a in e.args])
        if isinstance(e, sp.Mul):
            return z3.Product([term(a) for a in e.args])
        if isinstance(e, sp.Pow) and e.exp.is_Integer and e.exp > 0:
            return z3.Product([term(e.base)] * int(e.exp))
        raise TypeError(f"{e} is not rational")

    try:
        for fact in facts:
            above, below = _fraction(fact)
            solver.add(term(above) * term(below) >= 0, term(below) != 0)
        solver.add(term(denominator) != 0, term(numerator) * term(denominator) < 0)
    except TypeError:
        return False
    return solver.check() == z3.unsat


@lru_cache(maxsize=4096)
def same(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether two expressions are equal, by normal form."""
    difference, _ = _plain(left - right, ())
    return sp.cancel(sp.together(difference)).is_zero is True
