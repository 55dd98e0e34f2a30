"""Which runs of a sweep are made together: those that differ only in step sizes and seeds, where it is faster.

On a processor that holds for dense networks and quadratics, on a CUDA device for all problems. Keys, records and files
are those of single runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
