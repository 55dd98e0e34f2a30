"""What Theorem 1 of Sharma et al. (2023) assumes, stated and unstated."""

from __future__ import annotations

from bounds.assumptions import BOUNDED_BELOW, INDEPENDENT_CLIENTS, MARTINGALE, Assumption

JOINTLY_SMOOTH = Assumption(
    "smooth", "|grad f_i(z) - grad f_i(z')| <= Lf |z - z'| for all z = (x, y), z' and every client i", "Assumption 1"
)
NOISE = Assumption(
    "unbiased-noise",
    "unbiased, and E|grad f_i(z; xi) - grad f_i(z)|^2 <= betaL^2 |grad f_i(z)|^2 + sigmaL^2 for all z, i",
    "Assumption 2",
)
BLOCK_NOISE = Assumption(
    "unbiased-block-noise",
    "unbiased, and for b = x and b = y, E|grad_b f_i(z; xi) - grad_b f_i(z)|^2 <= betaL^2 |grad_b f_i(z)|^2 + sigmaL^2",
    "Assumption 2, for each block",
)
HETEROGENEITY = Assumption(
    "bounded-heterogeneity",
    "for b = x and b = y, sum_i w_i |grad_b f_i(z)|^2 <= betaG^2 |sum_i w_i grad_b f_i(z)|^2 + sigmaG^2 for all z",
    "Assumption 3",
)
STRONGLY_CONCAVE = Assumption(
    "strongly-concave", "every f_i(x, .) is mu-strongly concave (or sum_i w_i f_i is mu-PL in y)", "Assumption 4"
)
SAMPLING = Assumption(
    "uniform-sampling",
    "P clients are drawn uniformly without replacement in every round, independently of everything else",
    "Algorithm 1",
)
LOCAL_SGDA = Assumption(
    "local-sgda",
    "tau_i plain descent-ascent steps: every coefficient a_i^(j)(k) is 1, the same in every round",
    "Appendix A.1",
)
PRINTED = (JOINTLY_SMOOTH, NOISE, HETEROGENEITY, STRONGLY_CONCAVE, SAMPLING, LOCAL_SGDA)
USED = (
    JOINTLY_SMOOTH,
    BLOCK_NOISE,
    HETEROGENEITY,
    STRONGLY_CONCAVE,
    SAMPLING,
    LOCAL_SGDA,
    INDEPENDENT_CLIENTS,
    MARTINGALE,
    BOUNDED_BELOW,
)
