"""The compiled form of a bound: names, texts, legal values, numpy programs and expression trees, and nothing of sympy.

It is made of a `Result` (`fedbounds.bounds.evaluation.numpy_code`) or read from a file (`form_cache`). Texts, programs
and trees are made when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fedbounds.bounds.audit.status import AuditStatus, Mark
from fedbounds.bounds.evaluation.expression_tree import Structure, Tree
from fedbounds.bounds.evaluation.program import CompiledFunctions, Layout, Program
from fedbounds.bounds.theory.form_selection import select_form
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.problem_class import Cover
from fedbounds.bounds.theory.symbols import Derived, Notation, Quantity, independent_constants


class PrintedCondition(NamedTuple):
    """How a condition is printed, and what it limits."""

    text: str  # text, latex: the relation as the paper writes it
    latex: str
    exact: str  # in plain text as it is evaluated
    limited: bool  # whether there is an extreme admissible value of the constant that it limits
    caps: bool | None  # whether that is the largest (else the smallest); None where it is neither


@dataclass(frozen=True)
class NumpyRule:
    """The formula of a derived constant, as a numpy function of its inputs."""

    inputs: tuple[str, ...]  # their names, in order
    vectors: frozenset[str]  # the inputs with one number per client
    vector: bool  # whether the derived constant has one number per client
    program: Callable[[], Program]  # the formula

    def __call__(self, *values: np.ndarray) -> np.ndarray:
        """The derived constant; clients last."""
        known, program = dict(zip(self.inputs, values, strict=True)), self.program()
        whole = not self.vectors
        taken = [known[name] if whole or name in self.vectors else known[name][..., None] for name in program.names]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.asarray(program.run(*taken)[0], dtype=float)
        return found[..., 0] if self.vectors and not self.vector else found


@dataclass(frozen=True)
class NumericRule(Derived):
    """A derived constant whose rule is a numpy function."""

    rule: Callable[..., np.ndarray | float]


@dataclass(frozen=True)
class CompiledCondition:
    """A condition of a form; `printed` computes its texts."""

    op: str
    why: str
    limits: str
    legal: bool
    printed: Callable[[], PrintedCondition] = field(repr=False, compare=False)


@dataclass(frozen=True)
class SearchRelation:
    """A condition of a form as a search sees it."""

    left: Tree
    op: str
    right: Tree
    why: str
    printed: Callable[[], PrintedCondition] = field(repr=False, compare=False)

    def words(self, notation: Notation) -> str:
        """The relation in plain text, as the paper writes it."""
        return self.printed().text

    @property
    def text(self) -> str:
        """The relation in plain text, as it is evaluated."""
        return self.printed().exact


@dataclass(frozen=True, eq=False)
class CompiledForm:
    """One form, ready to be evaluated and searched.

    Attributes:
        result: the compiled result that it is a form of.
        name, order_only, hides, asymptotic, refuted_by, implicit, variables, needs: as of a `Form`.
        terms: their names.
        conditions: in order.
        assumptions: their names.
        covers: for which settings each of them holds.
        structure: its terms and conditions as trees.
        feasible: what constants that can occur together satisfy; None where its paper has not declared it.
        witnessed: where a problem is known to have such constants, if that is not all of them.
        computed_from: symbols that make a problem themselves, if they are given.
        prescribes: the step sizes that it sets.
        derived: the rules by which constants follow from others.
        own_measure: its own left-hand side, if it has one.
        whole: the `Form`, with its expressions.
        program: its numpy programs, by name: "value", "parts", "sides" or "feasible".
        standing: its status in the audit.
    """

    COPIED: ClassVar = ("name", "order_only", "hides", "asymptotic", "refuted_by", "implicit", "variables", "needs")

    result: CompiledResult
    name: str
    order_only: bool
    hides: str
    asymptotic: str
    refuted_by: str
    implicit: str
    terms: tuple[str, ...]
    conditions: tuple[CompiledCondition, ...]
    assumptions: tuple[str, ...]
    prescribes: tuple[str, ...]
    derived: tuple[NumericRule, ...]
    variables: frozenset[str]
    needs: frozenset[str]
    own_measure: Measure | None
    whole: Callable[[], Any] = field(repr=False)
    program: Callable[[str], Program] = field(repr=False)
    standing: Callable[[], AuditStatus] = field(repr=False)
    covers: Callable[[], tuple[Cover | None, ...]] = field(repr=False)
    structure: Callable[[], Structure] = field(repr=False)
    feasible: tuple[CompiledCondition, ...] | None = None
    witnessed: tuple[CompiledCondition, ...] = ()
    computed_from: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The result's key, and its name."""
        return f"{self.result.key} [{self.name}]"

    @property
    def measure(self) -> Measure:
        """Its left-hand side."""
        return self.own_measure or self.result.measure

    @property
    def length(self) -> int:
        """How many parts the expressions of its terms and conditions have."""
        return self.structure().length

    @property
    def relations(self) -> tuple[SearchRelation, ...]:
        """Its conditions, with both sides."""
        pairs = zip(self.conditions, self.structure().sides, strict=True)
        return tuple(SearchRelation(left, c.op, right, c.why, c.printed) for c, (left, right) in pairs)

    @property
    def mark(self) -> Mark:
        """Why it is not to be relied on, in a word; "" for one that is proved."""
        return self.standing().mark(self.order_only)

    @cached_property
    def compiled(self) -> CompiledFunctions:
        """Its numpy functions."""
        layout = Layout(
            len(self.terms),
            len(self.prescribes),
            tuple(c.op for c in self.conditions),
            lambda: tuple(c.printed().limited for c in self.conditions),
        )
        return CompiledFunctions(layout, self.program, self.result.vectors)

    @cached_property
    def occurring(self) -> CompiledFunctions:
        """The numpy functions of its feasible set: what constants satisfy, then where a problem is known."""
        relations = (*(self.feasible or ()), *self.witnessed)
        layout = Layout(0, 0, tuple(c.op for c in relations), lambda: (False,) * len(relations))
        return CompiledFunctions(layout, lambda _: self.program("feasible"), self.result.vectors)

    def resolve(self, name: str) -> Quantity | None:
        """The quantity with this symbol or concept in the result's notation; None where there is none."""
        return self.result.notation.resolve(name)

    def unused(self, names: Iterable[str]) -> tuple[str, ...]:
        """The constants among these that nothing in the form depends on, in the order of the notation."""
        return independent_constants(self.result.notation, self.needs, self.derived, names)


@dataclass(frozen=True, eq=False)
class CompiledResult:
    """One result with its compiled forms."""

    key: str  # key, measure, notation, default: as of a `Result`
    source: str  # paper, number and equations
    measure: Measure
    notation: Notation
    default: str
    floors: tuple[NumericRule, ...]  # the rules that no given constant may undercut
    whole: Callable[[], Any] = field(repr=False)  # the `Result`, with its expressions
    forms: list[CompiledForm] = field(default_factory=list)  # the compiled forms

    @property
    def paper(self) -> str:
        """The part of the key before the slash."""
        return self.key.partition("/")[0]

    @cached_property
    def vectors(self) -> frozenset[str]:
        """The symbols of constants with one number per client."""
        return frozenset(quantity.name for quantity in self.notation.values() if quantity.shape)

    def form(self, name: str | None = None) -> CompiledForm:
        """The form with this name, else the first form of this kind; without a name the default form."""
        return select_form(self.forms, self.key, name, self.default)
