"""Claims besides results and errata: proofs, limits, and assumptions that proofs need and the paper omits."""

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.paper_claims import proof_and_limit_claims
from fedbounds.bounds.audit.proof_step_checker import Unstated
from fedbounds.bounds.papers.fedau.assumptions import SURE_Q
from fedbounds.bounds.papers.fedau.limits import LIMITS
from fedbounds.bounds.papers.fedau.proof import PROOFS
from fedbounds.bounds.papers.fedau.results import THEOREM_2

UNSTATED = (Unstated(ResultForm(THEOREM_2, THEOREM_2.form("explicit")), SURE_Q),)


def claims() -> Iterator[Claim]:
    """The claims, in the order of the audit."""
    return proof_and_limit_claims("fedau", PROOFS, LIMITS, UNSTATED)
