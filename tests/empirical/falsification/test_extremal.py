"""The known extremal runs: closed forms against the algorithms run step by step, and no table is below them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.comparison.worst_ratios import worst_ratio, worst_ratios
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import PAPERS, load, paper
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, geometric, make_runs, maximize_field
from fedbounds.empirical.falsification.instances.instance_checker import instance_test
from fedbounds.empirical.papers.fed_norm_sgda.instances.extremal import concave


def claim_of(key: str, form: str) -> Claim:
    result = load(key)
    return ResultForm(result, result.form(form)).claim()


def drawn(rng: np.random.Generator, size: int) -> ExtremalRuns:
    """Random runs of every shape, with steps that stay in the part where the run is."""
    I, P = rng.integers(1, 4, size) * 1.0, rng.integers(1, 4, size) * 1.0
    L, gamma = np.exp(rng.normal(size=size)), rng.uniform(0, 1, size)
    curvature = L * rng.uniform(0.1, 1, size)
    gamma = gamma / (curvature * I * P)
    z = make_runs(
        smoothness=L, curvature=curvature, slope=np.exp(rng.normal(size=size)),
        straight=rng.integers(2, size=size) * 1.0, gamma=gamma,
        eta=rng.uniform(0.2, 1, size) / (gamma * curvature * I * P),
        weight=rng.choice([1.0, 0.8], size),
        local_steps=I, interval=P, rounds=rng.integers(1, 9, size) * 1.0,
    )  # fmt: skip
    return z.fit_reach(whole=True)


def by_steps(z: ExtremalRuns, b: int) -> dict[str, float]:
    """One run of Algorithm 1 of Wang & Ji (2022) on the Huber function itself."""
    v = {f.name: float(getattr(z, f.name)[b]) for f in fields(z)}
    knee = v["slope"] / v["curvature"]

    def slope(x: float) -> float:
        assert x >= -1e-12 * knee  # no run goes left of the minimizer
        return v["curvature"] * min(x, knee)

    def value(x: float) -> float:
        return v["curvature"] * x**2 / 2 if x <= knee else v["slope"] * (x - knee / 2)

    start = anchor = x = knee + v["reach"] * v["slope"]
    squares, inside = [], []
    for t in range(int(v["rounds"])):
        squares.append(slope(x) ** 2)
        for _ in range(int(v["local_steps"])):
            inside.append(slope(x) ** 2)
            x -= v["gamma"] * slope(x)
        if (t + 1) % int(v["interval"]) == 0:
            anchor = x = anchor + v["eta"] * v["weight"] * (x - anchor)
    return {
        "gap": value(start),
        "least": min(squares),
        "mean": float(np.mean(squares)),
        "inside": float(np.mean(inside)),
        "decrease": value(start) - value(x),
        "windows": v["rounds"] % v["interval"] == 0,
        "plain": v["eta"] * v["weight"] == 1,
        "one": v["interval"] == 1,
    }


def test_closed_forms_are_what_the_algorithm_does_step_by_step() -> None:
    z = drawn(np.random.default_rng(5), 200)
    assert all(held.all() for held in z.rules().values()) and {0, 1} == set(z.straight)
    least, mean, decrease = z.least_gradient(), z.mean_gradient(), z.decrease()
    for b in range(len(z)):
        found = by_steps(z, b)
        assert z.gap[b] == pytest.approx(found["gap"], rel=1e-9)
        assert least[b] == pytest.approx(found["least"], rel=1e-9, abs=1e-12 * z.slope[b] ** 2)
        if found["one"]:
            assert mean[b] == pytest.approx(found["mean"], rel=1e-9)
        if found["windows"]:
            assert decrease[b] == pytest.approx(found["decrease"], rel=1e-9, abs=1e-12 * found["gap"])


def test_the_iterates_inside_of_rounds_are_those_of_gradient_descent() -> None:
    z = drawn(np.random.default_rng(6), 100)
    z = ExtremalRuns(**{f.name: getattr(z, f.name) for f in fields(z)} | {"eta": np.ones(100), "weight": np.ones(100)})
    z = z.fit_reach(whole=True)
    inside = z.mean_gradient_inside(z.local_steps * z.rounds)
    for b in range(len(z)):
        assert inside[b] == pytest.approx(by_steps(z, b)["inside"], rel=1e-9)


def test_a_straight_part_that_is_too_short_is_no_instance() -> None:
    z = drawn(np.random.default_rng(7), 100)
    z = z.take((z.straight == 1) & (z.travel() > 0))
    short = ExtremalRuns(**{f.name: getattr(z, f.name) for f in fields(z)} | {"reach": 0.99 * z.travel()})
    assert len(z) > 20 and not short.rules()["every counted point is in its part"].any()


def test_the_moreau_envelope_is_the_least_of_its_function_and_a_parabola() -> None:
    z = drawn(np.random.default_rng(8), 40)
    z = ExtremalRuns(
        **{f.name: getattr(z, f.name) for f in fields(z)}
        | {"rounds": np.ones(40), "reach": z.straight * 0.6 / z.smoothness, "local_steps": np.ones(40)}
    )
    left, values, _ = concave(claim_of("fed-norm-sgda/theorem-4", "sharp"), z)
    for b in range(len(z)):
        L, a, g = z.smoothness[b], z.curvature[b], z.slope[b]
        knee, x = g / a, g / a + z.reach[b] * g

        def model(u: float, a: float = a, g: float = g, x: float = x, L: float = L, knee: float = knee) -> float:
            return (a * u**2 / 2 if u <= knee else g * (u - knee / 2)) + L * (u - x) ** 2

        best: Any = minimize_scalar(model, bounds=(0, x), method="bounded", options={"xatol": 1e-12})
        assert values["Deltabar"][b, 0] == pytest.approx(best.fun, rel=1e-7)
        assert left[b, 0] == pytest.approx((2 * L * (x - best.x)) ** 2, rel=1e-5)


def test_sums_of_a_million_powers_keep_their_digits() -> None:
    log, n = np.log1p(-1e-6), np.array(1e6)
    assert float(geometric(np.array(log), n)) == pytest.approx((1 - np.exp(1e6 * log)) / 1e-6, rel=1e-12)


def test_the_largest_admissible_number_is_found_from_below() -> None:
    z = maximize_field(make_runs(rounds=np.ones(2)), lambda y: y.gamma <= 0.125, "gamma", 16.0)
    assert (z.gamma <= 0.125).all() and z.gamma == pytest.approx(0.125, rel=1e-10)


# --- what gradient descent has by hand --------------------------------------------------------------------------------


def test_the_bound_with_a_tuned_symbol_is_attained_by_one_step_on_a_quadratic() -> None:
    """x^2/2 from 1: F = 1/2, and the least gradient of one round is 1."""
    gamma, both = 1e-5, 0.99999
    constants = {"T": 1, "I": 1, "P": 1, "L": 1, "F": 0.5, "gamma": gamma, "eta": both / gamma, "r": 1e-3}
    nothing = dict.fromkeys(("sigma", "nu", "beta", "delta"), 0)
    bound = evaluate("arbitrary-participation/theorem-3.1", constants | nothing | {"rho": 1}, form="sharp:tuned")
    assert 1 / float(bound.value) == pytest.approx(0.99999, abs=2e-6)
    assert (
        float(worst_ratios("arbitrary-participation")["arbitrary-participation/theorem-3.1", "sharp:tuned"]["ratio"])
        >= 0.99999
    )


def test_long_gradient_descent_is_within_the_tables_of_fedau() -> None:
    """x^2/2 from 1 with steps of 1e-3 for 1e4 rounds: the mean gradient is 1/(2 - 1e-3) over T steps."""
    both, T = 1e-3, 1e4
    mean = (1 - (1 - both) ** (2 * T)) / (1 - (1 - both) ** 2) / T
    nothing = dict.fromkeys(("sigma", "delta", "W"), 0)
    for form, least in (("sharp", 0.2486), ("explicit", 0.1248)):
        constants = {"N": 1, "L": 1, "F": 0.5, "G": 1, "Q": 1, "I": 1, "T": T, "gamma": 1e-6, "eta": both / 1e-6}
        ratio = mean / float(evaluate("fedau/theorem-2", constants | nothing, form=form).value)
        assert ratio == pytest.approx(least, abs=2e-3)
        assert float(worst_ratios("fedau")["fedau/theorem-2", form]["ratio"]) >= ratio


# --- the committed tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAPERS)
def test_no_committed_ratio_is_below_the_extremal_runs(name: str) -> None:
    tried = 0
    for result in paper(name).results:
        for form in result.forms:
            row, claim = worst_ratio(result, form), ResultForm(result, form).claim()
            how = instance_test(claim)
            if row is None or row["ratio"] is None or how is None or how.family is None:
                continue
            ratio: Any = row["ratio"]
            z, _ = how.family.best(claim, small=True)
            found = float(how.family.sides(claim, z).ratios().max())
            if found == -np.inf:  # no run without noise meets its hypotheses
                continue
            tried += 1
            assert float(ratio) >= found * (1 - 1e-9), f"{claim.id}: make adversary EFFORT=families"
            assert row["budget"]["families"] > 0, claim.id
    assert tried >= 12
