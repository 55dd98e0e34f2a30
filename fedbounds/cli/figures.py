"""The commands of this layer: fedbounds figure and fedbounds demo."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.bounds.theory.registry import paper_names, paper_submodule, paper_submodules
from fedbounds.cli import completion
from fedbounds.cli.options import (
    Count,
    OutputPath,
    PathArgument,
    device_option,
    emit,
    force_option,
    json_option,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from fedbounds.figures.charts.picture import Picture

ATLAS = "tightness"  # the figure of all papers
DEMONSTRATED = "arbitrary-participation"  # the paper of `fedbounds demo`
workers_option = click.option(
    "--workers", type=Count(1, 1024), default=1, show_default=True, help="Local processes for missing runs."
)


def figure_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str] | list[CompletionItem[Any]]:
    """Papers and data sets; after a slash, what is drawn of a paper; else files."""
    paper, slash, _ = incomplete.partition("/")
    if slash and paper in paper_names():
        return completion.matching_prefix([f"{paper}/{name}" for name in _names(paper)], incomplete)
    words = [*completion.papers(context, parameter, ""), ATLAS, *_datasets()]
    return completion.matching_prefix(words, incomplete) or completion.files(context, parameter, incomplete)


@click.command("figure")
@click.argument("name", metavar="NAME|SPEC.toml", shell_complete=figure_names)
@click.option("--out", required=True, metavar="F", type=OutputPath(), help="A file (.png, .pdf, .svg), or a directory.")
@force_option
@click.option("--results", metavar="DIR", type=PathArgument(), default="results", show_default=True, help="Kept runs.")
@click.option(
    "--dataset", help="glyphs, digits, or one of the paper's (default: the paper's page in the gallery says)."
)
@click.option("--data", metavar="DIR", type=PathArgument(), help="Where the data set's official files are.")
@click.option("--network", help="mlp, linear or a CNN (default: mlp on glyphs and digits, else the paper's).")
@click.option("--full", is_flag=True, help="The paper's own numbers of clients, rounds and seeds; takes days.")
@click.option("--metric", help="What to draw from SPEC.toml; a loss or a gradient norm if not given.")
@workers_option
@device_option
@json_option
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
    workers: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Draw a figure or a data set by NAME, or the runs of SPEC.toml; runs that are missing are made first.

    \b
    fedbounds figure arbitrary-participation/figure-b.2 --out toy.png
    fedbounds figure fedau --out gallery --workers 2          every figure and the claims table of a paper
    fedbounds figure tightness --out tightness.png            how tight every result is known to be
    fedbounds figure glyphs --out glyphs.png                  images of a data set, class by class
    fedbounds figure examples/sweep.toml --metric gradient_norm_squared --out sweep.svg
    """
    written: list[Path] = []
    if name.endswith(".toml"):
        target = _figure_path(out, Path(name).stem, force, name, results)
        written += sweep_picture(name, metric, Path(results), workers, device).save(target, force=force)
    elif name == ATLAS:
        target = _figure_path(out, name, force)
        written += _atlas().save(target, force=force)
    elif name in _datasets():
        target = _figure_path(out, name, force)
        written += _samples(name, data).save(target, force=force)
    else:
        paper, _, which = name.partition("/")
        if paper not in paper_names() or not _names(paper):
            drawn = {one: _names(one) for one in paper_submodules("figures", "drawing")}
            figures = [*drawn, *(f"{one}/{f}" for one in drawn for f in drawn[one])]
            raise unknown_name("figure", name, [*figures, ATLAS, *_datasets()])
        written += _paper(paper, which, Path(out), Path(results), dataset, data, network, full, workers, device, force)
    if as_json:
        emit("figure", {"written": [str(path) for path in written]})
    else:
        click.echo("\n".join(f"written {path}" for path in written))


def _atlas() -> Picture:
    from fedbounds.figures.charts.atlas import atlas

    with progress_bar("worst cases") as progress:
        return atlas(progress=progress)


def _datasets() -> tuple[str, ...]:
    from fedbounds.empirical.data.datasets import DATASETS

    return tuple(DATASETS.builders())


def _samples(name: str, data: str | None) -> Picture:
    from fedbounds.empirical.data.datasets import load_dataset
    from fedbounds.figures.charts.samples import sheet

    return sheet(load_dataset(name, data), {"dataset": name})


def _of_paper(paper: str, what: str) -> Any:
    """What a paper's room holds for its figures: `drawing` with Gallery, FIGURES and draw, `claims` with all_claims."""
    return paper_submodule(paper, "figures", what)


def _names(paper: str) -> list[str]:
    drawing = _of_paper(paper, "drawing")
    return [*drawing.FIGURES, *(["claims"] if _of_paper(paper, "claims") else [])] if drawing else []


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
    drawing, claims = _of_paper(paper, "drawing"), _of_paper(paper, "claims")
    from fedbounds.figures.charts.claims import claims_output, write_claims
    from fedbounds.figures.charts.picture import figure_outputs

    if which and which not in _names(paper):
        raise unknown_name(f"figure of {paper}", which, _names(paper))
    target, table = out, out if out.suffix == ".csv" else out / "claims.csv"
    if which == "claims":
        check_outputs([claims_output(table)], force)
    elif which:
        target = _figure_path(out, which, force)
    if not which and out.suffix:
        raise FedboundsError(f"{out}: all figures of a paper need a directory, e.g. --out gallery")
    if not which:
        figures = [output for one in drawing.FIGURES for output in figure_outputs(out / f"{one}.png")]
        check_outputs([*figures, *([claims_output(table)] if claims else [])], force)
    with progress_bar("runs") as progress:
        gallery = drawing.Gallery(results, dataset, data, network, workers, progress=progress, full=full, device=device)
        if which == "claims":
            return [write_claims(claims.all_claims(gallery), table, force=force)]
        if which:
            return drawing.draw(gallery, which).save(target, force=force)
        written = [
            path for one in drawing.FIGURES for path in drawing.draw(gallery, one).save(out / f"{one}.png", force=force)
        ]
        return [*written, *([write_claims(claims.all_claims(gallery), table, force=force)] if claims else [])]


def _figure_path(out: str | Path, name: str, force: bool, spec: str = "", results: str = "") -> Path:
    """The path of one figure, checked before any run is made; in a directory it is called by its name.

    Args:
        out, name: the path, and the name.
        force: overwrite files that fedbounds did not write.
        spec, results: a TOML file of which it is drawn, and where its runs are kept.
    """
    from fedbounds.figures.charts.picture import figure_outputs

    runs = None
    if spec:
        from fedbounds.empirical.sweep import read_sweep

        read_toml(spec)  # notes it and what it names as inputs
        runs = Path(results) / read_sweep(spec).name
    outputs = figure_outputs(Path(out) / f"{name}.png" if os.path.isdir(out) else out)
    check_outputs(outputs, force, runs=runs)
    return outputs[0].path


USUAL = ("train_loss", "envelope_gradient_norm_squared", "gradient_norm_squared")  # what is drawn if nothing is named


def sweep_picture(spec: str, metric: str | None, results: Path, workers: int, device: str | None = None) -> Picture:
    """Mean and band over seeds of one metric for every run of a sweep.

    Args:
        spec: a TOML file.
        metric: what to draw; the first of `USUAL` that the runs have, if not given.
        results: where kept runs are.
        workers: processes for missing runs.
        device: another device than the file names.

    Raises:
        FedboundsError: the file is wrong, a run failed, or no run has this metric (names those there are).
    """
    from fedbounds.cli.sweeps import runs_bar
    from fedbounds.empirical.sweep import Store, execute, plan, read_sweep
    from fedbounds.empirical.sweep.keys import canonical_json
    from fedbounds.empirical.sweep.runs import recorded_metrics
    from fedbounds.figures.charts.curves import panels, seed_curve
    from fedbounds.figures.charts.picture import as_text

    sweep = read_sweep(spec)
    store = Store(results / sweep.name)
    runs = plan(sweep, device=device)
    if metric is not None:
        for problem in {canonical_json(run.task["problem"]): run for run in runs}.values():
            known = recorded_metrics(problem)
            if metric not in known:
                raise unknown_name(f"metric of {spec}", metric, known)
    with runs_bar(sweep.name) as progress:
        outcomes = execute(runs, store, workers=workers, progress=progress)
    failed = [o for o in outcomes if o.failed]
    if failed:
        raise FedboundsError(f"{len(failed)} runs of {spec} failed, first {failed[0].run.title}: {failed[0].status}")
    curves = []
    for outcome in outcomes:
        trace = store.load(outcome.run.key)
        known = [n for n in trace.arrays if trace.dims[n] == ("seed", "round")]
        metric = metric or next((name for name in (*USUAL, *known) if name in known), "")
        if metric not in known:
            raise unknown_name(f"metric of {spec}", metric, known)
        title = outcome.run.title.rpartition(" seeds=")[0] or sweep.name
        label = ", ".join(re.sub("^(algorithm|participation|problem)=", "", part) for part in title.split())
        curves.append(seed_curve(as_text(label), trace.arrays["round"], trace.arrays[metric]))
    assert metric is not None
    words = metric.replace("_", " ")
    positive = all((c.y > 0).all() for c in curves)
    return panels(
        {"": curves},
        x_label="round $t$",
        y_labels=[as_text(words)],
        title=as_text(sweep.name),
        caption=f"{as_text(words)} of the runs of {as_text(spec)}: mean and standard deviation over seeds.",
        alternative=f"{as_text(words)} against rounds for {len(curves)} runs.",
        provenance={"spec": spec, "keys": [r.key for r in runs], "seeds": runs[0].task["seeds"]},
        y_scales=["log" if positive else "linear"],
    )


@click.command("demo")
@click.option("--out", default="demo", show_default=True, metavar="DIR", type=OutputPath(), help="Where to write.")
@force_option
@click.option("--workers", type=Count(1, 1024), default=2, show_default=True, help="Local processes for the runs.")
@click.option(
    "--scale",
    type=click.Choice(["demo", "smoke"]),
    default="demo",
    show_default=True,
    help="smoke: the same in seconds, too small to show anything; for trying an installation.",
)
@device_option
@json_option
def demo(out: str, force: bool, workers: int, scale: str, device: str | None, as_json: bool) -> None:
    """Generalized FedAvg against its baselines on real images, and under its theorem, in about two minutes.

    Writes figures with their data, a table of claims and a summary into DIR. Offline.
    """
    room = _of_paper(DEMONSTRATED, "demonstration")
    with progress_bar("training on images") as progress:
        small = room.SMALL if scale == "smoke" else {}
        found = room.demonstrate(Path(out), workers=workers, progress=progress, device=device, force=force, **small)
    if as_json:
        emit("demo", found.to_dict())
    else:
        click.echo(found.text)
