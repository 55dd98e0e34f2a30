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
from empirical.algorithms.local import LocalSGD
from empirical.algorithms.spec import algorithm_from_spec

__all__ = [
    "Algorithm",
    "FedAvg",
    "FrozenGradient",
    "GeneralizedFedAvg",
    "LocalSGD",
    "Pairs",
    "Report",
    "WaitForAll",
    "WaitFull",
    "WaitMinibatch",
    "algorithm_from_spec",
]
