"""Sequences that start at zero are summed by their recursion, and by nothing that is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.tdcd.proof.rules import Compound, SummedRecursion

MOVES = ProofSetting.of(
    "", Atom("g0", "gradient", 0, "", still=True), Atom("gp", "gradient", 0, ""), Atom("gn", "gradient", 0, "")
)
g0, gp, gn = (Vec.atom(name) for name in ("g0", "gp", "gn"))
NOW, AFTER, FIRST = square(gp - g0), square(gn - g0), square(g0)
TOTAL, n = sp.Symbol("[total]", nonnegative=True), sp.Symbol("n", positive=True, integer=True)
x = sp.Symbol("x", positive=True)
START = Relation(NOW, sp.S.Zero, "==")


def test_a_recursion_is_summed_as_it_is_unrolled():
    """u_s = b (2^s - 1) for m = 2: summed over three steps 0 + 1 + 3."""
    rule = SummedRecursion(NOW, AFTER, n, TOTAL)
    recursion = Relation(AFTER, 2 * NOW + x * FIRST)
    said = rule.relation(MOVES, [START, recursion])
    assert said.right.subs({n: 3}) == 4 * x * FIRST
    assert rule.check(said, [START, recursion], [], MOVES).holds
    for wrong in (replace(said, right=said.right * sp.Rational(9, 10)), replace(said, left=sp.Symbol("[other]"))):
        assert not rule.check(wrong, [START, recursion], [], MOVES).holds


@pytest.mark.parametrize(
    "premises",
    [
        [Relation(AFTER, 2 * NOW + x * FIRST)],
        [Relation(NOW, sp.S.One, "=="), Relation(AFTER, 2 * NOW + x * FIRST)],
        [START, Relation(NOW, 2 * NOW + x * FIRST)],
        [START, Relation(AFTER, NOW / 2 + x * FIRST)],
        [START, Relation(AFTER, 2 * NOW - x * FIRST)],
        [START, Relation(AFTER, 2 * NOW + x * square(gn))],
    ],
)
def test_a_recursion_that_does_not_start_at_zero_or_does_not_grow_is_not_summed(premises):
    rule = SummedRecursion(NOW, AFTER, n, TOTAL)
    said = rule.relation(MOVES, [START, Relation(AFTER, 2 * NOW + x * FIRST)])
    assert not rule.check(said, premises, [], MOVES).holds


def test_what_compounds_stays_below_the_exponential():
    e_squared = sp.Rational(739, 100)
    for constant, holds in ((e_squared, True), (sp.Rational(738, 100), False)):
        rule = Compound(sp.Integer(2), n, constant)
        assert rule.check(rule.relation(MOVES, []), [], [], MOVES).holds == holds
    rule = Compound(sp.Integer(2), n, sp.Integer(11))
    assert not rule.check(Relation((1 + 3 / n) ** n, sp.Integer(11)), [], [], MOVES).holds
    assert (
        not Compound(-sp.Integer(2), n, sp.Integer(11))
        .check(Compound(-sp.Integer(2), n, sp.Integer(11)).relation(MOVES, []), [], [], MOVES)
        .holds
    )
