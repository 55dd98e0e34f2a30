"""Bounds over a varying constant as a picture or for pgfplots, and the matrix of comparable bounds."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.colors import ListedColormap

from fedbounds.bounds.comparison.comparability import CODES, Matrix
from fedbounds.bounds.comparison.compare import BoundComparison, BoundRow
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.inputs.output_files import Output, write_output
from fedbounds.figures.charts.curves import compare_curves
from fedbounds.figures.charts.figure_style import current_style, find_entry
from fedbounds.figures.charts.picture import COLORS, ROWS, Curve, Picture, new_figure

MOST_NOTES = 3  # lines above the panel
STYLES = ("solid", "dashed", "dash dot", "densely dashed", "loosely dashed", "dash dot dot")
MARK = "% written by fedbounds\n"
DOCUMENT = r"""\documentclass{article}
\usepackage{amsmath}
\usepackage{pgfplots}
\pgfplotsset{compat=1.16}
\begin{document}
\begin{figure}
\centering
%s
\caption{%s}
\end{figure}
\end{document}
"""


def comparison_caption(table: BoundComparison) -> str:
    """The measure, the constants with their sources, and the notes."""
    said = describe_settings(table)
    said += [f"No value anywhere: {row.label}." for row in table.rows if not np.isfinite(row.values).any()]
    said += ["Dotted: a condition fails."] if not all(row.valid.all() for row in table.rows) else []
    return " ".join([*said, *(f"{note}." for note in table.notes)])


def describe_settings(table: BoundComparison) -> list[str]:
    """The measure, the constants with their sources, and what is chosen anew, in sentences."""
    constants = ", ".join(f"{name} = {number(c.value)} ({c.source})" for name, c in table.constants.items())
    chosen = [f"{name} in [{number(low)}, {number(high)}]" for name, (low, high) in table.within.items()]
    chosen += [name for name in table.optimize if name not in table.within]
    said = [f"{table.measure}."]
    said += [f"Constants: {constants}."] if constants else []
    said += [f"Chosen anew at every {table.name}: {', '.join(chosen)}."] if chosen else []
    return said


def comparison_picture(table: BoundComparison) -> Picture:
    """The bounds over the varying constant: dotted where a condition fails."""
    drawn = [
        Curve(row.name, table.settings, row.values, valid=row.valid, legend=_entry(row, table)) for row in table.rows
    ]
    failures = table.failures()
    groups: dict[str, list[str]] = {}
    for row in (row for row in table.rows if row.label in failures):
        groups.setdefault(failures[row.label], []).append(name_row(row))
    notes = [f"{', '.join(names)}: {said}" if len(names) < len(table.rows) else said for said, names in groups.items()]
    return compare_curves(
        drawn,
        x_label=f"{table.name}: {table.meaning}",
        y_label=_y_label(table),
        note="\n".join([*notes[:MOST_NOTES], *(["..."] if len(notes) > MOST_NOTES else [])]),
        title="Bounds compared",
        caption=comparison_caption(table),
        provenance={key: value for key, value in table.to_dict().items() if key not in ("settings", "bounds", "best")},
    )


def _entry(row: BoundRow, table: BoundComparison) -> str:
    """A bound in the legend: its name, and its own left-hand side if they differ."""
    measure = row.measure if _differ(table) else None
    own = "" if measure is None else f": {measure.aggregate} over {measure.over}"
    return f"{name_row(row)}{own}"


def name_row(row: BoundRow) -> str:
    """Paper, number and form of a bound, and its mark."""
    key, _, form = row.label.partition(" ")
    return f"{row.source or key} {form}{f' ({row.mark})' if row.mark else ''}"


def _differ(table: BoundComparison) -> bool:
    return any(row.measure != table.measure for row in table.rows)


def _y_label(table: BoundComparison) -> str:
    """The left-hand side with its unit; what all bounds have in common, if they differ."""
    measure = table.measure
    return f"{measure.of} ({measure.dimension.words})" if _differ(table) else measure.label


def save_pgf(table: BoundComparison, path: Path, *, force: bool = False) -> list[Path]:
    r"""Write the figure: .pgf to be read with \input, its caption a comment; or .tex, a whole document."""
    drawn = _tikz(table)
    said = tex(comparison_caption(table))
    text = (
        DOCUMENT % (drawn, said) if path.suffix == ".tex" else f"% needs \\usepackage{{pgfplots}}\n% {said}\n{drawn}\n"
    )
    write_output(Output(path), f"{MARK}{text}".encode(), force)
    return [path]


def _tikz(table: BoundComparison) -> str:
    """The tikzpicture: dotted where a condition fails."""
    style, own_width = current_style(), "0.9\\linewidth"
    entries = {row.label: _entry(row, table) for row in table.rows}
    new = {
        find_entry(given, entries | {text: text for text in entries.values()}): text
        for given, text in style.labels.items()
    }
    positive = all((row.values[np.isfinite(row.values)] > 0).all() for row in table.rows)
    axes = [
        f"xmode={'log' if (table.settings > 0).all() else 'linear'}",
        f"ymode={'log' if positive else 'linear'}",
        f"xlabel={{{_label(style.xlabel, f'{table.name}: {table.meaning}')}}}",
        f"ylabel={{{_label(style.ylabel, _y_label(table))}}}",
        "ylabel style={text width=0.5\\linewidth, align=center}",
        f"width={own_width if style.inches is None else f'{style.inches:g}in'}",
        "legend cell align=left",
        "legend style={at={(0.5,-0.2)},anchor=north,draw=none}",
    ]
    axes += [f"title={{{_label(style.title, '')}}}"] if style.title else []
    axes += [f"font=\\fontsize{{{style.points:g}}}{{{1.2 * style.points:.3g}}}\\selectfont"] if style.points else []
    colors = [f"\\definecolor{{bound{i}}}{{HTML}}{{{color[1:]}}}" for i, color in enumerate(COLORS)]
    lines = [*colors, r"\begin{tikzpicture}", r"\begin{axis}[", *(f"  {option}," for option in axes), "]"]
    for i, (row, dash) in enumerate(zip(table.rows, cycle(STYLES), strict=False)):
        name = _label(new.get(entries[row.label]), entries[row.label])
        lines += _curve(table.settings, row, name, f"bound{i % len(COLORS)}", dash)
    return "\n".join([*lines, r"\end{axis}", r"\end{tikzpicture}"])


def _label(given: str | None, own: str) -> str:
    """The text of a user, or our own; with a formula or a command it is LaTeX."""
    return given if given and ("$" in given or "\\" in given) else tex(own if given is None else given)


def _curve(settings: np.ndarray, row: BoundRow, name: str, color: str, style: str) -> list[str]:
    """A bound with its name, dotted where its conditions fail."""
    kept = np.unique(np.linspace(0, len(settings) - 1, min(ROWS, len(settings))).round().astype(int))
    x, y, valid = settings[kept], row.values[kept], row.valid[kept] & np.isfinite(row.values[kept])
    lines = []
    for holds, look in ((valid, style), (~valid & np.isfinite(y), "dotted")):
        if not holds.any() and look == "dotted":
            continue
        points = " ".join(
            f"({a:.6g},{b:.6g})" if at else f"({a:.6g},nan)" for a, b, at in zip(x, y, holds, strict=True)
        )
        lines.append(rf"\addplot[{color}, thick, {look}, unbounded coords=jump{', forget plot' * (look == 'dotted')}]")
        lines.append(f"  coordinates {{{points}}};")
        lines += [rf"\addlegendentry{{{name}}}"] if look != "dotted" else []
    return lines


SHADES = ("#ffffff", "#0072B2", "#56B4E9", "#56B4E9")  # not comparable, the same, <=, >=
RELATIONS = ("", "=", "<=", ">=")
SIGNS = {"=": "=", "<": r"$\leq$", ">": r"$\geq$"}


def matrix_picture(matrix: Matrix) -> Picture:
    """The comparable left-hand sides, shaded; elsewhere the codes of what differs."""
    places = range(len(matrix.measures))
    relations = np.array([[RELATIONS.index(matrix.relation(i, j)) for j in places] for i in places])
    names = [_name(i, matrix) for i in places]
    symbols = ", ".join(f"{symbol}: {part}" for part, symbol in CODES.items())
    with new_figure(6.5 + 0.42 * len(names), 0.6 + 0.48 * len(names)) as figure:
        axes = figure.add_subplot()
        axes.imshow(relations, cmap=ListedColormap(SHADES), vmin=0, vmax=3, aspect="auto")
        for i in places:
            for j in places:
                code = matrix.code(i, j)
                axes.text(j, i, SIGNS.get(code, code), ha="center", va="center", fontsize=7,
                          color="white" if relations[i, j] == 1 else "black")  # fmt: skip
        axes.set_xticks(places, [str(j + 1) for j in places])
        axes.set_yticks(places, names, fontsize=6.5)
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
        axes.grid(visible=False)
        axes.grid(visible=True, which="minor", color="#cccccc", linewidth=0.5)
        axes.tick_params(which="minor", length=0)
        axes.set_xlabel(f"not comparable where these differ: {symbols}")
    pairs = "; ".join(f"{i + 1} is at most {j + 1} ({matrix.why(i, j)})" for i, j in matrix.pairs)
    return Picture(
        figure,
        "Left-hand sides of the results, row against column: = the same; shaded if one is never larger than the other "
        f"on any run; else what differs ({symbols}). {pairs or 'No two that differ are comparable'}.",
        f"{len(names)} left-hand sides against each other; of pairs that differ {len(matrix.pairs)} are comparable.",
        [Curve(str(m), np.arange(len(names)) + 1.0, relations[i] * 1.0) for i, m in enumerate(matrix.measures)],
        {**matrix.to_dict(), "codes": dict(enumerate(RELATIONS))},
    )


def _name(place: int, matrix: Matrix) -> str:
    papers = ", ".join(dict.fromkeys(form.partition("/")[0] for form in matrix.forms[place]))
    return fill(f"{place + 1}. {matrix.measures[place]} ({papers})", 76, break_on_hyphens=False)
