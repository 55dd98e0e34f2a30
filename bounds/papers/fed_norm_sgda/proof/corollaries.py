r"""Theorem 1 at the steps of (4), and Corollaries 1.1 and 2.1: from the weighted objective to the one that is meant."""

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp
from sympy import Symbol, sqrt

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.derivations import Specialize
from fedbounds.bounds.audit.nonnegative import ProofFinding
from fedbounds.bounds.audit.participation_rules import Triangle
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Everywhere, Gram, Unfolded
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.fed_norm_sgda import corollaries
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import HETEROGENEITY, JOINTLY_SMOOTH
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE, LEGAL, SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import (
    COROLLARY_1_1,
    COROLLARY_1_2,
    COROLLARY_2_1,
    MEANT,
    ROUNDS_NEEDED,
)
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof.ascent import G_MEAN
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import smooth
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import DESCENT_SETTING, L, betaG, kappa, sigmaG
from fedbounds.bounds.papers.fed_norm_sgda.results import ENOUGH_ROUNDS, STEPS, THEOREM_1, THEOREM_1_AT_ITS_STEPS
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.result import Condition

ASCENT = n.taueff * STEPS["gammay"]
AT_ITS_STEPS = (
    (n.Gammay, ASCENT),
    (n.Gammax, ASCENT / (156 * kappa**2)),
    (n.etax, STEPS["etax"]),
    (n.etay, STEPS["etay"]),
)
PRESCRIBED = tuple((n[name].symbol, value) for name, value in STEPS.items())


# (4): the full theorem at these steps, whose conditions T meets once it is large enough
s = Chain(DESCENT_SETTING, cites=(THEOREM_1,))
for form in ("repaired", "sharp"):
    s[f"4-{form}", "Theorem 1 at the steps of (4)"] = by(
        le(G_MEAN, sp.expand(THEOREM_1_AT_ITS_STEPS.form(form).bound)),
        Specialize(AT_ITS_STEPS, prescribes=PRESCRIBED),
        f"{THEOREM_1.key}[{form}]",
        *LEGAL,
        CURVATURE,
        *ENOUGH_ROUNDS,
    )
ENDS = {"repaired": "4-repaired", "sharp": "4-sharp"}
RATE_PROOF = s.proof(THEOREM_1_AT_ITS_STEPS.key, THEOREM_1_AT_ITS_STEPS, ENDS)

# --- Corollary 1.2 --------------------------------------------------------------------------------------------------

SLOW, FAST = sp.symbols("SLOW FAST", nonnegative=True)
NEEDED = measure_symbol(COROLLARY_1_2.measure)


@dataclass(frozen=True)
class FirstAt:
    """A target that is met from a number of rounds on is met after so many, rounded up."""

    rounds: sp.Symbol  # T
    least: sp.Expr  # from where on the premise holds, which the steps below assume as a condition
    target: sp.Expr  # what the premise shows
    count: sp.Symbol  # the symbol of the number of rounds needed
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what is to be reached"

    @property
    def values(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """Where the conditions of the steps below are discharged."""
        return ((self.rounds, self.least),)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The premise's bound is the target, whatever the number of rounds."""
        if len(premises) != 1 or premises[0].right != self.target or self.target.has(self.rounds):
            return ProofFinding(False, "rounds", f"the premise does not show that {self.target} is reached")
        equal = conclusion.left == self.count and conclusion.right == sp.ceiling(self.least)
        return ProofFinding(equal, "rounds", "rounded up" if equal else f"it is reached after ceiling({self.least})")


ENOUGH = Condition(n.T, ">=", ROUNDS_NEEDED, "enough rounds", n.T)


IN_SYMBOLS = {SLOW: corollaries.SLOW, FAST: corollaries.FAST}
T, eps, work = n.T, n.eps, n.P * n.taubar
SHOWN = largest(4 * SLOW**2 / (work * eps**4), 2 * FAST / eps**2, *(c.right for c in ENOUGH_ROUNDS))
THEOREM = THEOREM_1_AT_ITS_STEPS.form("sharp")
first, second = SLOW / sqrt(work * T), FAST / T

s = Chain(
    ProofSetting(DESCENT_SETTING.bracket, DESCENT_SETTING.atoms, symbols=IN_SYMBOLS), cites=(THEOREM_1_AT_ITS_STEPS,)
)
s["E1", "enough rounds"] = ENOUGH
s["E2", "in symbols"] = le(SHOWN, T), Unfolded, "E1", *LEGAL
s["E3", "for the root"] = le(4 * SLOW**2, work * eps**4 * T), {"E2": work * eps**4}
s["E4", "what falls like the root"] = le(first, eps**2 / 2), "E3"
s["E5", "the local updates"] = le(second, eps**2 / 2), {"E2": eps**2 / (2 * T)}
s["E6", "Theorem 1 at its steps"] = by(
    le(G_MEAN, first + second), *(Unfolded, f"{THEOREM_1_AT_ITS_STEPS.key}[sharp]", *LEGAL, CURVATURE, *ENOUGH_ROUNDS)
)
s["E7", "the target is met"] = le(G_MEAN, eps**2), {"E6": 1, "E4": 1, "E5": 1}
s["1.2", "Corollary 1.2"] = by(
    le(NEEDED, sp.ceiling(ROUNDS_NEEDED)), FirstAt(T, ROUNDS_NEEDED, eps**2, NEEDED), "E7", *LEGAL, CURVATURE
)
ROUNDS_PROOF = s.proof(COROLLARY_1_2.key, COROLLARY_1_2, {"repaired": "1.2"})

# --- Corollary 1.1 --------------------------------------------------------------------------------------------------

MEAN = Symbol("[squared gradient of Phi~, mean over the rounds]", nonnegative=True)
LAG = Symbol("[|y* - y~*|^2, mean over the rounds]", nonnegative=True)
MISMATCH = Symbol("chi^2 (betaG^2 eps_opt + sigmaG^2)", nonnegative=True)
LEAST = measure_symbol(COROLLARY_1_1.measure)
ON_THE_RUN = "on every run"
ALONG = ProofSetting.of(
    "mean over the rounds of one run; mean over clients with weights w_i where a vector is of one client",
    Atom("x", "point", 0, "x_t", per_client=False),
    Atom("yw", "point", 0, "y~*(x_t), where sum_i w_i f_i is largest", per_client=False),
    Atom("yp", "point", 0, "y*(x_t), where sum_i p_i f_i is largest", per_client=False),
    Atom("g", "gradient", 0, "grad_x f_i at (x_t, y~*)", "x yw", "f_i/x", mean="Phi"),
    Atom("Phi", "gradient", 0, "grad Phi~ = sum_i w_i grad_x f_i at (x_t, y~*)", "x yw", "F~/x", False),
    Atom("Fp", "gradient", 0, "sum_i p_i grad_x f_i at (x_t, y~*)", "x yw", "f/x", False),
    Atom("Phip", "gradient", 0, "grad Phi = sum_i p_i grad_x f_i at (x_t, y*)", "x yp", "f/x", False),
    symbols={
        LAG: square(Vec.atom("yw") - Vec.atom("yp")),
        MEAN: square(Vec.atom("Phi")),
        MISMATCH: n.chi2 * (betaG**2 * MEAN + sigmaG**2),
    },
)
g, Phi, Fp, Phip = (Vec.atom(name) for name in ("g", "Phi", "Fp", "Phip"))
yw, yp = Vec.atom("yw"), Vec.atom("yp")


LEAST_OF_MEAN = Everywhere(of=square(Phip), is_=LEAST)
CHI_SQUARED = ByMeaning("ChiSquared", square(Fp - Phi), n.chi2 * square(g))  # Cauchy-Schwarz
AT = betaG**2 * square(Phi) + sigmaG**2  # Assumption 3 at (x_t, y~*)
PRINTED = 2 * square(Phi) + 4 * n.chi2 * AT + 4 * L**2 * square(yp - yw)
LETTERED = 2 * MEAN + 4 * n.chi2 * (betaG**2 * MEAN + sigmaG**2) + 4 * L**2 * LAG
first, second, third = sqrt(MEAN), sqrt(MISMATCH), L * sqrt(LAG)

s = Chain(ALONG, ON_THE_RUN)
s["C1", "the objective that is meant is smooth, being a mean with weights p"] = by(
    smooth("Phip", "Fp"), MEANT, JOINTLY_SMOOTH
)
s["C2", "other weights at the same point", ""] = CHI_SQUARED, SIMPLEX, MEANT
s["C3", "Assumption 3 at (x_t, y~*)"] = le(square(g), AT), HETEROGENEITY
s["C4", "two changes, of the weights and of the maximizer"] = by(
    le(square(Phip), 2 * square(Phi) + 4 * square(Fp - Phi) + 4 * square(Phip - Fp)), Gram()
)
s["5-mean", "(5), for the mean over the rounds"] = le(square(Phip), sp.expand(PRINTED)), "C4 C1 C2 C3"
s["5-symbols", "in symbols"] = le(square(Phip), sp.expand(LETTERED)), Unfolded, "5-mean"
s["5", "Corollary 1.1, (5)"] = LEAST_OF_MEAN, "5-symbols"
s["T1", "a symbol"] = le(square(Phi), MEAN), Unfolded
s["T2", "other weights"] = le(square(Fp - Phi), MISMATCH), Unfolded, {"C2": 1, "C3": n.chi2}
s["T3", "another maximizer"] = le(square(Phip - Fp), L**2 * LAG), Unfolded, "C1"
s["T4", "the triangle inequality in mean square"] = Triangle(Phi, Fp - Phi, (first, second)), "T1 T2"
s["T5", "and again"] = Triangle(Fp, Phip - Fp, (first + second, third)), "T4 T3"
s["5-sharp", "Corollary 1.1 by the triangle inequality"] = LEAST_OF_MEAN, "T5"
IN_RESULT = {MISMATCH: n.chi2 * (betaG**2 * n.epsopt + sigmaG**2), MEAN: n.epsopt, LAG: n.lag}
MEANT_PROOF = s.proof(COROLLARY_1_1.key, COROLLARY_1_1, {"printed": "5", "sharp": "5-sharp"}, substitute=IN_RESULT)

# --- Corollary 2.1 --------------------------------------------------------------------------------------------------

MOREAU_MEAN = Symbol("[squared gradient of the weighted Moreau envelope, mean over the rounds]", nonnegative=True)
PROX_LAG = Symbol("[|x~ - x-|^2, mean over the rounds]", nonnegative=True)
LEAST_MOREAU = measure_symbol(COROLLARY_2_1.measure)
xt, xw, xp = (Vec.atom(name) for name in ("xt", "xw", "xp"))
PROXIMAL = ProofSetting.of(
    "mean over the rounds of one run",
    Atom("xt", "point", 0, "x_t", per_client=False),
    Atom("xw", "point", 0, "the proximal point of Phi~ at x_t, with 1/(2 Lf)", per_client=False),
    Atom("xp", "point", 0, "the proximal point of Phi at x_t, with 1/(2 Lf)", per_client=False),
    symbols={MOREAU_MEAN: 4 * L**2 * square(xt - xw), PROX_LAG: square(xw - xp)},
)


LEFT = sp.expand(4 * L**2 * square(xt - xp))
AT_PROXIMAL = "the gradient of a Moreau envelope is 2 Lf times the way from its proximal point"
LEAST_OF_MOREAU = Everywhere(of=LEFT, is_=LEAST_MOREAU, axiom=AT_PROXIMAL)
LETTERED = 2 * MOREAU_MEAN + 8 * L**2 * PROX_LAG
SHARP = (sqrt(MOREAU_MEAN) + 2 * L * sqrt(PROX_LAG)) ** 2
PARTS, ROOTS = (xt - xw, xw - xp), (sqrt(MOREAU_MEAN) / (2 * L), sqrt(PROX_LAG))

s = Chain(PROXIMAL, ON_THE_RUN)
s["M1", "two parts"] = le(LEFT, sp.expand(8 * L**2 * square(xt - xw) + 8 * L**2 * square(xw - xp))), Gram()
s["M2", "in symbols"] = le(LEFT, LETTERED), Unfolded, "M1"
s["55", "(55)"] = LEAST_OF_MOREAU, "M2"
for name, part, root in zip("ab", PARTS, ROOTS, strict=True):
    s[f"M3{name}", "a symbol"] = le(square(part), root**2), Unfolded
s["M4", "the triangle inequality in mean square"] = Triangle(*PARTS, ROOTS), "M3a M3b"
s["M5", "times 4 Lf^2"] = le(LEFT, SHARP), {"M4": 4 * L**2}
s["55-sharp", "Corollary 2.1 by the triangle inequality"] = LEAST_OF_MOREAU, "M5"
IN_RESULT = {MOREAU_MEAN: n.epsbar, PROX_LAG: n.proxlag}
PROXIMAL_PROOF = s.proof(
    COROLLARY_2_1.key, COROLLARY_2_1, {"explicit": "55", "sharp": "55-sharp"}, substitute=IN_RESULT
)
