"""The dockets of the papers, each made once for all tests of a process."""

from __future__ import annotations

from functools import lru_cache

from fedbounds.bounds.audit.claim_set import Docket


@lru_cache
def docket(paper: str) -> Docket:
    return Docket.of(paper)
