"""Settings in plain terms: which properties of problem, clients and messages decide whether an assumption holds.

An `Axis` is one question, and its *kinds* are the answers. A `ProblemClass` leaves the possible kinds on every axis; a
`Cover` names the kinds for which an assumption holds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.theory.problem_class_terms import AXES, FILLERS, GROUPS, Axis

YES, PERHAPS, NO = 2, 1, 0
LONGEST = 5  # words of an unknown phrase that are named
By = Literal["setting", "method", "you"]
Box = tuple[tuple[str, frozenset[str]], ...]


def axis(name: str) -> Axis:
    """The axis with this name."""
    if name not in AXES:
        raise unknown_name("property of a setting", name, AXES)
    return AXES[name]


def check_axis_kinds(name: str, kinds: Iterable[str]) -> tuple[str, ...]:
    """These kinds of one axis, in its order."""
    known, wanted = axis(name), set(kinds)
    for kind in wanted - set(known.kinds):
        raise unknown_name(f"kind of {name}", kind, known.kinds)
    if not wanted:
        raise FedboundsError(f"no kind of {name} is left")
    return tuple(kind for kind in known.kinds if kind in wanted)


def box(**kinds: str) -> Box:
    """The settings in which every named axis has one of these kinds, separated by blanks.

    Example:
        >>> box(participation="all cyclic")
        (('participation', frozenset({...})),)
    """
    named = {name.replace("_", "-"): listed.split() for name, listed in sorted(kinds.items())}
    return tuple((name, frozenset(check_axis_kinds(name, listed))) for name, listed in named.items())


@dataclass(frozen=True)
class Cover:
    r"""For which settings an assumption holds.

    Example:
        >>> full = Cover((box(participation="all"),))
        >>> full.level(ProblemClass.of("full participation")), full.level(ProblemClass.of("unknown rates"))
        (2, 0)
    """

    holds: tuple[Box, ...] = ()  # wherever the setting lies in one of these boxes
    perhaps: tuple[Box, ...] = ()  # where it may hold and no property of the vocabulary decides it
    # who sees to it: the "setting"; the "method", which is run that way; or "you", who answer for it
    by: By = "setting"

    def levels(self) -> np.ndarray:
        """2 where it holds, 1 where perhaps, else 0: one dimension for each axis, of length 1 where it says nothing."""
        return _levels(self)

    def level(self, setting: ProblemClass) -> int:
        """The least over all that the setting may be."""
        return int(restrict_levels(self.levels(), setting).min())


@cache
def _levels(cover: Cover) -> np.ndarray:
    boxes = (*cover.holds, *cover.perhaps)
    touched = {name for one in boxes for name, _ in one}
    table = np.zeros([len(a.kinds) if a.name in touched else 1 for a in AXES.values()], dtype=np.uint8)
    for value, listed in ((PERHAPS, cover.perhaps), (YES, cover.holds)):
        for one in listed:
            kinds = dict(one)
            picked = [
                [i for i, kind in enumerate(a.kinds) if kind in kinds.get(a.name, a.kinds)]
                if a.name in touched
                else [0]
                for a in AXES.values()
            ]
            table[np.ix_(*picked)] = value
    table.flags.writeable = False
    return table


def restrict_levels(levels: np.ndarray, setting: ProblemClass) -> np.ndarray:
    """The part of a table of levels that a setting leaves possible."""
    for place, (size, known) in enumerate(zip(levels.shape, AXES.values(), strict=True)):
        if size > 1 and len(kinds := setting.kinds(known.name)) < size:
            levels = levels.take([i for i, kind in enumerate(known.kinds) if kind in kinds], axis=place)
    return levels


ANYWHERE: Box = ()
METHOD = Cover((ANYWHERE,), by="method")  # the algorithm is run so
ASKED = Cover((), (ANYWHERE,), by="you")  # nothing in the vocabulary decides it
NOWHERE = Cover()  # as for assumptions that are not stated here


def where(*holds: Box, perhaps: Iterable[Box] = (), by: By = "setting") -> Cover:
    """A cover by its boxes."""
    return Cover(holds, tuple(perhaps), by)


@dataclass(frozen=True)
class ProblemClass:
    """What is known of somebody's setting."""

    said: Mapping[str, tuple[str, ...]]  # by the name of the axis, the kinds that are possible after what was said

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", {name: check_axis_kinds(name, kinds) for name, kinds in self.said.items()})

    @staticmethod
    def of(text: str) -> ProblemClass:
        """The setting that a text describes: phrases of the vocabulary, or AXIS=KIND, in any order.

        Example:
            >>> ProblemClass.of("participation=all non-iid").said
            {'participation': ('all',), 'heterogeneity': ('bounded', 'relative', 'unbounded')}
            >>> ProblemClass.of("vertical, horizontal")
            Traceback (most recent call last):
                ...
            fedbounds.bounds.errors.FedboundsError: the setting contradicts itself: 'horizontal' after 'vertical' ...
        """
        found: dict[str, tuple[str, ...]] = {}
        before: dict[str, str] = {}
        for phrase, name, kinds in _read(text):
            left = [kind for kind in found.get(name, axis(name).kinds) if kind in kinds]
            if not left:
                raise FedboundsError(
                    f"the setting contradicts itself: {phrase!r} after {before[name]!r} leaves no kind of {name}"
                )
            found[name], before[name] = tuple(left), phrase
        return ProblemClass(found)

    def kinds(self, name: str) -> tuple[str, ...]:
        """What is possible on an axis: what was said, else what is usual, else everything."""
        known = axis(name)
        return self.said.get(name) or ((known.usual,) if known.usual else tuple(known.kinds))

    @property
    def supposed(self) -> dict[str, str]:
        """What is taken for granted because it is usual and nothing else was said."""
        return {a.name: a.usual for a in AXES.values() if a.usual and a.name not in self.said}

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The axes of which nothing was said and nothing is usual."""
        return tuple(a.name for a in AXES.values() if not a.usual and a.name not in self.said)

    @property
    def text(self) -> str:
        """What was said, as `Setting.of` reads it where one kind of an axis is left."""
        return ", ".join(f"{name}={' or '.join(kinds)}" for name, kinds in self.said.items()) or "nothing"


# --- Reading --------------------------------------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    """Lower case, without punctuation; "non-convex", "non convex" and "nonconvex" are one word."""
    plain = re.sub(r"[^a-z0-9=]+", " ", text.lower())
    return re.sub(r"\bnon (?=[a-z])", "non", plain).split()


@cache
def phrases() -> dict[tuple[str, ...], tuple[str, tuple[str, ...]]]:
    """Every phrase, as its words, with its axis and the kinds it leaves.

    Example:
        >>> phrases()["full", "participation"]
        ('participation', ('all',))
    """
    table: dict[tuple[str, ...], tuple[str, tuple[str, ...]]] = {}
    one = [(p, a.name, (k.name,)) for a in AXES.values() for k in a.kinds.values() for p in k.phrases]
    several = [(p, name, check_axis_kinds(name, kinds.split())) for p, (name, kinds) in GROUPS.items()]
    for phrase, name, kinds in (*one, *several):
        words = tuple(_words(phrase))
        if table.setdefault(words, (name, kinds)) != (name, kinds):
            raise FedboundsError(f"the phrase {phrase!r} means two things")
    return table


def _read(text: str) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """The phrases of a text, the longest first from the left, each with its axis and kinds."""
    pieces = [piece for piece in re.split(r"[,;]|\band\b", text) if piece.strip()]
    for piece in pieces:
        for part in _split_assignments(piece):
            name, equals, kind = part.partition("=")
            if equals:
                named = [k for one in re.split(r"\s+or\s+", kind.strip()) for k in _kinds_called(name.strip(), one)]
                yield part, name.strip(), check_axis_kinds(name.strip(), named)
            else:
                yield from _phrases_in(part)


def _kinds_called(name: str, kind: str) -> tuple[str, ...]:
    """The kinds of an axis that a phrase names, where it is no kind itself."""
    of, kinds = phrases().get(tuple(_words(kind)), ("", ()))
    return kinds if of == name and kind not in axis(name).kinds else (kind,)


def _split_assignments(piece: str) -> list[str]:
    """A piece of text cut around each AXIS=KIND."""
    parts = re.split(r"([a-z-]+\s*=\s*[a-z-]+(?:\s+or\s+[a-z-]+)*)", piece)
    return [part for part in parts if part.strip()]


def _phrases_in(text: str) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    words, known = _words(text), phrases()
    longest = max(map(len, known))
    at = 0
    while at < len(words):
        size = next((n for n in range(longest, 0, -1) if tuple(words[at : at + n]) in known), 0)
        if size:
            yield " ".join(words[at : at + size]), *known[tuple(words[at : at + size])]
            at += size
        elif words[at] in FILLERS:
            at += 1
        else:
            raise _unknown(words[at:])


def _unknown(words: list[str]) -> FedboundsError:
    """The error for words that begin no phrase, with phrases of these words or similar ones and their meanings."""
    texts = {" ".join(phrase): phrase for phrase in phrases()}
    inside = [t for t, phrase in texts.items() if len(phrase) > 1 and {*phrase} <= {*words[:LONGEST]}]
    shown = [f"{text} ({_meaning(*phrases()[texts[text]])})" for text in inside]
    if not inside:
        tried = [" ".join(words[:n]) for n in (3, 2, 1)]
        near = dict.fromkeys(m for t in tried for m in difflib.get_close_matches(t, texts, n=2, cutoff=0.6))
        shown = [*near | dict.fromkeys(t for t in texts if words[0] in t.split())][:4]
    hint = f"; did you mean {' or '.join(shown)}?" if shown else ""
    return FedboundsError(
        f"unknown property of a setting {' '.join(words[:LONGEST])!r}{hint} "
        "(fedbounds covers without arguments lists all properties)"
    )


def _meaning(name: str, kinds: Sequence[str]) -> str:
    """What a phrase says, in words."""
    return f"{name}: {axis(name).kinds[kinds[0]].meaning if len(kinds) == 1 else ' or '.join(kinds)}"
