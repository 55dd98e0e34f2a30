"""Rounds where constants that follow from the rounds rise and fall: blocks, against one number after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fedau.weight_error import (
    largest_weight_error,
    largest_weight_moment,
    mean_weight_moment,
    weight_error,
)
from fedbounds.bounds.search import rounds_with_tuning
from fedbounds.bounds.search.effort import EvaluationBudget
from fedbounds.bounds.search.optimize import Minimum, NotAttained, optimize
from fedbounds.bounds.search.optimize_answers import Undecided
from fedbounds.bounds.search.round_blocks import BlockSearch, RelaxedBound, dependence_known
from fedbounds.bounds.search.rounds import Between, Never, Reached, rounds
from fedbounds.bounds.search.threshold import first_reached
from fedbounds.bounds.theory.registry import load

KEY = "fedau/theorem-2"
SMALL = {"L": 1, "F": 0.02, "I": 1, "sigma": 0.1, "delta": 0.1, "G": 0.1, "p": 0.3, "N": 10, "K": 6}
USUAL = {"L": 1, "F": 5, "I": 5, "sigma": 1, "delta": 1, "G": 2, "p": 0.1, "N": 100}
STEPS = {"optimize": "gamma,eta", "within": {"eta": (1, 100)}}


def best(constants, T):
    answer = optimize(KEY, {**constants, "T": T}, ["gamma", "eta"])
    return (
        answer.value if isinstance(answer, Minimum) else answer.infimum if isinstance(answer, NotAttained) else np.inf
    )


@pytest.mark.parametrize("epsilon", [0.5, 0.2, 0.1])
def test_the_rounds_are_those_of_one_number_after_another(epsilon):
    """W falls from 0.49 at T = 1 to its limit, but not in every round."""
    answer = rounds(KEY, epsilon, SMALL, optimize="gamma,eta")
    one_by_one = next(T for T in range(1, 200) if best(SMALL, T) <= epsilon)
    assert isinstance(answer, Reached) and answer.rounds == one_by_one


@pytest.mark.parametrize("epsilon", [0.5, 0.2, 0.1])
def test_at_given_step_sizes_too(epsilon):
    known = SMALL | {"gamma": 0.02, "eta": 1.5}
    answer = rounds(KEY, epsilon, known)

    def reaches(T):
        found = evaluate(KEY, known | {"T": T}, strict=False)
        return found.valid and found.value <= epsilon

    assert isinstance(answer, Reached) and "excluded in blocks" in answer.method
    assert answer.rounds == next(T for T in range(1, 100) if reaches(T))


@pytest.mark.parametrize("steps", [{"gamma": 0.02, "eta": 1.5}, {}])
def test_a_cut_off_may_be_infinite(steps):
    answer = rounds(KEY, 5.0, SMALL | {"K": np.inf} | steps, optimize=() if steps else "gamma,eta")
    assert isinstance(answer, Reached) and answer.cost.iterations == answer.rounds


@pytest.mark.parametrize(("first", "last"), [(2, 40), (10, 11), (30, 120)])
def test_the_relaxed_bound_is_below_the_best_one_of_the_whole_block(first, last):
    theorem = load(KEY)
    relaxed = RelaxedBound(theorem, theorem.form(), "T", SMALL, ("W", "Q", "Qmean"))
    relaxed.hold(first, last)
    answer = optimize(relaxed.result, {**SMALL, "T": last}, ["gamma", "eta"])
    lower = answer.value if isinstance(answer, Minimum) else answer.infimum
    assert 0 < lower <= min(best(SMALL, T) for T in {first, first + 1, (first + last) // 2, last - 1, last})


def test_a_weight_error_that_stays_is_never_below_the_target():
    answer = rounds(KEY, 0.1, {**USUAL, "K": 20}, **STEPS)
    assert isinstance(answer, Never) and answer.floor == pytest.approx(1.33028, rel=1e-5)
    assert "the weight error (1.33028) does not fall with T" in answer.why


def test_more_effort_never_gives_a_wider_answer():
    low, high = 0.0, np.inf
    for effort in (0.05, 0.2, 1.0):
        answer = rounds(KEY, 0.1, {**USUAL, "K": 200}, effort=effort, **STEPS)
        ends = (answer.low, answer.high) if isinstance(answer, Between) else (answer.rounds, answer.rounds)
        assert low <= ends[0] <= ends[1] <= high
        low, high = ends
    assert isinstance(answer, Reached) and answer.rounds == 406730
    assert answer.at["eta"] == 100 and answer.evaluation.value <= 0.1


def test_an_answer_that_is_not_final_has_step_sizes_that_reach_the_target():
    answer = rounds(KEY, 0.1, {**USUAL, "K": 200}, effort=0.1, **STEPS)
    assert isinstance(answer, Between) and set(answer.at) == {"gamma", "eta"}
    assert answer.evaluation.valid and answer.evaluation.value <= 0.1
    assert answer.to_dict()["at"] == dict(answer.at)


@settings(max_examples=60, deadline=None)
@given(
    p=st.lists(st.floats(0.02, 1.0), min_size=1, max_size=4),
    K=st.integers(1, 30),
    first=st.integers(1, 60),
    more=st.integers(0, 200),
)
def test_how_the_weight_statistics_depend_on_the_rounds(p, K, first, more):
    """What the rules of the paper declare: T times a mean over T rounds never falls, and a maximum never falls."""
    p, last = np.array(p), first + more
    for mean in (weight_error, mean_weight_moment):
        assert last * mean(p, K, last) >= first * mean(p, K, first) * (1 - 1e-12)
    for maximum in (largest_weight_moment, largest_weight_error):
        assert maximum(p, K, last) >= maximum(p, K, first)
    declared = {rule.name: rule.over_rounds for rule in load(KEY).form("sharp").derived if "T" in rule.inputs}
    assert declared == {"W": "mean", "Q": "maximum", "Qmean": "mean"}


def test_rounds_at_which_a_search_finds_no_choice_do_not_reach(monkeypatch):
    """What a search does not find is neither an answer nor a reason to exclude a block."""
    monkeypatch.setattr(rounds_with_tuning, "choose", lambda *args, **named: Undecided("nothing found"))
    answer = rounds(KEY, 0.5, SMALL, optimize="gamma,eta", effort=0.01)
    assert isinstance(answer, Between) and answer.high == np.inf and answer.low < 100


def test_only_a_declared_dependence_is_used():
    form = load(KEY).form()
    assert dependence_known(form, ("W", "Q"), ["gamma", "eta"]) and not dependence_known(form, (), ["gamma"])
    assert not dependence_known(form, ("W", "Q"), ["gamma", "K"])  # another W for every K
    assert not dependence_known(load("fedau/corollary-4").form(), ("K",), [])


@given(numbers=st.lists(st.floats(0.01, 100), min_size=1, max_size=60), least=st.integers(1, 5))
def test_blocks_find_the_first_number_of_any_sequence(numbers, least):
    """With exact minima of blocks, the search is exact."""
    ratios = dict(enumerate(numbers, start=least))
    most = max(ratios)

    def excludes(first, last):
        return min(ratios[t] for t in range(first, last + 1)) > 1

    search = BlockSearch(lambda t: ratios[t], excludes, least, most)
    expected = next((t for t in ratios if ratios[t] <= 1), None)
    assert search.run() == (expected is not None)
    assert search.least == (most + 1 if expected is None else expected)


@given(at=st.integers(1, 2**50), least=st.integers(1, 1000))
def test_a_number_that_reaches_is_found_near_the_first_one(at, least):
    found = first_reached(lambda T: max(at, least) <= T, EvaluationBudget.of(1), least)
    assert max(at, least) <= found <= max(at, least) * 1.02 + 1
    assert first_reached(lambda T: False, EvaluationBudget.of(1), least) is None
