r"""Bounds over a varying constant as a pgfplots figure, whose text is set in the fonts of the paper it goes into."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np

from fedbounds.bounds.comparison.compare import BoundComparison, BoundRow
from fedbounds.bounds.display.tables import tex
from fedbounds.bounds.inputs.output_files import Output, write_output
from fedbounds.figures.charts.picture import COLORS, ROWS

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


def pgf_output(path: Path) -> Output:
    """The figure as a file."""
    return Output(path)


def save(table: BoundComparison, path: Path, caption: str, *, force: bool = False) -> list[Path]:
    r"""Write the figure: .pgf to be read with \input, .tex as a whole document.

    Args:
        table: the bounds.
        path: ends in .pgf or .tex.
        caption: of the document; in a .pgf it is a comment.
        force: overwrite a file that fedbounds did not write.
    """
    drawn = picture(table)
    said = tex(caption)
    text = (
        DOCUMENT % (drawn, said) if path.suffix == ".tex" else f"% needs \\usepackage{{pgfplots}}\n% {said}\n{drawn}\n"
    )
    write_output(pgf_output(path), f"{MARK}{text}".encode(), force)
    return [path]


def picture(table: BoundComparison) -> str:
    """The tikzpicture: dotted where a condition fails, marked where a bound is not to be relied on."""
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
    """A bound where its conditions hold, with its name, and dotted where they fail."""
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
