"""The comparability matrix as a picture."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from fedbounds.bounds.comparison.comparability import CODES, Matrix
from fedbounds.figures.charts.picture import Curve, Picture, styled

SHADES = ("#ffffff", "#0072B2", "#56B4E9", "#56B4E9")  # not comparable, the same, <=, >=
RELATIONS = ("", "=", "<=", ">=")
SIGNS = {"=": "=", "<": r"$\leq$", ">": r"$\geq$"}


def matrix_picture(matrix: Matrix) -> Picture:
    """The comparable left-hand sides, shaded; elsewhere the codes of what differs."""
    places = range(len(matrix.measures))
    relations = np.array([[RELATIONS.index(matrix.relation(i, j)) for j in places] for i in places])
    names = [_name(i, matrix) for i in places]
    letters = ", ".join(f"{letter}: {part}" for part, letter in CODES.items())
    with styled():
        figure = Figure(figsize=(6.5 + 0.42 * len(names), 0.6 + 0.48 * len(names)), layout="constrained")
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
        axes.set_xlabel(f"not comparable where these differ: {letters}")
    pairs = "; ".join(f"{i + 1} is at most {j + 1} ({matrix.why(i, j)})" for i, j in matrix.pairs)
    return Picture(
        figure,
        "Left-hand sides of the results, row against column: = the same; shaded if one is never larger than the other "
        f"on any run; else what differs ({letters}). {pairs or 'No two that differ are comparable'}.",
        f"{len(names)} left-hand sides against each other; of pairs that differ {len(matrix.pairs)} are comparable.",
        [Curve(str(m), np.arange(len(names)) + 1.0, relations[i] * 1.0) for i, m in enumerate(matrix.measures)],
        {**matrix.to_dict(), "codes": dict(enumerate(RELATIONS))},
    )


def _name(place: int, matrix: Matrix) -> str:
    papers = ", ".join(dict.fromkeys(form.partition("/")[0] for form in matrix.forms[place]))
    return fill(f"{place + 1}. {matrix.measures[place]} ({papers})", 76, break_on_hyphens=False)
