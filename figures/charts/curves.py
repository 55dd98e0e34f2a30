"""Curves: convergence with seed bands, and bounds against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fedbounds.figures.charts.picture import COLORS, DASHES, DOTTED, Curve, Picture, new_figure

Scale = Literal["linear", "log"]
MOST = len(COLORS)  # curves that one pair of axes tells apart
FAILS = "where a condition fails"
Look = tuple[int, int]  # place in COLORS, place in DASHES
Facet = tuple[str, list[tuple[Look, Curve]]]


def moving_average(values: np.ndarray, share: float) -> np.ndarray:
    """Centered moving average over a share of the points (shorter at the ends); shape (..., points)."""
    points = values.shape[-1]
    half = max(0, round(share * points) // 2)
    if half == 0:
        return values
    padded = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    low = np.maximum(np.arange(points) - half, 0)
    high = np.minimum(np.arange(points) + half + 1, points)
    return (padded[..., high] - padded[..., low]) / (high - low)


def seed_curve(label: str, x: np.ndarray, values: np.ndarray, smooth: float = 0.0) -> Curve:
    """Mean and standard deviation over seeds; `values` has shape (seeds, points)."""
    values = moving_average(np.atleast_2d(values), smooth)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    many = values.shape[0] > 1
    return Curve(label, np.asarray(x), mean, mean - spread if many else None, mean + spread if many else None)


def facets(curves: Sequence[Curve]) -> list[Facet]:
    """The curves in groups of at most eight, each with a title.

    Labels such as "fedau, p=0.1" are grouped by the part that gives the fewest groups, which is the title. A label has
    one color in all groups. No two of 64 curves share color and dash.
    """
    if len(curves) <= MOST:
        return [("", [((i, i), curve) for i, curve in enumerate(curves)])]
    parts = [curve.label.split(", ") for curve in curves]
    best: dict[str, list[int]] = {}
    for k in range(len(parts[0]) if len({len(p) for p in parts}) == 1 and len(parts[0]) > 1 else 0):
        groups: dict[str, list[int]] = {}
        for i, part in enumerate(parts):
            groups.setdefault(part[k], []).append(i)
        fits = max(map(len, groups.values())) <= MOST
        best = groups if fits and (not best or len(groups) < len(best)) else best
    if not best:
        ends = range(0, len(curves), MOST)
        best = {f"{i + 1} to {min(i + MOST, len(curves))} of {len(curves)}": [*range(len(curves))[i : i + MOST]]
                for i in ends}  # fmt: skip
    short = {
        i: replace(curves[i], label=", ".join(part for part in parts[i] if part != title) or curves[i].label)
        for title, group in best.items()
        for i in group
    }
    order = list(dict.fromkeys(curve.label for curve in short.values()))
    shared = len(order) <= MOST
    return [
        (title, [((k := order.index(short[i].label) if shared else m, (k + j) % MOST), short[i])
                 for m, i in enumerate(group)])
        for j, (title, group) in enumerate(best.items())
    ]  # fmt: skip


def draw(axes: Any, curves: Sequence[tuple[Look, Curve]]) -> None:
    """Draw curves by color and dash, dotted if a condition fails; a band ends at a tenth of its mean on a log axis."""
    for (color, dash), curve in curves:
        style: dict[str, Any] = {"color": COLORS[color % MOST], "marker": "o" if len(curve.x) < 3 else ""}
        valid = np.ones(len(curve.x), dtype=bool) if curve.valid is None else curve.valid
        seen = np.isfinite(curve.y)
        if (valid & seen).any() or valid.all():
            kept = np.where(valid, curve.y, np.nan)
            axes.plot(curve.x, kept, label=curve.label, linestyle=DASHES[dash % MOST], **style)
        if (~valid & seen).any():
            near = np.concatenate([[True], valid, [True]])
            reached = ~valid | ~near[:-2] | ~near[2:]  # to the neighbors, so that the dots reach the line
            label = "_dotted" if (valid & seen).any() else f"{curve.label}, {FAILS}"
            axes.plot(curve.x, np.where(reached, curve.y, np.nan), linestyle=DOTTED, label=label, **style)
        if curve.low is not None and curve.high is not None:
            low = np.maximum(curve.low, curve.y / 10) if axes.get_yscale() == "log" else curve.low
            axes.fill_between(curve.x, low, curve.high, color=style["color"], alpha=0.15, linewidth=0)
    if any(line.get_label() == "_dotted" for line in axes.get_lines()):
        axes.plot([], [], color="#666666", linestyle=DOTTED, label=FAILS)


def panels(
    groups: Mapping[str, Sequence[Curve]],
    *,
    x_label: str,
    y_labels: Sequence[str],
    title: str,
    caption: str,
    alternative: str,
    provenance: Mapping[str, Any] | None = None,
    y_scales: Sequence[Scale] | None = None,
    x_scale: Scale = "linear",
    legends: bool = False,
) -> Picture:
    """Panels side by side, one group of curves each, with one legend below, that of the first; more curves than eight
    are drawn in facets, each with a legend of its own.

    Args:
        groups: panel title to its curves.
        y_labels: one label per panel, with units where there are any.
        caption, alternative, provenance: as in `Picture`.
        legends: whether every panel has its own, as its curves have other names.
    """
    count = len(groups)
    split = [facets(curves) for curves in groups.values()]
    many = max(len(of) for of in split) > 1
    columns = min(3, len(split[0])) if count == 1 else count
    cells = split[0] if count == 1 else [of[k] if k < len(of) else None
                                         for k in range(max(map(len, split))) for of in split]  # fmt: skip
    names = [""] * len(cells) if count == 1 else [*groups] * (len(cells) // count)
    width, height = max(4.8, 3.6 * columns if columns < 3 else 3.1 * columns), 3.9
    with new_figure(width, height, title) as figure:
        rows = -(-len(cells) // columns)
        grid = figure.subplots(rows, columns, squeeze=False, sharex=many, sharey="col" if many and count > 1 else many)
        for i, panel in enumerate(grid.ravel()):
            if i >= len(cells) or (cell := cells[i]) is None:
                panel.set_visible(False)
                continue
            group = i % columns if count > 1 else 0
            panel.set_xscale(x_scale)
            if y_scales is not None:
                panel.set_yscale(y_scales[group])
            draw(panel, cell[1])
            panel.set(title=", ".join(filter(None, (names[i], cell[0]))), xlabel=x_label)
            if not many or count > 1 or i % columns == 0:
                panel.set_ylabel(y_labels[group])
            if many or legends:
                panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=7.5)
        if many or legends:
            longest = max(len(cell[1]) for cell in cells if cell is not None)
            figure.set_figheight(rows * (3.2 + 0.17 * longest))
        else:
            handles, labels = grid[0][0].get_legend_handles_labels()
            inches = 0.08 * max(map(len, labels), default=0) + 0.6  # that one entry of the legend takes
            across = int(np.clip(figure.get_figwidth() // inches, 1, max(1, len(labels))))
            figure.set_figheight(height + 0.2 * max(0, -(-len(labels) // across) - 3))
            figure.legend(handles, labels, loc="outside lower center", ncols=across)
    data = [
        replace(c, label=f"{name}: {c.label}" if count > 1 else c.label)
        for name, curves in groups.items()
        for c in curves
    ]
    return Picture(figure, caption, alternative, data, provenance or {})


def compare_curves(
    curves: Sequence[Curve],
    *,
    x_label: str,
    y_label: str,
    title: str,
    caption: str,
    provenance: Mapping[str, Any] | None = None,
    x_scale: Scale = "log",
    y_scale: Scale = "log",
) -> Picture:
    """Bounds against each other over one varying constant, dotted where a condition fails."""
    dotted = any(c.valid is not None and not c.valid.all() for c in curves)
    return panels(
        {"": curves},
        x_label=x_label,
        y_labels=[y_label],
        title=title,
        caption=f"{caption} Dotted where a condition fails.".strip() if dotted else caption,
        alternative=f"{len(curves)} bounds against {x_label}: {', '.join(c.label for c in curves)}.",
        provenance=provenance,
        y_scales=[y_scale],
        x_scale=x_scale,
    )
