"""Statements: what a paper says besides its results and is worth finding: definitions, assumptions, displayed
equations, remarks without a bound.
"""

from __future__ import annotations

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
        claims: ids within the paper of claims on trial that state or prove it ("lemma-c.1/L1.4"), and of errata and
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
class Sayings:
    """Writes down what one paper says.

    Args:
        paper: its name here.
        citation: authors and year.
        proofs: where its proofs stand.

    Example:
        >>> book = Sayings("textbook", "Author 2000", "Appendix A")
        >>> book.line("7 8", "Young", "|a + b|^2 <= 2|a|^2 + 2|b|^2", "", "lemma-1/7").key
        'textbook/equation-7'
    """

    paper: str
    citation: str
    proofs: str = ""

    def said(
        self,
        name: str,
        kind: StatementKind,
        title: str,
        where: str,
        says: str,
        latex: str = "",
        number: str = "",
        claims: tuple[str, ...] = (),
        note: str = "",
    ) -> Statement:
        """One statement; the numbers of its equations are separated by blanks."""
        source = Source(self.citation, where, tuple(number.split()))
        return Statement(f"{self.paper}/{name}", kind, title, source, says, latex, claims, note)

    def line(self, number: str, title: str, says: str, latex: str, claims: str, note: str = "") -> Statement:
        """A displayed line of a proof, with the steps that state or prove it."""
        name = f"equation-{number.partition(' ')[0]}"
        return self.said(name, "equation", title, self.proofs, says, latex, number, tuple(claims.split()), note)
