"""From both sides on many instances to a verdict."""

from __future__ import annotations

import json

from bounds.audit.claim import Claim, ResultForm
from bounds.audit.court import Court
from bounds.audit.docket import Docket
from bounds.audit.verdict import Verdict
from empirical import adversary  # which needs this package: the module, not its names
from empirical.instances.arbitrary_participation import trials as arbitrary_participation
from empirical.instances.fed_norm_sgda import trials as fed_norm_sgda
from empirical.instances.fedau import trials as fedau
from empirical.instances.sides import Finding, Trial

NAME = "instances"
METHOD = "random and adversarial instances with exact moments"
ROOMS = (fedau.trial, arbitrary_participation.trial, fed_norm_sgda.trial)


def trial(claim: Claim) -> Trial | None:
    """How this court tries a claim; None if it does not hear it."""
    return next((how for room in ROOMS if (how := room(claim)) is not None), None)


def hears(claim: Claim, docket: Docket | None = None) -> bool:
    """Whether there are instances for this claim."""
    return trial(claim) is not None


def judged_on_instances(claim: Claim, effort: adversary.Effort | None = None) -> Finding:
    """What random instances, and an adversary that starts from the worst of them, say about the claim.

    Args:
        claim: one that `hears` accepts.
        effort: how many shapes of instances, and how long the adversary tries; light if not given.
    """
    how = trial(claim)
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
    return Verdict("survived", NAME, METHOD, f"{said}; smallest errors it would have caught: {finding.sensitivity()}")


def tries(claim: Claim, docket: Docket) -> Verdict:
    """The verdict of the instances; no other claim is asked for."""
    return verdict(claim, judged_on_instances(claim))


COURT = Court(NAME, hears, tries)
