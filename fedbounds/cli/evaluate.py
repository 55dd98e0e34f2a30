"""fedbounds eval: a bound at given constants."""

from __future__ import annotations

import click

from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.evaluation.evaluate import evaluate_form
from fedbounds.bounds.evaluation.form_cache import as_compiled, cache_result
from fedbounds.bounds.search.other_forms import forms_that_hold
from fedbounds.cli import options


@click.command("eval")
@options.key_argument
@options.form_option
@options.constants_options
@options.assume_option
@options.trust_option
@options.json_option
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
    result = as_compiled(key)
    constants = options.read_constants(settings, source, bare)
    options.refuse_lists(result, constants)
    evaluation = evaluate_form(result.form(form), constants, assume=assume, trust=trust)
    others = forms_that_hold(evaluation, constants) if form is None else {}
    if as_json:
        options.emit("eval", {**evaluation.to_dict(), "holds_here": others})
    else:
        lines = str(evaluation).splitlines()
        if others:
            found = "; ".join(f"{name} <= {number(value)}" for name, value in others.items())
            place = next(i for i, line in enumerate(lines) if "valid: " in line)
            lines.insert(place + 1, f"  valid here (--form): {found}")
        click.echo("\n".join(lines))
    cache_result(key)
