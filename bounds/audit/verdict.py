"""Verdicts: what a checker found, why, and what it had to trust. Never a bare boolean, and unknown is never green."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Literal, get_args

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.display.tables import Shown, Table, facts
from fedbounds.bounds.errors import FedboundsError

Outcome = Literal["proved", "survived", "argued", "refuted", "unknown"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CHECKERS = {
    "steps": "its proof, step by step",
    "units": "dimensions and gauges",
    "limits": "special cases",
    "refutations": "an exact recomputation",
    "instances": "random and adversarial instances",
}  # what each checker does, in words
TRUSTED = "trusts"
TIGHT = 0.5  # trials that come so near would have caught a right-hand side of half the size
NEAR = 0.9  # trials that come so near leave nothing to say
STRENGTH: dict[Outcome, int] = {"unknown": 0, "argued": 1, "survived": 2, "proved": 3, "refuted": 4}


class Contradiction(FedboundsError):
    """Two checkers disagree: one has proved what another has refuted. One of them is wrong, so the audit stops."""


@dataclass(frozen=True)
class Verdict(Shown):
    """What one checker found.

    Args:
        outcome: proved, survived, argued (in words that no checker reads), refuted or unknown.
        checker: its name.
        method: how, in a few words.
        evidence: what was found, in one line: for survived the worst ratio and the smallest mutation that would
            have been caught; for refuted both sides of the counterexample; for unknown the reason.
        axioms: what an exact argument trusts.
        trusts: what its author says and no rule shows (what an assumption says here, how far the algorithm moves, how
            many steps there are), by the step's id; empty once another checker has tried it.
        may_hide: what trials came nearer than half to, but not near: which error they would have missed at most.
        tightness: how near trials came to the claim without a violation, or, where the outcome is unknown, to what
            follows from its premises: 1 where both sides met.
        flags: further findings, e.g. "vacuous" or "needs the unstated assumption exogenous-participation".
    """

    outcome: Outcome
    checker: str
    method: str
    evidence: str
    axioms: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()
    tightness: float = 0.0
    may_hide: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The outcome."""
        return self.outcome

    def tables(self) -> tuple[Table, ...]:
        """What was found, and by whom."""
        return (facts({f.name: found for f in fields(self) if (found := vars(self)[f.name])}),)

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The axioms, and what is trusted untried, each marked so."""
        return (*self.axioms, *(f"{TRUSTED} {name}" for name in self.trusts))


def combine_verdicts(claim: str, verdicts: Sequence[Verdict]) -> Verdict:
    """The strongest of several checkers' verdicts on one claim, with the flags of all.

    A proof that trusts what its author says is freed of that by trials that would have caught half of it, and falls
    with a counterexample. Where they would not have caught nine tenths, it may hide an error up to the factor that
    they leave.

    Example:
        >>> tried, shown = Verdict("survived", "instances", "", "0.3"), Verdict("proved", "steps", "", "")
        >>> combine_verdicts("x", [tried, shown]).checker
        'steps'
        >>> word = Verdict("proved", "steps", "", "", trusts=("what x is",))
        >>> tried = Verdict("survived", "instances", "", "", tightness=0.55)
        >>> combine_verdicts("x", [word]).trusts, combine_verdicts("x", [word, tried]).trusts
        (('what x is',), ())
        >>> combine_verdicts("x", [word, tried]).may_hide
        ('an error up to a factor 1.82 in what x is',)
        >>> combine_verdicts("x", []).outcome
        'unknown'
    """
    if not verdicts:
        return Verdict("unknown", "none", "none", "no checker applies to this claim")
    outcomes = {v.outcome for v in verdicts}
    shown = any(v.outcome == "proved" and not v.trusts for v in verdicts)
    if shown and "refuted" in outcomes:  # a search that found nothing contradicts no counterexample
        said = "; ".join(f"{v.checker}: {v.outcome} ({v.method}: {v.evidence})" for v in verdicts)
        raise Contradiction(f"{claim}: the checkers contradict each other: {said}")
    best = max(verdicts, key=lambda v: STRENGTH[v.outcome])
    flags = tuple(dict.fromkeys(flag for v in verdicts for flag in v.flags))
    nearest = max(v.tightness for v in verdicts)
    if nearest >= NEAR:
        return replace(best, flags=flags, trusts=(), may_hide=())
    if nearest < TIGHT:
        return replace(best, flags=flags)
    factor = f"an error up to a factor {ceil(100 / nearest) / 100:g}"
    return replace(
        best, flags=flags, trusts=(), may_hide=(*best.may_hide, *(f"{factor} in {word}" for word in best.trusts))
    )


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict; wording has none."""

    claim: Claim
    verdict: Verdict | None
