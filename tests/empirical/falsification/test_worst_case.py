"""Worst cases by performance estimation: known constants, special cases, units, and runs that stay below."""

import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification.worst_case import AGREE, Estimation, worst_case

FEDAVG, THEOREM = "generalized-fedavg", "arbitrary-participation/theorem-3.1"


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("step", [0.5, 1.0, 1.5])
def test_the_sum_over_gradient_descent_is_the_known_one(rounds, step):
    found = worst_case(FEDAVG, rounds=rounds, local_step=step, gap_to="last", measure="average")
    assert found.attained and rounds * found.value == pytest.approx(2 / (step * (2 - step)), rel=1e-6)


@pytest.mark.parametrize("rounds", [1, 3, 6])
@pytest.mark.parametrize(("to", "more"), [("last", 0), ("infimum", 2)])
def test_the_least_gradient_of_gradient_descent_is_the_known_one(rounds, to, more):
    found = worst_case(FEDAVG, rounds=rounds, local_step=1.0, gap_to=to, measure="minimum to the last")
    assert found.value == pytest.approx(4 / (3 * rounds + more), rel=1e-6)
    assert found.primal == pytest.approx(found.value, rel=AGREE)


def test_one_local_step_of_all_clients_is_gradient_descent_of_their_mean():
    several = worst_case(FEDAVG, rounds=2, local_step=1.0, weights=[[0.5, 0.5]], measure="minimum to the last")
    assert several.value == pytest.approx(4 / (3 * 2 + 2), rel=1e-6) and not several.attained


@pytest.mark.parametrize("to", ["last", "infimum"])
def test_local_steps_of_one_client_are_gradient_descent_seen_now_and_then(to):
    descent = Estimation()
    x, seen = descent.start, []
    for t in range(5):
        gradient = descent.objective(x)[0]
        seen += [gradient**2] if t in (0, 2) else []
        x = x - 0.3 * gradient
    descent.starts(to)
    known, _ = descent.worst(seen)
    local = worst_case(FEDAVG, rounds=2, local_step=0.3, local_steps=2, gap_to=to)
    assert local.value == pytest.approx(known, rel=1e-6)


def test_an_interval_of_two_with_a_multiplier_is_one_round_of_the_sum():
    descent = Estimation()
    first = descent.objective(descent.start)[0]
    middle = descent.start - 0.1 * first
    second = descent.objective(middle)[0]
    descent.objective(descent.start - 0.3 * (first + second))
    descent.starts("last")
    known, _ = descent.worst([first**2, second**2])
    two = worst_case(FEDAVG, rounds=2, local_step=0.1, interval=2, server_multiplier=3.0, gap_to="last")
    assert two.value == pytest.approx(known, rel=1e-6)


@settings(max_examples=8)
@given(st.floats(0.2, 5), st.floats(0.2, 5))
def test_units_change_nothing(length, height):
    """x in other units and f in others: L grows by height/length^2, a squared gradient by height^2/length^2."""
    setting = dict(rounds=2, local_steps=2, server_multiplier=2.0)
    plain = worst_case(FEDAVG, local_step=0.2, **setting)
    there = worst_case(
        FEDAVG, local_step=0.2 * length**2 / height, smoothness=height / length**2, gap=height, **setting
    )
    assert there.value == pytest.approx(plain.value * height**2 / length**2, rel=1e-5)


@settings(max_examples=60)
@given(st.floats(0.3, 3), st.floats(-3, 3), st.floats(-1, 1))
def test_no_run_exceeds_the_worst_case(frequency, start, tilt):
    """f(x) = -cos(w x + tilt)/w^2: as smooth as allowed, and convex half of the way."""
    value = least_of_three_rounds()

    def gradient(x):
        return np.sin(frequency * x + tilt) / frequency

    gap = (1 - np.cos(frequency * start + tilt)) / frequency**2
    x, seen = start, []
    for _ in range(3):
        seen.append(gradient(x) ** 2)
        y = x
        for _ in range(2):
            y = y - 0.25 * gradient(y)
        x = x + 1.5 * (y - x)
    assert min(seen) <= value * gap * (1 + 1e-6) + 1e-15


@lru_cache(maxsize=1)
def least_of_three_rounds():
    return worst_case(FEDAVG, rounds=3, local_steps=2, local_step=0.25, server_multiplier=1.5).value


def test_the_theorem_is_above_its_worst_case_and_not_by_far():
    found = worst_case(FEDAVG, rounds=2, local_steps=2, local_step=1 / 24, server_multiplier=6.0)
    assert 0.4 < found.ratio(THEOREM, "sharp") < 0.45
    cohort = worst_case(
        FEDAVG,
        rounds=4,
        local_step=1 / 24,
        interval=2,
        server_multiplier=6.0,
        weights=[[1, 0], [0, 1]],
        beta=1.0,
        nu=0.0,
        delta=0.0,
    )
    assert not cohort.attained and 0.3 < cohort.ratio(THEOREM, "sharp") < 0.4


def test_more_divergence_is_worse():
    setting = dict(rounds=4, local_step=1 / 24, interval=2, server_multiplier=6.0, nu=0.0, delta=0.0)
    values = [worst_case(FEDAVG, weights=[[1, 0], [0, 1]], beta=beta, **setting).value for beta in (0.5, 1.0, 2.0)]
    assert values == sorted(values) and values[0] < 0.999 * values[-1]


def test_tdcd_with_one_step_is_gradient_descent_whatever_the_silos():
    for silos in (1, 2):
        found = worst_case("tdcd", rounds=2, local_step=0.25, silos=silos)
        assert 2 * found.value == pytest.approx(2 / (0.25 * (2 - 0.25)), rel=1e-6)


def test_tdcd_with_local_steps_stays_below_its_theorem():
    found = worst_case("tdcd", rounds=1, local_step=1 / 16, local_steps=2)
    assert 0.25 < found.ratio("tdcd/theorem-1", "repaired") < 0.3
    assert found.ratio("tdcd/theorem-1", "repaired") < found.ratio("tdcd/theorem-1", "sharp:B3") < 1


def test_tdcd_with_clients_that_are_alike_has_one_and_with_others_more_to_lose():
    one, alike, *apart = (
        worst_case("tdcd", rounds=1, blocks=8, local_step=1 / 16, local_steps=2, clients=clients, heterogeneity=root)
        for clients, root in ((1, 2.0), (2, 0.0), (2, 0.5), (2, 2.0))
    )
    assert alike.value == pytest.approx(one.value, rel=1e-5) and one.constants["S"] == 0
    assert alike.value < 0.999 * apart[0].value < 0.998 * apart[1].value
    assert 1 > one.ratio("tdcd/theorem-1") > apart[0].ratio("tdcd/theorem-1") > apart[1].ratio("tdcd/theorem-1")


@pytest.mark.parametrize(
    ("method", "setting", "says"),
    [
        ("fedavg", {}, "generalized-fedavg"),
        (FEDAVG, {"rounds": 3, "interval": 2, "local_step": 0.1}, "multiple of interval"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "weights": [[0.5, 0.2]]}, "sum to 1"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "weights": "x"}, "weights = 'x' must be a row of numbers"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "gap": 0}, "gap = 0"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "smoothness": -1}, "smoothness"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "measure": "last"}, "minimum"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "gap_to": "first"}, "infimum"),
        (
            FEDAVG,
            {"rounds": 1, "blocks": 2, "weights": [[0.5, 0.5], [1, 0]], "local_step": 0.1, "gap_to": "last"},
            "whole periods of 2",
        ),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "noise": math.inf}, "noise = inf"),
        (FEDAVG, {"rounds": 1, "local_step": "a"}, "local_step"),
        (FEDAVG, {"rounds": 1.5, "local_step": 0.1}, "rounds = 1.5"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "beta": math.nan}, "beta = nan"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "nu": -1}, "nu = -1"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "server_multiplier": 0}, "server_multiplier = 0"),
        (FEDAVG, {"rounds": 1, "local_steps": 2}, "local_step"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "nois": 1}, "did you mean noise"),
        ("tdcd", {"rounds": 0, "local_step": 0.1}, "rounds = 0"),
        ("fedmrn-analysis", {"iterations": 1, "step": 0.1, "gradient_bound": -1}, "gradient_bound = -1"),
        ("tdcd", {"rounds": 1, "local_step": 0.1, "heterogeneity": -1}, "heterogeneity = -1"),
    ],
)
def test_what_makes_no_sense_is_refused(method, setting, says):
    with pytest.raises(FedboundsError, match=says):
        worst_case(method, **setting)


@pytest.mark.parametrize(
    ("method", "setting", "key", "form", "says"),
    [
        (FEDAVG, {}, THEOREM, "printed", "hides constants"),
        (FEDAVG, {"measure": "average"}, THEOREM, "sharp", "bounds the minimum over rounds"),
        (FEDAVG, {}, "fedau/lemma-b.3.2", "sharp", "of another paper: this worst case is for arbitrary-par"),
        (FEDAVG, {}, "arbitrary-participation/lemma-c.1", "sharp", "this worst case is of the minimum over rounds"),
        ("tdcd", {}, "tdcd/theorem-1", "printed", "first R iterates"),
    ],
)
def test_a_ratio_is_to_a_bound_on_the_same_left_hand_side(method, setting, key, form, says):
    found = worst_case(method, rounds=1, local_step=0.01, **setting)
    with pytest.raises(FedboundsError, match=says):
        found.ratio(key, form)


def test_the_least_is_below_a_bound_on_the_average():
    setting = dict(rounds=2, local_step=0.05, measure="minimum", gap_to="last")
    least, mean = (worst_case("tdcd", **{**setting, "measure": m}) for m in ("minimum", "average"))
    assert least.ratio("tdcd/theorem-1") <= mean.ratio("tdcd/theorem-1") * (1 + 1e-6)


def test_blocks_of_whole_periods_bound_the_run_at_once():
    setting = dict(local_step=0.1, weights=[[0.5, 0.5], [1, 0]], beta=1.0, delta=1.0, gap_to="last", measure="average")
    at_once = worst_case(FEDAVG, rounds=4, **setting)
    assert at_once.value <= worst_case(FEDAVG, rounds=2, blocks=2, **setting).value * (1 + AGREE)


def test_a_bound_whose_condition_fails_says_nothing():
    with pytest.raises(FedboundsError, match="fails"):
        worst_case(FEDAVG, rounds=1, local_step=0.5).ratio(THEOREM, "sharp")
