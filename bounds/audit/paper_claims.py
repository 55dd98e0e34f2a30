"""The claims of a paper besides its results and its errata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.audit.proof_step_checker import Proof, Unstated
from fedbounds.bounds.audit.spreads import Spread


def proof_and_limit_claims(
    paper: str, proofs: Iterable[Proof], limits: Iterable[Limit | Spread], unstated: Iterable[Unstated] = ()
) -> Iterator[Claim]:
    """The steps of every proof, the limits, and what the proofs need unsaid, for a paper package's `claims.claims`.

    Example:
        >>> next(proof_and_limit_claims("a-paper", (), ()), None) is None
        True
    """
    for proof in proofs:
        yield from proof.claims()
    yield from (limit.claim(paper) for limit in limits)
    yield from (need.claim() for need in unstated)
