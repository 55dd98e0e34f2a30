r"""Cross-Silo Federated Learning for Multi-Tier Networks with Vertical and Horizontal Data Partitioning.

Das et al., 2022. Silo $j$ owns block $j$ of the parameters (its features); inside a silo the samples are split over
$K_j$ clients. A round of Tiered Decentralized Coordinate Descent (TDCD) exchanges embeddings of one mini-batch, then
every client takes $Q$ local steps of size $\eta$ on its own block while the other blocks' embeddings, and the
mini-batch, stay frozen; the hub averages its clients. $R$ rounds are $T=QR$ iterations. The noise enters by
$S=\sum_j\sigma_j^2$ alone.
"""

from fedbounds.bounds.papers.tdcd import lemmas, remarks, results
from fedbounds.bounds.papers.tdcd.assumptions import SCOPE
from fedbounds.bounds.papers.tdcd.feasible import FEASIBLE

__all__ = ["BIBTEX", "FEASIBLE", "REFERENCE", "RESULTS", "SCOPE", "VERSION"]
VERSION = "ACM TIST 2022, arXiv:2108.08930"
REFERENCE = (
    "A. Das, T. Castiglia, S. Wang and S. Patterson, Cross-Silo Federated Learning for Multi-Tier Networks with "
    f"Vertical and Horizontal Data Partitioning, {VERSION}"
)
BIBTEX = """@article{das2022cross,
  title   = {Cross-Silo Federated Learning for Multi-Tier Networks with Vertical and Horizontal Data Partitioning},
  author  = {Das, Anirban and Castiglia, Timothy and Wang, Shiqiang and Patterson, Stacy},
  journal = {ACM Transactions on Intelligent Systems and Technology},
  year    = {2022}
}"""
RESULTS = (results.THEOREM_1, *remarks.RESULTS, *lemmas.LEMMAS)
