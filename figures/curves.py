"""Curves: convergence with seed bands, and bounds against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure

from figures.picture import COLOURS, DASHES, MARKERS, Curve, Picture, styled

Scale = Literal["linear", "log"]


def moving_average(values: np.ndarray, share: float) -> np.ndarray:
    """Centred moving average over a share of the points (shorter at the ends); shape (..., points).

    Example:
        >>> moving_average(np.array([0.0, 3.0, 6.0, 3.0]), 0.75).tolist()
        [1.5, 3.0, 4.0, 4.5]
    """
    points = values.shape[-1]
    half = max(0, round(share * points) // 2)
    if half == 0:
        return values
    padded = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    low = np.maximum(np.arange(points) - half, 0)
    high = np.minimum(np.arange(points) + half + 1, points)
    return (padded[..., high] - padded[..., low]) / (high - low)


def seed_curve(label: str, x: np.ndarray, values: np.ndarray, smooth: float = 0.0) -> Curve:
    """Mean over seeds with a band of one standard deviation over seeds; `values` has shape (seeds, points)."""
    values = moving_average(np.atleast_2d(values), smooth)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    many = values.shape[0] > 1
    return Curve(label, np.asarray(x), mean, mean - spread if many else None, mean + spread if many else None)


def draw(axes: Any, curves: Sequence[Curve], *, markers: bool = False) -> None:
    """Draw curves on one pair of axes, told apart by colour, dash and marker; on a logarithmic axis a band ends at a
    tenth of its mean."""
    for i, curve in enumerate(curves):
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}
        if markers:
            style |= {"marker": MARKERS[i % len(MARKERS)], "markevery": max(1, len(curve.x) // 12)}
        axes.plot(curve.x, curve.y, label=curve.label, **style)
        if curve.low is not None and curve.high is not None:
            low = np.maximum(curve.low, curve.y / 10) if axes.get_yscale() == "log" else curve.low
            axes.fill_between(curve.x, low, curve.high, color=style["color"], alpha=0.15, linewidth=0)


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
) -> Picture:
    """Panels side by side, one group of curves each, with one legend below.

    Args:
        groups: panel title to its curves.
        y_labels: one label per panel, with units where there are any.
        caption, alternative, provenance: as in `Picture`.
    """
    count = len(groups)
    with styled():
        figure = Figure(figsize=(max(4.8, 3.6 * count if count < 3 else 3.1 * count), 3.9))
        axes = figure.subplots(1, count, squeeze=False)[0]
        for i, (panel, (name, curves)) in enumerate(zip(axes, groups.items(), strict=True)):
            panel.set_xscale(x_scale)
            if y_scales is not None:
                panel.set_yscale(y_scales[i])
            draw(panel, curves)
            panel.set_title(name)
            panel.set_xlabel(x_label)
            panel.set_ylabel(y_labels[i])
        handles, labels = axes[0].get_legend_handles_labels()
        inches = 0.08 * max(map(len, labels), default=0) + 0.6  # that one entry of the legend takes
        columns = int(np.clip(figure.get_figwidth() // inches, 1, max(1, len(labels))))
        figure.set_figheight(3.9 + 0.2 * max(0, -(-len(labels) // columns) - 3))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    data = [
        Curve(f"{name}: {c.label}" if count > 1 else c.label, c.x, c.y, c.low, c.high)
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
    """Bounds against each other over one varying constant."""
    return panels(
        {"": curves},
        x_label=x_label,
        y_labels=[y_label],
        title=title,
        caption=caption,
        alternative=f"{len(curves)} bounds against {x_label}: {', '.join(c.label for c in curves)}.",
        provenance=provenance,
        y_scales=[y_scale],
        x_scale=x_scale,
    )
