"""Special cases of Das et al. (2022) that must agree, and forms that may not exceed others."""

from collections.abc import Sequence
from functools import partial

import sympy as sp
from sympy import Integer, Rational, Symbol, sqrt

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import Limit, at_most, equal, with_statements
from fedbounds.bounds.audit.sums import one, substitute_terms, terms_of, times
from fedbounds.bounds.papers.tdcd.drift import DriftGrowth
from fedbounds.bounds.papers.tdcd.lemmas import LEMMA_2
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.remarks import BEST, LATENCY, REMARK_5, SCALED
from fedbounds.bounds.papers.tdcd.results import CAP, THEOREM_1
from fedbounds.bounds.theory.result import Condition, Term

L, Lmax, Delta, Deltainf, S, SK, Q, R, eta, c = n.L, n.Lmax, n.Delta, n.Deltainf, n.S, n.SK, n.Q, n.R, n.eta, n.c
m, x, T = Symbol("m", positive=True, integer=True), Symbol("x", positive=True), Symbol("T", positive=True)
remark_5, theorem_1 = (partial(terms_of, result) for result in (REMARK_5, THEOREM_1))
PRINTED = theorem_1("repaired")
A_PRIORI = Relation(Delta, Deltainf)
FEWER = Relation(SK, S)


def one_term(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms as one."""
    return one(sp.Add(*(term.expression for term in terms)))


def terms_at_local_steps(terms: Sequence[Term], steps: int) -> tuple[Term, ...]:
    """The terms at so many local steps, the growth of the drift written out."""
    return tuple(Term(t.name, _at_local_steps(t.expression, steps)) for t in terms)


def _at_local_steps(expression: sp.Expr, steps: int) -> sp.Expr:
    def summed(rate: sp.Expr, number: sp.Expr) -> sp.Expr:
        return sp.Add(*(((1 + rate) ** s - 1) ** 2 for s in range(int(number))))

    return expression.xreplace({Q: Integer(steps)}).replace(DriftGrowth, summed)


def condition_at_local_steps(condition: Condition, steps: int) -> Condition:
    """The same of a condition."""
    left, right = (_at_local_steps(side, steps) for side in (condition.left, condition.right))
    return Condition(left, condition.op, right, condition.why)


EQUALITIES = with_statements(
    {
        "Q steps of size eta cost what m Q steps of size eta/m do, at equal rounds": equal(
            "step-size-times-local-steps", substitute_terms(PRINTED, {eta: eta / m, Q: m * Q}), PRINTED
        ),
        "S = 0: the gap is all": equal("no-noise", PRINTED, one(4 * Delta / (eta * Q * R)), at={S: Integer(0)}),
        "R -> infinity at a given step size: the noise stays": equal(
            "many-rounds",
            PRINTED,
            one(4 * (eta * Q * L + 4 * (eta * Q * Lmax) ** 2 + 8 * (eta * Q) ** 3 * L * Lmax**2) * S),
            at={R: 1 / x},
            tends=(x, Integer(0)),
        ),
        "at the largest step size with L = Lmax: 32 L Delta/R + 13 S/16": equal(
            "largest-step-size",
            PRINTED,
            one(32 * L * Delta / R + Rational(13, 16) * S),
            at={eta: 1 / (8 * Q * L), Lmax: L},
        ),
        (
            "Q = 1: nothing drifts in the forms that count the steps, and what is left is stochastic gradient descent"
        ): equal(
            "one-local-step",
            terms_at_local_steps(theorem_1("sharp:B3"), 1),
            one((Delta / R + eta**2 * L * S) / (eta / 2 * (1 - 2 * eta * L))),
        ),
        "Q = 1: (54) says the same": equal(
            "one-local-step-kappa",
            terms_at_local_steps(theorem_1("sharp:B2"), 1),
            terms_at_local_steps(theorem_1("sharp:B3"), 1),
        ),
        "Q = 1: gradients do not drift": equal(
            "no-drift-before-a-step", terms_at_local_steps(terms_of(LEMMA_2, "sharp:growth"), 1), one(0)
        ),
        "Q = 2: they drift once, by eta Lmax times the first gradient": equal(
            "two-local-steps", terms_at_local_steps(terms_of(LEMMA_2, "sharp:growth"), 2), one((eta * Lmax) ** 2 * n.G0)
        ),
        "K_j = 1: averaging gains nothing": equal(
            "one-client-in-each-silo", theorem_1("sharp:Bind"), PRINTED, at={SK: S}
        ),
        "Remark 5 is Theorem 1 at its step size": equal(
            "remark-5-is-theorem-1",
            theorem_1("repaired:B0inf"),
            remark_5("explicit"),
            at={eta: SCALED},
            source="Remark 5",
        ),
        "at c = sqrt(Deltainf/(L S)) Remark 5 is its best form": equal(
            "remark-5-best-scale", remark_5("explicit"), remark_5("explicit:best-c"), at={c: BEST}, source="Remark 5"
        ),
        "sqrt(R) times Remark 5 tends to 4 Deltainf/c + 4 c L S": equal(
            "remark-5-many-rounds",
            times(sqrt(R), remark_5("explicit")),
            one(4 * Deltainf / c + 4 * c * L * S),
            at={R: 1 / x**2},
            tends=(x, Integer(0)),
            source="Remark 5",
        ),
        "with T = Q R iterations, four times the local steps double the leading terms of Remark 5": equal(
            "remark-5-at-equal-iterations",
            substitute_terms(substitute_terms(remark_5("explicit")[:2], {R: T / Q}), {Q: 4 * Q}),
            times(2, substitute_terms(remark_5("explicit")[:2], {R: T / Q})),
            source="Remark 5",
        ),
        "after sqrt(T) rounds, of as many local steps, the leading terms of Remark 5 are of the order T^(-1/4)": equal(
            "remark-4-in-root-t-rounds",
            substitute_terms(remark_5("explicit")[:2], {R: sqrt(T), Q: sqrt(T)}),
            one((4 * Deltainf / c + 4 * c * L * S) / sqrt(sqrt(T))),
            source="Remark 4",
        ),
        "what (82) rounds away is the difference of 1/2 and 19/32": equal(
            "nineteen-thirty-seconds", times(16, PRINTED), times(19, theorem_1("sharp:B19"))
        ),
    }
)

AGAINST = (  # the smaller one, the larger one, and what else it takes
    ("sharp:B19", "repaired", (CAP,)),
    ("sharp:B1", "repaired", (CAP,)),
    ("repaired", "repaired:B0inf", (A_PRIORI,)),
    ("sharp:Bind", "repaired", (FEWER,)),
)
ORDERS = (
    *(
        Limit(
            f"{small}-{large}".replace(":", "-"),
            f"[{small}] is at most [{large}]",
            one_term(terms_of(THEOREM_1, small)),
            one_term(terms_of(THEOREM_1, large)),
            "<=",
            facts=facts,
        )
        for small, large, facts in AGAINST
    ),
    *(
        Limit(
            f"{small}-{large}-{steps}-steps".replace(":", "-"),
            f"[{small}] is at most [{large}] with {steps} local steps",
            one_term(terms_at_local_steps(terms_of(THEOREM_1, small), steps)),
            one_term(terms_at_local_steps(terms_of(THEOREM_1, large), steps)),
            "<=",
            facts=(condition_at_local_steps(CAP, steps),),
        )
        for small, large in (("sharp:B3", "sharp:B2"), ("sharp:B2", "sharp:B1"))
        for steps in (2, 3)
    ),
    *with_statements(
        {
            "with the same step size and T = Q R, one more local step a round does not lower the bound": at_most(
                "more-local-steps-at-equal-iterations",
                substitute_terms(PRINTED, {R: T / Q}),
                substitute_terms(substitute_terms(PRINTED, {R: T / Q}), {Q: Q + 1}),
            ),
            "in a given time one local step of size eta Q does at least as well as Q of size eta": at_most(
                "one-local-step-is-best-in-time",
                substitute_terms(PRINTED, {R: n.W / LATENCY, eta: eta * Q, Q: Integer(1)}),
                substitute_terms(PRINTED, {R: n.W / LATENCY}),
                source="Section 5",
            ),
        }
    ),
)
LIMITS: tuple[Limit, ...] = (*EQUALITIES, *ORDERS)
