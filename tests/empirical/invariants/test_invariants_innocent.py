"""No invariant accuses a correct implementation, and what does not apply to it is skipped with the reason."""

from __future__ import annotations

import math

import pytest

from fedbounds.empirical.invariants.strategies import cases
from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
from fedbounds.empirical.papers.fed_norm_sgda.invariants import check_minimax
from fedbounds.empirical.papers.fed_norm_sgda.strategies import game_cases
from fedbounds.empirical.papers.fedau.invariants import check_weights
from fedbounds.empirical.papers.fedau.strategies import weight_cases
from tests.empirical.invariants.correct_implementations import (
    GALLERY,
    GAMES,
    WEIGHTS,
    fedau_without_a_cutoff,
    momentum_free_sgda,
    plain_fedavg,
    plain_fedavg_that_names_what_it_ignores,
    sgda_plus_without_momentum,
)
from tests.empirical.invariants.drawn_cases import drawn_cases

EXAMPLES = 20


def test_there_are_thirty_three_correct_implementations():
    assert len(GALLERY) >= 20
    assert len(GALLERY) + len(GAMES) + len(WEIGHTS) == 33


@pytest.mark.parametrize("name", GALLERY)
def test_no_invariant_flags_a_correct_implementation(name):
    run, arguments = GALLERY[name]
    report = check_invariants(run, examples=EXAMPLES, **arguments)
    assert report.broken == () and report.cause is None, str(report)
    tried = [verdict for verdict in report.verdicts if verdict.skipped is None]
    assert {"relabeled clients", "translation", "rotation", "scaling", "determinism"} <= {v.name for v in tried}
    assert all(verdict.examples == tried[0].examples > 0 for verdict in tried)


@pytest.mark.parametrize("name", GAMES)
def test_no_invariant_flags_a_correct_minimax_implementation(name):
    run, arguments = GAMES[name]
    report = check_minimax(run, examples=EXAMPLES, **arguments)
    assert report.broken == () and report.cause is None, str(report)
    assert report["reference twin"].status == report["translation"].status == "held"


@pytest.mark.parametrize("name", WEIGHTS)
def test_no_invariant_flags_a_correct_estimator(name):
    run, arguments = WEIGHTS[name]
    report = check_weights(run, examples=EXAMPLES, **arguments)
    assert report.broken == () and report.cause is None, str(report)


def test_what_an_algorithm_does_without_is_skipped_with_the_reason():
    report = check_invariants(plain_fedavg, examples=EXAMPLES)
    assert report.without == ("no multiplier (eta = 1)", "no interval (P = 1)")
    assert str(report).splitlines()[:2] == [
        "16 invariants, none broken, 3 skipped",
        "cases have no multiplier (eta = 1), no interval (P = 1): "
        "the run names no such parameter, and values change nothing",
    ]
    assert "\nskipped frozen gradient limit: no case has a multiplier other than 1\n" in str(report)
    assert {v.name for v in report.skipped} == {"frozen gradient limit", "plain multiplier", "weights as given"}
    games = check_minimax(momentum_free_sgda, examples=EXAMPLES)
    assert games.without == ("no momentum (rho = 0)", "no snapshots")
    assert games["snapshots of every round"].skipped == "no case has snapshots"
    weights = check_weights(fedau_without_a_cutoff, cases=weight_cases(cutoffs=(math.inf,)))
    assert weights["cutoff of one"].skipped == "no case has a finite cut-off"


def test_a_parameter_that_is_named_and_ignored_is_a_bug_and_its_cause_leads():
    run = plain_fedavg_that_names_what_it_ignores
    names = ["two sided step sizes", "summed displacements", "reference twin"]
    report = check_invariants(run, invariants=names, examples=EXAMPLES, cases=drawn_cases(cases))
    assert report.without == () and len(report.broken) == 3
    assert str(report).splitlines()[1] == (
        "likely cause: it ignores the multiplier (if it has none: cases(multipliers=(1.0,)))"
    )
    names, games_drawn = ["reference twin", "rotation"], drawn_cases(game_cases)
    games = check_minimax(sgda_plus_without_momentum, invariants=names, examples=EXAMPLES, cases=games_drawn)
    assert games.cause == "it ignores the momentum (if it has none: game_cases(momenta=(0.0,)))"
    weights = check_weights(fedau_without_a_cutoff, invariants=["limits", "never there"], examples=EXAMPLES)
    assert weights.cause == (
        "it ignores the cut-off (if it has none: weight_cases(cutoffs=(math.inf,)); "
        "if it has one of its own, K: weight_cases(cutoffs=(K,)))"
    )


def test_an_unnamed_parameter_that_matters_is_not_done_without():
    """It passes all numbers on, with a multiplier that is never 1."""

    def passes_on(problem, weights, **numbers):
        return generalized_fedavg(problem, weights, **numbers | {"multiplier": 2 * numbers["multiplier"]})

    report = check_invariants(passes_on, invariants=["plain multiplier", "anchor form"], examples=EXAMPLES)
    assert report.without == () and "plain multiplier" in {verdict.name for verdict in report.broken}
