"""Two constants at once: the line above all measured points."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def least_line(x: np.ndarray, y: np.ndarray, least_slope: float = 0.0) -> tuple[float, float]:
    r"""The line $y=a+bx$ with $a\ge0$ and $b\ge b_0$ that lies above all points and nearest to them in the mean.

    An assumption $y\le a+bx$ of two constants does not say which; a larger b allows a smaller a.
    """
    high, wide = float(y.max()) or 1.0, float(x.max()) or 1.0  # so that linprog sees numbers of size 1
    points = np.column_stack([np.ones(len(x)), x / wide])
    bounds = [(0, None), (least_slope * wide / high, None)]
    b = float(linprog(points.mean(axis=0), A_ub=-points, b_ub=-y / high, bounds=bounds).x[1]) * high / wide
    return max(float((y - b * x).max()), 0.0), b  # the intercept anew, so that rounding leaves no point above
