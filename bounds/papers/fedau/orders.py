r"""Inequalities that must hold between the forms of Wang & Ji (2024), and in which direction they move."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sympy as sp
from sympy import Integer, Rational, Symbol, log

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import Limit, at_most, with_statements
from fedbounds.bounds.audit.sums import one, substitute_terms, terms_of, times
from fedbounds.bounds.papers.fedau import special_cases
from fedbounds.bounds.papers.fedau.corollaries import GLOBAL_STEPS
from fedbounds.bounds.papers.fedau.harmonic import HarmonicNumber
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.results import CAPS
from fedbounds.bounds.papers.fedau.special_cases import alike, kappa, s, steps
from fedbounds.bounds.theory.result import Term

delta, eta, F, G, gamma, I, K, L, N, p, Q, R = n.delta, n.eta, n.F, n.G, n.gamma, n.I, n.K, n.L, n.N, n.p, n.Q, n.R
rate, sigma, T, W = n.rate, n.sigma, n.T, n.W

ell, h, lam = Symbol("log T", positive=True), Symbol("H_(T-1)", nonnegative=True), Symbol("log 2", positive=True)
u, v = Symbol("(1-p)^(2K)", nonnegative=True), Symbol("(1-p)^(2s)", nonnegative=True)
ONE = Integer(1)
EXPLICIT = terms_of(special_cases.THEOREM_2, "explicit")
RARE = Relation(p, ONE)
LOG_2 = (Relation(Rational("0.693147"), lam), Relation(lam, Rational("0.693148")), Relation(lam, ell))
HARMONIC = Relation(h, ell + 1)
CUT = (Relation(u, ONE), Relation(ONE, K), RARE, HARMONIC)
SCALED = {gamma: Symbol("a", positive=True) / (L * I)}  # the constants see gamma through a = gamma L I only
LETTERS = {log(T): ell, HarmonicNumber(T - 1): h, log(2): lam}


def lettered(terms: Sequence[Term], **values: sp.Expr) -> tuple[Term, ...]:
    """The terms where all clients are alike, with letters for what is not rational."""
    special = alike(terms, {K: values["K"]} if "K" in values else {})
    powers = {(1 - p) ** (2 * K): u, (1 - p) ** (2 * K + 2 * s): u * v, (1 - p) ** (2 * T): u}
    letters = tuple(Term(t.name, t.expression.replace(_power, _expanded).xreplace(powers)) for t in special)
    return substitute_terms(letters, LETTERS)


def _power(e: sp.Basic) -> bool:
    return isinstance(e, sp.Pow) and not e.exp.is_number


def _expanded(e: sp.Pow) -> sp.Expr:
    return sp.Pow(e.base, sp.expand(e.exp))


def cut(form: str, **values: sp.Expr) -> tuple[Term, ...]:
    """A form of Theorem 3 in letters; K <= T, so that min(K, T) = K."""
    terms = substitute_terms(terms_of(special_cases.THEOREM_3, form), {sp.Min(K, T): K})
    return lettered(terms, **values)


def summed(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms as one."""
    return one(sp.Add(*(t.expression for t in terms)))


def product(terms: Sequence[Term]) -> tuple[Term, ...]:
    """With kappa = gamma eta."""
    return substitute_terms(terms, {eta: kappa / gamma})


def rising(name: str, letter: sp.Symbol) -> Limit:
    """Theorem 2 increases in a letter."""
    return Limit(
        f"theorem-2-increases-with-{name}",
        f"the explicit Theorem 2 increases in {letter}",
        EXPLICIT,
        substitute_terms(EXPLICIT, {letter: letter + s}),
        "<=",
    )


SECOND_SMALLER = Relation(Q * delta**2 * T, 4 * L * F * N)  # than the first branch, at sigma = 0
THIRD_SMALLER = Relation(N * delta**2 * T, 729 * L * F * Q)
lemma_b_7_1 = partial(terms_of, special_cases.LEMMA_B_7_1)
ORDERS = (
    *(
        rising(name, letter)
        for name, letter in (
            ("the-initial-gap", F),
            ("noise", sigma),
            ("divergence", delta),
            ("the-gradient-bound", G),
            ("the-weight-error", W),
            ("the-second-moment", Q),
        )
    ),
    *with_statements(
        {
            "the explicit Theorem 2 decreases in T at fixed W": at_most(
                "theorem-2-decreases-with-rounds", substitute_terms(EXPLICIT, {T: T + s}), EXPLICIT
            ),
            "the explicit Theorem 2 increases in gamma at fixed gamma eta": at_most(
                "theorem-2-increases-with-local-steps-size",
                product(EXPLICIT),
                substitute_terms(product(EXPLICIT), {gamma: gamma + s}),
            ),
        }
    ),
    *(
        Limit(
            f"printed-{result.key.partition('/')[2]}-order",
            f"the explicit form is at most {factor} times the printed order",
            terms_of(result, "explicit"),
            times(factor, terms_of(result, "printed")),
            "<=",
        )
        for result, factor in ((special_cases.THEOREM_2, 180), (special_cases.THEOREM_2_OPTION_1, 360))
    ),
    *(
        Limit(
            f"printed-{result.key.partition('/')[2]}-order",
            f"repaired:constant is at most {factor} times the printed order",
            substitute_terms(terms_of(result, "repaired:constant"), LETTERS),
            times(factor, substitute_terms(terms_of(result, "printed"), LETTERS)),
            "<=",
            facts=LOG_2,
        )
        for result, factor in ((special_cases.COROLLARY_4, 2538), (special_cases.COROLLARY_4_OPTION_1, 5076))
    ),
    *(
        Limit(
            f"corollary-4-{name}-branch",
            f"sigma = 0: where the {name} branch of gamma eta is less than the first, Theorem 2 is at most the "
            "explicit Corollary 4",
            substitute_terms(EXPLICIT, steps(branch)),
            terms_of(special_cases.COROLLARY_4, "explicit"),
            "<=",
            at={sigma: Integer(0)},
            facts=(fact,),
        )
        for name, branch, fact in (
            ("second", GLOBAL_STEPS[1], SECOND_SMALLER),
            ("third", GLOBAL_STEPS[2], THIRD_SMALLER),
        )
    ),
    *(
        Limit(
            f"{result.key.partition('/')[2]}-sharp-below-explicit",
            "the sharp form is at most the explicit one at every admissible setting",
            terms_of(result, "sharp"),
            terms_of(result, "explicit"),
            "<=",
            at=SCALED,
            facts=CAPS,
        )
        for result in (special_cases.THEOREM_2, special_cases.THEOREM_2_OPTION_1)
    ),
    *with_statements(
        {
            "delta = 0, first branches: Theorem 2 is at most the explicit Corollary 4": at_most(
                "corollary-4-no-divergence",
                summed(substitute_terms(EXPLICIT, steps(GLOBAL_STEPS[0]))),
                summed(terms_of(special_cases.COROLLARY_4, "explicit")),
                at={delta: Integer(0)},
            ),
            "K <= T: the sharp Theorem 3 is at most sharp:per-client": at_most(
                "theorem-3-sharp-below-per-client", cut("sharp"), cut("sharp:per-client"), facts=CUT
            ),
            "sharp:per-client is at most the explicit Theorem 3": at_most(
                "theorem-3-per-client-below-explicit", cut("sharp:per-client"), cut("explicit"), facts=CUT
            ),
            "K >= T: the sharp Theorem 3 is at most the explicit one": at_most(
                "theorem-3-no-cut-off-below-explicit",
                lettered(terms_of(special_cases.THEOREM_3, "sharp"), K=T + s),
                summed(substitute_terms(cut("explicit"), {K: T + s, u: Integer(0)})),
                facts=(Relation(u, ONE), RARE, HARMONIC),
            ),
            "the first term of the explicit Theorem 3 increases in K": at_most(
                "theorem-3-variance-increases-with-the-cut-off", cut("explicit")[:1], cut("explicit", K=K + s)[:1]
            ),
            "the second term of the explicit Theorem 3 decreases in K": at_most(
                "theorem-3-bias-decreases-with-the-cut-off",
                cut("explicit", K=K + s)[1:],
                cut("explicit")[1:],
                facts=(Relation(v, ONE),),
            ),
            "a cut-off only takes variance away": at_most(
                "interval-variance-below-no-cut-off",
                substitute_terms(
                    terms_of(special_cases.LEMMA_B_6_1_VARIANCE, "printed"),
                    {(1 - rate) ** (2 * K): v**2, (1 - rate) ** K: v},
                ),
                terms_of(special_cases.LEMMA_B_6_1_VARIANCE, "explicit"),
                facts=(Relation(ONE, K),),
            ),
            "where log_c T is whole, the explicit Lemma B.7.1 is at most the repaired one": at_most(
                "lemma-b.7.1-whole-log",
                substitute_terms(lemma_b_7_1("explicit"), LETTERS),
                substitute_terms(lemma_b_7_1("repaired"), LETTERS),
            ),
            "where R log T >= 1, the repaired Lemma B.7.1 is at most the one with the constant 4 + 7/log 2": at_most(
                "lemma-b.7.1-constant",
                substitute_terms(lemma_b_7_1("repaired"), LETTERS),
                substitute_terms(lemma_b_7_1("repaired:constant"), LETTERS),
                facts=(*LOG_2, Relation(ONE, R * ell)),
            ),
            "omega = 1/p: Q = 1/p >= 1, with equality where everybody always takes part": at_most(
                "known-weights-cost-something", one(1), one(1 / p), facts=(RARE,), source="Appendix A.3"
            ),
            "the explicit Theorem 2 is convex in gamma eta: its second derivative is 16 F/(gamma eta)^3/(I T)": at_most(
                "theorem-2-convex-in-the-global-step",
                one(0),
                one(sp.diff(summed(product(EXPLICIT))[0].expression, kappa, 2)),
            ),
        }
    ),
)
