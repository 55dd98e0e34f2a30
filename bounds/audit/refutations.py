"""The court of refutations: counterexamples that are recomputed, and the repairs of what they refute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.counterexample import Argument, Erratum, Repair, Replay, Supplement, Wording, shown
from fedbounds.bounds.audit.court import Court
from fedbounds.bounds.audit.verdict import Outcome, Verdict
from fedbounds.bounds.errors import unknown_name
from fedbounds.bounds.registry import paper_names, room

if TYPE_CHECKING:
    from fedbounds.bounds.audit.docket import Docket

NAME = "refutations"
WEAKEST: dict[Outcome, int] = {"refuted": 0, "unknown": 1, "argued": 2, "survived": 3, "proved": 4}


def room_errata(paper: str) -> Sequence[Erratum]:
    """The errata that a paper's room brings (`<room>.errata:ERRATA`); none where it has no such module."""
    return _of_room(paper, "ERRATA")


def room_wording(paper: str) -> Sequence[Wording]:
    """The slips of wording that a paper's room lists (`<room>.errata:WORDING`)."""
    return _of_room(paper, "WORDING")


def room_supplements(paper: str) -> Sequence[Supplement]:
    """Statements that the errata lead to (`<room>.errata:SUPPLEMENTS`)."""
    return _of_room(paper, "SUPPLEMENTS")


def _of_room(paper: str, name: str) -> Sequence[Any]:
    return _of_module(room(paper), name) if paper in paper_names() else ()


def _of_module(module: ModuleType, name: str) -> Sequence[Any]:
    place = f"{module.__name__}.errata"
    if not hasattr(module, "__path__") or find_spec(place) is None:  # a module without submodules brings none
        return ()
    return getattr(import_module(place), name, ())


def errata_claims(paper: str) -> Iterator[Claim]:
    """Every erratum, repair, supplement and slip of wording of a paper, for its room's `trial.claims`."""
    return remarks(room(paper), paper) if paper in paper_names() else iter(())


def remarks(module: ModuleType, paper: str) -> Iterator[Claim]:
    """The same, of a room that need not be registered; its docket hears them whether its `trial` brings them or not."""
    for kind in ("ERRATA", "SUPPLEMENTS", "WORDING"):
        for found in _of_module(module, kind):
            yield from found.claims(paper)


def missing(replay: Replay, hypotheses: Sequence[str]) -> list[str]:
    """The hypotheses of a claim that the counterexample does not check."""
    checked = {check.of for check in replay.hypotheses}
    return [name for name in hypotheses if name not in checked]


def hypotheses_of(claim: Claim) -> tuple[str, ...]:
    """Assumptions by name and conditions as they are written."""
    return (*(a.name for a in claim.assumptions), *(c.text for c in claim.conditions))


def judged_replay(replay: Replay, hypotheses: Sequence[str], what: str) -> Verdict:
    """Refuted only if every hypothesis is checked and holds and true exceeds claimed; else unknown, and why."""
    method = f"counterexample {what}"
    absent = missing(replay, hypotheses)
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


def judged_argument(argument: Argument) -> Verdict:
    """Argued, if the numbers that it mentions are right; nothing here reads its words, so it is never proved."""
    method = "argument in words"
    wrong = [check for check in argument.checks if not check.holds]
    if wrong:
        return Verdict("unknown", NAME, method, f"a number of the argument is wrong: {wrong[0]}")
    checked = "; ".join(f"{c.text}: {shown(c.left)} {c.op} {shown(c.right)}" for c in argument.checks)
    return Verdict("argued", NAME, method, checked, argument.axioms)


def judged_repair(repair: Repair, docket: Docket) -> Verdict:
    """The weakest verdict of the claims that state the repair, and of its own argument; it trusts what they trust."""
    found: list[tuple[str, Verdict]] = []
    for name in repair.rests_on:
        if name in docket.claims:
            found.append((name, docket.verdict(name)))
        else:
            found.append((name, Verdict("unknown", NAME, "none", f"no claim {name}")))
    if repair.erratum.argument is not None:
        found.append(("its own argument", judged_argument(repair.erratum.argument())))
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


def accused_by(paper: str, named: str, errata: Iterable[Erratum] | None = None) -> str:
    """An erratum by its name and how false what it is about is, as everything that shows a verdict calls it.

    Args:
        paper: the paper's key.
        named: the erratum's id, as in a form's `refuted_by`.
        errata: where to look it up; the paper's room by default.

    Example:
        >>> accused_by("arbitrary-participation", "vanishing-long-run-variance")
        'vanishing-long-run-variance (unstated but harmless)'
    """
    known = room_errata(paper) if errata is None else errata
    return next((f"{named} ({erratum.degree})" for erratum in known if erratum.id == named), named)


def known_errata(paper: str, docket: Docket) -> Mapping[str, Erratum]:
    """The errata of a room, registered or not, and of the docket, by id."""
    return {e.id: e for e in room_errata(paper)} | dict(docket.errata)


def judged_step(claim: Claim, docket: Docket) -> Verdict:
    """A step whose conclusion a counterexample refutes, so that no other proof of it exists either."""
    direct = [e for e in known_errata(claim.paper, docket).values() if claim.id in refuted_claims(e, claim.paper)]
    return judged_replay(direct[0].replayed, hypotheses_of(claim), f"{direct[0].id} ({direct[0].degree})")


def judged_form(claim: Claim, docket: Docket) -> Verdict:
    """A form that a counterexample refutes as it stands, or one whose proof rests on something refuted."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    errata = known_errata(claim.paper, docket)
    direct = [e for e in errata.values() if claim.id in refuted_claims(e, claim.paper)]
    verdicts = [judged_replay(e.replayed, hypotheses_of(claim), f"{e.id} ({e.degree})") for e in direct]
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


def refuted_claims(erratum: Erratum, paper: str) -> tuple[str, ...]:
    """The ids of the forms and steps that an erratum's counterexample refutes as they stand."""
    return tuple(f"{paper}/{name}" for name in erratum.refutes)


def check_targets(docket: Docket) -> None:
    """Every form and step that an erratum says it refutes must be on the docket.

    Raises:
        FedboundsError: one is not; names the nearest.
    """
    for erratum in known_errata(docket.paper, docket).values():
        for name in refuted_claims(erratum, docket.paper):
            if name not in docket.claims:
                raise unknown_name(f"claim that the erratum {erratum.id} refutes", name, list(docket.claims))


def hears(claim: Claim, docket: Docket) -> bool:
    """Errata, repairs, supplements, and forms and steps that an erratum is about."""
    if isinstance(claim.subject, Erratum | Repair | Supplement):
        return True
    if claim.kind not in ("result", "step"):
        return False
    if isinstance(claim.subject, ResultForm) and claim.subject.form.refuted_by:
        return True
    errata = known_errata(claim.paper, docket).values()
    return any(claim.id in refuted_claims(erratum, claim.paper) for erratum in errata)


def tries(claim: Claim, docket: Docket) -> Verdict:
    """The verdict on one claim.

    Example:
        >>> from fedbounds.bounds.audit.docket import Docket
        >>> [erratum] = [e for e in room_errata("arbitrary-participation") if e.id == "suprema-at-different-rounds"]
        >>> false, repair = erratum.claims("arbitrary-participation")
        >>> tries(false, Docket("arbitrary-participation", {}, ())).evidence
        'd^2 = 1 < least beta^2 + nu^2 = 2'
    """
    subject = claim.subject
    if isinstance(subject, Erratum):
        return judged_replay(subject.replayed, subject.hypotheses, f"{subject.id} ({subject.degree})")
    if isinstance(subject, Repair):
        return judged_repair(subject, docket)
    if isinstance(subject, Supplement):
        if subject.argument is None:
            return Verdict("unknown", NAME, "none", subject.open)
        return judged_argument(subject.argument())
    if claim.kind == "step":
        return judged_step(claim, docket)
    return judged_form(claim, docket)


COURT = Court(NAME, hears, tries)
