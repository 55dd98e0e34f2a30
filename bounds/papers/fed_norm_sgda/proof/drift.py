# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemma B.4 (and B.9): how far the local models drift in a round, eqs. (30) to (32)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational

from bounds.audit.axioms import Schema
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import Squared
from bounds.audit.rules import Abbreviated, Combine, Gram, Stated
from bounds.audit.steps import Proof, Setting, Step
from bounds.audit.vectors import Vec, square
from bounds.clients import MaxOverClients
from bounds.papers.fed_norm_sgda.assumptions import GROWING, LOCAL_MAP
from bounds.papers.fed_norm_sgda.composites import CURVATURE
from bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_4, LEMMA_B_9
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import Scaled, scaled
from bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_X, IN_Y, TO_LETTERS, Block
from bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF
from bounds.papers.fed_norm_sgda.proof.letters import (
    DELTA,
    DESCENT_SETTING,
    PAPER,
    C_w,
    D,
    G,
    L,
    V,
    X,
    a_m,
    betaG,
    betaL,
    etax,
    etay,
    kappa,
    local_distance,
    nu,
    sigmaG,
    sigmaL,
    theta_delta,
    theta_G,
    x0,
    y0,
)
from bounds.papers.fed_norm_sgda.proof.local_steps import LOCAL_PROOF, OverLocalSteps
from bounds.papers.fed_norm_sgda.results import THEOREM_1
from bounds.result import Condition

ROUND = DIRECTIONS_PROOF.id
HALF = Rational(1, 2)
STEPS_SQUARED = etax**2 + etay**2
MOVED = {"x": Vec.atom("X") - x0, "y": Vec.atom("Y") - y0}
CLIENT_STEP = {"x": etax, "y": etay}
LARGEST_SUM = MaxOverClients(n.a1)


@dataclass(frozen=True)
class LargestRecursion(Schema):
    r"""$\max_i\|a_i\|_1(\|a_{i,-1}\|_1+\beta_L^2\alpha)\le(1+\beta_L^2)\max_i\|a_i\|_1^2$, no coefficient being above
    their sum.
    """

    axiom: str = "the coefficients are nonnegative, so that none is more than their sum"
    needs: tuple[str, ...] = (LOCAL_MAP.name,)

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """Of a_m, by its meaning."""
        return Relation(a_m, (1 + betaL**2) * LARGEST_SUM**2)


def block_steps(b: Block) -> Iterator[Step]:
    """How far the local models are in one block, by the gradients at the round's start."""
    x, eta, moved = b.name, CLIENT_STEP[b.name], MOVED[b.name]
    u, v = scaled("r", b.G), scaled("r", b.g)
    yield Step(f"r1{x}", "two parts", Relation(square(u), 2 * square(u - v) + 2 * square(v)), Gram(), (), EACH)
    yield Step(
        f"r2{x}",
        "the change since the round's start, the weights at their largest",
        Relation(square(u - v), a_m * square(b.G - b.g)),
        Scaled("r", b.G - b.g),
        (),
        EACH,
    )
    yield Step(
        f"r3{x}",
        "the start, the weights in the mean over the steps",
        Relation(square(v), D * square(b.g)),
        Scaled("r", b.g, still=True),
        (),
        EACH,
    )
    for suffix, price, source in (("", nu, "25-repaired"), ("-printed", Integer(1), "25-printed")):
        yield Step(
            f"25{x}{suffix}",
            f"(26) to (29): (25) over clients and steps, in {x}",
            Relation(square(moved), sp.expand(price * eta**2 * (sigmaL**2 * C_w + square(u)))),
            OverLocalSteps(price, eta, moved, b.G),
            (f"{LOCAL_PROOF.id}/{source}", LOCAL_MAP, GROWING),
            EACH,
        )
        change = 2 * a_m * square(b.G - b.g) + 2 * D * square(b.g)
        yield Step(
            f"30{x}{suffix}",
            f"the drift in {x}",
            Relation(square(moved), sp.expand(price * eta**2 * (sigmaL**2 * C_w + change))),
            Combine((1, price * eta**2, 2 * price * eta**2, 2 * price * eta**2)),
            (f"25{x}{suffix}", f"r1{x}", f"r2{x}", f"r3{x}"),
            EACH,
        )


def start(at: sp.Expr) -> sp.Expr:
    """What both blocks add, with the squared gradients at the round's start bounded or not."""
    return STEPS_SQUARED * sigmaL**2 * C_w + 2 * D * at


def joint_steps(suffix: str, price: sp.Expr, source: str = "") -> Iterator[Step]:
    """Both blocks together, from the steps that carry the suffix `source`; at (m) the drift's own part is at most a
    half.
    """
    gradients = etax**2 * square(IN_X.g) + etay**2 * square(IN_Y.g)
    own = 2 * a_m * STEPS_SQUARED * X
    yield Step(
        f"30{suffix}",
        "both blocks together",
        Relation(local_distance(), sp.expand(price * L**2 * (start(gradients) + own))),
        Combine((L**2, L**2, 2 * price * L**2 * a_m * etax**2, 2 * price * L**2 * a_m * etay**2)),
        (f"30x{source}", f"30y{source}", f"{ROUND}/D1x", f"{ROUND}/D1y"),
        EACH,
    )
    yield Step(
        f"30X{suffix}",
        "as a recursion of the drift",
        Relation(X, sp.expand(price * L**2 * (start(gradients) + own))),
        Abbreviated(),
        (f"30{suffix}",),
        EACH,
    )
    yield Step(
        f"31{suffix}",
        "(31): solved for the drift",
        Relation(X, sp.expand(2 * price * L**2 * start(gradients))),
        Combine((2, 2 * X)),
        (f"30X{suffix}", f"m{suffix}"),
        EACH,
    )
    at = etax**2 * (betaG**2 * IN_X.bound + sigmaG**2) + etay**2 * (betaG**2 * IN_Y.bound + sigmaG**2)
    weight = 4 * price * L**2 * D
    yield Step(
        f"32{suffix}",
        "(32): heterogeneity, and the gradients by that of the envelope and the dual gap",
        Relation(X, sp.expand(2 * price * L**2 * start(at))),
        Combine((1, weight * etax**2, weight * etay**2, weight * etax**2 * betaG**2, weight * etay**2 * betaG**2)),
        (f"31{suffix}", f"{ROUND}/A3x", f"{ROUND}/A3y", f"{AWAY_PROOF.id}/B6", f"{AWAY_PROOF.id}/B6y"),
        EACH,
    )
    yield Step(
        f"B.4{suffix}",
        "Lemma B.4" + (" as printed" if suffix else " at the price nu"),
        Relation(X, sp.expand(price * (2 * V + theta_G * G + theta_delta * DELTA))),
        Abbreviated(),
        (f"32{suffix}",),
        EACH,
    )


def cap_steps(suffix: str, price: sp.Expr, condition: Condition) -> Iterator[Step]:
    """Condition (m) in letters."""
    spelled = Relation(2 * price * STEPS_SQUARED * L**2 * a_m, HALF)
    opened = Relation(condition.left, condition.right)
    yield Step(f"m-stated{suffix}", "condition (m)", opened, Stated(), (condition,))
    yield Step(f"m{suffix}", "condition (m) in letters", spelled, Abbreviated(), (f"m-stated{suffix}",))


def printed_cap_steps() -> Iterator[Step]:
    """The printed cap of Lemma B.4 is enough for (m) at the price 1."""
    cap = LEMMA_B_4.form("printed").conditions[-1]
    most = 1 / (8 * L**2 * LARGEST_SUM**2 * (1 + betaL**2))
    yield Step("cap", "the cap of Lemma B.4, squared", Relation(cap.left**2, most), Squared(), (cap,))
    recursion = Relation(a_m, (1 + betaL**2) * LARGEST_SUM**2)
    yield Step("cap-a", "no coefficient is more than their sum", recursion, LargestRecursion(), (LOCAL_MAP,))
    yield Step(
        "m-printed",
        "(31) as printed: A_m is at most 1/2",
        Relation(2 * STEPS_SQUARED * L**2 * a_m, HALF),
        Combine((HALF / most, 2 * STEPS_SQUARED * L**2)),
        ("cap", "cap-a"),
    )


STEPS = (
    *block_steps(IN_X),
    *block_steps(IN_Y),
    *cap_steps("", nu, LEMMA_B_4.form("repaired").conditions[-1]),
    *joint_steps("", nu),
    *printed_cap_steps(),
    *joint_steps("-printed", Integer(1), "-printed"),
    *cap_steps("-explicit", Integer(1), THEOREM_1.form("explicit").conditions[-1]),
    *joint_steps("-explicit", Integer(1), "-printed"),
)
ENDS = {"printed": "B.4-printed", "repaired": "B.4"}
DRIFT_PROOF = Proof(f"{PAPER}/lemma-b.4", DESCENT_SETTING, STEPS, LEMMA_B_4, ENDS, X, TO_LETTERS)

WITH_KAPPA = 8 * kappa * L**3 * D * betaG**2 * (2 * etax**2 + etay**2)
PRINTED_START = sp.expand(
    2 * L**2 * start(etax**2 * (betaG**2 * IN_X.bound + sigmaG**2) + etay**2 * (betaG**2 * IN_Y.bound + sigmaG**2))
)
PL_STEPS = (
    Step(
        "B.9-spelled",
        "kappa is at least 1",
        Relation(X, sp.expand(PRINTED_START + 8 * (kappa - 1) * L**3 * D * betaG**2 * etay**2 * DELTA)),
        Combine((1,)),
        (f"{DRIFT_PROOF.id}/32-printed", CURVATURE),
        EACH,
    ),
    Step(
        "B.9",
        "Lemma B.9, repaired: Lemma B.4 as it is",
        Relation(X, nu * (2 * V + theta_G * G + theta_delta * DELTA)),
        Combine((1,)),
        (f"{DRIFT_PROOF.id}/B.4",),
        EACH,
    ),
    Step(
        "B.9-printed",
        "Lemma B.9 as printed, with more kappa than it needs",
        Relation(X, 2 * V + theta_G * G + WITH_KAPPA * DELTA),
        Abbreviated(),
        ("B.9-spelled",),
        EACH,
    ),
)
PL_PROOF = Proof(
    f"{PAPER}/lemma-b.9",
    DESCENT_SETTING,
    PL_STEPS,
    LEMMA_B_9,
    {"printed": "B.9-printed", "repaired": "B.9"},
    X,
    TO_LETTERS,
)
