"""What a rule may say of itself beyond what it trusts and how it checks; each word of it is declared here once."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import sympy as sp

from fedbounds.bounds.audit.claim import Relation

Values = tuple[tuple[sp.Symbol, sp.Expr], ...]


@runtime_checkable
class Equates(Protocol):
    """A rule that can show an equality."""

    @property
    def equalities(self) -> bool:
        """Whether it does."""
        ...


@runtime_checkable
class Gives(Protocol):
    """A rule that says something which it does not show; the step trusts it until it has been tried on instances."""

    @property
    def gives(self) -> str:
        """What: what an assumption says here, how many steps there are...; empty if nothing."""
        ...


@runtime_checkable
class Specializes(Protocol):
    """A rule that gives values to constants: the conditions of all that it rests on are discharged at these."""

    @property
    def values(self) -> Values:
        """Symbol and value."""
        ...


@runtime_checkable
class Grows(Protocol):
    """A rule about what happens in the limit: conditions that hold from somewhere on are no conditions."""

    @property
    def grows(self) -> sp.Symbol:
        """What tends to infinity."""
        ...


@runtime_checkable
class Prescribes(Protocol):
    """A rule that sets step sizes, or a count."""

    @property
    def prescribes(self) -> Values:
        """Symbol and value, as the result must prescribe it."""
        ...


@runtime_checkable
class Discharges(Protocol):
    """A rule that makes hypotheses of its first premise true by itself."""

    @property
    def discharges(self) -> tuple[tuple[str, Relation], ...]:
        """Name of an assumption, and what it says."""
        ...


@runtime_checkable
class Hides(Protocol):
    """A rule that ends in an O(.)."""

    @property
    def hidden(self) -> tuple[sp.Symbol, ...]:
        """The symbols that the O may hide."""
        ...


def equates(rule: object) -> bool:
    """Whether a rule can show an equality."""
    return isinstance(rule, Equates) and rule.equalities


def given(rule: object) -> str:
    """What a rule says without showing it; empty if nothing."""
    return rule.gives if isinstance(rule, Gives) else ""


def prescribes(rule: object) -> Values:
    """The step sizes that a rule sets."""
    return rule.prescribes if isinstance(rule, Prescribes) else ()


def specializes(rule: object) -> bool:
    """Whether a rule gives values to constants, or lets one grow, so that conditions below it are discharged here."""
    return isinstance(rule, Grows) or (isinstance(rule, Specializes) and bool(rule.values))
