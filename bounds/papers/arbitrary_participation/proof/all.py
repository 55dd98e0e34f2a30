r"""The proof of Theorem 3.1 (Appendix C of Wang & Ji 2022), step by step, for a machine that believes nothing.

Inside one round the bracket is $\langle u,v\rangle=\sum_nq_t^n\mathbb E[\langle u_n,v_n\rangle\mid\mathcal Q]$, inside one
window its average over the window's rounds and local steps. The spread is $V=\langle y-\bar y,y-\bar y\rangle$, the drift
$D=\|\bar y-x_{t_0}\|^2$. Every constant of the results is recomputed here: a step's bound is an expression in the bounds of
earlier steps, and a form is proved only if its own expression is where the chain ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp
from sympy import Expr, Integer, Rational, floor

from bounds.assumptions import BOUNDED_BELOW, EXOGENOUS, INDEPENDENT_CLIENTS, MARTINGALE, SMOOTH, UNBIASED
from bounds.audit.axioms import (
    Assumed,
    Descent,
    Independent,
    Jensen,
    MeanOf,
    NoiseOverTime,
    Smooth,
    Starts,
    Uncorrelated,
)
from bounds.audit.claim import Relation
from bounds.audit.geometric_sums import GeometricSum
from bounds.audit.rules import Combine, Everywhere, Gram, SumOverClients, Telescope, Unroll, power_sum
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Atom, Vec, inner, square
from bounds.measures import LEAST_GRADIENT
from bounds.papers.arbitrary_participation.assumptions import COHORT, PARTICIPATION, WEIGHTS, WINDOW
from bounds.papers.arbitrary_participation.notation import NOTATION as n
from bounds.papers.arbitrary_participation.results import (
    EQUATION_C_16,
    GLOBAL_CAP,
    HALF,
    K1,
    K2,
    LEMMA_C_1,
    LEMMA_C_2,
    LOCAL_CAP,
    ONCE,
    SLOPE,
    THEOREM_3_1,
)
from bounds.result import Condition

PAPER = "arbitrary-participation"
L, F, I, P, T = n.L, n.F, n.I, n.P, n.T
gamma, eta, rho, sigma, nu, beta, delta = n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta, n.delta
sumsq, decrease = n.sumsq, n.decrease
A1, A2 = SMOOTH.labelled("Assumption 1"), UNBIASED.labelled("Assumption 2")
PAST = (A2, MARTINGALE, EXOGENOUS)

# --- One round ------------------------------------------------------------------------------------------------------

ROUND_ATOMS = (
    Atom("y", "point", 0, "y_{t,i}^n, the local model", mean="ybar"),
    Atom("ybar", "point", 0, "the weighted mean of the local models", per_client=False),
    Atom("x0", "point", 0, "x_{t_0}, where the window starts", per_client=False),
    Atom("gy", "gradient", 0, "grad F_n at y", at="y", mean="mgy"),
    Atom("mgy", "gradient", 0, "weighted mean of grad F_n(y^n)", per_client=False, of="mean"),
    Atom("gm", "gradient", 0, "grad F_n at ybar", at="ybar", mean="mgm"),
    Atom("mgm", "gradient", 0, "weighted mean of grad F_n(ybar)", per_client=False, of="mean"),
    Atom("g0", "gradient", 0, "grad F_n at x0", at="x0", mean="mg0"),
    Atom("mg0", "gradient", 0, "weighted mean of grad F_n(x0)", per_client=False, of="mean"),
    Atom("f0", "gradient", 0, "grad f at x0", at="x0", of="f", per_client=False),
    Atom("xi", "noise", 0, "the noise of client n in this local step", mean="mxi"),
    Atom("mxi", "noise", 0, "the weighted mean of the noise", per_client=False),
)
ROUND = Setting(
    "sum over clients with weights q_t^n, expectation over the noise, in round t before local step i",
    {a.name: a for a in ROUND_ATOMS},
    given="participation",
)
y, ybar, x0, gy, mgy, gm, mgm, g0, mg0, f0, xi, mxi = (Vec.atom(a.name) for a in ROUND_ATOMS)
EACH = "for every round t and local step i < I"

SPREAD, DRIFT, G = square(y - ybar), square(ybar - x0), square(f0)
AFTER_SPREAD = square((y - gamma * (gy + xi)) - (ybar - gamma * (mgy + mxi)))
AFTER_DRIFT = square(ybar - gamma * (mgy + mxi) - x0)
SECOND_MOMENTS = sp.Symbol("sum_n q_n^2 E|xi_n|^2", nonnegative=True)
q, s = sp.Symbol("q_n", nonnegative=True), sp.Symbol("E|xi_n|^2", nonnegative=True)
ONE_CLIENT = (Relation(q, Integer(1)), Relation(s, sigma**2))
SUMS = (((1, 0), Integer(1)), ((2, 0), sumsq), ((1, 1), square(xi)), ((2, 1), SECOND_MOMENTS))
SMALL_CAP = Condition(gamma, "<=", 1 / (12 * L * I), "12 I L^2 gamma^2 <= 1/(12 I)", gamma)
HALF_STEP = Rational(1, 2)
FIRST, SECOND = Rational(7, 12), Rational(5, 9)  # exponents of the two geometric sums

SPREAD_NOISE = gamma**2 * sigma**2 * (1 - sumsq)
SPREAD_ADDS = 6 * I * gamma**2 * nu**2 + SPREAD_NOISE
SPREAD_RATIO = 1 + FIRST / (I - HALF_STEP)


def spread_steps() -> tuple[Step, ...]:
    """Lemma C.1: how far the local models of one round drift apart."""
    apart, turned = y - ybar, gy - mgy
    before = apart - gamma * turned
    young = 1 / (2 * I - 1)
    return (
        Step(
            "L1.0a",
            "the noise is uncorrelated with the models and gradients of this step",
            Relation(inner(xi - mxi, before), Integer(0), "=="),
            Uncorrelated(xi - mxi, before),
            PAST,
            EACH,
        ),
        Step(
            "L1.0",
            "one local step splits the spread into drift and noise, eq. (C.6)",
            Relation(AFTER_SPREAD, square(before) + gamma**2 * square(xi - mxi), "=="),
            Combine((-2 * gamma,)),
            ("L1.0a",),
            EACH,
        ),
        Step(
            "L1.1a",
            "the weighted mean of the noise pairs with its own mean",
            Relation(inner(xi, mxi), square(mxi), "=="),
            MeanOf(xi, mxi),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L1.1b",
            "variance decomposition of the noise over the clients",
            Relation(square(xi - mxi), square(xi) - square(mxi), "=="),
            Gram(),
            ("L1.1a",),
            EACH,
        ),
        Step(
            "L1.1c",
            "independence across clients, used in (C.6)(b)",
            Relation(square(mxi), SECOND_MOMENTS, "=="),
            Independent("xi", SECOND_MOMENTS),
            (A2, INDEPENDENT_CLIENTS, EXOGENOUS),
            EACH,
        ),
        Step(
            "L1.1d",
            "q_n (1 - q_n)(sigma^2 - E|xi_n|^2) >= 0, summed over the clients",
            Relation(square(xi) - SECOND_MOMENTS, sigma**2 * (1 - sumsq)),
            SumOverClients(
                q * (1 - q) * (sigma**2 - s), ONE_CLIENT, (q, s), SUMS, needs=(WEIGHTS.name, UNBIASED.name)
            ),
            (A2, WEIGHTS),
            EACH,
        ),
        Step(
            "L1.1",
            "the noise around its mean is at most sigma^2 (1 - S_t)",
            Relation(square(xi - mxi), sigma**2 * (1 - sumsq)),
            Combine((1, -1, 1)),
            ("L1.1b", "L1.1c", "L1.1d"),
            EACH,
        ),
        Step(
            "L1.S",
            "the squares of weights that sum to 1 sum to at most 1",
            Relation(sumsq, Integer(1)),
            SumOverClients(q * (1 - q), ONE_CLIENT[:1], (q, s), SUMS, needs=(WEIGHTS.name,)),
            (WEIGHTS,),
            "for every round t",
        ),
        Step(
            "L1.2",
            "Young with 1/(2I - 1) and Jensen for three gradients, (C.4) and (C.2)",
            Relation(
                square(before),
                (1 + young) * SPREAD + 6 * I * gamma**2 * (square(gy - gm) + square(gm - mgm) + square(mgm - mgy)),
            ),
            Gram(),
            (),
            EACH,
        ),
        Step(
            "L1.3a",
            "smoothness between the local models and their mean",
            Relation(square(gy - gm), L**2 * SPREAD),
            Smooth("gy", "gm", L),
            (A1,),
            EACH,
        ),
        Step(
            "L1.3b",
            "Jensen over the clients",
            Relation(square(mgm - mgy), square(gm - gy)),
            Jensen(gm - gy),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L1.3c",
            "eq. (6) at the mean model",
            Relation(square(gm - mgm), nu**2),
            Assumed(square(gm - mgm), nu**2, (COHORT.name,), "grad F_n(ybar) around its weighted mean"),
            (COHORT,),
            EACH,
        ),
        Step(
            "L1.4",
            "the recursion of the spread, eq. (C.7)",
            Relation(AFTER_SPREAD, (1 + young + 12 * I * L**2 * gamma**2) * SPREAD + SPREAD_ADDS),
            Combine((1, gamma**2, 1, 12 * I * gamma**2, 6 * I * gamma**2, 6 * I * gamma**2)),
            ("L1.0", "L1.1", "L1.2", "L1.3a", "L1.3b", "L1.3c"),
            EACH,
        ),
        Step(
            "L1.5",
            "the step size keeps the ratio below 1 + 7/(12(I - 1/2))",
            Relation(young + 12 * I * L**2 * gamma**2, SPREAD_RATIO - 1),
            Combine(),
            (SMALL_CAP,),
        ),
        Step(
            "L1.5b",
            "the recursion with that ratio",
            Relation(AFTER_SPREAD, SPREAD_RATIO * SPREAD + SPREAD_ADDS),
            Combine((1, SPREAD)),
            ("L1.4", "L1.5"),
            EACH,
        ),
        Step(
            "L1.start",
            "all local models of a round start at the same point",
            Relation(SPREAD, Integer(0), "=="),
            Starts(SPREAD, "y_{t,0}^n = x_t for every client"),
            (),
            "for i = 0",
        ),
        Step(
            "L1.6",
            "the recursion unrolled over at most I local steps of one round",
            Relation(SPREAD, SPREAD_ADDS * power_sum(SPREAD_RATIO, I)),
            Unroll(SPREAD, AFTER_SPREAD, I),
            ("L1.start", "L1.5b", "L1.S"),
            "for every t and i <= I",
        ),
        *(
            step
            for name, constant in (("", Integer(3)), ("-sharp", K1))
            for step in (
                Step(
                    f"L1.7{name}",
                    f"the geometric sum is at most {constant} I",
                    Relation(power_sum(SPREAD_RATIO, I), constant * I),
                    GeometricSum(FIRST, I, constant),
                    (),
                    "for every whole I >= 1",
                ),
                Step(
                    f"C.5{name}",
                    "Lemma C.1" + (" with the smallest constant" if name else ""),
                    Relation(SPREAD, constant * I * SPREAD_ADDS),
                    Combine((1, SPREAD_ADDS, 0)),
                    ("L1.6", f"L1.7{name}", "L1.S"),
                    "for every t and i <= I",
                ),
            )
        ),
    )


SPREAD_PROOF = Proof(
    f"{PAPER}/lemma-c.1", ROUND, spread_steps(), LEMMA_C_1, {"printed": "C.5", "sharp": "C.5-sharp"}
)

# --- One window -----------------------------------------------------------------------------------------------------

L1 = f"{PAPER}/lemma-c.1"
DRIFT_RATIO = 1 + SECOND / (I * P - HALF_STEP)


def drift_bound(spread: Expr, second: Expr, noise: Expr) -> Expr:
    """Where Lemma C.2 ends, given three constants: of the spread, of the geometric sum, of the spread's noise."""
    return (
        spread * second / 3 * gamma**2 * I**2 * nu**2
        + 8 * second * gamma**2 * I**2 * P**2 * (beta**2 + G)
        + second * gamma**2 * I * P * sigma**2 * (rho**2 + noise / P)
    )


def drift_steps() -> tuple[Step, ...]:
    """Lemma C.2: how far the mean model drifts from the window's start."""
    away = ybar - x0 - gamma * mgy
    young = 1 / (2 * I * P - 1)
    four = square(mgy - mgm) + square(mgm - mg0) + square(mg0 - f0) + G
    steps = [
        Step(
            "L2.0a",
            "the mean noise is uncorrelated with the models and gradients of this step",
            Relation(inner(mxi, away), Integer(0), "=="),
            Uncorrelated(mxi, away),
            PAST,
            EACH,
        ),
        Step(
            "L2.0",
            "one local step splits the drift into gradients and noise, eq. (C.9)",
            Relation(AFTER_DRIFT, square(away) + gamma**2 * square(mxi), "=="),
            Combine((-2 * gamma,)),
            ("L2.0a",),
            EACH,
        ),
        Step(
            "L2.1a",
            "q_n^2 (sigma^2 - E|xi_n|^2) >= 0, summed over the clients",
            Relation(SECOND_MOMENTS, sigma**2 * sumsq),
            SumOverClients(q**2 * (sigma**2 - s), ONE_CLIENT, (q, s), SUMS, needs=(UNBIASED.name,)),
            (A2,),
            EACH,
        ),
        Step(
            "L2.1b",
            "S_t <= rho^2",
            Relation(sumsq, rho**2),
            Assumed(sumsq, rho**2, (WEIGHTS.name,), "the weights of every round"),
            (WEIGHTS,),
            "for every round t",
        ),
        Step(
            "L2.1",
            "the mean noise is at most rho^2 sigma^2",
            Relation(square(mxi), rho**2 * sigma**2),
            Combine((1, 1, sigma**2)),
            (f"{L1}/L1.1c", "L2.1a", "L2.1b"),
            EACH,
        ),
        Step(
            "L2.2",
            "Young with 1/(2IP - 1) and Jensen for four gradients, (C.4) and (C.2)",
            Relation(square(away), (1 + young) * DRIFT + 8 * I * P * gamma**2 * four),
            Gram(),
            (),
            EACH,
        ),
        Step(
            "L2.3a",
            "Jensen over the clients",
            Relation(square(mgy - mgm), square(gy - gm)),
            Jensen(gy - gm),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L2.3b",
            "Jensen over the clients",
            Relation(square(mgm - mg0), square(gm - g0)),
            Jensen(gm - g0),
            (WEIGHTS,),
            EACH,
        ),
        Step(
            "L2.3c",
            "smoothness between the mean model and the window's start",
            Relation(square(gm - g0), L**2 * DRIFT),
            Smooth("gm", "g0", L),
            (A1,),
            EACH,
        ),
        Step(
            "L2.3d",
            "eq. (5) at the window's start",
            Relation(square(mg0 - f0), beta**2),
            Assumed(square(mg0 - f0), beta**2, (PARTICIPATION.name,), "the participants' mean gradient at x0"),
            (PARTICIPATION,),
            EACH,
        ),
        Step(
            "L2.3",
            "the drift after one local step, in terms of spread and drift",
            Relation(
                AFTER_DRIFT,
                (1 + young + 8 * I * P * L**2 * gamma**2) * DRIFT
                + 8 * I * P * gamma**2 * (L**2 * SPREAD + beta**2 + G)
                + gamma**2 * rho**2 * sigma**2,
            ),
            Combine((1, gamma**2, 1, *[8 * I * P * gamma**2] * 5)),
            ("L2.0", "L2.1", "L2.2", f"{L1}/L1.3a", "L2.3a", "L2.3b", "L2.3c", "L2.3d"),
            EACH,
        ),
        Step(
            "L2.5",
            "the step size keeps the ratio below 1 + 5/(9(IP - 1/2))",
            Relation(young + 8 * I * P * L**2 * gamma**2, DRIFT_RATIO - 1),
            Combine(),
            (LOCAL_CAP,),
        ),
        Step(
            "L2.8",
            "within a window a round starts where the last one ended, so at most IP local steps are taken",
            Relation(DRIFT, Integer(0), "=="),
            Starts(DRIFT, "ybar_{t_0,0} = x_{t_0}; x_{t+1} = ybar_{t,I} because the weights sum to 1"),
            (WEIGHTS,),
            "for t = t_0, i = 0",
        ),
    ]
    for name, spread, source, lemma in (("", Integer(3), "C.5", K2), ("-sharp", K1, "C.5-sharp", K2)):
        gradients = 8 * I * P * gamma**2 * (beta**2 + G)
        cohort = spread / 3 * gamma**2 * I * nu**2 / P
        noise = gamma**2 * sigma**2 * rho**2
        own = gamma**2 * sigma**2 * spread / (18 * P)
        adds = cohort + gradients + noise + own
        steps += [
            Step(
                f"L2.7{name}",
                "the recursion of the drift, eq. (C.9), with the sum of squared weights of this round",
                Relation(AFTER_DRIFT, DRIFT_RATIO * DRIFT + cohort + gradients + noise + own * (1 - sumsq)),
                Combine((1, DRIFT, 8 * I * P * gamma**2 * L**2, 0)),
                ("L2.3", "L2.5", f"{L1}/{source}", f"{L1}/L1.S", LOCAL_CAP),
                EACH,
            ),
            Step(
                f"L2.7b{name}",
                "the recursion for all rounds of a window, whose sums of squared weights may differ",
                Relation(AFTER_DRIFT, DRIFT_RATIO * DRIFT + adds),
                Combine((1,)),
                (f"L2.7{name}",),
                EACH,
            ),
            Step(
                f"L2.8b{name}",
                "the recursion unrolled over at most IP local steps of one window",
                Relation(DRIFT, adds * power_sum(DRIFT_RATIO, I * P)),
                Unroll(DRIFT, AFTER_DRIFT, I * P, varying=(sumsq,)),
                ("L2.8", f"L2.7b{name}"),
                "for t_0 <= t < t_0 + P and i <= I",
            ),
        ]
        if not name:
            steps.append(
                Step(
                    "L2.9",
                    "the geometric sum is at most K2 IP",
                    Relation(power_sum(DRIFT_RATIO, I * P), lemma * I * P),
                    GeometricSum(SECOND, I * P, lemma),
                    (),
                    "for every whole I, P >= 1",
                )
            )
        steps.append(
            Step(
                f"L2.10{name}",
                "Lemma C.2 with that constant, for all rounds of a window",
                Relation(DRIFT, drift_bound(spread, lemma, spread / 18)),
                Combine((1, adds)),
                (f"L2.8b{name}", "L2.9"),
                "for t_0 <= t < t_0 + P and i <= I",
            )
        )
    printed = (
        3 * gamma**2 * I**2 * nu**2
        + 24 * gamma**2 * I**2 * P**2 * (beta**2 + G)
        + 3 * gamma**2 * I * P * sigma**2 * (rho**2 + (1 - sumsq) / (6 * P))
    )
    steps.append(
        Step(
            "C.8",
            "Lemma C.2: the slack of the geometric sum covers the S_t of the current round",
            Relation(DRIFT, printed),
            Combine((1, 0)),
            ("L2.10", "L2.1b"),
            "for t_0 <= t < t_0 + P and i <= I",
        )
    )
    return tuple(steps)


DRIFT_PROOF = Proof(
    f"{PAPER}/lemma-c.2",
    ROUND,
    drift_steps(),
    LEMMA_C_2,
    {"printed": "C.8", "sharp": "L2.10-sharp"},
    {next(iter(G.free_symbols)): n.gradsq},
)

WINDOW_ATOMS = (
    Atom("y", "point", 1, "y_{t,i}^n, the local model"),
    Atom("ybar", "point", 1, "the weighted mean of the local models, in round t before local step i"),
    Atom("x0", "point", 0, "x_{t_0}, where the window starts", per_client=False),
    Atom("gy", "gradient", 1, "grad F_n at y", at="y", mean="s"),
    Atom("s", "gradient", 1, "S^grad/(IP), the mean gradient over the window", per_client=False, of="mean"),
    Atom("gm", "gradient", 1, "grad F_n at ybar", at="ybar", mean="m"),
    Atom("m", "gradient", 1, "mean of grad F_n(ybar) over the window", per_client=False, of="mean"),
    Atom("g0", "gradient", 0, "grad F_n at x0", at="x0", mean="w0"),
    Atom("w0", "gradient", 0, "mean of grad F_n(x0) over the window", per_client=False, of="mean"),
    Atom("f0", "gradient", 0, "grad f at x0", at="x0", of="f", per_client=False),
    Atom("mxi", "noise", 1, "the weighted mean of the noise in one local step", mean="z"),
    Atom("z", "noise", 0, "the mean noise over the window, drawn after x0 is known", per_client=False),
)
WHOLE_WINDOW = Setting(
    "mean over the window's rounds and local steps, sum over clients with weights q_t^n, expectation over the noise",
    {a.name: a for a in WINDOW_ATOMS},
    given="participation",
)
mean, at_mean, at_start, noise = Vec.atom("s"), Vec.atom("m"), Vec.atom("w0"), Vec.atom("z")
L2 = f"{PAPER}/lemma-c.2"
WINDOWS = "for every complete window"
STEP = -gamma * eta * I * P * (mean + noise)  # x_{t_0+P} - x_{t_0}


@dataclass(frozen=True)
class Branch:
    """How one form uses the lemmas: which bounds on spread and drift, and how much of the gradient is kept.

    Args:
        name: the suffix of its steps.
        spread, drift: the claims used.
        kept: the share w of the gradient's coefficient that the form divides by; 1/2 in the paper.
        spread_bound, drift_bound: where those claims end, with 1 - S_t <= 1.
    """

    name: str
    spread: str
    drift: str
    kept: Expr
    spread_bound: Expr
    drift_bound: Expr

    @property
    def bound(self) -> Expr:
        """Where (C.16) ends."""
        w = self.kept
        drifts = 3 * L**2 / w * (self.spread_bound + self.drift_bound - _gradient_part(self.drift_bound))
        update = 2 / w * gamma * eta * L * rho**2 * sigma**2
        return 2 * decrease / (gamma * eta * I * P * w) + drifts + 3 / w * delta**2 + update


def _gradient_part(bound: Expr) -> Expr:
    return sp.diff(sp.expand(bound), G) * G


def _free(bound: Expr) -> Expr:
    """With 1 - S_t <= 1."""
    return bound.xreplace({sumsq: Integer(0)})


EXPLICIT_BRANCH = Branch(
    "",
    f"{L1}/C.5",
    f"{L2}/C.8",
    HALF_STEP,
    _free(3 * I * SPREAD_ADDS),
    3 * gamma**2 * I**2 * nu**2
    + 24 * gamma**2 * I**2 * P**2 * (beta**2 + G)
    + 3 * gamma**2 * I * P * sigma**2 * (rho**2 + 1 / (6 * P)),
)
SHARP_BRANCH = Branch(
    "-sharp",
    f"{L1}/C.5-sharp",
    f"{L2}/L2.10-sharp",
    SLOPE,
    _free(K1 * I * SPREAD_ADDS),
    drift_bound(K1, K2, K1 / 18),
)


def window_steps() -> tuple[Step, ...]:
    """From the descent lemma to (C.16)."""
    three = square(mean - at_mean) + square(at_mean - at_start) + square(at_start - f0)
    steps = [
        Step(
            "Th1",
            "descent lemma for the amplified update of a window, eq. (C.13)",
            Relation(-decrease, sp.expand(inner(f0, STEP) + L / 2 * square(STEP))),
            Descent("f0", STEP, decrease, L),
            (A1,),
            WINDOWS,
        ),
        Step(
            "Th1b",
            "the window's noise is uncorrelated with the gradient at its start",
            Relation(inner(noise, f0), Integer(0), "=="),
            Uncorrelated(noise, f0),
            PAST,
            WINDOWS,
        ),
        Step(
            "Th2",
            "the product of two vectors by three squares",
            Relation(-inner(f0, mean), square(mean - f0) / 2 - G / 2 - square(mean) / 2, "=="),
            Combine(),
            (),
            WINDOWS,
        ),
        Step(
            "Th3a",
            "Jensen for three differences",
            Relation(square(mean - f0), 3 * three),
            Gram(),
            (),
            WINDOWS,
        ),
        Step(
            "Th3b",
            "Jensen over the window",
            Relation(square(mean - at_mean), square(gy - gm)),
            Jensen(gy - gm),
            (WEIGHTS,),
            WINDOWS,
        ),
        Step(
            "Th3c",
            "Jensen over the window",
            Relation(square(at_mean - at_start), square(gm - g0)),
            Jensen(gm - g0),
            (WEIGHTS,),
            WINDOWS,
        ),
        Step(
            "Th3d",
            "smoothness between the local models and their mean",
            Relation(square(gy - gm), L**2 * SPREAD),
            Smooth("gy", "gm", L),
            (A1,),
            WINDOWS,
        ),
        Step(
            "Th3e",
            "smoothness between the mean model and the window's start",
            Relation(square(gm - g0), L**2 * DRIFT),
            Smooth("gm", "g0", L),
            (A1,),
            WINDOWS,
        ),
        Step(
            "Th3f",
            "eq. (7) at the window's start",
            Relation(square(at_start - f0), delta**2),
            Assumed(square(at_start - f0), delta**2, (WINDOW.name,), "the window's mean gradient at x0"),
            (WINDOW,),
            "for every t_0 in {0, P, 2P, ...}",
        ),
        Step(
            "Th3",
            "the window's mean gradient against grad f, by spread, drift and window divergence",
            Relation(square(mean - f0), 3 * L**2 * SPREAD + 3 * L**2 * DRIFT + 3 * delta**2),
            Combine((1, 3, 3, 3, 3, 3)),
            ("Th3a", "Th3b", "Th3c", "Th3d", "Th3e", "Th3f"),
            WINDOWS,
        ),
        Step(
            "Th5a",
            "the squared update by gradient and noise, which depend on each other within a window",
            Relation(square(mean + noise), 2 * square(mean) + 2 * square(noise)),
            Gram(),
            (),
            WINDOWS,
        ),
        Step(
            "Th5b",
            "the noise of a window, eq. (C.15)",
            Relation(square(noise), rho**2 * sigma**2 / (I * P)),
            NoiseOverTime("z", "mxi", I * P),
            (f"{L2}/L2.1", *PAST),
            WINDOWS,
        ),
        Step(
            "Th7",
            "the squared update does not ascend",
            Relation(2 * gamma * eta * L * I * P, Integer(1)),
            Combine(),
            (GLOBAL_CAP,),
        ),
    ]
    for b in (EXPLICIT_BRANCH, SHARP_BRANCH):
        w = b.kept
        steps += [
            Step(
                f"Th4a{b.name}",
                "Lemma C.1 averaged over the window, 1 - S_t <= 1",
                Relation(SPREAD, b.spread_bound),
                Combine((1,)),
                (b.spread,),
                "for every t and i <= I",
            ),
            Step(
                f"Th4b{b.name}",
                "Lemma C.2 averaged over the window, 1 - S_t <= 1",
                Relation(DRIFT, b.drift_bound),
                Combine((1,)),
                (b.drift,),
                "for t_0 <= t < t_0 + P and i <= I",
            ),
            Step(
                f"Th4c{b.name}",
                "the average of the spread over the window",
                Relation(SPREAD, b.spread_bound),
                Everywhere((sumsq,)),
                (f"Th4a{b.name}",),
                WINDOWS,
            ),
            Step(
                f"Th4d{b.name}",
                "the average of the drift over the window",
                Relation(DRIFT, b.drift_bound),
                Everywhere((sumsq,)),
                (f"Th4b{b.name}",),
                WINDOWS,
            ),
            Step(
                f"Th6{b.name}",
                "what the gradient keeps",
                Relation(w, 1 - 3 * L**2 * sp.diff(sp.expand(b.drift_bound), G)),
                Combine(),
                (LOCAL_CAP,),
            ),
            Step(
                f"Th6b{b.name}",
                "it keeps something",
                Relation(Rational(1, 2), w),
                Combine(),
                (LOCAL_CAP,),
            ),
            Step(
                f"C.16{b.name}",
                "one window, eq. (C.16)",
                Relation(G, b.bound),
                Combine(
                    (
                        2 / (gamma * eta * I * P * w),
                        -2 / w,
                        2 / w,
                        1 / w,
                        gamma * eta * L * I * P / w,
                        2 * gamma * eta * L * I * P / w,
                        3 * L**2 / w,
                        3 * L**2 / w,
                        G / w,
                        square(mean) / w,
                        0,
                    )
                ),
                (
                    "Th1",
                    "Th1b",
                    "Th2",
                    "Th3",
                    "Th5a",
                    "Th5b",
                    f"Th4c{b.name}",
                    f"Th4d{b.name}",
                    f"Th6{b.name}",
                    "Th7",
                    f"Th6b{b.name}",
                    LOCAL_CAP,
                ),
                WINDOWS,
            ),
        ]
    return tuple(steps)


WINDOW_PROOF = Proof(f"{PAPER}/equation-c.16", WHOLE_WINDOW, window_steps(), EQUATION_C_16, {"explicit": "C.16"})

# --- Theorem 3.1 ----------------------------------------------------------------------------------------------------

C16 = f"{PAPER}/equation-c.16"
LEAST = measure_symbol(LEAST_GRADIENT)
COMPLETE = floor(T / P)


def theorem_steps() -> tuple[Step, ...]:
    """From (C.16) to eq. (8)."""
    steps = []
    for b in (EXPLICIT_BRANCH, SHARP_BRANCH):
        steps.append(
            Step(
                f"Th9{b.name}",
                "the average over the complete windows, telescoped",
                Relation(LEAST, b.bound.xreplace({decrease: F / COMPLETE})),
                Telescope(decrease, F, COMPLETE, LEAST),
                (f"{C16}/C.16{b.name}", BOUNDED_BELOW, LOCAL_CAP, ONCE),
            )
        )
    rest = EXPLICIT_BRANCH.bound.xreplace({decrease: Integer(0)})
    for name, constant in (("", 8), ("-two-thirds", 6)):
        steps.append(
            Step(
                f"Th10{name}",
                "P floor(T/P) >= T/2" if not name else "P floor(T/P) >= 2T/3 whenever P <= T/2",
                Relation(LEAST, constant * F / (gamma * eta * I * T) + rest),
                Combine((1,)),
                ("Th9", HALF),
            )
        )
    return tuple(steps)


THEOREM_PROOF = Proof(
    f"{PAPER}/theorem-3.1",
    WHOLE_WINDOW,
    theorem_steps(),
    THEOREM_3_1,
    {"explicit": "Th10", "explicit:any-P": "Th9", "sharp": "Th9-sharp", "sharp:initial-gap": "Th10-two-thirds"},
)

PROOFS = (SPREAD_PROOF, DRIFT_PROOF, WINDOW_PROOF, THEOREM_PROOF)
