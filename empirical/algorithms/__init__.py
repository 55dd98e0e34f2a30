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
from empirical.algorithms.spec import algorithm_from_spec

__all__ = [
    "Aggregation",
    "Algorithm",
    "AverageAll",
    "AverageParticipating",
    "Cohort",
    "ConstantWeights",
    "FedAU",
    "FedAvg",
    "FedVarp",
    "FixedWeights",
    "FrozenGradient",
    "GeneralizedFedAvg",
    "KnownParticipation",
    "LocalSGD",
    "MIFA",
    "Pairs",
    "Report",
    "WaitForAll",
    "WaitFull",
    "WaitMinibatch",
    "algorithm_from_spec",
]
