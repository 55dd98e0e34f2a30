r"""Section 4: what kinds of participation make the window divergence vanish, and Corollaries 4.3 and 4.8."""

from dataclasses import replace

import sympy as sp
from sympy import Abs, Integer, Rational, floor, log, sqrt

from fedbounds.bounds.papers.arbitrary_participation.assumptions import (
    BOUNDED,
    BOUNDED_DIVERGENCE,
    ERGODIC,
    IN_EXPECTATION,
    INDEPENDENT_ROUNDS,
    MIXING,
    REGULARIZED,
    SHARED_EQUALLY,
    UNBIASED_SAMPLING,
    UNIFORMLY_SAMPLED,
    WEIGHTS,
)
from fedbounds.bounds.papers.arbitrary_participation.likely import (
    ALL_WINDOWS,
    LIKELY_EVENT,
    SQUARED_DIVERGENCE,
    likely_forms,
)
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.notation import new_result
from fedbounds.bounds.papers.arbitrary_participation.results import (
    COROLLARY_3_2,
    DRIFT_NOISE,
    EQUAL_WEIGHTS,
    HALF,
    LOCAL_STEP,
    SPEEDUP,
    STEPS_3_2,
)
from fedbounds.bounds.theory.client_reductions import MedianOverClients, SumOverClients
from fedbounds.bounds.theory.measures import LEAST_GRADIENT, single
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import NONE, Derived, length_of

beta, F, I, L, nu, P, rho, sigma, T, d, N, S = n.beta, n.F, n.I, n.L, n.nu, n.P, n.rho, n.sigma, n.T, n.d, n.N, n.S
upsilon, upsilonhat, c, windowvar, theta = n.upsilon, n.upsilonhat, n.c, n.windowvar, n.theta
SAMPLED = Derived(
    "upsilon", ("N", "S"), sqrt((N - S) / S) / N, "S of N uniformly without replacement: upsilon^2 = (N - S)/(S N^2)"
)
WINDOW_DIVERGENCE = single(SQUARED_DIVERGENCE, r"\tilde\delta^2(P)")
EXPECTED_WINDOW = single(WINDOW_DIVERGENCE.of, r"\mathbb E[\tilde\delta^2(P)]", expectation="participation")
AVERAGE_WINDOW = single(
    "average over the complete windows of the squared divergence (7)",
    r"\frac1{\lfloor T/P\rfloor}\sum_{t_0}\tilde\delta_{t_0}^2(P)",
    given=LIKELY_EVENT,
)
OVER_PARTICIPATION = replace(
    LEAST_GRADIENT,
    latex=r"\min_t\mathbb E\|\nabla f(\mathbf x_t)\|^2",
    expectation="gradient noise and participation",
    given="",
)

PROPOSITION_4_1 = new_result(
    "proposition-4.1",
    "Bounded divergence bounds the divergences of the participants",
    single("sum of the squared divergences of (5) and (6)", r"\tilde\beta^2+\tilde\nu^2"),
    "(5) and (6) are suprema over rounds, which may be attained in different rounds: each is at most d^2, "
    "their sum need not be.",
    (
        Form(
            "printed",
            (Term("divergence", d**2),),
            refuted_by="suprema-at-different-rounds",
            note="false when the weights change over time",
        ),
        Form(
            "repaired",
            (Term("participation divergence", d**2), Term("cohort divergence", d**2)),
            note="each separately, by (11)",
        ),
    ),
    assumptions=(BOUNDED_DIVERGENCE, WEIGHTS),
)

PROPOSITION_4_2 = new_result(
    "proposition-4.2",
    "Regularized participation has no window divergence",
    WINDOW_DIVERGENCE,
    "If every client has the same mean weight over every interval of P rounds, (7) holds with delta = 0. "
    "(Intervals from multiples of P are enough, at which Algorithm 1 sets t_0.)",
    (Form("printed", (Term("window divergence", Integer(0)),), assumptions=(REGULARIZED, WEIGHTS)),),
)

EQUATION_15 = new_result(
    "equation-15",
    "Window divergence from the mean weights alone",
    WINDOW_DIVERGENCE,
    "For a window with mean weights qbar. Any common mu may be subtracted, because the gradient offsets sum "
    "to zero, by (12) after differentiating it; mu = 1/N with Cauchy-Schwarz gives (15), the median with the triangle "
    "inequality less.",
    (
        Form(
            "printed",
            (Term("window divergence", N * SumOverClients((n.qbar - 1 / N) ** 2) * d**2),),
            derived=(length_of("qbar", "N"),),
            note="eq. (15)",
        ),
        Form(
            "sharp:median",
            (Term("window divergence", d**2 * sp.Pow(SumOverClients(Abs(n.qbar - MedianOverClients(n.qbar))), 2)),),
            note="|sum_n (qbar_n - mu) v_n| <= d sum_n |qbar_n - mu|, least at the median",
        ),
    ),
    number="Section 4.2",
    equations=("15",),
    assumptions=(BOUNDED_DIVERGENCE, WEIGHTS),
)

NOISE_4_3 = Term("noise", 12 * sigma * SPEEDUP)
GAP_4_3 = Term("initial gap", 16 * L * P * F / T)
REPAIRED_DIVERGENCE = Term("divergence", (1 + Rational(7, 8) / P**2) * d**2 / T)
COROLLARY_4_3 = new_result(
    "corollary-4.3",
    "Convergence under regularized participation",
    LEAST_GRADIENT,
    "Corollary 3.2 with delta = 0 and the other divergences bounded by d.",
    (
        Form(
            "printed",
            (
                Term("noise", sigma * SPEEDUP),
                Term("initial gap", L * P * F / T),
                Term("divergence", d**2 / T),
                Term("drift noise", sigma**2 / T),
            ),
            order_only=True,
            hides="one numerical constant for each term",
            note="eq. (14) as printed; every hidden constant is 1",
        ),
        Form(
            "explicit",
            (NOISE_4_3, GAP_4_3, Term("divergence", d**2 / T), DRIFT_NOISE),
            note="the paper argues by Proposition 4.1, which is false; the sharp constants have room for beta = nu = d",
        ),
        Form(
            "repaired", (NOISE_4_3, GAP_4_3, REPAIRED_DIVERGENCE, DRIFT_NOISE), note="beta <= d and nu <= d separately"
        ),
        Form(
            "sharp",
            tuple(
                Term(t.name, t.expression.subs({nu: d, beta: d}))
                for t in COROLLARY_3_2.form("sharp").terms
                if t.name != "window divergence"
            ),
            COROLLARY_3_2.form("sharp").conditions,
            note="Corollary 3.2's sharp form with beta = nu = d and delta = 0",
        ),
    ),
    equations=("14",),
    conditions=(HALF,),
    assumptions=(*BOUNDED, REGULARIZED),
    prescribes=STEPS_3_2,
    derived=(EQUAL_WEIGHTS,),
)

SPREAD = N**2 * d**2  # (15) in expectation: N sum_n Var(qbar_n) d^2 <= N^2 d^2 max_n Var(qbar_n)
PROPOSITION_4_4 = new_result(
    "proposition-4.4",
    "Ergodic participation has a vanishing window divergence",
    EXPECTED_WINDOW,
    "Mean-ergodicity for each fixed t_0 does not bound all windows at once; a bound on the variance that is "
    "uniform in the windows used does.",
    (
        Form(
            "printed",
            (Term("window divergence", Integer(0)),),
            assumptions=(BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, ERGODIC, WEIGHTS),
            asymptotic="P -> infinity",
            refuted_by="ergodic-but-not-uniformly",
            note="the limit is claimed for a delta that does not depend on t_0",
        ),
        Form(
            "repaired",
            (Term("window divergence", SPREAD * windowvar),),
            assumptions=(BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, UNIFORMLY_SAMPLED, WEIGHTS),
            note="windowvar bounds the variance of every client's mean weight over every window used",
        ),
    ),
)

LEMMA_4_5 = new_result(
    "lemma-4.5",
    "Central limit theorem for the mean weight of a window",
    single(
        "variance of a client's mean weight over a window of P rounds",
        r"\operatorname{Var}(\overline{q^n_{t_0}})",
        NONE,
        expectation="participation",
    ),
    "A central limit theorem: as P grows the mean weight qbar is asymptotically normal, with mean mu_{t_0} "
    "and variance upsilonhat^2/P. What can be evaluated here is that variance; of a finite P it says nothing.",
    (
        Form(
            "printed",
            (Term("variance", upsilonhat**2 / P),),
            assumptions=(MIXING,),
            asymptotic="P -> infinity",
            note="the variance of the limiting normal law",
        ),
    ),
    number="Lemma 4.5 (Billingsley, Theorem 27.4)",
)

MARKOV = SPREAD * windowvar / c
PROPOSITION_4_6 = new_result(
    "proposition-4.6",
    "Window divergence of mixing participation",
    EXPECTED_WINDOW,
    "As P grows, upsilonhat^2/P is the variance of the window mean where upsilonhat > 0; at a finite P use "
    "the exact variance.",
    (
        Form(
            "printed",
            (Term("window divergence", SPREAD * upsilonhat**2 / P),),
            asymptotic="P -> infinity",
            refuted_by="vanishing-long-run-variance",
            note="in expectation",
        ),
        Form(
            "printed:probability",
            (Term("window divergence", SPREAD * upsilonhat**2 / (c * P)),),
            asymptotic="P -> infinity",
            refuted_by="chebyshev-for-one-window",
            note="with probability 1 - c, by Chebyshev for one client and one window",
            measure=ALL_WINDOWS,
        ),
        Form(
            "repaired",
            (Term("window divergence", SPREAD * windowvar),),
            assumptions=(BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, UNIFORMLY_SAMPLED, WEIGHTS),
            note="the exact variance of the window mean",
        ),
        Form(
            "repaired:probability",
            (Term("window divergence", MARKOV),),
            assumptions=(BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, UNIFORMLY_SAMPLED, WEIGHTS),
            note="Markov's inequality for the average over the windows, which is all that the theorem's proof needs",
            measure=AVERAGE_WINDOW,
        ),
    ),
    default="repaired",
    assumptions=(BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, MIXING, WEIGHTS),
)

TAIL = (log(1 / c) + log(1 / (1 - theta)) / 2) / (2 * theta * P)
INDEPENDENT = (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, INDEPENDENT_ROUNDS, WEIGHTS)
PROPOSITION_4_7 = new_result(
    "proposition-4.7",
    "Window divergence of participation that is independent over rounds",
    EXPECTED_WINDOW,
    "In expectation as printed. With high probability (17) is about one window and one client; what follows "
    "at all points x at once, as (7) asks, is stated for one window, for all windows and for their average.",
    (
        Form(
            "printed", (Term("window divergence", SPREAD * upsilon**2 / P),), derived=(SAMPLED,), note="in expectation"
        ),
        Form(
            "printed:probability",
            (Term("window divergence", SPREAD * log(2 / c) / (2 * P)),),
            refuted_by="one-window-is-not-all-windows",
            note="with probability 1 - c, by Hoeffding for one client and one window",
            measure=ALL_WINDOWS,
        ),
        Form(
            "repaired:probability",
            (Term("window divergence", SPREAD * TAIL),),
            note="sub-Gaussian mean weights (range [0, 1]); no independence across clients or windows; any theta",
            measure=AVERAGE_WINDOW,
        ),
        Form(
            "repaired:equal-weights",
            (Term("window divergence", SPREAD * TAIL / S**2),),
            assumptions=(*INDEPENDENT, SHARED_EQUALLY),
            note="the same for weights in [0, 1/S]",
            measure=AVERAGE_WINDOW,
        ),
        Form(
            "repaired:markov",
            (Term("window divergence", SPREAD * upsilon**2 / (c * P)),),
            derived=(SAMPLED,),
            note="Markov's inequality for the average over the windows",
            measure=AVERAGE_WINDOW,
        ),
        *likely_forms(SAMPLED),
    ),
    default="printed",
    assumptions=INDEPENDENT,
)


def corollary_4_8_forms() -> tuple[Form, ...]:
    """The printed orders for mixing and independent rounds, the paper's constants, and the repairs."""
    order = (
        Term("noise", (1 + sigma**2) * SPEEDUP),
        Term("window divergence", d**2 / sqrt(N * I * T)),
        Term("divergence", d**2 / T),
        Term("drift noise", sigma**2 / T),
    )

    def interval(u: sp.Expr) -> sp.Expr:
        return u**2 * N ** Rational(5, 2) * sqrt(I * T)

    def cap(u: sp.Expr) -> Condition:
        right = rho / (2 * u**2 * N ** Rational(5, 2) * sqrt(L * F))
        return Condition(I, "<=", right, "Corollary 3.3's condition at this P (T cancels)", I)

    def steps(interval_: sp.Expr) -> dict[str, sp.Expr]:
        eta_3_3 = 12 * interval_ * sqrt(L * I * F) / rho
        return {"gamma": LOCAL_STEP.subs(P, interval_), "eta": eta_3_3}

    exact = interval(upsilon)
    noise = Term("noise", (8 + 4 * sigma**2) * SPEEDUP)
    window = Term("window divergence", 6 * d**2 / sqrt(N * I * T))
    half = Condition(T, ">=", 4 * upsilon**4 * I * N**5, "P <= T/2 at this P", T)
    whole = Condition(exact, "==", floor(exact + Rational(1, 2)), "P is a number of rounds")
    at_least_one = Condition(exact, ">=", Integer(1), "P is a number of rounds", T)
    drift = Term(DRIFT_NOISE.name, DRIFT_NOISE.expression.subs(P, exact))
    bounded = tuple(IN_EXPECTATION.get(assumption, assumption) for assumption in BOUNDED)
    sampled = (*bounded, UNBIASED_SAMPLING, INDEPENDENT_ROUNDS)
    rules = (EQUAL_WEIGHTS, SAMPLED)
    return (
        Form(
            "printed",
            order,
            (cap(upsilon), half),
            sampled,
            order_only=True,
            hides="one numerical constant for each term, and a scale of unit x/f",
            prescribes={"P": exact, **steps(exact)},
            derived=rules,
            note="eq. (18) for independent rounds as printed; every hidden constant is 1",
        ),
        Form(
            "printed:mixing",
            order,
            (cap(upsilonhat),),
            (*bounded, UNBIASED_SAMPLING, MIXING),
            order_only=True,
            hides="one numerical constant for each term, and a scale of unit x/f",
            asymptotic="T -> infinity",
            prescribes={"P": interval(upsilonhat), **steps(interval(upsilonhat))},
            derived=(EQUAL_WEIGHTS,),
            refuted_by="vanishing-long-run-variance",
            note="eq. (18) for mixing participation; rests on Proposition 4.6",
        ),
        Form(
            "explicit",
            (noise, window, Term("divergence", d**2 / T), drift),
            (cap(upsilon), half),
            sampled,
            prescribes={"P": exact, **steps(exact)},
            derived=rules,
            refuted_by="suprema-at-different-rounds",
            note="rests on Proposition 4.1, which is false, and on a P that need not be a whole number",
        ),
        Form(
            "repaired",
            (noise, window, Term("divergence", REPAIRED_DIVERGENCE.expression.subs(P, exact)), drift),
            (cap(upsilon), half, at_least_one, whole),
            sampled,
            prescribes={"P": exact, **steps(exact)},
            derived=rules,
            note="beta <= d and nu <= d separately; the prescribed P must be a whole number of rounds",
        ),
        Form(
            "repaired:integer-P",
            (noise, Term("window divergence", 6 * N**2 * d**2 * upsilon**2 / P), REPAIRED_DIVERGENCE, DRIFT_NOISE),
            (HALF, Condition(T, ">=", 4 * L * I * P**2 * F / rho**2, "gamma eta <= 1/(2LIP)", T)),
            sampled,
            prescribes=steps(P),
            derived=(
                *rules,
                Derived(
                    "P",
                    ("upsilon", "N", "I", "T"),
                    sp.Max(1, floor(exact + Rational(1, 2))),
                    "the nearest whole number to upsilon^2 N^(5/2) sqrt(I T)",
                    free=True,
                ),
            ),
            note="any whole P, with the two conditions checked directly",
        ),
        Form(
            "repaired:window-variance",
            (noise, Term("window divergence", 6 * N**2 * d**2 * windowvar), REPAIRED_DIVERGENCE, DRIFT_NOISE),
            (HALF, Condition(T, ">=", 4 * L * I * P**2 * F / rho**2, "gamma eta <= 1/(2LIP)", T)),
            (*bounded, UNBIASED_SAMPLING, UNIFORMLY_SAMPLED),
            prescribes=steps(P),
            derived=(EQUAL_WEIGHTS,),
            note="any participation whose exact window variance is known, mixing included",
        ),
        Form(
            "repaired:any-I",
            (
                NOISE_4_3,
                GAP_4_3,
                Term("window divergence", 6 * N**2 * d**2 * upsilon**2 / P),
                REPAIRED_DIVERGENCE,
                DRIFT_NOISE,
            ),
            (HALF,),
            sampled,
            prescribes=STEPS_3_2,
            derived=(
                *rules,
                Derived(
                    "P",
                    ("upsilon", "N", "d", "L", "F", "T"),
                    sp.Max(1, floor(N * d * upsilon * sqrt(3 * T / (8 * L * F)) + Rational(1, 2))),
                    "the whole number nearest to N d upsilon sqrt(3 T/(8 L F)), least in P",
                    free=True,
                ),
            ),
            note="Proposition 4.7 in Corollary 3.2: no cap on I and no hidden scale; the two terms that trade off in P "
            "are together at least 8 sqrt(6) N d upsilon sqrt(L F/T)",
        ),
    )


COROLLARY_4_8 = new_result(
    "corollary-4.8",
    "Convergence under mixing or independent participation",
    OVER_PARTICIPATION,
    "Propositions 4.6 or 4.7 in Corollary 3.3 with P = upsilon^2 N^(5/2) sqrt(I T). The cap on I does not "
    "involve T, so a large T cannot repair it.",
    corollary_4_8_forms(),
    equations=("18",),
    default="repaired:integer-P",
)

RESULTS = (
    PROPOSITION_4_1,
    PROPOSITION_4_2,
    COROLLARY_4_3,
    EQUATION_15,
    PROPOSITION_4_4,
    LEMMA_4_5,
    PROPOSITION_4_6,
    PROPOSITION_4_7,
    COROLLARY_4_8,
)
