"""Exact expectations on quadratics: moments of the models of an algorithm, and of what a proof bounds."""

from fedbounds.empirical.moments.minimax import MinimaxMoments, fixed_point
from fedbounds.empirical.moments.moments import Moments, moments
from fedbounds.empirical.papers.arbitrary_participation.along_the_run import (
    AlongTheRun,
    along_the_run,
    analysis_interval,
)

__all__ = [
    "AlongTheRun",
    "MinimaxMoments",
    "Moments",
    "along_the_run",
    "analysis_interval",
    "fixed_point",
    "moments",
]
