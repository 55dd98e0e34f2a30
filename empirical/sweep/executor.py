"""Make missing runs: in this process, in spawned local processes, or on a given executor.

Results do not depend on the number of workers, their order, or failures in between. A run that raises is recorded; a
run whose worker dies is made once more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import check_folder
from fedbounds.empirical.sweep.batches import batches
from fedbounds.empirical.sweep.executors import make_on
from fedbounds.empirical.sweep.maker import Maker, RunTask
from fedbounds.empirical.sweep.provenance import provenance
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.store import RunStatus, Store
from fedbounds.empirical.sweep.workers import make_spawned

MAX_WORKERS = 1024  # on one machine


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Args:
        run: the run.
        status: "done", "diverged" or "error: ...".
        made: whether it was executed now, or found in the store.
        before: its status before: "missing", "damaged: ...", or as found.
    """

    run: Run
    status: str
    made: bool
    before: str

    @property
    def failed(self) -> bool:
        """The run raised, now or earlier."""
        return self.status.startswith("error: ")


Progress = Callable[[Outcome, int, int], None]


@contextmanager
def runs_bar(name: str) -> Iterator[Progress | None]:
    """How many runs of a sweep are done, on standard error, if that is a terminal."""
    with progress_bar(name) as advance:
        yield None if advance is None else (lambda outcome, done, total: advance(done, total))


def execute(
    runs: Iterable[Run],
    store: Store,
    *,
    workers: int = 1,
    executor: Executor | None = None,
    retry_failed: bool = False,
    run_task: RunTask | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Make the runs that the store does not have; return one outcome per run, in order.

    Args:
        runs: from `plan`; runs with the same key are made once.
        store: where results are looked up and kept.
        workers: 0 or 1 runs in this process; more are spawned local processes (a script that starts them
            needs `if __name__ == "__main__":`).
        executor: where to make them instead, with the semantics of `concurrent.futures.Executor`: a pool of
            threads (one run at a time), of spawned processes, of loky, or Dask's `Client.get_executor(pure=False)`; it
            has `workers` workers, which see the folder of the store under its absolute name. It stays open.
        retry_failed: make runs again whose record says that they raised.
        run_task: task to trace, one by one (default: `fedbounds.empirical.sweep.task.run_together`, in `batches`); for
            several workers it must be a function at the top of a module.
        progress: called in this process with (outcome, outcomes so far, runs in all); found runs come first.

    Raises:
        FedboundsError: the results cannot be written, `workers` is out of range, or the executor has ended, or a worker
            of it has other sources, versions, data or another folder; what was finished is kept.
        KeyboardInterrupt: passed on once the workers have ended; what was finished is kept.
    """
    if not 0 <= workers <= (MAX_WORKERS if executor is None else sys.maxsize):
        raise FedboundsError(f"workers = {workers} must be an integer in [0, {MAX_WORKERS}]")
    store.remove_leftovers()
    runs = list(runs)
    distinct = {run.key: run for run in runs}
    statuses = {key: store.read_status(key) for key in distinct}
    wanted = [run for key, run in distinct.items() if _wanted(statuses[key], retry_failed)]
    outcomes: dict[str, Outcome] = {}

    def report(key: str, status: str, made: bool = True) -> None:
        outcomes[key] = Outcome(distinct[key], status, made, statuses[key].status)
        if progress is not None:
            progress(outcomes[key], len(outcomes), len(distinct))

    making = {run.key for run in wanted}
    for key in distinct:
        if key not in making:
            report(key, statuses[key].status, made=False)
    if wanted:
        check_folder(store.directory)
    facts = provenance() if wanted else {}
    planned = list(batches(wanted, workers) if run_task is None else ((run,) for run in wanted))
    maker = Maker(store, facts, run_task)
    workers = min(workers, len(planned))
    if executor is not None and planned:
        ended = make_on(executor, planned, maker, workers)
    elif workers <= 1:
        ended = (news for batch in planned for news in maker.make(batch))
    else:
        ended = make_spawned(planned, maker, workers)
    with closing(ended):
        for news in ended:
            report(*news)
    return [outcomes[run.key] for run in runs]


def _wanted(run_status: RunStatus, retry_failed: bool) -> bool:
    return not run_status.finished and (retry_failed or not run_status.failed)
