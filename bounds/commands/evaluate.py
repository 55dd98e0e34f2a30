"""fedbounds eval: what a result promises for chosen constants."""

from __future__ import annotations

import math

import click

from bounds.alternatives import holding
from bounds.commands.options import (
    assume_option,
    constants_options,
    emit,
    form_option,
    json_option,
    key_argument,
    number,
    read_constants,
    refuse_lists,
    trust_option,
)
from bounds.evaluation import Evaluation
from bounds.evaluation import evaluate as evaluate_result
from bounds.registry import load


@click.command("eval")
@key_argument
@form_option
@constants_options
@assume_option
@trust_option
@json_option
def evaluate(
    key: str,
    form: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    assume: tuple[str, ...],
    trust: tuple[str, ...],
    as_json: bool,
) -> None:
    """Evaluate the result KEY: value, terms, conditions, and whether it is a guarantee.

    \b
    fedbounds eval arbitrary-participation/theorem-3.1 --form explicit \\
        --set L=1 F=5 I=2 P=2 T=8 gamma=1/48 eta=6 rho=0.7072 sigma=0.5 nu=2 beta=0.5 delta=0
    """
    result = load(key)
    constants = read_constants(settings, source, bare)
    refuse_lists(result, constants)
    evaluation = evaluate_result(result, constants, form=form, assume=assume, trust=trust)
    instead = holding(evaluation, constants) if form is None else {}
    if as_json:
        emit("eval", {**evaluation.to_dict(), "holds_here": instead})
    else:
        click.echo(describe(evaluation))
        if instead:
            click.echo("\nholds here: " + "; ".join(f"{name}, {number(value)}" for name, value in instead.items()))


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
    if len(legal) < len(evaluation.conditions):
        lines += ["", "conditions"]
        for c in (c for c in evaluation.conditions if not c.condition.legal):
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
