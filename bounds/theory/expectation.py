"""Which statement is about a run with random participation: the result in expectation over participation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fedbounds.bounds.theory.argument_checks import names_of
from fedbounds.bounds.theory.measures import EXPECTED
from fedbounds.bounds.theory.registry import paper, paper_names
from fedbounds.bounds.theory.result import Form, Result

GIVEN, PREFIX = "participation", "expected-"


@dataclass(frozen=True)
class ExpectedStatement:
    """A form of a result, and what it replaces."""

    result: Result  # result, form: the statement that a run is compared with
    form: Form
    asked: str  # the key of the result that the user named
    doubts: tuple[str, ...] = ()  # why it is not proved for the left-hand side that the run measures
    notes: tuple[str, ...] = ()  # which result is compared, where it is another one

    @property
    def given_participation(self) -> bool:
        """Whether it holds given the participation, with constants that bound every round."""
        return (self.form.measure or self.result.measure).given == GIVEN

    def assumed(self, assume: str | Iterable[str]) -> tuple[str, ...]:
        """Assumptions under this form's names: what holds given the participation holds in expectation over it."""
        own = {a.name for a in self.form.assumptions}
        given = names_of("assume", assume)
        return tuple(PREFIX + name if name not in own and PREFIX + name in own else name for name in given)

    def trusted(self, trust: str | Iterable[str]) -> tuple[str, ...]:
        """Claims under this result's key."""
        given = names_of("trust", trust)
        return tuple(self.result.key + t[len(self.asked) :] if t.startswith(self.asked) else t for t in given)


def expected_statement(statement: ExpectedStatement) -> ExpectedStatement:
    """The statement in expectation over participation, for one that holds given the participation.

    Where its paper proves none for this form, the form stays, with the reason why it does not cover the run.

    Source: Wang & Ji 2022, Section 3, where expectations are given the participation.
    """
    result, form = statement.result, statement.form
    expected = _find_result(result.key + EXPECTED) if _find_result(result.key) is result else None
    forms = [] if expected is None else [own.name for own in expected.forms]
    if expected is not None and form.name in forms:
        note = f"participation is random: compared with {expected.key}, the result in expectation over participation"
        return replace(statement, result=expected, form=expected.form(form.name), notes=(note,))
    why = f"not proved for random participation: {result.key} [{form.name}] holds given the participation"
    instead = f"; give form {' or '.join(forms)}" if forms else "; give a record of the participation"
    return replace(statement, doubts=(f"{why}{instead}",))


def _find_result(key: str) -> Result | None:
    """The result with this key, if there is one."""
    name = key.partition("/")[0]
    known = paper(name).results if name in paper_names() else ()
    return next((result for result in known if result.key == key), None)
