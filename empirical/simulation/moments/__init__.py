"""Exact expectations on quadratics: moments of the models of an algorithm."""

from fedbounds.empirical.simulation.moments.minimax import MinimaxMoments, fixed_point
from fedbounds.empirical.simulation.moments.moments import Moments, moments
from fedbounds.empirical.simulation.moments.tiers import TierMoments

__all__ = [
    "MinimaxMoments",
    "Moments",
    "TierMoments",
    "fixed_point",
    "moments",
]
