"""Rational inequalities under conditions: what is called proved holds at every exact rational point that is tried."""

from __future__ import annotations

import random

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.claim_set import ClaimSet, paper_claims
from fedbounds.bounds.audit.nonnegative import (
    NO_WITNESS,
    counterexample,
    hold_at_squares,
    never_zero,
    prove,
    same,
    satisfiable,
)
from fedbounds.bounds.audit.proof_step_checker import StepOf, condition_fact
from fedbounds.bounds.theory.client_reductions import MaxOverClients
from fedbounds.bounds.theory.client_reductions import SumOverClients as OverAll
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.result import Condition

x, y, z = sp.symbols("x y z", positive=True)
a, b, c, d = sp.symbols("a b c d", nonnegative=True)
r, s = sp.symbols("r s", real=True)
k = sp.Symbol("k", integer=True, positive=True)
half = sp.Rational(1, 2)
small = st.integers(min_value=-6, max_value=6)


def holds_at_random_points(expression, symbols, tries=200):
    """By sympy's own arithmetic, which the prover does not use."""
    source = random.Random(1)
    for _ in range(tries):
        point = {v: sp.Rational(source.randint(1, 60), source.randint(1, 30)) for v in symbols}
        if expression.xreplace(point) < 0:
            return False
    return True


TRUE = {
    "a sum of squares and a number": ((x - y) ** 2 + half, []),
    "a square": (x**2 - 2 * x * y + y**2, []),
    "below a cap": (1 - x * y, [Relation(x, 1 / (2 * y))]),
    "whole numbers are at least 1": (k**2 - k, []),
    "a root below its number": (k - sp.sqrt(k), []),
    "the floor of what is at least 1": (sp.floor(x) - x / 2, [Relation(sp.S.One, x)]),
    "a floor": (x - sp.floor(x), []),
    "an equality as a fact": (x - 2, [Relation(x, sp.Integer(3), "==")]),
    "a chain of caps": (half - x * z, [Relation(x, y), Relation(y, 1 / (2 * z))]),
    "a cap that may be zero": (b - a * c, [Relation(c, sp.S.One), Relation(a, b)]),
    "a largest is above both": (2 * sp.Max(x, y) - x - y, []),
    "a least is below both": (x + y - 2 * sp.Min(x, y), []),
    "a largest is one of the two": (x + y - sp.Max(x, y), []),
    "products of largest and least": (sp.Max(x, y) * sp.Min(x, y) - x * y, []),
    "a cap on the largest caps both": (2 - x - y, [Relation(sp.Max(x, y), sp.S.One)]),
    "one largest in another": (sp.Max(x, sp.Max(y, z) ** 2) - y**2, []),
    "a sum over clients of what is not negative": (sp.Max(1, OverAll(x * y)) - OverAll(x * y), []),
}
FALSE = {
    "a constant short by 10 percent": (x**2 + y**2 - sp.Rational(11, 5) * x * y, []),
    "a cap loosened by 10 percent": (1 - x * y, [Relation(x, sp.Rational(11, 10) / y)]),
    "a wrong sign": (2 * x * y - x**2 - y**2, []),
    "a premise that is missing": (1 - x * y, []),
    "whole numbers are not at least 2": (k - 2, []),
    "a largest is not below its parts": (x - sp.Max(x, y), []),
    "a least is not above its parts": (sp.Min(x, y) - x, []),
    "a cap on the least caps neither": (1 - x, [Relation(sp.Min(x, y), sp.S.One)]),
    "the product of both with one of them squared": (x * y - sp.Max(x, y) ** 2, []),
    "a number below its root": (x - sp.sqrt(x), []),
    "a floor is not its number": (sp.floor(x) - x, []),
    "a floor may be zero": (sp.floor(x) - half, []),
    "a floor may be negative": (sp.floor(r) + 100, []),
    "a symbol that may be zero is canceled": (b - a, [Relation(a * b, b**2)]),
    "a symbol that may be negative is canceled": (s / r, [Relation(s, r)]),
    "a fact whose denominator has no sign": (a - b, [Relation(sp.S.Zero, (a - b) / (c - d))]),
    "a square above 1 has a root of either sign": (s, [Relation(sp.S.One, s**2)]),
    "the root of a square": ((a - b) - sp.sqrt((a - b) ** 2) + sp.sqrt(x) / 1000, []),
    "the root of what may be negative": (r + sp.sqrt(r) ** 3, []),
    "two symbols of one name": (sp.Symbol("q", real=True) + sp.Symbol("q", positive=True) / 10**9, []),
    "a fact about other symbols": (x - y, [Relation(a, b)]),
    "no facts": (x - half, []),
}


@pytest.mark.parametrize("name", TRUE)
def test_true_inequalities_are_proved(name):
    assert prove(*TRUE[name]).holds


@pytest.mark.parametrize("name", FALSE)
def test_false_inequalities_are_not_proved(name):
    assert not prove(*FALSE[name]).holds


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(small, small, small), min_size=1, max_size=3), st.integers(1, 5))
def test_sums_of_squares_with_a_positive_constant_are_proved(rows, constant):
    assert prove(sp.expand(sum((p * x + q * y + w) ** 2 for p, q, w in rows) + sp.Rational(constant, 7))).holds


@settings(max_examples=60, deadline=None)
@given(st.lists(small, min_size=6, max_size=6), st.booleans())
def test_what_is_proved_of_a_random_polynomial_holds_at_random_rationals(coefficients, capped):
    monomials = (x**2, x * y, y**2, x, y, sp.S.One)
    p = sum((q * m for q, m in zip(coefficients, monomials, strict=True)), sp.S.Zero)
    facts = [Relation(x, y)] if capped else []
    if prove(p, facts).holds:
        assert holds_at_random_points(p.subs(y, x + z) if capped else p, (x, y, z))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 40))
def test_a_polynomial_with_a_negative_value_is_refuted_or_left_open(p, q, depth):
    assert not prove(sp.expand((p * x - q * y) ** 2) - sp.Rational(depth, 40) * x * y).holds


def test_counterexamples_lie_in_the_domains_and_meet_the_facts():
    assert counterexample(x - half, [1 - x]) is not None
    assert counterexample(k - 1, []) is None  # whole numbers below 1 are none
    assert counterexample(sp.S.NegativeOne + x, [x - 1]) is None


def test_contradictory_facts_are_found_out():
    found = satisfiable((Relation(x, half), Relation(sp.S.One, x)))
    assert (found.holds, found.evidence) == (False, "no values satisfy x <= 1/2, 1 <= x")
    assert not satisfiable((Relation(sp.Integer(2), sp.S.One),)).holds
    assert satisfiable(()).holds
    assert (
        satisfiable((Relation(x, y), Relation(y, 2 * x), Relation(k, sp.Integer(1), "=="))).method == "exact rationals"
    )


def test_a_proof_from_contradictory_facts_says_that_no_point_was_found():
    found = prove(x - 5, [Relation(x, half), Relation(sp.S.One, x)])
    assert "no values were found at which the facts hold" in found.evidence


def test_one_divides_only_by_what_is_never_zero():
    assert never_zero(1 + a, ()) and never_zero(x, ()) and never_zero(sp.S(3), ())
    assert not never_zero(a, ()) and not never_zero(x - y, ()) and not never_zero(sp.S.Zero, ())
    assert not never_zero(x - y, [Relation(x, y, "==")])
    assert never_zero(1 - x * y, [Relation(x, 1 / (2 * y))])


def test_normal_forms_tell_equal_from_unequal():
    assert same((x + y) ** 2, x**2 + 2 * x * y + y**2) and same(sp.sqrt(x) * sp.sqrt(y), sp.sqrt(x * y))
    assert not same(x, sp.Rational(9, 10) * x)
    assert not same(sp.sqrt(x) * sp.sqrt((a - b) ** 2), sp.sqrt(x) * (a - b))


def test_facts_with_named_numbers_are_tried_at_squares():
    x, kappa = sp.Symbol("x", positive=True), NamedNumber("kappa", sp.E - 2)
    whole = Relation(sp.sqrt(x), sp.floor(sp.sqrt(x)), "==")
    assert hold_at_squares((whole, Relation(4 * kappa, x))) and not hold_at_squares((whole, Relation(x, kappa)))


def test_the_facts_of_corollary_4_8_hold_together_at_squares():
    claim_set = ClaimSet.from_claims(list(paper_claims("arbitrary-participation")), ())
    step = claim_set.claims["arbitrary-participation/corollary-4.8/D3"].subject
    assert isinstance(step, StepOf)
    facts = tuple(condition_fact(p) for p in step.step.premises if isinstance(p, Condition))
    assert facts and satisfiable(facts).method == "exact rationals"
    x = sp.Symbol("x", positive=True)
    assert not hold_at_squares((Relation(x, sp.Integer(2)), Relation(sp.Integer(3), x)))


def test_values_are_found_where_numbers_with_a_name_and_their_roots_have_one_value_each():
    x, K = sp.Symbol("x", positive=True), NamedNumber("K", sp.E - 2)
    found = prove(16 * x**2 * K - 2 * x * sp.sqrt(K) + sp.Rational(1, 16))
    assert found.holds and NO_WITNESS not in found.evidence
    assert prove(x * K - x * sp.Rational(3, 4)).evidence.startswith("false at")
    assert prove(sp.sqrt(2) * x - sp.Rational(7, 5) * x).holds


def test_values_are_found_for_conditions_on_what_is_largest_over_clients_and_under_a_root():
    a, s, beta = sp.Symbol("a", positive=True), sp.Symbol("s", positive=True), sp.Symbol("beta", positive=True)
    cap = Relation(s, sp.sqrt(2) / (4 * MaxOverClients(a) * sp.sqrt(sp.Max(1, beta**2))))
    under = Relation(s, 1 / sp.sqrt(2 * beta**2 + 2))
    for facts in ((cap,), (under,), (cap, under)):
        found = satisfiable(facts)
        assert found.holds and found.method == "exact rationals"
