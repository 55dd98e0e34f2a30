"""Shards: every run in exactly one, whatever is done, and as even as runs that stay together let them be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import Run, plan, resolve, shard
from fedbounds.empirical.sweep.batches import parse_shard, setting
from fedbounds.empirical.sweep.estimate import estimate
from fedbounds.empirical.sweep.store import RunStatus

TASK = {"seeds": [0], "labels": {}}


@st.composite
def studies(draw: st.DrawFn) -> list[Run]:
    """Runs of several settings, some alike, some asked for twice, of any length."""
    runs = []
    for index in range(draw(st.integers(0, 30))):
        kind = draw(st.integers(0, 3))
        task = {**TASK, "rounds": kind, "algorithm": {"kind": "a", "step": float(index) + 0.5}}
        key = f"{draw(st.integers(0, 40)):02x}" * 32
        runs.append(Run(key, task, draw(st.floats(0, 1e6)), together=[1, 2, 5, 16][kind]))
    return runs


@given(studies(), st.integers(1, 40))
def test_shards_are_the_whole_study_and_have_nothing_in_common(runs: list[Run], of: int) -> None:
    parts = [shard(runs, index, of) for index in range(1, of + 1)]
    assert sorted(run.key for part in parts for run in part) == sorted(run.key for run in runs)
    keys = [{run.key for run in part} for part in parts]
    assert sum(map(len, keys)) == len({run.key for run in runs})
    assert all([*part] == [run for run in runs if run.key in some] for part, some in zip(parts, keys, strict=True))


def test_shards_are_even_and_runs_that_are_made_together_stay_so() -> None:
    alike = [
        Run(f"{i:064x}", {**TASK, "algorithm": {"kind": "a", "step": i + 0.5}}, 10.0, together=4) for i in range(32)
    ]
    other = [Run(f"{i + 99:064x}", {**TASK, "rounds": i}, float(i)) for i in range(40)]
    parts = [shard(alike + other, index, 4) for index in range(1, 5)]
    loads = [sum(run.seconds for run in part) for part in parts]
    assert max(loads) - min(loads) <= 40
    assert all(sum("algorithm" in run.task for run in part) % 4 == 0 for part in parts)


@pytest.mark.parametrize(
    "text", ["", "1", "0/3", "4/3", "-1/3", "1/0", "a/b", "1.0/2", "1/2/3", "١/٢", "1/" + "9" * 12]
)
def test_what_is_no_shard_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(FedboundsError, match="is no shard: i/n with i from 1 to n, as in 3/8"):
        parse_shard(text)


QUADRATICS = {
    "rounds": 5,
    "seeds": 1,
    "problem": {"kind": "quadratic", "clients": 4, "dimension": 3},
    "participation": {"kind": "full", "clients": 4},
    "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
    "vary": {"algorithm.local_step_size": [0.1, 0.2], "rounds": [100, 200, 400]},
}


def test_times_are_lower_bounds_until_runs_are_finished_and_then_as_measured() -> None:
    """By hand: six runs, two of each length; of those of 100 rounds one took 50 times its bound, of 200 one took 70."""
    runs = plan(resolve(QUADRATICS))
    bounds = {run.key: run.seconds for run in runs}
    missing = {run.key: RunStatus("missing", {}) for run in runs}
    none = estimate(runs, missing, 2)
    assert none.seconds == bounds and none.measured == 0 and not none.memory_measured
    assert none.total == pytest.approx(sum(bounds.values())) and none.total / 2 <= none.elapsed < none.total
    assert none.memory > 100 * 2**20 and none.whole <= 2 * none.memory

    def done(run: Run, times: float) -> RunStatus:
        return RunStatus("done", {"seconds": times * run.seconds, "provenance": {"peak_bytes": 5 * 2**20}})

    by_length = {length: [run for run in runs if run.task["rounds"] == length] for length in (100, 200, 400)}
    assert setting(by_length[100][0].task) == setting(by_length[100][1].task)
    found = {by_length[100][0].key: done(by_length[100][0], 50), by_length[200][0].key: done(by_length[200][0], 70)}
    some = estimate(runs, missing | found, 2)
    assert [some.seconds[by_length[n][1].key] / bounds[by_length[n][1].key] for n in by_length] == pytest.approx(
        [50, 70, 60]
    )
    assert some.measured == 2 and (some.memory, some.whole, some.memory_measured) == (5 * 2**20, 10 * 2**20, True)
    whole = estimate(runs, {run.key: done(run, 1) for run in runs}, 2)
    assert (whole.total, whole.elapsed, whole.memory, whole.whole) == (0, 0, 0, 0)
