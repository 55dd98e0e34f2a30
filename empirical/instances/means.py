"""What the symbols of averages stand for in the proofs of all rooms, told once more and apart from their steps.

A rule that takes an expectation says which symbol is whose mean. The court of instances does not ask it: it averages
what stands here, and the letters of a paper's notation stand here for what their definitions say.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from fedbounds.bounds.audit.steps import measure_symbol
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as of_arbitrary
from fedbounds.bounds.papers.arbitrary_participation.proof import likely, window
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_3, LEMMA_C_5
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as of_fed_norm
from fedbounds.bounds.papers.fed_norm_sgda.proof import ascent, descent, letters, moreau, restart, theorem_4
from fedbounds.bounds.papers.fedau.notation import NOTATION as of_fedau
from fedbounds.bounds.papers.fedau.proof import descent as fedau_descent
from fedbounds.bounds.papers.fedau.proof import theorem, weights

START = product_symbol("f0", "f0")  # the squared gradient at the start of a round or window
IN_WINDOWS: Mapping[sp.Symbol, sp.Expr] = {
    window.START_MEAN: START,
    window.DECREASE_MEAN: of_arbitrary.decrease,
    window.WINDOW_MEAN: of_arbitrary.delta**2,
    window.LEAST: START,  # no more than the average over the windows
    window.OVER_BOTH: window.START_MEAN,
    likely.EVERY: likely.ONE,  # the largest of all windows
}
IN_ROUNDS: Mapping[sp.Symbol, sp.Expr] = {
    theorem.GRADIENT_MEAN: START,
    theorem.DECREASE_MEAN: fedau_descent.DECREASE,
    theorem.ERROR_MEAN: of_fedau.Wt,
    theorem.MOMENT_MEAN: of_fedau.Qt,
    theorem.AVERAGE: theorem.GRADIENT_MEAN,
    of_fedau.W: theorem.ERROR_MEAN,
    of_fedau.Qmean: theorem.MOMENT_MEAN,
    theorem.H_GRADIENT: START,
    theorem.H_DECREASE: fedau_descent.DECREASE,
    theorem.AVERAGE_OF_H: theorem.H_GRADIENT,
    weights.TOTAL: weights.PER_CLIENT,
    product_symbol("Y", "Y"): product_symbol("y", "y"),
    product_symbol("Y", "x0"): product_symbol("y", "x0"),
}
OF_MINIMAX: Mapping[sp.Symbol, sp.Expr] = {
    ascent.G_MEAN: letters.G,
    ascent.GAP_MEAN: letters.DELTA,
    ascent.H_MEAN: letters.H,
    measure_symbol(LEMMA_C_3.measure): theorem_4.STALE,
    measure_symbol(LEMMA_C_5.measure): theorem_4.STALE,
    theorem_4.GAP_MEAN: letters.DELTA,
    theorem_4.STALE_MEAN: theorem_4.STALE,
    theorem_4.LAG_MEAN: theorem_4.LAG,
    theorem_4.ENVELOPE_MEAN: moreau.GRADIENT,
}
MEANS: Mapping[sp.Symbol, sp.Expr] = {**IN_WINDOWS, **IN_ROUNDS, **OF_MINIMAX}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {  # of what falls from round to round: the most that it falls in a run
    of_arbitrary.decrease: of_arbitrary.F,
    window.DECREASE_MEAN: of_arbitrary.F,
    theorem.DECREASE_MEAN: of_fedau.F,
    theorem.H_DECREASE: of_fedau.H,
    ascent.GAP_DECREASE: of_fed_norm.delta0,
    descent.DECREASE: of_fed_norm.Delta,
    restart.APPROACH: restart.FIRST,
    moreau.ENVELOPE_DECREASE: of_fed_norm.Deltabar,
}
