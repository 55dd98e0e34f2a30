"""What the symbols of averages stand for in the proofs of Sharma et al. (2023), apart from their steps."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from fedbounds.bounds.audit.proof_step_checker import measure_symbol
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_3, LEMMA_C_5
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import ascent, descent, moreau, restart, theorem_4
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as letters

MEANS: Mapping[sp.Symbol, sp.Expr] = {
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
GAPS: Mapping[sp.Symbol, sp.Symbol] = {
    ascent.GAP_DECREASE: n.delta0,
    descent.DECREASE: n.Delta,
    restart.APPROACH: restart.FIRST,
    moreau.ENVELOPE_DECREASE: n.Deltabar,
}
