"""The protocol of a paper's account of participation."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.bounds.search.rounds_answers import Between, Largest, Never, Reached
from fedbounds.bounds.theory.registry import merge_tables
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.participation import Process
from fedbounds.empirical.participation.mixing import Presences

State = dict[str, np.ndarray]
Name = str | int  # of a client
OF_LAW = (
    "its constants are expectations over participation, which no record gives: declare a stationary process whose "
    "weights sum to one, or ask the result given the participation"
)


@dataclass(frozen=True, eq=False)
class Declared:
    """The declaration before the first round."""

    clients: int  # N
    process: Process | None  # the declared process, or None
    intervals: tuple[int, ...]  # the lengths P of accounted windows, rising from 1
    cutoff: float  # K of FedAU's weights
    offsets: np.ndarray | None  # grad F_n - grad f, the same at every x, (clients, dimension), or None if unknown


@dataclass(frozen=True)
class AccountQuestion:
    """A question about a result."""

    interval: int  # P of the analysis, one of those accounted
    rounds: int  # the number of rounds so far
    given: Mapping[str, float]  # the user's constants, by concept
    ahead: bool = False  # whether it is about future rounds, too


@dataclass(frozen=True)
class AccountFacts:
    """The facts of an account for a result."""

    constants: Mapping[str, Constant] = field(default_factory=dict)  # by concept
    checked: Mapping[str, bool] = field(default_factory=dict)  # assumption name to whether the rounds so far satisfy it
    implied: frozenset[str] = frozenset()  # names of assumptions that hold if the declared process is the true one
    trusting: bool = False  # whether a constant comes from the declared process and not from the rounds
    empty: int = 0  # rounds without participants, which change nothing and are not counted in the result's rounds
    outside: str = ""  # why results that assume `weights` do not cover the rounds so far ("" if they do)


class _Read(dict[str, float]):
    """Numbers by concept, and which of them were read."""

    def __init__(self, numbers: Mapping[str, float]) -> None:
        super().__init__(numbers)
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


@dataclass(frozen=True)
class Remaining:
    """The number of further rounds for a target.

    Attributes:
        answer: for the whole run, as `fedbounds.rounds` gives it.
        seen: rounds so far.
        more: further rounds, maybe 0; None if no number of rounds is known to reach the target.
        guarantee: whether the bound there is one.
        why_not: the reasons why it is not.
    """

    answer: Reached | Never | Largest | Between
    seen: int
    more: int | None
    guarantee: bool
    why_not: tuple[str, ...]
    _of: str = ""
    _notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line; `print` adds the reasons."""
        return f"<Remaining of {str(self).splitlines()[0]}>"

    def __str__(self) -> str:
        """The answer, whether it is a guarantee, and why not."""
        left = "no number of rounds is known to reach the target" if self.more is None else f"{self.more} more rounds"
        lines = [f"{self._of}: {left} after {self.seen}   guarantee: {'yes' if self.guarantee else 'no'}"]
        return "\n".join([*lines, *(f"  {note}" for note in self._notes), *(f"  - {why}" for why in self.why_not)])


class Account(ABC):
    """One paper's account of participation, of a size that does not grow with the rounds.

    Attributes:
        state: arrays by name, changed in place; all that must be saved.
    """

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self.state: State = {}

    @abstractmethod
    def add(self, t: int, present: np.ndarray, weights: np.ndarray) -> None:
        """Add round t."""

    @abstractmethod
    def quantities(self, rounds: int) -> dict[str, float]:
        """The paper's quantities for the rounds so far, by name."""

    @abstractmethod
    def facts(self, asked: AccountQuestion) -> AccountFacts:
        """The facts of the rounds so far, or of the declared process, for a result."""

    @abstractmethod
    def inconsistency(self, presences: Presences) -> str:
        """Why the state cannot be of rounds with these presences, as a message ("" if it can)."""


def accounts(declared: Declared) -> dict[str, Account]:
    """A new account of every paper that has one (`empirical.papers.<paper>.accounting:ACCOUNT`).

    Example:
        >>> list(accounts(Declared(3, None, (1,), 50, None)))
        ['arbitrary-participation', 'fedau']
    """
    found = {}
    for paper, kind in merge_tables("empirical", "accounting", lambda module: {module.PAPER: module.ACCOUNT}).items():
        if not (isinstance(kind, type) and issubclass(kind, Account)):
            raise FedboundsError(
                f"the paper {paper}: ACCOUNT must be a fedbounds.empirical.monitoring.account_protocol.Account"
            )
        found[paper] = kind(declared)
    return found


def sets_steps_by_rounds(result: Result, form: Form) -> bool:
    """Whether a form sets step sizes by the number of rounds."""
    counters = {q.name for q in result.notation.values() if q.concept == "rounds"}
    return any(str(symbol) in counters for step in form.prescribes.values() for symbol in step.free_symbols)


def checksum(document: Mapping[str, Any]) -> str:
    """Of everything in a saved account."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def client_names(clients: int | Sequence[Name]) -> tuple[Name, ...]:
    """The names of N clients, or those that are given."""
    if not isinstance(clients, Sequence) or isinstance(clients, str):
        return tuple(range(check_count("clients", clients, high=2**31)))
    for n, name in enumerate(clients):
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise FedboundsError(f"clients[{n}] = {quote(name)} must be a name: a string or a whole number")
    if len(set(clients)) < len(clients) or not clients:
        raise FedboundsError("clients must have names of their own, at least one")
    return tuple(clients)


def assumptions_of_form(form: Form, checked: Mapping[str, bool]) -> dict[str, bool]:
    """Those findings that are about assumptions of a form."""
    names = {a.name for a in form.assumptions}
    return {name: holds for name, holds in checked.items() if name in names}


def analysis_interval(known: tuple[int, ...], interval: int | None, given: object) -> int:
    """P: the argument, the given constant, or the only one that is accounted."""
    P = None if given is None else check_count("P", float(np.asarray(given)))
    if interval is not None and P is not None and interval != P:
        raise FedboundsError(f"interval = {interval} and P = {P} are given; give one of them")
    if interval is None and P is None and len(known) > 2:
        raise FedboundsError(f"give interval=; accounted are {', '.join(map(str, known))}")
    return check_count("interval", interval or P or known[len(known) - 1])
