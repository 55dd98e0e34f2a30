"""Statements: what a paper says besides its results and is worth finding: definitions, assumptions, displayed
equations, remarks without a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fedbounds.bounds.theory.result import Source

StatementKind = Literal["definition", "assumption", "equation", "remark"]


@dataclass(frozen=True)
class Statement:
    r"""One statement of a paper that is no result with a right-hand side to evaluate.

    Args:
        key: "paper/name", e.g. "arbitrary-participation/equation-12".
        kind: definition, assumption, equation or remark.
        title: one phrase.
        source: paper, number, equations.
        says: what it says, in words and formulas without LaTeX.
        latex: the formula as the paper displays it ("" if it has none).
        claims: ids within the paper of claims that state or prove it ("lemma-c.1/L1.4"), and of errata and
            slips of wording about it or its use ("erratum/..."); these say nothing of its own truth.
        note: what a reader should know, e.g. where it is used.

    Example:
        >>> Statement("textbook/equation-1", "equation", "Young", Source("textbook", "Section 1", ("1",)),
        ...           "|a + b|^2 <= 2|a|^2 + 2|b|^2").name
        'equation-1'
    """

    key: str
    kind: StatementKind
    title: str
    source: Source
    says: str
    latex: str = ""
    claims: tuple[str, ...] = ()
    note: str = ""

    @property
    def paper(self) -> str:
        """The part of the key before the slash."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """The part of the key after the slash."""
        return self.key.partition("/")[2]


@dataclass(frozen=True)
class Body:
    """The text of a statement; the numbers of its equations, and its claims, are separated by blanks."""

    says: str
    latex: str = ""
    number: str = ""
    claims: str = ""
    note: str = ""


@dataclass(frozen=True)
class PaperStatements:
    """Builds the statements of one paper from tables.

    Example:
        >>> book = PaperStatements("textbook", "Author 2000", "Appendix A")  # where its proofs stand
        >>> book.lines({("7 8", "Young"): Body("|a + b|^2 <= 2|a|^2 + 2|b|^2", claims="lemma-1/7")})[0].key
        'textbook/equation-7'
    """

    paper: str
    citation: str
    proofs: str = ""

    def table(self, entries: Mapping[tuple[str, StatementKind, str, str], Body]) -> tuple[Statement, ...]:
        """Statements by name, kind, title and place."""
        return tuple(self._statement(*heading, body, body.number) for heading, body in entries.items())

    def lines(self, entries: Mapping[tuple[str, str], Body]) -> tuple[Statement, ...]:
        """Displayed lines of a proof by their numbers and title."""
        return tuple(
            self._statement(f"equation-{number.partition(' ')[0]}", "equation", title, self.proofs, body, number)
            for (number, title), body in entries.items()
        )

    def _statement(self, name: str, kind: StatementKind, title: str, place: str, body: Body, number: str) -> Statement:
        source = Source(self.citation, place, tuple(number.split()))
        claims = tuple(body.claims.split())
        return Statement(f"{self.paper}/{name}", kind, title, source, body.says, body.latex, claims, body.note)
