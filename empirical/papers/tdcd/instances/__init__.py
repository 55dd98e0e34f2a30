"""The theorem of Das et al. (2022) on whole runs, and what its proofs take from elsewhere on rounds with every path."""

from fedbounds.empirical.papers.tdcd.instances.premises import BUILDERS, GAPS, MEANS, drawn_for
from fedbounds.empirical.papers.tdcd.instances.runs import trial

__all__ = ["BUILDERS", "GAPS", "MEANS", "drawn_for", "trial"]
