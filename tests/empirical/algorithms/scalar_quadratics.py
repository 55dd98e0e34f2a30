"""Two scalar quadratics F_n(x) = a_n (x - m_n)^2 / 2, and their local steps in closed form, in exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fedbounds.empirical.problems import Quadratic

CURVATURES, CENTERS = (Fraction(1), Fraction(3)), (Fraction(-1), Fraction(2))
START, STEP = Fraction(4), Fraction(1, 8)
MINIMIZER = sum((a * m for a, m in zip(CURVATURES, CENTERS, strict=True)), Fraction(0)) / sum(CURVATURES)  # 5/4


def scalar_problem(x0: Fraction = START) -> Quadratic:
    """The problem of these numbers."""
    hessians = [[[float(a)]] for a in CURVATURES]
    return Quadratic(hessians, [[float(m)] for m in CENTERS], x0=[float(x0)])


def settle(x: Fraction, target: Fraction, curvature: Fraction, steps: int, step: Fraction = STEP) -> Fraction:
    """Where local steps from x end, on a quadratic with this minimizer: the distance shrinks by 1 - step * a."""
    return target + (1 - step * curvature) ** steps * (x - target)


def weighted(weights: Sequence[Fraction]) -> Fraction:
    """The mean of the centers with these weights."""
    return sum((w * m for w, m in zip(weights, CENTERS, strict=True)), Fraction(0)) / sum(weights)


def drift(curvature: Fraction, steps: int, step: Fraction = STEP) -> Fraction:
    """The share of its way to a client's minimizer that local SGD goes in a round."""
    return 1 - (1 - step * curvature) ** steps
