"""Every erratum's counterexample, recomputed; every refuted form points at one."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from bounds.papers.arbitrary_participation import RESULTS
from bounds.papers.arbitrary_participation.errata import (
    ERRATA,
    cap_without_rounds,
    chebyshev_for_one_window,
    earlier_rounds_in_lemma_c2,
    interval_is_not_a_whole_number,
    long_run_variance_at_finite_window,
    lost_weight_variance,
    noise_with_memory,
    one_window_is_not_all_windows,
    participation_follows_the_noise,
    scaling_loses_the_speed_up,
    shared_noise,
    step_size_with_a_unit,
    suprema_at_different_rounds,
    tail_without_variance,
    toy_cycle_misses_the_minimiser,
    unaligned_windows,
    vanishing_long_run_variance,
)


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda e: e.id)
def test_the_counterexample_violates_the_claim(erratum):
    claimed, true = erratum.counterexample()
    assert true > claimed


def test_every_refuted_form_names_an_erratum_that_exists():
    ids = {erratum.id for erratum in ERRATA}
    named = {form.refuted_by for result in RESULTS for form in result.forms if form.refuted_by}
    assert named and named <= ids


def test_every_erratum_has_a_name_of_its_own_and_says_what_fails_and_what_holds():
    assert len({erratum.id for erratum in ERRATA}) == len(ERRATA)
    for erratum in ERRATA:
        assert set(erratum.id) <= set("abcdefghijklmnopqrstuvwxyz-.0123456789") and erratum.id[0].isalpha()
        assert erratum.claim and erratum.fails and erratum.instead


def test_the_suprema_add_up_to_twice_the_divergence():
    assert suprema_at_different_rounds() == (1, 2)


def test_two_hundred_windows_are_all_fine_with_probability_below_one_tenth():
    # exact binomial: one window fails with probability 0.01182, 200 windows are all fine with probability 0.093
    _, some_window_fails = one_window_is_not_all_windows()
    assert float(1 - some_window_fails) == pytest.approx(0.093, abs=5e-4)
    assert float(one_window_is_not_all_windows(windows=1)[1]) == pytest.approx(0.01182, abs=5e-6)
    assert one_window_is_not_all_windows(windows=9)[1] > Fraction(1, 10)


@pytest.mark.parametrize(("window", "ratio"), [(5, 2.180), (20, 1.220), (100, 1.044)])
def test_a_negatively_correlated_chain_exceeds_the_long_run_variance_by_the_exact_ratio(window, ratio):
    claimed, true = long_run_variance_at_finite_window(P=window)
    assert float(true / claimed) == pytest.approx(ratio, abs=6e-4)


def test_positive_correlation_stays_below_the_long_run_variance():
    claimed, true = long_run_variance_at_finite_window(r=Fraction(1, 2), P=5)
    assert true < claimed


def test_shared_noise_keeps_the_gradient_at_one_third():
    bound, least = shared_noise()
    assert float(bound) == pytest.approx(0.00203, abs=1e-5)
    assert least == Fraction(1, 3)


def test_chebyshev_for_one_window_holds_for_one_window_and_fails_for_three_hundred():
    # more than 16 of 20 tosses alike: 2 (1 + 20 + 190) outcomes of 2^20
    assert chebyshev_for_one_window(windows=1)[1] == Fraction(2 * 211, 2**20)
    assert chebyshev_for_one_window(windows=200)[1] < Fraction(1, 10) < chebyshev_for_one_window()[1]


@pytest.mark.parametrize("window", [1, 2, 5, 8])
def test_cancelling_weights_leave_the_variance_of_the_two_ends(window):
    # the sum telescopes to (e_last - e_first)/2, so Var(qbar) = 1/(8 P^2), and (7) is four times that
    assert vanishing_long_run_variance(window) == (0, Fraction(4, 8 * window**2))


def test_reversed_orders_visit_one_client_twice_across_the_cycles():
    assert unaligned_windows() == (0, 1)


def test_long_blocks_are_ergodic_from_the_first_round():
    # blocks of 1, 2, 3, ... rounds, one fair coin each: the variance of the mean from t_0 = 0 tends to zero
    def variance(rounds):
        total, block, left = 0, 1, rounds
        while left > 0:
            total, left, block = total + min(block, left) ** 2, left - block, block + 1
        return total / (4 * rounds**2)

    assert [round(variance(10**k), 4) for k in (1, 2, 3, 4)] == [0.075, 0.0225, 0.0074, 0.0024]


def test_the_lost_variance_costs_a_factor_of_1302():
    claimed, true = lost_weight_variance()
    assert float(true / claimed) == pytest.approx(1302.08, abs=0.01)
    assert lost_weight_variance(S=20)[1] > 2 * true  # it grows with the participants


def test_chebyshev_is_tighter_than_hoeffding_for_small_parts_of_many_clients():
    hoeffding, chebyshev = tail_without_variance()[::-1]
    assert hoeffding < math.log(20) / 2 < 1.002 * hoeffding
    assert chebyshev == Fraction(10 * 384, 10**6)


def test_the_cap_on_local_steps_is_far_below_one():
    assert math.sqrt(cap_without_rounds()[0]) == pytest.approx(4.17e-4, abs=5e-7)


def test_after_scaling_the_first_term_grows_with_the_root_of_the_local_steps():
    quarter, true = scaling_loses_the_speed_up()
    upsilon2, T = Fraction(384, 10**6), 10**6
    assert true == 256 * upsilon2**2 * 250**5 * 4 / T  # (16 upsilon^2 N^(5/2) LF sqrt(I/T))^2 at I = 4
    assert true == 16 * quarter


def test_half_the_unit_doubles_the_step_size():
    one, half = step_size_with_a_unit()
    assert half == 4 * one and math.sqrt(one) == pytest.approx(107.3312629199899)


def test_neither_rounding_of_the_interval_keeps_corollary_4_8():
    T, needed = interval_is_not_a_whole_number()
    assert needed == Fraction(45**2, 2) > T
    # 44 rounds: N = 2, d = 1, upsilon^2 = 1/4 in 6 N^2 d^2 upsilon^2/P against 6 d^2/sqrt(N I T)
    assert 6 / math.sqrt(2 * T) < 6 * 4 * 0.25 / 44


def test_lemma_c_2_survives_because_its_sum_has_slack():
    claimed, true = earlier_rounds_in_lemma_c2()
    assert claimed == 1 and true == 1 + Fraction(9, 10) / 12
    factor = 9 / 5 * (math.exp(5 / 9) * math.sqrt(19 / 9) - 1)  # of the unrolled sum, times IP - 1/2
    assert factor == pytest.approx(2.7583, abs=5e-5)
    for P in range(2, 200):
        for rho2 in np.linspace(0, 1, 21):  # S_t <= rho^2, and 1 - S <= 1 in the rounds before
            assert factor * (rho2 + 1 / (6 * P)) <= 3 * (rho2 + (1 - rho2) / (6 * P))


@pytest.mark.parametrize("eta", [1.0, 2.0, 5.0, 10.0])
def test_the_toy_cycle_rests_at_the_same_distance_for_every_amplification(eta):
    z, gamma, x = np.array([[-1, 0], [1, 0], [0, math.sqrt(3)]]), 0.05, np.array([1.0, 2.0])
    for _ in range(300):
        start = x
        for client in z:
            x = x - gamma * (x - client)
        x = start + eta * (x - start)
    distance = np.linalg.norm(x - z.mean(axis=0))
    assert distance == pytest.approx(0.034184, abs=5e-7)
    assert distance == pytest.approx(math.sqrt(toy_cycle_misses_the_minimiser()[1]), rel=1e-9)


def test_choosing_the_noisier_client_keeps_the_gradient_above_one_over_pi():
    bound, least = participation_follows_the_noise()
    assert float(bound) == pytest.approx(0.048, abs=1e-3)
    larger = mpmath.quad(lambda v: 2 * v * mpmath.npdf(v) * mpmath.ncdf(v), [-mpmath.inf, mpmath.inf])
    assert larger == pytest.approx(1 / math.sqrt(math.pi))
    # mean and second moment of x <- x - gamma (x + max of two normals), whose square has mean 1
    gamma, mean, square, lowest = 0.01, -10.0, 100.0, 100.0
    for _ in range(5000):
        square = (1 - gamma) ** 2 * square - 2 * gamma * (1 - gamma) * mean * float(larger) + gamma**2
        mean = (1 - gamma) * mean - gamma * float(larger)
        lowest = min(lowest, square)
        assert mean**2 >= least
    assert lowest == pytest.approx(0.321, abs=1e-3)


def test_noise_with_memory_is_unbiased_at_the_current_point_when_replayed_with_samples():
    bound, least = noise_with_memory()
    assert float(bound) == pytest.approx(0.0201, abs=5e-5)
    assert float(least) == pytest.approx(0.2525, abs=5e-5)
    P, eta, gamma, samples = 100, 1e5, 5e-8, 20_000
    rng = np.random.default_rng(0)
    x, seconds = np.ones(samples), []
    for window in range(4):
        y, fresh, deviation = x, rng.normal(size=samples), x - x.mean()
        fresh -= deviation * np.dot(fresh, deviation) / max(np.dot(deviation, deviation), 1)
        for _ in range(P):
            noise = rng.normal(size=samples)
            if window:  # the fresh normal with as much of the start as makes it uncorrelated with y
                noise = fresh - deviation * np.dot(fresh, y - y.mean()) / np.dot(deviation, y - y.mean())
                assert np.var(noise) == pytest.approx(1, abs=0.03)
                assert abs(np.mean(noise * (y - y.mean()))) < 1e-10
            y = y - gamma * (y + noise)
        x = x + eta * (y - x)
        seconds.append(np.mean(x**2))
    # 1/4 of the square of the mean and of the variance stay, and the coherent noise adds (gamma eta P)^2 = 1/4
    assert seconds == pytest.approx([0.2525, 0.0625 + 0.2506, 0.0156 + 0.3127, 0.0039 + 0.3282], rel=0.03)
    assert min(seconds) > 12 * float(bound)
