"""FedProx, FedNova, SCAFFOLD and EF21: slow references, gauges, specifications, and what does not fit them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.participation import Bernoulli, Full, WithoutReplacement
from fedbounds.empirical.problems import (
    Problem,
    Quadratic,
    random_cosine_quadratic,
    random_quadratic,
)
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import JointRun, simulate, simulate_together
from fedbounds.empirical.sweep import plan, resolve
from tests.empirical.algorithms.test_local_work import images

CLIENTS, ROUNDS = 5, 12
UNEQUAL = (3, 1, 4, 2, 2)
INVERSE = {"kind": "inverse", "delay": 3}
SPECS: dict[str, dict[str, Any]] = {
    "fedprox": {"kind": "fedprox", "local_step_size": 0.05, "local_steps": 3, "proximal_mu": 0.7},
    "fedprox-unequal": {
        "kind": "fedprox", "local_step_size": 0.05, "local_steps": UNEQUAL, "proximal_mu": 0.7, "momentum": 0.5,
    },
    "fednova": {"kind": "fednova", "local_step_size": 0.05, "local_steps": UNEQUAL},
    "fednova-drawn": {
        "kind": "fednova", "local_step_size": 0.05, "local_steps": {"low": 1, "high": 4, "redraw": True},
        "momentum": 0.5, "step_size_schedule": INVERSE,
    },
    "fednova-effective": {
        "kind": "fednova", "local_step_size": 0.05, "local_steps": 3, "effective_local_steps": 4.5,
    },
    "scaffold": {"kind": "scaffold", "local_step_size": 0.05, "local_steps": 3, "server_multiplier": 1.4},
    "ef21": {"kind": "ef21", "step_size": 0.1, "share": 0.3},
}  # fmt: skip
STEP = {"ef21": "step_size"}  # the others have a local step size
FITS = {
    "fedprox-unequal": ("sequential", "masked batch"),
    "fednova": ("sequential", "masked batch"),
    "fednova-drawn": ("sequential", "masked batch"),
}
EACH = [(name, engine) for name in SPECS for engine in FITS.get(name, ("sequential", "batched"))]
PROBLEMS = {
    "quadratic": random_quadratic(CLIENTS, 4, shared=False, noise=0.2, seed=1),
    "cosine": random_cosine_quadratic(CLIENTS, 3, noise=0.3, seed=1),
}


def run(spec: dict[str, Any], problem: Problem, process: Any, rounds: int = ROUNDS, **more: Any) -> np.ndarray:
    """The models of each seed."""
    return simulate(algorithm_from_spec(spec), problem, process, rounds, record_models=True, **more).model


def reference(spec: dict[str, Any], problem: Problem, process: Any, seed: int, rounds: int = ROUNDS) -> np.ndarray:
    streams = Streams(seed)
    q = process.matrix(rounds, streams.generator("participation"))
    return run_reference(algorithm_from_spec(spec), problem, q, streams).numpy()


# --- the slow references -------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("name", "engine"), EACH)
def test_engines_agree_with_the_slow_references(name: str, engine: str, problem: str) -> None:
    """With noise, cohorts of different sizes, and rounds without participants."""
    for process in (Bernoulli(CLIENTS, 0.4), WithoutReplacement(CLIENTS, 2)):
        ours = run(SPECS[name], PROBLEMS[problem], process, seeds=(0, 5), engine=engine)
        for row, seed in enumerate((0, 5)):
            assert np.abs(ours[row] - reference(SPECS[name], PROBLEMS[problem], process, seed)).max() < 1e-12


@pytest.mark.parametrize("name", SPECS)
def test_networks_agree_with_the_slow_references(name: str) -> None:
    spec = SPECS[name] | ({"local_steps": (3, 1, 2)} if SPECS[name].get("local_steps") == UNEQUAL else {})
    process = WithoutReplacement(3, 2)
    ours = run(spec, images(), process, 3)[0]
    assert np.abs(ours - reference(spec, images(), process, 0, 3)).max() < 1e-12


def test_fednova_without_noise_is_exact_in_closed_form() -> None:
    problem, process = random_quadratic(CLIENTS, 4, shared=False), WithoutReplacement(CLIENTS, 2)
    ours = run(SPECS["fednova-effective"], problem, process, engine="closed form")[0]
    assert np.abs(ours - reference(SPECS["fednova-effective"], problem, process, 0)).max() < 1e-12


@pytest.mark.parametrize("name", SPECS)
def test_several_settings_are_what_they_are_alone(name: str) -> None:
    step = STEP.get(name, "local_step_size")
    settings = [JointRun(algorithm_from_spec(SPECS[name] | {step: size}), (0, 3), ROUNDS) for size in (0.05, 0.02)]
    process = Bernoulli(CLIENTS, 0.6)
    found = [
        trace
        for traces in simulate_together(settings, PROBLEMS["cosine"], process, record_models=True)
        for trace in traces
    ]
    for trace, setting in zip(found, settings, strict=True):
        alone = simulate(setting.algorithm, PROBLEMS["cosine"], process, ROUNDS, seeds=(0, 3), record_models=True)
        assert (trace.model == alone.model).all()


# --- gauges and symmetries -----------------------------------------------------------------------------------


def plain(a: float = 1.0, unit: float = 1.0, order: list[int] | None = None) -> Quadratic:
    """Different quadratics, a times as steep, in other units of x, with other names of the clients."""
    old = random_quadratic(CLIENTS, 4, shared=False, noise=0.0, seed=1)
    who = list(range(CLIENTS)) if order is None else order
    return Quadratic(a * old.hessians.numpy()[who], unit * old.centers.numpy()[who], x0=unit * old.x0.numpy())


Q = Bernoulli(CLIENTS, 0.6).matrix(ROUNDS, np.random.default_rng(1))


@pytest.mark.parametrize("name", SPECS)
def test_steeper_functions_undo_a_shorter_step_and_a_larger_proximal_weight(name: str) -> None:
    """f to a f, gamma to gamma/a, mu to a mu."""
    a, step, spec = 7.0, STEP.get(name, "local_step_size"), SPECS[name]
    gauge = {step: spec[step] / a} | ({"proximal_mu": a * spec["proximal_mu"]} if "proximal_mu" in spec else {})
    assert np.allclose(run(spec | gauge, plain(a), Q), run(spec, plain(), Q), rtol=1e-12, atol=1e-12)
    if "proximal_mu" in spec:
        half = gauge | {"proximal_mu": spec["proximal_mu"]}
        assert not np.allclose(run(spec | half, plain(a), Q), run(spec, plain(), Q), rtol=1e-4)


@pytest.mark.parametrize("name", SPECS)
def test_a_change_of_units_scales_the_models(name: str) -> None:
    assert np.allclose(run(SPECS[name], plain(unit=3.0), Q), 3 * run(SPECS[name], plain(), Q), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in SPECS if name != "fednova-drawn"])
def test_renamed_clients_change_nothing(name: str) -> None:
    order, spec = [2, 4, 0, 1, 3], SPECS[name]
    renamed = spec | ({"local_steps": [UNEQUAL[n] for n in order]} if spec.get("local_steps") == UNEQUAL else {})
    assert np.allclose(run(renamed, plain(order=order), Q[:, order]), run(spec, plain(), Q), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["scaffold", "ef21"])
def test_only_who_takes_part_counts_where_weights_play_no_role(name: str) -> None:
    weights = Q * np.random.default_rng(2).uniform(0.1, 2, Q.shape)
    assert (run(SPECS[name], plain(), weights) == run(SPECS[name], plain(), Q)).all()


@pytest.mark.parametrize("name", SPECS)
def test_an_empty_round_changes_nothing_but_in_ef21(name: str) -> None:
    q = np.full((4, CLIENTS), 1 / CLIENTS)
    q[2] = 0
    path = run(SPECS[name], plain(), q, 4)[0]
    assert (path[3] == path[2]).all() == (name != "ef21")
    assert (path[4] != path[3]).any()


# --- specifications ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_a_specification_makes_the_same_algorithm_again(name: str) -> None:
    made = algorithm_from_spec(SPECS[name])
    again = algorithm_from_spec(made.spec())
    assert again == made and hash(again) == hash(made) and made.spec() == again.spec()
    assert SPECS[name].keys() <= made.spec().keys()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("scaffold", {"kind": "scafold"}, "did you mean scaffold"),
        ("scaffold", {"local_step": 1}, "unknown key of algorithm 'scaffold': 'local_step'; did you mean local_steps"),
        ("scaffold", {"local_steps": [1, 2]}, r"local_steps = \[1, 2\] must be an integer >= 1"),
        ("scaffold", {"server_multiplier": 0}, r"server_multiplier = 0 must be a number in \(0, inf\)"),
        ("fedprox", {"mu": 1.0}, "unknown key of algorithm 'fedprox': 'mu'"),
        ("fedprox", {"proximal_mu": -1.0}, "proximal_mu = -1 must be"),
        ("fedprox", {"proximal_mu": "1"}, "proximal_mu = '1' must be"),
        ("fednova", {"effective_local_steps": 0}, r"effective_local_steps = 0 must be a number in \(0, inf\)"),
        ("fednova", {"tau_eff": 2}, "unknown key of algorithm 'fednova': 'tau_eff'"),
        ("ef21", {"share": 1.5}, r"share = 1.5 must be in \(0, 1\]"),
        ("ef21", {"share": 0}, r"share = 0 must be a number in \(0, inf\)"),
        ("ef21", {"local_steps": 2}, "unknown key of algorithm 'ef21': 'local_steps'"),
    ],
)
def test_wrong_keys_and_numbers_are_refused_in_one_line(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FedboundsError, match=message) as caught:
        algorithm_from_spec(SPECS[name] | changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "lacking"), [("fedprox", "proximal_mu"), ("scaffold", "local_steps"), ("ef21", "share")]
)
def test_a_lacking_key_is_named(kind: str, lacking: str) -> None:
    spec = {key: value for key, value in SPECS[kind].items() if key != lacking}
    with pytest.raises(FedboundsError, match=f"algorithm '{kind}' needs {lacking}"):
        algorithm_from_spec(spec)


def test_every_run_of_a_sweep_has_a_key_of_its_own() -> None:
    """Each number of an algorithm is part of its key."""
    sweep = {
        "name": "baselines", "rounds": 5,
        "problem": {"kind": "quadratic", "clients": CLIENTS, "dimension": 3},
        "participation": {"kind": "full", "clients": CLIENTS},
        "algorithms": {**json.loads(json.dumps(SPECS)), "pulled": SPECS["fedprox"] | {"proximal_mu": 0.8},
                       "dense": SPECS["ef21"] | {"share": 0.9}},
    }  # fmt: skip
    keys = [each.key for each in plan(resolve(sweep))]
    assert len({*keys}) == len(SPECS) + 2
    assert keys == [each.key for each in plan(resolve(sweep))]


# --- what does not fit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_exact_moments_are_refused(name: str) -> None:
    with pytest.raises(FedboundsError, match="exact moments"):
        moments(algorithm_from_spec(SPECS[name]), plain(), WithoutReplacement(CLIENTS, 2), 4)


@pytest.mark.parametrize("name", ["fedprox", "scaffold", "ef21"])
def test_local_steps_that_are_not_plain_have_no_closed_form(name: str) -> None:
    assert simulate(algorithm_from_spec(SPECS[name]), plain(), Full(CLIENTS), 2).engine == "batched"
    with pytest.raises(FedboundsError, match=f"not for {name}, whose local steps are not plain SGD"):
        run(SPECS[name], plain(), Full(CLIENTS), engine="closed form")


@pytest.mark.parametrize("name", ["fednova-effective", "scaffold", "ef21"])
def test_running_statistics_are_refused_where_the_model_is_no_mean(name: str) -> None:
    kind = SPECS[name]["kind"]
    with pytest.raises(FedboundsError, match=f"batch normalization .*: {kind} does not; use an algorithm"):
        run(SPECS[name], images("cnn4-bn-small"), Full(3), 1)


@pytest.mark.parametrize("steps", [2, (1, 2, 2)], ids=["equal", "unequal"])
def test_fedprox_does_not_pull_running_statistics(steps: Any) -> None:
    spec = SPECS["fedprox"] | {"local_steps": steps, "proximal_mu": 2.0}
    problem, process = images("cnn4-bn-small"), WithoutReplacement(3, 2)
    assert problem.statistics
    ours = run(spec, problem, process, 2)[0]
    assert np.abs(ours - reference(spec, problem, process, 0, 2)).max() < 1e-12


@pytest.mark.parametrize("name", ["scaffold", "ef21"])
def test_a_memory_that_does_not_fit_is_refused_before_it_is_made(name: str) -> None:
    algorithm = algorithm_from_spec(SPECS[name])
    with pytest.raises(FedboundsError, match=f"{name} keeps the .* of clients = {2**40} in dimension 4.*memory"):
        algorithm.init(torch.zeros(1, 4), 2**40)
