"""LaTeX formulas as MathML, which browsers draw without a script."""

from __future__ import annotations

import html
import re
import unicodedata
from contextlib import suppress

from latex2mathml.converter import convert

CODE = re.compile(r"&#x0*+(?!26;|3[CE];)[0-9A-F]+;")
# browsers draw letters of a style only where they are characters of their own
STYLED = re.compile(r'<mi mathvariant="(bold|script|double-struck)">([A-Za-z])</mi>')


def _styled(letter: re.Match[str]) -> str:
    style, name = letter[1].upper(), f"{'CAPITAL' if letter[2].isupper() else 'SMALL'} {letter[2].upper()}"
    for start in (f"MATHEMATICAL {style}", style):  # some are older than the rest of their alphabet
        with suppress(KeyError):
            return f"<mi>{unicodedata.lookup(f'{start} {name}')}</mi>"
    return letter[0]


def mathml(tex: str, display: str = "inline") -> str:
    r"""A formula in MathML.

    Raises:
        ValueError: it has a command that MathML was not found for.

    Example:
        >>> mathml(r"\mathbb E \gamma < 1")
        '<math display="inline"><mrow><mi>𝔼</mi><mi>γ</mi><mo>&#x0003C;</mo><mn>1</mn></mrow></math>'
    """
    found = convert(tex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    if unknown := re.search(r">\s*(\\\w+)", found):
        raise ValueError(f"no MathML for {unknown[1]} in {tex!r}")
    found = STYLED.sub(_styled, found)
    return CODE.sub(lambda code: html.unescape(code[0]), found)  # letters for their codes, but for those of markup
