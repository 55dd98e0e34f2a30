"""What the proofs of Li et al. (2024) take from elsewhere, on iterations with exact moments."""

from fedbounds.empirical.papers.fedmrn.instances.means import BUILDERS, GAPS, MEANS
from fedbounds.empirical.papers.fedmrn.instances.premises import drawn_for

__all__ = ["BUILDERS", "GAPS", "MEANS", "drawn_for"]
