"""TDCD, vertical and horizontal data in tiers (Das et al. 2022)."""

from fedbounds.bounds.papers.tdcd import RESULTS as RESULTS
from fedbounds.bounds.papers.tdcd.errata import ERRATA as ERRATA
from fedbounds.empirical.papers.tdcd.deployment import Deployment as Deployment
from fedbounds.empirical.papers.tdcd.nodes import Holding as Holding
from fedbounds.empirical.papers.tdcd.nodes import Silo as Silo
from fedbounds.empirical.papers.tdcd.traffic import Traffic as Traffic
from fedbounds.empirical.papers.tdcd.traffic import round_time as round_time
from fedbounds.empirical.papers.tdcd.traffic import round_traffic as round_traffic
