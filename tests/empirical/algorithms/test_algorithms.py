"""Generalized FedAvg and its baselines: golden trajectories, limits, symmetries and edge cases."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.problems import Quadratic, random_cosine_quadratic, random_quadratic, toy_example
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION, ROUNDS = 6, 4, 11
ENGINES = ["sequential", "batched", "closed form"]
ALL = [
    GeneralizedFedAvg(0.05, 3, server_multiplier=4.0, interval=4),
    FedAvg(0.05, 3),
    WaitMinibatch(0.05, 3, interval=4),
    WaitFull(0.05, 3, interval=4),
    WaitForAll(0.05, 3, interval=4),
    FrozenGradient(0.05, 3, interval=4),
]


def weights(rounds=ROUNDS, clients=CLIENTS, seed=0):
    """Random weights of random subsets, summing to one."""
    rng = np.random.default_rng(seed)
    q = rng.exponential(size=(rounds, clients)) * (rng.random((rounds, clients)) < 0.5)
    q[np.arange(rounds), rng.integers(clients, size=rounds)] += 0.1
    return q / q.sum(1, keepdims=True)


def models(algorithm, problem, q, **more):
    """x_0, ..., x_T of seed 0 as an array (T + 1, d)."""
    return simulate(algorithm, problem, q, len(q), record_models=True, **more).model[0]


def quadratic(noise=0.0):
    return random_quadratic(CLIENTS, DIMENSION, noise=noise, seed=1)


# --- golden numbers: Wang & Ji 2022, Appendix B.1, and exact recursions on quadratics -----------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_the_amplified_toy_example_follows_its_exact_trajectory(engine):
    """Appendix B.1 with gamma = 1/36, eta = 6: exact moments, printed to ten digits."""
    algorithm = GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3)
    trace = simulate(algorithm, toy_example(), np.tile(np.eye(3), (10, 1)), engine=engine, rounds=30)
    every_cycle = [
        3.0239322566, 0.8144873790, 0.2234952276, 0.0634906053, 0.0191960011, 0.0064453691,
        0.0025357273, 0.0012242331, 0.0007344452, 0.0005313798, 0.0004398725,
    ]  # fmt: skip
    assert np.abs(trace.gradient_norm_squared[0, ::3] - every_cycle).max() < 1e-10
    assert trace.gradient_norm_squared[0].argmin() == 25
    assert abs(trace.gradient_norm_squared[0].min() - 0.0002409267) < 1e-10


@pytest.mark.parametrize("engine", ENGINES)
def test_alternating_pairs_on_a_stretched_quadratic_follow_their_exact_trajectory(engine):
    """A = diag(1, 1/4), I = P = 2, gamma = 1/48, eta = 6, no noise: exact moments, printed to twelve digits."""
    problem = Quadratic([1.0, 0.25], [[2, 0], [-2, 4], [0, -4], [0, 0]], x0=[3, -2])
    q = np.tile([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], (4, 1))
    algorithm = GeneralizedFedAvg(1 / 48, 2, server_multiplier=6, interval=2)
    trace = simulate(algorithm, problem, q, 8, engine=engine)
    exact = [
        9.25, 8.512832077197, 2.582935035811, 2.381389383714, 0.782777806235,
        0.724506477057, 0.282241264196, 0.262830970480, 0.132121541779,
    ]  # fmt: skip
    assert np.abs(trace.gradient_norm_squared[0] - exact).max() < 1e-11


@pytest.mark.parametrize(
    ("gamma", "eta", "distance"),
    [
        (0.05, 1, 0.823889), (0.1, 1, 0.413391), (0.25, 1, 0.210230), (0.5, 1, 0.436473),
        (0.05, 2, 0.352052), (0.05, 5, 0.037480), (0.05, 10, 0.010636),
    ],
)  # fmt: skip
def test_the_toy_example_ends_at_its_distance_from_the_minimizer(gamma, eta, distance):
    """Appendix B.1, T = 15, P = 3: the settings of Figures B.1 (eta = 1) and B.2, by hand iteration."""
    algorithm = GeneralizedFedAvg(gamma, 1, server_multiplier=eta, interval=3)
    last = models(algorithm, toy_example(), np.tile(np.eye(3), (5, 1)))[-1]
    assert abs(np.linalg.norm(last - [0, 3**-0.5]) - distance) < 5e-7


def test_amplified_cycles_contract_by_their_exact_factor():
    """Appendix B.1: a cycle multiplies the distance to its fixed point by 1 - eta (1 - (1 - gamma)^3)."""
    q, corners, b = np.tile(np.eye(3), (5, 1)), np.array([[-1, 0], [1, 0], [0, 3**0.5]]), 0.95
    fixed = (b**2 * corners[0] + b * corners[1] + corners[2]) / (b**2 + b + 1)
    for eta, factor in ((1, 0.857375), (2, 0.71475), (5, 0.286875), (10, -0.42625)):
        away = models(GeneralizedFedAvg(0.05, 1, eta, 3), toy_example(), q)[::3] - fixed
        assert np.abs(away[1:] - factor * away[:-1]).max() < 1e-12


# --- special cases and limits -----------------------------------------------------------------------------


def test_without_amplification_the_interval_plays_no_role():
    plain = models(FedAvg(0.05, 3), quadratic(0.3), weights())
    for interval in (1, 3, 7, 100):
        assert (
            np.abs(models(GeneralizedFedAvg(0.05, 3, 1.0, interval), quadratic(0.3), weights()) - plain).max() < 1e-12
        )


def test_with_interval_one_it_is_fedavg_with_two_sided_learning_rates():
    problem, q, eta = quadratic(), weights(), 1.7
    x = problem.x0
    for row in q:
        step = torch.zeros_like(x)
        for n in range(CLIENTS):
            y = x
            for _ in range(3):
                y = y - 0.05 * problem.hessians @ (y - problem.centers[n])
            step += row[n] * (y - x)
        x = x + eta * step
    assert np.abs(models(GeneralizedFedAvg(0.05, 3, eta, 1), problem, q)[-1] - x.numpy()).max() < 1e-12


def test_the_rounds_after_the_last_complete_interval_stay_unamplified():
    """x_T = x_0 + eta * (sum of the intervals' displacements) + the tail's displacement."""
    q, eta, interval = weights(), 3.0, 4
    x = models(GeneralizedFedAvg(0.05, 3, eta, interval), quadratic(), q)
    tail = Quadratic(quadratic().hessians, quadratic().centers, x0=x[8])
    assert np.abs(models(FedAvg(0.05, 3), tail, q[8:])[1:] - x[9:]).max() < 1e-12
    never = models(GeneralizedFedAvg(0.05, 3, eta, ROUNDS + 1), quadratic(), q)
    assert np.abs(never - models(FedAvg(0.05, 3), quadratic(), q)).max() < 1e-12


def test_small_local_steps_approach_the_frozen_gradient_method_linearly():
    problem, q, kappa = quadratic(), weights(8), 0.2
    limit = models(FrozenGradient(kappa, 3, interval=4), problem, q)[-1]

    def error(gamma):
        return np.linalg.norm(models(GeneralizedFedAvg(gamma, 3, kappa / gamma, 4), problem, q)[-1] - limit)

    assert error(1e-4) < 1e-3 * np.linalg.norm(limit - problem.x0.numpy())
    assert abs(error(1e-4) / error(1e-5) - 10) < 0.1


def test_the_frozen_gradient_method_moves_only_at_the_ends_of_intervals():
    x = models(FrozenGradient(0.1, 2, interval=4), quadratic(), weights())
    moved = np.flatnonzero(np.abs(np.diff(x, axis=0)).max(1)) + 1
    assert moved.tolist() == [4, 8]


def test_waiting_for_all_clients_is_full_participation_with_fewer_rounds():
    problem, interval = quadratic(), 4
    full = models(FedAvg(0.05, 3), problem, np.full((2, CLIENTS), 1 / CLIENTS))
    for algorithm in (WaitMinibatch(0.05, 3, interval), WaitFull(0.05, 3, interval)):
        x = models(algorithm, problem, weights())
        assert np.abs(x[[0, 4, 8]] - full).max() < 1e-12
        assert (x[[1, 2, 3]] == x[0]).all()
        assert (x[[9, 10, 11]] == x[8]).all()


def test_wait_full_has_no_noise_and_wait_minibatch_has():
    quiet, noisy = quadratic(), quadratic(0.5)
    q = weights()
    assert (models(WaitFull(0.05, 3, 4), quiet, q) == models(WaitFull(0.05, 3, 4), noisy, q)).all()
    assert (models(WaitMinibatch(0.05, 3, 4), quiet, q)[-1] != models(WaitMinibatch(0.05, 3, 4), noisy, q)[-1]).all()


def test_wait_for_all_takes_one_gradient_step_once_all_clients_has_been_heard():
    problem = quadratic()
    q = np.zeros((8, CLIENTS))
    q[0, :3], q[3, 3:5], q[5, 5] = 1 / 3, 0.5, 1.0  # client 5 is missing when the first interval ends
    trace = simulate(WaitForAll(0.05, 3, interval=4), problem, q, 8, record_models=True)
    expected = problem.x0 - 0.05 * problem.objective_gradient(problem.x0)
    assert (trace.model[0, :8] == problem.x0.numpy()).all()
    assert np.abs(trace.model[0, 8] - expected.numpy()).max() < 1e-12
    assert trace.postponed_intervals.tolist() == [1]


def test_wait_for_all_is_gradient_descent_once_per_interval_if_all_clients_always_comes():
    """Every interval starts afresh: nothing that was gathered at an older model is used again."""
    problem, q = quadratic(), np.full((9, CLIENTS), 1 / CLIENTS)
    x, at = problem.x0, models(WaitForAll(0.3, 2, interval=3), problem, q)[::3]
    for k in range(4):
        assert np.abs(at[k] - x.numpy()).max() < 1e-12
        x = x - 0.3 * problem.objective_gradient(x)
    absent = np.kron([[1.0], [0.0], [1.0]], q[:3])  # nobody in the second interval
    met = models(WaitForAll(0.3, 2, interval=3), problem, absent)[::3]
    assert np.abs(met - at[[0, 1, 1, 2]]).max() < 1e-12


def test_wait_for_all_averages_each_client_over_its_own_samples():
    """With noise, a client heard twice counts no more than one heard once, and its noise is halved."""
    problem = Quadratic(np.ones(1), np.zeros((2, 1)), noise=1.0)
    q = np.array([[1.0, 0.0], [0.5, 0.5]])
    steps = simulate(WaitForAll(1.0, 1, interval=2), problem, q, 2, seeds=range(4000), record_models=True).model[
        :, -1, 0
    ]
    variance = (1 / 2 + 1) / 4
    assert abs(steps.var() - variance) < 5 * variance * (2 / 4000) ** 0.5


# --- symmetries -------------------------------------------------------------------------------------------


def rotation(seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((DIMENSION, DIMENSION)))[0]


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_relabeling_the_clients_changes_nothing(algorithm):
    p, order, q = (
        random_quadratic(CLIENTS, DIMENSION, shared=False, seed=2),
        np.random.default_rng(5).permutation(6),
        weights(),
    )
    same = Quadratic(p.hessians[order], p.centers[order], x0=p.x0)
    assert np.abs(models(algorithm, p, q) - models(algorithm, same, q[:, order])).max() < 1e-12


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_splitting_a_client_in_two_identical_halves_changes_nothing(algorithm):
    p, q = random_quadratic(CLIENTS, DIMENSION, shared=False, seed=2), weights()
    everyone = np.append(np.arange(CLIENTS), [*range(CLIENTS)])  # every client twice, so that 1/N stays a mean too
    twice = Quadratic(p.hessians[everyone], p.centers[everyone], x0=p.x0)
    halves = np.hstack([0.3 * q, 0.7 * q])
    assert np.abs(models(algorithm, p, q) - models(algorithm, twice, halves)).max() < 1e-12


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_a_rotation_and_a_translation_commute_with_the_algorithm(algorithm):
    p, q, turn = random_quadratic(CLIENTS, DIMENSION, shared=False, seed=2), weights(), rotation()
    shift, centers, x0 = np.arange(DIMENSION), p.centers.numpy(), p.x0.numpy()
    hessians = turn @ p.hessians.numpy() @ turn.T
    hessians = (hessians + hessians.transpose(0, 2, 1)) / 2
    turned = Quadratic(hessians, centers @ turn.T + shift, x0=x0 @ turn.T + shift)
    assert np.abs(models(algorithm, p, q) @ turn.T + shift - models(algorithm, turned, q)).max() < 1e-11


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_scaling_the_objective_up_and_the_step_size_down_changes_nothing(algorithm):
    p, q, a = random_quadratic(CLIENTS, DIMENSION, noise=0.2, seed=2), weights(), 7.0
    scaled = Quadratic(a * p.hessians, p.centers, noise=a * p.noise, x0=p.x0)
    spec = algorithm.spec()
    step = next(name for name in spec if name.endswith("step_size"))
    smaller = algorithm_from_spec(spec | {step: spec[step] / a})
    for engine in ENGINES:
        same = models(algorithm, p, q, engine=engine), models(smaller, scaled, q, engine=engine)
        assert np.abs(same[0] - same[1]).max() < 1e-12


# --- rounds and weights outside the theory ----------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_a_round_without_participants_adds_nothing_and_is_counted(algorithm, engine):
    """An empty round has no effect but its place in the interval: here the intervals end in rounds 4 and 8."""
    q = weights(8)
    q[[1, 3, 6]] = 0.0
    trace = simulate(algorithm, quadratic(), q, 8, record_models=True, engine=engine)
    assert trace.empty_rounds.tolist() == [3]
    x = trace.model[0]
    assert (x[2] == x[1]).all()
    assert (x[7] == x[6]).all()
    q[[1, 3, 6]] = 1 / CLIENTS  # had everybody been there, it would have made a difference
    crowded = simulate(algorithm, quadratic(), q, 8, record_models=True, engine=engine).model[0, -1]
    assert (crowded == x[-1]).all() == isinstance(algorithm, WaitMinibatch)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_when_nobody_ever_comes_the_model_stays_unless_the_method_ignores_who_comes(algorithm, engine):
    trace = simulate(
        algorithm, quadratic(0.1), np.zeros((8, CLIENTS)), 8, record_models=True, engine=engine, seeds=(1, 2)
    )
    stays = (trace.model == trace.model[:, :1]).all()
    assert stays == (not isinstance(algorithm, WaitMinibatch))
    assert trace.empty_rounds.tolist() == [8, 8]
    assert trace.participants.sum() == (0 if stays else 2 * 2 * CLIENTS)


def test_amplification_of_an_interval_that_ends_in_an_empty_round_still_happens():
    q = weights(4)
    q[3] = 0
    plain, amplified = (models(GeneralizedFedAvg(0.05, 3, eta, 4), quadratic(), q) for eta in (1.0, 3.0))
    assert np.abs((amplified[4] - amplified[0]) - 3 * (plain[4] - plain[0])).max() < 1e-12


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_that_do_not_sum_to_one_are_applied_as_given_and_counted(engine):
    q = weights(1)
    once = simulate(FedAvg(0.05, 3), quadratic(), q, record_models=True, engine=engine, rounds=1)
    twice = simulate(FedAvg(0.05, 3), quadratic(), 2 * q, record_models=True, engine=engine, rounds=1)
    assert np.abs(np.diff(twice.model[0], axis=0) - 2 * np.diff(once.model[0], axis=0)).max() < 1e-12
    assert (once.unnormalized_rounds.tolist(), twice.unnormalized_rounds.tolist()) == ([0], [1])
    assert twice.empty_rounds.tolist() == [0]


def test_nonconvex_clients_are_walked_by_the_pseudo_code_too():
    """One hand-made round on the rippled bowl: x - gamma (alpha x + kappa sin x + b_n), twice."""
    problem = random_cosine_quadratic(CLIENTS, DIMENSION, seed=3)
    x, b = problem.x0.numpy(), problem.slopes[2].numpy()
    for _ in range(2):
        x = x - 0.1 * (problem.curvature * x + problem.ripple * np.sin(x) + b)
    assert np.abs(models(FedAvg(0.1, 2), problem, np.eye(CLIENTS)[[2]])[-1] - x).max() < 1e-14


# --- specs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.kind)
def test_an_algorithm_comes_back_from_its_spec(algorithm):
    assert algorithm_from_spec(algorithm.spec()) == algorithm


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, "algorithm needs a kind: one of average-all, "),
        ([], r"algorithm = \[\] must be a table with a kind"),
        ({"kind": "fedavgg"}, "did you mean fedavg"),
        ({"kind": ["fedavg"]}, "unknown algorithm"),
        ({"kind": "fedavg", "local_step_size": 0.1}, "give either local_steps or local_epochs"),
        ({"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5, "n": 3}, "unknown key of .*'fedavg': 'n'"),
        ({"kind": "fedavg", "local_step_size": 0, "local_steps": 5}, "local_step_size = 0 "),
        ({"kind": "fedavg", "local_step_size": float("nan"), "local_steps": 5}, "local_step_size = nan"),
        ({"kind": "fedavg", "local_step_size": float("inf"), "local_steps": 5}, "local_step_size = inf"),
        ({"kind": "fedavg", "local_step_size": "0.1", "local_steps": 5}, "local_step_size = '0.1'"),
        ({"kind": "fedavg", "local_step_size": [1], "local_steps": 5}, r"local_step_size = \[1\]"),
        ({"kind": "fedavg", "local_step_size": np.ones(2), "local_steps": 5}, "local_step_size = array"),
        ({"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2.5}, "local_steps = 2.5"),
        ({"kind": "fedavg", "local_step_size": 0.1, "local_steps": True}, "local_steps = True"),
        ({"kind": "wait-full", "local_step_size": 0.1, "local_steps": 1, "interval": 0}, "interval = 0"),
        ({"kind": "generalized-fedavg", "local_step_size": 1, "local_steps": 1, "server_multiplier": -1}, "er = -1"),
        ({"kind": "frozen-gradient", "step_size": -0.1, "local_steps": 1}, "step_size = -0.1"),
    ],
)  # fmt: skip
def test_bad_specs_are_refused_in_one_line(spec, says):
    with pytest.raises(FedboundsError, match=says) as caught:
        algorithm_from_spec(spec)
    assert "\n" not in str(caught.value)


def test_whole_numbers_may_be_written_as_floats():
    assert algorithm_from_spec({"kind": "fedavg", "local_step_size": 1, "local_steps": 5.0}) == FedAvg(1.0, 5)


# --- wrong arguments in Python -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FedAvg(0.1, 5, momentun=0.9), "unknown argument of FedAvg 'momentun'; did you mean momentum"),
        (lambda: FedNormSGDA(0.1, 0.1, 0.1, 0.1, 2, optimiser=None), "did you mean optimizer"),
        (lambda: TDCD(0.1, stepss=3), "unknown argument of TDCD 'stepss'; did you mean local_steps"),
        (lambda: FedAvg(0.1, 5, 0.9), r"takes 2 arguments by position \(local_step_size, local_steps\), not 3"),
        (lambda: FedAvg(0.1, 5, local_steps=5), "FedAvg has local_steps twice"),
        (lambda: WaitFull(local_steps=5), "WaitFull needs local_step_size, interval"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FedboundsError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_algorithms_can_be_copied():
    algorithm = FedAvg(0.1, (1, 2), momentum=0.5)
    assert copy.deepcopy(algorithm) == algorithm == pickle.loads(pickle.dumps(algorithm))
