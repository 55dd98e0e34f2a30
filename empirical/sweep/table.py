"""The table of a sweep: one row per run, with its labels, its status and a summary of every metric."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedbounds.bounds.display.plain_text import as_cell
from fedbounds.bounds.inputs.output_files import Output, write_output
from fedbounds.empirical.sweep.provenance import origin
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.store import Store

if TYPE_CHECKING:
    from fedbounds.empirical.simulation.trace import Trace


class Summary(NamedTuple):
    """A metric of a run, averaged over its seeds."""

    final: float  # the mean over seeds at the last record
    deviation: float  # the standard deviation over seeds there (denominator: seeds - 1); NaN for one seed
    # the best, over the recorded rounds, of the mean over seeds: the largest for an accuracy or an F1 score, else the
    # smallest
    best: float


@dataclass(frozen=True)
class RunRow:
    """One run in the table."""

    run: Run  # the run, with its labels
    status: str  # "done", "diverged", "error: ...", "missing" or "damaged: ..."
    metrics: dict[str, Summary]  # name to summary; empty unless the run has finished
    # host, versions, git and device that made it; empty unless it has finished
    origin: Mapping[str, str] = field(default_factory=dict)


def tabulate(runs: Iterable[Run], store: Store) -> list[RunRow]:
    """Look every run up and summarize the traces that are there and whole."""
    rows = []
    for run in runs:
        run_status = store.read_status(run.key)
        metrics: dict[str, Summary] = {}
        made: dict[str, str] = {}
        if run_status.finished:
            trace = store.load(run.key)
            metrics, made = summarize(trace), origin(run_status.record["provenance"])
            made["device"] = str(trace.spec.get("device", "cpu")).rpartition(", ")[2]  # whichever of several like it
        rows.append(RunRow(run, run_status.status, metrics, made))
    return rows


def origins(rows: Iterable[RunRow]) -> dict[str, dict[str, int]]:
    """Where the finished runs come from: of host, each version, git and device, how many runs have which."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        for name, value in row.origin.items():
            found.setdefault(name, Counter())[value] += 1
    return {name: dict(counts.most_common()) for name, counts in found.items()}


def summarize(trace: Trace) -> dict[str, Summary]:
    """The summary of every metric of a trace; a seed that diverged makes the mean NaN from then on.

    Example:
        >>> from fedbounds.empirical.simulation.trace import Trace
        >>> trace = Trace({"loss": np.array([[3.0, 1.0, 2.0], [3.0, 3.0, 4.0]])}, {"loss": ("seed", "round")}, {}, "",
        ...     ("done", "done"))
        >>> summarize(trace)["loss"]
        Summary(final=3.0, deviation=1.4142135623730951, best=2.0)
    """
    summaries = {}
    for name in trace.metrics:
        values = trace.arrays[name]
        if values.dtype.kind != "f":
            continue
        mean = values.mean(0, dtype=np.float64)
        seen = mean[~np.isnan(mean)]
        best = (seen.max() if name.endswith(("accuracy", "_f1")) else seen.min()) if seen.size else math.nan
        deviation = values[:, -1].std(ddof=1, dtype=np.float64) if len(values) > 1 else math.nan
        summaries[name] = Summary(float(mean[-1]), float(deviation), float(best))
    return summaries


def flatten(rows: Sequence[RunRow]) -> tuple[list[str], list[dict[str, Any]]]:
    """The rows as plain dictionaries, and the columns in order: labels, seeds, status, metrics, key.

    A metric `m` has the columns `m final`, `m deviation` and `m best`. A cell that a row does not have is
    absent.
    """
    labels = list(dict.fromkeys(name for row in rows for name in row.run.task["labels"]))
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    columns = [
        *labels,
        "seeds",
        "status",
        *(f"{m} {part}" for m in metrics for part in Summary._fields),
        "key",
    ]
    records = []
    for row in rows:
        record = {**row.run.task["labels"], "seeds": list(row.run.task["seeds"]), "status": row.status}
        for name, summary in row.metrics.items():
            record |= {f"{name} {part}": value for part, value in summary._asdict().items()}
        records.append(record | {"key": row.run.key})
    return columns, records


def table_output(path: str | Path) -> Output:
    """The flat table as a file."""
    return Output(Path(path))


def write_csv(rows: Sequence[RunRow], path: str | Path, *, force: bool = False) -> None:
    """Write the flat table as CSV, whole or not at all; lists are written as JSON, missing cells empty.

    Args:
        rows: of the table.
        path: where.
        force: overwrite a file that fedbounds did not write.

    Raises:
        FedboundsError: the file cannot be written, or there is such a file.
    """
    columns, records = flatten(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(as_cell, columns))
    for record in records:
        cells = (record.get(column, "") for column in columns)
        writer.writerow([json.dumps(cell) if isinstance(cell, list) else as_cell(cell) for cell in cells])
    write_output(table_output(path), text.getvalue().encode(), force)
