r"""The proofs of Sharma et al. (2023), step by step.

Three steps of the paper do not follow, (19), (25) and (34); the repaired chain pays a factor $\nu$ for the first two
and takes the gradient at the old x.
"""

from fedbounds.bounds.papers.fed_norm_sgda.proof.ascent import ASCENT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.basic import BASIC_PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.proof.caps import CAPS_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.corollaries import (
    MEANT_PROOF,
    PROXIMAL_PROOF,
    RATE_PROOF,
    ROUNDS_PROOF,
)
from fedbounds.bounds.papers.fed_norm_sgda.proof.descent import DESCENT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, NOISY_PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF, PL_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF, ENVELOPE_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.local_steps import LOCAL_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.moreau import MOREAU_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.printed import GAP_PROOF, PRINTED_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.remarks import REMARK_PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.proof.restart import ONE_POINT_PROOF, RESTART_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.snapshot import SNAPSHOT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.tables import TABLE_PROOFS
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem import THEOREM_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem_4 import LAG_PROOF, THEOREM_3_PROOF, THEOREM_4_PROOF

STRONGLY_CONCAVE = (
    LOCAL_PROOF,
    ENVELOPE_PROOF,
    AWAY_PROOF,
    DIRECTIONS_PROOF,
    *NOISY_PROOFS,
    DRIFT_PROOF,
    PL_PROOF,
    DESCENT_PROOF,
    CAPS_PROOF,
    ASCENT_PROOF,
    THEOREM_PROOF,
    GAP_PROOF,
    PRINTED_PROOF,
)
CONCAVE = (SNAPSHOT_PROOF, MOREAU_PROOF, RESTART_PROOF, ONE_POINT_PROOF, LAG_PROOF, THEOREM_4_PROOF, THEOREM_3_PROOF)
COROLLARIES = (RATE_PROOF, ROUNDS_PROOF, MEANT_PROOF, PROXIMAL_PROOF, *REMARK_PROOFS, *TABLE_PROOFS)
PROOFS = (*BASIC_PROOFS, *STRONGLY_CONCAVE, *CONCAVE, *COROLLARIES)
