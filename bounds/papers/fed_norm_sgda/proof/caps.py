r"""What the conditions (a), (b), (c), (f) and (g) of Theorem 1 say in symbols, and what follows from them.

With p the price of noise and drift mixing: $p\,\Gamma_yL_f\le\frac12$,
$p\,\Gamma_y\kappa L_f\beta_G^2rS_1\le\frac1{32}$, $156\kappa^2\Gamma_x\le\Gamma_y$,
$p\,\Gamma_yL_frS_2\le\frac14$, $p\,\theta_G\le\frac1{512\kappa^2}$ and $p\,\theta_\delta\le\frac9{256}\mu$.
"""

from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational

from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.participation_rules import Squared
from fedbounds.bounds.audit.rules import Unfolded
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE, SAMPLED
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1, step_conditions
from fedbounds.bounds.theory.result import Condition

DESCENT_SETTING, PAPER, S_1, S_2, D, Gammax = of.DESCENT_SETTING, of.PAPER, of.S_1, of.S_2, of.D, of.Gammax
Gammay, L, M, Q, W, betaG, betaL, c, d = of.Gammay, of.L, of.M, of.Q, of.W, of.betaG, of.betaL, of.c, of.d
etax, etay, kappa, nu, r, theta_delta, theta_G = of.etax, of.etay, of.kappa, of.nu, of.r, of.theta_delta, of.theta_G

ONE, HALF = Integer(1), Rational(1, 2)
ASCENT = Gammay * L  # what the caps on Gamma_y bound


@dataclass(frozen=True)
class Caps:
    """The conditions of one form of Theorem 1."""

    suffix: str  # of the steps
    price: sp.Expr  # of noise and drift mixing
    conditions: tuple[Condition, ...]  # (a), (b), (c), (g), (f) in y, (f) in x and (m)
    g_factor: sp.Expr  # what multiplies Gamma_y Lf r S_2 in (g)
    g: sp.Expr  # what p Gamma_y Lf r S_2 is at most

    def enter(self, s: Chain) -> None:
        """All of them in symbols, and what they give."""
        a, b, c_, g, f_y, f_x, _ = self.conditions
        p, x = self.price, self.suffix
        self._stated(s, "a", "ascent in y", a)
        s[f"(a){x}", "(a)"] = le(p * ASCENT, HALF), {f"(a){x}-stated": HALF}
        scale = p * Gammay * kappa * L * betaG**2 * r
        s[f"(b){x}-max", "(b): noise and sampling that grow with the gradient"] = by(
            le(scale * sp.Max(betaL**2 * Q, d * W), Rational(1, 64)), Unfolded, b, SAMPLED
        )
        s[f"(b){x}", "the sum of two is at most twice the larger"] = by(
            le(scale * S_1, Rational(1, 32)), Unfolded, {f"(b){x}-max": 2}
        )
        self._stated(s, "c", "x moves slower than y follows", c_)
        s[f"(c){x}", "(c)"] = le(156 * kappa**2 * Gammax, Gammay), {f"(c){x}-stated": 156 * kappa**2}
        # the paper's chain needs (g) with a factor that is at least 1
        s[f"(g){x}-symbols", "(g): the drift in the noise"] = by(
            le(self.g_factor * ASCENT * r * S_2, ONE), Unfolded, g, SAMPLED
        )
        s[f"(g){x}", "(g)"] = le(p * ASCENT * r * S_2, self.g), {f"(g){x}-symbols": self.g}
        for name, step, condition, squared in (
            ("y", etay, f_y, 256 * kappa * (L * betaG * etay) ** 2 * p * D),
            ("x", etax, f_x, 4096 * (kappa * L * betaG * etax) ** 2 * p * D),
        ):
            s[f"(f_{name}){x}", f"(f) for {step}, squared"] = le(squared, ONE), Squared(), condition
        self._drift(s)
        self._in_x(s)

    def _stated(self, s: Chain, name: str, says: str, condition: Condition) -> None:
        s[f"({name}){self.suffix}-stated", f"({name}): {says}"] = condition

    def _drift(self, s: Chain) -> None:
        """What (f) makes of the drift."""
        p, x = self.price, self.suffix
        in_gradient, in_gap = 1 / (512 * kappa**2), Rational(9, 256) * L / kappa
        s[f"theta_G{x}", "what the drift adds to the gradient"] = by(
            le(p * theta_G, in_gradient), Unfolded, {f"(f_x){x}": in_gradient}
        )
        s[f"theta_delta{x}", "what the drift adds to the dual gap"] = by(
            le(p * theta_delta, in_gap), Unfolded, {f"(f_x){x}": L / (256 * kappa), f"(f_y){x}": L / (32 * kappa)}
        )

    def _in_x(self, s: Chain) -> None:
        """What (c) makes of the others for Gamma_x, and the envelope's smoothness."""
        p, x, slow = self.price, self.suffix, f"(c){self.suffix}"
        noise, drift = betaG**2 * r * S_1, r * S_2
        s[f"x-a{x}", "(a) for Gamma_x"] = le(312 * kappa**2 * p * Gammax * L, ONE), {slow: 2 * p * L, f"(a){x}": 2}
        s[f"x-b{x}", "(b) for Gamma_x, with the envelope's smoothness"] = by(
            le(2496 * kappa**2 * p * Gammax * M * noise, ONE),
            {slow: 32 * p * kappa * L * noise, f"(b){x}": 32, "M": 2496 * kappa**2 * p * Gammax * noise},
        )
        s[f"x-g{x}", "(g) for Gamma_x, with the envelope's smoothness"] = by(
            le(78 * kappa * p * Gammax * M * drift, self.g),
            {slow: p * L * drift, f"(g){x}": 1, "M": 78 * kappa * p * Gammax * drift},
        )
        s[f"x-move{x}", "the squared descent step against the ascent"] = by(
            le((Gammax**2 * (M + L) + Gammax * Gammay * L) / 2, Rational(53, 104) * Gammax * Gammay * L),
            {"M": HALF * Gammax**2, slow: Gammax * L / (104 * kappa)},
            CURVATURE,
        )


CERTIFIED = Caps("", nu, step_conditions(nu, 2 * nu, 4 * nu), 4 * nu, Rational(1, 4))
G_FACTOR = 1 + 2 * Gammax**2 * L / Gammay
PRINTED = Caps("-printed", ONE, step_conditions(ONE, Integer(2), G_FACTOR), G_FACTOR, ONE)

s = Chain(DESCENT_SETTING)
s["M", "the envelope's smoothness is at most 2 kappa Lf"] = le(M, 2 * kappa * L), Unfolded, CURVATURE
s["M-low", "and at least 2 Lf"] = le(2 * L, M), Unfolded, CURVATURE
s["c", "the mean direction is not magnified"] = le(c, ONE), Unfolded, SAMPLED
CERTIFIED.enter(s)
PRINTED.enter(s)
CAPS_PROOF = s.proof(f"{PAPER}/caps", THEOREM_1, {})
