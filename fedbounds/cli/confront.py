"""fedbounds confront: the runs of a sweep compared with a result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fedbounds.bounds.display.json_values import attributes
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.bounds.theory.registry import load
from fedbounds.cli import options
from fedbounds.cli.options import Count, Drawing, OutputPath, PathArgument

if TYPE_CHECKING:
    from fedbounds.empirical.comparison.compare_run import RunComparison
    from fedbounds.empirical.comparison.compare_sweep import SweepSetting


@click.command("confront")
@click.argument("spec", metavar="SPEC.toml", type=PathArgument())
@options.key_argument
@options.form_option
@options.constants_options
@click.option("--interval", metavar="P", type=Count(), help="P of the analysis, if the algorithm has no interval.")
@options.assume_option
@options.trust_option
@click.option(
    "--out",
    required=True,
    metavar="F",
    type=OutputPath(),
    help="The figure (.png, .pdf, .svg); its data beside it.",
)
@click.option("--shaded", is_flag=True, help="Draw the terms as stacked areas in place of lines.")
@options.figure_options
@options.force_option
@options.results_option
@options.workers_option
@options.device_option
@options.json_option
def confront(
    spec: str,
    key: str,
    form: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    interval: int | None,
    assume: tuple[str, ...],
    trust: tuple[str, ...],
    out: str,
    shaded: bool,
    drawing: Drawing,
    force: bool,
    results: str,
    workers: int,
    device: str | None,
    as_json: bool,
) -> int:
    """Compare the runs of SPEC.toml with the result KEY: the measured quantity and its bound.

    Missing runs are made first, and record models, participation and gradient norms. A constant that the problem does
    not give, as for a network, is measured along the runs; the bound is then not a guarantee. Exits with 1 if a bound
    is crossed where its conditions hold.

    \b
    fedbounds confront examples/fedau.toml fedau/theorem-2 --workers 2 --out fedau.png
    """
    result = load(key)
    drawing.check()
    given = options.read_constants(settings, source, bare)
    from fedbounds.empirical.comparison.compare_sweep import confront_sweep
    from fedbounds.empirical.sweep import read_sweep
    from fedbounds.empirical.sweep.executor import runs_bar
    from fedbounds.figures.charts.overlay import overlay_sweep
    from fedbounds.figures.charts.picture import figure_outputs

    sweep = read_sweep(spec)
    check_outputs(figure_outputs(out), force, runs=Path(results) / sweep.name)
    with runs_bar(sweep.name) as progress:
        found = confront_sweep(
            sweep, result, form, results=results, workers=workers, device=device, progress=progress,
            interval=interval, given=given, assume=assume, trust=trust,
        )  # fmt: skip
    with drawing.style():
        written = overlay_sweep(found, sweep.name, shaded=shaded, spec=spec).save(out, force=force)
    compared = [to_dict(setting, c) for setting, c in found.items()]
    document = {"spec": spec, "result": result.key, "form": result.form(form).name, "settings": compared}
    options.print_answer(as_json, "confront", document, lambda: describe(found), written)
    return 1 if any(c.covered_crossings.size for c in found.values()) else 0


def describe(found: Mapping[SweepSetting, RunComparison]) -> str:
    """A table of the settings at the largest T; then the constants of each, and why it is not a guarantee."""
    first = next(iter(found.values()))
    lines = [["", first.symbol, "measured", "bound", "measured/bound", "valid", "guarantee", "crossings"]]
    for setting, c in found.items():
        error = "" if c.standard_error is None else f" +- {number(float(c.standard_error[-1]))}"
        lines.append(
            [
                setting.label,
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
    for setting, c in found.items():
        text += ["", f"{setting.label}: {c.label}"]
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


def to_dict(setting: SweepSetting, c: RunComparison) -> dict[str, Any]:
    """The document of one setting that `fedbounds confront --json` prints."""
    return {
        "label": setting.label,
        "labels": setting.task["labels"],
        "seeds": setting.seeds,
        "keys": [run.key for run in setting.runs],
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
