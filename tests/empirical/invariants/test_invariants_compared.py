"""A check tries every size of case, and a comparison with the reference that is not made is no pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.invariants import BrokenInvariant, InvariantSides
from fedbounds.empirical.invariants.averaging import AveragingCase
from fedbounds.empirical.invariants.coverage import SizeClass, classes_tried, with_size_classes
from fedbounds.empirical.invariants.search import Subject, search
from fedbounds.empirical.invariants.strategies import SIZES, averaging_cases, cases
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg, reference_run
from fedbounds.empirical.papers.fedau.strategies import weight_cases
from tests.empirical.invariants.correct_implementations import fedau_with_its_own_weights, mifa, plain_fedavg

FEW = {"examples": 8}


def sized(strategy):
    """A case of each size class."""
    return [each.exact.example() for each in classes_tried(strategy, 50)]


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_the_sizes_cover_what_the_pages_say():
    assert {size.clients for size in SIZES} == {*range(1, 8), 12}
    assert {size.local_steps for size in SIZES} == {*range(1, 11), 25}
    assert {size.interval for size in SIZES} == set(range(1, 9))
    assert max(size.rounds for size in SIZES) == 130
    tried = sized(cases(empty_rounds=True))
    assert [(c.problem.clients, c.rounds, c.local_steps, c.interval) for c in tried] == [tuple(s) for s in SIZES]
    cohorts = {(case.problem.clients, n) for case in tried for n in (case.weights > 0).sum(axis=1)}
    assert cohorts >= {(N, K) for N in range(1, 8) for K in range(1, N + 1)} | {(N, 0) for N in range(2, 8)}
    steps = sized(averaging_cases())
    every = {(N, K) for N in range(1, 8) for K in range(1, N + 1)}
    assert {(len(c.shares), len(c.cohort)) for c in steps} == every | {(12, 11)}
    records = sized(weight_cases())
    assert max(len(case.participated) for case in records) == 143
    assert (
        sum(case.participated[:, 1:].sum(axis=0).max() > 20 for case in records if case.participated.shape[1] > 2) > 3
    )


def test_a_restriction_of_the_cases_holds_for_every_size():
    wanted = cases(local_steps=(1, 2), intervals=(1,), multipliers=(1.0,), participation=("everyone",))
    tried = []

    def note(problem, weights, *, local_steps, multiplier, interval, **numbers):
        tried.append((local_steps, multiplier, interval, (weights > 0).all(), weights.shape))
        numbers |= {"local_steps": local_steps, "multiplier": multiplier, "interval": interval}
        return generalized_fedavg(problem, weights, **numbers)

    check_invariants(note, invariants=["reference twin"], cases=wanted).raise_if_broken()
    tried = tried[2:]  # the first is tried whatever the cases are
    assert {(I, eta, P, everyone) for I, eta, P, everyone, _ in tried[-50:]} == {(1, 1, 1, True), (2, 1, 1, True)}
    assert max(shape[0] for *_, shape in tried) == 130 and max(shape[1] for *_, shape in tried) == 12


def test_what_shows_in_late_rounds_alone_is_found_and_shrunk():
    def late(problem, weights, *, rounds, **numbers):
        models = generalized_fedavg(problem, weights, rounds=rounds, **numbers)
        models[10:] += 1
        return models

    report = check_invariants(late, invariants=["reference twin"])
    found = report["reference twin"].counterexample
    assert found.case.rounds == 10 and found.case.problem.clients == 1
    assert found.message.startswith("at t = 10:")


def test_fedau_of_unknown_cutoff_is_not_compared_and_no_pass():
    report = check_invariants(fedau_with_its_own_weights, algorithm="fedau", **FEW)
    assert report.broken == () and report["reference twin"].status == "not compared" and not report.passed
    first = str(report).splitlines()[0]
    assert first.startswith("16 invariants, none broken, 9 skipped, NOT COMPARED with the reference: give cutoff=")
    assert "NOT COMPARED  reference twin: give cutoff=, or name the parameter cutoff in the run" in str(report)
    with pytest.raises(BrokenInvariant, match="NOT COMPARED with the reference: give cutoff="):
        report.raise_if_broken()
    check_invariants(fedau_with_its_own_weights, algorithm="fedau", cutoff=3, **FEW).raise_if_broken()
    named = check_invariants(reference_named, algorithm="fedau", **FEW)
    assert named.passed and named["reference twin"].status == "held"


def reference_named(problem, weights, *, cutoff, **numbers):
    return reference_run("fedau")(problem, weights, cutoff=cutoff, **numbers)


def test_no_cutoff_makes_fedau_of_what_is_not(no_causes):
    """Without cutoff= it is compared with every cut-off: wrong is wrong, right stays unverified."""
    assert check_invariants(mifa, algorithm="fedau", invariants=["reference twin"]).broken
    wrong = check_invariants(fedau_with_its_own_weights, algorithm="fedau", invariants=["reference twin"], cutoff=4)
    assert wrong["reference twin"].status == "broken"


def fedau_of(cutoff):
    def run(problem, weights, *, rounds, step_size, local_steps, multiplier, **_):
        numbers = {"rounds": rounds, "step_size": step_size, "local_steps": local_steps, "multiplier": multiplier}
        return reference_run("fedau")(problem, weights, cutoff=cutoff, **numbers)

    return run


AGAINST_ITS_TWIN = {"algorithm": "fedau", "invariants": ["reference twin"], **FEW}


@pytest.mark.parametrize("own", [math.inf, 49, 51, 40])
def test_a_given_cutoff_is_exceeded_by_some_case(own, no_causes):
    assert check_invariants(fedau_of(own), cutoff=50, **AGAINST_ITS_TWIN).broken
    one = cases(multipliers=(1.0,))
    assert check_invariants(fedau_of(own), cutoff=50, cases=one, **AGAINST_ITS_TWIN).broken
    assert own == math.inf or check_invariants(fedau_of(own), cutoff=math.inf, **AGAINST_ITS_TWIN).broken


def test_the_given_cutoff_is_kept_by_the_right_one():
    check_invariants(fedau_of(50), cutoff=50, **AGAINST_ITS_TWIN).raise_if_broken()


def test_a_cutoff_that_no_case_exceeds_is_not_compared():
    own = {"algorithm": "fedau", "invariants": ["reference twin", "translation"]}
    few = cases(empty_rounds=True).filter(lambda case: case.rounds < 9)  # without size classes
    for cutoff, given in ((50, few), (1000, None)):
        report = check_invariants(fedau_of(cutoff), cutoff=cutoff, cases=given, **own, **FEW)
        assert not report.passed
        assert "NOT COMPARED with the reference: no case has an interval longer than the cut-off" in str(report)


def test_a_wrong_cutoff_is_shrunk_to_a_few_rounds_of_one_client():
    report = check_invariants(fedau_of(6), algorithm="fedau", cutoff=5, invariants=["reference twin"])
    found = report["reference twin"].counterexample
    assert found.case.problem.clients == 1 and found.case.rounds < 9 and found.case.problem.noises is None


def test_a_given_interval_is_completed_by_some_case(no_causes):
    def never(problem, weights, *, multiplier, interval, **numbers):
        return generalized_fedavg(problem, weights, multiplier=1.0, interval=interval, **numbers)

    long = cases(intervals=(50,))
    assert check_invariants(never, cases=long, invariants=["reference twin"], **FEW).broken
    check_invariants(generalized_fedavg, cases=long, invariants=["reference twin"], **FEW).raise_if_broken()
    short = long.filter(lambda case: case.rounds < 50)
    assert not check_invariants(generalized_fedavg, cases=short, invariants=["reference twin"], **FEW).passed


def test_a_run_that_reads_the_cutoff_from_its_keywords_is_compared(no_causes):
    names = {"algorithm": "fedau", "invariants": ["reference twin", "translation"], **FEW}
    check_invariants(lambda problem, q, **n: fedau_of(n["cutoff"])(problem, q, **n), **names).raise_if_broken()
    late = names | {"examples": 50}
    wrong = check_invariants(lambda problem, q, **n: fedau_of(n["cutoff"] + 1)(problem, q, **n), **late)
    assert [verdict.name for verdict in wrong.broken] == ["reference twin"]
    own = check_invariants(lambda problem, q, **n: fedau_of(n.get("cutoff", 50))(problem, q, **n), **names)
    assert own["reference twin"].status == "not compared"


def test_an_algorithm_without_reference_needs_a_twin():
    report = check_invariants(mifa, algorithm="other", **FEW)
    assert not report.passed and report.not_compared[0].not_compared == "give twin=, a slow implementation of your own"
    check_invariants(mifa, algorithm="other", twin=mifa, **FEW).raise_if_broken()
    check_invariants(mifa, algorithm="other", invariants=["translation"], **FEW).raise_if_broken()


@pytest.mark.parametrize("kind", ["average-participating", "average-all", "fedvarp", "mifa", "frozen-gradient"])
def test_the_references_of_the_other_algorithms_are_compared_by_default(kind, no_causes):
    run = reference_run(kind)
    check_invariants(lambda problem, q, **numbers: run(problem, q, **numbers), algorithm=kind, **FEW).raise_if_broken()
    report = check_invariants(plain_fedavg, algorithm=kind, invariants=["reference twin"])
    assert report["reference twin"].status == "broken"


def test_numbers_that_an_algorithm_does_not_have_are_refused():
    with pytest.raises(FedboundsError, match="no argument 'cutof'; fedau has cutoff"):
        check_invariants(mifa, algorithm="fedau", cutof=3)
    with pytest.raises(FedboundsError, match="no argument 'cutoff'; mifa has no numbers of its own"):
        check_invariants(mifa, algorithm="mifa", cutoff=3)
    with pytest.raises(FedboundsError, match="cutoff = 0"):
        check_invariants(mifa, algorithm="fedau", cutoff=0)
    with pytest.raises(FedboundsError, match="unknown algorithm"):
        check_invariants(mifa, algorithm="fedua", cutoff=math.inf)


def test_a_comparison_without_cases_is_no_pass():
    def held(execute, case):
        return InvariantSides(np.zeros((1, 1)), np.zeros((1, 1)))

    subject = Subject(lambda case: None, lambda case, run: np.zeros((1, 1)), lambda case: None)
    report = search(subject, {"reference twin": held}, st.integers().filter(lambda n: n != n), 10, 0, 1e-9)
    assert not report.passed and "NOT COMPARED with the reference: no case was drawn" in str(report)


def test_a_run_that_changes_what_it_is_given_is_broken(no_causes):
    def normalizing(problem, weights, **numbers):
        weights *= 1 + 1e-3
        return generalized_fedavg(problem, weights / (1 + 1e-3), **numbers)

    report = check_invariants(normalizing, invariants=["reference twin"], **FEW)
    assert "changed its argument `weights` in place; copy it before changing it" in str(report)
    step = AveragingCase(np.zeros(1), np.ones((2, 1)), np.full(2, 0.5), np.array([0, 1]))
    with pytest.raises(FedboundsError, match="the server changed its argument `shares` in place"):
        step.next_model(lambda model, updates, shares, cohort: (shares.fill(1), model)[1])


def test_a_run_that_asks_for_noise_is_given_noise(no_shrinking):
    def shared(problem, weights, *, step_size, local_steps, **numbers):
        models = [problem.x0]
        for t in range(len(weights)):
            x = models[-1]
            for n in np.flatnonzero(weights[t]):
                y = models[-1]
                for _ in range(local_steps):
                    y = y - step_size * (problem.gradient(n, y) + problem.noise(t, n, 0))
                x = x + weights[t, n] * (y - models[-1])
            models.append(x)
        return models

    report = check_invariants(shared, invariants=["reference twin"])
    assert report.cause == "it gives all local steps the same noise"


def test_small_cases_come_first_and_fewer_examples_try_fewer_sizes():
    tried = []

    def note(execute, case):
        tried.append(case)
        return InvariantSides(np.zeros((1, 1)), np.zeros((1, 1)))

    sizes = [SizeClass(st.just(100 + k), st.integers(0, 100 + k)) for k in range(10)]
    subject = Subject(lambda case: None, lambda case, run: np.zeros((1, 1)), lambda case: None)
    for examples, large in ((50, 10), (80, 10), (10, 2)):
        tried.clear()
        search(subject, {"noted": note}, with_size_classes(st.integers(0, 9), sizes), examples, 0, 1e-9)
        assert tried[-large:] == [100 + k for k in range(large)] and max(tried[:-large]) < 10
