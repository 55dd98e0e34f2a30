"""Tables as dots: a row for each method, a panel for each column, bars over seeds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from fedbounds.figures.charts.picture import COLORS, MARKERS, Curve, Picture, styled


def dot_chart(
    title: str,
    values: Mapping[str, Mapping[str, Mapping[str, np.ndarray]]],
    x_label: str,
    caption: str,
    provenance: Mapping[str, object],
    share: bool = True,
    quartiles: bool = False,
) -> Picture:
    """A table as dots: `values` maps panel to row to kind to values (seeds,); bars are one standard deviation.

    With `quartiles` dots are medians and bars reach from the first to the third quartile; with `share` panels share the
    x axis.
    """
    data = []
    with styled():
        rows = list(max(values.values(), key=len))
        figure = Figure(figsize=(9.2, 1.3 + 0.32 * len(rows)))
        axes = figure.subplots(1, len(values), sharey=True, sharex=share, squeeze=False)[0]
        for panel, (name, table) in zip(axes, values.items(), strict=True):
            for label, kinds in table.items():
                row = rows.index(label)
                for i, (kind, found) in enumerate(kinds.items()):
                    low, mean, high = _quartiles(found) if quartiles else _deviations(found)
                    place = row + 0.16 * (i - (len(kinds) - 1) / 2) * 2
                    panel.errorbar(mean, place, xerr=[[mean - low], [high - mean]], color=COLORS[i], marker=MARKERS[i],
                                   markersize=4.5, linewidth=1.2, label=kind if row == 0 else None)  # fmt: skip
                    point = [np.array([v]) for v in (row, mean, low, high)]
                    data.append(Curve(f"{name}: {label} {kind}".strip(": "), *point))
            panel.set_title(name)
            panel.set_xlabel(x_label)
        axes[0].set_yticks(range(len(rows)), rows)
        axes[0].set_ylim(len(rows) - 0.5, -0.5)
        handles, labels = axes[0].get_legend_handles_labels()
        if any(labels):
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    alternative = f"A chart of dots, one row per method, for {', '.join(values)}."
    return Picture(figure, caption, alternative, data, provenance)


def _quartiles(values: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return low, middle, high


def _deviations(values: np.ndarray) -> tuple[float, float, float]:
    mean, spread = float(values.mean()), float(values.std())
    return mean - spread, mean, mean + spread
