"""The best powers of T that a bound admits: an exact linear program against scans, theorems and the paper's tables."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.asymptotics.orders import growth_exponents
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.fed_norm_sgda.tables import (
    NONCONVEX_CONCAVE,
    NONCONVEX_STRONGLY_CONCAVE,
    ONE_POINT_CONCAVE,
    STEPS_4,
    THEOREM_4,
    TableCase,
    best_complexity,
)
from fedbounds.bounds.theory.result import Condition, Term

T, eta, gamma, m, S = sp.symbols("T eta gamma m S", positive=True)
ONE = sp.S.One


def terms(*parts):
    return [Term(str(k), part) for k, part in enumerate(parts)]


def test_sgd_in_rounds_and_gradients():
    found = best_complexity(
        terms(1 / (eta * T), eta / m), [Condition(eta, "<=", ONE, "a step")], T, [eta, m], m, whole=[m]
    )
    assert (found.rate, found.rounds, found.total_work) == (Fraction(1), Fraction(2), Fraction(4))
    assert found.exponents == {"eta": 0, "m": 1}
    fixed = best_complexity(terms(1 / (eta * T), eta), [], T, [eta], eta)
    assert (fixed.rate, fixed.rounds) == (Fraction(1, 2), Fraction(4))


def test_the_best_exponents_are_those_of_a_scan():
    parts = (1 / (eta * T), eta**2 * m, gamma / m, eta / gamma, 1 / (gamma * T))
    found = best_complexity(terms(*parts), [Condition(gamma, "<=", ONE, "a step")], T, [eta, gamma, m], m, whole=[m])
    grid = np.linspace(-1.5, 1, 26)
    e, g, w = np.meshgrid(grid, grid, grid, indexing="ij")
    slowest = np.max([-1 - e, 2 * e + w, g - w, e - g, -1 - g], axis=0)
    slowest[(g > 1e-9) | (w < -1e-9)] = np.inf
    assert float(found.rate) >= -slowest.min() - 1e-9
    assert float(found.rate) <= -slowest.min() + 0.1  # what the grid's spacing leaves
    v = {k: float(found.exponents[k]) for k in ("eta", "gamma", "m")}
    reached = max(-1 - v["eta"], 2 * v["eta"] + v["m"], v["gamma"] - v["m"], v["eta"] - v["gamma"], -1 - v["gamma"])
    assert reached == pytest.approx(-float(found.rate))


@given(st.integers(1, 6), st.integers(1, 6))
def test_one_step_size_balances_its_two_terms(p, q):
    """1/(eta T) and eta^(p/q): eta = T^(-q/(p + q)), so that the bound falls like T^(-p/(p + q))."""
    found = best_complexity(terms(1 / (eta * T), eta ** sp.Rational(p, q)), [], T, [eta], eta)
    assert found.rate == Fraction(p, p + q) and found.exponents["eta"] == -Fraction(q, p + q)


@pytest.mark.parametrize(
    ("case", "rounds", "gradients"),
    [
        (NONCONVEX_STRONGLY_CONCAVE, 2, 4),
        (NONCONVEX_CONCAVE, 6, 8),
        (ONE_POINT_CONCAVE, 6, 8),
        (TableCase(THEOREM_4, STEPS_4, capped=False), 4, 8),
    ],
)
def test_the_theorems_give_these_powers_of_one_over_epsilon(case, rounds, gradients):
    found = case.complexity()
    assert (found.rounds, found.total_work) == (rounds, gradients)


def test_what_cannot_be_reported_is_refused():
    with pytest.raises(FedboundsError, match="cannot be told"):
        best_complexity(terms(sp.sin(eta) / T), [], T, [eta], eta)
    with pytest.raises(FedboundsError, match="does not compare with a product"):
        best_complexity(terms(1 / T), [Condition(eta, "<=", 1 + T, "a sum")], T, [eta], eta)
    with pytest.raises(FedboundsError, match="grows like"):
        best_complexity(terms(T * eta + 1 / (eta * T)), [Condition(T, "<=", ONE, "impossible")], T, [eta], eta)


def test_exponents_of_sums_of_products_and_nothing_else():
    assert growth_exponents(3 * eta / T**2 + sp.sqrt(T), [T, eta]) == [[-2, 1], [Fraction(1, 2), 0]]
    assert growth_exponents(sp.S.Zero, [T]) == []
    with pytest.raises(FedboundsError, match="sum of products"):
        growth_exponents(sp.Min(T, eta), [T, eta])
