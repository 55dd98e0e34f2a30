"""Statements: what a paper says besides its results and is worth finding: definitions, assumptions, displayed
equations, remarks without a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedbounds.bounds.inputs.data_files import read_data_file
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


def read_statements(paper: str, module: str) -> tuple[Statement, ...]:
    """The statements of a paper in `statements.toml`, which lies beside a module given by its `__file__`."""
    document = read_data_file(module)

    def statement(
        name: str, place: str, equations: Sequence[str] = (), claims: Sequence[str] = (), **texts: Any
    ) -> Statement:
        source = Source(document["citation"], place, tuple(equations))
        return Statement(f"{paper}/{name}", source=source, claims=tuple(claims), **texts)

    return tuple(statement(**entry) for entry in document["statement"])
