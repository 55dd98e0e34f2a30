"""What this paper brings to trial besides its results: proofs, limits, and what it says that is false or leaves
unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator

from bounds.audit.claim import Claim, ResultForm
from bounds.audit.refutations import errata_claims
from bounds.audit.steps import Demand, Unstated
from bounds.papers.arbitrary_participation.assumptions import (
    BOUNDED_BELOW,
    EXOGENOUS,
    INDEPENDENT_CLIENTS,
    MARTINGALE,
    WINDOW,
)
from bounds.papers.arbitrary_participation.limits import LIMITS
from bounds.papers.arbitrary_participation.proof import PROOFS
from bounds.papers.arbitrary_participation.results import THEOREM_3_1

PAPER = "arbitrary-participation"
UNSTATED = (
    (INDEPENDENT_CLIENTS, "shared-noise"),
    (MARTINGALE, "noise-with-memory"),
    (EXOGENOUS, "participation-follows-the-noise"),
    (BOUNDED_BELOW, ""),
)


def claims() -> Iterator[Claim]:
    """The steps of every proof, the limits, what the proofs need unsaid, the errata with their repairs, the wording."""
    for proof in PROOFS:
        yield from proof.claims()
    for limit in LIMITS:
        yield limit.claim(PAPER)
    theorem = ResultForm(THEOREM_3_1, THEOREM_3_1.form("explicit"))
    for assumption, erratum in UNSTATED:
        yield Unstated(theorem, assumption, f"{PAPER}/erratum/{erratum}" if erratum else "").claim()
    yield Demand(
        f"{PAPER}/unstated/windows-at-multiples-of-P",
        WINDOW,
        "for all t_0",
        f"{PAPER}/proposition-4.2/D3",
        f"{PAPER}/erratum/unaligned-windows",
    ).claim()
    yield from errata_claims(PAPER)
