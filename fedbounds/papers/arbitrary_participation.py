"""Generalized FedAvg under arbitrary participation (Wang & Ji 2022)."""

from fedbounds.bounds.papers.arbitrary_participation import RESULTS
from fedbounds.bounds.papers.arbitrary_participation.errata import ERRATA

__all__ = [
    "ERRATA",
    "RESULTS",
]
