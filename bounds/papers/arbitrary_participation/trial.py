"""What this paper brings to trial besides its results: proofs, limits, and what it says that is false or leaves
unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator

from fedbounds.bounds.assumptions import MARTINGALE
from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.errata import errata_claims
from fedbounds.bounds.audit.steps import Unstated
from fedbounds.bounds.papers.arbitrary_participation.limits import LIMITS
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.bounds.papers.arbitrary_participation.results import THEOREM_3_1

PAPER = "arbitrary-participation"
UNSTATED = ((MARTINGALE, "noise-with-memory"),)


def claims() -> Iterator[Claim]:
    """The steps of every proof, the limits, what the proofs need unsaid, the errata with their repairs, the wording."""
    for proof in PROOFS:
        yield from proof.claims()
    for limit in LIMITS:
        yield limit.claim(PAPER)
    theorem = ResultForm(THEOREM_3_1, THEOREM_3_1.form("explicit"))
    for assumption, erratum in UNSTATED:
        yield Unstated(theorem, assumption, f"{PAPER}/erratum/{erratum}").claim()
    yield from errata_claims(PAPER)
