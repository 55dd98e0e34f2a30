"""What this paper brings to trial besides its results: proofs, limits, and what it says that is false or leaves
unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.papers.fedmrn.proof import PROOFS


def claims() -> Iterator[Claim]:
    """The steps of every proof."""
    for proof in PROOFS:
        yield from proof.claims()
