r"""FedAU with the cut-off of Corollary 4: Lemmas B.6.1 and B.7.1, Corollary 4, and the comparison of Appendix A.3.

The cut-off $K=\log_cT$, $c=(1-\min_np_n)^{-2}$, is here the whole number $\max\{1,\lceil R\log T\rceil\}$,
$R=1/\log c$.
"""

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp
from sympy import Integer, Rational, ceiling, floor, log, sqrt

from fedbounds.bounds.papers.fedau import assumptions as given
from fedbounds.bounds.papers.fedau.lemmas import CLIENTS
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.notation import RARITY, new_result
from fedbounds.bounds.papers.fedau.results import (
    DERIVED,
    DERIVED_1,
    HIDDEN,
    NEVER_FAR,
    THEOREM_2,
    THEOREM_2_OPTION_1,
    THEOREM_3,
    TWO_ROUNDS,
    WEIGHT_ERROR,
)
from fedbounds.bounds.theory.client_reductions import MeanOverClients
from fedbounds.bounds.theory.expressions import largest, least, substitute
from fedbounds.bounds.theory.measures import AVERAGE_GRADIENT, single
from fedbounds.bounds.theory.result import Condition, Form, Result, Term
from fedbounds.bounds.theory.symbols import NONE, Derived

delta, eta, F, G, gamma, I, K, L, N, p, Q = n.delta, n.eta, n.F, n.G, n.gamma, n.I, n.K, n.L, n.N, n.p, n.Q
sigma, T, W, R, rate, S = n.sigma, n.T, n.W, n.R, n.rate, n.S

# --- Lemma B.6.1: one participation interval ----------------------------------------------------------------------

LEMMA_B_6_1 = new_result(
    "lemma-b.6.1",
    "Mean of an interval that is cut off at K",
    single("mean length of a participation interval", r"\mathbb E\,S_n", NONE, expectation="participation"),
    "An equality. The weight omega_t has this mean in every round t >= K.",
    (
        Form(
            "printed",
            (Term("mean", (1 - (1 - rate) ** K) / rate),),
            assumptions=(given.CUT_OFF_LAW,),
            note="eq. (B.6.2), an equality; K = inf gives 1/p",
        ),
    ),
    equations=("B.6.1", "B.6.2"),
)
LEMMA_B_6_1_VARIANCE = new_result(
    "lemma-b.6.1-variance",
    "Variance of an interval that is cut off at K",
    single(
        "variance of the length of a participation interval",
        r"\operatorname{Var}S_n",
        NONE,
        expectation="participation",
    ),
    "An equality; the cut-off only takes variance away.",
    (
        Form(
            "printed",
            (
                Term("without a cut-off", (1 - rate) / rate**2),
                Term("cut off", -(2 * K - 1) * (1 - rate) ** K / rate),
                Term("bias squared", -((1 - rate) ** (2 * K)) / rate**2),
            ),
            (Condition(K, "<", sp.oo, "without a cut-off the second term is 0, a limit", K),),
            note="eq. (B.6.2), an equality",
        ),
        Form(
            "explicit",
            (Term("without a cut-off", (1 - rate) / rate**2),),
            note="what the proof of Theorem 3 uses, for every K; an equality at K = inf",
        ),
    ),
    number="Lemma B.6.1",
    equations=("B.6.1", "B.6.2"),
    default="printed",
    assumptions=(given.CUT_OFF_LAW,),
)

# --- Lemma B.7.1: the weight error at K = log_c T -----------------------------------------------------------------

PRINTED_K = R * log(T)
WHOLE_K = largest(1, ceiling(R * log(T)))
CUT_OFF = Derived("K", ("R", "T"), WHOLE_K, "the smallest whole number that is at least R log T, and at least 1")
CUT_OFF_OF_Q = replace(CUT_OFF, why="where Q needs it, the smallest whole number that is at least the form's R log T")
IS_WHOLE = (
    Condition(PRINTED_K, "==", floor(PRINTED_K + Rational(1, 2)), "K is a whole number in Algorithm 2"),
    Condition(PRINTED_K, ">=", Integer(1), "K is at least 1 in Algorithm 2"),
)
AT_CUT_OFF = (RARITY, CUT_OFF, *DERIVED_1)
AT_WHOLE_K = ((3 + 2 * log(T)) * (R * log(T) + 1) + 1) / T
C_W = 4 + 7 / log(2)  # 14.10
LEMMA_B_7_1 = new_result(
    "lemma-b.7.1",
    "The weight error of FedAU at its cut-off",
    WEIGHT_ERROR,
    "Theorem 3 with K = log_c T, which makes every bias at most 1/T.",
    (
        Form(
            "printed",
            (Term("weight error", R * log(T) ** 2 / T),),
            order_only=True,
            hides=HIDDEN,
            prescribes={"K": PRINTED_K},
            note="eq. (B.7.1) as printed; K need not be a whole number there, nor at least 1",
        ),
        Form(
            "explicit",
            (Term("variance", (2 * R * log(T) ** 2 + 3 * R * log(T)) / T), Term("bias", 1 / T)),
            (TWO_ROUNDS, *IS_WHOLE),
            prescribes={"K": PRINTED_K},
            note="eq. (B.6.9) at K = log_c T, where that is a whole number",
        ),
        Form(
            "repaired",
            (Term("variance", (3 + 2 * log(T)) * (R * log(T) + 1) / T), Term("bias", 1 / T)),
            note="eq. (B.6.9) at the whole K, which is at most R log T + 1",
        ),
        Form(
            "repaired:constant",
            (Term("weight error", C_W * R * log(T) ** 2 / T),),
            note="the printed order holds at the whole K with the constant 4 + 7/log 2; where K = 1 the weights are 1 "
            "and the error is the mean of (1 - p_n)^2",
        ),
        Form("sharp", THEOREM_3.form("sharp").terms, note="the sharp Theorem 3 at the whole K"),
    ),
    equations=("B.7.1",),
    conditions=(TWO_ROUNDS,),
    assumptions=given.FEDAU,
    prescribes={"K": WHOLE_K},
    derived=AT_CUT_OFF,
)

# --- Corollary 4, eq. (8) -----------------------------------------------------------------------------------------

LOCAL_STEP = least(1 / (L * I * sqrt(T)), 1 / (4 * sqrt(15) * L * I))
GLOBAL_STEPS = (
    sqrt(F * N / (Q * (I * delta**2 + sigma**2) * L * I * T)),
    1 / (2 * L * I),
    N / (27 * L * I * Q),
)  # gamma eta is the least of them
GLOBAL_STEP = least(*GLOBAL_STEPS)
STEPS = {"gamma": LOCAL_STEP, "eta": GLOBAL_STEP / LOCAL_STEP}


def corollary_terms(constants: Sequence[sp.Expr], weight_error: sp.Expr, gradient: sp.Expr) -> tuple[Term, ...]:
    r"""The terms of eq. (8) with these constants.

    $$c_1\frac{\sigma\sqrt{L\mathcal FQ}}{\sqrt{NIT}}+c_1\frac{\delta\sqrt{L\mathcal FQ}}{\sqrt{NT}}
      +\Big(c_2\frac{\sigma^2}{IT}+c_3(\delta^2+\Psi_G)\Big)W+\frac{L\mathcal F}T\Big(c_4+c_5\frac QN\Big)
      +\frac{c_6\sigma^2/I+c_7\delta^2}T$$
    """
    speed, error_noise, error, gap, gap_weights, drift, drift_divergence = constants
    both = sqrt(L * F * Q) / sqrt(N * T)
    return (
        Term("gradient noise", speed * sigma * both / sqrt(I)),
        Term("participation", speed * delta * both),
        Term("weight error", (error_noise * sigma**2 / (I * T) + error * (delta**2 + gradient**2)) * weight_error),
        Term("initial gap", L * F * (gap + gap_weights * Q / N) / T),
        Term("local drift", (drift * sigma**2 / I + drift_divergence * delta**2) / T),
    )


ONE = (Integer(1),) * 7
EXPLICIT_4 = tuple(map(Rational, ("43/2", "180", "81/2", "16", "216", "20", "120")))


def terms_at_steps(form: Form) -> tuple[Term, ...]:
    """A sharp form of Theorem 2 at the corollary's steps; the initial gap at each branch of the minimum by itself."""
    slope = form.terms[0].expression * gamma * eta * I * T / F  # 1/what the gradient keeps
    steps = {gamma: LOCAL_STEP, eta: GLOBAL_STEP / LOCAL_STEP}
    gap = largest(*(F / (step * I * T) for step in GLOBAL_STEPS))
    return (
        Term("initial gap", gap * substitute(slope, steps)),
        *(Term(t.name, substitute(t.expression, steps)) for t in form.terms[1:]),
    )


def corollary_4_forms(option_1: bool) -> tuple[Form, ...]:
    """Printed, with the paper's constants, with the whole K, and the sharp theorem at the exact weight error."""
    theorem = THEOREM_2_OPTION_1 if option_1 else THEOREM_2
    gradient = Integer(0) if option_1 else G
    constants = tuple((2 if option_1 else 1) * c for c in EXPLICIT_4)
    assumptions = given.OPTION_1 if option_1 else given.OPTION_2
    fedau = (*assumptions, given.FEDAU_WEIGHTS)
    needed = (TWO_ROUNDS, NEVER_FAR) if option_1 else (TWO_ROUNDS,)
    derived = DERIVED_1 if option_1 else DERIVED
    at_cut_off = (RARITY, CUT_OFF, *derived)
    psi = "0" if option_1 else "G^2"
    return (
        Form(
            "printed",
            corollary_terms(ONE, R * log(T) ** 2 / T, gradient),
            needed,
            fedau,
            order_only=True,
            hides=HIDDEN,
            prescribes={**STEPS, "K": PRINTED_K},
            derived=(RARITY, CUT_OFF_OF_Q, *derived),
            note=f"eq. (8) as printed with Psi_G = {psi}; every hidden constant is 1, and K need not be a whole number",
        ),
        Form(
            "explicit",
            corollary_terms(constants, W, gradient),
            needed,
            assumptions,
            prescribes=STEPS,
            derived=(RARITY, replace(CUT_OFF, free=True), *derived),
            note="Theorem 2's constants at these steps, for weights of any error W (FedAU's with any K): "
            "1/min{a, b, c} <= 1/a + 1/b + 1/c, and 8 + 13.5 = 21.5" + ("; all doubled" if option_1 else ""),
        ),
        Form(
            "repaired",
            corollary_terms(constants, AT_WHOLE_K, gradient),
            needed,
            fedau,
            prescribes={**STEPS, "K": WHOLE_K},
            derived=at_cut_off,
            note="the same with Lemma B.7.1 at the whole K; Q bounds the weights on every path, so the steps do not "
            "depend on the future",
        ),
        Form(
            "repaired:constant",
            corollary_terms(constants, C_W * R * log(T) ** 2 / T, gradient),
            needed,
            fedau,
            prescribes={**STEPS, "K": WHOLE_K},
            derived=at_cut_off,
            note="the printed third term with its constant, 4 + 7/log 2",
        ),
        Form(
            "sharp",
            terms_at_steps(theorem.form("sharp:mean-Q")),
            needed,
            fedau,
            prescribes={**STEPS, "K": WHOLE_K},
            derived=at_cut_off,
            note="the sharp theorem at these steps, with the exact weight error at the whole K",
        ),
    )


COROLLARY_4 = new_result(
    "corollary-4",
    "Convergence of FedAU, bounded global gradient",
    AVERAGE_GRADIENT,
    "Theorem 2 with steps that fall with T and K = log_c T. They need the smallest p_n, Q, the initial gap, "
    "L, delta and sigma, which the method is meant not to know; Q grows with K, so the leading terms carry up to a "
    "factor R log T beyond the rate with known p_n.",
    corollary_4_forms(option_1=False),
    number="Corollary 4, Option 2 of Assumption 5",
    equations=("8",),
    default="sharp",
)
COROLLARY_4_OPTION_1 = new_result(
    "corollary-4-option-1",
    "Convergence of FedAU, nearly optimal weights",
    AVERAGE_GRADIENT,
    "Next to vacuous: FedAU's weights start at 1, so Option 1 needs (1/N) sum_n (1 - p_n)^2 <= 1/81 at once, "
    "and with K >= 2, T > K and all p_n < 1 they are all K with positive probability, farther than 7/9 from 1/p_n. "
    "It remains for K = 1, where all weights are 1, and where nearly all clients always participate.",
    corollary_4_forms(option_1=True),
    number="Corollary 4, Option 1 of Assumption 5",
    equations=("8",),
    default="sharp",
)

# --- Appendix A.3: known participation statistics -----------------------------------------------------------------

INVERSE_MEAN = MeanOverClients(1 / p)
KNOWN_MOMENT = Condition(Q, ">=", INVERSE_MEAN, "with omega_t^n = 1/p_n this mean is Q_t in every round", Q)
PROBABILITY = Condition(S, "<=", N, "p_n = S/N is a probability", S)
WITHOUT_ERROR = {n.Qmean: Q, W: Integer(0)}


def terms_at_known_rates(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Without weight error; the weights do not change, so Q is its own mean over the rounds."""
    return tuple(Term(t.name, substitute(t.expression, WITHOUT_ERROR)) for t in terms if t.name != "weight error")


def known_form(name: str, terms: tuple[Term, ...], note: str) -> Form:
    """A form for weights 1/p_n that keeps Q as a symbol."""
    return Form(
        name,
        terms_at_known_rates(terms),
        (KNOWN_MOMENT,),
        given.KNOWN_RATES,
        prescribes=STEPS,
        derived=(CLIENTS, Derived("Q", ("p",), INVERSE_MEAN, "the mean of 1/p_n over the clients", free="upwards")),
        note=note,
    )


APPENDIX_A_3_UNEQUAL = new_result(
    "appendix-a.3-unequal",
    "Known participation statistics, equal or not",
    AVERAGE_GRADIENT,
    "Corollary 4 with omega_t^n = 1/p_n for any p_n: no weight error, Q = (1/N) sum_n 1/p_n, and neither "
    "option of Assumption 5 is needed. The paper prints this Q and that the third term of eq. (8) is 0; the bounds "
    "with their constants are ours.",
    (
        known_form("explicit", corollary_terms(EXPLICIT_4, W, G), "Corollary 4's constants without the weight error"),
        known_form("sharp", terms_at_steps(THEOREM_2.form("sharp")), "the sharp Theorem 2 at these steps"),
    ),
    number="Appendix A.3",
    default="sharp",
)
KNOWN_Q = N / S
KNOWN_STEPS = {name: substitute(step, {Q: KNOWN_Q}) for name, step in STEPS.items()}
RATE_HIDDEN = "one numerical constant, L, F, I, delta, sigma and every term of lower order in T"


def cited_rate(name: str, title: str, statement: str, expression: sp.Expr, note: str, *more: Form) -> Result:
    """One rate of Appendix A.3."""
    return new_result(
        f"appendix-a.3{name}",
        title,
        AVERAGE_GRADIENT,
        statement,
        (
            Form(
                "printed",
                (Term("rate", expression),),
                (PROBABILITY,) if more else (),
                given.KNOWN_EQUAL_RATES if more else (given.CITED,),
                order_only=True,
                hides=RATE_HIDDEN,
                hidden=(L, F, delta),
                asymptotic="T -> infinity",
                prescribes=KNOWN_STEPS if more else {},
                note=note,
            ),
            *more,
        ),
        number="Appendix A.3",
        default=more[-1].name if more else "printed",
    )


def equal_rates_form(name: str, note: str) -> Form:
    """A form for weights 1/p_n where every p_n is S/N."""
    return Form(
        name,
        tuple(Term(t.name, substitute(t.expression, {Q: KNOWN_Q})) for t in APPENDIX_A_3_UNEQUAL.form(name).terms),
        (PROBABILITY,),
        given.KNOWN_EQUAL_RATES,
        prescribes=KNOWN_STEPS,
        note=note,
    )


SPEED = sqrt(S * T)
APPENDIX_A_3 = cited_rate(
    "",
    "Known participation statistics",
    "Corollary 4 with omega_t^n = 1/p_n and p_n = S/N: no weight error, Q = N/S, and neither option of Assumption 5 is "
    "needed. Participation is Bernoulli; the S of N clients of a fixed-size sample are not independent.",
    1 / SPEED,
    "the rate with S participants per round, as printed",
    equal_rates_form("explicit", "Corollary 4's constants without the weight error; N drops out"),
    equal_rates_form("sharp", "the sharp Theorem 2 at these steps"),
)
RESULTS = (
    LEMMA_B_6_1,
    LEMMA_B_6_1_VARIANCE,
    LEMMA_B_7_1,
    COROLLARY_4,
    COROLLARY_4_OPTION_1,
    APPENDIX_A_3,
    APPENDIX_A_3_UNEQUAL,
    cited_rate(
        "-karimireddy",
        "Rate of Karimireddy et al. as cited",
        "S of N clients uniformly at random (Karimireddy et al. 2020, Theorem 1). Not checked here.",
        1 / SPEED,
        "a cited rate, whose assumptions are not stated here",
    ),
    cited_rate(
        "-yang",
        "Rate of Yang et al. as cited",
        "S of N clients uniformly at random (Yang et al. 2021, Corollary 2). Not checked here.",
        sqrt(I) / SPEED,
        "a cited rate, whose assumptions are not stated here",
    ),
)
