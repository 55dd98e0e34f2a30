"""fedbounds figure and fedbounds demo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.bounds.theory.registry import paper_names, paper_submodule, paper_submodules
from fedbounds.cli import completion, options
from fedbounds.cli.options import Count, Drawing, OutputPath, PathArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from click.shell_completion import CompletionItem

    from fedbounds.figures.charts.picture import Picture

ATLAS = "tightness"  # the figure of all papers
REFERENCES = "references"  # the figures over the reference theorems
NEEDS_DIRECTORY = "--out {out} is a file; all figures of a paper need a directory, e.g. --out gallery"
DEMO_PAPER = "arbitrary-participation"  # the paper of `fedbounds demo`
workers_option = click.option(
    "--workers", type=Count(1, 1024), default=1, show_default=True, help="Local processes for missing runs."
)


def figure_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str] | list[CompletionItem[Any]]:
    """Complete papers and data sets; after a slash, the figures of a paper; else files."""
    paper, slash, _ = incomplete.partition("/")
    if slash and paper in paper_names():
        return completion.matching_prefix([f"{paper}/{name}" for name in _names(paper)], incomplete)
    if slash and paper == REFERENCES:
        return completion.matching_prefix([f"{paper}/{name}" for name in _references()], incomplete)
    words = [*completion.papers(context, parameter, ""), ATLAS, REFERENCES, *_datasets()]
    return completion.matching_prefix(words, incomplete) or completion.files(context, parameter, incomplete)


@click.command("figure")
@click.argument("name", metavar="NAME|SPEC.toml", shell_complete=figure_names)
@click.option("--out", required=True, metavar="F", type=OutputPath(), help="A file (.png, .pdf, .svg), or a directory.")
@options.force_option
@options.results_option
@click.option("--dataset", help="glyphs, digits or the paper's; for tdcd made or original (default: see the gallery).")
@click.option(
    "--data",
    metavar="DIR",
    type=PathArgument(),
    help="Folder of the official files (default: FEDBOUNDS_DATA, else ./data).",
)
@click.option("--network", help="mlp, linear or a CNN (default: mlp on glyphs and digits, else a CNN).")
@click.option("--full", is_flag=True, help="Use the paper's numbers of clients, rounds and seeds; takes days.")
@click.option("--metric", help="The metric to draw from SPEC.toml (default: a loss or a gradient norm).")
@options.figure_options
@workers_option
@options.device_option
@options.allow_import_option
@options.json_option
def figure(
    name: str,
    out: str,
    force: bool,
    results: str,
    dataset: str | None,
    data: str | None,
    network: str | None,
    full: bool,
    metric: str | None,
    drawing: Drawing,
    workers: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Draw a figure or a data set by NAME, or the runs of SPEC.toml; missing runs are made first.

    \b
    fedbounds figure arbitrary-participation/figure-b.2 --out toy.png
    fedbounds figure fedau --out gallery --workers 2          every figure and the claims table of a paper
    fedbounds figure tightness --out tightness.png            how tight every bound is
    fedbounds figure references/regimes --out regimes.svg     which method has the smallest bound where
    fedbounds figure glyphs --out glyphs.png                  images of a data set, class by class
    fedbounds figure examples/sweep.toml --metric gradient_norm_squared --out sweep.svg
    """
    if name in (*paper_names(), REFERENCES):
        drawing.check_several()
    drawing.check("claims are a table; leave it out", () if name.endswith("/claims") else options.STYLE_OPTIONS)
    _check_options(
        name, {"--metric": metric, "--dataset": dataset, "--data": data, "--network": network, "--full": full}
    )
    with drawing.style():
        written: list[Path] = []
        if name.endswith(".toml"):
            from fedbounds.figures.charts.sweep import sweep_picture

            target = _figure_path(out, Path(name).stem, force, name, results)
            written += sweep_picture(name, metric, Path(results), workers, device).save(target, force=force)
        elif name == ATLAS:
            target = _figure_path(out, name, force)
            written += _atlas().save(target, force=force)
        elif name.partition("/")[0] == REFERENCES:
            written += _over_references(name.partition("/")[2], Path(out), force)
        elif name in _datasets():
            target = _figure_path(out, name, force)
            written += _samples(name, data).save(target, force=force)
        else:
            paper, _, which = name.partition("/")
            if paper not in paper_names() or not _names(paper):
                drawn = {one: _names(one) for one in paper_submodules("figures", "drawing")}
                references = [f"{REFERENCES}/{one}" for one in _references()]
                figures = [*drawn, *(f"{one}/{f}" for one in drawn for f in drawn[one]), *references]
                raise unknown_name("figure", name, [*figures, ATLAS, *_datasets()])
            written += _paper(
                paper, which, Path(out), Path(results), dataset, data, network, full, workers, device, force
            )
    options.print_answer(as_json, "figure", {}, written=written)


def _check_options(name: str, given: Mapping[str, object]) -> None:
    """Refuse options that change nothing: those of a paper's figures for other figures, and a metric without a file."""
    if name.endswith(".toml"):
        legal: tuple[str, ...] = ("--metric",)
    elif name in _datasets():
        legal = ("--data",)
    else:
        legal = () if name.partition("/")[0] in (ATLAS, REFERENCES) else ("--dataset", "--data", "--network", "--full")
    if wrong := [option for option, value in given.items() if value and option not in legal]:
        raise FedboundsError(f"{', '.join(wrong)} changes nothing for {name}; leave it out")


def _atlas() -> Picture:
    from fedbounds.figures.charts.tightness import atlas

    with progress_bar("worst cases") as progress:
        return atlas(progress=progress)


def _references() -> Mapping[str, Callable[[], Picture]]:
    from fedbounds.figures.charts.reference_figures import FIGURES

    return FIGURES


def _over_references(which: str, out: Path, force: bool) -> list[Path]:
    """One figure over the reference theorems, or all of them in a directory."""
    from fedbounds.figures.charts.picture import figure_outputs

    figures = _references()
    if which and which not in figures:
        raise unknown_name(f"figure of {REFERENCES}", which, [*figures])
    if which:
        target = _figure_path(out, which, force)
        return figures[which]().save(target, force=force)
    if out.suffix:
        raise FedboundsError(NEEDS_DIRECTORY.format(out=out))
    targets = {one: out / f"{one}.png" for one in figures}
    check_outputs([output for target in targets.values() for output in figure_outputs(target)], force)
    return [path for one, target in targets.items() for path in figures[one]().save(target, force=force)]


def _datasets() -> tuple[str, ...]:
    from fedbounds.empirical.data.datasets import DATASETS

    return tuple(DATASETS.builders())


def _samples(name: str, data: str | None) -> Picture:
    from fedbounds.empirical.data.datasets import load_dataset
    from fedbounds.figures.charts.samples import sheet

    return sheet(load_dataset(name, data), {"dataset": name})


def _figures_module(paper: str, what: str) -> Any:
    """A module of a paper's figures: `drawing` (with Gallery and FIGURES), `claims` (with all_claims), ..."""
    return paper_submodule(paper, "figures", what)


def _names(paper: str) -> list[str]:
    drawing = _figures_module(paper, "drawing")
    return [*drawing.FIGURES, *(["claims"] if _figures_module(paper, "claims") else [])] if drawing else []


def _paper(
    paper: str,
    which: str,
    out: Path,
    results: Path,
    dataset: str | None,
    data: str | None,
    network: str | None,
    full: bool,
    workers: int,
    device: str | None,
    force: bool,
) -> list[Path]:
    """One figure, the claims, or everything of a paper."""
    drawing, claims = _figures_module(paper, "drawing"), _figures_module(paper, "claims")
    from fedbounds.figures.charts.claims import claims_output, write_claims
    from fedbounds.figures.charts.paper_gallery import draw_by_name
    from fedbounds.figures.charts.picture import figure_outputs

    if which and which not in _names(paper):
        raise unknown_name(f"figure of {paper}", which, _names(paper))
    target, table = out, out if out.suffix == ".csv" else out / "claims.csv"
    if which == "claims":
        check_outputs([claims_output(table)], force)
    elif which:
        target = _figure_path(out, which, force)
    if not which and out.suffix:
        raise FedboundsError(NEEDS_DIRECTORY.format(out=out))
    if not which:
        figures = [output for one in drawing.FIGURES for output in figure_outputs(out / f"{one}.png")]
        check_outputs([*figures, *([claims_output(table)] if claims else [])], force)
    with progress_bar("runs") as progress:
        gallery = drawing.Gallery(results, dataset, data, network, workers, progress=progress, full=full, device=device)
        if which == "claims":
            return [write_claims(claims.all_claims(gallery), table, force=force)]
        if which:
            return draw_by_name(paper, drawing.FIGURES, gallery, which).save(target, force=force)
        written: list[Path] = []
        for one in drawing.FIGURES:
            written += draw_by_name(paper, drawing.FIGURES, gallery, one).save(out / f"{one}.png", force=force)
        return [*written, *([write_claims(claims.all_claims(gallery), table, force=force)] if claims else [])]


def _figure_path(out: str | Path, name: str, force: bool, spec: str = "", results: str = "") -> Path:
    """The path of a figure, checked before any run is made; in a directory the name of the figure is its file name."""
    from fedbounds.figures.charts.picture import figure_outputs

    runs = None
    if spec:
        from fedbounds.empirical.sweep import read_sweep

        read_toml(spec)  # records it, and the files that it names, as inputs
        runs = Path(results) / read_sweep(spec).name
    outputs = figure_outputs(Path(out) / f"{name}.png" if os.path.isdir(out) else out)
    check_outputs(outputs, force, runs=runs)
    return outputs[0].path


@click.command("demo")
@click.option("--out", default="demo", show_default=True, metavar="DIR", type=OutputPath(), help="Where to write.")
@options.force_option
@click.option("--workers", type=Count(1, 1024), default=2, show_default=True, help="Local processes for the runs.")
@click.option(
    "--scale",
    type=click.Choice(["demo", "smoke"]),
    default="demo",
    show_default=True,
    help="smoke: in seconds, too small for results; to test an installation.",
)
@options.figure_options
@options.device_option
@options.json_option
def demo(out: str, force: bool, workers: int, scale: str, drawing: Drawing, device: str | None, as_json: bool) -> None:
    """Compare generalized FedAvg with its baselines on images, and with its theorem, in about three minutes.

    Writes figures with their data, a table of claims and a summary into DIR. Works offline.
    """
    drawing.check_several()
    module = _figures_module(DEMO_PAPER, "demonstration")
    with drawing.style(), progress_bar("training on images") as progress:
        small = module.SMALL if scale == "smoke" else {}
        found = module.demonstrate(Path(out), workers=workers, progress=progress, device=device, force=force, **small)
    options.print_answer(as_json, "demo", found.to_dict(), lambda: found.text)
