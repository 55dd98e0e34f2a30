"""The claim that a form's terms, conditions and step sizes have their units, and the expressions that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.theory.symbols import Dimension


@dataclass(frozen=True, eq=False)
class Units:
    """That a form is consistent in its units."""

    subject: ResultForm


@dataclass(frozen=True)
class UnitPart:
    """One expression of a form with the unit it must have; None: that of the other side of the condition."""

    where: str
    expression: sp.Expr
    wanted: Dimension | None
    other: sp.Expr = sp.S.One
    repairable: bool = False  # a term inside an O, where hidden constants may supply the unit


def units_claim(subject: ResultForm) -> Claim:
    """The claim that a form's terms, conditions and step sizes are consistent in their units."""
    form, notation = subject.form, subject.result.notation
    expressions = [e for part in parts(subject) for e in (part.expression, part.other)]
    symbols = sorted({str(s) for e in expressions for s in e.free_symbols} | {str(s) for s in form.hidden})
    declared = [f"[{name}] = {notation[name].dimension}" for name in symbols]
    return Claim(
        id=f"{subject.id}/units",
        kind="units",
        text=f"every term, condition and step size of {subject.id} has its unit",
        subject=Units(subject),
        content="\n".join([subject.content, *declared, f"hidden: {form.hidden}"]),
        source=str(subject.result.source),
    )


def parts(subject: ResultForm) -> Iterator[UnitPart]:
    """Everything in a form that has a unit."""
    result, form = subject.result, subject.form
    measure = (form.measure or result.measure).dimension
    for term in form.terms:
        yield UnitPart(f"term {term.name!r}", term.expression, measure, repairable=form.order_only)
    for c in form.conditions:
        yield UnitPart(f"condition {c.text}", c.left, None, c.right)
    for name, value in form.prescribes.items():
        quantity = result.notation.resolve(name)
        yield UnitPart(f"{name} = {value}", value, None if quantity is None else quantity.dimension)
