"""A hook of mkdocs: formulas become MathML while the site is built, so that its pages need no script and no network."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'(<(span|div) class="arithmatex">)\\[(\[](.*?)\\[)\]](</\2>)', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Called by mkdocs with each page's HTML; returns it with its formulas typeset."""
    return FORMULA.sub(typeset, content)


def typeset(formula: re.Match[str]) -> str:
    """One formula in MathML.

    Raises:
        ValueError: it has a command that MathML was not found for; the build stops.
    """
    start, tag, tex, end = formula.groups()
    mathml = convert(html.unescape(tex), display="inline" if tag == "span" else "block")
    if unknown := re.search(r">\s*(\\\w+)", mathml):
        raise ValueError(f"no MathML for {unknown[1]} in {tex!r}")
    return f"{start}{mathml}{end}"
