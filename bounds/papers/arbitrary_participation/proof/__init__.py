r"""The proofs of Wang & Ji (2022), step by step.

Inside one round the bracket is $\langle u,v\rangle=\sum_nq_t^n\mathbb E[\langle u_n,v_n\rangle\mid\mathcal Q]$,
inside one window its average over the window's rounds and local steps. The spread is $V=\langle y-\bar y,y-\bar
y\rangle$, the drift $D=\|\bar y-x_{t_0}\|^2$.
"""

from fedbounds.bounds.papers.arbitrary_participation.proof import corollaries, participation
from fedbounds.bounds.papers.arbitrary_participation.proof.expected import EXPECTED_PROOFS
from fedbounds.bounds.papers.arbitrary_participation.proof.likely import LIKELY_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.spread import DRIFT_PROOF, SPREAD_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.tuned import TUNED_LEMMAS, TUNED_PROOF
from fedbounds.bounds.papers.arbitrary_participation.proof.window import THEOREM_PROOF, WINDOW_PROOF

PROOFS = (
    SPREAD_PROOF,
    DRIFT_PROOF,
    WINDOW_PROOF,
    THEOREM_PROOF,
    TUNED_LEMMAS,
    TUNED_PROOF,
    *EXPECTED_PROOFS,
    corollaries.COROLLARY_3_2_PROOF,
    corollaries.COROLLARY_3_3_PROOF,
    *participation.PROOFS,
    LIKELY_PROOF,
    corollaries.COROLLARY_4_3_PROOF,
    corollaries.COROLLARY_4_8_PROOF,
    *corollaries.EXPECTED_COROLLARIES,
    corollaries.TABLE_1_PROOF,
)
