"""Closed forms of the variance of a window mean, against enumeration, exact recursions and the paper's limits."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation.window_variance import (
    markov_correlation,
    markov_window_factor,
    periodic_window,
    ragged_places,
    without_replacement_variance,
)
from tests.bounds.participation.reference_variances import (
    group_markov_variance,
    long_run_variance,
    markov_long_run_variance,
    periodic_groups_variance,
    permutation_variance,
    stationary_window_variance,
)


@pytest.mark.parametrize("N", [1, 2, 3, 5])
def test_sampling_without_replacement_has_the_enumerated_variance(N):
    for S in range(1, N + 1):
        with_client = Fraction(comb(N - 1, S - 1), comb(N, S))
        variance = with_client * Fraction(1, S**2) - (with_client / S) ** 2
        assert without_replacement_variance(N, S) == pytest.approx(float(variance), abs=1e-16)
        assert without_replacement_variance(N, S, 7) == pytest.approx(float(variance) / 7, abs=1e-16)


@pytest.mark.parametrize("reshuffle", [True, False])
@pytest.mark.parametrize(("N", "S"), [(1, 1), (3, 1), (3, 2), (4, 2), (4, 3), (3, 3)])
def test_permutations_have_the_enumerated_variance_in_every_window(N, S, reshuffle):
    orders = list(itertools.permutations(range(N)))
    for start, interval in itertools.product(range(4), range(1, 5)):
        first, last = start * S, (start + interval) * S
        cycles = range(first // N, (last - 1) // N + 1)
        places = [[k % N for k in range(first, last) if k // N == cycle] for cycle in cycles]
        # client 0's count in each cycle is independent of the others, or the same permutation serves them all
        counts = np.array([[sum(order[k] == 0 for k in of_cycle) for order in orders] for of_cycle in places])
        variance = counts.var(axis=1).sum() if reshuffle else counts.sum(axis=0).var()
        computed = permutation_variance(N, S, interval, start, reshuffle=reshuffle)
        assert computed == pytest.approx(variance / (S * interval) ** 2, abs=1e-15)


def test_whole_cycles_of_a_permutation_have_no_variance():
    for N, S, P in [(250, 10, 25), (6, 4, 3), (7, 3, 7), (12, 8, 3)]:
        assert permutation_variance(N, S, P) == permutation_variance(N, S, 4 * P, start=5 * P) == 0
        assert permutation_variance(N, S, P, start=P + 1) > 0
        assert permutation_variance(N, S, P, start=P + 1, reshuffle=False) == 0


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 9))
def test_ragged_places_are_counted_cycle_by_cycle(first, taken, size):
    held = np.bincount(np.arange(first, first + taken) // size, minlength=1)
    expected = sum(m * (size - m) / (size - 1) for m in held) if size > 1 else 0
    assert ragged_places(first, first + taken, size) == pytest.approx(expected)


@pytest.mark.parametrize(("groups", "leave"), [(2, 0.9), (2, 0.5), (2, 1.0), (3, 0.2), (4, 0.75), (5, 1.0), (3, 0.0)])
def test_markov_variance_equals_the_exact_recursion_of_the_chain(groups, leave):
    """Golden by recursion: E[1_g(0) 1_g(p)] from powers of the transition matrix, with r < 0 among the cases."""
    move = np.full((groups, groups), leave / (groups - 1))
    np.fill_diagonal(move, 1 - leave)
    joint = [np.linalg.matrix_power(move, p)[0, 0] / groups for p in range(12)]
    autocovariance = np.array(joint) - 1 / groups**2
    size = 3
    for P in range(1, 13):
        total = sum(autocovariance[abs(t - u)] for t in range(P) for u in range(P))
        expected = total / P**2 / size**2
        assert group_markov_variance(groups, size, leave, P) == pytest.approx(expected, abs=1e-15)
        assert stationary_window_variance(autocovariance, P) / size**2 == pytest.approx(expected, abs=1e-15)


@given(st.floats(-1, 1), st.integers(1, 300))
def test_the_window_factor_is_its_defining_sum(r, P):
    lag = np.arange(1, P)
    expected = (1 + 2 * ((1 - lag / P) * r**lag).sum()) / P
    assert markov_window_factor(r, P) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    assert markov_window_factor(r, P) <= 1 + 1e-12


@pytest.mark.parametrize(("P", "ratio"), [(5, 2.180), (20, 1.220), (100, 1.044)])
def test_the_limit_of_proposition_4_6_is_too_small_at_every_finite_window_when_r_is_negative(P, ratio):
    """Two states, correlation -0.8: true variance over the paper's (exact sums, to three decimals)."""
    true = group_markov_variance(2, 1, 0.9, P)
    assert markov_correlation(2, 0.9) == pytest.approx(-0.8)
    assert true / (markov_long_run_variance(2, 1, 0.9) / P) == pytest.approx(ratio, abs=5e-4)
    assert group_markov_variance(2, 1, 0.25, P) < markov_long_run_variance(2, 1, 0.25) / P  # r = 0.5


def test_a_long_run_variance_of_zero_does_not_make_window_means_constant():
    """q_t = 1/2 + (e_t - e_{t-1})/2 with fair signs e = +-1/2: the window variance is 1/(8 P^2) by telescoping."""
    autocovariance = [1 / 8, -1 / 16] + [0.0] * 30
    assert long_run_variance(autocovariance) == 0
    for P in (1, 2, 3, 10, 32):
        assert stationary_window_variance(autocovariance, P) == pytest.approx(1 / (8 * P**2))


@pytest.mark.parametrize(("groups", "leave"), [(2, 0.3), (2, 0.9), (5, 0.2), (3, 1.0)])
def test_the_long_run_variance_of_the_chain_is_the_sum_over_lags(groups, leave):
    r = markov_correlation(groups, leave)
    autocovariance = group_markov_variance(groups, 4, leave) * r ** np.arange(400)
    assert markov_long_run_variance(groups, 4, leave) == pytest.approx(long_run_variance(autocovariance))
    assert group_markov_variance(groups, 4, leave, 10**6) * 10**6 == pytest.approx(
        markov_long_run_variance(groups, 4, leave), rel=1e-4
    )


def test_periodic_shares_are_counted_round_by_round():
    sizes, slot = [3, 2, 4], 4
    for start, interval in itertools.product([0, 1, 3, 4, 9], [1, 3, 12, 25]):
        shares = []
        for offset in range(1, slot + 1):
            turns = [0] * offset + [1 + k // slot for k in range(60)]
            active = np.array(turns[start : start + interval]) % 3
            shares.append(np.bincount(active, minlength=3) / interval)
            fixed = periodic_window(sizes, 2, slot, interval, start, offset=offset)
            assert fixed.share == pytest.approx(shares[-1]) and not fixed.between.any()
        window = periodic_window(sizes, 2, slot, interval, start)
        assert window.share == pytest.approx(np.mean(shares, axis=0))
        assert window.between == pytest.approx(np.cov(np.transpose(shares), bias=True), abs=1e-15)


def test_windows_begin_with_the_run_unless_reported_otherwise():
    assert permutation_variance(7, 3, 2) == permutation_variance(7, 3, 2, 0) != permutation_variance(7, 3, 2, 1)
    for moments in (
        lambda *at: periodic_window([3, 2], 2, 4, 5, *at).share,
        lambda *at: periodic_groups_variance([3, 2], 2, 4, 5, *at),
    ):
        assert np.array_equal(moments(), moments(0)) and not np.array_equal(moments(), moments(1))


def test_one_group_that_is_always_available_is_ordinary_sampling():
    for slot in (1, 3, 100):
        independent = periodic_groups_variance([10], 4, slot, 7, 2, permutation=False)
        assert independent == pytest.approx([without_replacement_variance(10, 4, 7)])
    one_slot = periodic_groups_variance([10], 4, 50, 7, 2, offset=50)
    assert one_slot == pytest.approx([permutation_variance(10, 4, 7, 2)])


def test_the_paper_s_periodic_windows_are_nearly_but_not_exactly_regularized():
    """Wang & Ji 2022, Section 6: 50 clients a group, 10 a round, slots of 100 rounds, windows of P = 500 rounds."""
    ragged = periodic_groups_variance([50] * 5, 10, 100, 500)
    assert ragged.max() > 0
    assert ragged.max() < without_replacement_variance(250, 10, 500) / 50
    assert not periodic_groups_variance([50] * 5, 10, 100, 500, offset=35).any()  # whole cycles of 5 rounds
    assert periodic_groups_variance([50] * 5, 10, 100, 500, offset=37).any()  # the paper's example


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: without_replacement_variance(3, 4), r"participants = 4 must be an integer in \[1, 3\]"),
        (lambda: without_replacement_variance(0, 1), "clients = 0"),
        (lambda: without_replacement_variance(3, 1, 0), "interval = 0"),
        (lambda: permutation_variance(3, 1, 1, -1), "start = -1"),
        (lambda: markov_correlation(1, 0.5), "groups = 1 must be an integer >= 2"),
        (lambda: markov_correlation(2, 1.5), r"leave = 1.5 must be a number in \[0, 1\]"),
        (lambda: markov_window_factor(1.5, 2), "correlation = 1.5"),
        (lambda: markov_long_run_variance(2, 1, 0.0), "does not mix"),
        (lambda: markov_long_run_variance(2, 1, 1.0), "does not mix"),
        (lambda: stationary_window_variance([1.0], 2), "autocovariance has 1 lags; interval = 2 needs lags 0 to 1"),
        (lambda: stationary_window_variance([np.nan], 1), "not finite"),
        (lambda: periodic_window([2, 3], 3, 4, 5), r"participants = 3 must be an integer in \[1, 2\]"),
        (lambda: periodic_window([2, 3], 1, 0, 5), "slot = 0"),
        (lambda: periodic_window([2, 3], 1, 4, 5, offset=5), r"offset = 5 must be an integer in \[1, 4\]"),
        (lambda: periodic_window([2, 0], 1, 4, 5), "group size = 0"),
    ],
)
def test_bad_input_is_reported_in_one_line(call, message):
    with pytest.raises(FedboundsError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
