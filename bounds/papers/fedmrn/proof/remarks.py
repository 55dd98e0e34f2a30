"""Proposition 1, repaired, and Remark 2: the rates of both theorems, of the second for FedMRN's own masks."""

from typing import ClassVar

import sympy as sp
from sympy import Symbol

from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Combine
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.fedmrn.assumptions import PROGRESSIVE, RELATIVE_ERROR
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import symbols
from fedbounds.bounds.papers.fedmrn.proof.operator_rules import MeanRatio
from fedbounds.bounds.papers.fedmrn.remarks import HIDDEN, PROPOSITION_1, REMARK_2_CONVEX, REMARK_2_NONCONVEX
from fedbounds.bounds.papers.fedmrn.results import THEOREM_1, THEOREM_2, shift
from fedbounds.bounds.theory.result import Result

q, S = n.q, n.S

# --- Proposition 1 --------------------------------------------------------------------------------------------------

ONE_UPDATE = ProofSetting.of(
    "mean over the masks of one local step",
    Atom("u", "point", 0, "an update"),
    Atom("m", "point", 1, "the update masked as a whole"),
    Atom("pm", "point", 1, "the update progressively masked in the tau-th local step"),
)
u, m, pm = (Vec.atom(name) for name in ("u", "m", "pm"))
tau = Symbol("tau", integer=True, positive=True)
AVERAGED = measure_symbol(PROPOSITION_1.measure)

c = Chain(ONE_UPDATE, "for every update and local step tau")
c["P1", "a coordinate is masked with probability tau/S, and else without error"] = by(
    eq(square(pm - u), tau / S * square(m - u)), PROGRESSIVE
)
c["P2", "Assumption 4, squared"] = le(square(m - u), q**2 * square(u)), RELATIVE_ERROR
c["P3", "both together"] = le(square(pm - u), tau / S * q**2 * square(u)), {"P1": 1, "P2": tau / S}
c["P4", "the mean over the local steps of a round, where the ratio is largest", ""] = by(
    le(AVERAGED, PROPOSITION_1.form("repaired").bound), MeanRatio(square(pm - u), square(u), AVERAGED, tau, S), "P3"
)
PROGRESSIVE_PROOF = c.proof(PROPOSITION_1.key, PROPOSITION_1, {"repaired": "P4"})

# --- Remark 2 -------------------------------------------------------------------------------------------------------


class UpToConstants(Combine):
    """A combination whose end is an O(.)."""

    hidden: ClassVar[tuple[sp.Symbol, ...]] = (*HIDDEN, q)


def rate_proof(result: Result, theorem: Result, name: str, factor: sp.Expr) -> Proof:
    """The theorem's bound is at most its value at T = 1, with N for N - K, times a factor and the rate."""
    source, rate = theorem.form(name), result.form()
    c, first = Chain(symbols.SETTING, "for every T", (theorem,)), source.bound.xreplace({n.T: sp.S.One, n.N - n.K: n.N})
    c["R", "no term falls more slowly than the rate"] = by(
        le(measure_symbol(theorem.measure), factor * first * rate.bound),
        UpToConstants,
        {f"{theorem.key}[{source.name}]": 1},
        *source.conditions,
    )
    return c.proof(result.key, result, {rate.name: "R"})


PROOFS = (
    PROGRESSIVE_PROOF,
    rate_proof(REMARK_2_CONVEX, THEOREM_1, "repaired", shift),
    rate_proof(REMARK_2_NONCONVEX, THEOREM_2, "sharp:masks", sp.S.One),
)
