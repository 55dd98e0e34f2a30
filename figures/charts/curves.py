"""Curves: convergence with seed bands, and bounds against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
from scipy.special import stdtrit

from fedbounds.figures.charts.figure_style import StyleOptions, current_style, name_entry, styled
from fedbounds.figures.charts.fitting import whole_ticks
from fedbounds.figures.charts.picture import COLORS, DASHES, DOTTED, Curve, Picture, fit_columns, new_figure

Scale = Literal["linear", "log"]
NARROW = 2.3  # inches: the least width of a panel
MOST = len(COLORS)  # curves that one pair of axes tells apart
FAILS = "where a condition fails"
FAILS_ALL = "a condition fails everywhere"
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
    many = values.shape[0] > 1
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=int(many))
    return Curve(label, np.asarray(x), mean, mean - spread if many else None, mean + spread if many else None)


def difference_curve(label: str, x: np.ndarray, differences: np.ndarray, smooth: float = 0.0) -> Curve:
    """Mean over seeds and its 95 % interval by Student's t; `differences` has shape (seeds, points).

    Example:
        >>> curve = difference_curve("B - A", np.arange(2), np.array([[0.0, 1.0], [0.0, 3.0]]))
        >>> curve.y.tolist(), curve.low.round(2).tolist()  # t_{0.975} = 12.7 with one degree of freedom
        ([0.0, 2.0], [0.0, -10.71])
    """
    differences = moving_average(differences, smooth)
    mean, seeds = differences.mean(axis=0), len(differences)
    half = stdtrit(seeds - 1, 0.975) * differences.std(axis=0, ddof=1) / seeds**0.5
    return Curve(label, np.asarray(x), mean, mean - half, mean + half)


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
        text = curve.legend or curve.label
        name = name_entry(text, curve.label)
        if curve.valid is not None and not seen.any():
            axes.plot([], [], label=name_entry(f"{text}: no value anywhere", curve.label), linestyle="")
        elif (valid & seen).any() or valid.all():
            kept = np.where(valid, curve.y, np.nan)
            axes.plot(curve.x, kept, label=name, linestyle=DASHES[dash % MOST], **style)
        if (~valid & seen).any():
            near = np.concatenate([[True], valid, [True]])
            reached = ~valid | ~near[:-2] | ~near[2:]  # to the neighbors, so that the dots reach the line
            label = "_dotted" if (valid & seen).any() else name_entry(f"{text}: {FAILS_ALL}", curve.label)
            axes.plot(curve.x, np.where(reached, curve.y, np.nan), linestyle=DOTTED, label=label, **style)
        if curve.low is not None and curve.high is not None:
            low = np.maximum(curve.low, curve.y / 10) if axes.get_yscale() == "log" else curve.low
            axes.fill_between(curve.x, low, curve.high, color=style["color"], alpha=0.15, linewidth=0)
    if any(line.get_label() == "_dotted" for line in axes.get_lines()):
        axes.plot([], [], color="#666666", linestyle=DOTTED, label=FAILS)


def _draw_ticks(axes: Any, curves: Sequence[Curve]) -> None:
    """Ticks at whole numbers if all curves have no others."""
    if all(np.all(np.isfinite(curve.x) & (curve.x == np.round(curve.x))) for curve in curves):
        whole_ticks(axes)


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
    **style: Unpack[StyleOptions],
) -> Picture:
    """Panels side by side, one group of curves each, with one legend below, that of the first; more curves than eight
    are drawn in facets, each with a legend of its own.

    Args:
        groups: panel title to its curves.
        y_labels: one label per panel, with units where there are any.
        caption, alternative, provenance: as in `Picture`.
        legends: whether every panel has its own, as its curves have other names.
        style: `width`, `xlabel`, `ylabel`, `labels`, `font_size`, `style` and `annotations`, as in "Draw a figure for a
            paper".

    Raises:
        FedboundsError: an option of the style is not legal; the message says what is.
    """
    with styled(**style):
        return _panels(
            groups, x_label, y_labels, title, caption, alternative, provenance or {}, y_scales, x_scale, legends
        )


def _panels(
    groups: Mapping[str, Sequence[Curve]],
    x_label: str,
    y_labels: Sequence[str],
    title: str,
    caption: str,
    alternative: str,
    provenance: Mapping[str, Any],
    y_scales: Sequence[Scale] | None,
    x_scale: Scale,
    legends: bool = False,
    note: str = "",
) -> Picture:
    count = len(groups)
    split = [facets(curves) for curves in groups.values()]
    many = max(len(of) for of in split) > 1
    columns = min(3, len(split[0])) if count == 1 else count
    columns = columns if many and count > 1 else fit_columns(columns, NARROW)
    cells = split[0] if count == 1 else [of[k] if k < len(of) else None
                                         for k in range(max(map(len, split))) for of in split]  # fmt: skip
    names = [""] * len(cells) if count == 1 else [*groups] * (len(cells) // count)
    rows = -(-len(cells) // columns)
    width, height = max(4.8, 3.6 * columns if columns < 3 else 3.1 * columns), 3.9 * rows
    with new_figure(width, height, title) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharex=many, sharey="col" if many and count > 1 else many)
        for i, panel in enumerate(grid.ravel()):
            if i >= len(cells) or (cell := cells[i]) is None:
                panel.set_visible(False)
                continue
            group = i % count
            panel.set_xscale(x_scale)
            if y_scales is not None:
                panel.set_yscale(y_scales[group])
            draw(panel, cell[1])
            _draw_ticks(panel, [curve for _, curve in cell[1]])
            panel.set(title=", ".join(filter(None, (names[i], cell[0]))), xlabel=x_label)
            if not many or count > 1 or i % columns == 0:
                panel.set_ylabel(y_labels[group])
            if many or legends:
                panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=7.5)
        if note and not many and current_style().annotations:
            grid[0][0].set_title(note, fontsize=8, fontweight="normal")
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
    note: str = "",
) -> Picture:
    """Bounds against each other over one varying constant, dotted where a condition fails; the note is above them."""
    dotted = any(c.valid is not None and not c.valid.all() for c in curves)
    return _panels(
        {"": curves},
        x_label,
        [y_label],
        title,
        f"{caption} Dotted where a condition fails.".strip() if dotted else caption,
        f"{len(curves)} bounds against {x_label}: {', '.join(c.label for c in curves)}.",
        provenance or {},
        [y_scale],
        x_scale,
        note=note,
    )
