"""fedbounds optimize: the best step sizes of a bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import click

from fedbounds.bounds.display.plain_text import both_sides, number, number_to
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.search.optimize import Infeasible, Minimum, Undecided
from fedbounds.bounds.search.optimize import optimize as optimize_result
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.cli import options

ASSUME_HINT = "fedbounds eval --assume all at these constants"


@click.command("optimize")
@options.key_argument
@options.over_option
@options.within_option
@options.form_option
@options.constants_options
@options.effort_option
@options.json_option
def optimize(
    key: str,
    over: str,
    within: tuple[str, ...],
    form: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    effort: float,
    as_json: bool,
) -> None:
    """Find the best step sizes of the result KEY under its conditions.

    The answer is one of: the minimizer with its active conditions; the infimum and its direction, where it is not
    attained; infeasible, with the reason.

    To optimize over the interval P, give the window divergence as a function of it, e.g. delta='sqrt(9/P)'.

    \b
    fedbounds optimize arbitrary-participation/theorem-3.1 --over gamma,eta --within eta=1:100 \\
        --set L=1 F=5 I=2 P=2 T=800 rho=0.7 sigma=1 nu=2 beta=0.5 delta=0
    """
    result = load(key)
    names = options.constant_names(over)
    constants, functions = options.read_functions(result, names, settings, source, bare)
    options.refuse_lists(result, constants)
    with options.evaluations_bar() as watch:
        answer = optimize_result(
            result,
            constants,
            names,
            within=options.ranges(within),
            form=form,
            functions=functions,
            effort=effort,
            watch=watch,
        )
    if as_json:
        options.emit("optimize", {"key": key, "form": result.form(form).name, **answer.to_dict()})
    elif isinstance(answer, Minimum):
        chosen = result.form(form)
        norm = (chosen.measure or result.measure).norm_text(answer.value)
        click.echo("\n".join([f"{key} [{chosen.name}]", *options.caveats(compiled_form(result, chosen), constants)]))
        click.echo(
            f"  <= {number(answer.value)} at "
            + ", ".join(f"{n} = {v}" for n, v in round_for_copying(answer, constants))
        )
        if norm:
            click.echo(f"  {norm}")
        click.echo(f"  active: {'; '.join(answer.active) or 'nothing'}")
        click.echo(f"  largest term: {answer.evaluation.dominant}   ({answer.method})")
        if answer.note:
            click.echo(f"  {answer.note}")
        click.echo(f"  guarantee: {options.guarantee_line(answer.evaluation, ASSUME_HINT)}")
    elif isinstance(answer, Infeasible | Undecided):
        click.echo(f"{key} [{result.form(form).name}]\n  {answer.status}: {answer.why}")
    else:
        click.echo(f"{key} [{result.form(form).name}]")
        click.echo(f"  infimum {number(answer.infimum)}, not attained: {answer.direction}")
        if answer.at:
            click.echo("  at " + ", ".join(f"{n} = {number(v)}" for n, v in answer.at.items()))
        for name, limit in answer.terms.items():
            click.echo(f"    {name} tends to {number(limit)}")
        if answer.advice:
            click.echo(f"  {answer.advice}")
        for reason in _infeasible_constants(result, result.form(form), constants, names):
            click.echo(f"  guarantee: no: {reason}")


def _infeasible_constants(
    result: Result, form: Form, constants: Mapping[str, Any], names: Sequence[str]
) -> Iterable[str]:
    """The relations between given constants that no problem satisfies."""
    own, declared = {result.notation.resolve(name) for name in names}, feasible_set(result, form)
    with suppress(FedboundsError):  # a constant that is a function of another has no value
        found = evaluate(result, {**constants, **dict.fromkeys(names, 1.0)}, form=form.name, strict=False)
        for relation, c in zip(declared.relations if declared else (), found.feasible, strict=False):
            symbols = {str(symbol) for symbol in relation.left.free_symbols | relation.right.free_symbols}
            if not c.holds and not symbols & {q.name for q in own if q is not None}:
                sides = both_sides(float(c.left), float(c.right))
                yield f"no problem has these constants: {c.text} ({c.why}), got {sides}"


def round_for_copying(answer: Minimum, constants: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The minimizer in six digits, rounded so that the conditions still hold."""
    nearest = {name: number(value) for name, value in answer.at.items()}
    evaluation = answer.evaluation
    with suppress(FedboundsError):  # as above
        for sides in product(("", "below", "above"), repeat=len(nearest)):
            rounded = zip(sides, answer.at.items(), strict=True)
            shown = {name: number_to(side, value) if side else nearest[name] for side, (name, value) in rounded}
            given = {**constants, **{name: float(text) for name, text in shown.items()}}
            if evaluate(evaluation.result, given, form=evaluation.form.name).valid:
                return shown.items()
    return nearest.items()
