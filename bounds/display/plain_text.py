"""Numbers as text for people."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of characters
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")


def number(value: Any) -> str:
    """A number for people: six digits, integers whole, vectors shortened."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return ", ".join(number(v) for v in value[:8]) + (f", ... ({len(value)} values)" if len(value) > 8 else "")
    return f"{value:.6g}"


def both_sides(left: float, right: float, between: str = " against ") -> str:
    """Two numbers for people, with as many digits as show that they differ.

    Example:
        >>> both_sides(0.25, 1.0), both_sides(1.0000000001, 1.0)
        ('0.25 against 1', '1.0000000001 against 1')
    """
    texts = [number(left), number(right)]
    if left != right and texts[0] == texts[1]:
        pairs = ([f"{value:.{digits}g}" for value in (left, right)] for digits in range(7, 18))
        texts = next(pair for pair in pairs if pair[0] != pair[1])
    return between.join(texts)


def as_cell(value: Any) -> Any:
    """A cell of a CSV file: text that a spreadsheet would take for a formula begins with an apostrophe.

    Example:
        >>> as_cell("=1+1"), as_cell("-0.5"), as_cell("fedau")
        ("'=1+1", '-0.5', 'fedau')
    """
    if not isinstance(value, str) or value[:1] not in tuple("=+-@\t\r"):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def visible(text: str) -> str:
    r"""Text in which characters that do not print, or that turn the direction of others, are written out."""
    return _UNUSUAL.sub(lambda c: repr(c[0])[1:-1] if unicodedata.category(c[0]) in HIDDEN else c[0], text)


def number_to(side: str, value: float, digits: int = 6) -> str:
    """A number for people that is no larger (side "below") or no smaller ("above"), so that what holds of all numbers
    on that side of the value holds of what is printed.
    """
    nearest = f"{value:.{digits}g}"
    if not math.isfinite(value) or math.isclose(float(nearest), value, rel_tol=1e-15):  # a few units in the last place
        return nearest
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

    rounding = ROUND_FLOOR if side == "below" else ROUND_CEILING
    return f"{float(Context(digits, rounding).create_decimal(Decimal(value))):.{digits}g}"


def whole_to(side: str, value: float) -> str:
    """The nearest whole number on that side, with all of its digits."""
    if not math.isfinite(value):
        return f"{value:g}"
    nearest = round(value)
    if math.isclose(nearest, value, rel_tol=1e-12):
        return str(nearest)
    return str(math.floor(value) if side == "below" else math.ceil(value))
