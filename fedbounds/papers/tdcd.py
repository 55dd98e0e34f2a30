"""TDCD, vertical and horizontal data in tiers (Das et al. 2022)."""

from fedbounds.bounds.papers.tdcd import RESULTS
from fedbounds.bounds.papers.tdcd.errata import ERRATA
from fedbounds.empirical.papers.tdcd.deployment import Deployment
from fedbounds.empirical.papers.tdcd.nodes import Holding, Silo
from fedbounds.empirical.papers.tdcd.traffic import Traffic, round_time, round_traffic

__all__ = [
    "Deployment",
    "ERRATA",
    "Holding",
    "RESULTS",
    "Silo",
    "Traffic",
    "round_time",
    "round_traffic",
]
