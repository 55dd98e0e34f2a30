"""What the symbols of averages stand for in the proofs of Wang & Ji (2022), apart from their steps."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from fedbounds.bounds.audit.proof_step_checker import measure_symbol
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.proof import likely, window

START = product_symbol("f0", "f0")  # the squared gradient at the start of a window
MEANS: Mapping[sp.Symbol, sp.Expr] = {
    window.LEAST: START,  # no more than the average over the windows
    measure_symbol(OVER_PARTICIPATION): START,
    likely.EVERY: likely.ONE,  # the largest of all windows
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {n.decrease: n.F}
