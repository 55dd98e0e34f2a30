"""The gallery of a paper as `fedbounds figure PAPER` wrote it: figures with their manifests, and claims."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.figures.charts.verdicts import COLUMNS, NOT_TESTED
from fedbounds.figures.report.page import figure_of, fragment

MANIFEST = "fedbounds.figure/1"
CLAIMS = "claims.csv"
LARGEST = 2**24  # bytes of a manifest or a table


def find_committed_figures(paper: str) -> Path | None:
    """The committed figures of a paper in a checkout; None in an installation."""
    folder = Path(__file__).resolve().parents[2] / "docs" / "gallery" / paper
    return folder if folder.is_dir() else None


def figures_in(folder: Path) -> list[dict[str, Any]]:
    """The figures of a folder by name; a manifest without image is an error."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(read_text(path, str(path), LARGEST))
            if document["schema"] != MANIFEST:
                continue
            caption, alternative = str(document["caption"]), str(document["alternative"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # the JSON of something else
        images = [path.with_suffix(ending) for ending in (".png", ".svg") if path.with_suffix(ending).is_file()]
        if not images:
            raise FedboundsError(f"{path} is about a figure that is not there: no .png or .svg beside it")
        found.append({"name": path.stem, **figure_of(images[0], caption, alternative)})
    return found


def claims_in(folder: Path) -> list[dict[str, str]]:
    """The table of claims of a folder; empty if there is none."""
    path = folder / CLAIMS
    if not path.is_file():
        return []
    rows = list(csv.DictReader(read_text(path, str(path), LARGEST).splitlines(keepends=True)))
    if rows and any(rows[0].get(name) is None for name in COLUMNS):
        raise FedboundsError(f"{path} is not a table of claims: it needs the columns {', '.join(COLUMNS)}")
    return [{name: row[name] for name in COLUMNS} for row in rows]


def describe_counts(claims: list[dict[str, str]]) -> str:
    """The number of claims of each verdict, in words.

    Example:
        >>> describe_counts([{"verdict": "agrees"}, {"verdict": "disagrees"}, {"verdict": "agrees"}])
        '2 agree, 1 disagrees'
        >>> describe_counts([{"verdict": "not tested at this scale"}])
        '1 is not tested at this scale'
    """
    found, said = Counter(claim["verdict"] for claim in claims), []
    for one in ("agrees", "disagrees", "inconclusive", NOT_TESTED):
        verb = one.endswith("agrees")
        if count := found[one]:
            words = one if verb and count == 1 else one[:-1] if verb else f"{'is' if count == 1 else 'are'} {one}"
            said.append(f"{count} {words}")
    return ", ".join(said) or "none"


def gallery_html(folder: Path, base: str = "") -> str:
    """All figures of a folder with their captions; `base` is the path from the page to the folder, with a slash."""
    return "\n".join(fragment("figure", shown, base) for shown in figures_in(folder))


def claims_html(folder: Path) -> str:
    """The table of a folder's claims."""
    return fragment("claims_table", claims_in(folder))
