r"""The drift of $Q$ local steps on a frozen batch: $\sum_{s<Q}((1+x)^s-1)^2$ with $x=\eta L_{max}$."""

from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from sympy.printing.latex import LatexPrinter

SMALL = 1.0  # Q x below which the series is used; above it the closed form loses at most two digits
SERIES = 30  # terms: at Q x (2 + x) <= 3 the remainder is below 3^31/32! < 1e-20


def drift_growth(x: ArrayLike, steps: ArrayLike) -> np.ndarray:
    r"""Sum over the local steps of the squared relative growth of the gradient's change.

    $$\Gamma_Q(x)=\sum_{s=0}^{Q-1}\big((1+x)^s-1\big)^2$$

    The geometric sums give a closed form in $y=(1+x)^Q-1$, namely $(y^2-2y-2xy)/(x(2+x))+Q$, which cancels to nothing
    when $Qx$ is small; there the same sum is written with positive terms only,
    $\binom Q2x^2+\sum_{k\ge2}\binom Q{k+1}x^k((2+x)^k-2)$.
    """
    x, steps = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(steps, dtype=float))
    small = x * steps <= SMALL
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        y = np.expm1(steps * np.log1p(x))
        closed = (y * y - 2 * y - 2 * x * y) / (x * (2 + x)) + steps
        closed = np.where(np.isfinite(closed), closed, np.inf)
    little, count = np.where(small, x, 0.0), np.where(small, steps, 1.0)
    weight = count * (count - 1) / 2 * little  # binomial(Q, k+1) x^k at k = 1
    series = weight * little
    for k in range(2, SERIES + 1):
        if not weight.any():  # so are all terms that follow
            break
        weight = weight * (count - k) / (k + 1) * little
        series = series + weight * ((2 + little) ** k - 2)
    return np.where(steps == 1, 0.0, np.where(small, series, closed))


def _in_balls(x: Any, steps: Any) -> Any:
    """The closed form in ball arithmetic, where what cancels only widens the ball."""
    if x == 0:
        return 0 * x
    y = (1 + x) ** steps - 1
    return (y * y - 2 * y - 2 * x * y) / (x * (2 + x)) + steps


class DriftGrowth(sp.Function):
    r"""$\sum_{s<Q}((1+x)^s-1)^2$ as a symbol of `x` and `Q`; compiled code calls `drift_growth`."""

    nargs = 2
    _imp_ = staticmethod(drift_growth)
    in_balls = staticmethod(_in_balls)  # for `fedbounds.bounds.search.arb_enclosures`
    rises = True  # with x and with Q, where x >= 0: for `fedbounds.bounds.search.interval_arithmetic`

    if TYPE_CHECKING:

        def __new__(cls, x: sp.Expr, steps: sp.Expr) -> sp.Expr: ...

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        x, steps = (printer._print(a) for a in self.args)
        body = rf"\sum_{{s<{steps}}}\left(\left(1+{x}\right)^s-1\right)^2"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"
