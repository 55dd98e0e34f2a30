"""FedAU, unknown participation statistics (Wang & Ji 2024)."""

from fedbounds.bounds.papers.fedau import RESULTS as RESULTS
from fedbounds.bounds.papers.fedau.errata import ERRATA as ERRATA
from fedbounds.empirical.papers.fedau.objectives import objective_weights as objective_weights
from fedbounds.empirical.papers.fedau.objectives import predicted_bias as predicted_bias
from fedbounds.empirical.papers.fedau.objectives import weighted_objective as weighted_objective
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths as weight_paths
from fedbounds.empirical.papers.fedau.run import why_no_bound as why_no_bound
