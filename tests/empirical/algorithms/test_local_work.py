"""Unequal local steps, momentum, step-size schedules and server optimizers: engines, recursions and invariants."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.algorithms import FedAdam, FedAvg, FedAvgM, GeneralizedFedAvg, algorithm_from_spec, run_reference
from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.step_sizes import STEP_SIZE_SCHEDULES
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import cut_partition
from fedbounds.empirical.participation import Bernoulli, PeriodicGroups, WithoutReplacement
from fedbounds.empirical.problems import (
    ImageClassification,
    Problem,
    Quadratic,
    random_cosine_quadratic,
    random_quadratic,
)
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, ROUNDS = 5, 8
STEPS = (3, 1, 4, 2, 2)
SCHEDULES: list[dict[str, Any]] = [
    {"kind": "inverse", "delay": 3},
    {"kind": "inverse-sqrt"},
    {"kind": "step", "every": 3, "factor": 0.5},
    {"kind": "cosine", "rounds": ROUNDS},
]
WORK: dict[str, dict[str, Any]] = {
    "unequal": {"local_steps": STEPS},
    "each round": {"local_steps": np.random.default_rng(0).integers(1, 5, (ROUNDS, CLIENTS))},
    "drawn": {"local_steps": {"low": 1, "high": 4}},
    "momentum": {"local_steps": 3, "momentum": 0.8},
    "all": {"local_steps": STEPS, "momentum": 0.5, "step_size_schedule": SCHEDULES[0]},
} | {table["kind"]: {"local_steps": 3, "step_size_schedule": table} for table in SCHEDULES}
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "generalized-fedavg": {"server_multiplier": 3.0, "interval": 3},
    "fedavgm": {"server_momentum": 0.7, "server_multiplier": 1.5},
    "fedadam": {"server_step_size": 0.05, "tau": 0.01},
}


def build(kind: str, **numbers: Any):
    return algorithm_from_spec({"kind": kind, "local_step_size": 0.05} | METHODS[kind] | numbers)


@cache
def noisy() -> Problem:
    return random_cosine_quadratic(CLIENTS, 3, noise=0.3, seed=1)


@cache
def images(network: str = "linear") -> ImageClassification:
    digits = load_dataset("digits")
    small = replace(digits, train_images=digits.train_images[:60], train_labels=digits.train_labels[:60])
    partition = cut_partition(small.train_labels, [10, 20, 30], np.arange(60))
    return ImageClassification(small, partition, network, batch=8, dtype=torch.float64)


def reference(algorithm, problem, process, seed, rounds=ROUNDS) -> np.ndarray:
    streams = Streams(seed)
    return run_reference(
        algorithm, problem, process.matrix(rounds, streams.generator("participation")), streams
    ).numpy()


def models(algorithm, problem, process, seeds=(0,), engine="auto", rounds=ROUNDS) -> np.ndarray:
    return simulate(algorithm, problem, process, rounds, seeds=seeds, engine=engine, record_models=True).model


def by_hand(algorithm, problem: Quadratic, q: np.ndarray, server) -> np.ndarray:
    """A run without noise, in NumPy: `server(x, delta)` is the next model."""
    A, c, x = problem.hessians.numpy(), problem.centers.numpy(), problem.initial_point(np.random.default_rng()).numpy()
    path = [x]
    for row in q:
        delta = np.zeros_like(x)
        for n in np.flatnonzero(row):
            y = x
            for _ in range(algorithm.local_steps):
                y = y - algorithm.local_step_size * A @ (y - c[n])
            delta = delta + row[n] * (y - x)
        x = server(x, delta)
        path.append(x)
    return np.stack(path)


# --- against the slow references -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "masked batch"])
@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("work", WORK)
def test_engines_agree_with_the_slow_references(work: str, kind: str, engine: str) -> None:
    """With noise, cohorts of different sizes, and rounds without participants."""
    algorithm, process = build(kind, **WORK[work]), Bernoulli(CLIENTS, 0.4)
    ours = models(algorithm, noisy(), process, (0, 5), engine)
    for row, seed in enumerate((0, 5)):
        assert np.abs(ours[row] - reference(algorithm, noisy(), process, seed)).max() < 1e-12


@pytest.mark.parametrize("engine", ["sequential", "batched"])
@pytest.mark.parametrize("kind", ["fedavgm", "fedadam"])
def test_server_optimizers_of_local_sgd_run_on_the_engines_of_fedavg(kind: str, engine: str) -> None:
    algorithm, process = build(kind, local_steps=3), Bernoulli(CLIENTS, 0.4)
    assert (
        np.abs(models(algorithm, noisy(), process, (5,), engine)[0] - reference(algorithm, noisy(), process, 5)).max()
        < 1e-12
    )


def test_epochs_are_steps_through_the_samples_of_each_client() -> None:
    problem, process = images(), WithoutReplacement(3, 2)
    assert problem.steps_per_epoch is not None and problem.steps_per_epoch.tolist() == [2, 3, 4]
    epochs = FedAvg(0.05, local_epochs=2, momentum=0.5)
    steps = FedAvg(0.05, tuple((2 * problem.steps_per_epoch).tolist()), momentum=0.5)
    ours = models(epochs, problem, process, rounds=2)
    assert (ours == models(steps, problem, process, rounds=2)).all()
    assert np.abs(ours[0] - reference(epochs, problem, process, 0, rounds=2)).max() < 1e-12


def test_running_statistics_have_no_momentum_and_steps_of_length_one() -> None:
    problem, process = images("cnn4-bn-small"), WithoutReplacement(3, 2)
    assert problem.statistics
    algorithm = FedAvg(0.05, (1, 2, 2), momentum=0.9)
    ours = models(algorithm, problem, process, rounds=2)[0]
    assert np.abs(ours - reference(algorithm, problem, process, 0, rounds=2)).max() < 1e-12


def test_a_client_that_is_drawn_twice_makes_two_updates_of_its_own_length() -> None:
    process = PeriodicGroups(6, 2, slot=2, groups=3, repeats="independent")
    problem, algorithm = random_cosine_quadratic(6, 3, noise=0.3, seed=1), FedAvg(0.05, (*STEPS, 1))
    each = [models(algorithm, problem, process, (0, 1), engine) for engine in ("sequential", "masked batch")]
    assert np.abs(each[0] - each[1]).max() < 1e-12
    constant = FedAvg(0.05, 3, step_size_schedule={"kind": "step", "every": 1, "factor": 1.0})
    plain = models(FedAvg(0.05, 3), problem, process, (0, 1), "batched")
    assert np.abs(models(constant, problem, process, (0, 1)) - plain).max() < 1e-12


def test_epochs_over_equal_data_are_local_sgd() -> None:
    problem, epochs = images(), FedAvg(0.05, local_epochs=2)
    departure = epochs.bind_problem(problem).departure
    assert departure is not None and departure.field == "local_steps"
    partition = cut_partition(problem.dataset.train_labels, [20] * 3, np.arange(60))
    equal = ImageClassification(problem.dataset, partition, "linear", batch=8)  # three steps in an epoch
    bound = epochs.bind_problem(equal)
    assert bound.departure is None and bound.local == FedAvg(0.05, 6).local


# --- plain settings ------------------------------------------------------------------------------------------


def test_a_plain_setting_has_the_specification_and_the_engine_of_before() -> None:
    plain = FedAvg(0.1, 5, momentum=0, step_size_schedule=None)
    assert plain.spec() == {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5}
    amplified = {"kind": "generalized-fedavg", "local_step_size": 0.1, "local_steps": 5, "server_multiplier": 2.0}
    assert algorithm_from_spec(amplified).spec() == amplified | {"interval": 1}
    trace = simulate(FedAvg(0.1, (5,) * 3), random_quadratic(3, 2), WithoutReplacement(3, 2), 4)
    assert trace.engine == "closed form"


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.parametrize("kind", METHODS)
def test_a_specification_makes_the_same_algorithm_again(kind: str, work: dict[str, Any]) -> None:
    made = build(kind, **work)
    again = algorithm_from_spec(made.spec())
    assert again == made and hash(again) == hash(made) and repr(again) == repr(made)
    assert eval(repr(made), {type(made).__name__: type(made)}) == made


@pytest.mark.parametrize("work", [name for name in WORK if name != "momentum"])
def test_unequal_or_decaying_steps_need_engines_that_take_them(work: str) -> None:
    with pytest.raises(FedboundsError, match="use 'sequential', 'masked batch' or 'auto'"):
        models(build("fedavg", **WORK[work]), noisy(), WithoutReplacement(CLIENTS, 2), engine="batched")


def test_exact_moments_of_other_steps_are_refused_with_the_reason() -> None:
    quadratic = random_quadratic(CLIENTS, 2)
    for work, why in (("momentum", "momentum = 0.8"), ("unequal", "differ between clients"), ("cosine", "cosine")):
        with pytest.raises(FedboundsError, match=f"exact moments .*{why}"):
            moments(build("fedavg", **WORK[work]), quadratic, WithoutReplacement(CLIENTS, 2), 4)
    equal, plain = (moments(FedAvg(0.1, tau), quadratic, WithoutReplacement(CLIENTS, 2), 4) for tau in ((3,) * 5, 3))
    assert (equal.gradient_norm_squared == plain.gradient_norm_squared).all()


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"local_steps": 2, "momentum": 1.0}, r"momentum = 1 must be a number in \[0, 1\)"),
        ({"local_steps": 2, "local_epochs": 1}, "give either local_steps or local_epochs"),
        ({"local_steps": [2, 0]}, r"local_steps\[1\] = 0 must be an integer >= 1"),
        ({"local_steps": 2, "step_size_schedule": {"kind": "cosin", "rounds": 3}}, "did you mean cosine"),
        ({"local_steps": 2, "step_size_schedule": {"kind": "step", "every": 2, "factor": 2}}, "factor = 2 must be"),
        ({"local_steps": 2, "step_size_schedule": "cosine"}, "must be a table with a kind"),
    ],
)
def test_wrong_numbers_are_refused_in_one_line(numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(FedboundsError, match=message) as caught:
        FedAvg(0.1, **numbers)
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_a_problem_is_refused() -> None:
    process = WithoutReplacement(CLIENTS, 2)
    for algorithm, message in (
        (FedAvg(0.1, (1, 2)), "local_steps are of 2 clients, the problem has 5"),
        (FedAvg(0.1, (2, 2)), "local_steps are of 2 clients, the problem has 5"),
        (FedAvg(0.1, local_epochs=1), "local_epochs need clients who hold samples"),
        (FedAvg(0.1, 2, step_size_schedule={"kind": "cosine", "rounds": 3}), "rounds = 3, but fedavg runs for 8"),
    ):
        with pytest.raises(FedboundsError, match=message):
            simulate(algorithm, noisy(), process, ROUNDS)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (lambda: FedAvgM(0.1, 2, server_momentum=1.0), r"server_momentum = 1 must be a number in \[0, 1\)"),
        (lambda: FedAdam(0.1, 2, beta2=-0.1), r"beta2 = -0.1 must be a number in \[0, 1\)"),
        (lambda: FedAdam(0.1, 2, tau=0), r"tau = 0 must be a number in \(0, inf\)"),
    ],
)
def test_wrong_numbers_of_the_server_are_refused(algorithm, message: str) -> None:
    with pytest.raises(FedboundsError, match=message):
        algorithm()


# --- recursions by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        ({"kind": "inverse", "delay": 4}, [1, 0.8, 2 / 3]),
        ({"kind": "inverse-sqrt"}, [1, 0.5**0.5, (1 / 3) ** 0.5]),
        ({"kind": "step", "every": 2, "factor": 0.1}, [1, 1, 0.1]),
        ({"kind": "cosine", "rounds": 3}, [1, 0.75, 0.25]),
    ],
)
def test_schedules_multiply_the_step_size(schedule: dict[str, Any], values: list[float]) -> None:
    """On f(x) = x^2/2 from 1, one local step multiplies x by 1 - c_t gamma."""
    factors = [STEP_SIZE_SCHEDULES.build(schedule).multiple(t) for t in range(3)]
    assert np.allclose(factors, values, rtol=1e-14)
    one = Quadratic([1.0], [[0.0]], x0=[1.0])
    path = models(FedAvg(0.5, 1, step_size_schedule=schedule), one, np.ones((3, 1)), rounds=3)[0, :, 0]
    assert np.allclose(path[1:] / path[:-1], 1 - 0.5 * np.array(values), rtol=1e-14)


def test_local_momentum_is_the_heavy_ball() -> None:
    """On f(x) = x^2/2 from 1 with gamma = rho = 1/2: d = 1, 1/2 + 1/2, 1/2 + 0 and x = 1/2, 0, -1/4; d begins anew."""
    one = Quadratic([1.0], [[0.0]], x0=[1.0])
    path = models(FedAvg(0.5, 3, momentum=0.5), one, np.ones((2, 1)), rounds=2)[0, :, 0]
    assert path.tolist() == [1.0, -0.25, 0.0625]


def test_server_momentum_and_adam_follow_their_recursions() -> None:
    problem, q = (
        random_quadratic(CLIENTS, 3, seed=2),
        np.random.default_rng(1).dirichlet(np.ones(CLIENTS), 6),
    )
    memory: dict[str, Any] = {"v": 0.0, "m": 0.0, "s": 0.01**2}

    def momentum(x: np.ndarray, delta: np.ndarray) -> np.ndarray:
        memory["v"] = 0.7 * memory["v"] + delta
        return x + 1.5 * memory["v"]

    def adam(x: np.ndarray, delta: np.ndarray) -> np.ndarray:
        memory["m"] = 0.9 * memory["m"] + 0.1 * delta
        memory["s"] = 0.99 * memory["s"] + 0.01 * delta**2
        return x + 0.05 * memory["m"] / (memory["s"] ** 0.5 + 0.01)

    for kind, server in (("fedavgm", momentum), ("fedadam", adam)):
        algorithm = build(kind, local_steps=3)
        path = models(algorithm, problem, q, rounds=6)[0]
        assert np.abs(path - by_hand(algorithm, problem, q, server)).max() < 1e-12


def test_fedavgm_without_momentum_is_fedavg_with_a_server_multiplier() -> None:
    process = Bernoulli(CLIENTS, 0.4)
    still, amplified = FedAvgM(0.05, STEPS, 0.0, 2.0), GeneralizedFedAvg(0.05, STEPS, 2.0, 1)
    assert np.abs(models(still, noisy(), process) - models(amplified, noisy(), process)).max() < 1e-14


def test_the_first_step_of_adam_is_that_of_its_formula() -> None:
    """x_1 - x_0 = eta (1 - beta1) D / (sqrt(beta2 tau^2 + (1 - beta2) D^2) + tau); near eta sign(D) without memory."""
    q = np.full((1, CLIENTS), 1 / CLIENTS)
    path = models(FedAvg(0.05, 2), noisy(), q, rounds=1)[0]
    delta = path[1] - path[0]
    for beta1, beta2, tau in ((0.9, 0.99, 1e-3), (0.0, 0.0, 1e-9)):
        moved = np.diff(models(FedAdam(0.05, 2, 0.1, beta1, beta2, tau), noisy(), q, rounds=1)[0], axis=0)[0]
        expected = 0.1 * (1 - beta1) * delta / (np.sqrt(beta2 * tau**2 + (1 - beta2) * delta**2) + tau)
        assert np.allclose(moved, expected, rtol=1e-12)
    assert np.allclose(moved, 0.1 * np.sign(delta), rtol=1e-4)


def test_adam_without_memory_and_with_a_large_tau_is_fedavg_with_a_server_multiplier() -> None:
    """x + eta D / (|D| + tau) with eta = 3/2 tau tends to x + 3/2 D."""
    process, tau = Bernoulli(CLIENTS, 0.4), 1e9
    adam, amplified = FedAdam(0.05, 2, 1.5 * tau, 0.0, 0.0, tau), GeneralizedFedAvg(0.05, 2, 1.5, 1)
    assert np.abs(models(adam, noisy(), process) - models(amplified, noisy(), process)).max() < 1e-8


def test_adam_stays_where_fedavg_does_and_remembers_nothing_there() -> None:
    """Equal clients at their minimizer: all updates and the first moment are zero."""
    alike = Quadratic([1.0, 3.0], [[1.0, -2.0]] * 3, x0=[1.0, -2.0])
    assert (models(FedAdam(0.1, 3), alike, WithoutReplacement(3, 2)) == [1.0, -2.0]).all()


@pytest.mark.parametrize("kind", ["fedavgm", "fedadam"])
def test_a_round_without_participants_changes_nothing_at_the_server(kind: str) -> None:
    problem, algorithm = random_quadratic(CLIENTS, 3), build(kind, local_steps=2)
    q = np.full((4, CLIENTS), 1 / CLIENTS)
    with_gap = np.insert(q, 2, 0.0, axis=0)
    path, gapped = models(algorithm, problem, q, rounds=4)[0], models(algorithm, problem, with_gap, rounds=5)[0]
    assert (gapped[3] == gapped[2]).all() and (np.delete(gapped, 3, axis=0) == path).all()
    assert algorithm.skips_empty_rounds
    assert not build(kind, local_steps=2, step_size_schedule={"kind": "inverse"}).skips_empty_rounds


# --- invariants ----------------------------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], Quadratic, np.ndarray]:
    """An algorithm's table, a quadratic, and weights of random subsets; some rounds are empty."""
    clients, rounds, seed = draw(st.integers(2, 4)), draw(st.integers(1, 6)), draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from([*METHODS]))
    table: dict[str, Any] = {"kind": kind, "local_step_size": draw(st.sampled_from([0.01, 0.3]))} | METHODS[kind]
    table["local_steps"] = rng.integers(1, 5, clients).tolist()
    table["momentum"] = draw(st.sampled_from([0.0, 0.6]))
    table["step_size_schedule"] = draw(st.sampled_from([None, *SCHEDULES]))
    q = rng.random((rounds, clients)) * (rng.random((rounds, clients)) < 0.7)
    return table, random_quadratic(clients, 2, seed=seed, shared=False), q


def path(table: dict[str, Any], problem: Problem, q: np.ndarray) -> np.ndarray:
    return models(algorithm_from_spec(table), problem, q, rounds=len(q))[0]


INVARIANT = settings(max_examples=20, deadline=None, derandomize=True)


@INVARIANT
@given(cases())
def test_renamed_clients_change_nothing(case) -> None:
    table, problem, q = case
    order = np.roll(np.arange(q.shape[1]), 1)
    renamed = Quadratic(problem.hessians.numpy()[order], problem.centers.numpy()[order], x0=start_of(problem))
    tau = [table["local_steps"][n] for n in order]
    assert np.allclose(path(table | {"local_steps": tau}, renamed, q[:, order]), path(table, problem, q), atol=1e-12)


@INVARIANT
@given(cases())
def test_steeper_functions_undo_a_shorter_step(case) -> None:
    """Only gamma times the gradients matters, whatever the schedule, the momentum and the server are."""
    table, problem, q = case
    steeper = Quadratic(4 * problem.hessians.numpy(), problem.centers.numpy(), x0=start_of(problem))
    shorter = table | {"local_step_size": table["local_step_size"] / 4}
    assert np.allclose(path(shorter, steeper, q), path(table, problem, q), rtol=1e-11, atol=1e-11)


@INVARIANT
@given(cases(), st.sampled_from([0.5, 8.0]))
def test_a_change_of_units_scales_the_models(case, a: float) -> None:
    """x in other units: gamma is unchanged as F is scaled too; eta and tau of Adam have the units of x."""
    table, problem, q = case
    scaled = Quadratic(problem.hessians.numpy(), a * problem.centers.numpy(), x0=a * start_of(problem))
    if table["kind"] == "fedadam":
        table = table | {name: a * table[name] for name in ("server_step_size", "tau")}
    assert np.allclose(path(table, scaled, q), a * path(case[0], problem, q), rtol=1e-11, atol=1e-11)


@INVARIANT
@given(cases(), st.integers(1, 4))
def test_equal_local_steps_are_one_number(case, tau: int) -> None:
    table, problem, q = case
    several = [tau] * q.shape[1]
    assert (path(table | {"local_steps": several}, problem, q) == path(table | {"local_steps": tau}, problem, q)).all()


@INVARIANT
@given(cases())
def test_a_step_size_that_never_falls_and_no_momentum_are_local_sgd(case) -> None:
    table, problem, q = case
    plain = table | {"local_steps": 3, "momentum": 0.0, "step_size_schedule": None}
    constant = plain | {"step_size_schedule": {"kind": "step", "every": 1, "factor": 1.0}}
    assert np.allclose(path(constant, problem, q), path(plain, problem, q), rtol=1e-12, atol=1e-12)


def start_of(problem: Problem) -> np.ndarray:
    return problem.initial_point(np.random.default_rng()).numpy()
