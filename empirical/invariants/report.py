"""The report of a search for broken invariants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from fedbounds.bounds.errors import unknown_name
from fedbounds.empirical.invariants.scope import InvariantSides


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A case in which an invariant does not hold.

    Args:
        case: the case that was run; `case.models(run)` runs it again, or `case.weights(run)` for weights.
        message: the fault, in one line.
        sides: the two sides that should be equal; None if the run did not return models.
        drawn: the original case, from which the invariant made `case`.
    """

    case: Any
    message: str
    sides: InvariantSides | None = None
    drawn: Any = None

    def __str__(self) -> str:
        lines = [*str(self.case).splitlines(), self.message]
        if self.sides is not None and self.sides.against is not None:
            here, there = lines, str(self.sides.against).splitlines()
            changed = [f"  {line}" for line in there if line not in here]
            via = f", {self.sides.via}," if self.sides.via else ""
            lines.append(f"expected is what it gives{via} for " + ("the same with" if changed else "the same again"))
            lines += changed
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class InvariantVerdict:
    """The verdict on one invariant.

    Args:
        name: of the invariant.
        statement: the invariant in one sentence.
        examples: the number of cases in which it held.
        counterexample: the smallest that was found, or None.
        skipped: why it was not tested; None if it was.
        not_compared: for a comparison with the reference that did not take place, what to do about it; None otherwise.
    """

    name: str
    statement: str
    examples: int
    counterexample: Counterexample | None = None
    skipped: str | None = None
    not_compared: str | None = None

    @property
    def status(self) -> str:
        """In words: "held", "broken", "skipped" or "not compared"."""
        if self.not_compared is not None:
            return "not compared"
        if self.skipped is not None:
            return "skipped"
        return "held" if self.counterexample is None else "broken"

    def __str__(self) -> str:
        if self.not_compared is not None:
            return f"NOT COMPARED  {self.name}: {self.not_compared}"
        if self.skipped is not None:
            return f"skipped {self.name}: {self.skipped}"
        if self.counterexample is None:
            return f"held    {self.name} ({self.examples} examples)"
        lines = [f"BROKEN  {self.name}", self.statement, "Smallest counterexample found:"]
        return "\n        ".join([*lines, *(f"  {line}" for line in str(self.counterexample).splitlines())])


class BrokenInvariant(AssertionError):
    """Some invariant does not hold, or the comparison with the reference was not made; the message is the report."""


@dataclass(frozen=True, eq=False)
class Report:
    """A verdict for each invariant; prints as one block, and has no truth value.

    Args:
        verdicts: one for each invariant.
        cause: the likely cause of broken invariants, or None.
        without: features that the run does not use, so that the cases do not have them.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.invariants import check_invariants
        >>> from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
        >>> report = check_invariants(generalized_fedavg, invariants=["translation", "rotation"], examples=10)
        >>> print(report)
        2 invariants, none broken
        held    translation (10 examples)
        held    rotation (10 examples)
        >>> report["rotation"].status, report.passed
        ('held', True)
    """

    verdicts: tuple[InvariantVerdict, ...]
    cause: str | None = None
    without: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[InvariantVerdict, ...]:
        """The verdicts of the invariants that do not hold."""
        return tuple(verdict for verdict in self.verdicts if verdict.counterexample is not None)

    @property
    def skipped(self) -> tuple[InvariantVerdict, ...]:
        """The verdicts of the invariants that do not apply."""
        return tuple(verdict for verdict in self.verdicts if verdict.skipped is not None)

    @property
    def not_compared(self) -> tuple[InvariantVerdict, ...]:
        """The verdicts of comparisons with the reference that were required and not made."""
        return tuple(verdict for verdict in self.verdicts if verdict.not_compared is not None)

    @property
    def passed(self) -> bool:
        """Whether nothing is broken and every comparison with the reference was made."""
        return not self.broken and not self.not_compared

    def raise_if_broken(self) -> None:
        """For tests: raise unless the report is a pass.

        Raises:
            BrokenInvariant: some invariant does not hold, or the comparison with the reference was not made; the
                message is the whole report.
        """
        if not self.passed:
            raise BrokenInvariant(str(self))

    def __getitem__(self, name: str) -> InvariantVerdict:
        verdicts = {verdict.name: verdict for verdict in self.verdicts}
        if name not in verdicts:
            raise unknown_name("invariant", str(name), verdicts)
        return verdicts[name]

    def __bool__(self) -> NoReturn:
        raise TypeError("a report has no truth value; use report.raise_if_broken() or report.passed")

    def __str__(self) -> str:
        lines = [f"{len(self.verdicts)} invariants, {len(self.broken) or 'none'} broken"]
        lines[0] += f", {len(self.skipped)} skipped" if self.skipped else ""
        lines[0] += "".join(f", NOT COMPARED with the reference: {each.not_compared}" for each in self.not_compared)
        if self.without:
            lines.append(
                f"cases have {', '.join(self.without)}: the run names no such parameter, and values change nothing"
            )
        if self.cause:
            lines.append(f"likely cause: {self.cause}")
        return "\n".join([*lines, *(str(verdict) for verdict in self.verdicts)])
