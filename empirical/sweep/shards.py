"""A sweep in n parts for independent jobs: every run is in exactly one part, by the sweep file alone.

Runs that are made together stay together; the parts have about equal estimated seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from heapq import heapreplace

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep.batches import batches
from fedbounds.empirical.sweep.runs import Run

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
