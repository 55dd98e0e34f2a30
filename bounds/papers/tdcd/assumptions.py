"""What the theorem of Das et al. (2022) assumes: as printed, and as its proof uses it."""

from fedbounds.bounds.theory.assumptions import (
    BOUNDED_BELOW,
    FULL_PARTICIPATION,
    LOCAL_SGD,
    MINIMIZATION,
    SMOOTH,
    UNCOMPRESSED,
    Assumption,
)
from fedbounds.bounds.theory.problem_class import box, where

TIERED = Assumption(
    "tiered-partition",
    "silos have different features of the same samples, and the clients of a silo different samples (one silo is the "
    "horizontal partition, one client in each silo the vertical one)",
    "eq. (2)",
    cover=where(box(partition="horizontal vertical tiered")),
)
SCOPE = (
    MINIMIZATION.with_label("eq. (2)"),
    TIERED,
    FULL_PARTICIPATION.with_label("Algorithm 1"),
    UNCOMPRESSED.with_label("Algorithm 1"),
    *LOCAL_SGD,
)
QUIET = "none bounded"
ONE_CLIENT = box(partition="vertical", noise=QUIET)  # in each silo, which has no shards that differ

SMOOTH_OBJECTIVE = Assumption(
    SMOOTH.name, "|grad f(x) - grad f(y)| <= L |x - y| for all x, y", "Assumption 1, eq. (6)", cover=SMOOTH.cover
)
BLOCK_SMOOTH = Assumption(
    "block-smooth",
    "for every realization of the batch, |g_kj(x) - g_kj(y)| <= Lmax |x - y| whenever x and y differ in block j only; "
    "the maximum runs over clients k and blocks j",
    "Assumption 1, eq. (7), (10)",
    cover=where(perhaps=[box(smoothness="smooth")]),
)
ONE_BLOCK_SMOOTH = Assumption(
    "smooth-in-one-block",
    "for every realization of the batch, |g_kj(x) - g_kj(y)| <= Lmax |x - y| for the clients k of one silo j",
    "Assumption 1, eq. (7), with the maximum of (10) over k alone",
    cover=where(perhaps=[box(smoothness="smooth")]),
)
BOUNDED = BOUNDED_BELOW.with_label("Assumption 2")
UNBIASED_CLIENTS = Assumption(
    "unbiased-clients",
    "for every client k of silo j and every x, E g_kj(x) is the partial gradient of f in block j and "
    "E|g_kj(x) - grad_j f(x)|^2 <= sigma_j^2",
    "Assumption 3",
    cover=where(ONE_CLIENT, box(noise=QUIET, heterogeneity="none")),
)
UNBIASED_SILOS = Assumption(
    "unbiased-silos",
    "at every synchronized iterate the clients' mean of E g_kj is the partial gradient of f in block j, and the "
    "clients' mean of E|g_kj - grad_j f|^2 is at most sigma_j^2 (so differences between shards count as variance); "
    "shards have equal sizes and no client's part of a batch is empty",
    "weaker than Assumption 3",
    cover=where(ONE_CLIENT, perhaps=[box(noise=QUIET, heterogeneity="none bounded")]),
)
UNCORRELATED_CLIENTS = Assumption(
    "uncorrelated-clients",
    "at every synchronized iterate the covariances of g_kj - grad_j f between different clients k of a silo sum to at "
    "most 0 (as for independent noise, and for shards whose differences cancel)",
    "not in the paper",
    cover=where(box(partition="vertical"), perhaps=[box()]),
)
AS_PRINTED = (SMOOTH_OBJECTIVE, BLOCK_SMOOTH, BOUNDED, UNBIASED_CLIENTS)
AS_USED = (SMOOTH_OBJECTIVE, BLOCK_SMOOTH, UNBIASED_SILOS)  # Assumption 2 is not used: Delta is what f falls by
