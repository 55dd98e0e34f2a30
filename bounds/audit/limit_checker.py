r"""The limit checker: special cases that must agree, and inequalities that must hold between them.

A `Limit` is about forms: after a substitution, or in a limit, two sums of terms are equal, or one is at most the other
wherever the facts hold. A `Spread` (`fedbounds.bounds.audit.spreads`) is about data.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from fedbounds.bounds.audit.canonical_text import canonical_text
from fedbounds.bounds.audit.claim import Claim, Relation, Relator
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.gauges import FOR_TWO_CLIENTS
from fedbounds.bounds.audit.nonnegative import counterexample, prove, relevant_facts, same
from fedbounds.bounds.audit.spreads import Spread, limit_claim, try_spread
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.result import Condition, Term

POINTS, DIGITS = 12, 30
PLANTED = tuple(sp.Rational(n, 100) for n in (99, 90, 50, 10, 1))

Substitution = Mapping[sp.Symbol, sp.Expr] | Mapping[sp.Expr, sp.Expr]


@dataclass(frozen=True, eq=False)
class Limit:
    """Two sums of terms that must be equal, or ordered, in a special case.

    Args:
        name: its name in the claim's id.
        text: the statement in one line.
        left, right: the terms; those of one name are compared first.
        op: "==" or "<=".
        at: what is substituted on both sides.
        tends: a symbol and what it tends to from above, on both sides and after the substitution.
        facts: under which conditions.
        axioms: what the argument trusts beyond algebra.
        source: where the special case stands.
    """

    name: str
    text: str
    left: Sequence[Term]
    right: Sequence[Term]
    op: Relator = "=="
    at: Substitution = field(default_factory=dict)
    tends: tuple[sp.Symbol, sp.Expr] | None = None
    facts: tuple[Relation | Condition, ...] = ()
    axioms: tuple[str, ...] = ()
    source: str = ""

    def claim(self, paper: str) -> Claim:
        """The claim, with everything the verdict depends on."""
        lines = [*_content(self.left), self.op, *_content(self.right)]
        lines += [f"{canonical_text(old)} -> {canonical_text(new)}" for old, new in self.at.items()]
        lines += [str(_relation(fact)) for fact in self.facts] + [str(self.tends)]
        return limit_claim(paper, self.name, self.text, self, lines, self.source)

    def sides(self) -> tuple[list[Term], list[Term]]:
        """The terms of both sides in the special case."""
        left, right = ([Term(t.name, self._special(t.expression)) for t in side] for side in (self.left, self.right))
        return left, right

    def special_facts(self) -> list[Relation]:
        """The conditions in the special case, without the factors that both sides share."""
        return [self._special_fact(_relation(fact)) for fact in self.facts]

    def _special_fact(self, fact: Relation) -> Relation:
        left, right = self._special(fact.left), self._special(fact.right)
        return Relation(left / right, sp.S.One, fact.op) if right.is_positive else Relation(left, right, fact.op)

    def _special(self, expression: sp.Expr) -> sp.Expr:
        special = expression.subs(list(self.at.items()), simultaneous=True)
        return special if self.tends is None else sp.limit(special, *self.tends, dir="+")


def equal(name: str, left: Sequence[Term], right: Sequence[Term], **special: Any) -> Limit:
    """Two sums that are equal; `special` holds the other fields of `Limit`."""
    return Limit(name, "", left, right, **special)


def at_most(name: str, left: Sequence[Term], right: Sequence[Term], **special: Any) -> Limit:
    """A sum that is at most another; `special` holds the other fields of `Limit`."""
    return Limit(name, "", left, right, "<=", **special)


def with_statements(limits: Mapping[str, Limit]) -> tuple[Limit, ...]:
    """The special cases of a table from statement to case."""
    return tuple(replace(limit, text=text) for text, limit in limits.items())


def _content(terms: Sequence[Term]) -> list[str]:
    return [f"{t.name}: {canonical_text(t.expression)}" for t in terms]


def _relation(fact: Relation | Condition) -> Relation:
    if isinstance(fact, Relation):
        return fact
    if fact.op == "==":
        return Relation(fact.left, fact.right, "==")
    return Relation(fact.left, fact.right) if fact.op in ("<=", "<") else Relation(fact.right, fact.left)


def _total(terms: Sequence[Term]) -> sp.Expr:
    return sp.Add(*(t.expression for t in terms))


def _equality(limit: Limit) -> Verdict:
    left, right = (_total(side) for side in limit.sides())
    for point in _points(left - right):
        values = [sp.N(two_alike(side.xreplace(point)), DIGITS) for side in (left, right)]
        if abs(values[0] - values[1]) > sp.Rational(1, 10**20):
            both = " against ".join(str(sp.N(value, 8)) for value in values)
            where = ", ".join(f"{s} = {v}" for s, v in point.items())
            return Verdict("refuted", "limits", "exact rationals", f"{both} at {where}")
    if same(left, right):
        evidence = f"the difference is 0, also at {POINTS} random exact rationals"
        return Verdict("proved", "limits", "algebraic identity", evidence, limit.axioms)
    return Verdict("survived", "limits", f"{POINTS} random exact rationals", "no difference beyond 1e-20")


def two_alike(expression: sp.Expr) -> sp.Expr:
    """The same with its reductions over clients as they are for two clients with the same numbers."""

    def reduced(node: sp.Expr) -> sp.Expr:
        return FOR_TWO_CLIENTS[type(node)](node.args[0], node.args[0])

    return expression.replace(lambda node: isinstance(node, OverClients), reduced)


def _points(expression: sp.Expr) -> Iterator[dict[sp.Basic, sp.Expr]]:
    """Squares of small rationals for the symbols, so that most roots are rational."""
    source, symbols = random.Random(0), sorted(expression.free_symbols, key=str)
    for _ in range(POINTS):
        yield {s: sp.Rational(source.randint(1, 12), source.randint(1, 6)) ** 2 for s in symbols}


def _order(limit: Limit) -> Verdict:
    left, right = limit.sides()
    facts = limit.special_facts()
    names, against = [t.name for t in right], {t.name: t.expression for t in left}
    if len(left) > 1 and all(name in names for name in against):
        pairs = [(against.get(t.name, sp.S.Zero), t.expression) for t in right]
    else:
        pairs = [(_total(left), _total(right))]
    for pair in pairs:
        part = _slack(*pair)
        finding = prove(part, facts)
        if not finding.holds:
            return _search_counterexample(left, right, pair, facts, finding.evidence)
    evidence = f"{len(pairs)} terms one by one" if len(pairs) > 1 else finding.evidence
    return Verdict("proved", "limits", finding.method if len(pairs) == 1 else "term by term", evidence, limit.axioms)


def _search_counterexample(
    left: Sequence[Term], right: Sequence[Term], pair: tuple[sp.Expr, sp.Expr], facts: Sequence[Relation], why: str
) -> Verdict:
    """A counterexample where what this pair does not need is zero, else the least error it would catch."""
    symbols = set().union(*(t.expression.free_symbols for t in (*left, *right)))
    needed = set().union(*(side.free_symbols for side in pair), *(f.slack.free_symbols for f in facts))
    zero = {s: sp.S.Zero for s in symbols - needed if not s.is_positive}
    below, above = (_total(side).xreplace(zero) for side in (left, right))
    slack = _slack(below, above)
    at = counterexample(slack, relevant_facts(slack, [fact.slack for fact in facts]))
    if at is not None:
        others = f", {' = '.join(sorted(map(str, zero)))} = 0" if zero else ""
        return Verdict("refuted", "limits", "exact rationals", f"false at {at}{others}")
    slacks = [fact.slack for fact in facts]
    caught = [q for q in PLANTED if counterexample(q * above - below, slacks)]
    least = (
        f"a right side {100 - 100 * caught[0]} percent smaller is caught" if caught else "no planted error is caught"
    )
    return Verdict("survived", "limits", "random exact rationals", f"{why}; {least}")


def _slack(left: sp.Expr, right: sp.Expr) -> sp.Expr:
    """What must be nonnegative for left <= right: without the factors they share, if none that remains can be zero."""
    if right.is_nonnegative and not right.is_zero and not isinstance(right, sp.Add):
        ratio = left / right
        if all(symbol.is_positive for symbol in sp.fraction(ratio)[1].free_symbols):
            return 1 - ratio
    return right - left


def verify(claim: Claim, claim_set: ClaimSet) -> Verdict:
    """The verdict on a special case; every one stands by itself."""
    subject = claim.subject
    if isinstance(subject, Spread):
        return try_spread(subject)
    assert isinstance(subject, Limit)
    return _equality(subject) if subject.op == "==" else _order(subject)


CHECKER = Checker("limits", lambda claim, claim_set: isinstance(claim.subject, Limit | Spread), verify)
