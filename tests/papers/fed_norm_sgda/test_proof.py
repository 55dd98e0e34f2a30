"""The proofs of the fifth paper: what they show, what stops the printed chain, what their rules refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fedbounds.bounds.audit import proof_step_checker as steps
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.claim_set import ClaimSet, result_claims
from fedbounds.bounds.audit.proof_step_checker import StepOf, proof_of, trace
from fedbounds.bounds.audit.vectors import Vec, square
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import (
    ON_THE_SIMPLEX,
    SampleSquare,
    SelfBounded,
    sample_mean,
    smooth,
)
from tests.papers.committed_verdicts import proved_forms, vacuous

PROVED = {
    "theorem-1": {"repaired", "sharp"},
    "theorem-1-at-its-steps": {"repaired", "sharp"},
    "theorem-3": {"repaired", "sharp", "sharp:any-T"},
    "theorem-4": {"repaired", "sharp", "sharp:any-T"},
    "corollary-1.1": {"printed", "sharp"},
    "corollary-1.2": {"repaired"},
    "corollary-2.1": {"explicit", "sharp"},
    **{f"lemma-a.{k}": {"printed"} for k in (1, 4, 5, "5-gradient", 6, 7)},
    "lemma-a.3": {"printed:squares"},
    "lemma-a.2": {"repaired"},
    "lemma-b.1": {"repaired", "sharp"},
    "lemma-b.2": {"repaired"},
    "lemma-b.3": {"repaired"},
    "lemma-b.4": {"repaired"},
    "lemma-b.5": {"repaired", "sharp"},
    "lemma-b.6": {"printed", "sharp"},
    "lemma-b.7": {"printed"},
    "lemma-b.8": {"printed", "printed:pl"},
    "lemma-b.9": {"repaired"},
    "lemma-c.1": {"repaired"},
    "lemma-c.2": {"repaired", "sharp"},
    "lemma-c.3": {"repaired", "sharp"},
    "lemma-c.4": {"explicit", "repaired"},
    "lemma-c.5": {"repaired", "sharp"},
    "remark-1": {"repaired"},
    "remark-3": {"repaired", "sharp"},
    "remark-6": {"repaired", "repaired:one-node"},
    **{f"table-1-{k}{part}": {"repaired"} for k in ("nc-sc", "nc-c", "nc-1pc") for part in ("", "-gradients")},
}
FALSE_STEPS = {
    "fed-norm-sgda/local-steps/L5-printed": "e may depend on the noise",
    "fed-norm-sgda/lemma-b.2/M1x-printed": "sx may depend on the noise",
    "fed-norm-sgda/lemma-b.2/M1y-printed": "sy may depend on the noise",
    "fed-norm-sgda/lemma-c.2/M1x-printed": "sx may depend on the noise",
    "fed-norm-sgda/lemma-c.2/M1y-printed": "sy may depend on the noise",
    "fed-norm-sgda/lemma-b.5-printed/34-sample": "Fy1 is not known at the start of the round",
    "fed-norm-sgda/lemma-b.5-printed/34-noise": "Fy1 may depend on the noise",
}


@pytest.fixture(scope="module")
def claim_set():
    return ClaimSet.from_claims(claims_of_proofs(), (steps.CHECKER,))


def claims_of_proofs():
    results = {proof.result.key: proof.result for proof in PROOFS if proof.result is not None}
    yield from (claim for result in results.values() for claim in result_claims(result))
    yield from (claim for proof in PROOFS for claim in proof.claims())


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_the_forms_that_are_true_are_proved_and_no_others():
    assert proved_forms("fed-norm-sgda") == PROVED and not vacuous("fed-norm-sgda")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_only_the_papers_false_steps_and_what_rests_on_them_are_not_proved_and_none_is_vacuous(claim_set, every):
    """In the proofs with a false step; the audit proves all."""
    proofs = {name.rpartition("/")[0] for name in FALSE_STEPS}
    names = [c.id for c in claim_set.claims.values() if isinstance(c.subject, StepOf)]
    verdicts = {name: claim_set.verdict(name) for name in names if every or name.rpartition("/")[0] in proofs}
    unproved = {name: v.evidence for name, v in verdicts.items() if v.outcome != "proved"}
    assert {name: why for name, why in unproved.items() if not why.startswith("it follows, but")} == FALSE_STEPS
    assert len(verdicts) > 50 and not any(v.flags for v in verdicts.values())


LONG = [pytest.param(form, marks=pytest.mark.long) for form in ("theorem-1[sharp]", "theorem-4[sharp]")]


@pytest.mark.parametrize("form", ["theorem-1[repaired]", "theorem-3[repaired]", *LONG])
def test_the_theorems_do_not_rest_on_the_false_steps(claim_set, form):
    subject = claim_set.claims[f"fed-norm-sgda/{form}"].subject
    proof = proof_of(claim_set, subject)
    rests_on = {name for name, _ in trace(claim_set, proof, proof.step(proof.ends[subject.form.name])).steps}
    assert len(rests_on) > 40 and not rests_on & set(FALSE_STEPS)


def test_the_printed_chain_to_theorem_1_fails_at_the_false_steps_alone(claim_set):
    evidence = claim_set.verdict("fed-norm-sgda/theorem-1[explicit]").evidence
    for name, why in FALSE_STEPS.items():
        if "/lemma-c" not in name:
            assert f"{name} ({why})" in evidence
    assert evidence.count("; ") == 4


# --- What the rules refuse --------------------------------------------------------------------------------------------


def setting_of(proof_name):
    return next(p.setting for p in PROOFS if p.id == f"fed-norm-sgda/{proof_name}")


def refused(rule, setting, *premises):
    found = rule.check(Relation(sp.S.Zero, sp.S.Zero, "=="), premises, (), setting)
    assert not found.holds
    return found.evidence


def with_atom(setting, name, **fields):
    return replace(setting, atoms={**setting.atoms, name: replace(setting.atoms[name], **fields)})


def test_smoothness_is_of_one_function_between_two_points():
    setting, rule = setting_of("lemma-b.2"), smooth("Gx Gy", "gx gy")
    relation = rule.relation(setting, ())
    X, Y, x0, y0 = (Vec.atom(a) for a in ("X", "Y", "x0", "y0"))
    assert sp.expand(relation.right - n.Lf**2 * (square(X - x0) + square(Y - y0))) == 0
    assert "one function" in refused(rule, with_atom(setting, "gx", of="F~/x"))
    assert "one function" in refused(rule, with_atom(setting, "gx", kind="noise"))
    assert "same two points" in refused(rule, with_atom(setting, "Gy", at="X y0"))
    assert "one of the two points lacks a block" in refused(smooth("Gx", "gx"), with_atom(setting, "gx", at="x0"))
    assert "different blocks" in refused(smooth("Gx Gx", "gx gx"), setting)


def test_a_sample_is_squared_with_its_own_probabilities_and_known_before_it_is_drawn():
    setting = setting_of("lemma-b.2")
    assert SampleSquare("sx").relation(setting, (ON_THE_SIMPLEX,)).op == "=="
    assert "no premise says that" in refused(SampleSquare("sx"), setting)
    assert "not a sum over the sample" in refused(SampleSquare("hx"), setting, ON_THE_SIMPLEX)
    assert "not an update with a mean" in refused(sample_mean("Hx", Vec.atom("Fx")), setting)
    for symbol in ("c", "d", "r"):
        key = next(k for k in setting.symbols if str(k) == symbol)
        other = replace(setting, symbols={**setting.symbols, key: setting.symbols[key] * sp.Rational(9, 10)})
        assert "probabilities" in refused(SampleSquare("sx"), other, ON_THE_SIMPLEX)
    for late in ("Hx", "Gx", "xix"):
        assert "not known at the start" in refused(sample_mean("sx", Vec.atom(late)), setting)


def test_only_the_gradient_of_the_weighted_objective_is_bounded_by_its_gap():
    setting, gap = setting_of("lemma-b.6"), sp.Symbol("gap", nonnegative=True)
    name = next(a for a, atom in setting.atoms.items() if atom.of == "F~/y")
    assert SelfBounded(name, gap).relation(setting, (ON_THE_SIMPLEX,)).right == 2 * n.Lf * gap
    assert "no premise says that" in refused(SelfBounded(name, gap), setting)
    assert "not a gradient of F~ in y" in refused(SelfBounded("Phi", gap), setting, ON_THE_SIMPLEX)


def test_a_premise_about_other_weights_is_no_premise():
    half = Relation(ON_THE_SIMPLEX.left, sp.Rational(1, 2), "==")
    assert "no premise says that" in refused(SampleSquare("sx"), setting_of("lemma-b.2"), half)
