r"""How far a local model is after k steps, eq. (25), and the average over the local steps, eqs. (26) to (29).

In either block $u=x_i^{(t,k)}-x^{(t)}=-\eta\,(e+\zeta)$ with $e=\sum_{j<k}a_i^{(j)}(k)\nabla f_{ij}$ and
$\zeta=\sum_{j<k}a_i^{(j)}(k)\xi_{ij}$. (25) takes $\mathbb E\langle e,\zeta\rangle$ for 0; what holds costs a factor.
"""

import sympy as sp
from sympy import Integer, Symbol

from fedbounds.bounds.audit.axioms import ByMeaning, SumOfNoise
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, LOCAL_MAP, SAMPLING
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_4
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import NOISE, UNCORRELATED, MixingPrice, given_start, scaled
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import PAPER, C_w, betaL, nu, sigmaL
from fedbounds.bounds.theory.assumptions import MARTINGALE

STEP = Symbol("eta_b", nonnegative=True)  # the client's step size in the block
SUM, SQUARES = Symbol("[sum_j a^(j)(k)]", nonnegative=True), Symbol("[sum_j a^(j)(k)^2]", nonnegative=True)
OF_GRADIENTS = Symbol("[sum_j a^(j)(k) |grad f_ij|^2]", nonnegative=True)
SQUARES_OF_GRADIENTS = Symbol("[sum_j a^(j)(k)^2 |grad f_ij|^2]", nonnegative=True)
u, e, zeta, xi, G = (Vec.atom(name) for name in ("u", "e", "zeta", "xi", "G"))
EACH = "for every client i, local step k <= tau_i and block"
ATOMS = (
    Atom("u", "point", 1, "the local model before step k, less the round's start, in one block"),
    Atom("e", "gradient", 1, "sum_(j<k) a_i^(j)(k) G_j"),
    Atom("zeta", "noise", 0, "sum_(j<k) a_i^(j)(k) xi_j, drawn after the round's start"),
    Atom("xi", "noise", 0, "the noise of client i in this block of one local step"),
    Atom("G", "gradient", 1, "the exact gradient of client i in this block at the local model of that step"),
)
SETTING = ProofSetting.of(
    "one client, its local model before step k, one block; expectation over all noise and sampling up to round t",
    *ATOMS,
)


AT_MOST_FINAL = "the coefficients of a local iterate are at most the final ones"


def local_bound(price: sp.Expr) -> sp.Expr:
    """(25) at the price of noise and drift mixing; 1 as printed."""
    noise = sigmaL**2 * SQUARES + betaL**2 * SQUARES_OF_GRADIENTS
    return sp.expand(price * STEP**2 * (noise + SUM * OF_GRADIENTS))


def over_local_steps(price: sp.Expr, step: sp.Expr, moved: Vec, gradient: Vec) -> ByMeaning:
    r"""The average of (25) over clients and local steps:
    $\sum_i\frac{w_i}{\|a_i\|_1}\sum_ka_i^{(k)}\mathbb E\|u\|^2\le p\,\eta^2(\sigma_L^2C_w+\|\sqrt\rho\,G\|^2)$.

    With $0\le a^{(j)}(k)\le a^{(j)}$ for $j<k$ every sum over $j<k\le\tau-1$ is at most that over all but the last
    step with the final coefficients: $\sum_ja^{(j)}(k)^2\le\|a_{-1}\|_2^2$ and $\sum_ja^{(j)}(k)\le\|a_{-1}\|_1$; and
    $\beta_L^2[a^{(j)}]^2+\|a_{-1}\|_1a^{(j)}=\rho_j\,a^{(j)}/\|a\|_1$.
    """
    right = sp.expand(price * step**2 * (sigmaL**2 * C_w + square(scaled("r", gradient))))
    needs, given = (LOCAL_MAP.name, "growing-coefficients"), (le(square(u), local_bound(price)),)
    return ByMeaning("OverLocalSteps", square(moved), right, AT_MOST_FINAL, needs, given=given)


NOISY, MAPPED = (BLOCK_NOISE, MARTINGALE, SAMPLING), (LOCAL_MAP.name,)

s = Chain(SETTING, EACH)
moved = sp.expand(STEP**2 * square(e + zeta))
s["L1", "the local map, eq. (12)"] = by(
    ByMeaning("LocalMap", square(u), moved, "the algorithm: its local map", MAPPED, "=="), LOCAL_MAP
)
s["L2", "the noise of client i in one local step, Assumption 2 in this block"] = by(
    le(square(xi), sigmaL**2 + betaL**2 * square(G)), BLOCK_NOISE
)
s["L3", "noise of different local steps is uncorrelated"] = by(
    SumOfNoise(square(zeta), square(xi), square(G), SQUARES, SQUARES_OF_GRADIENTS, UNCORRELATED, NOISE),
    *("L2", BLOCK_NOISE, MARTINGALE),
)
s["L4", "Cauchy-Schwarz over the local steps"] = by(
    ByMeaning("StepsCauchySchwarz", square(e), SUM * OF_GRADIENTS, needs=MAPPED), LOCAL_MAP
)
s["L5", "noise and exact gradients mix, unless every client takes one step"] = MixingPrice("e", "zeta"), *NOISY
s["L6", "at the price nu the two are separate"] = le(square(e + zeta), nu * square(e) + nu * square(zeta)), {"L5": 2}
s["25-repaired", "(25) at the price nu"] = by(
    le(square(u), local_bound(nu)), {"L1": 1, "L6": STEP**2, "L3": nu * STEP**2, "L4": nu * STEP**2}
)
s["L5-printed", "(25) as printed: the noise is uncorrelated with the exact gradients, also the later ones"] = by(
    eq(inner(e, zeta), 0), given_start(zeta, e), *NOISY
)
s["25-printed", "(25) as printed"] = by(
    le(square(u), local_bound(Integer(1))), {"L1": 1, "L5-printed": 2 * STEP**2, "L3": STEP**2, "L4": STEP**2}
)
LOCAL_PROOF = s.proof(f"{PAPER}/local-steps", LEMMA_B_4, {})
