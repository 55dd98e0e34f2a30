"""Pages of the explorer: one self-contained file for each paper and one for all."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

from fedbounds.bounds._version import __version__
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_outputs
from fedbounds.bounds.search.effort import Watch
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.registry import paper
from fedbounds.bounds.theory.registry import papers as every_paper
from fedbounds.figures.explorer.document import json_text, measures_document, measures_of, package_text, script

ALL = "index"  # the file of all papers


def explore(
    out: str | Path, papers: Sequence[str] = (), watch: Watch | None = None, *, force: bool = False
) -> list[Path]:
    """Write one HTML file for each paper (default: all), and `index.html` for all of them; return the paths."""
    chosen = [paper(name) for name in papers] or [*every_paper()]
    outputs = [Output(Path(out, f"{name}.html")) for name in (*(one.key for one in chosen), ALL)]
    check_outputs(outputs, force)
    measures = measures_of(chosen)
    scripts: dict[str, str] = {}
    for one in chosen:
        scripts[one.key] = script(one, measures)
        if watch is not None:
            watch(len(scripts), len(chosen))
    pages = {name: page(name, theory([text], measures)) for name, text in scripts.items()}
    pages[ALL] = page("all papers", theory([*scripts.values()], measures))
    write_outputs(outputs, [pages[output.path.stem].encode() for output in outputs], force)
    return [output.path for output in outputs]


def page(about: str, computes: str) -> str:
    """The HTML of one explorer."""
    parts = {
        "TITLE": f"fedbounds explorer: {html.escape(about)}",
        "VERSION": __version__,
        "STYLE": _asset("uPlot.min.css") + _asset("page.css"),
        "LIBRARY": f"/*\n{_asset('uPlot-LICENSE.txt')}*/\n{_asset('uPlot.iife.min.js')}",
        "THEORY": computes,
        "PAGE": _asset("page.js"),
    }
    return re.sub(r"@([A-Z]+)@", lambda name: parts[name[1]], _asset("page.html"))


def theory(scripts: Sequence[str], measures: Sequence[Measure]) -> str:
    """The computations of a page in JavaScript."""
    listed = json_text(measures_document(measures))
    papers = ",\n".join(scripts)
    return f"{_asset('theory.js')}\nconst MEASURES = {listed};\nconst PAPERS = [{papers}];\n"


def _asset(name: str) -> str:
    return package_text("fedbounds.figures.explorer", name)
