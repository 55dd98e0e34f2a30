r"""What papers say of other results: that theirs has the same rate, a faster one, or needs less.

The statements of a paper are in `bounds/papers/<paper>/improvements.toml`. Each is evaluated against the result that
it names: rates in the number of rounds and of participants at the best step sizes, or assumptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from fedbounds.bounds.asymptotics.rates import Rate, rate
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.data_files import read_data_file
from fedbounds.bounds.theory.registry import PAPERS, load, paper_module
from fedbounds.bounds.theory.result import Result

Relation = Literal["same rate", "faster", "without"]
Outcome = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class Improvement:
    """A statement of a paper about another result.

    Args:
        result, form: of the paper.
        relation: "same rate", "faster" (in rounds, or in participants at the same power of rounds), or "without" an
            assumption of the other.
        against: the key of the other result; "" if it is not in the registry.
        says: the statement in short.
        source: where the paper says it.
        assumption: for "without", the name of the assumption of the other.
        note: what else is known of it.
    """

    result: str
    form: str
    relation: Relation
    says: str
    source: str
    against: str = ""
    assumption: str = ""
    note: str = ""

    def __str__(self) -> str:
        outcome, why = self.judged
        against = f" against {self.against}" if self.against else ""
        note = f". {self.note}" if self.note else ""
        return f"{outcome}: {self.says} ({self.result} [{self.form}]{against}; {self.source}): {why}{note}"

    @cached_property
    def judged(self) -> tuple[Outcome, str]:
        """Whether it holds, and why."""
        if not self.against:
            return "unknown", "the other result is not in the registry"
        mine, other = load(self.result), load(self.against)
        form, against = mine.form(self.form), other.form()
        if form.refuted_by:
            return "fails", f"{self.result} [{form.name}] is refuted by erratum {form.refuted_by}"
        if self.relation == "without":
            names = [{a.name for a in each.assumptions} for each in (form, against)]
            if self.assumption not in names[1]:
                return "unknown", f"{self.against} does not list {self.assumption}"
            return ("fails" if self.assumption in names[0] else "holds"), f"assumption {self.assumption}"
        try:
            rates = self._rates
        except FedboundsError as error:
            return "unknown", str(error)
        powers = [(one.power, one.participants) for one in rates]
        why = f"{_in_words(rates[0], mine)} against {_in_words(rates[1], other)}"
        if any(one.stays for one in rates):
            return "unknown", f"a term does not fall with the rounds: {why}"
        if None in powers[0] or None in powers[1]:
            same = powers[0][0] == powers[1][0]
            return ("holds" if same and self.relation == "same rate" else "unknown"), f"in rounds: {why}"
        holds = powers[0] == powers[1] if self.relation == "same rate" else powers[0] > powers[1]
        return ("holds" if holds else "fails"), why

    @cached_property
    def _rates(self) -> tuple[Rate, Rate]:
        """The rates of its form and of the other result."""
        mine, other = load(self.result), load(self.against)
        return rate(mine, mine.form(self.form)), rate(other, other.form())

    @property
    def shown_relation(self) -> str:
        """The relation in words; of rates whose power of participants is known of one alone, that they differ in it."""
        if self.relation != "same rate" or not self.against:
            return self.relation
        try:
            mine, other = self._rates
        except FedboundsError:
            return self.relation
        if mine.power != other.power or (mine.participants is None) == (other.participants is None):
            return self.relation
        return f"same power of {mine.rounds}, {'without' if mine.participants is None else 'with'} the speed-up"


def _in_words(one: Rate, result: Result) -> str:
    """A rate in the letters of its result."""
    counts = [result.notation.resolve(name) for name in ("participating_clients", "clients")]
    many = next((quantity.name for quantity in counts if quantity), "")
    return one.order if one.participants is None else f"{one.order} {many}^(-{one.participants})"


def improvements(key: str = "") -> Iterator[Improvement]:
    """What the papers say of other results: of all, or of one, whichever side it is on."""
    for name in PAPERS:
        place = Path(str(paper_module(name).__file__)).with_name("improvements.toml")
        for row in read_data_file(str(place))["improvement"]:
            one = Improvement(**row)
            if key in ("", one.result, one.against):
                yield one
