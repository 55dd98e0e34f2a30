# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false, reportMissingTypeArgument=false
# sympy types its operators as unions
r"""Appendix A.3: known participation statistics, $\omega_t^n=1/p_n$ and $p_n=S/N$.

No round has a weight error, so what multiplies it, the gradient included, is gone: neither option of Assumption 5 is
needed, and the constants of Option 2 remain. $Q=\frac NS$.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sympy import Add, Expr, Integer, Rational, Symbol, sqrt

from bounds.audit.axioms import Assumed
from bounds.audit.claim import Relation
from bounds.audit.derivations import Leading, Specialise
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Step
from bounds.audit.transcendental import Opened
from bounds.papers.fedau.assumptions import INVERSE_RATES, PAST_WEIGHTS, SURE_Q
from bounds.papers.fedau.corollaries import APPENDIX_A_3, GLOBAL_STEPS, KNOWN_Q
from bounds.papers.fedau.lemmas import GRADIENT_GROWTH
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.proof.corollary import HALF_CONSTANT, LEAST, LOCAL_STEPS, local, product, sharp_steps
from bounds.papers.fedau.proof.drift import G, round_setting
from bounds.papers.fedau.proof.theorem import EIGHTH, Option, option_steps
from bounds.papers.fedau.results import EXPLICIT, SLOPE, THEOREM_2, theorem_terms, tight_terms
from bounds.result import Term

L, F, I, N, T, S, Q, W = n.L, n.F, n.I, n.N, n.T, n.S, n.Q, n.W
gamma, eta, sigma, delta = n.gamma, n.eta, n.sigma, n.delta
WEIGHT = Symbol("[omega_t^n]", nonnegative=True)
AT_Q = {Q: KNOWN_Q}
BRANCHES = tuple(b.xreplace(AT_Q) for b in GLOBAL_STEPS)
UNIT = sqrt(L * F / (S * I * T))
NO_ERROR = Relation(n.Wt, Integer(0))
OPTION = Option(APPENDIX_A_3, Integer(0), NO_ERROR, INVERSE_RATES, SLOPE, EIGHTH, Rational(3, 2) * GRADIENT_GROWTH * G)
DISCHARGED = ((SURE_Q.name, Relation(n.Qt, Q)), (PAST_WEIGHTS.name, Relation(WEIGHT, 1 / n.p)))
CAPS_HOLD = ("C2", "C4", "C5")


def known(name: str, says: str, left: Expr, right: Expr, op: str = "<=") -> Step:
    """What omega_t^n = 1/p_n and p_n = S/N say at once."""
    return Step(
        name, says, Relation(left, right, op), Assumed(left, right, (INVERSE_RATES.name,), op=op), (INVERSE_RATES,)
    )


def without_error(suffix: str, source: str, terms: tuple[Term, ...]) -> Iterator[Step]:
    """Theorem 2's bound at Q = N/S, and what remains of it without weight error."""
    bound = Add(*(t.expression for t in terms)).xreplace(AT_Q)
    rest = Add(*(t.expression for t in terms if t.name != "weight error")).xreplace(AT_Q)
    of_error = next(t.expression for t in terms if t.name == "weight error").xreplace(AT_Q) / W
    yield Step(
        f"A4{suffix}",
        "the theorem at Q = N/S; all caps hold at these steps",
        Relation(LEAST, bound),
        Specialise(tuple(AT_Q.items()), DISCHARGED),
        (source, "A1", "A2", *CAPS_HOLD),
    )
    yield Step(
        f"A5{suffix}",
        "without weight error",
        Relation(LEAST, rest),
        Combine((1, of_error, 0, 0)),
        (f"A4{suffix}", "A3", "C2", "C5"),
    )


THEOREM = theorem_terms(*EXPLICIT, gradient=Integer(0))
SHARP = tight_terms(SLOPE, Integer(0))
SHARP_WITHOUT_ERROR = tuple(t.expression.xreplace(AT_Q) for t in SHARP if t.name != "weight error")
LAST = L / S * (Rational(17, 4) * sigma**2 + Rational(27, 2) * I * delta**2)
AT_STEPS = (
    8 * F / (I * T) * Add(*(1 / b for b in BRANCHES))
    + 20 * sigma**2 / (I * T)
    + 120 * delta**2 / T
    + LAST * BRANCHES[0]
)
DRIFT = 20 * (sigma**2 + 6 * I * delta**2) * L**2 * I
RATE = APPENDIX_A_3.form("printed").bound.doit()
LEADING = HALF_CONSTANT * sqrt(L * F) * (sigma / sqrt(I) + delta)
KNOWN_PROOF = Proof(
    APPENDIX_A_3.key,
    round_setting("f"),
    (
        Step("T2", "the gradient keeps 1/8", Relation(EIGHTH, SLOPE), Combine((1,)), (f"{THEOREM_2.key}/T2",)),
        *(
            replace(step, says="no weight error in any round") if step.id == "T0" else step
            for step in option_steps(OPTION)
            if step.id != "T8"
        ),
        known("A1", "Q = N/S, as p_n (1/p_n)^2 = N/S", n.Qt, KNOWN_Q),
        known("A2", "the weights do not change, so they depend on nothing", WEIGHT, 1 / n.p, "=="),
        known("A3", "p_n omega_t^n = 1 in every round", W, Integer(0), "=="),
        local("C1", 0),
        local("C2", 1),
        product("C3", 0, BRANCHES),
        product("C4", 1, BRANCHES),
        product("C5", 2, BRANCHES),
        product("C6", None, BRANCHES),
        *without_error("", "T7", THEOREM),
        Step(
            "C9",
            "each term at the branch that bounds it",
            Relation(LEAST, AT_STEPS),
            Opened((1, DRIFT * (LOCAL_STEPS[0] + gamma), LAST, 8 * F / (I * T))),
            ("A5", "C1", "C3", "C6"),
        ),
        Step(
            "C11",
            "21.5 = 8 + 13.5, as 17/4 <= 27/2",
            Relation(LEAST, APPENDIX_A_3.form("explicit").bound.doit()),
            Opened((1, HALF_CONSTANT * UNIT)),
            ("C9", "fedau/corollary-4/C10"),
        ),
        *without_error("-sharp", "T7-sharp", SHARP),
        *sharp_steps(
            "A5-sharp",
            tuple(t.expression.xreplace(AT_Q) for t in SHARP if t.name != "weight error"),
            BRANCHES,
            ("C2", "C5"),
        ),
        Step(
            "A6",
            "its leading term for large T",
            Relation(LEAST, LEADING * RATE),
            Leading(RATE, T, (L, F, I, delta, sigma)),
            ("C11",),
        ),
    ),
    APPENDIX_A_3,
    {"explicit": "C11", "sharp": "C19", "printed": "A6"},
)
PROOFS = (KNOWN_PROOF,)
