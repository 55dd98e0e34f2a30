"""Generalized FedAvg under arbitrary participation (Wang & Ji 2022)."""

from fedbounds.bounds.papers.arbitrary_participation import RESULTS as RESULTS
from fedbounds.bounds.papers.arbitrary_participation.errata import ERRATA as ERRATA
