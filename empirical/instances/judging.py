"""From both sides on many instances to a verdict."""

from __future__ import annotations

import json
from dataclasses import replace

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.court import Court
from fedbounds.bounds.audit.docket import Docket
from fedbounds.bounds.audit.steps import StepOf
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.registry import PAPERS
from fedbounds.empirical import adversary  # which needs this package: the module, not its names
from fedbounds.empirical.instances.averages import AVERAGES, average_trial
from fedbounds.empirical.instances.premises import premise_trial
from fedbounds.empirical.instances.sides import Finding, Trial
from fedbounds.empirical.papers.arbitrary_participation.instances import premises as of_arbitrary_participation
from fedbounds.empirical.papers.arbitrary_participation.instances import trials as arbitrary_participation
from fedbounds.empirical.papers.fed_norm_sgda.instances import premises as of_fed_norm_sgda
from fedbounds.empirical.papers.fed_norm_sgda.instances import trials as fed_norm_sgda
from fedbounds.empirical.papers.fed_norm_sgda.instances.blocks import BLOCKS
from fedbounds.empirical.papers.fedau.instances import premises as of_fedau
from fedbounds.empirical.papers.fedau.instances import trials as fedau

NAME = "instances"
METHOD = "random and adversarial instances with exact moments"
ROOMS = (fedau.trial, arbitrary_participation.trial, fed_norm_sgda.trial)
PREMISES = (of_fedau.drawn_for, of_arbitrary_participation.drawn_for, of_fed_norm_sgda.drawn_for)
BUILDERS = {**AVERAGES, **BLOCKS, **of_fedau.CASES}


def trial(claim: Claim, docket: Docket | None = None) -> Trial | None:
    """How this court tries a claim; None if it does not hear it.

    What a step takes from elsewhere is tried on numbers that mean what its letters mean; a step that averages on
    sequences; all else on problems and runs. Nobody here knows what a stranger's letters mean.
    """
    subject = claim.subject
    if claim.paper in PAPERS and isinstance(subject, StepOf) and getattr(subject.step.rule, "gives", ""):
        draw = next((draw for room in PREMISES if (draw := room(subject)) is not None), None)
        if draw is not None:
            return premise_trial(draw)
        if (how := average_trial(claim, docket, BUILDERS)) is not None:
            return how
    return next((how for room in ROOMS if (how := room(claim)) is not None), None)


def hears(claim: Claim, docket: Docket | None = None) -> bool:
    """Whether there are instances for this claim."""
    return trial(claim, docket) is not None


def judged_on_instances(claim: Claim, effort: adversary.Effort | None = None, docket: Docket | None = None) -> Finding:
    """What random instances, and an adversary that starts from the worst of them, say about the claim.

    Args:
        claim: one that `hears` accepts.
        effort: how many shapes of instances, and how long the adversary tries; light if not given.
        docket: where the premises of a step are found that belong to another proof.
    """
    how = trial(claim, docket)
    assert how is not None
    return adversary.searched(claim, how, effort or adversary.LIGHT)


def verdict(claim: Claim, finding: Finding) -> Verdict:
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


def tries(claim: Claim, docket: Docket) -> Verdict:
    """The verdict of the instances; no verdict on another claim is asked for."""
    how, found = trial(claim, docket), verdict(claim, judged_on_instances(claim, docket=docket))
    assert how is not None
    if how.implied and found.outcome == "survived":  # what the step rests on has not been tried with it
        return replace(found, outcome="unknown", evidence=f"if its premises hold: {found.evidence}")
    return found


COURT = Court(NAME, hears, tries)
