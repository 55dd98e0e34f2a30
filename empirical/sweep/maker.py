"""Makes runs in this process, a batch together or one by one; every result or error is saved."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep.batches import Batch
from fedbounds.empirical.sweep.provenance import peak_bytes
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.spec import Task
from fedbounds.empirical.sweep.store import CannotWrite, Store

if TYPE_CHECKING:
    from fedbounds.empirical.simulation.trace import Trace

RunTask = Callable[[Task], "Trace"]
MAX_STATUS = 300
SYNC_SECONDS = 1.0  # seconds


class RunUpdate(NamedTuple):
    """The key and status of a run, and whether it was made now or found."""

    key: str
    status: str
    made: bool = True


@dataclass(frozen=True)
class Maker:
    """Makes runs and saves their results."""

    store: Store  # the results
    facts: Mapping[str, Any]  # provenance of this process and the sources, for the records
    run_task: RunTask | None  # from a task to its trace; None for all tasks of a batch together

    def make(self, batch: Batch) -> Iterator[RunUpdate]:
        """Make the missing runs of a batch; yields an update for each run, once its trace or error is saved.

        A batch that fails is made again run by run, so that the error is found in the run that raises it.
        """
        found, left = self.look(batch)
        yield from found
        if len(left) > 1:
            with suppress(_Failed):
                for news in self._make_and_save(tuple(left)):
                    del left[0]
                    yield news
        for run in left:
            try:
                yield from self._make_and_save((run,))
            except _Failed as failed:
                yield RunUpdate(run.key, failed.args[0])

    def look(self, batch: Batch) -> tuple[list[RunUpdate], list[Run]]:
        """The finished runs of a batch, and the missing ones."""
        statuses = {run.key: self.store.read_status(run.key) for run in batch}
        found = [
            RunUpdate(key, run_status.status, made=False) for key, run_status in statuses.items() if run_status.finished
        ]
        return found, [run for run in batch if not statuses[run.key].finished]

    def _make_and_save(self, batch: Batch) -> Iterator[RunUpdate]:
        started, clocks, waiting = datetime.now(UTC), _clocks(), iter(batch)

        def about(run: Run, among: int) -> dict[str, Any]:
            when = {"started": started.isoformat(timespec="seconds"), "peak_bytes": peak_bytes()}
            passed = (round((now - before) / among, 3) for now, before in zip(_clocks(), clocks, strict=True))
            return {
                "task": run.task,
                **dict(zip(("seconds", "core_seconds"), passed, strict=True)),
                "provenance": {**self.facts, **when},
            }

        try:
            for traces in self._traces(batch):
                some = [next(waiting) for _ in traces]
                facts = [about(run, len(traces)) for run in some]
                for run, trace, fact in zip(some, traces, facts, strict=True):
                    yield RunUpdate(run.key, self.store.save(run.key, trace, fact, sync=_is_long(fact)))
                clocks = _clocks()
        except CannotWrite:
            raise
        except Exception as error:
            if len(batch) > 1:
                raise _Failed from error
            text = {**about(batch[0], 1), "traceback": traceback.format_exc()}
            status = self.store.save_error(batch[0].key, error_status(error), text, sync=_is_long(text))
            raise _Failed(status) from error

    def _traces(self, batch: Batch) -> Iterable[Sequence[Trace]]:
        if self.run_task is not None:
            return ([self.run_task(run.task)] for run in batch)
        from fedbounds.empirical.sweep.task import run_together

        return run_together([run.task for run in batch])


def _clocks() -> tuple[float, float]:
    """The time and the processor time of this process, in seconds."""
    return time.perf_counter(), time.process_time()


def _is_long(facts: Mapping[str, Any]) -> bool:
    """Whether a run took longer than a disk may take to sync it."""
    return facts["seconds"] > SYNC_SECONDS


class _Failed(Exception):
    """A batch could not be made; with one run the status that is kept of it."""


def error_status(error: Exception) -> str:
    """An error as the status of a run."""
    reason = " ".join(str(error).split())
    if not isinstance(error, FedboundsError):
        reason = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return f"error: {reason}" if len(reason) <= MAX_STATUS else f"error: {reason[:MAX_STATUS]}..."
