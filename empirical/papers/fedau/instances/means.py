"""What the symbols of averages stand for in the proofs of Wang & Ji (2024), apart from their steps."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof import descent, theorem, weights

START = product_symbol("f0", "f0")  # the squared gradient at the start of a round
MEANS: Mapping[sp.Symbol, sp.Expr] = {
    theorem.GRADIENT_MEAN: START,
    theorem.DECREASE_MEAN: descent.DECREASE,
    theorem.ERROR_MEAN: n.Wt,
    theorem.MOMENT_MEAN: n.Qt,
    theorem.AVERAGE: theorem.GRADIENT_MEAN,
    n.W: theorem.ERROR_MEAN,
    n.Qmean: theorem.MOMENT_MEAN,
    theorem.H_GRADIENT: START,
    theorem.H_DECREASE: descent.DECREASE,
    theorem.AVERAGE_OF_H: theorem.H_GRADIENT,
    weights.TOTAL: weights.PER_CLIENT,
    product_symbol("Y", "Y"): product_symbol("y", "y"),
    product_symbol("Y", "x0"): product_symbol("y", "x0"),
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {
    theorem.DECREASE_MEAN: n.F,
    theorem.H_DECREASE: n.H,
}
