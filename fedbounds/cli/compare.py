"""fedbounds compare: bounds over a varying constant, and which bounds are comparable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import click
import numpy as np

from fedbounds.bounds.comparison.comparability import CODES, Matrix, comparability_matrix
from fedbounds.bounds.comparison.compare import BoundComparison, parse_vary, whole_settings
from fedbounds.bounds.comparison.compare import compare as compare_bounds
from fedbounds.bounds.comparison.method_map import MethodMap, map_methods
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.form_cache import as_compiled, cache_result
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_output
from fedbounds.cli import completion, options
from fedbounds.cli.options import Drawing, OutputPath

PGF = (".pgf", ".tex")


@click.command("compare")
@options.set_option
@options.from_option
@click.argument(
    "bare", nargs=-1, metavar="KEY[:FORM]... [NAME=VALUE]...", shell_complete=options.complete_late("constants")
)
@click.option(
    "--vary",
    multiple=True,
    metavar="NAME=LOW:HIGH[:log|lin[:COUNT]]",
    shell_complete=completion.range_completion,
    help="The constant that varies; also NAME=V1,V2,... Twice: a map of the smallest bound over two constants.",
)
@click.option("--matrix", is_flag=True, help="Show which left-hand sides are comparable, of all results or of KEYs.")
@options.optimize_option
@options.within_option
@click.option(
    "--out",
    metavar="F",
    type=OutputPath(),
    help="Write a table (.csv) or a figure (.png, .pdf, .svg; .pgf, .tex).",
)
@options.figure_options
@options.force_option
@options.json_option
def compare(
    settings: tuple[str, ...],
    source: str | None,
    bare: tuple[str, ...],
    vary: tuple[str, ...],
    matrix: bool,
    optimize: str,
    within: tuple[str, ...],
    out: str | None,
    drawing: Drawing,
    force: bool,
    as_json: bool,
) -> None:
    """Compare the bounds of KEY KEY... over a varying constant.

    KEY.NAME=VALUE gives a constant to one result only, e.g. fedau/theorem-2.K=20.
    Left-hand sides that are not comparable are an error that says what differs.
    With two --vary the bounds are of different methods, each about the output of its own run.

    \b
    fedbounds compare arbitrary-participation/theorem-3.1:explicit arbitrary-participation/theorem-3.1:sharp \\
        --vary rounds=10:1e6:log:50 --optimize gamma,eta --within eta=1:100 --out bounds.png \\
        --set L=1 F=5 I=2 P=2 rho=0.7 sigma=1 nu=2 beta=0.5 delta=0
    fedbounds compare patel-2024/minibatch-sgd-convex woodworth-2020/local-sgd-convex --vary I=1:1000:log:30 \\
        --vary d=1e-4:1:log:30 --out map.svg L=1 D2=1 N=10 T=100 sigma=0.1
    fedbounds compare --matrix --out matrix.csv      which bounds of all papers are comparable
    """
    keys = [word for word in bare if "=" not in word]
    constants = options.read_constants(settings, source, [word for word in bare if "=" in word])
    if out is not None:
        check_outputs(_outputs(Path(out), matrix or len(vary) > 1), force)
    _check_drawing(drawing, out)
    if matrix:
        if constants or vary or optimize or within:
            raise FedboundsError("--matrix takes no constants, --vary, --optimize or --within; leave them out")
        show_matrix(keys, out, drawing, force, as_json)
        return
    if not vary:
        raise FedboundsError("compare needs --vary, e.g. --vary rounds=10:1e6:log:50, or --matrix")
    if not keys:
        raise FedboundsError("compare has no KEY; name at least one result, e.g. arbitrary-participation/theorem-3.1")
    named = [options.split_key(word) for word in keys]
    results = [as_compiled(key) for key, _ in named]
    first, *others = vary
    if len(others) > 1:
        raise FedboundsError(f"--vary is given {len(vary)} times; give it once for curves, twice for a map")
    chosen, ranges = options.constant_names(optimize) if optimize else (), options.ranges(within) or None
    if others:
        x, y = map(parse_vary, vary)
        with progress_bar("settings") as watch:
            regions = map_methods(named, x, y, constants, optimize=chosen, within=ranges, watch=watch)
        written = [] if out is None else write_map(regions, Path(out), drawing, force)
        options.print_answer(as_json, "method-map", regions.to_dict(), lambda: describe_map(regions), written)
        return
    name, values = parse_vary(first)
    with progress_bar("settings") as watch:
        found = compare_bounds(
            named,
            (name, whole_settings(results, name, values)),
            constants,
            optimize=chosen,
            within=ranges,
            watch=watch,
        )
    written = [] if out is None else write(found, Path(out), drawing, force)
    for key, _ in named:
        cache_result(key)
    options.print_answer(as_json, "compare", found.to_dict(), lambda: describe(found), written)


def show_matrix(keys: list[str], out: str | None, drawing: Drawing, force: bool, as_json: bool) -> None:
    """Print which left-hand sides are comparable; of all results, those about whole runs."""
    full = comparability_matrix(keys or None)
    shown = full if keys else full.run_results()
    written: list[Path] = []
    if out is not None and Path(out).suffix == ".csv":
        write_output(Output(Path(out)), full.to_csv().encode(), force)
        written = [Path(out)]
    elif out is not None:
        from fedbounds.figures.charts.comparison import matrix_picture

        with drawing.style():
            written = matrix_picture(shown).save(Path(out), force=force)
    if as_json:
        options.emit("comparability", {**full.to_dict(), "written": [str(path) for path in written]})
        return
    click.echo(describe_matrix(shown))
    if hidden := len(full.measures) - len(shown.measures):
        click.echo(f"{hidden} more, of lemmas and of single rounds or windows: --json, --out F.csv, or by KEY")
    options.echo_written(written)


def describe_matrix(matrix: Matrix) -> str:
    """The left-hand sides by number, the results that bound them, and the relation of each pair."""
    lines = []
    for i, (measure, forms) in enumerate(zip(matrix.measures, matrix.forms, strict=True), start=1):
        keys: dict[str, dict[str, None]] = {}  # by paper
        for form in forms:
            paper, _, name = form.partition(" ")[0].partition("/")
            keys.setdefault(paper, {})[name] = None
        lines += wrap(f"{i:>3}  {measure}", 118, subsequent_indent=" " * 5)
        for paper, names in keys.items():
            keys_of_paper = f"{paper}: {', '.join(names)}"
            lines += wrap(keys_of_paper, 118, initial_indent=" " * 7, subsequent_indent=" " * 9, break_on_hyphens=False)
    places = range(len(matrix.measures))
    width = max((len(matrix.code(i, j)) for i in places for j in places), default=1) + 1
    lines += ["", " " * 4 + "".join(f"{j + 1:>{width}}" for j in places)]
    lines += [f"{i + 1:>3} " + "".join(f"{matrix.code(i, j):>{width}}" for j in places) for i in places]
    lines.append("= the same; < (>) never larger (smaller) than the one above; else not comparable: these differ")
    lines.append("; ".join(f"{symbol} {part}" for part, symbol in CODES.items()))
    lines += [f"{i + 1} <= {j + 1}: {matrix.why(i, j)}" for i, j in matrix.pairs]
    return "\n".join(lines)


def describe(table: BoundComparison, rows: int = 12) -> str:
    """The bounds at some settings, the least valid one marked."""
    picked = np.unique(np.linspace(0, len(table.settings) - 1, min(rows, len(table.settings))).round().astype(int))
    lines = [f"{table.measure}", ""]
    width = max(14, *(len(row.label) for row in table.rows))
    lines.append(f"{table.name:>12}  " + "  ".join(f"{row.label:>{width}}" for row in table.rows))
    best = table.best
    for i in picked.tolist():
        cells = []
        for row in table.rows:
            mark = "!" if not row.valid[i] else ("" if row.sure else "~") + ("*" if row.label == best[i] else "")
            cells.append(f"{number(float(row.values[i]))}{mark:<2}".rjust(width))
        lines.append(f"{number(float(table.settings[i])):>12}  " + "  ".join(cells))
    marks = "! a condition fails, ~ order only, refuted or not proved"
    least = "the least valid bound" + ("" if any(row.sure for row in table.rows) else ", of which none is proved")
    least = f"* {least}; " if any(best) else ""
    lines.append(f"({least}assumptions may differ; {marks})")
    if table.optimize:
        lines.append(f"({', '.join(table.optimize)} chosen at every setting: --out F.csv and --json have the values)")
    if len(picked) < len(table.settings):
        lines.append(f"({len(picked)} of {len(table.settings)} settings shown; --out F.csv and --json have all)")
    return "\n".join([*lines, *(f"{label}: {said}" for label, said in table.failures().items()), *table.notes])


def describe_map(regions: MethodMap) -> str:
    """At how many settings each bound is the smallest, and what to keep in mind."""
    lines = [f"smallest bound over {name}: {meaning}" for name, meaning in
             ((regions.x, regions.x_meaning), (regions.y, regions.y_meaning))]  # fmt: skip
    size, wins = regions.winner.size, regions.wins
    counts = {row.name: wins[row.label] for row in regions.comparison.rows}
    if none := size - sum(wins.values()):
        counts["no bound is valid"] = none
    lines += ["", *(f"{count:>6} of {size} settings  {name}" for name, count in counts.items())]
    lines.append("(equal bounds count for the first; --out F.csv and --json have all settings)")
    return "\n".join([*lines, *regions.comparison.notes])


def write_map(regions: MethodMap, path: Path, drawing: Drawing, force: bool = False) -> list[Path]:
    """The map as CSV, or the figure with its data and manifest."""
    if path.suffix == ".csv":
        write_output(Output(path, manifests=(path.with_suffix(".json"),)), regions.to_csv().encode(), force)
        return [path]
    from fedbounds.figures.charts.method_map import method_map_picture

    with drawing.style():
        return method_map_picture(regions).save(path, force=force)


def _check_drawing(drawing: Drawing, out: str | None) -> None:
    """Refuse options of figures that this output does not have."""
    ending = "" if out is None else Path(out).suffix
    if ending in PGF:
        legal = [name for name in options.STYLE_OPTIONS if name not in ("style", "annotations")]
        drawing.check(f"{ending} takes its look from the document; leave it out, or write .pdf, .png or .svg", legal)
    elif ending in ("", ".csv"):
        drawing.check("only figures have it; add --out F.pdf, .png or .svg", ())
    drawing.check()


def _outputs(path: Path, plane: bool) -> Sequence[Output]:
    """The files that this path asks for, by its ending; a matrix or a map (`plane`) has no pgfplots."""
    if path.suffix == ".csv" or (path.suffix in PGF and not plane):
        return [Output(path, manifests=(path.with_suffix(".json"),))]
    from fedbounds.figures.charts.picture import FORMATS, figure_outputs

    if path.suffix not in FORMATS:
        endings = [".csv", *FORMATS, *(() if plane else PGF)]
        raise FedboundsError(f"{path}: unknown ending; a table or a figure ends in {', '.join(endings)}")
    return figure_outputs(path)


def write(table: BoundComparison, path: Path, drawing: Drawing, force: bool = False) -> list[Path]:
    """The table as CSV, or the figure with its data and manifest."""
    if path.suffix == ".csv":
        write_output(Output(path, manifests=(path.with_suffix(".json"),)), table.to_csv().encode(), force)
        return [path]
    if path.suffix in PGF:
        from fedbounds.figures.charts.comparison import save_pgf

        with drawing.style():
            return save_pgf(table, path, force=force)
    from fedbounds.figures.charts.comparison import comparison_picture

    with drawing.style():
        return comparison_picture(table).save(path, force=force)
