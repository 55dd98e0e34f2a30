"""A pool of spawned local processes, which are replaced when they die.

The pool of the standard library does less: there a worker that dies breaks the whole pool.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep.batches import Batch
from fedbounds.empirical.sweep.maker import Maker, RunUpdate
from fedbounds.empirical.sweep.store import CannotWrite

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MAX_FAILED_STARTS = 10


def make_spawned(planned: Sequence[Batch], maker: Maker, workers: int) -> Generator[RunUpdate, None, None]:
    """Hand the batches out one at a time; yield the news of each run as they end."""
    pool = _Pool(maker, deque(planned))
    try:
        for _ in range(workers):
            pool.start_worker()
        while pool.at_work:
            ready = wait(list(pool.at_work))
            for connection in [connection for connection in pool.at_work if connection in ready]:
                yield from pool.receive(connection)
    finally:
        pool.close()


class _Pool:
    """Workers with their batches, and the waiting batches."""

    def __init__(self, maker: Maker, waiting: deque[Batch]) -> None:
        self.maker, self.waiting = maker, waiting
        self.at_work: dict[Connection, tuple[SpawnProcess, Batch]] = {}
        self._crashed_once: set[str] = set()  # runs whose worker has died once
        self._failed_starts = 0  # workers in a row that died before they began

    def start_worker(self) -> None:
        """Start a worker."""
        process, connection = spawn_process(_work, self.maker)
        self.at_work[connection] = (process, ())

    def receive(self, connection: Connection) -> list[RunUpdate]:
        """The updates of a worker, which gets the next batch or is replaced."""
        process, _ = self.at_work[connection]
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return self._replace_dead_worker(connection)
        if isinstance(message, Exception):
            raise message
        self._failed_starts = 0
        following = self.waiting.popleft() if self.waiting else ()
        self.at_work[connection] = (process, following)
        with suppress(OSError):  # it has died: the next receive says so
            connection.send(following)
        if not following:
            self._end_worker(connection)
        return message

    def close(self) -> None:
        """End all workers."""
        for process, _ in self.at_work.values():
            process.terminate()
        for connection in list(self.at_work):
            self._end_worker(connection)
        self.maker.store.remove_leftovers()

    def _end_worker(self, connection: Connection) -> tuple[SpawnProcess, Batch]:
        process, batch = self.at_work.pop(connection)
        process.join()
        connection.close()
        return process, batch

    def _replace_dead_worker(self, connection: Connection) -> list[RunUpdate]:
        """Replace a dead worker; returns its finished runs. The others are made again, alone.

        A run whose worker dies for the second time has ended, too, with an error.
        """
        process, batch = self._end_worker(connection)
        code, store = process.exitcode, self.maker.store
        store.remove_leftovers()
        self._failed_starts += not batch
        if not batch and (code is None or code >= 0 or self._failed_starts > MAX_FAILED_STARTS):
            raise FedboundsError(
                f"a worker process ended before it began (exit code {code}); "
                "a script that starts workers must do so under: if __name__ == '__main__':"
            )
        ended: list[RunUpdate] = []
        for run in batch:
            status = store.read_status(run.key).status
            if status in ("done", "diverged"):
                ended.append(RunUpdate(run.key, status))
            elif run.key not in self._crashed_once:
                self._crashed_once.add(run.key)
                self.waiting.append((run,))
            else:
                why = "killed, perhaps for its memory" if code == -9 else "see the messages above"
                status = f"error: its worker process died, twice, with exit code {code} ({why})"
                facts = {"task": run.task, "seconds": None, "provenance": self.maker.facts}
                ended.append(RunUpdate(run.key, store.save_error(run.key, status, facts)))
        if self.waiting:
            self.start_worker()
        return ended


def spawn_process(work: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, Connection]:
    """A process that does this work, with one thread, and ends with this one; and what it sends through."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_attached, args=(work, theirs, *arguments), daemon=True)
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


def _run_attached(work: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(connection, *arguments)


def _work(connection: Connection, maker: Maker) -> None:
    """A worker: report the start, then make batches until it gets an empty one or the parent has ended."""
    try:
        connection.send([])
        while batch := connection.recv():
            try:
                message: list[RunUpdate] | Exception = list(maker.make(batch))
            except CannotWrite as error:
                message = error
            connection.send(message)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone, also in the midst of a run."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
