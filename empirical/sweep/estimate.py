"""Time and memory of missing runs, from finished runs of the sweep, from a few rounds run here, or from a model.

The model counts a microsecond for each local step, a lower bound, and the numbers that a run holds in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapreplace
from statistics import median
from typing import NamedTuple

from fedbounds.empirical.sweep.batches import batches, setting
from fedbounds.empirical.sweep.probe import Probe
from fedbounds.empirical.sweep.provenance import peak_bytes
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.store import RunStatus


class Estimate(NamedTuple):
    """Time and memory of missing runs.

    Args:
        seconds: of each run, by its key.
        measured: number of finished runs that the estimate uses.
        tried: number of settings that were run for a few rounds; without these and finished runs, seconds are lower
            bounds.
        total: seconds of all missing runs, one after another.
        elapsed: seconds of all missing runs on the given workers.
        memory: bytes of a process that makes the largest batch.
        whole: bytes of all workers at once.
        memory_measured: whether the memory was measured.
    """

    seconds: Mapping[str, float]
    measured: int
    tried: int
    total: float
    elapsed: float
    memory: int
    whole: int
    memory_measured: bool


def estimate(
    runs: Sequence[Run],
    standings: Mapping[str, RunStatus],
    workers: int,
    trial: Callable[[Sequence[Run]], Probe] | None = None,
) -> Estimate:
    """Time and memory that the runs which are not finished will take."""
    distinct = {run.key: run for run in runs}
    made = {key: standings[key].record for key in distinct if standings[key].finished}
    ratios: dict[str, list[float]] = {}
    for key, record in made.items():
        if record["seconds"] and distinct[key].seconds:
            ratios.setdefault(setting(distinct[key].task), []).append(record["seconds"] / distinct[key].seconds)
    measured = sum(map(len, ratios.values()))
    missing = [run for key, run in distinct.items() if not standings[key].finished]
    probed = trial(missing) if trial is not None and missing and not measured else Probe({}, 0)
    for run in missing:
        if (alike := setting(run.task)) in probed.seconds and run.seconds:
            ratios[alike] = [probed.seconds[alike] / run.seconds]
    known = [ratio for some in ratios.values() for ratio in some]
    usual = median(known) if known else 1.0
    seconds = {
        key: run.seconds * (median(ratios[alike]) if (alike := setting(run.task)) in ratios else usual)
        for key, run in distinct.items()
    }
    planned = list(batches(missing, workers))
    loads = [sum(seconds[run.key] for run in batch) for batch in planned]
    peaks = [record["provenance"].get("peak_bytes") for record in made.values()]
    seen = max((peak for peak in peaks if peak), default=0)
    alone = probed.memory or peak_bytes()
    held = [seen or alone + sum(run.memory for run in batch[bool(probed.memory) :]) for batch in planned]
    sizes = sorted(held, reverse=True)
    return Estimate(
        seconds, measured, len(probed.seconds), sum(loads), _elapsed(loads, workers), max(sizes, default=0),
        sum(sizes[: max(workers, 1)]), bool(seen or probed.memory),
    )  # fmt: skip


def _elapsed(loads: Sequence[float], workers: int) -> float:
    """When the last of so many workers ends, if each takes the next batch as soon as it can."""
    ends = [0.0] * max(1, min(workers, len(loads)))
    for load in loads:
        heapreplace(ends, ends[0] + load)
    return max(ends)
