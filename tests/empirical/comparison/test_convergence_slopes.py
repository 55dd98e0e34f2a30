"""Rates: fitted slopes against planted power laws, and where a bound changes against closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Rational

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.compare_run import confront_family
from fedbounds.empirical.comparison.convergence_slopes import Rate, Slope, changes, first, fit_slope
from fedbounds.empirical.participation import Bernoulli, Cyclic
from fedbounds.empirical.problems import random_bounded_gradient, random_quadratic
from fedbounds.empirical.simulation.simulate import simulate

KNOWING = load("arbitrary-participation/corollary-3.2")
ROUNDS = (60, 240, 960)


def family(corollary=KNOWING, noise=0.5, form="explicit", rounds=ROUNDS, **more):
    problem = random_quadratic(6, 3, noise=noise, initial_gap=1.0, seed=0)
    q = Cyclic(6, 3).matrix(max(rounds), np.random.default_rng(0))
    return confront_family(corollary, problem, q, rounds, local_steps=2, interval=3, form=form, **more)


@pytest.mark.parametrize("power", [-1.0, -0.5, 0.0, 0.25])
def test_the_slope_of_a_power_law_is_its_exponent(power):
    T = np.array([10, 25, 400, 6000])
    slope = fit_slope(T, 3.0 * T**power)
    assert slope.value == pytest.approx(power, abs=1e-12) and slope.low == slope.value == slope.high
    assert not slope.seeds


@pytest.mark.parametrize("seeds", [3, 5, 16])
@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_the_interval_of_a_noisy_power_law_covers_its_exponent_as_often_as_it_says(seeds, shared):
    rng, T, tries = np.random.default_rng(seeds), np.geomspace(100, 6400, 5), 1000
    hits = 0
    for _ in range(tries):
        noise = 0.2 * rng.standard_normal((seeds, len(T))) + shared * rng.standard_normal((seeds, 1))
        samples = 7 * T**-0.5 * np.exp(noise)
        slope = fit_slope(T, samples.mean(axis=0), samples)
        hits += slope.low <= -0.5 <= slope.high
    assert 0.93 < hits / tries < 0.97


def test_a_slope_is_at_most_an_exponent_only_if_the_whole_interval_is():
    assert Slope(-0.6, -0.65, -0.55, 5).at_most(-0.5) is True
    assert Slope(-0.5, -0.55, -0.45, 5).at_most(-0.5) is None
    assert Slope(-0.4, -0.45, -0.35, 5).at_most(-0.5) is False
    assert Slope(-0.4999, -0.4999, -0.4999).at_most(-0.5) is True  # exact, and reached in the limit only
    assert Slope(-0.48, -0.48, -0.48).at_most(-0.5) is False


def test_a_slope_is_written_with_three_decimals_and_its_interval_if_it_has_one():
    assert str(Slope(-0.5004, -0.5004, -0.5004)) == "-0.500"
    assert str(Slope(-0.4961, -0.4987, -0.0001, 5)) == "-0.496 [-0.499, 0.000]"


def test_a_slope_of_one_point_or_of_a_diverged_run_is_refused():
    with pytest.raises(FedboundsError, match="at least two"):
        fit_slope(np.array([10, 10]), np.array([1.0, 2.0]))
    with pytest.raises(FedboundsError, match="diverged"):
        fit_slope(np.array([10, 20]), np.array([1.0, np.inf]))


def test_bisection_finds_the_least_whole_number():
    for edge in (2, 17, 99, 100):
        assert first(lambda T, edge=edge: edge <= T, 1, 100) == edge


def test_the_largest_term_changes_where_the_closed_form_says():
    c = family()
    k = {name: float(c.constants[name].value) for name in ("L", "F", "I", "P", "rho", "sigma")}
    # 12 rho sigma sqrt(L F / (I T)) = 16 L P F / T
    T = (16 * k["L"] * k["P"] * k["F"]) ** 2 * k["I"] / (12 * k["rho"] * k["sigma"]) ** 2 / (k["L"] * k["F"])
    (change,) = Rate(c).changes
    assert (change.before, change.after) == ("initial gap", "noise")
    assert change.rounds == np.ceil(T) and change.rounds > ROUNDS[0]
    found = changes(lambda T: {"c": 1e-3 + 0 * T, "b": 1 / np.sqrt(T), "a": 100 / T}, 1)
    assert [(c.rounds, c.before, c.after) for c in found] == [(10**4, "a", "b"), (10**6, "b", "c")]


def test_the_conditions_hold_from_where_the_closed_form_says():
    c = family(load("arbitrary-participation/corollary-3.3"), rounds=(6, 60))
    k = {name: float(c.constants[name].value) for name in ("L", "F", "I", "P", "rho")}
    assert Rate(c).covered == np.ceil(4 * k["L"] * k["I"] * k["P"] ** 2 * k["F"] / k["rho"] ** 2)
    assert not c.valid[0]


def test_the_predicted_exponent_is_that_of_the_term_that_leads_in_the_end():
    assert (Rate(family()).predicted, Rate(family()).leading) == (-0.5, "noise")
    assert (Rate(family(noise=0.0)).predicted, Rate(family(noise=0.0)).leading) == (-1.0, "initial gap")
    sharp = Rate(family(form="sharp"))
    assert sharp.predicted == -0.5 and sharp.doubling(np.array([10**9]))[0] == pytest.approx(-0.5, abs=1e-3)


def test_the_regime_is_where_the_bound_falls_like_the_prediction():
    one = Rate(family())
    T = one.regime
    assert T is not None
    assert abs(one.doubling(np.array([T]))[0] + 0.5) <= 0.05 < abs(one.doubling(np.array([T - 1]))[0] + 0.5)
    # a / sqrt(T) + b / T with b / a = sqrt(T0) has this slope over a doubling where
    T0 = one.changes[0].rounds
    share = np.sqrt(T0 / T)  # of b / T in a / sqrt(T)
    assert np.log2((0.5**0.5 + share / 2) / (1 + share)) == pytest.approx(-0.55, abs=2e-3)


def test_measured_falls_as_predicted_and_a_wrong_exponent_is_noticed():
    c = family(rounds=(960, 3840, 15360))
    assert Rate(c).as_fast is True
    curved = replace(c, measured=c.measured * np.array([8.0, 1.0, 1.5]))  # steep at first, too slow in the end
    assert Rate(curved).measured.at_most(-0.5) and Rate(curved).as_fast is None
    form = c.form
    T = next(s for s in form.symbols if str(s) == "T")
    wrong = replace(form, terms=tuple(replace(t, expression=t.expression / T ** Rational(1, 4)) for t in form.terms))
    others = tuple(wrong if f.name == form.name else f for f in c.result.forms)
    mutated = replace(c, form=wrong, result=replace(c.result, forms=others))
    assert Rate(mutated).predicted == -0.75 and Rate(mutated).as_fast is False


@pytest.mark.parametrize("form", ["explicit", "sharp"])
def test_the_bound_beyond_the_runs_is_the_bound_of_the_runs(form):
    c = family(form=form)
    assert Rate(c).bound(c.rounds) == pytest.approx(c.bound, rel=1e-12)


def test_what_follows_from_the_number_of_rounds_follows_anew():
    problem, coins = random_bounded_gradient(4, 2, noise=0.1), Bernoulli(4, [0.3, 0.5, 0.7, 0.9], normalize=False)
    for form in ("repaired", "sharp"):
        c = confront_family(
            "fedau/corollary-4", problem, coins, (20, 90), local_steps=2, form=form,
            run=lambda algorithm, T: simulate(algorithm, problem, coins, T, seeds=range(2)),
        )  # fmt: skip
        assert Rate(c).bound(c.rounds) == pytest.approx(c.bound, rel=1e-12)  # with another K and W at each T


def test_the_samples_of_a_family_have_the_measure_as_their_mean():
    noisy, q = random_quadratic(3, 2, noise=0.4, initial_gap=1.0), np.tile(np.eye(3), (20, 1))
    c = confront_family(
        KNOWING, noisy, q, (9, 30), local_steps=1, interval=3, form="explicit",
        run=lambda algorithm, T: simulate(algorithm, noisy, q, T, seeds=range(4)),
    )  # fmt: skip
    assert c.samples is not None and c.samples.shape == (4, 2) and family().samples is None
    assert c.samples.mean(axis=0) == pytest.approx(c.measured, rel=1e-12)
    assert c.standard_error == pytest.approx(c.samples.std(axis=0, ddof=1) / 2, rel=1e-12)
    slope = Rate(c).measured
    assert slope.seeds == 4 and slope.low < slope.value < slope.high
