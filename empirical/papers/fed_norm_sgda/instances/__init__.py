"""Instances of Sharma et al. (2023): runs of Fed-Norm-SGDA and of Fed-Norm-SGDA+ whose two sides are exact."""

from fedbounds.empirical.papers.fed_norm_sgda.instances.premises import BUILDERS, GAPS, MEANS, drawn_for
from fedbounds.empirical.papers.fed_norm_sgda.instances.trials import trial

__all__ = ["BUILDERS", "GAPS", "MEANS", "drawn_for", "trial"]
