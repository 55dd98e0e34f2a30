"""Every erratum's counterexample, recomputed; every refuted form points at one."""

from fractions import Fraction

import pytest

from bounds.papers.arbitrary_participation import RESULTS
from bounds.papers.arbitrary_participation.errata import (
    ERRATA,
    long_run_variance_at_finite_window,
    one_window_is_not_all_windows,
    shared_noise,
    suprema_at_different_rounds,
)


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda e: e.id)
def test_the_counterexample_violates_the_claim(erratum):
    claimed, true = erratum.counterexample()
    assert true > claimed


def test_every_refuted_form_names_an_erratum_that_exists():
    ids = {erratum.id for erratum in ERRATA}
    named = {form.refuted_by for result in RESULTS for form in result.forms if form.refuted_by}
    assert named and named <= ids


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
