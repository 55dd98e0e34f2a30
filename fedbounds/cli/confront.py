"""fedbounds confront: the runs of a sweep, or a log, compared with a result."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fedbounds.bounds.display.json_values import attributes
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.bounds.inputs.value_grammar import parse_assignments
from fedbounds.bounds.theory.registry import load
from fedbounds.cli import options
from fedbounds.cli.options import Count, Drawing, OutputPath, PathArgument

if TYPE_CHECKING:
    from fedbounds.bounds.theory.result import Result
    from fedbounds.empirical.comparison.compare_run import RunComparison

OF_LOG = (
    "algorithm",
    "participation",
    "clients",
    "normalize",
    "log_format",
    "columns",
    "first_round",
    "f_min",
    "client_weights",
)
WORDS = {"true": True, "false": False}
# arguments of `read_log`, as its messages name them
ARGUMENTS = {
    "participation": "--participation",
    "clients": "--clients",
    "normalize": "--normalize",
    "format": "--format",
    "columns": "--column",
    "first_round": "--first-round",
    "f_min": "--f-min",
    "round_length": "--participation recorded,file=FILE,round_length=",
    "start": "--participation recorded,file=FILE,start=",
    "client_weights": "--client-weights",
}


@click.command("confront")
@click.argument("spec", metavar="[SPEC.toml]", type=PathArgument())
@click.argument("key", metavar="KEY", required=False, shell_complete=options.complete_late("keys"))
@options.form_option
@options.constants_options
@click.option("--interval", metavar="P", type=Count(), help="P of the analysis, if the algorithm has no interval.")
@options.assume_option
@options.trust_option
@click.option(
    "--out",
    metavar="F",
    type=OutputPath(),
    help="The figure (.png, .pdf, .svg); its data beside it. Required with SPEC.toml.",
)
@click.option("--shaded", is_flag=True, help="Draw the terms as stacked areas in place of lines.")
@options.figure_options
@options.force_option
@options.results_option
@options.workers_option
@options.device_option
@options.allow_import_option
@options.json_option
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="FILE",
    type=PathArgument(),
    help="A log of a run made elsewhere, or a folder of TensorBoard, instead of SPEC.toml; several are one seed each.",
)
@click.option(
    "--algorithm",
    metavar="KIND,NAME=VALUE,...",
    help="The algorithm of the log, e.g. fedavg,local_step_size=0.1,local_steps=5. Required with --log.",
)
@click.option(
    "--participation",
    metavar="full|FILE|KIND,...",
    help="Who took part in the rounds of the log: full, a CSV or JSON file of a record, or a process, e.g. "
    "without-replacement,clients=10,participants=2 or recorded,file=F,round_length=60.",
)
@click.option("--clients", metavar="N", type=Count(), help="The number of clients, with --participation full.")
@click.option("--normalize", is_flag=True, help="Divide the weights of each round by their sum, as of 0 and 1.")
@click.option("--format", "log_format", metavar="NAME", help="The format of the log, where it is not recognized.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="A column of the log, e.g. --column round=Step --column train_loss=Train/Loss. May be repeated; the same "
    "name again is another run.",
)
@click.option(
    "--first-round",
    metavar="R",
    type=Count(0),
    default=0,
    show_default=True,
    help="The round of the log that becomes round 0.",
)
@click.option("--f-min", metavar="X", type=float, help="The least value of f, for results that bound f(x_T) - f*.")
@click.option(
    "--client-weights",
    metavar="P1,P2,...|@FILE",
    callback=lambda context, parameter, text: text and parse_assignments({"client_weights": text})["client_weights"],
    help="The weights of the clients in f, such as their numbers of samples; 1/N each without.",
)
@click.pass_context
def confront(
    context: click.Context,
    spec: str,
    key: str | None,
    form: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    interval: int | None,
    assume: tuple[str, ...],
    trust: tuple[str, ...],
    out: str | None,
    shaded: bool,
    drawing: Drawing,
    force: bool,
    results: str,
    workers: int,
    device: str | None,
    as_json: bool,
    logs: tuple[str, ...],
    **of_log: Any,
) -> int:
    """Compare the runs of SPEC.toml, or the run of a log, with the result KEY: the measured quantity and its bound.

    Missing runs are made first, and record models, participation and gradient norms. A constant that the problem does
    not give, as for a network, is measured along the runs; the bound is then not a guarantee. Exits with 1 if a bound
    is crossed where its conditions hold.

    \b
    fedbounds confront examples/fedau.toml fedau/theorem-2 --workers 2 --out fedau.png
    fedbounds confront KEY --log history.json --algorithm fedavg,local_step_size=0.1,local_steps=5 \\
        --participation full --clients 10 L=1
    """
    if logs:  # there is no SPEC.toml: KEY comes first
        bare = (*([] if key is None else [key]), *bare)
        key = spec
    missing = "key" if key is None else "out" if not logs and out is None else None
    if missing:
        parameter = next(each for each in context.command.params if each.name == missing)
        raise click.MissingParameter(ctx=context, param=parameter)
    assert key is not None
    key, form = options.key_and_form(key, form)
    result = load(key)
    drawing.check()
    given = options.read_constants(settings, source, bare)
    claims: dict[str, Any] = {"interval": interval, "given": given, "assume": assume, "trust": trust}
    if logs:
        return _confront_log(logs, result, form, out, force, as_json, claims, shaded=shaded, drawing=drawing, **of_log)
    _refuse_log_options(context)
    assert out is not None
    from fedbounds.empirical.comparison.compare_sweep import confront_sweep
    from fedbounds.empirical.sweep import read_sweep
    from fedbounds.empirical.sweep.executor import runs_bar
    from fedbounds.figures.charts.overlay import overlay_sweep
    from fedbounds.figures.charts.picture import figure_outputs

    sweep = read_sweep(spec)
    check_outputs(figure_outputs(out), force, runs=Path(results) / sweep.name)
    with runs_bar(sweep.name) as progress:
        found = confront_sweep(
            sweep, result, form, results=results, workers=workers, device=device, progress=progress, **claims
        )
    with drawing.style():
        written = overlay_sweep(found, sweep.name, shaded=shaded, spec=spec).save(out, force=force)
    compared = [
        {
            "label": setting.label,
            "labels": setting.task["labels"],
            "seeds": setting.seeds,
            "keys": [run.key for run in setting.runs],
            **to_dict(c),
        }
        for setting, c in found.items()
    ]
    document = {"spec": spec, "result": result.key, "form": result.form(form).name, "settings": compared}
    labelled = [(setting.label, c) for setting, c in found.items()]
    options.print_answer(as_json, "confront", document, lambda: describe(labelled), written)
    return _status(found.values())


def _confront_log(
    logs: Sequence[str],
    result: Result,
    form: str | None,
    out: str | None,
    force: bool,
    as_json: bool,
    claims: Mapping[str, Any],
    *,
    shaded: bool,
    drawing: Drawing,
    algorithm: str | None,
    log_format: str | None,
    columns: Sequence[str],
    normalize: bool,
    participation: str | None,
    **reading: Any,
) -> int:
    """Compare the run of a log, or of several."""
    if algorithm is None:
        raise FedboundsError(
            "--log needs the algorithm of the run: give --algorithm, e.g. fedavg,local_step_size=0.1,local_steps=5"
        )
    from fedbounds.empirical.comparison.compare_run import confront as compare
    from fedbounds.empirical.comparison.read_log import read_log
    from fedbounds.empirical.participation.spec import PARTICIPATION
    from fedbounds.figures.charts.overlay import overlay
    from fedbounds.figures.charts.picture import figure_outputs

    spec = _spec("--algorithm", algorithm)
    who: Any = participation
    if (
        participation is not None
        and "," in participation
        and participation.partition(",")[0] in PARTICIPATION.builders()
    ):
        who = PARTICIPATION.build(_spec("--participation", participation))
    try:
        trace = read_log(
            logs[0] if len(logs) == 1 else logs,
            spec,
            who,
            format=log_format,
            columns=_columns(columns) or None,
            normalize=normalize or None,
            **reading,
        )
    except FedboundsError as error:
        raise FedboundsError(_with_options(str(error))) from None
    if out is not None:
        check_outputs(figure_outputs(out), force)
    c = compare(trace, result, form, **claims)
    with drawing.style():
        written = [] if out is None else overlay(c, shaded=shaded).save(out, force=force)
    label = ", ".join(logs)
    setting = {"label": label, "labels": {}, "seeds": trace.seed.tolist(), "keys": [], **to_dict(c)}
    document = {"log": label, "result": result.key, "form": c.form.name, "settings": [setting]}
    options.print_answer(as_json, "confront", document, lambda: describe([(label, c)]), written)
    return _status([c])


def _with_options(message: str) -> str:
    """A message of `read_log` with options in place of its arguments.

    Example:
        >>> _with_options("give columns={'round': 'Step', 'train_loss': 'my loss'} or first_round=1")
        "give --column round=Step --column 'train_loss=my loss' or --first-round 1"
    """

    def listed(found: re.Match[str]) -> str:
        pairs = re.findall(r"'([^']*)': (?:'([^']*)'|(\.\.\.))", found[1])
        return " ".join(f"--column {shlex.quote(f'{ours}={theirs}{dots}')}" for ours, theirs, dots in pairs)

    def option(found: re.Match[str]) -> str:
        return f"{ARGUMENTS[found[1]]} {found[2]}".rstrip()

    message = re.sub(r"\bcolumns=\{([^}]*)\}", listed, message)
    return re.sub(rf"\b({'|'.join(ARGUMENTS)})=(?:True\b)?'?(\w*)'?", option, message)


def _status(found: Iterable[RunComparison]) -> int:
    """1 if a bound is crossed where its conditions hold."""
    return 1 if any(c.covered_crossings.size for c in found) else 0


def _spec(option: str, text: str) -> dict[str, Any]:
    """The specification `KIND,NAME=VALUE,...` of an option; values that are no numbers are text, yes or no."""
    kind, *texts = text.split(",")
    found: dict[str, Any] = {"kind": kind.strip()}
    for part in texts:
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name or not value:
            raise FedboundsError(f"{option}: {part!r} is not NAME=VALUE, e.g. local_steps=5")
        try:
            found[name] = WORDS[value] if value in WORDS else float(parse_assignments({name: value})[name])
        except FedboundsError:
            found[name] = value
    return found


def _columns(texts: Sequence[str]) -> dict[str, str | list[str]]:
    """The columns of `--column NAME=COLUMN`; a name that comes again has one column for each run."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not equals or not name or not column:
            raise FedboundsError(f"--column {text!r} is not NAME=COLUMN, e.g. round=Step")
        found.setdefault(name.strip(), []).append(column)
    return {name: listed[0] if len(listed) == 1 else listed for name, listed in found.items()}


def _refuse_log_options(context: click.Context) -> None:
    """Refuse options that are about a log where there is none."""
    given = click.core.ParameterSource.COMMANDLINE
    for parameter in context.command.params:
        if parameter.name in OF_LOG and context.get_parameter_source(parameter.name) is given:
            raise FedboundsError(f"{parameter.opts[0]} is about a log: give --log FILE, and no SPEC.toml")


def describe(found: Sequence[tuple[str, RunComparison]]) -> str:
    """A table of the settings at the largest T; then the constants of each, and why it is not a guarantee."""
    first = found[0][1]
    lines = [["", first.symbol, "measured", "bound", "measured/bound", "valid", "guarantee", "crossings"]]
    for label, c in found:
        error = "" if c.standard_error is None else f" +- {number(float(c.standard_error[-1]))}"
        lines.append(
            [
                label,
                str(int(c.rounds[-1])),
                f"{number(float(c.measured[-1]))}{error}",
                number(float(c.bound[-1])),
                f"{float(c.ratio[-1]):.3g}",
                "yes" if c.valid[-1] else "no",
                c.evaluation.guarantee_text.partition(",")[0],
                f"{len(c.crossings)} of {len(c.rounds)} T" if c.crossings.size else "none",
            ]
        )
    text = [
        f"{first.result.key} [{first.form.name}]   {first.result.source}",
        str(first.measure),
        "",
        *options.align_columns(lines),
    ]
    for label, c in found:
        text += ["", f"{label}: {c.label}"]
        if c.evaluation.conditional_on:
            text.append(f"  conditional on {c.evaluation.conditional_on}")
        text += [f"  no guarantee: {'; '.join(c.why_not)}"] if c.why_not else []
        text += [f"  {_constant(name, c)}" for name in c.constants if name not in c.evaluation.unused]
        text += [f"  {note}" for note in c.notes]
    return "\n".join(text)


def _constant(name: str, c: RunComparison) -> str:
    """A constant with its kind and its source."""
    constant = c.constants[name]
    return f"{name} = {number(constant.value)}   {constant.source}{f' ({constant.note})' if constant.note else ''}"


def to_dict(c: RunComparison) -> dict[str, Any]:
    """What `fedbounds confront --json` prints of the comparison of one setting."""
    return {
        "sampled": c.label,
        "measure": str(c.measure),
        **attributes(c, "rounds measured standard_error bound ratio terms valid guarantee why_not"),
        "conditional_on": c.evaluation.conditional_on,
        **attributes(c, "crossings covered_crossings"),
        "constants": {
            name: {
                **attributes(constant, "value source note"),
                "meaning": c.result.notation[name].meaning,
                "used": name not in c.evaluation.unused,
            }
            for name, constant in c.constants.items()
        },
        "conditions": [
            {"text": check.text, "holds": bool(np.all(check.holds)), "why": check.why}
            for check in c.evaluation.conditions
        ],
        "assumptions": dict(c.evaluation.assumptions),
        "notes": list(c.notes),
    }
