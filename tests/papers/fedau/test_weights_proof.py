"""Lemma B.6.1, Theorem 3, Lemma B.7.1 and Corollary 4 of Wang & Ji (2024): their rules, steps and numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.audit import limit_checker as limits
from fedbounds.bounds.audit import proof_step_checker as steps
from fedbounds.bounds.audit.averages import AverageOverClients, HarmonicAverage, StandsFor
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.claim_set import ClaimSet, result_claims
from fedbounds.bounds.audit.derivations import Specialize
from fedbounds.bounds.audit.induction import Induction
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.transcendental import Opened, algebraic_form
from fedbounds.bounds.papers.fedau import corollaries, results
from fedbounds.bounds.papers.fedau.corollaries import C_W, COROLLARY_4, GLOBAL_STEP, LOCAL_STEP
from fedbounds.bounds.papers.fedau.limits import LIMITS
from fedbounds.bounds.papers.fedau.proof import PROOFS, corollary, known_rates, weights
from fedbounds.bounds.papers.fedau.proof.corollary import PrescribedProduct
from fedbounds.bounds.papers.fedau.proof.exponentials import Tangent
from fedbounds.bounds.papers.fedau.proof.whole_numbers import Cases, Division, WholeNumber
from fedbounds.bounds.papers.fedau.results import THEOREM_2
from fedbounds.bounds.papers.fedau.weight_error import weight_error
from fedbounds.bounds.theory.client_reductions import MeanOverClients
from tests.papers.fedau.exact_weights import exact_weight_moments

a, b, x, y, L, F = sp.symbols("a b x y L F", positive=True)
k, m, n, T = sp.symbols("k m n T", integer=True, positive=True)
s = sp.Symbol("s", integer=True, nonnegative=True)
p = sp.Symbol("p", positive=True)
R = sp.Symbol("R", nonnegative=True)
E, EACH, MEAN = (sp.Symbol(f"[{name}]", nonnegative=True) for name in ("E", "each", "mean"))
ZERO, ONE, TWO = sp.S.Zero, sp.S.One, sp.Integer(2)
SETTING = ProofSetting("nothing", {})
RATE, MANY = Relation(p, ONE), Relation(TWO, T)
q = 1 - p


def finding(rule, conclusion, premises=(), facts=()):
    return rule.check(conclusion, premises, facts, SETTING)


def accepts(rule, conclusion, premises=(), facts=()):
    return finding(rule, conclusion, premises, facts).holds


# --- Powers and logarithms --------------------------------------------------------------------------------------------


def test_powers_of_one_base_share_a_symbol_whose_exponent_is_never_negative():
    (first, second), known = algebraic_form([q ** (2 * n), q ** (n - 1)], [RATE])
    (letter,) = (t for t in second.free_symbols if t != p)
    assert first == letter**2 * q**2 and second == letter
    assert known == [Relation(letter, ONE)]


def test_a_power_with_a_positive_exponent_is_at_most_its_base():
    assert accepts(Opened(), Relation(q**n, q), (), [RATE])
    assert accepts(Opened(), Relation(q ** (2 * n), q**n), (), [RATE])


@pytest.mark.parametrize(
    ("left", "right", "facts"),
    [
        (q**n, sp.Rational(9, 10) * q, [RATE]),
        (q**n, q, []),  # 1 - p may be negative
        (q**n, q ** (2 * n), [RATE]),
        (q ** (n - 1), q, [RATE]),  # n may be 1
        (sp.log(T), ZERO, [MANY]),
        (ONE, sp.log(T), [MANY]),
        (sp.log(2), sp.log(T), []),
    ],
)
def test_powers_and_logarithms_are_not_smaller_than_they_are(left, right, facts):
    assert not accepts(Opened(), Relation(left, right), (), facts)


def test_logarithms_increase_and_those_of_numbers_are_known():
    assert accepts(Opened(), Relation(sp.log(2), sp.log(T)), (), [MANY])
    assert accepts(Opened(), Relation(sp.log(T), sp.log(T + 1)))
    assert accepts(Opened(), Relation(sp.Rational("0.693"), sp.log(2)))
    assert not accepts(Opened(), Relation(sp.Rational("0.694"), sp.log(2)))


def test_the_root_of_a_sum_of_squares_is_at_most_the_sum():
    assert accepts(Opened(), Relation(sp.sqrt(a**2 + b**2), a + b))
    assert not accepts(Opened(), Relation(a + b, sp.sqrt(a**2 + b**2)))
    assert not accepts(Opened(), Relation(sp.sqrt(a**2 + b**2), (a + b) / 2))


def test_an_opaque_sum_is_a_symbol_and_nothing_is_known_of_it():
    total = sp.Sum(q**k, (k, 1, n))
    assert accepts(Opened((1,)), Relation(E, total), (Relation(E, total),))
    assert not accepts(Opened(), Relation(ZERO, total - 1), (), [RATE])


# --- Induction --------------------------------------------------------------------------------------------------------

FIRST = sp.Sum(k, (k, 1, n))
HARMONIC = sp.Sum(1 / k, (k, 1, T - 1))


def test_sums_are_found_by_induction():
    assert accepts(Induction(n), Relation(FIRST, n * (n + 1) / 2, "=="))
    assert accepts(Induction(n), Relation(FIRST, n**2))
    assert accepts(Induction(T, 2), Relation(HARMONIC, 1 + sp.log(T - 1)), (), [MANY])


@pytest.mark.parametrize(
    ("rule", "conclusion", "facts"),
    [
        (Induction(n), Relation(FIRST, n * (n - 1) / 2, "=="), []),
        (Induction(n), Relation(FIRST, n * (n + 1) / 2 + 1, "=="), []),  # right increments, wrong start
        (Induction(n), Relation(FIRST, n, "=="), []),  # right start, wrong increments
        (Induction(n), Relation(FIRST, n), []),
        (Induction(n, 2), Relation(FIRST, n**2), []),  # n may be 1
        (Induction(n), Relation(FIRST, n**2 / 2), [Relation(sp.Integer(10), n)]),
        (Induction(x), Relation(x, x**2), []),  # not a whole number
        (Induction(n), Relation(sp.Sum(n * k, (k, 1, n)), n**3), []),  # n in the summand
        (Induction(n), Relation(sp.Sum(k, (k, 1, 2 * n)), 5 * n**2), []),  # two summands at a time
        (Induction(n), Relation(E, n * E), []),  # E may depend on n
        (Induction(T, 2), Relation(HARMONIC, sp.log(T - 1)), [MANY]),
        (Induction(T, 2), Relation(HARMONIC, 1 + sp.Rational(9, 10) * sp.log(T - 1)), [MANY]),
    ],
)
def test_wrong_sums_are_not_found_by_induction(rule, conclusion, facts):
    assert not accepts(rule, conclusion, (), facts)


def test_a_fact_about_large_numbers_does_not_help_the_induction_through_small_ones():
    nine = Relation(sp.Integer(9), n)
    claimed = Relation(sp.Sum(sp.Integer(9), (k, 1, n)), n**2 + 20)
    assert not accepts(Induction(n), claimed, (), [nine])


# --- Whole numbers ----------------------------------------------------------------------------------------------------


def test_division_with_a_remainder():
    assert accepts(Division(s, n), Relation(s + 1, n * (sp.floor(s / n) + 1)))
    assert not accepts(Division(s, n), Relation(s + 2, n * (sp.floor(s / n) + 1)))
    assert not accepts(Division(x, n), Relation(x + 1, n * (sp.floor(x / n) + 1)))


LATE, EARLY, ALL = (sp.Symbol(f"[{name}]", nonnegative=True) for name in ("late", "early", "all"))
CASES = Cases(m, n, s, (LATE, EARLY), ALL)


def test_two_cases_cover_all_pairs_of_whole_numbers():
    bound = n / m + q ** (2 * n)
    both = (Relation(LATE, bound.subs(m, n + s)), Relation(EARLY, bound.subs(n, m + 1 + s)))
    assert accepts(CASES, Relation(ALL, bound), both)
    assert not accepts(CASES, Relation(ALL, bound), both[::-1])
    assert not accepts(CASES, Relation(ALL, bound), (both[0], both[0]))
    assert not accepts(CASES, Relation(ALL, bound), both[:1])
    assert not accepts(CASES, Relation(ALL, bound / 2), both)
    assert not accepts(CASES, Relation(ALL, bound, "=="), both)


def test_two_cases_leave_none_out():
    bound = n / m
    unequal = (Relation(LATE, bound.subs(m, n + s)), Relation(EARLY, bound.subs(n, m + 2 + s)))
    assert not accepts(CASES, Relation(ALL, bound), unequal)
    assert not accepts(replace(CASES, apart=k), Relation(ALL, bound), unequal)  # k >= 1 leaves m = n out


WHOLE = WholeNumber(n, x, R * sp.log(T), "at least")


def test_a_number_rounded_up_lies_between():
    value = R * sp.log(T)
    assert accepts(WHOLE, Relation(value, n))
    assert accepts(replace(WHOLE, which="at most"), Relation(n, value + 1))
    assert WHOLE.prescribes == ((x, sp.Max(1, sp.ceiling(value))),)
    assert not accepts(WHOLE, Relation(value + 1, n))
    assert not accepts(replace(WHOLE, which="at most"), Relation(n, value))
    assert not accepts(replace(WHOLE, letter=y), Relation(value, y))
    assert not accepts(replace(WHOLE, value=value - 1, which="at most"), Relation(n, value))  # may be negative


def test_a_number_is_whole_only_where_that_is_a_condition():
    value = R * sp.log(T)
    exact = replace(WHOLE, which="equal")
    facts = [Relation(value, sp.floor(value + sp.Rational(1, 2)), "=="), Relation(ONE, value)]
    assert accepts(exact, Relation(n, value, "=="), (), facts)
    assert exact.prescribes == ((x, value),)
    for fewer in ([], facts[:1], facts[1:]):
        assert not accepts(exact, Relation(n, value, "=="), (), fewer)


# --- Averages and definitions -----------------------------------------------------------------------------------------

ROUNDS = HarmonicAverage(E, EACH, MEAN, m, T)
SUM = sp.Sum(1 / k, (k, 1, T - 1))


def test_rounds_are_averaged_with_a_harmonic_number():
    both = (Relation(E, a), Relation(EACH, b + x / m))
    assert accepts(ROUNDS, Relation(MEAN, (a + (T - 1) * b + x * SUM) / T), both)
    for wrong in ((a + T * b + x * SUM) / T, ((T - 1) * b + x * SUM) / T, (a + (T - 1) * b + x) / T):
        assert not accepts(ROUNDS, Relation(MEAN, wrong), both)
    squared = (both[0], Relation(EACH, b + x / m**2))
    assert not accepts(ROUNDS, Relation(MEAN, (a + (T - 1) * b + x * SUM) / T), squared)
    assert not accepts(ROUNDS, Relation(MEAN, (a + (T - 1) * b + x * SUM) / T), both[::-1])


CLIENTS = AverageOverClients(EACH, MEAN, (p,))


def test_clients_are_averaged_term_by_term():
    premise = (Relation(EACH, a * p**2 + b),)
    assert accepts(CLIENTS, Relation(MEAN, a * MeanOverClients(p**2) + b), premise)
    assert accepts(CLIENTS, Relation(MEAN, MeanOverClients(a * p**2 + b)), premise)
    assert not accepts(CLIENTS, Relation(MEAN, a * MeanOverClients(p) ** 2 + b), premise)
    assert not accepts(CLIENTS, Relation(MEAN, a * p**2 + b), premise)
    assert not accepts(CLIENTS, Relation(MEAN, a * MeanOverClients(p**2)), premise)


def test_a_symbol_stands_for_what_is_in_its_domain_and_for_a_reason():
    premise = (Relation(E, n + x),)
    rule = StandsFor(n, T, "n is T")
    assert accepts(rule, Relation(E, T + x), premise)
    assert not accepts(rule, Relation(E, T), premise)
    assert not accepts(rule, Relation(E, T + x, "=="), premise)
    assert not accepts(StandsFor(n, T), Relation(E, T + x), premise)
    assert not accepts(StandsFor(n, T - 1, "n is T - 1"), Relation(E, T - 1 + x), premise)  # may be 0


def test_an_inequality_does_not_become_an_equality_at_special_values():
    assert not accepts(Specialize(((x, y),)), Relation(E, y, "=="), (Relation(E, x),))
    assert accepts(Specialize(((x, y),)), Relation(E, y, "=="), (Relation(E, x, "=="),))


# --- Exponentials and step sizes --------------------------------------------------------------------------------------

TANGENT = Tangent(q, TWO, R, ONE, sp.Rational(37, 100), "1 - p is at most exp(-1/(2R))")


def test_a_tangent_of_the_exponential_lies_below_it():
    assert accepts(TANGENT, Relation(q**2, sp.Rational(37, 100) * R), (), [RATE])
    assert not accepts(TANGENT, Relation(q**2, sp.Rational(36, 100) * R), (), [RATE])
    assert not accepts(
        replace(TANGENT, value=sp.Rational(36, 100)), Relation(q**2, sp.Rational(36, 100) * R), (), [RATE]
    )
    assert not accepts(TANGENT, Relation(q**2, sp.Rational(37, 100) * R))  # 1 - p may be negative
    touching = replace(TANGENT, at=TWO, value=sp.exp(-2))  # 1 + y - 2 may be negative
    assert not accepts(touching, Relation(q**2, sp.exp(-2) * R / (1 - R)), (), [RATE])


def test_the_tangent_at_log_T_needs_an_exponent_beyond_it():
    below = R + n - R * sp.log(T)
    rule = replace(TANGENT, power=2 * n, at=sp.log(T), value=1 / T)
    enough = (Relation(R * sp.log(T), n),)
    assert accepts(rule, Relation(q ** (2 * n), R / (T * below)), enough, [RATE])
    assert not accepts(rule, Relation(q ** (2 * n), R / (T * below)), (), [RATE])


PRODUCT = PrescribedProduct(x, y, (a, b), (a * L, F, b), 1)


def test_a_product_of_steps_is_at_most_each_branch():
    assert accepts(PRODUCT, Relation(x * y, F))
    assert not accepts(PRODUCT, Relation(x * y, b))
    assert not accepts(PRODUCT, Relation(F, x * y))
    inverse = Relation(1 / (x * y), 1 / (a * L) + 1 / F + 1 / b)
    assert accepts(replace(PRODUCT, which=None), inverse)
    assert not accepts(replace(PRODUCT, which=None), replace(inverse, right=1 / F + 1 / b))
    largest = replace(PRODUCT, which="largest", multiple=T)
    assert accepts(largest, Relation(T / (x * y), sp.Max(T / (a * L), T / F, T / b)))
    assert not accepts(largest, Relation(T / (x * y), sp.Min(T / (a * L), T / F, T / b)))
    assert PRODUCT.prescribes == ((y, sp.Min(a * L, F, b) / sp.Min(a, b)),)


# --- The proofs -------------------------------------------------------------------------------------------------------

MINE = (*weights.PROOFS, *corollary.PROOFS, *known_rates.PROOFS)
PAPER_S_OWN = {"fedau/theorem-3/B.6.8a", "fedau/theorem-3/B.6.8b"}
UNPROVED = {  # K = log_c T need not be a whole number
    "fedau/lemma-b.7.1[printed]",
    "fedau/corollary-4[printed]",
    "fedau/corollary-4-option-1[printed]",
}


@pytest.fixture(scope="module")
def claim_set():
    claims = [c for result in (*results.RESULTS, *corollaries.RESULTS) for c in result_claims(result)]
    claims += [c for proof in PROOFS for c in proof.claims()]
    return ClaimSet.from_claims([c for c in claims if c.kind != "units"], (steps.CHECKER,))


@pytest.mark.parametrize("proof", MINE, ids=lambda proof: proof.id)
def test_every_step_follows_except_the_two_of_the_paper_that_are_false(claim_set, proof):
    failed = {claim.id for claim in proof.claims() if claim_set.verdict(claim.id).outcome != "proved"}
    assert failed == {claim.id for claim in proof.claims()} & PAPER_S_OWN
    assert not any(claim_set.verdict(claim.id).flags for claim in proof.claims())


@pytest.mark.parametrize("proof", MINE, ids=lambda proof: proof.id)
def test_every_form_is_proved_except_orders_without_their_cut_off_or_steps(claim_set, proof):
    forms = {f"{proof.result.key}[{form.name}]" for form in proof.result.forms}
    assert {name for name in forms if claim_set.verdict(name).outcome != "proved"} == forms & UNPROVED


def test_theorem_3_trusts_exchangeability_and_rao_blackwell(claim_set):
    axioms = " ".join(claim_set.verdict("fedau/theorem-3[sharp]").axioms)
    assert "exchangeable" in axioms and "Rao-Blackwell" in axioms


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(limit, marks=[pytest.mark.long] * (limit.name == "appendix-a.3-equal-rates-sharp"), id=limit.name)
        for limit in LIMITS
    ],
)  # the slowest of them is tried by the audit
def test_special_cases_agree(limit):
    claim = limit.claim("fedau")
    assert limits.CHECKER.verify(claim, ClaimSet.from_claims([claim], (limits.CHECKER,))).outcome == "proved"


# --- What the axioms say, against the exact law -----------------------------------------------------------------------

RATES = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1))
CUTS = (1, 2, 3, 5, 8)
UNTIL = 20


def at(expression, **values):
    letters = {"cut": weights.cut, "t": weights.t, "s": weights.s, "p": weights.p}
    found = expression.xreplace({letters[name]: sp.Rational(str(value)) for name, value in values.items()}).doit()
    return Fraction(int(found.p), int(found.q))


def conclusion(proof, step):
    return proof.step(step).conclusion.right


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("cut_off", CUTS)
def test_the_mean_weight_is_that_of_a_first_interval(rate, cut_off):
    late, early = conclusion(weights.THEOREM_PROOF, "S23b"), conclusion(weights.THEOREM_PROOF, "S23f")
    for t, (mean, _) in enumerate(exact_weight_moments(rate, cut_off, UNTIL)):
        if t >= cut_off:
            assert mean == at(late, p=rate, cut=cut_off)
        elif t:
            assert mean == at(early, p=rate, t=t)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("cut_off", CUTS)
def test_the_error_of_every_round_is_below_each_step_of_its_chain(rate, cut_off):
    proof = weights.THEOREM_PROOF
    variance = at(weights.VARIANCE_CLOSED.xreplace({weights.rate: weights.p}), p=rate, cut=cut_off)
    for t, (mean, error) in enumerate(exact_weight_moments(rate, cut_off, UNTIL)):
        if t == 0:
            assert error == at(conclusion(proof, "S22a"), p=rate)
            continue
        assert error <= at(conclusion(proof, "S26"), p=rate, cut=cut_off, t=t)
        if t >= cut_off:
            spread = (error - (rate * mean - 1) ** 2) / rate**2
            assert spread <= variance / (t // cut_off)
        else:
            gone = (1 - rate) ** t
            assert error - gone * (1 - rate) ** 2 <= rate**2 * variance + (1 - rate) ** (2 * cut_off)


def test_the_lines_of_the_paper_fail_before_the_cut_off():
    mean, error = exact_weight_moments(Fraction(1, 2), 2, 2)[1]
    assert mean == 1 < Fraction(3, 2)
    assert error == Fraction(1, 4) > Fraction(1, 8)


def test_the_moments_of_an_interval_are_those_of_its_law():
    for rate in RATES:
        for cut_off in CUTS:
            chances = [rate * (1 - rate) ** (i - 1) for i in range(1, cut_off)] + [(1 - rate) ** (cut_off - 1)]
            first, second = (sum(c * i**e for i, c in enumerate(chances, start=1)) for e in (1, 2))
            assert sum(chances) == 1
            values = {weights.rate: sp.Rational(str(rate)), weights.cut: cut_off}
            assert weights.moment(1, weights.rate).xreplace(values) == sp.Rational(str(first))
            assert weights.VARIANCE_CLOSED.xreplace(values) == sp.Rational(str(second - first**2))


def cut_off_of(rarest, T):
    rarity = 0.0 if rarest == 1 else -1 / (2 * math.log(1 - rarest))
    return max(1, math.ceil(rarity * math.log(T))), rarity


@pytest.mark.parametrize("rarest", [0.02, 0.1, 0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("T", [2, 3, 10, 100, 1000])
def test_the_constant_of_lemma_b_7_1_holds_for_the_exact_error(rarest, T):
    K, rarity = cut_off_of(rarest, T)
    clients = np.array([rarest, min(1.0, 2 * rarest), 1.0])
    for p_n in (clients[:1], clients):
        assert weight_error(p_n, K, T) <= float(C_W) * rarity * math.log(T) ** 2 / T


def test_corollary_4_is_above_theorem_2_at_its_steps():
    letters = [t for t in COROLLARY_4.form("explicit").symbols if t != results.n.Wmax]
    names = sorted(map(str, letters))
    above = sp.lambdify(names, COROLLARY_4.form("explicit").bound)
    steps_at = {results.gamma: LOCAL_STEP, results.eta: GLOBAL_STEP / LOCAL_STEP}
    below = sp.lambdify(names, THEOREM_2.form("explicit").bound.xreplace(steps_at))
    source = np.random.default_rng(4)
    whole = {"I", "N", "T"}
    for _ in range(300):
        drawn = [float(source.integers(2, 10**5)) if name in whole else 10 ** source.uniform(-4, 4) for name in names]
        assert below(*drawn) <= above(*drawn) * (1 + 1e-12)
