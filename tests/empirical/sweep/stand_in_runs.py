"""Runs that cost nothing, for the tests of the sweep: importable by name, so that spawned workers find them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Run, Sweep, resolve
from fedbounds.empirical.sweep.keys import run_key
from fedbounds.empirical.sweep.workers import THREADS

DOCUMENT = {
    "name": "stand-in",
    "rounds": 4,
    "seeds": 2,
    "problem": {"kind": "fine"},
    "participation": {"kind": "full"},
    "algorithm": {"kind": "fedavg"},
}


def sweep_of(kinds: list[str], **document: Any) -> Sweep:
    """One task per kind of behavior; the place in the list makes equal kinds different runs."""
    problems = {f"{index}-{kind}": {"kind": kind, "place": index} for index, kind in enumerate(kinds)}
    rest = {key: value for key, value in DOCUMENT.items() if key != "problem"}
    return resolve({**rest, "problems": problems, **document})


def runs_of(kinds: list[str], **document: Any) -> list[Run]:
    return [Run(run_key(task, "sources", {}), task) for task in sweep_of(kinds, **document).tasks]


def stand_in(task: dict[str, Any]) -> Trace:
    """Does what the problem's kind says, then returns random numbers that depend on the task alone."""
    match task["problem"]["kind"]:
        case "raises":
            raise ZeroDivisionError("the step size is zero\nand that is bad")
        case "is bad input":
            raise FedboundsError("local_step_size = -1 is outside its domain (0, inf)")
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "dies once":
            with suppress(FileExistsError):
                Path(os.environ["MARKS"], str(task["problem"]["place"])).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        case "meets another":
            marks = Path(os.environ["MARKS"])
            (marks / str(task["problem"]["place"])).touch()
            while len(list(marks.iterdir())) < 2:
                time.sleep(0.01)
        case "is interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        case "has many threads" if {os.environ.get(name) for name in THREADS} != {"1"}:
            raise FedboundsError("libraries may start threads here")
        case "takes long":
            time.sleep(60)
        case "takes a little":
            time.sleep(0.01)
        case "takes a moment":
            time.sleep(0.2)
    seeds = task["seeds"]
    place = task["problem"].get("place", 0)
    loss = np.stack([np.random.default_rng([seed, place]).random(task["rounds"] + 1) for seed in seeds])
    diverged = task["problem"]["kind"] == "diverges"
    if diverged:
        loss[0, -1] = np.nan
    return Trace(
        {"seed": np.array(seeds), "round": np.arange(task["rounds"] + 1), "loss": loss},
        {"seed": ("seed",), "round": ("round",), "loss": ("seed", "round")},
        {"rounds": task["rounds"]},
        "stand-in",
        ("diverged" if diverged else "done",) + ("done",) * (len(seeds) - 1),
    )
