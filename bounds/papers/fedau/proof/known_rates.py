r"""Appendix A.3: known participation statistics, $\omega_t^n=1/p_n$ and $Q_t=\frac1N\sum_n\frac1{p_n}$."""

from sympy import Add, Expr, Integer, Rational, Symbol, sqrt

from fedbounds.bounds.audit.axioms import Assumed
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import Leading, Specialize
from fedbounds.bounds.papers.fedau import corollaries
from fedbounds.bounds.papers.fedau.assumptions import EQUAL_RATES, INVERSE_RATES, PAST_WEIGHTS, SURE_Q
from fedbounds.bounds.papers.fedau.lemmas import GRADIENT_GROWTH
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.proof.corollary import (
    COROLLARY_PROOF,
    HALF_CONSTANT,
    LEAST,
    enter_explicit,
    enter_sharp,
)
from fedbounds.bounds.papers.fedau.proof.descent import DESCENT_OF_F, DESCENT_PROOF
from fedbounds.bounds.papers.fedau.proof.drift import G, round_setting
from fedbounds.bounds.papers.fedau.proof.theorem import EIGHTH, THEOREM_PROOF, Option, enter_option
from fedbounds.bounds.papers.fedau.proof.weights import NO_VECTORS
from fedbounds.bounds.papers.fedau.results import EXPLICIT, SLOPE, THEOREM_2, theorem_terms, tight_terms
from fedbounds.bounds.theory.result import Term

L, F, I, T, Q, W, sigma, delta = n.L, n.F, n.I, n.T, n.Q, n.W, n.sigma, n.delta
WEIGHT = Symbol("[omega_t^n]", nonnegative=True)
NO_ERROR = Relation(n.Wt, Integer(0))
BY_WEIGHTS = Rational(3, 2) * GRADIENT_GROWTH * G
OPTION = Option(
    THEOREM_2, Integer(0), NO_ERROR, INVERSE_RATES, SLOPE, EIGHTH, BY_WEIGHTS, "no weight error in any round"
)
DISCHARGED = ((SURE_Q.name, Relation(n.Qt, Q)), (PAST_WEIGHTS.name, Relation(WEIGHT, 1 / n.p)))
ITSELF = ((Q, Q),)  # it stays a symbol; the caps of the theorem are discharged here
LOCAL_CAP, *GLOBAL_CAPS = (f"{corollaries.COROLLARY_4.key}/{name}" for name in ("C2", "C4", "C5"))


def enter_without_error(c: Chain, suffix: str, source: str, terms: tuple[Term, ...]) -> tuple[Expr, ...]:
    """Theorem 2's bound for known rates, and what remains of it without weight error, which is returned."""
    error = next(t.expression for t in terms if t.name == "weight error")
    others = tuple(t.expression for t in terms if t.name != "weight error")
    caps = (LOCAL_CAP, *GLOBAL_CAPS)
    c[f"A4{suffix}", "the theorem for these weights; all caps hold at these steps"] = by(
        Specialize(ITSELF, DISCHARGED), *(source, "A1b A2", *caps, corollaries.KNOWN_MOMENT)
    )
    c[f"A5{suffix}", "without weight error"] = by(
        le(LEAST, Add(*others)), {f"A4{suffix}": 1, "A3": error / W, LOCAL_CAP: 0, GLOBAL_CAPS[1]: 0}
    )
    return others


def unequal_chain() -> Chain:
    """Theorem 2's chain for known rates, then Corollary 4's, with Q for the mean of their inverses."""
    c = Chain(round_setting("f"), cites=(DESCENT_PROOF, DESCENT_OF_F, THEOREM_PROOF, COROLLARY_PROOF))
    c["T2", "the gradient keeps 1/8"] = le(EIGHTH, SLOPE), f"{THEOREM_2.key}/T2"
    enter_option(c, OPTION)
    c["A1", "Q_t is the mean of 1/p_n, as p_n (1/p_n)^2 = 1/p_n"] = eq(n.Qt, corollaries.INVERSE_MEAN), INVERSE_RATES
    c["A1b", "which is at most Q"] = le(n.Qt, Q), {"A1": 1}, corollaries.KNOWN_MOMENT
    c["A2", "the weights do not change, so they depend on nothing"] = eq(WEIGHT, 1 / n.p), INVERSE_RATES
    c["A3", "p_n omega_t^n = 1 in every round"] = eq(W, Integer(0)), INVERSE_RATES
    enter_without_error(c, "", "T7", theorem_terms(*EXPLICIT, gradient=Integer(0)))
    enter_explicit(c, corollaries.APPENDIX_A_3_UNEQUAL, "A5", 1, Integer(0), error=Integer(0))
    others = enter_without_error(c, "-sharp", "T7-sharp", tight_terms(SLOPE, Integer(0)))
    enter_sharp(c, "A5-sharp", others, LOCAL_CAP, GLOBAL_CAPS[1])
    return c


UNEQUAL_PROOF = unequal_chain().proof(
    corollaries.APPENDIX_A_3_UNEQUAL.key, corollaries.APPENDIX_A_3_UNEQUAL, {"explicit": "C11", "sharp": "C19"}
)


def equal_chain() -> Chain:
    """The same at Q = N/S, which sets the steps as well."""
    c = Chain(NO_VECTORS, cites=(corollaries.APPENDIX_A_3_UNEQUAL,))
    c["E1", "the mean of 1/p_n is N/S, p_n = S/N being a probability"] = by(
        Assumed(corollaries.INVERSE_MEAN, corollaries.KNOWN_Q, (EQUAL_RATES.name,), "=="),
        *(EQUAL_RATES, corollaries.PROBABILITY),
    )
    for name, form in (("E2", "explicit"), ("E3", "sharp")):
        prescribed = corollaries.APPENDIX_A_3_UNEQUAL.form(form).prescribes.items()
        steps = tuple((n[step].symbol, value.xreplace({Q: corollaries.KNOWN_Q})) for step, value in prescribed)
        c[name, f"the {form} bound at Q = N/S"] = by(
            Specialize(((Q, corollaries.KNOWN_Q),), prescribes=steps),
            *(f"{corollaries.APPENDIX_A_3_UNEQUAL.key}[{form}]", "E1", corollaries.PROBABILITY),
        )
    rate = corollaries.APPENDIX_A_3.form("printed").bound.doit()
    leading = HALF_CONSTANT * sqrt(L * F) * (sigma / sqrt(I) + delta)
    c["E4", "its leading term for large T"] = by(
        le(LEAST, leading * rate), Leading(rate, T, (L, F, I, delta, sigma)), "E2", corollaries.PROBABILITY
    )
    return c


EQUAL_PROOF = equal_chain().proof(
    corollaries.APPENDIX_A_3.key, corollaries.APPENDIX_A_3, {"explicit": "E2", "sharp": "E3", "printed": "E4"}
)
PROOFS = (UNEQUAL_PROOF, EQUAL_PROOF)
