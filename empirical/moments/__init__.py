"""Exact expectations on quadratics: moments of the models of an algorithm."""

from fedbounds.empirical.moments.minimax import MinimaxMoments, fixed_point
from fedbounds.empirical.moments.moments import Moments, moments
from fedbounds.empirical.moments.tiers import TierMoments

__all__ = [
    "MinimaxMoments",
    "Moments",
    "TierMoments",
    "fixed_point",
    "moments",
]
