"""Special cases: where the two forms agree, and where the printed one is true."""

from fedbounds.authoring import Relation
from fedbounds.authoring.proof import Limit

from gradient_descent.results import THEOREM, L, eta

PRINTED, EXPLICIT = THEOREM.form("printed").terms, THEOREM.form("explicit").terms

LIMITS = (
    Limit(
        "step-of-1-over-L",
        "at eta = 1/L the two forms are equal",
        EXPLICIT,
        PRINTED,
        at={eta: 1 / L},
    ),
    Limit(
        "small-steps",
        "the explicit form is at most the printed one for eta <= 1/L",
        EXPLICIT,
        PRINTED,
        op="<=",
        facts=(Relation(eta, 1 / L),),
    ),
)
