"""Proof-step checker: the proof of the first paper as a graph, and what happens when a part is missing or wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fedbounds.bounds.audit import counterexample_checker as refutations
from fedbounds.bounds.audit import proof_step_checker as steps
from fedbounds.bounds.audit.audit_rows import ClaimRow, ledger_entries
from fedbounds.bounds.audit.claim import Relation, ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet, paper_claims
from fedbounds.bounds.audit.ledger import differences
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, Step, Unstated, proof_of, trace, try_unstated
from fedbounds.bounds.audit.rules import Combine, Everywhere
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.arbitrary_participation.assumptions import BOUNDED_BELOW, EXOGENOUS, INDEPENDENT_CLIENTS
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.results import LEMMA_C_1, THEOREM_3_1
from fedbounds.bounds.theory.assumptions import MARTINGALE
from fedbounds.bounds.theory.result import Condition

PAPER = "arbitrary-participation"
THEOREM = f"{PAPER}/theorem-3.1[explicit]"
USERS = {
    INDEPENDENT_CLIENTS: {"lemma-c.1/L1.1c"},
    MARTINGALE: {"lemma-c.1/L1.0a", "lemma-c.2/L2.0a", "equation-c.16/Th1b", "equation-c.16/Th5b"},
    EXOGENOUS: {
        "lemma-c.1/L1.0a",
        "lemma-c.1/L1.1c",
        "lemma-c.2/L2.0a",
        "equation-c.16/Th1b",
        "equation-c.16/Th5b",
    },
    BOUNDED_BELOW: {"theorem-3.1/Th9"},
}


@pytest.fixture(scope="module")
def claim_set():
    claims = {claim.id: claim for claim in paper_claims(PAPER)}
    return ClaimSet(PAPER, claims, (steps.CHECKER, refutations.CHECKER))


def proof(claim_set, name):
    return next(
        c.subject.proof
        for c in claim_set.claims.values()
        if isinstance(c.subject, steps.StepOf) and c.subject.proof.id == f"{PAPER}/{name}"
    )


def after(claim_set, name, step_id, change):
    """A claim set in which one step is changed, with the verdicts reached so far on the other proofs."""
    old = proof(claim_set, name)
    new = replace(old, steps=tuple(change(s) if s.id == step_id else s for s in old.steps))
    changed = {c.id: c for c in new.claims()}
    kept = {k: v for k, v in claim_set._verdicts.items() if k.startswith(f"{PAPER}/") and "[" not in k}
    kept.pop(f"{old.id}/{step_id}", None)
    kept = {k: v for k, v in kept.items() if "/unstated/" not in k}
    return ClaimSet(PAPER, claim_set.claims | changed, claim_set.checkers, kept)


def toy(*chain, ends=None, result=LEMMA_C_1):
    """The verdicts on a proof of our own."""
    small = Proof(f"{PAPER}/toy", ProofSetting("no vectors", {}), chain, result, ends or {})
    claims = {c.id: c for c in small.claims()}
    found = ClaimSet(PAPER, claims, (steps.CHECKER,))
    return [found.verdict(claim) for claim in claims]


def test_theorem_3_1_is_proved_and_lists_what_it_trusts(claim_set):
    verdict = claim_set.verdict(THEOREM)
    assert (verdict.outcome, verdict.checker, verdict.flags) == ("proved", "steps", ())
    for named in ("smoothness", "descent lemma", "independence", "noise has mean zero", "the weights are nonnegative"):
        assert any(axiom.startswith(named) for axiom in verdict.axioms), named


def test_no_step_of_theorem_3_1_rests_on_contradictory_conditions(claim_set):
    subject = claim_set.claims[THEOREM].subject
    whole = proof_of(claim_set, subject)
    assert whole is not None
    end = whole.step(whole.ends["explicit"])
    assert end is not None
    found = trace(claim_set, whole, end)
    assert {(v.outcome, v.flags) for _, v in found.steps} == {("proved", ())}
    assert all("no values were found" not in v.evidence for _, v in found.steps)


@pytest.mark.parametrize(
    ("name", "step_id", "assumption"),
    [
        ("lemma-c.1", "L1.1c", INDEPENDENT_CLIENTS),
        ("lemma-c.1", "L1.0a", MARTINGALE),
        ("equation-c.16", "Th1b", EXOGENOUS),
        ("theorem-3.1", "Th9", BOUNDED_BELOW),
    ],
)
def test_a_step_without_its_assumption_is_unknown_and_says_which(claim_set, name, step_id, assumption):
    claim_set.verdict(THEOREM)
    without = after(
        claim_set, name, step_id, lambda s: replace(s, premises=tuple(p for p in s.premises if p != assumption))
    )
    verdict = without.verdict(f"{PAPER}/{name}/{step_id}")
    assert verdict.outcome == "unknown" and assumption.name in verdict.evidence
    whole = without.verdict(THEOREM)
    assert whole.outcome == "unknown" and f"{name}/{step_id}" in whole.evidence


@pytest.mark.parametrize("assumption", USERS, ids=lambda a: a.name)
def test_what_theorem_3_1_needs_is_found_with_the_steps_that_use_it(claim_set, assumption):
    subject = claim_set.claims[THEOREM].subject
    verdict = try_unstated(Unstated(subject, assumption), claim_set)
    used, _, rest = verdict.evidence.partition(";")
    assert set(used.removeprefix("used by ").split(", ")) == USERS[assumption]
    assert verdict.outcome == "unknown" and "no counterexample is known" in rest


def test_only_the_martingale_is_not_stated_in_the_paper_and_theorem_3_1_fails_without_it(claim_set):
    assert [a.name for a in THEOREM_3_1.form("explicit").assumptions if a.unstated] == [MARTINGALE.name]
    labels = {a.name: a.label for a in THEOREM_3_1.form("explicit").assumptions}
    assert "Lemma C.1" in labels["independent-clients"]
    assert "Section 3" in labels["exogenous-participation"] and "Section 3" in labels["bounded-below"]
    assert [name for name in claim_set.claims if "/unstated/" in name] == [f"{PAPER}/unstated/{MARTINGALE.name}"]
    verdict = claim_set.verdict(f"{PAPER}/unstated/{MARTINGALE.name}")
    assert verdict.outcome == "refuted" and "without it bound of Theorem 3.1" in verdict.evidence


def test_a_form_that_drops_an_assumption_of_its_proof_is_unknown(claim_set):
    subject = claim_set.claims[THEOREM].subject
    weaker = replace(subject.form, assumptions=tuple(a for a in subject.form.assumptions if a != EXOGENOUS))
    result = replace(THEOREM_3_1, forms=tuple(weaker if f is subject.form else f for f in THEOREM_3_1.forms))
    old = proof(claim_set, "theorem-3.1")
    claims = {c.id: c for c in replace(old, result=result).claims()}
    claims[THEOREM] = ResultForm(result, weaker).claim()
    claim_set.verdict(THEOREM)
    kept = {k: v for k, v in claim_set._verdicts.items() if k != THEOREM}
    verdict = ClaimSet(PAPER, claim_set.claims | claims, (steps.CHECKER,), kept).verdict(THEOREM)
    assert verdict.outcome == "unknown"
    assert "exogenous-participation, which the form does not assume" in verdict.evidence


def test_a_form_whose_last_step_has_another_constant_is_unknown(claim_set):
    claim_set.verdict(THEOREM)

    def larger(step):
        return replace(step, conclusion=replace(step.conclusion, right=sp.Rational(11, 10) * step.conclusion.right))

    verdict = after(claim_set, "theorem-3.1", "Th10", larger).verdict(THEOREM)
    assert verdict.outcome == "unknown" and "the form says" in verdict.evidence


def test_the_literal_unrolling_of_c_9_is_refused_because_of_the_current_rounds_weights(claim_set):
    literal = after(
        claim_set,
        "lemma-c.2",
        "L2.8b",
        lambda s: replace(s, premises=tuple("L2.7" if p == "L2.7b" else p for p in s.premises)),
    )
    verdict = literal.verdict(f"{PAPER}/lemma-c.2/L2.8b")
    assert verdict.outcome == "unknown"
    assert "sumsq changes between the steps" in verdict.evidence


def test_a_proof_that_rests_on_itself_is_an_error():
    result = replace(LEMMA_C_1, forms=(replace(LEMMA_C_1.form("printed"), conditions=()),), default="printed")
    subject = ResultForm(result, result.forms[0])
    left = steps.left_hand_side(subject)
    end = Step("A", "as the form says", Relation(left, subject.form.bound), Combine((1,)), (subject.id,))
    circular = Proof(f"{PAPER}/toy", ProofSetting("no vectors", {}), (end,), result, {"printed": "A"})
    claims = {c.id: c for c in (subject.claim(), *circular.claims())}
    with pytest.raises(FedboundsError, match="rests on itself"):
        ClaimSet(PAPER, claims, (steps.CHECKER,)).verdict(subject.id)


def test_a_premise_that_is_no_earlier_step_is_reported():
    x, y = n.L, n.F
    first = Step("A", "", Relation(x, y), Combine((1,)), ("B",))
    second = Step("B", "", Relation(x, y), Combine((1,)), ("nowhere",))
    verdicts = toy(first, second)
    assert [v.outcome for v in verdicts] == ["unknown", "unknown"]
    assert verdicts[0].evidence == "its premise B is not an earlier step"
    assert verdicts[1].evidence == "its premise nowhere is not an earlier step"


def test_a_rule_for_inequalities_shows_no_equality():
    bound = Step("A", "", Relation(n.L, n.L + n.F), Combine())
    average, equal = (Step(op, "", Relation(n.L, n.L + n.F, op), Everywhere(), ("A",)) for op in ("<=", "=="))
    assert [v.outcome for v in toy(bound, average)] == ["proved", "proved"]
    refused = toy(bound, equal)[1]
    assert refused.outcome == "unknown" and "Everywhere shows inequalities" in refused.evidence


def test_a_step_under_contradictory_conditions_is_flagged_as_vacuous():
    low, high = Condition(n.eta, "<=", sp.Integer(1), ""), Condition(n.eta, ">=", sp.Integer(2), "")
    claim = Relation(n.eta, sp.S.Half)
    [verdict] = toy(Step("A", "", claim, Combine(), (low, high)))
    assert verdict.flags == ("vacuous",) and "no values satisfy" in verdict.evidence
    [sound] = toy(Step("A", "", Relation(n.eta, sp.Integer(2)), Combine(), (low,)))
    assert (sound.outcome, sound.flags) == ("proved", ())


def test_the_ledger_sees_a_premise_that_has_become_contradictory():
    low, high = Condition(n.eta, "<=", sp.Integer(1), ""), Condition(n.eta, ">=", sp.Integer(2), "")
    [sound] = toy(step := Step("A", "", Relation(n.eta, sp.Integer(2)), Combine(), (low,)))
    [vacuous] = toy(replace(step, premises=(low, high)))
    [claim] = Proof(f"{PAPER}/toy", ProofSetting("no vectors", {}), (step,), LEMMA_C_1, {}).claims()
    committed, found = (ledger_entries([ClaimRow.of(claim, verdict)]) for verdict in (sound, vacuous))
    assert vacuous.outcome == sound.outcome == "proved"
    assert differences(found, committed) == [f"{claim.id}: flags is ['vacuous'], the ledger says None"]
