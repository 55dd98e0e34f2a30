"""Executors that are handed in: the same bytes as made here, whatever becomes of the executor."""

from __future__ import annotations

import multiprocessing
import shutil
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import Store, execute, executor, plan, resolve, tabulate, write_csv
from fedbounds.empirical.sweep.executor import WorkerAnswer
from fedbounds.empirical.sweep.maker import RunUpdate
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in
from tests.empirical.sweep.test_sweep_executor import contents

QUADRATICS = {
    "rounds": 5,
    "seeds": 2,
    "problem": {"kind": "quadratic", "clients": 4, "dimension": 3, "noise": 0.1},
    "participation": {"kind": "full", "clients": 4},
    "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
    "vary": {"algorithm.local_step_size": [0.1, 0.2, 0.3], "rounds": [5, 6]},
}


class Here(Executor):
    """Does at once, in this process, what it is handed."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Refusing(Executor):
    """Whose futures end as they are told, before anything is made."""

    def __init__(self, *ends):
        self.ends = list(ends)

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, BaseException):
            future.set_exception(end)
        elif end == "cancelled":
            future.cancel()
        else:
            return Here().submit(fn, *args)
        return future


def spawned_pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def table(runs, store: Store) -> bytes:
    write_csv(tabulate(runs, store), store.directory / "table.csv")
    return (store.directory / "table.csv").read_bytes()


@pytest.mark.parametrize("made", [lambda: ThreadPoolExecutor(2), lambda: spawned_pool(1), Here])
def test_any_executor_gives_the_bytes_of_a_local_sweep(made, tmp_path: Path) -> None:
    runs = plan(resolve(QUADRATICS))
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    execute(runs, here)
    told = []
    with made() as executor:
        outcomes = execute(runs, there, workers=2, executor=executor, progress=lambda *news: told.append(news[1:]))
        assert {o.made for o in outcomes} == {True}
        assert {o.made for o in execute(runs, there, workers=2, executor=executor)} == {False}
    assert told == [(n, len(runs)) for n in range(1, len(runs) + 1)]
    assert contents(here.directory) == contents(there.directory) and table(runs, here) == table(runs, there)


def test_errors_are_records_and_what_was_made_meanwhile_is_found(tmp_path: Path) -> None:
    runs = runs_of(["fine", "raises", "diverges"])
    with ThreadPoolExecutor(1) as executor:
        outcomes = execute(runs, Store(tmp_path), executor=executor, run_task=stand_in)
    assert [o.status.partition(":")[0] for o in outcomes] == ["done", "error", "diverged"]

    others = Store(tmp_path / "others")
    runs = runs_of(["fine"] * 3)

    class Late(Here):
        def submit(self, fn, /, *args, **kwargs):
            execute(runs[:2], others, run_task=stand_in)
            return super().submit(fn, *args)

    outcomes = execute(runs, others, executor=Late(), run_task=stand_in)
    assert [(o.status, o.made) for o in outcomes] == [("done", False), ("done", False), ("done", True)]


def test_a_pool_that_breaks_says_so_keeps_what_is_finished_and_blames_no_run(tmp_path: Path) -> None:
    runs, store = runs_of(["fine", "dies", "takes a moment", "fine"]), Store(tmp_path)
    with (
        spawned_pool(1) as pool,
        pytest.raises(FedboundsError, match=r"ended before 3 of the runs .* goes on from there"),
    ):
        execute(runs, store, executor=pool, run_task=stand_in)
    assert [store.read_status(run.key).status for run in runs] == ["done", "missing", "missing", "missing"]


def test_an_executor_that_was_shut_down_or_cancels_says_so(tmp_path: Path) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(FedboundsError, match=r"ended before 2 of the runs were made .*after shutdown"):
        execute(runs_of(["fine", "fine"]), Store(tmp_path), executor=pool, run_task=stand_in)
    with pytest.raises(FedboundsError, match=r"ended before 1 of the runs were made .*was cancelled"):
        execute(runs_of(["fine", "fine"]), Store(tmp_path), executor=Refusing("cancelled"), run_task=stand_in)
    with pytest.raises(KeyboardInterrupt):
        execute(runs_of(["fine"]), Store(tmp_path), executor=Refusing(KeyboardInterrupt()), run_task=stand_in)


def test_an_executor_that_answers_with_something_else_says_so(tmp_path: Path) -> None:
    class Forgetful(Here):
        def submit(self, fn, /, *args, **kwargs):
            super().submit(fn, *args).result()
            future: Future = Future()
            future.set_result(None)
            return future

    with pytest.raises(FedboundsError, match="answers with None"):
        execute(runs_of(["fine"]), Store(tmp_path), executor=Forgetful(), run_task=stand_in)


def test_a_future_that_raises_is_a_run_that_failed_and_a_batch_is_made_alone(tmp_path: Path) -> None:
    runs = plan(resolve(QUADRATICS))
    assert runs[0].together > 1
    alike = [run for run in runs if run.task["rounds"] == 5][:2]
    outcomes = execute(alike, Store(tmp_path), executor=Refusing(OSError("lost"), OSError("lost")))
    assert [o.status for o in outcomes] == ["error: no worker made it: OSError: lost", "done"]
    again = execute(alike, Store(tmp_path), executor=Here(), retry_failed=True)
    assert [(o.status, o.made) for o in again] == [("done", True), ("done", False)]


def test_who_is_blamed_for_a_dead_worker_is_made_once_more_with_nobody_beside_it(tmp_path: Path) -> None:
    class KilledWorker(Exception):
        """What Dask says of all runs that a worker held too often when it died."""

    runs, beside = runs_of(["fine", "dies", "fine", "raises", "fine"]), []

    class Blaming(Here):
        def submit(self, fn, /, *args, **kwargs):
            (run,) = args[0]
            beside.append(run.key)
            guilty = run == runs[1] or (run == runs[4] and beside.count(run.key) == 1)
            return Refusing(KilledWorker("4 times")).submit(fn, *args) if guilty else super().submit(fn, *args)

    outcomes = execute(runs, Store(tmp_path), executor=Blaming(), run_task=stand_in)
    assert [o.status.partition(":")[0] for o in outcomes] == ["done", "error", "done", "error", "done"]
    assert beside == [*(run.key for run in runs), runs[1].key, runs[4].key]


ENDS = ("fine", "fine", "fine", "raises", "cancelled", "breaks", "made and lost", "made twice")


@settings(max_examples=20)
@given(st.lists(st.sampled_from(ENDS), max_size=12))
def test_whatever_becomes_of_futures_no_row_is_wrong_and_the_next_start_makes_the_rest(ends: list[str]) -> None:
    runs = runs_of(["fine", "diverges", "fine", "fine", "fine"])

    class Fate(Here):
        def submit(self, fn, /, *args, **kwargs):
            end = ends.pop() if ends else "fine"
            if "made" in end:
                super().submit(fn, *args)
            if end in ("fine", "made twice"):
                return super().submit(fn, *args)
            how = {"raises": OSError("lost"), "made and lost": OSError("lost"), "breaks": BrokenExecutor("dead")}
            return Refusing(how.get(end, end)).submit(fn, *args)

    with TemporaryDirectory() as folder:
        here, there = Store(Path(folder) / "here"), Store(Path(folder) / "there")
        execute(runs, here, run_task=stand_in)
        told = []
        with suppress(FedboundsError):
            execute(runs, there, executor=Fate(), run_task=stand_in, progress=lambda outcome, *_: told.append(outcome))
        for outcome in told:
            assert there.read_status(outcome.run.key).status == outcome.status
            assert outcome.failed or outcome.status == here.read_status(outcome.run.key).status
        assert contents(there.directory).items() <= contents(here.directory).items()
        outcomes = execute(runs, there, executor=Here(), run_task=stand_in, retry_failed=True)
        assert [o.status for o in outcomes] == ["done", "diverged", "done", "done", "done"]
        assert contents(there.directory) == contents(here.directory)


class Elsewhere(Here):
    """A worker that sees another folder under the same name, or made what nobody here sees."""

    def __init__(self, answer=None):
        self.answer = answer

    def submit(self, fn, /, *args, **kwargs):
        if self.answer is None:
            for witness in fn.__self__.maker.store.directory.glob(".fedbounds-*"):
                witness.unlink()
            return super().submit(fn, *args)
        return super().submit(lambda: self.answer(args[0]))


def test_a_folder_that_is_not_shared_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runs_of(["fine", "fine"])
    with pytest.raises(FedboundsError, match=r"the worker .* does not see what is in .*; results need a folder"):
        execute(runs, Store(tmp_path / "a"), executor=Elsewhere(), run_task=stand_in)
    assert not contents(tmp_path / "a")
    monkeypatch.setattr(executor, "PATIENCE", 0.2)
    monkeypatch.setattr(executor, "POLL_SECONDS", 0.1)
    claims = Elsewhere(lambda batch: WorkerAnswer(tuple(RunUpdate(run.key, "done") for run in batch)))
    with pytest.raises(FedboundsError, match=r"workers have made 2 runs that are not whole in .*\(missing\)"):
        execute(runs, Store(tmp_path / "b"), executor=claims, run_task=stand_in)


def test_a_record_that_is_seen_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "POLL_SECONDS", 0.1)
    runs, store, looks = runs_of(["fine"]), Store(tmp_path), []
    seen = executor._split_by_visibility

    def late(news, store):
        looks.append(news)
        return seen(news, store) if len(looks) > 2 else ([], list(news))

    monkeypatch.setattr(executor, "_split_by_visibility", late)
    (outcome,) = execute(runs, store, executor=Here(), run_task=stand_in)
    assert outcome.status == "done" and outcome.made and len(looks) == 3


@pytest.mark.parametrize(
    ("what", "said"),
    [("_versions", "has torch 0.1, and not torch"), ("_digest", "has other sources"),
     ("_sources_changed", "restart it"), ("local_key", "reads other data than this process for")],
)  # fmt: skip
def test_a_worker_that_would_make_another_run_refuses(
    what: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions, answers = executor._versions, iter(range(9))
    other = {
        "_versions": lambda facts: versions(facts) | ({"torch": "0.1"} if next(answers) else {}),
        "_digest": lambda modules: "another",
        "_sources_changed": lambda modules: True,
        "local_key": lambda task, sources: "another",
    }
    monkeypatch.setattr(executor, what, other[what])
    with pytest.raises(FedboundsError, match=f"the worker .* {said}"):
        execute(plan(resolve(QUADRATICS))[:1], Store(tmp_path), executor=Here())
    assert not contents(tmp_path)


def test_results_that_a_worker_cannot_write_stop_the_sweep(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    runs = runs_of(["fine", "fine"])

    class Full(Here):
        def submit(self, fn, /, *args, **kwargs):
            for run in runs:
                store.record_path(run.key).mkdir(exist_ok=True)
            return super().submit(fn, *args)

    with pytest.raises(FedboundsError, match="cannot write"):
        execute(runs, store, executor=Full(), run_task=stand_in)
    shutil.rmtree(store.directory)


def test_nothing_is_written_where_nothing_is_to_be_made(tmp_path: Path) -> None:
    assert execute([], Store(tmp_path / "none"), executor=Here()) == []
    assert not (tmp_path / "none").exists()
