"""What the results of Sharma et al. (2023) assume, stated and unstated."""

from fedbounds.bounds.theory.assumptions import (
    AVERAGING_SERVER,
    HORIZONTAL,
    INDEPENDENT_CLIENTS,
    MARTINGALE,
    SAMPLED,
    SMOOTH_SETTING,
    STATED_STEP_SIZES,
    UNCOMPRESSED,
    Assumption,
)
from fedbounds.bounds.theory.problem_class import ASKED, box, where

MINIMAX = Assumption(
    "minimax",
    "x minimizes what y maximizes",
    "eq. (1)",
    cover=where(box(ascent="strongly-concave pl concave one-point-concave non-concave")),
)

JOINTLY_SMOOTH = Assumption(
    "smooth",
    "|grad f_i(z) - grad f_i(z')| <= Lf |z - z'| for all z = (x, y), z' and every client i",
    "Assumption 1",
    cover=SMOOTH_SETTING,
)
NOISE = Assumption(
    "unbiased-noise",
    "unbiased, and E|grad f_i(z; xi) - grad f_i(z)|^2 <= betaL^2 |grad f_i(z)|^2 + sigmaL^2 for all z, i",
    "Assumption 2",
    cover=where(box(noise="none bounded growing")),
)
BLOCK_NOISE = Assumption(
    "unbiased-block-noise",
    "unbiased, and for b = x and b = y, E|grad_b f_i(z; xi) - grad_b f_i(z)|^2 <= betaL^2 |grad_b f_i(z)|^2 + sigmaL^2",
    "Assumption 2, for each block",
    cover=where(box(noise="none bounded growing")),
)
HETEROGENEITY = Assumption(
    "bounded-heterogeneity",
    "for b = x and b = y, sum_i w_i |grad_b f_i(z)|^2 <= betaG^2 |sum_i w_i grad_b f_i(z)|^2 + sigmaG^2 for all z",
    "Assumption 3",
    cover=where(box(heterogeneity="none bounded relative")),
)
STRONGLY_CONCAVE = Assumption(
    "strongly-concave",
    "every f_i(x, .) is mu-strongly concave",
    "Assumption 4",
    cover=where(box(ascent="strongly-concave")),
)
PL = Assumption(
    STRONGLY_CONCAVE.name,  # its place in the proofs, which use no more of it than this
    "only the PL condition of it: f = sum_i w_i f_i has a maximum over y, and |grad_y f|^2 >= 2 mu (max_y f - f)",
    "Assumption 5",
    cover=where(box(ascent="strongly-concave pl")),
)
SAMPLING = Assumption(
    "uniform-sampling",
    "P clients are drawn uniformly without replacement in every round, independently of everything else",
    "Algorithm 1",
    participation=True,
    cover=SAMPLED,
)
LOCAL_MAP = Assumption(
    "local-coefficients",
    "client i's k-th local iterate is x - etax sum_{j<k} a_i^(j)(k) g_j (and y + etay ...), with nonnegative "
    "coefficients that are the same in every round: local SGDA, variable step sizes, heavy-ball momentum",
    "Remark 7",
    cover=where(box(local_steps="one alike different")),
)
GROWING = Assumption(
    "growing-coefficients",
    "a_i^(j)(k) <= a_i^(j)(tau_i) for all j < k <= tau_i; false for proximal steps",
    "unstated",
    cover=where(box(local_optimizer="sgd momentum"), by="method"),
)
CONCAVE = Assumption(
    "concave", "every f_i(x, .) is concave", "Assumption 6", cover=where(box(ascent="strongly-concave concave"))
)
ONE_POINT_CONCAVE = Assumption(
    "one-point-concave",
    "<grad_y f_i(x, y), y - y*(x)> <= f_i(x, y) - f_i(x, y*(x)) at a maximizer y*(x) common to all f_i",
    "Assumption 8",
    cover=where(box(ascent="one-point-concave")),
)
LIPSCHITZ = Assumption(
    "lipschitz-in-x",
    "|f_i(x, y) - f_i(x', y)| <= Gx |x - x'| for all x, x', every y and every client",
    "Assumption 7",
    cover=where(box(gradients="bounded")),
)
BOUNDED_ITERATES = Assumption("bounded-ascent", "|y_t|^2 <= R in every round t", "Theorem 2", cover=ASKED)
BOUNDED_MAXIMIZER = Assumption(
    "bounded-maximizer",
    "|y*(x^(s))|^2 <= R at every snapshot x^(s), for the maximizer y* of sum_i w_i f_i",
    "unstated",
    cover=ASKED,
)
BOUNDED_BELOW = Assumption(
    "bounded-below", "the envelope max_y sum_i w_i f_i(., y) has a finite infimum", "unstated", cover=ASKED
)
SCOPE = (
    MINIMAX,
    HORIZONTAL.with_label("eq. (1)"),
    UNCOMPRESSED.with_label("Algorithm 1"),
    SAMPLING,
    STATED_STEP_SIZES,
    AVERAGING_SERVER,
)
PRINTED = (JOINTLY_SMOOTH, NOISE, HETEROGENEITY, STRONGLY_CONCAVE, SAMPLING, LOCAL_MAP)
UNSTATED = (INDEPENDENT_CLIENTS, MARTINGALE, BOUNDED_BELOW, GROWING)
USED = (JOINTLY_SMOOTH, BLOCK_NOISE, HETEROGENEITY, STRONGLY_CONCAVE, SAMPLING, LOCAL_MAP, *UNSTATED)

NO_RUN = (STRONGLY_CONCAVE, BOUNDED_BELOW)  # what the noise of one round has no use for

CONCAVE_PRINTED = (JOINTLY_SMOOTH, NOISE, HETEROGENEITY, CONCAVE, LIPSCHITZ, BOUNDED_ITERATES, SAMPLING, LOCAL_MAP)
CONCAVE_USED = (
    JOINTLY_SMOOTH,
    BLOCK_NOISE,
    HETEROGENEITY,
    CONCAVE,
    LIPSCHITZ,
    BOUNDED_ITERATES,
    BOUNDED_MAXIMIZER,
    SAMPLING,
    LOCAL_MAP,
    *UNSTATED,
)
ONE_POINT_PRINTED = tuple(ONE_POINT_CONCAVE if a is CONCAVE else a for a in CONCAVE_PRINTED)
ONE_POINT_USED = tuple(ONE_POINT_CONCAVE if a is CONCAVE else a for a in CONCAVE_USED)
NO_ASCENT = (CONCAVE, BOUNDED_ITERATES, BOUNDED_MAXIMIZER, BOUNDED_BELOW)  # what descent in x alone has no use for


def drop_assumptions(assumptions: tuple[Assumption, ...], *dropped: Assumption) -> tuple[Assumption, ...]:
    """These assumptions but for some."""
    return tuple(a for a in assumptions if a not in dropped)
