"""The counterexample checker: counterexamples that are recomputed, and the repairs of what they refute."""

from __future__ import annotations

from collections.abc import Sequence

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet, errata_by_id
from fedbounds.bounds.audit.counterexample import Argument, Erratum, Repair, Replay, Supplement, format_fraction
from fedbounds.bounds.audit.errata import refuted_claims
from fedbounds.bounds.audit.verdict import Outcome, Verdict

NAME = "refutations"
WEAKEST: dict[Outcome, int] = {"refuted": 0, "unknown": 1, "argued": 2, "survived": 3, "proved": 4}


def missing_hypotheses(replay: Replay, hypotheses: Sequence[str]) -> list[str]:
    """The hypotheses of a claim that the counterexample does not check."""
    checked = {check.name for check in replay.hypotheses}
    return [name for name in hypotheses if name not in checked]


def hypotheses_of(claim: Claim) -> tuple[str, ...]:
    """Assumptions by name and conditions as they are written."""
    return (*(a.name for a in claim.assumptions), *(c.text for c in claim.conditions))


def judge_replay(replay: Replay, hypotheses: Sequence[str], what: str) -> Verdict:
    """Refuted only if every hypothesis is checked and holds and true exceeds claimed; else unknown, and why."""
    method = f"counterexample {what}"
    absent = missing_hypotheses(replay, hypotheses)
    if absent:
        return Verdict("unknown", NAME, method, f"not covered: no check that {', '.join(absent)} holds")
    if replay.failing:
        return Verdict("unknown", NAME, method, f"not covered: {replay.failing[0]}")
    if not replay.exceeds:
        return Verdict("unknown", NAME, method, f"the counterexample does not exceed the claim: {replay.comparison}")
    flags = () if replay.is_minimal else (f"not minimal: {_not_minimal(replay)}",)
    return Verdict("refuted", NAME, method, replay.comparison, (), flags)


def _not_minimal(replay: Replay) -> str:
    return next(small.text for small in replay.smaller if small.true > small.claimed)


def judge_argument(argument: Argument) -> Verdict:
    """Argued, if the numbers that it mentions are right; nothing here reads its words, so it is never proved."""
    method = "argument in words"
    wrong = [check for check in argument.checks if not check.holds]
    if wrong:
        return Verdict("unknown", NAME, method, f"a number of the argument is wrong: {wrong[0]}")
    checked = "; ".join(
        f"{c.text}: {format_fraction(c.left)} {c.op} {format_fraction(c.right)}" for c in argument.checks
    )
    return Verdict("argued", NAME, method, checked, argument.axioms)


def judge_repair(repair: Repair, claim_set: ClaimSet) -> Verdict:
    """The weakest verdict of the claims that state the repair, and of its own argument; it trusts what they trust."""
    found: list[tuple[str, Verdict]] = []
    for name in repair.rests_on:
        if name in claim_set.claims:
            found.append((name, claim_set.verdict(name)))
        else:
            found.append((name, Verdict("unknown", NAME, "none", f"no claim {name}")))
    if repair.erratum.argument is not None:
        found.append(("its own argument", judge_argument(repair.erratum.argument())))
    if not found:
        return Verdict("unknown", NAME, "none", repair.erratum.open or "no claim states the repair")
    name, weakest = min(found, key=lambda pair: WEAKEST[pair[1].outcome])
    axioms = tuple(dict.fromkeys(axiom for _, verdict in found for axiom in verdict.axioms))
    trusts = tuple(dict.fromkeys(word for _, verdict in found for word in verdict.trusts))
    evidence = (
        f"{name}: {weakest.evidence}" if len(found) == 1 else f"weakest of {len(found)}: {name}: {weakest.evidence}"
    )
    may_hide = tuple(dict.fromkeys(word for _, verdict in found for word in verdict.may_hide))
    method = f"the claims it names ({weakest.method})"
    return Verdict(weakest.outcome, NAME, method, evidence, axioms, trusts=trusts, may_hide=may_hide)


def judge_step(claim: Claim, claim_set: ClaimSet) -> Verdict:
    """A step whose conclusion a counterexample refutes, so that no other proof of it exists either."""
    direct = [e for e in errata_by_id(claim.paper, claim_set).values() if claim.id in refuted_claims(e, claim.paper)]
    return judge_replay(direct[0].replayed, hypotheses_of(claim), f"{direct[0].id} ({direct[0].degree})")


def judge_form(claim: Claim, claim_set: ClaimSet) -> Verdict:
    """A form that a counterexample refutes as it stands, or one whose proof rests on something refuted."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    errata = errata_by_id(claim.paper, claim_set)
    direct = [e for e in errata.values() if claim.id in refuted_claims(e, claim.paper)]
    verdicts = [judge_replay(e.replayed, hypotheses_of(claim), f"{e.id} ({e.degree})") for e in direct]
    for verdict in verdicts:
        if verdict.outcome == "refuted":
            return verdict
    if verdicts:
        return verdicts[0]
    named = subject.form.refuted_by
    if named not in errata:
        reason = f"said to be refuted by {named}, but no counterexample of this name is here yet"
        return Verdict("unknown", NAME, f"counterexample {named}", reason)
    erratum = errata[named]
    reason = f"not refuted as it stands; its derivation rests on a false claim ({erratum.where}: {erratum.claim})"
    flag = f"rests on {claim.paper}/erratum/{named}"
    return Verdict("unknown", NAME, f"counterexample {named} ({erratum.degree}) to a step", reason, (), (flag,))


def applies_to(claim: Claim, claim_set: ClaimSet) -> bool:
    """Errata, repairs, supplements, and forms and steps that an erratum is about."""
    if isinstance(claim.subject, Erratum | Repair | Supplement):
        return True
    if claim.kind not in ("result", "step"):
        return False
    if isinstance(claim.subject, ResultForm) and claim.subject.form.refuted_by:
        return True
    errata = errata_by_id(claim.paper, claim_set).values()
    return any(claim.id in refuted_claims(erratum, claim.paper) for erratum in errata)


def verify(claim: Claim, claim_set: ClaimSet) -> Verdict:
    """The verdict on one claim.

    Example:
        >>> from fedbounds.bounds.audit.errata import paper_errata
        >>> [erratum] = [e for e in paper_errata("arbitrary-participation") if e.id == "suprema-at-different-rounds"]
        >>> false, repair = erratum.claims("arbitrary-participation")
        >>> verify(false, ClaimSet("arbitrary-participation", {}, ())).evidence
        'd^2 = 1 < least beta^2 + nu^2 = 2'
    """
    subject = claim.subject
    if isinstance(subject, Erratum):
        return judge_replay(subject.replayed, subject.hypotheses, f"{subject.id} ({subject.degree})")
    if isinstance(subject, Repair):
        return judge_repair(subject, claim_set)
    if isinstance(subject, Supplement):
        if subject.argument is None:
            return Verdict("unknown", NAME, "none", subject.open)
        return judge_argument(subject.argument())
    if claim.kind == "step":
        return judge_step(claim, claim_set)
    return judge_form(claim, claim_set)


CHECKER = Checker(NAME, applies_to, verify)
