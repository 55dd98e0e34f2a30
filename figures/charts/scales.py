"""What the scales of experiments on images have in common: how a data set is named and said, and one for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from fedbounds.bounds.errors import unknown_name


class Fields(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


ScaleT = TypeVar("ScaleT", bound=Fields)


def scale_named(scales: Mapping[str, ScaleT], dataset: str, network: str | None = None) -> ScaleT:
    """The scale of a data set; with another network than its own where one is asked for.

    Raises:
        FedboundsError: no such data set; names those there are.
    """
    if dataset not in scales:
        raise unknown_name("data set", dataset, scales)
    return scales[dataset] if network is None else replace(scales[dataset], network=network)


def images_of(dataset: str, size: tuple[int, int] | None) -> str | dict[str, Any]:
    """A data set as specifications have it: as it is, or with so many images made for training and for tests.

    Example:
        >>> images_of("digits", None), images_of("glyphs", (3000, 1000))
        ('digits', {'kind': 'glyphs', 'train': 3000, 'test': 1000})
    """
    return dataset if size is None else {"kind": dataset, "train": size[0], "test": size[1]}


def images_in_words(dataset: str, size: tuple[int, int] | None) -> str:
    """The same for captions.

    Example:
        >>> images_in_words("glyphs", (3000, 1000))
        'glyphs (3,000 images, 1,000 for tests)'
    """
    return dataset if size is None else f"{dataset} ({size[0]:,} images, {size[1]:,} for tests)"
