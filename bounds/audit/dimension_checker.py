"""The dimension checker: units and scaling of every term, condition and prescribed step size.

Two independent methods: the units of all expressions are computed from those of their symbols, and the expressions are
evaluated again in other units of the objective (f -> a f) or of the parameters (x -> b x).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.gauges import broken_gauge
from fedbounds.bounds.audit.unit_claims import UnitPart, Units, parts
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.theory.dimensions import DimensionMismatch, dimension_of
from fedbounds.bounds.theory.symbols import NONE, Dimension, Notation

POWERS = (1, -1, 2, -2, sp.S.Half, -sp.S.Half)  # of a relation that says the same
UNITS_AXIOM = "the symbols have their declared units"


@dataclass(frozen=True)
class Fault:
    """What is wrong with one part, and the factor to blame (for a condition the ratio of its sides)."""

    where: str
    says: str
    factor: sp.Expr

    def __str__(self) -> str:
        return f"{self.where}: {self.says}"


@lru_cache(maxsize=256)
def faults(subject: ResultForm) -> tuple[Fault, ...]:
    """What exponent arithmetic finds; nothing if every unit is right."""
    return tuple(_faults(subject))


def _faults(subject: ResultForm) -> Iterator[Fault]:
    notation, hidden = subject.result.notation, subject.form.hidden
    for part in parts(subject):
        try:
            unit = dimension_of(part.expression, notation)
            wanted = part.wanted if part.wanted is not None else dimension_of(part.other, notation)
        except DimensionMismatch as mismatch:
            yield Fault(part.where, str(mismatch), mismatch.factor)
            continue
        if unit is None or wanted is None or unit == wanted:
            continue
        if part.repairable and repair(unit, wanted, hidden, notation) is not None:
            continue
        without = f", and no monomial in {', '.join(map(str, hidden))} repairs it" if part.repairable and hidden else ""
        if part.wanted is None:
            yield Fault(part.where, f"compares {unit} with {wanted}", part.expression / part.other)
        else:
            yield Fault(part.where, f"has unit {unit}, not {wanted}{without}", part.expression)


def repair(
    unit: Dimension, wanted: Dimension, hidden: Sequence[sp.Symbol], notation: Notation
) -> dict[sp.Symbol, Fraction] | None:
    """The powers of the hidden constants whose product turns one unit into the other; None if there are none.

    Example:
        >>> from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
        >>> from fedbounds.bounds.theory.symbols import GRADIENT
        >>> {str(s): str(p) for s, p in repair(GRADIENT, GRADIENT**2, (n.L, n.F), n).items()}
        {'L': '1/2', 'F': '1/2'}
        >>> repair(GRADIENT, GRADIENT**3, (n.F,), n) is None
        True
    """
    units = [dict(notation[symbol.name].dimension.exponents) for symbol in hidden]
    missing = dict((wanted / unit).exponents)
    free = sorted({name for exponents in (*units, missing) for name in exponents})
    rows = [[exponents.get(name, 0) for exponents in (*units, missing)] for name in free]
    reduced, pivots = sp.Matrix(len(free), len(hidden) + 1, [sp.Rational(p) for row in rows for p in row]).rref()
    if len(hidden) in pivots:  # a row 0 = 1
        return None
    return {hidden[column]: Fraction(str(reduced[row, len(hidden)])) for row, column in enumerate(pivots)}


def gauge_faults(subject: ResultForm) -> Iterator[Fault]:
    """What the scaling gauges find: expressions that do not grow by the right power of a (or b)."""
    notation = subject.result.notation
    for part in parts(subject):
        ratio = part.expression / part.other * (_missing_monomial(part, subject) if part.repairable else sp.S.One)
        says = broken_gauge(ratio, part.wanted or NONE, notation)
        if says:
            yield Fault(part.where, says, ratio)


def _missing_monomial(part: UnitPart, subject: ResultForm) -> sp.Expr:
    """The monomial in hidden constants that gives a term inside an O its unit; 1 if there is none."""
    notation = subject.result.notation
    try:
        unit = dimension_of(part.expression, notation)
    except DimensionMismatch:
        return sp.S.One
    powers = None if unit is None or part.wanted is None else repair(unit, part.wanted, subject.form.hidden, notation)
    return sp.Mul(*(s ** sp.Rational(p) for s, p in (powers or {}).items()))


def precedent(fault: Fault, subject: ResultForm, claim_set: ClaimSet) -> str:
    """The form of an earlier result that has this fault already, with this form's interval; empty if none."""
    given = {subject.result.notation[name].symbol: value for name, value in subject.form.prescribes.items()}
    for claim in claim_set.claims.values():
        if not isinstance(claim.subject, Units):
            continue
        earlier = claim.subject.subject
        if earlier.result is subject.result:
            return ""
        for other in faults(earlier):
            factor = other.factor.xreplace(given)
            if any(sp.Mul(sp.Pow(factor, power), 1 / fault.factor).is_number for power in POWERS):
                return earlier.id.partition("/")[2]
    return ""


def verify(claim: Claim, claim_set: ClaimSet) -> Verdict:
    """Proved where both methods find every unit right, refuted where both find a fault, unknown where they disagree."""
    assert isinstance(claim.subject, Units)
    subject = claim.subject.subject
    wrong, uneven = faults(subject), list(gauge_faults(subject))
    method = "exponent arithmetic and two scaling gauges"
    if not wrong and not uneven:
        count = len(list(parts(subject)))
        hidden = f", with hidden {', '.join(map(str, subject.form.hidden))}" if subject.form.hidden else ""
        return Verdict("proved", "units", method, f"{count} expressions{hidden}", (UNITS_AXIOM,))
    if {f.where for f in wrong} != {f.where for f in uneven}:
        said = "; ".join(map(str, (*wrong, *uneven)))
        return Verdict("unknown", "units", method, f"the two methods disagree: {said}")
    found = []
    for fault in wrong:
        source = precedent(fault, subject, claim_set)
        found.append(f"{fault}{f' (follows from {source})' if source else ''}")
    return Verdict("refuted", "units", method, "; ".join([*found, f"gauge: {uneven[0].says}"]))


CHECKER = Checker("units", lambda claim, claim_set: isinstance(claim.subject, Units), verify)
