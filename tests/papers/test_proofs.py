"""The proofs of paper packages: what they show, what they need, and that errors planted in them are noticed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import sympy as sp

from fedbounds.bounds.audit import counterexample_checker as refutations
from fedbounds.bounds.audit import proof_step_checker as steps
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.ledger import committed_verdict, trusted_premise
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.audit.rule import given
from fedbounds.bounds.theory.registry import paper
from fedbounds.empirical.falsification.instances.instance_checker import judge_on_instances, paper_instances
from tests.mutation.theorems import CAUGHT, Bench

CHECKERS = (steps.CHECKER, refutations.CHECKER)
ROOMS = ("fedmrn", "tdcd")
LEFT_OUT = {  # an assumption or condition of a form without which its proof fails
    "fedmrn/theorem-1[repaired:R1]": ("strongly-convex", "signed-masks-per-round", "quadratic-upper-bound"),
    "fedmrn/lemma-4[printed]": ("strongly-convex", "martingale-noise", "quadratic-upper-bound"),
    "fedmrn/theorem-1[sharp]": ("bounded-gradients", "independent-clients", "unbiased-noise"),
    "fedmrn/theorem-2[repaired]": (
        "martingale-noise",
        "uniform-sampling",
        "bounded-below",
        "relative-error",
        "smooth",
    ),
    "fedmrn/theorem-2[sharp:masks]": ("surely-bounded-gradients", "independent-masks", "signed-masks"),
    "tdcd/theorem-1[repaired]": ("smooth", "block-smooth", "unbiased-silos"),
    "tdcd/theorem-1[sharp:B3]": ("smooth", "block-smooth", "unbiased-silos"),
    "tdcd/theorem-1[repaired:B0inf]": ("bounded-below",),
    "tdcd/theorem-1[sharp:Bind]": ("uncorrelated-clients",),
    "tdcd/lemma-2[sharp:growth]": ("block-smooth",),
}
PLANTED = (
    "fedmrn/theorem-1[repaired:R1]: masking less by 10 percent",
    "fedmrn/theorem-1[sharp:masks]: masking of the upload less by 10 percent",
    "fedmrn/theorem-1[sharp]: eta less by 10 percent",
    "fedmrn/theorem-2[sharp]: client sampling less by 10 percent",
    "fedmrn/theorem-2[explicit:any-amplitude]: masking in local steps less by 10 percent",
    "fedmrn/theorem-2[explicit:any-amplitude]: G*S*eta <= a dropped",
    "fedmrn/theorem-2[explicit:any-step]: eta <= 1/L dropped",
    "fedmrn/theorem-2/29': without S12m",
    "fedmrn/theorem-1/S24: without P3",
    "fedmrn/theorem-1/S23': without P4",
    "fedmrn/lemma-4/19': without S17",
    "fedmrn/lemma-4/19: without S17m",
    "fedmrn/lemma-4/S20m: without S18m",
    "fedmrn/proposition-1[repaired]: masking less by 10 percent",
    "tdcd/theorem-1[repaired]: local drift less by 10 percent",
    "tdcd/theorem-1[sharp:B3]: initial gap less by 10 percent",
    "tdcd/theorem-1[sharp:Bind]: gradient noise less by 10 percent",
    "tdcd/remark-5[explicit]: eta less by 10 percent",
    "tdcd/lemma-2/6: without 5",
    "tdcd/lemma-2/9: without 8",
    "tdcd/lemma-2/4: eta <= 1/(2*Lmax*Q) dropped",
    "tdcd/theorem-1/15b: without 13",
    "tdcd/theorem-1/B3: without 17t",
)
TRUSTED = {  # proof to how many of its steps, at least, say more than nine tenths of what is true
    "fedmrn/lemma-2": 2,
    "fedmrn/lemma-3": 2,
    "fedmrn/lemma-5": 2,
    "fedmrn/theorem-1-masks": 2,
    "fedmrn/theorem-2-masks": 2,
    "fedmrn/proposition-1": 2,
    "tdcd/lemma-1": 2,
    "tdcd/lemma-1-client": 2,
    "tdcd/lemma-2": 3,
    "tdcd/theorem-1": 7,
}
LOOSE = ("tdcd/11b", "tdcd/24b", "tdcd/26a")  # steps whose sides are both 0, or never equal


@cache
def bench(room):
    return Bench.of(room, CHECKERS)


def planted(name):
    """How an error of a paper package, by its name after the paper package's, is judged."""
    room, _, rest = name.partition("/")
    return bench(room).judged(rest).outcome


@pytest.mark.parametrize("room", ROOMS)
def test_every_form_is_proved_with_nothing_trusted_or_refuted_as_printed(room):
    for result in paper(room).results:
        for form in result.forms:
            assert committed_verdict(result, form) == ("refuted" if form.refuted_by else "proved"), form.name
            assert trusted_premise(result, form) == ""


@pytest.mark.parametrize(("form", "needs"), LEFT_OUT.items())
def test_a_theorem_without_one_of_its_assumptions_is_not_proved(form, needs):
    for name in needs:
        assert planted(f"{form}: without {name}") == CAUGHT, name


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_noticed(error):
    assert planted(error) == CAUGHT


@pytest.mark.parametrize(("proof", "least"), TRUSTED.items())
def test_a_step_with_nine_tenths_of_its_right_side_is_refuted_on_instances(proof, least):
    room, tried = proof.partition("/")[0], 0
    for claim in ClaimSet.of(room, only=CHECKERS).claims.values():
        subject = claim.subject
        if not isinstance(subject, StepOf) or subject.proof.id != proof or not given(subject.step.rule):
            continue
        step = subject.step
        if (
            f"{room}/{step.id}" in LOOSE
            or step.conclusion.right == 0
            or step.conclusion.left.could_extract_minus_sign()
        ):
            continue
        if paper_instances(room).premise_cases(subject) is None:
            continue
        less = replace(step.conclusion, right=sp.Rational(9, 10) * step.conclusion.right)
        assert not judge_on_instances(claim).refuted, claim.id
        changed = replace(claim, subject=StepOf(subject.proof, replace(step, conclusion=less)))
        assert judge_on_instances(changed).refuted, claim.id
        tried += 1
    assert tried >= least
