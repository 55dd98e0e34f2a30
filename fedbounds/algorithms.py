"""The algorithms of the papers, their baselines and compressors, and what an algorithm of your own is made of."""

from fedbounds.empirical.algorithms import (
    Algorithm,
    Cohort,
    LocalOptimizer,
    LocalSGD,
    MinimaxAlgorithm,
    RoundReport,
    algorithm_from_spec,
    heavy_ball,
    proximal,
    variable_rates,
)
from fedbounds.empirical.algorithms.algorithm import LocalSteps
from fedbounds.empirical.algorithms.messages import (
    Compressor,
    Drive,
    Eden,
    FullPrecision,
    Sparsified,
    StochasticSign,
    TernGrad,
    TopK,
)
from fedbounds.empirical.papers.arbitrary_participation.algorithms import (
    FedAvg,
    FrozenGradient,
    GeneralizedFedAvg,
    WaitForAll,
    WaitFull,
    WaitMinibatch,
)
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FSGDA, FedNormSGDA, LocalSGDA, SynchronousSGDA
from fedbounds.empirical.papers.fedau.algorithms import (
    MIFA,
    AverageAll,
    AverageParticipating,
    FedAU,
    FedVarp,
    FixedWeights,
    KnownParticipation,
)
from fedbounds.empirical.papers.fedmrn.algorithms import Compressed, FedMRN, FedSparsify
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN
from fedbounds.empirical.papers.fedmrn.fedpm import FedPM
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, PrintedTDCD
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.oracles import Vector, local_update, stochastic_oracle
from fedbounds.empirical.simulation.reference_algorithms import run_reference

__all__ = [
    "Algorithm",
    "AnalyzedFedMRN",
    "AverageAll",
    "AverageParticipating",
    "Cohort",
    "Compressed",
    "Compressor",
    "Drive",
    "Eden",
    "FSGDA",
    "FedAU",
    "FedAvg",
    "FedMRN",
    "FedNormSGDA",
    "FedPM",
    "FedSparsify",
    "FedVarp",
    "FixedWeights",
    "FrozenGradient",
    "FullPrecision",
    "GeneralizedFedAvg",
    "KnownParticipation",
    "LabelPrivateTDCD",
    "LocalOptimizer",
    "LocalSGD",
    "LocalSGDA",
    "LocalSteps",
    "MIFA",
    "MaskedNoise",
    "MinimaxAlgorithm",
    "PrintedTDCD",
    "RoundReport",
    "Sparsified",
    "StochasticSign",
    "Streams",
    "SynchronousSGDA",
    "TDCD",
    "TernGrad",
    "TopK",
    "Vector",
    "WaitForAll",
    "WaitFull",
    "WaitMinibatch",
    "algorithm_from_spec",
    "heavy_ball",
    "local_update",
    "proximal",
    "run_reference",
    "stochastic_oracle",
    "variable_rates",
]
