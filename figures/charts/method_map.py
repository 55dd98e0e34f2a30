"""The picture of a map: which method has the smallest bound over two constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fedbounds.bounds.comparison.method_map import MethodMap
from fedbounds.figures.charts.comparison import describe_settings, name_row
from fedbounds.figures.charts.figure_style import name_entry
from fedbounds.figures.charts.picture import Curve, Picture, new_figure
from fedbounds.figures.charts.theory import fill_regions

METHODS = {  # kinds of algorithms, as theorem files name them -> the names of the methods
    "accelerated-minibatch-sgd": "Accelerated minibatch SGD",
    "c-vfl": "C-VFL",
    "ce-lsgd": "CE-LSGD",
    "ef21": "EF21",
    "fedadam": "FedAdam",
    "fedavg": "FedAvg",
    "fednova": "FedNova",
    "fedprox": "FedProx",
    "fedvarp": "FedVARP",
    "generalized-fedavg": "FedAvg with two step sizes",
    "local-sgda": "Local SGDA",
    "marina": "MARINA",
    "mifa": "MIFA",
    "minibatch-sgd": "Minibatch SGD",
    "minibatch-storm": "Minibatch STORM",
    "proxskip": "ProxSkip",
    "scaffold": "SCAFFOLD",
    "synchronous-sgda": "Synchronous SGDA",
    "three-point-compressors": "Three point compressors",
}
FACTORS = (1.5, 2.0, 5.0, 10.0, 100.0)  # lines of the second smallest bound over the smallest


def method_map_picture(
    table: MethodMap,
    *,
    title: str = "Smallest bound",
    note: str = "",
    labels: Sequence[str] = (),
    x_label: str = "",
    y_label: str = "",
) -> Picture:
    """The smallest bound over two constants, on logarithmic axes if these are positive; white where no bound is valid.

    Args:
        table: the bounds.
        title: of the figure.
        note: sentences after the first one of the caption.
        labels: the methods' names, in place of those of their algorithms.
        x_label, y_label: in place of the symbol and its meaning.
    """
    rows = table.comparison.rows
    shown = name_bounds(table, labels)
    mark = " (order only)" if table.order_only else ""
    names = [text if mark in text else text + mark for text in shown]
    winner, nowhere = table.winner, [name for name, i in zip(shown, table.wins.values(), strict=True) if not i]
    with new_figure(6.4, 4.4, title) as figure:
        axes = figure.subplots()
        axes.grid(visible=False)
        places = [(name_entry(name, row.label), i) for i, (name, row) in enumerate(zip(names, rows, strict=True))]
        handles: list[Artist] = [*fill_regions(axes, table.x_values, table.y_values, winner, places)]
        advantage = np.ma.masked_invalid(table.advantage)
        levels = [f for f in FACTORS if advantage.min() < f < advantage.max()]
        if levels:
            lines = axes.contour(
                table.x_values, table.y_values, advantage, levels=levels, colors="black", linewidths=0.7
            )
            handles.append(Line2D([], [], color="black", linewidth=0.7, label="second smallest bound / smallest"))
        handles += [Patch(facecolor="none", label=f"{name}: smallest nowhere") for name in nowhere]
        axes.set(xscale=_scale(table.x_values), yscale=_scale(table.y_values))
        axes.set(xlim=table.x_values[[0, -1]], ylim=table.y_values[[0, -1]])
        if levels:
            places = [_innermost(axes, line) for segments in lines.allsegs for line in segments if len(line) > 1]
            for words in axes.clabel(lines, fmt=lambda v: rf"$\times${v:g}", fontsize=7, inline=False, manual=places):
                words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})
        axes.set_xlabel(x_label or f"{table.x}: {table.x_meaning}")
        axes.set_ylabel(y_label or f"{table.y}: {table.y_meaning}")
        figure.legend(handles=handles, loc="outside lower center", ncols=1 if max(map(len, names)) > 32 else 2)
    said = [f"Smallest of {len(names)} bounds over {table.x} and {table.y}.", note]
    said += ["Order only: every constant that an O hides is 1, so the borders are not exact."] if mark else []
    said += ["Lines: the second smallest bound divided by the smallest."] if levels else []
    said += ["Equal bounds count for the first that is named."]
    said += [f"Smallest nowhere: {', '.join(nowhere)}."] if nowhere else []
    said += ["White: no bound is valid."] if (winner < 0).any() else []
    said += ["Bounds by index: " + ", ".join(f"{i} {name}" for i, name in enumerate(shown)) + "."]
    counts = [f"{name} at {count}" for name, count in zip(shown, table.wins.values(), strict=True)]
    curves = [
        Curve(f"{table.x} = {x:.6g}: smallest", table.y_values, winner[:, i] * 1.0)
        for i, x in enumerate(table.x_values)
    ]
    curves += [
        Curve(f"{table.x} = {x:.6g}: bound {k}", table.y_values, values[:, i])
        for k, values in enumerate(table.values)
        for i, x in enumerate(table.x_values)
    ]
    notes = [f"{note}." for note in table.comparison.notes if not (mark and "hides constants" in note)]
    provenance = {key: value for key, value in table.to_dict().items() if key not in ("bounds", "smallest")}
    return Picture(
        figure,
        " ".join(filter(None, [*said, *describe_settings(table.comparison), *notes])),
        f"Map of the smallest bound: {', '.join(counts)} of {winner.size} settings.",
        curves,
        provenance,
    )


def _innermost(axes: Axes, line: np.ndarray) -> tuple[float, float]:
    """The point of a line (points, 2) that is farthest from the frame of the axes."""
    inside = axes.transAxes.inverted().transform(axes.transData.transform(line))
    x, y = line[int(np.minimum(inside, 1 - inside).min(axis=1).argmax())]
    return float(x), float(y)


def name_bounds(table: MethodMap, labels: Sequence[str] = ()) -> list[str]:
    """The method and the paper of each bound; its paper, number and form where two would have the same name."""
    rows = table.comparison.rows
    methods = labels or [METHODS.get(kind, kind) for kind in table.algorithms]
    papers = [re.sub(r" \((\w+)\)$", r" \1", row.source.partition(", ")[0]) for row in rows]
    cited = [f"{method} ({paper})" for method, paper in zip(methods, papers, strict=True)]
    own = [name_row(row) for row in rows]
    for names, known in ((cited, all(methods)), (own, True)):
        if known and len(set(names)) == len(names):
            return names
    return [row.name for row in rows]


def _scale(values: np.ndarray) -> str:
    return "log" if values[0] > 0 else "linear"
