"""Enclosures contain every value: against evaluation at points inside the intervals."""

import math
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedbounds.bounds.evaluation.expression_tree import as_tree
from fedbounds.bounds.evaluation.numpy_code import compile_expressions
from fedbounds.bounds.search.arb_enclosures import arb_enclosure
from fedbounds.bounds.search.interval_arithmetic import enclose, fixed_value
from fedbounds.bounds.theory.client_reductions import MeanOverClients
from fedbounds.bounds.theory.registry import load

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
    assert low - 4e-15 * abs(value) <= value <= high + 4e-15 * abs(value)  # the value itself is rounded


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_enclosure_of_one_point_is_its_value(expression):
    value = float(COMPILED[expression](1.7, 0.3)[0])
    assert fixed_value(expression, {"x": 1.7, "y": 0.3}) == pytest.approx(value, rel=1e-12)


def test_enclosures_are_tight_where_a_symbol_occurs_once_and_shrink_with_the_interval():
    low, high = enclose(1 / sp.sqrt(x), {"x": (np.array([1.0, 4.0]), np.array([4.0, np.inf]))})
    assert low == pytest.approx([0.5, 0.0], rel=1e-14) and high == pytest.approx([1.0, 0.5], rel=1e-14)
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


# --- Nothing is missed: against exact values ---

leaves = st.sampled_from([x, y]) | st.fractions(-50, 50, max_denominator=60).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)
LARGE = sp.Integer(10**16)


def grown(inner):
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: sp.Add(*p, evaluate=False)),
        pairs.map(lambda p: sp.Mul(*p, evaluate=False)),
        st.tuples(inner, st.sampled_from([2, 3, -1, -2])).map(lambda p: sp.Pow(p[0], p[1], evaluate=False)),
        pairs.map(lambda p: sp.Add(p[0], LARGE * p[1], -LARGE * p[1], evaluate=False)),
        pairs.map(lambda p: sp.Max(*p, evaluate=False)),
        inner.map(lambda e: sp.Abs(e, evaluate=False)),
    )


def exactly(e, at):
    """The value as a fraction; ZeroDivisionError where there is none."""
    if isinstance(e, sp.Symbol):
        return at[e]
    if isinstance(e, sp.Rational):
        return Fraction(int(e.p), int(e.q))
    inner = [exactly(a, at) for a in e.args]
    if isinstance(e, sp.Add):
        return sum(inner, Fraction(0))
    if isinstance(e, sp.Mul):
        return math.prod(inner, start=Fraction(1))
    if isinstance(e, sp.Pow):
        return inner[0] ** int(inner[1])
    return max(inner) if isinstance(e, sp.Max) else abs(inner[0])


@settings(max_examples=150)
@given(st.recursive(leaves, grown, max_leaves=8), st.tuples(ends, ends), st.tuples(ends, ends), shares, shares)
def test_an_enclosure_contains_the_exact_value_of_any_rational_expression_in_any_box(expression, one, two, s, t):
    box = {x: (min(one), max(one)), y: (min(two), max(two))}
    at = {}
    for (symbol, (low, high)), share in zip(box.items(), (s, t), strict=True):
        at[symbol] = min(max(Fraction(low) + Fraction(share) * (Fraction(high) - Fraction(low)), low), Fraction(high))
    try:
        value = exactly(expression, at)
    except ZeroDivisionError:
        return
    low, high = (float(end) for end in enclose(expression, {n.name: tuple(map(np.asarray, r)) for n, r in box.items()}))
    assert (low == -math.inf or Fraction(low) <= value) and (high == math.inf or value <= Fraction(high))
    low, high = arb_enclosure(expression, {n.name: r for n, r in box.items()})
    ball = flint.arb(flint.fmpq(value.numerator, value.denominator))
    assert not low > ball and not high < ball


@pytest.mark.parametrize("y_is", [1.0, 0.75])
def test_what_a_large_number_swallows_is_not_lost(y_is):
    expression = sp.Add(x, LARGE * y, -LARGE, evaluate=False)
    box = {"x": (np.asarray(0.4), np.asarray(0.6)), "y": (np.asarray(y_is),) * 2}
    low, high = enclose(expression, box)
    least, most = (Fraction(end) + 10**16 * (Fraction(y_is) - 1) for end in (0.4, 0.6))
    assert Fraction(float(low)) <= least < most <= Fraction(float(high))
    balls = arb_enclosure(expression, {"x": (0.4, 0.6), "y": (y_is, y_is)})
    assert [float(end) for end in balls] == [float(least), float(most)]


def test_the_drift_of_frozen_steps_lies_in_its_enclosure():
    from fedbounds.bounds.papers.tdcd.drift import DriftGrowth

    drift = DriftGrowth(x, y)
    with mpmath.workdps(60):
        for rate, steps in ((0.3, 4), (1e-3, 50), (0.019, 53), (0.02, 51), (2.5, 30), (1e-9, 1000)):
            exact = mpmath.fsum(((1 + mpmath.mpf(rate)) ** s - 1) ** 2 for s in range(steps))
            low, high = enclose(drift, {"x": (np.asarray(rate),) * 2, "y": (np.asarray(float(steps)),) * 2})
            assert mpmath.mpf(float(low)) <= exact <= mpmath.mpf(float(high)), (rate, steps)
            low, high = arb_enclosure(drift, {"x": (rate, rate), "y": (steps, steps)})
            assert abs(mpmath.mpf(float(low)) - exact) <= exact * 1e-15 and float(low) == float(high)


@given(st.floats(1e-6, 0.02), st.integers(2, 40), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_bound_that_cancels_lies_in_its_enclosure(eta, Q, L, Lmax):
    form = load("tdcd/theorem-1").form("sharp:B2")
    at = dict(Delta=3.7, L=L, Lmax=Lmax, R=1e6, S=0.3, Q=float(Q), eta=eta)
    fixed = {name: np.asarray(value) for name, value in at.items()}
    for term in form.terms:
        exact = term.expression.subs({s: sp.Rational(at[s.name]) for s in term.expression.free_symbols}).evalf(60)
        low, high = (float(end) for end in enclose(term.expression, {n: (v, v) for n, v in fixed.items()}))
        assert low <= exact <= high, term.name
        low, high = arb_enclosure(term.expression, {n: (v, v) for n, v in at.items()})
        assert abs(float(low) - exact) <= 1e-15 * abs(exact) and float(low) == float(high)


NOTHING = sp.Add(-(10**16), 10**16, evaluate=False)  # 0, which no digits tell from a small number


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (sp.Mul(sp.sqrt(2), NOTHING, evaluate=False), 0.0),
        (sp.Mul(sp.sqrt(2), NOTHING, sp.pi, evaluate=False), 0.0),
        (sp.Add(sp.sqrt(2), -sp.sqrt(2), evaluate=False), 0.0),
        (sp.exp(NOTHING, evaluate=False), 1.0),
        (sp.Integer(10) ** 400, math.inf),  # more than any float
        (-(sp.Integer(10) ** 400), -math.inf),
    ],
)
def test_a_number_that_is_not_computed_lies_in_its_enclosure(expression, value):
    low, high = enclose(expression, {})
    assert low <= value <= high and low < high
    assert fixed_value(expression, {}) == value


def test_of_a_root_that_is_no_real_number_nothing_is_known():
    root = sp.Pow(sp.Mul(3, -(10**16), evaluate=False), sp.Rational(3, 4), evaluate=False)
    assert enclose(root, {}) == (-math.inf, math.inf)
    assert math.isnan(fixed_value(root, {}))


@pytest.mark.parametrize("ratio", [(1, 3), (1, 2), (-7, 5), (2**60 + 1, 2), (1, 10**400)])
def test_a_rational_is_enclosed_and_exact_only_if_it_is_a_double(ratio):
    exact = Fraction(*ratio)
    number = as_tree(sp.Rational(*ratio)).number
    assert number is not None and number.ratio == ratio and number.exact == (Fraction(number.value) == exact)
    low, high = enclose(sp.Rational(*ratio), {})
    assert Fraction(float(low)) <= exact <= Fraction(float(high)) and (low == high) == number.exact
