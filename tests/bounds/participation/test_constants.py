"""Constants from a record of participation and the clients' offsets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.constants import check_weights, expected_window_divergence, window_means
from tests.bounds.participation.reference_constants import (
    bound_15,
    cohort_divergence,
    expected_bound_15,
    gradient_divergence,
    mean_window_divergence,
    median_bound,
    participation_divergence,
    participation_norm,
    window_divergence,
)

SLACK = 1 + 1e-9


@st.composite
def records(draw, max_clients=6, max_rounds=24):
    """Weights (rounds, clients) of every kind (one-hot, equal, uneven) and offsets (clients, dimension)."""
    clients = draw(st.integers(1, max_clients))
    rounds = draw(st.integers(1, max_rounds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["one-hot", "equal", "uneven", "full"]))
    if shape == "full":
        q = np.ones((rounds, clients))
    else:
        present = rng.random((rounds, clients)) < rng.random()
        present[np.arange(rounds), rng.integers(clients, size=rounds)] = True
        if shape == "one-hot":
            present = np.eye(clients, dtype=bool)[rng.integers(clients, size=rounds)]
        q = present * (rng.random((rounds, clients)) + 0.01 if shape == "uneven" else 1.0)
    scale = 10.0 ** draw(st.integers(-3, 3))
    return q / q.sum(axis=1, keepdims=True), scale * rng.standard_normal((clients, draw(st.integers(1, 3))))


def slow_constants(q, v, interval):
    """The squared constants, one client and one round at a time, as eqs. (4)-(7) are printed."""
    rounds, clients = q.shape
    v = [row - sum(v) / clients for row in v]
    beta, nu, delta = [], [], []
    for t in range(rounds):
        pull = sum(q[t, n] * v[n] for n in range(clients))
        beta.append(pull @ pull)
        nu.append(sum(q[t, n] * (v[n] - pull) @ (v[n] - pull) for n in range(clients)))
    for t0 in range(0, rounds - interval + 1, interval):
        pull = sum(q[t, n] * v[n] for t in range(t0, t0 + interval) for n in range(clients)) / interval
        delta.append(pull @ pull)
    return max(x @ x for x in v), max(beta), max(nu), max(delta)


@given(records(), st.data())
def test_constants_equal_the_printed_sums(record, data):
    q, v = record
    interval = data.draw(st.integers(1, len(q)))
    computed = [
        gradient_divergence(v),
        participation_divergence(q, v),
        cohort_divergence(q, v),
        window_divergence(q, v, interval),
    ]
    expected = np.sqrt(slow_constants(q, v, interval))
    assert_allclose(computed, expected, rtol=1e-9, atol=1e-12 * (1 + expected[0]))
    assert participation_norm(q) == pytest.approx(max(math.sqrt(sum(x * x for x in row)) for row in q))


@given(records(), st.data())
def test_divergences_are_ordered(record, data):
    """Assumption 3': 0 <= delta(P) <= beta <= d, nu <= d, delta(1) = beta, delta(kP) <= delta(P) on aligned windows."""
    q, v = record
    interval = data.draw(st.integers(1, len(q)))
    d, beta, nu = gradient_divergence(v), participation_divergence(q, v), cohort_divergence(q, v)
    delta, zero = window_divergence(q, v, interval), 1e-12 * d
    assert 0 <= delta <= beta * SLACK + zero and beta <= d * SLACK and nu <= d * SLACK
    assert window_divergence(q, v, 1) == pytest.approx(beta, abs=zero)
    multiple = interval * data.draw(st.integers(1, len(q) // interval))
    assert window_divergence(q, v, multiple) <= delta * SLACK + zero
    assert mean_window_divergence(q, v, interval) <= delta * SLACK


@given(records())
def test_the_spread_of_a_cohort_and_its_pull_add_up_to_its_mean_square(record):
    """Eq. (11): in one and the same round the two terms add up to the weighted mean square, at most d^2."""
    q, v = record
    v = v - v.mean(axis=0)
    for row in q:
        total = cohort_divergence([row], v) ** 2 + participation_divergence([row], v) ** 2
        assert total == pytest.approx(row @ (v**2).sum(axis=1), rel=1e-9)
        assert total <= gradient_divergence(v) ** 2 * SLACK


@given(records(max_clients=8), st.data())
def test_bounds_from_d_alone_hold_and_the_median_is_the_sharper(record, data):
    q, v = record
    interval, average = data.draw(st.integers(1, len(q))), data.draw(st.booleans())
    d = gradient_divergence(v)
    median, paper = median_bound(q, interval, d, average=average), bound_15(q, interval, d, average=average)
    exact = mean_window_divergence if average else window_divergence
    assert exact(q, v, interval) <= median * SLACK + 1e-12 * d
    assert median <= paper * SLACK + 1e-12 * d


@given(records(max_clients=8), st.floats(0.1, 10))
def test_the_median_bound_is_attained_by_offsets_that_obey_assumption_3(record, d):
    means = window_means(record[0], len(record[0]))
    clients = means.shape[1]
    order, half = np.argsort(means[0]), clients // 2
    v = np.zeros((clients, 1))
    v[order[clients - half :]], v[order[:half]] = d, -d
    assert gradient_divergence(v) <= d * SLACK
    attained = window_divergence(record[0], v, len(record[0]))
    assert attained == pytest.approx(median_bound(record[0], len(record[0]), d), abs=1e-12 * d)


@given(records())
def test_the_median_minimizes_the_sum_of_absolute_deviations(record):
    q = record[0][:1]
    grid = np.concatenate([q[0], [0, 1 / q.shape[1], 1]])
    least = min(np.abs(q[0] - mu).sum() for mu in grid)
    assert median_bound(q, 1, 1.0) == pytest.approx(least, abs=1e-14)


def test_proposition_4_1_fails_for_weights_that_vary():
    """Wang & Ji 2022, Proposition 4.1: two clients at -1 and +1; one alone, then both: beta^2 + nu^2 = 2 > d^2 = 1."""
    q, v = [[1, 0], [0.5, 0.5]], [[-1.0], [1.0]]
    assert (participation_divergence(q, v), cohort_divergence(q, v), gradient_divergence(v)) == (1.0, 1.0, 1.0)
    assert (participation_divergence(q[:1], v), cohort_divergence(q[:1], v)) == (1.0, 0.0)
    assert (participation_divergence(q[1:], v), cohort_divergence(q[1:], v)) == (0.0, 1.0)


def test_constants_of_the_alternating_pairs():
    """Golden: A = diag(1, 1/4), pairs of clients taking turns; exact by hand (fractions)."""
    hessian, centers = np.diag([1, 0.25]), np.array([[2, 0], [-2, 4], [0, -4], [0, 0]])
    q = np.tile([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], (4, 1))
    gradients_at_zero = -centers @ hessian
    assert participation_norm(q) ** 2 == pytest.approx(1 / 2)
    assert gradient_divergence(gradients_at_zero) ** 2 == pytest.approx(5)
    assert participation_divergence(q, gradients_at_zero) ** 2 == pytest.approx(1 / 4)
    assert cohort_divergence(q, gradients_at_zero) ** 2 == pytest.approx(17 / 4)
    assert window_divergence(q, gradients_at_zero, 2) == 0


def test_constants_of_the_toy_example():
    """Golden: Wang & Ji 2022, Appendix B.1, one client at a time: rho = 1, nu = delta(3) = 0, beta^2 = d^2 = 4/3."""
    centers = np.array([[-1, 0], [1, 0], [0, math.sqrt(3)]])
    q = np.tile(np.eye(3), (5, 1))
    assert participation_norm(q) == 1 and cohort_divergence(q, -centers) == 0
    assert participation_divergence(q, -centers) ** 2 == pytest.approx(4 / 3)
    assert gradient_divergence(-centers) ** 2 == pytest.approx(4 / 3)
    assert window_divergence(q, -centers, 3) == pytest.approx(0, abs=1e-15)


def test_full_participation_and_identical_clients_have_no_divergence():
    v = np.random.default_rng(0).standard_normal((5, 3))
    full = np.full((4, 5), 0.2)
    assert participation_divergence(full, v) == pytest.approx(0, abs=1e-15)
    assert window_divergence(full, v, 2) == pytest.approx(0, abs=1e-15)
    assert participation_norm(full) ** 2 == pytest.approx(1 / 5)
    q, same = np.eye(5), np.tile([1.0, 2.0, 4.0], (5, 1))
    assert [f(q, same) for f in (participation_divergence, cohort_divergence)] == [0, 0]
    assert window_divergence(q, same, 2) == gradient_divergence(same) == 0


@given(records(), st.floats(0.01, 100))
def test_divergences_scale_with_the_offsets_and_ignore_their_mean(record, a):
    q, v = record
    for constant in (participation_divergence, cohort_divergence):
        moved = constant(q, a * (v + 3.0))
        assert moved == pytest.approx(a * constant(q, v), rel=1e-6, abs=1e-9 * a)


@given(records(), st.randoms(use_true_random=False))
def test_relabeling_clients_changes_no_constant(record, random):
    q, v = record
    order = list(range(q.shape[1]))
    random.shuffle(order)
    for constant in (participation_divergence, cohort_divergence):
        assert constant(q[:, order], v[order]) == pytest.approx(constant(q, v), abs=1e-12)


def test_for_two_clients_bound_15_and_the_median_bound_are_equalities():
    q = np.eye(2)[np.random.default_rng(1).integers(2, size=40)]
    exact = window_divergence(q, [[-3.0], [3.0]], 5)
    assert exact > 0 and median_bound(q, 5, 3.0) == pytest.approx(exact) == bound_15(q, 5, 3.0)


def test_windows_of_a_half_open_record_leave_out_the_incomplete_one():
    q = np.eye(3)[[0, 1, 2, 0, 1]]
    assert_allclose(window_means(q, 2), [[0.5, 0.5, 0], [0.5, 0, 0.5]])
    assert_allclose(window_means(q, 5), [[0.4, 0.4, 0.2]])
    assert window_means(q, 2, aligned=False).shape == (4, 3)


def test_unaligned_windows_of_reshuffled_permutations_are_not_regularized():
    """Eq. (7) is printed for all t0; Proposition 4.2 concerns multiples of P, and fails for the others."""
    q = np.eye(3)[[0, 1, 2, 2, 1, 0]]
    v = np.array([[1.0], [0.0], [-1.0]])
    assert window_divergence(q, v, 3) == pytest.approx(0, abs=1e-15)
    assert window_divergence(q, v, 3, aligned=False) == pytest.approx(2 / 3)


def test_the_average_over_windows_is_of_the_squares():
    q, v = [[1, 0], [1, 0], [1, 0], [0, 1]], [[-1.0], [1.0]]
    assert window_divergence(q, v, 2) == 1.0
    assert mean_window_divergence(q, v, 2) ** 2 == pytest.approx(1 / 2)
    assert median_bound(q, 2, 2.0, average=True) ** 2 == pytest.approx(2)
    assert bound_15(q, 2, 2.0, average=True) ** 2 == pytest.approx(2)


def test_the_expected_window_divergence_is_the_mean_over_outcomes():
    rng = np.random.default_rng(2)
    v = rng.standard_normal((4, 3))
    outcomes = [np.eye(4)[list(places)].mean(axis=0) for places in itertools.product(range(4), repeat=3)]
    weight = rng.dirichlet(np.ones(len(outcomes)))
    mean = weight @ outcomes
    covariance = (weight[:, None] * (outcomes - mean)).T @ (outcomes - mean)
    squares = [float(((q @ (v - v.mean(axis=0))) ** 2).sum()) for q in outcomes]
    assert expected_window_divergence(covariance, v, mean) ** 2 == pytest.approx(weight @ squares)
    without_mean = expected_window_divergence(covariance, v) ** 2
    assert without_mean == pytest.approx(weight @ squares - ((mean @ (v - v.mean(axis=0))) ** 2).sum())
    paper = [4 * ((q - 0.25) ** 2).sum() for q in outcomes]
    assert expected_bound_15(np.diag(covariance), 3.0, mean) ** 2 == pytest.approx(9 * weight @ paper)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        ([[0.5, 0.4]], r"weights q\[0\] sum to 0.9; the theorem needs 1 in every round"),
        ([[0.5, 0.5], [0, 0]], r"weights q\[1\] sum to 0;"),
        ([[0.5, 0.5], [1.5, -0.5]], r"weights q\[1, 1\] = -0.5 is negative"),
        ([[np.nan, 1]], r"weights q\[0, 0\] = nan is not finite"),
        ([[np.inf, 1]], "not finite"),
        ([0.5, 0.5], r"has shape \(2,\); expected \(rounds, clients\)"),
        ([["a"]], "must be numbers"),
        ([], "has shape"),
    ],
)
def test_bad_weights_are_refused_by_every_constant(q, message):
    for constant in (
        lambda: participation_norm(q),
        lambda: participation_divergence(q, [[1.0], [-1.0]]),
        lambda: cohort_divergence(q, [[1.0], [-1.0]]),
        lambda: window_divergence(q, [[1.0], [-1.0]], 1),
        lambda: bound_15(q, 1, 1.0),
        lambda: median_bound(q, 1, 1.0),
    ):
        with pytest.raises(FedboundsError, match=message):
            constant()


def test_weights_may_miss_one_by_a_rounding_error_only():
    check_weights([[0.1] * 10])
    check_weights([[0.5, 0.5 + 9e-10]])
    with pytest.raises(FedboundsError):
        check_weights([[0.5, 0.5 + 2e-9]])
    assert check_weights([[0.3, 0.3]], unit_sum=False).sum() == 0.6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: participation_divergence(q, [[1.0]] * 3), "offsets v are of 3 clients, the weights of 2"),
        (lambda q: participation_divergence(q, [1.0, -1.0]), r"offsets v has shape \(2,\)"),
        (lambda q: participation_divergence(q, [[1.0], [np.nan]]), r"offsets v\[1, 0\] = nan is not finite"),
        (lambda q: window_means(q, 3), r"interval = 3 must be an integer in \[1, 2\]"),
        (lambda q: window_means(q, 0), r"interval = 0 must be"),
        (lambda q: window_means(q, 1.5), r"interval = 1.5 must be"),
        (lambda q: bound_15(q, 1, -1.0), r"d = -1 must be a number in \[0, inf\)"),
        (lambda q: median_bound(q, 1, float("nan")), "d = nan must be"),
        (lambda q: expected_bound_15([-0.1], 1.0), "variance = -0.1 is negative"),
        (lambda q: expected_window_divergence([[1.0, 0.0]], [[1.0]]), r"covariance has shape \(1, 2\)"),
        (lambda q: expected_window_divergence(np.eye(2), [[1.0], [0.0]], [1.0]), r"mean has shape \(1,\)"),
    ],
)
def test_other_bad_input_is_reported_in_one_line(call, message):
    with pytest.raises(FedboundsError, match=message):
        call([[1, 0], [0, 1]])
