"""Assumptions of Li et al. (2024), as printed and as proved; 2 and 3 are read as bounds on squares."""

from fedbounds.bounds.theory.assumptions import (
    BOUNDED_BELOW,
    HORIZONTAL,
    INDEPENDENT_CLIENTS,
    LOCAL_SGD,
    MARTINGALE,
    MINIMIZATION,
    SAMPLED,
    SMOOTH,
    SMOOTH_SETTING,
    VARIANCE,
    Assumption,
)
from fedbounds.bounds.theory.problem_class import METHOD, box, where

OPERATOR = where(box(compression="none unbiased"))
MASKS = where(box(compression="masks"))
SHORT = where(box(gradients="bounded"))

STRONGLY_CONVEX = Assumption(
    "strongly-convex", "every F_k is mu-strongly convex", "Assumption 5", cover=where(box(objective="strongly-convex"))
)
SAMPLING = Assumption(
    "uniform-sampling",
    "all clients have weight 1/N, and in every round K of them are drawn uniformly without replacement, "
    "independently of the past",
    "Appendix B",
    participation=True,
    cover=SAMPLED,
)
INDEPENDENT_MASKS = Assumption(
    "independent-masks",
    "masks are drawn afresh at every use, independently between clients and of the gradient noise",
    "Appendix B and (14)",
    cover=METHOD,
)
QUADRATIC_GROWTH = Assumption(
    "quadratic-upper-bound",
    "F_k(v) <= F_k(w) + <v - w, grad F_k(w)> + L/2 |v - w|^2 for all v, w and every client k",
    "Assumption 1",
    cover=SMOOTH_SETTING,
)
LIPSCHITZ = SMOOTH.with_label("Assumption 1, read as in (61)")

FIRST_ERROR = Assumption("first-moment-masking", "E|S(x) - x| <= q |x| for all x", "Assumption 4", cover=OPERATOR)

NOISE = Assumption(
    "unbiased-noise",
    "E[grad F_k(x, xi) | x] = grad F_k(x) and E|grad F_k(x, xi) - grad F_k(x)|^2 <= sigma^2 where gradients are taken",
    "Assumption 2, squared",
    cover=VARIANCE,
)
GRADIENT_BOUND = Assumption(
    "bounded-gradients", "E|grad F_k(x, xi)|^2 <= G^2 where gradients are taken", "Assumption 3, squared", cover=SHORT
)
RELATIVE_ERROR = Assumption(
    "relative-error",
    "E[S(x) | x] = x and E[|S(x) - x|^2 | x] <= q^2 |x|^2 for all x (FedMRN's masks have S(0) != 0: no q fits)",
    "Assumption 4, squared",
    cover=OPERATOR,
)
PRINTED = (NOISE, GRADIENT_BOUND, FIRST_ERROR, SAMPLING, INDEPENDENT_MASKS, INDEPENDENT_CLIENTS)
USED = (NOISE, GRADIENT_BOUND, RELATIVE_ERROR, SAMPLING, INDEPENDENT_MASKS, INDEPENDENT_CLIENTS, MARTINGALE)

SURE_GRADIENT_BOUND = Assumption(
    "surely-bounded-gradients",
    "|grad F_k(x, xi)| <= G surely where gradients are taken",
    "Assumption 3, surely",
    cover=where(box(gradients="bounded", noise="none"), perhaps=[box(gradients="bounded")]),
)
ROUND_MASKS = Assumption(
    "signed-masks-per-round",
    "signed masks on noise {-a, a} with a = eta_{t_0} S G, t_0 the first step of the round, fresh at every use",
    "Theorem 1, with the amplitude of the current step size",
    cover=MASKS,
)
FROZEN_MASKS = Assumption(
    "signed-masks-as-prescribed",
    "signed masks on noise {-a, a} with a = 2 eta_0 S G, eta_0 = 2/(mu gamma), in all rounds, fresh at every use",
    "Theorem 1",
    cover=MASKS,
)
FIXED_MASKS = Assumption(
    "signed-masks", "signed masks on noise {-a, a} with a = 2 eta S G, fresh at every use", "Theorem 2", cover=MASKS
)
ANY_MASKS = Assumption(
    "signed-masks-of-amplitude-a",
    "signed masks on noise {-a, a}, fresh at every use",
    "Theorem 2, for any amplitude",
    cover=MASKS,
)
MASKED = (NOISE, SURE_GRADIENT_BOUND, SAMPLING, INDEPENDENT_MASKS, INDEPENDENT_CLIENTS, MARTINGALE)
BELOW = BOUNDED_BELOW.with_label("unstated")

FALLING_STEPS = Assumption(
    "falling-steps",
    "step sizes do not increase, and the first of a round is at most twice any other of it",
    "Lemma 2, eta_t <= 2 eta_{t+S}",
    cover=METHOD,
)
CONSTANT_STEPS = Assumption("constant-steps", "the step size is the same in all iterations", "Theorem 2", cover=METHOD)
PROGRESSIVE = Assumption(
    "progressive-masking",
    "in the tau-th of S local steps every coordinate of the update is masked with probability tau/S, drawn by itself "
    "and afresh, and else left as it is; the update is within its bounds",
    "(10)",
    cover=METHOD,
)
WALK = (GRADIENT_BOUND, RELATIVE_ERROR, SAMPLING, INDEPENDENT_MASKS)
FIRST_WALK = (GRADIENT_BOUND, FIRST_ERROR, SAMPLING, INDEPENDENT_MASKS)
THROUGHOUT = Assumption(
    "compressed-throughout",
    "all clients step in every iteration, and take gradients at models whose update is already compressed",
    "(13) to (15)",
    cover=METHOD,
)
SCOPE = (MINIMIZATION.with_label("eq. (1)"), HORIZONTAL.with_label("eq. (1)"), SAMPLING, THROUGHOUT, *LOCAL_SGD)
