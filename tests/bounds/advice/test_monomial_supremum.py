"""Suprema of products of powers under conditions: against a search, and proved where there is none."""

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.advice.monomial_supremum import supremum
from fedbounds.bounds.theory.result import Condition
from fedbounds.bounds.theory.standard_symbols import STANDARD

L, I, N, S, T, mu, F = (STANDARD[name].symbol for name in ("L", "I", "N", "S", "T", "mu", "F"))
SAMPLED = Condition(S, "<=", N, "")


@pytest.mark.parametrize(
    ("ratio", "conditions", "value"),
    [
        (3 / (4 * I), [], sp.Rational(3, 4)),
        (I**2 / L, [], sp.oo),
        (1 / sp.sqrt(I), [], 1),
        (S ** sp.Rational(3, 2) / N, [SAMPLED], sp.oo),
        (S / N, [SAMPLED], 1),
        (S / N, [], sp.oo),
        (S * I / N, [SAMPLED, Condition(I * S, "<=", 7 * sp.sqrt(N), "")], 7),
        (I / 2, [Condition(I, "<=", sp.Rational(7, 2), "")], sp.Rational(3, 2)),  # an integer
        (mu / L, [Condition(mu, "<=", L, "")], 1),
        (L / mu, [Condition(mu, "<=", L, ""), Condition(L, "<=", 10 * mu, "")], 10),
        (sp.Min(S / N, 2 / S), [SAMPLED], 1),
        (sp.Min(S, 4 / sp.sqrt(S)), [], 4 ** sp.Rational(2, 3)),
        (1 / sp.Max(S, I / 3), [], 1),
        (S / N, [Condition(N, "==", 4 * S, "")], sp.Rational(1, 4)),
        (N / S, [Condition(N, "==", 4 * S, "")], 4),
        (sp.S(3) / 7, [], sp.Rational(3, 7)),
    ],
)
def test_the_supremum(ratio, conditions, value):
    found = supremum(ratio, STANDARD, conditions)
    assert found is not None and (found.value == value or sp.simplify(found.value / value) == 1)
    whole = ratio != sp.Min(S, 4 / sp.sqrt(S))  # at S = 4^(2/3)
    assert found.sharp == whole


@pytest.mark.parametrize("ratio", [sp.log(I), 1 - I, 2 - 1 / I, (I - 1) / (I + 1), -I, sp.Max(S, I), 1 / (I - S)])
def test_what_is_no_such_product(ratio):
    assert supremum(ratio, STANDARD) is None


def test_a_factor_of_another_kind_is_fixed_to_show_that_there_is_no_bound():
    found = supremum(L / mu * sp.sqrt(1 + sp.log(1 + I)), STANDARD, [Condition(mu, "<=", L, "")])
    assert found is not None and (found.value, found.sharp) == (sp.oo, True)
    assert supremum(mu / L * sp.sqrt(1 + sp.log(1 + I)), STANDARD, [Condition(mu, "<=", L, "")]) is None
    capped = [Condition(mu, "<=", L, ""), Condition(I, ">=", sp.Integer(3), "")]  # not at the values that are tried
    assert supremum(L / mu * sp.sqrt(1 + sp.log(1 + I)), STANDARD, capped) is None


def test_of_sums_there_is_an_upper_bound():
    found = supremum(1 / I + 2 / S, STANDARD)
    assert found is not None and (found.value, found.sharp) == (3, False)
    assert supremum(N * S / (N + S), STANDARD, [SAMPLED]) == supremum(I + 1 / S, STANDARD)  # no bound
    found = supremum(S / (N + S), STANDARD, [SAMPLED])
    assert found is not None and (found.value, found.sharp) == (1, False)  # in truth 1/2


@pytest.mark.parametrize(
    ("ratio", "bound"),
    [
        (1 / sp.Max(1 / I, sp.Min(I, 10) / 10), None),  # in truth sqrt(10) over the reals, 3 over the integers
        (1 / sp.Max(1 / I, I / sp.Max(I, 10)), None),
        (1 / (1 / I + sp.Min(I, 10) / 10), None),
        (1 / sp.Max(I, 10 / sp.Max(I, 2)), 1),  # in truth 3/10
        (sp.Min(S, 1 / sp.Max(1 / I, sp.Min(I, 10) / 10)), None),
    ],
)
def test_a_minimum_inside_a_denominator_leaves_an_upper_bound_at_most(ratio, bound):
    found = supremum(ratio, STANDARD)
    assert found is None if bound is None else found is not None and (found.value, found.sharp) == (bound, False)


@pytest.mark.parametrize(
    ("ratio", "conditions", "unbounded"),
    [
        (4 * I / 3 - sp.Rational(4, 3), [], True),
        (I - sp.sqrt(I), [], True),
        (I - S, [], True),
        (S - N, [SAMPLED], False),
        (2 * S - N, [SAMPLED], True),  # where both grow
        (I - 1, [Condition(I, "<=", sp.Integer(5), "")], False),
        (I - 1, [Condition(I * (I + 1), "<=", sp.Integer(6), "")], False),
        (I - 1, [Condition(I, "<", T, "")], False),  # true, but not on the rays that are tried
        (I - 1, [Condition(I, "<=", T, "")], True),
        (I - 1, [Condition(I, "==", T, "")], True),
        (I - 1, [Condition(I, "==", T**2, "")], False),  # also true
        (L / mu - 1, [Condition(mu, "<=", L, "")], True),
        (mu / L - sp.Rational(1, 2), [Condition(mu, "<=", L, "")], False),
    ],
)
def test_a_difference_is_unbounded_along_a_ray(ratio, conditions, unbounded):
    found = supremum(ratio, STANDARD, conditions)
    assert (found is not None) == unbounded
    assert found is None or (found.value, found.sharp) == (sp.oo, True)


def test_conditions_that_compare_no_products_leave_an_upper_bound_at_most():
    odd = Condition(I * (I + 1), "<=", sp.Integer(6), "")
    assert supremum(I, STANDARD, [odd]) is None
    found = supremum(1 / I, STANDARD, [odd])
    assert found is not None and (found.value, found.sharp) == (1, False)
    apart = supremum(1 / S, STANDARD, [odd])
    assert apart is not None and apart.sharp  # a condition on other constants changes nothing


def test_contradicting_conditions_have_no_supremum():
    assert supremum(I, STANDARD, [Condition(I, "<=", sp.Rational(1, 2), "")]) is None
    assert supremum(S, STANDARD, [Condition(S, ">=", 3 * N, ""), SAMPLED]) is None


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_against_random_points(seed):
    """No random legal point is above the supremum."""
    rng = np.random.default_rng(seed)
    symbols = [S, N, I, T]

    def product():
        return sp.Mul(*(s ** sp.Rational(int(p), 2) for s, p in zip(symbols, rng.integers(-3, 4, 4), strict=True)))

    ratio = product()
    conditions = [Condition(product(), "<=", sp.Integer(int(rng.integers(1, 9))), "") for _ in range(4)]
    points = np.round(10 ** rng.uniform(0, 1.5, (4, 20_000)))
    values = [sp.lambdify(symbols, each, "numpy") for each in (ratio, *(c.left for c in conditions))]
    sizes, *left = (np.broadcast_to(value(*points), 20_000) for value in values)
    legal = np.logical_and.reduce([x <= float(c.right) for x, c in zip(left, conditions, strict=True)])
    found = supremum(ratio, STANDARD, conditions)
    if found is None:
        assert not legal.any()
    elif legal.any():
        assert sizes[legal].max() <= float(found.value) * (1 + 1e-9)
