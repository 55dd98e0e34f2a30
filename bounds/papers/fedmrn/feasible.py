r"""Which constants of Li et al. (2024) can occur together.

$L,\sigma,G,q$ are bounds, $\mu$ is one from below; $\Gamma$, distances and gaps are values. The weights of all clients
are $1/N$.

**Strong convexity and bounded gradients.** Every client's minimum is at least $F_k(w)-|\nabla F_k(w)|^2/(2\mu)$, and
$F(w)-F^*\ge\frac\mu2|w-w^*|^2$. At $w_1$, where the first gradients are taken ($T\ge2$), the clients' mean gives
$$\mu^2E|w_1-w^*|^2+2\mu\Gamma\le E\tfrac1N\sum_k|\nabla F_k(w_1)|^2\le G^2.$$
Clients $\frac\mu2|w-c_k|^2$ with $c_k$ at equal distances from $w^*$ and at right angles to $w_1-w^*$ attain it, and
their gradients do not grow afterwards unless sampled cohorts ($K<N$, more than one round) carry the mean model away
from $w^*$.

**Masks of the current amplitude.** In the first local step of a round the update is 0, so that every pattern of signs
of the mask has positive probability; so it has in every upload, as no update reaches its bounds. From every $w_1$
all $w_1+As$, $s\in\{-1,1\}^d$, are points where gradients are taken, with $A=\sum_ra_r=\alpha G/\mu$ and $\alpha$ of
`mask_reach`. By strong convexity $2G\ge|\nabla F_k(w_1+As)-\nabla F_k(w_1-As)|\ge2\mu A\sqrt d$. With
$s=\operatorname{sign}\nabla F_k(w_1)$ also
$\sqrt dG\ge\langle\nabla F_k(w_1+As),s\rangle\ge|\nabla F_k(w_1)|_1+\mu Ad$, hence
$\mu^2E|w_1-w^*|^2+2\mu\Gamma\le d(G-\mu A\sqrt d)^2$. Where $\Gamma=0$, $w^*$ minimizes every $F_k$, and
$G\ge\mu|w_1+As-w^*|$ with the sign of each coordinate of $w_1-w^*$ gives
$\mu|w_1-w^*|\le\sqrt{G^2-(d-1)\mu^2A^2}-\mu A$, which $\frac\mu2|w-w^*|^2$ attains.

**Without convexity** a gap may lie beyond all points where gradients are taken: every value occurs.
"""

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from sympy import Max, floor, sqrt
from sympy.printing.latex import LatexPrinter

from fedbounds.bounds.papers.fedmrn import assumptions
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.results import SAMPLING_ERROR, shift
from fedbounds.bounds.theory.feasible_set import FeasibleRule, FeasibleSets, positive
from fedbounds.bounds.theory.result import Condition

AHEAD = 20  # terms that are added before the asymptotic series, whose error is then below 1e-15


def mask_reach(shift: ArrayLike, local_steps: ArrayLike, iterations: ArrayLike) -> np.ndarray:
    r"""The sum over the rounds of $\mu a_r/G$ with $a_r=\eta_{t_0}SG$ and $\eta_t=\frac2{\mu(\gamma+t)}$.

    $$\sum_{j<R}\frac{2S}{\gamma+1+jS},\qquad R=\lceil(T-1)/S\rceil$$

    Rounds start at $t_0=1,1+S,\dots$; gradients are taken in the iterations $t=1,\dots,T-1$.

    Example:
        >>> [round(float(mask_reach(8, 1, T)), 12) for T in (1, 2, 3)]  # 0, 2/8, 2/8 + 2/9
        [0.0, 0.25, 0.472222222222]
    """
    shift, local_steps, iterations = (np.asarray(x, dtype=float) for x in (shift, local_steps, iterations))
    rounds, first = np.ceil((iterations - 1) / local_steps), shift / local_steps
    ahead = sum(rounds / ((first + j) * (first + j + rounds)) for j in range(AHEAD))
    x, y = first + AHEAD, first + AHEAD + rounds  # digamma(y) - digamma(x)
    series = sum(c * (x**-k - y**-k) for c, k in ((1 / 12, 2), (-1 / 120, 4), (1 / 252, 6), (-1 / 240, 8)))
    return np.asarray(2 * (ahead + np.log1p(rounds / x) + rounds / (2 * x * y) + series))


class MaskReach(sp.Function):
    r"""The sum as a symbol of $\gamma+1$, S and T; compiled code calls `mask_reach`."""

    nargs = 3
    _imp_ = staticmethod(mask_reach)

    if TYPE_CHECKING:

        def __new__(cls, shift: sp.Expr, local_steps: sp.Expr, iterations: sp.Expr) -> sp.Expr: ...

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        shift, steps, iterations = (printer._print(a) for a in self.args)
        body = rf"\sum_{{j<({iterations}-1)/{steps}}}\frac{{2{steps}}}{{{shift}+j{steps}}}"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"


L, mu, G, Gamma, Delta1, N, S, T, d = n.L, n.mu, n.G, n.Gamma, n.Delta1, n.N, n.S, n.T, n.d

BOUNDED = (assumptions.STRONGLY_CONVEX.name, assumptions.GRADIENT_BOUND.name)
MASKED = (assumptions.STRONGLY_CONVEX.name, assumptions.SURE_GRADIENT_BOUND.name, assumptions.ROUND_MASKS.name)
DISTANCE, SPREAD = mu**2 * Delta1, 2 * mu * Gamma  # squared gradients that w_1 - w* and the clients' minima cost
TAKEN = T - 1  # no gradient is taken before w_1 is judged
REACH = MaskReach(shift, S, T)

KEPT = (shift - 2) * (shift - 1) / ((shift + S - 2) * (shift + S - 1))  # what a first round leaves of a distance
AWAY = positive(Max(0, T - S - 1)) * SAMPLING_ERROR * (1 - KEPT) / (1 + KEPT)
OPPOSED = SPREAD * N / (2 * Max(1, floor(N / 2)))  # pairs of clients on both sides of w*; an odd one is at w*
FARTHEST = (
    (sqrt(DISTANCE) + REACH * G) ** 2
    + (sqrt(OPPOSED) + REACH * G) ** 2
    + (d - 2) * (REACH * G) ** 2
    + 2 * sqrt(DISTANCE * OPPOSED) * Max(0, 2 - d)
)
RULES = (
    FeasibleRule(
        Condition(Gamma, "<=", (N - 1) * Gamma, "a single client has Gamma = 0"), (assumptions.STRONGLY_CONVEX.name,)
    ),
    FeasibleRule(
        Condition(
            TAKEN * (DISTANCE + SPREAD),
            "<=",
            TAKEN * G**2,
            "strong convexity: the clients' gradients at w_1 are no smaller",
        ),
        BOUNDED,
    ),
    FeasibleRule(
        Condition(
            TAKEN * (Max(DISTANCE, AWAY * SPREAD) + SPREAD),
            "<=",
            TAKEN * G**2,
            "equal quadratics around w*, which cohorts may carry away from it",
        ),
        BOUNDED,
        witness=True,
    ),
    FeasibleRule(
        Condition(
            G * sqrt(d) * REACH,
            "<=",
            G,
            "strong convexity: masks may all point one way, by 2 S G sqrt(d)/max(8 L/mu, S)/mu in the first round, "
            "and the gradient grows by mu times that",
        ),
        MASKED,
    ),
    FeasibleRule(
        Condition(
            TAKEN * (DISTANCE + SPREAD),
            "<=",
            TAKEN * d * G**2 * Max(0, 1 - sqrt(d) * REACH) ** 2,
            "strong convexity: gradients at w_1 leave room for what masks add",
        ),
        MASKED,
    ),
    FeasibleRule(
        Condition(
            TAKEN * (1 - positive(Gamma)) * DISTANCE,
            "<=",
            TAKEN * G**2 * Max(0, sqrt(Max(0, 1 - (d - 1) * REACH**2)) - REACH) ** 2,
            "strong convexity: gradients at w_1 and around it, where one w minimizes every F_k",
        ),
        MASKED,
    ),
    FeasibleRule(
        Condition(TAKEN * FARTHEST, "<=", TAKEN * G**2, "equal quadratics in pairs around w*"), MASKED, witness=True
    ),
    FeasibleRule(
        Condition(
            (sqrt(n.gradsq) - sqrt(n.meansq)) ** 2,
            "<=",
            L**2 * n.Dt,
            "smoothness: mean gradients at w_bar and at the masked models",
        ),
        (assumptions.LIPSCHITZ.name,),
    ),
)
FEASIBLE = FeasibleSets(
    {
        "theorem-1": "quadratics",
        "theorem-2": "no curvature where gradients are taken, and the gap beyond",
        "lemma-1": "bounds alone",
        "lemma-2": "bounds alone",
        "lemma-3": "bounds alone",
        "lemma-4": "no gradient is bounded: earlier noise makes any distances, noise of step t any V",
        "lemma-5": "a client whose gradient has a kink at w_bar",
        "proposition-1": "bounds alone",
    },
    RULES,
)
