"""The instance checker: the verdict on a claim from both of its sides on many instances."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.audit.rule import given
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.theory.registry import paper_names, paper_submodule
from fedbounds.empirical.falsification.instances.averages import Builder, Gaps, Means, averaging_test
from fedbounds.empirical.falsification.instances.climbing import LIGHT, SearchEffort, search_population
from fedbounds.empirical.falsification.instances.premises import PremiseCases, premise_test
from fedbounds.empirical.falsification.instances.sides import ROUNDING, InstanceFinding, InstanceTest

NAME = "instances"
METHOD = "random and adversarial instances with exact moments"


@dataclass(frozen=True)
class PaperInstances:
    """The module `instances` of a paper package; every part is optional."""

    # the problems and runs on which a claim is tested, None for a claim that is not
    instance_test: Callable[[Claim], InstanceTest | None] = lambda claim: None
    # the numbers on which a step with an external premise is tested, None for other steps
    premise_cases: Callable[[StepOf], Callable[[Claim], Iterable[PremiseCases]] | None] = lambda subject: None
    # the sequences on which the paper's own averaging rules are tested
    BUILDERS: Mapping[type, Builder] = field(default_factory=dict)
    MEANS: Means = field(default_factory=dict)  # MEANS, GAPS: the meaning of the symbols of averages in its proofs
    GAPS: Gaps = field(default_factory=dict)


@lru_cache(maxsize=64)
def paper_instances(paper: str) -> PaperInstances:
    """The instances of a paper; empty if it is not installed or its package has no `instances`."""
    module = paper_submodule(paper, "empirical", "instances") if paper in paper_names() else None
    return PaperInstances(
        **{one.name: getattr(module, one.name) for one in fields(PaperInstances) if hasattr(module, one.name)}
    )


def instance_test(claim: Claim, claims: ClaimSet | None = None) -> InstanceTest | None:
    """How a claim is tested on instances; None if it is not.

    External premises of a step are tested on numbers with the meaning of its symbols, averaging steps on sequences, all
    other claims on problems and runs.
    """
    known, subject = paper_instances(claim.paper), claim.subject
    if isinstance(subject, StepOf) and given(subject.step.rule):
        if (draw := known.premise_cases(subject)) is not None:
            return premise_test(draw)
        if (how := averaging_test(claim, claims, known.BUILDERS, known.MEANS, known.GAPS)) is not None:
            return how
    return known.instance_test(claim)


def has_instances(claim: Claim, claims: ClaimSet | None = None) -> bool:
    """Whether there are instances for this claim."""
    return instance_test(claim, claims) is not None


def judge_on_instances(claim: Claim, effort: SearchEffort = LIGHT, claims: ClaimSet | None = None) -> InstanceFinding:
    """The finding of random instances, and of a search that starts from the worst of them."""
    how = instance_test(claim, claims)
    assert how is not None
    return search_population(claim, how, effort)


def verdict(claim: Claim, finding: InstanceFinding) -> Verdict:
    """Refuted by a covered instance, survived if there were any, else unknown with the reason.

    A form that hides constants is refuted only where it is 0 and what it bounds is not.
    """
    subject = claim.subject
    order = isinstance(subject, ResultForm) and subject.form.order_only
    if not finding.covered:
        return Verdict("unknown", NAME, METHOD, finding.unmet)
    if finding.refuted and (not order or finding.worst == float("inf")):
        evidence = "whatever the hidden constants are, " if order else ""
        evidence += f"measured {finding.instance['left']:.9g} > bound {finding.instance['right']:.9g} on "
        return Verdict("refuted", NAME, METHOD, evidence + json.dumps(finding.instance, default=str))
    evidence = f"{finding.covered} instances, worst measured/bound {finding.worst:.3g}"
    if order:
        return Verdict("survived", NAME, METHOD, f"{evidence} with every hidden constant 1")
    evidence += f"; smallest errors it would have caught: {finding.sensitivity()}"
    return Verdict("survived", NAME, METHOD, evidence, tightness=finding.tightness)


def verify(claim: Claim, claims: ClaimSet) -> Verdict:
    """The verdict of the instances on a claim, whatever those on other claims."""
    how, found = instance_test(claim, claims), verdict(claim, judge_on_instances(claim, claims=claims))
    assert how is not None
    if how.implied and found.outcome == "survived":  # the premises of the step are not tested with it
        return replace(found, outcome="unknown", evidence=f"if its premises hold: {found.evidence}")
    return found


def violated(claim: Claim) -> str:
    """A message on the extremal run that violates a form at the edge of its conditions; "" if there is none."""
    how = paper_instances(claim.paper).instance_test(claim)
    if how is None or how.family is None:
        return ""
    z, _ = how.family.best(claim, small=True)
    found = float(how.sides(claim, z).ratios().max())
    return f"gradient descent has {found:.4g} times the bound" if found > 1 + ROUNDING else ""


CHECKER = Checker(NAME, has_instances, verify, violated)
