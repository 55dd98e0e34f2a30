"""What this paper brings to trial besides its results: proofs, limits, and what it says that is false or leaves
unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.errata import errata_claims
from fedbounds.bounds.audit.steps import Unstated
from fedbounds.bounds.papers.fedau.assumptions import SURE_Q
from fedbounds.bounds.papers.fedau.limits import LIMITS
from fedbounds.bounds.papers.fedau.proof import PROOFS
from fedbounds.bounds.papers.fedau.results import THEOREM_2

PAPER = "fedau"
UNSTATED = ((THEOREM_2, "explicit", SURE_Q),)


def claims() -> Iterator[Claim]:
    """The steps of every proof, the limits, what the proofs need unsaid, the errata with their repairs, the wording."""
    for proof in PROOFS:
        yield from proof.claims()
    for limit in LIMITS:
        yield limit.claim(PAPER)
    for result, form, assumption in UNSTATED:
        yield Unstated(ResultForm(result, result.form(form)), assumption).claim()
    yield from errata_claims(PAPER)
