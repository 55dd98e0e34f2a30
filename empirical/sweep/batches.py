"""Batches of runs that differ only in step sizes and seeds, where that is faster, and shards of a sweep.

On a processor batches are faster for dense networks and quadratics, on a CUDA device for all problems. Keys, records
and files are those of single runs.

A shard is one of n parts of a sweep, for independent jobs. Every run is in exactly one part, by the sweep file alone;
runs of a batch stay together, and the parts have about equal estimated seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapreplace
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep.keys import canonical_json
from fedbounds.empirical.sweep.runs import Run

Batch = Sequence[Run]


def batches(runs: Sequence[Run], workers: int) -> Iterator[Batch]:
    """The runs in batches, each of no more than a worker's share of those that are alike, by their first runs."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        alike.setdefault(run.key if run.together == 1 else setting(run.task), []).append(run)
    for group in alike.values():
        size = min(group[0].together, -(-len(group) // max(workers, 1)))
        for start in range(0, len(group), size):
            yield tuple(group[start : start + size])


def setting(task: Mapping[str, Any]) -> str:
    """What runs that are made together have in common: all but labels, seeds, and the sizes of steps."""
    kept = {name: value for name, value in task.items() if name not in ("labels", "seeds")}
    for name in ("algorithm", "phases"):
        if name in kept:
            kept[name] = _sizes_left_out(kept[name])
    return canonical_json(kept)


def _sizes_left_out(value: Any) -> Any:
    """A table whose numbers that are no counts are all the same."""
    if isinstance(value, Mapping):
        return {key: _sizes_left_out(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_sizes_left_out(inner) for inner in value]
    return 0.5 if isinstance(value, float) else value


TO_BEGIN = 10  # milliseconds that any run takes beside its steps


def parse_shard(text: str) -> tuple[int, int]:
    """The i and the n of "i/n"."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    index, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= index <= of:
        raise FedboundsError(
            f"{text!r} is no shard: i/n with i from 1 to n, as in 3/8; an array of jobs counts from 1 with "
            "sbatch --array=1-8"
        )
    return index, of


def shard(runs: Iterable[Run], index: int, of: int) -> tuple[Run, ...]:
    """The runs of part `index` of `of`, in order; together the parts are all runs, and no two have one in common."""
    runs = tuple(runs)
    distinct = list({run.key: run for run in runs}.values())
    loads, mine = [(0, part) for part in range(1, of + 1)], set[str]()
    for batch in sorted(batches(distinct, of), key=lambda batch: (-_milliseconds(batch), batch[0].key)):
        load, part = loads[0]
        heapreplace(loads, (load + _milliseconds(batch), part))
        if part == index:
            mine.update(run.key for run in batch)
    return tuple(run for run in runs if run.key in mine)


def _milliseconds(batch: Sequence[Run]) -> int:
    """Whole numbers, whose sums are the same everywhere."""
    return sum(TO_BEGIN + round(1000 * run.seconds) for run in batch)
