"""What is put on trial besides the forms of the theorem and their units."""

from collections.abc import Iterator

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.theory.result import Term
from scaffold.proof import PROOF
from scaffold.results import THEOREM, F, N, R, S, beta, sigma

SAME = "with everybody and no noise the order is that of gradient descent, beta F/R, whatever K"
PLAIN, PRINTED = (Term("initial gap", beta * F / R),), THEOREM.form("printed").terms


def claims() -> Iterator[Claim]:
    """The steps of the proof and the special case."""
    yield from PROOF.claims()
    yield Limit("everybody-without-noise", SAME, PRINTED, PLAIN, at={S: N, sigma: 0}).claim("scaffold")
