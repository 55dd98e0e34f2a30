"""Enclosures contain every value: against evaluation at points inside the intervals."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from bounds.clients import MeanOverClients
from bounds.compilation import compile_expressions
from bounds.intervals import enclose, fixed_value
from bounds.registry import load

x, y = sp.symbols("x y", real=True)
EXPRESSIONS = [
    x + y,
    x * y,
    x - y,
    x**2 - 3 * x + 1,
    x**3,
    1 / x,
    1 / x**2,
    sp.sqrt(x),
    1 / sp.sqrt(x),
    sp.Abs(x),
    sp.Min(x, y),
    sp.Max(x, y, 1),
    sp.floor(x) / (1 + y**2),
    sp.ceiling(x) * y,
    sp.exp(-x),
    sp.log(x),
    (2 + x) ** y,
]
COMPILED = {expression: compile_expressions((x, y), (expression,)) for expression in EXPRESSIONS}
ends = st.floats(-5, 5)
shares = st.floats(0, 1)


@given(st.sampled_from(EXPRESSIONS), ends, ends, ends, ends, shares, shares)
def test_an_enclosure_contains_the_value_at_every_point_inside(expression, a, b, c, d, s, t):
    x_range, y_range = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    at = {x: x_range[0] + s * (x_range[1] - x_range[0]), y: y_range[0] + t * (y_range[1] - y_range[0])}
    at = {name: min(max(v, low), high) for (name, v), (low, high) in zip(at.items(), (x_range, y_range), strict=True)}
    with np.errstate(all="ignore"):
        value = float(COMPILED[expression](np.float64(at[x]), np.float64(at[y]))[0])
    assume(not math.isnan(value))  # no root or logarithm of a negative number
    low, high = enclose(expression, {"x": tuple(map(np.asarray, x_range)), "y": tuple(map(np.asarray, y_range))})
    assert low - 1e-9 * abs(low) <= value <= high + 1e-9 * abs(high)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_enclosure_of_one_point_is_its_value(expression):
    value = float(COMPILED[expression](1.7, 0.3)[0])
    assert fixed_value(expression, {"x": 1.7, "y": 0.3}) == pytest.approx(value, rel=1e-12)


def test_enclosures_are_tight_where_a_symbol_occurs_once_and_shrink_with_the_interval():
    low, high = enclose(1 / sp.sqrt(x), {"x": (np.array([1.0, 4.0]), np.array([4.0, np.inf]))})
    assert low.tolist() == [0.5, 0.0] and high.tolist() == [1.0, 0.5]
    widths = [
        float(np.subtract(*enclose(x**2 - x, {"x": (np.asarray(2.0), np.asarray(2 + h))})[::-1])) for h in (1, 0.1)
    ]
    assert widths[1] < 0.2 * widths[0]


def test_a_mean_over_clients_of_fixed_weights_is_a_number():
    p = sp.Symbol("p")
    assert fixed_value(x * MeanOverClients((1 - p) ** 2), {"x": 2.0, "p": np.array([0.5, 1.0])}) == 0.25


def test_every_term_of_every_form_encloses_itself():
    theorem = load("arbitrary-participation/theorem-3.1")
    at = dict(
        L=1.5, F=5, I=2, P=3, T=800, gamma=1e-3, eta=6, rho=0.7, sigma=0.5, nu=2, beta=0.5, delta=0.1, sumsq=0.3, r=0.4
    )
    for form in theorem.forms:
        for term in form.terms:
            names = tuple(sorted(term.expression.free_symbols, key=str))
            value = float(compile_expressions(names, (term.expression,))(*(float(at[s.name]) for s in names))[0])
            assert fixed_value(term.expression, at) == pytest.approx(value, rel=1e-12), (form.name, term.name)


def test_a_quotient_of_whole_numbers_that_is_whole_is_not_one_less():
    T, S = sp.symbols("T S", positive=True)
    for divisor in range(1, 400):
        for times in (1, 2, 3, 7, 31, 32, 49):
            number = float(divisor * times)
            assert fixed_value(sp.floor(T / S), {"T": number, "S": float(divisor)}) == times
            assert fixed_value(sp.ceiling(T / S), {"T": number, "S": float(divisor)}) == times
    assert fixed_value(sp.floor(T / S), {"T": 27296.0, "S": 853.0}) == 32  # 27296 times 1/853 is below 32
