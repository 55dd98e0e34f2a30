"""The results and proofs of Wang & Ji (2022) on instances with exact moments."""

from fedbounds.empirical.papers.arbitrary_participation.instances.claims import instance_test
from fedbounds.empirical.papers.arbitrary_participation.instances.premises import GAPS, MEANS, premise_cases

__all__ = ["GAPS", "MEANS", "instance_test", "premise_cases"]
