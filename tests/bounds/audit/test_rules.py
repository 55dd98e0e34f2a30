"""Every rule of inference accepts a true instance and refuses wrong ones that differ from it in one place."""

from __future__ import annotations

from dataclasses import replace

import flint
import pytest
import sympy as sp

from fedbounds.bounds.audit.axioms import (
    Assumed,
    Descent,
    Independent,
    Jensen,
    MeanOf,
    NoiseOverTime,
    Smooth,
    Starts,
    Uncorrelated,
)
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import AtMinimum, InExpectation, Leading, Lemma, Markov, Prescribed, Specialize
from fedbounds.bounds.audit.geometric_sums import GeometricSum, coefficients_dominate, subdivide
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import (
    ClientByClient,
    Combine,
    Everywhere,
    Gram,
    Stated,
    Telescope,
    Unfolded,
    Unroll,
    power_sum,
)
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, product_symbol, square

x, y, z, L, F = sp.symbols("x y z L F", positive=True)
a, b = sp.symbols("a b", nonnegative=True)
r = sp.Symbol("r", real=True)
n, T = sp.symbols("n T", integer=True, positive=True)
ZERO, ONE, TENTH = sp.S.Zero, sp.S.One, sp.Rational(9, 10)
ATOMS = (
    Atom("y", "point", 0, "a local model", mean="m"),
    Atom("m", "point", 0, "the mean model", per_client=False),
    Atom("later", "point", 1, "a model of the next step"),
    Atom("gy", "gradient", 0, "grad F_n(y)", at="y", mean="mgy"),
    Atom("mgy", "gradient", 0, "its mean", per_client=False, of="mean"),
    Atom("gm", "gradient", 0, "grad F_n(m)", at="m", mean="mgm"),
    Atom("mgm", "gradient", 0, "its mean", per_client=False, of="mean"),
    Atom("fm", "gradient", 0, "grad f(m)", at="m", of="f", per_client=False, still=True),
    Atom("xi", "noise", 0, "noise", mean="mxi"),
    Atom("mxi", "noise", 0, "mean noise", per_client=False, mean="z"),
    Atom("next", "noise", 1, "noise of the next step"),
    Atom("z", "noise", 0, "mean noise of all steps", per_client=False),
    Atom("odd", "point", 0, "a vector whose mean is not a mean", mean="y"),
)
SETTING = ProofSetting("clients", {atom.name: atom for atom in ATOMS})
Y, M, LATER, GY, MGY, GM, MGM, FM, XI, MXI, NEXT, Z, ODD = (Vec.atom(atom.name) for atom in ATOMS)
SPREAD = square(Y - M)


def finding(rule, conclusion, premises=(), facts=(), setting=SETTING):
    return rule.check(conclusion, premises, facts, setting)


def accepts(rule, conclusion, premises=(), facts=()):
    return finding(rule, conclusion, premises, facts).holds


# --- Combinations ----------------------------------------------------------------------------------------------------

AB, BC = Relation(x, y), Relation(y, z)


def test_a_combination_adds_its_premises():
    assert accepts(Combine((1, 1)), Relation(x, z), (AB, BC))
    assert accepts(Combine((2,)), Relation(2 * x, 2 * y + 1), (AB,))
    assert accepts(Combine((r,)), Relation(r * x, r * y, "=="), (Relation(x, y, "=="),))


@pytest.mark.parametrize(
    ("rule", "conclusion", "premises"),
    [
        (Combine((1, 1)), Relation(x, TENTH * z), (AB, BC)),
        (Combine((1, 1)), Relation(z, x), (AB, BC)),
        (Combine((1,)), Relation(x, z), (AB,)),
        (Combine((1,)), Relation(x, z), (AB, BC)),
        (Combine((-1,)), Relation(y, x), (AB,)),
        (Combine((r,)), Relation(r * x, r * y), (AB,)),
        (Combine((1,)), Relation(x, y, "=="), (AB,)),
        (Combine((1 / a,)), Relation(x, y), (Relation(a * x, a * y),)),
        (Combine((1 / (x - y),)), Relation(a, b), (Relation((x - y) * a, (x - y) * b, "=="),)),
        (Combine((product_symbol("y", "m"),)), Relation(ZERO, ONE), (AB,)),
    ],
    ids=[
        "a constant less by 10 percent",
        "the wrong sign",
        "a missing premise",
        "a missing multiplier",
        "a negative multiplier",
        "a multiplier of unknown sign",
        "an equality from an inequality",
        "a division by a symbol that may be zero",
        "a division by a difference that may be zero",
        "a product of two vectors as multiplier",
    ],
)
def test_a_wrong_combination_is_refused(rule, conclusion, premises):
    assert not accepts(rule, conclusion, premises)


# --- Gram matrices ---------------------------------------------------------------------------------------------------

YOUNG = Relation(square(Y - M), 2 * square(Y) + 2 * square(M))


def test_young_holds_for_every_gram_matrix():
    assert accepts(Gram(), YOUNG)
    assert accepts(Gram(), Relation(square(Y + x * M), (1 + x) * square(Y) + (x + x**2) * square(M)))


def test_an_orthogonal_pair_gives_pythagoras():
    orthogonal = Relation(inner(Y, M), ZERO, "==")
    assert accepts(Gram(), Relation(square(Y + M), square(Y) + square(M), "=="), (orthogonal,))
    assert not accepts(Gram(), Relation(square(Y + M), square(Y) + square(M), "=="))
    assert not accepts(Gram(), YOUNG, (Relation(inner(Y, M), ZERO),))


@pytest.mark.parametrize("conclusion", [replace(YOUNG, right=TENTH * YOUNG.right), Relation(YOUNG.right, YOUNG.left)])
def test_young_with_a_smaller_constant_or_turned_is_refused(conclusion):
    assert not accepts(Gram(), conclusion)


def test_a_premise_that_says_nothing_where_a_symbol_is_zero_is_no_orthogonality():
    nothing_at_zero = Relation(a * inner(Y, M), ZERO, "==")
    assert not accepts(Gram(), Relation(square(Y + M), square(Y) + square(M), "=="), (nothing_at_zero,))


def test_a_pivot_that_the_facts_make_zero_needs_an_empty_row():
    indefinite = (x - y) * square(Y) + 2 * inner(Y, M) - 5 * square(M)
    assert not accepts(Gram(), Relation(ZERO, indefinite), (), (Relation(x, y, "=="),))


# --- Sums over clients -----------------------------------------------------------------------------------------------

q, v = sp.Symbol("q_n", nonnegative=True), sp.Symbol("v_n", nonnegative=True)
SUMS = (((1, 0), ONE), ((2, 0), x), ((1, 1), y), ((2, 1), z))
POINTWISE = ClientByClient(q * (1 - q) * (L - v), (Relation(q, ONE), Relation(v, L)), (q, v), SUMS)


def test_a_sum_over_clients_of_nonnegative_terms_is_nonnegative():
    assert accepts(POINTWISE, Relation(y - z, L * (1 - x)))


@pytest.mark.parametrize(
    ("rule", "conclusion"),
    [
        (POINTWISE, Relation(y - z, TENTH * L * (1 - x))),
        (POINTWISE, Relation(L * (1 - x), y - z)),
        (replace(POINTWISE, facts=POINTWISE.facts[:1]), Relation(y - z, L * (1 - x))),
        (replace(POINTWISE, pointwise=-POINTWISE.pointwise), Relation(L * (1 - x), y - z)),
        (replace(POINTWISE, sums=SUMS[:3]), Relation(y - z, L * (1 - x))),
    ],
    ids=["constant", "sign", "a fact missing", "a negative term", "a sum missing"],
)
def test_a_wrong_sum_over_clients_is_refused(rule, conclusion):
    assert not accepts(rule, conclusion)


# --- Recursions ------------------------------------------------------------------------------------------------------

AFTER = square(LATER - M)
RATIO = 1 + 1 / n
START, RECURSION = Relation(SPREAD, ZERO, "=="), Relation(AFTER, RATIO * SPREAD + x)
UNROLLED = Relation(SPREAD, x * power_sum(RATIO, n))
UNROLL = Unroll(SPREAD, AFTER, n, varying=(z,))


def test_a_linear_recursion_unrolls_to_a_geometric_sum():
    assert accepts(UNROLL, UNROLLED, (START, RECURSION))
    constant = replace(RECURSION, right=RATIO * SPREAD + square(FM))
    assert accepts(UNROLL, replace(UNROLLED, right=square(FM) * power_sum(RATIO, n)), (START, constant))


@pytest.mark.parametrize(
    ("conclusion", "premises", "says"),
    [
        (replace(UNROLLED, right=TENTH * UNROLLED.right), (START, RECURSION), "unrolls to"),
        (replace(UNROLLED, right=x * power_sum(RATIO, n - 1)), (START, RECURSION), "unrolls to"),
        (UNROLLED, (replace(START, right=ONE), RECURSION), "does not start"),
        (UNROLLED, (RECURSION,), "the first premises must be"),
        (UNROLLED, (START, replace(RECURSION, left=SPREAD)), "does not bound the next value"),
        (UNROLLED, (START, replace(RECURSION, right=(1 - 1 / n) * SPREAD + x)), "multiplier less 1"),
        (UNROLLED, (START, replace(RECURSION, right=RATIO * SPREAD - x)), "additive term"),
        (UNROLLED, (START, replace(RECURSION, right=RATIO * SPREAD + z)), "z changes between the steps"),
        (UNROLLED, (START, replace(RECURSION, right=RATIO * SPREAD + square(GY))), "<gy,gy> changes between the steps"),
    ],
    ids=["constant", "steps", "start", "missing", "next", "multiplier", "additive", "varying", "moving vector"],
)
def test_a_wrong_recursion_is_refused(conclusion, premises, says):
    found = finding(UNROLL, conclusion, premises)
    assert not found.holds and says in found.evidence


def test_a_geometric_sum_has_its_exact_constant_and_no_smaller_one():
    third = sp.Rational(1, 2)
    left = power_sum(1 + third / (n - sp.Rational(1, 2)), n)
    exact = (sp.exp(third) - 1) / third
    for constant in (exact, sp.Rational(13, 10)):
        assert accepts(GeometricSum(third, n, constant), Relation(left, constant * n))
    small = sp.Rational(129, 100)  # the supremum is 1.2974
    assert not accepts(GeometricSum(third, n, small), Relation(left, small * n))
    assert not accepts(GeometricSum(third, n, exact), Relation(left, TENTH * exact * n))
    assert not accepts(GeometricSum(third, n, exact), Relation(left, exact * (n - 1)))
    assert not accepts(GeometricSum(third, x, exact), Relation(power_sum(1 + third / (x - third), x), exact * x))
    assert not accepts(GeometricSum(sp.Rational(3, 2), n, 9 * ONE), Relation(left, 9 * n))
    assert coefficients_dominate(third) is not None
    assert subdivide(third, flint.arb("1.2")) is None


# --- Averages --------------------------------------------------------------------------------------------------------

DECREASE, LEAST = sp.Symbol("decrease", real=True), sp.Symbol("[least]", nonnegative=True)
PER_WINDOW = Relation(square(FM), x * DECREASE + y)
TELESCOPE = Telescope(DECREASE, F, T, LEAST, square(FM))
TELESCOPED = Relation(LEAST, x * F / T + y)


def test_windows_telescope_to_the_initial_gap():
    assert accepts(TELESCOPE, TELESCOPED, (PER_WINDOW,))


@pytest.mark.parametrize(
    ("rule", "conclusion", "premise"),
    [
        (TELESCOPE, Relation(LEAST, TENTH * x * F / T + y), PER_WINDOW),
        (TELESCOPE, Relation(LEAST, x * F / (T + 1) + y), PER_WINDOW),
        (TELESCOPE, TELESCOPED, replace(PER_WINDOW, left=square(GY))),
        (TELESCOPE, Relation(LEAST, y - x * F / T), replace(PER_WINDOW, right=y - x * DECREASE)),
        (TELESCOPE, Relation(LEAST, x * F**2 / T**2 + y), replace(PER_WINDOW, right=x * DECREASE**2 + y)),
        (TELESCOPE, Relation(LEAST, x * F / T + SPREAD), replace(PER_WINDOW, right=x * DECREASE + SPREAD)),
        (replace(TELESCOPE, rounds=sp.floor(x)), Relation(LEAST, x * F / sp.floor(x) + y), PER_WINDOW),
    ],
    ids=["constant", "index", "another quantity", "sign", "not linear", "a vector that moves", "perhaps no window"],
)
def test_a_wrong_telescope_is_refused(rule, conclusion, premise):
    assert not accepts(rule, conclusion, (premise,))


def test_an_average_is_at_most_a_bound_that_holds_everywhere():
    rule, average = Everywhere((z,), SPREAD, LEAST), Relation(LEAST, x)
    assert accepts(rule, average, (Relation(SPREAD, x),))
    assert not accepts(rule, Relation(LEAST, TENTH * x), (Relation(SPREAD, x),))
    assert not accepts(rule, Relation(LEAST, z), (Relation(SPREAD, z),))
    assert not accepts(rule, average, (Relation(AFTER, x),))
    assert not accepts(rule, average, (Relation(SPREAD, x, "=="),))
    assert not accepts(rule, average)


# --- Axioms ----------------------------------------------------------------------------------------------------------

SMOOTHNESS = Relation(square(GY - GM), L**2 * SPREAD)
DESCENT = Descent("fm", -x * MGY, DECREASE, L)
AXIOMS = {
    "smoothness": (Smooth("gy", "gm", L), SMOOTHNESS, ()),
    "noise of now and the past": (Uncorrelated(XI - MXI, Y - GY), Relation(inner(XI - MXI, Y - GY), ZERO, "=="), ()),
    "a mean against what is common": (MeanOf(Y, FM), Relation(inner(Y, FM), inner(M, FM), "=="), ()),
    "Jensen": (Jensen(Y - GY), Relation(square(M - MGY), square(Y - GY)), ()),
    "independence": (Independent("xi", x), Relation(square(MXI), x, "=="), ()),
    "noise over time": (NoiseOverTime("z", "mxi", n), Relation(square(Z), x / n), (Relation(square(MXI), x),)),
    "a hypothesis": (Assumed(SPREAD, x, ("weights",)), Relation(SPREAD, x), ()),
    "descent": (DESCENT, Relation(-DECREASE, -x * inner(FM, MGY) + L * x**2 / 2 * square(MGY)), ()),
    "a start": (Starts(SPREAD, "all start there"), Relation(SPREAD, ZERO, "=="), ()),
}


@pytest.mark.parametrize("name", AXIOMS)
def test_an_axiom_yields_its_relation_and_no_other(name):
    rule, relation, premises = AXIOMS[name]
    assert accepts(rule, relation, premises)
    assert not accepts(rule, replace(relation, right=TENTH * relation.right - x / 10), premises)
    assert not accepts(rule, replace(relation, left=relation.right, right=relation.left), premises)
    assert not accepts(rule, replace(relation, op="==" if relation.op == "<=" else "<="), premises)


UNFIT = {
    "gradients of different functions": (Smooth("gm", "fm", L), SMOOTHNESS, "not gradients of one function"),
    "a gradient and a point": (Smooth("gy", "m", L), SMOOTHNESS, "not gradients of one function"),
    "means of gradients": (Smooth("mgy", "mgm", L), SMOOTHNESS, "not gradients of one function"),
    "a later point": (Uncorrelated(XI, LATER), Relation(inner(XI, LATER), ZERO, "=="), "later may depend on the noise"),
    "noise with noise": (Uncorrelated(XI, MXI), Relation(inner(XI, MXI), ZERO, "=="), "mxi may depend on the noise"),
    "noise of two times": (
        Uncorrelated(XI + NEXT, Y),
        Relation(inner(XI + NEXT, Y), ZERO, "=="),
        "not noise of one time",
    ),
    "a vector that differs between clients": (MeanOf(Y, GY), Relation(inner(Y, GY), inner(M, GY), "=="), "gy differs"),
    "a mean that is not declared": (Jensen(LATER), Relation(square(M), square(LATER)), "mean of later is not declared"),
    "a mean that is not the mean": (Jensen(Y), Relation(square(MGY), square(Y)), "the axiom says"),
    "a mean that differs between clients": (Jensen(ODD), Relation(square(Y), square(ODD)), "the mean of odd, differs"),
    "independence of what is no noise": (Independent("y", x), Relation(square(M), x, "=="), "not noise"),
    "the mean of other noise": (NoiseOverTime("m", "mxi", n), Relation(square(M), x / n), "not the mean of the noise"),
    "noise without its bound": (NoiseOverTime("z", "mxi", n), Relation(square(Z), x / n), "does not bound"),
    "descent along another gradient": (replace(DESCENT, gradient="gm"), AXIOMS["descent"][1], "not a gradient of f"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_axiom_refuses_vectors_it_does_not_speak_of(name):
    rule, relation, says = UNFIT[name]
    found = finding(rule, relation)
    assert not found.holds and says in found.evidence


def test_every_axiom_but_the_algorithm_names_the_assumptions_it_needs():
    assert [name for name, (rule, _, _) in AXIOMS.items() if not rule.needs] == ["a start"]


# --- Derivations -----------------------------------------------------------------------------------------------------

FORM = Relation(LEAST, F / x + x * L * y**2)
MINIMUM = (z, 1 / L)


def test_a_form_is_specialized_by_substitution():
    rule = Specialize(((x, 1 / L),))
    assert accepts(rule, Relation(LEAST, F * L + y**2), (FORM,))
    assert not accepts(rule, Relation(LEAST, TENTH * F * L + y**2), (FORM,))
    assert not accepts(rule, Relation(LEAST, F * L**2 + y**2), (FORM,))


def test_a_hypothesis_is_discharged_only_by_what_it_says():
    rule = Specialize(((y, z),), (("divergence", Relation(SPREAD, y**2)),))
    conclusion = Relation(LEAST, F / x + x * L * z**2)
    assert accepts(rule, conclusion, (FORM, Relation(SPREAD, z**2)))
    assert not accepts(rule, conclusion, (FORM, Relation(SPREAD, 2 * z**2)))
    assert not accepts(rule, conclusion, (FORM, Relation(AFTER, z**2)))
    assert not accepts(rule, conclusion, (FORM,))


def test_a_whole_number_must_be_known_to_be_one():
    rule = Specialize(((n, x / y),))
    form, conclusion = Relation(LEAST, F / n), Relation(LEAST, F * y / x)
    floor = Relation(x / y, sp.floor(x / y + sp.Rational(1, 2)), "==")
    assert accepts(rule, conclusion, (form,), (floor, Relation(ONE, x / y)))
    assert not accepts(rule, conclusion, (form,), (floor,))
    assert not accepts(rule, conclusion, (form,))


def test_a_minimum_is_at_most_each_branch_and_its_inverse_at_most_their_sum():
    assert accepts(Prescribed(x, MINIMUM, 0), Relation(x, z))
    assert accepts(Prescribed(x, MINIMUM, None), Relation(1 / x, 1 / z + L))
    assert not accepts(Prescribed(x, MINIMUM, 0), Relation(x, TENTH * z))
    assert not accepts(Prescribed(x, MINIMUM, 0), Relation(x, 1 / L))
    assert not accepts(Prescribed(x, MINIMUM, None), Relation(1 / x, L))


def test_at_a_minimum_each_term_takes_its_own_branch():
    rule = AtMinimum(x, MINIMUM)
    right = sp.Max(F / z, F * L) + sp.Min(z * L * y**2, y**2)
    assert accepts(rule, Relation(LEAST, right), (FORM,))
    assert not accepts(rule, Relation(LEAST, right.xreplace({y: 2 * y})), (FORM,))
    assert not accepts(rule, Relation(LEAST, sp.Min(F / z, F * L) + sp.Min(z * L * y**2, y**2)), (FORM,))
    assert not accepts(rule, Relation(LEAST, sp.Max(F / z, F * L)), (Relation(LEAST, F / x - x * y),))


def test_an_expectation_passes_through_what_is_linear_only():
    mean = sp.Symbol("E x", nonnegative=True)
    rule = InExpectation(((x, mean),), "x")
    assert accepts(rule, Relation(LEAST, 2 * mean + y), (Relation(LEAST, 2 * x + y),))
    assert not accepts(rule, Relation(LEAST, TENTH * 2 * mean + y), (Relation(LEAST, 2 * x + y),))
    assert not accepts(rule, Relation(LEAST, mean**2), (Relation(LEAST, x**2),))
    assert not accepts(rule, Relation(LEAST, 1 / mean), (Relation(LEAST, 1 / x),))


def test_markov_and_cited_lemmas_give_their_own_constant():
    likely = sp.Symbol("likely", nonnegative=True)
    assert accepts(Markov(x, likely), Relation(likely, y / x), (Relation(LEAST, y),))
    assert not accepts(Markov(x, likely), Relation(likely, y), (Relation(LEAST, y),))
    assert accepts(Lemma("cited", LEAST, y), Relation(LEAST, y))
    assert not accepts(Lemma("cited", LEAST, y), Relation(LEAST, TENTH * y))


def test_the_order_for_large_t_is_that_of_the_slowest_term():
    bound = Relation(LEAST, 3 * F / sp.sqrt(T) + y / T)
    rule = Leading(1 / sp.sqrt(T), T, (F,))
    assert accepts(rule, Relation(LEAST, 3 * F / sp.sqrt(T)), (bound,))
    assert not accepts(rule, Relation(LEAST, 2 * F / sp.sqrt(T)), (bound,))
    assert not accepts(replace(rule, rate=1 / T), Relation(LEAST, 3 * F / sp.sqrt(T)), (bound,))
    assert not accepts(replace(rule, hidden=()), Relation(LEAST, 3 * F / sp.sqrt(T)), (bound,))


# --- Conditions as they stand, and symbols for what they stand for ---------------------------------------------------


def test_a_condition_is_stated_as_it_is_and_not_otherwise():
    given = [Relation(x, 2 * y), Relation(z, ONE, "==")]
    assert accepts(Stated(), Relation(x, y + y), facts=given)
    assert accepts(Stated(), Relation(z, ONE, "=="), facts=given)
    for other in (Relation(x, y), Relation(2 * y, x), Relation(z, ONE), Relation(x, 2 * y, "==")):
        assert not accepts(Stated(), other, facts=given)


def test_symbols_may_stand_for_what_they_are_and_their_signs_are_proved():
    A, B, C = sp.Symbol("A", nonnegative=True), sp.Symbol("B", nonnegative=True), sp.Symbol("C", positive=True)
    setting = replace(SETTING, symbols={A: x - y, B: A**2 + z, C: 1 + B})
    long, short = Relation(r, (x - y) ** 2 + z), Relation(r, B)
    below = Relation(y, x)
    rule = Unfolded((ONE,))
    assert finding(rule, short, (long,), [below], setting).holds
    assert finding(rule, long, (short,), [below], setting).holds
    assert finding(rule, Relation(r, C - 1), (long,), [below], setting).holds
    signless = finding(rule, Relation(r, A), (Relation(r, x - y),), (), setting)
    assert not signless.holds and "A is not negative, x - y may be" in signless.evidence
    assert finding(rule, Relation(r, B + z), (long,), [below], setting).holds
    for other in (Relation(r, TENTH * B), Relation(B, r), Relation(r, B, "==")):
        assert not finding(rule, other, (long,), [below], setting).holds
    assert not finding(Unfolded(), short, (), [below], setting).holds


def test_a_symbol_that_is_positive_must_stand_for_what_is_never_zero():
    A = sp.Symbol("A", positive=True)
    for value, facts, holds in ((x * y, (), True), (a, (), False), (a, [Relation(ONE, a)], True)):
        setting = replace(SETTING, symbols={A: value})
        assert finding(Unfolded((ONE,)), Relation(r, A), (Relation(r, value),), facts, setting).holds is holds


def test_a_common_factor_that_may_vanish_does_not_stop_a_square():
    u, v = Vec.atom("fm"), Vec.atom("m")
    assert accepts(Gram(), Relation(2 * a * inner(u, v), sp.expand(a * square(u) + a * square(v))))
    assert not accepts(Gram(), Relation(2 * a * inner(u, v), sp.expand(TENTH * a * square(u) + a * square(v))))
    assert not accepts(Gram(), Relation(2 * r * inner(u, v), sp.expand(r * square(u) + r * square(v))))
