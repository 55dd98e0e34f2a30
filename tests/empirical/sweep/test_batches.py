"""Settings that compute together: which do, and that each of them is what it would be alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.participation import Bernoulli, WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.simulation.simulate import JointRun, simulate, simulate_together
from fedbounds.empirical.sweep import Store, execute, plan, resolve
from fedbounds.empirical.sweep.batches import batches
from fedbounds.empirical.sweep.maker import Maker
from fedbounds.empirical.sweep.workers import make_spawned
from tests.empirical.runtime.pretended_device import TRAFFIC, pretended_device
from tests.empirical.sweep.stand_in_runs import runs_of, stand_in

DIGITS = {"kind": "images", "clients": 10, "network": "mlp"}
QUADRATIC = {"kind": "quadratic", "clients": 10, "dimension": 3, "shared": False, "noise": 0.1}
STEPS = {"local_step_size": 0.1, "local_steps": 2}
ALGORITHMS = [
    {"kind": "generalized-fedavg", **STEPS, "server_multiplier": 2.0, "interval": 2},
    {"kind": "wait-full", **STEPS, "interval": 2},
    {"kind": "wait-for-all", "step_size": 0.1, "local_steps": 2, "interval": 2},
    {"kind": "fedau", **STEPS, "cutoff": 2},
    {"kind": "fedvarp", **STEPS},
    {"kind": "mifa", **STEPS},
]
SWEEP = {
    "rounds": 6,
    "seeds": 2,
    "record_every": 2,
    "problems": {"digits": DIGITS, "quadratic": QUADRATIC},
    "participation": {"kind": "without-replacement", "clients": 10, "participants": 4},
    "algorithm": {"kind": "generalized-fedavg", **STEPS, "interval": 2},
    "vary": {"algorithm.local_step_size": [0.1, 0.2, 0.4], "algorithm.server_multiplier": [1, 1.5]},
}


@pytest.fixture(autouse=True)
def same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "sources")


def settings_of(rule: dict[str, Any]) -> list[JointRun]:
    """Three step sizes, of which one makes a run diverge, and seeds of which some are in several settings."""
    name = "step_size" if "step_size" in rule else "local_step_size"
    seeds = {0.1: (0, 3), 1e30: (3, 1, 0), 0.3: (2,)}
    return [JointRun(algorithm_from_spec(rule | {name: size}), own, 7) for size, own in seeds.items()]


@pytest.mark.parametrize("rule", ALGORITHMS, ids=lambda rule: rule["kind"])
def test_every_number_of_a_setting_is_what_it_is_alone(rule: dict[str, Any]) -> None:
    problem, process = problem_from_spec(DIGITS), Bernoulli(10, 0.8)
    settings = settings_of(rule)
    keep = {"record_every": 3, "record_models": True, "record_participation": True, "streams": {"participation": 7}}
    (together,) = simulate_together(settings, problem, process, **keep)
    for setting, trace in zip(settings, together, strict=True):
        alone = simulate(setting.algorithm, problem, process, 7, seeds=setting.seeds, **keep)
        assert trace.spec == alone.spec and trace.engine == alone.engine and trace.statuses == alone.statuses
        for name, values in alone.arrays.items():
            np.testing.assert_array_equal(trace.arrays[name], values, err_msg=name)
    assert set(together[1].statuses) == {"diverged"} and set(together[0].statuses) == {"done"}


def test_phases_stand_together_if_they_are_as_long() -> None:
    problem, process = problem_from_spec(DIGITS), WithoutReplacement(10, 3)

    def phases(size: float, first: int) -> JointRun:
        early, late = (algorithm_from_spec({"kind": "fedavg", **STEPS, "local_step_size": s}) for s in (size, size / 2))
        return JointRun(None, (0,), None, [(early, first), (late, 5 - first)])

    settings = [phases(0.1, 2), phases(0.4, 2)]
    (together,) = simulate_together(settings, problem, process)
    for setting, trace in zip(settings, together, strict=True):
        alone = simulate(None, problem, process, phases=setting.phases)
        np.testing.assert_array_equal(trace.train_loss, alone.train_loss)
    assert len(list(simulate_together([phases(0.1, 2), phases(0.1, 3)], problem, process))) == 2


@pytest.mark.parametrize("rule", ALGORITHMS, ids=lambda rule: rule["kind"])
def test_settings_together_elsewhere_are_those_here_and_nothing_crosses_within_a_round(rule: dict[str, Any]) -> None:
    settings, process, found = settings_of(rule)[::2], WithoutReplacement(10, 3), []
    (here,) = simulate_together(settings, problem_from_spec(DIGITS), process, record_every=7)

    def count(done: int, total: int) -> None:
        found.append(list(TRAFFIC))
        TRAFFIC.clear()

    with pretended_device() as device:
        problem = problem_from_spec(DIGITS, device=device)
        for _ in range(2):  # what a problem makes when it is first asked for it is there the second time
            found.clear()
            (there,) = simulate_together(settings, problem, process, record_every=7, progress=count)
    first, *others, last = found
    assert first and last and not any(others)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other.train_loss, one.train_loss, rtol=1e-5)


def test_runs_that_differ_in_step_sizes_and_seeds_are_made_together_where_it_pays() -> None:
    runs = plan(resolve(SWEEP))
    assert [len(batch) for batch in batches(runs, 1)] == [6, 6]
    assert [len(batch) for batch in batches(runs, 4)] == [2] * 6
    assert [run for batch in batches(runs, 1) for run in batch] == list(runs)
    single = plan(resolve(SWEEP | {"seeds_per_run": 1}))
    assert sorted(len(batch) for batch in batches(single, 1)) == [12, 12]
    many = plan(resolve(SWEEP | {"seeds": 5}))
    assert [len(batch) for batch in batches(many, 1)] == [3] * 4  # no more than 16 seeds
    steps = plan(resolve(SWEEP | {"vary": {"algorithm.local_steps": [2, 3]}}))
    assert [len(batch) for batch in batches(steps, 1)] == [1] * 4
    images = plan(resolve(SWEEP | {"problems": {"cnn": DIGITS | {"network": "cnn-small"}}}))
    assert {run.together for run in images} == {1}


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])  # as in test_sweep_executors
def test_a_run_that_was_made_together_has_the_bytes_that_it_has_alone(workers: int, tmp_path: Path) -> None:
    runs = plan(resolve(SWEEP))
    together, alone = Store(tmp_path / "together"), Store(tmp_path / "alone")
    told: list[str] = []
    outcomes = execute(runs, together, workers=workers, progress=lambda one, *_: told.append(one.run.key))
    assert {one.status for one in outcomes} == {"done"} and sorted(told) == sorted(run.key for run in runs)
    for run in runs:
        execute([run], alone)
        assert together.trace_path(run.key).read_bytes() == alone.trace_path(run.key).read_bytes()
    assert not list(tmp_path.glob("*/*.partial"))


def test_a_batch_that_fails_costs_only_the_run_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedbounds.empirical.sweep import task

    made, bad = task.run_together, 0.2

    def fails(tasks):
        if any(one["algorithm"]["local_step_size"] == bad for one in tasks):
            raise MemoryError("too much")
        return made(tasks)

    monkeypatch.setattr(task, "run_together", fails)
    outcomes = execute(plan(resolve(SWEEP)), Store(tmp_path))
    for outcome in outcomes:
        guilty = outcome.run.task["algorithm"]["local_step_size"] == bad
        assert outcome.status == ("error: MemoryError: too much" if guilty else "done")


def test_a_worker_that_dies_in_a_batch_leaves_its_runs_to_be_made_alone(tmp_path: Path) -> None:
    runs, maker = runs_of(["fine", "dies", "fine"]), Maker(Store(tmp_path), {}, stand_in)
    made = list(make_spawned([runs], maker, 1))
    assert [news.key for news in made] == [runs[0].key, runs[1].key, runs[2].key]
    died = "error: its worker process died, twice, with exit code -9 (killed, perhaps for its memory)"
    assert [news.status for news in made] == ["done", died, "done"]
