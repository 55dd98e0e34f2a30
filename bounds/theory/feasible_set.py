r"""Which constants can occur together: relations that every problem of a form's class satisfies.

A constant that an assumption bounds ("$|\nabla F_k|\le G$") may have slack; every other constant has exactly the value
of its definition. So bounds conflict only if some are from below ($\mu\le L$) or the algorithm depends on one of them.
A set is exact if a problem is known for all constants that satisfy its relations and the form's conditions; otherwise
`witnessed` says for which constants a problem is known. Relations implied by the conditions are not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from fedbounds.bounds.theory.result import Condition, Form, Result
from fedbounds.bounds.theory.symbols import Notation


@dataclass(frozen=True)
class FeasibleSet:
    """The constants that can occur together in one form.

    Args:
        relations: what every problem of the class satisfies.
        witnessed: where a problem is known to have such constants, beyond the relations; none where they are exact.
        computed_from: symbols that, if they are all given, make a problem themselves, whatever is witnessed.

    Example:
        >>> L, mu = sp.symbols("L mu", positive=True)
        >>> FeasibleSet((Condition(mu, "<=", L, "strongly convex and smooth"),)).words(Notation([]))
        'mu <= L (strongly convex and smooth)'
    """

    relations: tuple[Condition, ...] = ()
    witnessed: tuple[Condition, ...] = ()
    computed_from: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Condition, ...]:
        """The relations, then where a problem is known."""
        return (*self.relations, *self.witnessed)

    def words(self, notation: Notation) -> str:
        """The set in one line, as the paper writes its symbols."""
        said = "; ".join(f"{c.words(notation)} ({c.why})" for c in self.relations) or "all legal values"
        known = "; ".join(c.why for c in self.witnessed)
        return f"{said}; necessary relations only, problems are known: {known}" if known else said


@dataclass(frozen=True)
class FeasibleRule:
    """A relation of a paper's constants, in all forms that make these assumptions and have these symbols."""

    relation: Condition  # between constants alone
    assumes: tuple[str, ...] = ()  # names of the assumptions that it follows from
    only: tuple[str, ...] = ()  # the results, or the results with the form in brackets, that it is about (default: all)
    witness: bool = False  # whether it says where a problem is known, instead of what every problem satisfies
    computed_from: tuple[str, ...] = ()  # as of a `FeasibleSet`

    def applies(self, result: Result, form: Form) -> bool:
        """Whether the form makes the assumptions, and has the symbols."""
        names = {result.key.partition("/")[2], f"{result.key.partition('/')[2]}[{form.name}]"}
        symbols = {s.name for s in self.relation.left.free_symbols | self.relation.right.free_symbols}
        assumed = {a.name for a in form.assumptions}
        asked = not self.only or bool(names & {*self.only})
        return asked and symbols <= form.needs and assumed.issuperset(self.assumes)


@dataclass(frozen=True)
class FeasibleSets:
    """The feasible sets of a paper's forms, declared once.

    Args:
        results: the names of the results whose sets the rules describe in full, each with why that is so.
        rules: what holds in whichever of their forms they apply to.
    """

    results: Mapping[str, str]
    rules: tuple[FeasibleRule, ...] = ()

    def of(self, result: Result, form: Form) -> FeasibleSet | None:
        """The set of one form; None where none is declared."""
        if result.key.partition("/")[2] not in self.results:
            return None
        rules = [rule for rule in self.rules if rule.applies(result, form)]
        relations = tuple(rule.relation for rule in rules if not rule.witness)
        witnessed = [rule for rule in rules if rule.witness]
        symbols = dict.fromkeys(name for rule in witnessed for name in rule.computed_from)
        return FeasibleSet(relations, tuple(rule.relation for rule in witnessed), tuple(symbols))


@lru_cache(maxsize=1024)
def feasible_set(result: Result, form: Form) -> FeasibleSet | None:
    """Which constants can occur together in a form; None where its paper has not declared it."""
    from fedbounds.bounds.theory.registry import paper_module, paper_names

    declared = getattr(paper_module(result.paper), "FEASIBLE", None) if result.paper in paper_names() else None
    return None if declared is None else declared.of(result, form)


def positive(value: sp.Expr) -> sp.Expr:
    """1 where a constant is positive, 0 where it is 0."""
    return sp.sign(value)
