"""What an adviser is asked: a setting in words, the constants known so far, a target, and what a round costs.

Constants go by their concepts, which all papers share, or by symbols where every paper that has the symbol means the
same by it; a symbol of one paper stands in a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, check_number, quote
from fedbounds.bounds.inputs.value_grammar import parse_assignments
from fedbounds.bounds.theory.argument_checks import names_of
from fedbounds.bounds.theory.problem_class import ProblemClass
from fedbounds.bounds.theory.registry import paper as load_paper
from fedbounds.bounds.theory.registry import paper_names, papers
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import WIRE
from fedbounds.bounds.theory.symbols import Constant, Source

Goal = Literal["seconds", "rounds", "gradients", "bits"]
GOALS: tuple[Goal, ...] = ("seconds", "rounds", "gradients", "bits")
TIMES = {
    "gradient": "seconds that one stochastic gradient takes on a client",
    "message": "seconds that one message over a link takes, whatever its size",
    "round": "seconds that a round takes besides its gradients; in place of message and bandwidth",
    "bandwidth": "bits in a second over the link of a client",
}
KEYS = ("setting", "target", "measure", "constants", "estimated", "participation", "cost", "choose", "minimize",
        "assume", "trust", "effort")  # fmt: skip


@dataclass(frozen=True)
class Presence:
    """What is known of participation, for the results of one paper at one interval.

    Attributes:
        constants: by concept.
        checked: assumption name to whether it is seen to hold.
        implied: names of assumptions that hold if what was declared is true.
    """

    constants: Mapping[str, Constant] = field(default_factory=dict)
    checked: Mapping[str, bool] = field(default_factory=dict)
    implied: frozenset[str] = frozenset()


class Participation(Protocol):
    """Who takes part, as a log or a process says it."""

    @property
    def text(self) -> str:
        """What is known, in one line."""
        ...

    @property
    def present(self) -> float:
        """How many take part in a round, on average."""
        ...

    @property
    def averaged(self) -> bool:
        """Whether its constants are expected values over random participation."""
        ...

    def intervals(self, low: int, high: int) -> tuple[int, ...]:
        """The intervals worth a try: every longer one than the one before has a smaller window divergence."""
        ...

    def known(self, paper: str, interval: int, given: Mapping[str, float]) -> Presence:
        """For the results of a paper; empty where nothing is known for them."""
        ...


@dataclass(frozen=True)
class Given:
    """The constants that the user knows.

    Attributes:
        by_concept: for all papers.
        by_symbol: those of one paper, by its key and their symbol.
    """

    by_concept: Mapping[str, Constant]
    by_symbol: Mapping[str, Mapping[str, Constant]]

    def of(self, result: Result) -> dict[str, Constant]:
        """Those that are symbols of this result's paper, by symbol."""
        own = self.by_symbol.get(result.paper, {})
        return {
            q.name: own.get(q.name) or self.by_concept[q.concept]
            for q in result.notation.values()
            if q.name in own or q.concept in self.by_concept
        }


@dataclass(frozen=True)
class Question:
    """A setting, and what is to be reached in it.

    Attributes:
        setting: in words.
        target: for the measure.
        measure: what the target is for; "" where the user did not say.
        given: the constants.
        cost: of rounds and gradients in time and bits, by the names of `TIMES` and `WIRE`.
        choose: by name, the range in which a constant may be chosen.
        minimize: what is to be least.
        assume: assumptions that are taken for granted, or "all"; what a result has no assumption for is left out.
        trust: claims that the user answers for.
        participation: the process or the record, or None.
        effort: how many evaluations each search may take, as a multiple of the usual number.
    """

    setting: ProblemClass
    target: float
    measure: str
    given: Given
    cost: Mapping[str, float] = field(default_factory=dict)
    choose: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    minimize: Goal = "rounds"
    assume: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    participation: Participation | None = None
    effort: float = 1.0

    @staticmethod
    def of(document: Mapping[str, Any], participation: Participation | None = None) -> Question:
        """The question that a document (of a TOML file, say) asks; who takes part is read elsewhere.

        Example:
            >>> asked = Question.of({"setting": "non-convex", "target": 0.1, "constants": {"smoothness": 2}})
            >>> asked.target, asked.minimize, {name: float(c.value) for name, c in asked.given.by_concept.items()}
            (0.1, 'rounds', {'smoothness': 2.0})
        """
        for key in document:
            if key not in KEYS:
                raise unknown_name("entry of a setting", str(key), KEYS)
        if not isinstance(document.get("setting"), str):
            raise FedboundsError("setting is missing: what the problem and the clients are like, in words")
        target = _numbers("target", {"target": document.get("target", "missing")})["target"]
        if not target > 0:
            raise FedboundsError(f"target = {target:g} must be positive")
        cost = _cost(_table(document, "cost"))
        times = cost.keys() & {"message", "round", "bandwidth", "gradient"}
        minimize = document.get("minimize", "seconds" if times else "rounds")
        if minimize not in GOALS:
            raise unknown_name("goal to minimize", str(minimize), GOALS)
        measure = document.get("measure", "")
        if not isinstance(measure, str):
            raise FedboundsError(f"measure = {quote(measure)} must say in words what the target is for")
        return Question(
            ProblemClass.of(document["setting"]),
            target,
            measure.strip(),
            _read_given(_table(document, "constants"), _table(document, "estimated"), cost),
            cost,
            _ranges(_table(document, "choose")),
            minimize,
            names_of("assume", document.get("assume", ())),
            names_of("trust", document.get("trust", ())),
            participation,
            check_number("effort", document.get("effort", 1.0)),
        )


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, Mapping):
        raise FedboundsError(f"{key} = {quote(table)} must be a table, [{key}]")
    return table


def _numbers(where: str, table: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for name, value in parse_assignments(table).items():
        if isinstance(value, np.ndarray) or not np.isfinite(value):
            raise FedboundsError(f"{name} = {quote(table[name])} in {where} must be one number")
        found[name] = float(value)
    return found


def _cost(table: Mapping[str, Any]) -> dict[str, float]:
    legal = {**TIMES, **WIRE}
    for name in table:
        if name not in legal:
            raise unknown_name("cost", str(name), legal)
    cost = _numbers("[cost]", table)
    for name, value in cost.items():
        if name in WIRE:
            check_count(name, value, why=WIRE[name])
        elif value < 0 or (name == "bandwidth" and value == 0):
            raise FedboundsError(f"{name} = {value:g} must be positive: {legal[name]}")
    if "round" in cost and (both := sorted(cost.keys() & {"message", "bandwidth"})):
        raise FedboundsError(f"round and {' and '.join(both)} are given: round stands in place of the others")
    return cost


def _ranges(table: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, ends in table.items():
        values = parse_assignments({name: ends})[name]
        if np.shape(values) != (2,):
            raise FedboundsError(f"[choose] {name} = {quote(ends)} must be two numbers, as [1, 100]")
        low, high = np.ravel(values).tolist()
        if not low <= high:
            raise FedboundsError(f"[choose] {name} = [{low:g}, {high:g}] is empty; it reads [low, high]")
        concept_of(str(name))
        found[str(name)] = (low, high)
    return found


def _read_given(known: Mapping[str, Any], estimated: Mapping[str, Any], cost: Mapping[str, float]) -> Given:
    by_concept: dict[str, Constant] = {}
    by_symbol: dict[str, dict[str, Constant]] = {}

    def note(concept: str, constant: Constant, name: str) -> None:
        if concept in by_concept and not np.array_equal(by_concept[concept].value, constant.value):
            raise FedboundsError(f"{name} ({concept.replace('_', ' ')}) is given twice, unequal")
        by_concept[concept] = constant

    tables: tuple[tuple[Mapping[str, Any], Source], ...] = ((known, "given"), (estimated, "estimated"))
    for table, source in tables:
        plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
        for name, value in parse_assignments(plain).items():
            note(concept_of(name), Constant(value, source), name)
        for paper, symbols in table.items():
            if not isinstance(symbols, Mapping):
                continue
            if paper not in paper_names():
                raise unknown_name("paper", str(paper), paper_names())
            notations = [result.notation for result in load_paper(str(paper)).results]
            for name, value in parse_assignments(symbols).items():
                quantity = next(filter(None, (notation.resolve(name) for notation in notations)), None)
                if quantity is None:
                    raise unknown_name(f"constant of {paper}", name, [n for notation in notations for n in notation])
                by_symbol.setdefault(str(paper), {})[quantity.name] = Constant(value, source)
    if "dimension" in cost and "parameters" not in by_concept:
        by_concept["parameters"] = Constant(cost["dimension"], "given", "the dimension")
    return Given(by_concept, by_symbol)


def concept_of(name: str) -> str:
    """The concept that this name is, or that it is a symbol for."""
    concepts: set[str] = set()
    for references in (False, True):  # the letters of the papers first: reference theorems reuse them
        meant: dict[str, list[str]] = {}
        for one in papers(references=references):
            for notation in {id(result.notation): result.notation for result in one.results}.values():
                concepts |= {quantity.concept for quantity in notation.values()}
                if name in notation:
                    meant.setdefault(notation[name].concept, []).append(one.key)
        if name in concepts:
            return name
        if meant:
            break
    else:
        raise unknown_name("constant", name, concepts)
    if len(meant) > 1:
        each = ", ".join(f"{concept} in {' and '.join(where)}" for concept, where in meant.items())
        raise FedboundsError(f"{name} is {each}: give it by what it is, or in a table [constants.PAPER]")
    return next(iter(meant))


def describe_missing(names: Iterable[str], result: Result, form: Form) -> dict[str, str]:
    """Symbols with their meaning, each with the concept by which it may be given, and what would do in its place."""

    def concept(name: str) -> str:
        return result.notation[name].concept

    found = {}
    for name in names:
        others = [" and ".join(map(concept, rule.inputs)) for rule in form.derived if rule.name == name]
        instead = f"; it follows from {', or from '.join(others)} too" if others else ""
        found[name] = f"{result.notation[name].meaning} ({concept(name)}){instead}"
    return found
