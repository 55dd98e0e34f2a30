"""Claims besides results and errata: proofs, limits, and assumptions that proofs need and the paper omits."""

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.paper_claims import proof_and_limit_claims
from fedbounds.bounds.audit.proof_step_checker import Unstated
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, BOUNDED_BELOW, BOUNDED_MAXIMIZER, GROWING
from fedbounds.bounds.papers.fed_norm_sgda.concave import THEOREM_4
from fedbounds.bounds.papers.fed_norm_sgda.limits import LIMITS
from fedbounds.bounds.papers.fed_norm_sgda.proof import PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1

ONE, FOUR = (ResultForm(theorem, theorem.form("repaired")) for theorem in (THEOREM_1, THEOREM_4))
UNSTATED = (
    Unstated(ONE, BLOCK_NOISE, "fed-norm-sgda/erratum/noise-bounded-as-a-whole"),
    Unstated(ONE, GROWING, "fed-norm-sgda/erratum/shrinking-local-coefficients"),
    Unstated(ONE, BOUNDED_BELOW),
    Unstated(FOUR, BOUNDED_MAXIMIZER, "fed-norm-sgda/erratum/radius-of-the-iterates-only"),
)


def claims() -> Iterator[Claim]:
    """The claims, in the order of the audit."""
    return proof_and_limit_claims("fed-norm-sgda", PROOFS, LIMITS, UNSTATED)
