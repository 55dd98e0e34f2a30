"""A sweep of real problems, participation and algorithms, from the file to the table."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from fedbounds.empirical.algorithms import RandomWork, heavy_ball
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Permutation, WithoutReplacement
from fedbounds.empirical.problems import random_quadratic, random_quadratic_minimax
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.sweep import Store, execute, plan, read_sweep, resolve, tabulate

ROOT = Path(__file__).resolve().parents[3]
TEXT = """
rounds = 8
seeds = 3
record_every = 2
streams = { participation = 7 }
[problems.quadratic]
kind = "quadratic"
clients = 10
dimension = 3
noise = 0.1
[problems.digits]
kind = "images"
clients = 10
network = "mlp"
[participation]
kind = "permutation"
clients = 10
participants = 5
[algorithms.amplified]
kind = "generalized-fedavg"
local_step_size = 0.05
local_steps = 2
server_multiplier = 2
interval = 2
[[algorithms.late.phases]]
rounds = 2
algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 2 }
[[algorithms.late.phases]]
algorithm = { kind = "generalized-fedavg", local_step_size = 0.05, local_steps = 2, interval = 2 }
"""


@pytest.fixture(autouse=True)
def same_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "sources")


def test_real_runs_give_the_same_bytes_on_one_and_on_two_workers(tmp_path: Path) -> None:
    runs = plan(resolve(tomllib.loads(TEXT)))
    stores = [Store(tmp_path / name) for name in ("one", "two")]
    for workers, store in enumerate(stores, start=1):
        assert {outcome.status for outcome in execute(runs, store, workers=workers)} == {"done"}
    for run in runs:
        one, two = (store.trace_path(run.key).read_bytes() for store in stores)
        assert one == two

    rows = tabulate(runs, stores[0])
    assert [(row.run.task["labels"], row.status) for row in rows] == [
        ({"problem": problem, "algorithm": algorithm}, "done")
        for problem in ("quadratic", "digits")
        for algorithm in ("amplified", "late")
    ]
    assert set(rows[-1].metrics) == {"train_loss", "train_accuracy", "test_loss", "test_accuracy"}
    accuracy = stores[0].load(runs[-1].key).test_accuracy.mean(0)
    assert rows[-1].metrics["test_accuracy"].best == pytest.approx(accuracy.max(), abs=1e-12)


def test_a_run_is_the_simulation_that_its_tables_describe(tmp_path: Path) -> None:
    run = plan(resolve(tomllib.loads(TEXT)))[0]
    execute([run], Store(tmp_path))
    expected = simulate(
        GeneralizedFedAvg(0.05, 2, server_multiplier=2, interval=2),
        random_quadratic(10, 3, noise=0.1),
        Permutation(10, 5),
        8,
        seeds=(0, 1, 2),
        record_every=2,
        streams={"participation": 7},
    )
    trace = Store(tmp_path).load(run.key)
    assert list(trace.round) == [0, 2, 4, 6, 8] and trace.engine == expected.engine
    np.testing.assert_allclose(trace.objective_gap, expected.objective_gap, rtol=1e-12)


GAMES = """
rounds = 4
seeds = 2
streams = { work = 3 }
[problems.quadratic]
kind = "minimax-quadratic"
clients = 4
descent_dimension = 2
ascent_dimension = 2
[problems.fair]
kind = "fair-images"
clients = 4
network = "mlp"
[participation]
kind = "without-replacement"
clients = 4
participants = 2
[algorithms.normalized]
kind = "fed-norm-sgda"
local_step_size = 0.05
local_ascent_step_size = 0.05
server_step_size = 0.05
server_ascent_step_size = 0.05
local_steps = { low = 1, high = 3 }
optimizer = { momentum = 0.5 }
[algorithms.naive]
kind = "local-sgda"
step_size = 0.05
ascent_step_size = 0.05
local_steps = { low = 1, high = 3 }
snapshot_period = 2
[vary]
"algorithms.normalized.local_steps.high" = [3, 5]
"""


def test_minimax_algorithms_and_problems_stand_in_a_sweep_like_all_others(tmp_path: Path) -> None:
    runs, store = plan(resolve(tomllib.loads(GAMES))), Store(tmp_path)
    assert len({run.key for run in runs}) == len(runs) == 6
    assert {outcome.status for outcome in execute(runs, store)} == {"done"}
    rows = {row.run.title.partition(" seeds")[0]: row.metrics for row in tabulate(runs, store)}
    assert list(rows["problem=quadratic algorithm=naive"]) == [
        "envelope_gradient_norm_squared", "moreau_gradient_norm_squared", "envelope", "dual_gap", "ascent_norm_squared",
    ]  # fmt: skip
    fair = rows["problem=fair algorithm=normalized algorithm.local_steps.high=5"]
    assert fair["worst_class_test_accuracy"].best >= fair["worst_class_test_accuracy"].final
    trace = store.load(runs[0].key)
    expected = simulate(
        FedNormSGDA(*[0.05] * 4, local_steps=RandomWork(1, 3), optimizer=heavy_ball(0.5)),
        random_quadratic_minimax(4, 2, 2),
        WithoutReplacement(4, 2),
        4,
        seeds=(0, 1),
        streams={"work": 3},
    )
    np.testing.assert_allclose(trace.dual_gap, expected.dual_gap, rtol=1e-12)
    assert trace.engine == expected.engine == "masked batch"


@pytest.mark.parametrize(
    "path",
    sorted(set((ROOT / "examples").glob("*.toml")) - set((ROOT / "examples").glob("advise-*"))),
    ids=lambda p: p.stem,
)
def test_every_example_is_a_sweep_that_can_be_run(path: Path) -> None:
    assert plan(read_sweep(path))
