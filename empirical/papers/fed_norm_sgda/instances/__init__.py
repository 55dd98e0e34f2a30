"""Instances of Sharma et al. (2023): runs of Fed-Norm-SGDA and of Fed-Norm-SGDA+ whose two sides are exact."""

from fedbounds.empirical.papers.fed_norm_sgda.instances.claims import instance_test
from fedbounds.empirical.papers.fed_norm_sgda.instances.premises import BUILDERS, GAPS, MEANS, premise_cases

__all__ = ["BUILDERS", "GAPS", "MEANS", "instance_test", "premise_cases"]
