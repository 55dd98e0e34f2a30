"""Devices: their names, runs on a device that is only pretended against the processor, keys, out of memory."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import MinimaxAlgorithm, algorithm_from_spec, algorithms
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.runtime.device import resolve_device
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.sweep import Store, execute, plan, resolve
from fedbounds.empirical.sweep.task import run_task
from tests.empirical.runtime.pretended_device import TRAFFIC, Elsewhere, pretended_device

QUADRATIC = {"kind": "quadratic", "clients": 4, "dimension": 3, "noise": 0.1}
GAME = {"kind": "minimax-quadratic", "clients": 4, "descent_dimension": 2, "ascent_dimension": 2, "noise": 0.1}
TIERS = {
    "kind": "block-quadratic",
    "hessian": [[2.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 1.0]],
    "blocks": [1, 2],
    "silo_clients": [2, 3],
    "noise": 0.1,
}
NUMBERS = {
    **dict.fromkeys(("local_step_size", "local_ascent_step_size", "step_size", "ascent_step_size"), 0.05),
    **dict.fromkeys(("server_step_size", "server_ascent_step_size"), 0.1),
    **{"local_steps": 2, "interval": 3, "weights": [1.0, 2.0, 1.0, 3.0], "server_multiplier": 1.5},
    **{"amplitude": 0.1, "compressor": {"kind": "terngrad"}, "proximal_mu": 0.5, "share": 0.5},
}
OWN = {
    "fedavg": {"local_steps": 2},
    "generalized-fedavg": {"local_steps": 2},
    "fedavgm": {"local_steps": {"low": 1, "high": 3}},
    "fedadam": {"local_steps": [1, 2, 3, 2], "momentum": 0.5, "step_size_schedule": {"kind": "inverse"}},
    "local-sgda": {"local_steps": 3},
    "fedmrn-analysis": {"amplitude": 0.1},
    "known-participation": {"probability": 0.5},
    "fedprox": {"local_steps": [1, 2, 3, 2]},
    "fednova": {"local_steps": {"low": 1, "high": 3}, "effective_local_steps": None},
    "fed-norm-sgda": {"local_steps": {"low": 1, "high": 3}, "snapshot_period": 2},
}
WELL = {"slopes": [[1.0], [-1.0], [0.5], [-0.5]], "ripple": 0.3, "depth": 0.5, "bend": 0.8}
GAMES = [
    GAME,
    {
        "kind": "minimax-scaled",
        "scales": [1.0, 2.0, 0.5, 0.5],
        "descent_hessian": [[0.5]],
        "coupling": [[1.0]],
        "concavity": 1.0,
        "slope": [0.5],
        "ascent_slope": [0.1],
        "noise": 0.1,
    },
    {"kind": "minimax-bounded", **WELL, "ascent_slopes": [[0.1], [-0.1], [0.0], [0.0]], "noise": 0.1},
    {"kind": "minimax-one-point", **WELL, "noise": 0.1},
    {"kind": "robust-images", "clients": 10, "network": "mlp", "attack_steps": 2},
    {"kind": "fair-images", "clients": 10, "network": "mlp", "gradient_norm": True},
]
PROBLEMS = [
    {"kind": "toy", "noise": 0.1},
    QUADRATIC,
    QUADRATIC | {"shared": False},
    {"kind": "cosine-quadratic", "clients": 4, "dimension": 3, "noise": 0.1},
    {"kind": "bounded-gradient", "clients": 4, "dimension": 3},
    {"kind": "images", "clients": 10, "network": "mlp", "gradient_norm": True, "augmentation": ["crop"]},
    {"kind": "images", "clients": 10, "network": "cnn-small"},
]


def run(problem, algorithm, device, engine="auto"):
    problem = problem_from_spec(problem, device=device)
    process = Full(problem.clients) if problem.silos else WithoutReplacement(problem.clients, 2)
    return simulate(algorithm, problem, process, 4, seeds=[0, 3], engine=engine, record_every=2)


def assert_the_same_elsewhere(problem, algorithm, engine="auto"):
    here = run(problem, algorithm, "cpu", engine)
    with pretended_device() as device:
        there = run(problem, algorithm, device, engine)
    assert here.engine == there.engine and here.arrays.keys() == there.arrays.keys()
    images = "network" in problem  # in single precision, and walked through in another order
    for name, values in here.arrays.items():
        np.testing.assert_allclose(
            there.arrays[name], values, rtol=1e-5 if images else 1e-12, atol=1e-6 if images else 1e-12, err_msg=name
        )


def home(kind):
    """A problem for algorithms of this kind."""
    if algorithms()[kind].tiered:
        return TIERS
    return GAME if issubclass(algorithms()[kind], MinimaxAlgorithm) else QUADRATIC


def numbered(kind):
    """An algorithm of this kind, with the numbers that it needs."""
    taken = [name for name, one in signature(algorithms()[kind]).parameters.items() if one.default is one.empty]
    return algorithm_from_spec({"kind": kind, **{name: NUMBERS[name] for name in taken}, **OWN.get(kind, {})})


@pytest.mark.parametrize("engine", ["auto", "sequential", "batched"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda spec: "-".join(map(str, spec.values())))
def test_a_run_never_mixes_devices_and_is_the_same_elsewhere(problem, engine):
    assert_the_same_elsewhere(problem, numbered("generalized-fedavg"), engine)


@pytest.mark.parametrize("kind", ["fedavg", "fedmrn", "fedsparsify", "fedpm", "compressed"])
def test_networks_with_running_statistics_run_elsewhere(kind):
    network = {"kind": "images", "clients": 10, "network": "cnn4-bn-small", "partition": "even"}
    with pretended_device() as device:
        found = run(network, numbered(kind), device)
    assert found.statuses == ("done",) * 2 and np.isfinite(found.test_loss).all()


OURS = [kind for kind, made in algorithms().items() if made.__module__.startswith("fedbounds.")]


@pytest.mark.parametrize("kind", OURS)
def test_every_algorithm_runs_elsewhere(kind):
    assert_the_same_elsewhere(home(kind), numbered(kind))


@pytest.mark.parametrize("problem", GAMES, ids=lambda spec: spec["kind"])
@pytest.mark.parametrize("engine", ["auto", "sequential"])
def test_every_game_is_played_elsewhere(problem, engine):
    assert_the_same_elsewhere(problem, numbered("fed-norm-sgda"), engine)


@pytest.mark.parametrize("engine", ["tiers", "closed form"])
@pytest.mark.parametrize("shared", [True, False])
def test_silos_are_the_same_elsewhere_in_all_ways(engine, shared):
    problem = {"kind": "block-quadratic", "silos": 2, "clients": 3, "dimension": 2, "heterogeneity": 0.5}
    problem |= {"shared": shared, "noise": 0.1, "shift": 0.1}
    assert_the_same_elsewhere(problem, numbered("tdcd"), engine)
    assert_nothing_crosses_within_a_round(problem, numbered("tdcd"), engine)


SAMPLES = {"kind": "vertical-least-squares", "silos": 2, "clients": 3, "samples": 4, "dimension": 2}
VERTICAL = {"kind": "vertical", "dataset": "digits", "silos": 2, "silo_clients": 2, "remainder": "spread", "batch": 60}
WAVES = {"kind": "rippled-blocks", "silos": 2, "clients": 3, "dimension": 2, "noise": 0.1}


@pytest.mark.parametrize("problem", [
    SAMPLES | {"batch": 10}, SAMPLES | {"copies": True, "label_vectors": 3}, WAVES, WAVES | {"noise_law": "phases"},
    VERTICAL | {"network": "linear"}, VERTICAL | {"network": "cnn-small", "gradient_norm": True},
])  # fmt: skip
def test_silos_with_samples_and_waves_are_the_same_elsewhere(problem):
    assert_the_same_elsewhere(problem, numbered("tdcd"))
    with pretended_device() as device:
        there = problem_from_spec(problem, device=device)
        assert there.constants().keys() == problem_from_spec(problem).constants().keys()
        assert isinstance(there.silo_variances(there.initial_point(np.random.default_rng(0))), Elsewhere)


def traffic_by_round(problem, algorithm, engine):
    """What crossed, or waited, in each of six rounds on the device, of which the last alone is recorded."""
    with pretended_device() as device:
        problem = problem_from_spec(problem, device=device)
        process = Full(problem.clients) if problem.silos else WithoutReplacement(problem.clients, 2)
        found = []

        def count(done, total):
            found.append(list(TRAFFIC))
            TRAFFIC.clear()

        for _ in range(2):  # what a problem makes when it is first asked for it is there the second time
            found.clear()
            simulate(algorithm, problem, process, 6, seeds=[0, 3], engine=engine, record_every=6, progress=count)
    return found


def assert_nothing_crosses_within_a_round(problem, algorithm, engine="auto"):
    """But before the first, where the plan of all of them and the models do, and after the last, which is recorded."""
    first, *others, last = traffic_by_round(problem, algorithm, engine)
    assert first and last and not any(others), others


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda spec: "-".join(map(str, spec.values())))
@pytest.mark.parametrize("kind", ["generalized-fedavg", "wait-full"])
def test_nothing_crosses_within_a_round_on_any_problem(problem, kind):
    assert_nothing_crosses_within_a_round(problem, numbered(kind))
    assert_nothing_crosses_within_a_round(problem, numbered(kind), "batched")


TALKING = {"compressed", "fedmrn-analysis"}  # messages that are bytes; a word for each client, once in S iterations


@pytest.mark.parametrize("kind", [kind for kind in OURS if kind not in TALKING])
def test_nothing_crosses_within_a_round_of_any_algorithm(kind):
    assert_nothing_crosses_within_a_round(home(kind), numbered(kind))


@pytest.mark.parametrize("problem", GAMES, ids=lambda spec: spec["kind"])
def test_nothing_crosses_within_a_round_of_any_game(problem):
    assert_nothing_crosses_within_a_round(problem, numbered("fed-norm-sgda"))


@pytest.mark.parametrize("problem", [PROBLEMS[3], GAME], ids=lambda spec: spec["kind"])
def test_a_block_of_rounds_is_moved_at_once_and_what_is_too_much_on_the_way(problem, monkeypatch):
    """Each round is a block if one draws as much as a block may hold: all its integers move at once, and the rest."""
    kind = "fedau" if problem is PROBLEMS[3] else "fed-norm-sgda"
    monkeypatch.setattr("fedbounds.empirical.simulation.simulate.NUMBERS", 1)
    _, *others, _ = traffic_by_round(problem, numbered(kind), "auto")
    assert others == [["_to_copy"] * 2] * 4
    for engine in ("batched", "masked_batch"):
        monkeypatch.setattr(f"fedbounds.empirical.simulation.engines.{engine}.NUMBERS", 1)
    assert_the_same_elsewhere(problem, numbered(kind))
    _, *others, _ = traffic_by_round(problem, numbered(kind), "auto")
    assert all(len(found) > 4 for found in others)


def test_the_pretended_device_refuses_what_a_real_one_does():
    with pretended_device() as device:
        there, here = torch.ones(3, device=device), torch.ones(3)
        assert isinstance(there, Elsewhere) and not isinstance(there.cpu(), Elsewhere)
        assert isinstance(here.to(there) + there * 2.0, Elsewhere) and there[torch.tensor([0])].device == there.device
        with pytest.raises(RuntimeError, match="on the processor"):
            there + here
        with pytest.raises(RuntimeError, match="on the processor"):
            torch.stack([there, here])
        with pytest.raises(TypeError, match="cpu"):
            there.numpy()


def test_a_problem_that_forgets_to_move_its_numbers_is_found(monkeypatch):
    made = problem_from_spec(QUADRATIC)
    with pretended_device() as device:
        problem = problem_from_spec(QUADRATIC, device=device)
        monkeypatch.setattr(problem, "centers", made.centers)
        with pytest.raises(RuntimeError, match="on the processor"):
            simulate(numbered("fedavg"), problem, WithoutReplacement(4, 2), 2, engine="batched")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0", "", 3, None])
def test_a_name_of_no_device_is_refused(name):
    with pytest.raises(FedboundsError, match="must be auto, cpu, cuda or cuda:i"):
        resolve_device(name, network=True)


def test_a_device_that_is_not_here_is_named_and_auto_takes_what_there_is(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto", network=True) == "cpu"
    with pytest.raises(FedboundsError, match="sees no CUDA device here; give device = 'cpu'"):
        resolve_device("cuda", network=True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [resolve_device("auto", network) for network in (True, False)] == ["cuda", "cpu"]
    assert resolve_device("cuda:1", network=False) == "cuda:1"
    with pytest.raises(FedboundsError, match="sees cuda:0 to cuda:1 here"):
        resolve_device("cuda:2", network=True)


SWEEP = {
    "rounds": 4,
    "problem": {"kind": "images", "clients": 10, "network": "linear"},
    "participation": {"kind": "full", "clients": 10},
    "algorithm": {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
}


def test_a_run_is_named_for_the_kind_of_its_device_not_for_its_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    keys = {name: plan(resolve(SWEEP | {"device": name}))[0].key for name in ("auto", "cpu", "cuda", "cuda:1")}
    assert keys["auto"] == keys["cuda"] == keys["cuda:1"] != keys["cpu"]
    assert plan(resolve(SWEEP), device="cpu")[0].key == keys["cpu"]


def test_the_record_of_a_run_names_its_device(tmp_path):
    runs, store = plan(resolve(SWEEP), device="cpu"), Store(tmp_path)
    execute(runs, store)
    assert store.load(runs[0].key).spec["device"] == "cpu"


def test_out_of_memory_is_one_line_that_says_what_to_lower(monkeypatch):
    def full(*given, **named):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    task = plan(resolve(SWEEP | {"seeds": 3}), device="cpu")[0].task
    monkeypatch.setattr("fedbounds.empirical.sweep.task.simulate_together", full)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 8 * 2**30))
    with pytest.raises(FedboundsError, match=r"3 seeds of 10 clients.* 1.0 of 8.0 GiB are free; lower seeds_per_run"):
        run_task(task)
