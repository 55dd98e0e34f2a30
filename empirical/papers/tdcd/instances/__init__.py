"""The theorem of Das et al. (2022) on whole runs, and what its proofs take from elsewhere on rounds with every path."""

from fedbounds.empirical.papers.tdcd.instances.premises import BUILDERS, GAPS, MEANS, premise_cases
from fedbounds.empirical.papers.tdcd.instances.runs import instance_test

__all__ = ["BUILDERS", "GAPS", "MEANS", "instance_test", "premise_cases"]
