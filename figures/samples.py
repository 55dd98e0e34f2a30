"""A sheet of images of a data set: what the classes look like, and how hard they are to tell."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedbounds.empirical.datasets import Dataset, checksum
from fedbounds.figures.picture import Curve, Picture, styled

_COLUMNS, _TILES = 12, 120


def sheet(dataset: Dataset, provenance: dict[str, Any] | None = None) -> Picture:
    """The first training images of each class, class by class; the data of the picture are the sizes of the classes.

    Args:
        dataset: images and labels.
        provenance: where they come from.

    Example:
        >>> from fedbounds.empirical.datasets import load_dataset
        >>> print(sheet(load_dataset("digits")).caption)
        digits: 12 of the training images of each of 10 classes, 1442 in all, of 8 x 8 pixels.
    """
    each = max(1, _TILES // dataset.classes)
    labels = dataset.train_labels
    chosen = np.concatenate([np.flatnonzero(labels == label)[:each] for label in range(dataset.classes)])
    channels, high, wide = dataset.image
    rows = -(-len(chosen) // _COLUMNS)
    tiles = np.full((rows * _COLUMNS, channels, high, wide), 255, dtype=np.uint8)
    darkest = 0.0 if dataset.in_bytes else float(dataset.train_images[chosen].min())
    brightest = max(float((dataset.train_images if dataset.in_bytes else dataset.train_images[chosen]).max()), 1.0)
    tiles[: len(chosen)] = (dataset.train_images[chosen] - darkest) * 255 // (brightest - darkest)  # the digits' is 16
    grid = tiles.reshape(rows, _COLUMNS, channels, high, wide).transpose(0, 3, 1, 4, 2)
    image = grid.reshape(rows * high, _COLUMNS * wide, channels)
    with styled():
        figure = Figure(figsize=(6.0, 6.0 * rows * high / (_COLUMNS * wide)))
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.imshow(image if channels == 3 else image[..., 0], cmap="gray", vmin=0, vmax=255, interpolation="nearest",
                    aspect="auto")  # fmt: skip
    sizes = np.bincount(labels, minlength=dataset.classes).astype(float)
    classes = np.arange(dataset.classes, dtype=float)
    return Picture(
        figure,
        f"{dataset.name}: {each} of the training images of each of {dataset.classes} classes, {len(labels)} in all, "
        f"of {high} x {wide} pixels.",
        f"A sheet of {len(chosen)} small images, class by class.",
        (Curve("training images of each class", classes, sizes),),
        {"checksum": checksum(dataset), **(provenance or {})},
    )
