"""fedbounds explore: the results of papers as web pages with sliders, which work offline."""

from __future__ import annotations

import click

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.cli import completion
from fedbounds.cli.options import OutputPath, emit, force_option, json_option
from fedbounds.figures.explorer.document import explore as write_pages


@click.command("explore")
@click.option("--out", required=True, metavar="DIR", type=OutputPath(), help="The folder to write to.")
@click.option(
    "--paper",
    "papers",
    multiple=True,
    metavar="P",
    shell_complete=completion.papers,
    help="Only this paper, or references. May be repeated.",
)
@force_option
@json_option
def explore(out: str, papers: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Write the explorer: one HTML file per paper, references.html, and index.html with all of them.

    The reference theorems are those with explicit constants.

    \b
    fedbounds explore --out explorer        then open explorer/index.html in a browser
    """
    with progress_bar("papers") as watch:
        written = write_pages(out, papers, watch, force=force)
    if as_json:
        emit("explore", {"files": [{"path": str(path), "bytes": path.stat().st_size} for path in written]})
    else:
        for path in written:
            click.echo(f"{path}   {path.stat().st_size // 1000} kB")
