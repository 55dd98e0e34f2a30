# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Theorem 1: the envelope's descent and the dual gap's contraction, averaged over the rounds and put together."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp
from sympy import Rational

from bounds.assumptions import BOUNDED_BELOW
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Step
from bounds.papers.fed_norm_sgda.composites import CURVATURE
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.ascent import (
    ASCENT_PROOF,
    CAPS,
    G_MEAN,
    GAP_MEAN,
    H_MEAN,
    ON_AVERAGE,
    ROUND,
    SETTING,
)
from bounds.papers.fed_norm_sgda.proof.descent import DECREASE, DESCENT_PROOF
from bounds.papers.fed_norm_sgda.proof.directions import EACH
from bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF
from bounds.papers.fed_norm_sgda.proof.letters import (
    DELTA,
    G,
    Gammax,
    Gammay,
    H,
    L,
    M,
    N,
    V,
    X,
    c,
    kappa,
    nu,
)
from bounds.papers.fed_norm_sgda.results import THEOREM_1

KEPT = Rational(3, 8)
MORE_DRIFT = Rational(313, 312)  # what the drift counts in (41)


def rest() -> sp.Expr:
    """(41) without decrease and gradient."""
    direction = -Gammax / 2 * (1 - nu * c * Gammax * M) * H
    return direction + Rational(5, 2) * Gammax * (kappa * L * DELTA + nu * V) + nu * Gammax**2 * M / 2 * N


def steps() -> Iterator[Step]:
    """From (24) and Lemma B.4 to the theorem."""
    lifted = 2 * G + 4 * kappa * L * DELTA
    drift = MORE_DRIFT * Gammax
    yield Step(
        "41",
        "(41): one round of descent, the caps put in",
        Relation(-DECREASE, sp.expand(-KEPT * Gammax * G + rest())),
        Combine(
            (
                1,
                Gammax**2 * M / 2,
                Gammax * lifted / (2496 * kappa**2),
                Gammax * X / (78 * kappa),
                drift,
                drift * G,
                drift * DELTA,
            )
        ),
        (
            f"{DESCENT_PROOF.id}/24",
            f"{ROUND}/(36)",
            f"{CAPS}/x-b",
            f"{CAPS}/x-g",
            f"{DRIFT_PROOF.id}/B.4",
            f"{CAPS}/theta_G",
            f"{CAPS}/theta_delta",
            CURVATURE,
        ),
        EACH,
    )
    one = sp.expand((DECREASE + rest()) / (KEPT * Gammax))
    yield Step("41-G", "solved for the gradient", Relation(G, one), Combine((1 / (KEPT * Gammax),)), ("41",), EACH)
    averaged = one.xreplace({DECREASE: n.Delta / n.T, DELTA: GAP_MEAN, H: H_MEAN})
    yield Step(
        "T1",
        "the average over the rounds, telescoped",
        Relation(G_MEAN, averaged),
        AverageOverRounds(DECREASE, n.Delta, n.T, G_MEAN, G, ((DELTA, GAP_MEAN), (H, H_MEAN)), BOUNDED_BELOW.name),
        ("41-G", BOUNDED_BELOW),
    )
    bound = (
        3 * n.Delta / (Gammax * n.T)
        + 10 * kappa**2 * n.delta0 / (Gammay * n.T)
        + 6 * nu * kappa**2 * L * Gammay * N
        + 23 * nu * kappa**2 * V
    )
    share = Rational(9, 8)
    yield Step(
        "18",
        "Theorem 1, (18): with Lemma B.5 for the dual gap",
        Relation(G_MEAN, sp.expand(bound)),
        Combine((share, share * Rational(20, 3) * kappa * L, 0, 0, 0, 0, 0)),
        (
            "T1",
            f"{ASCENT_PROOF.id}/44",
            f"{CAPS}/M",
            f"{CAPS}/(c)",
            f"{CAPS}/c",
            f"{CAPS}/x-a",
            f"{CAPS}/x-move",
            CURVATURE,
        ),
    )


THEOREM_PROOF = Proof(THEOREM_1.key, SETTING, tuple(steps()), THEOREM_1, {"repaired": "18"}, substitute=ON_AVERAGE)
