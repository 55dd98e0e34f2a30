"""Exact expectations on quadratics: moments of the models of an algorithm."""

from fedbounds.empirical.moments.minimax import MinimaxMoments, fixed_point
from fedbounds.empirical.moments.moments import Moments, moments

__all__ = [
    "MinimaxMoments",
    "Moments",
    "fixed_point",
    "moments",
]
