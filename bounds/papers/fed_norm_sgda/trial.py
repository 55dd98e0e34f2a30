"""What this paper brings to trial besides its results: what it says that is false, and what holds instead."""

from __future__ import annotations

from collections.abc import Iterator

from bounds.audit.claim import Claim
from bounds.audit.refutations import errata_claims

PAPER = "fed-norm-sgda"


def claims() -> Iterator[Claim]:
    """The errata with their repairs, what they lead to, and the wording."""
    yield from errata_claims(PAPER)
