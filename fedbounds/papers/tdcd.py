"""TDCD, vertical and horizontal data in tiers (Das et al. 2022)."""

from fedbounds.bounds.papers.tdcd import RESULTS
from fedbounds.bounds.papers.tdcd.errata import ERRATA
from fedbounds.empirical.papers.tdcd.traffic import Traffic, round_time, round_traffic

__all__ = [
    "ERRATA",
    "RESULTS",
    "Traffic",
    "round_time",
    "round_traffic",
]
