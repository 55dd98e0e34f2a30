"""Federated algorithms: a client update and a server update each, one module per paper and its baselines."""

from fedbounds.empirical.algorithms.algorithm import Algorithm, Pairs, Report
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.descent_ascent import DescentAscent, LocalDescentAscent, MinimaxAlgorithm
from fedbounds.empirical.algorithms.local import LocalSGD
from fedbounds.empirical.algorithms.local_optimiser import SGDA, LocalOptimiser, heavy_ball, proximal, variable_rates
from fedbounds.empirical.algorithms.spec import algorithm_from_spec
from fedbounds.empirical.algorithms.workload import Drawn
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.fed_norm_sgda.baselines import FSGDA, LocalSGDA, SynchronousSGDA
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    Aggregation,
    AverageAll,
    AverageParticipating,
    ConstantWeights,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)

__all__ = [
    "Aggregation",
    "Algorithm",
    "AverageAll",
    "AverageParticipating",
    "Cohort",
    "ConstantWeights",
    "DescentAscent",
    "Drawn",
    "FSGDA",
    "FedAU",
    "FedAvg",
    "FedNormSGDA",
    "FedVarp",
    "FixedWeights",
    "FrozenGradient",
    "GeneralizedFedAvg",
    "KnownParticipation",
    "LocalDescentAscent",
    "LocalOptimiser",
    "LocalSGD",
    "LocalSGDA",
    "MIFA",
    "MinimaxAlgorithm",
    "Pairs",
    "Report",
    "SGDA",
    "SynchronousSGDA",
    "WaitForAll",
    "WaitFull",
    "WaitMinibatch",
    "algorithm_from_spec",
    "heavy_ball",
    "proximal",
    "variable_rates",
]
