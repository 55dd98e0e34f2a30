r"""Which constants of Sharma et al. (2023) can occur together.

$L_f$, $\sigma_L,\beta_L,\sigma_G,\beta_G$, $G_x$ and $R$ are bounds, $\mu$ is one from below ($\kappa\ge1$ is a
condition of the forms). Gaps, gradients and the mismatches of lemmas are values. Clients alike,
$f(x,y)=g(x)-\frac\mu2|y|^2$ with a slope $g$ of any height, have any initial gaps, and any $|\nabla g|^2$ beside any
dual gap.

**Coefficients.** $\tau_i$ numbers $\ge0$ with the given norms, last and largest entry exist: `coefficients_missing`.

**Drift** needs a client with weight and a second local step. The mean exact direction $d$ is a mean of gradients at
local iterates: $|d-\nabla_xF|^2\le X_t$ in the mean, and
$|\nabla_xF-\nabla\tilde\Phi|\le L_f|y-\tilde y^*|\le\sqrt{2\kappa L_f\delta_t}$. If the last local iterate alone is
away, by the same distance for every client, and the gradient has a kink at the first, $|d-\nabla_xF|^2$ is any number
up to $X_t\sum_iw_ia_i^{(\tau_i-1)}/\|a_i\|_1$ (clients with one step have no such iterate).

**Two weightings.** With $p=w$ both maximizers are one. Clients $f_i=g(x)+\langle b_i,y\rangle-\frac\mu2|y|^2$ have
maximizers any distance apart, with $b_i$ as alike as $\sigma_G>0$ asks for and a small $\mu$.

**Moreau envelopes** of functions with gradients up to $G_x$ have no larger ones.
"""

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from sympy import Abs, Min, sqrt

from fedbounds.bounds.papers.fed_norm_sgda.assumptions import LIPSCHITZ
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.theory.client_reductions import MaxOverClients, SumOverClients
from fedbounds.bounds.theory.feasible_set import FeasibleRule, FeasibleSets, positive
from fedbounds.bounds.theory.result import Condition

CLOSE = 1e-9  # relative: coefficients of momentum are rounded


def coefficients_missing(
    total: ArrayLike, squares: ArrayLike, last: ArrayLike, largest: ArrayLike, steps: ArrayLike
) -> np.ndarray:
    r"""0 where there are $a^{(0)},\dots,a^{(\tau-1)}\ge0$ with these norms, 1 where there are none.

    Without the last entry, and one that is the largest if the last is not, $m$ numbers in $[0,b]$ with sum $s$ remain.
    Their squares sum to $s^2/m$ at least, and at most to $kb^2+(s-kb)^2$, $k=\lfloor s/b\rfloor$; all between occur.

    Example:
        >>> [float(coefficients_missing(3, squares, 1, 1, 3)) for squares in (3, 2.5)]  # (1, 1, 1), and none
        [0.0, 1.0]
    """
    total, squares, last, b, steps = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (total, squares, last, largest, steps))
    )
    apart = last < b * (1 - CLOSE)
    s, q, m = total - last - apart * b, squares - last**2 - apart * b**2, steps - 1 - apart
    close, close_squares = CLOSE * total, CLOSE * squares
    with np.errstate(all="ignore"):
        whole = np.floor(s / b * (1 + CLOSE))
        most, fewest = whole * b**2 + (s - whole * b) ** 2, s**2 / m
        some = (q >= fewest - close_squares) & (q <= most + close_squares) & (s <= m * b + close)
    none = (np.abs(s) <= close) & (np.abs(q) <= close_squares)
    there = (last <= b * (1 + CLOSE)) & (s >= -close) & ((m > 0) & some | (m >= 0) & none)
    return 1.0 - there


class CoefficientsMissing(sp.Function):
    """The same as a symbol; compiled code calls `coefficients_missing`."""

    nargs = 5
    _imp_ = staticmethod(coefficients_missing)

    if TYPE_CHECKING:

        def __new__(
            cls, total: sp.Expr, squares: sp.Expr, last: sp.Expr, largest: sp.Expr, steps: sp.Expr
        ) -> sp.Expr: ...


Lf, kappa, tau, w, a1, a2, alast, amax = n.Lf, n.kappa, n.tau, n.w, n.a1, n.a2, n.alast, n.amax
gradsq, gap, drift, direction, gradxsq, noisysq = n.gradsq, n.gap, n.drift, n.direction, n.gradxsq, n.noisysq

MOVING = positive(SumOverClients(w * (tau - 1)))
SECOND = "one local step has no drift"
OFF = (sqrt(direction) - sqrt(gradsq)) ** 2
OFF_IN_X = (sqrt(direction) - sqrt(gradxsq)) ** 2
LAST = SumOverClients(w * alast / a1 * Min(1, tau - 1))
ALIKE = "clients alike, on a slope in x"
ROUND = ("lemma-b.3",)
SAMPLED = ("lemma-b.2",)

RULES = (
    FeasibleRule(
        Condition(
            MaxOverClients(CoefficientsMissing(a1, a2, alast, amax, tau)),
            "<=",
            sp.S.Zero,
            "tau_i coefficients have these norms, last and largest entry",
        )
    ),
    *(
        FeasibleRule(Condition(positive(moved), "<=", MOVING, SECOND), only=only)
        for moved, only in (
            (drift, ("lemma-b.3", "lemma-c.1")),
            (n.sampledrift, SAMPLED),
            (n.noisydrift, ("lemma-b.7", "lemma-b.8")),
        )
    ),
    FeasibleRule(
        Condition(OFF, "<=", (sqrt(drift) + sqrt(2 * kappa * Lf * gap)) ** 2, "smoothness, in x and in y"), only=ROUND
    ),
    FeasibleRule(Condition(OFF, "<=", LAST * drift, f"{ALIKE} with a kink"), only=ROUND, witness=True),
    FeasibleRule(
        Condition(OFF_IN_X, "<=", n.n * n.sampledrift, "smoothness, and the clients' weights squared"), only=SAMPLED
    ),
    FeasibleRule(
        Condition(direction, "<=", SumOverClients(tau) * noisysq, "Cauchy-Schwarz over all local steps"), only=SAMPLED
    ),
    FeasibleRule(Condition(direction, "==", gradxsq, ALIKE), only=SAMPLED, witness=True),
    FeasibleRule(
        Condition(noisysq, "==", gradxsq * SumOverClients(w**2 * a2 / a1**2), ALIKE), only=SAMPLED, witness=True
    ),
    FeasibleRule(Condition(direction, "==", n.epsopt, ALIKE), only=("lemma-b.5",), witness=True),
    FeasibleRule(
        Condition(gradsq, "<=", n.Gx**2, "a Moreau envelope has no larger gradients"), (LIPSCHITZ.name,), ("lemma-c.1",)
    ),
    FeasibleRule(Condition(positive(n.lag), "<=", positive(n.chi2), "equal weights have one maximizer")),
    FeasibleRule(
        Condition(positive(n.lag), "<=", positive(n.sigmaG), "clients whose slopes in y differ a little"), witness=True
    ),
    FeasibleRule(
        Condition(positive(Abs(n.slope)), "<=", positive(n.distsq), "the slope times a distance of 0 is 0"),
        only=("lemma-a.2",),
    ),
)
FEASIBLE = FeasibleSets(
    {
        "theorem-1": ALIKE,
        "theorem-1-at-its-steps": ALIKE,
        "corollary-1.1": f"{ALIKE}, and slopes in y that differ",
        "corollary-1.2": ALIKE,
        "corollary-2.1": "clients that differ",
        "theorem-3": f"{ALIKE}, and nothing in y",
        "theorem-4": f"{ALIKE}, and nothing in y",
        "remark-1": ALIKE,
        "remark-3": ALIKE,
        "remark-6": ALIKE,
        **{f"lemma-a.{k}": "one function, or vectors" for k in (1, 2, 3, 4, 5, "5-gradient", 6, 7)},
        **{f"lemma-b.{k}": f"{ALIKE}, and noise that makes local iterates drift" for k in range(1, 10)},
        **{f"lemma-c.{k}": f"{ALIKE}, and noise that makes local iterates drift" for k in range(1, 6)},
    },
    RULES,
)
