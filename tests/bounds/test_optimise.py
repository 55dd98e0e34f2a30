"""Best step sizes: every answer against a dense grid, and the closed forms that the explicit constants have."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.errors import FedboundsError
from bounds.evaluation import evaluate
from bounds.optimise import Infeasible, Minimum, NotAttained, optimise
from bounds.registry import load

THEOREM = load("arbitrary-participation/theorem-3.1")
KNOWN = dict(L=1, F=5, I=2, P=2, T=800, rho=math.sqrt(0.5), sigma=1, nu=2, beta=0.5, delta=0.01)

constants = st.fixed_dictionaries(
    dict(
        L=st.floats(0.1, 10),
        F=st.floats(0.1, 10),
        I=st.integers(1, 10),
        P=st.integers(1, 10),
        rho=st.floats(0.1, 1),
        sigma=st.floats(0.01, 10),
        nu=st.floats(0, 5),
        beta=st.floats(0, 5),
        delta=st.floats(0, 1),
    )
)


def grid_minimum(known, form, gammas, etas):
    evaluation = evaluate(THEOREM, dict(known, gamma=gammas[:, None], eta=etas[None, :]), form=form)
    return float(np.where(evaluation.valid, evaluation.value, np.inf).min())


@settings(max_examples=15)
@given(constants, st.sampled_from(["explicit", "sharp"]))
def test_no_point_of_a_dense_grid_is_better(c, form):
    known = dict(c, T=400)
    answer = optimise(THEOREM, known, within={"eta": (1, 100)}, form=form)
    assert isinstance(answer, Minimum)
    cap = 1 / (12 * c["L"] * c["I"] * c["P"])
    best = grid_minimum(known, form, cap * np.geomspace(1e-5, 1, 400), np.geomspace(1, 100, 400))
    assert answer.value <= best * (1 + 1e-9)
    assert answer.value >= best * (1 - 0.01)
    assert answer.evaluation.valid
    assert float(evaluate(THEOREM, dict(known, **answer.at), form=form).value) == pytest.approx(answer.value)


def test_at_a_fixed_product_the_bound_falls_for_ever_as_gamma_falls():
    answer = optimise(THEOREM, KNOWN, form="explicit")
    assert isinstance(answer, NotAttained)
    # 8F/(x I T) + 4 x L rho^2 sigma^2 is least at x = sqrt(2F/(L I T rho^2 sigma^2)), the other terms vanish
    x = math.sqrt(2 * 5 / (2 * 800 * 0.5))
    assert f"gamma*eta = {x:.6g}" in answer.direction
    assert answer.infimum == pytest.approx(8 * 5 / (x * 2 * 800) + 4 * x * 0.5 + 6 * 0.01**2)


def test_the_best_eta_at_a_fixed_gamma_is_the_closed_form():
    gamma = 1e-4
    answer = optimise(THEOREM, dict(KNOWN, gamma=gamma), over=("eta",), form="explicit")
    assert isinstance(answer, Minimum)
    assert gamma * answer.at["eta"] == pytest.approx(math.sqrt(2 * 5 / (2 * 800 * 0.5)), rel=1e-6)


def test_corollary_3_2_takes_a_product_that_is_smaller_by_root_two_than_the_best():
    corollary = evaluate(load("arbitrary-participation/corollary-3.2"), KNOWN, form="explicit")
    product = float(corollary.prescribed["gamma"] * corollary.prescribed["eta"])
    best = optimise(THEOREM, dict(KNOWN, gamma=1e-6), over=("eta",), form="explicit")
    assert isinstance(best, Minimum)
    assert 1e-6 * best.at["eta"] / product == pytest.approx(math.sqrt(2), rel=1e-6)


def test_without_noise_the_caps_are_active():
    quiet = dict(KNOWN, sigma=0, nu=0, beta=0, gamma=1 / 48)
    answer = optimise(THEOREM, quiet, over=("eta",), form="explicit")
    assert isinstance(answer, Minimum)
    assert answer.at["eta"] == pytest.approx(6)
    assert any("eta*gamma" in text for text in answer.active)


def test_an_empty_admissible_set_says_why():
    answer = optimise(THEOREM, dict(KNOWN, T=1), within={"eta": (1, 2)}, form="explicit")
    assert isinstance(answer, Infeasible) and "P <= T/2" in answer.why


def test_the_interval_is_chosen_only_where_the_divergence_is_a_function_of_it():
    known = {k: v for k, v in KNOWN.items() if k not in ("P", "delta")} | {"gamma": 1e-4, "eta": 10}
    with pytest.raises(FedboundsError, match="delta"):
        optimise(THEOREM, dict(known, delta=0.1), over=("P",), form="explicit")
    answer = optimise(THEOREM, known, over=("P",), form="explicit", functions={"delta": lambda P: 1 / P})
    assert isinstance(answer, Minimum)
    scanned = {P: evaluate(THEOREM, dict(known, P=P, delta=1 / P), form="explicit") for P in range(1, 401)}
    best = min((P for P, e in scanned.items() if e.valid), key=lambda P: float(scanned[P].value))
    assert answer.at["P"] == best


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(over=("gama",)), "did you mean gamma"),
        (dict(over=()), "at least one"),
        (dict(over=("gamma", "gamma")), "each once"),
        (dict(within={"eta": (5, 1)}), "eta"),
        (dict(within={"eta": (-1, 1)}), "eta"),
        (dict(within={"L": (1, 2)}), "L"),
    ],
)
def test_a_wrong_question_is_one_line(arguments, message):
    with pytest.raises(FedboundsError, match=message) as error:
        optimise(THEOREM, KNOWN, form="explicit", **arguments)
    assert "\n" not in str(error.value)
