"""Numbers as text for people."""

from __future__ import annotations

from typing import Any


def number(value: Any) -> str:
    """A number for people: six digits, integers whole, vectors shortened.

    Example:
        >>> number(0.020833333), number(30.0), number([1.0, 2.5])
        ('0.0208333', '30', '1, 2.5')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return ", ".join(number(v) for v in value[:8]) + (f", ... ({len(value)} values)" if len(value) > 8 else "")
    return f"{value:.6g}"
