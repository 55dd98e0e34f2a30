# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false, reportMissingTypeArgument=false
# sympy types its operators as unions
r"""Appendix A.3: known participation statistics, $\omega_t^n=1/p_n$.

No round has a weight error, so what multiplies it, the gradient included, is gone: neither option of Assumption 5 is
needed, and the constants of Option 2 remain. $Q_t=\frac1N\sum_n\frac1{p_n}$ in every round, which is $\frac NS$
where every $p_n$ is $\frac SN$.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sympy import Add, Expr, Integer, Rational, Symbol, sqrt

from bounds.assumptions import Assumption
from bounds.audit.axioms import Assumed
from bounds.audit.claim import Relation
from bounds.audit.derivations import Leading, Specialise
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Step
from bounds.papers.fedau.assumptions import EQUAL_RATES, INVERSE_RATES, PAST_WEIGHTS, SURE_Q
from bounds.papers.fedau.corollaries import (
    APPENDIX_A_3,
    APPENDIX_A_3_UNEQUAL,
    COROLLARY_4,
    INVERSE_MEAN,
    KNOWN_MOMENT,
    KNOWN_Q,
)
from bounds.papers.fedau.lemmas import GRADIENT_GROWTH
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.proof.corollary import HALF_CONSTANT, LEAST, explicit_steps, sharp_steps
from bounds.papers.fedau.proof.drift import G, round_setting
from bounds.papers.fedau.proof.theorem import EIGHTH, Option, option_steps
from bounds.papers.fedau.proof.weights import NO_VECTORS
from bounds.papers.fedau.results import EXPLICIT, SLOPE, THEOREM_2, theorem_terms, tight_terms
from bounds.result import Term

L, F, I, T, Q, W = n.L, n.F, n.I, n.T, n.Q, n.W
sigma, delta = n.sigma, n.delta
WEIGHT = Symbol("[omega_t^n]", nonnegative=True)
NO_ERROR = Relation(n.Wt, Integer(0))
OPTION = Option(THEOREM_2, Integer(0), NO_ERROR, INVERSE_RATES, SLOPE, EIGHTH, Rational(3, 2) * GRADIENT_GROWTH * G)
DISCHARGED = ((SURE_Q.name, Relation(n.Qt, Q)), (PAST_WEIGHTS.name, Relation(WEIGHT, 1 / n.p)))
ITSELF = ((Q, Q),)  # it stays a letter; the caps of the theorem are discharged here
LOCAL_CAP, *GLOBAL_CAPS = (f"{COROLLARY_4.key}/{name}" for name in ("C2", "C4", "C5"))


def known(name: str, says: str, left: Expr, right: Expr, assumption: Assumption = INVERSE_RATES) -> Step:
    """What known rates say at once."""
    return Step(
        name,
        says,
        Relation(left, right, "=="),
        Assumed(left, right, (assumption.name,), op="=="),
        (assumption,),
    )


def without_error(suffix: str, source: str, terms: tuple[Term, ...]) -> Iterator[Step]:
    """Theorem 2's bound for known rates, and what remains of it without weight error."""
    error = next(t.expression for t in terms if t.name == "weight error")
    bound = Add(*(t.expression for t in terms))
    yield Step(
        f"A4{suffix}",
        "the theorem for these weights; all caps hold at these steps",
        Relation(LEAST, bound),
        Specialise(ITSELF, DISCHARGED),
        (source, "A1b", "A2", LOCAL_CAP, *GLOBAL_CAPS, KNOWN_MOMENT),
    )
    yield Step(
        f"A5{suffix}",
        "without weight error",
        Relation(LEAST, Add(*(t.expression for t in terms if t.name != "weight error"))),
        Combine((1, error / W, 0, 0)),
        (f"A4{suffix}", "A3", LOCAL_CAP, GLOBAL_CAPS[1]),
    )


SHARP = tight_terms(SLOPE, Integer(0))
UNEQUAL_PROOF = Proof(
    APPENDIX_A_3_UNEQUAL.key,
    round_setting("f"),
    (
        Step("T2", "the gradient keeps 1/8", Relation(EIGHTH, SLOPE), Combine((1,)), (f"{THEOREM_2.key}/T2",)),
        *(
            replace(step, says="no weight error in any round") if step.id == "T0" else step
            for step in option_steps(OPTION)
            if step.id != "T8"
        ),
        known("A1", "Q_t is the mean of 1/p_n, as p_n (1/p_n)^2 = 1/p_n", n.Qt, INVERSE_MEAN),
        Step("A1b", "which is at most Q", Relation(n.Qt, Q), Combine((1,)), ("A1", KNOWN_MOMENT)),
        known("A2", "the weights do not change, so they depend on nothing", WEIGHT, 1 / n.p),
        known("A3", "p_n omega_t^n = 1 in every round", W, Integer(0)),
        *without_error("", "T7", theorem_terms(*EXPLICIT, gradient=Integer(0))),
        *explicit_steps(APPENDIX_A_3_UNEQUAL, "A5", 1, Integer(0), (), Integer(0)),
        *without_error("-sharp", "T7-sharp", SHARP),
        *sharp_steps(
            "A5-sharp",
            tuple(t.expression for t in SHARP if t.name != "weight error"),
            (LOCAL_CAP, GLOBAL_CAPS[1]),
        ),
    ),
    APPENDIX_A_3_UNEQUAL,
    {"explicit": "C11", "sharp": "C19"},
)
RATE = APPENDIX_A_3.form("printed").bound.doit()
LEADING = HALF_CONSTANT * sqrt(L * F) * (sigma / sqrt(I) + delta)


def at_equal_rates(name: str, form: str) -> Step:
    """A form of the bound at Q = N/S, which sets the steps as well."""
    unequal = APPENDIX_A_3_UNEQUAL.form(form)
    steps = tuple((n[step].symbol, value.xreplace({Q: KNOWN_Q})) for step, value in unequal.prescribes.items())
    return Step(
        name,
        f"the {form} bound at Q = N/S",
        Relation(LEAST, APPENDIX_A_3.form(form).bound.doit()),
        Specialise(((Q, KNOWN_Q),), prescribes=steps),
        (f"{APPENDIX_A_3_UNEQUAL.key}[{form}]", "E1"),
    )


EQUAL_PROOF = Proof(
    APPENDIX_A_3.key,
    NO_VECTORS,
    (
        known("E1", "the mean of 1/p_n is N/S", INVERSE_MEAN, KNOWN_Q, EQUAL_RATES),
        at_equal_rates("E2", "explicit"),
        at_equal_rates("E3", "sharp"),
        Step(
            "E4",
            "its leading term for large T",
            Relation(LEAST, LEADING * RATE),
            Leading(RATE, T, (L, F, I, delta, sigma)),
            ("E2",),
        ),
    ),
    APPENDIX_A_3,
    {"explicit": "E2", "sharp": "E3", "printed": "E4"},
)
PROOFS = (UNEQUAL_PROOF, EQUAL_PROOF)
