r"""Lemma B.4 (and B.9): how far the local models drift in a round, eqs. (30) to (32)."""

import sympy as sp
from sympy import Integer, Rational

from fedbounds.bounds.audit.axioms import ByMeaning
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.participation_rules import Squared
from fedbounds.bounds.audit.rules import Gram, Unfolded
from fedbounds.bounds.audit.vectors import Vec, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import GROWING, LOCAL_MAP
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_4, LEMMA_B_9
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import Scaled, scaled
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_X, IN_Y, TO_SYMBOLS, Block
from fedbounds.bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.local_steps import LOCAL_PROOF, over_local_steps
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1
from fedbounds.bounds.theory.client_reductions import MaxOverClients
from fedbounds.bounds.theory.result import Condition

DELTA, DESCENT_SETTING, PAPER, C_w, D, G, L = of.DELTA, of.DESCENT_SETTING, of.PAPER, of.C_w, of.D, of.G, of.L
V, X, a_m, betaG, betaL, etax, etay, kappa = of.V, of.X, of.a_m, of.betaG, of.betaL, of.etax, of.etay, of.kappa
local_distance, nu, sigmaG, sigmaL, theta_delta = of.local_distance, of.nu, of.sigmaG, of.sigmaL, of.theta_delta
theta_G, x0, y0 = of.theta_G, of.x0, of.y0

ROUND = DIRECTIONS_PROOF.id
HALF = Rational(1, 2)
STEPS_SQUARED = etax**2 + etay**2
MOVED = {"x": Vec.atom("X") - x0, "y": Vec.atom("Y") - y0}
CLIENT_STEP = {"x": etax, "y": etay}
LARGEST_SUM = MaxOverClients(n.a1)
LARGEST_RECURSION = ByMeaning(
    "LargestRecursion",
    *(a_m, (1 + betaL**2) * LARGEST_SUM**2),
    "the coefficients are nonnegative, so that none is more than their sum",
    (LOCAL_MAP.name,),
)


def block_steps(s: Chain, b: Block) -> None:
    """How far the local models are in one block, by the gradients at the round's start."""
    x, eta, moved = b.name, CLIENT_STEP[b.name], MOVED[b.name]
    u, v = scaled("r", b.G), scaled("r", b.g)
    s[f"r1{x}", "two parts"] = le(square(u), 2 * square(u - v) + 2 * square(v)), Gram()
    s[f"r2{x}", "the change since the round's start, the weights at their largest"] = Scaled("r", b.G - b.g)
    s[f"r3{x}", "the start, the weights in the mean over the steps"] = Scaled("r", b.g, still=True)
    change = 2 * a_m * square(b.G - b.g) + 2 * D * square(b.g)
    for suffix, price, source in (("", nu, "25-repaired"), ("-printed", Integer(1), "25-printed")):
        s[f"25{x}{suffix}", f"(26) to (29): (25) over clients and steps, in {x}"] = by(
            over_local_steps(price, eta, moved, b.G), f"{LOCAL_PROOF.id}/{source}", LOCAL_MAP, GROWING
        )
        s[f"30{x}{suffix}", f"the drift in {x}"] = by(
            le(square(moved), sp.expand(price * eta**2 * (sigmaL**2 * C_w + change))),
            f"25{x}{suffix} r1{x} r2{x} r3{x}",
        )


def start(at: sp.Expr) -> sp.Expr:
    """What both blocks add, with the squared gradients at the round's start bounded or not."""
    return STEPS_SQUARED * sigmaL**2 * C_w + 2 * D * at


def joint_steps(s: Chain, suffix: str, price: sp.Expr, source: str = "") -> None:
    """Both blocks together, from the steps that carry the suffix `source`; at (m) the drift's own part is at most a
    half.
    """
    gradients = etax**2 * square(IN_X.g) + etay**2 * square(IN_Y.g)
    recursion = sp.expand(price * L**2 * (start(gradients) + 2 * a_m * STEPS_SQUARED * X))
    s[f"30{suffix}", "both blocks together"] = by(
        le(local_distance(), recursion), f"30x{source} 30y{source} {ROUND}/D1x {ROUND}/D1y"
    )
    s[f"31{suffix}", "(31): solved for the drift"] = by(
        le(X, sp.expand(2 * price * L**2 * start(gradients))), Unfolded, {f"30{suffix}": 2, f"m{suffix}": 2 * X}
    )
    s[f"32{suffix}", "(32): heterogeneity, and the gradients by that of the envelope and the dual gap"] = by(
        le(X, sp.expand(2 * price * L**2 * start(HETEROGENEOUS))),
        f"31{suffix} {ROUND}/A3x {ROUND}/A3y {AWAY_PROOF.id}/B6 {AWAY_PROOF.id}/B6y",
    )
    s[f"B.4{suffix}", "Lemma B.4" + (" as printed" if suffix else " at the price nu")] = by(
        le(X, sp.expand(price * (2 * V + theta_G * G + theta_delta * DELTA))), Unfolded, f"32{suffix}"
    )


def cap_steps(s: Chain, suffix: str, price: sp.Expr, condition: Condition) -> None:
    """Condition (m) in symbols."""
    s[f"m{suffix}", "condition (m)", ""] = le(2 * price * STEPS_SQUARED * L**2 * a_m, HALF), Unfolded, condition


def printed_cap_steps(s: Chain) -> None:
    """The printed cap of Lemma B.4 is enough for (m) at the price 1."""
    cap = LEMMA_B_4.form("printed").conditions[-1]
    most = 1 / (8 * L**2 * LARGEST_SUM**2 * (1 + betaL**2))
    s["cap", "the cap of Lemma B.4, squared", ""] = le(cap.left**2, most), Squared(), cap
    s["cap-a", "no coefficient is more than their sum", ""] = LARGEST_RECURSION, LOCAL_MAP
    s["m-printed", "(31) as printed: A_m is at most 1/2", ""] = by(
        le(2 * STEPS_SQUARED * L**2 * a_m, HALF), {"cap": HALF / most, "cap-a": 2 * STEPS_SQUARED * L**2}
    )


HETEROGENEOUS = etax**2 * (betaG**2 * IN_X.bound + sigmaG**2) + etay**2 * (betaG**2 * IN_Y.bound + sigmaG**2)
s = Chain(DESCENT_SETTING, EACH, (LOCAL_PROOF, DIRECTIONS_PROOF, AWAY_PROOF))
block_steps(s, IN_X)
block_steps(s, IN_Y)
cap_steps(s, "", nu, LEMMA_B_4.form("repaired").conditions[-1])
joint_steps(s, "", nu)
printed_cap_steps(s)
joint_steps(s, "-printed", Integer(1), "-printed")
cap_steps(s, "-explicit", Integer(1), THEOREM_1.form("explicit").conditions[-1])
joint_steps(s, "-explicit", Integer(1), "-printed")
ENDS = {"printed": "B.4-printed", "repaired": "B.4"}
DRIFT_PROOF = s.proof(f"{PAPER}/lemma-b.4", LEMMA_B_4, ENDS, X, TO_SYMBOLS)

# --- Lemma B.9 ------------------------------------------------------------------------------------------------------

WITH_KAPPA = 8 * kappa * L**3 * D * betaG**2 * (2 * etax**2 + etay**2)
s = Chain(DESCENT_SETTING, EACH, (DRIFT_PROOF,))
s["B.9", "Lemma B.9, repaired: Lemma B.4 as it is"] = by(
    le(X, nu * (2 * V + theta_G * G + theta_delta * DELTA)), f"{DRIFT_PROOF.id}/B.4"
)
s["B.9-printed", "Lemma B.9 as printed, with more kappa than it needs"] = by(
    le(X, 2 * V + theta_G * G + WITH_KAPPA * DELTA), Unfolded, f"{DRIFT_PROOF.id}/32-printed", CURVATURE
)
ENDS = {"printed": "B.9-printed", "repaired": "B.9"}
PL_PROOF = s.proof(f"{PAPER}/lemma-b.9", LEMMA_B_9, ENDS, X, TO_SYMBOLS)
