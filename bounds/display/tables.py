r"""Tables of answers, for notebooks and papers: HTML that is readable on dark and on light, LaTeX, and pandas.

An answer is `Shown` if it says what its tables are; a notebook then shows them, with formulas typeset. Nothing here has
a color of its own, so that text keeps that of the page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd

LINE = "1px solid rgba(128, 128, 128, 0.4)"
CELL = f"text-align: left; vertical-align: top; padding: 0.2em 0.8em; border-bottom: {LINE}; background: transparent"
TABLE = "border-collapse: collapse; margin: 0.6em 0; color: inherit; font: inherit"
MOST_ROWS = 60
TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "\u00b2": "$^2$", "\u00b3": "$^3$",
}  # fmt: skip
SIGNS = {"<=": r"$\le$", ">=": r"$\ge$"}


def tex(text: str) -> str:
    r"""Plain text as LaTeX prints it.

    Example:
        >>> print(tex("|grad F_n(x)|^2 <= G^2"))
        $|$grad F\_n(x)$|$\textasciicircum{}2 $\le$ G\textasciicircum{}2
    """
    parts = [text]
    for sign in SIGNS:
        parts = [piece for part in parts for piece in _split_at(part, sign)]
    return "".join(SIGNS.get(part) or "".join(TEX.get(character, character) for character in part) for part in parts)


def _split_at(text: str, sign: str) -> list[str]:
    first, *rest = text.split(sign)
    return [first, *(piece for part in rest for piece in (sign, part))] if text not in SIGNS else [text]


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Example:
        >>> table = Table("terms", ("term", "value"), [("initial gap", 0.25)])
        >>> print(table.latex)
        \\begin{tabular}{ll}
        term & value \\\\ \\hline
        initial gap & 0.25
        \\end{tabular}
    """

    caption: str  # what it shows
    columns: Sequence[str]  # their names
    rows: Sequence[Sequence[Any]]  # one value for each column
    formulas: tuple[str, ...] = ()  # the columns that hold LaTeX

    @property
    def html(self) -> str:
        """An HTML table that takes its colors from the page; formulas as MathJax finds them."""
        import html  # takes its time

        heads = "".join(f'<th style="{CELL}">{html.escape(name)}</th>' for name in self.columns)
        lines = []
        for row in self.rows[:MOST_ROWS]:
            lines.append("".join(f'<td style="{CELL}">{html.escape(cell)}</td>' for cell in self._cells(row, str)))
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        more = len(self.rows) - MOST_ROWS
        left = f"<p>... and {more} more rows: <code>to_dataframe()</code></p>" if more > 0 else ""
        caption = f'<caption style="text-align: left">{html.escape(self.caption)}</caption>' if self.caption else ""
        return f'<table style="{TABLE}">{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{left}'

    @property
    def latex(self) -> str:
        """A LaTeX tabular."""
        lines = [" & ".join(self._cells(row, tex)) for row in self.rows]
        head = " & ".join(map(tex, self.columns)) + r" \\ \hline"
        body = " \\\\\n".join(lines)
        return f"\\begin{{tabular}}{{{'l' * len(self.columns)}}}\n{head}\n{body}\n\\end{{tabular}}"

    def _cells(self, row: Sequence[Any], plain: Callable[[str], str]) -> list[str]:
        """The cells of a row: formulas between dollars, everything else as plain text is written."""
        named = zip(self.columns, row, strict=True)
        return [f"${cell}$" if name in self.formulas and cell else plain(format_cell(cell)) for name, cell in named]

    def to_dataframe(self) -> pd.DataFrame:
        """The rows as a pandas table."""
        return _pandas().DataFrame([list(row) for row in self.rows], columns=list(self.columns))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("empirical", "pandas") from None
    return pandas


def frame(text: str) -> pd.DataFrame:
    """A table in CSV as a pandas one."""
    import io

    return _pandas().read_csv(io.StringIO(text), keep_default_na=False)


class Shown(ABC):
    """What a notebook shows as tables; the first is the one that `to_dataframe` gives."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """Its tables, the main one first."""

    @property
    def headline(self) -> str:
        """What stands above the tables, in plain text ("" for nothing)."""
        return ""

    def _repr_html_(self) -> str:
        import html

        above = f'<p style="white-space: pre-line">{html.escape(self.headline)}</p>' if self.headline else ""
        return f"<div>{above}{''.join(table.html for table in self.tables() if table.rows)}</div>"

    def _repr_latex_(self) -> str:
        return "\n\n".join(
            filter(None, [tex(self.headline).replace("\n", "\n\n"), *(t.latex for t in self.tables() if t.rows)])
        )

    def to_dataframe(self) -> pd.DataFrame:
        """The main table as a pandas one."""
        return self.tables()[0].to_dataframe()


def format_cell(value: Any) -> str:
    """A value of a cell, for people: numbers with six digits, yes and no, lists with commas."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {format_cell(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_cell, value[:8])) + (f", ... ({len(value)} values)" if len(value) > 8 else "")
    return number(value)


def facts(document: Mapping[str, Any], caption: str = "") -> Table:
    """What a document says, one line for each entry that says something; what is itself a document is left out."""
    kept = [(name.replace("_", " "), value) for name, value in document.items() if name not in ("evaluation", "status")]
    return Table(caption, ("", "value"), [row for row in kept if row[1] is not None and format_cell(row[1]) != ""])


class Answer(Shown):
    """An answer whose document is its table."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Its document."""

    def tables(self) -> Sequence[Table]:
        """Its document as one table."""
        document = self.to_dict()
        return (facts(document, str(document["status"])),)
