# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Theorem 1: the envelope's descent and the dual gap's contraction, averaged over the rounds and put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Rational

from bounds.audit.claim import Relation
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Combine
from bounds.audit.steps import Proof, Step
from bounds.papers.fed_norm_sgda.assumptions import BOUNDED_BELOW
from bounds.papers.fed_norm_sgda.composites import CURVATURE
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof import ascent
from bounds.papers.fed_norm_sgda.proof.ascent import (
    ASCENT_PROOF,
    CAPS,
    G_MEAN,
    GAP_MEAN,
    H_MEAN,
    ON_AVERAGE,
    ROUND,
    SETTING,
    Contraction,
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
from bounds.papers.fed_norm_sgda.results import CERTIFIED, THEOREM_1, TIGHT

MORE_DRIFT = Rational(313, 312)  # what the drift counts in (41)


@dataclass(frozen=True)
class Descent:
    """The constants of (41) and of the theorem.

    Args:
        contraction: those of the dual gap, whose suffix the steps carry.
        kept: of Gamma_x times the squared gradient.
        gap: of Gamma_x kappa Lf delta_t.
        local: of nu Gamma_x V.
        ends: in the theorem, of Delta/(Gamma_x T), kappa^2 delta_0/(Gamma_y T), nu kappa^2 Lf Gamma_y N, nu kappa^2 V.
    """

    contraction: Contraction
    kept: sp.Rational
    gap: sp.Rational
    local: sp.Rational
    ends: tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr]

    @property
    def rest(self) -> sp.Expr:
        """(41) without decrease and gradient."""
        direction = -Gammax / 2 * (1 - nu * c * Gammax * M) * H
        drift = Gammax * (self.gap * kappa * L * DELTA + self.local * nu * V)
        return direction + drift + nu * Gammax**2 * M / 2 * N

    @property
    def bound(self) -> sp.Expr:
        """Where the theorem ends."""
        gap, dual, noise, local = self.ends
        initial = gap * n.Delta / (Gammax * n.T) + dual * kappa**2 * n.delta0 / (Gammay * n.T)
        return initial + noise * nu * kappa**2 * L * Gammay * N + local * nu * kappa**2 * V

    @property
    def share(self) -> sp.Rational:
        """What is left of the average gradient once Lemma B.5 has given some back, inverted."""
        return 1 / (1 - self.gap / self.kept * self.contraction.gradient / self.contraction.kept)


REPAIRED = Descent(ascent.REPAIRED, Rational(3, 8), Rational(5, 2), Rational(5, 2), CERTIFIED)
SHARP = Descent(ascent.SHARP, Rational("0.497"), Rational("2.037"), Rational("2.0065"), TIGHT)


def steps(constants: Descent) -> Iterator[Step]:
    """From (24) and Lemma B.4 to the theorem."""
    lifted, x = 2 * G + 4 * kappa * L * DELTA, constants.contraction.suffix
    drift = MORE_DRIFT * Gammax
    kept = constants.kept * Gammax
    yield Step(
        f"41{x}",
        "(41): one round of descent, the caps put in",
        Relation(-DECREASE, sp.expand(-kept * G + constants.rest)),
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
    one = sp.expand((DECREASE + constants.rest) / kept)
    yield Step(f"41-G{x}", "solved for the gradient", Relation(G, one), Combine((1 / kept,)), (f"41{x}",), EACH)
    averaged = one.xreplace({DECREASE: n.Delta / n.T, DELTA: GAP_MEAN, H: H_MEAN})
    means = ((DELTA, GAP_MEAN), (H, H_MEAN))
    yield Step(
        f"T1{x}",
        "the average over the rounds, telescoped",
        Relation(G_MEAN, averaged),
        AverageOverRounds(DECREASE, n.Delta, n.T, G_MEAN, G, means, BOUNDED_BELOW.name),
        (f"41-G{x}", BOUNDED_BELOW),
    )
    small = ("M", "(c)", "c", "x-a", "x-move")  # what the remainder is shown with
    yield Step(
        f"18{x}",
        "Theorem 1, (18): with Lemma B.5 for the dual gap",
        Relation(G_MEAN, sp.expand(constants.bound)),
        Combine((constants.share, constants.share * constants.gap / constants.kept * kappa * L, *(0 for _ in small))),
        (f"T1{x}", f"{ASCENT_PROOF.id}/44{x}", *(f"{CAPS}/{name}" for name in small), CURVATURE),
    )


ENDS = {"repaired": "18", "sharp": "18-sharp"}
STEPS = (*steps(REPAIRED), *steps(SHARP))
THEOREM_PROOF = Proof(THEOREM_1.key, SETTING, STEPS, THEOREM_1, ENDS, substitute=ON_AVERAGE)
