"""Remark 5 and the time budget: Theorem 1 at a step size, at a number of rounds, and for many rounds."""

from __future__ import annotations

from sympy import sqrt

from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.derivations import Leading, Specialize
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.papers.tdcd import remarks
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.results import SYNCHRONIZED, THEOREM_1

AVERAGED = measure_symbol(SYNCHRONIZED)
A_PRIORI = f"{THEOREM_1.key}[repaired:B0inf]"
NO_VECTORS = ProofSetting("nothing: constants alone", {})

c = Chain(NO_VECTORS, "for every R that satisfies the condition", (THEOREM_1,))
for name, step, enough in (
    ("c", remarks.SCALED, remarks.ENOUGH),
    ("best", remarks.BEST / (n.Q * sqrt(n.R)), remarks.ENOUGH_FOR_BEST),
):
    c[name, "Theorem 1 at this step size"] = by(
        Specialize(((n.eta, step),), prescribes=((n.eta, step),)), A_PRIORI, enough
    )
CONSTANTS = c.proof(remarks.REMARK_5.key, remarks.REMARK_5, {"explicit": "c", "explicit:best-c": "best"})

c = Chain(NO_VECTORS, "for large R", (remarks.REMARK_5,))
leading = 4 * (n.Deltainf / n.c + n.c * n.L * n.S) / sqrt(n.R)
c["rate", "its leading term"] = by(
    le(AVERAGED, leading), Leading(1 / sqrt(n.R), n.R, (n.L, n.Deltainf, n.S, n.c)), f"{remarks.REMARK_5.key}[explicit]"
)
RATE = c.proof(f"{remarks.REMARK_5.key}-rate", remarks.REMARK_5, {"printed": "rate"})


def within_time() -> Proof:
    """Every form at the rounds that fit into the time."""
    c = Chain(NO_VECTORS, "for every time in which a round fits", (THEOREM_1,))
    for form in remarks.WALL_CLOCK.forms:
        c[form.name, "Theorem 1 with so many rounds"] = by(
            Specialize(((n.R, remarks.ROUNDS_IN_TIME),)),
            f"{THEOREM_1.key}[{form.name}]",
            *(*THEOREM_1.form(form.name).conditions, remarks.ONE_ROUND),
        )
    return c.proof(
        remarks.WALL_CLOCK.key, remarks.WALL_CLOCK, {form.name: form.name for form in remarks.WALL_CLOCK.forms}
    )


PROOFS = (CONSTANTS, RATE, within_time())
