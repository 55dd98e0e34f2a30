"""Run the runs that are not there yet: in this process, or on spawned local processes.

Each run is made alone, with one thread for its arithmetic, and written by the process that made it; so
results do not depend on the number of workers, on their order, or on failures in between. A run that raises
is recorded and the others go on; a worker that dies (killed for its memory, say) costs its run and is
replaced. Runs that `batches` puts together are made together, and alone if that fails. A run or batch in
progress is all that a killed sweep loses. The pool of the standard library does less: there a worker that dies
breaks the whole pool.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep.batches import Batch, batches
from fedbounds.empirical.sweep.provenance import provenance
from fedbounds.empirical.sweep.runs import Run
from fedbounds.empirical.sweep.spec import Task
from fedbounds.empirical.sweep.store import CannotWrite, Standing, Store

if TYPE_CHECKING:
    from fedbounds.empirical.trace import Trace

RunTask = Callable[[Task], "Trace"]
RunTogether = Callable[[Sequence[Task]], Iterable[Sequence["Trace"]]]
MAX_WORKERS = 1024
MAX_STATUS = 300
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Args:
        run: the run.
        status: "done", "diverged" or "error: ...".
        made: it was executed now, rather than found in the store.
        before: its status before: "missing", "damaged: ...", or what it was found as.
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


def execute(
    runs: Iterable[Run],
    store: Store,
    *,
    workers: int = 1,
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
        retry_failed: make runs again whose record says that they raised.
        run_task: task to trace, one by one (default: `fedbounds.empirical.sweep.task.run_together`, in `batches`); for
            several workers it must be a function at the top of a module.
        progress: called in this process with (outcome, outcomes so far, runs in all); found runs come first.

    Raises:
        FedboundsError: the results cannot be written, or `workers` is out of range.
        KeyboardInterrupt: passed on once the workers have ended; what was finished is kept.
    """
    if not 0 <= workers <= MAX_WORKERS:
        raise FedboundsError(f"workers = {workers} must be an integer in [0, {MAX_WORKERS}]")
    runs = list(runs)
    distinct = {run.key: run for run in runs}
    standings = {key: store.standing(key) for key in distinct}
    wanted = [run for key, run in distinct.items() if _wanted(standings[key], retry_failed)]
    outcomes: dict[str, Outcome] = {}

    def report(key: str, status: str, made: bool) -> None:
        outcomes[key] = Outcome(distinct[key], status, made, standings[key].status)
        if progress is not None:
            progress(outcomes[key], len(outcomes), len(distinct))

    making = {run.key for run in wanted}
    for key in distinct:
        if key not in making:
            report(key, standings[key].status, made=False)
    facts = provenance() if wanted else {}
    planned = list(batches(wanted, workers) if run_task is None else ((run,) for run in wanted))
    maker = Maker(store, facts, run_task)
    workers = min(workers, len(planned))
    if workers <= 1:
        made = (one for batch in planned for one in maker.make(batch))
    else:
        made = _make_spawned(planned, maker, workers)
    with closing(made):
        for key, status in made:
            report(key, status, made=True)
    return [outcomes[run.key] for run in runs]


def _wanted(standing: Standing, retry_failed: bool) -> bool:
    return not standing.finished and (retry_failed or not standing.failed)


@dataclass(frozen=True)
class Maker:
    """Makes runs and keeps what they give.

    Args:
        store: where.
        facts: of this process and the sources, for the records.
        run_task: a task to its trace; None for all tasks of a batch to theirs, together.
    """

    store: Store
    facts: Mapping[str, Any]
    run_task: RunTask | None

    def make(self, batch: Batch) -> Iterator[tuple[str, str]]:
        """Runs a batch; (key, status) of each run, once its trace or the error it raised is kept.

        A batch that fails is made again run by run, so that the error is found in the run that raises it.
        """
        left = list(batch)
        if len(batch) > 1:
            with suppress(_Failed):
                for key, status in self._kept(batch):
                    del left[0]
                    yield key, status
        for run in left:
            try:
                yield from self._kept((run,))
            except _Failed as failed:
                yield run.key, failed.args[0]

    def _kept(self, batch: Batch) -> Iterator[tuple[str, str]]:
        started, clock, waiting = datetime.now(UTC), time.perf_counter(), iter(batch)

        def about(run: Run, among: int) -> dict[str, Any]:
            when = {"started": started.isoformat(timespec="seconds")}
            seconds = round((time.perf_counter() - clock) / among, 3)
            return {"task": run.task, "seconds": seconds, "provenance": {**self.facts, **when}}

        for run in batch:
            self.store.sweep_up(run.key)
        try:
            for traces in self._traces(batch):
                some = [next(waiting) for _ in traces]
                facts = [about(run, len(traces)) for run in some]
                for run, trace, fact in zip(some, traces, facts, strict=True):
                    yield run.key, self.store.save(run.key, trace, fact)
                clock = time.perf_counter()
        except CannotWrite:
            raise
        except Exception as error:
            if len(batch) > 1:
                raise _Failed from error
            text = {**about(batch[0], 1), "traceback": traceback.format_exc()}
            raise _Failed(self.store.save_error(batch[0].key, _one_line(error), text)) from error
        finally:
            for run in batch:
                self.store.sweep_up(run.key)

    def _traces(self, batch: Batch) -> Iterable[Sequence[Trace]]:
        if self.run_task is not None:
            return ([self.run_task(run.task)] for run in batch)
        from fedbounds.empirical.sweep.task import run_together

        return run_together([run.task for run in batch])


class _Failed(Exception):
    """A batch could not be made; with one run the status that is kept of it."""


def _one_line(error: Exception) -> str:
    reason = " ".join(str(error).split())
    if not isinstance(error, FedboundsError):
        reason = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return f"error: {reason}" if len(reason) <= MAX_STATUS else f"error: {reason[:MAX_STATUS]}..."


def _make_spawned(planned: Sequence[Batch], maker: Maker, workers: int) -> Generator[tuple[str, str], None, None]:
    """Hand the batches out one at a time; yield (key, status) as they end."""
    waiting = list(reversed(planned))
    at_work: dict[Connection, tuple[SpawnProcess, Batch]] = {}

    def hire() -> None:
        process, connection = _spawn(maker)
        at_work[connection] = (process, ())

    try:
        for _ in range(workers):
            hire()
        while at_work:
            ready = wait(list(at_work))
            for connection in [connection for connection in at_work if connection in ready]:
                process, batch = at_work[connection]
                try:
                    message = connection.recv()
                except (EOFError, OSError):
                    del at_work[connection]
                    process.join()
                    found, alone = _after_death(process.exitcode, batch, maker)
                    waiting += alone
                    if waiting:
                        hire()
                    yield from found
                    continue
                if isinstance(message, Exception):
                    raise message
                following = waiting.pop() if waiting else ()
                at_work[connection] = (process, following)
                with suppress(OSError):  # it has died: the next receive says so
                    connection.send(following)
                if not following:
                    del at_work[connection]
                    process.join()
                yield from message
    finally:
        for process, _ in at_work.values():
            process.terminate()
        for connection, (process, batch) in at_work.items():
            process.join()
            connection.close()
            for run in batch:
                maker.store.sweep_up(run.key)


def _after_death(code: int | None, batch: Batch, maker: Maker) -> tuple[list[tuple[str, str]], list[Batch]]:
    """What a dead worker leaves of its batch: (key, status) of runs that have ended, and runs to be made alone."""
    if not batch:
        raise FedboundsError(
            f"a worker process ended before it began (exit code {code}); "
            "a script that starts workers must do so under: if __name__ == '__main__':"
        )
    for run in batch:
        maker.store.sweep_up(run.key)
    if len(batch) > 1:
        standings = {run.key: maker.store.standing(run.key) for run in batch}
        found = [(run.key, standings[run.key].status) for run in batch if standings[run.key].finished]
        return found, [(run,) for run in reversed(batch) if not standings[run.key].finished]
    why = "killed, perhaps for its memory" if code == -9 else "see the messages above"
    status = f"error: its worker process died with exit code {code} ({why})"
    facts = {"task": batch[0].task, "seconds": None, "provenance": maker.facts}
    return [(batch[0].key, maker.store.save_error(batch[0].key, status, facts))], []


def _spawn(maker: Maker) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, maker), daemon=True)
    with _interrupts_ignored(), _one_thread_each():
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Children inherit the environment: libraries start no threads there beside those of the other workers."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Children inherit the disposition: an interrupt from the terminal is the parent's to handle, from their start."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(connection: Connection, maker: Maker) -> None:
    """A worker: announce itself, then make what it is handed until it is handed nothing or the parent is gone."""
    try:
        connection.send(())
        while batch := connection.recv():
            try:
                message: list[tuple[str, str]] | Exception = list(maker.make(batch))
            except CannotWrite as error:
                message = error
            connection.send(message)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
