"""LaTeX formulas as MathML, which browsers draw without a script."""

from __future__ import annotations

import html
import re
import unicodedata
from contextlib import suppress
from xml.etree import ElementTree

from latex2mathml.converter import convert

from fedbounds.bounds.display.plain_text import visible
from fedbounds.bounds.display.tables import SIGNS, TEX
from fedbounds.bounds.errors import FedboundsError

# the elements and attributes of a formula; others are an error
ELEMENTS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mpadded", "mphantom", "menclose"),
    *("mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd"),
}
ATTRIBUTES = {
    *("accent", "accentunder", "depth", "display", "displaystyle", "fence", "form", "height", "linethickness"),
    *("lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rspace", "scriptlevel"),
    *("separator", "stretchy", "symmetric", "voffset", "width", "columnalign", "columnlines", "columnspacing"),
    *("rowlines", "rowspacing"),
}
# browsers draw letters of a style only where they are characters of their own
STYLED = re.compile(r'<mi mathvariant="(bold|script|double-struck)">([A-Za-z])</mi>')
# plain text as `fedbounds.bounds.display.tables.tex` writes it; the converter knows none of this in \\text
ESCAPED = {said: symbol for symbol, said in (TEX | SIGNS).items()}
ESCAPE = re.compile("|".join(map(re.escape, sorted(ESCAPED, key=len, reverse=True))))
PLAIN = re.compile(rf"\\text\{{((?:{ESCAPE.pattern}|[^{{}}\\$<>&])*)\}}")
GUARDED = {ord(c): 0xE000 + ord(c) for c in "\\{}$&#_%^~<>|"}  # to characters for private use, which pass the converter
UNGUARDED = {private: symbol for symbol, private in GUARDED.items()}


def _guard(plain: re.Match[str]) -> str:
    text = ESCAPE.sub(lambda said: ESCAPED[said[0]], plain[1])
    shown = (visible(c) if c < " " else c for c in text)
    return rf"\text{{{''.join(shown).translate(GUARDED)}}}"


def _escape_text(said: str | None) -> str:
    return html.escape((said or "").translate(UNGUARDED), quote=False)


def _style_letter(symbol: re.Match[str]) -> str:
    style, name = symbol[1].upper(), f"{'CAPITAL' if symbol[2].isupper() else 'SMALL'} {symbol[2].upper()}"
    for start in (f"MATHEMATICAL {style}", style):  # some are older than the rest of their alphabet
        with suppress(KeyError):
            return f"<mi>{unicodedata.lookup(f'{start} {name}')}</mi>"
    return symbol[0]


def mathml(tex: str, display: str = "inline") -> str:
    r"""A formula in MathML, with elements and attributes of formulas only; anything else is an error.

    Example:
        >>> mathml(r"\mathbb E \gamma < 1")
        '<math display="inline"><mrow><mi>𝔼</mi><mi>γ</mi><mo>&lt;</mo><mn>1</mn></mrow></math>'
        >>> mathml(r"\text{<script>alert(1)</script>}")
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: <script> is no part of a formula: '\\text{<script>alert(1)</script>}'
    """
    try:
        found = convert(PLAIN.sub(_guard, tex), display=display).replace(
            ' xmlns="http://www.w3.org/1998/Math/MathML"', ""
        )
        root = ElementTree.fromstring(found)
    except Exception as error:  # the converter and the parser raise many types
        raise FedboundsError(f"no formula: {tex!r} ({type(error).__name__})") from None
    if unknown := re.search(r">\s*(\\\w+)", found):
        raise FedboundsError(f"no MathML for {unknown[1]} in {tex!r}")
    return STYLED.sub(_style_letter, _markup(root, tex))


def _markup(element: ElementTree.Element, tex: str) -> str:
    """An element of a formula with its content, text escaped."""
    if element.tag not in ELEMENTS:
        raise FedboundsError(f"<{element.tag}> is no part of a formula: {tex!r}")
    if other := element.attrib.keys() - ATTRIBUTES:
        raise FedboundsError(f"the attribute {min(other)} is none of formulas: {tex!r}")
    said = "".join(f' {name}="{html.escape(value)}"' for name, value in element.attrib.items())
    inside = _escape_text(element.text) + "".join(_markup(child, tex) + _escape_text(child.tail) for child in element)
    return f"<{element.tag}{said}>{inside}</{element.tag}>"
