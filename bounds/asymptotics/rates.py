r"""Rates of bounds in the number of rounds, at prescribed step sizes or at the best powers of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, log2
from operator import mul

import sympy as sp

from fedbounds.bounds.asymptotics.exact_lp import corners, maximize
from fedbounds.bounds.asymptotics.orders import all_positive, exponent, growth_exponents, least_exponents
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.expressions import substitute
from fedbounds.bounds.theory.result import Condition, Form, Result, Term
from fedbounds.bounds.theory.symbols import Notation

FIRST = 10**6  # the rate counts so much more than the work that it alone decides


@dataclass(frozen=True)
class Complexity:
    r"""The best rate of a bound, and the least work at which it is reached."""

    rate: Fraction  # $\rho$: the bound is $O(T^{-\rho})$, no choice of exponents makes it fall faster
    exponents: Mapping[str, Fraction]  # symbol to the power of T that reaches it
    work: str = ""  # the symbol of the work in a round
    choices: int = 1  # of exponents that reach it, at the corners of the set of them; without work

    @property
    def rounds(self) -> Fraction:
        r"""a, where a target $\epsilon$ for the norm takes $\epsilon^{-a}$ rounds (the bound is on the square)."""
        return 2 / self.rate

    @property
    def total_work(self) -> Fraction:
        r"""b, where it takes $\epsilon^{-b}$ units of work over all rounds."""
        return self.rounds * (1 + self.exponents[self.work])


def best_complexity(
    terms: Iterable[Term],
    conditions: Iterable[Condition],
    rounds: sp.Symbol,
    free: Sequence[sp.Symbol],
    work: sp.Symbol | None = None,
    at: Mapping[sp.Expr, sp.Expr] | None = None,
    whole: Iterable[sp.Symbol] = (),
    growing: Iterable[sp.Expr] = (),
) -> Complexity:
    r"""The best exponents of the free symbols, and of the work the least with which the rate is still reached.

    What is growing does not fall with the rounds. Without work, of several best exponents those with the fewest
    dominant terms, then the largest first one.
    """
    symbols, values = [rounds, *free], dict(at or {})
    rows: list[list[Fraction]] = []
    limits: list[Fraction] = []

    def exponents(expression: sp.Expr) -> list[list[Fraction]]:
        return growth_exponents(substitute(expression, values), symbols)

    def add(row: Sequence[Fraction | int], limit: Fraction | int) -> None:
        if limit < 0:
            raise FedboundsError(f"a part grows like {rounds}^{-limit} where the free symbols are constant")
        rows.append([Fraction(x) for x in row])
        limits.append(Fraction(limit))

    of_term: list[int] = []  # of each of the first rows its term
    for place, term in enumerate(terms):
        for power, *others in exponents(term.expression):
            add([*others, 1], -power)  # power + others.v <= -rho
            of_term.append(place)
    for condition in conditions:
        for below, above in at_most(condition):
            bound = exponents(above)
            if len(bound) != 1:
                raise FedboundsError(f"{condition.text} does not compare with a product")
            for power, *others in exponents(below):
                low, *rest = bound[0]
                add([*(a - b for a, b in zip(others, rest, strict=True)), 0], low - power)
    for each in growing:
        for power, *others in least_exponents(substitute(each, values), symbols):
            add([*(-a for a in others), 0], power)
    for symbol in whole:
        add([*(-int(symbol == z) for z in free), 0], 0)
    best = maximize([*(-int(work == z) for z in free), FIRST], rows, limits)
    *found, rate = best.point
    if work is not None or not free or not rate:
        return Complexity(
            rate, {z.name: v for z, v in zip(free, found, strict=True)}, "" if work is None else work.name
        )
    inner, left = [row[:-1] for row in rows], [limit - row[-1] * rate for row, limit in zip(rows, limits, strict=True)]

    def preference(point: Sequence[Fraction]) -> tuple[int, list[Fraction]]:
        tight = {
            term for term, row, limit in zip(of_term, inner, left, strict=False) if sum(map(mul, row, point)) == limit
        }
        return len(tight), [-power for power in point]

    choices = corners(inner, left)
    chosen = min(choices, key=preference)
    return Complexity(rate, {z.name: v for z, v in zip(free, chosen, strict=True)}, choices=len(choices))


def at_most(condition: Condition) -> list[tuple[sp.Expr, sp.Expr]]:
    """Pairs of sides, without subtraction, of which a condition says that the first is at most the second."""
    left, right = all_positive(condition.left, condition.right)
    return [(left, right)] * (condition.op not in (">=", ">")) + [(right, left)] * (condition.op not in ("<=", "<"))


@dataclass(frozen=True)
class Rate:
    r"""How a form falls with the number of rounds: $O(T^{-\rho})$, but for terms that stay."""

    rounds: sp.Symbol  # T
    power: Fraction | float  # $\rho$; infinite if every term that falls does so geometrically
    stays: tuple[str, ...]  # the terms that do not fall
    steps: Mapping[str, Fraction]  # the powers of T of step sizes that were chosen; empty for prescribed ones
    dominant: tuple[str, ...] = ()  # the terms that fall as slowly as that
    participants: Fraction | None = None  # the power of the number of participants that then divides it, if known
    geometric: Mapping[str, sp.Expr] = field(default_factory=dict)  # terms to what falls faster than any power of T
    choices: int = 1  # of powers of the step sizes that are best: those with the fewest dominant terms are taken
    logs: tuple[str, ...] = ()  # the step sizes that need a factor log T besides: so does the rate

    @property
    def speed_up(self) -> str:
        """Whether M participants need 1/M of the rounds, in words: "linear" if the bound falls with both alike.

        It is "" if unknown. "faster than linear" contradicts lower bounds, unless the bound is loose for few
        participants.
        """
        if self.participants is None:
            return ""
        if not self.power or self.participants < self.power:
            return "not linear"
        return "linear" if self.participants == self.power else "faster than linear"

    @property
    def order(self) -> str:
        """In words: T^(-1/2), or a geometric rate."""
        return "a geometric rate" if self.power == inf else f"{self.rounds}^(-{self.power})"


def rate(result: Result, form: Form) -> Rate:
    """The rate of a form; the step sizes in its terms are the best powers of T that its conditions admit.

    All other constants are fixed. What falls geometrically, such as exp(-T), falls faster than all powers of T.

    Raises:
        FedboundsError: the form has no number of rounds, or its order cannot be told.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> found = rate(theorem, theorem.form("explicit"))
        >>> found.power, found.stays
        (Fraction(1, 2), ('window divergence',))
    """
    quantities = {q.concept: q for q in result.notation.values()}
    counted = [quantities[concept].symbol for concept in ("rounds", "iterations") if concept in quantities]
    used = {symbol for term in form.terms for symbol in term.expression.free_symbols}
    T = next((symbol for symbol in counted if symbol in used), None)
    if T is None:
        raise FedboundsError(f"{result.key}[{form.name}] has no number of rounds")
    steps = [quantities[concept].symbol for concept in STEPS if concept in quantities]
    form = at_equal_steps(form, steps)
    steps = [symbol for symbol in steps if any(term.expression.has(symbol) for term in form.terms)]
    split = {term.name: _without_geometric(term.expression, T, steps, result.notation) for term in form.terms}
    terms = [Term(name, rest) for name, (rest, _) in split.items()]
    geometric = {name: sp.Add(*(each.factor for each in found)) for name, (_, found) in split.items() if found}
    fast = [each.decay for _, found in split.values() for each in found]
    if not steps:
        powers = {term.name: exponent(term.expression, T) for term in terms}
        falling = [power for power in powers.values() if power is not None and power < 0]
        stays = tuple(name for name, power in powers.items() if power is not None and power >= 0)
        if not falling and geometric:
            return _geometric_rate(T, stays, {}, geometric)
        slowest = max(falling, default=Fraction(0))
        dominant = tuple(name for name, power in powers.items() if power == slowest)
        falls = [term for term in terms if term.name not in stays]
        joint = _participants(result, falls, dominant, (), T, (), -slowest)
        return Rate(T, -slowest, stays, {}, dominant, joint, geometric)
    falls = [
        term
        for term in terms
        if term.expression != 0 and all(any(powers) for powers in growth_exponents(term.expression, [T, *steps]))
    ]
    stays = tuple(term.name for term in terms if term not in falls and term.expression != 0)
    if not falls:
        chosen = best_complexity([Term("", 1 / T)], form.hypotheses, T, steps, growing=fast).exponents
        return _geometric_rate(T, stays, chosen, geometric) if geometric else Rate(T, Fraction(0), stays, {})
    best = best_complexity(falls, form.hypotheses, T, steps, growing=fast)
    chosen = [Fraction(1), *best.exponents.values()]

    def power_of(row: Sequence[Fraction]) -> Fraction:
        return sum(map(mul, chosen, row), Fraction(0))

    dominant = tuple(
        term.name
        for term in falls
        if max(power_of(row) for row in growth_exponents(term.expression, [T, *steps])) == -best.rate
    )
    slow = [each for each in fast if any(power_of(row) == 0 for row in least_exponents(each, [T, *steps]))]
    logs = tuple(step.name for step in steps if any(each.has(step) for each in slow))
    joint = _participants(result, falls, dominant, form.hypotheses, T, steps, best.rate, fast)
    return Rate(T, best.rate, stays, best.exponents, dominant, joint, geometric, best.choices, logs)


def at_equal_steps(form: Form, steps: Sequence[sp.Symbol]) -> Form:
    """The form at the step sizes that its conditions say exactly, such as gamma == 1/L."""
    for condition in form.hypotheses:
        step, value = condition.limits, condition.extreme
        if condition.op == "==" and step is not None and step in steps and value is not None and not value.has(*steps):
            kept = [replace(c, left=c.left.subs(step, value), right=c.right.subs(step, value))
                    for c in form.conditions if c is not condition]  # fmt: skip
            terms = [replace(term, expression=term.expression.subs(step, value)) for term in form.terms]
            return at_equal_steps(replace(form, terms=tuple(terms), conditions=tuple(kept)), steps)
    return form


def _geometric_rate(
    T: sp.Symbol, stays: tuple[str, ...], steps: Mapping[str, Fraction], geometric: Mapping[str, sp.Expr]
) -> Rate:
    return Rate(T, inf, stays, steps, tuple(geometric), None, geometric)


@dataclass(frozen=True)
class _Geometric:
    """A factor exp(-decay), or one that is at most that."""

    factor: sp.Expr
    decay: sp.Expr


def _without_geometric(
    expression: sp.Expr, T: sp.Symbol, steps: Sequence[sp.Symbol], notation: Notation
) -> tuple[sp.Expr, list[_Geometric]]:
    """The summands of a term that do not fall geometrically in T, and the factors by which the others do."""
    summands, found = [], []
    for summand in sp.Add.make_args(expression):
        fast = [each for factor in sp.Mul.make_args(summand) if (each := _geometric(factor, T, steps, notation))]
        found += fast
        summands += [] if fast else [summand]
    return (sp.Add(*summands), found) if found else (expression, [])


def _geometric(factor: sp.Expr, T: sp.Symbol, steps: Sequence[sp.Symbol], notation: Notation) -> _Geometric | None:
    """A power with T in its exponent that falls at fixed step sizes; None if it is no such power."""
    base, power = factor.as_base_exp()
    if not power.has(T) or base.has(T):
        return None
    if base == sp.E:
        decay = -power
    elif isinstance(base, sp.Symbol) and base.name in notation and notation[base.name].domain.high <= 1:
        decay = power  # at fixed constants
    else:  # (1 - x)^T <= exp(-x T)
        less, more = all_positive(1 - base, sp.S.Zero)
        if more != 0:
            return None
        decay = power * less
    powers = least_exponents(decay, [T, *steps])
    return _Geometric(factor, decay) if all(first > 0 for first, *_ in powers) else None


SMALL = Fraction(1, 1000)  # the number of participants is taken as T to this power
MANY = 1e9


def _participants(
    result: Result,
    terms: Sequence[Term],
    dominant: Sequence[str],
    conditions: Iterable[Condition],
    T: sp.Symbol,
    steps: Sequence[sp.Symbol],
    rate: Fraction,
    growing: Sequence[sp.Expr] = (),
) -> Fraction | None:
    """The power of the number of participants by which the bound falls after many rounds; None if it cannot be told.

    Half of all clients participate, unless all do.
    """
    drawn, clients = (result.notation.resolve(name) for name in ("participating_clients", "clients"))
    many = drawn or clients
    if many is None:
        return None
    if not any(
        term.expression.has(*(q.symbol for q in (drawn, clients) if q)) for term in terms if term.name in dominant
    ):
        return None  # another constant may depend on it
    halves = {drawn.symbol: clients.symbol / 2} if drawn and clients else {}
    N = clients.symbol if drawn and clients else many.symbol
    try:
        moved = [Term(t.name, _at_power(t.expression.xreplace(halves), N, T)) for t in terms]
        kept = [
            replace(c, left=_at_power(c.left.xreplace(halves), N, T), right=_at_power(c.right.xreplace(halves), N, T))
            for c in conditions
        ]
        if not steps:
            powers = [exponent(term.expression, T) for term in moved]
            more = -max((power for power in powers if power is not None), default=Fraction(0))
        else:
            fast = [_at_power(each.xreplace(halves), N, T) for each in growing]
            more = best_complexity(moved, kept, T, steps, growing=fast).rate
    except FedboundsError:
        return None
    return (more - rate) / SMALL


def _at_power(expression: sp.Expr, N: sp.Symbol, T: sp.Symbol) -> sp.Expr:
    """The expression with a power of T for what depends on N, which is taken as T to a small power."""
    if not expression.has(N):
        return expression
    found = []
    for part in sp.Add.make_args(expression):
        rest, own = part.as_independent(N, as_Add=False)
        if own.free_symbols - {N}:
            raise FedboundsError(f"{own} depends on more than {N}")
        sizes = [float(own.xreplace({N: sp.Float(size)})) for size in (MANY, 4 * MANY)]
        if not all(size > 0 for size in sizes):
            raise FedboundsError(f"{own} may be negative")
        power = Fraction(log2(sizes[1] / sizes[0]) / 2).limit_denominator(12)
        found.append(rest * T ** sp.Rational(power * SMALL))
    return sp.Add(*found)


STEPS = (
    "local_step_size",
    "local_ascent_step_size",
    "server_multiplier",
    "server_step_size",
    "server_ascent_step_size",
    "effective_step",
    "effective_ascent_step",
)
