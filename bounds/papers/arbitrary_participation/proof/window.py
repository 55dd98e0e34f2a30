# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
"""Theorem 3.1: the descent lemma over one window, eqs. (C.13) to (C.16), and the sum over the windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp
from sympy import Expr, Integer, Rational, Symbol, floor

from bounds.audit.axioms import Assumed, Descent, Jensen, NoiseOverTime, Smooth, Uncorrelated
from bounds.audit.claim import Relation
from bounds.audit.derivations import InExpectation
from bounds.audit.rules import Combine, Everywhere, Gram, Telescope
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Atom, Vec, inner, square
from bounds.measures import LEAST_GRADIENT
from bounds.papers.arbitrary_participation.assumptions import BOUNDED_BELOW, EXOGENOUS, WEIGHTS, WINDOW
from bounds.papers.arbitrary_participation.notation import NOTATION as n
from bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from bounds.papers.arbitrary_participation.proof.drift import L1, LEAST_SUM, ONE_ROUND, drift_bound, printed_bound
from bounds.papers.arbitrary_participation.proof.spread import (
    A1,
    DRIFT,
    HALF_STEP,
    ONE_STEP,
    PAPER,
    PAST,
    SPREAD,
    SPREAD_ADDS,
    G,
    f0,
    g0,
    gm,
    gy,
)
from bounds.papers.arbitrary_participation.results import (
    CAPS,
    EQUATION_C_16,
    GLOBAL_CAP,
    HALF,
    K1,
    K2,
    LOCAL_CAP,
    ONCE,
    SLOPE,
    THEOREM_3_1,
)
from bounds.result import Condition

L, F, I, P, T = n.L, n.F, n.I, n.P, n.T
gamma, eta, rho, sigma, nu, beta, delta = n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta, n.delta
sumsq, decrease = n.sumsq, n.decrease

WINDOW_ATOMS = (
    Atom("y", "point", 1, "y_{t,i}^n, the local model"),
    Atom("ybar", "point", 1, "the weighted mean of the local models, in round t before local step i"),
    Atom("x0", "point", 0, "x_{t_0}, where the window starts", per_client=False, still=True),
    Atom("gy", "gradient", 1, "grad F_n at y", at="y", mean="s"),
    Atom("s", "gradient", 1, "S^grad/(IP), the mean gradient over the window", per_client=False, of="mean"),
    Atom("gm", "gradient", 1, "grad F_n at ybar", at="ybar", mean="m"),
    Atom("m", "gradient", 1, "mean of grad F_n(ybar) over the window", per_client=False, of="mean"),
    Atom("g0", "gradient", 0, "grad F_n at x0", at="x0", mean="w0"),
    Atom("w0", "gradient", 0, "mean of grad F_n(x0) over the window", per_client=False, of="mean"),
    Atom("f0", "gradient", 0, "grad f at x0", at="x0", of="f", per_client=False, still=True),
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
        spread_bound, drift_bound: where those claims end, with S_t replaced by what holds in every round.
        kept: the share w of the gradient's coefficient that the form divides by; 1/2 in the paper.
        conditions: of the claims used.
    """

    name: str
    spread: str
    spread_bound: Expr
    drift: str
    drift_bound: Expr
    kept: Expr = HALF_STEP
    conditions: tuple[Condition, ...] = ()

    @property
    def bound(self) -> Expr:
        """Where (C.16) ends."""
        w = self.kept
        drifts = 3 * L**2 / w * (self.spread_bound + self.drift_bound - _gradient_part(self.drift_bound))
        update = 2 / w * gamma * eta * L * rho**2 * sigma**2
        return 2 * decrease / (gamma * eta * I * P * w) + drifts + 3 / w * delta**2 + update


def _gradient_part(bound: Expr) -> Expr:
    return sp.diff(sp.expand(bound), G) * G


def _with(factor: Expr) -> Expr:
    """The spread's additive term with this in place of 1 - S_t."""
    return SPREAD_ADDS.xreplace({sumsq: 1 - factor})


C1, C2, ONE, NONE = f"{L1}/C.5", f"{L2}/C.8", Integer(1), Integer(0)
NOT_LEAST = 1 - LEAST_SUM
EXPLICIT = Branch("", C1, 3 * I * _with(ONE), C2, printed_bound(Integer(3), ONE))
SHARP = Branch("-sharp", f"{C1}-sharp", K1 * I * _with(ONE), f"{L2}/L2.10-sharp", drift_bound(K1, K2, K1 / 18), SLOPE)
LEAST_SUMS = Branch("-least", C1, 3 * I * _with(NOT_LEAST), f"{C2}-least", printed_bound(Integer(3), NOT_LEAST))
ONE_LOCAL = Branch("-one", f"{L1}/L1.one", NONE, f"{C2}-one", printed_bound(NONE, NONE), conditions=(ONE_STEP,))
NO_DRIFT = Branch("-none", f"{L1}/L1.one", NONE, f"{L2}/L2.one", NONE, conditions=(ONE_STEP, ONE_ROUND))
BRANCHES = (EXPLICIT, SHARP, LEAST_SUMS, ONE_LOCAL, NO_DRIFT)


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
    for b in BRANCHES:
        w = b.kept
        steps += [
            Step(
                f"Th4a{b.name}",
                "Lemma C.1 averaged over the window, 1 - S_t <= 1",
                Relation(SPREAD, b.spread_bound),
                Combine((1, 0 if b is not LEAST_SUMS else 3 * I * gamma**2 * sigma**2, 0)),
                (b.spread, f"{L2}/L2.S", f"{L1}/L1.S", *b.conditions),
                "for every t and i <= I",
            ),
            Step(
                f"Th4b{b.name}",
                "Lemma C.2 averaged over the window, 1 - S_t <= 1",
                Relation(DRIFT, b.drift_bound),
                Combine((1, 0, 0)),
                (b.drift, f"{L2}/L2.S", f"{L1}/L1.S", *b.conditions),
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


WINDOW_PROOF = Proof(f"{PAPER}/equation-c.16", WHOLE_WINDOW, window_steps(), EQUATION_C_16, {"explicit": "C.16"}, G)

# --- Theorem 3.1 ----------------------------------------------------------------------------------------------------

C16 = f"{PAPER}/equation-c.16"
LEAST = measure_symbol(LEAST_GRADIENT)
COMPLETE = floor(T / P)


OVER_BOTH = measure_symbol(OVER_PARTICIPATION)
WINDOW_MEAN = Symbol("E delta^2", nonnegative=True)  # over the participation
START_MEAN, DECREASE_MEAN = Symbol("E gradsq", nonnegative=True), Symbol("E decrease", real=True)
LARGEST = Rational("1.28682")  # 1/(1 - K2/6), rounded up
TWO_WINDOWS = "P floor(T/P) >= T/2"


def theorem_steps() -> tuple[Step, ...]:
    """From (C.16) to eq. (8), given the participation, and in expectation over it."""
    steps = [
        Step(
            f"Th9{b.name}",
            "the average over the complete windows, telescoped",
            Relation(LEAST, b.bound.xreplace({decrease: F / COMPLETE})),
            Telescope(decrease, F, COMPLETE, LEAST, G),
            (f"{C16}/C.16{b.name}", BOUNDED_BELOW, LOCAL_CAP, ONCE, *b.conditions),
        )
        for b in BRANCHES
    ]
    rows = [(b, b.name, 8, TWO_WINDOWS) for b in (EXPLICIT, LEAST_SUMS, ONE_LOCAL, NO_DRIFT)]
    rows.append((EXPLICIT, "-two-thirds", 6, "P floor(T/P) >= 2T/3 whenever P <= T/2"))
    for b, name, constant, says in rows:
        steps.append(
            Step(
                f"Th10{name}",
                says,
                Relation(LEAST, constant * F / (gamma * eta * I * T) + b.bound.xreplace({decrease: NONE})),
                Combine((1,)),
                (f"Th9{b.name}", HALF, *b.conditions),
            )
        )
    undivided = replace(SHARP, kept=ONE).bound.xreplace({decrease: F / COMPLETE})
    means = ((G, START_MEAN), (decrease, DECREASE_MEAN), (delta**2, WINDOW_MEAN))
    over_both = EXPLICIT.bound.xreplace({delta**2: WINDOW_MEAN})
    steps += [
        Step(
            "Th11",
            "the printed order with 144 for each hidden constant",
            Relation(LEAST, 144 * THEOREM_3_1.form("printed").bound.doit()),
            Combine((1,)),
            ("Th10", *CAPS),
        ),
        Step(
            "Th12a",
            "what the gradient keeps at the largest gamma",
            Relation(1 / SLOPE, LARGEST),
            Combine(),
            (LOCAL_CAP,),
        ),
        Step(
            "Th12b",
            "P floor(T/P) >= 2T/3 whenever P <= T/2",
            Relation(1 / (P * COMPLETE), 3 / (2 * T)),
            Combine(),
            (HALF,),
        ),
        Step(
            "Th12",
            "rounded up at the largest gamma",
            Relation(LEAST, THEOREM_3_1.form("sharp:worst").bound.doit()),
            Combine((1, undivided, 2 * F * LARGEST / (gamma * eta * I))),
            ("Th9-sharp", "Th12a", "Th12b"),
        ),
        Step(
            "E16",
            "one window, in expectation over the participation as well",
            Relation(START_MEAN, over_both.xreplace({decrease: DECREASE_MEAN})),
            InExpectation(means, "the participation, which the noise does not depend on"),
            (f"{C16}/C.16", EXOGENOUS),
            WINDOWS,
        ),
        Step(
            "E9",
            "the average over the complete windows, telescoped",
            Relation(OVER_BOTH, over_both.xreplace({decrease: F / COMPLETE})),
            Telescope(DECREASE_MEAN, F, COMPLETE, OVER_BOTH, START_MEAN),
            ("E16", BOUNDED_BELOW, LOCAL_CAP, ONCE),
        ),
        Step(
            "E10",
            TWO_WINDOWS,
            Relation(OVER_BOTH, 8 * F / (gamma * eta * I * T) + over_both.xreplace({decrease: NONE})),
            Combine((1,)),
            ("E9", HALF),
        ),
    ]
    return tuple(steps)


THEOREM_PROOF = Proof(
    f"{PAPER}/theorem-3.1",
    WHOLE_WINDOW,
    theorem_steps(),
    THEOREM_3_1,
    {
        "printed": "Th11",
        "explicit": "Th10",
        "explicit:any-P": "Th9",
        "explicit:sumsq": "Th10-least",
        "explicit:I=1": "Th10-one",
        "explicit:I=P=1": "Th10-none",
        "sharp": "Th9-sharp",
        "sharp:worst": "Th12",
        "sharp:initial-gap": "Th10-two-thirds",
    },
    substitute={LEAST_SUM: sumsq},
)
