"""Markovian and cyclic clients, and rates drawn from class distributions: exact moments, samplers, bad input."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.participation import (
    Bernoulli,
    CyclicClients,
    CyclicFromInactive,
    Full,
    Markovian,
    class_frequencies,
    dirichlet_frequencies,
    participation_rates,
    process_from_spec,
)
from fedbounds.empirical.participation.rates import rates_from_spec
from fedbounds.empirical.runtime.streams import Streams
from tests.empirical.invariants.more_strategies import processes

RATES = (0.0, 0.02, 0.3, 0.527, 0.9, 1.0)
KINDS = [Markovian, CyclicClients, CyclicFromInactive]


# --- exact moments, against enumeration -------------------------------------------------------------------------------


def chain_paths(p, come, rounds):
    """Every path of one client's chain with its probability, from the definition."""
    if p in (0, 1):
        return [(1.0, [p == 1] * rounds)]
    enter = min(come, p / (1 - p))
    leave = enter * (1 - p) / p
    paths = []
    for path in itertools.product([False, True], repeat=rounds):
        chance = p if path[0] else 1 - p
        for before, after in itertools.pairwise(path):
            away = leave if before else enter
            chance *= away if before != after else 1 - away
        paths.append((chance, list(path)))
    return paths


def cycle_paths(p, cycle, rounds, from_inactive):
    """Every start of one client's cycle with its probability, round after round as in the description."""
    active = max(1, round(p * cycle)) if p else 0
    if not from_inactive:
        return [(1 / cycle, [(t + start) % cycle < active for t in range(rounds)]) for start in range(cycle)]
    inactive, paths = max(1, cycle - active), []
    for remaining in range(inactive):
        path, present, left = [], False, remaining
        for _ in range(rounds):
            while left == 0:
                present = not present
                left = active if present else inactive
            path.append(present)
            left -= 1
        paths.append((1 / inactive, path))
    return paths


def paths_of(process, n, rounds):
    p = float(process.probabilities[n])
    if isinstance(process, Markovian):
        return chain_paths(p, process.come, rounds)
    if p == 0:
        return [(1.0, [False] * rounds)]
    return cycle_paths(p, process.cycle, rounds, isinstance(process, CyclicFromInactive))


PROCESSES = [
    Markovian(6, RATES, come=0.3),
    Markovian(6, RATES),
    CyclicClients(6, RATES, cycle=7),
    CyclicFromInactive(6, RATES, cycle=7),
    CyclicClients(2, 0.5, cycle=1),
    CyclicFromInactive(2, 0.5, cycle=1),
]
EACH = pytest.mark.parametrize("process", PROCESSES, ids=lambda process: f"{process.kind}")


@EACH
def test_moments_are_those_of_all_outcomes(process):
    rounds, N = 9, process.clients
    means, seconds = np.zeros((rounds, N)), np.zeros((rounds, rounds, N))
    for n in range(N):
        for chance, path in paths_of(process, n, rounds):
            row = np.array(path, dtype=float) / N
            means[:, n] += chance * row
            seconds[:, :, n] += chance * np.outer(row, row)
    for t, u in itertools.product(range(rounds), repeat=2):
        covariance = process.covariance(t, u)
        assert np.diag(covariance) == pytest.approx(seconds[t, u] - means[t] * means[u], abs=1e-15)
        assert np.array_equal(covariance, np.diag(np.diag(covariance)))
    for t in range(rounds):
        assert process.mean(t) == pytest.approx(means[t], abs=1e-15)
    for t0, P in [(0, 1), (0, 4), (2, 7), (5, 3)]:
        window = seconds[t0 : t0 + P, t0 : t0 + P].mean(axis=(0, 1)) - means[t0 : t0 + P].mean(axis=0) ** 2
        assert np.diag(process.window_covariance(t0, P)) == pytest.approx(window, abs=1e-15)
        assert process.window_mean(t0, P) == pytest.approx(means[t0 : t0 + P].mean(axis=0), abs=1e-15)


@EACH
def test_the_sampler_has_the_moments(process):
    """All within five standard errors of 1500 runs."""
    rounds, runs, N = 8, 1500, process.clients
    q = np.array([process.matrix(rounds, np.random.default_rng([7, run])) for run in range(runs)])
    assert set(np.unique(q)) <= {0.0, 1 / N}
    for t, u in [(0, 0), (0, 1), (3, 7), (7, 7)]:
        products = q[:, t] * q[:, u]
        exact = np.diag(process.covariance(t, u)) + process.mean(t) * process.mean(u)
        assert (abs(products.mean(axis=0) - exact) <= 5 * products.std(axis=0) / math.sqrt(runs) + 1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_long_run_share_of_rounds_is_the_rate(kind):
    process = kind(6, RATES)
    q = process.matrix(40_000, np.random.default_rng(0)) > 0
    within = 1e-3 if "cyclic" in process.kind else 0.02
    assert q.mean(axis=0) == pytest.approx(process.rates, abs=within)
    certain = (np.array(RATES) == 0) | (np.array(RATES) == 1)
    if kind is not CyclicFromInactive:  # which is away in one round of 101 even with p = 1
        assert np.array_equal(q.mean(axis=0)[certain], np.array(RATES)[certain])


def test_markovian_clients_come_with_probability_a_twentieth_at_most():
    """Below p = 1/21 a client stays one round only, and comes with p/(1 - p); above, 0.05 and 0.05 (1/p - 1)."""
    process = Markovian(4, [0.02, 1 / 21, 0.1, 0.5])
    assert process.come_rates == pytest.approx([0.02 / 0.98, 0.05, 0.05, 0.05])
    assert process.leave_rates == pytest.approx([1, 1, 0.05 * 9, 0.05])
    stationary = process.come_rates / (process.come_rates + process.leave_rates)
    assert stationary == pytest.approx(process.probabilities)


def test_markovian_long_run_variance_is_the_limit_of_the_window_variance():
    process, P = Markovian(3, [0.02, 0.3, 0.9]), 200_000
    assert process.long_run_variance() == pytest.approx(P * np.diag(process.window_covariance(0, P)), rel=1e-3)
    with pytest.raises(FedboundsError, match="client 0 is present in every second round, and does not mix"):
        Markovian(1, 0.5, come=1.0).long_run_variance()


def test_the_published_cycles_begin_absent_and_the_described_ones_do_not():
    """The participation of a client with p = 0.527, as printed for the published sampler; the other is stationary."""
    published, described = CyclicFromInactive(1, 0.527), CyclicClients(1, 0.527)
    shares = [float(published.mean(t)[0]) for t in (0, 10, 50, 99)]
    assert shares == pytest.approx([1 / 47, 11 / 47, 1, 0])
    assert not published.stationary and described.stationary
    assert [float(described.mean(t)[0]) for t in (0, 50)] == [0.53, 0.53]
    with pytest.raises(FedboundsError, match="cyclic-from-inactive participation is not stationary"):
        published.autocovariance(1)


def test_in_a_cycle_a_client_is_active_once_and_in_consecutive_rounds():
    q = CyclicClients(5, [0.001, 0.02, 0.3, 0.97, 1.0]).matrix(300, np.random.default_rng(4)) > 0
    assert (q[:100].sum(axis=0) == [1, 2, 30, 97, 100]).all()
    assert np.array_equal(q[:100], q[100:200])
    assert (np.abs(np.diff(q[:101].astype(int), axis=0)).sum(axis=0) <= 2).all()


# --- what all processes promise ---------------------------------------------------------------------------------------


@given(processes())
@settings(max_examples=80)
def test_processes_keep_their_bounds(process):
    assert process_from_spec(json.loads(json.dumps(process.spec()))).spec() == process.spec()
    q = process.matrix(8, np.random.default_rng(1))
    if process.unnormalized:
        assert set(np.unique(q)) <= {0.0, 1 / process.clients}
        assert not process.stationary or process.mean(0) * process.clients == pytest.approx(process.rates, abs=1e-12)
    if process.sums_to_one:
        assert q.sum(axis=1) == pytest.approx(np.ones(8))
    if process.independent_clients:
        covariance = process.covariance(1, 2)
        assert np.array_equal(covariance, np.diag(np.diag(covariance)))
    if process.independent_rounds:
        assert not process.covariance(1, 2).any() or not process.covariance(1, 2).round(12).any()
    if process.stationary:
        assert process.covariance(0, 2) == pytest.approx(process.covariance(3, 5), abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_clients_that_come_on_their_own_do_not_sum_to_one(kind):
    process = kind(3, 0.5)
    assert not process.sums_to_one and process.unnormalized and process.independent_clients
    with pytest.raises(FedboundsError, match=f"{process.kind}: a participant has weight 1/N, whoever else takes part"):
        process.require_unit_sum("Theorem 3.1")
    assert Full(3).unnormalized and not Bernoulli(3, 0.5).unnormalized
    assert Markovian(3, 1.0).sums_to_one


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Markovian(2, 1.2), r"probability = 1.2 must be a number in \[0, 1\]"),
        (lambda: Markovian(2, [0.5, -0.1]), r"probability\[1\] = -0.1 must be a number in \[0, 1\]"),
        (lambda: Markovian(2, [0.5]), "probability has 1 entries; expected one per client, 2"),
        (lambda: Markovian(2, 0.5, come=0), r"come = 0 must be in \(0, 1\]"),
        (lambda: Markovian(2, 0.5, come=np.ones(2)), "come = array"),
        (lambda: CyclicClients(2, 0.5, cycle=0), "cycle = 0 must be an integer >= 1"),
        (lambda: CyclicClients(2, 0.5, cycle=2**50), "phases of clients = 2 in a cycle = .*memory"),
        (lambda: CyclicFromInactive(0, 0.5), "clients = 0 must be an integer >= 1"),
    ],
)
def test_numbers_outside_their_domain_are_refused_in_one_line(make, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        make()
    assert "\n" not in str(refused.value)


# --- rates from class distributions -----------------------------------------------------------------------------------


def test_rates_are_the_mean_availability_of_a_clients_classes_scaled_to_the_mean():
    """p = C mu <kappa, q> with the q that the stream draws, then the floor."""
    kappa = dirichlet_frequencies(50, 10, seed=3)
    q = Streams(3).generator("rates", 0).dirichlet(np.full(10, 0.1))
    assert participation_rates(kappa, seed=3) == pytest.approx(10 * 0.1 * kappa @ q, abs=1e-15)
    assert participation_rates(kappa, seed=3, floor=0.02) == pytest.approx(np.maximum(10 * 0.1 * kappa @ q, 0.02))


def test_the_mean_rate_is_the_one_asked_for_and_the_floor_raises_it():
    """N = 250, C = 10, both alphas 0.1: 0.1 without a floor, 0.1056 with one of 0.02, where 40 % of the clients are."""
    kappas = [dirichlet_frequencies(250, 10, seed=seed) for seed in range(400)]
    plain = [participation_rates(kappa, seed=seed) for seed, kappa in enumerate(kappas)]
    floored = [participation_rates(kappa, seed=seed, floor=0.02) for seed, kappa in enumerate(kappas)]
    error = np.std([p.mean() for p in plain]) / math.sqrt(400)
    assert abs(np.mean(plain) - 0.1) < 4 * error
    assert abs(np.mean(floored) - 0.1056) < 4 * error + 1e-3
    assert abs(np.mean(np.array(floored) == 0.02) - 0.4) < 0.03
    assert max(p.max() for p in plain) <= 1


def test_a_rate_beyond_one_is_an_error_or_capped_by_name_never_silent():
    """C = 100 classes: 10 <kappa, q> exceeds 1 for some seeds."""
    beyond = 0
    for seed in range(60):
        kappa = dirichlet_frequencies(250, 100, seed=seed)
        raw = 10 * kappa @ Streams(seed).generator("rates", 0).dirichlet(np.full(100, 0.1))
        if raw.max() > 1:
            beyond += 1
            with pytest.raises(FedboundsError, match=r"is more than 1 \(C mu = 10\): lower the mean, or give a cap"):
                participation_rates(kappa, seed=seed)
            assert participation_rates(kappa, seed=seed, cap=0.5) == pytest.approx(np.minimum(raw, 0.5))
        else:
            assert participation_rates(kappa, seed=seed) == pytest.approx(raw)
    assert 0 < beyond < 20


def test_rates_are_a_function_of_their_seed_and_of_nothing_else():
    kappa = dirichlet_frequencies(20, 10, seed=5)
    assert np.array_equal(kappa, dirichlet_frequencies(20, 10, seed=5))
    assert not np.array_equal(kappa, dirichlet_frequencies(20, 10, seed=6))
    np.random.default_rng(0).random(5)
    assert np.array_equal(participation_rates(kappa, seed=1), participation_rates(kappa, seed=1))
    first = Streams(5).generator("participation").random(3)
    participation_rates(kappa, seed=5)
    assert np.array_equal(first, Streams(5).generator("participation").random(3))


def test_class_frequencies_are_those_of_the_samples_that_a_client_holds():
    labels, assignment = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 1, 1, 0, 0])
    expected = [[1 / 3, 0, 2 / 3], [1 / 3, 1 / 3, 1 / 3]]
    assert class_frequencies(labels, assignment, 2) == pytest.approx(np.array(expected))
    with pytest.raises(FedboundsError, match="client 2 holds no sample"):
        class_frequencies(labels, assignment, 3)


TABLE = {
    "kind": "dirichlet",
    "classes": 10,
    "mix": 0.2,
    "alpha": 0.3,
    "mean": 0.05,
    "floor": 0.01,
    "cap": 0.9,
    "seed": 4,
}


@pytest.mark.parametrize("kind", ["bernoulli", "markovian", "cyclic-clients", "cyclic-from-inactive"])
def test_a_table_in_place_of_probabilities_draws_them_and_the_processs_own_spec_has_the_numbers(kind):
    process = process_from_spec({"kind": kind, "clients": 30, "probability": TABLE})
    expected = participation_rates(
        dirichlet_frequencies(30, 10, 0.2, 4), alpha=0.3, mean=0.05, floor=0.01, cap=0.9, seed=4
    )
    assert np.array_equal(process.probabilities, expected)
    assert process.spec()["probability"] == expected.tolist()
    assert process_from_spec(process.spec()) == process


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "dirichlets"}, "unknown probability 'dirichlets'; did you mean dirichlet"),
        ({"alpa": 1}, "unknown key of probability 'dirichlet': 'alpa'; did you mean alpha"),
        ({"classes": 0}, "classes = 0 must be an integer >= 1"),
        ({"classes": 2**60}, "memory"),
        ({"alpha": 0}, r"alpha = 0 must be a number in \[0.0001, 1e\+06\]"),
        ({"mix": -1}, "alpha = -1 must be a number"),
        ({"mean": 0}, r"mean = 0 must be in \(0, 1\]"),
        ({"mean": 1.5}, r"mean = 1.5 must be a number in \[0, 1\]"),
        ({"floor": 2}, r"floor = 2 must be a number in \[0, 1\]"),
        ({"cap": 0.005}, r"cap = 0.005 must be in \(0, 1\] and at least floor = 0.01"),
        ({"cap": 0, "floor": 0}, r"cap = 0 must be in \(0, 1\]"),
        ({"seed": -1}, "seed = -1 must be an integer >= 0"),
    ],
)
def test_a_bad_table_of_rates_is_refused_in_one_line(change, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        rates_from_spec(TABLE | change, 5)
    assert "\n" not in str(refused.value)


def test_a_table_without_classes_or_clients_and_frequencies_that_are_no_shares_are_refused():
    with pytest.raises(FedboundsError, match="probability 'dirichlet' needs classes"):
        rates_from_spec({"kind": "dirichlet"}, 5)
    with pytest.raises(FedboundsError, match="participation 'markovian' needs clients"):
        process_from_spec({"kind": "markovian", "probability": TABLE})
    with pytest.raises(FedboundsError, match=r"frequencies\[1\] must be shares that sum to one; they sum to 0.9"):
        participation_rates([[0.5, 0.5], [0.5, 0.4]])
    with pytest.raises(FedboundsError, match=r"frequencies\[0\] must be shares"):
        participation_rates([[1.5, -0.5]])
