"""fedbounds run, fedbounds results and fedbounds schema."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.cli import completion, options
from fedbounds.cli.options import Count, OutputPath, PathArgument

if TYPE_CHECKING:
    from fedbounds.empirical.algorithms.algorithm import LinkLoad
    from fedbounds.empirical.sweep import Outcome, Run, RunRow, Store
    from fedbounds.empirical.sweep.batches import Batch
    from fedbounds.empirical.sweep.cluster import Scheduler
    from fedbounds.empirical.sweep.estimate import Estimate

spec_argument = click.argument("spec", metavar="SPEC.toml", type=PathArgument())
out_option = click.option(
    "--out", metavar="DIR", type=PathArgument(), help="The directory of results (default: ./results/NAME)."
)


PROBE_SECONDS = 10
_STARTING = 0.3  # seconds from the start of the process to that of the command


@click.command("run")
@spec_argument
@click.option("--workers", type=Count(0, 1024), help="Local processes (default: 1, this one).")
@click.option(
    "--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers make the runs, e.g. tcp://host:8786."
)
@click.option("--shard", "part", metavar="I/N", help="Part I of N of the runs, for job arrays that share one folder.")
@options.device_option
@options.allow_import_option
@click.option("--dry-run", is_flag=True, help="List the runs with estimates of time and memory; write nothing.")
@click.option(
    "--probe",
    type=Count(0, 3600),
    metavar="S",
    help="Seconds that --dry-run spends on a few rounds to estimate the time of runs (default 10; 0: none).",
)
@click.option("--retry-failed", is_flag=True, help="Make runs again that failed before.")
@out_option
@options.json_option
def run(
    spec: str,
    workers: int | None,
    cluster: str | None,
    part: str | None,
    device: str | None,
    dry_run: bool,
    probe: int | None,
    retry_failed: bool,
    out: str | None,
    as_json: bool,
) -> int:
    """Run the missing simulations of a TOML file.

    Each run has its own file, and finished runs are kept: an interrupted sweep continues where it stopped. Exits with
    1 if a run failed.

    \b
    fedbounds run examples/sweep.toml --workers 2
    fedbounds run examples/sweep.toml --cluster tcp://login1:8786
    fedbounds run examples/sweep.toml --shard $SLURM_ARRAY_TASK_ID/8
    """
    began = time.perf_counter()
    from fedbounds.empirical.sweep import execute, shard
    from fedbounds.empirical.sweep.batches import parse_shard
    from fedbounds.empirical.sweep.executor import runs_bar

    if cluster is not None and workers is not None:
        raise FedboundsError("--cluster uses the workers of the cluster; leave out --workers")
    if probe is not None and not dry_run:
        raise FedboundsError("--probe belongs to --dry-run; add --dry-run or leave out --probe")
    chosen = parse_shard(part) if part is not None else None
    scheduler = _scheduler(cluster) if cluster is not None else None
    name, study, store = _open(spec, out, device)
    runs = study if chosen is None else shard(study, *chosen)
    head: dict[str, Any] = {"name": name, "directory": str(store.directory)}
    if chosen is not None:
        head["shard"] = {"index": chosen[0], "of": chosen[1], "runs": len(runs), "others": len(study) - len(runs)}
        name = f"{name}, shard {chosen[0]}/{chosen[1]}"
    at_once = scheduler.workers if scheduler else 1 if workers is None else workers
    if dry_run:
        _show_plan(name, head, runs, store, at_once, PROBE_SECONDS if probe is None else probe, began, as_json)
        return 0
    with _executor(scheduler) as executor, runs_bar(name) as progress:
        outcomes = execute(
            runs, store, workers=at_once, executor=executor, retry_failed=retry_failed, progress=progress
        )
    for outcome in outcomes:
        if outcome.made and outcome.before.startswith("damaged"):
            click.echo(f"{store.trace_path(outcome.run.key)} was {outcome.before}; made again", err=True)
    failed = [outcome for outcome in outcomes if outcome.failed]
    if as_json:
        listed = [{**_describe(o.run), "status": o.status, "made": o.made, "before": o.before} for o in outcomes]
        options.emit("run", {**head, "counts": _count(outcomes), "runs": listed})
    else:
        click.echo(f"{name}: {_sentence(outcomes)}; results in {store.directory}")
        if len(runs) < len(study):
            others = len(study) - len(runs)
            rest = f"{others} other run{_s(others)} in other shards"
            where = "" if out is None else f" --out {out}"
            click.echo(f"{rest}; the table of all: fedbounds results {spec}{where}")
        if sizes := _messages(runs):
            click.echo(f"a client's message in a round: {sizes}")
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
@options.device_option
@options.allow_import_option
@click.option("--csv", "csv_path", metavar="F", type=OutputPath(), help="Write the table to a CSV file.")
@options.force_option
@out_option
@options.json_option
def results(spec: str, device: str | None, csv_path: str | None, force: bool, out: str | None, as_json: bool) -> int:
    """Print the table of a TOML file's runs: labels, status, and the final and best value of each metric.

    \b
    fedbounds results examples/sweep.toml --csv sweep.csv
    """
    from fedbounds.empirical.sweep import tabulate, write_csv
    from fedbounds.empirical.sweep.table import origins, table_output

    name, runs, store = _open(spec, out, device)
    check_outputs([] if csv_path is None else [table_output(csv_path)], force, runs=store.directory)
    rows = tabulate(runs, store)
    if all(row.status == "missing" for row in rows):
        other = sum(1 for _ in store.directory.glob("*.npz"))
        why = f" ({other} of other settings or an earlier version of the sources)" if other else ""
        again = f"fedbounds run {spec}" + ("" if out is None else f" --out {out}")
        raise FedboundsError(f"no results of {spec} in {store.directory}{why}; to make them: {again}")
    if csv_path is not None:
        write_csv(rows, csv_path, force=force)
    made = origins(rows)
    mixed = {what: counts for what, counts in made.items() if len(counts) > 1}
    if as_json:
        listed = [
            {
                **_describe(row.run),
                "status": row.status,
                "metrics": {m: s._asdict() for m, s in row.metrics.items()},
            }
            for row in rows
        ]
        head = {"name": name, "directory": str(store.directory), "provenance": made, "mixed": [*mixed]}
        options.emit("results", {**head, "runs": listed})
    else:
        _print_table(rows)
        if mixed:
            origin = "; ".join(f"{what} {_counts(counts)}" for what, counts in mixed.items())
            click.echo(f"these runs have more than one origin: {origin}")
        if csv_path is not None:
            click.echo(f"written {csv_path}")
    return 0


@click.command("schema")
@click.argument("key", required=False, shell_complete=completion.keys)
def schema(key: str | None) -> None:
    """Print the JSON Schema of sweeps, of constants of the result KEY, of settings or of theorem files, for editors.

    \b
    fedbounds schema > sweep.schema.json                 then, in a sweep: #:schema ./sweep.schema.json
    fedbounds schema fedau/theorem-2 > constants.schema.json
    fedbounds schema advise > advise.schema.json         the input of fedbounds advise
    fedbounds schema theorem > theorem.schema.json       the input of fedbounds check
    """
    from fedbounds.bounds.theory.registry import load

    if key == "theorem":
        from fedbounds.bounds.theory.theorem_schema import theorem_schema

        click.echo(json.dumps(theorem_schema(), indent=1))
        return
    from fedbounds.empirical.monitoring.request_schema import question_schema
    from fedbounds.empirical.sweep.schema import constants_schema, sweep_schema

    found = question_schema() if key == "advise" else constants_schema(load(key)) if key else sweep_schema()
    click.echo(json.dumps(found, indent=1))


def _open(spec: str, out: str | None, device: str | None) -> tuple[str, tuple[Run, ...], Store]:
    from fedbounds.empirical.sweep import Store, plan, read_sweep

    sweep = read_sweep(spec)
    directory = Path("results") / sweep.name if out is None else Path(out)
    _check_directory(directory)
    runs = plan(sweep, device=device)
    return sweep.name, runs, Store(directory)


def _scheduler(address: str) -> Scheduler:
    """The scheduler at an address, after a warning if its workers are missing or have several threads."""
    from fedbounds.empirical.sweep.cluster import find_scheduler

    found = find_scheduler(address)
    if not found.workers:
        click.echo(f"no worker has joined {address} yet; `dask worker {address} --nthreads 1` starts one", err=True)
    elif found.threads > found.workers:
        click.echo("a worker makes one run at a time, however many threads it has: --nthreads 1 --nworkers N", err=True)
    return found


def _executor(scheduler: Scheduler | None) -> AbstractContextManager[Executor | None]:
    from fedbounds.empirical.sweep.cluster import cluster_executor

    return nullcontext() if scheduler is None else cluster_executor(scheduler)


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{value} ({count})" for value, count in found.items())


def _check_directory(directory: Path) -> None:
    """Refuse a path for results that is not a directory or cannot be entered."""
    try:
        os.stat(os.path.join(directory, "."))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise FedboundsError(f"{directory} is not a directory; results need a directory, e.g. --out results") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FedboundsError(
            f"cannot keep results in {str(directory)!r}: {reason}; choose another directory with --out"
        ) from None


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
    """The lengths of the clients' messages by algorithm."""
    sizes: dict[str, set[int]] = {}
    for run in runs:
        if run.message_bytes is not None:
            sizes.setdefault(_algorithm(run), set()).add(run.message_bytes)
    return ", ".join(f"{name} {_range(some)} bytes" for name, some in sizes.items())


def _loads(runs: Sequence[Run]) -> list[str]:
    """The traffic of a round over each class of links by algorithm."""
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
    return f"{counts['runs']} run{_s(counts['runs'])}: {', '.join(parts)}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


SHOWN_SECONDS = 0.1  # a dry run shows estimates from here on


def _show_plan(
    name: str,
    head: dict[str, Any],
    runs: Sequence[Run],
    store: Store,
    workers: int,
    patience: int,
    began: float,
    as_json: bool,
) -> None:
    from fedbounds.empirical.simulation.runtime_estimate import format_duration
    from fedbounds.empirical.sweep.estimate import Probe, estimate, probe

    def probe_runs(planned: Sequence[Batch]) -> Probe:
        with progress_bar("settings probed") as progress:
            return probe(planned, patience, progress)

    statuses = {run.key: store.read_status(run.key) for run in runs}
    planning = _STARTING + time.perf_counter() - began
    found = estimate(runs, statuses, workers, probe_runs if patience else None, planning)
    if as_json:
        listed = [
            {
                **_describe(run),
                "status": statuses[run.key].status,
                "at_least_seconds": run.seconds,
                "seconds": found.seconds[run.key],
            }
            for run in runs
        ]
        summed = {key: value for key, value in found._asdict().items() if key != "seconds"}
        options.emit("run", {**head, "dry_run": True, "runs": listed, "estimate": {"workers": workers, **summed}})
        return
    about = "about" if found.measured or found.tried else "at least"
    for run in runs:
        run_status, seconds = statuses[run.key], found.seconds[run.key]
        duration = (
            f"  ({about} {format_duration(seconds)})" if not run_status.finished and seconds >= SHOWN_SECONDS else ""
        )
        click.echo(f"{run.key[:12]}  {run_status.status:<8}  {run.title}{duration}")
    kinds = Counter(statuses[run.key].status.partition(":")[0] for run in runs)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    listed = f" ({counts})" if counts else ""
    click.echo(f"{name}: {len(runs)} run{_s(len(runs))}{listed} in {head['directory']}")
    if not found.memory:
        return
    on = f", {format_duration(found.elapsed)} on {workers} workers" if workers > 1 else ""
    click.echo(f"time for what is missing: {about} {format_duration(found.total)}{on} ({_why(found, patience)})")
    for_all = f", {_mebibytes(found.whole)} for {workers} workers" if workers > 1 else ""
    why = "counted, without activations"
    if found.memory_measured:
        why = f"the most that a process of {'finished runs' if found.measured else 'a few rounds'} took"
    click.echo(f"memory: about {_mebibytes(found.memory)} a process{for_all} ({why})")


def _why(found: Estimate, patience: int) -> str:
    """The source of an estimate of time."""
    if found.measured:
        return f"from {found.measured} finished run{_s(found.measured)}"
    if found.tried:
        return f"from a few rounds of {found.tried} setting{_s(found.tried)} here; finished runs give better estimates"
    none = f"; no round was made within {patience} seconds: increase --probe" if patience else ""
    return f"at a microsecond per local step; runs take hundreds to thousands of times as long{none}"


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


def _print_table(rows: Sequence[RunRow]) -> None:
    """Print one line per run: final values, and the best in parentheses."""
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
    click.echo("\n".join(options.align_columns(lines)))
