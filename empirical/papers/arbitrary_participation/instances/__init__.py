"""The results and proofs of Wang & Ji (2022) on instances with exact moments."""

from fedbounds.empirical.papers.arbitrary_participation.instances.premises import GAPS, MEANS, drawn_for
from fedbounds.empirical.papers.arbitrary_participation.instances.trials import trial

__all__ = ["GAPS", "MEANS", "drawn_for", "trial"]
