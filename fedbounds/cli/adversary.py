"""fedbounds adversary: the largest left side over bound found, by search or by replay; and tables of whole papers."""

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
from fedbounds.cli import completion
from fedbounds.cli.options import (
    Count,
    OutputPath,
    PathArgument,
    emit,
    force_option,
    form_option,
    json_option,
    paper_option,
)

if TYPE_CHECKING:
    from fedbounds.empirical.falsification.adversary import WorstInstance


@click.command("adversary")
@click.argument("key", required=False, shell_complete=completion.keys)
@form_option
@paper_option
@click.option(
    "--effort",
    type=click.Choice(["families", "light", "deep"]),
    default="deep",
    show_default=True,
    help="How hard to look; with --paper, families completes the table by the known extremal runs alone.",
)
@click.option(
    "--seed", type=Count(0), default=61, show_default=True, help="Of the search; the same one finds the same."
)
@click.option("--replay", metavar="FILE", type=PathArgument(), help="Reckon an instance again that --out wrote.")
@click.option("--merge", metavar="FILE", type=PathArgument(), help="With --paper: rows of other searches; no new one.")
@click.option("--out", metavar="FILE", type=OutputPath(), help="Write the instance, or with --paper the table, here.")
@force_option
@json_option
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
    """Search for the largest left side over the bound of the result KEY.

    A search finds a number from below: the largest found, not the largest possible. It starts from the known extremal
    runs (gradient descent on a quadratic and on a Huber function, one client, no noise) up to the largest step sizes
    that the form admits, and from random instances. Of the default form, if --form names no other.

    With --paper: of every form of its results, into the table that is committed beside its ledger, or into --out; what
    that table has already, of the same effort and seed, is not searched again, and the climbs start from its instances
    too. With --merge the rows of such a table, or of a part of one, are put in, the larger of both. In the end every
    row has the largest of all instances of its class in the table. Exits with 1 if the bound is refuted, or if --replay
    finds something else than FILE says.

    \b
    fedbounds adversary arbitrary-participation/theorem-3.1 --form sharp --effort light --out worst.json
    fedbounds adversary --replay worst.json
    """
    from fedbounds.bounds.comparison.worst_ratios import read_document
    from fedbounds.empirical.falsification import adversary

    if [key, wanted, replay].count(None) != 2:
        raise FedboundsError("give one of KEY, --paper P and --replay FILE")
    if merge and not wanted:
        raise FedboundsError("--merge puts rows into the table of a paper; say which with --paper P")
    source = click.get_current_context().get_parameter_source
    for name in ("form", "effort", "seed"):
        if replay and source(name) != ParameterSource.DEFAULT:
            raise FedboundsError(f"--replay reckons the instance of a file as it is; leave out --{name}")
    if effort == "families" and not wanted:
        raise FedboundsError("--effort families completes the table of a paper; name it with --paper P")
    if wanted:
        if form:
            raise FedboundsError("--paper searches every form; leave out --form")
        if merge:
            return merge_into(wanted, merge, out, force, as_json)
        return table(wanted, effort, seed, out, force, as_json)
    if replay:
        read_document(Path(replay))  # notes it as an input
    check_outputs([instance_output(out)] if out else [], force)
    if replay:
        found = adversary.replay(replay)
    else:
        with progress_bar(str(key)) as progress:
            found = adversary.adversary(str(key), form, seed=seed, effort=effort, progress=progress)
    if out:
        write(found, Path(out), force)
    if as_json:
        emit("adversary", found.as_document())
    else:
        click.echo(str(found))
        if out:
            click.echo(f"wrote {out}; reckon it again with fedbounds adversary --replay {out}")
    return 1 if found.status == "refuted" or found.recorded else 0


def instance_output(path: str | Path) -> Output:
    """An instance as a file."""
    return Output(Path(path), DOCUMENT + rb"fedbounds\.adversary/")


def write(found: WorstInstance, path: Path, force: bool = False) -> None:
    """An instance with all its numbers, as a file."""
    from fedbounds.empirical.falsification.adversary import SCHEMA

    document = {"schema": SCHEMA, "version": __version__, **json_value(found.as_document())}
    write_output(instance_output(path), f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode(), force)


def table(name: str, effort: str, seed: int, out: str | None, force: bool, as_json: bool) -> int:
    """The largest ratios found for a paper, written after every row."""
    from fedbounds.bounds.comparison.worst_ratios import read_rows, table_output, worst_ratios_path, write_rows
    from fedbounds.bounds.theory.registry import paper
    from fedbounds.empirical.falsification.adversary_table import cross_rows, rows

    loaded = paper(name)
    path = Path(out) if out else worst_ratios_path(loaded.key)
    check_outputs([table_output(path)], force)
    known = read_rows(path, noted=False) if is_ours(table_output(path)) else []
    found: list[dict[str, Any]] = []
    total = sum(len(result.forms) for result in loaded.results)
    with progress_bar(loaded.key) as advance:
        for row in rows(loaded.key, effort, seed, known):
            found.append(row)
            done = {(one["key"], one["form"]) for one in found}
            write_rows(path, loaded.key, [*found, *(r for r in known if (r["key"], r["form"]) not in done)], force)
            if advance:
                advance(len(found), total, f"{row['key']}[{row['form']}]")
    found = list(cross_rows(found))
    write_rows(path, loaded.key, found, force)
    return print_table(loaded.key, found, path, as_json)


def merge_into(name: str, merge: str, out: str | None, force: bool, as_json: bool) -> int:
    """The largest ratios found for a paper, with those of other searches."""
    from fedbounds.bounds.comparison.worst_ratios import read_rows, table_output, worst_ratios_path, write_rows
    from fedbounds.bounds.theory.registry import paper
    from fedbounds.empirical.falsification.adversary_table import cross_rows, merge_tables

    key = paper(name).key
    path = Path(out) if out else worst_ratios_path(key)
    if not Path(merge).exists():
        raise FedboundsError(f"{merge}: no such file")
    new = read_rows(Path(merge))
    check_outputs([table_output(path)], force)
    known = read_rows(path, noted=False) if is_ours(table_output(path)) else []
    found = list(cross_rows(list(merge_tables(known, new))))
    write_rows(path, key, found, force)
    return print_table(key, found, path, as_json)


def print_table(key: str, rows: list[dict[str, Any]], path: Path, as_json: bool) -> int:
    """A table that was written, on the terminal."""
    from fedbounds.bounds.comparison.worst_ratios import describe_row

    if as_json:
        emit("worst-ratios", {"paper": key, "rows": rows, "file": str(path)})
    else:
        for row in rows:
            click.echo(f"{row['key']}[{row['form']}]: {describe_row(row)}")
        click.echo(f"wrote {path}")
    return 0
