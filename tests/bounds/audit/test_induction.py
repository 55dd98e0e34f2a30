"""A bound that a recursion carries on, from its first place."""

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.induction import ByRecursion
from fedbounds.bounds.audit.proof_step_checker import ProofSetting

x, v, now = sp.Symbol("x", positive=True), sp.Symbol("v", positive=True), sp.Symbol("[now]", nonnegative=True)
after = sp.Symbol("[after]", nonnegative=True)
RULE = ByRecursion(now, after, x, (sp.Integer(4), v / 4))


def found(factor, rest, bound, *facts):
    recursion = Relation(after, factor * now + rest)
    return RULE.check(Relation(now, bound), [recursion, *facts], [], ProofSetting("", {})).holds


def test_a_recursion_carries_a_bound_on_only_if_it_does():
    start = Relation(sp.Integer(4), x)
    assert found(1 - 2 / x, v / x**2, v / x, start)
    assert not found(1 - 2 / x, v / x**2, v / x)  # from nowhere on
    assert not found(1 - 2 / x, 2 * v / x**2, v / x, start)
    assert not found(1 - sp.Rational(1, 2) / x, v / x**2, v / x, start)
    assert not found(1 - 2 / x, v / x**2, v / (2 * x), start)
    assert not found(-sp.S.One, sp.S.Zero, v / x, start)
    assert not found(1 - 2 / x, sp.Symbol("<w,w>", nonnegative=True) / x**2, v / x, start)
