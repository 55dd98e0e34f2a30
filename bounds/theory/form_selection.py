"""Choosing a form of a result by its name or its kind."""

from __future__ import annotations

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
