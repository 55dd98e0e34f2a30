# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemma B.3 and eq. (41): one round of descent of the envelope, and what the caps on the steps make of it."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp
from sympy import Integer, Rational, Symbol

from bounds.assumptions import MARTINGALE
from bounds.audit.claim import Relation
from bounds.audit.rules import Abbreviated, Combine, Gram, Stated
from bounds.audit.steps import Proof, Step, condition_fact
from bounds.audit.vectors import Vec, inner, square
from bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, JOINTLY_SMOOTH, SAMPLING
from bounds.papers.fed_norm_sgda.composites import SAMPLED, SIMPLEX
from bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_3
from bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, NoiseGivenStart, SampleMean, SmoothRise
from bounds.papers.fed_norm_sgda.proof.directions import DIRECTIONS_PROOF, EACH, IN_X, TO_LETTERS
from bounds.papers.fed_norm_sgda.proof.envelope import AWAY_PROOF, ENVELOPE_PROOF
from bounds.papers.fed_norm_sgda.proof.letters import (
    DELTA,
    DESCENT_SETTING,
    PAPER,
    S_1,
    S_2,
    G,
    Gammax,
    H,
    K,
    L,
    M,
    N,
    Q,
    W,
    X,
    betaG,
    betaL,
    c,
    d,
    kappa,
    nu,
    r,
)

ROUND = DIRECTIONS_PROOF.id
Phi = Vec.atom("Phi")
DIRECTION = IN_X.s + IN_X.n
MOVE = -Gammax * DIRECTION  # x_{t+1} - x_t
DECREASE = Symbol("[Phi~(x_t) - Phi~(x_{t+1})]", real=True)
HALF = Rational(1, 2)


def before_the_caps() -> Iterator[Step]:
    """(23) and (24): what needs no cap on the steps."""
    yield Step("S0", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,))
    spelled = (1 + kappa) * L
    yield Step(
        "P1-spelled",
        "(23): descent lemma for the envelope",
        Relation(-DECREASE, sp.expand(inner(Phi, MOVE) + spelled / 2 * square(MOVE))),
        SmoothRise("Phi", MOVE, DECREASE, spelled, "Phi~"),
        ("S0", f"{ENVELOPE_PROOF.id}/B.1", JOINTLY_SMOOTH),
        EACH,
    )
    yield Step(
        "P1",
        "with L_Phi for (1 + kappa) Lf",
        Relation(-DECREASE, sp.expand(inner(Phi, MOVE) + M / 2 * square(MOVE))),
        Abbreviated(),
        ("P1-spelled",),
        EACH,
    )
    yield Step(
        "P2",
        "the sample averaged out",
        Relation(inner(IN_X.s, Phi), inner(IN_X.H, Phi), "=="),
        SampleMean("sx", Phi),
        (SAMPLING,),
        EACH,
    )
    yield Step(
        "P3",
        "the noise averaged out",
        Relation(inner(IN_X.n, Phi), Integer(0), "=="),
        NoiseGivenStart(IN_X.n, Phi),
        (BLOCK_NOISE, MARTINGALE, SAMPLING),
        EACH,
    )
    yield Step(
        "P4",
        "two parts, between the envelope and the mean exact direction",
        Relation(square(Phi - IN_X.H), 2 * square(Phi - IN_X.F) + 2 * square(IN_X.F - IN_X.H)),
        Gram(),
        (),
        EACH,
    )
    yield Step(
        "24",
        "(24): by gradient, direction, dual gap, drift and the squared direction",
        Relation(-DECREASE, sp.expand(in_x_before() + M / 2 * square(MOVE))),
        Combine((1, -Gammax, -Gammax, Gammax / 2, Gammax, Gammax)),
        ("P1", "P2", "P3", "P4", f"{AWAY_PROOF.id}/B6c", f"{ROUND}/D4x"),
        EACH,
    )


def in_x_before() -> sp.Expr:
    """The right-hand side of (24) without its last summand."""
    return -Gammax / 2 * (G + H) + Gammax / 2 * (4 * kappa * L * DELTA + 2 * X)


def lemma_steps(suffix: str, price: sp.Expr, form: str) -> Iterator[Step]:
    """Lemma B.3 under its own conditions (i), (ii), (iii)."""
    *_, first, second, third = LEMMA_B_3.form(form).conditions
    step = price * Gammax * M * r
    rows = (
        ("i", "noise in the gradient", 64 * step * betaL**2 * betaG**2 * Q, first),
        ("ii", "sampling", 8 * step * W * d * sp.Max(8 * betaG**2, 1), second),
        ("iii", "noise in the drift", 8 * step * betaL**2 * K, third),
    )
    for name, says, left, condition in rows:
        stated = condition_fact(condition)
        yield Step(f"({name}){suffix}-stated", f"({name}): {says}", stated, Stated(), (condition,))
        yield Step(
            f"({name}){suffix}",
            f"({name}) in letters",
            Relation(left, Integer(1)),
            Abbreviated(),
            (f"({name}){suffix}-stated", SAMPLED),
        )
    yield Step(
        f"(i-ii){suffix}",
        "what the noise grows with, and sampling",
        Relation(32 * step * betaG**2 * (d * W + betaL**2 * Q), Integer(1)),
        Combine((HALF, HALF)),
        (f"(i){suffix}", f"(ii){suffix}"),
    )
    yield Step(
        f"(ii-iii){suffix}",
        "what the drift is seen with",
        Relation(4 * step * (d * W + betaL**2 * K), Integer(1)),
        Combine((HALF, HALF)),
        (f"(ii){suffix}", f"(iii){suffix}"),
    )
    yield Step(
        f"S_1{suffix}",
        "the first in letters",
        Relation(32 * step * betaG**2 * S_1, Integer(1)),
        Abbreviated(),
        (f"(i-ii){suffix}", SAMPLED),
    )
    yield Step(
        f"S_2{suffix}",
        "the second in letters",
        Relation(4 * step * S_2, Integer(1)),
        Abbreviated(),
        (f"(ii-iii){suffix}", SAMPLED),
    )
    bound = (
        -Rational(7, 16) * Gammax * G
        - Gammax / 2 * (1 - price * c * Gammax * M) * H
        + Rational(5, 4) * Gammax * X
        + Rational(9, 4) * Gammax * kappa * L * DELTA
        + price * Gammax**2 * M / 2 * N
    )
    yield Step(
        f"15{suffix}",
        "Lemma B.3, (15)" + (" as in the paper's chain" if suffix else " at the price nu"),
        Relation(-DECREASE, sp.expand(bound)),
        Combine((1, Gammax**2 * M / 2, Gammax * (G + 2 * kappa * L * DELTA) / 16, Gammax * X / 4)),
        ("24", f"{ROUND}/(36){suffix}", f"S_1{suffix}", f"S_2{suffix}"),
        EACH,
    )


STEPS = (*before_the_caps(), *lemma_steps("", nu, "repaired"), *lemma_steps("-printed", Integer(1), "explicit"))
ENDS = {"explicit": "15-printed", "repaired": "15"}
DESCENT_PROOF = Proof(f"{PAPER}/lemma-b.3", DESCENT_SETTING, STEPS, LEMMA_B_3, ENDS, -DECREASE, TO_LETTERS)
