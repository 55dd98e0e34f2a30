"""FedMRN, masked random noise (Li et al. 2024)."""

from fedbounds.bounds.papers.fedmrn import RESULTS
from fedbounds.bounds.papers.fedmrn.errata import ERRATA
from fedbounds.empirical.simulation.moments.operators import masked_moments, signed_masks

__all__ = [
    "ERRATA",
    "RESULTS",
    "masked_moments",
    "signed_masks",
]
