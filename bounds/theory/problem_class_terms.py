"""The vocabulary of settings: the kinds on each axis, with their meanings and phrases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    special_cases: tuple[tuple[str, ...], ...] = ()  # chains in which every kind is a special case of the next

    def with_special_cases(self, kinds: Iterable[str]) -> tuple[str, ...]:
        """These kinds and all their special cases, in order: a theorem for these holds for them.

        Example:
            >>> AXES["heterogeneity"].with_special_cases(["relative"])
            ('none', 'bounded', 'relative')
        """
        found, size = set(kinds), 0
        while size < len(found):
            size = len(found)
            found |= {one for chain in self.special_cases for one, next_ in pairwise(chain) if next_ in found}
        return tuple(kind for kind in self.kinds if kind in found)


def _axis(
    name: str,
    question: str,
    kinds: Mapping[str, Mapping[str, Any]],
    usual: str = "",
    special_cases: Sequence[str] = (),
) -> Axis:
    made = {kind: Kind(kind, said["meaning"], tuple(said["phrases"])) for kind, said in kinds.items()}
    return Axis(name, question, made, usual, tuple(tuple(chain.split()) for chain in special_cases))


_DOCUMENT = read_data_file(__file__)
AXES: Mapping[str, Axis] = {name: _axis(name, **axis) for name, axis in _DOCUMENT["axis"].items()}
# Phrases that leave several kinds.
GROUPS: Mapping[str, tuple[str, str]] = {
    phrase: (group["axis"], group["kinds"]) for group in _DOCUMENT["group"] for phrase in group["phrases"]
}
FILLERS = frozenset(_DOCUMENT["fillers"].split())
