r"""Harmonic numbers $H_m=\sum_{j\le m}1/j$ as a symbol and as a function of arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from sympy.printing.latex import LatexPrinter

SHIFT = 10  # H_m = H_(m+10) - sum 1/(m+j); at 11 and more the asymptotic series is exact to the last digit
BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)


def harmonic_number(m: ArrayLike) -> np.ndarray:
    r"""$H_m=\sum_{j=1}^m1/j$ for integers $m\ge0$, any shape."""
    m = np.asarray(m, dtype=float)
    x = m + SHIFT
    tail = sum(c * x ** (-2.0 * k) for k, c in enumerate(BERNOULLI, start=1))
    value = np.log(x) + np.euler_gamma + 1 / (2 * x) - tail
    return np.where(m == 0, 0.0, value - sum(1 / (m + j) for j in range(1, SHIFT + 1)))


def _in_balls(m: Any) -> Any:
    """The number in ball arithmetic."""
    return (m + 1).digamma() + m.const_euler()


class HarmonicNumber(sp.Function):
    r"""$H_m$ as a symbol of m; compiled code calls `harmonic_number`."""

    nargs = 1
    _imp_ = staticmethod(harmonic_number)
    in_balls = staticmethod(_in_balls)  # for `fedbounds.bounds.search.arb_enclosures`

    if TYPE_CHECKING:

        def __new__(cls, m: sp.Expr) -> sp.Expr: ...

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        body = rf"H_{{{printer._print(self.args[0])}}}"
        return body if exp is None else rf"{body}^{{{exp}}}"
