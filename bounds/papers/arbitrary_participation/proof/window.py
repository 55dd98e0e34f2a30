"""Theorem 3.1: the descent lemma over one window, eqs. (C.13) to (C.16), and the sum over the windows."""

from dataclasses import dataclass, replace

import sympy as sp
from sympy import Expr, Integer, Rational, floor

from fedbounds.bounds.audit.axioms import Descent, Jensen, NoiseOverTime, Smooth, Uncorrelated
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Everywhere, Gram, Telescope
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, square
from fedbounds.bounds.papers.arbitrary_participation import results
from fedbounds.bounds.papers.arbitrary_participation.assumptions import BOUNDED_BELOW, WEIGHTS, WINDOW
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.proof import spread as lemma
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.result import Condition

A1, DRIFT, HALF_STEP, IN_ROUND, ONE_STEP = lemma.A1, lemma.DRIFT, lemma.HALF_STEP, lemma.IN_ROUND, lemma.ONE_STEP
PAPER, PAST, SPREAD, SPREAD_ADDS = lemma.PAPER, lemma.PAST, lemma.SPREAD, lemma.SPREAD_ADDS
SPREAD_PROOF, G = lemma.SPREAD_PROOF, lemma.G
DRIFT_PROOF, IN_WINDOW, L1, LEAST_SUM = lemma.DRIFT_PROOF, lemma.IN_WINDOW, lemma.L1, lemma.LEAST_SUM
ONE_ROUND, drift_bound, printed_bound = lemma.ONE_ROUND, lemma.drift_bound, lemma.printed_bound
L, F, I, P, T, gamma, eta, rho, sigma, nu, beta = n.L, n.F, n.I, n.P, n.T, n.gamma, n.eta, n.rho, n.sigma, n.nu, n.beta
delta, sumsq, decrease = n.delta, n.sumsq, n.decrease
K1, K2, LOCAL_CAP, SLOPE = results.K1, results.K2, results.LOCAL_CAP, results.SLOPE

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
WHOLE_WINDOW = ProofSetting.of(
    "mean over the window's rounds and local steps, sum over clients with weights q_t^n, expectation over the noise",
    *WINDOW_ATOMS,
    given="participation",
)
gy, gm, g0, f0 = (Vec.atom(name) for name in ("gy", "gm", "g0", "f0"))
mean, at_mean, at_start, noise = (Vec.atom(name) for name in ("s", "m", "w0", "z"))
L2 = f"{PAPER}/lemma-c.2"
WINDOWS = "for every complete window"
STEP = -gamma * eta * I * P * (mean + noise)  # x_{t_0+P} - x_{t_0}


@dataclass(frozen=True)
class WindowChain:
    """How one form uses the lemmas: which bounds on spread and drift, and how much of the gradient is kept."""

    name: str  # the suffix of its steps
    spread: str  # the claims used
    spread_bound: Expr  # where those claims end, with S_t replaced by what holds in every round
    drift: str
    drift_bound: Expr
    kept: Expr = HALF_STEP  # the share w of the gradient's coefficient that the form divides by; 1/2 in the paper
    conditions: tuple[Condition, ...] = ()  # of the claims used

    @property
    def bound(self) -> Expr:
        """Where (C.16) ends."""
        w = self.kept
        drifts = 3 * L**2 / w * (self.spread_bound + self.drift_bound - _gradient_part(self.drift_bound))
        update = 2 / w * gamma * eta * L * rho**2 * sigma**2
        return 2 * decrease / (gamma * eta * I * P * w) + drifts + 3 / w * delta**2 + update


def _gradient_part(bound: Expr) -> Expr:
    return sp.diff(sp.expand(bound), G) * G


def _spread_noise(factor: Expr) -> Expr:
    """The spread's additive term with this in place of 1 - S_t."""
    return SPREAD_ADDS.xreplace({sumsq: 1 - factor})


C1, C2, ONE, NONE = f"{L1}/C.5", f"{L2}/C.8", Integer(1), Integer(0)
NOT_LEAST = 1 - LEAST_SUM
EXPLICIT = WindowChain("", C1, 3 * I * _spread_noise(ONE), C2, printed_bound(Integer(3), ONE))
SHARP = WindowChain(
    "-sharp", f"{C1}-sharp", K1 * I * _spread_noise(ONE), f"{L2}/L2.10-sharp", drift_bound(K1, K2, K1 / 18), SLOPE
)
LEAST_SUMS = WindowChain(
    "-least", C1, 3 * I * _spread_noise(NOT_LEAST), f"{C2}-least", printed_bound(Integer(3), NOT_LEAST)
)
ONE_LOCAL = WindowChain("-one", f"{L1}/L1.one", NONE, f"{C2}-one", printed_bound(NONE, NONE), conditions=(ONE_STEP,))
NO_DRIFT = WindowChain("-none", f"{L1}/L1.one", NONE, f"{L2}/L2.one", NONE, conditions=(ONE_STEP, ONE_ROUND))
BRANCHES = (EXPLICIT, SHARP, LEAST_SUMS, ONE_LOCAL, NO_DRIFT)

three = square(mean - at_mean) + square(at_mean - at_start) + square(at_start - f0)
c = Chain(WHOLE_WINDOW, WINDOWS, (SPREAD_PROOF, DRIFT_PROOF))
c["Th1", "descent lemma for the amplified update of a window, eq. (C.13)"] = Descent("f0", STEP, decrease, L), A1
c["Th1b", "the window's noise is uncorrelated with the gradient at its start"] = Uncorrelated(noise, f0), *PAST
c["Th2", "the product of two vectors by three squares"] = by(
    eq(-inner(f0, mean), square(mean - f0) / 2 - G / 2 - square(mean) / 2)
)
c["Th3a", "Jensen for three differences"] = le(square(mean - f0), 3 * three), Gram()
c["Th3b", "Jensen over the window"] = Jensen(gy - gm), WEIGHTS
c["Th3c", "Jensen over the window"] = Jensen(gm - g0), WEIGHTS
c["Th3d", "smoothness between the local models and their mean"] = Smooth("gy", "gm", L), A1
c["Th3e", "smoothness between the mean model and the window's start"] = Smooth("gm", "g0", L), A1
c["Th3f", "eq. (7): the window's mean gradient at its start", "for every t_0 in {0, P, 2P, ...}"] = by(
    le(square(at_start - f0), delta**2), WINDOW
)
c["Th3", "the window's mean gradient against grad f, by spread, drift and window divergence"] = by(
    le(square(mean - f0), 3 * L**2 * SPREAD + 3 * L**2 * DRIFT + 3 * delta**2), "Th3a Th3b Th3c Th3d Th3e Th3f"
)
c["Th5a", "the squared update by gradient and noise, which depend on each other within a window"] = by(
    le(square(mean + noise), 2 * square(mean) + 2 * square(noise)), Gram()
)
c["Th5b", "the noise of a window, eq. (C.15)"] = NoiseOverTime("z", "mxi", I * P), f"{L2}/L2.1", *PAST
c["Th7", "the squared update does not ascend", ""] = le(2 * gamma * eta * L * I * P, 1), results.GLOBAL_CAP
for b in BRANCHES:
    least = 3 * I * gamma**2 * sigma**2 if b is LEAST_SUMS else 0
    c[f"Th4a{b.name}", "Lemma C.1 averaged over the window, 1 - S_t <= 1", IN_ROUND] = by(
        le(SPREAD, b.spread_bound), {b.spread: 1, f"{L2}/L2.S": least}, f"{L1}/L1.S", *b.conditions
    )
    c[f"Th4b{b.name}", "Lemma C.2 averaged over the window, 1 - S_t <= 1", IN_WINDOW] = by(
        le(DRIFT, b.drift_bound), f"{b.drift} {L2}/L2.S {L1}/L1.S", *b.conditions
    )
    c[f"Th4c{b.name}", "the average of the spread over the window"] = Everywhere((sumsq,)), f"Th4a{b.name}"
    c[f"Th4d{b.name}", "the average of the drift over the window"] = Everywhere((sumsq,)), f"Th4b{b.name}"
    w, slope = b.kept, 3 * L**2 * sp.diff(sp.expand(b.drift_bound), G)
    c[f"Th6{b.name}", "what the gradient keeps", ""] = le(w, 1 - slope), LOCAL_CAP
    c[f"Th6b{b.name}", "it keeps something", ""] = le(HALF_STEP, w), LOCAL_CAP
    c[f"C.16{b.name}", "one window, eq. (C.16)"] = by(
        le(G, b.bound),
        {"Th1": 2 / (gamma * eta * I * P * w), "Th1b": -2 / w, "Th2": 2 / w, "Th3": 1 / w},
        {"Th5a": gamma * eta * L * I * P / w, "Th5b": 2 * gamma * eta * L * I * P / w},
        {f"Th4c{b.name}": 3 * L**2 / w, f"Th4d{b.name}": 3 * L**2 / w},
        {f"Th6{b.name}": G / w, "Th7": square(mean) / w},
        f"Th6b{b.name}",
        LOCAL_CAP,
    )

WINDOW_PROOF = c.proof(f"{PAPER}/equation-c.16", results.EQUATION_C_16, {"explicit": "C.16"}, G)

# --- Theorem 3.1 ----------------------------------------------------------------------------------------------------

C16 = WINDOW_PROOF.id
LEAST = measure_symbol(LEAST_GRADIENT)
COMPLETE = floor(T / P)
LARGEST = Rational("1.28682")  # 1/(1 - K2/6), rounded up
TWO_WINDOWS, TWO_THIRDS = "P floor(T/P) >= T/2", "P floor(T/P) >= 2T/3 whenever P <= T/2"
AVERAGED = "the average over the complete windows, telescoped"


def average_over_windows(bound: Expr) -> Expr:
    """The bound of one window, averaged over all complete ones."""
    return bound.xreplace({decrease: F / COMPLETE})


def bound_with_gap(constant: int, bound: Expr) -> Expr:
    """The same with the number of windows bounded, so that the initial gap has this constant."""
    return constant * F / (gamma * eta * I * T) + bound.xreplace({decrease: NONE})


c = Chain(WHOLE_WINDOW, cites=(WINDOW_PROOF,))
for b in BRANCHES:
    c[f"Th9{b.name}", AVERAGED] = by(
        Telescope(decrease, F, COMPLETE, LEAST, G),
        f"{C16}/C.16{b.name}",
        BOUNDED_BELOW,
        LOCAL_CAP,
        results.ONCE,
        *b.conditions,
    )
for b in (EXPLICIT, LEAST_SUMS, ONE_LOCAL, NO_DRIFT):
    c[f"Th10{b.name}", TWO_WINDOWS] = le(LEAST, bound_with_gap(8, b.bound)), f"Th9{b.name}", results.HALF, *b.conditions
c["Th10-two-thirds", TWO_THIRDS] = le(LEAST, bound_with_gap(6, EXPLICIT.bound)), "Th9", results.HALF
c["Th11", "the printed order with 144 for each hidden constant"] = by(
    le(LEAST, 144 * results.THEOREM_3_1.form("printed").bound.doit()), "Th10", *results.CAPS
)
c["Th12a", "what the gradient keeps at the largest gamma"] = le(1 / SLOPE, LARGEST), LOCAL_CAP
c["Th12b", TWO_THIRDS] = le(1 / (P * COMPLETE), 3 / (2 * T)), results.HALF
c["Th12", "rounded up at the largest gamma"] = by(
    le(LEAST, results.THEOREM_3_1.form("sharp:worst").bound.doit()),
    {
        "Th9-sharp": 1,
        "Th12a": average_over_windows(replace(SHARP, kept=ONE).bound),
        "Th12b": 2 * F * LARGEST / (gamma * eta * I),
    },
)

THEOREM_PROOF = c.proof(
    f"{PAPER}/theorem-3.1",
    results.THEOREM_3_1,
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
