"""fedbounds compare: bounds against each other over a varying constant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from fedbounds.bounds.commands.options import (
    PathArgument,
    constants_options,
    emit,
    json_option,
    over_names,
    ranges,
    read_constants,
    within_option,
)
from fedbounds.bounds.comparison import BoundComparison, parse_vary, whole_settings
from fedbounds.bounds.comparison import compare as compare_bounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.plain_text import number
from fedbounds.bounds.registry import load

if TYPE_CHECKING:
    from fedbounds.figures.picture import Picture


@click.command("compare")
@constants_options
@click.option("--vary", required=True, metavar="NAME=LOW:HIGH:log:COUNT", help="What varies; also NAME=V1,V2,...")
@click.option("--optimize", "over", metavar="NAMES", default="", help="Constants chosen anew at every setting.")
@within_option
@click.option("--out", metavar="F", type=PathArgument(), help="A table (.csv) or a figure (.png, .pdf, .svg).")
@json_option
def compare(
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    vary: str,
    over: str,
    within: tuple[str, ...],
    out: str | None,
    as_json: bool,
) -> None:
    """Compare the bounds of KEY KEY... (a form after a colon: KEY:explicit) over a varying constant.

    Refuses, saying why, where the left-hand sides are not comparable.

    \b
    fedbounds compare arbitrary-participation/theorem-3.1:explicit arbitrary-participation/theorem-3.1:sharp \\
        --vary rounds=10:1e6:log:50 --optimize gamma,eta --within eta=1:100 --out bounds.png \\
        --set L=1 F=5 I=2 P=2 rho=0.7 sigma=1 nu=2 beta=0.5 delta=0
    """
    keys = [word for word in bare if "=" not in word]
    constants = read_constants(settings, source, [word for word in bare if "=" in word])
    if not keys:
        raise FedboundsError("nothing to compare: name at least one result, e.g. arbitrary-participation/theorem-3.1")
    pairs = [(load(key), form or None) for key, _, form in (word.partition(":") for word in keys)]
    name, values = parse_vary(vary)
    table = compare_bounds(
        pairs,
        (name, whole_settings([result for result, _ in pairs], name, values)),
        constants,
        optimize=over_names(over) if over else (),
        within=ranges(within) or None,
    )
    written = [] if out is None else write(table, Path(out))
    if as_json:
        emit("compare", {**table.to_dict(), "written": [str(path) for path in written]})
        return
    click.echo(describe(table))
    for path in written:
        click.echo(f"written {path}")


def describe(table: BoundComparison, rows: int = 12) -> str:
    """At most a dozen settings, each bound's value, and the least valid one marked."""
    picked = np.unique(np.linspace(0, len(table.settings) - 1, min(rows, len(table.settings))).round().astype(int))
    lines = [f"{table.measure}", ""]
    width = max(14, *(len(row.label) for row in table.rows))
    lines.append(f"{table.name:>12}  " + "  ".join(f"{row.label:>{width}}" for row in table.rows))
    best = table.best
    for i in picked.tolist():
        cells = []
        for row in table.rows:
            mark = "!" if not row.valid[i] else "~" if not row.sure else "*" if row.label == best[i] else " "
            cells.append(f"{number(float(row.values[i]))}{mark}".rjust(width))
        lines.append(f"{number(float(table.settings[i])):>12}  " + "  ".join(cells))
    lines.append("(* the least valid bound, ! a condition fails, ~ order only, refuted or not proved)")
    return "\n".join([*lines, *table.notes])


def write(table: BoundComparison, path: Path) -> list[Path]:
    """The table as CSV, or the figure with its data and manifest."""
    if path.suffix == ".csv":
        from fedbounds.bounds.atomic import write_file

        write_file(path, table.to_csv().encode())
        return [path]
    return picture(table).save(path)


def picture(table: BoundComparison) -> Picture:
    """The bounds over what varies: dotted where a condition fails, marked where they are not to be relied on."""
    from fedbounds.figures.curves import compare_curves
    from fedbounds.figures.picture import Curve

    drawn = [Curve(row.name, table.settings, row.values, valid=row.valid) for row in table.rows]
    constants = ", ".join(f"{name} = {number(c.value)} ({c.source})" for name, c in table.constants.items())
    chosen = [f"{name} in [{number(low)}, {number(high)}]" for name, (low, high) in table.within.items()]
    chosen += [name for name in table.optimize if name not in table.within]
    said = [f"{table.measure}."]
    said += [f"Constants: {constants}."] if constants else []
    said += [f"Chosen anew at every {table.name}: {', '.join(chosen)}."] if chosen else []
    said += [f"No value anywhere: {row.label}." for row in table.rows if not np.isfinite(row.values).any()]
    return compare_curves(
        drawn,
        x_label=f"{table.name}: {table.meaning}",
        y_label=table.measure.label,
        title="Bounds compared",
        caption=" ".join([*said, *(f"{note}." for note in table.notes)]),
        provenance={key: value for key, value in table.to_dict().items() if key not in ("settings", "bounds", "best")},
    )
