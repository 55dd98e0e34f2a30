"""FedAU's weights: dynamic programming against every record, the transform against dynamic programming, golden rows."""

import itertools
import math
import time
from fractions import Fraction as R

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.fedau import weight_error as of_weights
from fedbounds.bounds.papers.fedau.harmonic import harmonic_number
from fedbounds.bounds.papers.fedau.weight_error import (
    LONGEST,
    largest_weight_moment,
    mean_square,
    mean_weight,
    mean_weight_moment,
    squared_error,
    weight_error,
    weight_statistics,
)
from tests.papers.fedau.exact_weights import exact_weight_moments


def algorithm_2(record, K):
    """Algorithm 2 of the paper, line by line: the weights of rounds 0 .. len(record)."""
    weights, M, S = [R(1)], 0, 0
    for present in record:
        S += 1
        if present or S == K:
            weights.append(R(S) if M == 0 else (M * weights[-1] + S) / (M + 1))
            M, S = M + 1, 0
        else:
            weights.append(weights[-1])
    return weights


@pytest.mark.parametrize("K", [1, 2, 3, 5, 8, None])
@pytest.mark.parametrize("p", [R(1, 2), R(1, 10), R(7, 9)])
def test_dynamic_programming_equals_the_enumeration_of_all_records(p, K):
    rounds = 8
    expected = [[R(0), R(0)] for _ in range(rounds)]
    for record in itertools.product((True, False), repeat=rounds - 1):
        probability = math.prod(p if present else 1 - p for present in record)
        for t, weight in enumerate(algorithm_2(record, K)):
            expected[t][0] += probability * weight
            expected[t][1] += probability * (p * weight - 1) ** 2
    assert exact_weight_moments(p, K, rounds) == [tuple(pair) for pair in expected]


@pytest.mark.parametrize("K", [1, 2, 3, 5, 8, 19, 20, None])
@pytest.mark.parametrize("p", [R(1), R(999, 1000), R(7, 9), R(1, 2), R(1, 10), R(1, 50), R(1, 10**5)])
def test_the_transform_equals_dynamic_programming(p, K):
    exact = exact_weight_moments(p, K, 20)
    cut = math.inf if K is None else K
    # a mean is a difference over p, so that rates of 1e-5 leave it twelve digits
    assert mean_weight(float(p), cut, 20) == pytest.approx([float(mean) for mean, _ in exact], rel=2e-10)
    error = squared_error(float(p), cut, 20)
    assert np.abs(error - [float(one) for _, one in exact]).max() < 2e-14
    assert weight_error(np.array([float(p)]), cut, 20) == pytest.approx(
        float(sum(one for _, one in exact) / 20), abs=1e-14
    )


GOLDEN_RATIONALS = [
    (R(1, 2), 2, "1 1 3/2 3/2 3/2 3/2", "1/4 1/4 1/8 3/32 17/192 21/256", R(683, 4608)),
    (R(1, 3), 3, "1 1 11/9 19/9 19/9 19/9", "4/9 4/9 10/27 41/243 296/2187 1651/13122", R(22165, 78732)),
    (R(1, 10), 2, "1 1 19/10 19/10 19/10", "81/100 81/100 657/1000 13131/20000 131307/200000", R("0.718017")),
]


@pytest.mark.parametrize(("p", "K", "means", "errors", "W"), GOLDEN_RATIONALS)
def test_the_weights_have_their_golden_rows(p, K, means, errors, W):
    moments = exact_weight_moments(p, K, len(means.split()))
    assert [mean for mean, _ in moments] == [R(one) for one in means.split()]
    assert [error for _, error in moments] == [R(one) for one in errors.split()]
    assert sum(error for _, error in moments) / len(moments) == W


@pytest.mark.parametrize(
    ("p", "K", "T", "W"),
    [
        (0.1, 33, 1000, 0.0443759343436),
        (0.02, 50, 1000, 0.179643817932),
        (0.5, 5, 1000, 0.00624017283515),
        (0.3, math.inf, 500, 0.0292630627085),
    ],
)
def test_the_weight_error_of_long_runs_has_its_golden_value(p, K, T, W):
    assert float(weight_error(np.array([p]), K, T)) == pytest.approx(W, rel=2e-12)


def test_the_mean_weight_is_the_mean_cut_off_interval_once_the_first_is_over():
    """E S = (1 - q^K)/p and Var S as in Lemma B.6.1, from the law of S itself."""
    for p, K in itertools.product((0.07, 0.4, 0.9), (1, 2, 6)):
        law = [p * (1 - p) ** (k - 1) for k in range(1, K)] + [(1 - p) ** (K - 1)]
        mean = sum(k * chance for k, chance in enumerate(law, start=1))
        variance = sum(k * k * chance for k, chance in enumerate(law, start=1)) - mean**2
        assert mean_weight(p, K, 40)[K:] == pytest.approx(mean, rel=1e-13)
        q = 1 - p
        assert variance == pytest.approx(q / p**2 - (2 * K - 1) * q**K / p - q ** (2 * K) / p**2, abs=1e-12)
        # Rao-Blackwell: the average of floor(t/K) or more intervals is no worse than that of floor(t/K)
        t = np.arange(K, 40)
        bias = (p * mean - 1) ** 2
        assert np.all(squared_error(p, K, 40)[K:] <= bias + p**2 * variance / (t // K) + 1e-14)


def test_every_round_obeys_the_bound_behind_theorem_3():
    for p, K in itertools.product((0.003, 0.05, 0.3, 0.8, 0.99), (1, 2, 7, 50, 400)):
        t = np.arange(1, 400)
        assert np.all(squared_error(p, K, 400)[1:] <= 2 * K * (1 - p) / t + (1 - p) ** (2 * K) + 1e-12)


def test_the_error_tends_to_the_squared_bias_of_the_cut_off():
    assert squared_error(0.1, 5, 40000)[-1] == pytest.approx(0.9**10, rel=2e-3)


def test_a_cut_off_no_shorter_than_the_run_is_no_cut_off():
    p = np.array([0.03, 0.4])
    for T in (1, 2, 17, 300):
        without = weight_error(p, math.inf, T)
        assert weight_error(p, T, T) == without == weight_error(p, 10 * T, T)
    assert weight_error(p, 16, 17) != weight_error(p, 17, 17)


def test_a_cut_off_of_one_and_a_client_that_is_always_there_have_weight_one():
    assert float(weight_error(np.array([0.2, 1.0]), 1, 50)) == pytest.approx(0.64 / 2, rel=1e-13)
    assert float(weight_error(np.array([1.0]), 7, 50)) == 0.0


def test_settings_broadcast_and_the_clients_stand_last():
    p = np.array([[0.1, 0.5, 0.5], [0.9, 0.2, 0.7]])
    K, T = np.array([[2.0], [np.inf]]), np.array([30.0, 7.0])
    table = weight_error(p, K, T)
    assert table.shape == (2, 2)
    for i, j in itertools.product(range(2), range(2)):
        one = np.mean([float(weight_error(np.array([rate]), K[i, 0], T[j])) for rate in p[j]])
        assert table[i, j] == pytest.approx(one, rel=1e-12)


def test_more_rounds_than_a_transform_holds_are_refused_where_a_client_hardly_ever_takes_part():
    with pytest.raises(FedboundsError, match="give W"):
        weight_error(np.array([0.5, 1e-6]), 3, LONGEST + 1)


@pytest.mark.parametrize(
    ("p", "K", "T"), [(R(9, 10), 2, 260), (R(9, 10), None, 80), (R(3, 4), 3, 260), (R(1, 2), 5, 200)]
)
def test_the_integral_over_late_rounds_equals_dynamic_programming(p, K, T):
    moments = exact_weight_moments(p, K, T)
    cut = math.inf if K is None else K
    for rounds in (T // 2, T - 1, T):
        exact = float(sum(error for _, error in moments[:rounds]) / rounds)
        assert float(weight_error(np.array([float(p)]), cut, rounds)) == pytest.approx(exact, abs=4e-15)


@pytest.mark.parametrize("K", [1, 2, 33, 5000, math.inf])
@pytest.mark.parametrize("p", [0.9, 0.1, 0.01])
def test_the_integral_over_late_rounds_equals_the_transform_of_all_of_them(p, K):
    rounds = 2**16
    every = float(squared_error(p, K, rounds).mean())
    assert float(weight_error(np.array([p]), K, rounds)) == pytest.approx(every, abs=1e-11)


def test_the_weight_error_of_an_endless_run_is_the_squared_bias_of_the_cut_off():
    assert float(weight_error(np.array([0.1, 0.3]), 5, 1e15)) == pytest.approx((0.9**10 + 0.7**10) / 2, rel=1e-12)


def test_a_million_rounds_take_transforms_of_some_thousand_points(monkeypatch):
    points = [0]

    def counted(q, K, rounds, real=of_weights._second_moment):
        points[0] += 8 * rounds
        return real(q, K, rounds)

    monkeypatch.setattr(of_weights, "_second_moment", counted)
    K = np.unique(np.geomspace(1, 10**6, 48).round())
    W = weight_error(np.array([0.1001, 0.2002, 0.3003]), K, 1e6)
    assert W.shape == K.shape and 0 < points[0] < 3 * len(K) * 8 * 1024


@pytest.mark.parametrize("K", [1, 2, 4, 6, 7, 8, math.inf])
def test_the_largest_second_moment_is_reached_by_the_worst_record(K):
    rates = [R(1, 3), R(4, 5), R(1)]
    for T in (1, 2, 3, 7):
        cut = None if math.inf == K else K
        worst = [
            [max(column) for column in zip(*(algorithm_2(r, cut)[:T] for r in records), strict=True)]
            for records in (
                [(True,) * (T - 1)] if p == 1 else list(itertools.product((True, False), repeat=T - 1)) for p in rates
            )
        ]
        expected = max(sum(p * w[t] ** 2 for p, w in zip(rates, worst, strict=True)) / 3 for t in range(T))
        got = largest_weight_moment(np.array([float(p) for p in rates]), K, T)
        assert float(got) == pytest.approx(float(expected), rel=1e-14)


def test_harmonic_numbers_are_exact_to_the_last_digits():
    exact = list(itertools.accumulate((R(1, j) for j in range(1, 400)), initial=R(0)))
    assert harmonic_number(np.arange(400)) == pytest.approx([float(h) for h in exact], rel=4e-15)
    assert float(harmonic_number(10**6)) == pytest.approx(14.392726722865724, rel=1e-15)


def steps_23_to_26(p, K, rounds):
    """The exact means, the per-round bound and Theorem 3 summed, of rounds 0 .. rounds - 1."""
    q = 1 - p
    means = [R(1)] + [(1 - q**K) / p if t >= K else (1 - q**t) / p - (t - 1) * q**t for t in range(1, rounds)]
    bounds = [q**2] + [2 * K * q / t + q ** (2 * K) for t in range(1, rounds)]
    return means, bounds


@pytest.mark.parametrize("K", [1, 2, 3, 6])
@pytest.mark.parametrize("p", [R(1), R(3, 4), R(1, 3), R(1, 20)])
def test_every_mean_is_exact_and_every_round_meets_its_own_bound_in_rationals(p, K):
    means, bounds = steps_23_to_26(p, K, 26)
    moments = exact_weight_moments(p, K, 26)
    assert [mean for mean, _ in moments] == means
    assert all(error <= bound for (_, error), bound in zip(moments, bounds, strict=True))


def test_the_weights_settle_at_the_cut_off_mean_and_their_error_at_the_squared_bias():
    for p, K in ((0.3, 4), (0.05, 20), (0.9, 1)):
        law = weight_statistics([p], 4000, K)
        assert p * law.mean[0, -1] == pytest.approx(1 - (1 - p) ** K, rel=1e-12)
        assert law.squared_error[0, -1] == pytest.approx((1 - p) ** (2 * K), abs=2 * K * (1 - p) / 4000)


def test_statistics_agree_with_the_derived_constants_and_with_the_second_moments():
    rates, K, T = np.array([0.1, 0.1, 0.45, 1.0]), 9, 150
    law = weight_statistics(rates, T, K)
    assert law.mean.shape == law.squared_error.shape == (4, T)
    assert law.weight_error == pytest.approx(float(weight_error(rates, K, T)), rel=1e-12)
    assert law.mean_second_moment == pytest.approx(float(mean_weight_moment(rates, K, T)), rel=1e-12)
    squares = np.mean([p * mean_square(p, K, T).mean() for p in rates])
    assert law.mean_second_moment == pytest.approx(float(squares), rel=1e-12)
    assert law.largest_second_moment == pytest.approx((0.65 * 81 + 1) / 4)


def test_sampled_weights_agree_with_the_statistics_within_their_standard_error():
    rng, p, K, T, paths = np.random.default_rng(4), 0.2, 7, 40, 4000
    weights = np.ones((paths, T))
    M, S = np.zeros(paths), np.zeros(paths)
    for t, present in enumerate(rng.random((T - 1, paths)) < p):
        S += 1
        done = present | (S == K)
        grown = np.where(M == 0, S, (M * weights[:, t] + S) / (M + 1))
        weights[:, t + 1] = np.where(done, grown, weights[:, t])
        M, S = M + done, np.where(done, 0, S)
    law = weight_statistics([p], T, K)
    for sample, exact in ((weights, law.mean[0]), ((p * weights - 1) ** 2, law.squared_error[0])):
        spread = sample.std(0) / math.sqrt(paths)
        assert np.all(np.abs(sample.mean(0) - exact) <= 5 * spread + 1e-12)


def test_many_clients_and_rounds_take_seconds():
    """250 clients, 10,000 rounds, K = 50 take seconds: a quarter of the clients, with a generous limit."""
    rates = np.random.default_rng(5).uniform(0.02, 0.9, 60)
    start = time.process_time()
    error = float(weight_error(rates, 50, 10_000))
    assert time.process_time() - start < 10
    bound = np.mean(2 * 50 * (1 - rates) * (math.log(10_000) + 1) / 10_000 + (1 - rates) ** 100) + 1e-4
    assert np.mean((1 - rates) ** 100) * 0.9 < error < bound


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([0.5, 0.0], 10, 2), r"rates\[1\] = 0 must lie in \(0, 1\]: the weight of a client that never takes part"),
        (([1.5], 10, 2), r"rates\[0\] = 1.5"),
        (([0.5], 10, 0), "cut_off = 0"),
        (([0.5], 10, 2.5), "cut_off = 2.5"),
        (([0.5], 0, 2), "rounds = 0"),
        (([0.5], 2**21, 2), "rounds = 2097152"),
        ((["a"], 10, 2), "rates must be numbers"),
        (([], 10, 2), "rates has shape"),
    ],
)
def test_bad_rates_cut_offs_and_rounds_are_one_line(arguments, text):
    with pytest.raises(FedboundsError, match=text) as caught:
        weight_statistics(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [(R(0), 2, 3), (R(3, 2), 2, 3), (R(1, 2), 0, 3), (R(1, 2), 2, 0)])
def test_the_exact_recursion_refuses_what_algorithm_2_cannot_run(bad):
    with pytest.raises(FedboundsError):
        exact_weight_moments(*bad)
