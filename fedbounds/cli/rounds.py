"""fedbounds rounds: the number of rounds until a bound is at most epsilon, and its inverse."""

from __future__ import annotations

import math
from collections.abc import Mapping

import click

from fedbounds.bounds.display.plain_text import number, number_to, whole_to
from fedbounds.bounds.evaluation.compiled_form import CompiledResult
from fedbounds.bounds.evaluation.form_cache import as_compiled, cache_result
from fedbounds.bounds.inputs.value_grammar import parse_assignments
from fedbounds.bounds.search.other_forms import forms_that_reach
from fedbounds.bounds.search.rounds import Between, Largest, Never, Reached
from fedbounds.bounds.search.rounds import rounds as count_rounds
from fedbounds.cli import completion, options
from fedbounds.cli.options import Count


@click.command("rounds")
@options.key_argument
@click.option("--epsilon", required=True, metavar="E", help="The target for the left-hand side (often a squared norm).")
@click.option(
    "--solve",
    metavar="NAME",
    shell_complete=completion.names,
    help="Find the largest NAME that reaches epsilon in the given number of rounds.",
)
@options.optimize_option
@click.option("--dimension", type=Count(), metavar="D", help="The number of parameters, to count the bits sent.")
@options.within_option
@options.form_option
@options.constants_options
@options.assume_option
@options.effort_option
@options.json_option
def rounds(
    key: str,
    epsilon: str,
    solve: str | None,
    optimize: str,
    dimension: int | None,
    within: tuple[str, ...],
    form: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    assume: tuple[str, ...],
    effort: float,
    as_json: bool,
) -> None:
    """The number of rounds until the bound of KEY is at most epsilon, or why it never is.

    An answer is certified (confirmed in exact fractions or, with the extra audit, with rigorous error bounds) or
    searched. Whether it is a guarantee depends on the proof of the form and on the assumptions. A search that needs too
    many evaluations returns an interval for the answer; --effort continues it.

    Epsilon bounds the left-hand side: for a squared gradient norm, give the square of a tolerance for the norm.

    \b
    fedbounds rounds arbitrary-participation/corollary-3.2 --epsilon 1e-2 \\
        --set L=1 F=5 I=2 P=2 S=2 sigma=1 nu=2 beta=0.5 delta=0
    fedbounds rounds arbitrary-participation/corollary-3.2 --epsilon 1 --solve delta \\
        --set T=800 L=1 F=5 I=2 P=2 S=2 sigma=1 nu=2 beta=0.5
    """
    result = as_compiled(key)
    target = parse_assignments({"epsilon": epsilon})["epsilon"]
    optimized = options.constant_names(optimize) if optimize else []
    constants, functions = options.read_functions(result, optimized, settings, source, bare)
    options.refuse_lists(result, constants)
    with options.evaluations_bar() as watch:

        def ask(name: str | None, effort: float, assume: tuple[str, ...]) -> Reached | Never | Largest | Between:
            return count_rounds(
                key,
                target,  # pyright: ignore[reportArgumentType]  checked there: a vector is not a number
                constants,
                optimize=optimized,
                within=options.ranges(within) or None,
                functions=functions or None,
                form=name,
                dimension=dimension,
                solve=solve,
                effort=effort,
                watch=watch,
                assume=assume,
            )

        answer = ask(form, effort, assume)
        open_end = isinstance(answer, Never) or (isinstance(answer, Between) and not math.isfinite(answer.high))
        others = {}
        if form is None and solve is None and open_end:
            others = forms_that_reach(result.form(), lambda name: ask(name, effort / 4, ()))
    cache_result(key)
    if as_json:
        options.emit("rounds", {"key": key, "form": result.form(form).name, **answer.to_dict(), "another_form": others})
        return
    chosen = result.form(form)
    norm = chosen.measure.norm_text(answer.epsilon)
    head = f"{key} [{chosen.name}], epsilon = {number(answer.epsilon)}" + (f"   ({norm})" if norm else "")
    notes = options.caveats(chosen, constants)
    click.echo("\n".join([head, *notes]))
    if isinstance(answer, Between):
        if answer.at:
            at = ", ".join(f"{name} = {number(value)}" for name, value in answer.at.items())
            click.echo(f"  {answer.name} = {number_to('above', answer.high, 9)} reaches it, with {at}   (searched)")
        more = "; more with --effort" if (answer.low or 0) < 2**53 else ""
        click.echo(f"  {answer.words}{more}\n  {answer.why}")
        _show_other_forms(result, others)
        return
    label = "certified" if answer.proved else "searched"
    if isinstance(answer, Never):
        click.echo(f"  never: {answer.why}   ({label})")
        _show_other_forms(result, others)
    elif isinstance(answer, Largest):
        if answer.value is None:
            click.echo(f"  no {answer.name} reaches it: {answer.why}   ({label})")
        else:
            whole, endless = result.notation[answer.name].domain.integer, math.isinf(answer.value)
            side, value = ("above", answer.smallest) if endless else ("below", answer.value)
            if value is None:
                click.echo(f"  every {answer.name} that is large enough reaches it; smaller ones may not")
            else:
                name = f"{'smallest' if endless else 'largest'} {answer.name}"
                click.echo(f"  {name}: {(whole_to if whole else number_to)(side, value)}   ({label})")
            if endless and value is not None:
                click.echo(f"  every {answer.name} that is large enough reaches it, too")
    else:
        click.echo(f"  {answer.rounds} rounds   ({label}: {answer.method})")
        counted = {k.replace("_", " "): v for k, v in vars(answer.cost).items() if k != "rounds" and v is not None}
        if dimension is not None and answer.cost.floats is None:
            click.echo("  floats, bits: unknown, because the result does not specify how many clients send in a round")
        for name, value in counted.items():
            click.echo(f"  {name}: {value:.12g}")
        for name, value in answer.at.items():
            click.echo(f"  {name} = {number(value)}")
        if answer.evaluation is not None:
            refused = any("no guarantee" in line for line in notes)
            click.echo(f"  guarantee: {'no' if refused else options.guarantee_line(answer.evaluation, '--assume all')}")


def _show_other_forms(result: CompiledResult, forms: Mapping[str, int]) -> None:
    """Print the other forms that reach the target, with their rounds."""
    counter = next((q.name for q in result.notation.values() if q.concept == "rounds"), "rounds")
    for name, count in forms.items():
        click.echo(f"  another form reaches it: {name}, {counter} = {count}")
