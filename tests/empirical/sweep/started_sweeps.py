"""Sweeps of stand-in runs in processes of their own, to be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from fedbounds.empirical.sweep import Run, Store, tabulate, write_csv

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import signal, sys
from pathlib import Path
from typing import IO
from fedbounds.empirical.sweep import Store, execute
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests themselves run in the background
    workers, directory, *kinds = sys.argv[1:]
    told = lambda outcome, done, total: print(outcome.run.key, "made" if outcome.made else "found", flush=True)
    execute(runs_of(kinds), Store(Path(directory)), workers=int(workers), run_task=stand_in, progress=told)
"""


def start(
    workers: int, directory: Path, kinds: list[str], out: int | IO[str] = subprocess.PIPE
) -> subprocess.Popen[str]:
    """A sweep in a process group of its own, as a shell would start it; it tells each run's key, and if it was made."""
    script = directory.with_suffix(".py")
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(workers), str(directory), *kinds]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, stdout=out, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def finish(workers: int, directory: Path, kinds: list[str]) -> set[str]:
    """Starts a sweep and sees it through; the keys of the runs that it made."""
    process = start(workers, directory, kinds)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0 and not errors, errors
    told = [line.split() for line in said.splitlines()]
    assert len({key for key, _ in told}) == len(told) == len(kinds)
    return {key for key, what in told if what == "made"}


def group_is_gone(group: int, patience: float = 20) -> bool:
    """Whether every process of the group ends before long."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        if Path("/proc/self/stat").exists() and not _running(group):
            return True
        time.sleep(0.05)
    return False


def _running(group: int) -> list[int]:
    """The processes of a group that have not ended; those that nobody has waited for have."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # one has ended meanwhile
            state, _, its_group, *_ = stat.read_text().rpartition(")")[2].split()
            found += [int(stat.parent.name)] if int(its_group) == group and state != "Z" else []
    return found


def workers_of(driver: int) -> list[int]:
    """The spawned processes of a driver that live."""
    found = []
    with suppress(OSError):  # one has ended meanwhile
        for children in Path(f"/proc/{driver}/task").glob("*/children"):
            for child in children.read_text().split():
                if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                    found.append(int(child))
    return found


def table(runs: list[Run], directory: Path) -> bytes:
    """What `results --csv` writes."""
    with tempfile.TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / "table.csv"
        write_csv(tabulate(runs, Store(directory)), path)
        return path.read_bytes()
