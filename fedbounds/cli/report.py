"""fedbounds report: an HTML page on the runs of a TOML file, or on a paper."""

from __future__ import annotations

from pathlib import Path

import click

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import check_folder
from fedbounds.cli import completion, options
from fedbounds.cli.options import Drawing, OutputPath, PathArgument


@click.command("report")
@click.argument("spec", metavar="[SPEC.toml]", type=PathArgument(), required=False, shell_complete=completion.files)
@click.option(
    "--paper", metavar="P", shell_complete=completion.papers,
    help="Report on a paper instead: results, verdicts, errata, figures, claims.",
)  # fmt: skip
@click.option("--out", required=True, metavar="DIR", type=OutputPath(), help="The folder to write to.")
@options.force_option
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", shell_complete=completion.keys,
    help="A result to compare the runs with, e.g. fedau/theorem-2 or fedau/theorem-2:printed. May be repeated. "
    "Default: the theorems, corollaries and propositions that cover them.",
)  # fmt: skip
@click.option(
    "--figures", metavar="DIR", type=PathArgument(),
    help="With --paper: the folder that `fedbounds figure P --out DIR` wrote (default: the gallery).",
)  # fmt: skip
@options.constants_options
@options.assume_option
@options.figure_options
@options.results_option
@options.workers_option
@options.device_option
@options.allow_import_option
@options.json_option
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
    drawing: Drawing,
    results: str,
    workers: int,
    device: str | None,
    as_json: bool,
) -> int:
    """Write DIR/index.html, which works offline, with its figures and numbers beside it.

    A report on the runs of SPEC.toml has their setting, a table of results, overlays, constants with their kinds,
    guarantees with the reasons against them, verdicts and provenance. Missing runs are made first. Exits with 1 if a
    bound is crossed where its conditions hold.

    \b
    fedbounds report examples/fedau.toml --out report        then open report/index.html in a browser
    fedbounds report --paper fedau --out fedau-report
    """
    if (spec is None) == (paper is None):
        raise FedboundsError("report needs exactly one of SPEC.toml and --paper P")
    folder = Path(out)
    check_folder(folder)
    given = options.read_constants(settings, source, bare)
    if paper is not None:
        drawing.check("a report on a paper shows figures that are drawn already: give it to fedbounds figure", ())
        if keys or given or assume:
            raise FedboundsError("--key, --set, --from and --assume are for runs: give SPEC.toml instead of --paper")
        from fedbounds.figures.report.papers import report_paper

        if figures is not None and not Path(figures).is_dir():
            draw = f"fedbounds figure {paper} --out {figures}"
            raise FedboundsError(f"--figures {figures} is not a folder; draw the figures of the paper there: {draw}")
        written, crossed = report_paper(paper, folder, figures, force=force), False
    else:
        assert spec is not None
        if figures is not None:
            raise FedboundsError("--figures is for papers: give --paper P instead of SPEC.toml")
        from fedbounds.figures.report.runs import report_runs

        drawing.check_several()
        with drawing.style():
            written, crossed = report_runs(
                spec, folder, keys, results=results, workers=workers, device=device, given=given, assume=assume,
                force=force,
            )  # fmt: skip
    options.print_answer(as_json, "report", {"page": str(written[0]), "crossed": crossed}, written=written)
    return 1 if crossed else 0
