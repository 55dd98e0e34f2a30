"""Quotients of polynomials agree with sympy's own arithmetic, which they replace."""

from __future__ import annotations

import random

import pytest
import sympy as sp

from fedbounds.bounds.audit.nonnegative import reduce_expression, same
from fedbounds.bounds.audit.quotients import cancel, quotient
from fedbounds.bounds.theory.named_numbers import NamedNumber

x, y, z = sp.symbols("x y z", positive=True)
K = NamedNumber("K", sp.exp(1) - 1)


def random_expression(source: random.Random, depth: int) -> sp.Expr:
    """A rational expression in x, y, z and K."""
    if depth == 0:
        return source.choice([x, y, z, K, sp.Rational(source.randint(-5, 5), source.randint(1, 4))])
    first, second = (random_expression(source, depth - 1) for _ in range(2))
    return source.choice([first + second, first - second, first * second, first**2, 1 / (first**2 + second**2 + 1)])


@pytest.mark.parametrize("seed", range(20))
def test_a_quotient_has_the_values_of_the_expression(seed):
    expression, source = random_expression(random.Random(seed), 3), random.Random(1)
    for found in (quotient(expression), cancel(expression)):
        again = found.written(found.above) / found.written(found.below)
        for _ in range(5):
            point = {s: sp.Rational(source.randint(1, 9), source.randint(1, 9)) for s in (x, y, z, K)}
            assert expression.xreplace(point) == again.xreplace(point)


@pytest.mark.parametrize("seed", range(20))
def test_lowest_terms_are_those_of_sympy(seed):
    expression = random_expression(random.Random(seed), 2)
    found, expected = cancel(expression), sp.fraction(sp.cancel(sp.together(expression)))
    assert all(
        sp.cancel(found.written(mine) / theirs).is_number or theirs == mine == 0
        for mine, theirs in zip((found.above, found.below), expected, strict=True)
    )


def test_common_factors_stay_until_they_are_canceled():
    expression = (x**3 + 1) / (x + 1)
    assert quotient(expression).written(quotient(expression).above) == x**3 + 1
    assert cancel(expression).written(cancel(expression).above) == x**2 - x + 1


@pytest.mark.parametrize(
    "expression", [sp.sqrt(x), x**y, sp.log(x), sp.floor(x), 1 / ((x + 1) ** 2 - x**2 - 2 * x - 1)]
)
def test_what_is_not_rational_has_no_quotient(expression):
    with pytest.raises(sp.PolynomialError):
        quotient(expression)


def test_two_symbols_of_one_name_stay_two():
    other = sp.Symbol("x", real=True)
    assert not same(x, other) and reduce_expression(x - other) != 0


def test_a_reduced_expression_equals_the_expression():
    assert reduce_expression((x**2 - y**2) / (x - y)) == x + y
    assert reduce_expression(K * x / K) == x
