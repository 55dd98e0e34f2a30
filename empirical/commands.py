"""The commands of this layer: fedbounds run and fedbounds results."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedbounds.bounds.commands import completion
from fedbounds.bounds.commands.options import Count, PathArgument, device_option, emit, json_option, progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.plain_text import number

if TYPE_CHECKING:
    from fedbounds.empirical.algorithms.algorithm import LinkLoad
    from fedbounds.empirical.sweep import Outcome, Run, RunRow, Store
    from fedbounds.empirical.sweep.executor import Progress

spec_argument = click.argument("spec", metavar="SPEC.toml", type=PathArgument())
out_option = click.option(
    "--out", metavar="DIR", type=PathArgument(), help="The directory of results (default: ./results/NAME)."
)


@click.command("run")
@spec_argument
@click.option("--workers", type=Count(0, 1024), default=1, show_default=True, help="Local processes; 1: this one.")
@device_option
@click.option("--dry-run", is_flag=True, help="Check the file and list its runs; run and write nothing.")
@click.option("--retry-failed", is_flag=True, help="Run again what raised an error before.")
@out_option
@json_option
def run(
    spec: str, workers: int, device: str | None, dry_run: bool, retry_failed: bool, out: str | None, as_json: bool
) -> int:
    """Run the simulations of a TOML file that are not there yet.

    One file per run; what is there and whole is not run again. An interrupted sweep goes on where it stopped.
    Exits with 1 if a run failed.

    \b
    fedbounds run examples/sweep.toml --workers 2
    """
    from fedbounds.empirical.sweep import execute

    name, runs, store = _open(spec, out, device)
    head = {"name": name, "directory": str(store.directory)}
    if dry_run:
        _show_plan(head, runs, store, as_json)
        return 0
    with runs_bar(name) as progress:
        outcomes = execute(runs, store, workers=workers, retry_failed=retry_failed, progress=progress)
    for outcome in outcomes:
        if outcome.made and outcome.before.startswith("damaged"):
            click.echo(f"{store.trace_path(outcome.run.key)} was {outcome.before}; made again", err=True)
    failed = [outcome for outcome in outcomes if outcome.failed]
    if as_json:
        listed = [{**_describe(o.run), "status": o.status, "made": o.made, "before": o.before} for o in outcomes]
        emit("run", {**head, "counts": _count(outcomes), "runs": listed})
    else:
        click.echo(f"{name}: {_sentence(outcomes)}; results in {store.directory}")
        if told := _messages(runs):
            click.echo(f"a client's message in a round: {told}")
        for line in _loads(runs):
            click.echo(line)
    if failed:
        named = "; ".join(f"{o.run.title}: {o.status.removeprefix('error: ')}" for o in failed[:5])
        more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
        again = "" if all(o.made for o in failed) else " (--retry-failed runs them again)"
        click.echo(f"{len(failed)} of {len(outcomes)} runs failed{again}: {named}{more}", err=True)
    return 1 if failed else 0


@click.command("results")
@spec_argument
@device_option
@click.option("--csv", "csv_path", metavar="F", type=PathArgument(), help="Write the table to a CSV file.")
@out_option
@json_option
def results(spec: str, device: str | None, csv_path: str | None, out: str | None, as_json: bool) -> int:
    """The table of a TOML file's runs: labels, status, and each metric's final and best value.

    \b
    fedbounds results examples/sweep.toml --csv sweep.csv
    """
    from fedbounds.empirical.sweep import tabulate, write_csv

    name, runs, store = _open(spec, out, device)
    rows = tabulate(runs, store)
    if all(row.status == "missing" for row in rows):
        other = sum(1 for _ in store.directory.glob("*.npz"))
        why = f" ({other} of other settings or an earlier version of the sources)" if other else ""
        again = f"fedbounds run {spec}" + ("" if out is None else f" --out {out}")
        raise FedboundsError(f"no results of {spec} in {store.directory}{why}; to make them: {again}")
    if csv_path is not None:
        write_csv(rows, csv_path)
    if as_json:
        listed = [
            {
                **_describe(row.run),
                "status": row.status,
                "metrics": {m: s._asdict() for m, s in row.metrics.items()},
            }
            for row in rows
        ]
        emit("results", {"name": name, "directory": str(store.directory), "runs": listed})
    else:
        _print_table(rows)
        if csv_path is not None:
            click.echo(f"written to {csv_path}")
    return 0


@click.command("schema")
@click.argument("key", required=False, shell_complete=completion.keys)
def schema(key: str | None) -> None:
    """The JSON Schema of sweep files, of a file of constants of the result KEY (--from), or of settings, for editors.

    \b
    fedbounds schema > sweep.schema.json                 then, in a sweep: #:schema ./sweep.schema.json
    fedbounds schema fedau/theorem-2 > constants.schema.json
    fedbounds schema advise > advise.schema.json         what fedbounds advise reads
    """
    from fedbounds.bounds.registry import load
    from fedbounds.empirical.question_schema import question_schema
    from fedbounds.empirical.sweep.schema import constants_schema, sweep_schema

    settings = key == "advise"
    found = question_schema() if settings else constants_schema(load(key)) if key else sweep_schema()
    click.echo(json.dumps(found, indent=1))


def _open(spec: str, out: str | None, device: str | None) -> tuple[str, tuple[Run, ...], Store]:
    from fedbounds.empirical.sweep import Store, plan, read_sweep

    sweep = read_sweep(spec)
    directory = Path("results") / sweep.name if out is None else Path(out)
    _check_directory(directory)
    runs = plan(sweep, device=device)
    return sweep.name, runs, Store(directory)


def _check_directory(directory: Path) -> None:
    """Results need a directory that may be entered, or none yet where one may be made."""
    try:
        os.stat(os.path.join(directory, "."))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise FedboundsError(f"{directory} is not a directory; results need one") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FedboundsError(f"cannot keep results in {str(directory)!r}: {reason}") from None


def _describe(run: Run) -> dict[str, Any]:
    return {
        "key": run.key,
        "labels": run.task["labels"],
        "seeds": run.task["seeds"],
        "message_bytes": run.message_bytes,
        "links": {link: load._asdict() for link, load in run.link_loads.items()},
    }


def _count(outcomes: Sequence[Outcome]) -> dict[str, int]:
    counts = {
        "runs": len(outcomes),
        "made": sum(o.made for o in outcomes),
        "found": sum(not o.made for o in outcomes),
    }
    for word in ("done", "diverged"):
        counts[word] = sum(o.status == word for o in outcomes)
    return {**counts, "failed": sum(o.failed for o in outcomes)}


def _messages(runs: Sequence[Run]) -> str:
    """How long the clients' messages are, algorithm by algorithm."""
    sizes: dict[str, set[int]] = {}
    for run in runs:
        if run.message_bytes is not None:
            sizes.setdefault(_algorithm(run), set()).add(run.message_bytes)
    return ", ".join(f"{name} {_range(some)} bytes" for name, some in sizes.items())


def _loads(runs: Sequence[Run]) -> list[str]:
    """What a round sends over each class of links, algorithm by algorithm."""
    loads: dict[str, dict[str, list[LinkLoad]]] = {}
    for run in runs:
        for link, load in run.link_loads.items():
            loads.setdefault(_algorithm(run), {}).setdefault(link, []).append(load)
    return [
        f"a round of {name} sends, {link}: {_range(load.floats for load in some)} floats, "
        f"{_range(load.bytes for load in some)} bytes"
        for name, links in loads.items()
        for link, some in links.items()
    ]


def _algorithm(run: Run) -> str:
    return run.task["labels"].get("algorithm") or run.task.get("algorithm", {}).get("kind", "all phases")


def _range(sizes: Iterable[int]) -> str:
    known = set(sizes)
    return " to ".join(f"{size:,}" for size in sorted({min(known), max(known)}))


def _sentence(outcomes: Sequence[Outcome]) -> str:
    counts = _count(outcomes)
    parts = [f"{counts['made']} made", f"{counts['found']} already there"]
    parts += [f"{counts[word]} {word}" for word in ("diverged", "failed") if counts[word]]
    return f"{counts['runs']} run{'s' * (counts['runs'] != 1)}: {', '.join(parts)}"


LONG = 60.0  # seconds from which a dry run says how long a run takes at least


def _show_plan(head: dict[str, str], runs: Sequence[Run], store: Store, as_json: bool) -> None:
    from fedbounds.empirical.work import in_words

    statuses = [store.standing(run.key).status for run in runs]
    if as_json:
        listed = [
            {**_describe(run), "status": status, "at_least_seconds": run.seconds}
            for run, status in zip(runs, statuses, strict=True)
        ]
        emit("run", {**head, "dry_run": True, "runs": listed})
        return
    for run, status in zip(runs, statuses, strict=True):
        click.echo(f"{run.key[:12]}  {status:<8}  {run.title}")
    kinds = Counter(status.partition(":")[0] for status in statuses)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    click.echo(f"{head['name']}: {len(runs)} run{'s' * (len(runs) != 1)} ({counts}) in {head['directory']}")
    longest = max(runs, key=lambda run: run.seconds)
    if longest.seconds >= LONG:
        click.echo(f"the longest takes at least about {in_words(longest.seconds)}: {longest.title}")


@contextmanager
def runs_bar(name: str) -> Iterator[Progress | None]:
    """How many runs of a sweep are done, on standard error, if that is a terminal."""
    with progress_bar(name) as advance:
        yield None if advance is None else (lambda outcome, done, total: advance(done, total))


def _print_table(rows: Sequence[RunRow]) -> None:
    """Aligned columns, one line per run however narrow the terminal: final values, and the best in parentheses."""
    labels = list(dict.fromkeys(name for row in rows for name in row.run.task["labels"]))
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    lines = [[*labels, "seeds", "status", *(f"{metric} (best)" for metric in metrics)]]
    for row in rows:
        given = row.run.task["labels"]
        cells = [str(given.get(label, "")) for label in labels]
        cells += [str(len(row.run.task["seeds"])), row.status]
        for metric in metrics:
            found = row.metrics.get(metric)
            cells.append(f"{number(found.final)} ({number(found.best)})" if found else "")
        lines.append(cells)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
