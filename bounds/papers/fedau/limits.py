"""Special cases and inequalities of Wang & Ji (2024)."""

from collections.abc import Mapping, Sequence
from functools import partial

import sympy as sp
from sympy import Integer, Rational, Symbol, log, sqrt

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import Limit, at_most, equal, with_statements
from fedbounds.bounds.audit.sums import one, substitute_terms, terms_of, times
from fedbounds.bounds.papers.fedau import corollaries
from fedbounds.bounds.papers.fedau.corollaries import GLOBAL_STEPS
from fedbounds.bounds.papers.fedau.harmonic import HarmonicNumber
from fedbounds.bounds.papers.fedau.lemmas import LEMMA_B_3_3, LEMMA_B_5_1
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.results import (
    CAPS,
    STEPS_1,
    THEOREM_1,
    THEOREM_2,
    THEOREM_2_OPTION_1,
    THEOREM_3,
    THEOREM_B_4_1,
)
from fedbounds.bounds.theory.client_reductions import MeanOverClients
from fedbounds.bounds.theory.result import Result, Term

L, F, I, N, T, S, gamma, eta, sigma, delta, G = n.L, n.F, n.I, n.N, n.T, n.S, n.gamma, n.eta, n.sigma, n.delta, n.G
W, Q, K, p, rate, R = n.W, n.Q, n.K, n.p, n.rate, n.R
kappa, x = Symbol("kappa", positive=True), Symbol("x", positive=True)
s = Symbol("s", nonnegative=True)
FIRST_LOCAL = 1 / (L * I * sqrt(T))  # the first branch of gamma in Corollary 4
UNBIASED = {W: Integer(0)}


def equal_clients(terms: Sequence[Term], values: Mapping[sp.Expr, sp.Expr] | None = None) -> tuple[Term, ...]:
    """The terms where all clients have one and the same p, so that means over clients are their arguments."""
    same = [Term(t.name, t.expression.replace(MeanOverClients, lambda a: a)) for t in terms]
    return substitute_terms(same, values or {})


def theorem_3_at_equal_clients(result: Result, form: str, **values: sp.Expr) -> tuple[Term, ...]:
    """A form of Theorem 3 where all clients are alike."""
    return equal_clients(terms_of(result, form), {n[name].symbol: value for name, value in values.items()})


def steps(product: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """The first branch of gamma with this gamma eta."""
    return {gamma: FIRST_LOCAL, eta: product / FIRST_LOCAL}


DRIFT_AND_NOISE = (
    8 * F / (gamma * eta * I * T)
    + 20 * gamma**2 * L**2 * I * sigma**2
    + Rational(17, 4) * gamma * eta * L * p * n.omega**2 * sigma**2
)
BEST_PRODUCT = sqrt(8 * F * N / (I * T * L * Q * (Rational(17, 4) * sigma**2 + Rational(27, 2) * I * delta**2)))
ONE_OBJECTIVE = {n.deltatilde: delta, n.V: n.Wt / N, n.Z: N * n.Qt}
NO_FIRST = {(1 - rate) ** K: Integer(0)}

corollary_4, lemma_b_6_1, lemma_b_6_1_variance, theorem_2 = (
    partial(terms_of, result)
    for result in (corollaries.COROLLARY_4, corollaries.LEMMA_B_6_1, corollaries.LEMMA_B_6_1_VARIANCE, THEOREM_2)
)
EQUALITIES = (
    *with_statements(
        {
            "omega = 1/p: every summand of W is 0": equal(
                "known-weights-have-no-error",
                one((p * n.omega - 1) ** 2),
                one(0),
                at={n.omega: 1 / p},
                source="Appendix A.3",
            ),
            "omega = 1/p with p = S/N: Q = N/S": equal(
                "known-weights-second-moment",
                substitute_terms(one(p * n.omega**2), {n.omega: 1 / p}),
                one(corollaries.KNOWN_Q),
                at={p: S / N},
                source="Appendix A.3",
            ),
        }
    ),
    *(
        Limit(
            f"{result.key.partition('/')[2]}-known-weights",
            "without weight error its term vanishes, and nothing else does",
            terms_of(result, "explicit"),
            terms_of(result, "explicit", without="weight error"),
            at=UNBIASED,
        )
        for result in (THEOREM_2, THEOREM_2_OPTION_1, corollaries.COROLLARY_4, corollaries.COROLLARY_4_OPTION_1)
    ),
    *with_statements(
        {
            "Corollary 4 with W = 0 and Q = N/S is the explicit Appendix A.3": equal(
                "appendix-a.3-from-corollary-4",
                corollary_4("explicit"),
                terms_of(corollaries.APPENDIX_A_3, "explicit"),
                at={W: Integer(0), Q: corollaries.KNOWN_Q},
            ),
            "Corollary 4 with W = 0 is the explicit Appendix A.3 at any rates, whatever G is": equal(
                "appendix-a.3-unequal-from-corollary-4",
                corollary_4("explicit"),
                terms_of(corollaries.APPENDIX_A_3_UNEQUAL, "explicit"),
                at=UNBIASED,
            ),
        }
    ),
    *(
        Limit(
            f"appendix-a.3-equal-rates-{form}",
            f"Appendix A.3 at any rates is that of equal ones where every p_n is S/N, {form}",
            equal_clients(
                substitute_terms(terms_of(corollaries.APPENDIX_A_3_UNEQUAL, form), {Q: corollaries.INVERSE_MEAN}),
                {p: S / N},
            ),
            terms_of(corollaries.APPENDIX_A_3, form),
        )
        for form in ("explicit", "sharp")
    ),
    *with_statements(
        {
            "Option 1 is twice Option 2 at G = 0": equal(
                "theorem-2-options",
                terms_of(THEOREM_2_OPTION_1, "explicit"),
                times(2, theorem_2("explicit")),
                at={G: Integer(0)},
            )
        }
    ),
    *(
        Limit(
            f"corollary-4-options-{form.partition(':')[2] or form}",
            f"Option 1 is twice Option 2 at G = 0, {form}",
            terms_of(corollaries.COROLLARY_4_OPTION_1, form),
            times(2, terms_of(corollaries.COROLLARY_4, form)),
            at={G: Integer(0)},
        )
        for form in ("explicit", "repaired", "repaired:constant")
    ),
    *with_statements(
        {
            "delta = sigma = W = 0: only 8 F/(gamma eta I T) remains": equal(
                "theorem-2-gradient-descent",
                theorem_2("explicit"),
                one(8 * F / (gamma * eta * I * T)),
                at={delta: Integer(0), sigma: Integer(0), W: Integer(0), G: Integer(0)},
            ),
            "N = 1, delta = W = 0: local SGD with skipped rounds, Q = p omega^2": equal(
                "theorem-2-one-client",
                theorem_2("explicit"),
                one(DRIFT_AND_NOISE),
                at={N: Integer(1), delta: Integer(0), W: Integer(0), Q: p * n.omega**2},
            ),
            (
                "at fixed gamma the bound is stationary at gamma eta = sqrt(8 F N/(I T L Q (17/4 sigma^2 + 27/2 I "
                "delta^2)))"
            ): equal(
                "theorem-2-best-global-step",
                one(
                    sp.diff(
                        sp.Add(*(t.expression for t in substitute_terms(theorem_2("explicit"), {eta: kappa / gamma}))),
                        kappa,
                    )
                ),
                one(0),
                at={kappa: BEST_PRODUCT},
            ),
            "sigma = 0, first branches: Theorem 2 is Corollary 4 without the terms of the other branches": equal(
                "corollary-4-no-noise",
                substitute_terms(theorem_2("explicit"), steps(corollaries.GLOBAL_STEPS[0])),
                corollary_4("explicit", without="initial gap"),
                at={sigma: Integer(0)},
            ),
        }
    ),
    *(
        Limit(
            f"lemma-b.5.1-{form}",
            f"Lemma B.3.3 with varphi_n = 1/N and delta for deltatilde is Lemma B.5.1, {form}",
            terms_of(LEMMA_B_3_3, form),
            terms_of(LEMMA_B_5_1, form),
            at=ONE_OBJECTIVE,
        )
        for form in ("printed", "repaired", "sharp")
    ),
    *with_statements(
        {
            "Theorem B.4.1 at the steps of Theorem 1 is its repaired form": equal(
                "theorem-1-from-b.4.1",
                substitute_terms(
                    terms_of(THEOREM_B_4_1, "repaired:smaller-cap"), {n.etatilde: STEPS_1["eta"] * n.P / N}
                ),
                terms_of(THEOREM_1, "repaired"),
                at={gamma: STEPS_1["gamma"]},
            ),
            "K = 1: every interval is 1, and FedAU averages over all clients": equal(
                "interval-cut-at-one", lemma_b_6_1("printed"), one(1), at={K: Integer(1)}
            ),
            "K = 1: intervals do not vary": equal(
                "interval-cut-at-one-variance", lemma_b_6_1_variance("printed"), one(0), at={K: Integer(1)}
            ),
            "p = 1: every interval is 1": equal(
                "interval-of-a-faithful-client", lemma_b_6_1("printed"), one(1), at={rate: Integer(1)}
            ),
            "p = 1: intervals do not vary": equal(
                "interval-of-a-faithful-client-variance", lemma_b_6_1_variance("printed"), one(0), at={rate: Integer(1)}
            ),
            "(1-p)^K -> 0: the mean interval is 1/p": equal(
                "interval-without-a-cut-off", lemma_b_6_1("printed"), one(1 / rate), at=NO_FIRST
            ),
            "E(p S - 1)^2 = p^2 Var S + (1-p)^(2K): at K = 1 it is (1-p)^2, the error of the weight 1": equal(
                "interval-bias-and-variance",
                (*times(rate**2, lemma_b_6_1_variance("printed")), Term("bias", (1 - rate) ** (2 * K))),
                one((1 - rate) ** 2),
                at={K: Integer(1)},
            ),
            "p = 1: the sharp Theorem 3 vanishes, as the weight error does": equal(
                "theorem-3-full-participation", theorem_3_at_equal_clients(THEOREM_3, "sharp", p=Integer(1)), one(0)
            ),
            "every K >= T gives the weights of no cut-off: the sharp Theorem 3 does not change beyond K = T": equal(
                "theorem-3-no-cut-off",
                theorem_3_at_equal_clients(THEOREM_3, "sharp", K=T + s),
                theorem_3_at_equal_clients(THEOREM_3, "sharp", K=T),
            ),
            "T -> infinity at fixed K: the bias (1-p)^(2K) remains": equal(
                "theorem-3-many-rounds",
                theorem_3_at_equal_clients(THEOREM_3, "sharp:per-client"),
                one((1 - p) ** (2 * K)),
                at={T: 1 / x},
                tends=(x, Integer(0)),
            ),
            (
                "with K at most R log T + 1 and every bias at most 1/T the explicit Theorem 3 is the repaired Lemma "
                "B.7.1"
            ): equal(
                "lemma-b.7.1-from-theorem-3",
                (*theorem_3_at_equal_clients(THEOREM_3, "explicit", K=R * sp.log(T) + 1)[:1], Term("bias", 1 / T)),
                terms_of(corollaries.LEMMA_B_7_1, "repaired"),
            ),
            "R = 0: all clients always participate, and the constant form vanishes with the error": equal(
                "lemma-b.7.1-full-participation",
                terms_of(corollaries.LEMMA_B_7_1, "repaired:constant"),
                one(0),
                at={R: Integer(0)},
            ),
        }
    ),
)

# --- Inequalities ----------------------------------------------------------------------------------------------------

ell, h, lam = Symbol("log T", positive=True), Symbol("H_(T-1)", nonnegative=True), Symbol("log 2", positive=True)
u, v = Symbol("(1-p)^(2K)", nonnegative=True), Symbol("(1-p)^(2s)", nonnegative=True)
ONE = Integer(1)
EXPLICIT = terms_of(THEOREM_2, "explicit")
RARE = Relation(p, ONE)
LOG_2 = (Relation(Rational("0.693147"), lam), Relation(lam, Rational("0.693148")), Relation(lam, ell))
HARMONIC = Relation(h, ell + 1)
CUT = (Relation(u, ONE), Relation(ONE, K), RARE, HARMONIC)
SCALED = {gamma: Symbol("a", positive=True) / (L * I)}  # the constants see gamma through a = gamma L I only
SYMBOLS = {log(T): ell, HarmonicNumber(T - 1): h, log(2): lam}


def with_symbols(terms: Sequence[Term], **values: sp.Expr) -> tuple[Term, ...]:
    """The terms where all clients are alike, with symbols for what is not rational."""
    special = equal_clients(terms, {K: values["K"]} if "K" in values else {})
    powers = {(1 - p) ** (2 * K): u, (1 - p) ** (2 * K + 2 * s): u * v, (1 - p) ** (2 * T): u}
    symbols = tuple(Term(t.name, t.expression.replace(_is_power, _expand_exponent).xreplace(powers)) for t in special)
    return substitute_terms(symbols, SYMBOLS)


def _is_power(e: sp.Basic) -> bool:
    return isinstance(e, sp.Pow) and not e.exp.is_number


def _expand_exponent(e: sp.Pow) -> sp.Expr:
    return sp.Pow(e.base, sp.expand(e.exp))


def theorem_3_terms(form: str, **values: sp.Expr) -> tuple[Term, ...]:
    """A form of Theorem 3 in symbols; K <= T, so that min(K, T) = K."""
    terms = substitute_terms(terms_of(THEOREM_3, form), {sp.Min(K, T): K})
    return with_symbols(terms, **values)


def one_term(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms as one."""
    return one(sp.Add(*(t.expression for t in terms)))


def product(terms: Sequence[Term]) -> tuple[Term, ...]:
    """With kappa = gamma eta."""
    return substitute_terms(terms, {eta: kappa / gamma})


def monotone_limit(name: str, symbol: sp.Symbol) -> Limit:
    """Theorem 2 increases in a symbol."""
    return Limit(
        f"theorem-2-increases-with-{name}",
        f"the explicit Theorem 2 increases in {symbol}",
        EXPLICIT,
        substitute_terms(EXPLICIT, {symbol: symbol + s}),
        "<=",
    )


SECOND_SMALLER = Relation(Q * delta**2 * T, 4 * L * F * N)  # than the first branch, at sigma = 0
THIRD_SMALLER = Relation(N * delta**2 * T, 729 * L * F * Q)
lemma_b_7_1 = partial(terms_of, corollaries.LEMMA_B_7_1)
ORDERS = (
    *(
        monotone_limit(name, symbol)
        for name, symbol in (
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
        for result, factor in ((THEOREM_2, 180), (THEOREM_2_OPTION_1, 360))
    ),
    *(
        Limit(
            f"printed-{result.key.partition('/')[2]}-order",
            f"repaired:constant is at most {factor} times the printed order",
            substitute_terms(terms_of(result, "repaired:constant"), SYMBOLS),
            times(factor, substitute_terms(terms_of(result, "printed"), SYMBOLS)),
            "<=",
            facts=LOG_2,
        )
        for result, factor in ((corollaries.COROLLARY_4, 2538), (corollaries.COROLLARY_4_OPTION_1, 5076))
    ),
    *(
        Limit(
            f"corollary-4-{name}-branch",
            f"sigma = 0: where the {name} branch of gamma eta is less than the first, Theorem 2 is at most the "
            "explicit Corollary 4",
            substitute_terms(EXPLICIT, steps(branch)),
            terms_of(corollaries.COROLLARY_4, "explicit"),
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
        for result in (THEOREM_2, THEOREM_2_OPTION_1)
    ),
    *with_statements(
        {
            "delta = 0, first branches: Theorem 2 is at most the explicit Corollary 4": at_most(
                "corollary-4-no-divergence",
                one_term(substitute_terms(EXPLICIT, steps(GLOBAL_STEPS[0]))),
                one_term(terms_of(corollaries.COROLLARY_4, "explicit")),
                at={delta: Integer(0)},
            ),
            "K <= T: the sharp Theorem 3 is at most sharp:per-client": at_most(
                "theorem-3-sharp-below-per-client",
                theorem_3_terms("sharp"),
                theorem_3_terms("sharp:per-client"),
                facts=CUT,
            ),
            "sharp:per-client is at most the explicit Theorem 3": at_most(
                "theorem-3-per-client-below-explicit",
                theorem_3_terms("sharp:per-client"),
                theorem_3_terms("explicit"),
                facts=CUT,
            ),
            "K >= T: the sharp Theorem 3 is at most the explicit one": at_most(
                "theorem-3-no-cut-off-below-explicit",
                with_symbols(terms_of(THEOREM_3, "sharp"), K=T + s),
                one_term(substitute_terms(theorem_3_terms("explicit"), {K: T + s, u: Integer(0)})),
                facts=(Relation(u, ONE), RARE, HARMONIC),
            ),
            "the first term of the explicit Theorem 3 increases in K": at_most(
                "theorem-3-variance-increases-with-the-cut-off",
                theorem_3_terms("explicit")[:1],
                theorem_3_terms("explicit", K=K + s)[:1],
            ),
            "the second term of the explicit Theorem 3 decreases in K": at_most(
                "theorem-3-bias-decreases-with-the-cut-off",
                theorem_3_terms("explicit", K=K + s)[1:],
                theorem_3_terms("explicit")[1:],
                facts=(Relation(v, ONE),),
            ),
            "a cut-off only takes variance away": at_most(
                "interval-variance-below-no-cut-off",
                substitute_terms(
                    terms_of(corollaries.LEMMA_B_6_1_VARIANCE, "printed"),
                    {(1 - rate) ** (2 * K): v**2, (1 - rate) ** K: v},
                ),
                terms_of(corollaries.LEMMA_B_6_1_VARIANCE, "explicit"),
                facts=(Relation(ONE, K),),
            ),
            "where log_c T is whole, the explicit Lemma B.7.1 is at most the repaired one": at_most(
                "lemma-b.7.1-whole-log",
                substitute_terms(lemma_b_7_1("explicit"), SYMBOLS),
                substitute_terms(lemma_b_7_1("repaired"), SYMBOLS),
            ),
            "where R log T >= 1, the repaired Lemma B.7.1 is at most the one with the constant 4 + 7/log 2": at_most(
                "lemma-b.7.1-constant",
                substitute_terms(lemma_b_7_1("repaired"), SYMBOLS),
                substitute_terms(lemma_b_7_1("repaired:constant"), SYMBOLS),
                facts=(*LOG_2, Relation(ONE, R * ell)),
            ),
            "omega = 1/p: Q = 1/p >= 1, with equality where all clients always participate": at_most(
                "known-weights-cost-something", one(1), one(1 / p), facts=(RARE,), source="Appendix A.3"
            ),
            "the explicit Theorem 2 is convex in gamma eta: its second derivative is 16 F/(gamma eta)^3/(I T)": at_most(
                "theorem-2-convex-in-the-global-step",
                one(0),
                one(sp.diff(one_term(product(EXPLICIT))[0].expression, kappa, 2)),
            ),
        }
    ),
)
LIMITS = (*EQUALITIES, *ORDERS)
