"""Tuning: the whole grid, beyond its edges, never further than it may, and never on what is judged."""

import math
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.sweep import resolve
from fedbounds.figures.charts.paper_gallery import traces_of
from fedbounds.figures.charts.tuning import (
    EXTENSIONS,
    level_with_drift,
    search,
    stretches,
    tune,
    tune_by_runs,
    tuning_seeds,
)

GRID = {"a": (0.1, 1.0, 10.0), "b": (1.0, 2.0)}


def distance(*best):
    return lambda settings: [
        sum((value / target - 1) ** 2 for value, target in zip(one.values(), best, strict=True)) for one in settings
    ]


def test_every_combination_is_tried_once():
    found = tune(GRID, distance(1.0, 2.0), extensions=0)
    assert [tuple(one.values()) for one, _ in found.tried] == [(a, b) for a in GRID["a"] for b in GRID["b"]]
    assert found.winner == {"a": 1.0, "b": 2.0} and found.edges == ("b",)
    assert "still at the edge of its grid: b" in found.words


def test_a_winner_at_the_edge_extends_the_grid():
    found = tune(GRID, distance(1000.0, 4.0))
    assert found.winner == {"a": 1000.0, "b": 4.0} and not found.edges
    assert found.searched == {"a": (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0), "b": (1.0, 2.0, 4.0, 8.0)}
    assert len(found.tried) == 24


def test_it_stops_and_says_so():
    found = tune({"a": (1.0, 2.0)}, lambda settings: [-one["a"] for one in settings])
    assert found.winner["a"] == 2.0 ** (1 + EXTENSIONS) and found.edges == ("a",)


def test_where_all_diverge_it_looks_below():
    found = tune({"a": (1.0, 2.0)}, lambda settings: [inf if one["a"] > 0.3 else 1 / one["a"] for one in settings])
    assert found.winner["a"] == 0.25


def test_one_value_is_held_and_nothing_is_tuned_for_free():
    assert tune({"a": (3.0,)}, lambda settings: [0.0 for _ in settings]).edges == ()


@pytest.mark.parametrize("values", [(2.0, 1.0), (1.0, 1.0), ()])
def test_a_grid_in_disorder(values):
    with pytest.raises(FedboundsError, match="ascending order"):
        tune({"a": values}, lambda settings: [0.0 for _ in settings])


def test_a_score_that_is_no_number():
    with pytest.raises(FedboundsError, match="must score infinity"):
        tune({"a": (1.0,)}, lambda settings: [float("nan") for _ in settings])


@given(st.integers(-3, 3))
def test_a_factor_in_the_step_moves_the_winner_by_it(power):
    found = tune(GRID, distance(10.0**power, 2.0))
    assert found.winner["a"] == pytest.approx(10.0**power, rel=1e-9)


def test_tuning_seeds_are_none_that_are_judged():
    assert not set(tuning_seeds(50)) & set(range(1000)) and len(set(tuning_seeds(50))) == 50


def tuning_sweep(algorithms):
    document = {
        "name": "tuning",
        "rounds": 30,
        "seeds": tuning_seeds(2),
        "problem": {"kind": "images", "clients": 10, "network": "linear"},
        "participation": {"kind": "full", "clients": 10},
        "algorithms": dict(algorithms),
    }
    return resolve(document, "tuning")


def test_a_method_is_tuned_by_its_runs_on_seeds_of_its_own(tmp_path):
    seen = []

    def run(sweep):
        seen.extend(seed for task in sweep.tasks for seed in task["seeds"])
        return traces_of(sweep, tmp_path)

    def method(setting):
        return {"kind": "fedavg", "local_steps": 2, **setting}

    found = tune_by_runs(run, tuning_sweep, method, {"local_step_size": (1e-3, 1e-2)}, cycle=5)
    assert found.winner["local_step_size"] > 1e-2 and not found.edges
    assert set(seen) == {1000, 1001}


def search_one(start, score, *arguments, **named):
    (found,) = search({0: start}, lambda some: {0: score(some[0])}, *arguments, **named).values()
    return found


@pytest.mark.parametrize("best", [(100.0, 0.01), (1.0, 1.0), (3.0, 50.0)])
def test_a_search_comes_near_from_afar_within_its_budget(best):
    def score(one):
        return sum(abs(math.log(v / b)) for v, b in zip(one.values(), best, strict=True))

    found = search_one({"a": 1.0, "b": 1.0}, score, 40)
    assert len(found.tried) <= 40
    assert all(0.8 < found.winner[name] / target < 1.25 for name, target in zip("ab", best, strict=True))


@pytest.mark.parametrize("budget", [1, 5, 9])
def test_a_search_never_exceeds_its_budget_and_walks_down_from_what_diverges(budget):
    found = search_one({"a": 1.0, "b": 1.0}, lambda one: inf if one["a"] > 0.2 else one["b"], budget)
    assert len(found.tried) == budget and (budget < 3 or found.winner["a"] < 0.2)
    with pytest.raises(FedboundsError, match="budget = 0"):
        search_one({"a": 1.0}, lambda one: 0.0, 0)
    with pytest.raises(FedboundsError, match="score infinity"):
        search_one({"a": 1.0}, lambda one: math.nan, 3)


def test_a_search_goes_on_beyond_an_edge_and_says_where_it_still_stands():
    falling = lambda one: -one["a"]  # noqa: E731
    short, longer = search_one({"a": 1.0}, falling, 3), search_one({"a": 1.0}, falling, 3, extensions=2)
    assert (short.winner["a"], longer.winner["a"]) == (9.0, 81.0) and len(longer.tried) == 5
    assert longer.summary()["at the edge"] == ["a"] and longer.summary()["least and largest tried"]["a"] == [1.0, 81.0]
    inside = search_one({"a": 1.0}, lambda one: abs(math.log(one["a"] / 2)), 8, extensions=5)
    assert not inside.edges


def made(values):
    return [SimpleNamespace(arrays={"round": np.arange(0, 50, 10), "phi": np.array([row])}) for row in values]


def test_what_still_moves_is_worse_than_it_looks_and_what_diverged_is_worst():
    level, falls = [9, 9, 3, 3, 3.0], [9, 9, 9, 5, 3.0]
    assert level_with_drift(made([level, level]), 10, "phi") == 3
    assert level_with_drift(made([level, falls]), 10, "phi") == 3 + 1
    assert level_with_drift(made([level, [9, 9, 9, np.nan, np.nan]]), 10, "phi") == inf
    before, after = stretches(made([falls]), 20, "phi")
    assert (before[0], after[0]) == (9, 4)


def test_a_search_spends_nothing_on_what_hardly_matters():
    hardly = lambda one: 1 + 1e-6 * one["a"] + abs(one["b"] - 9)  # noqa: E731
    found = search_one({"a": 1.0, "b": 1.0}, hardly, 12, extensions=6, gain=1e-3)
    assert found.winner["b"] == 9 and found.searched["a"][0] > 0.1 * found.winner["a"]


def test_searches_side_by_side_find_what_each_finds_alone():
    best = {"near": 2.0, "far": 500.0, "nowhere": None}

    def score(key, one):
        return inf if best[key] is None else abs(math.log(one["a"] / best[key]))

    calls = []

    def scores(some):
        calls.append(set(some))
        return {key: score(key, one) for key, one in some.items()}

    together = search({key: {"a": 1.0} for key in best}, scores, 9, extensions=3)
    alone = {key: search_one({"a": 1.0}, lambda one, key=key: score(key, one), 9, extensions=3) for key in best}
    assert together == alone
    assert len(calls) == max(len(one.tried) for one in alone.values())  # one sweep for a setting of each


def test_equal_runs_under_two_labels_are_found_under_both(tmp_path):
    method = {"kind": "fedavg", "local_steps": 2, "local_step_size": 0.01}
    runs = traces_of(tuning_sweep({"one": method, "same": method}), tmp_path)
    assert {label: len(traces) for label, traces in runs.items()} == {"one": 1, "same": 1}
