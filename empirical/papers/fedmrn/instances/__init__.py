"""The theorems of Li et al. (2024), and what their proofs take from elsewhere, on instances with exact moments."""

from fedbounds.empirical.papers.fedmrn.instances.premises import BUILDERS, GAPS, MEANS, drawn_for
from fedbounds.empirical.papers.fedmrn.instances.runs import trial

__all__ = ["BUILDERS", "GAPS", "MEANS", "drawn_for", "trial"]
