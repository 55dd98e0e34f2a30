r"""Federated Minimax Optimization with Client Heterogeneity (Sharma, Panda & Joshi, 2023).

$\min_x\max_yF(x,y)$, $F=\sum_ip_if_i$ over $n$ clients. In a round the server draws $P$ clients without replacement;
client $i$ takes $\tau_i$ local descent steps in $x$ and ascent steps in $y$ and returns its update divided by
$\|a_i\|_1$, the sum of its step coefficients; the server combines them with weights $w_i$ and its own steps
$\gamma_x,\gamma_y$, times $\tau_{\rm eff}$. The normalization lets clients differ in how much work they do: what
converges is the gradient of the envelope $\tilde\Phi(x)=\max_y\sum_iw_if_i(x,y)$.
"""

from fedbounds.bounds.papers.fed_norm_sgda import (
    concave,
    corollaries,
    lemmas,
    lemmas_basic,
    lemmas_concave,
    remarks,
    results,
    tables,
)
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import SCOPE
from fedbounds.bounds.papers.fed_norm_sgda.feasible import FEASIBLE

__all__ = ["BIBTEX", "FEASIBLE", "REFERENCE", "RESULTS", "SCOPE", "VERSION"]
VERSION = "arXiv:2302.04249, 2023"
REFERENCE = f"P. Sharma, R. Panda and G. Joshi, Federated Minimax Optimization with Client Heterogeneity, {VERSION}"
BIBTEX = """@article{sharma2023federated,
  title   = {Federated Minimax Optimization with Client Heterogeneity},
  author  = {Sharma, Pranay and Panda, Rohan and Joshi, Gauri},
  journal = {arXiv preprint arXiv:2302.04249},
  year    = {2023}
}"""
RESULTS = (
    *results.RESULTS,
    *concave.RESULTS,
    *corollaries.RESULTS,
    *lemmas_basic.RESULTS,
    *lemmas.RESULTS,
    *lemmas_concave.RESULTS,
    *remarks.RESULTS,
    *tables.RESULTS,
)
