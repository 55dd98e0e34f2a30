r"""How far masks of the current amplitude reach: $\sum_r\mu a_r/G$, in units of $G/\mu$, over the rounds that start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from sympy.printing.latex import LatexPrinter

AHEAD = 20  # terms that are added before the asymptotic series, whose error is then below 1e-15


def mask_reach(shift: ArrayLike, local_steps: ArrayLike, iterations: ArrayLike) -> np.ndarray:
    r"""The sum over the rounds of $\mu a_r/G$ with $a_r=\eta_{t_0}SG$ and $\eta_t=\frac2{\mu(\gamma+t)}$.

    $$\sum_{j<R}\frac{2S}{\gamma+1+jS},\qquad R=\lceil(T-1)/S\rceil$$

    Rounds start at $t_0=1,1+S,\dots$; gradients are taken in the iterations $t=1,\dots,T-1$.

    Example:
        >>> [round(float(mask_reach(8, 1, T)), 12) for T in (1, 2, 3)]  # 0, 2/8, 2/8 + 2/9
        [0.0, 0.25, 0.472222222222]
    """
    shift, local_steps, iterations = (np.asarray(x, dtype=float) for x in (shift, local_steps, iterations))
    rounds, first = np.ceil((iterations - 1) / local_steps), shift / local_steps
    ahead = sum(rounds / ((first + j) * (first + j + rounds)) for j in range(AHEAD))
    x, y = first + AHEAD, first + AHEAD + rounds  # digamma(y) - digamma(x)
    series = sum(c * (x**-k - y**-k) for c, k in ((1 / 12, 2), (-1 / 120, 4), (1 / 252, 6), (-1 / 240, 8)))
    return np.asarray(2 * (ahead + np.log1p(rounds / x) + rounds / (2 * x * y) + series))


class MaskReach(sp.Function):
    r"""The sum as a symbol of $\gamma+1$, S and T; compiled code calls `mask_reach`."""

    nargs = 3
    _imp_ = staticmethod(mask_reach)

    if TYPE_CHECKING:

        def __new__(cls, shift: sp.Expr, local_steps: sp.Expr, iterations: sp.Expr) -> sp.Expr: ...

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        shift, steps, iterations = (printer._print(a) for a in self.args)
        body = rf"\sum_{{j<({iterations}-1)/{steps}}}\frac{{2{steps}}}{{{shift}+j{steps}}}"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"
