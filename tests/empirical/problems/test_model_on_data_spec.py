"""The kind model-on-data: data, partition and network in files of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.problems import Problem, problem_from_spec
from fedbounds.empirical.problems.own_network import allow_import
from fedbounds.empirical.sweep import execute, plan, resolve
from fedbounds.empirical.sweep.store import Store
from tests.command_line import run

SOURCE = """
import torch

def make():
    return torch.nn.Linear(4, 3)

def regression():
    return torch.nn.Linear(4, 1)

def broken():
    raise ValueError("no layer")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    labels = np.arange(20) % 3
    features = rng.standard_normal((20, 4)).astype(np.float32) + labels[:, None]
    np.savez(tmp_path / "d.npz", x_train=features[:15], y_train=labels[:15], x_test=features[15:], y_test=labels[15:])
    np.savez(tmp_path / "r.npz", features=features, labels=features @ np.array([1.0, -1.0, 2.0, 0.5]) + 0.25)
    (tmp_path / "p.json").write_text(json.dumps([[0, 1, 2, 3, 4, 5, 6], [7, 8], [9, 10, 11, 12, 13, 14]]))
    (tmp_path / "model.py").write_text(SOURCE)
    return tmp_path


def table(folder: Path, network: str = "linear", **more: Any) -> dict[str, Any]:
    own = f"{folder}/model.py:{network}" if network in ("make", "regression", "broken", "absent") else network
    files = {"dataset": str(folder / "d.npz"), "partition": str(folder / "p.json"), "network": own}
    return {"kind": "model-on-data", **files, **more}


def own_problem(folder: Path, network: str, **more: Any) -> Problem:
    with allow_import():
        return problem_from_spec(table(folder, network, **more))


def test_objective_gradients_and_metrics_are_those_of_torch(folder: Path) -> None:
    problem = own_problem(folder, "make", start_seed=3)
    torch.manual_seed(3)
    module = torch.nn.Linear(4, 3)
    held = np.load(folder / "d.npz")
    x, y = (torch.from_numpy(held[name]) for name in ("x_train", "y_train"))
    x = x.float()
    each = torch.nn.functional.cross_entropy(module(x), y, reduction="none")
    loss = torch.stack([each[:7].mean(), each[7:9].mean(), each[9:].mean()]).mean()
    slope = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(module.parameters()))])
    start = problem.initial_point(np.random.default_rng(0))
    torch.testing.assert_close(problem.objective(start), loss.detach())
    torch.testing.assert_close(problem.objective_gradient(start), slope)
    found = problem.metrics(start[None])
    tested = module(torch.from_numpy(held["x_test"]).float()).argmax(1).numpy() == held["y_test"]
    assert found["test_accuracy"].item() == tested.mean()


def test_a_registered_network_is_that_of_images(folder: Path) -> None:
    one = problem_from_spec(table(folder, "mlp"))
    other = problem_from_spec(table(folder, "mlp") | {"kind": "images"})
    x = other.initial_point(np.random.default_rng(5))
    torch.testing.assert_close(one.objective(x).double(), other.objective(x), rtol=1e-5, atol=1e-6)
    for name in ("test_loss", "test_accuracy"):
        torch.testing.assert_close(one.metrics(x[None])[name], other.metrics(x[None])[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("network", ["linear", "regression"])
def test_least_squares_vanish_at_the_coefficients(network: str, folder: Path) -> None:
    more = {"dataset": str(folder / "r.npz"), "partition": "even", "clients": 4, "loss": "squared"}
    problem = own_problem(folder, network, **more)
    truth = torch.tensor([1.0, -1.0, 2.0, 0.5, 0.25])
    assert problem.dimension == 5 and problem.objective(truth) < 1e-9
    assert problem.objective(truth + torch.tensor([0.0, 0, 0, 0, 2])).item() == pytest.approx(2.0)  # half of 2 squared


@pytest.mark.parametrize(
    ("network", "more", "message"),
    [
        ("absent", {}, "has no function 'absent'"),
        ("broken", {}, "its call fails with ValueError: no layer"),
        ("regression", {}, "returns shape .2, 1. for two samples; expected .2, 3."),
        ("nowhere.at_all:make", {}, "its import fails with ModuleNotFoundError"),
        ("math:sqrt", {}, "its call fails"),
        ("cnn4-bn", {}, "running statistics, which need kind = 'images'"),
        ("linear", {"clients": 7}, "clients = 7, but .* has 3"),
        ("linear", {"dataset": "r.npz"}, "labels that are no classes"),
        ("linear", {"dataset": "r.npz", "loss": "squared", "partition": "dirichlet"}, "splits classes"),
        ("make", {"kind": "images"}, "is a factory, which only kind = 'model-on-data' takes"),
    ],
)
def test_what_does_not_fit_is_one_line(network: str, more: dict[str, Any], message: str, folder: Path) -> None:
    if "dataset" in more:
        more = more | {"dataset": str(folder / more["dataset"])}
    with pytest.raises(FedboundsError, match=message) as caught:
        own_problem(folder, network, **more)
    assert "\n" not in str(caught.value)


def test_nothing_is_imported_without_the_flag(folder: Path) -> None:
    (folder / "model.py").write_text(f"open({str(folder / 'imported')!r}, 'w')\n" + SOURCE)
    with pytest.raises(FedboundsError, match="runs code of that module; to allow it give --allow-import"):
        problem_from_spec(table(folder, "make"))
    assert not (folder / "imported").exists()


def test_minimax_problems_need_test_samples(folder: Path) -> None:
    held = np.load(folder / "d.npz")
    np.savez(folder / "d.npz", features=held["x_train"], labels=held["y_train"])
    problem = problem_from_spec(table(folder) | {"kind": "images"})
    assert {*problem.metrics(torch.zeros(1, problem.dimension))} == {"train_loss", "train_accuracy"}
    with pytest.raises(FedboundsError, match="has no test samples"):
        problem_from_spec(table(folder) | {"kind": "fair-images"})


def document(folder: Path, network: str = "make") -> dict[str, Any]:
    full = {"kind": "full", "clients": 3}
    algorithm = {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2}
    return {"rounds": 3, "problem": table(folder, network), "participation": full, "algorithm": algorithm}


def test_a_changed_file_makes_another_run_and_a_moved_one_does_not(folder: Path) -> None:
    def key(where: Path = folder) -> str:
        with allow_import():
            return plan(resolve(document(where)))[0].key

    keys = [key()]
    moved = folder / "moved"
    moved.mkdir()
    for name in ("d.npz", "p.json", "model.py"):
        (moved / name).write_bytes((folder / name).read_bytes())
    assert key(moved) == keys[0]
    (folder / "model.py").write_text(SOURCE + "\n# another\n")
    keys.append(key())
    (folder / "p.json").write_text(json.dumps([[0, 1, 2, 3, 4, 5, 6, 7], [8], [9, 10, 11, 12, 13, 14]]))
    keys.append(key())
    held = {**np.load(folder / "d.npz")}
    held["x_train"][0, 0] += 1
    np.savez(folder / "d.npz", **held)
    keys.append(key())
    assert len({*keys}) == 4


def test_a_sweep_runs_a_factory(folder: Path) -> None:
    with allow_import():
        (outcome,) = execute(plan(resolve(document(folder))), store := Store(folder / "results"))
        assert outcome.status == "done"
    trace = store.load(outcome.run.key)
    assert trace.train_loss[0, -1] < trace.train_loss[0, 0]


def test_the_flag_reaches_the_process_and_ends_with_the_command(folder: Path) -> None:
    toml = folder / "own.toml"
    problem = "\n".join(f"{key} = {json.dumps(value)}" for key, value in table(folder, "make").items())
    toml.write_text(
        f'rounds = 2\n[problem]\n{problem}\n[participation]\nkind = "full"\nclients = 3\n'
        '[algorithm]\nkind = "fedavg"\nlocal_step_size = 0.1\nlocal_steps = 1\n'
    )
    words = str(toml), "--out", str(folder / "o")
    status, _, error = run("run", *words)
    assert status == 2 and "--allow-import" in error
    assert run("run", *words, "--allow-import")[0] == 0
    assert run("results", *words)[0] == 2


def test_files_of_a_scaled_problem_are_in_the_key(folder: Path) -> None:
    def key() -> str:
        held = document(folder)
        inner = held["problem"] | {"client_weights": [1, 2, 3]}
        with allow_import():
            return plan(resolve(held | {"problem": {"kind": "scaled", "problem": inner}}))[0].key

    keys = [key()]
    (folder / "model.py").write_text(SOURCE + "\n# another\n")
    keys.append(key())
    (folder / "p.json").write_text(json.dumps([[0, 1, 2, 3, 4, 5, 6, 7], [8], [9, 10, 11, 12, 13, 14]]))
    assert len({*keys, key()}) == 3
