"""Federated algorithms: a client update and a server update each, one module per paper and its baselines."""

from empirical.algorithms.algorithm import Algorithm, Pairs, Report
from empirical.algorithms.arbitrary_participation import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from empirical.algorithms.cohort import Cohort
from empirical.algorithms.descent_ascent import DescentAscent, LocalDescentAscent, MinimaxAlgorithm
from empirical.algorithms.fed_norm_sgda import FedNormSGDA
from empirical.algorithms.fedau import (
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
from empirical.algorithms.local import LocalSGD
from empirical.algorithms.local_optimiser import SGDA, LocalOptimiser, heavy_ball, proximal, variable_rates
from empirical.algorithms.local_sgda import FSGDA, LocalSGDA, SynchronousSGDA
from empirical.algorithms.spec import algorithm_from_spec
from empirical.algorithms.workload import Drawn

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
