"""Claims besides results and errata: proofs, limits, and assumptions that proofs need and the paper omits."""

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.paper_claims import proof_and_limit_claims
from fedbounds.bounds.audit.proof_step_checker import Unstated
from fedbounds.bounds.papers.arbitrary_participation.limits import LIMITS
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.bounds.papers.arbitrary_participation.results import THEOREM_3_1
from fedbounds.bounds.theory.assumptions import MARTINGALE

THEOREM = ResultForm(THEOREM_3_1, THEOREM_3_1.form("explicit"))
UNSTATED = (Unstated(THEOREM, MARTINGALE, "arbitrary-participation/erratum/noise-with-memory"),)


def claims() -> Iterator[Claim]:
    """The claims, in the order of the audit."""
    return proof_and_limit_claims("arbitrary-participation", PROOFS, LIMITS, UNSTATED)
