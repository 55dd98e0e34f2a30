"""Fed-Norm-SGDA: the masked batch against pseudo-code, special cases, sampling, exact numbers, errata, bad input."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import SGDA, RandomWork, heavy_ball, proximal, variable_rates
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fed_norm_sgda import pseudocode as pseudo_code
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FSGDA, FedNormSGDA, LocalSGDA, SynchronousSGDA
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import BoundedMinimax, QuadraticMinimax, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, ROUNDS, SEEDS = 4, 6, (0, 5)
EXACT = 1e-12
RATES = (0.05, 0.08, 0.03, 0.06)  # eta_x, eta_y, gamma_x, gamma_y
TAU = (3, 1, 5, 2)
W = (0.1, 0.4, 0.3, 0.2)
EACH_ROUND = tuple(tuple(int(k) for k in row) for row in np.random.default_rng(2).integers(1, 6, (ROUNDS, CLIENTS)))
EVERY_KIND = (SGDA, heavy_ball(0.7), variable_rates([1, 0.5, 2, 0.25, 1.5]), proximal(0.8))
BY_OPTIMIZER = pytest.mark.parametrize(
    "optimizer", [*EVERY_KIND, EVERY_KIND], ids=["plain", "heavy", "rates", "prox", "each"]
)


def quadratic(noise=(0.3, 0.2), growth=0.4, **more):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(3, 3))
    numbers = dict(
        descent_hessian=(a + a.T) / 4,
        coupling=rng.normal(size=(3, 2)) / 2,
        concavity=0.8,
        slopes=rng.normal(size=(CLIENTS, 3)),
        ascent_slopes=rng.normal(size=(CLIENTS, 2)),
        x0=[1.0, -1.0, 0.5],
        y0=[0.3, 0.7],
    )
    return QuadraticMinimax(**{**numbers, "noise": noise, "growth": growth, **more})


def bounded():
    rng = np.random.default_rng(3)
    slopes = rng.normal(size=(CLIENTS, 2))
    weights = np.array([0.3, 0.3, 0.2, 0.2])
    slopes -= weights @ slopes
    return BoundedMinimax(slopes, rng.normal(size=(CLIENTS, 2)) / 9, 0.3, 0.5, 0.8, weights=weights, noise=0.1)


def sampled(participants, clients=CLIENTS):
    return Full(clients) if participants in (None, clients) else WithoutReplacement(clients, participants)


def run(algorithm, problem, rounds=ROUNDS, participants=None, **more):
    return simulate(algorithm, problem, sampled(participants, problem.clients), rounds, **more)


def models(algorithm, problem, rounds=ROUNDS, seeds=SEEDS, **more):
    return run(algorithm, problem, rounds, seeds=seeds, record_models=True, **more).model


def drawn(participants, seed, rounds=ROUNDS):
    """The weights q of a seed."""
    return sampled(participants).matrix(rounds, Streams(seed).generator("participation"))


def twin(algorithm, problem, participants, seed):
    return run_reference(algorithm, problem, drawn(participants, seed), Streams(seed))


def uniform(cohorts, clients=CLIENTS):
    """The weights q of given cohorts, 1/P each."""
    q = np.zeros((len(cohorts), clients))
    for row, cohort in zip(q, cohorts, strict=True):
        row[list(cohort)] = 1 / len(cohort)
    return q


def slow(problem, q, tau, w, optimizer=SGDA, seed=0, tau_eff=3.0, rates=RATES, **more):
    """`fed_norm_sgda` of the pseudo-code with constant tau_i, w_i and tau_eff."""
    a = [pseudo_code.any_optimizer(optimizer.momentum, optimizer.rates, optimizer.contraction)] * problem.clients
    steps = dict(zip(("eta_x", "eta_y", "gamma_x", "gamma_y"), rates, strict=True))
    z = pseudo_code.fed_norm_sgda(
        problem, q, problem.z0, Streams(seed), tau=[tau] * len(q), a=a, w=[w] * len(q), tau_eff=[tau_eff] * len(q),
        **steps, **more,
    )  # fmt: skip
    return torch.stack(z).numpy()


def gap(one, other):
    return np.abs(np.asarray(one) - np.asarray(other)).max()


# --- number by number -------------------------------------------------------------------------------------------------


@BY_OPTIMIZER
@pytest.mark.parametrize("period", [None, 3])
@pytest.mark.parametrize("participants, tau", [(4, TAU), (3, EACH_ROUND), (1, 2)], ids=["all", "three", "one"])
def test_the_masked_batch_is_the_pseudo_code(optimizer, period, participants, tau):
    problem = quadratic()
    for more in ({"weights": W, "effective_local_steps": 2.5}, {}, {"weights": W, "normalized": False}):
        algorithm = FedNormSGDA(*RATES, tau, optimizer=optimizer, snapshot_period=period, **more)
        for engine in ("masked batch", "sequential"):
            ours = models(algorithm, problem, participants=participants, engine=engine)
            for row, seed in enumerate(SEEDS):
                assert gap(ours[row], twin(algorithm, problem, participants, seed)) < EXACT


def test_the_masked_batch_is_the_pseudo_code_where_y_is_only_concave_and_the_weights_are_the_problems_own():
    problem = bounded()
    algorithm = FedNormSGDA(*RATES, TAU, optimizer=heavy_ball(0.5), snapshot_period=2)
    ours = models(algorithm, problem, participants=2)
    assert gap(ours[1], twin(algorithm, problem, 2, 5)) < EXACT
    told = dataclasses.replace(algorithm, weights=tuple(problem.weights.tolist()))
    assert np.array_equal(models(told, problem, participants=2), ours)


@pytest.mark.parametrize("participants", [2, 4])
@pytest.mark.parametrize(
    "algorithm",
    [
        LocalSGDA(0.05, 0.08, TAU, weights=W),
        LocalSGDA(0.05, 0.08, EACH_ROUND, momentum=0.9, snapshot_period=2),
        LocalSGDA(0.05, 0.08, RandomWork(1, 4)),
        SynchronousSGDA(0.05, 0.08, weights=W),
        FSGDA(*RATES, 3),
    ],
    ids=["local", "local+ momentum", "local drawn", "synchronous", "fsgda"],
)
def test_every_baseline_is_its_own_pseudo_code(algorithm, participants):
    problem = quadratic()
    ours = models(algorithm, problem, participants=participants)
    for row, seed in enumerate(SEEDS):
        assert gap(ours[row], twin(algorithm, problem, participants, seed)) < EXACT


def test_small_batches_of_pairs_give_the_same_run(monkeypatch):
    algorithm = FedNormSGDA(*RATES, TAU, optimizer=EVERY_KIND, snapshot_period=2)
    whole = models(algorithm, quadratic(), seeds=range(3))
    monkeypatch.setattr("fedbounds.empirical.simulation.engines.masked_batch.AT_ONCE", 2 * quadratic().dimension)
    assert gap(models(algorithm, quadratic(), seeds=range(3)), whole) < EXACT


def test_a_seed_does_not_depend_on_the_seeds_beside_it_nor_a_record_on_its_neighbors():
    for tau in (TAU, RandomWork(1, 5)):
        algorithm = FedNormSGDA(*RATES, tau, weights=W)
        alone = models(algorithm, quadratic(), participants=2, seeds=(3,))[0]
        assert gap(models(algorithm, quadratic(), participants=2, seeds=(8, 3, 5))[1], alone) < EXACT
        some = models(algorithm, quadratic(), participants=2, seeds=(3,), record_every=4)[0]
        assert np.array_equal(some, alone[[0, 4, 6]])


def test_a_participation_held_fixed_is_shared_by_the_seeds():
    algorithm = FedNormSGDA(*RATES, TAU)
    quiet = quadratic(noise=0.0, growth=0.0)
    first, second = models(algorithm, quiet, participants=1, streams={"participation": 7})
    assert np.array_equal(first, second)
    first, second = models(algorithm, quiet, participants=1)
    assert gap(first, second) > 1e-3


# --- special cases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("period", [None, 2])
@pytest.mark.parametrize("participants", [2, 4])
def test_averaging_iterates_is_the_general_rule_with_weights_that_grow_with_the_local_work(rho, period, participants):
    problem, q = quadratic(), drawn(participants, 5)
    algorithm = LocalSGDA(0.05, 0.08, TAU, weights=W, momentum=rho, snapshot_period=period)
    literal = pseudo_code.local_sgda(
        problem, q, problem.z0, Streams(5), tau=[TAU] * ROUNDS, p=W, eta_x=0.05, eta_y=0.08, rho=rho, S=period
    )
    assert gap(models(algorithm, problem, participants=participants)[1], torch.stack(literal)) < EXACT
    norms = np.array([sum((1 - rho ** (tau - j)) / (1 - rho) for j in range(tau)) for tau in TAU])
    mean = np.dot(W, norms)
    general = slow(
        problem, q, TAU, W * norms / mean, heavy_ball(rho), 5, mean, rates=(0.05, 0.08, 0.05, 0.08), S=period
    )
    assert gap(general, torch.stack(literal)) < EXACT
    effective = algorithm.rule(CLIENTS).effective_weights(np.array(TAU), np.full(4, 0.25))
    assert gap(effective, W * norms / mean) < EXACT


def test_server_steps_beside_the_clients_only_stretch_the_mean_move():
    problem = quadratic()
    algorithm = FedNormSGDA(0.05, 0.08, 0.1, 0.16, TAU, weights=W, normalized=False)
    literal = pseudo_code.local_sgda(
        problem, drawn(4, 0), problem.z0, Streams(0), tau=[TAU] * ROUNDS, p=W, eta_x=0.05, eta_y=0.08, server=2.0
    )
    assert gap(models(algorithm, problem)[0], torch.stack(literal)) < EXACT


@pytest.mark.parametrize("optimizer", EVERY_KIND)
def test_clients_who_do_equal_work_need_no_normalization(optimizer):
    naive = FedNormSGDA(*RATES, 3, weights=W, optimizer=optimizer, normalized=False)
    assert gap(models(naive, quadratic()), models(dataclasses.replace(naive, normalized=True), quadratic())) < EXACT


def test_local_sgda_with_equal_steps_is_fed_norm_sgda_with_the_clients_rates_at_the_server():
    for more in ({}, {"weights": W}, {"snapshot_period": 2}):
        local = LocalSGDA(0.05, 0.08, 3, **more)
        normalized = FedNormSGDA(0.05, 0.08, 0.05, 0.08, 3, **more)
        assert gap(*(models(one, quadratic(), participants=2) for one in (local, normalized))) < EXACT


def test_unequal_work_makes_naive_averaging_another_algorithm():
    naive = FedNormSGDA(*RATES, TAU, weights=W, normalized=False)
    assert gap(models(naive, quadratic()), models(dataclasses.replace(naive, normalized=True), quadratic())) > 1e-3


def test_a_fresh_snapshot_changes_nothing_for_one_local_step_and_something_for_two():
    for tau, same in ((1, True), (2, False)):
        plain = FedNormSGDA(*RATES, tau)
        fresh = dataclasses.replace(plain, snapshot_period=1)
        difference = gap(*(models(one, quadratic(), participants=2) for one in (plain, fresh)))
        assert (difference < EXACT) == same


def test_momentum_zero_is_plain_descent_and_ascent():
    assert heavy_ball(0.0) == SGDA
    problem = quadratic()
    forms = pseudo_code.sgda, pseudo_code.momentum(0.0), pseudo_code.proximal(1.0), pseudo_code.variable_rates([1] * 5)
    runs = []
    for a in forms:
        steps = dict(eta_x=0.05, eta_y=0.08, gamma_x=0.03, gamma_y=0.06)
        lists = dict(tau=[TAU] * 2, a=[a] * CLIENTS, w=[W] * 2, tau_eff=[3.0] * 2)
        z = pseudo_code.fed_norm_sgda(problem, drawn(4, 0, 2), problem.z0, Streams(0), **lists, **steps)
        runs.append(torch.stack(z))
    assert max(gap(run, runs[0]) for run in runs) < EXACT


def test_one_local_step_is_synchronous_descent_and_ascent_whatever_the_clients_rates():
    problem = quadratic()
    literal = pseudo_code.synchronous_sgda(
        problem, drawn(3, 5), problem.z0, Streams(5), w=W, gamma_x=0.03, gamma_y=0.06
    )
    for algorithm in (
        SynchronousSGDA(0.03, 0.06, weights=W),
        FedNormSGDA(*RATES, 1, weights=W, optimizer=heavy_ball(0.9)),
        FedNormSGDA(*RATES, 1, weights=W, effective_local_steps=1, snapshot_period=1),
        FedNormSGDA(*RATES, {"low": 1, "high": 1}, weights=W),
    ):
        assert gap(models(algorithm, problem, participants=3)[1], torch.stack(literal)) < EXACT


def test_fsgda_steps_along_the_mean_of_the_participants_sums():
    problem = quadratic(noise=0.0, growth=0.0)
    C = np.flatnonzero(drawn(2, 0, 1)[0]).tolist()
    x, y = problem.split(problem.z0)
    total = torch.zeros(problem.dimension, dtype=torch.float64)
    for i in C:
        x_i, y_i = x, y
        for _ in range(3):
            gradient = problem.gradient(problem.join(x_i, y_i)[None, None], torch.tensor([[i]]))[0, 0]
            G_x, G_y = problem.split(gradient)
            total += gradient / 2
            x_i, y_i = x_i - 0.05 * G_x, y_i + 0.08 * G_y
    expected = problem.join(x - 0.03 * total[:3], y + 0.06 * total[3:])
    assert gap(models(FSGDA(*RATES, 3), problem, 1, participants=2)[0, 1], expected) < EXACT


def test_one_client_alone_is_local_descent_and_ascent():
    one = QuadraticMinimax([[0.5]], [[1.0]], 1.0, [[1.0]], [[0.25]], x0=[1.0])
    z = models(FedNormSGDA(0.1, 0.2, 0.1, 0.2, 3), one, 2)[0]
    x, y = 1.0, 0.0
    for _ in range(6):
        x, y = x - 0.1 * (0.5 * x + y + 1.0), y + 0.2 * (x - y + 0.25)
    assert gap(z[2], [x, y]) < EXACT


def test_without_y_the_descent_is_normalized_averaging_of_minimization():
    """FedNova, written out: the mean of the normalized local changes, times the mean number of local steps."""
    quiet = quadratic(noise=0.0, growth=0.0, coupling=np.zeros((3, 2)))
    ours = models(FedNormSGDA(0.05, 0.08, 0.05, 0.06, TAU, weights=W), quiet)[0, :, :3]
    A, c = quiet.descent_hessian.numpy(), quiet.slopes.numpy()[:, :3]
    x = ours[0]
    for t in range(ROUNDS):
        change = np.zeros(3)
        for i in range(CLIENTS):
            local = x
            for _ in range(TAU[i]):
                local = local - 0.05 * (A @ local + c[i])
            change = change + W[i] * (local - x) / TAU[i]
        x = x + np.dot(W, TAU) * change
        assert gap(ours[t + 1], x) < EXACT


@pytest.mark.parametrize("optimizer", EVERY_KIND)
def test_swapping_the_players_swaps_the_run(optimizer):
    rng = np.random.default_rng(4)
    B, c, d = rng.normal(size=(2, 2)), rng.normal(size=(CLIENTS, 2)), rng.normal(size=(CLIENTS, 2))
    one = QuadraticMinimax(0.7 * np.eye(2), B, 0.4, c, d, x0=[1, 2], y0=[3, 4])
    other = QuadraticMinimax(0.4 * np.eye(2), -B.T, 0.7, -d, -c, x0=[3, 4], y0=[1, 2])  # (x, f) <-> (y, -f)
    forth = models(FedNormSGDA(0.05, 0.08, 0.03, 0.06, TAU, optimizer=optimizer), one, participants=2)
    back = models(FedNormSGDA(0.08, 0.05, 0.06, 0.03, TAU, optimizer=optimizer), other, participants=2)
    assert gap(forth, back[..., [2, 3, 0, 1]]) < EXACT


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_only_the_product_of_effective_steps_and_server_steps_matters(scale):
    algorithm = FedNormSGDA(*RATES, TAU, weights=W, effective_local_steps=2.0)
    other = FedNormSGDA(*RATES[:2], 0.03 / scale, 0.06 / scale, TAU, weights=W, effective_local_steps=2.0 * scale)
    assert gap(*(models(one, quadratic(), participants=3) for one in (algorithm, other))) < EXACT


def test_larger_coefficients_with_smaller_client_steps_change_nothing():
    plain = FedNormSGDA(*RATES, TAU, effective_local_steps=3.0)
    scaled = FedNormSGDA(0.01, 0.016, *RATES[2:], TAU, optimizer=variable_rates([5] * 5), effective_local_steps=3.0)
    assert gap(models(plain, quadratic()), models(scaled, quadratic())) < EXACT


def test_a_problem_without_constraints_is_never_projected():
    class Strict(QuadraticMinimax):
        def project(self, y):
            raise AssertionError

    class Idle(QuadraticMinimax):
        constrained = True

    algorithm = FedNormSGDA(*RATES, TAU, optimizer=EVERY_KIND, snapshot_period=2)
    free = quadratic()
    for made, within in ((Strict, 0), (Idle, EXACT)):
        other = made.__new__(made)
        other.__dict__.update(free.__dict__)
        assert gap(models(algorithm, other), models(algorithm, free)) <= within


# --- sampling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("P", [1, 2, 3, 4])
def test_the_sampled_direction_is_unbiased_and_has_the_variance_of_sampling_without_replacement(P):
    """E|sum_C w~ h|^2 = c |sum w h|^2 + (n/P) d sum w^2 |h|^2, with c = n(P-1)/(P(n-1)), d = (n-P)/(n-1)."""
    problem, n = quadratic(noise=0.0, growth=0.0), CLIENTS
    unit = (0.05, 0.08, 1.0, 1.0)

    def direction(C, w):
        return np.diff(slow(problem, uniform([C]), TAU, w, heavy_ball(0.5), tau_eff=1.0, rates=unit), axis=0)[0]

    single = np.array([direction([i], np.eye(n)[i] / n) for i in range(n)])
    drawn = np.array([direction(list(C), W) for C in combinations(range(n), P)])
    mean, c, d = W @ single, n * (P - 1) / (P * (n - 1)), (n - P) / (n - 1)
    assert gap(drawn.mean(0), mean) < EXACT
    spread = (np.square(W) * (single**2).sum(1)).sum()
    assert (drawn**2).sum(1).mean() == pytest.approx(c * (mean**2).sum() + n / P * d * spread, rel=1e-12)


def test_the_weights_of_the_drawn_sum_to_one_on_average_and_always_only_if_they_are_equal_or_all_take_part():
    sums = [CLIENTS / 2 * sum(W[i] for i in C) for C in combinations(range(CLIENTS), 2)]
    assert np.mean(sums) == pytest.approx(1, rel=1e-14)
    for algorithm, participants, outside in (
        (FedNormSGDA(*RATES, TAU, weights=W), 2, True),
        (FedNormSGDA(*RATES, TAU), 2, False),
        (FedNormSGDA(*RATES, RandomWork(1, 5)), 2, False),
        (FedNormSGDA(*RATES, TAU, weights=W), 4, False),
        (FedNormSGDA(*RATES, TAU, normalized=False), 2, True),
        (LocalSGDA(0.1, 0.1, RandomWork(1, 5)), 2, True),
        (LocalSGDA(0.1, 0.1, RandomWork(1, 5)), 4, False),
    ):
        trace = run(algorithm, quadratic(), participants=participants)
        assert bool(trace.unnormalized_rounds[0]) == outside
        assert trace.participants.tolist() == [[0] + [participants] * ROUNDS]


# --- exact numbers ----------------------------------------------------------------------------------------------------

# Means and second moments at T = 50 of f_i = x^2/4 + x y - y^2/2 + c_i x + d_i y, from a linear recursion of the
# moments in which nothing is sampled (an implementation that shares no code with this one).
GOLDEN = [
    ((2, 5), 2, (0.5, 0.5), SGDA, (0.6102544327687298, 0.3854282408861939), None),
    ((2, 5), 1, (0.5, 0.5), SGDA, (0.6102544327687298, 0.3854282408861939), (0.3746984914584065, 0.18937207850970542)),
    ((3, 2), 1, (0.3, 0.7), heavy_ball(0.9), (0.73986467361297, 0.2677515243071372), (0.5481884035017, 0.102840466352)),
    ((2, 5), 2, (2 / 7, 5 / 7), SGDA, (0.752825383838672, 0.3066959687740576), None),
]


def golden(noise):
    slopes = dict(slopes=[[1.0], [-0.5]], ascent_slopes=[[0.25], [-0.75]])
    return QuadraticMinimax([[0.5]], [[1.0]], 1.0, **slopes, noise=noise, x0=[1.0])


@pytest.mark.parametrize("tau, P, w, optimizer, mean, second", GOLDEN)
def test_means_and_second_moments_are_those_of_the_exact_recursion(tau, P, w, optimizer, mean, second):
    algorithm = FedNormSGDA(0.05, 0.1, 0.002, 0.1, tau, weights=w, optimizer=optimizer, effective_local_steps=3.5)
    assert gap(models(algorithm, golden(0.0), 50)[0, -1], mean) < 1e-12  # affine: the mean is the run without noise
    if second is not None:
        last = models(algorithm, golden((0.2, 0.1)), 50, participants=P, seeds=range(400), record_every=50)[:, -1]
        for values, exact in ((last, mean), (last**2, second)):
            error = np.std(values, axis=0) / np.sqrt(len(values))
            assert (np.abs(values.mean(0) - exact) < 4.5 * error).all()


def test_naive_averaging_is_the_last_golden_case():
    naive = FedNormSGDA(0.05, 0.1, 0.002, 0.1, (2, 5), normalized=False)
    assert gap(models(naive, golden(0.0), 50)[0, -1], GOLDEN[-1][4]) < 1e-12


@pytest.mark.parametrize("normalized", [True, False])
def test_without_noise_the_run_ends_where_the_fixed_point_equation_says(normalized):
    """sum_i w_i/tau_i D^-1 [(I + D H)^tau_i - I] (z - z_i) = 0, if D = diag(-eta_x, eta_y), grad f_i = H (z - z_i)."""
    problem, tau = golden(0.0), np.array([2, 5])
    w = np.array([0.5, 0.5]) if normalized else tau / tau.sum()
    H, eta = problem.joint_hessian.numpy(), 0.02
    D = np.diag([-eta, eta])
    maps = [
        weight / steps * np.linalg.inv(D) @ (np.linalg.matrix_power(np.eye(2) + D @ H, steps) - np.eye(2))
        for weight, steps in zip(w, tau, strict=True)
    ]
    centers = [-np.linalg.solve(H, slope) for slope in problem.slopes.numpy()]
    fixed = np.linalg.solve(sum(maps), sum(m @ z for m, z in zip(maps, centers, strict=True)))
    algorithm = FedNormSGDA(eta, eta, 0.2, 0.2, tau, normalized=normalized)
    assert gap(models(algorithm, problem, 400, record_every=400)[0, -1], fixed) < 1e-9
    own, surrogate = (one.envelope_gradient(torch.tensor(fixed[:1])).norm() for one in (problem, problem.surrogate(w)))
    assert surrogate < 0.06  # O(eta)
    assert normalized == bool(own < 0.06)


# --- Algorithm 1 as printed -------------------------------------------------------------------------------------------


def test_the_printed_local_steps_take_the_second_gradient_of_momentum_elsewhere():
    """f' = x^2 from x = 1 with eta = 0.1, rho = 0.9, by hand: 1.9 + 0.9^4 = 2.5561, and 1.9 + 0.9^2 = 2.71."""
    one, nothing = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    client = lambda: lambda x, y: (x**2, nothing)  # noqa: E731
    a = pseudo_code.momentum(0.9)
    for steps, total in ((pseudo_code.printed_local_steps, 1.9 + 0.81**2), (pseudo_code.local_map, 2.71)):
        g_x, _ = steps(quadratic(), client, one, nothing, None, 2, a, 0.1, 0.1)
        assert 2.9 * g_x.item() == pytest.approx(total, rel=1e-14)


@pytest.mark.parametrize("optimizer, same", list(zip(EVERY_KIND, [True, False, True, False], strict=True)))
def test_the_printed_algorithm_can_express_plain_steps_and_variable_rates_only(optimizer, same):
    runs = [slow(quadratic(), drawn(4, 0), TAU, W, optimizer, S=2, printed=printed) for printed in (True, False)]
    assert (gap(*runs) < EXACT) == same


def test_the_printed_algorithm_leaves_late_clients_with_an_old_snapshot_or_none():
    late = uniform(
        [[0, 1], [0, 1], [0, 2], [2, 1]]
    )  # in round 3, client 1 has the snapshot of round 0, not that of round 2
    printed, repaired = (slow(quadratic(), late, TAU, W, S=2, printed=printed) for printed in (True, False))
    assert gap(printed[:4], repaired[:4]) < EXACT < 1e-6 < gap(printed[4], repaired[4])
    with pytest.raises(FedboundsError, match=r"client 2 has no snapshot in round 1: .* rounds 0, 2, 4"):
        slow(quadratic(), uniform([[0, 1], [0, 2]]), TAU, W, S=2, printed=True)


# --- what is left behind ----------------------------------------------------------------------------------------------


def test_a_run_that_blows_up_is_marked():
    steep = quadratic(noise=1e160, growth=0.0)
    trace = run(FedNormSGDA(*RATES, TAU), steep, seeds=SEEDS)
    assert set(trace.statuses) == {"diverged"} and (trace.diverged_at == 1).all()
    assert np.isnan(trace.dual_gap[:, 2:]).all() and np.isfinite(trace.dual_gap[:, 0]).all()
    assert trace.participants.tolist() == [[0, CLIENTS] + [0] * (ROUNDS - 1)] * 2


class Lottery(QuadraticMinimax):
    """Some seeds start where squares overflow."""

    def initial_point(self, rng):
        return self.z0 * (1e160 if rng.random() < 0.5 else 1.0)


def test_seeds_that_blow_up_do_not_disturb_the_others():
    numbers = dict(descent_hessian=np.eye(2), coupling=np.eye(2), concavity=1.0, noise=0.3, x0=[1, 2])
    problem = Lottery(**numbers, slopes=np.eye(4)[:, :2], ascent_slopes=np.eye(4)[:, 2:])
    algorithm = FedNormSGDA(*RATES, RandomWork(1, 5), weights=W, snapshot_period=2)
    trace = run(algorithm, problem, participants=2, seeds=range(6), record_models=True)
    lost = trace.diverged_at == 0
    assert 0 < lost.sum() < 6 and [status == "diverged" for status in trace.statuses] == lost.tolist()
    for seed in np.flatnonzero(~lost):
        assert gap(trace.model[seed], models(algorithm, problem, participants=2, seeds=(int(seed),))[0]) < EXACT
    assert np.isnan(trace.model[lost, 1:]).all()


def test_a_trace_survives_its_file(tmp_path):
    algorithm = FedNormSGDA(*RATES, TAU, optimizer=EVERY_KIND, weights=W, snapshot_period=3)
    trace = run(algorithm, quadratic())
    again = type(trace).load(trace.save(tmp_path / "run.npz"))
    assert np.array_equal(again.dual_gap, trace.dual_gap)
    assert again.spec["algorithm"]["optimizer"][1] == {"momentum": 0.7, "rates": None, "contraction": 1.0}


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: FedNormSGDA(*RATES, 0), "local_steps = 0 must be an integer >= 1"),
        (lambda: FedNormSGDA(*RATES, (2, 0)), r"local_steps\[1\] = 0 must be an integer >= 1"),
        (lambda: FedNormSGDA(*RATES, ((2, 3), (2, 0))), r"local_steps\[1, 1\] = 0 must be an integer >= 1"),
        (lambda: FedNormSGDA(*RATES, ((2, 3), (2,))), r"local_steps\[1\] = \(2,\) must be as many integers"),
        (lambda: FedNormSGDA(*RATES, ()), "local_steps is empty"),
        (lambda: FedNormSGDA(*RATES, "3"), "local_steps = '3' must be an integer"),
        (lambda: FedNormSGDA(*RATES), "give either local_steps or local_epochs"),
        (lambda: FedNormSGDA(*RATES, 2, 2), "give either local_steps or local_epochs"),
        (lambda: FedNormSGDA(*RATES, {"low": 0, "high": 2}), "local_steps.low = 0 must be an integer >= 1"),
        (lambda: FedNormSGDA(*RATES, {"low": 3, "high": 2}), r"high = 2 must be an integer >= 3: at least low"),
        (lambda: FedNormSGDA(*RATES, {"low": 3}), "local_steps lacks high; give numbers, or a table like"),
        (lambda: FedNormSGDA(*RATES, {"low": 3, "hihg": 4}), "unknown key of local_steps 'hihg'; did you mean high"),
        (lambda: FedNormSGDA(*RATES, local_epochs=0), "local_epochs = 0 must be an integer >= 1"),
        (lambda: FedNormSGDA(*RATES, 2, optimizer={"rho": 1}), "unknown key of optimizer 'rho'"),
        (lambda: FedNormSGDA(*RATES, 2, optimizer=[{}, 3]), r"optimizer\[1\] = 3 must be a LocalOptimizer, or a table"),
        (lambda: LocalSGDA(0.1, 0, 2), r"ascent_step_size = 0 must be a number in \(0, inf\)"),
        (lambda: LocalSGDA(0.1, 0.1, 2, momentum=1), r"momentum = 1 must be a number in \[0, 1\)"),
        (lambda: SynchronousSGDA(0.1, 0.1, weights=(1, 1)), "weights sum to 2, they must sum to one"),
        (lambda: WithoutReplacement(4, 0), r"participants = 0 must be an integer in \[1, 4\]: at most all clients"),
        (lambda: WithoutReplacement(4, 5), r"participants = 5 must be an integer in \[1, 4\]: at most all clients"),
        (lambda: quadratic(concavity=0), r"concavity = 0 must be a number in \(0, inf\)"),
        (lambda: FedNormSGDA(*RATES, 2, snapshot_period=0), "snapshot_period = 0 must be an integer >= 1"),
        (lambda: FedNormSGDA(*RATES, 2, weights=(0.5, 0.6)), "weights sum to 1.1, they must sum to one"),
        (lambda: FedNormSGDA(*RATES, 2, weights=(1.5, -0.5)), r"weights\[1\] = -0.5 must be a number in \[0, inf\)"),
        (lambda: FedNormSGDA(*RATES, 2, weights=0.5), "weights = 0.5 must be a list of numbers"),
        (lambda: FedNormSGDA(-0.1, *RATES[1:], 2), r"local_step_size = -0.1 must be a number in \[0, inf\)"),
        (lambda: FedNormSGDA(0.1, 0.1, 0, 0.1, 2), r"server_step_size = 0 must be a number in \(0, inf\)"),
        (lambda: FedNormSGDA(*RATES, 2, effective_local_steps=0), "effective_local_steps = 0 must be a number in"),
        (lambda: FedNormSGDA(*RATES, 2, effective_local_steps=3, normalized=False), "cannot be chosen"),
        (lambda: FedNormSGDA(*RATES, 2, normalized="yes"), "normalized = 'yes' must be true or false"),
        (lambda: FedNormSGDA(*RATES, 2, optimizer="adam"), "optimizer = 'adam' must be a LocalOptimizer"),
        (lambda: heavy_ball(1), r"momentum = 1 must be a number in \[0, 1\)"),
        (lambda: proximal(0), r"contraction = 0 must be a number in \(0, 1\]"),
        (lambda: variable_rates([1, 0]), r"rates\[1\] = 0 must be a number in \(0, inf\)"),
        (lambda: variable_rates([]), r"rates = \(\) must be a list of numbers"),
        (lambda: FSGDA(*RATES, TAU), r"local_steps = \(3, 1, 5, 2\) must be an integer >= 1"),
    ],
)
def test_a_number_outside_its_domain_is_one_clear_line(make, message):
    with pytest.raises(FedboundsError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields, more, message",
    [
        ({}, dict(participation=Full(3)), "participation is of 3 clients, the problem has 4"),
        (dict(local_steps=None, local_epochs=2), {}, "local_epochs need clients who hold samples"),
        (
            {},
            dict(engine="batched"),
            "engine 'batched' is not for minimax algorithms; use 'sequential', 'masked batch'",
        ),
        ({}, dict(algorithm=FedAvg(0.1, 2)), "fedavg would descend in both blocks of a minimax problem"),
        ({}, dict(problem=random_quadratic(4, 2)), "fed-norm-sgda is for minimax problems, and this problem has no"),
        (dict(local_steps=(1, 2)), {}, "local_steps are of 2 clients, the problem has 4"),
        (dict(local_steps=((1, 2, 3, 4),)), {}, "local_steps are given for 1 rounds, 6 were asked for"),
        (dict(weights=(0.5, 0.5)), {}, "weights are of 2 clients, the problem has 4"),
        (dict(optimizer=(SGDA, SGDA)), {}, "optimizers are of 2 clients, the problem has 4"),
        (dict(snapshot_period=4), {}, "snapshot_period = 4 must divide rounds = 6"),
        (dict(optimizer=variable_rates([1, 2])), {}, "client 0 has 2 rates for local_steps = 3"),
        ({}, dict(rounds=0), "rounds = 0 must be an integer >= 1"),
        ({}, dict(seeds=[1, 1]), r"seeds = \[1, 1\] must be different, and at least one"),
        ({}, dict(seeds=3), "seeds = 3 must be a list of integers >= 0"),
        ({}, dict(problem=3), "problem = 3 must be a problem"),
        ({}, dict(algorithm=3), "algorithm = 3 must be an algorithm"),
    ],
)
def test_an_algorithm_that_does_not_fit_the_run_is_refused_before_it_starts(fields, more, message):
    algorithm = FedNormSGDA(*RATES, **{"local_steps": TAU, **fields})
    call = {"algorithm": algorithm, "problem": quadratic(), "participation": Full(4), "rounds": ROUNDS, **more}
    with pytest.raises(FedboundsError, match=message) as caught:
        simulate(**call)
    assert "\n" not in str(caught.value)
