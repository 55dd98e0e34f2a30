"""FedAU, unknown participation statistics (Wang & Ji 2024)."""

from fedbounds.bounds.papers.fedau import RESULTS
from fedbounds.bounds.papers.fedau.errata import ERRATA
from fedbounds.empirical.papers.fedau.objectives import objective_weights, predicted_bias, weighted_objective
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
from fedbounds.empirical.papers.fedau.run import why_no_bound

__all__ = [
    "ERRATA",
    "RESULTS",
    "objective_weights",
    "predicted_bias",
    "weight_paths",
    "weighted_objective",
    "why_no_bound",
]
