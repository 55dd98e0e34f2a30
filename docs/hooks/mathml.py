"""A hook of mkdocs: formulas become MathML while the site is built, so that its pages need no script and no network."""

from __future__ import annotations

import html
import re
from typing import Any

from fedbounds.bounds.explorer.mathml import mathml

FORMULA = re.compile(r'(<(span|div) class="arithmatex">)\\[(\[](.*?)\\[)\]](</\2>)', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Called by mkdocs with each page's HTML; returns it with its formulas typeset."""
    return FORMULA.sub(typeset, content)


def typeset(formula: re.Match[str]) -> str:
    """One formula in MathML; one that has none stops the build."""
    start, tag, tex, end = formula.groups()
    return f"{start}{mathml(html.unescape(tex), 'inline' if tag == 'span' else 'block')}{end}"
