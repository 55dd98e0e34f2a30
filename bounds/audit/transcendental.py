r"""Powers with a symbolic exponent and logarithms as symbols, so that what is left is rational.

$(1-p)^{2K}$ and $(1-p)^{K-1}$ become $u^2(1-p)^2$ and $u$ with $u=(1-p)^{K-1}$ and $0\le u\le1$; $\log T$ becomes a
symbol that is nonnegative, because $T\ge1$. Nothing else is known of them, so what is shown holds all the more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Combine
from fedbounds.bounds.theory.client_reductions import OverClients

DIGITS = 15  # of the rational enclosure of the logarithm of a number


def algebraic_form(expressions: Sequence[sp.Expr], facts: Relations) -> tuple[list[sp.Expr], list[Relation]]:
    r"""The expressions in symbols for their powers, logarithms and roots of sums, and what is known of these symbols.

    Example:
        >>> p, K = sp.Symbol("p", positive=True), sp.Symbol("K", positive=True, integer=True)
        >>> found, known = algebraic_form([(1 - p) ** (2 * K) - (1 - p) ** (K - 1)], [Relation(p, sp.S.One)])
        >>> found
        [(1 - p)^(K - 1)**2*(1 - p)**2 - (1 - p)^(K - 1)]
        >>> [str(fact) for fact in known]
        ['(1 - p)^(K - 1) <= 1']
    """
    whole = {a for x in expressions for a in x.atoms(sp.Sum, OverClients)}
    opaque = {a: sp.Symbol(f"[{a}]", real=True, nonnegative=a.is_nonnegative) for a in whole}
    found = [x.xreplace(opaque) for x in expressions]
    symbols: dict[tuple[sp.Expr, sp.Expr], sp.Expr] = {}
    known: list[Relation] = []
    powers = {e for x in found for e in x.atoms(sp.Pow)}
    symbolic = {e for e in powers if not e.exp.is_number}
    shifts = _shifts(symbolic)
    for (base, part), shift in sorted(shifts.items(), key=str):
        symbol = sp.Symbol(f"({base})^({part + shift})", nonnegative=True)
        symbols[base, part] = symbol
        known += _size_of_power(symbol, base, part + shift, facts)
    values = {e: _in_symbols(e, shifts, symbols) for e in symbolic}
    for base in sorted({e.base for e in powers if _is_root(e)}, key=str):
        root = sp.Symbol(f"sqrt({base})", nonnegative=True, positive=base.is_positive)
        known.append(Relation(root**2, base, "=="))
        values |= {e: root ** (2 * e.exp) for e in powers if e.base == base and _is_root(e)}
    logs = _logarithms(found, facts)
    for small in logs:
        for large in logs:
            if small != large and prove(large.args[0] - small.args[0], facts).holds:
                known.append(Relation(logs[small], logs[large]))
        if small.args[0].is_number:
            value, margin = sp.Rational(str(sp.N(small, DIGITS))), sp.Rational(1, 10 ** (DIGITS - 3))
            known += [Relation(logs[small], value + margin), Relation(value - margin, logs[small])]
    return [x.xreplace(values | logs) for x in found], known


def _is_root(power: sp.Pow) -> bool:
    """Whether it is an odd power of the square root of a sum."""
    return (
        isinstance(power.exp, sp.Rational)
        and power.exp.q == 2
        and power.base.is_Add
        and power.base.is_number is not True
    )


def _logarithms(expressions: Sequence[sp.Expr], facts: Relations) -> dict[sp.log, sp.Symbol]:
    found = sorted({e for x in expressions for e in x.atoms(sp.log)}, key=str)
    return {e: sp.Symbol(str(e), real=True, nonnegative=prove(e.args[0] - 1, facts).holds or None) for e in found}


def _shifts(powers: set[sp.Pow]) -> dict[tuple[sp.Expr, sp.Expr], int]:
    """For each base and each symbolic part of its exponents the smallest whole number added to it."""
    found: dict[tuple[sp.Expr, sp.Expr], int] = {}
    for power in powers:
        parts, constant = _exponent(power)
        for part, times in parts.items():
            least = min(int(sp.floor(constant / times)), 0) if len(parts) == 1 and times > 0 else 0
            found[power.base, part] = min(found.get((power.base, part), 0), least)
    return found


def _exponent(power: sp.Pow) -> tuple[dict[sp.Expr, int], int]:
    """The symbolic parts with their whole multiples, and the constant."""
    constant, parts = sp.S.Zero, {}
    for term in sp.Add.make_args(sp.expand(power.exp)):
        times, part = term.as_coeff_Mul()
        if not times.is_Integer:
            raise sp.PolynomialError(f"the exponent {power.exp} is not whole")
        if part == 1:
            constant = times
        else:
            parts[part] = int(times)
    return parts, int(constant)


def _in_symbols(
    power: sp.Pow, shifts: dict[tuple[sp.Expr, sp.Expr], int], symbols: dict[tuple[sp.Expr, sp.Expr], sp.Expr]
) -> sp.Expr:
    parts, constant = _exponent(power)
    value = sp.S.One
    for part, times in parts.items():
        value *= symbols[power.base, part] ** times
        constant -= times * shifts[power.base, part]
    return value * power.base**constant


def _size_of_power(symbol: sp.Expr, base: sp.Expr, exponent: sp.Expr, facts: Relations) -> list[Relation]:
    if not (prove(base, facts).holds and prove(1 - base, facts).holds and prove(exponent, facts).holds):
        return []
    return [Relation(symbol, base if prove(exponent - 1, facts).holds else sp.S.One)]


@dataclass(frozen=True)
class Opened(Combine):
    """A combination of premises in which powers with a symbolic exponent and logarithms occur."""

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Combine, in symbols."""
        relations = (conclusion, *premises)
        sides = [side * sp.S.One for r in relations for side in (r.left, r.right)]
        try:
            found, known = algebraic_form([*sides, *(m * sp.S.One for m in self.multipliers)], facts)
        except sp.PolynomialError as reason:
            return ProofFinding(False, "combination", str(reason))
        pairs = zip(found[: len(sides) : 2], found[1 : len(sides) : 2], strict=True)
        mine, *theirs = (replace(r, left=a, right=b) for r, (a, b) in zip(relations, pairs, strict=True))
        rule = Combine(tuple(found[len(sides) :]))
        return rule.check(mine, theirs, [*facts, *known], setting)
