"""Exact moments of Fed-Norm-SGDA: against golden numbers of an independent recursion, against the enumeration of all
cohorts and of all signs of the noise, and against the closed form of its fixed points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.linalg import matrix_power

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import RandomWork, heavy_ball, proximal, variable_rates
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FSGDA, FedNormSGDA, LocalSGDA, SynchronousSGDA
from fedbounds.empirical.participation import Bernoulli, Full, WithoutReplacement
from fedbounds.empirical.problems import (
    BoundedMinimax,
    QuadraticMinimax,
    ScaledMinimax,
    random_quadratic,
    random_quadratic_minimax,
)
from fedbounds.empirical.simulation.moments import fixed_point, moments

STEPS = (0.05, 0.1, 0.002, 0.1)
ONE = ([[0.5]], [[1.0]], 1.0, [[1.0], [-0.5]], [[0.25], [-0.75]])
GOLDEN = QuadraticMinimax(*ONE, noise=[0.2, 0.1], x0=[1.0])
# An independent computation of the second moments in the variables (z, 1), checked against Monte Carlo, gave:
# mean over t < 50 of E|grad Phi|^2 and of the dual gap; of round 0 X, E|sum w h_x|^2, E|g_x|^2, E|g_y|^2; E z_50,
# and E z_50 z_50^T row by row.
CASES = {
    "all clients": (
        FedNormSGDA(*STEPS, (2, 5), weights=(0.5, 0.5), effective_local_steps=3.5),
        Full(2),
        [1.4664658696067745, 0.010624772157434572, 0.015804972779359137, 0.630240604665142, 0.636883494977642,
         0.4588298116962515, 0.6102544327687298, 0.3854282408861939, 0.3724227707441656, 0.23521694153663722,
         0.14889671805102203],
    ),
    "one of two": (
        FedNormSGDA(*STEPS, (2, 5), weights=(0.5, 0.5), effective_local_steps=3.5),
        WithoutReplacement(2, 1),
        [1.469285343735193, 0.033307456797921284, 0.015804972779359137, 0.630240604665142, 1.2059149562638776,
         0.684751740580003, 0.6102544327687298, 0.3854282408861939, 0.3746984914584065, 0.23415904499536093,
         0.18937207850970542],
    ),
    "momentum": (
        FedNormSGDA(*STEPS, (3, 2), weights=(0.3, 0.7), optimizer=heavy_ball(0.9), effective_local_steps=3.5),
        WithoutReplacement(2, 1),
        [0.6519772347555903, 0.0209971889815663, 0.025494841135268773, 0.2278354431028653, 0.46793010182652034,
         0.27321252300247384, 0.73986467361297, 0.2677515243071372, 0.5481884035017079, 0.19740855651125712,
         0.10284046635216511],
    ),
    "naive": (
        FedNormSGDA(*STEPS, (2, 5), normalized=False),
        WithoutReplacement(2, 2),
        [0.6110797232398382, 0.005570994727931764, 0.012236568256227329, 0.22329383455657162, 0.2284936107045308,
         0.22505499357653358, 0.752825383838672, 0.3066959687740576, 0.5667554222358299, 0.23089495170658042,
         0.09431853864033471],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_moments_are_those_of_an_independent_recursion(name):
    algorithm, participation, golden = CASES[name]
    run = moments(algorithm, GOLDEN, participation, 50)
    weights = run.weights[0]
    second = run.covariance[50] + np.outer(run.mean[50], run.mean[50])
    found = [
        run.envelope_gradient_norm_squared(weights)[:50].mean(), run.dual_gap(weights)[:50].mean(), run.drift[0],
        run.exact_direction[0, 0], *run.direction[0], *run.mean[50], second[0, 0], second[0, 1], second[1, 1],
    ]  # fmt: skip
    np.testing.assert_allclose(found, golden, rtol=1e-13)
    surrogate = GOLDEN.surrogate(weights)
    assert run.dual_gap(weights)[0] == pytest.approx(float(surrogate.dual_gap(GOLDEN.z0)), rel=1e-13)


def _coefficient(optimizer, j, k):
    """a^(j)(k), by the sum that defines it."""
    inner = sum(optimizer.contraction ** (k - 1 - i) * optimizer.momentum ** (i - j) for i in range(j, k))
    return optimizer.rate(j) * inner


def _round(algorithm, problem, z, cohort, signs):
    """One round by eq. (12) and Algorithm 1: the next state, g, sum over the cohort of h, and every client's drift."""
    n, hessian, p = problem.clients, problem.joint_hessian.numpy(), problem.weights.numpy()
    eta = np.array([-algorithm.local_step_size, algorithm.local_ascent_step_size])
    gamma = np.array([-algorithm.server_step_size, algorithm.server_ascent_step_size])
    taken = np.broadcast_to(algorithm.local_steps, n)
    weights = algorithm.effective_weights(taken, p)
    masses = algorithm.masses(taken)
    mean_mass = float((p if algorithm.weights is None else np.array(algorithm.weights)) @ masses)
    tau_eff = algorithm.effective_local_steps or mean_mass
    normalized = {}
    for i in range(n):
        optimizer, steps = algorithm.optimizer_of(i), int(taken[i])
        exact, noisy, drift = [], [], 0.0
        for k in range(steps):
            iterate = z + eta * sum((_coefficient(optimizer, j, k) * noisy[j] for j in range(k)), start=np.zeros(2))
            exact.append(float(problem.scales[i]) * hessian @ iterate + problem.slopes[i].numpy())
            noisy.append(exact[k] + problem.noise_root.numpy() @ next(signs))
            drift += _coefficient(optimizer, k, steps) * ((iterate - z) ** 2).sum()
        a = [_coefficient(optimizer, k, steps) for k in range(steps)]
        normalized[i] = [np.tensordot(a, values, 1) / sum(a) for values in (noisy, exact)] + [drift / sum(a)]
    g = sum(n * weights[i] / len(cohort) * normalized[i][0] for i in cohort)
    h = sum(weights[i] * normalized[i][1] for i in range(n))
    drift = problem.smoothness() ** 2 * sum(weights[i] * normalized[i][2] for i in range(n))
    return z + gamma * tau_eff * g, g, h, drift


def _enumerated(algorithm, problem, participants, rounds):
    """All paths of all cohorts and of noise with coordinates +1 or -1: equally likely, with the same covariance."""
    n = problem.clients
    cohorts = list(itertools.combinations(range(n), participants))
    many = 2 * int(np.broadcast_to(algorithm.local_steps, n).sum()) if bool(problem.noise_root.any()) else 0
    paths, measured = [problem.z0.numpy()], []
    for _ in range(rounds):
        branches = [
            _round(algorithm, problem, z, cohort, iter([*np.reshape(bits, (-1, 2))] or itertools.repeat(np.zeros(2))))
            for z in paths
            for cohort in cohorts
            for bits in itertools.product([-1.0, 1.0], repeat=many)
        ]
        paths = [branch[0] for branch in branches]
        g, h, drift = (np.array([branch[j] for branch in branches]) for j in (1, 2, 3))
        measured.append([*(g**2).mean(0), *(h**2).mean(0), drift.mean()])
    return np.array(paths), np.array(measured)


SKEW = np.array([[0.4, 0.0], [0.3, 0.2]])
TWO = QuadraticMinimax(*ONE, noise=SKEW, x0=[1.0], y0=[0.5], weights=[0.3, 0.7])
THREE = ScaledMinimax([0.5, 1.0, 2.0], [[0.5]], [[1.0]], 1.0, [1.0], [-0.5], weights=[0.2, 0.3, 0.5], x0=[1.0])
RATES = (variable_rates([1.0, 0.5]), heavy_ball(0.5))
ENUMERATED = {
    "one of two": (FedNormSGDA(0.2, 0.3, 0.1, 0.2, 1), TWO, 1, 2),
    "all": (FedNormSGDA(0.2, 0.3, 0.1, 0.2, (2, 1), weights=(0.6, 0.4), optimizer=RATES), TWO, 2, 2),
    "naive": (FedNormSGDA(0.2, 0.3, 0.1, 0.2, (2, 2), optimizer=RATES, normalized=False), TWO, 1, 1),
    "proximal": (FedNormSGDA(0.2, 0.3, 0.1, 0.2, (1, 3), optimizer=proximal(0.5)), TWO, 1, 1),
    "scaled, two of three": (FedNormSGDA(0.2, 0.3, 0.1, 0.2, (1, 2, 3)), THREE, 2, 4),
}


@pytest.mark.parametrize("name", ENUMERATED)
def test_moments_are_those_of_all_cohorts_and_all_signs_of_the_noise(name):
    algorithm, problem, P, rounds = ENUMERATED[name]
    run = moments(algorithm, problem, WithoutReplacement(problem.clients, P), rounds)
    paths, measured = _enumerated(algorithm, problem, P, rounds)
    np.testing.assert_allclose(run.mean[-1], paths.mean(0), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(run.covariance[-1], np.cov(paths.T, bias=True), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.direction, measured[:, :2], rtol=1e-11)
    np.testing.assert_allclose(run.exact_direction, measured[:, 2:4], rtol=1e-11)
    np.testing.assert_allclose(run.drift, measured[:, 4], rtol=1e-11)


def test_the_expected_stationarity_is_the_mean_over_all_paths():
    algorithm, problem, P, rounds = ENUMERATED["scaled, two of three"]
    run = moments(algorithm, problem, WithoutReplacement(problem.clients, P), rounds)
    paths = problem.z0.new_tensor(_enumerated(algorithm, problem, P, rounds)[0])
    other = np.array([0.6, 0.3, 0.1])
    for weights, of in ((None, problem), (other, problem.surrogate(other))):
        slopes = of.envelope_gradient(problem.split(paths)[0]).square().sum(-1).mean()
        assert run.envelope_gradient_norm_squared(weights)[-1] == pytest.approx(float(slopes), rel=1e-11)
        assert run.dual_gap(weights)[-1] == pytest.approx(float(of.dual_gap(paths).mean()), rel=1e-11)


def test_without_noise_and_with_everyone_the_moments_are_one_run():
    problem = random_quadratic_minimax(4, 3, 2, seed=2)
    algorithm = FedNormSGDA(0.05, 0.1, 0.02, 0.1, ((1, 2, 3, 4), (4, 3, 2, 1), (2, 2, 2, 2)))
    run = moments(algorithm, problem, Full(4), 3)
    assert not run.covariance.any()
    assert run.weights.shape == (3, 4)
    hessian, z = problem.joint_hessian.numpy(), problem.z0.numpy()
    local, server = (np.array([-x] * 3 + [y] * 2) for x, y in ((0.05, 0.1), (0.02, 0.1)))
    for t, steps in enumerate(((1, 2, 3, 4), (4, 3, 2, 1), (2, 2, 2, 2))):
        total = np.zeros(5)
        for i, tau in enumerate(steps):
            iterate, moved = z, np.zeros(5)
            for _ in range(tau):
                gradient = hessian @ iterate + problem.slopes[i].numpy()
                iterate, moved = iterate + local * gradient, moved + gradient
            total += moved / tau / 4
        z = z + np.mean(steps) * server * total
        np.testing.assert_allclose(run.mean[t + 1], z, rtol=1e-12)


@pytest.mark.parametrize("normalized", [True, False])
def test_the_fixed_point_solves_the_equation_of_matrix_powers_and_attracts_the_mean(normalized):
    problem = random_quadratic_minimax(3, 2, 3, seed=5)
    steps = (1, 3, 6)
    algorithm = FedNormSGDA(0.1, 0.2, 0.05, 0.2, steps, normalized=normalized)
    found, hessian = fixed_point(algorithm, problem), problem.joint_hessian.numpy()
    moves = np.diag([-0.1] * 2 + [0.2] * 3)
    weights = np.array([1 / 3] * 3) if normalized else np.array([0.1, 0.3, 0.6])
    left = sum(
        w / tau * np.linalg.inv(moves) @ (matrix_power(np.eye(5) + moves @ hessian, tau) - np.eye(5))
        @ (found + np.linalg.solve(hessian, slope))
        for w, tau, slope in zip(weights, steps, problem.slopes.numpy(), strict=True)
    )  # fmt: skip
    np.testing.assert_allclose(left, 0, atol=1e-13)
    run = moments(algorithm, problem, WithoutReplacement(3, 2), 3000)
    np.testing.assert_allclose(run.mean[-1], found, atol=1e-9)


def test_only_normalized_averaging_tends_to_the_stationary_point_as_local_steps_go_to_zero():
    problem = random_quadratic_minimax(3, 2, 2, seed=7)

    def slope(local, normalized, of):
        algorithm = FedNormSGDA(local, local, 0.1, 0.1, (1, 2, 9), normalized=normalized)
        x = problem.z0.new_tensor(fixed_point(algorithm, problem)[:2])
        return float(of.envelope_gradient(x).norm())

    naive = problem.surrogate(np.array([1, 2, 9]) / 12)
    for normalized, of in ((True, problem), (False, naive)):
        assert slope(0.0, normalized, of) < 1e-12
        assert slope(1e-4, normalized, of) / slope(1e-5, normalized, of) == pytest.approx(10, rel=0.01)
    predicted = (np.full(3, 1 / 3) - np.array([1, 2, 9]) / 12) @ (
        problem.split(problem.slopes)[0] + problem.split(problem.slopes)[1] @ problem.coupling.T / problem.concavity
    ).numpy()
    assert slope(0.0, False, problem) == pytest.approx(np.linalg.norm(predicted), rel=1e-10)


@pytest.mark.parametrize(("algorithm", "problem", "message"), [
    (FedNormSGDA(*STEPS, 1), QuadraticMinimax(*ONE, ripple=0.5), "without ripple; it has ripple = 0.5"),
    (FedNormSGDA(*STEPS, 1), QuadraticMinimax(*ONE, growth=0.5), "additive noise; it grows .*: 0.5"),
    (FedNormSGDA(*STEPS, 1, snapshot_period=2), TWO, "without snapshots; snapshot_period = 2"),
    (FedNormSGDA(*STEPS, 1), BoundedMinimax([[0]], [[0]], 1, 1, 1), "quadratic minimax problem, not BoundedMinimax"),
    (FedNormSGDA(*STEPS, {"low": 1, "high": 2}), TWO, "exact moments need local_steps that are given; these are drawn"),
    (LocalSGDA(0.1, 0.1, 2), random_quadratic(2, 2), "local-sgda is for minimax problems"),
])  # fmt: skip
def test_what_does_not_close_is_refused_in_one_line(algorithm, problem, message):
    everyone = Full(problem.clients)
    for ask in (lambda: moments(algorithm, problem, everyone, 2), lambda: fixed_point(algorithm, problem)):
        with pytest.raises(FedboundsError, match=message) as refused:
            ask()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("participation", "more", "message"), [
    (Bernoulli(2, 0.5), {}, "drawn without replacement, or with full participation: .* of bernoulli"),
    (np.full((2, 2), 0.5), {}, "drawn without replacement, or with full participation: .* of recorded"),
    (Full(3), {}, "participation is of 3 clients, the problem has 2"),
    (Full(2), {"noise": "common"}, "noise = 'common' is not for minimax algorithms"),
    (Full(2), {"rounds": 0}, "rounds = 0 must be an integer >= 1"),
])  # fmt: skip
def test_participation_whose_moments_are_not_known_is_refused_with_the_reason(participation, more, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        moments(FedNormSGDA(*STEPS, 1), TWO, participation, **{"rounds": 2, **more})
    assert "\n" not in str(refused.value)


def test_a_player_that_ascends_is_not_taken_for_a_minimizer():
    with pytest.raises(FedboundsError, match="fedavg would descend in both blocks of a minimax problem"):
        moments(FedAvg(0.1, 2), TWO, Full(2), 2)


def test_the_moments_of_the_baselines_are_those_of_the_rule_that_they_are():
    for algorithm in (LocalSGDA(0.1, 0.2, (2, 3), momentum=0.5), SynchronousSGDA(0.1, 0.2), FSGDA(*STEPS, 3)):
        ours, rule = (moments(one, TWO, WithoutReplacement(2, 1), 5) for one in (algorithm, algorithm.rule(2)))
        assert np.array_equal(ours.covariance, rule.covariance) and ours.covariance[1].any()
        assert ours.algorithm is algorithm and ours.rounds == 5


def test_a_fixed_point_needs_the_same_steps_in_every_round_and_a_regular_step():
    with pytest.raises(FedboundsError, match="local_steps change from round to round"):
        fixed_point(FedNormSGDA(*STEPS, ((1, 2), (2, 1))), TWO)
    with pytest.raises(FedboundsError, match="these are drawn"):
        fixed_point(FedNormSGDA(*STEPS, RandomWork(1, 2)), TWO)
    flat = QuadraticMinimax([[-1.0]], [[1.0]], 1.0, [[0.0]], [[0.0]])
    with pytest.raises(FedboundsError, match="no single fixed point"):
        fixed_point(FedNormSGDA(*STEPS, 1), flat)


def test_a_run_that_diverges_ends_beyond_floating_point_without_a_warning():
    run = moments(FedNormSGDA(10.0, 10.0, 10.0, 10.0, 20), TWO, Full(2), 100)
    assert not np.isfinite(run.mean[-1]).any()
    assert np.isfinite(run.mean[1]).all()
