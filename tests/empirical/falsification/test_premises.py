"""What a proof says and no rule shows is on trial: numbers that mean what its symbols mean, and planted errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
import sympy as sp

from fedbounds.bounds.audit.averages import StandsFor
from fedbounds.bounds.audit.axioms import Assumed, Descent, NoiseOverTime
from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.derivations import Lemma
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.audit.proof_step_checker import StepOf, relation_of
from fedbounds.bounds.audit.rules import Unroll
from fedbounds.bounds.audit.verdict import TRUSTED
from fedbounds.bounds.evaluation.numpy_code import arguments
from fedbounds.empirical.falsification.instances.averages import AVERAGES
from fedbounds.empirical.falsification.instances.instance_checker import (
    has_instances,
    judge_on_instances,
    paper_instances,
)
from tests.empirical.falsification.claim_sets import claim_set

ROOMS = ("arbitrary-participation", "fedau", "fed-norm-sgda")


def subject(claim: Claim) -> StepOf:
    assert isinstance(claim.subject, StepOf)
    return claim.subject


def planted(name: str, conclusion: Relation, rule: Any = None) -> tuple[ClaimSet, Claim]:
    """The claim set with another conclusion, and rule, of one step."""
    before = claim_set(name.partition("/")[0])
    of = subject(before.claims[name])
    step = replace(of.step, conclusion=conclusion, rule=rule or of.step.rule)
    steps = tuple(step if s is of.step else s for s in of.proof.steps)
    changed = {c.id: c for c in replace(of.proof, steps=steps).claims()}
    return ClaimSet(before.paper, before.claims | changed, before.checkers), changed[name]


def smaller(conclusion: Relation) -> Relation:
    """Half the right-hand side; of an equality, or where it is 0, a little other."""
    right = conclusion.right / 2
    if conclusion.left == 0:
        right = -conclusion.right
    elif conclusion.right == 0:
        right = sp.Rational(-1, 1000)
    elif conclusion.op == "==":
        right = conclusion.right * sp.Rational(1001, 1000)
    return replace(conclusion, right=right)


def tried_on_numbers(paper: str) -> list[str]:
    """The steps of one paper that are tried on numbers or sequences, rather than on whole problems."""
    known = paper_instances(paper)
    return [
        claim.id
        for claim in claim_set(paper).claims.values()
        if isinstance(claim.subject, StepOf)
        and getattr(claim.subject.step.rule, "gives", "")
        and (type(claim.subject.step.rule) in {**AVERAGES, **known.BUILDERS} or known.premise_cases(claim.subject))
    ]


@pytest.mark.parametrize("paper", ROOMS)
def test_half_of_every_premise_taken_from_elsewhere_is_refuted(paper):
    entries = read_ledger(paper)
    names = [name for name in tried_on_numbers(paper) if entries[name]["verdict"] != "refuted"]
    assert len(names) > 10
    for name in names:  # that none is refuted as it stands is what the audit finds
        after, claim = planted(name, smaller(subject(claim_set(paper).claims[name]).step.conclusion))
        assert judge_on_instances(claim, claims=after).refuted, name


@pytest.mark.parametrize("paper", ROOMS)
def test_every_step_that_trusts_its_author_is_checked_by_the_checker_of_instances(paper):
    claims = [c for c in claim_set(paper).claims.values() if isinstance(c.subject, StepOf)]
    giving = [c for c in claims if getattr(subject(c).step.rule, "gives", "")]
    assert giving and [c.id for c in giving if not has_instances(c, claim_set(paper))] == []


@pytest.mark.parametrize("paper", ROOMS)
def test_nothing_is_trusted_untried(paper):
    trusted = {
        claim: axiom
        for claim, entry in read_ledger(paper).items()
        for axiom in cast(Any, entry["axioms"])
        if axiom.startswith(TRUSTED)
    }
    assert not trusted


def halved(name: str) -> tuple[Relation, Any]:
    """A step's conclusion and rule, both with half the right-hand side."""
    of = subject(claim_set(name.partition("/")[0]).claims[name]).step
    right = of.conclusion.right / 2
    assert isinstance(of.rule, Assumed | Lemma)
    return replace(of.conclusion, right=right), replace(of.rule, right=right)


SCALAR = (
    "fedau/theorem-3/S24c",  # what exchangeability gives
    "fedau/theorem-2/T1b",  # the mean of Q_t
    "fedau/theorem-2/T1",
    "fedau/theorem-2-option-1/T0",
    "arbitrary-participation/equation-11/D4",  # nu^2
    "arbitrary-participation/proposition-4.7/D4",  # a tail that is cited
    "arbitrary-participation/equation-15-median/D3",
    "fed-norm-sgda/lemma-a.2/fact",
)


@pytest.mark.parametrize("name", SCALAR)
def test_an_error_in_an_assumption_and_in_its_step_alike_is_refuted_and_reaches_the_checker_of_steps(name):
    conclusion, rule = halved(name)
    after, claim = planted(name, conclusion, rule)
    alone = ClaimSet(after.paper, after.claims, tuple(c for c in after.checkers if c.name == "steps"))
    trusting = alone.verdict(claim.id)
    assert trusting.outcome == "proved" and name in trusting.rests_on[-1]  # the checker of steps cannot see it
    assert after.verdict(claim.id).outcome == "refuted"


def test_half_of_the_mean_second_moment_in_theorem_2_leaves_no_form_proved():
    name = "fedau/theorem-2/T1b"
    conclusion, rule = halved(name)
    after, _ = planted(name, conclusion, rule)
    for form in ("explicit", "sharp"):
        assert after.verdict(f"fedau/theorem-2[{form}]").outcome != "proved"


def changed_rule(name: str, **fields: object) -> tuple[ClaimSet, Claim]:
    """A step with another rule, and the conclusion that this one gives."""
    before = claim_set(name.partition("/")[0])
    of = subject(before.claims[name])
    rule: Any = replace(cast(Any, of.step.rule), **fields)
    names = [p for p in of.step.premises if isinstance(p, str)]
    premises = [relation_of(before, of.proof, p) for p in names]
    return planted(name, rule.relation(of.proof.setting, premises), rule)


def test_a_displacement_without_the_number_of_rounds_is_refuted():
    name = "arbitrary-participation/equation-c.16/Th1"
    of = subject(claim_set("arbitrary-participation").claims[name]).step.rule
    assert isinstance(of, Descent)
    symbols = {s for _, c in of.step.coefficients for s in arguments((c,)) if s.name == "P"}
    shorter = replace(
        of.step, coefficients=tuple((a, c.xreplace(dict.fromkeys(symbols, sp.S.One))) for a, c in of.step.coefficients)
    )
    assert symbols
    after, claim = changed_rule(name, step=shorter)
    assert after.verdict(claim.id).outcome == "refuted"


@pytest.mark.parametrize("name", ["arbitrary-participation/equation-c.16/Th5b", "fedau/lemma-b.3.3/S11"])
def test_noise_averaged_over_twice_the_steps_is_refuted(name):
    rule = subject(claim_set(name.partition("/")[0]).claims[name]).step.rule
    assert isinstance(rule, NoiseOverTime)
    after, claim = changed_rule(name, steps=2 * rule.steps)
    assert after.verdict(claim.id).outcome == "refuted"


def test_a_recursion_unrolled_one_step_too_few_is_refuted():
    name = "arbitrary-participation/lemma-c.2/L2.8b-least"
    of = subject(claim_set("arbitrary-participation").claims[name]).step
    assert isinstance(of.rule, Unroll)
    steps = of.rule.steps
    fewer = of.conclusion.right.replace(lambda e: e.is_Pow and e.exp == steps, lambda e: e.base ** (steps - 1))
    assert fewer != of.conclusion.right
    after, claim = planted(name, replace(of.conclusion, right=fewer), replace(of.rule, steps=steps - 1))
    assert after.verdict(claim.id).outcome == "refuted"


def test_the_step_sizes_put_into_a_bound_are_those_that_the_result_prescribes():
    for paper in ROOMS:
        for claim in claim_set(paper).claims.values():
            if isinstance(claim.subject, StepOf) and isinstance(claim.subject.step.rule, StandsFor):
                rule = claim.subject.step.rule
                assert rule.gives or getattr(rule, "prescribes", ()), claim.id


def test_a_rule_that_says_of_nothing_that_it_is_an_average_cannot_be_tried():
    after, claim = changed_rule("fedau/lemma-b.3.2-average/S5'five", is_=sp.S.Zero)
    with pytest.raises(KeyError, match="Everywhere names no average"):
        judge_on_instances(claim, claims=after)
