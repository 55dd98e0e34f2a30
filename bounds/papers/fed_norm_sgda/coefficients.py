r"""Whether a client's local coefficients exist: $\tau$ numbers $\ge0$ with given sums, last and largest entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

CLOSE = 1e-9  # relative: coefficients of momentum are rounded


def coefficients_missing(
    total: ArrayLike, squares: ArrayLike, last: ArrayLike, largest: ArrayLike, steps: ArrayLike
) -> np.ndarray:
    r"""0 where there are $a^{(0)},\dots,a^{(\tau-1)}\ge0$ with these norms, 1 where there are none.

    Without the last entry, and one that is the largest if the last is not, $m$ numbers in $[0,b]$ with sum $s$ remain.
    Their squares sum to $s^2/m$ at least, and at most to $kb^2+(s-kb)^2$, $k=\lfloor s/b\rfloor$; all between occur.

    Example:
        >>> [float(coefficients_missing(3, squares, 1, 1, 3)) for squares in (3, 2.5)]  # (1, 1, 1), and none
        [0.0, 1.0]
    """
    total, squares, last, b, steps = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (total, squares, last, largest, steps))
    )
    apart = last < b * (1 - CLOSE)
    s, q, m = total - last - apart * b, squares - last**2 - apart * b**2, steps - 1 - apart
    close, close_squares = CLOSE * total, CLOSE * squares
    with np.errstate(all="ignore"):
        whole = np.floor(s / b * (1 + CLOSE))
        most, fewest = whole * b**2 + (s - whole * b) ** 2, s**2 / m
        some = (q >= fewest - close_squares) & (q <= most + close_squares) & (s <= m * b + close)
    none = (np.abs(s) <= close) & (np.abs(q) <= close_squares)
    there = (last <= b * (1 + CLOSE)) & (s >= -close) & ((m > 0) & some | (m >= 0) & none)
    return 1.0 - there


class CoefficientsMissing(sp.Function):
    """The same as a symbol; compiled code calls `coefficients_missing`."""

    nargs = 5
    _imp_ = staticmethod(coefficients_missing)

    if TYPE_CHECKING:

        def __new__(
            cls, total: sp.Expr, squares: sp.Expr, last: sp.Expr, largest: sp.Expr, steps: sp.Expr
        ) -> sp.Expr: ...
