# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemmas B.2, B.7 and B.8 and eqs. (36), (37): how large the server's two directions are.

A direction is $s+\zeta$, sums over the sample of exact and of noisy parts. (19) takes their product for 0; at the price
$\nu$ it need not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import sympy as sp
from sympy import Integer

from bounds.assumptions import INDEPENDENT_CLIENTS, MARTINGALE
from bounds.audit.axioms import Assumed
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import StepMean
from bounds.audit.rules import Abbreviated, Combine, Gram, Stated
from bounds.audit.steps import Proof, Step
from bounds.audit.vectors import Vec, inner, square
from bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, HETEROGENEITY, JOINTLY_SMOOTH, SAMPLING
from bounds.papers.fed_norm_sgda.composites import CURVATURE, SAMPLED, SIMPLEX
from bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_2, LEMMA_B_7, LEMMA_B_8
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import (
    ON_THE_SIMPLEX,
    BlockSmooth,
    MixingPrice,
    NoiseGivenStart,
    NoiseOfSample,
    NoiseOverSteps,
    SampleSquare,
    Scaled,
    WeightedMean,
    scaled,
)
from bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF
from bounds.papers.fed_norm_sgda.proof.letters import (
    A_DRIFT,
    CONSTANTS,
    DELTA,
    DESCENT_SETTING,
    PAPER,
    S_1,
    S_2,
    W_DRIFT,
    G,
    H,
    K,
    L,
    N,
    Q,
    W,
    X,
    Z,
    betaG,
    betaL,
    c,
    closed,
    d,
    kappa,
    local_distance,
    nu,
    r,
    sigmaG,
    sigmaL,
)
from bounds.result import Result

ONE_PRICE = Integer(1)
EACH = "for every round t"
NOISY = (BLOCK_NOISE, MARTINGALE, SAMPLING)


@dataclass(frozen=True)
class Block:
    """The vectors of one block, and how its gradient at the round's start is bounded.

    Args:
        name: "x" or "y".
        at_start: the step that bounds the squared gradient of F~ there.
        bound: that bound.
    """

    name: str
    at_start: str
    bound: sp.Expr

    def __getattr__(self, letter: str) -> Vec:
        """`block.h` is the vector `hx` or `hy`."""
        if letter not in ("g", "F", "G", "h", "H", "s", "n", "xi", "z"):
            raise AttributeError(letter)
        return Vec.atom(f"{letter}{self.name}")


IN_X = Block("x", f"{AWAY_PROOF.id}/B6", 2 * G + 4 * kappa * L * DELTA)
IN_Y = Block("y", f"{AWAY_PROOF.id}/B6y", 2 * L * DELTA)


def shared_steps() -> Iterator[Step]:
    """What both blocks use."""
    yield Step("S0", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,))
    both = square(IN_X.G - IN_X.g) + square(IN_Y.G - IN_Y.g)
    yield Step(
        "D1a",
        "smoothness between the local models and the round's start",
        Relation(both, local_distance()),
        BlockSmooth((("Gx", "gx"), ("Gy", "gy"))),
        (JOINTLY_SMOOTH,),
        EACH,
    )
    yield Step("D1", "in both blocks together at most X_t", Relation(both, X), Abbreviated(), ("D1a",), EACH)
    for b in (IN_X, IN_Y):
        yield Step(f"D1{b.name}", f"in {b.name} alone", Relation(square(b.G - b.g), X), Combine((1,)), ("D1",), EACH)
        yield from start_steps(b)


def start_steps(b: Block) -> Iterator[Step]:
    """Means over the local steps and over the clients, and Assumption 3, at the round's start."""
    yield Step(
        f"D2{b.name}",
        "Jensen over the local steps",
        Relation(square(b.h - b.g), square(b.G - b.g)),
        StepMean(b.G - b.g),
        (),
        EACH,
    )
    yield Step(
        f"D3{b.name}",
        "Jensen over the clients",
        Relation(square(b.H - b.F), square(b.h - b.g)),
        WeightedMean(b.h - b.g),
        ("S0",),
        EACH,
    )
    yield Step(
        f"D4{b.name}",
        "the mean exact direction is within the drift of the gradient",
        Relation(square(b.H - b.F), X),
        Combine((1, 1, 1)),
        (f"D3{b.name}", f"D2{b.name}", f"D1{b.name}"),
        EACH,
    )
    yield Step(
        f"A3{b.name}",
        "Assumption 3 at the round's start",
        Relation(square(b.g), betaG**2 * square(b.F) + sigmaG**2),
        Assumed(square(b.g), betaG**2 * square(b.F) + sigmaG**2, (HETEROGENEITY.name,), "at (x_t, y_t)"),
        (HETEROGENEITY,),
        EACH,
    )


def sample_steps(b: Block) -> Iterator[Step]:
    """The sum over the sample: exact parts, noise, and their product."""
    x = b.name
    exact = sp.expand(c * square(b.H) + r * d * square(scaled("w", b.h)))
    noise = sp.expand(r * (Z * sigmaL**2 + betaL**2 * square(scaled("a", b.G))))
    yield Step(
        f"20{x}",
        "(20): the exact parts of a sample without replacement",
        Relation(square(b.s), exact, "=="),
        SampleSquare(f"s{x}"),
        ("S0", SAMPLING),
        EACH,
    )
    yield Step(
        f"N0{x}",
        "the noise of one local step, Assumption 2 in this block",
        Relation(square(b.xi), sigmaL**2 + betaL**2 * square(b.G)),
        Assumed(square(b.xi), sigmaL**2 + betaL**2 * square(b.G), (BLOCK_NOISE.name,), "at the local model"),
        (BLOCK_NOISE,),
        EACH,
    )
    yield Step(
        f"N1{x}",
        "the noise of all local steps, clients weighed by w_i^2",
        Relation(square(scaled("w", b.z)), Z * sigmaL**2 + betaL**2 * square(scaled("a", b.G))),
        NoiseOverSteps(f"z{x}", f"G{x}"),
        (f"N0{x}", BLOCK_NOISE, MARTINGALE),
        EACH,
    )
    yield Step(
        f"N2{x}",
        "the noise of the sample",
        Relation(square(b.n), r * square(scaled("w", b.z)), "=="),
        NoiseOfSample(f"n{x}"),
        (*NOISY, INDEPENDENT_CLIENTS),
        EACH,
    )
    yield Step(f"N3{x}", "the two together", Relation(square(b.n), noise), Combine((1, r)), (f"N2{x}", f"N1{x}"), EACH)
    yield Step(
        f"M1{x}",
        "noise and exact gradients mix, unless every client takes one step",
        Relation((2 - nu) * inner(b.s, b.n), Integer(0), "=="),
        MixingPrice(f"s{x}", f"n{x}"),
        NOISY,
        EACH,
    )
    yield Step(
        f"19{x}",
        "(19) at the price nu",
        Relation(square(b.s + b.n), sp.expand(nu * (exact + noise))),
        Combine((2, nu, nu)),
        (f"M1{x}", f"20{x}", f"N3{x}"),
        EACH,
    )
    yield Step(
        f"M1{x}-printed",
        "(19) as printed: the product of noise and exact directions vanishes",
        Relation(inner(b.n, b.s), Integer(0), "=="),
        NoiseGivenStart(b.n, b.s),
        NOISY,
        EACH,
    )
    yield Step(
        f"19{x}-printed",
        "(19) as printed",
        Relation(square(b.s + b.n), exact + noise),
        Combine((2, 1, 1)),
        (f"M1{x}-printed", f"20{x}", f"N3{x}"),
        EACH,
    )


def gradient_steps(b: Block) -> Iterator[Step]:
    """The exact gradients at the local models by those at the round's start, in both weighings."""
    x = b.name
    for prefix, equation in (("w", "(21)"), ("a", "Lemma B.7" if x == "x" else "Lemma B.8")):
        vector, start = (b.h, b.g) if prefix == "w" else (b.G, b.g)
        u, v = scaled(prefix, vector), scaled(prefix, start)
        yield Step(
            f"{prefix}1{x}",
            f"{equation}: two parts",
            Relation(square(u), 2 * square(u - v) + 2 * square(v)),
            Gram(),
            (),
            EACH,
        )
        largest, mean = (W, W) if prefix == "w" else (K, Q)
        yield Step(
            f"{prefix}2{x}",
            "the change since the round's start, the weights at their largest",
            Relation(square(u - v), largest * square(vector - start)),
            Scaled(prefix, vector - start),
            (),
            EACH,
        )
        yield Step(
            f"{prefix}3{x}",
            "the start, the weights in the mean over the steps",
            Relation(square(v), mean * square(start)),
            Scaled(prefix, start, still=True),
            (),
            EACH,
        )
    drift = (f"D2{x}", f"D1{x}")
    yield Step(
        f"21{x}",
        "(21)",
        Relation(square(scaled("w", b.h)), 2 * W * X + 2 * W * square(b.g)),
        Combine((1, 2, 2, 2 * W, 2 * W)),
        (f"w1{x}", f"w2{x}", f"w3{x}", *drift),
        EACH,
    )
    yield Step(
        f"a4{x}",
        "the squares that the noise grows with",
        Relation(square(scaled("a", b.G)), 2 * K * X + 2 * Q * square(b.g)),
        Combine((1, 2, 2, 2 * K)),
        (f"a1{x}", f"a2{x}", f"a3{x}", f"D1{x}"),
        EACH,
    )


def total(b: Block) -> sp.Expr:
    """The right-hand side of (36), (37), without price."""
    return sp.expand(c * square(b.H) + N + 2 * r * S_2 * X + 2 * r * S_1 * betaG**2 * b.bound)


def end_steps(b: Block) -> Iterator[Step]:
    """(36) and (37)."""
    x, equation = b.name, "(36)" if b.name == "x" else "(37)"
    spelled = sp.expand(
        c * square(b.H)
        + r * Z * sigmaL**2
        + 2 * r * (d * W + betaL**2 * K) * X
        + 2 * r * (d * W + betaL**2 * Q) * (betaG**2 * b.bound + sigmaG**2)
    )
    multipliers = (r * d, r * betaL**2, 2 * r * (d * W + betaL**2 * Q), 2 * r * (d * W + betaL**2 * Q) * betaG**2)
    premises = (f"21{x}", f"a4{x}", f"A3{x}", b.at_start)
    for suffix, price in (("", nu), ("-printed", ONE_PRICE)):
        yield Step(
            f"{equation}-spelled{suffix}",
            f"{equation} in the weights W, Q and K",
            Relation(square(b.s + b.n), sp.expand(price * spelled)),
            Combine((1, *(price * m for m in multipliers))),
            (f"19{x}{suffix}", *premises),
            EACH,
        )
        yield Step(
            f"{equation}{suffix}",
            f"{equation}" + (" as printed" if suffix else " at the price nu"),
            Relation(square(b.s + b.n), sp.expand(price * total(b))),
            Abbreviated(),
            (f"{equation}-spelled{suffix}", SAMPLED),
            EACH,
        )


def lemma_b_2_steps() -> Iterator[Step]:
    """Lemma B.2 itself, whose drift is weighed by w_i^2 and whose noise is not bounded further."""
    b = IN_X
    yield Step(
        "B2a",
        "Jensen over the local steps, clients weighed by w_i^2",
        Relation(square(scaled("w", b.h - b.g)), square(scaled("w", b.G - b.g))),
        StepMean(scaled("w", b.G - b.g)),
        (),
        EACH,
    )
    yield from distance_steps("w", W_DRIFT)
    exact = 2 * W_DRIFT + 2 * W * (betaG**2 * square(b.F) + sigmaG**2)
    yield Step(
        "B2b",
        "the exact parts",
        Relation(square(scaled("w", b.h)), sp.expand(exact)),
        Combine((1, 2, 2, 2, 2 * W)),
        ("w1x", "B2a", "w-drift", "w3x", "A3x"),
        EACH,
    )
    bound = c * square(b.H) + r * (Z * sigmaL**2 + betaL**2 * square(scaled("a", b.G))) + r * d * exact
    for suffix, price in (("", nu), ("-printed", ONE_PRICE)):
        yield Step(
            f"14{suffix}",
            "Lemma B.2, (14)" + (" as printed" if suffix else " at the price nu"),
            Relation(square(b.s + b.n), sp.expand(price * bound)),
            Combine((1, price * r * d)),
            (f"19x{suffix}", "B2b"),
            EACH,
        )


def distance_steps(prefix: str, letter: sp.Symbol) -> Iterator[Step]:
    """Smoothness between the local models and the round's start, in other weights."""
    both = sum(square(scaled(prefix, b.G - b.g)) for b in (IN_X, IN_Y))
    pairs = tuple((f"{prefix}:G{b}", f"{prefix}:g{b}") for b in "xy")
    name = f"{prefix}-drift"
    yield Step(
        f"{name}a",
        "smoothness, in these weights",
        Relation(both, local_distance(f"{prefix}:")),
        BlockSmooth(pairs),
        (JOINTLY_SMOOTH,),
        EACH,
    )
    yield Step(name, "abbreviated", Relation(both, letter), Abbreviated(), (f"{name}a",), EACH)


STEPS = (
    *shared_steps(),
    *(step for b in (IN_X, IN_Y) for part in (sample_steps, gradient_steps, end_steps) for step in part(b)),
    *lemma_b_2_steps(),
)
TO_LETTERS = {
    **closed(CONSTANTS),
    G: n.gradsq,
    DELTA: n.gap,
    X: n.drift,
    W_DRIFT: n.sampledrift,
    A_DRIFT: n.noisydrift,
    H: n.direction,
    square(IN_X.F): n.gradxsq,
    square(scaled("a", IN_X.G)): n.noisysq,
}
ENDS = {"printed": "14-printed", "repaired": "14"}
DIRECTIONS_PROOF = Proof(
    f"{PAPER}/lemma-b.2", DESCENT_SETTING, STEPS, LEMMA_B_2, ENDS, square(IN_X.s + IN_X.n), TO_LETTERS
)


def noisy_proof(b: Block, lemma: Result, drift: str) -> Proof:
    """Lemma B.7 or B.8, with the drift in the noise's weights from the step `drift`, or from its own."""
    x, home = b.name, DIRECTIONS_PROOF.id
    bound = 2 * A_DRIFT + 2 * Q * (sigmaG**2 + betaG**2 * b.bound)
    end = Step(
        lemma.source.number,
        lemma.source.number,
        Relation(square(scaled("a", b.G)), sp.expand(bound)),
        Combine((1, 2, 2, 2 * Q, 2 * Q * betaG**2)),
        (f"{home}/a1{x}", drift or "a-drift", f"{home}/a3{x}", f"{home}/A3{x}", b.at_start),
        EACH,
    )
    steps = (*(() if drift else distance_steps("a", A_DRIFT)), end)
    left = square(scaled("a", b.G))
    return Proof(lemma.key, DESCENT_SETTING, steps, lemma, {"printed": end.id}, left, TO_LETTERS)


NOISY_X = noisy_proof(IN_X, LEMMA_B_7, "")
NOISY_Y = noisy_proof(IN_Y, LEMMA_B_8, f"{NOISY_X.id}/a-drift")


def under_pl(proof: Proof) -> Proof:
    """Lemma B.8 with the kappa that Appendix B.5 adds to it."""
    end = proof.steps[-1]
    more = 4 * Q * betaG**2 * L * (kappa - 1) * DELTA
    worse = Step(
        f"{end.id}-pl",
        "kappa is at least 1",
        Relation(end.conclusion.left, sp.expand(end.conclusion.right + more)),
        Combine((1,)),
        (end.id, CURVATURE),
        EACH,
    )
    return replace(proof, steps=(*proof.steps, worse), ends={**proof.ends, "printed:pl": worse.id})


NOISY_PROOFS = (NOISY_X, under_pl(NOISY_Y))
