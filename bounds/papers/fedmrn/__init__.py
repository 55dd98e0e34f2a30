r"""Masked Random Noise for Communication-Efficient Federated Learning (Li et al., ACM Multimedia 2024).

$N$ clients minimize $F=\frac1N\sum_kF_k$; in every round $K$ of them, drawn uniformly without replacement, take $S$
local steps. FedMRN uploads a seed of random noise $n$ and one bit per parameter: the update becomes
$\mathcal S(u,n)=n\odot m$ with a random mask $m$ whose mean gives $u$ back. The theorems treat $\mathcal S$ as an
unbiased operator with relative error $q$; $T$ counts iterations. FedMRN's masks have no finite $q$: see R1 and R2.
"""

from fedbounds.bounds.papers.fedmrn import lemmas, remarks, results
from fedbounds.bounds.papers.fedmrn.assumptions import SCOPE
from fedbounds.bounds.papers.fedmrn.feasible import FEASIBLE

__all__ = ["BIBTEX", "FEASIBLE", "REFERENCE", "RESULTS", "SCOPE", "VERSION"]
VERSION = "ACM Multimedia 2024, arXiv:2408.03220"
REFERENCE = (
    "S. Li, Y. Cheng, H. Wang, X. Tang, S. Xu, W. Luo, Y. Li, D. Liu, X. He and R. Li, Masked Random Noise for "
    f"Communication-Efficient Federated Learning, {VERSION}"
)
BIBTEX = """@inproceedings{li2024masked,
  title     = {Masked Random Noise for Communication-Efficient Federated Learning},
  author    = {Li, Shiwei and Cheng, Yingyi and Wang, Haozhao and Tang, Xing and Xu, Shijie and Luo, Weihong
               and Li, Yuhua and Liu, Dugang and He, Xiuqiang and Li, Ruixuan},
  booktitle = {Proceedings of the 32nd ACM International Conference on Multimedia},
  doi       = {10.1145/3664647.3680608},
  year      = {2024}
}"""
RESULTS = (*results.THEOREMS, *lemmas.LEMMAS, *remarks.RESULTS)
