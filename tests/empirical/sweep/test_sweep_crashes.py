"""Kills, full disks and damaged files: the study ends with the same table, and only what was missing is made again."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Store, execute, plan, read_sweep
from fedbounds.empirical.sweep.maker import Maker
from fedbounds.empirical.sweep.store import ABANDONED, BORN, HOST
from fedbounds.empirical.sweep.workers import _Pool
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in
from tests.empirical.sweep.started_sweeps import ROOT, finish, group_is_gone, start, table

KINDS = ["takes a little"] * 40
RUNS = runs_of(KINDS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    directory = tmp_path_factory.mktemp("undisturbed")
    execute(RUNS, Store(directory), run_task=stand_in)
    return table(RUNS, directory)


def missing(directory: Path) -> set[str]:
    return {one.key for one in RUNS if not Store(directory).read_status(one.key).finished}


def leftovers(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.suffix not in (".npz", ".json")]


# Kills


def test_workers_end_with_their_driver_in_the_midst_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("MARKS", str(tmp_path / "marks"))
    driver = start(2, tmp_path / "results", ["meets another", "meets another", "takes long", "takes long"])
    for _ in range(2):
        assert driver.stdout.readline()
    time.sleep(0.1)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()  # not for its workers, which hold its output
    assert group_is_gone(driver.pid, patience=2)
    driver.communicate()


@pytest.mark.parametrize("told", [1, pytest.param(15, marks=pytest.mark.long), 39])
def test_a_driver_that_is_killed_leaves_a_study_that_the_next_one_completes(
    told: int, undisturbed: bytes, tmp_path: Path
) -> None:
    directory = tmp_path / "results"
    driver = start(2, directory, KINDS)
    for _ in range(told):
        assert driver.stdout.readline()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert group_is_gone(driver.pid)  # one may still be importing, and looks for its parent afterwards
    driver.communicate()
    left = missing(directory)
    assert len(left) <= len(RUNS) - told
    assert finish(2, directory, KINDS) == left
    assert table(RUNS, directory) == undisturbed and not leftovers(directory)


def test_a_run_whose_worker_was_killed_is_made_again_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKS", str(tmp_path))
    kinds = ["dies once", "fine", "dies once", "fine", "fine"]
    outcomes = execute(runs_of(kinds), Store(tmp_path / "results"), workers=2, run_task=stand_in)
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert {path.name for path in tmp_path.iterdir()} == {"0", "2", "results"} and not leftovers(tmp_path / "results")


def test_workers_that_are_killed_all_the_time_are_replaced(undisturbed: bytes, tmp_path: Path) -> None:
    def kill(_outcome: object, done: int, _total: int) -> None:
        if done % 10 == 0:
            for worker in multiprocessing.active_children():
                worker.kill()

    outcomes = execute(RUNS, Store(tmp_path), workers=2, run_task=stand_in, progress=kill)
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert table(RUNS, tmp_path) == undisturbed and not leftovers(tmp_path)


def test_a_worker_that_is_killed_before_it_begins_is_replaced(tmp_path: Path) -> None:
    pool = _Pool(Maker(Store(tmp_path), {}, stand_in), deque([(one,) for one in runs_of(["fine"])]))
    pool.start_worker()
    ((connection, (process, _)),) = pool.at_work.items()
    process.kill()
    assert pool.receive(connection) == []
    ((connection, _),) = pool.at_work.items()
    assert pool.receive(connection) == []
    assert [news.status for news in pool.receive(connection)] == ["done"] and not pool.at_work


def test_two_drivers_of_one_folder_come_to_one_table(undisturbed: bytes, tmp_path: Path) -> None:
    directory = tmp_path / "results"
    drivers = [start(workers, directory, KINDS) for workers in (1, 2)]
    for driver in drivers:
        _, errors = driver.communicate(timeout=60)
        assert driver.returncode == 0 and not errors
    assert table(RUNS, directory) == undisturbed and not leftovers(directory)
    assert finish(2, directory, KINDS) == set()


def test_a_driver_goes_on_when_another_of_its_folder_is_killed(undisturbed: bytes, tmp_path: Path) -> None:
    directory = tmp_path / "results"
    killed, other = start(2, directory, KINDS), start(1, directory, KINDS)
    assert killed.stdout.readline()
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    _, errors = other.communicate(timeout=60)
    assert other.returncode == 0 and not errors
    assert table(RUNS, directory) == undisturbed
    assert finish(1, directory, KINDS) == set() and not leftovers(directory)


# What killed processes leave behind


def test_the_next_start_removes_what_no_living_process_owns(tmp_path: Path) -> None:
    key = RUNS[0].key
    ended = subprocess.Popen(["true"])
    ended.wait()
    gone = f"{key}.npz.{HOST}.{ended.pid}.1.1.partial"
    before_us = f"{key}.json.{HOST}.{os.getpid()}.1.1.partial"  # our number, another process
    ours = f"{key}.npz.{HOST}.{os.getpid()}.{BORN}.1.partial"
    living = f"{key}.npz.{HOST}.{os.getppid()}.1.1.partial"
    elsewhere, long_ago = f"{key}.npz.another.host.1.1.1.partial", f"{key}.npz.another.2.1.1.partial"
    theirs = "thesis.partial"
    for name in (gone, before_us, ours, living, elsewhere, long_ago, theirs):
        (tmp_path / name).write_bytes(b"half of it")
    (tmp_path / f"{key}.partial").mkdir()
    for name in (long_ago, theirs, f"{key}.partial"):
        os.utime(tmp_path / name, (0, time.time() - ABANDONED - 60))
    Store(tmp_path).remove_leftovers()
    assert {path.name for path in tmp_path.iterdir()} == {ours, living, elsewhere, theirs}


class Swept(Trace):
    """A trace whose scratch another process takes for left behind while it is written."""

    def write(self, file: BinaryIO) -> None:
        super().write(file)
        directory = Path(str(file.name)).parent
        if not (directory / "swept").exists():
            (directory / "swept").touch()
            Path(str(file.name)).unlink()


def test_what_was_swept_up_from_under_its_writer_is_written_again(tmp_path: Path) -> None:
    trace, store = stand_in(RUNS[0].task), Store(tmp_path)
    swept = Swept(trace.arrays, trace.dims, trace.spec, trace.engine, trace.statuses)
    assert store.save(RUNS[0].key, swept, {}) == "done" and (tmp_path / "swept").exists()
    assert (store.load(RUNS[0].key).loss == trace.loss).all()


# Damaged files


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def test_damaged_results_alone_are_made_again(undisturbed: bytes, tmp_path: Path) -> None:
    store = Store(tmp_path)
    execute(RUNS, store, run_task=stand_in)
    harms: list[Callable[[Path], None]] = [cut, flip, empty, Path.unlink]
    places = [path for one in RUNS for path in (store.trace_path(one.key), store.record_path(one.key))]
    chosen = places[::3][: 2 * len(harms)]
    for index, path in enumerate(chosen):
        harms[index % len(harms)](path)
    left = missing(tmp_path)
    assert left == {path.stem for path in chosen} and len(left) == len(chosen)
    outcomes = execute(RUNS, store, run_task=stand_in)
    assert {outcome.run.key for outcome in outcomes if outcome.made} == left
    assert table(RUNS, tmp_path) == undisturbed and not leftovers(tmp_path)


# Full disks

EVERY_LIMIT = """
import resource, sys
from pathlib import Path
from fedbounds.empirical.sweep import Store
from fedbounds.empirical.sweep.store import CannotWrite
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in

store, (run, other) = Store(Path(sys.argv[1])), runs_of(["fine"] * 2)
store.save(run.key, stand_in(run.task), {"task": run.task})
sizes = {path.suffix: path.stat().st_size for path in store.directory.iterdir()}
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in range(0, max(sizes.values()), 7):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    for one in (run, other):
        try:
            store.save(one.key, stand_in(one.task), {"task": one.task})
            print("saved in spite of", limit)
        except CannotWrite as error:
            assert "File too large" in str(error), error
    assert store.read_status(run.key).finished and not store.read_status(other.key).finished
    assert not list(store.directory.glob("*.partial"))
"""


def test_a_disk_that_is_full_at_any_byte_damages_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", EVERY_LIMIT, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


STUDY = """
name = "tiny"
rounds = 200
seeds = 1

[problem]
kind = "toy"
noise = 0.1

[participation]
kind = "cyclic"
clients = 3

[algorithm]
kind = "fedavg"
local_step_size = 0.1
local_steps = 1

[vary]
"algorithm.local_step_size" = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
"algorithm.local_steps" = [1, 2]
"""
COMMAND = [sys.executable, "-m", "fedbounds", "run", "study.toml", "--workers"]
SMALL = 'mount -t tmpfs -o size=40k none disk && { "$@"; status=$?; cp disk/results/* kept/; exit $status; }'
APART = ["unshare", "--map-root-user", "--mount", "sh", "-c", SMALL, "sh"]


def mounts() -> bool:
    """Whether somebody who is not root may have a small disk here."""
    try:
        made = subprocess.run([*APART[:5], "mount -t tmpfs none /tmp"], capture_output=True)
    except FileNotFoundError:
        return False
    return made.returncode == 0


def limited() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2500, most))


@pytest.mark.parametrize("disk", ["limited", "small"] if mounts() else ["limited"])
def test_a_full_disk_is_one_line_and_space_is_all_that_is_needed_to_go_on(disk: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "disk").mkdir()
    kept = tmp_path / "kept"
    kept.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # with no workers where the other disk has them: each loads torch
    alone = [*COMMAND, "1" if mounts() else "2", "--out", str(kept)]
    command = alone if disk == "limited" else [*APART, *COMMAND, "2", "--out", "disk/results"]
    before = limited if disk == "limited" else None
    stopped = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, preexec_fn=before)
    assert stopped.returncode == 2
    assert len(stopped.stderr.splitlines()) == 1 and "cannot write" in stopped.stderr
    runs, store = plan(read_sweep(tmp_path / "study.toml")), Store(kept)
    statuses = [store.read_status(one.key) for one in runs]
    assert not any(one.status.startswith("error") for one in statuses) and not list(kept.glob("*.partial"))
    assert any(one.finished for one in statuses) == (disk == "small") and not all(one.finished for one in statuses)
    outcomes = execute(runs, store)
    assert [one.made for one in outcomes] == [not one.finished for one in statuses]
    execute(runs, Store(tmp_path / "undisturbed"))
    assert table(list(runs), kept) == table(list(runs), tmp_path / "undisturbed")
