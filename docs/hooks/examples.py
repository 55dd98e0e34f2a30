"""An extension of griffe: sections titled `Example:` are rendered as code, like `Examples:`."""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Renames the section before the docstring is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each module, class and function."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
