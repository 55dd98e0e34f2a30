# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemmas C.3 and C.5: the dual gap at the snapshot over a block of rounds, eqs. (69) to (72)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational, Symbol

from bounds.assumptions import MARTINGALE, Assumption
from bounds.audit.axioms import Assumed, Schema, Unfit
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Abbreviated, Combine, Stated
from bounds.audit.steps import Proof, Setting, Step, condition_fact, measure_symbol
from bounds.audit.vectors import Atom, Vec, inner, square
from bounds.papers.fed_norm_sgda.assumptions import (
    BLOCK_NOISE,
    BOUNDED_ITERATES,
    BOUNDED_MAXIMISER,
    CONCAVE,
    JOINTLY_SMOOTH,
    ONE_POINT_CONCAVE,
    SAMPLING,
)
from bounds.papers.fed_norm_sgda.composites import SAMPLED, SIMPLEX
from bounds.papers.fed_norm_sgda.concave import ascent_conditions
from bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_3, LEMMA_C_5
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, NoiseGivenStart, SampleMean
from bounds.papers.fed_norm_sgda.proof.directions import EACH
from bounds.papers.fed_norm_sgda.proof.letters import (
    S_1,
    S_2,
    D,
    Gammay,
    K,
    L,
    N,
    Q,
    W,
    X,
    betaG,
    betaL,
    c,
    d,
    etay,
    nu,
    r,
    y0,
)
from bounds.papers.fed_norm_sgda.proof.snapshot import (
    IN_SNAPSHOT,
    MOVED,
    SETTING,
    SNAPSHOT_PROOF,
    STALE,
    TO_OWN,
    V_C,
)
from bounds.result import Result

SNAPSHOT = SNAPSHOT_PROOF.id
yb = Vec.atom("yb")
BEYOND = y0 - yb  # from the maximiser at the snapshot to y_t
ABOVE = Symbol("[f_i(x^, y_k) - f_i(x^, yb)]", real=True)
BELOW = Symbol("[f_i(x^, y_t) - f_i(x^, y_k)]", real=True)
APPROACH = Symbol("[|y_t - yb|^2 - |y_{t+1} - yb|^2]", real=True)
FIRST = Symbol("[|y - yb|^2 at the start of the block]", nonnegative=True)
ONE = Integer(1)
KEPT, MORE = Rational(69, 64), Rational(11, 8)
HERE = Setting(SETTING.bracket, SETTING.atoms, letters={**SETTING.letters, BELOW: -STALE - ABOVE})
GradY = IN_SNAPSHOT.G
CLIMB = Gammay * (IN_SNAPSHOT.s + IN_SNAPSHOT.n)


@dataclass(frozen=True)
class CommonMean(Schema):
    r"""$\sum_iw_i\frac1{\|a_i\|_1}\sum_ka_i^{(k)}\langle u_{ik},v\rangle=\langle\sum_iw_ih_i,v\rangle$ for v that is
    the same for all clients and local steps.

    Args:
        each: u; the means over steps and clients come from the atoms.
        common: v.
    """

    each: str
    common: Vec
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """v must be still and no client's own."""
        atoms: list[Atom] = [setting.atoms[name] for name in self.common.atoms]
        if any(a.per_client or not a.still for a in atoms):
            raise Unfit(f"{self.common} is not the same for all clients and steps")
        mean = setting.atoms[setting.atoms[self.each].mean].mean
        return Relation(inner(Vec.atom(self.each), self.common), inner(Vec.atom(mean), self.common), "==")


@dataclass(frozen=True)
class SmoothInY(Schema):
    r"""$\langle\nabla_yf_i(\hat x,y_k),y_t-y_k\rangle\le f_i(\hat x,y_t)-f_i(\hat x,y_k)+\frac L2\|y_t-y_k\|^2$."""

    axiom: str = "descent lemma for f_i(x^, .)"
    needs: tuple[str, ...] = (JOINTLY_SMOOTH.name,)

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The gradient must be that of f_i in y at the local model."""
        if setting.atoms["Gy"].of != "f_i/y" or setting.atoms["Gy"].at != "xs Y":
            raise Unfit("Gy is not the gradient of f_i in y at the snapshot and the local y")
        return Relation(-inner(GradY, MOVED["y"]), sp.expand(BELOW + L / 2 * square(MOVED["y"])))


@dataclass(frozen=True)
class AscentStep(Schema):
    r"""$\|y_t-\bar y\|^2-\|y_{t+1}-\bar y\|^2=-2\Gamma_y\langle y_t-\bar y,g_y\rangle-\Gamma_y^2\|g_y\|^2$."""

    axiom: str = "the algorithm: the server's step"
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The squares of both sides."""
        return Relation(APPROACH, sp.expand(square(BEYOND) - square(BEYOND + CLIMB)), "==")


def free_steps() -> Iterator[Step]:
    """What of (70) and (71) uses neither concavity nor caps."""
    yield Step("S0", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,))
    yield Step(
        "70b",
        "(70): smoothness between the local y and y_t",
        Relation(-inner(GradY, MOVED["y"]), sp.expand(BELOW + L / 2 * square(MOVED["y"]))),
        SmoothInY(),
        (JOINTLY_SMOOTH,),
        EACH,
    )
    yield Step(
        "70c",
        "the two differences sum to the dual gap at the snapshot",
        Relation(-inner(GradY, MOVED["y"]), sp.expand(-STALE - ABOVE + L / 2 * square(MOVED["y"]))),
        Abbreviated(),
        ("70b",),
        EACH,
    )
    yield Step(
        "70d",
        "the mean over clients and local steps",
        Relation(inner(GradY, BEYOND), inner(IN_SNAPSHOT.H, BEYOND), "=="),
        CommonMean("Gy", BEYOND),
        ("S0",),
        EACH,
    )
    yield Step(
        "71a",
        "the server's step in y",
        Relation(APPROACH, sp.expand(square(BEYOND) - square(BEYOND + CLIMB)), "=="),
        AscentStep(),
        (),
        EACH,
    )
    yield Step(
        "71b",
        "the sample averaged out",
        Relation(inner(IN_SNAPSHOT.s, BEYOND), inner(IN_SNAPSHOT.H, BEYOND), "=="),
        SampleMean("sy", BEYOND),
        (SAMPLING,),
        EACH,
    )
    yield Step(
        "71c",
        "the noise averaged out",
        Relation(inner(IN_SNAPSHOT.n, BEYOND), Integer(0), "=="),
        NoiseGivenStart(IN_SNAPSHOT.n, BEYOND),
        (BLOCK_NOISE, MARTINGALE, SAMPLING),
        EACH,
    )


def concave_steps(concavity: Assumption, home: str) -> Iterator[Step]:
    """(70): what concavity is used for."""
    left = inner(GradY, MOVED["y"] + BEYOND)
    yield Step(
        "70a",
        "(70): every client's function beyond the maximiser, at its local y",
        Relation(sp.expand(left), ABOVE),
        Assumed(sp.expand(left), ABOVE, (concavity.name,), "f_i(x^, .) at the local y"),
        (concavity,),
        EACH,
    )
    yield Step(
        "70e",
        "the drift in y is part of the drift, spelled",
        Relation(inner(IN_SNAPSHOT.H, BEYOND), sp.expand(-STALE + L / 2 * (square(MOVED["y"]) + square(MOVED["x"])))),
        Combine((1, 1, -1)),
        ("70a", f"{home}70c", f"{home}70d"),
        EACH,
    )
    spelled = SETTING.letters[X] / (2 * L) - STALE
    yield Step(
        "70f",
        "as Lf^2 times it",
        Relation(inner(IN_SNAPSHOT.H, BEYOND), sp.expand(spelled)),
        Combine((1,)),
        ("70e",),
        EACH,
    )
    yield Step(
        "70",
        "(70): the mean exact direction leads to the maximiser",
        Relation(inner(IN_SNAPSHOT.H, BEYOND), X / (2 * L) - STALE),
        Abbreviated(),
        ("70f",),
        EACH,
    )


def cap_steps(suffix: str, price: sp.Expr) -> Iterator[Step]:
    """The conditions of Theorem 4 in letters, and what the proof of Lemma C.3 takes from them."""
    step, factor = price * Gammay * L, sp.Max(betaG**2, 1)
    noise, ascent = sp.Max(betaL**2 * Q, d * W), sp.Max(1 - d, betaL**2 * K)
    rows = (
        ("local", 64 * price * etay**2 * D * L**2 * sp.Max(betaG**2 * r, 1), ONE),
        ("growth", 2 * step * r * factor * noise, Rational(1, 8)),
        ("ascent", 2 * step * r * ascent, Rational(1, 8)),
    )
    for (name, left, right), condition in zip(rows, ascent_conditions(price), strict=True):
        fact = condition_fact(condition)
        yield Step(f"{name}-stated{suffix}", condition.why, fact, Stated(), (condition,))
        yield Step(
            f"{name}{suffix}", "in letters", Relation(left, right), Abbreviated(), (f"{name}-stated{suffix}", SAMPLED)
        )
    yield Step(
        f"72-local{suffix}",
        "the gap in the drift",
        Relation(8 * price * etay**2 * L**2 * D * betaG**2, Rational(1, 8)),
        Combine((Rational(1, 8), 8 * price * etay**2 * L**2 * D * betaG**2)),
        (f"local{suffix}", "r"),
    )
    spelled = d * W + betaL**2 * Q
    yield Step(
        f"72-S_1{suffix}-spelled",
        "noise and sampling that grow with the gradient",
        Relation(2 * step * r * betaG**2 * spelled, Rational(1, 4)),
        Combine((2,)),
        (f"growth{suffix}",),
    )
    yield Step(
        f"72-S_1{suffix}",
        "in letters",
        Relation(2 * step * r * betaG**2 * S_1, Rational(1, 4)),
        Abbreviated(),
        (f"72-S_1{suffix}-spelled", SAMPLED),
    )
    yield Step(
        f"72-S_2{suffix}-spelled",
        "sampling and noise in the drift",
        Relation(2 * step * r * (d * W + betaL**2 * K), Rational(1, 4)),
        Combine((1, 1)),
        (f"growth{suffix}", f"ascent{suffix}"),
    )
    yield Step(
        f"72-S_2{suffix}",
        "in letters",
        Relation(2 * step * r * S_2, Rational(1, 4)),
        Abbreviated(),
        (f"72-S_2{suffix}-spelled", SAMPLED),
    )
    yield Step(
        f"72-c{suffix}-spelled",
        "two clients of a sample",
        Relation(2 * step * r * (1 - d), Rational(1, 8)),
        Combine((1,)),
        (f"ascent{suffix}",),
    )
    yield Step(
        f"72-c{suffix}",
        "in letters",
        Relation(2 * step * c, Rational(1, 8)),
        Abbreviated(),
        (f"72-c{suffix}-spelled", SAMPLED),
    )


def drift_steps(suffix: str, price: sp.Expr) -> Iterator[Step]:
    """Lemma C.2 in the letter V_C."""
    in_gap = 8 * price * etay**2 * L**3 * D * betaG**2 * STALE
    yield Step(
        f"V_C{suffix}-spelled",
        "Lemma C.2 with more than it needs, so that both steps count alike",
        Relation(X, sp.expand(2 * price * SETTING.letters[V_C] + in_gap)),
        Combine((1,)),
        (f"{SNAPSHOT}/C.2{suffix}",),
        EACH,
    )
    yield Step(
        f"V_C{suffix}",
        "in letters",
        Relation(X, sp.expand(2 * price * V_C + in_gap)),
        Abbreviated(),
        (f"V_C{suffix}-spelled",),
        EACH,
    )


def capped_steps(suffix: str, price: sp.Expr, home: str) -> Iterator[Step]:
    """(71) and (72): the caps put in."""
    gaps = 2 * Gammay * (1 - price * Gammay * L * (2 * c + 2 * r * betaG**2 * S_1)) * STALE
    drift = Gammay / L * (1 + price * Gammay * L * (2 * c + 2 * r * S_2)) * X
    yield Step(
        f"71{suffix}",
        "(71): one round towards the maximiser",
        Relation(-APPROACH, sp.expand(price * Gammay**2 * N - gaps + drift)),
        Combine((-1, 2 * Gammay, 2 * Gammay, 2 * Gammay, Gammay**2, price * c * Gammay**2)),
        (*(f"{home}71{k}" for k in "abc"), "70", f"{SNAPSHOT}/(37){suffix}", f"{SNAPSHOT}/69"),
        EACH,
    )
    kept = price * Gammay**2 * N - Rational(5, 4) * Gammay * STALE + MORE * Gammay / L * X
    yield Step(
        f"72a{suffix}",
        "(72): the gap keeps 5/8 of its factor 2, the drift gets 11/8",
        Relation(-APPROACH, sp.expand(kept)),
        Combine((1, 2 * Gammay * STALE + Gammay / L * X, 2 * Gammay * STALE, Gammay / L * X)),
        (f"71{suffix}", *(f"{home}72-{k}{suffix}" for k in ("c", "S_1", "S_2"))),
        EACH,
    )
    left = APPROACH + price * Gammay**2 * N + Rational(11, 4) * price * Gammay * V_C / L
    yield Step(
        f"72{suffix}",
        "(72): the gap in the drift taken off, 5/4 - 11/64 = 69/64",
        Relation(KEPT * Gammay * STALE, sp.expand(left)),
        Combine((1, MORE * Gammay / L, MORE * Gammay * STALE)),
        (f"72a{suffix}", f"{home}V_C{suffix}", f"{home}72-local{suffix}"),
        EACH,
    )


def block_steps(
    suffix: str, price: sp.Expr, kept: sp.Expr, local: sp.Expr, result: Result, home: str
) -> Iterator[Step]:
    """Over one block of rounds, of which it keeps `kept`."""
    one = APPROACH / (kept * Gammay) + (price * Gammay * N + local * price * V_C / L) / kept
    yield Step(
        f"C.3-round{suffix}",
        "solved for the gap",
        Relation(STALE, sp.expand(one)),
        Combine((1 / (kept * Gammay),)),
        (f"72{suffix.removesuffix('-sharp')}",),
        EACH,
    )
    average = measure_symbol(result.measure)
    yield Step(
        f"C.3-block{suffix}",
        "the average over a block, telescoped",
        Relation(average, sp.expand(one.xreplace({APPROACH: FIRST / n.S}))),
        AverageOverRounds(
            APPROACH,
            FIRST,
            n.S,
            average,
            STALE,
            (),
            BOUNDED_MAXIMISER.name,
            axiom="a squared distance is never negative",
        ),
        (f"C.3-round{suffix}", BOUNDED_MAXIMISER),
        "for every block s",
    )
    yield Step(
        f"C.3{suffix}",
        "the block starts within 4R of the maximiser",
        Relation(average, sp.expand(one.xreplace({APPROACH: 4 * n.R / n.S}))),
        Combine((1, 1 / (kept * Gammay * n.S))),
        (f"C.3-block{suffix}", f"{home}4R"),
        "for every block s",
    )


def radius_steps() -> Iterator[Step]:
    """r is at least 1, and the start of a block."""
    yield Step("r-spelled", "at most all clients take part", Relation(ONE, n.n / n.P), Combine(), (SAMPLED,))
    yield Step("r", "in letters", Relation(ONE, r), Abbreviated(), ("r-spelled",))
    radius = (BOUNDED_ITERATES, BOUNDED_MAXIMISER)
    yield Step(
        "4R",
        "iterate and maximiser lie in one ball",
        Relation(FIRST, 4 * n.R),
        Assumed(FIRST, 4 * n.R, tuple(a.name for a in radius), "|u - v|^2 <= 2|u|^2 + 2|v|^2"),
        radius,
        "for every block s",
    )


def restart_proof(result: Result, concavity: Assumption, home: str = "") -> Proof:
    """Lemma C.3, or C.5 under another hypothesis, what they share being at `home`."""
    shared = (
        *free_steps(),
        *radius_steps(),
        *(step for suffix, price in PRICES for part in (cap_steps, drift_steps) for step in part(suffix, price)),
    )
    steps = (
        *(() if home else shared),
        *concave_steps(concavity, home),
        *(step for suffix, price in PRICES for step in capped_steps(suffix, price, home)),
        *block_steps("", nu, ONE, Rational(11, 4), result, home),
        *block_steps("-sharp", nu, KEPT, Rational(11, 4), result, home),
        *block_steps("-printed", ONE, ONE, Integer(4), result, home),
    )
    ends = {"printed": "C.3-printed", "repaired": "C.3", "sharp": "C.3-sharp"}
    return Proof(result.key, HERE, steps, result, ends, substitute=TO_OWN)


PRICES = (("", nu), ("-printed", ONE))
RESTART_PROOF = restart_proof(LEMMA_C_3, CONCAVE)
ONE_POINT_PROOF = restart_proof(LEMMA_C_5, ONE_POINT_CONCAVE, f"{RESTART_PROOF.id}/")
