"""Choosing a form of a result by its name or its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote


class Named(Protocol):
    """A form of any kind."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def select_form(forms: Sequence[N], key: str, name: str | None, default: str) -> N:
    """The form with this name, else the first form of this kind; without a name the default form."""
    if name is not None and not isinstance(name, str):
        raise FedboundsError(f"form = {quote(name)} must be the name of a form of {key}, as {default!r}")
    wanted = name or default
    for form in forms:
        if form.name == wanted:
            return form
    for form in forms:
        if form.name.partition(":")[0] == wanted:
            return form
    raise unknown_name(f"form of {key}", str(wanted), [form.name for form in forms])


def split_key(word: str) -> tuple[str, str | None]:
    """The key and the form of KEY, KEY:FORM, or KEY[FORM] as it is printed.

    Example:
        >>> split_key("fedau/theorem-2:sharp"), split_key("fedau/theorem-2[sharp:B3]"), split_key("fedau/theorem-2")
        (('fedau/theorem-2', 'sharp'), ('fedau/theorem-2', 'sharp:B3'), ('fedau/theorem-2', None))
    """
    bracketed = re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]", word)
    key, colon, form = (bracketed[1], ":", bracketed[2]) if bracketed else word.partition(":")
    if colon and not form:
        raise FedboundsError(f"the form after {key} is empty; give KEY or KEY:FORM")
    return key, form or None
