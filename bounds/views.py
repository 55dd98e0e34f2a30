"""Results as evaluation sees them: names, words, legal values and numpy programs, and nothing of sympy.

A view is made of a `Result` (`fedbounds.bounds.viewing`), or read from where views are kept
(`fedbounds.bounds.kept_views`). What takes time to
find out about a form, as how its conditions are printed, is found out when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from fedbounds.bounds.checks import quote
from fedbounds.bounds.compilation import Compiled, Layout
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.measures import Measure
from fedbounds.bounds.programs import Coded
from fedbounds.bounds.setting import Cover
from fedbounds.bounds.symbols import Derived, Notation, Quantity
from fedbounds.bounds.trees import Structure, Tree


class Named(Protocol):
    """A form of any kind."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def chosen_form(forms: Sequence[N], key: str, name: str | None, default: str) -> N:
    """The form with this name, else the first form of this kind; without a name the default form.

    Raises:
        FedboundsError: names the forms there are.
    """
    if name is not None and not isinstance(name, str):
        raise FedboundsError(f"form = {quote(name)} must be the name of a form of {key}, as {default!r}")
    wanted = name or default
    for form in forms:
        if form.name == wanted:
            return form
    for form in forms:
        if form.name.partition(":")[0] == wanted:
            return form
    raise unknown_name(f"form of {key}", str(wanted), [form.name for form in forms])


class Said(NamedTuple):
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


Mark = Literal["", "refuted", "order only", "not proved"]


class Standing(NamedTuple):
    """What the audit says of a form.

    Attributes:
        verdict: proved, survived, argued, refuted or unknown.
        untried: what the proof trusts its author to have said rightly ("" if nothing).
        accused: the erratum that refutes it, or a step it rests on, and how false that is ("" if none).
        unheard: why nothing of its paper has a verdict ("" if something has).
    """

    verdict: str
    untried: str
    accused: str
    unheard: str

    @property
    def shadow(self) -> str:
        """What keeps a form from being relied on; "" if nothing: see `fedbounds.bounds.audit.ledger.shadow`."""
        if self.accused:
            return f"{'' if self.verdict == 'refuted' else 'rests on what '}is refuted by erratum {self.accused}"
        return "" if self.verdict == "proved" else f"is not proved: its verdict is {self.verdict}"

    def mark(self, order_only: bool) -> Mark:
        """Why a form is not to be relied on, in a word: see `fedbounds.bounds.audit.ledger.mark`."""
        if self.accused:
            return "refuted"
        return "order only" if order_only else "not proved" if self.shadow else ""


@dataclass(frozen=True)
class Rule:
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
    said: Callable[[], Said] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Relation:
    """A condition of a form as a search sees it."""

    left: Tree
    op: str
    right: Tree
    why: str
    said: Callable[[], Said] = field(repr=False, compare=False)

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
        code: its numpy functions, see `fedbounds.bounds.compilation.Compiled`.
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
    standing: Callable[[], Standing] = field(repr=False)
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
    def relations(self) -> tuple[Relation, ...]:
        """Its conditions, with both sides."""
        pairs = zip(self.conditions, self.structure().sides, strict=True)
        return tuple(Relation(left, c.op, right, c.why, c.said) for c, (left, right) in pairs)

    @property
    def mark(self) -> Mark:
        """Why it is not to be relied on, in a word; "" for one that is proved."""
        return self.standing().mark(self.order_only)

    @cached_property
    def compiled(self) -> Compiled:
        """Its numpy functions, at work."""
        layout = Layout(
            len(self.terms),
            len(self.prescribes),
            tuple(c.op for c in self.conditions),
            lambda: tuple(c.said().limited for c in self.conditions),
        )
        return Compiled(layout, self.code, self.result.vectors)

    @cached_property
    def occurring(self) -> Compiled:
        """The numpy functions of its feasible set: what constants satisfy, then where a problem is known."""
        relations = (*(self.feasible or ()), *self.witnessed)
        layout = Layout(0, 0, tuple(c.op for c in relations), lambda: (False,) * len(relations))
        return Compiled(layout, lambda _: self.code("feasible"), self.result.vectors)

    def resolve(self, name: str) -> Quantity | None:
        """What a letter or a concept stands for in the result's notation; None where it is neither."""
        return self.result.notation.resolve(name)

    def unused(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these constants that nothing in the form depends on, in the order of the notation."""
        return beside(self.result.notation, self.needs, self.derived, names)


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
        return chosen_form(self.forms, self.key, name, self.default)


def reached(names: Iterable[str], rules: Sequence[Derived]) -> set[str]:
    """These constants, and those that they depend on by the rules, directly or through others.

    Example:
        >>> W = Derived("W", ("p", "K"), lambda p, K: K, "")
        >>> sorted(reached(["L", "W"], [W]))
        ['K', 'L', 'W', 'p']
    """
    found = {*names}
    while more := {i for rule in rules if rule.name in found for i in rule.inputs} - found:
        found |= more
    return found


def beside(notation: Notation, needs: Iterable[str], rules: Sequence[Derived], names: Iterable[str]) -> tuple[str, ...]:
    """Those of these constants, by letter, that nothing of what is needed depends on, in the order of the notation."""
    given = {quantity.name for name in names if (quantity := notation.resolve(name)) is not None}
    return tuple(name for name in notation if name in given - reached(needs, rules))
