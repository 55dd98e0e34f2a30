"""Times from a few rounds: exact where time is linear, killed where no round ends, asked only where it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fedbounds.empirical.sweep import Run, RunStatus, plan, resolve
from fedbounds.empirical.sweep.batches import Batch, setting
from fedbounds.empirical.sweep.estimate import Probe, estimate, extrapolate_seconds, probe
from tests.empirical.sweep.test_sweep_shards import QUADRATICS

PHASES = [{"algorithm": {"kind": "fedavg"}, "rounds": rounds} for rounds in (250, 750)]


def clock(begin: float, a_round: float, a_record: float) -> Any:
    def seconds(task: Mapping[str, Any]) -> float:
        if "phases" in task:
            assert task["rounds"] == sum(phase["rounds"] for phase in task["phases"])
        return begin + a_round * task["rounds"] + a_record * (-(-task["rounds"] // task["record_every"]) + 1)

    return seconds


@pytest.mark.parametrize("more", [{}, {"phases": PHASES}], ids=["one algorithm", "phases"])
@pytest.mark.parametrize("every", [1, 7, 1000])
@pytest.mark.parametrize("costs", [(0.3, 0.002, 0.0005), (0.0, 1.0, 0.0), (2.0, 1e-5, 3.0), (5.0, 0.0, 0.0)])
def test_a_task_whose_time_is_linear_is_timed_to_the_last_digit(
    costs: tuple[float, float, float], every: int, more: Mapping[str, Any]
) -> None:
    task, seconds = {"rounds": 1000, "record_every": every, **more}, clock(*costs)
    assert extrapolate_seconds(task, seconds, 1e9) == pytest.approx(seconds(task), rel=1e-9)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_task_of_few_rounds_is_no_trap(rounds: int) -> None:
    task, seconds = {"rounds": rounds, "record_every": 1}, clock(0.3, 0.1, 0.01)
    assert extrapolate_seconds(task, seconds, 0.0) == pytest.approx(seconds(task))


def test_a_setting_that_fails_and_one_that_never_ends_are_left_out_of_a_probe() -> None:
    """The third of three has ten million local steps of a thousand parameters in its first round."""
    heavy = {"kind": "quadratic", "clients": 4, "dimension": 1000}
    endless = {**QUADRATICS["algorithm"], "local_steps": 10_000_000}
    first = plan(resolve(QUADRATICS))[0]
    fails = Run("f", {**first.task, "rounds": 7, "problem": {"kind": "no-such-problem"}}, 1.0)
    never = Run("n", {**first.task, "problem": heavy, "algorithm": endless, "engine": "batched"}, 1.0)
    told: list[tuple[int, int]] = []
    found = probe([(first,), (fails,), (never,)], 1.5, lambda done, whole: told.append((done, whole)))
    assert list(found.seconds) == [setting(first.task)] and 0 < found.seconds[setting(first.task)] < 60
    assert told == [(1, 3), (2, 3)] and found.memory > 50 * 2**20
    assert found.starting > 0.1 and found.building >= 0 and found.once[setting(first.task)] >= 0


def test_rounds_are_tried_where_nothing_has_been_finished_and_stand_for_all_like_them() -> None:
    """By hand: six runs, two of each length; those of 100 rounds take 50 seconds, the others what their bound times the
    same ratio comes to."""
    runs = plan(resolve(QUADRATICS))
    asked: list[int] = []

    def trial(planned: Sequence[Batch]) -> Probe:
        asked.append(sum(map(len, planned)))
        return Probe({setting(planned[0][0].task): 50.0}, 9 * 2**20)

    missing = {run.key: RunStatus("missing", {}) for run in runs}
    found = estimate(runs, missing, 1, trial)
    times = [50.0 / runs[0].seconds * run.seconds for run in runs]
    assert [found.seconds[run.key] for run in runs] == pytest.approx(times) and found.total == pytest.approx(sum(times))
    assert (found.measured, found.tried, found.memory_measured) == (0, 1, True) and 9 <= found.memory / 2**20 < 9.1
    done = RunStatus("done", {"seconds": 1.0, "provenance": {"peak_bytes": 5 * 2**20}})
    some = estimate(runs, missing | {runs[0].key: done}, 1, trial)
    assert (some.measured, some.tried) == (1, 0) and asked == [6]
    assert estimate(runs, {run.key: done for run in runs}, 1, trial, 3.0).total == 0 and asked == [6]


def test_what_a_process_does_once_is_counted_for_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: four batches of 10 seconds of one setting; planning takes 3, starting 2, problems 5, compiling 7."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    task = plan(resolve({**QUADRATICS, "seeds": 4, "seeds_per_run": 1}))[0].task
    runs = [Run(f"{n}", task | {"seeds": [n]}, 1.0) for n in range(4)]
    name = setting(task)

    def trial(planned: Sequence[Batch]) -> Probe:
        return Probe({name: 10.0}, 2**20, {name: 7.0}, starting=2.0, building=5.0)

    missing = {run.key: RunStatus("missing", {}) for run in runs}
    alone, two, four = (estimate(runs, missing, workers, trial, 3.0) for workers in (1, 2, 4))
    assert alone.total == alone.elapsed == two.total == 3 + 7 + 40
    assert two.elapsed == 3 + 2 + 5 + 7 + 20
    assert four.elapsed == 3 + 2 * (2 + 5 + 7 + 10)  # four processes on two processors


def test_a_probe_times_problems_and_writing_but_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = plan(resolve({**QUADRATICS, "vary": {}}))[0]
    found = probe([(run,)], 5.0)
    assert found.seconds[setting(run.task)] > 0 and not [*tmp_path.iterdir()]
