r"""Which constants of Wang & Ji (2022) can occur together.

$L$, $\sigma$, the divergences $d$, $\tilde\nu$, $\tilde\beta$, $\tilde\delta$, `windowvar` and $\rho$ are bounds:
$N$ clients alike, on a slope of the height $\mathcal F$, keep all of them, with equal weights where $N\rho^2\ge1$ (a
smaller $\rho$ is refused where $N$ is given). $S_t$, $\upsilon$ and what lemmas say of one window are values.

**The deviation of one weight.** $\upsilon^2$ is the largest variance of a weight with mean $1/N$ in $[0,1]$, at most
$(N-1)/N^2$. The deviations of the other weights sum to its own, so that the variances of all sum to
$\frac N{N-1}\upsilon^2$ at least, and to $\rho^2-\frac1N$ at most where $\mathbb E\sum_n(q^n)^2\le\rho^2$:
$N^2\upsilon^2\le s^2=(N-1)(N\rho^2-1)$. One weight of two values, the others equal, attains both.

**One window.** (C.16) says that $f$ rises by no more than noise and divergences allow. A slope falls by any amount; on
$\frac L2x^2$, from its minimum and with weights of $\sum_n(q^n)^2=\rho^2$, noise alone makes $f$ rise by
$\frac L2\eta^2\gamma^2\rho^2\sigma^2\sum_{i<I}(1-\gamma L)^{2i}\sum_{j<P}c^{2j}$ with
$c=1-\eta(1-(1-\gamma L)^I)$, or by less.
"""

from sympy import Max, Min

from fedbounds.bounds.papers.arbitrary_participation import assumptions
from fedbounds.bounds.papers.arbitrary_participation.expected import RESULTS as EXPECTED
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.theory.feasible_set import FeasibleRule, FeasibleSets
from fedbounds.bounds.theory.result import Condition

L, I, P, N, S, gamma, eta, sigma, rho, upsilon = n.L, n.I, n.P, n.N, n.S, n.gamma, n.eta, n.sigma, n.rho, n.upsilon

ROOM2 = Max(0, (N - 1) * (N * rho**2 - 1))  # s^2
KEPT = (1 - gamma * L) ** 2
CARRIED = (1 - eta * (1 - (1 - gamma * L) ** I)) ** 2
RISE = L / 2 * (eta * gamma * rho * sigma) ** 2 * (1 - KEPT**I) / (1 - KEPT) * (1 - CARRIED**P) / (1 - CARRIED)

RULES = (
    FeasibleRule(
        Condition(n.sumsq, "<=", rho**2, "rho^2 bounds every round's sum of squared weights"), (assumptions.NORM.name,)
    ),
    FeasibleRule(Condition(S, "<=", N, "weights of at most 1/S sum to one"), (assumptions.SHARED_EQUALLY.name,)),
    FeasibleRule(
        Condition((N * upsilon) ** 2, "<=", N - 1, "weights in [0, 1] whose mean is 1/N"),
        (assumptions.WEIGHTS.name, assumptions.UNBIASED_SAMPLING.name),
        ("proposition-4.7",),
    ),
    FeasibleRule(
        Condition(
            (N * upsilon) ** 2, "<=", Min(N - 1, ROOM2), "weights in [0, 1], of mean 1/N and bounded mean squares"
        ),
        (assumptions.WEIGHTS.name, assumptions.UNBIASED_SAMPLING.name, assumptions.EXPECTED_NORM.name),
    ),
    FeasibleRule(
        Condition(-n.decrease, "<=", RISE, "a slope, or noise around the minimum of a quadratic"),
        (assumptions.WEIGHTS.name,),
        witness=True,
    ),
)
SLOPE = "clients alike, on a slope of the height of the gap"
FEASIBLE = FeasibleSets(
    {
        "theorem-3.1": SLOPE,
        "corollary-3.2": SLOPE,
        "corollary-3.3": SLOPE,
        "equation-11": "clients alike",
        "lemma-c.1": "clients alike",
        "lemma-c.2": "clients alike, on a slope",
        "equation-c.16": "clients alike, on a slope or around the minimum of a quadratic",
        "proposition-4.1": "clients alike",
        "proposition-4.2": "no constants",
        "equation-15": "clients alike, and the mean weights that are given",
        "corollary-4.3": SLOPE,
        "proposition-4.4": "clients alike, and equal weights",
        "proposition-4.6": "clients alike, and equal weights",
        "proposition-4.7": "clients alike, and weights of two values",
        "corollary-4.8": f"{SLOPE}, and weights of two values",
        **{result.key.partition("/")[2]: SLOPE for result in EXPECTED},
    },
    RULES,
)
