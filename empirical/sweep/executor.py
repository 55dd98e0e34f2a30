"""Make missing runs: in this process, in spawned local processes, or on a given executor.

Results do not depend on the number of workers, their order, or failures in between. A run that raises is recorded; a
run whose worker dies is made once more.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.inputs.output_files import check_folder
from fedbounds.empirical.sweep.batches import Batch, batches
from fedbounds.empirical.sweep.keys import algorithm_modules, source_digest, source_files
from fedbounds.empirical.sweep.maker import Maker, RunTask, RunUpdate, error_status
from fedbounds.empirical.sweep.provenance import provenance
from fedbounds.empirical.sweep.runs import Run, local_key
from fedbounds.empirical.sweep.store import CannotWrite, RunStatus, Store
from fedbounds.empirical.sweep.workers import make_spawned

AHEAD = 1024  # batches handed out at once, at least
POLL_SECONDS = 1.0  # seconds between looks for records that other machines have written
PATIENCE = 90.0  # seconds after which they should be seen: the caches of a network file system live for up to 60
STARTED = time.time()

_one_at_a_time = threading.Lock()  # torch keeps its number of threads, and more, for a whole process


class WorkerAnswer(NamedTuple):
    """What a worker says of a batch: the news of its runs, or why it makes none here."""

    news: tuple[RunUpdate, ...]
    refusal: str = ""


@dataclass(frozen=True)
class WorkerJob:
    """What a worker gets with its batch."""

    maker: Maker  # its folder must have the same name on every machine
    witness: str  # the name of a file in that folder, by which a worker recognizes it
    packages: Mapping[str, str]  # versions here

    def make(self, batch: Batch, sources: str, nonce: str) -> WorkerAnswer:
        """Make a batch in the process that this is called in, one batch at a time there."""
        here = f"the worker {platform.node()} (process {os.getpid()})"
        with _one_at_a_time:
            if why := self._refusal(batch, sources):
                return WorkerAnswer((), f"{here} {why}")
            try:
                return WorkerAnswer(tuple(replace(self.maker, facts=_facts()).make(batch)))
            except CannotWrite as error:
                return WorkerAnswer((), f"{here}: {error}")

    def _refusal(self, batch: Batch, sources: str) -> str:
        folder = self.maker.store.directory
        with suppress(OSError):
            os.scandir(folder).close()  # a network file system looks anew at what is opened
        if not (folder / self.witness).exists():
            return f"does not see what is in {folder}; results need a folder on a file system that all workers share"
        theirs = _versions(_facts())
        other = [name for name, version in self.packages.items() if theirs.get(name) != version]
        if other:
            have, want = ([f"{name} {some.get(name)}" for name in other] for some in (theirs, self.packages))
            return f"has {', '.join(have)}, and not {', '.join(want)}; install the same versions for all workers"
        if self.maker.run_task is not None:
            return ""
        modules = algorithm_modules(batch[0].task)
        if _digest(modules) != sources:
            return "has other sources of fedbounds, or of a paper's package, than this process; install the same"
        if _sources_changed(modules):
            return "has been running since before its sources changed; restart it"
        wrong = next((run for run in batch if local_key(run.task, sources) != run.key), None)
        return "" if wrong is None else f"reads other data than this process for {wrong.title}; give all the same files"


def make_on(
    executor: Executor, planned: Sequence[Batch], maker: Maker, workers: int
) -> Generator[RunUpdate, None, None]:
    """Hand batches to an executor; yield the news of each run once its record is seen in the folder."""
    store = Store(maker.store.directory.absolute())
    job = WorkerJob(replace(maker, store=store), _witness(store), _versions(maker.facts))
    digest = cache(source_digest)
    waiting, at_work = deque(planned), dict[Future[WorkerAnswer], Batch]()
    ended: SimpleQueue[Future[WorkerAnswer]] = SimpleQueue()
    unseen: list[RunUpdate] = []
    suspects, suspected = deque[Batch](), set[str]()  # in a batch it is unknown which run killed the worker
    last = time.monotonic()
    try:
        while waiting or at_work or unseen or suspects:
            if suspects and not (waiting or at_work):
                waiting.append(suspects.popleft())
            while waiting and len(at_work) < max(AHEAD, 4 * workers):
                found, left = job.maker.look(waiting.popleft())
                yield from found
                if left:
                    sources = "" if maker.run_task is not None else digest(algorithm_modules(left[0].task))
                    batch = tuple(left)
                    future = _submit(executor, job, sources, batch, chain(at_work.values(), waiting))
                    at_work[future] = batch
                    future.add_done_callback(ended.put)
            if at_work:
                with suppress(Empty):
                    future = ended.get(timeout=POLL_SECONDS if unseen else None)
                    batch = at_work.pop(future)
                    if len(batch) == 1 and batch[0].key not in suspected and _was_killed(future):
                        suspected.add(batch[0].key)
                        suspects.append(batch)
                        continue
                    news, alone = _batch_updates(future, job, batch, chain(at_work.values(), waiting))
                    waiting.extendleft(alone)
                    unseen += news
                    last = time.monotonic()
            elif unseen:
                time.sleep(POLL_SECONDS)
            seen, unseen = _split_by_visibility(unseen, store)
            yield from seen
            if unseen and not at_work and not waiting and time.monotonic() > last + PATIENCE:
                key = unseen[0].key
                raise FedboundsError(
                    f"workers have made {len(unseen)} runs that are not whole in {store.directory} here, such as "
                    f"{key[:12]} ({store.read_status(key).status}); results need a folder that all workers share"
                )
    finally:
        for future in at_work:
            future.cancel()


def _submit(
    executor: Executor, job: WorkerJob, sources: str, batch: Batch, rest: Iterable[Batch]
) -> Future[WorkerAnswer]:
    """Submit a batch; `rest` are the other batches that are left."""
    try:
        return executor.submit(job.make, batch, sources, uuid.uuid4().hex)
    except RuntimeError as error:  # it is broken, or was shut down
        raise _ended_error(error, chain([batch], rest), job) from error


def _was_killed(future: Future[WorkerAnswer]) -> bool:
    """Whether a cluster has given the work up because workers died of it, or of what they did beside it."""
    return not future.cancelled() and type(future.exception()).__name__ == "KilledWorker"


def _batch_updates(
    future: Future[WorkerAnswer], job: WorkerJob, batch: Batch, rest: Iterable[Batch]
) -> tuple[list[RunUpdate], list[Batch]]:
    """What has become of a batch: the news of runs that have ended, and runs to be made alone."""
    try:
        answer = future.result()
    except (BrokenExecutor, CancelledError) as error:  # the cause is unknown
        raise _ended_error(error, chain([batch], rest), job) from error
    except Exception as error:
        found, alone = job.maker.look(batch)
        if len(batch) > 1:
            return found, [(run,) for run in reversed(alone)]
        status = f"error: no worker made it: {error_status(error).removeprefix('error: ')}"
        for run in alone:
            facts = {"task": run.task, "seconds": None, "provenance": job.maker.facts}
            facts["traceback"] = "".join(traceback.format_exception(error))
            found.append(RunUpdate(run.key, job.maker.store.save_error(run.key, status, facts)))
        return found, []
    if not isinstance(answer, WorkerAnswer):
        raise FedboundsError(f"the executor answers with {quote(answer)} and not with what the function returned")
    if answer.refusal:
        raise FedboundsError(answer.refusal)
    return list(answer.news), []


def _ended_error(error: Exception, left: Iterable[Batch], job: WorkerJob) -> FedboundsError:
    """The error for an executor that has ended before its work."""
    many = sum(len(job.maker.look(batch)[1]) for batch in left)
    cancelled = "its work was cancelled, as when a scheduler dies"
    why = cancelled if isinstance(error, CancelledError) else error_status(error).removeprefix("error: ")
    return FedboundsError(
        f"the executor ended before {many} of the runs were made ({why}); "
        "what is finished is kept, and the same command goes on from there"
    )


def _split_by_visibility(news: Sequence[RunUpdate], store: Store) -> tuple[list[RunUpdate], list[RunUpdate]]:
    """Of which runs the record is here, and of which it is not yet."""
    if news:
        with suppress(OSError):
            os.scandir(store.directory).close()
    seen: list[RunUpdate] = []
    unseen: list[RunUpdate] = []
    for one in news:
        (seen if store.read_status(one.key).status == one.status else unseen).append(one)
    return seen, unseen


def _witness(store: Store) -> str:
    """The name of a file that is in the folder of the results and in no other.

    It stays: later sweeps use it, too.
    """
    try:
        store.directory.mkdir(parents=True, exist_ok=True)
        there = next(store.directory.glob(".fedbounds-*"), None)
        witness = store.directory / f".fedbounds-{uuid.uuid4().hex}" if there is None else there
        witness.touch()
    except OSError as error:
        raise CannotWrite(f"cannot write {str(store.directory)!r}: {error.strerror or error}") from error
    return witness.name


def _sources_changed(modules: frozenset[str]) -> bool:
    """Whether a source has changed since this process may have read it."""
    return any(path.stat().st_mtime > STARTED for path in _files(modules))


@cache
def _files(modules: frozenset[str]) -> tuple[Path, ...]:
    return tuple(source_files(modules).values())


@cache  # of what this process has read, not of what has come since
def _digest(modules: frozenset[str]) -> str:
    return source_digest(modules)


@cache
def _facts() -> Mapping[str, Any]:
    return provenance()


def _versions(facts: Mapping[str, Any]) -> dict[str, str]:
    """Versions of packages, without what they were built for."""
    return {name: version.partition("+")[0] for name, version in facts["packages"].items()}


MAX_WORKERS = 1024  # on one machine


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    run: Run  # the run
    status: str  # "done", "diverged" or "error: ..."
    made: bool  # whether it was executed now, or found in the store
    before: str  # its status before: "missing", "damaged: ...", or as found

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
    wanted = [run for key, run in distinct.items() if _is_wanted(statuses[key], retry_failed)]
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


def _is_wanted(run_status: RunStatus, retry_failed: bool) -> bool:
    return not run_status.finished and (retry_failed or not run_status.failed)
