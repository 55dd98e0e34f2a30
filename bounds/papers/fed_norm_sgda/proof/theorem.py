r"""Theorem 1: the envelope's descent and the dual gap's contraction, averaged over the rounds and put together."""

from dataclasses import dataclass

import sympy as sp
from sympy import Rational

from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.rules import Telescope
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BOUNDED_BELOW
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import ascent
from fedbounds.bounds.papers.fed_norm_sgda.proof.ascent import Contraction
from fedbounds.bounds.papers.fed_norm_sgda.proof.caps import CAPS_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.descent import DECREASE, DESCENT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH
from fedbounds.bounds.papers.fed_norm_sgda.proof.drift import DRIFT_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import DELTA, G, Gammax, Gammay, H, L, M, N, V, X, c, kappa, nu
from fedbounds.bounds.papers.fed_norm_sgda.results import CERTIFIED, THEOREM_1, TIGHT

ASCENT_PROOF, CAPS, G_MEAN, GAP_MEAN = ascent.ASCENT_PROOF, ascent.CAPS, ascent.G_MEAN, ascent.GAP_MEAN
H_MEAN, LIFTED, ON_AVERAGE, ROUND = ascent.H_MEAN, ascent.LIFTED, ascent.ON_AVERAGE, ascent.ROUND
SETTING = ascent.SETTING

MORE_DRIFT = Rational(313, 312)  # what the drift counts in (41)


@dataclass(frozen=True)
class DescentConstants:
    """The constants of (41) and of the theorem."""

    contraction: Contraction  # those of the dual gap, whose suffix the steps carry
    kept: sp.Rational  # of Gamma_x times the squared gradient
    gap: sp.Rational  # of Gamma_x kappa Lf delta_t
    local: sp.Rational  # of nu Gamma_x V
    # in the theorem, of Delta/(Gamma_x T), kappa^2 delta_0/(Gamma_y T), nu kappa^2 Lf Gamma_y N, nu kappa^2 V
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
    def share(self) -> sp.Expr:
        """What is left of the average gradient once Lemma B.5 has given some back, inverted."""
        return 1 / (1 - self.gap / self.kept * self.contraction.gradient / self.contraction.kept)


REPAIRED = DescentConstants(ascent.REPAIRED, Rational(3, 8), Rational(5, 2), Rational(5, 2), CERTIFIED)
SHARP = DescentConstants(ascent.SHARP, Rational("0.497"), Rational("2.037"), Rational("2.0065"), TIGHT)


def descent_steps(
    s: Chain, kept: sp.Expr, rest: sp.Expr, drift: sp.Expr, suffix: str = "", source: str = "", local: str = "B.4"
) -> None:
    """(41), solved for the gradient and averaged over the rounds."""
    factors = {
        f"{DESCENT_PROOF.id}/24": 1,
        f"{ROUND}/(36){source}": Gammax**2 * M / 2,
        f"{CAPS}/x-b{source}": Gammax * LIFTED / (2496 * kappa**2),
        f"{CAPS}/x-g{source}": Gammax * X / (78 * kappa),
        f"{DRIFT_PROOF.id}/{local}": drift,
        f"{CAPS}/theta_G{source}": drift * G,
        f"{CAPS}/theta_delta{source}": drift * DELTA,
    }
    s[f"41{suffix}", "(41) as printed" if source else "(41): one round of descent, the caps put in"] = by(
        le(-DECREASE, sp.expand(-kept * G + rest)), factors, CURVATURE
    )
    one = sp.expand((DECREASE + rest) / kept)
    s[f"41-G{suffix}", "solved for the gradient"] = le(G, one), f"41{suffix}"
    means = ((DELTA, GAP_MEAN), (H, H_MEAN))
    s[f"T1{suffix}", "the average over the rounds, telescoped", ""] = by(
        Telescope(DECREASE, n.Delta, n.T, G_MEAN, G, means, BOUNDED_BELOW.name), f"41-G{suffix}", BOUNDED_BELOW
    )


s = Chain(SETTING, EACH, (DIRECTIONS_PROOF, DRIFT_PROOF, DESCENT_PROOF, CAPS_PROOF, ASCENT_PROOF))
for constants in (REPAIRED, SHARP):
    x, share = constants.contraction.suffix, constants.share
    descent_steps(s, constants.kept * Gammax, constants.rest, MORE_DRIFT * Gammax, x)
    s[f"18{x}", "Theorem 1, (18): with Lemma B.5 for the dual gap", ""] = by(
        le(G_MEAN, sp.expand(constants.bound)),
        {f"T1{x}": share, f"{ASCENT_PROOF.id}/44{x}": share * constants.gap / constants.kept * kappa * L},
        *(f"{CAPS}/{name}" for name in ("M", "(c)", "c", "x-a", "x-move")),
        CURVATURE,
    )
ENDS = {"repaired": "18", "sharp": "18-sharp"}
THEOREM_PROOF = s.proof(THEOREM_1.key, THEOREM_1, ENDS, substitute=ON_AVERAGE)
