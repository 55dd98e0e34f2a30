"""What a federated algorithm is: a client update and a server update; the papers' packages hold theirs."""

from fedbounds.empirical.algorithms.algorithm import Algorithm, Pairs, RoundReport, ServerSchedule
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.descent_ascent import DescentAscent, LocalDescentAscent, MinimaxAlgorithm
from fedbounds.empirical.algorithms.local import LocalSGD
from fedbounds.empirical.algorithms.local_optimizer import SGDA, LocalOptimizer, heavy_ball, proximal, variable_rates
from fedbounds.empirical.algorithms.spec import algorithm_from_spec, algorithms
from fedbounds.empirical.algorithms.workload import RandomWork

__all__ = [
    "Algorithm",
    "Cohort",
    "DescentAscent",
    "RandomWork",
    "LocalDescentAscent",
    "LocalOptimizer",
    "LocalSGD",
    "MinimaxAlgorithm",
    "Pairs",
    "RoundReport",
    "SGDA",
    "ServerSchedule",
    "algorithm_from_spec",
    "algorithms",
    "heavy_ball",
    "proximal",
    "variable_rates",
]
