"""Exact moments of FedAvg with aggregation weights, and the wrong objective that constant weights minimize."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    AverageAll,
    AverageParticipating,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)
from fedbounds.empirical.participation import Bernoulli, CyclicClients, Full, Markovian, WithoutReplacement
from fedbounds.empirical.problems import Quadratic, random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate

RATES = np.array([0.1, 0.4, 0.9])
COINS = Bernoulli(3, RATES, normalize=False)
WEIGHTS = np.array([3.0, 1.0, 0.5])
HESSIANS = {
    "shared": {"shared": True, "diagonal": False},
    "different": {"shared": False, "diagonal": False},
    "different diagonal": {"shared": False, "diagonal": True},
}
ALGORITHMS = {
    "average all": AverageAll(0.2, 3, 1.5),
    "fixed weights": FixedWeights(0.2, 3, WEIGHTS, 1.5),
    "known participation": KnownParticipation(0.2, 3, 1.5),
    "average participating": AverageParticipating(0.2, 3, 1.5),
}


def one_round(problem, algorithm, x, spread):
    """Mean and covariance after a round by the law of total variance over all 2^N outcomes, without noise in x."""
    I, gamma, eta, N, d = algorithm.local_steps, 0.2, 1.5, 3, problem.dimension
    mean, second = np.zeros(d), np.zeros((d, d))
    for present in itertools.product([False, True], repeat=N):
        chance = np.where(present, RATES, 1 - RATES).prod()
        weights = eta * algorithm.applied(np.array([present]))[0]
        turn, shift, noise = np.eye(d), np.zeros(d), np.zeros((d, d))
        for n in range(N):
            A, c = problem.hessian(n).numpy(), problem.centers[n].numpy()
            B = np.eye(d) - gamma * A
            change = np.linalg.matrix_power(B, I) - np.eye(d)
            turn, shift = turn + weights[n] * change, shift - weights[n] * change @ c
            for j in range(I):
                power = np.linalg.matrix_power(B, j)
                noise += (weights[n] * gamma * problem.noise) ** 2 * power @ power.T
        here = turn @ x + shift
        mean += chance * here
        second += chance * (np.outer(here, here) + turn @ spread @ turn.T + noise)
    return mean, second - np.outer(mean, mean)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("hessians", HESSIANS)
def test_exact_moments_are_those_of_all_outcomes(hessians, name):
    problem = random_quadratic(3, 2, noise=0.4, seed=2, **HESSIANS[hessians])
    algorithm = ALGORITHMS[name].bind_process(COINS)
    run = moments(ALGORITHMS[name], problem, COINS, 4)
    assert run.label == "exact"
    mean, spread = problem.x0.numpy(), np.zeros((2, 2))
    for t in range(4):
        mean, spread = one_round(problem, algorithm, mean, spread)
        assert run.mean[t + 1] == pytest.approx(mean, abs=1e-12)
        assert run.variance[t + 1] == pytest.approx(np.diag(run.directions.T @ spread @ run.directions), rel=1e-9)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS.values(), FedAU(0.2, 3, 1.5, cutoff=3), FedAU(0.2, 3, rate=0.4)])
def test_given_the_record_moments_are_those_of_the_pseudo_codes_weights(algorithm):
    """Without noise the mean is the simulated model; with it, the gradient norm is the mean over seeds."""
    q = COINS.matrix(20, np.random.default_rng(1))
    algorithm = algorithm.bind_process(COINS)
    quiet = random_quadratic(3, 2, seed=2)
    run = moments(algorithm, quiet, q)
    assert run.label == "exact given the record"
    simulated = simulate(algorithm, quiet, q, 20, record_models=True).model[0]
    assert run.mean == pytest.approx(simulated, abs=1e-12) and not run.variance.round(20).any()
    noisy = random_quadratic(3, 2, seed=2, noise=0.5)
    exact = moments(algorithm, noisy, q).gradient_norm_squared
    sample = simulate(algorithm, noisy, q, 20, seeds=range(300)).gradient_norm_squared
    assert (abs(sample.mean(0) - exact) <= 5 * sample.std(0) / math.sqrt(300) + 1e-12).all()


def test_moments_over_participation_are_the_mean_over_simulated_runs():
    problem = random_quadratic(3, 2, seed=2, noise=0.3)
    for algorithm in ALGORITHMS.values():
        exact = moments(algorithm, problem, COINS, 15).gradient_norm_squared
        sample = simulate(algorithm, problem, COINS, 15, seeds=range(400)).gradient_norm_squared
        assert (abs(sample.mean(0) - exact) <= 5 * sample.std(0) / math.sqrt(400) + 1e-12).all()


def test_averaging_all_has_the_moments_of_fedavg_with_weights_one_over_n():
    problem = random_quadratic(3, 2, seed=2, noise=0.3)
    ours, plain = moments(AverageAll(0.2, 3), problem, COINS, 9), moments(FedAvg(0.2, 3), problem, COINS, 9)
    assert np.array_equal(ours.gradient_norm_squared, plain.gradient_norm_squared)


# --- the wrong objective: Theorem 1 -----------------------------------------------------------------------------------

FOUR = Quadratic([1.0], [[0.0], [1.0], [4.0], [10.0]], x0=[0.0])
P = np.array([0.05, 0.2, 0.5, 0.9])
MU = (1 - (1 - P) ** 5) / P  # what FedAU's weights tend to with K = 5


@pytest.mark.parametrize(("gamma", "I", "eta"), [(0.1, 1, 1.0), (0.3, 5, 1.0), (1.5, 3, 0.5)])
@pytest.mark.parametrize(
    ("omega", "minimizer"),
    [(np.ones(4), 6.788), (1 / P, 3.75), (MU, 5.0735)],
    ids=["average all", "known rates", "FedAU with K = 5"],
)
def test_the_mean_model_tends_to_the_minimizer_of_the_weighted_objective(omega, minimizer, gamma, I, eta):
    """x_h = sum omega p c / sum omega p, for any stable gamma and I: Hessians are equal. Predicted, and met."""
    centers = np.array([0.0, 1.0, 4.0, 10.0])
    predicted = (omega * P) @ centers / (omega @ P)
    run = moments(FixedWeights(gamma, I, omega, eta), FOUR, Bernoulli(4, P, normalize=False), 3000)
    assert predicted == pytest.approx(minimizer, abs=5e-4)
    assert run.mean[-1, 0] == pytest.approx(predicted, abs=1e-9)


def test_known_rates_and_equal_rates_reach_the_minimizer_of_f():
    for process, algorithm in [
        (Bernoulli(4, P, normalize=False), KnownParticipation(0.2, 3)),
        (Bernoulli(4, 0.3, normalize=False), AverageAll(0.2, 3)),
    ]:
        assert moments(algorithm, FOUR, process, 3000).mean[-1, 0] == pytest.approx(3.75, abs=1e-9)


def test_fedau_with_a_fixed_cutoff_goes_to_the_minimizer_of_its_own_objective():
    """Its weights tend to (1 - (1-p)^K)/p; over 24 runs, in the last 1000 of 1500 rounds."""
    trace = simulate(
        FedAU(0.02, 2, cutoff=5), FOUR, Bernoulli(4, P, normalize=False), 1500, seeds=range(24), record_models=True
    )
    late = trace.model[:, 500:, 0].mean(axis=1)
    error = late.std() / math.sqrt(len(late))
    assert abs(late.mean() - 5.0735) < 4 * error + 0.02
    assert abs(late.mean() - 6.788) > 10 * error and abs(late.mean() - 3.75) > 10 * error


def test_without_a_cutoff_fedau_goes_to_the_minimizer_of_f():
    trace = simulate(
        FedAU(0.01, 2, cutoff=math.inf), FOUR, Bernoulli(4, P, normalize=False), 2500, seeds=range(24),
        record_every=10, record_models=True,
    )  # fmt: skip
    late = trace.model[:, 100:, 0].mean(axis=1)
    assert abs(late.mean() - 3.75) < 4 * late.std() / math.sqrt(len(late)) + 0.05


# --- what is not known ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "process", "told"),
    [
        (FedAU(0.1, 1), COINS, "fedau under bernoulli participation are not known: its weights are no constants"),
        (AverageAll(0.1, 1), WithoutReplacement(3, 2), "average-all under without-replacement participation"),
        (AverageParticipating(0.1, 1), Full(3), "average-participating under full participation are not known"),
        (AverageAll(0.1, 1), Markovian(3, RATES), "markovian participation depends on its past and its weights do not"),
        (AverageAll(0.1, 1), CyclicClients(3, RATES), "cyclic-clients participation depends on its past"),
        (FedVarp(0.1, 1), COINS, "exact moments of fedvarp are not known; known: .*known-participation"),
        (MIFA(0.1, 1), COINS, "exact moments of mifa are not known"),
        (FixedWeights(0.1, 1, [1.0, 2.0]), COINS, "fixed-weights has weights of 2 clients, the problem has 3"),
    ],
)
def test_moments_that_do_not_close_are_refused_in_one_line(algorithm, process, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        moments(algorithm, random_quadratic(3, 2, seed=2), process, 5)
    assert "\n" not in str(refused.value)
