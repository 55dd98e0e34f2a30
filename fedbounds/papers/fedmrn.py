"""FedMRN, masked random noise (Li et al. 2024)."""

from fedbounds.bounds.papers.fedmrn import RESULTS as RESULTS
from fedbounds.bounds.papers.fedmrn.errata import ERRATA as ERRATA
from fedbounds.empirical.simulation.moments.operators import masked_moments as masked_moments
from fedbounds.empirical.simulation.moments.operators import signed_masks as signed_masks
