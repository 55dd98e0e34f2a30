"""Studies under many kills at random times; `-s` prints what was survived, SOAK=N changes the number of runs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from fedbounds.empirical.sweep import Run, Store, execute
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in
from tests.empirical.sweep.started_sweeps import finish, group_is_gone, start, table, workers_of

pytestmark = pytest.mark.long
SOAK = int(os.environ.get("SOAK", "10000"))


def undisturbed(runs: list[Run], directory: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    with monkeypatch.context() as impatient:
        impatient.setattr("tests.empirical.sweep.stand_in_runs.time.sleep", lambda seconds: None)
        execute(runs, Store(directory), run_task=stand_in)
    return table(runs, directory)


def kill(processes: list[int], chance: random.Random) -> int:
    """Kills one of these; how many were killed."""
    with suppress(IndexError, ProcessLookupError):  # none yet, or it has ended
        os.kill(chance.choice(processes), signal.SIGKILL)
        return 1
    return 0


def told(driver: subprocess.Popen[str], log: Path) -> list[str]:
    """The runs that a driver said it made, once it has ended, with no word of complaint but that it was killed."""
    _, errors = driver.communicate(timeout=600)
    assert driver.returncode in (0, -signal.SIGKILL) and not errors and group_is_gone(driver.pid)
    lines = log.read_text().splitlines()
    return [line.split()[0] for line in lines if line.endswith(" made")]


def test_a_soak_under_kills_loses_doubles_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds, chance = ["takes a little"] * SOAK, random.Random(0)
    runs, directory, log = runs_of(kinds), tmp_path / "results", tmp_path / "log"
    expected = undisturbed(runs, tmp_path / "undisturbed", monkeypatch)
    began, workers_killed, starts, made = time.monotonic(), 0, 0, Counter[str]()
    ended = False
    while not ended:
        starts += 1
        until = time.monotonic() + chance.uniform(10, 30)
        with log.open("w") as file:
            driver = start(2, directory, kinds, out=file)
            while driver.poll() is None and time.monotonic() < until:
                time.sleep(chance.expovariate(2))
                workers_killed += kill(workers_of(driver.pid), chance)
            ended = driver.poll() == 0
            kill([driver.pid] if driver.poll() is None else [], chance)
            made.update(told(driver, log))
    seconds = time.monotonic() - began
    print(f"\n{SOAK} runs, {seconds:.0f} s, {workers_killed} workers and {starts - 1} drivers killed")
    assert set(made.values()) == {1} and workers_killed > SOAK / 1000
    assert table(runs, directory) == expected
    for path in (tmp_path / "undisturbed").glob("*.npz"):
        assert (directory / path.name).read_bytes() == path.read_bytes()
    assert len(list(directory.iterdir())) == 2 * SOAK


@pytest.mark.parametrize("seed", range(30))
def test_a_study_survives_whatever_is_killed_and_damaged(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds, chance = ["takes a little"] * 60, random.Random(seed)
    runs, directory = runs_of(kinds), tmp_path / "results"
    expected = undisturbed(runs, tmp_path / "undisturbed", monkeypatch)
    for _ in range(4):
        drivers = [start(chance.choice([1, 2]), directory, kinds) for _ in range(chance.choice([1, 1, 2]))]
        for _ in range(chance.randrange(3)):
            time.sleep(chance.uniform(0, 0.4))
            kill(workers_of(chance.choice(drivers).pid), chance)
        time.sleep(chance.uniform(0, 1.5))
        for driver in drivers:
            os.killpg(driver.pid, signal.SIGKILL) if chance.random() < 0.3 else driver.kill()
            driver.wait()
            assert group_is_gone(driver.pid)
            driver.communicate()
        for path in chance.sample(sorted(directory.glob("*.*")), k=min(2, len(list(directory.glob("*.*"))))):
            content = bytearray(path.read_bytes())
            if content and chance.random() < 0.5:
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                path.write_bytes(content)
            else:
                os.truncate(path, chance.randrange(len(content) + 1))
    left = {one.key for one in runs if not Store(directory).read_status(one.key).finished}
    assert finish(2, directory, kinds) == left
    assert table(runs, directory) == expected and len(list(directory.iterdir())) == 2 * len(runs)
