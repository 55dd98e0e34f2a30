"""The verdict on a form of a theorem file: a search for a run of its algorithm above the bound."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil

from fedbounds.bounds.advice.theorem_check import Finding
from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.theory.result import Form
from fedbounds.bounds.theory.theorem_file import TheoremFile, read_theorem_file
from fedbounds.empirical.algorithms.spec import algorithms
from fedbounds.empirical.falsification.reference_runs import compare_runs
from fedbounds.empirical.falsification.theorem_runs import simulated_kind
from fedbounds.empirical.falsification.theorem_search import search_violation

NAME = "instances"
METHOD = "random runs with exact left-hand sides"
ROUNDED = 5e-4  # relative error of a ratio of four digits
UNREAD = "unread: written from memory"


def of_theorem_file(claim: Claim, _: ClaimSet) -> bool:
    """Whether a claim is a form of a theorem file."""
    return isinstance(claim.subject, ResultForm) and bool(claim.subject.result.file)


def verify(claim: Claim, _: ClaimSet) -> Verdict:
    """Refuted by a run above the bound, survived if runs were compared and none was, else unknown with the reason.

    The evidence says, too, whether a form follows from lemmas of its paper.
    """
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    theorem = replace(read_theorem_file(subject.result.file), result=subject.result)
    from fedbounds.bounds.papers.reference_derivations import DERIVATIONS  # audits of other papers need none

    flags = (UNREAD,) if subject.result.source.unread else ()
    found = verdict(_search(theorem, subject.form))
    derive = DERIVATIONS.get(f"{subject.result.key}:{subject.form.name}")
    evidence = found.evidence if derive is None else f"{found.evidence}; {derive()}"
    return replace(found, flags=flags, evidence=evidence)


def _search(theorem: TheoremFile, form: Form) -> Finding:
    kind = theorem.algorithm
    if not form.order_only and simulated_kind(kind) not in algorithms():
        if (compared := compare_runs(theorem.result, form)) is not None:
            return compared
        why = f"{kind!r} is not simulated here" if kind else "the file names no algorithm"
        return Finding("warning", "search", form.name, f"no run was searched for a violation: {why}")
    found = search_violation(theorem, form)
    return found if found.level != "warning" else compare_runs(theorem.result, form) or found


def verdict(finding: Finding) -> Verdict:
    """The verdict of a search.

    Example:
        >>> text = "largest left-hand side over the bound in 500 runs on x: 0.8"
        >>> found = Finding("ok", "search", "explicit", text, ratio=0.8)
        >>> print(verdict(found).evidence)
        largest left-hand side over the bound in 500 runs on x: 0.8; a bound too small by a factor of 1.251 is caught
    """
    if finding.level == "error":
        return Verdict("refuted", NAME, METHOD, f"{finding.text} on {json.dumps(dict(finding.at))}")
    if finding.level == "warning":
        return Verdict("unknown", NAME, METHOD, finding.text)
    assert finding.ratio is not None, finding.text
    ratio = float(f"{finding.ratio:.4g}") * (1 - ROUNDED)  # of the ratio that the text has
    caught = f"a bound too small by a factor of {ceil(1000 / ratio) / 1000:g}" if ratio else "no smaller bound"
    return Verdict("survived", NAME, METHOD, f"{finding.text}; {caught} is caught", tightness=min(ratio, 1.0))


CHECKER = Checker(NAME, of_theorem_file, verify)
