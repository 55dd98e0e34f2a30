"""Reductions over clients: sums, means and maxima of vectors, as functions that sympy leaves alone.

Inside a reduction a vector symbol stands for its n-th entry, so `mean_over_clients((1 - p)**(2*K))` reads like
(1/N) sum_n (1 - p_n)^(2K). In compiled code every array carries a trailing client axis of length N (vectors) or 1
(numbers), and a reduction keeps it with length 1.
"""

from __future__ import annotations

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.numpy import NumPyPrinter


class OverClients(sp.Function):
    """A reduction over the client axis; never simplified through.

    Attributes:
        word: what it is called in plain text.
        reduction: numpy's name of it.
        operator: its LaTeX, of the index and the number of clients.
    """

    nargs = 1
    word = reduction = operator = ""

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[0].is_nonnegative or None

    def _eval_is_positive(self) -> bool | None:
        return self.args[0].is_positive or None

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        index, number = getattr(printer, "clients", ("n", "N"))
        argument = self.args[0]
        inside = printer._print(argument)
        bare = not isinstance(argument, sp.Add | sp.Max | sp.Min)
        body = self.operator.format(index=index, number=number) + (inside if bare else rf"\left({inside}\right)")
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"

    def _numpycode(self, printer: NumPyPrinter) -> str:
        """Over the last axis, which our own printer keeps."""
        axes = "axis=-1, keepdims=True" if getattr(printer, "keeps_clients", False) else "axis=-1"
        return f"{printer._module_format(f'numpy.{self.reduction}')}({printer._print(self.args[0])}, {axes})"


class SumOverClients(OverClients):
    """Sum over clients n of an expression in the vectors' entries."""

    word, reduction, operator = "sum_clients", "sum", r"\sum_{index}"


class MeanOverClients(OverClients):
    """Mean over clients n of an expression in the vectors' entries."""

    word, reduction, operator = "mean_clients", "mean", r"\frac1{number}\sum_{index}"


class MaxOverClients(OverClients):
    """Largest value over clients n of an expression in the vectors' entries."""

    word, reduction, operator = "max_clients", "max", r"\max_{index}"


class MedianOverClients(OverClients):
    """Median over clients n of an expression in the vectors' entries."""

    word, reduction, operator = "median_clients", "median", r"\operatorname{{median}}_{index}"
