"""What this paper brings to trial besides its results: proofs, limits, and what it says that is false or leaves
unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.errata import errata_claims
from fedbounds.bounds.audit.steps import Unstated
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, BOUNDED_BELOW, BOUNDED_MAXIMIZER, GROWING
from fedbounds.bounds.papers.fed_norm_sgda.concave import THEOREM_4
from fedbounds.bounds.papers.fed_norm_sgda.limits import LIMITS
from fedbounds.bounds.papers.fed_norm_sgda.proof import PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1

PAPER = "fed-norm-sgda"
UNSTATED = (
    (THEOREM_1, BLOCK_NOISE, f"{PAPER}/erratum/noise-bounded-as-a-whole"),
    (THEOREM_1, GROWING, f"{PAPER}/erratum/shrinking-local-coefficients"),
    (THEOREM_1, BOUNDED_BELOW, ""),
    (THEOREM_4, BOUNDED_MAXIMIZER, f"{PAPER}/erratum/radius-of-the-iterates-only"),
)


def claims() -> Iterator[Claim]:
    """Steps of proofs, limits, what is unstated, errata with their repairs, and wording."""
    for proof in PROOFS:
        yield from proof.claims()
    for limit in LIMITS:
        yield limit.claim(PAPER)
    for result, assumption, erratum in UNSTATED:
        yield Unstated(ResultForm(result, result.form("repaired")), assumption, erratum).claim()
    yield from errata_claims(PAPER)
