"""A run of FedAU given its record: the weight error is that of the record, and the statement conditional on it."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.papers.fedau.accounting import record_weights
from fedbounds.empirical.papers.fedau.algorithms import MIFA, AverageAll, FedAU
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
from fedbounds.empirical.participation import Bernoulli, Cyclic, Recorded
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate

T, K = 60, 6
PRESENT = np.random.default_rng(1).random((T, 4)) < [0.2, 0.5, 0.8, 0.4]
RECORD = PRESENT / 4
SHARES = PRESENT.mean(axis=0)
ALGORITHM = FedAU(0.005, 2, 1.0, K)
PROBLEM = Quadratic([1.0, 0.5], 0.1 * np.arange(8.0).reshape(4, 2), x0=[2.0, 1.0], noise=0.3)
THEOREM = "fedau/theorem-2"
GIVEN = {"L": 1, "F": 5, "sigma": 1, "delta": 1, "G": 3}


def test_the_weights_of_a_record_are_those_of_the_full_matrix():
    """The accountant's sums, against the weights of every round."""
    for rates in (SHARES, np.array([0.2, 0.5, 0.8, 0.4])):
        found, paths = record_weights(PRESENT, K, rates), weight_paths(PRESENT, K)
        for t in range(1, T + 1):
            errors, moment = (rates * paths[:t] - 1) ** 2, (rates * paths[:t] ** 2).mean(axis=1)
            assert found.error[t - 1] == pytest.approx(errors.mean(), abs=1e-12)
            assert found.largest_error[t - 1] == pytest.approx(errors.mean(axis=1).max())
            assert found.moment[t - 1] == pytest.approx(moment.max())
            assert found.mean_moment[t - 1] == pytest.approx(moment.mean())


def test_a_log_and_a_simulation_of_fedau_are_compared_given_their_record():
    assert (~PRESENT.any(axis=1)).any()  # rounds of nobody, which intervals count
    run = simulate(ALGORITHM, PROBLEM, RECORD, T, seeds=range(3), record_participation=True)
    own = confront(run, THEOREM, problem=PROBLEM, participation=RECORD, given={"G": 3})
    log = {"round": run.round, "gradient_norm_squared": run.gradient_norm_squared.mean(axis=0)}
    trace = read_log(log, ALGORITHM, RECORD)
    found = confront(trace, THEOREM, given=GIVEN)
    assert trace.spec["rounds"] == T and "they are kept, as the run of fedau differs without them" in str(trace)
    paths = weight_paths(PRESENT, K)
    for one in (own, found):
        assert float(one.constants["W"].value) == pytest.approx(((SHARES * paths - 1) ** 2).mean())
        assert float(one.constants["Q"].value) == pytest.approx((SHARES * paths**2).mean(axis=1).max())
        assert one.constants["W"].source == one.constants["Q"].source == "estimated"
        assert not one.guarantee and one.measure.given == "participation"
        assert any(note.startswith("conditional on the record of participation") for note in one.notes)
        assert one.evaluation.assumptions["bernoulli-participation"] == "not checked"
    np.testing.assert_allclose(own.measured, found.measured)
    process = confront(trace, THEOREM, given=GIVEN, participation=Bernoulli(4, [0.2, 0.5, 0.8, 0.4]))
    assert process.constants["W"].source == "exact" and process.measure.given == ""
    assert found.bound[-1] < process.bound[-1] and found.valid[-1]  # no path is worse than the worst path


def test_moments_and_a_record_drawn_from_known_rates_are_given_their_record_too():
    exact = confront(moments(ALGORITHM, PROBLEM, RECORD), THEOREM, given={"G": 3})
    assert exact.constants["W"].source == "estimated" and exact.label.startswith("exact given the record")
    process = Bernoulli(4, [0.5, 0.5, 0.8, 0.4])
    run = simulate(ALGORITHM, PROBLEM, process, T, streams={"participation": 3}, record_participation=True)
    found = confront(run, THEOREM, problem=PROBLEM, participation=process, given={"G": 3})
    present = run.participation(0) > 0
    expected = ((np.array(process.rates) * weight_paths(present, K) - 1) ** 2).mean()
    assert float(found.constants["W"].value) == pytest.approx(expected)
    assert found.constants["W"].source == found.constants["Q"].source == "trajectory"
    assert found.evaluation.assumptions["bernoulli-participation"] == "checked" and not found.guarantee


def test_constant_weights_have_the_error_of_the_shares():
    run = simulate(AverageAll(0.01, 2), PROBLEM, RECORD, T)
    found = confront(run, "fedau/theorem-2", problem=PROBLEM, participation=RECORD, given={"G": 3})
    assert float(found.constants["W"].value) == pytest.approx(((SHARES - 1) ** 2).mean())


def test_what_no_record_covers_is_one_line():
    absent = RECORD.copy()
    absent[:, 2] = 0
    for algorithm, record, words in (
        (ALGORITHM, absent, "client 2 never takes part in its 60 rounds, and every result assumes p_n > 0"),
        (MIFA(0.01, 2), RECORD, "adds stored updates"),
    ):
        run = simulate(algorithm, PROBLEM, record, T)
        with pytest.raises(FedboundsError, match=words):
            confront(run, THEOREM, problem=PROBLEM, participation=Recorded(record))
    with pytest.raises(FedboundsError, match="Assumption 4"):
        confront(simulate(ALGORITHM, PROBLEM, Cyclic(4), T), THEOREM, problem=PROBLEM, participation=Cyclic(4))
