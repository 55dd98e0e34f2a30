"""A sheet of training images of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedbounds.empirical.data.datasets import Dataset, checksum
from fedbounds.figures.charts.picture import Curve, Picture, new_figure

_COLUMNS, _TILES = 12, 120


def sheet(dataset: Dataset, provenance: dict[str, Any] | None = None) -> Picture:
    """The first training images of each class; the data of the picture are the class sizes.

    Images with other channels than gray or colors: all channels of one image of each class, a row for each.
    """
    labels, views = dataset.train_labels, dataset.image[0] not in (1, 3)
    each = 1 if views else max(1, _TILES // dataset.classes)
    chosen = np.concatenate([np.flatnonzero(labels == label)[:each] for label in range(dataset.classes)])
    channels, high, wide = dataset.image
    columns = channels if views else _COLUMNS
    count, channels = (len(chosen) * channels, 1) if views else (len(chosen), channels)
    rows = -(-count // columns)
    tiles = np.full((rows * columns, channels, high, wide), 255, dtype=np.uint8)
    darkest = 0.0 if dataset.in_bytes else float(dataset.train_images[chosen].min())
    brightest = max(float((dataset.train_images if dataset.in_bytes else dataset.train_images[chosen]).max()), 1.0)
    chosen_images = dataset.train_images[chosen].reshape(count, channels, high, wide)
    tiles[:count] = (chosen_images - darkest) * 255 // (brightest - darkest)  # the digits' is 16
    grid = tiles.reshape(rows, columns, channels, high, wide).transpose(0, 3, 1, 4, 2)
    image = grid.reshape(rows * high, columns * wide, channels)
    with new_figure(6.0, 6.0 * rows * high / (columns * wide)) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.imshow(image if channels == 3 else image[..., 0], cmap="gray", vmin=0, vmax=255, interpolation="nearest",
                    aspect="auto")  # fmt: skip
    sizes = np.bincount(labels, minlength=dataset.classes).astype(float)
    classes = np.arange(dataset.classes, dtype=float)
    return Picture(
        figure,
        f"{dataset.name}: {f'the {columns} channels of one' if views else each} of the training images of each of "
        f"{dataset.classes} classes, {len(labels)} in all, "
        f"of {high} x {wide} pixels.",
        f"A sheet of {count} small images, class by class.",
        (Curve("training images of each class", classes, sizes),),
        {"checksum": checksum(dataset), **(provenance or {})},
    )
