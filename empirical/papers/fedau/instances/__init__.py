"""The results of Wang & Ji (2024) on instances with exact moments."""

from fedbounds.empirical.papers.fedau.instances.claims import instance_test
from fedbounds.empirical.papers.fedau.instances.premises import BUILDERS, GAPS, MEANS, premise_cases

__all__ = ["BUILDERS", "GAPS", "MEANS", "instance_test", "premise_cases"]
