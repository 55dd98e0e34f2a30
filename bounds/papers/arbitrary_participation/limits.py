"""Special cases and inequalities of Wang & Ji (2022)."""

from collections.abc import Sequence
from functools import partial
from typing import cast

import sympy as sp
from sympy import Integer, Rational, Symbol, floor, log, sqrt

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import at_most, equal, with_statements
from fedbounds.bounds.audit.sums import one, substitute_terms, terms_of, times
from fedbounds.bounds.papers.arbitrary_participation import participation, rates, reductions
from fedbounds.bounds.papers.arbitrary_participation.divergences import SPREADS
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.results import (
    COROLLARY_3_2,
    COROLLARY_3_3,
    EQUATION_C_16,
    HALF,
    LEMMA_C_1,
    LEMMA_C_2,
    LOCAL_CAP,
    LOCAL_STEP,
    STEPS_3_2,
    STEPS_3_3,
    THEOREM_3_1,
)
from fedbounds.bounds.theory.result import Term


def merge_noises(terms: Sequence[Term], gap: str = "noise") -> tuple[Term, ...]:
    """The theorem's terms, summed as the corollaries do: two noises of the drift, and two that balance each other."""
    names = {"initial gap": gap, "update noise": "noise", "local noise": "drift noise"}
    sums: dict[str, sp.Expr] = {}
    for t in terms:
        name = names.get(t.name, t.name)
        sums[name] = sums.get(name, sp.S.Zero) + t.expression
    return tuple(Term(name, total) for name, total in sums.items())


L, F, I, P, T, N, S = n.L, n.F, n.I, n.P, n.T, n.N, n.S
gamma, eta, rho, sigma, nu, beta, delta, d = n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta, n.delta, n.d
sumsq, s, upsilon, windowvar, c = n.sumsq, n.s, n.upsilon, n.windowvar, n.c
k, kappa = Symbol("k", integer=True, positive=True), Symbol("kappa", positive=True)
r, x, G = Symbol("r", nonnegative=True), Symbol("x", positive=True), Symbol("G", positive=True)
ALIKE = {nu: Integer(0), beta: Integer(0), delta: Integer(0)}


BRANCH_A, BRANCH_B = sorted(STEPS_3_2["eta"].args, key=lambda branch: not branch.has(sigma))
SECOND_NOISE = Term("noise", 2 * rho**2 * sigma**2 / (I * P))
C32, C33, C43, C48 = COROLLARY_3_2, COROLLARY_3_3, participation.COROLLARY_4_3, participation.COROLLARY_4_8
P46, P47 = participation.PROPOSITION_4_6, participation.PROPOSITION_4_7
INTERVAL_4_8 = C48.form("repaired").prescribes["P"]
SAMPLED = cast(sp.Expr, participation.SAMPLED.rule)
FROZEN = 8 * F / (kappa * I * T) + 6 * delta**2 + 4 * kappa * L * rho**2 * sigma**2
# upsilon^2/P [1 + 2 sum_{p<P} (1 - p/P) r^p]: P weights with autocovariance upsilon^2 r^p
GEOMETRIC_VARIANCE = upsilon**2 / P * ((1 + r) / (1 - r) - 2 * r * (1 - r**P) / (P * (1 - r) ** 2))
TABLE = {r.key.partition("/")[2]: r for r in rates.RESULTS}

c32, c33, c48, theorem = (partial(terms_of, result) for result in (C32, C33, C48, THEOREM_3_1))
EQUALITIES = with_statements(
    {
        "with one participant per round (S_t = 1, nu = 0) and I = 1, explicit:sumsq is explicit:I=1": equal(
            "theorem-3.1-one-hot-weights",
            theorem("explicit:sumsq"),
            theorem("explicit:I=1"),
            at={sumsq: Integer(1), nu: Integer(0), I: Integer(1)},
        ),
        "with S_t = 0, the other end of its range, explicit:sumsq is the explicit form": equal(
            "theorem-3.1-no-repeats", theorem("explicit:sumsq"), theorem("explicit"), at={sumsq: Integer(0)}
        ),
        "where P divides T, explicit:any-P is the explicit form with half its initial gap": equal(
            "theorem-3.1-whole-windows",
            theorem("explicit:any-P"),
            (*theorem("explicit"), Term("half the gap", -4 * F / (gamma * eta * I * T))),
            at={T: k * P},
        ),
        (
            "as gamma -> 0 with gamma eta = kappa fixed, the bound tends to that of the method with frozen gradients"
        ): equal(
            "theorem-3.1-frozen-gradients",
            theorem("explicit"),
            one(FROZEN),
            at={eta: kappa / gamma},
            tends=(gamma, Integer(0)),
        ),
        "N = 1 and I = P = 1: four times stochastic gradient descent's 2 F/(kappa T) + kappa L sigma^2": equal(
            "theorem-3.1-one-client",
            theorem("explicit:I=P=1"),
            one(4 * (2 * F / (kappa * T) + kappa * L * sigma**2)),
            at={**ALIKE, rho: Integer(1), eta: kappa / gamma, I: Integer(1), P: Integer(1)},
        ),
        "identical clients, S = N, P = 1: local SGD, whose noise falls like 1/N": equal(
            "theorem-3.1-identical-clients",
            theorem("explicit:sumsq"),
            one(
                8 * F / (gamma * eta * I * T)
                + (21 * (1 - 1 / N) + 18 / N) * gamma**2 * L**2 * I * sigma**2
                + 4 * gamma * eta * L * sigma**2 / N
            ),
            at={**ALIKE, rho: 1 / sqrt(N), sumsq: 1 / N, P: Integer(1)},
        ),
        "(C.16) with the decrease F spread over all complete windows is explicit:any-P": equal(
            "theorem-3.1-telescoping",
            terms_of(EQUATION_C_16, "explicit"),
            theorem("explicit:any-P"),
            at={n.decrease: F / floor(T / P)},
        ),
        "a single participant has no spread around itself": equal(
            "lemma-c.1-one-client", terms_of(LEMMA_C_1, "printed"), one(0), at={nu: Integer(0), sumsq: Integer(1)}
        ),
        "with sigma = 0 Theorem 3.1 at eta = 6 sqrt(T) is the explicit Corollary 3.2": equal(
            "corollary-3.2-no-noise",
            substitute_terms(theorem("explicit"), {gamma: LOCAL_STEP, eta: BRANCH_B}),
            c32("explicit"),
            at={sigma: Integer(0)},
        ),
        "where eta = 12 P sqrt(L I F)/(sigma rho), Corollary 3.2 needs no term in L P F/T": equal(
            "corollary-3.2-first-branch",
            substitute_terms(theorem("explicit"), {gamma: LOCAL_STEP, eta: BRANCH_A}),
            c32("explicit", without="initial gap"),
        ),
        "where eta = 6 sqrt(T), the noise of Corollary 3.2 is 2 rho^2 sigma^2/(I P)": equal(
            "corollary-3.2-second-branch",
            substitute_terms(theorem("explicit"), {gamma: LOCAL_STEP, eta: BRANCH_B}),
            (*c32("explicit", without="noise"), SECOND_NOISE),
        ),
        "Theorem 3.1 at Corollary 3.3's step sizes is the explicit Corollary 3.3": equal(
            "corollary-3.3-theorem",
            substitute_terms(theorem("explicit"), {gamma: STEPS_3_3["gamma"], eta: STEPS_3_3["eta"]}),
            c33("explicit"),
        ),
        "the scale s = 1 in repaired:s is the explicit form": equal(
            "corollary-3.3-unit-scale", c33("repaired:s"), c33("explicit"), at={s: Integer(1)}
        ),
        "the scale s = 1/sigma in repaired:s is Corollary 3.2's first branch": equal(
            "corollary-3.3-known-noise", c33("repaired:s"), c32("explicit", without="initial gap"), at={s: 1 / sigma}
        ),
        "and so is its step size": equal(
            "corollary-3.3-known-noise-step",
            one(C33.form("repaired:s").prescribes["eta"]),
            one(BRANCH_A),
            at={s: 1 / sigma},
        ),
        "Corollary 3.2 with beta = nu = d and delta = 0 is the repaired Corollary 4.3": equal(
            "corollary-4.3-from-3.2", c32("explicit"), terms_of(C43, "repaired"), at={beta: d, nu: d, delta: Integer(0)}
        ),
        (
            "with S = N the weights do not vary, and Corollary 4.8 is Corollary 3.3 with beta = nu = d and delta = 0"
        ): equal(
            "corollary-4.8-all-participate",
            c48("repaired:integer-P"),
            c33("explicit"),
            at={upsilon: Integer(0), beta: d, nu: d, delta: Integer(0)},
        ),
        "repaired:integer-P at the printed P is the repaired form": equal(
            "corollary-4.8-printed-interval", c48("repaired:integer-P"), c48("repaired"), at={P: INTERVAL_4_8}
        ),
        "with Var(qbar) = upsilon^2/P, repaired:window-variance is repaired:integer-P": equal(
            "corollary-4.8-window-variance",
            c48("repaired:window-variance"),
            c48("repaired:integer-P"),
            at={windowvar: upsilon**2 / P},
        ),
        "with upsilon = 0, repaired:any-I is the repaired Corollary 4.3": equal(
            "corollary-4.8-no-variance", c48("repaired:any-I"), terms_of(C43, "repaired"), at={upsilon: Integer(0)}
        ),
        "for independent rounds Var(qbar) = upsilon^2/P, and Proposition 4.6 is Proposition 4.7": equal(
            "proposition-4.7-from-4.6",
            terms_of(P46, "repaired"),
            terms_of(P47, "printed"),
            at={windowvar: upsilon**2 / P},
        ),
        "and so are their tails by Markov's inequality": equal(
            "proposition-4.7-markov",
            terms_of(P46, "repaired:probability"),
            terms_of(P47, "repaired:markov"),
            at={windowvar: upsilon**2 / P},
        ),
        "S of N without replacement at S = N: the weights do not vary": equal(
            "sampling-everyone", one(SAMPLED), one(0), at={S: N}
        ),
        "waiting for all with M = P S I/N calls per client has the rate of regularized participation": equal(
            "section-5-wait-for-all-rate",
            terms_of(TABLE["section-5-wait-for-all"], "printed"),
            terms_of(TABLE["table-1-regularized"], "printed"),
            at={n.M: P * S * I / N},
            source="Section 5",
        ),
        "and that is the leading term of Corollary 4.3 with rho = 1/sqrt(S), up to the hidden sqrt(L F)": equal(
            "table-1-regularized-rate",
            (Term("noise", C43.form("printed").terms[0].expression),),
            times(sqrt(L * F), terms_of(TABLE["table-1-regularized"], "printed")),
            at={rho: 1 / sqrt(S)},
            source="Table 1",
        ),
        (
            "with autocovariance upsilon^2 r^p, the exact variance of a window's mean is Lemma 4.5's upsilon^2/P at r "
            "= 0"
        ): equal(
            "window-variance-independent-rounds",
            one(GEOMETRIC_VARIANCE),
            substitute_terms(terms_of(participation.LEMMA_4_5, "printed"), {n.upsilonhat: upsilon}),
            at={r: Integer(0)},
            source="Lemma 4.5",
        ),
        "and upsilon^2 at P = 1": equal(
            "window-variance-one-round",
            one(GEOMETRIC_VARIANCE),
            one(upsilon**2),
            at={P: Integer(1)},
            source="Lemma 4.5",
        ),
        "the weights of one of G = N/S equal groups vary as much as those of S of N without replacement": equal(
            "sampling-a-group", one((1 - 1 / G) / (G * S**2)), one(SAMPLED**2), at={G: N / S}, source="Section 6"
        ),
        "ln(2/c)/2 <= 1/c - 1/2, because the difference is half of x - 1 - ln(x) at x = 2/c": equal(
            "proposition-4.7-tails",
            one(1 / c - Rational(1, 2) - log(2 / c) / 2),
            one((x - 1 - log(x)) / 2),
            at={x: 2 / c},
            axioms=("ln(x) <= x - 1 for x > 0",),
            source="Proposition 4.7",
        ),
    }
)

# --- Inequalities ----------------------------------------------------------------------------------------------------

RHO = Relation(rho, Integer(1))
low, high, mu = Symbol("x"), Symbol("y"), Symbol("mu")
u, v, power = Symbol("u", nonnegative=True), Symbol("v", nonnegative=True), Symbol("r^P", nonnegative=True)
m = Symbol("m", nonnegative=True)
SCALED = {gamma: Symbol("a", positive=True) / (L * I * P)}  # the constants see gamma through a = gamma L I P only
ORDERS = with_statements(
    {
        "the sharp Theorem 3.1 is at most the explicit one at every admissible setting": at_most(
            "sharp-below-explicit", theorem("sharp"), theorem("explicit"), at=SCALED, facts=(LOCAL_CAP, HALF)
        ),
        "the sharp Theorem 3.1 is at most explicit:any-P at every admissible setting": at_most(
            "sharp-below-any-interval", theorem("sharp"), theorem("explicit:any-P"), at=SCALED, facts=(LOCAL_CAP,)
        ),
        "the sharp Theorem 3.1 is at most sharp:worst": at_most(
            "sharp-below-its-worst-case", theorem("sharp"), theorem("sharp:worst"), at=SCALED, facts=(LOCAL_CAP, HALF)
        ),
        "sharp:worst is at most sharp:initial-gap": at_most(
            "worst-case-below-explicit", theorem("sharp:worst"), theorem("sharp:initial-gap")
        ),
        "sharp:initial-gap is at most the explicit form": at_most(
            "initial-gap-below-explicit", theorem("sharp:initial-gap"), theorem("explicit")
        ),
        "for P <= T/2, explicit:any-P is at most sharp:initial-gap": at_most(
            "any-interval-below-initial-gap", theorem("explicit:any-P"), theorem("sharp:initial-gap"), facts=(HALF,)
        ),
        "explicit:I=1 is at most the explicit form at I = 1": at_most(
            "one-local-step-below-explicit", theorem("explicit:I=1"), theorem("explicit"), at={I: Integer(1)}
        ),
        "explicit:I=P=1 is at most explicit:I=1 at P = 1": at_most(
            "one-step-one-round-below-one-step",
            theorem("explicit:I=P=1"),
            theorem("explicit:I=1"),
            at={I: Integer(1), P: Integer(1)},
        ),
        "explicit:sumsq is at most the explicit form": at_most(
            "sumsq-below-explicit", theorem("explicit:sumsq"), theorem("explicit")
        ),
        "with eta = 1 the iterates do not depend on P, and at equal delta the bound is least at P = 1": at_most(
            "no-amplification-least-interval",
            substitute_terms(theorem("explicit"), {P: Integer(1)}),
            theorem("explicit"),
            at={eta: Integer(1)},
        ),
        "the explicit Theorem 3.1 is at most 144 times the printed order": at_most(
            "printed-theorem-order", theorem("explicit"), times(144, theorem("printed"))
        ),
        "and at least the printed order": at_most(
            "printed-theorem-order-below", theorem("printed"), theorem("explicit")
        ),
        "the explicit Corollary 3.2 is at most 16 times the printed order": at_most(
            "printed-corollary-3.2-order", c32("explicit"), times(16, c32("printed")), facts=(RHO,)
        ),
        "the explicit Corollary 3.3 is at most 8 times the printed order": at_most(
            "printed-corollary-3.3-order", c33("explicit"), times(8, c33("printed")), facts=(RHO,)
        ),
        "the repaired Corollary 4.3 is at most 16 times the printed order, for I, P >= 1": at_most(
            "printed-corollary-4.3-order", terms_of(C43, "repaired"), times(16, terms_of(C43, "printed")), facts=(RHO,)
        ),
        "repaired:integer-P, its window term at the printed P, is at most 8 times the printed order": at_most(
            "printed-corollary-4.8-order",
            (
                *c48("repaired:integer-P", without="window divergence"),
                *(t for t in c48("repaired") if t.name.startswith("w")),
            ),
            times(8, c48("printed")),
            facts=(RHO,),
        ),
        (
            "no scale s brings the noise term of repaired:s below 8 sqrt(2) sigma rho sqrt(L F)/sqrt(I T) (here "
            "squared)"
        ): at_most("corollary-3.2-best-scale", one(128 * sigma**2), one((8 / s + 4 * s * sigma**2) ** 2)),
        (
            "no P brings the two terms of repaired:any-I with P below 8 sqrt(6) N d upsilon sqrt(L F/T) (here squared)"
        ): at_most(
            "corollary-4.8-best-interval",
            one(384 * N**2 * d**2 * upsilon**2 * L * F / T),
            one((16 * L * P * F / T + 6 * N**2 * d**2 * upsilon**2 / P) ** 2),
        ),
        "at the first branch of eta the sharp theorem is at most the explicit Corollary 3.2": at_most(
            "corollary-3.2-sharp-first-branch",
            merge_noises(substitute_terms(theorem("sharp"), {gamma: LOCAL_STEP, eta: BRANCH_A})),
            c32("explicit"),
            facts=(HALF,),
        ),
        (
            "at the second branch of eta the sharp theorem is at most the explicit one, with noise 2 rho^2 sigma^2/(I "
            "P)"
        ): at_most(
            "corollary-3.2-sharp-second-branch",
            merge_noises(substitute_terms(theorem("sharp"), {gamma: LOCAL_STEP, eta: BRANCH_B}), "initial gap"),
            (*c32("explicit", without="noise"), SECOND_NOISE),
            facts=(HALF,),
        ),
        (
            "where the second branch of eta is the smaller one, its noise is at most that of the explicit Corollary 3.2"
        ): at_most(
            "corollary-3.2-second-branch-noise",
            (SECOND_NOISE,),
            (Term("noise", 4 * sigma * rho * sqrt(L * F) / sqrt(I * T)),),
            facts=(Relation(BRANCH_B, BRANCH_A),),
        ),
        "the sharp Corollary 3.3 is at most the explicit one": at_most(
            "corollary-3.3-sharp", merge_noises(c33("sharp")), c33("explicit"), facts=(HALF,)
        ),
        "the sharp Lemma C.1 is at most the printed one": at_most(
            "lemma-c.1-sharp",
            terms_of(LEMMA_C_1, "sharp"),
            terms_of(LEMMA_C_1, "printed"),
            facts=(Relation(sumsq, Integer(1)),),
        ),
        "the sharp Lemma C.2 is at most the printed one, as S_t <= rho^2 <= 1": at_most(
            "lemma-c.2-sharp",
            terms_of(LEMMA_C_2, "sharp"),
            terms_of(LEMMA_C_2, "printed"),
            facts=(Relation(sumsq, rho**2), RHO),
        ),
        (
            "S of N: the exact (N-S)/(P S (N-1)) m, m <= d^2 the offsets' mean square, is at most N^2 d^2 upsilon^2/P"
        ): at_most(
            "sampling-exact-below-proposition-4.7",
            one((N - S) / (P * S * (N - 1)) * m),
            substitute_terms(terms_of(P47, "printed"), {upsilon: SAMPLED}),
            facts=(Relation(m, d**2), Relation(S, N), Relation(Integer(2), N)),
        ),
        (
            "for correlations 0 <= r < 1 the exact variance of a window's mean is at most Lemma 4.5's upsilonhat^2/P"
        ): at_most(
            "window-variance-below-long-run",
            one(GEOMETRIC_VARIANCE),
            one(upsilon**2 * (1 + r) / (1 - r) / P),
            at={r**P: power},
            facts=(Relation(power, Integer(1)), Relation(r, Integer(1))),
            source="Lemma 4.5",
        ),
        (
            "sum_n |qbar_n - mu| is least at the median: the k-th smallest x and the k-th largest y are together "
            "at least y - x from any mu, and exactly that far from the median, which lies between them "
            "(u = |x - mu|, v = |y - mu|)"
        ): at_most(
            "median-deviation-below-mean-deviation",
            one(high - low),
            one(u + v),
            facts=(Relation(low - mu, u), Relation(mu - low, u), Relation(high - mu, v), Relation(mu - high, v)),
            source="eq. (15)",
        ),
    }
)
LIMITS = (*EQUALITIES, *ORDERS, *SPREADS, *reductions.LIMITS, *reductions.SPREADS)
