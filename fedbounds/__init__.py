"""fedbounds: convergence theory you can run.

The front door: the version, the public verbs, the participation processes, problems and algorithms, each imported when
it is first used, and the command line.

Example:
    >>> import fedbounds
    >>> theorem = fedbounds.load("arbitrary-participation/theorem-3.1")
    >>> evaluation = fedbounds.evaluate(
    ...     theorem, dict(L=1, F=5, I=2, P=2, T=8, gamma=1/48, eta=6, rho=0.5**0.5, sigma=0.5**0.5, nu=4.25**0.5,
    ...                   beta=0.5, delta=0), form="explicit")
    >>> round(float(evaluation.value), 6)
    21.321615
    >>> import fedbounds as fb
    >>> run = fb.moments(fb.FedAvg(0.05, 2), fb.toy_example(), fb.Full(3), 10)
    >>> len(run.gradient_norm_squared)
    11
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedbounds.bounds._version import __version__

if TYPE_CHECKING:
    from fedbounds.bounds.advice.coverage import covers as covers
    from fedbounds.bounds.comparison.compare import compare as compare
    from fedbounds.bounds.errors import FedboundsError as FedboundsError
    from fedbounds.bounds.evaluation.evaluate import evaluate as evaluate
    from fedbounds.bounds.search.optimize import optimize as optimize
    from fedbounds.bounds.search.rounds import rounds as rounds
    from fedbounds.bounds.theory.registry import load as load
    from fedbounds.bounds.theory.registry import results as results
    from fedbounds.command_line import main as main
    from fedbounds.empirical.comparison.compare_run import confront as confront
    from fedbounds.empirical.comparison.recorder import Recorder as Recorder
    from fedbounds.empirical.comparison.recorder import read_log as read_log
    from fedbounds.empirical.falsification.adversary import adversary as adversary
    from fedbounds.empirical.falsification.worst_case import worst_case as worst_case
    from fedbounds.empirical.invariants.compressor import check_compressor as check_compressor
    from fedbounds.empirical.monitoring.accountant import ParticipationAccountant as ParticipationAccountant
    from fedbounds.empirical.monitoring.advise import advise as advise
    from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg as FedAvg
    from fedbounds.empirical.papers.arbitrary_participation.algorithms import FrozenGradient as FrozenGradient
    from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg as GeneralizedFedAvg
    from fedbounds.empirical.papers.arbitrary_participation.algorithms import WaitForAll as WaitForAll
    from fedbounds.empirical.papers.arbitrary_participation.algorithms import WaitFull as WaitFull
    from fedbounds.empirical.papers.arbitrary_participation.algorithms import WaitMinibatch as WaitMinibatch
    from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants as check_invariants
    from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FSGDA as FSGDA
    from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA as FedNormSGDA
    from fedbounds.empirical.papers.fed_norm_sgda.algorithms import LocalSGDA as LocalSGDA
    from fedbounds.empirical.papers.fed_norm_sgda.algorithms import SynchronousSGDA as SynchronousSGDA
    from fedbounds.empirical.papers.fed_norm_sgda.invariants import check_minimax as check_minimax
    from fedbounds.empirical.papers.fedau.algorithms import MIFA as MIFA
    from fedbounds.empirical.papers.fedau.algorithms import AverageAll as AverageAll
    from fedbounds.empirical.papers.fedau.algorithms import AverageParticipating as AverageParticipating
    from fedbounds.empirical.papers.fedau.algorithms import FedAU as FedAU
    from fedbounds.empirical.papers.fedau.algorithms import FedVarp as FedVarp
    from fedbounds.empirical.papers.fedau.algorithms import FixedWeights as FixedWeights
    from fedbounds.empirical.papers.fedau.algorithms import KnownParticipation as KnownParticipation
    from fedbounds.empirical.papers.fedau.invariants import check_weights as check_weights
    from fedbounds.empirical.papers.fedau.participation_weights import ParticipationWeights as ParticipationWeights
    from fedbounds.empirical.papers.fedmrn.algorithms import Compressed as Compressed
    from fedbounds.empirical.papers.fedmrn.algorithms import FedMRN as FedMRN
    from fedbounds.empirical.papers.fedmrn.algorithms import FedSparsify as FedSparsify
    from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN as AnalyzedFedMRN
    from fedbounds.empirical.papers.fedmrn.fedpm import FedPM as FedPM
    from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise as MaskedNoise
    from fedbounds.empirical.papers.tdcd.algorithms import TDCD as TDCD
    from fedbounds.empirical.papers.tdcd.algorithms import LabelPrivateTDCD as LabelPrivateTDCD
    from fedbounds.empirical.papers.tdcd.algorithms import PrintedTDCD as PrintedTDCD
    from fedbounds.empirical.papers.tdcd.invariants import check_vertical as check_vertical
    from fedbounds.empirical.participation import Bernoulli as Bernoulli
    from fedbounds.empirical.participation import Cyclic as Cyclic
    from fedbounds.empirical.participation import CyclicClients as CyclicClients
    from fedbounds.empirical.participation import CyclicFromInactive as CyclicFromInactive
    from fedbounds.empirical.participation import Full as Full
    from fedbounds.empirical.participation import GroupMarkov as GroupMarkov
    from fedbounds.empirical.participation import Markovian as Markovian
    from fedbounds.empirical.participation import PeriodicGroups as PeriodicGroups
    from fedbounds.empirical.participation import Permutation as Permutation
    from fedbounds.empirical.participation import Process as Process
    from fedbounds.empirical.participation import Recorded as Recorded
    from fedbounds.empirical.participation import WithoutReplacement as WithoutReplacement
    from fedbounds.empirical.participation import WithReplacement as WithReplacement
    from fedbounds.empirical.problems import BlockQuadratic as BlockQuadratic
    from fedbounds.empirical.problems import BoundedGradient as BoundedGradient
    from fedbounds.empirical.problems import CosineQuadratic as CosineQuadratic
    from fedbounds.empirical.problems import Displaced as Displaced
    from fedbounds.empirical.problems import ImageClassification as ImageClassification
    from fedbounds.empirical.problems import Quadratic as Quadratic
    from fedbounds.empirical.problems import QuadraticMinimax as QuadraticMinimax
    from fedbounds.empirical.problems import RippledBlocks as RippledBlocks
    from fedbounds.empirical.problems import VerticalLeastSquares as VerticalLeastSquares
    from fedbounds.empirical.problems import random_block_quadratic as random_block_quadratic
    from fedbounds.empirical.problems import random_quadratic as random_quadratic
    from fedbounds.empirical.problems import random_quadratic_minimax as random_quadratic_minimax
    from fedbounds.empirical.problems import random_vertical_least_squares as random_vertical_least_squares
    from fedbounds.empirical.problems import toy_example as toy_example
    from fedbounds.empirical.simulation.moments import moments as moments
    from fedbounds.empirical.simulation.simulate import simulate as simulate
    from fedbounds.figures.charts.overlay import overlay as overlay

# What is imported when it is first used: module by module, the names that it gives.
DOOR = {
    "fedbounds.bounds.errors": "FedboundsError",
    "fedbounds.bounds.theory.registry": "load results",
    "fedbounds.bounds.advice.coverage": "covers",
    "fedbounds.bounds.evaluation.evaluate": "evaluate",
    "fedbounds.bounds.search.optimize": "optimize",
    "fedbounds.bounds.search.rounds": "rounds",
    "fedbounds.bounds.comparison.compare": "compare",
    "fedbounds.empirical.simulation.simulate": "simulate",
    "fedbounds.empirical.monitoring.advise": "advise",
    "fedbounds.empirical.monitoring.accountant": "ParticipationAccountant",
    "fedbounds.empirical.simulation.moments": "moments",
    "fedbounds.empirical.comparison.compare_run": "confront",
    "fedbounds.empirical.comparison.recorder": "Recorder read_log",
    "fedbounds.empirical.falsification.adversary": "adversary",
    "fedbounds.empirical.falsification.worst_case": "worst_case",
    "fedbounds.empirical.papers.arbitrary_participation.invariants": "check_invariants",
    "fedbounds.empirical.papers.fedau.invariants": "check_weights",
    "fedbounds.empirical.papers.fed_norm_sgda.invariants": "check_minimax",
    "fedbounds.empirical.papers.tdcd.invariants": "check_vertical",
    "fedbounds.empirical.papers.fedmrn.masked_noise": "MaskedNoise",
    "fedbounds.empirical.invariants.compressor": "check_compressor",
    "fedbounds.empirical.papers.fedau.participation_weights": "ParticipationWeights",
    "fedbounds.figures.charts.overlay": "overlay",
    "fedbounds.empirical.participation": (
        "Bernoulli Cyclic CyclicClients CyclicFromInactive Full GroupMarkov Markovian PeriodicGroups "
        "Permutation Process Recorded WithReplacement WithoutReplacement"
    ),
    "fedbounds.empirical.problems": (
        "BlockQuadratic BoundedGradient CosineQuadratic Displaced ImageClassification Quadratic QuadraticMinimax "
        "RippledBlocks VerticalLeastSquares random_block_quadratic random_quadratic random_quadratic_minimax "
        "random_vertical_least_squares toy_example"
    ),
    "fedbounds.empirical.papers.arbitrary_participation.algorithms": (
        "FedAvg FrozenGradient GeneralizedFedAvg WaitForAll WaitFull WaitMinibatch"
    ),
    "fedbounds.empirical.papers.fedau.algorithms": (
        "MIFA AverageAll AverageParticipating FedAU FedVarp FixedWeights KnownParticipation"
    ),
    "fedbounds.empirical.papers.fed_norm_sgda.algorithms": "FedNormSGDA FSGDA LocalSGDA SynchronousSGDA",
    "fedbounds.empirical.papers.fedmrn.algorithms": "Compressed FedMRN FedSparsify",
    "fedbounds.empirical.papers.fedmrn.fedpm": "FedPM",
    "fedbounds.empirical.papers.fedmrn.analysis": "AnalyzedFedMRN",
    "fedbounds.empirical.papers.tdcd.algorithms": "TDCD LabelPrivateTDCD PrintedTDCD",
    "fedbounds.command_line": "main",
}
PLACES = {name: module for module, names in DOOR.items() for name in names.split()}
__all__ = ["__version__", *PLACES]  # pyright: ignore[reportUnsupportedDunderAll]  imported when first used


def __getattr__(name: str) -> Any:
    if name in PLACES:
        return getattr(import_module(PLACES[name]), name)
    raise AttributeError(f"module 'fedbounds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
