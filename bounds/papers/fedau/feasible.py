r"""Which constants of Wang & Ji (2024) can occur together.

$L$, $\sigma$, $\delta$, $\tilde\delta$, $G$, $Q$ and $W_{\max}$ are bounds; gaps, gradients and what is computed from
weights ($W$, $W_t$, $\bar Q$, $Q_t$, $\tilde Q$, $V$, $Z$, $R$) are values. $u_n=p_n\omega_n$ is any positive number,
and $p_n\omega_n^2=u_n^2/p_n$ any that is at least $u_n^2$. Extremes that only weights of 0 attain are approached; they
belong to the set.

**Gaps.** A slope has any height, unless the gradient is bounded by 0.

**Weight error and second moment.** Let $\frac1N\sum_n(u_n-1)^2=W$. Where $W<1$, equal $u_n=1-\sqrt W$ are best, which
the least second moment of the notation says. Where $W\ge1$,
$\sum_nu_n^2=N(W-1)+2\sum_nu_n\ge N(W-1)+2\sqrt{\sum_nu_n^2}$, with equality (in the limit) for a single client that is
not nearly 0: $NQ\ge(1+\sqrt{1+N(W-1)})^2$, for some round and path has no smaller error than the mean. For means over
rounds and paths, $u_n\ge u_n^2/\sqrt{NQ}$ gives $W-1\le E\frac1N\sum_nu_n^2\,(1-2/\sqrt{NQ})$, and
$E\frac1N\sum_nu_n^2\le\bar Q\le Q$. In Option 1 $W\le W_{\max}\le1/81$. (A larger $\bar Q$
or $W$ is refused where it is given.)

**One step.** $V=\sum_n(u_n/N-\varphi_n)^2$ with weights $\varphi$ on the simplex: $\sum_n(u_n/N)^2\ge V-1$, which two
clients attain; one client has $u=1+\sqrt V$ if $V\ge1$.

**FedAU's weights** start at 1, and are $m=\min(K,\max(T-1,1))$, with the corollary's $K$, for all clients of $p_n<1$ on
some path. So $NQ\ge am^2+(N-1)\min(1,am^2)$ with the least rate $a=\min_np_n=1-e^{-1/(2R)}$: the others have this rate
or always take part. With a largest error of $W_{\max}$ as well, the rarest client's error is
$\max\{(1-a)^2,(am-1)^2\}$, and the mean of the others' $p_nm^2$, or 1, is at least $1-\sqrt b$, where $b$ is the mean
error that is left to them. For $m=1$ they are best alike; for $m\ge2$ they may always take part.
$W$, $\bar Q$ and $R$ together are those of some $p$, $K$ and $T$.
"""

import sympy as sp
from sympy import Max, Min, exp, floor, sqrt

from fedbounds.bounds.papers.fedau.assumptions import BOUNDED_GRADIENT, FEDAU_WEIGHTS, NEARLY_OPTIMAL, SURE_Q
from fedbounds.bounds.papers.fedau.corollaries import WHOLE_K
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.theory.feasible_set import FeasibleRule, FeasibleSets, positive
from fedbounds.bounds.theory.result import Condition

F, G, N, T, Q, W, V, Z, R = n.F, n.G, n.N, n.T, n.Q, n.W, n.V, n.Z, n.R
Qmean, Qt, Wt, Wmax = n.Qmean, n.Qt, n.Wt, n.Wmax


def single_client(error: sp.Expr) -> sp.Expr:
    """The least sum of u^2 with a mean of (u - 1)^2 of at least 1; 0 for one below 1."""
    return floor(Min(error, 1)) * (1 + sqrt(1 + N * Max(0, error - 1))) ** 2


FAR = "positive weights whose mean of (p omega - 1)^2 is at least 1"
RAREST, MISSED = 1 - exp(-1 / (2 * R)), exp(-1 / R)  # the least rate, and (1 - it)^2
LONGEST = Min(WHOLE_K, Max(T - 1, 1))  # the largest weight
WEIGHTED = RAREST * LONGEST**2
MISSED_MOST = Max(MISSED, (RAREST * LONGEST - 1) ** 2)
ALIKE = 1 - sqrt(Max(0, N * Wmax - MISSED_MOST) / Max(1, N - 1))
AWAY = "the rarest client comes with 1 - exp(-1/(2R)), and may be away for the K rounds that the form prescribes"
RULES = (
    FeasibleRule(
        Condition(positive(F), "<=", positive(G), "f is constant if its gradient is 0"), (BOUNDED_GRADIENT.name,)
    ),
    FeasibleRule(Condition(single_client(W), "<=", N * Q, FAR), (SURE_Q.name, BOUNDED_GRADIENT.name)),
    FeasibleRule(Condition(single_client(Wt), "<=", N * Qt, FAR)),
    FeasibleRule(
        Condition(
            Max(0, W - 1), "<=", Qmean * Max(0, 1 - 2 / sqrt(N * Q)), "p omega is no less than (p omega)^2/sqrt(N Q)"
        ),
        (SURE_Q.name, BOUNDED_GRADIENT.name),
    ),
    FeasibleRule(
        Condition(single_client(W), "<=", N * Qmean, "constant weights"),
        only=("theorem-2",),
        witness=True,
        computed_from=("p", "K"),
    ),
    FeasibleRule(Condition(N**2 * Max(0, V - 1), "<=", Z, "objective weights are on the simplex")),
    FeasibleRule(
        Condition(
            floor(1 / N) * floor(Min(V, 1)) * (1 + sqrt(V)) ** 2, "<=", Z, "a single client has the objective weight 1"
        )
    ),
    FeasibleRule(
        Condition(WEIGHTED + (N - 1) * Min(1, WEIGHTED), "<=", N * Q, f"weights start at 1; {AWAY}"),
        (FEDAU_WEIGHTS.name, BOUNDED_GRADIENT.name),
    ),
    FeasibleRule(
        Condition(MISSED_MOST, "<=", N * Wmax, f"weights start at 1; {AWAY}"), (FEDAU_WEIGHTS.name, NEARLY_OPTIMAL.name)
    ),
    FeasibleRule(
        Condition(
            WEIGHTED + (N - 1) * Max(Min(1, WEIGHTED), ALIKE),
            "<=",
            N * Q,
            f"weights start at 1, and so small a largest error needs rates near 1; {AWAY}",
        ),
        (FEDAU_WEIGHTS.name, NEARLY_OPTIMAL.name),
    ),
    FeasibleRule(
        Condition(
            WEIGHTED + (N - 1) * Max(Min(1, Max(WEIGHTED, LONGEST - 1)), ALIKE),
            "<=",
            N * Q,
            "one client with the least rate, and the others with a rate of 1 or, at K = 1, alike",
        ),
        (FEDAU_WEIGHTS.name, NEARLY_OPTIMAL.name),
        witness=True,
    ),
    FeasibleRule(
        Condition(positive(W) + positive(Qmean), "<=", sp.S.Zero, "constants computed from p, K and T"),
        (FEDAU_WEIGHTS.name, SURE_Q.name),
        witness=True,
        computed_from=("p",),
    ),
)
SLOPE = "clients alike, on a slope of the height of the gap, and equal rates"
FEASIBLE = FeasibleSets(
    {
        "theorem-1": SLOPE,
        "theorem-b.4.1": SLOPE,
        "theorem-2": SLOPE,
        "theorem-2-option-1": f"{SLOPE}; weights that rarely differ",
        "corollary-4": f"{SLOPE}; FedAU's weights at the K that is prescribed",
        "corollary-4-option-1": f"{SLOPE}; FedAU's weights at the K that is prescribed",
        "theorem-3": "the rates that are given",
        "lemma-b.7.1": "rates of which the least is 1 - exp(-1/(2R))",
        "appendix-a.3": SLOPE,
        "appendix-a.3-unequal": "clients alike, on a slope of the height of the gap, and the rates that are given",
        "lemma-b.3.1": "clients alike",
        "lemma-b.3.2": "clients alike, on a slope",
        "lemma-b.3.3": "clients alike, on a slope, and two clients with weights",
        "lemma-b.5.1": "clients alike, on a slope, and one client with a weight that is not small",
        "lemma-b.6.1": "the rate that is given",
        "lemma-b.6.1-variance": "the rate that is given",
    },
    RULES,
)
