"""The claim set of the papers, each made once for all tests of a process."""

from __future__ import annotations

from functools import lru_cache

from fedbounds.bounds.audit.claim_set import ClaimSet


@lru_cache
def claim_set(paper: str) -> ClaimSet:
    return ClaimSet.of(paper)
