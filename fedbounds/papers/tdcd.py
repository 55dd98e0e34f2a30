"""TDCD, vertical and horizontal data in tiers (Das et al. 2022)."""

from fedbounds.bounds.papers.tdcd import RESULTS as RESULTS
from fedbounds.bounds.papers.tdcd.errata import ERRATA as ERRATA
from fedbounds.empirical.papers.tdcd.traffic import Traffic as Traffic
from fedbounds.empirical.papers.tdcd.traffic import round_time as round_time
from fedbounds.empirical.papers.tdcd.traffic import round_traffic as round_traffic
