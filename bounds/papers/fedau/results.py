r"""Theorems 1, 2 and 3: $x_{t+1}=x_t+\frac\eta N\sum_n\mathbb 1_t^n\omega_t^n\Delta_t^n$."""

from dataclasses import replace

import sympy as sp
from sympy import Integer, Min, Rational, log, sqrt

from fedbounds.bounds.papers.fedau.assumptions import CONSTANT, FEDAU, OPTION_1, OPTION_2
from fedbounds.bounds.papers.fedau.harmonic import HarmonicNumber
from fedbounds.bounds.papers.fedau.lemmas import (
    CLIENTS,
    DIVERGENCE_GROWTH,
    DRIFT_CAP,
    E_2,
    GLOBAL_CAP,
    GRADIENT_GROWTH,
    LEMMA_B_3_1,
    LEMMA_B_3_2,
    LEMMA_B_3_3,
    LEMMA_B_5_1,
    LOCAL_CAP,
    NOISE_GROWTH,
    SMALLER_CAP,
    TWICE,
    deltatilde,
    tau,
)
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.notation import new_result
from fedbounds.bounds.papers.fedau.weight_error import (
    largest_weight_error,
    largest_weight_moment,
    mean_weight_moment,
    weight_error,
)
from fedbounds.bounds.theory.client_reductions import MeanOverClients, SumOverClients
from fedbounds.bounds.theory.measures import AVERAGE_GRADIENT, Measure
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import NONE, Derived

L, F, I, N, T = n.L, n.F, n.I, n.N, n.T
gamma, eta, sigma, delta, G, W, Q, K, p = n.gamma, n.eta, n.sigma, n.delta, n.G, n.W, n.Q, n.K, n.p

RUN = ("p", "K", "T")
DERIVED = (
    CLIENTS,
    Derived("W", RUN, weight_error, "the exact weight error of FedAU with cut-off K", False, "weight_error", "mean"),
    Derived(
        "Q",
        RUN,
        largest_weight_moment,
        "the largest FedAU's weights make it",
        "upwards",
        "largest_weight_moment",
        "maximum",
    ),
    Derived(
        "Qmean", RUN, mean_weight_moment, "exact for FedAU with cut-off K", "upwards", "mean_weight_moment", "mean"
    ),
    Derived("Qmean", ("Q",), Q, "at most Q, in every round", free="downwards"),
)

# --- Theorem 1: constant weights minimize h -----------------------------------------------------------------------

H, P, etatilde, Qtilde, cgamma, cboth = n.H, n.P, n.etatilde, n.Qtilde, n.cgamma, n.cboth
NORMALIZED = (
    CLIENTS,
    TWICE,
    Derived("P", ("omega", "p"), SumOverClients(n.omega * p), "eq. (B.4.1)"),
    Derived("alphatilde", ("omega", "N", "P"), n.omega * N / P, "its definition"),
    Derived("Qtilde", ("p", "alphatilde"), MeanOverClients(p * n.alphatilde**2), "its definition"),
    Derived("etatilde", ("eta", "P", "N"), eta * P / N, "its definition"),
)
AVERAGE_GRADIENT_OF_H = replace(
    AVERAGE_GRADIENT, of="squared gradient norm of h", latex=r"\frac1T\sum_{t<T}\mathbb E\|\nabla h(\mathbf x_t)\|^2"
)
H_GLOBAL_CAP = Condition(gamma * etatilde, "<=", 1 / (2 * L * I), "Lemma B.3.3 with the normalized weights", gamma)
H_SECOND = gamma * etatilde * L * I * Qtilde / N


def constant_weight_terms(gap: sp.Expr, drift: sp.Expr, noise: sp.Expr, participation: sp.Expr) -> tuple[Term, ...]:
    r"""The terms of (B.4.4) with these constants.

    $$c_1\frac{\mathcal H}{\gamma\tilde\eta IT}+c_2\gamma^2L^2I(\sigma^2+6I\tilde\delta^2)
      +\frac{\gamma\tilde\eta L\tilde Q}N(c_3\sigma^2+c_4I\tilde\delta^2)$$
    """
    step = gamma * etatilde * L * Qtilde / N
    return (
        Term("initial gap", gap * H / (gamma * etatilde * I * T)),
        Term("local drift", drift * gamma**2 * L**2 * I * (sigma**2 + 6 * I * deltatilde**2)),
        Term("gradient noise", noise * step * sigma**2),
        Term("participation", participation * step * I * deltatilde**2),
    )


def eighth(participation: sp.Expr) -> Condition:
    """The gradient's coefficient in (B.4.3), at this constant of Lemma B.3.3, is at most 1/8 - 1/4."""
    left = 15 * L**2 * I**2 * gamma**2 + participation / 2 * H_SECOND
    return Condition(left, "<=", Rational(1, 8), "the gradient's coefficient in (B.4.3)", gamma)


H_SLOPE = Rational(1, 4) - 3 * E_2 * tau**2 - DIVERGENCE_GROWTH / 2 * H_SECOND
H_SLOPE_NO_GAP = H_SLOPE + Rational(1, 4)  # constant weights leave no gap to which a quarter must be given up
STEPS_1 = {"gamma": cgamma / sqrt(T), "eta": cboth / cgamma}
CBOTH = cboth * P / N  # of the normalized step
LARGE_T = "T is large enough: a summand of at most 1/16 in the gradient's coefficient"
THEOREM_1 = new_result(
    "theorem-1",
    "Constant weights minimize another objective",
    AVERAGE_GRADIENT_OF_H,
    "With weights omega_n that do not change, FedAvg minimizes h = (1/P) sum_n omega_n p_n F_n, "
    "P = sum_n omega_n p_n, which is f only if all omega_n p_n are equal: with gamma <= c/sqrt(T) and "
    "gamma eta = c'/sqrt(T) the average squared gradient norm of h falls below any epsilon^2 as T grows. Here gamma "
    "is c/sqrt(T): for a smaller one take that smaller c, as bound and conditions only grow with c.",
    (
        Form(
            "printed",
            (Term("limit", Integer(0)),),
            asymptotic="T -> infinity",
            note="eq. (2): below every epsilon^2 for T large enough, which the paper does not quantify; it has "
            "gamma <= c/sqrt(T), at whose largest gamma this is",
        ),
        Form(
            "repaired",
            (
                Term("initial gap", 8 * H / (CBOTH * I * sqrt(T))),
                Term("local drift", 20 * cgamma**2 * L**2 * I * (sigma**2 + 6 * I * deltatilde**2) / T),
                Term("gradient noise", Rational(17, 4) * CBOTH * L * Qtilde * sigma**2 / (N * sqrt(T))),
                Term("participation", Rational(27, 2) * CBOTH * L * Qtilde * I * deltatilde**2 / (N * sqrt(T))),
            ),
            (
                Condition(T, ">=", 900 * L**2 * I**2 * cgamma**2, f"gamma <= 1/(30LI); {LARGE_T}", T),
                Condition(T, ">=", 4 * L**2 * I**2 * CBOTH**2, "the cap on the global step in Lemma B.3.3", T),
                Condition(T, ">=", (27 * CBOTH * L * I * Qtilde / N) ** 2, LARGE_T, T),
            ),
            derived=NORMALIZED,
            note="the rate 1/sqrt(T) at these steps, and how large T must be",
        ),
    ),
    number="Theorem 1 and Theorem B.4.1",
    equations=("2",),
    assumptions=CONSTANT,
    prescribes=STEPS_1,
)
THEOREM_B_4_1 = new_result(
    "theorem-b.4.1",
    "Constant weights, the bound behind Theorem 1",
    AVERAGE_GRADIENT_OF_H,
    "Lemma B.3.3 with varphi_n = omega_n p_n/P and the steps written with normalized weights omega_n N/P "
    "and eta P/N, which give the same iterates; then every weight gap is zero.",
    (
        Form(
            "printed",
            constant_weight_terms(Integer(4), Integer(20), Rational(17, 4), Rational(27, 2)),
            (LOCAL_CAP, H_GLOBAL_CAP, eighth(Rational(27, 8))),
            note="eq. (B.4.4): the 8 of (B.4.3) has become 4, which does not follow, but is true: with constant "
            "weights the gradient keeps 1/2 before the other terms, not 1/4",
        ),
        Form(
            "repaired",
            constant_weight_terms(Integer(8), Integer(20), Rational(9, 2), Rational(68, 5)),
            (LOCAL_CAP, H_GLOBAL_CAP, eighth(Rational(17, 5))),
            note="8 as in (B.4.3), and the repaired Lemma B.3.3",
        ),
        Form(
            "repaired:smaller-cap",
            constant_weight_terms(Integer(8), Integer(20), Rational(17, 4), Rational(27, 2)),
            (SMALLER_CAP, H_GLOBAL_CAP, eighth(Rational(27, 8))),
            note="8 as in (B.4.3), and Lemma B.3.3 as printed, which holds for these local steps",
        ),
        Form(
            "sharp",
            constant_weight_terms(
                1 / H_SLOPE, E_2 / 2 / H_SLOPE, NOISE_GROWTH / 2 / H_SLOPE, DIVERGENCE_GROWTH / 2 / H_SLOPE
            ),
            (
                DRIFT_CAP,
                H_GLOBAL_CAP,
                Condition(
                    3 * E_2 * tau**2 + DIVERGENCE_GROWTH / 2 * H_SECOND,
                    "<",
                    Rational(1, 4),
                    "the gradient must keep a part of its coefficient",
                    gamma,
                ),
            ),
            note="the sharp Lemma B.3.3 with the gradient's coefficient kept as it is",
        ),
        Form(
            "sharp:no-gap",
            constant_weight_terms(
                1 / H_SLOPE_NO_GAP,
                E_2 / 2 / H_SLOPE_NO_GAP,
                NOISE_GROWTH / 2 / H_SLOPE_NO_GAP,
                DIVERGENCE_GROWTH / 2 / H_SLOPE_NO_GAP,
            ),
            (
                DRIFT_CAP,
                H_GLOBAL_CAP,
                Condition(
                    3 * E_2 * tau**2 + DIVERGENCE_GROWTH / 2 * H_SECOND,
                    "<",
                    Rational(1, 2),
                    "the gradient must keep a part of its coefficient",
                    gamma,
                ),
            ),
            note="with constant weights the update's mean is that of h: no gap for Young's inequality to bridge",
        ),
    ),
    equations=("B.4.4",),
    assumptions=CONSTANT,
    derived=NORMALIZED,
)

# --- Theorem 2, eq. (6) -----------------------------------------------------------------------------------------

CAPS = (
    LOCAL_CAP,
    GLOBAL_CAP,
    Condition(gamma * eta, "<=", N / (27 * L * I * Q), "the gradient's coefficient in (B.5.2)", gamma),
)
NEVER_FAR = Condition(n.Wmax, "<=", Rational(1, 81), "Assumption 5, Option 1, on every path and in every round", n.Wmax)
DERIVED_1 = (
    *DERIVED,
    Derived("W", ("Wmax",), n.Wmax, "at most Wmax, in every round", free="downwards"),
    Derived(
        "Wmax",
        RUN,
        largest_weight_error,
        "the largest that FedAU's weights can make it",
        javascript="largest_weight_error",
        over_rounds="maximum",
    ),
)


def theorem_terms(
    gap: sp.Expr,
    error_noise: sp.Expr,
    error: sp.Expr,
    drift: sp.Expr,
    drift_divergence: sp.Expr,
    noise: sp.Expr,
    participation: sp.Expr,
    gradient: sp.Expr = G,
    second_moment: sp.Expr = Q,
) -> tuple[Term, ...]:
    r"""The terms of eq. (6) with these constants.

    $$c_1\frac{\mathcal F}{\gamma\eta IT}+\big(c_2\gamma^2L^2I\sigma^2+c_3(\delta^2+\Psi_G)\big)W
      +\gamma^2L^2I(c_4\sigma^2+c_5I\delta^2)+\frac{\gamma\eta LQ}N(c_6\sigma^2+c_7I\delta^2)$$
    """
    a2 = gamma**2 * L**2 * I
    step = gamma * eta * L * second_moment / N
    return (
        Term("initial gap", gap * F / (gamma * eta * I * T)),
        Term("weight error", (error_noise * a2 * sigma**2 + error * (delta**2 + gradient**2)) * W),
        Term("local drift", a2 * (drift * sigma**2 + drift_divergence * I * delta**2)),
        Term("gradient noise", noise * step * sigma**2),
        Term("participation", participation * step * I * delta**2),
    )


ONE = (Integer(1),) * 7
EXPLICIT = (*map(Integer, (8, 180)), Rational(81, 2), *map(Integer, (20, 120)), Rational(17, 4), Rational(27, 2))

# what the gradient keeps, at least 0.178; 1/8 in the paper
SLOPE = Rational(1, 4) - 3 * E_2 * tau**2 - DIVERGENCE_GROWTH / 2 * gamma * eta * L * I * Q / N
SLOPE_1 = SLOPE - GRADIENT_GROWTH / 54  # under Option 1, at least 0.12


def tight_terms(slope: sp.Expr, gradient: sp.Expr, second_moment: sp.Expr = Q) -> tuple[Term, ...]:
    """Theorem 2 with every constant as small as its proof allows; the slope is at least 0.12."""
    return theorem_terms(
        1 / slope,
        Rational(9, 2) * E_2 / slope,
        Rational(3, 2) * GRADIENT_GROWTH / slope,
        E_2 / 2 / slope,
        3 * E_2 / slope,
        NOISE_GROWTH / 2 / slope,
        DIVERGENCE_GROWTH / 2 / slope,
        gradient,
        second_moment,
    )


HIDDEN = "one numerical constant for each term"
THEOREM_2 = new_result(
    "theorem-2",
    "FedAvg with aggregation weights, bounded global gradient",
    AVERAGE_GRADIENT,
    "The average over the rounds of the expected squared gradient norm of f, for any weights made of the "
    "past. W is the weight error of those weights and Q a bound on their second moment that holds on every path.",
    (
        Form(
            "printed",
            theorem_terms(*ONE),
            order_only=True,
            hides=HIDDEN,
            note="eq. (6) as printed with Psi_G = G^2; every hidden constant is 1",
        ),
        Form(
            "explicit",
            theorem_terms(*EXPLICIT),
            note="eq. (B.5.3), averaged; Lemma B.5.1 behind it is false, but these caps pay for its missing term",
        ),
        Form(
            "sharp",
            tight_terms(SLOPE, G),
            note="the same proof with the cross term of (B.3.8), the exact geometric sums and the slope kept",
        ),
        Form(
            "sharp:mean-Q",
            tight_terms(SLOPE, G, n.Qmean),
            note="the last two terms are averaged over the rounds, so Q may be its mean there; the caps and the slope "
            "need the bound on every path",
        ),
    ),
    number="Theorem 2, Option 2",
    equations=("6", "B.5.3"),
    conditions=CAPS,
    assumptions=OPTION_2,
    derived=DERIVED,
)
THEOREM_2_OPTION_1 = new_result(
    "theorem-2-option-1",
    "FedAvg with aggregation weights, nearly optimal weights",
    AVERAGE_GRADIENT,
    "Theorem 2 for weights within a root mean square 1/9 of 1/p_n in every round, surely. FedAU's own "
    "weights start at 1 and reach K when nobody takes part: with K >= 2, T > K and all p_n < 1 they never do.",
    (
        Form(
            "printed",
            theorem_terms(*ONE, gradient=Integer(0)),
            order_only=True,
            hides=HIDDEN,
            note="eq. (6) as printed with Psi_G = 0; every hidden constant is 1. Option 1 is printed for all t; the "
            "weights are random, so here it is a condition on every path",
        ),
        Form(
            "explicit",
            theorem_terms(*(2 * c for c in EXPLICIT), gradient=Integer(0)),
            note="eq. (B.5.5), averaged: twice Option 2 without G, because the slope is 1/16 instead of 1/8",
        ),
        Form(
            "sharp",
            tight_terms(SLOPE_1, Integer(0)),
            note="the same proof with the cross term of (B.3.8), the exact geometric sums and the slope kept",
        ),
        Form(
            "sharp:mean-Q",
            tight_terms(SLOPE_1, Integer(0), n.Qmean),
            note="the last two terms are averaged over the rounds, so Q may be its mean there; the caps and the slope "
            "need the bound on every path",
        ),
    ),
    number="Theorem 2, Option 1",
    equations=("6", "B.5.5"),
    conditions=(*CAPS, NEVER_FAR),
    assumptions=OPTION_1,
    derived=DERIVED_1,
)

# --- Theorem 3, eq. (7) -----------------------------------------------------------------------------------------

WEIGHT_ERROR = Measure(
    "average",
    "rounds",
    "mean over clients of the squared error of p_n omega_t^n",
    r"\frac1{NT}\sum_{t<T}\sum_n\mathbb E(p_n\omega_t^n-1)^2",
    NONE,
    "participation",
)
TWO_ROUNDS = Condition(T, ">=", Integer(2), "log T in (B.6.9)", T)
BIAS = Term("bias", MeanOverClients((1 - p) ** (2 * K)))
CUT = Min(K, T)  # over T rounds every K >= T is the same algorithm
HALF_STEPS = HarmonicNumber(T - 1)
THEOREM_3 = new_result(
    "theorem-3",
    "The weight error of FedAU",
    WEIGHT_ERROR,
    "Variance grows with the cut-off K, bias falls with it. The exact value is derived where W is needed.",
    (
        Form(
            "printed",
            (Term("variance", K * log(T) / T), BIAS),
            order_only=True,
            hides=HIDDEN,
            note="eq. (7) as printed; every hidden constant is 1",
        ),
        Form(
            "explicit",
            (Term("variance", (3 * K + 2 * K * log(T)) / T), BIAS),
            note="eq. (B.6.9); infinite without a cut-off",
        ),
        Form(
            "sharp",
            (
                Term("variance", MeanOverClients((1 - p) ** 2 + 2 * CUT * (1 - p) * HALF_STEPS) / T),
                Term("bias", (T - 1) / T * MeanOverClients((1 - p) ** (2 * CUT))),
            ),
            note="E(p omega_t - 1)^2 <= 2K(1-p)/t + (1-p)^(2K) for every t >= 1; K >= T is no cut-off",
        ),
        Form(
            "sharp:per-client",
            (Term("variance", K * MeanOverClients(1 + 2 * (1 - p) * (log(T) + 1)) / T), BIAS),
            note="the line before (B.6.9), where 1 - p_n is still in the variance",
        ),
    ),
    equations=("7", "B.6.9"),
    default="sharp",
    conditions=(TWO_ROUNDS,),
    assumptions=FEDAU,
    derived=DERIVED_1,
)
RESULTS = (
    THEOREM_1,
    THEOREM_2,
    THEOREM_2_OPTION_1,
    THEOREM_3,
    LEMMA_B_3_1,
    LEMMA_B_3_2,
    LEMMA_B_3_3,
    THEOREM_B_4_1,
    LEMMA_B_5_1,
)
