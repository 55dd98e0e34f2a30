"""A quadratic in two silos whose runs and bounds are known from an exact recursion written apart from this package."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedbounds.empirical.problems import BlockQuadratic

HESSIAN = np.array([[4, 1, 1, 0], [1, 3, 0, 1], [1, 0, 2, 0.5], [0, 1, 0.5, 1]])
L, ROW, BLOCK = 4.97619024630623, 4.725064858946305, 4.618033988749895  # Lipschitz: whole, rows, own block
VARIANCES = np.array([0.1, 0.2, 0.3, 0.4])
START = [1, -1, 2, 0.5]  # where f is 8.625


class Golden(NamedTuple):
    """A run at the largest step size, 1/(8 Q L), and its bounds.

    Attributes:
        Q, R, noise: what is run; clients' noise is "independent", "shared" or "none".
        norm, last: the average that the theorem bounds, and E f at the end.
        B0, B0inf, B1: eq. (15) with Delta_T and with the gap, and the bound before any rounding, with ROW for Lmax.
        B3: the sharpest, with BLOCK.
    """

    Q: int
    R: int
    noise: str
    norm: float
    last: float
    B0: float
    B0inf: float
    B1: float
    B3: float


GOLDEN = [
    Golden(1, 20, "independent", 16.748234681341582, 0.5624868783359009,
           64.97471364245705, 69.45318039069761, 53.3346848936516, 43.128639100523614),
    Golden(5, 20, "independent", 17.091407837683686, 0.590959343117195,
           64.7480186000043, 69.45318039069761, 48.56340362213037, 43.22883262495693),
    Golden(5, 20, "shared", 17.1007323850124, 0.5935918240469663,
           64.7270590385222, 69.45318039069761, 48.54765576635294, 43.21477973055339),
    Golden(5, 20, "none", 17.084475544532065, 0.5892227930811066,
           63.98008985369556, 68.67142539902598, 48.0711024657507, 42.89714970473723),
    Golden(10, 100, "independent", 3.682841737774078, 0.005023182744034117,
           14.508041251324427, 14.516040071476835, 10.692104018945203, 9.556649903834339),
]  # fmt: skip


def golden(noise: str = "independent") -> BlockQuadratic:
    """The problem; `noise` as in `Golden`, and what is none is shared."""
    deviations = np.zeros(4) if noise == "none" else np.sqrt(VARIANCES)
    return BlockQuadratic(HESSIAN, (2, 2), (2, 3), None, deviations, noise != "independent", START)
