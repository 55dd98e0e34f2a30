"""Reductions over clients: sums, means and maxima of vectors, as functions that sympy leaves alone.

Inside a reduction a vector symbol stands for its n-th entry, so `mean_over_clients((1 - p)**(2*K))` reads like
(1/N) sum_n (1 - p_n)^(2K). In compiled code every array carries a trailing client axis of length N (vectors) or 1
(numbers), and a reduction keeps it with length 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from sympy.printing.latex import LatexPrinter


class OverClients(sp.Function):
    """A reduction over the client axis; never simplified through."""

    nargs = 1
    latex_operator = ""

    if TYPE_CHECKING:  # sympy's own annotation promises a class of undefined functions

        def __new__(cls, argument: object) -> sp.Expr: ...

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[0].is_nonnegative or None

    def _eval_is_positive(self) -> bool | None:
        return self.args[0].is_positive or None

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        body = rf"{self.latex_operator}\left({printer._print(self.args[0])}\right)"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"


class SumOverClients(OverClients):
    """Sum over clients n of an expression in the vectors' entries."""

    latex_operator = r"\sum_n"


class MeanOverClients(OverClients):
    """Mean over clients n of an expression in the vectors' entries."""

    latex_operator = r"\frac1N\sum_n"


class MaxOverClients(OverClients):
    """Largest value over clients n of an expression in the vectors' entries."""

    latex_operator = r"\max_n"


class MedianOverClients(OverClients):
    """Median over clients n of an expression in the vectors' entries."""

    latex_operator = r"\operatorname{median}_n"


REDUCTIONS = {
    "MedianOverClients": lambda a: np.median(a, axis=-1, keepdims=True),
    "SumOverClients": lambda a: np.sum(a, axis=-1, keepdims=True),
    "MeanOverClients": lambda a: np.mean(a, axis=-1, keepdims=True),
    "MaxOverClients": lambda a: np.max(a, axis=-1, keepdims=True),
}
