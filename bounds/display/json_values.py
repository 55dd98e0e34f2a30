"""Values as JSON documents have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def json_value(value: Any) -> Any:
    """A value as JSON knows it; numbers that are not finite become the strings inf, -inf, nan."""
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    if isinstance(value, list | tuple):
        return [json_value(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def attributes(thing: Any, names: str) -> dict[str, Any]:
    """The attributes of a thing by name; the names are separated by blanks."""
    return {name: getattr(thing, name) for name in names.split()}
