# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Theorem 1 at the steps of (4), and Corollaries 1.1 and 2.1: from the weighted objective to the one that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import sympy as sp
from sympy import Symbol, sqrt

from bounds.audit.axioms import Assumed, Schema, Unfit
from bounds.audit.claim import Relation
from bounds.audit.derivations import Specialise
from bounds.audit.nonnegative import Finding
from bounds.audit.participation_rules import Triangle
from bounds.audit.rules import Abbreviated, Combine, Gram, Stated
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import Atom, Vec, square
from bounds.clients import SumOverClients
from bounds.papers.fed_norm_sgda import corollaries
from bounds.papers.fed_norm_sgda.assumptions import HETEROGENEITY, JOINTLY_SMOOTH
from bounds.papers.fed_norm_sgda.composites import CURVATURE, LEGAL, SIMPLEX, largest
from bounds.papers.fed_norm_sgda.corollaries import (
    COROLLARY_1_1,
    COROLLARY_1_2,
    COROLLARY_2_1,
    MEANT,
    ROUNDS_NEEDED,
)
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.ascent import G_MEAN
from bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, BlockSmooth
from bounds.papers.fed_norm_sgda.proof.letters import DESCENT_SETTING, L, betaG, kappa, sigmaG
from bounds.papers.fed_norm_sgda.results import ENOUGH_ROUNDS, STEPS, THEOREM_1, THEOREM_1_AT_ITS_STEPS
from bounds.result import Condition

ASCENT = n.taueff * STEPS["gammay"]
AT_ITS_STEPS = (
    (n.Gammay, ASCENT),
    (n.Gammax, ASCENT / (156 * kappa**2)),
    (n.etax, STEPS["etax"]),
    (n.etay, STEPS["etay"]),
)
PRESCRIBED = tuple((n[name].symbol, value) for name, value in STEPS.items())


def rate_steps() -> Iterator[Step]:
    """(4): the full theorem at these steps, whose conditions T meets once it is large enough."""
    for form in ("repaired", "sharp"):
        yield Step(
            f"4-{form}",
            "Theorem 1 at the steps of (4)",
            Relation(G_MEAN, sp.expand(THEOREM_1_AT_ITS_STEPS.form(form).bound)),
            Specialise(AT_ITS_STEPS, prescribes=PRESCRIBED),
            (f"{THEOREM_1.key}[{form}]", *LEGAL, CURVATURE, *ENOUGH_ROUNDS),
        )


RATE_PROOF = Proof(
    THEOREM_1_AT_ITS_STEPS.key,
    DESCENT_SETTING,
    tuple(rate_steps()),
    THEOREM_1_AT_ITS_STEPS,
    {"repaired": "4-repaired", "sharp": "4-sharp"},
)

# --- Corollary 1.2 --------------------------------------------------------------------------------------------------

SLOW, FAST = sp.symbols("SLOW FAST", nonnegative=True)
NEEDED = measure_symbol(COROLLARY_1_2.measure)


@dataclass(frozen=True)
class FirstAt:
    """A target that is met from a number of rounds on is met after so many, rounded up.

    Args:
        rounds: T.
        least: from where on the premise holds, which the steps below assume as a condition.
        target: what the premise shows.
        count: the symbol of the number of rounds needed.
    """

    rounds: sp.Symbol
    least: sp.Expr
    target: sp.Expr
    count: sp.Symbol
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what is to be reached"

    @property
    def values(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """Where the conditions of the steps below are discharged."""
        return ((self.rounds, self.least),)

    def check(
        self, conclusion: Relation, premises: Sequence[Relation], facts: Sequence[Relation], setting: Setting
    ) -> Finding:
        """The premise's bound is the target, whatever the number of rounds."""
        if len(premises) != 1 or premises[0].right != self.target or self.target.has(self.rounds):
            return Finding(False, "rounds", f"the premise does not show that {self.target} is reached")
        equal = conclusion.left == self.count and conclusion.right == sp.ceiling(self.least)
        return Finding(equal, "rounds", "rounded up" if equal else f"it is reached after ceiling({self.least})")


ENOUGH = Condition(n.T, ">=", ROUNDS_NEEDED, "enough rounds", n.T)


def rounds_steps() -> Iterator[Step]:
    """From (4) to a target for the gradient norm."""
    T, eps, work = n.T, n.eps, n.P * n.taubar
    shown = largest(4 * SLOW**2 / (work * eps**4), 2 * FAST / eps**2, *(c.right for c in ENOUGH_ROUNDS))
    first, second = SLOW / sqrt(work * T), FAST / T
    spelled = sp.expand(THEOREM_1_AT_ITS_STEPS.form("sharp").bound)
    theorem = f"{THEOREM_1_AT_ITS_STEPS.key}[sharp]"
    yield Step("E1", "enough rounds", Relation(ROUNDS_NEEDED, T), Stated(), (ENOUGH,))
    yield Step("E2", "in letters", Relation(shown, T), Abbreviated(), ("E1", *LEGAL))
    yield Step("E3", "for the root", Relation(4 * SLOW**2, work * eps**4 * T), Combine((work * eps**4,)), ("E2",))
    yield Step("E4", "what falls like the root", Relation(first, eps**2 / 2), Combine((0,)), ("E3",))
    yield Step("E5", "the local updates", Relation(second, eps**2 / 2), Combine((eps**2 / (2 * T),)), ("E2",))
    premises = (theorem, *LEGAL, CURVATURE, *ENOUGH_ROUNDS)
    yield Step("E6-spelled", "Theorem 1 at its steps", Relation(G_MEAN, spelled), Combine((1,)), premises)
    yield Step("E6", "in letters", Relation(G_MEAN, first + second), Abbreviated(), ("E6-spelled", *LEGAL))
    yield Step("E7", "the target is met", Relation(G_MEAN, eps**2), Combine((1, 1, 1)), ("E6", "E4", "E5"))
    yield Step(
        "1.2",
        "Corollary 1.2",
        Relation(NEEDED, sp.ceiling(ROUNDS_NEEDED)),
        FirstAt(T, ROUNDS_NEEDED, eps**2, NEEDED),
        ("E7", *LEGAL, CURVATURE),
    )


ROUNDS_PROOF = Proof(
    COROLLARY_1_2.key,
    Setting(DESCENT_SETTING.bracket, DESCENT_SETTING.atoms, letters={SLOW: corollaries.SLOW, FAST: corollaries.FAST}),
    tuple(rounds_steps()),
    COROLLARY_1_2,
    {"repaired": "1.2"},
)

# --- Corollary 1.1 --------------------------------------------------------------------------------------------------

MEAN = Symbol("[squared gradient of Phi~, mean over the rounds]", nonnegative=True)
LAG = Symbol("[|y* - y~*|^2, mean over the rounds]", nonnegative=True)
MISMATCH = Symbol("chi^2 (betaG^2 eps_opt + sigmaG^2)", nonnegative=True)
LEAST = measure_symbol(COROLLARY_1_1.measure)
ON_THE_RUN = "on every run"
ALONG = Setting(
    "mean over the rounds of one run; mean over clients with weights w_i where a vector is of one client",
    {
        atom.name: atom
        for atom in (
            Atom("x", "point", 0, "x_t", per_client=False),
            Atom("yw", "point", 0, "y~*(x_t), where sum_i w_i f_i is largest", per_client=False),
            Atom("yp", "point", 0, "y*(x_t), where sum_i p_i f_i is largest", per_client=False),
            Atom("g", "gradient", 0, "grad_x f_i at (x_t, y~*)", "x yw", "f_i/x", mean="Phi"),
            Atom("Phi", "gradient", 0, "grad Phi~ = sum_i w_i grad_x f_i at (x_t, y~*)", "x yw", "F~/x", False),
            Atom("Fp", "gradient", 0, "sum_i p_i grad_x f_i at (x_t, y~*)", "x yw", "f/x", False),
            Atom("Phip", "gradient", 0, "grad Phi = sum_i p_i grad_x f_i at (x_t, y*)", "x yp", "f/x", False),
        )
    },
    letters={
        LAG: square(Vec.atom("yw") - Vec.atom("yp")),
        MEAN: square(Vec.atom("Phi")),
        MISMATCH: n.chi2 * (betaG**2 * MEAN + sigmaG**2),
    },
)
g, Phi, Fp, Phip = (Vec.atom(name) for name in ("g", "Phi", "Fp", "Phip"))
yw, yp = Vec.atom("yw"), Vec.atom("yp")


@dataclass(frozen=True)
class ChiSquared(Schema):
    r"""$\|\sum_i(p_i-w_i)u_i\|^2\le\sum_i\frac{(p_i-w_i)^2}{w_i}\,\sum_iw_i\|u_i\|^2$, by Cauchy-Schwarz."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """Of the gradients at y~*, by their meaning."""
        return Relation(square(Fp - Phi), n.chi2 * square(g))


@dataclass(frozen=True)
class LeastOfMean(Schema):
    """The least over the rounds is at most the mean, of the squared gradient of Phi."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The premise bounds the mean."""
        if len(premises) != 1 or premises[0].left != square(Phip):
            raise Unfit("the premise does not bound the mean of |grad Phi|^2")
        return Relation(LEAST, premises[0].right)


def meant_steps() -> Iterator[Step]:
    """Corollary 1.1, by sums of squares and by the triangle inequality."""
    yield Step("w", "the weights w are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,))
    yield Step("p", "so are the p", Relation(SumOverClients(n.p), sp.S.One, "=="), Stated(), (MEANT,))
    yield Step(
        "C1",
        "the objective that is meant is smooth, being a mean with weights p",
        Relation(square(Phip - Fp), sp.expand(L**2 * square(yp - yw))),
        BlockSmooth((("Phip", "Fp"),)),
        ("p", JOINTLY_SMOOTH),
        ON_THE_RUN,
    )
    yield Step(
        "C2",
        "other weights at the same point",
        Relation(square(Fp - Phi), n.chi2 * square(g)),
        ChiSquared(),
        ("w", "p"),
    )
    at = betaG**2 * square(Phi) + sigmaG**2
    yield Step(
        "C3",
        "Assumption 3 at (x_t, y~*)",
        Relation(square(g), at),
        Assumed(square(g), at, (HETEROGENEITY.name,), "at (x_t, y~*)"),
        (HETEROGENEITY,),
        ON_THE_RUN,
    )
    yield Step(
        "C4",
        "two changes, of the weights and of the maximiser",
        Relation(square(Phip), 2 * square(Phi) + 4 * square(Fp - Phi) + 4 * square(Phip - Fp)),
        Gram(),
        (),
        ON_THE_RUN,
    )
    printed = 2 * square(Phi) + 4 * n.chi2 * at + 4 * L**2 * square(yp - yw)
    yield Step(
        "5-mean",
        "(5), for the mean over the rounds",
        Relation(square(Phip), sp.expand(printed)),
        Combine((1, 4, 4, 4 * n.chi2)),
        ("C4", "C1", "C2", "C3"),
        ON_THE_RUN,
    )
    lettered = 2 * MEAN + 4 * n.chi2 * (betaG**2 * MEAN + sigmaG**2) + 4 * L**2 * LAG
    yield Step(
        "5-letters", "in letters", Relation(square(Phip), sp.expand(lettered)), Abbreviated(), ("5-mean",), ON_THE_RUN
    )
    yield Step(
        "5", "Corollary 1.1, (5)", Relation(LEAST, sp.expand(lettered)), LeastOfMean(), ("5-letters",), ON_THE_RUN
    )
    yield Step("T1-spelled", "as it stands", Relation(square(Phi), square(Phi)), Combine(), (), ON_THE_RUN)
    yield Step("T1", "a letter", Relation(square(Phi), MEAN), Abbreviated(), ("T1-spelled",), ON_THE_RUN)
    yield Step(
        "T2-spelled",
        "other weights",
        Relation(square(Fp - Phi), n.chi2 * at),
        Combine((1, n.chi2)),
        ("C2", "C3"),
        ON_THE_RUN,
    )
    yield Step("T2", "in letters", Relation(square(Fp - Phi), MISMATCH), Abbreviated(), ("T2-spelled",), ON_THE_RUN)
    yield Step("T3", "another maximiser", Relation(square(Phip - Fp), L**2 * LAG), Abbreviated(), ("C1",), ON_THE_RUN)
    first, second = sqrt(MEAN), sqrt(MISMATCH)
    yield Step(
        "T4",
        "the triangle inequality in mean square",
        Relation(square(Fp), (first + second) ** 2),
        Triangle(Phi, Fp - Phi, (first, second)),
        ("T1", "T2"),
        ON_THE_RUN,
    )
    yield Step(
        "T5",
        "and again",
        Relation(square(Phip), (first + second + L * sqrt(LAG)) ** 2),
        Triangle(Fp, Phip - Fp, (first + second, L * sqrt(LAG))),
        ("T4", "T3"),
        ON_THE_RUN,
    )
    yield Step(
        "5-sharp",
        "Corollary 1.1 by the triangle inequality",
        Relation(LEAST, (first + second + L * sqrt(LAG)) ** 2),
        LeastOfMean(),
        ("T5",),
        ON_THE_RUN,
    )


MEANT_PROOF = Proof(
    COROLLARY_1_1.key,
    ALONG,
    tuple(meant_steps()),
    COROLLARY_1_1,
    {"printed": "5", "sharp": "5-sharp"},
    substitute={MISMATCH: n.chi2 * (betaG**2 * n.epsopt + sigmaG**2), MEAN: n.epsopt, LAG: n.lag},
)

# --- Corollary 2.1 --------------------------------------------------------------------------------------------------

MOREAU_MEAN = Symbol("[squared gradient of the weighted Moreau envelope, mean over the rounds]", nonnegative=True)
PROX_LAG = Symbol("[|x~ - x-|^2, mean over the rounds]", nonnegative=True)
LEAST_MOREAU = measure_symbol(COROLLARY_2_1.measure)
xt, xw, xp = (Vec.atom(name) for name in ("xt", "xw", "xp"))
PROXIMAL = Setting(
    "mean over the rounds of one run",
    {
        atom.name: atom
        for atom in (
            Atom("xt", "point", 0, "x_t", per_client=False),
            Atom("xw", "point", 0, "the proximal point of Phi~ at x_t, with 1/(2 Lf)", per_client=False),
            Atom("xp", "point", 0, "the proximal point of Phi at x_t, with 1/(2 Lf)", per_client=False),
        )
    },
    letters={MOREAU_MEAN: 4 * L**2 * square(xt - xw), PROX_LAG: square(xw - xp)},
)


@dataclass(frozen=True)
class LeastMoreau(Schema):
    r"""$\nabla\Phi_{1/2L}(x)=2L(x-\mathrm{prox}(x))$, and the least over the rounds is at most the mean."""

    axiom: str = "the gradient of a Moreau envelope is 2 Lf times the way from its proximal point"
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The premise bounds the mean of 4 Lf^2 |x_t - x-|^2."""
        if len(premises) != 1 or sp.expand(premises[0].left - 4 * L**2 * square(xt - xp)) != 0:
            raise Unfit("the premise does not bound the mean of 4 Lf^2 |x_t - prox(x_t)|^2")
        return Relation(LEAST_MOREAU, premises[0].right)


def moreau_steps() -> Iterator[Step]:
    """(55), and the triangle inequality."""
    left = sp.expand(4 * L**2 * square(xt - xp))
    two = sp.expand(8 * L**2 * square(xt - xw) + 8 * L**2 * square(xw - xp))
    yield Step("M1", "two parts", Relation(left, two), Gram(), (), ON_THE_RUN)
    explicit = 2 * MOREAU_MEAN + 8 * L**2 * PROX_LAG
    yield Step("M2", "in letters", Relation(left, explicit), Abbreviated(), ("M1",), ON_THE_RUN)
    yield Step("55", "(55)", Relation(LEAST_MOREAU, explicit), LeastMoreau(), ("M2",), ON_THE_RUN)
    parts = ((xt - xw, sqrt(MOREAU_MEAN) / (2 * L)), (xw - xp, sqrt(PROX_LAG)))
    for name, (vector, root) in zip("ab", parts, strict=True):
        trivial = Relation(square(vector), square(vector))
        yield Step(f"M3{name}-spelled", "as it stands", trivial, Combine(), (), ON_THE_RUN)
        yield Step(
            f"M3{name}",
            "in letters",
            Relation(square(vector), root**2),
            Abbreviated(),
            (f"M3{name}-spelled",),
            ON_THE_RUN,
        )
    (first, bound), (second, other) = parts
    total = sqrt(MOREAU_MEAN) / (2 * L) + sqrt(PROX_LAG)
    yield Step(
        "M4",
        "the triangle inequality in mean square",
        Relation(square(xt - xp), total**2),
        Triangle(first, second, (bound, other)),
        ("M3a", "M3b"),
        ON_THE_RUN,
    )
    sharp = (sqrt(MOREAU_MEAN) + 2 * L * sqrt(PROX_LAG)) ** 2
    yield Step("M5", "times 4 Lf^2", Relation(left, sharp), Combine((4 * L**2,)), ("M4",), ON_THE_RUN)
    yield Step(
        "55-sharp",
        "Corollary 2.1 by the triangle inequality",
        Relation(LEAST_MOREAU, sharp),
        LeastMoreau(),
        ("M5",),
        ON_THE_RUN,
    )


PROXIMAL_PROOF = Proof(
    COROLLARY_2_1.key,
    PROXIMAL,
    tuple(moreau_steps()),
    COROLLARY_2_1,
    {"explicit": "55", "sharp": "55-sharp"},
    substitute={MOREAU_MEAN: n.epsbar, PROX_LAG: n.proxlag},
)
