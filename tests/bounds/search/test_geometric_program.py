"""Geometric programs: products against the expressions they stand for, and Newton's answers against a dense grid."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.search.barrier_method import is_unique, log_sum, solve
from fedbounds.bounds.search.geometric_program import (
    GeometricProgram,
    NotGeometric,
    ProductReader,
    falls_for_ever,
    far_out,
)
from fedbounds.bounds.search.interval_arithmetic import fixed_value

x, y, c = sp.symbols("x y c", positive=True)
FREE = np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf])
FORMS = [
    c * x**2 / y,
    c / x + sp.sqrt(x) * y + 3,
    (x + c * y) ** 2 / x,
    (x + y) ** sp.Rational(3, 2),
    c / (1 - x * y / 100),
    x / (c - x**2 / 50),
    (x + 1 / y) * (y + 2 / x) / (1 - x / 100 - y / 50) ** 2,
]


def program(objective, constraints=(), low=FREE[0], high=FREE[1], values=None):
    values = values or {}
    reader = ProductReader(["x", "y"], values)
    sums = tuple(reader.condition(left, right) for left, right in constraints)
    return GeometricProgram(reader.sum(objective), sums, np.array(low, float), np.array(high, float))


@given(st.sampled_from(FORMS), st.floats(0.1, 3), st.floats(0.1, 3))
def test_products_have_the_value_of_their_expression(expression, at_x, at_y):
    products = ProductReader(["x", "y"], {"c": 2.0}).sum(expression)
    value, gradient, hessian = log_sum(products)(np.log([at_x, at_y]))
    expected = fixed_value(expression, {"x": at_x, "y": at_y, "c": 2.0})
    assert math.exp(value) == pytest.approx(expected, rel=1e-12)
    h = 1e-6
    for i in range(2):
        step = h * np.eye(2)[i]
        up, down = (log_sum(products)(np.log([at_x, at_y]) + s * step) for s in (1, -1))
        assert gradient[i] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-5, abs=1e-7)
        assert hessian[i] == pytest.approx((up[1] - down[1]) / (2 * h), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("expression", [x - y, sp.Min(x, y), sp.floor(x), sp.log(x), sp.exp(x), 2**x])
def test_what_is_no_sum_of_products_is_left_to_the_search(expression):
    with pytest.raises(NotGeometric):
        ProductReader(["x", "y"], {}).sum(expression)


def test_a_zero_constant_makes_its_terms_vanish():
    assert len(ProductReader(["x", "y"], {"c": 0.0}).sum(c * x + y)) == 1


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=5),
    st.tuples(st.floats(0.2, 5), st.integers(-2, 2), st.integers(-2, 2)),
)
def test_newton_is_never_beaten_by_a_dense_grid(monomials, wall):
    objective = sum(a * x**p * y**q for a, p, q in monomials)
    box = np.log(0.1) * np.ones(2), np.log(10) * np.ones(2)
    one = program(objective, [(wall[0] * x ** wall[1] * y ** wall[2], sp.Integer(1))], *box)
    axis = np.linspace(*(end[0] for end in box), 301)
    grid_x, grid_y = np.meshgrid(axis, axis)
    values = sum(a * np.exp(p * grid_x + q * grid_y) for a, p, q in monomials)
    inside = np.log(wall[0]) + wall[1] * grid_x + wall[2] * grid_y <= 1e-12
    solution = solve(one)
    if solution.y is None:
        assert not inside.any()
        return
    best = math.exp(log_sum(one.objective)(solution.y)[0])
    assert (solution.y >= box[0] - 1e-9).all() and (solution.y <= box[1] + 1e-9).all()
    assert math.log(wall[0]) + wall[1] * solution.y[0] + wall[2] * solution.y[1] <= 1e-9
    if inside.any():
        assert best <= values[inside].min() * (1 + 1e-9)


def test_a_curved_constraint_can_be_active():
    one = program(1 / (x * y), [(x**2 + y**2, sp.Integer(2))])
    assert np.exp(solve(one).y) == pytest.approx([1, 1], rel=1e-9)


def test_conflicting_constraints_are_named_by_their_place():
    one = program(x * y, [(y, x), (x, sp.Rational(1, 2)), (sp.Integer(1), x * sp.Rational(1, 1))])
    solution = solve(one)
    assert solution.y is None and set(solution.conflicts) == {1, 2}


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=4))
def test_a_bound_falls_for_ever_exactly_where_some_direction_lets_no_exponent_grow(exponents):
    one = program(sum(x**p * y**q for p, q in exponents))
    found = falls_for_ever(one)
    angles = np.linspace(0, 2 * np.pi, 721)
    rates = np.array(exponents) @ np.array([np.cos(angles), np.sin(angles)])
    falls = (rates <= 1e-12).all(axis=0) & (rates < -1e-9).any(axis=0)
    if found is None:
        assert not falls.any()
    else:
        slopes = [p * found[0] + q * found[1] for p, q in exponents]
        assert max(slopes) <= 0 and min(slopes) < 0


def test_far_out_only_what_neither_grows_nor_vanishes_is_left():
    one = program(x * y + 1 / (x * y) + x**2 + (x + y) ** 2 / y**2, [(x, sp.Integer(3))])
    direction = falls_for_ever(one)
    assert direction is not None and direction[0] < 0 and direction[0] == -direction[1]
    rest = far_out(one, (Fraction(-1), Fraction(1)))
    assert sorted(p.exponents for p in rest.objective) == [(-1, -1), (0, -2), (1, 1)]
    assert [len(q) for p in rest.objective for q, _ in p.factors] == [1]  # x + y is y there
    assert rest.constraints == ((),)


def test_a_minimum_along_a_line_is_not_unique_and_its_point_meets_the_constraints():
    one = program(x * y + 1 / (x * y), [(x, sp.Rational(1, 10))])
    at = solve(one).y
    assert at is not None and math.exp(at.sum()) == pytest.approx(1) and math.exp(at[0]) <= 0.1 * (1 + 1e-9)
    assert not is_unique(one, at)
    assert is_unique(program(x + 1 / x + y + 1 / y), np.zeros(2))
