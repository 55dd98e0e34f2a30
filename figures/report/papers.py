"""A report on a paper: its results with their verdicts, its errata, its figures and claims."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from fedbounds.bounds._version import __version__
from fedbounds.bounds.audit.errata import paper_errata, paper_wording
from fedbounds.bounds.audit.findings import DEGREES, describe_findings
from fedbounds.bounds.audit.ledger import ledger_path
from fedbounds.bounds.display.json_values import attributes, json_value
from fedbounds.bounds.inputs.output_files import FIGURE, Output, check_outputs, write_outputs
from fedbounds.bounds.inputs.user_files import read_bytes, record_inputs
from fedbounds.bounds.theory.registry import paper
from fedbounds.figures.report.gallery import (
    CLAIMS,
    LARGEST,
    claims_in,
    describe_counts,
    figures_in,
    find_committed_figures,
)
from fedbounds.figures.report.page import DOCUMENT, report_outputs, software, write_report
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
    shown = figures_in(folder) if folder else []
    claims = claims_in(folder) if folder else []
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
