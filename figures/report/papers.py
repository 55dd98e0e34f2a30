"""A report on a paper: its results with their verdicts, its errata, its figures and claims."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from fedbounds.bounds._version import __version__
from fedbounds.bounds.audit.errata import DEGREES, describe_findings, paper_errata, paper_wording
from fedbounds.bounds.audit.ledger import ledger_path
from fedbounds.bounds.display.json_values import attributes, json_value
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import FIGURE, Output, check_outputs, write_outputs
from fedbounds.bounds.inputs.user_files import read_bytes, read_text, record_inputs
from fedbounds.bounds.theory.registry import paper
from fedbounds.figures.charts.verdicts import COLUMNS, VERDICTS
from fedbounds.figures.report.page import DOCUMENT, figure_of, fragment, report_outputs, software, write_report
from fedbounds.figures.report.theory import erratum_document, result_document, verdict_document


@record_inputs()
def report_paper(name: str, out: str | Path, figures: str | Path | None = None, *, force: bool = False) -> list[Path]:
    """Write the report on a paper.

    Args:
        name: the paper's key.
        out: the folder.
        figures: what `fedbounds figure PAPER --out DIR` wrote; by default the committed gallery, in a checkout.
        force: overwrite files that fedbounds did not write.

    Returns:
        The files, the page first.

    Raises:
        FedboundsError: no such paper, or the folder cannot be written.
    """
    folder = Path(out)
    check_outputs(report_outputs(folder), force)
    document, copied = paper_document(name, folder, None if figures is None else Path(figures), force)
    return [*write_report(folder, "paper.html", document, force), *copied]


def paper_document(
    name: str, out: Path, figures: Path | None = None, force: bool = False
) -> tuple[dict[str, Any], list[Path]]:
    """The document of a report on a paper, and the files of its figures, copied into the folder `out`."""
    loaded = paper(name)
    folder = figures or find_committed_figures(name)
    claims = claims_in(folder) if folder else []
    shown = figures_in(folder, claims) if folder else []
    copied: dict[str, bytes] = {}
    if folder:
        names = [one[what] for one in shown for what in ("image", "data", "manifest")]
        for file in (folder / name for name in [*names, *([CLAIMS] if claims else [])]):
            if file.is_file():
                copied[file.name] = read_bytes(file, str(file), LARGEST)
    written = [out / name for name in copied]
    # written by an earlier report, or drawn there
    outputs = [
        Output(path, FIGURE * (path.suffix == ".json"), (out / DOCUMENT, path.with_suffix(".json"))) for path in written
    ]
    write_outputs(outputs, [*copied.values()], force)
    results = []
    for result in loaded.results:
        forms = [verdict_document(result, form) for form in result.forms]
        results.append({**result_document(result, result.form()), "default": result.default, "verdicts": forms})
    ledger = ledger_path(name)
    return json_value(
        {
            "about": "paper",
            "title": name,
            "reference": loaded.reference,
            "results": results,
            "counts": dict(Counter(form["verdict"] for result in results for form in result["verdicts"])),
            "findings": describe_findings(name),
            "degrees": DEGREES,
            "errata": [erratum_document(erratum) for erratum in paper_errata(name)],
            "wording": [
                {
                    **attributes(slip, "where says should"),
                    "quotes": [attributes(quote, "text where") for quote in slip.quotes],
                }
                for slip in paper_wording(name)
            ],
            "figures": shown,
            "claims": claims,
            "claims_counted": describe_counts(claims),
            "provenance": {
                "version": __version__,
                "ledger_sha256": hashlib.sha256(read_bytes(ledger, str(ledger), LARGEST)).hexdigest()
                if ledger.is_file()
                else None,
                "files": {path: hashlib.sha256(content).hexdigest() for path, content in copied.items()},
            },
            "bibtex": [*([loaded.bibtex.strip()] if loaded.bibtex else []), software()],
        }
    ), written


MANIFEST = "fedbounds.figure/1"
CLAIMS = "claims.csv"
FIGURES_IN_SOURCES = ("rate", "network-rate", "ratio", "bits")  # figures whose names end the sources of their claims
LARGEST = 2**24  # bytes of a manifest or a table


def find_committed_figures(paper: str) -> Path | None:
    """The committed figures of a paper in a checkout; None in an installation."""
    folder = Path(__file__).resolve().parents[2] / "docs" / "gallery" / paper
    return folder if folder.is_dir() else None


def figures_in(folder: Path, claims: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The figures of a folder by name, with the verdicts on their claims; a manifest without image is an error."""
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
        about = [claim for claim in claims if path.stem in _figures_of_source(claim["source"])]
        verdicts = describe_counts(about) if about else ""
        found.append({"name": path.stem, **figure_of(images[0], caption, alternative, verdicts)})
    return found


def _figures_of_source(source: str) -> list[str]:
    """The names of the figures that a claim's source is about; none for what is compared as printed.

    Example:
        >>> _figures_of_source("Figures 4, D.2"), _figures_of_source("Table 1, convolutions")
        (['figure-4', 'figure-d.2'], ['table-1-cnn'])
        >>> _figures_of_source("Theorem 1, network-rate"), _figures_of_source("Theorem 1")
        (['network-rate'], [])
    """
    if source.endswith("as printed"):
        return []
    last = source.rpartition(", ")[2]
    if last in FIGURES_IN_SOURCES:
        return [last]
    drawn = re.match(r"(Figure|Table)s? ((?:[A-Z]\.)?[\d.]+(?:, (?:[A-Z]\.)?[\d.]+)*)", source)
    if drawn:
        ending = "-cnn" if source.endswith(", convolutions") else ""
        return [f"{drawn[1]}-{number}{ending}".lower() for number in drawn[2].split(", ")]
    return []


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
        >>> describe_counts([{"verdict": "reproduced"}, {"verdict": "not reproduced"}, {"verdict": "reproduced"}])
        '2 are reproduced, 1 is not reproduced'
    """
    found = Counter(claim["verdict"] for claim in claims)
    said = [f"{found[one]} {'is' if found[one] == 1 else 'are'} {one}" for one in VERDICTS if found[one]]
    return ", ".join(said) or "none"


def gallery_html(folder: Path, base: str = "") -> str:
    """All figures of a folder with their captions; `base` is the path from the page to the folder, with a slash."""
    return "\n".join(fragment("figure", shown, base) for shown in figures_in(folder, claims_in(folder)))


def claims_html(folder: Path) -> str:
    """The table of a folder's claims."""
    return fragment("claims_table", claims_in(folder))
