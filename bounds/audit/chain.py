"""A chain: the steps of a proof, each in as few words as the paper has for it.

c = Chain(setting, "for every client n")
c["S2a", "smoothness"] = Smooth("gy", "g0", L), A1              # an axiom says what it concludes
c["S2b", "Assumption 3 at x_t"] = le(square(g0 - f0), delta**2), A3  # what an assumption says here
c["S2", "Jensen for three gradients"] = le(square(gy), three), Gram()
c["S3", "the recursion"] = le(AFTER, grows * DRIFT + adds), "S0 S1 S2"  # a combination finds its multipliers
c["S4", "with that ratio"] = by(
    le(AFTER, RATIO * DRIFT + adds), {"S3": 1, "S3b": DRIFT}  # or is told them
)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Protocol, cast, runtime_checkable

import sympy as sp

from fedbounds.bounds.audit.axioms import Assumed
from fedbounds.bounds.audit.claim import Relation, Relations, ResultForm
from fedbounds.bounds.audit.nonnegative import reduce_expression
from fedbounds.bounds.audit.proof_step_checker import (
    Premise,
    Proof,
    ProofSetting,
    Rule,
    Step,
    condition_fact,
    left_hand_side,
)
from fedbounds.bounds.audit.rules import Combine, Stated, Unfolded, expand_definitions
from fedbounds.bounds.audit.vectors import opaque
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition, Result

MOST_LEFT = 3  # squares that a conclusion may leave out


def eliminate(conclusion: Relation, premises: Relations) -> tuple[sp.Expr, ...] | None:
    r"""Multipliers with which no inner product and no left-hand side is left over: slack = sum_k m_k slack_k + rest.

    What no premise speaks of is left to the rest; where that is not enough, as few squares as possible are. A premise
    without inner products gets 0, as a fact about constants, unless it is the conclusion itself.

    Returns:
        One multiplier for each premise, in order; None where these equations determine none.
    """
    found = [coefficients(relation.slack) for relation in (conclusion, *premises)]
    if None in found:
        return None
    wanted, *slacks = cast(list[dict[sp.Symbol, sp.Expr]], found)
    speak = [slack for slack in slacks if slack]
    if not speak:
        same = len(premises) == 1 and reduce_expression(premises[0].slack - conclusion.slack) == 0
        return None if wanted else (sp.S.One,) if same else (sp.S.Zero,) * len(premises)
    unknown = [sp.Dummy(f"m{k}") for k in range(len(speak))]
    terms = sorted({s for slack in speak for s in slack}, key=str)
    rows = {s: sum((m * slack.get(s, 0) for m, slack in zip(unknown, speak, strict=True)), -wanted.get(s, sp.S.Zero))
            for s in terms}  # fmt: skip
    squares = [s for s in terms if s.is_nonnegative]
    for left in (left for count in range(MOST_LEFT) for left in combinations(squares, count)):
        solved = solve_unique([row for s, row in rows.items() if s not in left], unknown)
        if solved is not None:
            values = iter(solved)
            return tuple(next(values) if slack else sp.S.Zero for slack in slacks)
    return None


def solve_unique(equations: Sequence[sp.Expr], unknown: Sequence[sp.Symbol]) -> tuple[sp.Expr, ...] | None:
    """The only solution of linear equations; None where there is none, or more than one."""
    solutions = sp.linsolve(equations, *unknown) if equations else ()
    for solution in cast(Iterable[sp.Tuple], solutions):
        if not solution.free_symbols & set(unknown):
            return tuple(reduce_expression(value) for value in solution)
    return None


def coefficients(slack: sp.Expr) -> dict[sp.Symbol, sp.Expr] | None:
    """What stands before each inner product and left-hand side; None where one of them does not enter linearly."""
    found: dict[sp.Symbol, sp.Expr] = {}
    for summand in sp.Add.make_args(sp.expand(slack)):
        terms = [s for s in summand.free_symbols if opaque(s)]
        if terms:
            factor, term = summand.as_independent(*terms, as_Add=False)
            if not isinstance(term, sp.Symbol):
                return None
            found[term] = found.get(term, sp.S.Zero) + factor
    return found


Multipliers = Mapping[str, sp.Expr | int]
Part = Relation | Rule | type[Combine] | str | Multipliers | Assumption | Condition


@runtime_checkable
class Yields(Protocol):
    """A rule that says by itself what follows."""

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """What it says of these vectors, given the premises."""
        ...


def le(left: sp.Expr, right: sp.Expr | int) -> Relation:
    """left <= right."""
    return Relation(left, sp.S.One * right)


def eq(left: sp.Expr, right: sp.Expr | int) -> Relation:
    """left == right."""
    return Relation(left, sp.S.One * right, "==")


def by(*parts: Part) -> tuple[Part, ...]:
    """The parts of an entry that take a line of their own."""
    return parts


class Chain:
    """The steps of one proof, in order.

    An entry's key is the step's id and what it says, and for all of what, where that is not what the chain says. Its
    value is what it concludes, how, and from what:

    - the relation; left out where an axiom yields it;
    - the rule; left out where it is a combination of the premises, whose multipliers are found by elimination, or
      given by a mapping from premise to multiplier (a kind of combination is named by its class), where a single
      condition is stated as it stands, and where assumptions alone say it;
    - the premises: earlier steps by id (many in one string, between blanks), assumptions and conditions.

    Args:
        setting: the vectors and the bracket.
        quantifiers: for all of what, by default.
        cites: proofs and results whose steps and forms are premises here, by their whole ids.
    """

    def __init__(self, setting: ProofSetting, quantifiers: str = "", cites: Iterable[Proof | Result] = ()) -> None:
        self.setting, self.quantifiers = setting, quantifiers
        self._steps: dict[str, Step] = {}
        self._cited: dict[str, Relation] = {}
        for source in cites:
            if isinstance(source, Proof):
                self._cited |= {f"{source.id}/{step.id}": step.conclusion for step in source.steps}
            else:
                forms = [ResultForm(source, form) for form in source.forms]
                self._cited |= {f.id: Relation(left_hand_side(f), f.form.bound) for f in forms}

    @property
    def steps(self) -> tuple[Step, ...]:
        """What has been entered so far."""
        return tuple(self._steps.values())

    def __setitem__(self, key: tuple[str, str] | tuple[str, str, str], value: Part | tuple[Part, ...]) -> None:
        name, says, quantifiers = key if len(key) == 3 else (*key, self.quantifiers)
        if name in self._steps:
            raise FedboundsError(f"the step {name} is there already")
        parts = value if isinstance(value, tuple) else (value,)
        relation = next((p for p in parts if isinstance(p, Relation)), None)
        kind = next((p for p in parts if isinstance(p, type)), Combine)
        rule = next((cast(Rule, p) for p in parts if hasattr(p, "check") and not isinstance(p, type)), None)
        given = {k: m for p in parts if isinstance(p, Mapping) for k, m in p.items()}
        premises: list[Premise] = []
        for part in parts:
            if isinstance(part, str):
                premises += self._known(part)
            elif isinstance(part, Mapping):
                premises += part
            elif isinstance(part, Assumption | Condition):
                premises.append(part)
        relations = [self._relation(name, p) for p in premises if isinstance(p, str)]
        conditions = [condition_fact(p) for p in premises if isinstance(p, Condition)]
        if relation is None and rule is None and len(conditions) == len(premises) == 1:
            relation, rule = conditions[0], Stated()
        elif relation and rule is None and premises and all(isinstance(p, Assumption) for p in premises):
            needs = tuple(p.name for p in premises if isinstance(p, Assumption))
            rule = Assumed(relation.left, relation.right, needs, relation.op)
        elif relation is None:
            if not isinstance(rule, Yields):
                raise FedboundsError(f"{name} concludes nothing: its rule does not say by itself what follows")
            relation = rule.relation(self.setting, relations)
        if rule is None:
            rule = kind(self._multipliers(name, kind, relation, premises, relations, given))
        self._steps[name] = Step(name, says, relation, rule, tuple(premises), quantifiers)

    def proof(
        self,
        id: str,
        result: Result,
        ends: Mapping[str, str],
        left: sp.Expr | None = None,
        substitute: Mapping[sp.Symbol, sp.Expr] | None = None,
    ) -> Proof:
        """The chain as the proof of a result; the arguments are those of `Proof`."""
        return Proof(id, self.setting, self.steps, result, ends, left, substitute or {})

    def _known(self, names: str) -> list[str]:
        """The ids in a string; one may hold blanks itself."""
        return [names] if names in self._steps or names in self._cited else names.split()

    def _relation(self, name: str, premise: str) -> Relation:
        if premise in self._steps:
            return self._steps[premise].conclusion
        if premise not in self._cited:
            raise FedboundsError(f"{name}: the premise {premise!r} is neither an earlier step nor cited")
        return self._cited[premise]

    def _multipliers(
        self,
        name: str,
        kind: type[Combine],
        conclusion: Relation,
        premises: list[Premise],
        relations: list[Relation],
        given: Multipliers,
    ) -> tuple[sp.Expr | int, ...]:
        names = [p for p in premises if isinstance(p, str)]
        if given:
            return tuple(given.get(p, 0) for p in names)
        if kind is Unfolded and len(relations) == 1:
            return (sp.S.One,)
        found = eliminate(conclusion, relations)
        if found is None and kind is Unfolded:
            symbols = self.setting.symbols
            found = eliminate(
                expand_definitions(conclusion, symbols), [expand_definitions(r, symbols) for r in relations]
            )
        if found is None:
            raise FedboundsError(f"{name}: no multipliers were found; give them, as {{'S3': 1, 'S3b': factor}}")
        return found
