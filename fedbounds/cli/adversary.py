"""fedbounds adversary: search for the largest left-hand side over bound; tables of whole papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.json_values import json_value
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import DOCUMENT, Output, check_outputs, is_ours, write_output
from fedbounds.cli import completion, options
from fedbounds.cli.options import Count, OutputPath, PathArgument

if TYPE_CHECKING:
    from fedbounds.empirical.falsification.adversary import WorstInstance


@click.command("adversary")
@click.argument("key", required=False, shell_complete=completion.keys)
@options.form_option
@options.paper_option
@click.option(
    "--effort",
    type=click.Choice(["families", "light", "deep"]),
    default="deep",
    show_default=True,
    help="How long to search; with --paper, 'families' adds only the known extremal runs to the table.",
)
@click.option("--seed", type=Count(0), default=61, show_default=True, help="The seed of the search.")
@click.option("--replay", metavar="FILE", type=PathArgument(), help="Recompute an instance that --out wrote.")
@click.option("--merge", metavar="FILE", type=PathArgument(), help="With --paper: add rows of other searches.")
@click.option("--out", metavar="FILE", type=OutputPath(), help="Write the instance, or with --paper the table, here.")
@options.force_option
@options.json_option
def adversary_command(
    key: str | None,
    form: str | None,
    wanted: str | None,
    effort: str,
    seed: int,
    replay: str | None,
    merge: str | None,
    out: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Search for instances with a large ratio of left-hand side to bound of the result KEY.

    The answer is the largest ratio found, a lower bound on the worst case. The search starts from known extremal runs
    (gradient descent on a quadratic and on a Huber function, one client, no noise), with step sizes up to the largest
    admissible ones, and from random instances.

    With --paper the search covers every form of the paper and updates the table beside its ledger, or --out. Rows of
    the same effort and seed are kept, and their instances are starting points. --merge adds the rows of another table
    and keeps the larger ratio. Exits with 1 if the bound is refuted, or if --replay differs from FILE.

    \b
    fedbounds adversary arbitrary-participation/theorem-3.1 --form sharp --effort light --out worst.json
    fedbounds adversary --replay worst.json
    """
    from fedbounds.bounds.comparison.worst_ratios import describe_row, read_document
    from fedbounds.empirical.falsification import adversary

    if [key, wanted, replay].count(None) != 2:
        raise FedboundsError("adversary needs exactly one of KEY, --paper P and --replay FILE")
    if merge and not wanted:
        raise FedboundsError("--merge adds rows to the table of a paper; name it with --paper P")
    source = click.get_current_context().get_parameter_source
    for name in ("form", "effort", "seed"):
        if replay and source(name) != ParameterSource.DEFAULT:
            raise FedboundsError(f"--replay recomputes the instance of a file as it is; leave out --{name}")
    if effort == "families" and not wanted:
        raise FedboundsError("--effort families adds rows to the table of a paper; name it with --paper P")
    if wanted:
        if form:
            raise FedboundsError("--paper searches every form; leave out --form")
        table = update_table(wanted, effort, seed, merge, out, force)
        if as_json:
            options.emit("worst-ratios", table)
        else:
            for row in table["rows"]:
                click.echo(f"{row['key']}[{row['form']}]: {describe_row(row)}")
            options.echo_written([table["file"]])
        return 0
    if replay:
        read_document(Path(replay))  # records it as an input
    check_outputs([instance_output(out)] if out else [], force)
    if replay:
        found = adversary.replay(replay)
    else:
        with progress_bar(str(key)) as progress:
            found = adversary.adversary(str(key), form, seed=seed, effort=effort, progress=progress)
    if out:
        write(found, Path(out), force)
    if as_json:
        options.emit("adversary", found.as_document())
    else:
        click.echo(str(found))
        if out:
            click.echo(f"written {out}; to recompute it: fedbounds adversary --replay {out}")
    return 1 if found.status == "refuted" or found.recorded else 0


def instance_output(path: str | Path) -> Output:
    """The file of an instance."""
    return Output(Path(path), DOCUMENT + rb"fedbounds\.adversary/")


def write(found: WorstInstance, path: Path, force: bool = False) -> None:
    """Write an instance with all its numbers."""
    from fedbounds.empirical.falsification.adversary import SCHEMA

    document = {"schema": SCHEMA, "version": __version__, **json_value(found.as_document())}
    write_output(instance_output(path), f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode(), force)


def update_table(name: str, effort: str, seed: int, merge: str | None, out: str | None, force: bool) -> dict[str, Any]:
    """Search all forms of a paper, or add the rows of other searches; write the table, after every row of a search."""
    from fedbounds.bounds.comparison.worst_ratios import read_rows, table_output, worst_ratios_path, write_rows
    from fedbounds.bounds.theory.registry import paper
    from fedbounds.empirical.falsification.adversary_table import cross_rows, merge_tables, rows

    loaded = paper(name)
    path = Path(out) if out else worst_ratios_path(loaded.key)
    if merge and not Path(merge).exists():
        raise FedboundsError(f"--merge {merge}: no such file; name a table of adversary --paper {name} --out F")
    new = read_rows(Path(merge)) if merge else []
    check_outputs([table_output(path)], force)
    known = read_rows(path, noted=False) if is_ours(table_output(path)) else []
    found: list[dict[str, Any]] = list(merge_tables(known, new)) if merge else []
    total = sum(len(result.forms) for result in loaded.results)
    with progress_bar(loaded.key) as advance:
        for row in () if merge else rows(loaded.key, effort, seed, known):
            found.append(row)
            done = {(one["key"], one["form"]) for one in found}
            write_rows(path, loaded.key, [*found, *(r for r in known if (r["key"], r["form"]) not in done)], force)
            if advance:
                advance(len(found), total, f"{row['key']}[{row['form']}]")
    found = list(cross_rows(found))
    write_rows(path, loaded.key, found, force)
    return {"paper": loaded.key, "rows": found, "file": str(path)}
