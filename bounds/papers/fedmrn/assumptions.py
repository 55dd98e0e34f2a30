"""What the theorems of Li et al. (2024) assume: as printed (first moments) and as proved (second moments)."""

from __future__ import annotations

from fedbounds.bounds.assumptions import BOUNDED_BELOW, INDEPENDENT_CLIENTS, MARTINGALE, SMOOTH, Assumption

STRONGLY_CONVEX = Assumption("strongly-convex", "every F_k is mu-strongly convex", "Assumption 5")
SAMPLING = Assumption(
    "uniform-sampling",
    "all clients have weight 1/N, and in every round K of them are drawn uniformly without replacement, whatever came "
    "before",
    "Appendix B",
    participation=True,
)
INDEPENDENT_MASKS = Assumption(
    "independent-masks",
    "masks are drawn afresh at every use, independently between clients and of the gradient noise",
    "Appendix B and (14)",
)
QUADRATIC_GROWTH = Assumption(
    "quadratic-upper-bound",
    "F_k(v) <= F_k(w) + <v - w, grad F_k(w)> + L/2 |v - w|^2 for all v, w and every client k",
    "Assumption 1",
)
LIPSCHITZ = SMOOTH.labeled("Assumption 1, read as in (61)")

FIRST_NOISE = Assumption(
    "first-moment-noise", "E|grad F_k(w_k, xi) - grad F_k(w_k)| <= sigma for all clients and iterations", "Assumption 2"
)
FIRST_GRADIENT = Assumption(
    "first-moment-gradient", "E|grad F_k(w_k, xi)| <= G for all clients and iterations", "Assumption 3"
)
FIRST_ERROR = Assumption("first-moment-masking", "E|S(x) - x| <= q |x| for all x", "Assumption 4")
PRINTED = (FIRST_NOISE, FIRST_GRADIENT, FIRST_ERROR, SAMPLING, INDEPENDENT_MASKS, INDEPENDENT_CLIENTS)

NOISE = Assumption(
    "unbiased-noise",
    "E[grad F_k(x, xi) | x] = grad F_k(x) and E|grad F_k(x, xi) - grad F_k(x)|^2 <= sigma^2 where gradients are taken",
    "Assumption 2, squared",
)
GRADIENT_BOUND = Assumption(
    "bounded-gradients", "E|grad F_k(x, xi)|^2 <= G^2 where gradients are taken", "Assumption 3, squared"
)
RELATIVE_ERROR = Assumption(
    "relative-error",
    "E[S(x) | x] = x and E[|S(x) - x|^2 | x] <= q^2 |x|^2 for all x (FedMRN's masks have S(0) != 0: no q fits)",
    "Assumption 4, squared",
)
USED = (NOISE, GRADIENT_BOUND, RELATIVE_ERROR, SAMPLING, INDEPENDENT_MASKS, INDEPENDENT_CLIENTS, MARTINGALE)

SURE_GRADIENT_BOUND = Assumption(
    "surely-bounded-gradients", "|grad F_k(x, xi)| <= G surely where gradients are taken", "Assumption 3, surely"
)
ROUND_MASKS = Assumption(
    "signed-masks-per-round",
    "signed masks on noise {-a, a} with a = eta_{t_0} S G, t_0 the first step of the round, fresh at every use",
    "Theorem 1, with the amplitude of the current step size",
)
FROZEN_MASKS = Assumption(
    "signed-masks-as-prescribed",
    "signed masks on noise {-a, a} with a = 2 eta_0 S G, eta_0 = 2/(mu gamma), in all rounds, fresh at every use",
    "Theorem 1",
)
FIXED_MASKS = Assumption(
    "signed-masks", "signed masks on noise {-a, a} with a = 2 eta S G, fresh at every use", "Theorem 2"
)
ANY_MASKS = Assumption(
    "signed-masks-of-amplitude-a", "signed masks on noise {-a, a}, fresh at every use", "Theorem 2, for any amplitude"
)
MASKED = (NOISE, SURE_GRADIENT_BOUND, SAMPLING, INDEPENDENT_MASKS, INDEPENDENT_CLIENTS, MARTINGALE)
BELOW = BOUNDED_BELOW.labeled("unstated")

FALLING_STEPS = Assumption(
    "falling-steps",
    "step sizes do not increase, and the first of a round is at most twice any other of it",
    "Lemma 2, eta_t <= 2 eta_{t+S}",
)
CONSTANT_STEPS = Assumption("constant-steps", "the step size is the same in all iterations", "Theorem 2")
PROGRESSIVE = Assumption(
    "progressive-masking",
    "in the tau-th of S local steps every coordinate of the update is masked with probability tau/S, drawn by itself "
    "and afresh, and else left as it is; the update is within its bounds",
    "(10)",
)
WALK = (GRADIENT_BOUND, RELATIVE_ERROR, SAMPLING, INDEPENDENT_MASKS)
FIRST_WALK = (FIRST_GRADIENT, FIRST_ERROR, SAMPLING, INDEPENDENT_MASKS)
