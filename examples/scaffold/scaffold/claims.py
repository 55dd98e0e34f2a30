"""The claims besides the forms of the theorem and their dimensions."""

from collections.abc import Iterator

from fedbounds.authoring import Claim, Term
from fedbounds.authoring.proof import Limit
from scaffold.proof import PROOF
from scaffold.results import THEOREM, F, N, R, S, beta, sigma

SAME = "with full participation and no noise the order is that of gradient descent, beta F/R, whatever K"
PLAIN, PRINTED = (Term("initial gap", beta * F / R),), THEOREM.form("printed").terms


def claims() -> Iterator[Claim]:
    """The steps of the proof and the special case."""
    yield from PROOF.claims()
    yield Limit("full-participation-without-noise", SAME, PRINTED, PLAIN, at={S: N, sigma: 0}).claim("scaffold")
