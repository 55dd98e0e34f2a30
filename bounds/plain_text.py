"""Numbers and evaluations as text for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbounds.bounds.evaluation import Evaluation


def number(value: Any) -> str:
    """A number for people: six digits, integers whole, vectors shortened.

    Example:
        >>> number(0.020833333), number(30.0), number([1.0, 2.5])
        ('0.0208333', '30', '1, 2.5')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return ", ".join(number(v) for v in value[:8]) + (f", ... ({len(value)} values)" if len(value) > 8 else "")
    return f"{value:.6g}"


def describe(evaluation: Evaluation) -> str:
    """The evaluation as text for people."""
    result, form = evaluation.result, evaluation.form
    value = float(evaluation.value)
    bound = "no value" if math.isnan(value) else f"{'~' if form.order_only else '<='} {number(value)}"
    lines = [
        f"{result.key} [{form.name}]   {result.source}",
        str(form.measure or result.measure),
        f"  {bound}"
        f"     valid: {'yes' if evaluation.valid else 'no'}"
        f"     guarantee: {evaluation.promise}     verdict: {evaluation.verdict}",
        "",
        "terms",
    ]
    if form.generous:
        lines.insert(3, f"  {form.generous}")
    width = max(len(name) for name in evaluation.terms)
    for name, term in evaluation.terms.items():
        share = float(evaluation.shares[name])
        part = f"{share:>6.1%}  {'#' * round(24 * share)}" if share == share else f"{'-':>6}"
        lines.append(f"  {name:<{width}}  {number(float(term)):>12}  {part}".rstrip())
    if any(float(term) < 0 for term in evaluation.terms.values()):
        lines.append("  (shares of the sum of their sizes, as a term is negative)")
    elif not math.isfinite(value) and not all(c.holds for c in evaluation.conditions):
        lines.append("  (beyond its conditions this form says nothing)")
    legal = [c for c in evaluation.conditions if c.condition.legal]
    if own := [c for c in evaluation.conditions if not c.condition.legal]:
        lines += ["", "conditions"]
        for c in own:
            limit = f"   {c.limits} at its limit: {number(float(c.admissible))}" if c.admissible is not None else ""
            lines.append(
                f"  {'holds' if c.holds else 'FAILS'}  {c.text}   ({number(float(c.left))} against "
                f"{number(float(c.right))}){limit}"
            )
    lines += ["", "legal constants"] if legal else []
    lines += [f"  {'holds' if c.holds else 'FAILS'}  {c.why}" for c in legal]
    lines += ["", "constants"]
    for name, constant in evaluation.constants.items():
        idle = ", not used by this form" if name in evaluation.unused else ""
        lines.append(f"  {name} = {number(constant.value)}   {constant.source}{note(constant.note)}{idle}")
    for name, step in evaluation.prescribed.items():
        lines.append(f"  {name} = {number(float(step))}   prescribed by the result")
    if evaluation.why_not:
        lines += ["", "not a guarantee, because"]
        lines += [f"  - {reason}" for reason in evaluation.why_not]
        if any(status == "not checked" for status in evaluation.assumptions.values()):
            lines.append("  (--assume all takes the assumptions for granted; `fedbounds show` lists them)")
    return "\n".join(lines)


def note(text: str) -> str:
    """A remark in parentheses, or nothing."""
    return f" ({text})" if text else ""
