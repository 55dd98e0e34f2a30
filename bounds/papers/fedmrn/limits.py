"""Special cases of Li et al. (2024) that must agree, Remark 1 among them, and forms that may not exceed others."""

from functools import partial

from sympy import Integer, Rational, Symbol, sqrt

from fedbounds.bounds.audit.limit_checker import Limit, at_most, equal, with_statements
from fedbounds.bounds.audit.sums import one, terms_of, times
from fedbounds.bounds.papers.fedmrn.lemmas import LEMMA_2, LEMMA_3, LEMMA_4
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.remarks import PROPOSITION_1
from fedbounds.bounds.papers.fedmrn.results import (
    CURVATURE,
    SAMPLED,
    SEVERAL,
    STEP,
    THEOREM_1,
    THEOREM_2,
    last_gap_terms,
)
from fedbounds.bounds.theory.result import Term

L, mu, sigma, G, q, Gamma, Delta1, F = n.L, n.mu, n.sigma, n.G, n.q, n.Gamma, n.Delta1, n.F
N, K, S, T, eta, a = n.N, n.K, n.S, n.T, n.eta, n.a
m, x = Symbol("m", positive=True, integer=True), Symbol("x", positive=True)
ALL_CLIENTS = {K: N, S: Integer(1)}
UNMASKED = {q: Integer(0)}

theorem_1, theorem_2 = (partial(terms_of, result) for result in (THEOREM_1, THEOREM_2))
EQUALITIES = with_statements(
    {
        "without masking error Theorem 1 is what Li et al. (2020) show of FedAvg, sampling without replacement": equal(
            "remark-1-fedavg",
            theorem_1("printed"),
            last_gap_terms(
                (
                    Term("gradient noise", sigma**2 / N),
                    Term("heterogeneity", 6 * L * Gamma),
                    Term("local drift", 8 * (S - 1) ** 2 * G**2),
                    Term("masking and sampling", Rational(4) * (N - K) / (K * (N - 1)) * S**2 * G**2),
                )
            ),
            at=UNMASKED,
            source="Remark 1",
        ),
        "K = N and S = 1: neither drift nor sampling is left of Theorem 1": equal(
            "remark-1-one-step-of-all-clients",
            theorem_1("repaired"),
            last_gap_terms(
                (Term("noise", sigma**2 / N), Term("spread", 6 * L * Gamma), Term("masks", 4 * q**2 / N * G**2))
            ),
            at=ALL_CLIENTS,
            source="Remark 1",
        ),
        "K = N, S = 1 and no masking error: Theorem 2 is the rate of stochastic gradient descent": equal(
            "remark-1-sgd",
            theorem_2("repaired"),
            one((2 * L * F + sigma**2 / N) / sqrt(T)),
            at=ALL_CLIENTS | UNMASKED,
            source="Remark 1",
        ),
        "K = N and S = 1: of Theorem 2 the masks' error remains, over sqrt(T)": equal(
            "remark-1-one-step-of-all-clients-nonconvex",
            theorem_2("repaired"),
            one((2 * L * F + sigma**2 / N + 4 * q**2 / N * G**2) / sqrt(T)),
            at=ALL_CLIENTS,
            source="Remark 1",
        ),
        "for two clients or more the split c is the printed one": equal(
            "one-constant-split",
            terms_of(LEMMA_3, "repaired"),
            one(4 * (q**2 * m + m + 1 - K) / (K * m) * n.etat**2 * S**2 * G**2),
            at={N: m + 1},
        ),
        "N = K = 1: the split c is q^2": equal(
            "one-client",
            terms_of(LEMMA_3, "sharp"),
            one(q**2 * n.etat**2 * S**2 * G**2),
            at={N: Integer(1), K: Integer(1)},
        ),
        "S = 1: models do not drift": equal(
            "no-drift-before-a-step", terms_of(LEMMA_2, "repaired"), one(0), at={S: Integer(1)}
        ),
        "sqrt(T) times Theorem 2 tends to 2 L F + P": equal(
            "many-iterations",
            times(sqrt(T), theorem_2("repaired")),
            one(2 * L * F + sigma**2 / N + 4 * (q**2 / K) * S**2 * G**2),
            at={T: 1 / x**2, N: K},
            tends=(x, Integer(0)),
        ),
        "any amplitude at 2 eta S G and any step at 1/(L sqrt(T)) are the sharp form for masks": equal(
            "amplitude-of-theorem-2",
            theorem_2("explicit:any-amplitude"),
            theorem_2("sharp:masks"),
            at={a: 2 * STEP * S * G, eta: STEP},
        ),
        "S -> infinity: half of q^2 is left": equal(
            "progressive-masking-of-many-steps",
            terms_of(PROPOSITION_1, "repaired"),
            one(q**2 / 2),
            at={S: 1 / x},
            tends=(x, Integer(0)),
        ),
        "S = 1: the only local step is masked as a whole": equal(
            "progressive-masking-of-one-step", terms_of(PROPOSITION_1, "repaired"), one(q**2), at={S: Integer(1)}
        ),
        "without gradient noise the paper's P is 4 S times the sharp one": equal(
            "four-times-the-steps", theorem_2("repaired")[3:], times(4 * S, theorem_2("sharp")[3:])
        ),
    }
)
ORDERS = (
    *with_statements(
        {
            "at T = 1 the bound is at least L/2 times the initial squared distance, whatever B is": at_most(
                "theorem-1-at-its-start", one(L / 2 * Delta1), theorem_1("sharp"), at={T: Integer(1)}, facts=(SAMPLED,)
            ),
            "the sharp Lemma 4 is at most (19), term by term": at_most(
                "lemma-4-rounded-up", terms_of(LEMMA_4, "sharp"), terms_of(LEMMA_4, "printed")
            ),
        }
    ),
    *(
        Limit(
            f"{key}-{small}-{large}".replace(":", "-"),
            says,
            terms_of(result, small),
            terms_of(result, large),
            "<=",
            facts=(SAMPLED, CURVATURE),
        )
        for key, result, small, large, says in (
            ("theorem-2", THEOREM_2, "sharp", "repaired", "sharper constants are smaller, term by term"),
            ("theorem-2", THEOREM_2, "sharp:R2", "repaired:R2", "sharper constants are smaller, term by term"),
        )
    ),
    *with_statements(
        {
            "for masks the form without drift and sampling is at most the sharp R2": at_most(
                "masks-without-drift",
                one(sum((t.expression for t in theorem_2("sharp:masks")), Integer(0))),
                one(sum((t.expression for t in theorem_2("sharp:R2")), Integer(0))),
                facts=(SAMPLED,),
            ),
            "R1 is at least Theorem 1 without masking error": at_most(
                "masks-cost-more-than-none",
                [Term(t.name, t.expression.xreplace({q: Integer(0)})) for t in theorem_1("repaired")],
                theorem_1("repaired:R1"),
                facts=(SAMPLED, SEVERAL),
            ),
        }
    ),
)
LIMITS: tuple[Limit, ...] = (*EQUALITIES, *ORDERS)
