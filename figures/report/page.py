"""Documents as self-contained HTML: no script, no network, formulas in MathML.

The templates beside this module show documents of plain values; a number has its full value in `<data value=...>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.mathml import mathml
from fedbounds.bounds.display.plain_text import number, visible
from fedbounds.bounds.display.tables import format_cell
from fedbounds.bounds.inputs.output_files import REPORT, Output, write_outputs
from fedbounds.figures.explorer.document import package_text

DOCUMENT = "report.json"
FORMULA = re.compile(r"(?<!\\)\$((?:[^$\n\\]|\\[^$])+)\$")  # a dollar after a backslash is one
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
LONG = 900  # symbols of a caption from which on it is folded away


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("fedbounds.figures.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"value": value, "formula": formula, "inline": inline, "prose": prose, "slug": slug}
    return found


def page(template: str, document: Mapping[str, Any]) -> str:
    """A whole page by a template, the name of a file beside this module."""
    style = Markup(package_text("fedbounds.figures.report", "report.css"))
    return visible(_templates().get_template(template).render(document, style=style))


def report_outputs(folder: Path) -> tuple[Output, Output]:
    """The page of a report and its document."""
    return Output(folder / "index.html"), Output(folder / DOCUMENT, REPORT)


def write_report(folder: Path, template: str, document: Mapping[str, Any], force: bool) -> list[Path]:
    """Write a page and, beside it, the document that it shows."""
    whole = {"schema": "fedbounds.report/1", "version": __version__, **document}
    texts = page(template, whole), json.dumps(whole, indent=1) + "\n"
    write_outputs(report_outputs(folder), [text.encode() for text in texts], force)
    return [output.path for output in report_outputs(folder)]


def fragment(macro: str, *arguments: Any) -> str:
    """A part of a page by a macro of `parts.html`, safe inside Markdown: no empty line, no dollar."""
    made = getattr(_templates().get_template("parts.html").module, macro)(*arguments)
    return visible("\n".join(line for line in str(made).splitlines() if line.strip())).replace("$", "&#36;")


def value(shown: Any) -> Markup:
    """A value in words; numbers with their full value.

    Example:
        >>> print(value(1 / 3), value([1, 2.5]), value("<b>"), value(True))
        <data value="0.3333333333333333">0.333333</data> <data value="[1, 2.5]">1, 2.5</data> &lt;b&gt; yes
    """
    several = isinstance(shown, list) and shown and all(_is_number(one) for one in shown)
    if several or _is_number(shown):
        return Markup('<data value="{}">{}</data>').format(shown, number(shown))
    return escape(format_cell(shown))


def _is_number(shown: Any) -> bool:
    return isinstance(shown, int | float) and not isinstance(shown, bool)


def formula(tex: str) -> Markup:
    """A displayed formula."""
    return Markup(mathml(tex, "block"))


def inline(tex: str) -> Markup:
    """A formula in a line."""
    return Markup(mathml(tex))


def prose(text: str) -> Markup:
    r"""Plain text with formulas between dollars.

    Example:
        >>> print(prose("a < b, $\\gamma$, 5$ and 6$"))
        a &lt; b, <math display="inline"><mrow><mi>γ</mi></mrow></math>, 5$ and 6$
    """
    parts = FORMULA.split(text)
    plain = (escape(part.replace(r"\$", "$")) for part in parts[::2])
    typeset = map(_typeset, parts[1::2])
    return Markup("").join(piece for pair in zip_longest(plain, typeset, fillvalue=Markup("")) for piece in pair)


def _typeset(tex: str) -> Markup:
    try:
        return inline(tex) if tex == tex.strip() else escape(f"${tex}$")
    except Exception:  # the converter raises many types
        return escape(f"${tex}$")


def slug(text: str) -> str:
    """A text as the name of a file or an anchor.

    Example:
        >>> slug("fedau/theorem-2[sharp:mean-Q]")
        'fedau-theorem-2-sharp-mean-Q'
    """
    return UNSAFE.sub("-", text).strip("-.") or "unnamed"


def figure_of(image: Path, caption: str, alternative: str, verdicts: str = "") -> dict[str, Any]:
    """The arguments of the macro `figure`: an image beside the page, and its data."""
    return {
        "image": image.name,
        "data": image.with_suffix(".csv").name,
        "manifest": image.with_suffix(".json").name,
        "caption": caption[:1].upper() + caption[1:],
        "alternative": FORMULA.sub(r"\1", alternative),
        "long": len(caption) > LONG,
        "verdicts": verdicts,
    }


def software() -> str:
    """The BibTeX entry of fedbounds, which a report lists beside the papers'."""
    lines = {
        "title": "fedbounds: convergence theory of federated learning that you can run",
        "author": "{The fedbounds authors}",
        "version": __version__,
        "note": "Apache-2.0",
    }
    entries = ",\n".join(f"  {name:<7} = {{{text}}}" for name, text in lines.items())
    return f"@software{{fedbounds,\n{entries}\n}}"
