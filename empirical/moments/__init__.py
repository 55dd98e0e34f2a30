"""Exact expectations on quadratics: moments of the models of an algorithm, and of what a proof bounds."""

from empirical.moments.along_the_run import AlongTheRun, along_the_run, analysis_interval
from empirical.moments.minimax import MinimaxMoments, fixed_point
from empirical.moments.moments import Moments, moments

__all__ = [
    "AlongTheRun",
    "MinimaxMoments",
    "Moments",
    "along_the_run",
    "analysis_interval",
    "fixed_point",
    "moments",
]
