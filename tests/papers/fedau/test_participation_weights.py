"""FedAU's weights: the estimator against the paper's pseudo-code, enumeration, exact moments, and planted bugs."""

from __future__ import annotations

import inspect
import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.fedau.weight_error import squared_error, weight_error
from fedbounds.empirical.invariants import BrokenInvariant
from fedbounds.empirical.papers.fedau.invariants import WEIGHT_INVARIANTS, WeightCase, check_weights
from fedbounds.empirical.papers.fedau.participation_weights import ParticipationWeights, weight_paths
from fedbounds.empirical.papers.fedau.pseudocode import fedau_weight, fedau_weights
from fedbounds.empirical.papers.fedau.strategies import weight_cases
from tests.papers.fedau.exact_weights import exact_weight_moments

CUTOFFS = [1, 2, 3, 5, math.inf]


# --- against the pseudo-code ------------------------------------------------------------------------------------------


@given(weight_cases())
def test_the_estimator_computes_the_weights_of_algorithm_2(case):
    paths = weight_paths(case.participated, case.cutoff)
    assert paths == pytest.approx(fedau_weights(case.participated, case.cutoff), rel=1e-13)
    for (t, n), weight in np.ndenumerate(paths):
        assert weight == pytest.approx(fedau_weight(case.participated[:t, n].tolist(), case.cutoff), rel=1e-13)


@given(weight_cases(), st.sampled_from([0.1, 0.5, 1.0]))
def test_the_exponential_variant_forgets_and_its_first_interval_replaces_the_initial_weight(case, rate):
    paths = weight_paths(case.participated, case.cutoff, rate)
    for (t, n), weight in np.ndenumerate(paths):
        expected = fedau_weight(case.participated[:t, n].tolist(), case.cutoff, rate)
        assert weight == pytest.approx(expected, rel=1e-13)


def test_the_exponential_variant_by_hand():
    """Intervals 2, 1, 3 with a = 1/4: 2, then 2 + (1 - 2)/4, then 7/4 + (3 - 7/4)/4."""
    record = [[0], [1], [1], [0], [0], [1], [0]]
    assert weight_paths(record, rate=0.25).ravel().tolist() == [1, 1, 2, 1.75, 1.75, 1.75, 2.0625]
    assert weight_paths(record, rate=1).ravel().tolist() == [1, 1, 2, 1, 1, 1, 3]


@given(weight_cases())
def test_the_weight_is_the_completed_rounds_over_the_completed_intervals(case):
    """omega_t = (t - S)/M, exactly, with M and S counted from the gaps of the record."""
    complete, since = case.counts()
    t = np.arange(len(complete))[:, None]
    expected = np.where(complete > 0, (t - since) / np.maximum(complete, 1), 1.0)
    assert np.array_equal(weight_paths(case.participated, case.cutoff), expected)


def test_the_object_and_its_paths_agree_and_remember_the_same():
    rng = np.random.default_rng(0)
    record = rng.random((40, 6)) < 0.3
    estimate = ParticipationWeights(6, cutoff=4)
    for here, expected in zip(record, weight_paths(record, 4), strict=True):
        assert np.array_equal(estimate.weights, expected)
        estimate.update(here)
    complete, since = WeightCase(np.vstack([record, record[:1]]), 4).counts()
    assert estimate.rounds == 40
    assert np.array_equal(estimate.intervals.completed, complete[-1])
    assert np.array_equal(estimate.intervals.running, since[-1])


def test_many_seeds_at_once_are_as_many_estimators():
    record = np.random.default_rng(1).random((30, 4, 3)) < 0.3
    together = weight_paths(record, cutoff=5)
    for seed in range(4):
        assert np.array_equal(together[:, seed], weight_paths(record[:, seed], cutoff=5))


# --- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "K"), [(Fraction(1, 2), 2), (Fraction(1, 3), 3), (Fraction(1, 10), 2), (Fraction(2, 5), 9)]
)
def test_over_all_records_mean_and_squared_error_are_those_of_the_exact_recursion(p, K):
    """Every record of 9 rounds, with its probability."""
    T = 10
    records = np.array(list(itertools.product([False, True], repeat=T - 1)))
    chance = np.array([float(p) ** row.sum() * float(1 - p) ** (T - 1 - row.sum()) for row in records])
    record = np.vstack([records.T, np.zeros(len(records), dtype=bool)])  # a record is a client
    paths = weight_paths(record, K)
    exact = [(float(mean), float(error)) for mean, error in exact_weight_moments(p, K, T)]
    assert paths @ chance == pytest.approx([mean for mean, _ in exact], rel=1e-12)
    assert ((float(p) * paths - 1) ** 2) @ chance == pytest.approx([error for _, error in exact], rel=1e-11)


def test_the_sampled_weight_error_is_the_exact_one_within_its_standard_error():
    p, K, T, seeds = np.array([0.02, 0.1, 0.5, 1.0]), 20, 200, 400
    rng = np.random.default_rng(2)
    squares = (p * weight_paths(rng.random((T, seeds, len(p))) < p, K) - 1) ** 2
    each = squares.mean(axis=(0, 2))
    assert abs(each.mean() - weight_error(p, K, T)) < 4 * each.std() / math.sqrt(seeds)
    last = squares[-1].mean(axis=0)
    exact = [squared_error(rate, K, T)[-1] for rate in p]
    assert np.all(abs(last - exact) <= 4 * squares[-1].std(axis=0) / math.sqrt(seeds) + 1e-12)


@pytest.mark.parametrize("K", [20, 50, 99, 100, math.inf])
@pytest.mark.parametrize("active", [1, 2, 10, 60, 100])
def test_on_a_periodic_record_the_weight_tends_to_rounds_over_intervals_of_a_cycle(active, K):
    """m active rounds of 100: (m - 1) intervals of one round and ceil((101 - m)/K) for the rest of the cycle."""
    cycles, cycle = 30, 100
    record = np.tile(np.arange(cycle) < active, cycles)[:, None]
    intervals = active - 1 + (1 if math.isinf(K) else math.ceil((101 - active) / K))
    weight = weight_paths(np.vstack([record, record[:2]]), K)[-1, 0]  # right after the first round of a cycle
    first, complete = 1, cycles * intervals
    assert weight == pytest.approx((cycles * cycle + first) / (complete + first))
    assert weight == pytest.approx(100 / intervals, rel=0.05)


# --- the invariants, and the bugs they find ---------------------------------------------------------------------------


def test_the_estimator_and_the_pseudo_code_keep_every_invariant_of_the_weights():
    for run in (weight_paths, fedau_weights):
        report = check_weights(run, examples=40)
        report.raise_if_broken()
        assert [verdict.examples for verdict in report.verdicts] == [40] * len(WEIGHT_INVARIANTS)


@pytest.mark.usefixtures("no_causes")
def test_the_exponential_variant_keeps_every_invariant_but_the_mean():
    report = check_weights(lambda participated, cutoff: weight_paths(participated, cutoff, 0.4), examples=40)
    assert {verdict.name for verdict in report.broken} == {"mean interval", "reference twin"}


def by_hand(participated, cutoff):
    """FedAU's weights as they might stand in a project of yours."""
    rounds, clients = participated.shape
    weights, total, intervals, running = np.ones(clients), np.zeros(clients), np.zeros(clients), np.zeros(clients)
    used = []
    for t in range(rounds):
        used.append(weights.copy())
        running += 1
        done = participated[t] | (running == cutoff)
        total[done] += running[done]
        intervals[done] += 1
        running[done] = 0
        weights[done] = total[done] / intervals[done]
    return np.array(used)


MEAN = "weights[done] = total[done] / intervals[done]"
# what is planted: the code as it should be, the code as it is, and exactly the invariants that it breaks, besides
# "mean interval" and the agreement with the pseudo-code, which all break
MUTANTS = {
    "the round's own participation counts": (
        MEAN,
        f"{MEAN}\n        used[-1] = weights.copy()",
        {"first weights", "limits", "never there", "late cutoff", "change at the end of an interval", "past only"},
    ),
    "one array for all rounds": (
        "used.append(weights.copy())",
        "used.append(weights)",
        {"first weights", "limits", "never there", "late cutoff", "past only"},
    ),
    "no cut-off": (" | (running == cutoff)", "", {"never there", "limits", "cutoff of one"}),
    "a cut-off a round late": (
        "running == cutoff",
        "running == cutoff + 1",
        {"never there", "limits", "cutoff of one", "change at the end of an interval"},
    ),
    "the initial weight is averaged in": (
        "total[done] / intervals[done]",
        "(total[done] + 1) / (intervals[done] + 1)",
        {"never there"},
    ),
    "counters that are not set back": (
        "running[done] = 0",
        "pass",
        {"always there", "limits", "cutoff of one", "change at the end of an interval"},
    ),
    "intervals counted from zero": (
        "running += 1",
        "running += t > 0",
        {"first weights", "always there", "never there", "limits", "cutoff of one", "change at the end of an interval"},
    ),
    "participations in place of intervals": (
        "intervals[done] += 1",
        "intervals = np.maximum(participated[: t + 1].sum(axis=0), 1)",
        {"never there", "limits", "cutoff of one"},
    ),
    "rounds over intervals, whenever asked": (
        MEAN,
        "weights = (t + 1) / np.maximum(intervals, 1)",
        {"never there", "limits", "change at the end of an interval"},
    ),
    "the weights of all clients together": (
        MEAN,
        "weights[:] = total.sum() / max(intervals.sum(), 1)",
        {"first weights", "never there", "limits", "own record only", "change at the end of an interval"},
    ),
}


def mutated(right, wrong):
    source = inspect.getsource(by_hand)
    assert source.count(right) == 1
    namespace = {"np": np}
    exec(source.replace(right, wrong), namespace)
    return namespace["by_hand"]


def test_an_estimator_by_hand_keeps_every_invariant():
    check_weights(by_hand, examples=40, seed=3).raise_if_broken()


@pytest.mark.usefixtures("no_causes")
@pytest.mark.parametrize("bug", MUTANTS)
def test_every_planted_bug_breaks_the_invariants_that_it_should_and_no_other(bug):
    right, wrong, named = MUTANTS[bug]
    broken = {verdict.name for verdict in check_weights(mutated(right, wrong), examples=24).broken}
    assert broken == named | {"mean interval", "reference twin"}


def of_cutoff(own):
    return lambda participated, cutoff: by_hand(participated, own)


@pytest.mark.parametrize("own", [50, 100])
def test_an_estimator_with_a_cutoff_of_its_own_keeps_every_invariant_that_its_cases_ask_for(own):
    report = check_weights(of_cutoff(own), cases=weight_cases(cutoffs=(own,)), examples=40)
    report.raise_if_broken()
    assert report["cutoff of one"].skipped == "no case has a cut-off of 1"
    assert report["late cutoff"].skipped == "no case has an infinite cut-off"


@pytest.mark.parametrize(("own", "given"), [(math.inf, 100), (99, 100), (101, 100), (math.inf, 50), (80, math.inf)])
@pytest.mark.usefixtures("no_causes")
def test_a_given_cutoff_is_exceeded_by_some_record(own, given):
    report = check_weights(of_cutoff(own), cases=weight_cases(cutoffs=(given,)), examples=40)
    assert report["reference twin"].status == "broken"


def test_a_cutoff_that_no_record_exceeds_is_not_compared():
    report = check_weights(of_cutoff(1000), cases=weight_cases(cutoffs=(1000,)), examples=20)
    assert not report.passed and "NOT COMPARED  reference twin: no case has an interval longer" in str(report)


def test_a_broken_invariant_names_the_smallest_record():
    report = check_weights(mutated("running == cutoff", "running == cutoff + 1"), invariants=["never there"])
    found = report["never there"].counterexample
    assert isinstance(found.case, WeightCase)
    assert "cut-off:" in str(report) and "record:" in str(report)
    with pytest.raises(BrokenInvariant, match="never there"):
        report.raise_if_broken()


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (lambda participated, cutoff: None, "the estimator returned None; expected weights"),
        (lambda participated, cutoff: participated[1:] * 1.0, r"returned shape \(2, 2\); expected that of the record"),
        (lambda participated, cutoff: participated / 0.0, "not finite"),
        (lambda participated: participated, r"the run raised TypeError.*called as run\(participated, cutoff\)"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_that_is_no_estimator_is_refused_in_one_line(run, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        check_weights(run)
    assert "\n" not in str(refused.value)


def test_unknown_invariants_and_cases_are_refused_with_what_would_be_right():
    with pytest.raises(FedboundsError, match="did you mean past only"):
        check_weights(weight_paths, invariants=["past olny"])
    with pytest.raises(
        FedboundsError,
        match=r"cases = 3 must be a strategy, like fedbounds.empirical.papers.fedau.strategies.weight_cases\(\)",
    ):
        check_weights(weight_paths, cases=3)


# --- edges and bad input ----------------------------------------------------------------------------------------------


def test_a_client_that_never_takes_part_has_weight_one_and_then_the_cutoff():
    assert weight_paths(np.zeros((7, 1)), cutoff=3).ravel().tolist() == [1, 1, 1, 3, 3, 3, 3]
    assert weight_paths(np.zeros((7, 1)), cutoff=math.inf).ravel().tolist() == [1] * 7


def test_rounds_over_participations_is_the_mean_interval_only_when_the_last_round_was_one():
    """Wang & Ji 2024, Section 3: the record 1, 0, 0 has one complete interval, of length 1, and T/1 = 3."""
    assert weight_paths([[1], [0], [0], [0]])[3, 0] == 1
    assert weight_paths([[0], [0], [1], [0]])[3, 0] == 3


def test_weights_that_were_read_do_not_change_with_a_later_update_and_cannot_be_written():
    estimate = ParticipationWeights(2, cutoff=1)
    first = estimate.weights
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 5
    estimate = ParticipationWeights(2)
    first = estimate.weights
    for _ in range(3):
        estimate.update(np.array([False, False]))
    estimate.update(np.array([True, False]))
    assert first.tolist() == [1, 1] and estimate.weights.tolist() == [4, 1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"cutoff": 0}, "cutoff = 0 must be an integer >= 1"),
        ({"cutoff": 2.5}, "cutoff = 2.5 must be an integer >= 1"),
        ({"cutoff": -math.inf}, "cutoff = -inf must be an integer >= 1"),
        ({"cutoff": math.nan}, "cutoff = nan must be an integer >= 1"),
        ({"cutoff": "50"}, "cutoff = '50' must be an integer >= 1"),
        ({"cutoff": True}, "cutoff = True must be an integer >= 1"),
        ({"rate": 0}, r"rate = 0 must be a number in \(0, 1\]"),
        ({"rate": 1.5}, r"rate = 1.5 must be a number in \[0, 1\]"),
        ({"clients": 0}, "clients = 0 must be an integer >= 1"),
        ({"clients": 2**50}, "needs about"),
    ],
)
def test_numbers_outside_their_domain_are_refused_in_one_line(arguments, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        ParticipationWeights(**{"clients": 3, **arguments})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", [[0, 2], [True, False], np.ones(3), np.ones((1, 3), dtype=bool), None, "all"])
def test_an_update_that_is_not_one_boolean_per_client_is_refused_and_changes_nothing(wrong):
    estimate = ParticipationWeights(3)
    with pytest.raises(FedboundsError, match=r"expected one boolean per client, \(3,\)"):
        estimate.update(wrong)
    assert estimate.rounds == 0 and not estimate.intervals.running.any()


@pytest.mark.parametrize("wrong", [[], [1, 0], np.zeros((0, 3)), np.zeros((3, 0))])
def test_a_record_without_rounds_or_clients_is_refused(wrong):
    with pytest.raises(FedboundsError, match=r"expected \(rounds, clients\)"):
        weight_paths(wrong)


def test_the_estimator_is_at_the_public_api_and_needs_neither_torch_nor_sympy_nor_hypothesis():
    assert fedbounds.ParticipationWeights is ParticipationWeights
    code = "import sys, fedbounds; fedbounds.ParticipationWeights(3); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert not {"torch", "sympy", "scipy", "hypothesis", "sklearn"} & set(loaded)
