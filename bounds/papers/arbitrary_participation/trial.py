"""What this paper brings to trial besides its results: the steps of its proofs."""

from __future__ import annotations

from collections.abc import Iterator

from bounds.audit.claim import Claim
from bounds.papers.arbitrary_participation.proof import PROOFS


def claims() -> Iterator[Claim]:
    """The steps of every proof, in order."""
    for proof in PROOFS:
        yield from proof.claims()
