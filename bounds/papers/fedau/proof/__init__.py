r"""The proofs of Wang & Ji (2024), step by step.

Inside one round the bracket is $\mathbb E_t\langle u,v\rangle$ over noise and participation, given $x_t$ and the
weights; a vector with an index n is that of any one client.
"""

from fedbounds.bounds.papers.fedau.proof import corollary, known_rates, weights
from fedbounds.bounds.papers.fedau.proof.descent import DESCENT_OF_F, DESCENT_PROOF
from fedbounds.bounds.papers.fedau.proof.drift import (
    AVERAGE_OF_F,
    AVERAGE_PROOF,
    DIVERGENCE_PROOF,
    DRIFT_OF_F,
    DRIFT_PROOF,
)
from fedbounds.bounds.papers.fedau.proof.theorem import (
    CONSTANT_PROOF,
    LIMIT_PROOF,
    NO_GAP_PROOF,
    OPTION_1_PROOF,
    THEOREM_PROOF,
)

OPTIMIZATION = (
    DIVERGENCE_PROOF,
    DRIFT_PROOF,
    AVERAGE_PROOF,
    DESCENT_PROOF,
    DRIFT_OF_F,
    AVERAGE_OF_F,
    DESCENT_OF_F,
    THEOREM_PROOF,
    OPTION_1_PROOF,
    CONSTANT_PROOF,
    NO_GAP_PROOF,
    LIMIT_PROOF,
)
PROOFS = (*OPTIMIZATION, *weights.PROOFS, *corollary.PROOFS, *known_rates.PROOFS)
