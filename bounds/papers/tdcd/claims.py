"""Claims besides results and errata: proofs and limits."""

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.paper_claims import proof_and_limit_claims
from fedbounds.bounds.papers.tdcd.limits import LIMITS
from fedbounds.bounds.papers.tdcd.proof import PROOFS


def claims() -> Iterator[Claim]:
    """The claims, in the order of the audit."""
    return proof_and_limit_claims("tdcd", PROOFS, LIMITS)
