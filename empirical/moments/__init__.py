"""Exact expectations of generalized FedAvg on quadratics: moments of the models, and of what the proof bounds."""

from empirical.moments.along_the_run import AlongTheRun, along_the_run, analysis_interval
from empirical.moments.minimax import MinimaxMoments, fixed_point, minimax_moments
from empirical.moments.moments import Moments, moments

__all__ = [
    "AlongTheRun",
    "MinimaxMoments",
    "Moments",
    "along_the_run",
    "analysis_interval",
    "fixed_point",
    "minimax_moments",
    "moments",
]
