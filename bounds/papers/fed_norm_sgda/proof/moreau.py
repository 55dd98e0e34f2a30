r"""Lemma C.1: one round of descent of the Moreau envelope, eqs. (60) to (64)."""

import sympy as sp
from sympy import Integer, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.rules import Gram, Unfolded
from fedbounds.bounds.audit.vectors import Vec, inner, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, SAMPLING
from fedbounds.bounds.papers.fed_norm_sgda.composites import SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_1
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import given_start, of_objective, sample_mean
from fedbounds.bounds.papers.fed_norm_sgda.proof.descent import MOVE
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import EACH, IN_X, NOISY
from fedbounds.bounds.papers.fed_norm_sgda.proof.snapshot import I_1_SQUARED, SETTING, SNAPSHOT_PROOF, TO_OWN
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import DELTA, PAPER, Gammax, L, X, nu, x0

xb = Vec.atom("xb")
AWAY = xb - x0  # from x_t to its proximal point
ENVELOPE_DECREASE = Symbol("[Moreau envelope at x_t less at x_{t+1}]", real=True)
FALL = Symbol("[F~(x_t, y_t) - F~(xb, y_t)]", real=True)
AT_PROX = Symbol("[Phi~(xb) - F~(xb, y_t)]", nonnegative=True)
TO_PROX = Symbol("[Phi~(x_t) - Phi~(xb)]", real=True)
GRADIENT = Symbol("[|grad of the Moreau envelope at x_t|^2]", nonnegative=True)
HERE = SETTING.with_symbols({FALL: TO_PROX + AT_PROX - DELTA, GRADIENT: 4 * L**2 * square(AWAY)})
STALE = SNAPSHOT_PROOF.id


CHANGED = sp.expand(L / 4 * square(AWAY) + square(IN_X.H - IN_X.F) / L)

s = Chain(HERE, EACH, (SNAPSHOT_PROOF,))
s["60", "(60): the old proximal point at the new x"] = ByMeaning(
    "OldProximalPoint",
    *(-ENVELOPE_DECREASE, sp.expand(L * square(AWAY - MOVE) - L * square(AWAY))),
    "the Moreau envelope is a minimum, attained at the proximal point; the server's step",
)
s["61-sample", "(61): the sample averaged out"] = sample_mean("sx", AWAY), SAMPLING
s["61-noise", "(61): the noise averaged out"] = given_start(IN_X.n, AWAY), *NOISY
s["64a", "F~ is Lf-smooth in x"] = of_objective("Fx", AWAY, FALL), SIMPLEX, JOINTLY_SMOOTH
s["64c", "the proximal point"] = ByMeaning(
    "ProximalPoint", sp.expand(L * square(AWAY)), TO_PROX, "the proximal point is a minimizer"
)
s["64", "(64): towards the proximal point F~ falls"] = by(
    le(inner(AWAY, IN_X.F), sp.expand(DELTA - L / 2 * square(AWAY))), Unfolded, {"64a": 1, "64c": 1}
)
s["62", "(62): Young for what the local models change"] = le(inner(AWAY, IN_X.H - IN_X.F), CHANGED), Gram()
for suffix, price in (("", nu), ("-printed", Integer(1))):
    bound = price * Gammax**2 * L * I_1_SQUARED + 2 * Gammax * (X + L * DELTA)
    s[f"C.1{suffix}", "Lemma C.1" + (" as printed" if suffix else " at the price nu")] = by(
        le(-ENVELOPE_DECREASE, sp.expand(bound - Gammax / 8 * GRADIENT)),
        *(Unfolded, f"60 61-sample 61-noise 64 62 {STALE}/D4x {STALE}/63{suffix}"),
    )
ENDS, TO_GRADSQ = {"printed": "C.1-printed", "repaired": "C.1"}, {**TO_OWN, GRADIENT: n.gradsq}
MOREAU_PROOF = s.proof(f"{PAPER}/lemma-c.1", LEMMA_C_1, ENDS, -ENVELOPE_DECREASE, TO_GRADSQ)
