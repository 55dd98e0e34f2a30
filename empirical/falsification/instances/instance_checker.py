"""From both sides on many instances to a verdict."""

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
from fedbounds.empirical.falsification.instances.averages import Builder, Gaps, Means, average_trial
from fedbounds.empirical.falsification.instances.climbing import LIGHT, SearchEffort, search_population
from fedbounds.empirical.falsification.instances.premises import PremiseCases, premise_trial
from fedbounds.empirical.falsification.instances.sides import ROUNDING, InstanceFinding, Trial

NAME = "instances"
METHOD = "random and adversarial instances with exact moments"


@dataclass(frozen=True)
class OfPaper:
    """What a paper's room says of its letters and its runs, in its module `instances`; it may say any part of it.

    Attributes:
        trial: on which problems and runs a claim is tried, None for a claim that is not.
        drawn_for: on which numbers a step is tried that takes something from elsewhere, None for other steps.
        BUILDERS: for the paper's own rules that average: sequences on which they are tried.
        MEANS, GAPS: what the symbols of averages stand for in its proofs.
    """

    trial: Callable[[Claim], Trial | None] = lambda claim: None
    drawn_for: Callable[[StepOf], Callable[[Claim], Iterable[PremiseCases]] | None] = lambda subject: None
    BUILDERS: Mapping[type, Builder] = field(default_factory=dict)
    MEANS: Means = field(default_factory=dict)
    GAPS: Gaps = field(default_factory=dict)


@lru_cache(maxsize=64)
def paper_instances(paper: str) -> OfPaper:
    """What is known of a paper's letters; nothing of one that is no room here, or whose room has no `instances`."""
    module = paper_submodule(paper, "empirical", "instances") if paper in paper_names() else None
    said = {one.name: getattr(module, one.name) for one in fields(OfPaper) if hasattr(module, one.name)}
    return OfPaper(**said)


def trial(claim: Claim, docket: ClaimSet | None = None) -> Trial | None:
    """How this court tries a claim; None if it does not hear it.

    What a step takes from elsewhere is tried on numbers that mean what its letters mean; a step that averages on
    sequences; all else on problems and runs. What the letters mean, the paper's room says.
    """
    known, subject = paper_instances(claim.paper), claim.subject
    if isinstance(subject, StepOf) and given(subject.step.rule):
        if (draw := known.drawn_for(subject)) is not None:
            return premise_trial(draw)
        if (how := average_trial(claim, docket, known.BUILDERS, known.MEANS, known.GAPS)) is not None:
            return how
    return known.trial(claim)


def has_instances(claim: Claim, docket: ClaimSet | None = None) -> bool:
    """Whether there are instances for this claim."""
    return trial(claim, docket) is not None


def judge_on_instances(claim: Claim, effort: SearchEffort = LIGHT, docket: ClaimSet | None = None) -> InstanceFinding:
    """What random instances, and an adversary that starts from the worst of them, say about the claim."""
    how = trial(claim, docket)
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
    said = f"{finding.covered} instances, worst measured/bound {finding.worst:.3g}"
    if order:
        return Verdict("survived", NAME, METHOD, f"{said} with every hidden constant 1")
    said += f"; smallest errors it would have caught: {finding.sensitivity()}"
    return Verdict("survived", NAME, METHOD, said, tightness=finding.tightness)


def tries(claim: Claim, docket: ClaimSet) -> Verdict:
    """The verdict of the instances; no verdict on another claim is asked for."""
    how, found = trial(claim, docket), verdict(claim, judge_on_instances(claim, docket=docket))
    assert how is not None
    if how.implied and found.outcome == "survived":  # what the step rests on has not been tried with it
        return replace(found, outcome="unknown", evidence=f"if its premises hold: {found.evidence}")
    return found


def violated(claim: Claim) -> str:
    """The extremal run that breaks a form at the edge of its conditions, in words; "" if none does, or it has none."""
    how = paper_instances(claim.paper).trial(claim)
    if how is None or how.family is None:
        return ""
    z, _ = how.family.best(claim, small=True)
    found = float(how.sides(claim, z).ratios().max())
    return f"gradient descent has {found:.4g} times the bound" if found > 1 + ROUNDING else ""


CHECKER = Checker(NAME, has_instances, tries, violated)
