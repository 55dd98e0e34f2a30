"""The claims besides the forms of the theorem and their dimensions."""

from collections.abc import Iterator

from fedbounds.authoring import Claim

from gradient_descent.errata import ERRATA
from gradient_descent.limits import LIMITS
from gradient_descent.proof import PROOF

PAPER = "gradient-descent"


def claims() -> Iterator[Claim]:
    """The steps of the proof, the special cases, the erratum and its repair."""
    yield from PROOF.claims()
    for limit in LIMITS:
        yield limit.claim(PAPER)
    for erratum in ERRATA:
        yield from erratum.claims(PAPER)
