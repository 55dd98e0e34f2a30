"""The largest ratios found: the committed table of one paper, how near each of its bounds an adversary has come.

One row for every form of every result, beside the paper's ledger: the largest left-hand side over right-hand side that
`fedbounds adversary` found, the budget it had, and the instance, which can be replayed; or why there is no such number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.ledger import ledger_path
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import DOCUMENT, Output, write_output
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.bounds.theory.registry import paper_names
from fedbounds.bounds.theory.result import Form, Result

NAME = "worst_ratios.json"
SCHEMA = "fedbounds.worst-ratios/1"
LARGEST = 2**24  # bytes
Row = dict[str, Any]


def worst_ratios_path(paper: str) -> Path:
    """Where the paper's table lies: beside its ledger."""
    return ledger_path(paper, NAME)


@lru_cache(maxsize=16)
def worst_ratios(paper: str) -> Mapping[tuple[str, str], Row]:
    """The committed rows of a paper, by key and form; none where it has no table."""
    return {(row["key"], row["form"]): row for row in read_rows(worst_ratios_path(paper), noted=False)}


def worst_ratio(result: Result, form: Form) -> Row | None:
    """The committed row of one form as it is; None where there is none, or the form has changed since."""
    if result.paper not in paper_names():
        return None
    row = worst_ratios(result.paper).get((result.key, form.name))
    return row if row and row["claim"] == ResultForm(result, form).claim().hash else None


def read_rows(path: Path, *, noted: bool = True) -> list[Row]:
    """The rows of such a file; none where there is no file."""
    if not path.exists():
        return []
    rows = read_document(path, noted=noted).get("rows")
    if not isinstance(rows, list) or any(not isinstance(row, dict) for row in rows):
        raise FedboundsError(f"{path} is no table of largest ratios; fedbounds adversary --paper P writes one")
    return rows


def read_document(path: Path, *, noted: bool = True) -> Row:
    """A JSON document of an instance that was found, or of many; see `read_rows`."""
    text = read_text(path, str(path), LARGEST, noted=noted)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FedboundsError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise FedboundsError(f"{path}: no JSON object, as fedbounds adversary writes one")
    return document


def table_output(path: Path) -> Output:
    """A table as a file."""
    return Output(path, DOCUMENT + rb"fedbounds\.worst-ratios/")


def write_rows(path: Path, paper: str, rows: Sequence[Row], force: bool = False) -> None:
    """Write a table, a row a line; see `fedbounds.bounds.inputs.output_files.write_output`."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    head = f'{{"schema":"{SCHEMA}","paper":"{paper}","rows":[\n'
    write_output(table_output(path), f"{head}{lines}\n]}}\n".encode(), force)


def describe_row(row: Row) -> str:
    """A row in words.

    Example:
        >>> describe_row({"ratio": None, "why": "order only"})
        'no left/bound: order only'
    """
    if row["ratio"] is None:
        return f"no left/bound: {row['why']}"
    ratio = row["ratio"] if isinstance(row["ratio"], str) else f"{row['ratio']:.4g}"
    status = "" if row["status"] == "below" else f", {row['status']}"
    return f"largest found left/bound {ratio}{status} ({row['left_side']}; {row['budget']['instances']} instances)"
