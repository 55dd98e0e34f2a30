"""fedbounds report: a static page on the runs of a TOML file, or on a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.bounds.inputs.output_files import REPORT, Output, check_folder, check_outputs, write_outputs
from fedbounds.bounds.inputs.user_files import record_inputs
from fedbounds.cli import completion
from fedbounds.cli.options import (
    Count,
    OutputPath,
    PathArgument,
    assume_option,
    constants_options,
    device_option,
    emit,
    force_option,
    json_option,
    read_constants,
)

PAGE, DOCUMENT = "index.html", "report.json"


@click.command("report")
@click.argument("spec", metavar="[SPEC.toml]", type=PathArgument(), required=False, shell_complete=completion.files)
@click.option(
    "--paper", metavar="P", shell_complete=completion.papers,
    help="Report on a paper instead: results, verdicts, errata, figures, claims.",
)  # fmt: skip
@click.option("--out", required=True, metavar="DIR", type=OutputPath(), help="The folder to write to.")
@force_option
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", shell_complete=completion.keys,
    help="A result to hold the runs against, as fedau/theorem-2 or 'fedau/theorem-2[printed]'. May be repeated. "
    "Default: the theorems, corollaries and propositions that cover them.",
)  # fmt: skip
@click.option(
    "--figures", metavar="DIR", type=PathArgument(),
    help="With --paper: what `fedbounds figure P --out DIR` wrote (default: the gallery of a checkout).",
)  # fmt: skip
@constants_options
@assume_option
@click.option("--results", metavar="DIR", type=PathArgument(), default="results", show_default=True, help="Kept runs.")
@click.option("--workers", type=Count(0, 1024), default=1, show_default=True, help="Local processes for missing runs.")
@device_option
@json_option
def report(
    spec: str | None,
    paper: str | None,
    out: str,
    force: bool,
    keys: tuple[str, ...],
    figures: str | None,
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    assume: tuple[str, ...],
    results: str,
    workers: int,
    device: str | None,
    as_json: bool,
) -> int:
    """Write a page that needs no network: DIR/index.html, with its figures and its numbers beside it.

    On the runs of SPEC.toml: their setting, a table of results, overlays, constants with their kinds, what is a
    guarantee and why not, verdicts, provenance. Missing runs are made first. Exits with 1 if a bound is crossed where
    its conditions hold.

    \b
    fedbounds report examples/fedau.toml --out report        then open report/index.html in a browser
    fedbounds report --paper fedau --out fedau-report
    """
    if (spec is None) == (paper is None):
        raise FedboundsError("report needs one of the two: SPEC.toml, or --paper P")
    folder = Path(out)
    check_folder(folder)
    given = read_constants(settings, source, bare)
    if paper is not None:
        if keys or given or assume:
            raise FedboundsError("--key, --set, --from and --assume are about runs: give SPEC.toml, not --paper")
        written, crossed = report_paper(paper, folder, None if figures is None else _there(figures), force=force), False
    else:
        assert spec is not None
        if figures is not None:
            raise FedboundsError("--figures is about a paper: give --paper P, not SPEC.toml")
        written, crossed = report_runs(
            spec, folder, keys, results=results, workers=workers, device=device, given=given, assume=assume,
            force=force,
        )  # fmt: skip
    if as_json:
        emit("report", {"page": str(folder / PAGE), "crossed": crossed, "written": [str(path) for path in written]})
    else:
        click.echo("\n".join(f"written {path}" for path in written))
    return 1 if crossed else 0


@record_inputs()
def report_runs(
    spec: str | Path,
    out: str | Path,
    keys: tuple[str, ...] = (),
    *,
    results: str | Path = "results",
    workers: int = 1,
    device: str | None = None,
    given: dict[str, Any] | None = None,
    assume: tuple[str, ...] = (),
    force: bool = False,
) -> tuple[list[Path], bool]:
    """Write the report on the runs of a sweep file; those that are missing are made first.

    Args:
        spec: the file.
        out: the folder.
        keys, results, workers, device, given, assume: as for
            `fedbounds.empirical.comparison.compare_sweep.confront_results`.
        force: overwrite files that fedbounds did not write.

    Returns:
        The files, the page first, and whether a bound is crossed where its conditions hold.
    """
    try:
        from fedbounds.cli.sweeps import runs_bar
        from fedbounds.empirical.comparison.compare_sweep import confront_results
        from fedbounds.empirical.sweep import Store, read_sweep
    except ModuleNotFoundError as error:
        raise MissingExtra("empirical", error.name or "torch") from None
    from fedbounds.figures.report.runs import figures_of_runs, runs_document

    folder, sweep = Path(out), read_sweep(spec)
    check_outputs(
        [*_pages(folder), *figures_of_runs(folder, keys, len(sweep.tasks))], force, runs=Path(results) / sweep.name
    )
    with runs_bar(sweep.name) as progress:
        found = confront_results(
            sweep, keys, results=results, workers=workers, device=device, progress=progress, given=given, assume=assume
        )
    with progress_bar("drawing") as drawn:
        document, images = runs_document(sweep, found, Store(Path(results) / sweep.name), folder, drawn, force)
    return [*_write(folder, "runs.html", document, force), *images], found.crossed


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
    from fedbounds.figures.report.papers import paper_document

    folder = Path(out)
    check_outputs(_pages(folder), force)
    document, copied = paper_document(name, folder, None if figures is None else Path(figures), force)
    return [*_write(folder, "paper.html", document, force), *copied]


def _pages(folder: Path) -> tuple[Output, Output]:
    """The page and its document."""
    return Output(folder / PAGE), Output(folder / DOCUMENT, REPORT)


def _write(folder: Path, template: str, document: dict[str, Any], force: bool) -> list[Path]:
    from fedbounds.figures.report.page import page

    whole = {"schema": "fedbounds.report/1", "version": __version__, **document}
    texts = page(template, whole), json.dumps(whole, indent=1) + "\n"
    write_outputs(_pages(folder), [text.encode() for text in texts], force)
    return [output.path for output in _pages(folder)]


def _there(figures: str) -> Path:
    """A folder of figures that is there."""
    if not Path(figures).is_dir():
        raise FedboundsError(
            f"{figures!r} is not a folder of figures: fedbounds figure PAPER --out {figures} draws them"
        )
    return Path(figures)
