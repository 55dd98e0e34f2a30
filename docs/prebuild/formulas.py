"""Formulas become MathML before the site is built, so that its pages need no script and no network."""

from __future__ import annotations

import html
import re

from fedbounds.bounds.display.mathml import mathml

CODE = r"^ *(?P<fence>```+).*?^ *(?P=fence)|(?P<ticks>`+)[^`](?:.*?[^`])??(?P=ticks)(?!`)"
FORMULA = r"^\$\$\n(?P<display>.*?)\n\$\$$|(?<![\\$])\$(?P<inline>[^\s$](?:[^$\n]*?[^\s$\\])?)\$"
EITHER = re.compile(rf"{CODE}|{FORMULA}|(?P<dollar>\\\$)", re.DOTALL | re.MULTILINE)
# what Markdown would take for emphasis, a link, an escape or the border of a cell
MARKS = re.compile(r"[\\`*_\[\]|]")


def typeset(markdown: str) -> str:
    """A page with its formulas in MathML, code left as it is; a formula that has no MathML stops the build."""
    return EITHER.sub(_typeset, markdown)


def _typeset(found: re.Match[str]) -> str:
    if found["display"]:
        return f'<div class="formula" style="overflow-x: auto">{mathml(html.unescape(found["display"]), "block")}</div>'
    if found["dollar"]:
        return "&#36;"
    if found["inline"]:
        inline = mathml(html.unescape(found["inline"]), "inline")
        return f'<span class="formula">{MARKS.sub(lambda mark: f"&#{ord(mark[0])};", inline)}</span>'
    return found[0]
