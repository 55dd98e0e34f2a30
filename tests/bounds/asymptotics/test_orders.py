"""Rates: Table 1 and the corollaries' orders derived, every proof recombined, every counterexample evaluated."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.asymptotics.orders import exponent
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.numpy_code import compile_expressions
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.results import STEPS_3_2, STEPS_3_3
from fedbounds.bounds.theory.registry import load
from tests.bounds.asymptotics.order_comparison import (
    CouldNotTell,
    Proved,
    Refuted,
    dominant_terms,
    order_at_most,
    regime,
    term_exponents,
)

EQUAL = {n.rho: 1 / sp.sqrt(n.S)}


def form(name, which=None):
    return load(f"arbitrary-participation/{name}").form(which)


def total(one, steps=None):
    return sp.Add(*(t.expression.subs(steps or {}, simultaneous=True) for t in one.terms))


def term(one, name):
    return next(t.expression for t in one.terms if t.name == name)


def at(expression, values):
    names = tuple(sorted(expression.free_symbols, key=str))
    return float(compile_expressions(names, (expression,))(*(np.float64(values[s.name]) for s in names))[0])


def grows_as_claimed(left, right, when, verdict):
    """The family of a refutation keeps the assumptions (up to constants), and left/right grows as its exponent says."""
    ratios = []
    for x in (1e2, 1e4):
        values = {s.name: x ** float(verdict.model.get(s.name, 0)) for s in left.free_symbols | right.free_symbols}
        values |= {s.name: x ** float(verdict.model.get(s.name, 0)) for a, _, b in when for s in (a * b).free_symbols}
        ratios.append(at(left, values) / at(right, values))
        for a, op, b in when:
            assert at(sp.sympify(a), values) >= 0.99 * at(sp.sympify(b), values) if op == ">=" else True
    assert math.log(ratios[1] / ratios[0]) / math.log(1e2) == pytest.approx(float(verdict.ratio), abs=0.05)


# --- Table 1 ---


def test_regularized_participation_has_the_rate_of_table_1():
    corollary, claimed = form("corollary-4.3", "repaired"), total(form("table-1-regularized"))
    assert dominant_terms(corollary, n.T, EQUAL) == ("noise",)
    noise = term(corollary, "noise").subs(EQUAL)
    varying = [n.T, n.I, n.S, n.sigma]
    assert order_at_most(noise, claimed, varying=varying).answer == "proved"
    assert order_at_most(claimed, noise, varying=varying).answer == "proved"  # and no faster
    assert {t: p for t, p in term_exponents(corollary, n.T, EQUAL).items() if t != "noise"} == {
        "initial gap": -1,
        "divergence": -1,
        "drift noise": -1,
    }


def test_the_regularized_rate_rules_from_a_number_of_rounds_on():
    corollary = form("corollary-4.3", "printed")
    when = [
        (n.T, ">=", n.I * n.P**2 / n.rho**2),
        (n.T, ">=", n.I * n.sigma**2 / n.rho**2),
        (n.sigma, ">=", sp.Integer(1)),
    ]
    verdicts = regime(corollary, "noise", when, varying=[n.T, n.I, n.P, n.rho, n.sigma], notation=n)
    assert {name: v.answer for name, v in verdicts.items()} == {
        "initial gap": "proved",
        "divergence": "proved",
        "drift noise": "proved",
    }
    earlier = regime(corollary, "noise", when[1:], varying=[n.T, n.I, n.P, n.rho, n.sigma], notation=n)
    assert earlier["initial gap"].answer == "false"


@pytest.mark.parametrize(("which", "row"), [("printed", "table-1-independent"), ("printed:mixing", "table-1-mixing")])
def test_mixing_and_independent_participation_have_the_rate_of_table_1_in_expectation(which, row):
    corollary, claimed = form("corollary-4.8", which), total(form(row, "printed"))
    varying = [n.T, n.I, n.S, n.N, n.sigma]
    assert set(dominant_terms(corollary, n.T, EQUAL)) == {"noise", "window divergence"}
    for name in dominant_terms(corollary, n.T, EQUAL):
        expression = term(corollary, name).subs(EQUAL)
        assert order_at_most(expression, claimed, [(n.N, ">=", n.S)], varying=varying, notation=n).answer == "proved"
    # without S <= N the window term would not be covered
    window = term(corollary, "window divergence")
    verdict = order_at_most(window, claimed, varying=varying, notation=n)
    assert isinstance(verdict, Refuted) and verdict.model["S"] > verdict.model["N"]


def test_mixing_with_high_probability_follows_by_markov():
    window = total(form("proposition-4.6", "repaired:probability")).subs(n.windowvar, n.upsilonhat**2 / n.P)
    interval = form("corollary-4.8", "printed:mixing").prescribes["P"]
    claimed = total(form("table-1-mixing", "printed:probability"))
    varying = [n.T, n.I, n.S, n.N, n.sigma, n.c, n.upsilonhat]
    assert (
        order_at_most(window.subs(n.P, interval), claimed, [(n.N, ">=", n.S)], varying=varying, notation=n).answer
        == "proved"
    )


def test_the_independent_entry_with_high_probability_loses_the_weight_variance():
    interval = form("corollary-4.8", "printed").prescribes["P"]
    window = 6 * total(form("proposition-4.7", "printed:probability")).subs(n.P, interval)
    claimed = total(form("table-1-independent", "printed:probability"))
    varying = [n.T, n.I, n.S, n.N, n.sigma, n.upsilon]
    verdict = order_at_most(window, claimed, [(n.N, ">=", n.S)], varying=varying, notation=n)
    assert isinstance(verdict, Refuted) and verdict.model["upsilon"] < 0
    # for S of N without replacement upsilon^2 is of order 1/(S N): the term grows with S and N
    sampled = {n.upsilon: 1 / sp.sqrt(n.S * n.N)}
    verdict = order_at_most(window.subs(sampled), claimed, [(n.N, ">=", n.S)], varying=varying[:-1], notation=n)
    assert isinstance(verdict, Refuted)
    grows_as_claimed(
        window.subs(sampled | {n.c: sp.Rational(1, 10), n.d: 1}), claimed.subs(n.c, sp.Rational(1, 10)), [], verdict
    )
    # another P restores the rate
    other = 6 * total(form("proposition-4.7", "printed:probability")).subs(
        n.P, n.N ** sp.Rational(5, 2) * sp.sqrt(n.I * n.T)
    )
    assert order_at_most(other, claimed, [(n.N, ">=", n.S)], varying=varying, notation=n).answer == "proved"


def test_half_of_the_rounds_fit_the_interval_exactly_from_n_to_the_fifth_on():
    interval = form("corollary-4.8", "printed").prescribes["P"]
    varying = [n.T, n.I, n.N, n.upsilon]
    enough = n.upsilon**4 * n.N**5 * n.I
    assert order_at_most(interval, n.T, [(n.T, ">=", enough)], varying=varying, notation=n).answer == "proved"
    assert order_at_most(enough, n.T, [(n.T, ">=", interval)], varying=varying, notation=n).answer == "proved"
    verdict = order_at_most(interval, n.T, [(n.T, ">=", n.upsilon**4 * n.N**4 * n.I)], varying=varying, notation=n)
    assert isinstance(verdict, Refuted) and verdict.ratio > 0


def test_waiting_for_all_has_the_regularized_rate_at_equal_oracle_calls():
    waiting = total(form("section-5-wait-for-all")).subs(n.M, n.P * n.S * n.I / n.N)
    claimed = total(form("table-1-regularized"))
    varying = [n.T, n.I, n.S, n.N, n.P, n.sigma]
    assert order_at_most(waiting, claimed, varying=varying).answer == "proved"
    assert order_at_most(claimed, waiting, varying=varying).answer == "proved"


# --- The corollaries from the theorem ---

EVERY = [n.T, n.I, n.P, n.L, n.F, n.rho, n.sigma, n.nu, n.beta, n.delta]


def follows_and_is_tight_but_for_the_drift(theorem, corollary):
    """The corollary's sum bounds the theorem's; each of its terms is needed, but sigma^2/(IPT) stands for
    (1/P + rho^2) sigma^2/(IPT), which is less for long windows and many participants."""
    assert order_at_most(theorem, total(corollary), varying=EVERY, notation=n).answer == "proved"
    for one in corollary.terms:
        verdict = order_at_most(one.expression, theorem, varying=EVERY, notation=n)
        assert verdict.answer == ("false" if one.name == "drift noise" else "proved"), one.name
    assert isinstance(verdict, Refuted) and verdict.model["P"] > 0 > verdict.model["rho"]
    drift = (1 / n.P + n.rho**2) * term(corollary, "drift noise")
    assert order_at_most(drift, theorem, varying=EVERY, notation=n).answer == "proved"


@pytest.mark.parametrize("which", ["printed", "explicit"])
def test_the_order_of_corollary_3_2_is_that_of_the_theorem_at_its_step_sizes(which):
    steps = {n.gamma: STEPS_3_2["gamma"], n.eta: STEPS_3_2["eta"]}
    follows_and_is_tight_but_for_the_drift(total(form("theorem-3.1", which), steps), form("corollary-3.2", "printed"))


def test_the_order_of_corollary_3_3_is_that_of_the_theorem_at_its_step_sizes():
    steps = {n.gamma: STEPS_3_3["gamma"], n.eta: STEPS_3_3["eta"]}
    follows_and_is_tight_but_for_the_drift(
        total(form("theorem-3.1", "printed"), steps), form("corollary-3.3", "printed")
    )


def test_the_explicit_and_the_sharp_theorem_have_the_same_order_at_the_corollarys_step_sizes():
    steps = {n.gamma: STEPS_3_2["gamma"], n.eta: STEPS_3_2["eta"]}
    sharp, explicit = total(form("theorem-3.1", "sharp"), steps), total(form("theorem-3.1", "explicit"), steps)
    enough = [(n.T, ">=", n.P)]
    assert order_at_most(sharp, explicit, enough, varying=EVERY, notation=n).answer == "proved"
    assert order_at_most(explicit, sharp, enough, varying=EVERY, notation=n).answer == "proved"
    assert isinstance(order_at_most(sharp, explicit, varying=EVERY, notation=n), CouldNotTell)  # floor(T/P) may be 0


def test_a_fixed_step_size_keeps_all_but_the_initial_gap():
    assert term_exponents(form("theorem-3.1", "explicit"), n.T) == {
        "initial gap": -1,
        **{name: 0 for name in (t.name for t in form("theorem-3.1", "explicit").terms[1:])},
    }


# --- Exponents ---

T, N, S, I = sp.symbols("T N S I", positive=True)


@pytest.mark.parametrize(
    ("expression", "power"),
    [
        (sp.sqrt(T) / sp.floor(T / N) + 1 / T**2, Fraction(-1, 2)),
        (sp.Min(T, T**2) / sp.Max(1, sp.sqrt(T)), Fraction(1, 2)),
        (1 / (1 - 1 / (2 * T)) + 3 / T, Fraction(0)),
        (1 / (1 - 2 / T), Fraction(0)),
        (1 / (T + N - 1), Fraction(-1)),
        ((T**2 - N * T) / sp.sqrt(T), Fraction(3, 2)),
        ((T + N) ** 3 / (T**2 + 1), Fraction(1)),
        (1 / sp.Min(N / sp.sqrt(T), N), Fraction(1, 2)),
        (T**0, Fraction(0)),
    ],
)
def test_exponents_are_the_slopes_of_the_logarithm(expression, power):
    assert exponent(expression, T) == power
    if expression.free_symbols:
        values = [at(expression, {"T": x, "N": 3.0}) for x in (1e10, 1e12)]
        assert math.log(values[1] / values[0]) / math.log(100) == pytest.approx(float(power), abs=1e-3)


def test_a_term_that_is_zero_has_no_exponent():
    assert exponent(sp.Integer(0), T) is None
    assert "window divergence" not in term_exponents(form("proposition-4.2"), n.T)


@pytest.mark.parametrize("expression", [sp.log(T), T - N * T, sp.sqrt(T) - T, N - T, sp.floor(1 / T)])
def test_an_order_that_cannot_be_reported_is_said(expression):
    with pytest.raises(FedboundsError, match="cannot be told"):
        exponent(expression, T)


# --- Proofs and counterexamples ---


def test_a_proof_is_a_weighted_mean_that_anyone_can_recombine():
    # a geometric mean: sqrt(T S) <= max(T, S) <= T + S, and by N >= S^2 at most T + sqrt(N)
    verdict = order_at_most(sp.sqrt(T * S), T + sp.sqrt(N), [(N, ">=", S**2)], varying=[T, N, S])
    assert isinstance(verdict, Proved)
    (comparison,) = verdict.proof
    order, rows = ["N", "S", "T"], {"N >= S**2": (1, -2, 0)}
    left = [sum(w * v[i] for v, w in comparison.left.items()) for i in range(3)]
    right = [sum(w * v[i] for v, w in comparison.right.items()) for i in range(3)]
    slack = [sum(p * rows[text][i] for text, p in comparison.assumptions.items()) for i in range(3)]
    assert order == sorted(order) and left == [r - s for r, s in zip(right, slack, strict=True)]
    assert sum(comparison.left.values()) == sum(comparison.right.values()) == 1
    assert all(w > 0 for w in (*comparison.left.values(), *comparison.right.values(), *comparison.assumptions.values()))


powers = st.integers(-2, 2)
monomials = st.tuples(powers, powers, powers)


@settings(max_examples=60)
@given(
    st.lists(monomials, min_size=1, max_size=2),
    st.lists(monomials, min_size=1, max_size=3),
    st.lists(monomials, max_size=2),
)
def test_the_answer_agrees_with_a_search_over_directions(left, right, cone):
    def written(vector):
        return T ** vector[0] * N ** vector[1] * S ** vector[2]

    above, below = sum(map(written, left)), sum(map(written, right))
    when = [(written(v), ">=", sp.Integer(1)) for v in cone]
    verdict = order_at_most(above, below, when, varying=[T, N, S])
    grid = np.array(np.meshgrid(*[np.arange(-6, 7)] * 3)).reshape(3, -1)
    inside = (np.array(cone).reshape(-1, 3) @ grid >= 0).all(axis=0)
    gap = (np.array(left) @ grid).max(axis=0) - (np.array(right) @ grid).max(axis=0)
    if isinstance(verdict, Proved):
        assert not (inside & (gap > 0)).any()
    else:
        assert isinstance(verdict, Refuted) and verdict.ratio > 0
        model = np.array([float(verdict.model[name]) for name in ("T", "N", "S")])
        assert (np.array(cone).reshape(-1, 3) @ model >= 0).all()
        assert (np.array(left) @ model).max() - (np.array(right) @ model).max() == float(verdict.ratio)
        if max(abs(model)) <= 20:
            grows_as_claimed(above, below, when, verdict)


@pytest.mark.parametrize(
    ("left", "right", "when", "why"),
    [
        (N - S, N, (), "nothing says"),
        (-N, N, (), "nothing says|negative"),
        (sp.log(N), N, (), "how log"),
        (N, N, [(N - S, ">=", S)], "nothing says"),
        (N, N, [(N, ">=", sp.log(S))], "how log"),
        (N, N, [(N + S, "<=", T + I)], "comparison of products"),
        (N, sp.Integer(0), (), "zero"),
    ],
)
def test_what_is_beyond_products_is_not_guessed(left, right, when, why):
    verdict = order_at_most(left, right, when, varying=[N, S, T, I])
    assert isinstance(verdict, CouldNotTell)
    assert any(part in verdict.why for part in why.split("|")), verdict.why


def test_a_logarithm_on_both_sides_cancels():
    assert (
        order_at_most(sp.log(N) / T, sp.log(N) / sp.sqrt(T), [(T, ">=", sp.Integer(1))], varying=[N, T]).answer
        == "proved"
    )


def test_a_wrong_question_about_terms_is_one_line():
    with pytest.raises(FedboundsError, match="unknown term"):
        regime(form("corollary-4.3"), "noize", varying=[n.T])
    with pytest.raises(FedboundsError, match="compares with"):
        order_at_most(N, N, [(N, "!=", S)], varying=[N, S])
