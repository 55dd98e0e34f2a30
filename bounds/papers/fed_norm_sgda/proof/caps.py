# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""What the conditions (a), (b), (c), (f) and (g) of Theorem 1 say in letters, and what follows from them.

With p the price of noise and drift mixing: $p\,\Gamma_yL_f\le\frac12$,
$p\,\Gamma_y\kappa L_f\beta_G^2rS_1\le\frac1{32}$, $156\kappa^2\Gamma_x\le\Gamma_y$,
$p\,\Gamma_yL_frS_2\le\frac14$, $p\,\theta_G\le\frac1{512\kappa^2}$ and $p\,\theta_\delta\le\frac9{256}\mu$.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational

from bounds.audit.claim import Relation
from bounds.audit.participation_rules import Squared
from bounds.audit.rules import Abbreviated, Combine, Stated
from bounds.audit.steps import Proof, Step, condition_fact
from bounds.papers.fed_norm_sgda import composites
from bounds.papers.fed_norm_sgda.composites import CURVATURE, SAMPLED
from bounds.papers.fed_norm_sgda.proof.letters import (
    DESCENT_SETTING,
    PAPER,
    S_1,
    S_2,
    D,
    Gammax,
    Gammay,
    L,
    M,
    Q,
    W,
    betaG,
    betaL,
    c,
    d,
    etax,
    etay,
    kappa,
    nu,
    r,
    theta_delta,
    theta_G,
)
from bounds.papers.fed_norm_sgda.results import THEOREM_1, step_conditions
from bounds.result import Condition

ONE, HALF = Integer(1), Rational(1, 2)
ASCENT = Gammay * L  # what the caps on Gamma_y bound
UNSTEADY = Relation((Gammax**2 * (M + L) + Gammax * Gammay * L) / 2, Rational(53, 104) * Gammax * Gammay * L)


@dataclass(frozen=True)
class Caps:
    """The conditions of one form of Theorem 1.

    Args:
        suffix: of the steps.
        price: of noise and drift mixing.
        conditions: (a), (b), (c), (g), (f) in y, (f) in x and (m).
        g_factor: what multiplies Gamma_y Lf r S_2 in (g).
        g: what p Gamma_y Lf r S_2 is at most.
    """

    suffix: str
    price: sp.Expr
    conditions: tuple[Condition, ...]
    g_factor: sp.Expr
    g: sp.Expr

    def steps(self) -> Iterator[Step]:
        """All of them in letters, and what they give."""
        a, b, c_, g, f_y, f_x, _ = self.conditions
        p, x = self.price, self.suffix
        yield self._stated("a", "ascent in y", a)
        yield Step(f"(a){x}", "(a)", Relation(p * ASCENT, HALF), Combine((HALF,)), (f"(a){x}-stated",))
        yield self._stated("b", "noise and sampling that grow with the gradient", b)
        scale = p * Gammay * kappa * L * betaG**2 * r
        both = sp.Max(betaL**2 * Q, d * W)
        yield Step(
            f"(b){x}-max",
            "(b) in letters",
            Relation(scale * both, Rational(1, 64)),
            Abbreviated(),
            (f"(b){x}-stated", SAMPLED),
        )
        yield Step(
            f"(b){x}-sum",
            "the sum of two is at most twice the larger",
            Relation(scale * (d * W + betaL**2 * Q), Rational(1, 32)),
            Combine((2,)),
            (f"(b){x}-max",),
        )
        yield Step(f"(b){x}", "(b)", Relation(scale * S_1, Rational(1, 32)), Abbreviated(), (f"(b){x}-sum", SAMPLED))
        yield self._stated("c", "x moves slower than y follows", c_)
        yield Step(
            f"(c){x}", "(c)", Relation(156 * kappa**2 * Gammax, Gammay), Combine((156 * kappa**2,)), (f"(c){x}-stated",)
        )
        yield self._stated("g", "the drift in the noise", g)
        yield from self._g()
        yield from self._f(f_y, etay, 256 * kappa * (L * betaG * etay) ** 2 * p * D, "y")
        yield from self._f(f_x, etax, 4096 * (kappa * L * betaG * etax) ** 2 * p * D, "x")
        yield Step(
            f"theta_G{x}-spelled",
            "what the drift adds to the gradient",
            Relation(p * 8 * L**2 * D * betaG**2 * etax**2, 1 / (512 * kappa**2)),
            Combine((1 / (512 * kappa**2),)),
            (f"(f_x){x}",),
        )
        yield Step(
            f"theta_G{x}",
            "in letters",
            Relation(p * theta_G, 1 / (512 * kappa**2)),
            Abbreviated(),
            (f"theta_G{x}-spelled",),
        )
        yield Step(
            f"theta_delta{x}-spelled",
            "what the drift adds to the dual gap",
            Relation(p * 8 * L**3 * D * betaG**2 * (2 * kappa * etax**2 + etay**2), Rational(9, 256) * L / kappa),
            Combine((L / (256 * kappa), L / (32 * kappa))),
            (f"(f_x){x}", f"(f_y){x}"),
        )
        yield Step(
            f"theta_delta{x}",
            "in letters",
            Relation(p * theta_delta, Rational(9, 256) * L / kappa),
            Abbreviated(),
            (f"theta_delta{x}-spelled",),
        )
        yield from self._in_x()

    def _stated(self, name: str, says: str, condition: Condition) -> Step:
        return Step(
            f"({name}){self.suffix}-stated", f"({name}): {says}", condition_fact(condition), Stated(), (condition,)
        )

    def _g(self) -> Iterator[Step]:
        """(g), which the paper's chain needs with a factor that is at least 1."""
        p, x = self.price, self.suffix
        yield Step(
            f"(g){x}-letters",
            "(g) in letters",
            Relation(self.g_factor * ASCENT * r * S_2, ONE),
            Abbreviated(),
            (f"(g){x}-stated", SAMPLED),
        )
        yield Step(f"(g){x}", "(g)", Relation(p * ASCENT * r * S_2, self.g), Combine((self.g,)), (f"(g){x}-letters",))

    def _f(self, condition: Condition, step: sp.Symbol, squared: sp.Expr, name: str) -> Iterator[Step]:
        """One of the two caps on the clients' steps, squared."""
        x = self.suffix
        yield Step(f"(f_{name}){x}", f"(f) for {step}, squared", Relation(squared, ONE), Squared(), (condition,))

    def _in_x(self) -> Iterator[Step]:
        """What (c) makes of the others for Gamma_x, and the envelope's smoothness."""
        p, x = self.price, self.suffix
        slow = f"(c){x}"
        yield Step(
            f"x-a{x}",
            "(a) for Gamma_x",
            Relation(312 * kappa**2 * p * Gammax * L, ONE),
            Combine((2 * p * L, 2)),
            (slow, f"(a){x}"),
        )
        yield Step(
            f"x-b{x}",
            "(b) for Gamma_x, with the envelope's smoothness",
            Relation(2496 * kappa**2 * p * Gammax * M * betaG**2 * r * S_1, ONE),
            Combine((32 * p * kappa * L * betaG**2 * r * S_1, 32, 2496 * kappa**2 * p * Gammax * betaG**2 * r * S_1)),
            (slow, f"(b){x}", "M"),
        )
        yield Step(
            f"x-g{x}",
            "(g) for Gamma_x, with the envelope's smoothness",
            Relation(78 * kappa * p * Gammax * M * r * S_2, self.g),
            Combine((p * L * r * S_2, 1, 78 * kappa * p * Gammax * r * S_2)),
            (slow, f"(g){x}", "M"),
        )
        yield Step(
            f"x-move{x}",
            "the squared descent step against the ascent",
            UNSTEADY,
            Combine((HALF * Gammax**2, Rational(3, 2) * Gammax * L / (156 * kappa))),
            ("M", slow, CURVATURE),
        )


SHARED = (
    Step(
        "M-spelled",
        "the envelope's smoothness is at most 2 kappa Lf",
        Relation((1 + kappa) * L, 2 * kappa * L),
        Combine(),
        (CURVATURE,),
    ),
    Step("M", "in letters", Relation(M, 2 * kappa * L), Abbreviated(), ("M-spelled",)),
    Step("M-low-spelled", "and at least 2 Lf", Relation(2 * L, (1 + kappa) * L), Combine(), (CURVATURE,)),
    Step("M-low", "in letters", Relation(2 * L, M), Abbreviated(), ("M-low-spelled",)),
    Step("c-spelled", "the mean direction is not magnified", Relation(composites.c, ONE), Combine(), (SAMPLED,)),
    Step("c", "in letters", Relation(c, ONE), Abbreviated(), ("c-spelled", SAMPLED)),
)
CERTIFIED = Caps("", nu, step_conditions(nu, 2 * nu, 4 * nu), 4 * nu, Rational(1, 4))
PRINTED = Caps(
    "-printed",
    ONE,
    step_conditions(ONE, Integer(2), 1 + 2 * Gammax**2 * L / Gammay),
    1 + 2 * Gammax**2 * L / Gammay,
    ONE,
)
CAPS_PROOF = Proof(f"{PAPER}/caps", DESCENT_SETTING, (*SHARED, *CERTIFIED.steps(), *PRINTED.steps()), THEOREM_1, {})
