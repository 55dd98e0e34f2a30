"""The proof of Das et al. (2022): what it shows, what it needs, and that errors planted in it are noticed."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.papers.tdcd.proof.rules import SummedGrowth
from fedbounds.bounds.theory.registry import paper


def test_only_what_a_run_can_know_beforehand_needs_the_objective_to_be_bounded_below():
    (theorem,) = (r for r in paper("tdcd").results if r.key == "tdcd/theorem-1")
    needed = {f.name for f in theorem.forms if any(a.name == "bounded-below" for a in f.assumptions)}
    assert needed == {"printed", "repaired:B0inf"}


def test_nothing_that_the_proof_says_may_hide_an_error_but_how_far_a_round_goes():
    """Cauchy-Schwarz over the steps so far, which no quadratic attains; one form alone uses it."""
    assert not [k for k, entry in read_ledger("tdcd").items() if "vacuous" in str(entry)]
    found = ClaimSet.of("tdcd")
    for form, hidden in (("sharp:B3", 0), ("sharp:Bind", 0), ("repaired:B0inf", 0), ("repaired:all-iterations", 1)):
        said = found.verdict(f"tdcd/theorem-1[{form}]").may_hide
        assert len(said) == hidden and all("26a" in word for word in said)


# --- Rules ----------------------------------------------------------------------------------------------------------

MOVES = ProofSetting.of(
    "", Atom("g0", "gradient", 0, "", still=True), Atom("gp", "gradient", 0, ""), Atom("gn", "gradient", 0, "")
)
g0, gp, gn = (Vec.atom(name) for name in ("g0", "gp", "gn"))
NOW, AFTER, FIRST = square(gp - g0), square(gn - g0), square(g0)
TOTAL, n = sp.Symbol("[total]", nonnegative=True), sp.Symbol("n", positive=True, integer=True)
x, rho = sp.Symbol("x", positive=True), sp.Symbol("rho", positive=True)
START = Relation(NOW, sp.S.Zero, "==")


def test_growth_is_summed_from_its_recursion_alone():
    rule = SummedGrowth(NOW, AFTER, rho, x, FIRST, n, TOTAL)
    recursion = Relation(AFTER, rule.recursion())
    said = rule.relation(MOVES, [START, recursion])
    assert rule.check(said, [START, recursion], [], MOVES).holds
    assert not rule.check(replace(said, right=said.right * sp.Rational(9, 10)), [START, recursion], [], MOVES).holds
    assert not rule.check(said, [START, Relation(AFTER, 2 * rule.recursion())], [], MOVES).holds
    assert not rule.check(said, [recursion, START], [], MOVES).holds
    moving = SummedGrowth(NOW, AFTER, rho, x, square(gn), n, TOTAL)
    changed = Relation(AFTER, moving.recursion())
    assert not moving.check(moving.relation(MOVES, []), [START, changed], [], MOVES).holds
