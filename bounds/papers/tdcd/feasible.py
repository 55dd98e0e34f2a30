r"""Which constants of Das et al. (2022) can occur together.

$L$, $L_{max}$ and the $\sigma_j$ are bounds, in any order: neither of $L$ and $L_{max}$ limits the other. Gaps and
gradients are values, and any occur on a slope. $S=\sum_j\sigma_j^2$ and $S_K=\sum_j\sigma_j^2/K_j$ are functions of the
same symbols: $S_K\le S$, and $S_K>0$ unless $S=0$; two silos, one with a single client, have any ratio in $(0,1]$.
"""

from fedbounds.bounds.papers.tdcd.notation import NOTATION
from fedbounds.bounds.theory.feasible_set import FeasibleRule, FeasibleSets, positive
from fedbounds.bounds.theory.result import Condition

S, SK = NOTATION.S, NOTATION.SK

FEASIBLE = FeasibleSets(
    {
        "theorem-1": "a slope of the height of the gap",
        "remark-5": "a slope of the height of the gap",
        "wall-clock": "a slope of the height of the gap, and as many rounds as there is time for",
        "lemma-1": "a gradient of any size",
        "lemma-2": "gradients of any size",
    },
    (
        FeasibleRule(Condition(SK, "<=", S, "every silo has a client at least")),
        FeasibleRule(Condition(positive(S), "<=", positive(SK), "every silo has finitely many clients")),
    ),
)
