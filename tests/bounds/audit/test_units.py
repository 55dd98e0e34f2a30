"""Dimension checker: units and gauges find what is wrong with a form, name it, and agree with each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fedbounds.bounds.audit import gauges
from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.dimension_checker import CHECKER, faults, gauge_faults, verify
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.audit.unit_claims import units_claim
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.theory.registry import PAPERS, load, paper
from fedbounds.bounds.theory.result import Condition, Term
from fedbounds.bounds.theory.symbols import NONE, Notation

HIDE_A_SCALE = {
    ("corollary-3.3", "printed"),
    ("corollary-3.3", "explicit"),
    ("corollary-3.3", "sharp"),
    ("corollary-3.3-expected", "explicit"),
    ("corollary-3.3-expected", "sharp"),
    ("corollary-4.8", "printed"),
    ("corollary-4.8", "printed:mixing"),
    ("corollary-4.8", "explicit"),
    ("corollary-4.8", "repaired"),
    ("corollary-4.8", "repaired:integer-P"),
    ("corollary-4.8", "repaired:window-variance"),
    ("table-1-mixing", "printed"),
    ("table-1-mixing", "printed:probability"),
    ("table-1-independent", "printed"),
    ("table-1-independent", "printed:probability"),
    ("table-1-yan", "printed"),
    ("table-1-gu", "printed"),
}


def claim_set(name):
    claims = [units_claim(ResultForm(result, form)) for result in paper(name).results for form in result.forms]
    return ClaimSet(name, {claim.id: claim for claim in claims}, (CHECKER,))


@pytest.fixture(scope="module")
def first_paper():
    return claim_set("arbitrary-participation")


def verdict(name, form_name="explicit", notation=None, **changes):
    """The verdict on a form of the first paper after a change."""
    result = load(f"arbitrary-participation/{name}")
    if notation is not None:
        result = replace(result, notation=notation)
    claim = units_claim(ResultForm(result, replace(result.form(form_name), **changes)))
    return verify(claim, ClaimSet("arbitrary-participation", {claim.id: claim}, (CHECKER,)))


def terms_with(name, factor):
    """The explicit terms of Theorem 3.1, one of them multiplied by a factor."""
    terms = load("arbitrary-participation/theorem-3.1").form("explicit").terms
    return tuple(replace(t, expression=t.expression * factor) if t.name == name else t for t in terms)


def test_exactly_the_forms_with_the_hidden_scale_are_refuted(first_paper):
    refuted = {j.claim.id for j in first_paper.verdicts() if j.verdict.outcome == "refuted"}
    assert refuted == {f"arbitrary-participation/{name}[{form}]/units" for name, form in HIDE_A_SCALE}
    assert {j.verdict.outcome for j in first_paper.verdicts() if j.claim.id not in refuted} == {"proved"}


@pytest.mark.parametrize("name", [name for name in PAPERS if name != "arbitrary-participation"])
def test_every_form_of_the_other_papers_has_its_units(name):
    """What is on trial is tried by the audit, which compares with the ledger; all else here."""
    claims, entries = claim_set(name).claims, read_ledger(name)
    if entries:
        assert {(entries[claim]["verdict"], entries[claim]["hash"] == c.hash) for claim, c in claims.items()} == {
            ("proved", True)
        }
    else:
        assert {j.verdict.outcome for j in claim_set(name).verdicts()} == {"proved"}


def test_the_offending_factor_and_step_of_corollary_3_3_are_named(first_paper):
    evidence = first_paper.verdict("arbitrary-participation/corollary-3.3[explicit]/units").evidence
    assert "term 'noise': 4*sigma**2 + 8 adds 1 and f^2/x^2" in evidence
    assert "eta = 12*sqrt(F)*sqrt(I)*sqrt(L)*P/rho: has unit f/x, not 1" in evidence
    assert "condition T >= 4*F*I*L*P**2/rho**2: compares 1 with f^2/x^2" in evidence


def test_corollary_4_8_s_cap_on_I_follows_from_corollary_3_3(first_paper):
    evidence = first_paper.verdict("arbitrary-participation/corollary-4.8[printed]/units").evidence
    cap = "I <= rho/(2*sqrt(F)*sqrt(L)*N**(5/2)*upsilon**2): compares 1 with x/f (follows from corollary-3.3[printed])"
    assert cap in evidence


def test_a_rate_without_its_constants_is_right_up_to_the_hidden_ones(first_paper):
    right = first_paper.verdict("arbitrary-participation/table-1-regularized[printed]/units")
    assert right.outcome == "proved" and "hidden L, F, d" in right.evidence
    assert verdict("table-1-regularized", "printed", hidden=()).outcome == "refuted"
    only_gap = verdict("table-1-regularized", "printed", hidden=(n.F,))
    assert only_gap.outcome == "refuted" and "no monomial in F repairs it" in only_gap.evidence


def test_no_hidden_constant_repairs_a_sum_of_unlike_units():
    everything = (n.L, n.F, n.d, n.s)
    assert verdict("table-1-yan", "printed", hidden=everything).outcome == "refuted"


PLANTED = {
    "wrong exponent": ("cohort divergence", 1 / n.gamma, "'cohort divergence': has unit f^3/x^4, not f^2/x^2"),
    "missing square": ("window divergence", 1 / n.delta, "'window divergence': has unit f/x, not f^2/x^2"),
    "smuggled sum": ("local noise", 1 + n.sigma**2, "'local noise': sigma**2 + 1 adds 1 and f^2/x^2"),
    "lost smoothness": ("update noise", 1 / n.L, "'update noise': has unit f, not f^2/x^2"),
    "unlike maximum": ("drift noise", sp.Max(1, n.beta), "'drift noise': Max(1, beta) compares 1 and f/x"),
    "logarithm of a unit": ("initial gap", sp.log(1 + n.F), "'initial gap': F + 1 adds 1 and f"),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_planted_error_in_a_term_is_refuted_and_named(planted):
    name, factor, says = planted
    found = verdict("theorem-3.1", terms=terms_with(name, factor))
    assert found.outcome == "refuted"
    assert says in found.evidence


def test_a_planted_error_in_a_condition_is_refuted_and_named():
    cap = Condition(n.gamma, "<=", 1 / (12 * n.I * n.P), "a cap that lost its L")
    found = verdict("theorem-3.1", conditions=(cap,))
    assert found.outcome == "refuted"
    assert "condition gamma <= 1/(12*I*P): compares x^2/f with 1" in found.evidence


def test_a_planted_error_in_a_step_size_is_refuted_and_named():
    found = verdict("corollary-3.2", prescribes={"gamma": 1 / (12 * n.I * n.P * sp.sqrt(n.T))})
    assert found.outcome == "refuted"
    assert "gamma = 1/(12*I*P*sqrt(T)): has unit 1, not x^2/f" in found.evidence


def test_numbers_are_not_the_business_of_this_checker():
    assert verdict("theorem-3.1", terms=terms_with("initial gap", sp.Rational(9, 10))).outcome == "proved"


def test_a_wrong_declared_unit_makes_the_two_methods_disagree():
    wrong = [replace(q, dimension=NONE) if q.name == "delta" else q for q in n.values()]
    found = verdict("theorem-3.1", notation=Notation(wrong))
    assert found.outcome == "unknown"
    assert "the two methods disagree: term 'window divergence': has unit 1, not f^2/x^2" in found.evidence


def test_a_wrong_gauge_makes_the_two_methods_disagree(monkeypatch):
    monkeypatch.setattr(gauges, "GAUGES", {**gauges.GAUGES, "smoothness": (1, -1)})
    found = verdict("theorem-3.1")
    assert found.outcome == "unknown"
    assert "x -> b x" in found.evidence


@pytest.mark.parametrize("name", list(PAPERS))
def test_the_gauges_and_the_declared_units_agree_on_every_symbol(name):
    for quantity in {q.name: q for result in paper(name).results for q in result.notation.values()}.values():
        powers = dict(quantity.dimension.exponents)
        assert gauges.GAUGES.get(quantity.concept, (0, 0)) == (powers.get("f", 0), powers.get("x", 0)), quantity.name


def test_both_methods_blame_the_same_parts_of_corollary_3_3():
    result = load("arbitrary-participation/corollary-3.3")
    subject = ResultForm(result, result.form("printed"))
    assert [f.where for f in faults(subject)] == [f.where for f in gauge_faults(subject)]


def test_the_claim_changes_with_what_the_o_hides():
    result = load("arbitrary-participation/table-1-regularized")
    form = result.form("printed")
    one, other = (units_claim(ResultForm(result, replace(form, hidden=hidden))) for hidden in ((n.L,), (n.F,)))
    assert one.id == other.id and one.hash != other.hash


def test_reductions_over_clients_are_scaled_as_a_whole():
    result = load("arbitrary-participation/equation-15")
    form = result.form("printed")
    assert verify(units_claim(ResultForm(result, form)), claim_set("fedmrn")).outcome == "proved"
    square = tuple(Term(t.name, t.expression / n.d) for t in form.terms)
    claim = units_claim(ResultForm(result, replace(form, terms=square)))
    assert verify(claim, claim_set("fedmrn")).outcome == "refuted"


def test_a_coefficient_that_is_a_float_has_the_units_of_a_fraction():
    from fedbounds.bounds.audit.gauges import broken_gauge
    from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
    from fedbounds.bounds.theory.symbols import GRADIENT

    for coefficient in (0.9, 0.1, 1 / 3, 1e-20, 2.5e300):
        assert broken_gauge(coefficient * n.L * n.gamma * n.sigma**2, GRADIENT**2, n) == ""
        assert broken_gauge(coefficient * n.gamma * n.sigma**2, GRADIENT**2, n) != ""
    assert broken_gauge((0.1 * n.L * n.F) ** 1.0 + 0.7 * n.sigma**2.0, GRADIENT**2, n) == ""
    assert broken_gauge((0.1 * n.L * n.F) ** 1.0 + 0.7 * n.sigma**2.01, GRADIENT**2, n) != ""
