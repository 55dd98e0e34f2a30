r"""Lemmas C.3 and C.5: the dual gap at the snapshot over a block of rounds, eqs. (69) to (72)."""

import sympy as sp
from sympy import Integer, Rational, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.proof_step_checker import Proof, measure_symbol
from fedbounds.bounds.audit.rules import Telescope, Unfolded
from fedbounds.bounds.audit.vectors import Vec, inner, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import (
    BOUNDED_ITERATES,
    BOUNDED_MAXIMIZER,
    CONCAVE,
    JOINTLY_SMOOTH,
    ONE_POINT_CONCAVE,
    SAMPLING,
)
from fedbounds.bounds.papers.fed_norm_sgda.composites import SAMPLED, SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.concave import ascent_conditions
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_3, LEMMA_C_5
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import snapshot
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import given_start, sample_mean
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import EACH, NOISY
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Result

IN_SNAPSHOT, MOVED, SETTING = snapshot.IN_SNAPSHOT, snapshot.MOVED, snapshot.SETTING
SNAPSHOT_PROOF, STALE, TO_OWN, V_C = snapshot.SNAPSHOT_PROOF, snapshot.STALE, snapshot.TO_OWN, snapshot.V_C

S_1, S_2, D, Gammay, K, L, N, Q, W, X = of.S_1, of.S_2, of.D, of.Gammay, of.K, of.L, of.N, of.Q, of.W, of.X
betaG, betaL, c, d, etay, nu, r, y0 = of.betaG, of.betaL, of.c, of.d, of.etay, of.nu, of.r, of.y0

SNAPSHOT = SNAPSHOT_PROOF.id
yb = Vec.atom("yb")
BEYOND = y0 - yb  # from the maximizer at the snapshot to y_t
ABOVE = Symbol("[f_i(x^, y_k) - f_i(x^, yb)]", real=True)
BELOW = Symbol("[f_i(x^, y_t) - f_i(x^, y_k)]", real=True)
APPROACH = Symbol("[|y_t - yb|^2 - |y_{t+1} - yb|^2]", real=True)
FIRST = Symbol("[|y - yb|^2 at the start of the block]", nonnegative=True)
ONE, QUARTER, EIGHTH = Integer(1), Rational(1, 4), Rational(1, 8)
KEPT, MORE = Rational(69, 64), Rational(11, 8)
HERE = SETTING.with_symbols({BELOW: -STALE - ABOVE})
GradY = IN_SNAPSHOT.G
CLIMB = Gammay * (IN_SNAPSHOT.s + IN_SNAPSHOT.n)


COMMON_MEAN = ByMeaning("CommonMean", inner(GradY, BEYOND), inner(IN_SNAPSHOT.H, BEYOND), op="==")  # BEYOND is still
SMOOTH_IN_Y = ByMeaning(
    "SmoothInY",
    *(-inner(GradY, MOVED["y"]), sp.expand(BELOW + L / 2 * square(MOVED["y"]))),
    "descent lemma for f_i(x^, .)",
    (JOINTLY_SMOOTH.name,),
)


def free_steps(s: Chain) -> None:
    """What of (70) and (71) uses neither concavity nor caps."""
    s["70b", "(70): smoothness between the local y and y_t"] = SMOOTH_IN_Y, JOINTLY_SMOOTH
    s["70d", "the mean over clients and local steps"] = COMMON_MEAN, SIMPLEX
    approach = sp.expand(square(BEYOND) - square(BEYOND + CLIMB))
    s["71a", "the server's step in y"] = ByMeaning(
        "AscentStep", APPROACH, approach, "the algorithm: the server's step", op="=="
    )
    s["71b", "the sample averaged out"] = sample_mean("sy", BEYOND), SAMPLING
    s["71c", "the noise averaged out"] = given_start(IN_SNAPSHOT.n, BEYOND), *NOISY


def concave_steps(s: Chain, concavity: Assumption, home: str) -> None:
    """(70): what concavity is used for."""
    left, towards = inner(GradY, MOVED["y"] + BEYOND), inner(IN_SNAPSHOT.H, BEYOND)
    s["70a", "(70): every client's function f_i(x^, .) beyond the maximizer, at its local y"] = by(
        le(sp.expand(left), ABOVE), concavity
    )
    s["70", "(70): the mean exact direction leads to the maximizer; the drift in y is part of the drift"] = by(
        le(towards, X / (2 * L) - STALE), Unfolded, {"70a": 1, f"{home}70b": 1, f"{home}70d": -1}
    )


def cap_steps(s: Chain, suffix: str, price: sp.Expr) -> None:
    """The conditions of Theorem 4 in symbols, and what the proof of Lemma C.3 takes from them."""
    step, factor = price * Gammay * L, sp.Max(betaG**2, 1)
    noise, ascent = sp.Max(betaL**2 * Q, d * W), sp.Max(1 - d, betaL**2 * K)
    rows = (
        ("local", 64 * price * etay**2 * D * L**2 * sp.Max(betaG**2 * r, 1), ONE),
        ("growth", 2 * step * r * factor * noise, EIGHTH),
        ("ascent", 2 * step * r * ascent, EIGHTH),
    )
    for (name, left, right), condition in zip(rows, ascent_conditions(price), strict=True):
        s[f"{name}{suffix}", condition.why, ""] = le(left, right), Unfolded, condition, SAMPLED
    in_gap = 8 * price * etay**2 * L**2 * D * betaG**2
    s[f"72-local{suffix}", "the gap in the drift", ""] = le(in_gap, EIGHTH), {f"local{suffix}": EIGHTH, "r": in_gap}
    for name, says, left, right, factors in (
        ("S_1", "noise and sampling that grow with the gradient", r * betaG**2 * S_1, QUARTER, {"growth": 2}),
        ("S_2", "sampling and noise in the drift", r * S_2, QUARTER, {"growth": 1, "ascent": 1}),
        ("c", "two clients of a sample", c, EIGHTH, {"ascent": 1}),
    ):
        caps = {f"{cap}{suffix}": factor for cap, factor in factors.items()}
        s[f"72-{name}{suffix}", says, ""] = le(2 * step * left, right), Unfolded, caps, SAMPLED


def drift_steps(s: Chain, suffix: str, price: sp.Expr) -> None:
    """Lemma C.2 in the symbol V_C."""
    in_gap = 8 * price * etay**2 * L**3 * D * betaG**2 * STALE
    s[f"V_C{suffix}", "Lemma C.2 with more than it needs, so that both steps count alike"] = by(
        le(X, sp.expand(2 * price * V_C + in_gap)), Unfolded, f"{SNAPSHOT}/C.2{suffix}"
    )


def capped_steps(s: Chain, suffix: str, price: sp.Expr, home: str) -> None:
    """(71) and (72): the caps put in."""
    gaps = 2 * Gammay * (1 - price * Gammay * L * (2 * c + 2 * r * betaG**2 * S_1)) * STALE
    drift = Gammay / L * (1 + price * Gammay * L * (2 * c + 2 * r * S_2)) * X
    s[f"71{suffix}", "(71): one round towards the maximizer"] = by(
        le(-APPROACH, sp.expand(price * Gammay**2 * N - gaps + drift)),
        f"{home}71a {home}71b {home}71c 70 {SNAPSHOT}/(37){suffix} {SNAPSHOT}/69",
    )
    in_gap, in_drift = 2 * Gammay * STALE, Gammay / L * X
    kept = price * Gammay**2 * N - Rational(5, 4) * Gammay * STALE + MORE * in_drift
    factors = {"c": in_gap + in_drift, "S_1": in_gap, "S_2": in_drift}
    s[f"72a{suffix}", "(72): the gap keeps 5/8 of its factor 2, the drift gets 11/8"] = by(
        le(-APPROACH, sp.expand(kept)),
        {f"71{suffix}": 1, **{f"{home}72-{k}{suffix}": factor for k, factor in factors.items()}},
    )
    left = APPROACH + price * Gammay**2 * N + Rational(11, 4) * price * Gammay * V_C / L
    s[f"72{suffix}", "(72): the gap in the drift taken off, 5/4 - 11/64 = 69/64"] = by(
        le(KEPT * Gammay * STALE, sp.expand(left)),
        {f"72a{suffix}": 1, f"{home}V_C{suffix}": MORE * Gammay / L, f"{home}72-local{suffix}": MORE * Gammay * STALE},
    )


def block_steps(
    s: Chain, suffix: str, price: sp.Expr, kept: sp.Expr, local: sp.Expr, result: Result, home: str
) -> None:
    """Over one block of rounds, of which it keeps `kept`."""
    average, block = measure_symbol(result.measure), "for every block s"
    one = sp.expand(APPROACH / (kept * Gammay) + (price * Gammay * N + local * price * V_C / L) / kept)
    s[f"C.3-round{suffix}", "solved for the gap"] = le(STALE, one), f"72{suffix.removesuffix('-sharp')}"
    telescoped = Telescope(
        APPROACH, FIRST, n.S, average, STALE, (), BOUNDED_MAXIMIZER.name, axiom="a squared distance is never negative"
    )
    s[f"C.3-block{suffix}", "the average over a block, telescoped", block] = by(
        telescoped, f"C.3-round{suffix}", BOUNDED_MAXIMIZER
    )
    s[f"C.3{suffix}", "the block starts within 4R of the maximizer", block] = by(
        le(average, one.xreplace({APPROACH: 4 * n.R / n.S})), f"C.3-block{suffix} {home}4R"
    )


def radius_steps(s: Chain) -> None:
    """r is at least 1, and the start of a block."""
    s["r", "at most all clients take part", ""] = le(ONE, r), Unfolded, SAMPLED
    radius = (BOUNDED_ITERATES, BOUNDED_MAXIMIZER)
    s["4R", "iterate and maximizer lie in one ball: |u - v|^2 <= 2|u|^2 + 2|v|^2", "for every block s"] = by(
        le(FIRST, 4 * n.R), *radius
    )


def restart_proof(result: Result, concavity: Assumption, shared: Proof | None = None) -> Proof:
    """Lemma C.3, or C.5 under another hypothesis, which takes from C.3 what they share."""
    home = f"{shared.id}/" if shared else ""
    s = Chain(HERE, EACH, (SNAPSHOT_PROOF, *([shared] if shared else [])))
    if shared is None:
        free_steps(s)
        radius_steps(s)
        for suffix, price in PRICES:
            cap_steps(s, suffix, price)
            drift_steps(s, suffix, price)
    concave_steps(s, concavity, home)
    for suffix, price in PRICES:
        capped_steps(s, suffix, price, home)
    block_steps(s, "", nu, ONE, Rational(11, 4), result, home)
    block_steps(s, "-sharp", nu, KEPT, Rational(11, 4), result, home)
    block_steps(s, "-printed", ONE, ONE, Integer(4), result, home)
    ends = {"printed": "C.3-printed", "repaired": "C.3", "sharp": "C.3-sharp"}
    return s.proof(result.key, result, ends, substitute=TO_OWN)


PRICES = (("", nu), ("-printed", ONE))
RESTART_PROOF = restart_proof(LEMMA_C_3, CONCAVE)
ONE_POINT_PROOF = restart_proof(LEMMA_C_5, ONE_POINT_CONCAVE, RESTART_PROOF)
