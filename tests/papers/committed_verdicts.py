"""The verdicts of a paper's ledger, which every audit proves anew and compares."""

from __future__ import annotations

from fedbounds.bounds.audit.ledger import read_ledger


def proved_forms(paper: str) -> dict[str, set[str]]:
    """The forms that the committed ledger says the proof steps prove, by result."""
    found: dict[str, set[str]] = {}
    for name, entry in read_ledger(paper).items():
        result, bracket, form = name.partition("/")[2].removesuffix("]").partition("[")
        if bracket and (entry["verdict"], entry["checker"]) == ("proved", "steps"):
            found.setdefault(result, set()).add(form)
    return found


def vacuous(paper: str) -> list[str]:
    """The claims that the committed ledger flags as vacuous."""
    return [name for name, entry in read_ledger(paper).items() if "vacuous" in str(entry.get("flags"))]
