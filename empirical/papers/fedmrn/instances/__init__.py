"""The theorems of Li et al. (2024), and what their proofs take from elsewhere, on instances with exact moments."""

from fedbounds.empirical.papers.fedmrn.instances.premises import BUILDERS, GAPS, MEANS, premise_cases
from fedbounds.empirical.papers.fedmrn.instances.runs import instance_test

__all__ = ["BUILDERS", "GAPS", "MEANS", "instance_test", "premise_cases"]
