r"""A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging (Wang & Ji, ICLR 2024).

$N$ clients minimize $f=\frac1N\sum_nF_n$; client $n$ takes part in a round with an unknown probability $p_n$,
independently. The server adds the participants' updates with weights $\omega_t^n$, unbiased when $\omega_t^n=1/p_n$;
FedAU estimates $1/p_n$ by the mean of the past participation intervals, each cut off at length $K$. Its cost is the
weight error $W=\frac1{NT}\sum_{t,n}\mathbb E(p_n\omega_t^n-1)^2$, which `weight_statistics` computes exactly.
"""

from fedbounds.bounds.papers.fedau import corollaries, results
from fedbounds.bounds.papers.fedau.assumptions import SCOPE
from fedbounds.bounds.papers.fedau.feasible import FEASIBLE
from fedbounds.bounds.papers.fedau.weight_error import WeightStatistics, weight_statistics

VERSION = "ICLR 2024, arXiv:2306.03401"
REFERENCE = (
    "S. Wang and M. Ji, A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging, "
    f"{VERSION}"
)
BIBTEX = """@inproceedings{wang2024lightweight,
  title     = {A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging},
  author    = {Wang, Shiqiang and Ji, Mingyue},
  booktitle = {International Conference on Learning Representations},
  year      = {2024}
}"""
__all__ = ["BIBTEX", "FEASIBLE", "REFERENCE", "RESULTS", "SCOPE", "VERSION", "WeightStatistics", "weight_statistics"]
RESULTS = (*results.RESULTS, *corollaries.RESULTS)
