"""The symbols of Wang & Ji (2022); `nu`, `beta`, `delta` are the roots of the paper's tilde quantities."""

from functools import partial

import sympy as sp

from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import Derived, read_notation

EQUAL = sp.Symbol("N", positive=True, integer=True)  # so many equal weights have the least squares
SHARED = sp.Symbol("S", positive=True, integer=True)

NOTATION = read_notation(
    __file__,
    [
        Derived(name, ("N",), power, "weights that sum to one: Cauchy-Schwarz", free="upwards")
        for name, power in (("rho", EQUAL ** sp.Rational(-1, 2)), ("sumsq", 1 / EQUAL))
    ]
    + [
        Derived("rho", ("S",), SHARED ** sp.Rational(-1, 2), "S equal weights: rho = 1/sqrt(S)"),
        Derived("sumsq", ("S",), 1 / SHARED, "S equal weights: the sum of their squares is 1/S", free="downwards"),
    ],
)
new_result = partial(paper_result, "arbitrary-participation", "Wang & Ji 2022", NOTATION)
