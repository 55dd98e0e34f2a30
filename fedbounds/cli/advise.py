"""fedbounds advise: what to do in a setting, as text, as a document and as a picture of time over local steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.cli.options import OutputPath, PathArgument, emit, force_option, json_option, paper_option

if TYPE_CHECKING:
    from fedbounds.bounds.advice.advise import Advice, Advised
    from fedbounds.figures.charts.picture import Picture

WIDTH = 118
LONG = (("days", 86400.0), ("h", 3600.0), ("min", 60.0))
UNITS = {"seconds": "time to the target (s)", "rounds": "rounds to the target",
         "gradients": "gradients to the target", "bits": "bits to the target"}  # fmt: skip


@click.command("advise")
@click.argument("setting", metavar="SETTING.toml", type=PathArgument())
@paper_option
@click.option(
    "--out", metavar="F", type=OutputPath(), help="Time over local steps: .png, .pdf or .svg; its data beside it."
)
@force_option
@json_option
def advise_command(setting: str, wanted: str | None, out: str | None, force: bool, as_json: bool) -> None:
    """What to do in the setting that SETTING.toml describes.

    For every result that covers it: the best step sizes and whole numbers inside its conditions, rounds, gradients,
    bits and seconds to the target, what dominates, whether it is a guarantee and why not, and what would
    change the answer.

    \b
    fedbounds advise examples/advise-log.toml
    fedbounds advise examples/advise-tiers.toml --out tiers.png
    """
    from fedbounds.empirical.monitoring.advise import advise

    if out is not None:
        from fedbounds.bounds.inputs.user_files import read_toml
        from fedbounds.figures.charts.picture import figure_outputs

        read_toml(setting)  # notes it and its log as inputs
        check_outputs(figure_outputs(out), force)
    with progress_bar("results") as watch:
        found = advise(setting, paper=wanted, watch=watch)
    written = [] if out is None else [str(path) for path in picture(found).save(out, force=force)]
    if as_json:
        emit("advise", {"setting": setting, **found.to_dict(), "written": written})
        return
    click.echo(describe(found))
    if written:
        click.echo("\n".join(f"written {path}" for path in written))


# --- As text --------------------------------------------------------------------------------------------------------


def describe(found: Advice) -> str:
    """The setting as it was understood, the advice by what is bounded, and everything else with its reason."""
    lines = [piece for line in found.headline.splitlines() for piece in _hanging("", line, 2)]
    for measure, rows in found.groups:
        lines += ["", *_hanging("Bounds the ", str(measure), 2)]
        for row in rows:
            lines += _reached(row)
    if not found.groups:
        lines += ["", "No result that covers the setting reaches the target, or too little is known."]
    if found.relations:
        lines += ["", "Results that bound different things are not ranked against each other"]
        lines += [piece for line in found.relations for piece in _hanging("  - ", line)]
    others = [row for row in found.results if row.status != "reached"]
    if others:
        lines += ["", "They cover the setting, or may, and give no advice"]
        for row in others:
            lines += _other(row)
    if found._versions:
        lines += ["", "They cover the setting, or may, and another version of them is asked"]
        lines += [piece for key, why in found._versions.items() for piece in _hanging(f"  {key}: ", why, 6)]
    if found.excluded:
        lines += ["", "Not covered (fedbounds covers says what each of these assumptions is)"]
        for paper, of_paper in groupby(found.excluded, lambda row: row.key.partition("/")[0]):
            together: dict[str, list[str]] = {}
            for row in of_paper:
                together.setdefault(", ".join(a.name for a in row.excluded), []).append(row.key.partition("/")[2])
            lines.append(f"  {paper}")
            for names, keys in together.items():
                lines += _hanging(f"    by {names}: ", ", ".join(keys), 8)
    return "\n".join(lines)


def _reached(row: Advised) -> Iterator[str]:
    evaluation, costs = row.evaluation, row.costs
    assert evaluation is not None and costs is not None
    mark = f", {row.coverage.mark}" if row.coverage.mark else ""
    yield f"  {row.key} [{row.coverage.form}{mark}]   guarantee: {evaluation.promise}"
    yield from _hanging(
        "      choose     ", ", ".join(f"{name} = {value:.6g}" for name, value in row.at.items()) or "-"
    )
    spent = [f"{costs.rounds} rounds"]
    spent += [f"{value:.6g} {name}" for name, value in (("gradients", costs.gradients), ("bits", costs.bits)) if value]
    spent += [] if costs.seconds is None else [duration(costs.seconds)]
    yield from _hanging("      costs      ", ", ".join(spent))
    if row.lacking:
        unknown = [f"{name} (needs {needs})" for name, needs in row.lacking.items()]
        yield from _hanging("      not known  ", ", ".join(unknown))
    shares = sorted(evaluation.shares.items(), key=lambda item: -item[1])
    yield from _hanging("      made of    ", ", ".join(f"{name} {float(part):.0%}" for name, part in shares))
    if row.active:
        yield from _hanging("      limited by ", "; ".join(row.active))
    if row.sensitivity:
        text = ", ".join(f"{name} {value:+.2f}" for name, value in row.sensitivity.items())
        yield from _hanging("      1% more of ", f"changes the bound by (%) {text}")
    if row.note:
        yield from _hanging("      note       ", row.note)
    for i, reason in enumerate(row.why_not):
        yield from _hanging("      because    " if not i else " " * 17, reason)


def _other(row: Advised) -> Iterator[str]:
    mark = f", {row.coverage.mark}" if row.coverage.mark else ""
    start = f"  {row.key} [{row.coverage.form}{mark}]: {row.status}"
    if not row.missing:
        yield from _hanging(f"{start}: ", row.why, 6)
        return
    yield start
    for name, meaning in row.missing.items():
        yield from _hanging(f"      needs {name}: ", meaning)
    if row.best_case is not None and row.best_case.costs is not None:
        text = f"at least {row.best_case.costs.rounds} rounds by this result, which is what they are were all that 0"
        yield from _hanging("      without: ", text)
    elif row.best_case is not None:
        yield from _hanging("      without: ", f"not reached even if all that were 0: {row.best_case.why}")


def duration(seconds: float) -> str:
    """Seconds, and what that is in units of people.

    Example:
        >>> duration(4484.4), duration(12)
        ('4484.4 s (1.2 h)', '12 s')
    """
    for unit, size in LONG:
        if seconds >= size:
            return f"{seconds:.6g} s ({seconds / size:.1f} {unit})"
    return f"{seconds:.6g} s"


def _hanging(start: str, text: str, indent: int | None = None) -> Iterable[str]:
    under = " " * (min(len(start), 30) if indent is None else indent)
    return wrap(start + text, WIDTH, subsequent_indent=under, break_on_hyphens=False)


# --- As a picture ---------------------------------------------------------------------------------------------------


def picture(found: Advice) -> Picture:
    """What the target costs over the number of local steps, everything else chosen best for each; a panel for each
    left-hand side.

    Raises:
        FedboundsError: no result reaches the target.
    """
    import numpy as np

    from fedbounds.figures.charts.curves import panels
    from fedbounds.figures.charts.picture import Curve

    goal = found.question.minimize
    groups = {}
    for measure, rows in found.groups:
        drawn = [row for row in rows if row.curve and not row.coverage.mark]
        curves = [
            Curve(
                f"{row.key} [{row.coverage.form}]{'' if row.guarantee else ', no guarantee'}",
                np.array([next(iter(choice.whole.values())) for choice in row.curve], dtype=float),
                np.array([choice.goal for choice in row.curve]),
            )
            for row in drawn
        ]
        if curves:
            title = "\n".join(wrap(f"bounds the {measure}", 60))
            groups[title] = curves
    if not groups:
        raise FedboundsError("there is nothing to draw: no proved result reaches the target with local steps to choose")
    target = f"target {found.question.target:g} for the {found.measured}"
    reasons = sorted({reason for _, rows in found.groups for row in rows for reason in row.why_not})
    best = ", ".join(
        f"{row.key}: {row.curve[int(np.argmin([c.goal for c in row.curve]))].whole}"
        for _, rows in found.groups for row in rows[:1] if row.curve
    )  # fmt: skip
    caption = (
        f"{UNITS[goal].capitalize()} over local steps, {target}, by bounds: what is promised, not what a run takes. "
        "For each number of local steps, step sizes and the other whole numbers are the best inside the conditions. "
        f"Least at {best}. Panels bound different things and are not ranked against each other. "
        + (f"Not a guarantee where: {'; '.join(reasons)}." if reasons else "")
    )
    return panels(
        groups,
        x_label="local steps in a round",
        y_labels=[UNITS[goal]] * len(groups),
        title=target,
        caption=caption,
        alternative=f"{UNITS[goal]} falls and then rises, or not, with local steps; least at {best}",
        provenance={"advice": found.to_dict()},
        y_scales=("log",) * len(groups),
        x_scale="log",
        legends=len(groups) > 1,
    )
