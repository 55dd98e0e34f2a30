"""Fed-Norm-SGDA+: the two directions, eqs. (63) and (69), and Lemma C.2, with the ascent at a snapshot."""

from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Symbol

from fedbounds.bounds.audit.axioms import Schema, Unfit
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.participation_rules import Squared
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Gram, Unfolded
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, LIPSCHITZ, LOCAL_MAP
from fedbounds.bounds.papers.fed_norm_sgda.composites import SAMPLED, SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.concave import recursion_cap
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_2
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import directions
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, SelfBounded, scaled, smooth
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import Block
from fedbounds.bounds.papers.fed_norm_sgda.proof.drift import HALF, LARGEST_RECURSION, LARGEST_SUM, MOVED, block_steps
from fedbounds.bounds.papers.fed_norm_sgda.proof.local_steps import LOCAL_PROOF
from fedbounds.bounds.theory.client_reductions import SumOverClients

PAPER, C_w, D, Gx, L, X, Z, a_m, betaG = of.PAPER, of.C_w, of.D, of.Gx, of.L, of.X, of.Z, of.a_m, of.betaG
betaL, c, closed, d, etax, etay, nu, r = of.betaL, of.c, of.closed, of.d, of.etax, of.etay, of.nu, of.r
round_setting, sigmaG, sigmaL = of.round_setting, of.sigmaG, of.sigmaL

EACH, IN_X, PRICES, TO_SYMBOLS = directions.EACH, directions.IN_X, directions.PRICES, directions.TO_SYMBOLS
end_steps, gradient_steps, sample_steps = directions.end_steps, directions.gradient_steps, directions.sample_steps
start_steps = directions.start_steps

STALE = Symbol("[delta^_t]", nonnegative=True)
W_SQUARED, I_1_SQUARED = Symbol("sum w_i^2", nonnegative=True), Symbol("I_1^2", nonnegative=True)
V_C = Symbol("V_C", nonnegative=True)
OWN_SYMBOLS = {
    W_SQUARED: SumOverClients(n.w**2),
    I_1_SQUARED: r * Z * (sigmaL**2 + betaL**2 * Gx**2) + Gx**2 * (c + r * d * W_SQUARED),
    V_C: (etax**2 + etay**2) * L**2 * (sigmaL**2 * C_w + 2 * D * (Gx**2 + sigmaG**2)),
}
SNAPSHOT_ATOMS = (
    Atom(
        "xs", "point", 0, "the snapshot of x, taken at the start of the block of rounds", per_client=False, still=True
    ),
    Atom("yb", "point", 0, "a maximizer of F~ at the snapshot", per_client=False, still=True),
    Atom("xb", "point", 0, "the proximal point of Phi~ at x_t, with 1/(2 Lf)", per_client=False, still=True),
)
_BASE = round_setting("xs y0", *SNAPSHOT_ATOMS)
SETTING = _BASE.with_symbols(OWN_SYMBOLS)
IN_SNAPSHOT = Block("y", "S-self", 2 * L * STALE)
MOVED_Y = square(MOVED["y"])
TO_OWN = {
    **TO_SYMBOLS,
    **{symbol: value.xreplace(closed(SETTING.symbols)) for symbol, value in OWN_SYMBOLS.items()},
    STALE: n.staledual,
}


@dataclass(frozen=True)
class BoundedGradient(Schema):
    r"""$\|\nabla_xf_i\|\le G_x$ everywhere, for the gradients in x, their means, and with their scaled weights summed.

    $\sum_iw_i\cdot w_i=\sum_iw_i^2$, $\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2=Z$, and the weights of the
    drift sum to D at most.
    """

    vector: str  # a gradient in x, or a mean of such
    prefix: str = ""  # how it is scaled; "" if it is not
    axiom: str = "Lipschitz in x: |grad_x f_i| <= Gx everywhere"
    needs: tuple[str, ...] = (LIPSCHITZ.name,)

    @property
    def given(self) -> tuple[Relation, ...]:
        """For the mean over the clients the weights must be a mean."""
        return (ON_THE_SIMPLEX,) if self.vector == "Hx" else ()

    def relation(self, setting: ProofSetting, premises: list[Relation]) -> Relation:
        """Of gradients in x and their means only."""
        if self.vector not in ("Gx", "hx", "Hx", "gx", "Fx"):
            raise Unfit(f"{self.vector} is not a gradient in x or a mean of these")
        sums = {"": Integer(1), "w": W_SQUARED, "a": Z, "r": D}
        plain = Vec.atom(self.vector)
        return Relation(square(scaled(self.prefix, plain) if self.prefix else plain), sums[self.prefix] * Gx**2)


def shared_steps(s: Chain) -> None:
    """The blocks at their own places."""
    b = IN_SNAPSHOT
    s["S-self", "Lemma A.7 at the snapshot"] = SelfBounded("Fy", STALE), SIMPLEX, JOINTLY_SMOOTH
    s["D1x-spelled", "smoothness between the local model and the round's start"] = by(
        smooth("Gx", "gx"), JOINTLY_SMOOTH
    )
    s["D1x", "in x"] = le(square(IN_X.G - IN_X.g), X), Unfolded, "D1x-spelled"
    s["D1y-own", "smoothness in y alone, at the snapshot"] = smooth("Gy", "gy"), JOINTLY_SMOOTH
    s["D1y", "which is part of the drift"] = le(square(b.G - b.g), X), Unfolded, "D1y-own"
    start_steps(s, IN_X)
    start_steps(s, b)


def descent_direction_steps(s: Chain) -> None:
    """(63): the direction in x, whose gradients are bounded."""
    sample_steps(s, IN_X)
    for name, vector, prefix in (("63-H", "Hx", ""), ("63-w", "hx", "w"), ("63-a", "Gx", "a")):
        s[name, "gradients in x are bounded, so are their means"] = BoundedGradient(vector, prefix), SIMPLEX, LIPSCHITZ
    for suffix, price, says in PRICES:
        s[f"63{suffix}", f"(63){says}"] = by(
            le(square(IN_X.s + IN_X.n), price * I_1_SQUARED), Unfolded, f"19x{suffix} 63-H 63-w 63-a", SAMPLED
        )


def ascent_direction_steps(s: Chain) -> None:
    """(69): the direction in y, whose gradients are taken at the snapshot."""
    b = IN_SNAPSHOT
    for part in (sample_steps, gradient_steps, end_steps):
        part(s, b)
    s["69a", "(69): two parts"] = le(square(b.H), 2 * square(b.H - b.F) + 2 * square(b.F)), Gram()
    s["69", "(69): the mean exact direction in y"] = le(square(b.H), 2 * X + 4 * L * STALE), "69a D4y S-self"


# --- Lemma C.2 ------------------------------------------------------------------------------------------------------

ASCENT_START = sigmaL**2 * C_w + 2 * D * square(IN_SNAPSHOT.g)
START = ASCENT_START.xreplace({square(IN_SNAPSHOT.g): betaG**2 * 2 * L * STALE + sigmaG**2})


def cap_steps(s: Chain, suffix: str, price: sp.Expr) -> None:
    """The cap of Lemma C.2 in symbols."""
    spelled = le(2 * price * L**2 * etay**2 * a_m, HALF)
    if not suffix:
        s["m", "the cap", ""] = spelled, Unfolded, recursion_cap(nu)
        return
    cap, growth = LEMMA_C_2.form("printed").conditions[-1], sp.Max(1, betaL**2)
    most = 1 / (8 * L**2 * LARGEST_SUM**2 * growth)
    s["cap", "the cap of Lemma C.2, squared", ""] = le(cap.left**2, most), Squared(), cap
    s["cap-a", "no coefficient is more than their sum", ""] = LARGEST_RECURSION, LOCAL_MAP
    s["m-printed", "(66): the recursion, 1 + betaL^2 being at most twice the larger", ""] = by(
        spelled, {"cap": 2 * growth * LARGEST_SUM**2 * 2 * L**2, "cap-a": 2 * L**2 * etay**2}
    )


def drift_steps(s: Chain, suffix: str, price: sp.Expr) -> None:
    """(65) to (67): the drift in y, that in x, and both."""
    own = price * etay**2 * (sigmaL**2 * C_w + 2 * a_m * L**2 * MOVED_Y + 2 * D * square(IN_SNAPSHOT.g))
    s[f"66{suffix}", "(66): the drift in y as a recursion"] = le(MOVED_Y, sp.expand(own)), f"30y{suffix} D1y-own"
    s[f"66-solved{suffix}", "solved"] = by(
        le(MOVED_Y, sp.expand(2 * price * etay**2 * ASCENT_START)), {f"66{suffix}": 2, f"m{suffix}": 2 * MOVED_Y}
    )
    s[f"67y{suffix}", "(67): heterogeneity and the gap at the snapshot"] = by(
        le(MOVED_Y, sp.expand(2 * price * etay**2 * START)), f"66-solved{suffix} A3y S-self"
    )
    s[f"67x{suffix}", "the drift in x, where the gradient is bounded"] = by(
        le(square(MOVED["x"]), price * etax**2 * (sigmaL**2 * C_w + D * Gx**2)), f"25x{suffix} 67-r"
    )
    in_y = etay**2 * (sigmaG**2 + 2 * betaG**2 * L * STALE)
    tight = (etax**2 + 2 * etay**2) * sigmaL**2 * C_w + D * (etax**2 * Gx**2 + 4 * in_y)
    loose = 2 * (etax**2 + etay**2) * sigmaL**2 * C_w + 4 * D * (etax**2 * Gx**2 + in_y)
    s[f"C.2-sharp{suffix}", "both blocks: Lemma C.2 with every summand its own constant"] = by(
        le(X, sp.expand(price * L**2 * tight)), Unfolded, {f"67x{suffix}": L**2, f"67y{suffix}": L**2}
    )
    s[f"C.2{suffix}", "Lemma C.2" + (" as printed" if suffix else " at the price nu")] = by(
        le(X, sp.expand(price * L**2 * loose)), f"C.2-sharp{suffix}"
    )


s = Chain(SETTING, EACH, (LOCAL_PROOF,))
shared_steps(s)
descent_direction_steps(s)
ascent_direction_steps(s)
block_steps(s, IN_X)
block_steps(s, IN_SNAPSHOT)
s["67-r", "gradients in x are bounded, in the weights of the drift"] = BoundedGradient("Gx", "r"), LIPSCHITZ
for suffix, price, _ in PRICES:
    cap_steps(s, suffix, price)
    drift_steps(s, suffix, price)
ENDS = {"printed": "C.2-printed", "repaired": "C.2", "sharp": "C.2-sharp"}
SNAPSHOT_PROOF = s.proof(f"{PAPER}/lemma-c.2", LEMMA_C_2, ENDS, X, TO_OWN)
