"""The errata of Das et al. (2022) against numbers that are computed otherwise."""

from fractions import Fraction

import numpy as np
import pytest

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.tdcd.errata_algorithm import (
    drift,
    first_iterates,
    fixed_point,
    one_silos_labels,
    rest_point,
)
from fedbounds.bounds.papers.tdcd.errata_rates import best_in_time, given_step, stationary_square
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.theory.registry import load

THEOREM, LEMMA_2 = load("tdcd/theorem-1"), load("tdcd/lemma-2")


@pytest.mark.parametrize(("Q", "R", "ratio"), [(8, 50, 1.598), (8, 400, 2.016), (32, 400, 7.67)])
def test_the_literal_left_side_exceeds_its_bound_by_the_golden_ratios(Q, R, ratio):
    claimed, true = first_iterates(Q, R)
    assert float(true / claimed) == pytest.approx(ratio, abs=5e-3)
    c = dict(L=1, Lmax=1, S=0, Q=Q, R=R, eta=1 / (8 * Q), Delta=float(claimed) * R / 32)
    assert float(evaluate(THEOREM, c, form="printed", strict=False).value) == pytest.approx(float(claimed), rel=1e-12)


def test_the_literal_left_side_is_false_from_four_local_steps_on():
    """The ratio tends to 4 Q^2/(16 Q - 1), which exceeds 1 from Q = 4 on."""
    for Q in range(1, 9):
        claimed, true = first_iterates(Q, 600)
        assert (true > claimed) == (Q >= 4) == (4 * Q**2 > 16 * Q - 1)


def test_the_drift_of_a_silo_that_is_not_counted_is_the_golden_one():
    """Curvatures 1/100 and 1, Lmax = 1/100, Q = 5, eta = 10: 4.36e7 against 6."""
    claimed, true = drift(Fraction(1), Fraction(10), 5, Fraction(1, 100))
    assert (claimed, true) == (6, 43573000)
    got = evaluate(LEMMA_2, dict(Lmax=0.01, Q=5, eta=10, G0=1), form="printed")
    assert float(got.value) == pytest.approx(6, rel=1e-14) and got.valid
    assert true <= float(evaluate(LEMMA_2, dict(Lmax=1, Q=5, eta=10, G0=1), form="sharp:growth").value)


def rest(curvatures, centers, weights, Q, eta, rounds=2000):
    """Where clients with these quadratics bring TDCD to rest, by running it."""
    x, h, c = -0.4, np.asarray(curvatures), np.asarray(centers)
    for _ in range(rounds):
        own = np.full(len(h), x)
        for _ in range(Q):
            own = own - eta * h * (own - c)
        x = float(np.dot(weights, own))
    return x


@pytest.mark.parametrize(("Q", "golden", "squared"), [(2, None, None), (20, -0.485169, 8.80e-4)])
def test_unequal_curvatures_come_to_rest_where_the_replay_says_and_not_at_the_minimizer(Q, golden, squared):
    """The second is the golden case of twenty local steps with eta Q = 1/24."""
    x, gradient, _ = fixed_point(Q, Fraction(3))
    assert rest([1, 3], [1, -1], [0.5, 0.5], Q, 1 / (24 * Q)) == pytest.approx(float(x), abs=1e-12)
    assert abs(float(x) + 0.5) > 1e-3 and float(gradient) == pytest.approx(2 * (float(x) + 0.5), rel=1e-9)
    if golden is not None:
        assert float(x) == pytest.approx(golden, abs=5e-7)
        assert float(gradient**2) == pytest.approx(squared, rel=1e-3)


def test_shards_of_unequal_sizes_settle_between_their_own_minimizers():
    assert rest([1, 1], [0, 4], [0.5, 0.5], 1, 1 / 8) == pytest.approx(float(rest_point((1, 3), (0, 4))[0]), abs=1e-12)
    assert rest([1, 1], [0, 4], [0.25, 0.75], 1, 1 / 8) == pytest.approx(3, abs=1e-12)  # with weights by size


def test_derivatives_of_the_start_leave_a_silo_elsewhere_after_the_round():
    """Two local steps; the others' embedding stays 0."""
    renewed, once = one_silos_labels(2)
    own = 0.0
    for _ in range(2):
        own -= 0.25 * (0.0 + own - 1)
    assert (own, 0.5) == (float(renewed), float(once))


@pytest.mark.parametrize(("Q", "ratio"), [(2, 1.998), (5, 4.994), (10, 9.987), (50, 49.93)])
def test_the_golden_ratios_of_noise_floors_at_one_eighth(Q, ratio):
    """u = eta Q = 1/8: one draw of noise a round against a draw in every step, both at that step size."""
    eta = Fraction(1, 8 * Q)
    assert float(stationary_square(eta, Q) / stationary_square(eta, 1)) == pytest.approx(ratio, rel=2e-4)


def test_the_bounds_in_time_of_the_replay_are_those_of_the_forms():
    network = dict(L=1, Lmax=1, Deltainf=1, tcomm=100, tcomp=1, W=10**6)
    for Q in (1, 2, 10, 100):
        best = optimize("tdcd/wall-clock", network | dict(S=0, Q=Q), ["eta"], form="repaired")
        assert best.value == pytest.approx(float(best_in_time(Q)), rel=1e-9)
        given = evaluate(load("tdcd/wall-clock"), network | dict(S=1, Q=Q, eta=1e-4), form="repaired")
        assert float(given.value) == pytest.approx(float(given_step(Q)), rel=1e-12)
