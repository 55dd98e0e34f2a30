"""Sweeps on a Dask cluster of processes on this machine: the bytes of a local sweep, and what is told when it dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import Run, Store, execute, plan, read_sweep, resolve
from fedbounds.empirical.sweep.cluster import cluster_executor, find_scheduler
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in
from tests.empirical.sweep.test_sweep_executor import contents

ROOT = Path(__file__).resolve().parents[3]
SPEC = """
rounds = 6
seeds = 2
problem = { kind = "quadratic", clients = 3, dimension = 2, noise = 0.1 }
participation = { kind = "full", clients = 3 }
algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 2 }
vary = { rounds = [5, 6], "algorithm.local_step_size" = [0.1, 0.2] }
"""


class Cluster:
    """A scheduler and its workers, each a process with its child, killed at the end."""

    def __init__(self, folder: Path, sources: Path = ROOT) -> None:
        self.file, self.processes = folder / "scheduler.json", []
        path = {"PYTHONPATH": str(sources), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        self.environment = {**os.environ, **path}
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        until = time.monotonic() + 30
        while not self.file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(self.file), *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        place = {"cwd": self.file.parent, "env": self.environment, "start_new_session": True}
        self.processes.append(subprocess.Popen([*command, "--no-dashboard"], **quiet, **place))
        return self.processes[-1]

    def start_worker(self, workers: int) -> None:
        for _ in range(workers):
            self._start("worker", "--nthreads", "1", "--host", "127.0.0.1")

    def await_workers(self, workers: int) -> None:
        until = time.monotonic() + 60
        while find_scheduler(self.address).workers < workers and time.monotonic() < until:
            time.sleep(0.1)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Cluster]]:
    clusters = []

    def start(workers: int, **more: Path) -> Cluster:
        clusters.append(Cluster(tmp_path_factory.mktemp("cluster"), **more))
        clusters[-1].start_worker(workers)
        return clusters[-1]

    yield start
    for cluster in clusters:
        for process in cluster.processes:
            if process.poll() is None:
                cluster.kill(process)


@pytest.fixture(scope="module")
def cluster(started: Callable[..., Cluster]) -> Cluster:
    return started(2)


def test_a_cluster_gives_the_bytes_of_a_local_sweep(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toy.toml").write_text(SPEC)
    cluster.await_workers(2)
    assert fedbounds.main(["run", "toy.toml", "--cluster", cluster.address, "--out", "there"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("toy: 4 runs: 4 made, 0 already there; results in there") and err == ""
    assert fedbounds.main(["run", "toy.toml", "--out", "here"]) == 0
    tables = []
    for place in ("here", "there"):
        assert fedbounds.main(["results", "toy.toml", "--out", place, "--csv", f"{place}.csv"]) == 0
        tables.append(Path(f"{place}.csv").read_bytes())
    assert tables[0] == tables[1] and contents(Path("here")) == contents(Path("there"))
    assert len(contents(Path("there"))) == 4
    runs = plan(read_sweep("toy.toml"))
    assert {Store(Path("there")).read_status(run.key).record["provenance"]["host"] for run in runs}


def test_a_run_that_kills_its_workers_fails_alone_and_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
    cluster.await_workers(2)
    kinds = ["fine", "dies", "fine", "raises", "fine"]
    with cluster_executor(find_scheduler(cluster.address)) as executor:
        outcomes = execute(runs_of(kinds), Store(tmp_path), workers=2, executor=executor, run_task=stand_in)
    assert [o.status.partition(":")[0] for o in outcomes] == ["done", "error", "done", "error", "done"]
    assert "no worker made it: KilledWorker: Attempted to run" in outcomes[1].status


def test_a_worker_is_no_scheduler_and_says_whose_it_is(cluster: Cluster, tmp_path: Path) -> None:
    cluster.await_workers(1)
    with cluster_executor(find_scheduler(cluster.address)) as executor:
        worker = executor.submit(os.getenv, "no such thing") and next(iter(executor._client.nthreads()))
    with pytest.raises(FedboundsError, match=f"is no Dask scheduler but a worker; its scheduler is {cluster.address}"):
        find_scheduler(worker)


def test_a_scheduler_that_is_killed_ends_the_sweep_in_a_line_and_what_is_finished_is_kept(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The last test of this cluster."""
    store = Store(tmp_path)
    runs = runs_of(["fine", "takes long", "fine"])
    began = []

    def kill(*news: object) -> None:
        began.append(time.monotonic())
        cluster.kill(cluster.scheduler)

    cluster.await_workers(1)
    with (
        pytest.raises(FedboundsError, match=r"the executor ended before \d of the runs were made"),
        cluster_executor(find_scheduler(cluster.address)) as executor,
    ):
        execute(runs, store, executor=executor, run_task=stand_in, progress=kill)
    assert time.monotonic() - began[0] < 30 and capfd.readouterr().err == ""
    assert sum(store.read_status(run.key).finished for run in runs) >= 1


@pytest.mark.long
def test_a_worker_whose_sources_change_refuses_before_and_after_it_has_made_runs(
    started: Callable[..., Cluster], tmp_path: Path
) -> None:
    sources = tmp_path / "sources"
    for folder in ("fedbounds", "bounds", "empirical", "figures", "tests"):
        shutil.copytree(ROOT / folder, sources / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    cluster = started(1, sources=sources)
    runs, store = plan(resolve(tomllib.loads(SPEC))), Store(tmp_path / "results")
    cluster.await_workers(1)

    def made(which: list[Run]) -> list[str]:
        with cluster_executor(find_scheduler(cluster.address)) as executor:
            return [outcome.status for outcome in execute(which, store, executor=executor)]

    assert made([runs[0]]) == ["done"]
    with (sources / "empirical" / "simulate.py").open("a") as file:
        file.write("# changed\n")
    with pytest.raises(FedboundsError, match="has been running since before its sources changed; restart it"):
        made([runs[1]])
    for process in cluster.processes[1:]:
        cluster.kill(process)
    cluster.start_worker(1)
    with pytest.raises(FedboundsError, match="has other sources of fedbounds"):
        made([runs[1]])
    assert len(contents(store.directory)) == 1


BAD = {
    "localhost": "missing port number",
    "tcp://127.0.0.1:1": "no answer in",
    "http://127.0.0.1:8787": "unknown address scheme 'http'",
    "tcp://127.0.0.1:99999": "no answer in",
}


@pytest.mark.parametrize("address", BAD)
def test_a_wrong_address_is_a_line_within_seconds(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedbounds.empirical.sweep.cluster.SECONDS", 1)
    Path("toy.toml").write_text(SPEC)
    assert fedbounds.main(["run", "toy.toml", "--cluster", address]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and f"no Dask scheduler at '{address}': {BAD[address]}" in err
    assert not Path("results").exists()
