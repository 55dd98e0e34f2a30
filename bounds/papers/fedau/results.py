r"""Theorem 2 under both options of Assumption 5, and Theorem 3.

$x_{t+1}=x_t+\frac\eta N\sum_n\mathbb 1_t^n\omega_t^n\Delta_t^n$. Theorem 2 holds for any weights made of the past;
FedAU's enter through the weight error $W$ (Theorem 3) and through $Q$, which sets the largest step size and must
therefore be known before the run.
"""

from __future__ import annotations

import sympy as sp
from sympy import Integer, Min, Rational, log, sqrt

from bounds.clients import MeanOverClients
from bounds.measures import AVERAGE_GRADIENT, Measure
from bounds.papers.fedau.assumptions import BERNOULLI, FEDAU_WEIGHTS, OPTION_1, OPTION_2
from bounds.papers.fedau.harmonic import HarmonicNumber
from bounds.papers.fedau.notation import NOTATION
from bounds.papers.fedau.weight_error import largest_weight_moment, weight_error
from bounds.result import Condition, Derived, Form, Result, Source, Term
from bounds.symbols import NONE

PAPER = "Wang & Ji 2024"
n = NOTATION
L, F, I, N, T = n.L, n.F, n.I, n.N, n.T
gamma, eta, sigma, delta, G, W, Q, K, p = n.gamma, n.eta, n.sigma, n.delta, n.G, n.W, n.Q, n.K, n.p

DERIVED = (
    Derived("N", ("p",), lambda p: float(p.shape[-1]), "the length of p"),
    Derived("W", ("p", "K", "T"), weight_error, "the exact weight error of FedAU with cut-off K"),
    Derived("Q", ("p", "K", "T"), largest_weight_moment, "the largest value FedAU's weights can give it", free=True),
)

# --- Theorem 2, eq. (6) -----------------------------------------------------------------------------------------

CAPS = (
    Condition(gamma, "<=", 1 / (4 * sqrt(15) * L * I), "local drift, Lemma B.3.3", gamma),
    Condition(gamma * eta, "<=", 1 / (2 * L * I), "the squared update must not ascend, Lemma B.3.3", gamma),
    Condition(gamma * eta, "<=", N / (27 * L * I * Q), "the gradient's coefficient in (B.5.2)", gamma),
)
OPTIMAL_ENOUGH = Condition(W, "<=", Rational(1, 81), "Assumption 5, Option 1, averaged over the rounds", W)


def theorem_terms(
    gap: sp.Expr,
    error_noise: sp.Expr,
    error: sp.Expr,
    drift: sp.Expr,
    drift_divergence: sp.Expr,
    noise: sp.Expr,
    participation: sp.Expr,
    gradient: sp.Expr = G,
) -> tuple[Term, ...]:
    r"""The terms of eq. (6) with these constants.

    $$c_1\frac{\mathcal F}{\gamma\eta IT}+\big(c_2\gamma^2L^2I\sigma^2+c_3(\delta^2+\Psi_G)\big)W
      +\gamma^2L^2I(c_4\sigma^2+c_5I\delta^2)+\frac{\gamma\eta LQ}N(c_6\sigma^2+c_7I\delta^2)$$
    """
    a2 = gamma**2 * L**2 * I
    step = gamma * eta * L * Q / N
    return (
        Term("initial gap", gap * F / (gamma * eta * I * T)),
        Term("weight error", (error_noise * a2 * sigma**2 + error * (delta**2 + gradient**2)) * W),
        Term("local drift", a2 * (drift * sigma**2 + drift_divergence * I * delta**2)),
        Term("gradient noise", noise * step * sigma**2),
        Term("participation", participation * step * I * delta**2),
    )


ONE = (Integer(1),) * 7
EXPLICIT = (*map(Integer, (8, 180)), Rational(81, 2), *map(Integer, (20, 120)), Rational(17, 4), Rational(27, 2))

# The tight form: the geometric sum of the averaged drift is at most (e - 2) I^2 (the paper: 5 I^2), the cross term of
# noise and drift that (B.3.8) drops is kept, and the gradient's coefficient is what it is instead of 1/8.
E_2 = sp.E - 2
tau = gamma * L * I
NOISE_GROWTH = 1 + 2 * sqrt(E_2) * tau + 3 * E_2 * tau**2
DIVERGENCE_GROWTH = 3 + 6 * sqrt(E_2) * tau + 18 * E_2 * tau**2
GRADIENT_GROWTH = 3 + 18 * E_2 * tau**2
SLOPE = Rational(1, 4) - 3 * E_2 * tau**2 - DIVERGENCE_GROWTH / 2 * gamma * eta * L * I * Q / N


def tight_terms(slope: sp.Expr, gradient: sp.Expr) -> tuple[Term, ...]:
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
    )


HIDDEN = "one numerical constant for each term"
THEOREM_2 = Result(
    key="fedau/theorem-2",
    kind="theorem",
    title="FedAvg with aggregation weights, bounded global gradient",
    source=Source(PAPER, "Theorem 2, Option 2", ("6", "B.5.3")),
    measure=AVERAGE_GRADIENT,
    notation=NOTATION,
    default="sharp",
    statement="The average over the rounds of the expected squared gradient norm of f, for any weights made of the "
    "past. W is the weight error of those weights and Q a bound on their second moment that holds on every path.",
    forms=(
        Form(
            "printed",
            theorem_terms(*ONE),
            CAPS,
            OPTION_2,
            order_only=True,
            hides=HIDDEN,
            derived=DERIVED,
            note="eq. (6) as printed with Psi_G = G^2; every hidden constant is 1",
        ),
        Form(
            "explicit",
            theorem_terms(*EXPLICIT),
            CAPS,
            OPTION_2,
            derived=DERIVED,
            note="eq. (B.5.3), averaged; Lemma B.5.1 behind it is false, but these caps pay for its missing term",
        ),
        Form(
            "sharp",
            tight_terms(SLOPE, G),
            CAPS,
            OPTION_2,
            derived=DERIVED,
            note="the same proof with the cross term of (B.3.8), the exact geometric sums and the slope kept",
        ),
    ),
)
THEOREM_2_OPTION_1 = Result(
    key="fedau/theorem-2-option-1",
    kind="theorem",
    title="FedAvg with aggregation weights, nearly optimal weights",
    source=Source(PAPER, "Theorem 2, Option 1", ("6", "B.5.5")),
    measure=AVERAGE_GRADIENT,
    notation=NOTATION,
    default="sharp",
    statement="Theorem 2 for weights within a root mean square 1/9 of 1/p_n in every round, surely. FedAU's own "
    "weights start at 1 and reach K when nobody takes part: with K >= 2, T > K and all p_n < 1 they never do.",
    forms=(
        Form(
            "printed",
            theorem_terms(*ONE, gradient=Integer(0)),
            (*CAPS, OPTIMAL_ENOUGH),
            OPTION_1,
            order_only=True,
            hides=HIDDEN,
            derived=DERIVED,
            note="eq. (6) as printed with Psi_G = 0; every hidden constant is 1",
        ),
        Form(
            "explicit",
            theorem_terms(*(2 * c for c in EXPLICIT), gradient=Integer(0)),
            (*CAPS, OPTIMAL_ENOUGH),
            OPTION_1,
            derived=DERIVED,
            note="eq. (B.5.5), averaged: twice Option 2 without G, because the slope is 1/16 instead of 1/8",
        ),
        Form(
            "sharp",
            tight_terms(SLOPE - GRADIENT_GROWTH / 54, Integer(0)),
            (*CAPS, OPTIMAL_ENOUGH),
            OPTION_1,
            derived=DERIVED,
            note="the same proof with the cross term of (B.3.8), the exact geometric sums and the slope kept",
        ),
    ),
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
THEOREM_3 = Result(
    key="fedau/theorem-3",
    kind="theorem",
    title="The weight error of FedAU",
    source=Source(PAPER, "Theorem 3", ("7", "B.6.9")),
    measure=WEIGHT_ERROR,
    notation=NOTATION,
    default="sharp",
    statement="Variance grows with the cut-off K, bias falls with it. The exact value is derived where W is needed.",
    forms=(
        Form(
            "printed",
            (Term("variance", K * log(T) / T), BIAS),
            (TWO_ROUNDS,),
            (BERNOULLI, FEDAU_WEIGHTS),
            order_only=True,
            hides=HIDDEN,
            note="eq. (7) as printed; every hidden constant is 1",
        ),
        Form(
            "explicit",
            (Term("variance", (3 * K + 2 * K * log(T)) / T), BIAS),
            (TWO_ROUNDS,),
            (BERNOULLI, FEDAU_WEIGHTS),
            note="eq. (B.6.9); infinite without a cut-off",
        ),
        Form(
            "sharp",
            (
                Term("variance", MeanOverClients((1 - p) ** 2 + 2 * CUT * (1 - p) * HALF_STEPS) / T),
                Term("bias", (T - 1) / T * MeanOverClients((1 - p) ** (2 * CUT))),
            ),
            (TWO_ROUNDS,),
            (BERNOULLI, FEDAU_WEIGHTS),
            note="E(p omega_t - 1)^2 <= 2K(1-p)/t + (1-p)^(2K) for every t >= 1; K >= T is no cut-off",
        ),
        Form(
            "sharp:per-client",
            (Term("variance", K * MeanOverClients(1 + 2 * (1 - p) * (log(T) + 1)) / T), BIAS),
            (TWO_ROUNDS,),
            (BERNOULLI, FEDAU_WEIGHTS),
            note="the line before (B.6.9), where 1 - p_n is still in the variance",
        ),
    ),
)
RESULTS = (THEOREM_2, THEOREM_2_OPTION_1, THEOREM_3)
