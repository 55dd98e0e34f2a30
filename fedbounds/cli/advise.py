"""fedbounds advise: methods and step sizes for a setting, as text, as a document and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.cli import options
from fedbounds.cli.options import Drawing, OutputPath, PathArgument

if TYPE_CHECKING:
    from fedbounds.bounds.advice.advise import Advice, Advised

LONG = (("days", 86400.0), ("h", 3600.0), ("min", 60.0))


@click.command("advise")
@click.argument("setting", metavar="SETTING.toml", type=PathArgument())
@options.paper_option
@click.option(
    "--out",
    metavar="F",
    type=OutputPath(),
    help="Draw cost over local steps (.png, .pdf, .svg); its data beside it.",
)
@options.figure_options
@options.force_option
@options.json_option
def advise_command(
    setting: str, wanted: str | None, out: str | None, drawing: Drawing, force: bool, as_json: bool
) -> None:
    """Recommend a method and step sizes for the setting in SETTING.toml.

    For every result that covers it: the best step sizes and whole numbers inside its conditions; rounds, gradients,
    bits and seconds to the target; the dominant terms; whether it is a guarantee, with the reasons; and the constants
    that change the answer most.

    \b
    fedbounds advise examples/advise-log.toml
    fedbounds advise examples/advise-tiers.toml --out tiers.png
    """
    from fedbounds.empirical.monitoring.advise import advise

    drawing.check("only figures have it; add --out F.pdf, .png or .svg", () if out is None else options.STYLE_OPTIONS)
    if out is not None:
        from fedbounds.bounds.inputs.user_files import read_toml
        from fedbounds.figures.charts.picture import figure_outputs

        read_toml(setting)  # notes it and its log as inputs
        check_outputs(figure_outputs(out), force)
    with progress_bar("results") as watch:
        found = advise(setting, paper=wanted, watch=watch)
    written = []
    if out is not None:
        from fedbounds.figures.charts.advice import advice_picture

        with drawing.style():
            written = advice_picture(found).save(out, force=force)
    document = {"setting": setting, **found.to_dict()}
    options.print_answer(as_json, "advise", document, lambda: describe(found), written)


def describe(found: Advice) -> str:
    """The setting as understood, the advice by left-hand side, and all other results with the reasons."""
    lines = [piece for line in found.headline.splitlines() for piece in options.hanging("", line, 2)]
    for measure, rows in found.groups:
        lines += ["", *options.hanging("Bounds the ", str(measure), 2)]
        for row in rows:
            lines += _reached(row)
    if not found.groups:
        lines += ["", "No result that covers the setting reaches the target, or the setting has too few constants."]
    if found.relations:
        lines += ["", "Results that bound different things are not ranked against each other"]
        lines += [piece for line in found.relations for piece in options.hanging("  - ", line)]
    others = [row for row in found.results if row.status != "reached"]
    if others:
        lines += ["", "Results that cover the setting, or may, and give no advice"]
        for row in others:
            lines += _other(row)
    if found._versions:
        lines += ["", "Results of which another version answers"]
        lines += [piece for key, why in found._versions.items() for piece in options.hanging(f"  {key}: ", why, 6)]
    if found.excluded:
        lines += ["", "Not covered (fedbounds covers states these assumptions)"]
        for paper, of_paper in groupby(found.excluded, lambda row: row.key.partition("/")[0]):
            by_assumptions: dict[str, list[str]] = {}
            for row in of_paper:
                by_assumptions.setdefault(", ".join(a.name for a in row.excluded), []).append(row.key.partition("/")[2])
            lines.append(f"  {paper}")
            for names, keys in by_assumptions.items():
                lines += options.hanging(f"    by {names}: ", ", ".join(keys), 8)
    return "\n".join(lines)


def _reached(row: Advised) -> Iterator[str]:
    evaluation, costs = row.evaluation, row.costs
    assert evaluation is not None and costs is not None
    mark = f", {row.coverage.mark}" if row.coverage.mark else ""
    yield f"  {row.key} [{row.coverage.form}{mark}]   guarantee: {evaluation.guarantee_text}"
    yield from options.hanging(
        "      choose     ", ", ".join(f"{name} = {value:.6g}" for name, value in row.at.items()) or "-"
    )
    spent = [f"{costs.rounds} rounds"]
    spent += [f"{value:.6g} {name}" for name, value in (("gradients", costs.gradients), ("bits", costs.bits)) if value]
    spent += [] if costs.seconds is None else [duration(costs.seconds)]
    yield from options.hanging("      costs      ", ", ".join(spent))
    if row.lacking:
        unknown = [f"{name} (needs {needs})" for name, needs in row.lacking.items()]
        yield from options.hanging("      unknown    ", ", ".join(unknown))
    shares = sorted(evaluation.shares.items(), key=lambda item: -item[1])
    yield from options.hanging("      terms      ", ", ".join(f"{name} {float(part):.0%}" for name, part in shares))
    if row.active:
        yield from options.hanging("      limited by ", "; ".join(row.active))
    if row.sensitivity:
        text = ", ".join(f"{name} {value:+.2f}" for name, value in row.sensitivity.items())
        yield from options.hanging("      1% more of ", f"changes the bound by (%) {text}")
    if row.note:
        yield from options.hanging("      note       ", row.note)
    for i, reason in enumerate(row.why_not):
        yield from options.hanging("      because    " if not i else " " * 17, reason)


def _other(row: Advised) -> Iterator[str]:
    mark = f", {row.coverage.mark}" if row.coverage.mark else ""
    start = f"  {row.key} [{row.coverage.form}{mark}]: {row.status}"
    if not row.missing:
        yield from options.hanging(f"{start}: ", row.why, 6)
        return
    yield start
    for name, meaning in row.missing.items():
        yield from options.hanging(f"      needs {name}: ", meaning)
    if row.best_case is not None and row.best_case.costs is not None:
        text = f"at least {row.best_case.costs.rounds} rounds by this result, if all of these are 0"
        yield from options.hanging("      without: ", text)
    elif row.best_case is not None:
        yield from options.hanging("      without: ", f"not reached even if all of these are 0: {row.best_case.why}")


def duration(seconds: float) -> str:
    """Seconds, and the same in minutes, hours or days.

    Example:
        >>> duration(4484.4), duration(12)
        ('4484.4 s (1.2 h)', '12 s')
    """
    for unit, size in LONG:
        if seconds >= size:
            return f"{seconds:.6g} s ({seconds / size:.1f} {unit})"
    return f"{seconds:.6g} s"
