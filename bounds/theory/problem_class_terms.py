"""The vocabulary of settings: the kinds on each axis, with their meanings and phrases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedbounds.bounds.inputs.data_files import read_data_file


@dataclass(frozen=True)
class Kind:
    """One kind on an axis: its name, its meaning, and the phrases for it."""

    name: str
    meaning: str
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Axis:
    """One property of a setting."""

    name: str  # as in AXIS=KIND
    question: str  # the property as a phrase
    kinds: Mapping[str, Kind]  # by name, in order
    usual: str = ""  # the default kind, which the output names ("" for none)


def _axis(name: str, question: str, kinds: Mapping[str, Mapping[str, Any]], usual: str = "") -> Axis:
    made = {kind: Kind(kind, said["meaning"], tuple(said["phrases"])) for kind, said in kinds.items()}
    return Axis(name, question, made, usual)


_DOCUMENT = read_data_file(__file__)
AXES: Mapping[str, Axis] = {name: _axis(name, **axis) for name, axis in _DOCUMENT["axis"].items()}
# Phrases that leave several kinds.
GROUPS: Mapping[str, tuple[str, str]] = {
    phrase: (group["axis"], group["kinds"]) for group in _DOCUMENT["group"] for phrase in group["phrases"]
}
FILLERS = frozenset(_DOCUMENT["fillers"].split())
