"""Theorem 3.1 and Corollaries 3.2, 3.3, the decomposition (11) and the lemmas of the proof.

`nu`, `beta`, `delta` are the roots of the paper's tilde quantities.
"""

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp
from sympy import Integer, Min, Rational, exp, floor, sqrt

from fedbounds.bounds.papers.arbitrary_participation.assumptions import (
    BOUNDED_DIVERGENCE,
    COHORT,
    NOISE,
    NORM,
    PARTICIPATION,
    THEOREM,
    WEIGHTS,
)
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.notation import new_result
from fedbounds.bounds.theory.expressions import largest, least
from fedbounds.bounds.theory.measures import LEAST_GRADIENT, single
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import PARAMETER, Derived

L, F, I, P, T, gamma, eta, rho, sigma, nu, beta = n.L, n.F, n.I, n.P, n.T, n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta
delta, sumsq, gradsq, s = n.delta, n.sumsq, n.gradsq, n.s

EQUAL_WEIGHTS = Derived("rho", ("S",), 1 / sqrt(n.S), "S equal weights: rho = 1/sqrt(S)")

# --- Theorem 3.1, eq. (8) ---------------------------------------------------------------------------------------

LOCAL_CAP = Condition(
    gamma, "<=", 1 / (12 * L * I * P), "Lemmas C.1 and C.2, and the coefficient of the gradient in (C.16)", gamma
)
GLOBAL_CAP = Condition(gamma * eta, "<=", 1 / (2 * L * I * P), "the squared update in (C.15) must not ascend", gamma)
HALF = Condition(P, "<=", T / 2, "P floor(T/P) >= T/2 when telescoping", P)
ONCE = Condition(P, "<=", T, "at least one complete interval", P)
CAPS = (LOCAL_CAP, GLOBAL_CAP, HALF)


def theorem_terms(
    gap: sp.Expr,
    cohort: sp.Expr,
    participation: sp.Expr,
    window: sp.Expr,
    local: sp.Expr,
    drift: sp.Expr,
    update: sp.Expr,
) -> tuple[Term, ...]:
    r"""The seven terms of eq. (8) with these constants.

    $$c_1\frac{\mathcal F}{\gamma\eta IT}+c_2\gamma^2L^2I^2\tilde\nu^2+c_3\gamma^2L^2I^2P^2\tilde\beta^2
      +c_4\tilde\delta^2+(c_5\gamma^2L^2I+c_6\gamma^2L^2IP\rho^2+c_7\gamma\eta L\rho^2)\sigma^2$$
    """
    a2 = gamma**2 * L**2
    return (
        Term("initial gap", gap * F / (gamma * eta * I * T)),
        Term("cohort divergence", cohort * a2 * I**2 * nu**2),
        Term("participation divergence", participation * a2 * I**2 * P**2 * beta**2),
        Term("window divergence", window * delta**2),
        Term("local noise", local * a2 * I * sigma**2),
        Term("drift noise", drift * a2 * I * P * rho**2 * sigma**2),
        Term("update noise", update * gamma * eta * L * rho**2 * sigma**2),
    )


def drop_terms(terms: Sequence[Term], *names: str) -> tuple[Term, ...]:
    """The terms that do not have these names."""
    return tuple(term for term in terms if term.name not in names)


EXPLICIT = theorem_terms(*map(Integer, (8, 126, 144, 6, 21, 18, 4)))
COMPLETE_WINDOWS = P * floor(T / P)

# The geometric sums of Lemmas C.1 and C.2 are at most K1*I and K2*I*P. With x = 1/(2I) and b = 1 - 2a the claim
# ((1 + a/(I-1/2))^I - 1)(I - 1/2)/(a I) <= (e^a - 1)/a reads, after a logarithm and coefficient by coefficient in x,
# (1 - b^(k+1))/(2(k+1)) <= (1 - e^(-ak))/k for all k >= 1, which holds for a = 7/12 and a = 5/9.
K1 = NamedNumber("K1", Rational(12, 7) * (exp(Rational(7, 12)) - 1))  # 1.357717
K2 = NamedNumber("K2", Rational(9, 5) * (exp(Rational(5, 9)) - 1))  # 1.337236
SLOPE = 1 - 24 * K2 * (gamma * L * I * P) ** 2  # what the gradient keeps, at least 1 - K2/6 = 0.777

SHARP = theorem_terms(
    2 * T / (COMPLETE_WINDOWS * SLOPE),
    (18 * K1 + K1 * K2) / SLOPE,
    24 * K2 / SLOPE,
    3 / SLOPE,
    (3 * K1 + K1 * K2 / 6) / SLOPE,
    3 * K2 / SLOPE,
    2 / SLOPE,
)
# The same chain with the weights of its Jensen and Young inequalities chosen to make the bound small. Lemma C.1 weighs
# its three gradients by 3/20, 7/10, 3/20; Lemma C.2 its four by 3/25, 1/10, 8/25, 23/50; the window's three differences
# have the odds 6 : 7 between spread and drift, and r between the window divergence and both. Young's inequality for the
# squared update takes 1/(gamma eta L I P) in place of 2, so that gamma eta may be twice as large.
r = n.r
TUNED_FIRST, TUNED_SECOND = Rational(37, 54), Rational(23, 36)
K3 = NamedNumber("K3", (exp(TUNED_FIRST) - 1) / TUNED_FIRST)  # 1.437256
K4 = NamedNumber("K4", (exp(TUNED_SECOND) - 1) / TUNED_SECOND)  # 1.399756
TUNED_SLOPE = 1 - Rational(1300, 161) * K4 * (1 + r) * (gamma * L * I * P) ** 2
TUNED = theorem_terms(
    2 * T / (COMPLETE_WINDOWS * TUNED_SLOPE),
    (Rational(130, 21) * K3 + Rational(1625, 2646) * K3 * K4) * (1 + r) / TUNED_SLOPE,
    Rational(325, 28) * K4 * (1 + r) / TUNED_SLOPE,
    (1 + r) / r / TUNED_SLOPE,
    (Rational(13, 6) * K3 + Rational(325, 1512) * K3 * K4) * (1 + r) / TUNED_SLOPE,
    Rational(13, 7) * K4 * (1 + r) / TUNED_SLOPE,
    1 / ((1 - gamma * eta * L * I * P) * TUNED_SLOPE),
)
YOUNG_CAP = Condition(gamma * eta, "<", 1 / (L * I * P), "Young's inequality for the squared update", gamma)
ODDS_CAP = Condition(
    (1 + r) * (gamma * L * I * P) ** 2, "<=", Rational(1, 16), "what the gradient keeps is at least 1/4", gamma
)
THEOREM_3_1 = new_result(
    "theorem-3.1",
    "Convergence of generalized FedAvg under arbitrary participation",
    LEAST_GRADIENT,
    "For any exogenous weights q_t^n with sum 1, the least expected squared gradient norm over the rounds, "
    "given the participation, is bounded by the initial gap, the divergences of Assumption 3' and the noise. The proof "
    "sums over the complete windows, so delta^2 may be the average of (7) over them instead of its largest value.",
    (
        Form(
            "printed",
            theorem_terms(*[Integer(1)] * 7),
            order_only=True,
            hides="one numerical constant for each term",
            note="eq. (8) as printed; every hidden constant is 1",
        ),
        Form("explicit", EXPLICIT, note="the constants of the last display of Appendix C.3"),
        Form(
            "explicit:any-P",
            (Term("initial gap", 4 * F / (gamma * eta * I * COMPLETE_WINDOWS)), *EXPLICIT[1:]),
            (LOCAL_CAP, GLOBAL_CAP, ONCE),
            note="before P floor(T/P) >= T/2 is used: any P up to T",
        ),
        Form(
            "explicit:sumsq",
            tuple(
                replace(t, expression=t.expression * (1 - sumsq)) if t.name == "local noise" else t for t in EXPLICIT
            ),
            note="before 1 - S_t <= 1 is used: sumsq is the least S_t, so the term vanishes for one-hot weights",
        ),
        Form(
            "explicit:I=1",
            drop_terms(EXPLICIT, "cohort divergence", "local noise"),
            (*CAPS, Condition(I, "==", Integer(1), "no local drift with one local step")),
            tuple(a for a in THEOREM if a != COHORT),
            note="one local step: the only drift used is zero",
        ),
        Form(
            "explicit:I=P=1",
            drop_terms(EXPLICIT, "cohort divergence", "local noise", "participation divergence", "drift noise"),
            (
                *CAPS,
                Condition(I, "==", Integer(1), "no local drift with one local step"),
                Condition(P, "==", Integer(1), "no drift within a window of one round"),
            ),
            tuple(a for a in THEOREM if a not in (COHORT, PARTICIPATION)),
            note="one local step and no amplification window: no drift at all",
        ),
        Form(
            "sharp",
            SHARP,
            (LOCAL_CAP, GLOBAL_CAP, ONCE),
            note="the same proof with the exact suprema of the geometric sums, the slope kept and floor(T/P) kept",
        ),
        Form(
            "sharp:worst",
            theorem_terms(*map(Rational, ("3.861", "33.79", "41.30", "3.861", "5.631", "5.163", "2.574"))),
            note="the sharp form at its largest step size and P floor(T/P) >= 2T/3, rounded up",
        ),
        Form(
            "sharp:tuned",
            TUNED,
            (LOCAL_CAP, YOUNG_CAP, ODDS_CAP, ONCE),
            note="the same proof with its free parameters chosen by minimization; at the largest gamma no constant is "
            "above those of sharp:worst, the divergences' are 0.48 and 0.63 of theirs; r weighs the window divergence",
        ),
        Form(
            "sharp:initial-gap",
            theorem_terms(*map(Integer, (6, 126, 144, 6, 21, 18, 4))),
            note="the paper's constants but P floor(T/P) >= 2T/3, which holds whenever P <= T/2",
        ),
    ),
    equations=("8",),
    default="sharp",
    conditions=CAPS,
    assumptions=THEOREM,
    derived=(EQUAL_WEIGHTS,),
)


# --- Corollaries 3.2 and 3.3: Theorem 3.1 at step sizes ---------------------------------------------------------


def form_at_step_sizes(form: Form, name: str, steps: dict[str, sp.Expr], **changes: object) -> Form:
    """A form of Theorem 3.1 at the corollary's gamma and eta, with every branch of a minimum put in by itself."""
    branches = steps["eta"].args if isinstance(steps["eta"], Min) else (steps["eta"],)

    def substituted(expression: sp.Expr) -> sp.Expr:
        values = [expression.xreplace({gamma: steps["gamma"], eta: b}) for b in branches]
        falls = expression.as_coeff_exponent(eta)[1].is_negative
        return largest(*values) if falls else least(*values)

    terms = tuple(Term(t.name, substituted(t.expression)) for t in form.terms)
    return replace(form, name=name, terms=terms, prescribes=steps, **changes)


LOCAL_STEP = 1 / (12 * L * I * P * sqrt(T))
STEPS_3_2 = {"gamma": LOCAL_STEP, "eta": Min(12 * P * sqrt(L * I * F) / (sigma * rho), 6 * sqrt(T))}
STEPS_3_3 = {"gamma": LOCAL_STEP, "eta": 12 * P * sqrt(L * I * F) / rho}
SPEEDUP = rho * sqrt(L * F) / sqrt(I * T)
DIVERGENCES = (
    Term("cohort divergence", 7 * nu**2 / (8 * P**2 * T)),
    Term("participation divergence", beta**2 / T),
    Term("window divergence", 6 * delta**2),
)
DRIFT_NOISE = Term("drift noise", (Rational(7, 48) / P + rho**2 / 8) * sigma**2 / (I * P * T))
ORDER_DIVERGENCES = (
    Term("cohort divergence", nu**2 / (P**2 * T)),
    Term("participation divergence", beta**2 / T),
    Term("window divergence", delta**2),
)
ORDER_NOISE = Term("drift noise", sigma**2 / (I * P * T))

COROLLARY_3_2 = new_result(
    "corollary-3.2",
    "Theorem 3.1 at step sizes that know the noise",
    LEAST_GRADIENT,
    "gamma = 1/(12 L I P sqrt(T)) and eta = min{12 P sqrt(L I F)/(sigma rho), 6 sqrt(T)} in Theorem 3.1.",
    (
        Form(
            "printed",
            (Term("noise", sigma * SPEEDUP), Term("initial gap", L * P * F / T), *ORDER_DIVERGENCES, ORDER_NOISE),
            order_only=True,
            hides="one numerical constant for each term",
            note="eq. (9) as printed; every hidden constant is 1",
        ),
        Form(
            "explicit",
            (Term("noise", 12 * sigma * SPEEDUP), Term("initial gap", 16 * L * P * F / T), *DIVERGENCES, DRIFT_NOISE),
            note="12 = 8 + 4; 1/min{a, b} <= 1/a + 1/b",
        ),
        form_at_step_sizes(
            THEOREM_3_1.form("sharp"), "sharp", STEPS_3_2, conditions=(ONCE,), note="the sharp theorem at these steps"
        ),
    ),
    equations=("9",),
    default="sharp",
    conditions=(HALF,),
    assumptions=THEOREM,
    prescribes=STEPS_3_2,
    derived=(EQUAL_WEIGHTS,),
)

FLAT = Condition(T, ">=", 4 * L * I * P**2 * F / rho**2, "gamma eta <= 1/(2LIP) at these step sizes", T)
COROLLARY_3_3 = new_result(
    "corollary-3.3",
    "Theorem 3.1 at step sizes that do not know the noise",
    LEAST_GRADIENT,
    "gamma = 1/(12 L I P sqrt(T)) and eta = 12 P sqrt(L I F)/rho in Theorem 3.1, for T large enough. The sum "
    "1 + sigma^2 adds a number to a squared gradient: the step size hides a scale s of unit x/f.",
    (
        Form(
            "printed",
            (Term("noise", (1 + sigma**2) * SPEEDUP), *ORDER_DIVERGENCES, ORDER_NOISE),
            (Condition(sqrt(F) / (rho * sqrt(L * I * T)), "<=", 1 / (2 * L * I * P), FLAT.why, T), HALF),
            order_only=True,
            hides="one numerical constant for each term, and a scale of unit x/f",
            note="eq. (10) as printed; every hidden constant is 1",
        ),
        Form(
            "explicit",
            (Term("noise", (8 + 4 * sigma**2) * SPEEDUP), *DIVERGENCES, DRIFT_NOISE),
            (FLAT, HALF),
            note="the theorem's constants at these step sizes, an equality",
        ),
        Form(
            "repaired:s",
            (Term("noise", (8 / s + 4 * s * sigma**2) * SPEEDUP), *DIVERGENCES, DRIFT_NOISE),
            (Condition(T, ">=", 4 * s**2 * L * I * P**2 * F / rho**2, FLAT.why, T), HALF),
            prescribes={"gamma": LOCAL_STEP, "eta": s * STEPS_3_3["eta"]},
            note="the hidden scale s made visible; s = 1 is the paper's, s = 1/sigma Corollary 3.2's first branch",
        ),
        form_at_step_sizes(
            THEOREM_3_1.form("sharp"),
            "sharp",
            STEPS_3_3,
            conditions=(FLAT, ONCE),
            note="the sharp theorem at these steps",
        ),
    ),
    equations=("10",),
    default="sharp",
    assumptions=THEOREM,
    prescribes=STEPS_3_3,
    derived=(EQUAL_WEIGHTS,),
)

# --- The decomposition (11) and the lemmas of Appendix C --------------------------------------------------------


EQUATION_11 = new_result(
    "equation-11",
    "Decomposition of the divergence of the participants",
    single(
        "weighted mean squared distance of the participants' gradients from grad f",
        r"\sum_nq_t^n\|\nabla F_n-\nabla f\|^2",
    ),
    "At one point and round the left-hand side is exactly the sum of the left-hand sides of (6) and (5), and "
    "at most d^2. (The paper names the two in the opposite order.)",
    (
        Form(
            "printed",
            (Term("divergence", n.d**2),),
            assumptions=(BOUNDED_DIVERGENCE, WEIGHTS),
            note="the last inequality",
        ),
        Form(
            "explicit",
            (Term("cohort divergence", nu**2), Term("participation divergence", beta**2)),
            assumptions=(COHORT, PARTICIPATION, WEIGHTS),
            note="the identity, with the suprema of (6) and (5)",
        ),
    ),
    number="Section 4",
    equations=("11",),
    default="printed",
)

LEMMA_CAP = (LOCAL_CAP,)
LEMMA_C_1 = new_result(
    "lemma-c.1",
    "Spread of the local models around their weighted mean",
    single(
        "weighted mean squared distance of the local models from their mean, at local step i <= I of round t",
        r"\sum_nq_t^n\mathbb E[\|\mathbf y^n_{t,i}-\bar{\mathbf y}_{t,i}\|^2\mid\mathcal Q]",
        PARAMETER**2,
        expectation="gradient noise",
        given="participation",
    ),
    "sumsq is S_t = sum_n (q_t^n)^2; only gamma <= 1/(12LI) is used.",
    (
        Form(
            "printed",
            (
                Term("cohort divergence", 18 * I**2 * gamma**2 * nu**2),
                Term("noise", 3 * I * gamma**2 * sigma**2 * (1 - sumsq)),
            ),
            LEMMA_CAP,
            note="eq. (C.5)",
        ),
        Form(
            "sharp",
            (
                Term("cohort divergence", 6 * K1 * I**2 * gamma**2 * nu**2),
                Term("noise", K1 * I * gamma**2 * sigma**2 * (1 - sumsq)),
            ),
            (Condition(gamma, "<=", 1 / (12 * L * I), "the recursion of Lemma C.1", gamma),),
            note="the geometric sum is below 1.3578 I, not 3 I, and P plays no part",
        ),
    ),
    equations=("C.5",),
    assumptions=(*NOISE, COHORT, WEIGHTS),
)

LEMMA_C_2 = new_result(
    "lemma-c.2",
    "Drift of the mean model from the window's start",
    single(
        "squared distance of the mean model from the start of its window",
        r"\mathbb E[\|\bar{\mathbf y}_{t,i}-\mathbf x_{t_0}\|^2\mid\mathcal Q]",
        PARAMETER**2,
        expectation="gradient noise",
        given="participation",
    ),
    "gradsq is E|grad f(x_{t_0})|^2 and sumsq is S_t; t_0 <= t < t_0 + P.",
    (
        Form(
            "printed",
            (
                Term("cohort divergence", 3 * gamma**2 * I**2 * nu**2),
                Term("participation divergence", 24 * gamma**2 * I**2 * P**2 * beta**2),
                Term("gradient", 24 * gamma**2 * I**2 * P**2 * gradsq),
                Term("noise", 3 * gamma**2 * I * P * sigma**2 * (rho**2 + (1 - sumsq) / (6 * P))),
            ),
            note="eq. (C.8)",
        ),
        Form(
            "sharp",
            (
                Term("cohort divergence", K1 * K2 / 3 * gamma**2 * I**2 * nu**2),
                Term("participation divergence", 8 * K2 * gamma**2 * I**2 * P**2 * beta**2),
                Term("gradient", 8 * K2 * gamma**2 * I**2 * P**2 * gradsq),
                Term("noise", K2 * gamma**2 * I * P * sigma**2 * (rho**2 + K1 / (18 * P))),
            ),
            note="both geometric sums at their exact suprema; 1 - S_t <= 1 because the rounds of a window may differ",
        ),
    ),
    equations=("C.8",),
    conditions=LEMMA_CAP,
    assumptions=(*NOISE, COHORT, PARTICIPATION, WEIGHTS, NORM),
    derived=(EQUAL_WEIGHTS,),
)

EQUATION_C_16 = new_result(
    "equation-c.16",
    "One window of the proof of Theorem 3.1, before telescoping",
    single(
        "squared gradient norm at the start of one complete window",
        r"\mathbb E[\|\nabla f(\mathbf x_{t_0})\|^2\mid\mathcal Q]",
        expectation="gradient noise",
        given="participation",
    ),
    "Summing it over the complete windows and using f >= f* gives Theorem 3.1.",
    (
        Form(
            "explicit",
            (Term("decrease", 4 * n.decrease / (gamma * eta * I * P)), *EXPLICIT[1:]),
            (LOCAL_CAP, GLOBAL_CAP),
            THEOREM[:-1],
            derived=(EQUAL_WEIGHTS,),
            note="eq. (C.16)",
        ),
    ),
    number="Appendix C.3",
    equations=("C.16",),
)
RESULTS = (THEOREM_3_1, COROLLARY_3_2, COROLLARY_3_3, EQUATION_11, LEMMA_C_1, LEMMA_C_2, EQUATION_C_16)
