"""Bounds over a varying constant as a figure: a picture, or pgfplots, which takes the fonts of the paper around it."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np

from fedbounds.bounds.comparison.compare import BoundComparison, BoundRow
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.inputs.output_files import Output, write_output
from fedbounds.figures.charts.curves import compare_curves
from fedbounds.figures.charts.picture import COLORS, ROWS, Curve, Picture

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
    constants = ", ".join(f"{name} = {number(c.value)} ({c.source})" for name, c in table.constants.items())
    chosen = [f"{name} in [{number(low)}, {number(high)}]" for name, (low, high) in table.within.items()]
    chosen += [name for name in table.optimize if name not in table.within]
    said = [f"{table.measure}."]
    said += [f"Constants: {constants}."] if constants else []
    said += [f"Chosen anew at every {table.name}: {', '.join(chosen)}."] if chosen else []
    said += [f"No value anywhere: {row.label}." for row in table.rows if not np.isfinite(row.values).any()]
    said += ["Dotted: a condition fails."] if not all(row.valid.all() for row in table.rows) else []
    return " ".join([*said, *(f"{note}." for note in table.notes)])


def comparison_picture(table: BoundComparison) -> Picture:
    """The bounds over the varying constant: dotted where a condition fails."""
    drawn = [Curve(row.name, table.settings, row.values, valid=row.valid) for row in table.rows]
    return compare_curves(
        drawn,
        x_label=f"{table.name}: {table.meaning}",
        y_label=table.measure.label,
        title="Bounds compared",
        caption=comparison_caption(table),
        provenance={key: value for key, value in table.to_dict().items() if key not in ("settings", "bounds", "best")},
    )


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
    positive = all((row.values[np.isfinite(row.values)] > 0).all() for row in table.rows)
    axes = [
        f"xmode={'log' if (table.settings > 0).all() else 'linear'}",
        f"ymode={'log' if positive else 'linear'}",
        f"xlabel={{{tex(f'{table.name}: {table.meaning}')}}}",
        f"ylabel={{{tex(table.measure.label)}}}",
        "ylabel style={text width=0.5\\linewidth, align=center}",
        "width=0.9\\linewidth",
        "legend cell align=left",
        "legend style={at={(0.5,-0.2)},anchor=north,draw=none}",
    ]
    colors = [f"\\definecolor{{bound{i}}}{{HTML}}{{{color[1:]}}}" for i, color in enumerate(COLORS)]
    lines = [*colors, r"\begin{tikzpicture}", r"\begin{axis}[", *(f"  {option}," for option in axes), "]"]
    for i, (row, style) in enumerate(zip(table.rows, cycle(STYLES), strict=False)):
        lines += _curve(table.settings, row, f"bound{i % len(COLORS)}", style)
    return "\n".join([*lines, r"\end{axis}", r"\end{tikzpicture}"])


def _curve(settings: np.ndarray, row: BoundRow, color: str, style: str) -> list[str]:
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
        lines += [rf"\addlegendentry{{{tex(row.name)}}}"] if look != "dotted" else []
    return lines
