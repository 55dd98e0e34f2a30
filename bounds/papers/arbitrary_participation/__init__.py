r"""A Unified Analysis of Federated Learning with Arbitrary Client Participation (Wang & Ji, NeurIPS 2022).

$N$ clients minimize $f=\frac1N\sum_nF_n$. In round $t$ client $n$ takes part with weight $q_t^n$, an arbitrary
sequence that is analyzed as given. Generalized FedAvg (Algorithm 1) runs $I$ local SGD steps of size $\gamma$ at every
participant, adds the weighted updates, and every $P$ rounds multiplies the displacement of those rounds by $\eta$. All
that the pattern of participation does to the bound is in one number, the window divergence $\tilde\delta^2(P)$.
"""

from fedbounds.bounds.papers.arbitrary_participation import expected, participation, rates, results
from fedbounds.bounds.papers.arbitrary_participation.assumptions import SCOPE
from fedbounds.bounds.papers.arbitrary_participation.feasible import FEASIBLE

__all__ = ["BIBTEX", "FEASIBLE", "REFERENCE", "RESULTS", "SCOPE", "VERSION"]
VERSION = "NeurIPS 2022, arXiv:2205.13648"
REFERENCE = (
    f"S. Wang and M. Ji, A Unified Analysis of Federated Learning with Arbitrary Client Participation, {VERSION}"
)
BIBTEX = """@inproceedings{wang2022unified,
  title     = {A Unified Analysis of Federated Learning with Arbitrary Client Participation},
  author    = {Wang, Shiqiang and Ji, Mingyue},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {35},
  year      = {2022}
}"""
RESULTS = (*results.RESULTS, *participation.RESULTS, *expected.RESULTS, *rates.RESULTS)
