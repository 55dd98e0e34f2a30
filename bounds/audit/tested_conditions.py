"""The tested conditions: the committed table of one paper, who notices that a condition of a form has been changed.

One row for every condition of every form, beside the paper's ledger; `make audit-conditions` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fedbounds.bounds.audit.ledger import ledger_path
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.bounds.theory.registry import paper_names
from fedbounds.bounds.theory.result import Form, Result

NAME, SCHEMA, LARGEST = "conditions.json", "fedbounds.conditions/1", 2**22


@dataclass(frozen=True)
class Noticed:
    """What became of one condition of one form."""

    form: str  # "key[form]"
    text: str  # the condition
    loosened: str  # loosened, dropped: which checker notices, and where; "" where none does
    dropped: str

    @property
    def tested(self) -> bool:
        """Whether a change by a factor of two is noticed."""
        return bool(self.loosened)


def conditions_path(paper: str) -> Path:
    """Where the paper's table lies: beside its ledger."""
    return ledger_path(paper, NAME)


@lru_cache(maxsize=16)
def read_conditions(paper: str) -> Mapping[tuple[str, str], Noticed]:
    """The committed rows of a paper, by form and condition; none where it has no table."""
    path = conditions_path(paper) if paper in paper_names() else None
    if path is None or not path.exists():
        return {}
    rows = json.loads(read_text(path, str(path), LARGEST))["rows"]
    return {(row["form"], row["text"]): Noticed(**row) for row in rows}


def untested_conditions(result: Result, form: Form) -> list[Noticed]:
    """The conditions of a form of which no checker notices that they are changed by a factor of two.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("arbitrary-participation/theorem-3.1")
        >>> untested_conditions(theorem, theorem.form("sharp"))
        []
    """
    rows, name = read_conditions(result.paper), f"{result.key}[{form.name}]"
    found = [rows.get((name, c.text), Noticed(name, c.text, "", "")) for c in form.conditions]
    return [row for row in found if not row.tested]


def describe_untested(paper: str) -> str:
    """How many conditions of a paper's forms are not tested, in one line."""
    rows = read_conditions(paper)
    if not rows:
        return f"no condition of a form is tested: there is no {NAME} beside the ledger"
    idle = [row for row in rows.values() if not row.tested]
    return f"{len(idle)} of {len(rows)} conditions of forms not tested: no checker notices a factor of 2"
