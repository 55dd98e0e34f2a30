"""Documents of theorem files: where their keys stand, and values of the right kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote


class Document:
    """A document with the places of its keys, for messages."""

    def __init__(self, path: str, text: str = "") -> None:
        self.path, self.lines = path, text.splitlines()

    def fault(self, keys: Sequence[str], what: str) -> FedboundsError:
        """An error that names the line of a key."""
        line = self.line(keys)
        where = f"{self.path}, line {line}" if line else self.path
        return FedboundsError(f"{where}: {'.'.join(keys)}: {what}" if keys else f"{where}: {what}")

    def line(self, keys: Sequence[str]) -> int:
        """The line of a key, or of the innermost table or key around it that has one; 0 without a text."""
        best, depth, table = 0, -1, []
        for number, line in enumerate(self.lines, start=1):
            header = re.match(r"\s*\[+([^\]]+)\]+\s*(#.*)?$", line)
            if header:
                table, here = _key_parts(header[1]), _key_parts(header[1])
            elif assigned := re.match(
                r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""", line
            ):
                here = [*table, *_key_parts(assigned[1])]
            else:
                continue
            if here == list(keys[: len(here)]) and len(here) > depth:
                best, depth = number, len(here)
        return best

    def text(self, place: Sequence[str], value: Any) -> str:
        """A text."""
        if not isinstance(value, str):
            raise self.fault(place, f"{quote(value)} must be a text in quotes")
        return value

    def texts(self, place: Sequence[str], value: Any) -> Iterable[str]:
        """A list of texts."""
        if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
            raise self.fault(place, f"{quote(value)} must be a list of texts")
        return value

    def flag(self, place: Sequence[str], value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.fault(place, f"{quote(value)} must be true or false")
        return value

    def choice(self, place: Sequence[str], value: Any, choices: Sequence[str]) -> str:
        """One of these texts."""
        if value not in choices:
            raise self.fault(place, f"{quote(value)} must be one of {', '.join(choices)}")
        return value

    def latex(self, place: Sequence[str], given: Any) -> str:
        """LaTeX that stands for itself, of commands that every page and document can show."""
        from fedbounds.bounds.display.mathml import mathml  # few files need it

        text = self.text(place, given)
        try:
            shown = re.sub(r"<[^>]*>", "", mathml(text))
        except FedboundsError as error:
            raise self.fault(place, f"{error}; write mathematics, e.g. '\\hat\\sigma'") from None
        if not shown or not _closed(text) or re.search(r"(?<!\\)[$#%&\n]|\\$", text):
            raise self.fault(place, f"{quote(text)} must be one formula, without $, # and &, e.g. '\\hat\\sigma'")
        return text

    def bibtex(self, given: Any) -> str:
        """BibTeX entries, as whole as can be told without reading their fields."""
        text = self.text(["bibtex"], given)
        entries = re.fullmatch(r"@\w+\s*\{[^\s,{}]+\s*(,.*)?\}", text.strip(), re.DOTALL)
        if text.strip() and not (entries and _closed(text)):
            raise self.fault(["bibtex"], f"{quote(text)} must be an entry @TYPE{{KEY, ...}}, with as many {{ as }}")
        return text

    def refuse_unknown(self, place: Sequence[str], row: Mapping[str, Any], known: Sequence[str]) -> None:
        """Refuse a table with a key that it does not have."""
        for key in row:
            if key not in known:
                raise self.fault([*place, key], str(unknown_name("key", key, known)))

    def refuse_other_keys(self, place: Sequence[str], value: Any) -> None:
        """Refuse keys that are no texts, which no file has."""
        if isinstance(value, Mapping):
            for key, inside in value.items():
                if not isinstance(key, str):
                    raise self.fault(place, f"the key {quote(key)} must be a text")
                self.refuse_other_keys([*place, key], inside)
        elif isinstance(value, list | tuple):
            for inside in value:
                self.refuse_other_keys(place, inside)


def _key_parts(text: str) -> list[str]:
    """The parts of a dotted key."""
    return [a or b or c for a, b, c in re.findall(r""""([^"]*)"|'([^']*)'|([\w-]+)""", text)]


def _closed(text: str) -> bool:
    """Whether every brace of LaTeX or BibTeX that is opened is closed."""
    depth = 0
    for brace in re.finditer(r"(?<!\\)[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if depth < 0:
            return False
    return not depth
