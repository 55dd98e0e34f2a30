"""Writes the finished pages into a folder, and beside them the generator's settings."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from fedbounds.bounds.theory.registry import results
from fedbounds.bounds.theory.theorem_schema import theorem_schema
from fedbounds.empirical.monitoring.request_schema import question_schema
from fedbounds.empirical.sweep.schema import constants_schema, sweep_schema
from fedbounds.figures.explorer.document import explore
from prebuild.examples import draw_examples
from prebuild.formulas import typeset
from prebuild.lines import ROOT, written_out
from prebuild.reference import reference_pages
from prebuild.verdicts import result_pages, tried

DOCS = ROOT / "docs"


SELECTOR = '\n[project.extra.version]\nprovider = "mike" # reads ../versions.json, which prebuild.versions writes\n'


def prebuild(folder: Path, *, versioned: bool) -> None:
    """All pages and what lies beside them, in `folder`/pages; the generator's settings, in `folder`."""
    pages = folder / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("prebuild", "__pycache__"))
    sources = {path.relative_to(pages).as_posix(): path.read_text(encoding="utf-8") for path in pages.rglob("*.md")}
    for name, source in (sources | result_pages() | reference_pages()).items():
        path = pages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(typeset(written_out(source)), encoding="utf-8")
    explore(pages / "sliders")
    schemas = {"sweep": sweep_schema(), "advise": question_schema(), "theorem": theorem_schema()}
    schemas |= {result.key: constants_schema(result) for result in results()}
    for name, schema in schemas.items():
        path = pages / "schema" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(schema, indent=1), encoding="utf-8")
    draw_examples(tried(), pages / "results")
    (folder / "zensical.toml").write_text(settings() + SELECTOR * versioned, encoding="utf-8")


def settings() -> str:
    """Zensical's settings; a folder in their navigation stands for the pages in it."""
    source = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    return re.sub(r'"([\w-]+/)\*"', lambda m: listed(m[1]), source)


def listed(folder: str) -> str:
    """The pages of a folder of docs/, as the settings name them."""
    return ", ".join(f'"{path.relative_to(DOCS).as_posix()}"' for path in sorted((DOCS / folder).glob("*.md")))


if __name__ == "__main__":
    prebuild(Path(sys.argv[1]), versioned="versioned" in sys.argv[2:])
