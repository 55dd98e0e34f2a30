"""The executor: every run is made once, whatever happens to the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import Store, execute
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in
from tests.empirical.sweep.started_sweeps import ROOT, group_is_gone, start


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.npz")}


def test_results_are_the_same_bytes_for_any_number_of_workers_and_any_order(tmp_path: Path) -> None:
    runs = runs_of(["fine", "fine", "diverges", "raises", "fine"], seeds_per_run=1)
    outcomes = execute(runs, Store(tmp_path / "here"), workers=0, run_task=stand_in)
    spawned = execute(runs[::-1], Store(tmp_path / "there"), workers=2, run_task=stand_in)
    assert contents(tmp_path / "here") == contents(tmp_path / "there") and len(contents(tmp_path / "here")) == 8
    assert [o.status for o in outcomes] == [o.status for o in spawned[::-1]]
    assert [o.run for o in outcomes] == runs and [o.run for o in spawned] == runs[::-1]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_raises_is_recorded_and_the_others_go_on(workers: int, tmp_path: Path) -> None:
    runs = runs_of(["fine", "raises", "is bad input", "fine"])
    store = Store(tmp_path)
    outcomes = execute(runs, store, workers=workers, run_task=stand_in)
    assert [outcome.status for outcome in outcomes] == [
        "done",
        "error: ZeroDivisionError: the step size is zero and that is bad",
        "error: local_step_size = -1 is outside its domain (0, inf)",
        "done",
    ]
    record = json.loads(store.record_path(runs[1].key).read_text())
    assert "in stand_in" in record["traceback"] and record["task"] == runs[1].task


def test_a_record_has_the_time_of_a_run_and_the_processor_time_without_waiting(tmp_path: Path) -> None:
    runs, store = runs_of(["takes a moment", "fine"]), Store(tmp_path)
    execute(runs, store, workers=0, run_task=stand_in)
    waited, fine = (store.read_status(run.key).record for run in runs)
    assert waited["seconds"] >= 0.2 and waited["core_seconds"] <= waited["seconds"] - 0.15
    assert fine["core_seconds"] >= 0


def test_a_failed_run_is_made_again_only_on_request(tmp_path: Path) -> None:
    runs = runs_of(["fine", "raises"])
    store = Store(tmp_path)

    def broken(task: dict) -> None:
        raise RuntimeError

    first = execute(runs, store, run_task=stand_in)
    assert [o.made for o in first] == [True, True] and first[1].failed
    again = execute(runs, store, run_task=broken)
    assert [o.made for o in again] == [False, False] and again[1].status == first[1].status
    retried = execute(runs, store, run_task=broken, retry_failed=True)
    assert [(o.made, o.status) for o in retried] == [(False, "done"), (True, "error: RuntimeError")]


def test_a_damaged_result_is_made_again_and_says_so(tmp_path: Path) -> None:
    runs = runs_of(["fine", "fine"])
    store = Store(tmp_path)
    execute(runs, store, run_task=stand_in)
    before = contents(tmp_path)
    path = store.trace_path(runs[1].key)
    path.write_bytes(path.read_bytes()[:-1])
    outcomes = execute(runs, store, run_task=stand_in)
    assert [(o.made, o.status) for o in outcomes] == [(False, "done"), (True, "done")]
    assert outcomes[1].before == "damaged: its trace does not have the checksum of its record"
    assert contents(tmp_path) == before


def test_a_run_whose_worker_dies_twice_is_an_error_and_costs_nothing_else(tmp_path: Path) -> None:
    runs = runs_of(["dies", "fine", "dies", "fine", "fine"])
    outcomes = execute(runs, Store(tmp_path), workers=2, run_task=stand_in)
    died = "error: its worker process died, twice, with exit code -9 (killed, perhaps for its memory)"
    assert [outcome.status for outcome in outcomes] == [died, "done", died, "done", "done"]


def test_workers_have_one_thread_each_and_the_parent_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    runs = runs_of(["has many threads", "has many threads"])
    assert [o.status for o in execute(runs, Store(tmp_path), workers=2, run_task=stand_in)] == ["done", "done"]
    assert "OMP_NUM_THREADS" not in os.environ and os.environ["MKL_NUM_THREADS"] == "7"


def test_the_same_run_asked_for_twice_is_made_once(tmp_path: Path) -> None:
    (run,) = runs_of(["fine"])
    calls = []

    def counted(task: dict) -> object:
        calls.append(task)
        return stand_in(task)

    assert len(execute([run, run], Store(tmp_path), run_task=counted)) == 2 and len(calls) == 1


def test_progress_is_reported_of_every_run_with_found_ones_first(tmp_path: Path) -> None:
    runs = runs_of(["fine", "fine", "fine"])
    execute(runs[2:], Store(tmp_path), run_task=stand_in)
    told = []
    execute(runs, Store(tmp_path), run_task=stand_in, progress=lambda *news: told.append(news))
    assert [(outcome.run, outcome.made, done, total) for outcome, done, total in told] == [
        (runs[2], False, 1, 3),
        (runs[0], True, 2, 3),
        (runs[1], True, 3, 3),
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_that_cannot_be_written_stop_the_sweep(workers: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FedboundsError, match="cannot write"):
        execute(runs_of(["fine", "fine"]), Store(tmp_path / "file"), workers=workers, run_task=stand_in)


def test_workers_that_cannot_begin_stop_the_sweep_with_a_hint(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from fedbounds.empirical.sweep import Store, execute\n"
        "from pathlib import Path\n"
        "from tests.empirical.sweep.stand_in_runs import runs_of, stand_in\n"
        f"execute(runs_of(['fine'] * 2), Store(Path({str(tmp_path / 'r')!r})), workers=2, run_task=stand_in)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode and "must do so under: if __name__ == '__main__':" in done.stderr


@pytest.mark.parametrize("workers", [-1, 2000])
def test_a_senseless_number_of_workers_is_refused(workers: int, tmp_path: Path) -> None:
    with pytest.raises(FedboundsError, match=f"workers = {workers} must be"):
        execute([], Store(tmp_path), workers=workers)


def test_where_a_result_comes_from_stands_beside_it(tmp_path: Path) -> None:
    (run,) = runs_of(["fine"])
    execute([run], Store(tmp_path), run_task=stand_in)
    record = Store(tmp_path).read_status(run.key).record
    assert {"host", "python", "packages", "git", "started", "platform"} <= set(record["provenance"])
    assert {"fedbounds", "numpy", "torch"} <= set(record["provenance"]["packages"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_sweep_loses_only_what_was_in_progress_and_goes_on_from_there(workers: int, tmp_path: Path) -> None:
    kinds = ["fine", "takes a moment", "takes long", "fine", "fine"]
    runs = runs_of(kinds)
    directory = tmp_path / "results"
    process = start(workers, directory, kinds)
    finished = {process.stdout.readline().split()[0] for _ in range(2 if workers == 1 else 4)}
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    expected = {run.key for run, kind in zip(runs, kinds, strict=True) if kind != "takes long"}
    assert finished == (expected if workers == 2 else {runs[0].key, runs[1].key})
    before = contents(directory)
    assert {name.removesuffix(".npz") for name in before} == finished

    outcomes = execute([run for run in runs if run is not runs[2]], Store(directory), run_task=stand_in)
    assert {o.run.key for o in outcomes if not o.made} == finished
    assert all(o.status == "done" for o in outcomes)
    assert {name: contents(directory)[name] for name in before} == before


def test_an_interrupt_is_for_the_parent_and_not_for_its_workers(tmp_path: Path) -> None:
    outcomes = execute(runs_of(["is interrupted", "fine"]), Store(tmp_path), workers=2, run_task=stand_in)
    assert [outcome.status for outcome in outcomes] == ["done", "done"]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_ends_every_process_and_leaves_only_whole_results(workers: int, tmp_path: Path) -> None:
    directory = tmp_path / "results"
    process = start(workers, directory, ["fine", "takes long", "takes long"])
    assert process.stdout.readline().strip()
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does: the parent and its workers
    _, errors = process.communicate(timeout=30)
    assert group_is_gone(process.pid)
    assert process.returncode and errors.count("KeyboardInterrupt") == 1  # the parent's own, none from a worker
    assert len(contents(directory)) == 1 and not list(directory.glob("*.partial"))
