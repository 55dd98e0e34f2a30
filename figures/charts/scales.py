"""Data sets and scales of image experiments, by name and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from fedbounds.bounds.errors import unknown_name
from fedbounds.empirical.sweep import Sweep, resolve


class Fields(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


ScaleT = TypeVar("ScaleT", bound=Fields)


def scale_named(scales: Mapping[str, ScaleT], dataset: str, network: str | None = None) -> ScaleT:
    """The scale of a data set, with another network if one is given."""
    if dataset not in scales:
        raise unknown_name("data set", dataset, scales)
    return scales[dataset] if network is None else replace(scales[dataset], network=network)


def sweep_of(name: str, documents: Iterable[Mapping[str, Any]]) -> Sweep:
    """One sweep of the tasks of several documents."""
    return Sweep(name, tuple(task for document in documents for task in resolve(document, name).tasks), name)


def with_data(problem: dict[str, Any], data: str | None) -> dict[str, Any]:
    """A problem with the directory of its local files, if there is one."""
    return problem if data is None else {**problem, "data": data}


def images_of(dataset: str, size: tuple[int, int] | None) -> str | dict[str, Any]:
    """A data set as specifications have it: a name, or a table with the numbers of generated images.

    Example:
        >>> images_of("digits", None), images_of("glyphs", (3000, 1000))
        ('digits', {'kind': 'glyphs', 'train': 3000, 'test': 1000})
    """
    return dataset if size is None else {"kind": dataset, "train": size[0], "test": size[1]}


def describe_images(dataset: str, size: tuple[int, int] | None) -> str:
    """The data set for captions.

    Example:
        >>> describe_images("glyphs", (3000, 1000))
        'glyphs (3,000 images, 1,000 for tests)'
    """
    return dataset if size is None else f"{dataset} ({size[0]:,} images, {size[1]:,} for tests)"
