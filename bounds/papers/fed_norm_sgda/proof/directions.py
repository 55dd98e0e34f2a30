"""Lemmas B.2, B.7 and B.8 and eqs. (36), (37): how large the server's two directions are."""

from dataclasses import dataclass

import sympy as sp
from sympy import Integer

from fedbounds.bounds.audit.axioms import Jensen
from fedbounds.bounds.audit.chain import Chain, by, eq, le
from fedbounds.bounds.audit.participation_rules import step_mean
from fedbounds.bounds.audit.proof_step_checker import Proof
from fedbounds.bounds.audit.rules import Gram, Unfolded
from fedbounds.bounds.audit.vectors import Vec, inner, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, HETEROGENEITY, JOINTLY_SMOOTH, SAMPLING
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE, SAMPLED, SIMPLEX
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_2, LEMMA_B_7, LEMMA_B_8
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import axioms
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE
from fedbounds.bounds.theory.result import Result

A_DRIFT, CONSTANTS, DELTA, DESCENT_SETTING, PAPER = of.A_DRIFT, of.CONSTANTS, of.DELTA, of.DESCENT_SETTING, of.PAPER
S_1, S_2, W_DRIFT, G, H, K, L, N, Q, W, X = of.S_1, of.S_2, of.W_DRIFT, of.G, of.H, of.K, of.L, of.N, of.Q, of.W, of.X
Z, betaG, betaL, c, closed, d, kappa = of.Z, of.betaG, of.betaL, of.c, of.closed, of.d, of.kappa
local_distance, nu, r, sigmaG, sigmaL = of.local_distance, of.nu, of.r, of.sigmaG, of.sigmaL

ONE_PRICE = Integer(1)
PRICES = (("", nu, " at the price nu"), ("-printed", ONE_PRICE, " as printed"))
EACH = "for every round t"
NOISY = (BLOCK_NOISE, MARTINGALE, SAMPLING)


@dataclass(frozen=True)
class Block:
    """The vectors of one block, and how its gradient at the round's start is bounded."""

    name: str  # "x" or "y"
    at_start: str  # the step that bounds the squared gradient of F~ there
    bound: sp.Expr  # that bound

    def __getattr__(self, symbol: str) -> Vec:
        """`block.h` is the vector `hx` or `hy`."""
        if symbol not in ("g", "F", "G", "h", "H", "s", "n", "xi", "z"):
            raise AttributeError(symbol)
        return Vec.atom(f"{symbol}{self.name}")


IN_X = Block("x", f"{AWAY_PROOF.id}/B6", 2 * G + 4 * kappa * L * DELTA)
IN_Y = Block("y", f"{AWAY_PROOF.id}/B6y", 2 * L * DELTA)


def shared_steps(s: Chain) -> None:
    """What both blocks use."""
    both = square(IN_X.G - IN_X.g) + square(IN_Y.G - IN_Y.g)
    s["D1a", "smoothness between the local models and the round's start"] = by(
        le(both, local_distance()), axioms.smooth("Gx Gy", "gx gy"), JOINTLY_SMOOTH
    )
    s["D1", "in both blocks together at most X_t"] = le(both, X), Unfolded, "D1a"
    for b in (IN_X, IN_Y):
        s[f"D1{b.name}", f"in {b.name} alone"] = le(square(b.G - b.g), X), {"D1": 1}
        start_steps(s, b)


def start_steps(s: Chain, b: Block) -> None:
    """Means over the local steps and over the clients, and Assumption 3, at the round's start."""
    x = b.name
    s[f"D2{x}", "Jensen over the local steps"] = step_mean(b.G - b.g)
    s[f"D3{x}", "Jensen over the clients"] = Jensen(b.h - b.g, given=axioms.AS_A_MEAN, axiom="", needs=()), SIMPLEX
    s[f"D4{x}", "the mean exact direction is within the drift of the gradient"] = by(
        le(square(b.H - b.F), X), f"D3{x} D2{x} D1{x}"
    )
    s[f"A3{x}", "Assumption 3 at the round's start (x_t, y_t)"] = by(
        le(square(b.g), betaG**2 * square(b.F) + sigmaG**2), HETEROGENEITY
    )


def sample_steps(s: Chain, b: Block) -> None:
    """The sum over the sample: exact parts, noise, and their product."""
    x, direction = b.name, square(b.s + b.n)
    exact = sp.expand(c * square(b.H) + r * d * square(axioms.scaled("w", b.h)))
    noise = sp.expand(r * (Z * sigmaL**2 + betaL**2 * square(axioms.scaled("a", b.G))))
    s[f"20{x}", "(20): the exact parts of a sample without replacement"] = by(
        axioms.SampleSquare(f"s{x}"), SIMPLEX, SAMPLING
    )
    s[f"N0{x}", "the noise of one local step at the local model, Assumption 2 in this block"] = by(
        le(square(b.xi), sigmaL**2 + betaL**2 * square(b.G)), BLOCK_NOISE
    )
    s[f"N1{x}", "the noise of all local steps, clients weighed by w_i^2"] = by(
        axioms.noise_of_steps(b.z, b.xi, b.G), f"N0{x}", BLOCK_NOISE, MARTINGALE
    )
    s[f"N2{x}", "the noise of the sample"] = axioms.NoiseOfSample(f"n{x}"), *NOISY, INDEPENDENT_CLIENTS
    s[f"N3{x}", "the two together"] = le(square(b.n), noise), f"N2{x} N1{x}"
    s[f"M1{x}", "noise and exact gradients mix, unless every client takes one step"] = by(
        axioms.MixingPrice(f"s{x}", f"n{x}"), *NOISY
    )
    s[f"19{x}", "(19) at the price nu"] = by(
        le(direction, sp.expand(nu * (exact + noise))), {f"M1{x}": 2, f"20{x}": nu, f"N3{x}": nu}
    )
    s[f"M1{x}-printed", "(19) as printed: the product of noise and exact directions vanishes"] = by(
        eq(inner(b.n, b.s), 0), axioms.given_start(b.n, b.s), *NOISY
    )
    s[f"19{x}-printed", "(19) as printed"] = le(direction, exact + noise), f"M1{x}-printed 20{x} N3{x}"


def gradient_steps(s: Chain, b: Block) -> None:
    """The exact gradients at the local models by those at the round's start, in both weighings."""
    x = b.name
    for prefix, equation in (("w", "(21)"), ("a", "Lemma B.7" if x == "x" else "Lemma B.8")):
        vector, start = (b.h, b.g) if prefix == "w" else (b.G, b.g)
        u, v = axioms.scaled(prefix, vector), axioms.scaled(prefix, start)
        s[f"{prefix}1{x}", f"{equation}: two parts"] = le(square(u), 2 * square(u - v) + 2 * square(v)), Gram()
        s[f"{prefix}2{x}", "the change since the round's start, the weights at their largest"] = by(
            axioms.Scaled(prefix, vector - start)
        )
        s[f"{prefix}3{x}", "the start, the weights in the mean over the steps"] = axioms.Scaled(
            prefix, start, still=True
        )
    s[f"21{x}", "(21)"] = by(
        le(square(axioms.scaled("w", b.h)), 2 * W * X + 2 * W * square(b.g)), f"w1{x} w2{x} w3{x} D2{x} D1{x}"
    )
    s[f"a4{x}", "the squares that the noise grows with"] = by(
        le(square(axioms.scaled("a", b.G)), 2 * K * X + 2 * Q * square(b.g)), f"a1{x} a2{x} a3{x} D1{x}"
    )


def end_steps(s: Chain, b: Block) -> None:
    """(36) and (37)."""
    x, equation, direction = b.name, "(36)" if b.name == "x" else "(37)", square(b.s + b.n)
    first = 2 * r * (d * W + betaL**2 * Q)
    lettered = c * square(b.H) + N + 2 * r * S_2 * X + 2 * r * S_1 * betaG**2 * b.bound
    factors = {f"21{x}": r * d, f"a4{x}": r * betaL**2, f"A3{x}": first, b.at_start: first * betaG**2}
    for suffix, price, says in PRICES:
        s[f"{equation}{suffix}", f"{equation}{says}"] = by(
            le(direction, sp.expand(price * lettered)),
            Unfolded,
            {f"19{x}{suffix}": 1, **{step: price * factor for step, factor in factors.items()}},
            SAMPLED,
        )


def lemma_b_2_steps(s: Chain) -> None:
    """Lemma B.2 itself, whose drift is weighed by w_i^2 and whose noise is not bounded further."""
    b = IN_X
    s["B2a", "Jensen over the local steps, clients weighed by w_i^2"] = step_mean(axioms.scaled("w", b.G - b.g))
    distance_steps(s, "w", W_DRIFT)
    exact = 2 * W_DRIFT + 2 * W * (betaG**2 * square(b.F) + sigmaG**2)
    s["B2b", "the exact parts"] = by(
        le(square(axioms.scaled("w", b.h)), sp.expand(exact)),
        {"w1x": 1, "B2a": 2, "w-drift": 2, "w3x": 2, "A3x": 2 * W},
    )
    bound = c * square(b.H) + r * (Z * sigmaL**2 + betaL**2 * square(axioms.scaled("a", b.G))) + r * d * exact
    for suffix, price, says in PRICES:
        s[f"14{suffix}", f"Lemma B.2, (14){says}"] = le(square(b.s + b.n), sp.expand(price * bound)), f"19x{suffix} B2b"


def distance_steps(s: Chain, prefix: str, symbol: sp.Symbol) -> None:
    """Smoothness between the local models and the round's start, in other weights."""
    both = sp.Add(*(square(axioms.scaled(prefix, b.G - b.g)) for b in (IN_X, IN_Y)))
    local, start = (f"{prefix}:{g}x {prefix}:{g}y" for g in "Gg")
    s[f"{prefix}-drifta", "smoothness, in these weights"] = by(
        le(both, local_distance(f"{prefix}:")), axioms.smooth(local, start), JOINTLY_SMOOTH
    )
    s[f"{prefix}-drift", "abbreviated"] = le(both, symbol), Unfolded, f"{prefix}-drifta"


TO_SYMBOLS = {
    **closed(CONSTANTS),
    G: n.gradsq,
    DELTA: n.gap,
    X: n.drift,
    W_DRIFT: n.sampledrift,
    A_DRIFT: n.noisydrift,
    H: n.direction,
    square(IN_X.F): n.gradxsq,
    square(axioms.scaled("a", IN_X.G)): n.noisysq,
}


def directions_proof() -> Proof:
    """Both directions, and Lemma B.2."""
    s = Chain(DESCENT_SETTING, EACH, (AWAY_PROOF,))
    shared_steps(s)
    for b in (IN_X, IN_Y):
        sample_steps(s, b)
        gradient_steps(s, b)
        end_steps(s, b)
    lemma_b_2_steps(s)
    ends = {"printed": "14-printed", "repaired": "14"}
    return s.proof(f"{PAPER}/lemma-b.2", LEMMA_B_2, ends, square(IN_X.s + IN_X.n), TO_SYMBOLS)


DIRECTIONS_PROOF = directions_proof()


def noisy_step(s: Chain, b: Block, lemma: Result, drift: str) -> str:
    """Lemma B.7 or B.8, with the drift in the noise's weights from the step `drift`; returns its own id."""
    x, home, name = b.name, DIRECTIONS_PROOF.id, lemma.source.number
    bound = 2 * A_DRIFT + 2 * Q * (sigmaG**2 + betaG**2 * b.bound)
    s[name, name] = by(
        le(square(axioms.scaled("a", b.G)), sp.expand(bound)),
        {f"{home}/a1{x}": 1, drift: 2, f"{home}/a3{x}": 2, f"{home}/A3{x}": 2 * Q, b.at_start: 2 * Q * betaG**2},
    )
    return name


def noisy_proofs() -> tuple[Proof, Proof]:
    """Lemma B.7; and B.8, also with the kappa that Appendix B.5 adds to it."""
    s = Chain(DESCENT_SETTING, EACH, (AWAY_PROOF, DIRECTIONS_PROOF))
    distance_steps(s, "a", A_DRIFT)
    ends = {"printed": noisy_step(s, IN_X, LEMMA_B_7, "a-drift")}
    in_x = s.proof(LEMMA_B_7.key, LEMMA_B_7, ends, square(axioms.scaled("a", IN_X.G)), TO_SYMBOLS)
    s = Chain(DESCENT_SETTING, EACH, (AWAY_PROOF, DIRECTIONS_PROOF, in_x))
    end = noisy_step(s, IN_Y, LEMMA_B_8, f"{in_x.id}/a-drift")
    conclusion, more = s.steps[-1].conclusion, 4 * Q * betaG**2 * L * (kappa - 1) * DELTA
    s[f"{end}-pl", "kappa is at least 1"] = le(conclusion.left, sp.expand(conclusion.right + more)), end, CURVATURE
    ends = {"printed": end, "printed:pl": f"{end}-pl"}
    return in_x, s.proof(LEMMA_B_8.key, LEMMA_B_8, ends, square(axioms.scaled("a", IN_Y.G)), TO_SYMBOLS)


NOISY_PROOFS = noisy_proofs()
