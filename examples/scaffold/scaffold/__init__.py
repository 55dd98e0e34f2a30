r"""SCAFFOLD: Stochastic Controlled Averaging for Federated Learning (Karimireddy et al., ICML 2020).

In every round $S$ of $N$ clients, drawn uniformly without replacement, take $K$ local steps in which the control
variates $c$ and $c_i$ stand for what the others would do. Only the nonconvex case of Theorem III is here.
"""

from fedbounds.authoring import USUAL_SCOPE
from scaffold.results import THEOREM

REFERENCE = (
    "S. P. Karimireddy, S. Kale, M. Mohri, S. J. Reddi, S. U. Stich and A. T. Suresh, SCAFFOLD: Stochastic Controlled "
    "Averaging for Federated Learning, 37th International Conference on Machine Learning, 2020"
)
BIBTEX = """@inproceedings{karimireddy2020scaffold,
  title     = {{SCAFFOLD}: Stochastic Controlled Averaging for Federated Learning},
  author    = {Karimireddy, Sai Praneeth and Kale, Satyen and Mohri, Mehryar and Reddi, Sashank J.
               and Stich, Sebastian U. and Suresh, Ananda Theertha},
  booktitle = {Proceedings of the 37th International Conference on Machine Learning},
  year      = {2020}
}"""
RESULTS, SCOPE = (THEOREM,), USUAL_SCOPE
