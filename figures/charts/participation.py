"""Participation timelines: the weights of clients by round, and their means over windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import window_means
from fedbounds.figures.charts.picture import COLORS, Curve, Picture, styled


def participation_timeline(weights: np.ndarray, interval: int, provenance: Mapping[str, Any] | None = None) -> Picture:
    """Weights q (rounds, clients) by round, above the range of the clients' mean weights in windows of P rounds."""
    q = np.asarray(weights, dtype=float)
    if q.ndim != 2 or len(q) < interval:
        raise FedboundsError(f"participation timeline: shape {q.shape} is not (rounds >= {interval}, clients)")
    means = window_means(q, interval)
    starts = interval * np.arange(len(means))
    with styled():
        figure = Figure(figsize=(6.8, 4.6))
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
        top.grid(visible=False)
        image = top.imshow(q.T, aspect="auto", interpolation="nearest", cmap="Greys", origin="lower",
                           extent=(-0.5, len(q) - 0.5, 0.5, q.shape[1] + 0.5))  # fmt: skip
        figure.colorbar(image, ax=top, label="weight $q_t^n$", shrink=0.9)
        top.yaxis.get_major_locator().set_params(integer=True)
        top.set_ylabel("client $n$")
        for start in starts[1:]:
            top.axvline(start - 0.5, color=COLORS[0], linewidth=0.6, alpha=0.6)
        edges = interval * np.arange(len(means) + 1)
        bottom.stairs(means.max(axis=1), edges, baseline=None, color=COLORS[1], label="largest", linewidth=1.6)
        bottom.stairs(
            means.min(axis=1), edges, baseline=None, color=COLORS[0], label="smallest", linewidth=1.6, linestyle="--"
        )
        bottom.axhline(1 / q.shape[1], color="black", linewidth=0.8, linestyle=":", label="$1/N$")
        bottom.set_ylabel("mean weight\nper window")
        bottom.set_xlabel("round $t$")
        bottom.margins(y=0.35)
        bottom.legend(ncols=3, loc="upper right")
        top.set_title(f"Participation of {q.shape[1]} clients, windows of {interval} rounds")
    return Picture(
        figure,
        f"Weights of {q.shape[1]} clients over {len(q)} rounds (above) and the largest and smallest mean weight of a "
        f"client over each window of {interval} rounds (below); equal means make the window divergence vanish.",
        f"Timeline of participation; window means range from {means.min():.3g} to {means.max():.3g}.",
        [
            Curve("largest window mean", starts.astype(float), means.max(axis=1)),
            Curve("smallest window mean", starts.astype(float), means.min(axis=1)),
            Curve("participants", np.arange(len(q), dtype=float), (q > 0).sum(axis=1).astype(float)),
        ],
        provenance or {},
    )
