r"""Inequalities that must hold between the forms of Wang & Ji (2022): which right-hand side is never the larger one."""

from __future__ import annotations

from functools import partial

from sympy import Integer, Symbol, sqrt

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import at_most, with_statements
from fedbounds.bounds.audit.sums import one, substitute_terms, terms_of, times
from fedbounds.bounds.papers.arbitrary_participation import special_cases
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.results import HALF, LEMMA_C_1, LEMMA_C_2, LOCAL_CAP, LOCAL_STEP
from fedbounds.bounds.papers.arbitrary_participation.special_cases import r
from fedbounds.bounds.papers.arbitrary_participation.sums import merged
from fedbounds.bounds.theory.result import Term

d, eta, F, gamma, I, L, N, P, rho, S, s = n.d, n.eta, n.F, n.gamma, n.I, n.L, n.N, n.P, n.rho, n.S, n.s
sigma, sumsq, T, upsilon = n.sigma, n.sumsq, n.T, n.upsilon

RHO = Relation(rho, Integer(1))
x, y, mu = Symbol("x"), Symbol("y"), Symbol("mu")
u, v, power = Symbol("u", nonnegative=True), Symbol("v", nonnegative=True), Symbol("r^P", nonnegative=True)
m = Symbol("m", nonnegative=True)
SCALED = {gamma: Symbol("a", positive=True) / (L * I * P)}  # the constants see gamma through a = gamma L I P only
c32, c33, c48, theorem = (
    partial(terms_of, result)
    for result in (special_cases.C32, special_cases.C33, special_cases.C48, special_cases.THEOREM)
)
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
            "printed-corollary-4.3-order",
            terms_of(special_cases.C43, "repaired"),
            times(16, terms_of(special_cases.C43, "printed")),
            facts=(RHO,),
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
            merged(substitute_terms(theorem("sharp"), {gamma: LOCAL_STEP, eta: special_cases.BRANCH_A})),
            c32("explicit"),
            facts=(HALF,),
        ),
        (
            "at the second branch of eta the sharp theorem is at most the explicit one, with noise 2 rho^2 sigma^2/(I "
            "P)"
        ): at_most(
            "corollary-3.2-sharp-second-branch",
            merged(substitute_terms(theorem("sharp"), {gamma: LOCAL_STEP, eta: special_cases.BRANCH_B}), "initial gap"),
            (*c32("explicit", without="noise"), special_cases.SECOND_NOISE),
            facts=(HALF,),
        ),
        (
            "where the second branch of eta is the smaller one, its noise is at most that of the explicit Corollary 3.2"
        ): at_most(
            "corollary-3.2-second-branch-noise",
            (special_cases.SECOND_NOISE,),
            (Term("noise", 4 * sigma * rho * sqrt(L * F) / sqrt(I * T)),),
            facts=(Relation(special_cases.BRANCH_B, special_cases.BRANCH_A),),
        ),
        "the sharp Corollary 3.3 is at most the explicit one": at_most(
            "corollary-3.3-sharp", merged(c33("sharp")), c33("explicit"), facts=(HALF,)
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
            substitute_terms(terms_of(special_cases.P47, "printed"), {upsilon: special_cases.SAMPLED}),
            facts=(Relation(m, d**2), Relation(S, N), Relation(Integer(2), N)),
        ),
        (
            "for correlations 0 <= r < 1 the exact variance of a window's mean is at most Lemma 4.5's upsilonhat^2/P"
        ): at_most(
            "window-variance-below-long-run",
            one(special_cases.GEOMETRIC_VARIANCE),
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
            one(y - x),
            one(u + v),
            facts=(Relation(x - mu, u), Relation(mu - x, u), Relation(y - mu, v), Relation(mu - y, v)),
            source="eq. (15)",
        ),
    }
)
