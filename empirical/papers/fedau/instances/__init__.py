"""The results of Wang & Ji (2024) on instances with exact moments."""

from fedbounds.empirical.papers.fedau.instances.premises import BUILDERS, GAPS, MEANS, drawn_for
from fedbounds.empirical.papers.fedau.instances.trials import trial

__all__ = ["BUILDERS", "GAPS", "MEANS", "drawn_for", "trial"]
