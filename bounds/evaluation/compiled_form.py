"""Results as evaluation sees them: names, words, legal values and numpy programs, and nothing of sympy.

A view is made of a `Result` (`fedbounds.bounds.evaluation.compile_form`), or read from where views are kept
(`fedbounds.bounds.evaluation.form_cache`). What takes time to
find out about a form, as how its conditions are printed, is found out when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.audit.status import AuditStatus, Mark
from fedbounds.bounds.evaluation.compilation import CompiledFunctions, Layout
from fedbounds.bounds.evaluation.expression_tree import Structure, Tree
from fedbounds.bounds.evaluation.program import Coded
from fedbounds.bounds.theory.form_selection import select_form
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.problem_class import Cover
from fedbounds.bounds.theory.symbols import Derived, Notation, Quantity, independent_constants


class PrintedCondition(NamedTuple):
    """What takes time to find out about a condition.

    Attributes:
        text, latex: the relation as the paper writes it.
        exact: in plain text as it is evaluated.
        limited: whether there is an extreme admissible value of the constant that it limits.
        caps: whether that is the largest (else the smallest); None where it is neither.
    """

    text: str
    latex: str
    exact: str
    limited: bool
    caps: bool | None


@dataclass(frozen=True)
class NumpyRule:
    """A rule by which a constant follows from others, as a numpy function of its inputs.

    Attributes:
        inputs: their names, in order.
        vectors: those of them that have one number per client.
        vector: whether what follows has.
        code: the formula.
    """

    inputs: tuple[str, ...]
    vectors: frozenset[str]
    vector: bool
    code: Callable[[], Coded]

    def __call__(self, *values: np.ndarray) -> np.ndarray:
        """What follows; clients last."""
        known, code = dict(zip(self.inputs, values, strict=True)), self.code()
        whole = not self.vectors
        taken = [known[name] if whole or name in self.vectors else known[name][..., None] for name in code.names]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.asarray(code.function(*taken)[0], dtype=float)
        return found[..., 0] if self.vectors and not self.vector else found


@dataclass(frozen=True)
class Follows(Derived):
    """A rule by which a constant follows from others, by a numpy function."""

    rule: Callable[..., np.ndarray | float]


@dataclass(frozen=True)
class ConditionView:
    """A condition of a form; `said` tells what takes time."""

    op: str
    why: str
    limits: str
    legal: bool
    said: Callable[[], PrintedCondition] = field(repr=False, compare=False)


@dataclass(frozen=True)
class SearchRelation:
    """A condition of a form as a search sees it."""

    left: Tree
    op: str
    right: Tree
    why: str
    said: Callable[[], PrintedCondition] = field(repr=False, compare=False)

    def words(self, notation: Notation) -> str:
        """The relation in plain text, as the paper writes it."""
        return self.said().text

    @property
    def text(self) -> str:
        """The relation in plain text, as it is evaluated."""
        return self.said().exact


@dataclass(frozen=True, eq=False)
class FormView:
    """One form: what `evaluate` asks of it.

    Attributes:
        result: the view of the result that it is a form of.
        name, order_only, hides, asymptotic, refuted_by, generous: as of a `Form`.
        terms: their names.
        conditions: in order.
        assumptions: their names.
        covers: for which settings each of them holds, when that is asked.
        structure: its terms and conditions as trees, when they are asked for.
        feasible: what constants that can occur together satisfy; None where its paper has not declared it.
        witnessed: where a problem is known to have such constants, if that is not all of them.
        computed_from: letters that make a problem themselves, if they are given.
        prescribes: the step sizes that it sets.
        derived: the rules by which constants follow from others.
        variables: the constants that its bound and its conditions are made of.
        needs: the same and those that its step sizes are made of.
        own_measure: its own left-hand side, if it has one.
        whole: the `Form`, with its expressions.
        code: its numpy functions, see `fedbounds.bounds.evaluation.compilation.CompiledFunctions`.
        standing: what the audit says of it.
    """

    result: ResultView
    name: str
    order_only: bool
    hides: str
    asymptotic: str
    refuted_by: str
    generous: str
    terms: tuple[str, ...]
    conditions: tuple[ConditionView, ...]
    assumptions: tuple[str, ...]
    prescribes: tuple[str, ...]
    derived: tuple[Follows, ...]
    variables: frozenset[str]
    needs: frozenset[str]
    own_measure: Measure | None
    whole: Callable[[], Any] = field(repr=False)
    code: Callable[[str], Coded] = field(repr=False)
    standing: Callable[[], AuditStatus] = field(repr=False)
    covers: Callable[[], tuple[Cover | None, ...]] = field(repr=False)
    structure: Callable[[], Structure] = field(repr=False)
    feasible: tuple[ConditionView, ...] | None = None
    witnessed: tuple[ConditionView, ...] = ()
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
        return tuple(SearchRelation(left, c.op, right, c.why, c.said) for c, (left, right) in pairs)

    @property
    def mark(self) -> Mark:
        """Why it is not to be relied on, in a word; "" for one that is proved."""
        return self.standing().mark(self.order_only)

    @cached_property
    def compiled(self) -> CompiledFunctions:
        """Its numpy functions, at work."""
        layout = Layout(
            len(self.terms),
            len(self.prescribes),
            tuple(c.op for c in self.conditions),
            lambda: tuple(c.said().limited for c in self.conditions),
        )
        return CompiledFunctions(layout, self.code, self.result.vectors)

    @cached_property
    def occurring(self) -> CompiledFunctions:
        """The numpy functions of its feasible set: what constants satisfy, then where a problem is known."""
        relations = (*(self.feasible or ()), *self.witnessed)
        layout = Layout(0, 0, tuple(c.op for c in relations), lambda: (False,) * len(relations))
        return CompiledFunctions(layout, lambda _: self.code("feasible"), self.result.vectors)

    def resolve(self, name: str) -> Quantity | None:
        """What a letter or a concept stands for in the result's notation; None where it is neither."""
        return self.result.notation.resolve(name)

    def unused(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these constants that nothing in the form depends on, in the order of the notation."""
        return independent_constants(self.result.notation, self.needs, self.derived, names)


@dataclass(frozen=True, eq=False)
class ResultView:
    """One result: what `evaluate` asks of it.

    Attributes:
        key, measure, notation, default: as of a `Result`.
        source: where it stands, in words.
        floors: the rules that no given constant may undercut.
        forms: each a view.
        whole: the `Result`, with its expressions.
    """

    key: str
    source: str
    measure: Measure
    notation: Notation
    default: str
    floors: tuple[Follows, ...]
    whole: Callable[[], Any] = field(repr=False)
    forms: list[FormView] = field(default_factory=list)

    @property
    def paper(self) -> str:
        """The part of the key before the slash."""
        return self.key.partition("/")[0]

    @cached_property
    def vectors(self) -> frozenset[str]:
        """The letters that stand for one number per client."""
        return frozenset(quantity.name for quantity in self.notation.values() if quantity.shape)

    def form(self, name: str | None = None) -> FormView:
        """The form with this name, else the first form of this kind; without a name the default form.

        Raises:
            FedboundsError: names the forms there are.
        """
        return select_form(self.forms, self.key, name, self.default)
