"""The docket: every claim of one paper, tried once, on demand, by every court that hears it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from bounds.audit.claim import Claim, ResultForm
from bounds.audit.court import Court, courts
from bounds.audit.verdict import Verdict, combined
from bounds.errors import FedboundsError, unknown_name
from bounds.registry import PAPERS, paper


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict; wording has none."""

    claim: Claim
    verdict: Verdict | None


@dataclass
class Docket:
    """The claims of one paper and the verdicts reached so far.

    Args:
        paper: the paper's key.
        claims: by id, in the paper's order.
        courts: who tries them.
    """

    paper: str
    claims: dict[str, Claim]
    courts: tuple[Court, ...]
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    @staticmethod
    def of(name: str, only: Sequence[Court] | None = None) -> Docket:
        """The docket of one paper's room: its results, and what its modules `claims` and `proof` bring.

        Raises:
            FedboundsError: two claims share an id, or a court's dependency is missing.
        """
        claims = list(room_claims(name))
        if len({c.id for c in claims}) != len(claims):
            twice = sorted({c.id for c in claims if sum(d.id == c.id for d in claims) > 1})
            raise FedboundsError(f"two claims of {name} share an id: {', '.join(twice)}")
        return Docket(name, {c.id: c for c in claims}, tuple(courts() if only is None else only))

    def verdict(self, claim_id: str) -> Verdict:
        """The combined verdict on a claim, tried now if it was not before.

        Raises:
            FedboundsError: no such claim, or a claim that rests on itself.
            Contradiction: two courts disagree.
        """
        if claim_id not in self.claims:
            raise unknown_name("claim", claim_id, list(self.claims))
        if claim_id not in self._verdicts:
            if claim_id in self._open:
                raise FedboundsError(f"{claim_id} rests on itself: {' -> '.join([*self._open, claim_id])}")
            self._open.append(claim_id)
            claim = self.claims[claim_id]
            found = [court.tries(claim, self) for court in self.courts if court.hears(claim)]
            self._verdicts[claim_id] = combined(claim_id, found)
            self._open.pop()
        return self._verdicts[claim_id]

    def judged(self) -> Iterator[Judged]:
        """Every claim with its verdict, in the paper's order."""
        for claim in self.claims.values():
            yield Judged(claim, None if claim.kind == "wording" else self.verdict(claim.id))


def room_claims(name: str) -> Iterator[Claim]:
    """Every form of every result, its units, and the claims that the paper's room brings (`<room>.trial:claims`)."""
    from bounds.audit.units import units_claim

    room = paper(name)
    for result in room.results:
        for form in result.forms:
            subject = ResultForm(result, form)
            yield subject.claim()
            yield units_claim(subject)
    place = PAPERS.get(name)
    if place is None:
        return
    try:
        module = import_module(f"{place}.trial")
    except ModuleNotFoundError as error:
        if error.name != f"{place}.trial":
            raise
        return
    yield from module.claims()
